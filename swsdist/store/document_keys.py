"""Keys that identify documents in tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def keys_of(names: pa.ChunkedArray, channels: pa.ChunkedArray) -> pa.Array:
    """One string per document: its name, and its channel or part."""
    text = pa.large_string()
    joined = pc.binary_join_element_wise(
        names.cast(text), channels.cast(pa.string()).cast(text), pa.scalar("\0", text), null_handling="replace"
    )
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
