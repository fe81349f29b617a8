"""The documents that a search with a first pass searches exactly, and whose candidates calibration takes statistics of.

What a first pass proposes are a query's best matches, whose mean is no mean of the collection. So documents are drawn by a hash
of their names, whatever the shards, and searched exactly; statistics are over their candidates alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config.search import Search
from swsdist.core.fingerprint import stable_hash
from swsdist.kernels.coding import coded_documents

#: Limit of all documents.
EVERYTHING = 1 << 64

#: Documents of a sample that are expected at least: with 8, one store in 3000 has none.
_FEWEST = 8


def document_hash(doc_id: str, channel: int) -> int:
    """What documents are drawn by: 64 bits of their names, whatever their paths and shards."""
    return stable_hash(f"{doc_id} {channel}")


def sample_limit(search: Search, counts: Mapping[str, float]) -> int | None:
    """The limit of the sample that a first pass wants; None: there is none, and statistics are over all candidates.

    Args:
        search: names the first pass.
        counts: of the store's manifest: documents and seconds.
    """
    first_pass = search.first_pass
    if first_pass.name == "none" or not first_pass.sample:
        return None
    return limit_of(first_pass.sample, counts)


def limit_of(wanted: float, counts: Mapping[str, float]) -> int:
    """Documents with a smaller hash are in the sample.

    Their share is a power of two, so that it changes only when a collection doubles: the largest that is expected to be no
    longer than wanted, but more than `_FEWEST` documents.

    Args:
        wanted: s.
        counts: of the store's manifest: documents and seconds.
    """
    seconds, documents, halvings = counts["seconds"], counts["documents"], 0
    while seconds > wanted and documents > 2 * _FEWEST:
        seconds, documents, halvings = seconds / 2, documents / 2, halvings + 1
    return EVERYTHING >> halvings


def in_sample(table: pa.Table, limit: int) -> NDArray[np.bool_]:
    """Whether the document of each row is in the sample, bool (rows,).

    Args:
        table: columns doc_id and channel.
        limit: of `sample_limit`.
    """
    if not table.num_rows:
        return np.zeros(0, bool)
    documents, row = coded_documents(table)
    return np.array([document_hash(*document) < limit for document in documents], bool)[row]
