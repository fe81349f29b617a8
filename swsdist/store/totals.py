"""Totals over tables of documents: their sorted keys, the amount of speech, and what recognisers say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
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
    """Seconds analysed for speech, and seconds of speech: from the first track with marks, or with seconds of speech."""
    heard = spoken = 0.0
    for documents in tracks:
        for batch in documents.pieces(["duration", "frames", "speech", "speech_seconds"]):
            marked, told = (batch.filter(pc.is_valid(batch[name])) for name in ("speech", "speech_seconds"))
            bits = b"".join(marked["speech"].to_pylist())
            heard += (pc.sum(marked["frames"]).as_py() or 0) * tick + (pc.sum(told["duration"]).as_py() or 0.0)
            spoken += int(np.bitwise_count(np.frombuffer(bits, np.uint8)).sum()) * tick
            spoken += pc.sum(told["speech_seconds"]).as_py() or 0.0
        if heard:
            break
    return {"heard_seconds": round(heard, 6), "speech_seconds": round(spoken, 6)}


def languages(documents: pa.Table) -> dict[str, int]:
    """Documents by their `language`, the most first; without those of which it is unknown."""
    counts = Counter(documents["language"].drop_null().to_pylist())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def left_out(documents: pa.Table) -> list[dict[str, Any]]:
    """Sums of their `left_out`: rows of LEFT_OUT, by reason."""
    sums: dict[str, dict[str, Any]] = {}
    for row in chain.from_iterable(documents["left_out"].drop_null().to_pylist()):
        held = sums.setdefault(row["reason"], {**row, "items": 0, "seconds": 0.0})
        held["items"] += row["items"]
        held["seconds"] += row["seconds"]
    return [sums[reason] for reason in sorted(sums)]
