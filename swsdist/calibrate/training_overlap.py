"""Files of what was fitted, and whether it was fitted on the very occurrences that it is scored by.

A file says in `trained_on` where each query occurred truly, as a fingerprint a query. One that any query shares with the
references that score was fitted on what is scored: it is called oracle, as a fit in place would be.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import pyarrow as pa

from swsdist.core.codes import calibrate as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.io.filesystem import locate

#: The entry of `trained_on`.
ENTRY = "references"


def fingerprint_references(references: pa.Table) -> dict[str, str]:
    """A fingerprint of the true occurrences of each query that has any: of documents, channels and times to the millisecond.

    Args:
        references: REFERENCES.
    """
    columns = [references[name].to_pylist() for name in ("query_id", "doc_id", "channel")]
    times = [[round(1000 * value) for value in references[name].to_pylist()] for name in ("start", "end")]
    rows = sorted(zip(*columns, *times, strict=True))
    return {query: fingerprint([row[1:] for row in some])[:12] for query, some in groupby(rows, lambda row: row[0])}


def overlaps(trained_on: object, references: pa.Table | None) -> bool | None:
    """Whether something was fitted on what is scored; None where that cannot be known.

    Args:
        trained_on: as the file of what was fitted has it.
        references: by which is scored, REFERENCES; None: nothing is.
    """
    trained = trained_on.get(ENTRY) if isinstance(trained_on, Mapping) else None
    if not isinstance(trained, Mapping) or references is None:
        return None
    return any(trained.get(query) == digest for query, digest in fingerprint_references(references).items())


def fit_kind(trained_on: object, references: pa.Table | None) -> str:
    """How something from a file was fitted, for who decides by it: `oracle` or `file`."""
    return "oracle" if overlaps(trained_on, references) else "file"


def read_fitted(path: str, storage: Mapping[str, object], where: str) -> bytes:
    """The content of a file of what was fitted.

    Args:
        path: local or `s3://`.
        storage: options for s3fs.
        where: it was named, for messages.

    Raises:
        ConfigError: there is none.
    """
    folder, name = locate(path, storage)
    try:
        return folder.read_bytes(name)
    except FileNotFoundError:
        missing = codes.NO_FITTED_FILE
    except IsADirectoryError:
        missing = codes.NOT_A_RUN_TO_FIT_BY
    raise missing(where=where)
