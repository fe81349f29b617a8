"""Rescore queries inside spans of documents, for methods with spoken examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from swsdist.config.search import Search
from swsdist.core.arrays import Singles
from swsdist.core.fingerprint import slot_of
from swsdist.core.types import CANDIDATES
from swsdist.methods.query.example import Example
from swsdist.store.reading import Store, Tracks

if TYPE_CHECKING:
    from swsdist.kernels.distances.interface import Distance  # loads numba

#: Of an example, prepared frames of a document, a place in it and the distance: first and last frame of the best path there,
#: counted from the place, and its cost; None where there is none.
Best = Callable[[Example, Singles, slice, "Distance"], tuple[int, int, int] | None]


def best_in_spans(examples: Sequence[Example], store: Store, spans: pa.Table, search: Search, best: Best) -> pa.Table:
    """The best path of a query's examples inside each span; of equal ones that of the first example.

    Args:
        examples: of all queries.
        store: with the documents.
        spans: SPANS (`swsdist.methods.method`).
        search: how frames are prepared; spans are of all frames, silence included.
        best: finds the best path of an example in the frames of a span.

    Returns:
        CANDIDATES, one for each span that can hold a match, in the order of the spans.
    """
    from swsdist.methods.dtw.shard import (
        Documents,
        unit_of,  # loads numba: planning does without
    )

    by_query: dict[str, list[Example]] = {}
    for example in examples:
        by_query.setdefault(example.query_id, []).append(example)
    by_document: dict[tuple[str, int], list[tuple[int, dict[str, Any]]]] = {}
    for place, span in enumerate(spans.to_pylist()):
        by_document.setdefault((span["doc_id"], span["channel"]), []).append((place, span))
    all_documents = Tracks(store).documents(columns=["doc_id", "channel", "shard"]).to_pylist()
    shards = sorted({row["shard"] for row in all_documents if (row["doc_id"], row["channel"]) in by_document})
    matches: dict[int, dict[str, Any]] = {}
    if not shards:
        return CANDIDATES.empty_table()
    documents = Documents(store, shards, search.model_copy(update={"skip_silence": False}))
    keys = list(zip(documents.table["doc_id"].to_pylist(), documents.table["channel"].to_pylist(), strict=True))
    chosen = np.array([key in by_document for key in keys], np.bool_)
    unit = unit_of(search)
    for index, blocks in documents.stream(chosen=chosen):
        read = list(blocks)
        if not read:
            continue
        frames, numbers = np.concatenate(read), documents.frames_of_the_recording(index)
        for place, span in by_document[keys[index]]:
            inside = slice(*np.searchsorted(numbers, (span["first"], span["last"] + 1)).tolist())
            for example in by_query.get(span["query_id"], []) if len(frames[inside]) else []:
                path = best(example, frames, inside, documents.distance)
                if path is None:
                    continue
                first, last, cost = path
                row = {
                    "slot": slot_of(example.query_id),
                    "query_id": example.query_id,
                    "example": example.example,
                    "doc_id": span["doc_id"],
                    "channel": span["channel"],
                    "first": int(numbers[inside.start + first]),
                    "last": int(numbers[inside.start + last]),
                    "cost": cost,
                    "scale": len(example.frames) * unit,
                }
                previous = matches.get(place)
                # Compared as fractions, which are exact.
                if previous is None or row["cost"] * previous["scale"] < previous["cost"] * row["scale"]:
                    matches[place] = row
    return pa.Table.from_pylist([matches[place] for place in sorted(matches)], CANDIDATES)
