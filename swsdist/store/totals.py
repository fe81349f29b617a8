"""Totals over tables of documents: their sorted keys, and the amount of speech."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow.compute as pc

from swsdist.store.spooled import SpooledDocuments

#: Documents whose keys are Python objects at a time.
_PIECE = 1 << 16


def keys(documents: SpooledDocuments) -> Iterator[list[list[object]]]:
    """Sorted keys of a track's documents, in pieces."""
    table = documents.read(["doc_id", "channel", "identity", "shard"]).combine_chunks()
    order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
    for first in range(0, len(order), _PIECE):
        some = table.take(order.slice(first, _PIECE))
        yield list(map(list, zip(*(column.to_pylist() for column in some.columns), strict=True)))


def speech(tracks: Iterable[SpooledDocuments], tick: float) -> dict[str, float]:
    """Seconds analysed for speech, and seconds of speech: from the first track with marks."""
    audible = speech = 0
    for documents in tracks:
        for batch in documents.pieces(["frames", "speech"]):
            marked = batch.filter(pc.is_valid(batch["speech"]))
            bits = b"".join(marked["speech"].to_pylist())
            audible += pc.sum(marked["frames"]).as_py() or 0
            speech += int(np.bitwise_count(np.frombuffer(bits, np.uint8)).sum())
        if audible:
            break
    return {"heard_seconds": round(audible * tick, 6), "speech_seconds": round(speech * tick, 6)}
