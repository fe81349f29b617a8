"""Files of fitted models, and whether they were fitted on the references that they are scored against.

`trained_on` in a file contains a fingerprint of each query's occurrences. If any query shares it with the references used for
scoring, the fit counts as oracle, like a fit in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import pyarrow as pa

from swsdist.core.codes import calibrate as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.io.filesystem import locate

#: Entry of `trained_on`.
ENTRY = "references"


def fingerprint_references(references: pa.Table) -> dict[str, str]:
    """A fingerprint of each query's true occurrences: documents, channels and times to the millisecond.

    Args:
        references: REFERENCES.
    """
    columns = [references[name].to_pylist() for name in ("query_id", "doc_id", "channel")]
    times = [[round(1000 * value) for value in references[name].to_pylist()] for name in ("start", "end")]
    rows = sorted(zip(*columns, *times, strict=True))
    return {query: fingerprint([row[1:] for row in some])[:12] for query, some in groupby(rows, lambda row: row[0])}


def overlaps(trained_on: object, references: pa.Table | None) -> bool | None:
    """Whether a model was fitted on the scored references; None if unknown.

    Args:
        trained_on: from the file.
        references: REFERENCES used for scoring; None without scoring.
    """
    trained = trained_on.get(ENTRY) if isinstance(trained_on, Mapping) else None
    if not isinstance(trained, Mapping) or references is None:
        return None
    return any(trained.get(query) == digest for query, digest in fingerprint_references(references).items())


def fit_kind(trained_on: object, references: pa.Table | None) -> str:
    """Kind of a fit from a file: `oracle` if it is known to overlap with the references, else `file`."""
    return "oracle" if overlaps(trained_on, references) else "file"


def read_fitted(path: str, storage: Mapping[str, object], where: str) -> bytes:
    """The content of a file of fitted models.

    Args:
        path: local or `s3://`.
        storage: options for s3fs.
        where: option or config key that names it, for messages.

    Raises:
        ConfigError: there is no such file.
    """
    folder, name = locate(path, storage)
    try:
        return folder.read_bytes(name)
    except FileNotFoundError:
        missing = codes.NO_FITTED_FILE
    except IsADirectoryError:
        missing = codes.NOT_A_RUN_TO_FIT_BY
    raise missing(where=where)
