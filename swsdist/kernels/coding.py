"""Strings of a column as small integers.

A column of more than 2 GB cannot be one Arrow array of strings, but its codes can: so a column is coded chunk by chunk.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from swsdist.core.arrays import Ints


def coded(column: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """The distinct values of a column of strings (or of codes of strings) without nulls, and each row's among them, int64."""
    places: dict[str, int] = {}
    parts = [np.empty(0, np.int64)]
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()
        numbers = [places.setdefault(name, len(places)) for name in encoded.dictionary.to_pylist()]
        parts.append(np.array(numbers, np.int64)[encoded.indices.to_numpy()])
    return list(places), np.concatenate(parts)


def coded_documents(table: pa.Table) -> tuple[list[tuple[str, int]], Ints]:
    """The distinct documents (doc_id, channel) of a table's rows, and each row's among them, int64."""
    names, code = coded(table["doc_id"])
    pairs, row = np.unique(np.stack([code, table["channel"].to_numpy().astype(np.int64)]), axis=1, return_inverse=True)
    return [(names[name], channel) for name, channel in pairs.T.tolist()], row.reshape(-1)
