"""Prepared frames of a store's documents, with their speech marks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.speech import unpack_marks
from swsdist.config.search import Search
from swsdist.discovery.search.matches import Stretches
from swsdist.kernels.distances.interface import Distance, Side
from swsdist.kernels.scales import weighted
from swsdist.methods.dtw.shard import Documents
from swsdist.store.reading import Store
from swsdist.store.same_sound import Key
from swsdist.store.tracks import Tracks


def stretches(
    store: Store, shard: str, search: Search, keys: Collection[Key] | None = None, side: Side = "document"
) -> Iterator[tuple[Key, Stretches, Distance]]:
    """Documents of a shard, all or some, with their frames and the distance of these; as long as the store's shortest track."""
    documents = Documents(store, [shard], search.model_copy(update={"skip_silence": False}))
    stored = list(zip(documents.table["doc_id"].to_pylist(), documents.table["channel"].to_pylist(), strict=True))
    chosen = np.array([keys is None or key in keys for key in stored], np.bool_)
    if not chosen.any():
        return
    marks = speech(store, shard)
    for k, blocks in documents.stream(chosen=chosen, side=side):
        frames, spoken = np.concatenate(list(blocks)), marks[stored[k]]
        yield stored[k], Stretches(frames[: len(spoken)], spoken[: len(frames)]), documents.distance


def unit_of(search: Search) -> int:
    """The integer that represents a distance of 1 in every stream."""
    terms = search.terms()
    return int(weighted([(term.distance, term.weight) for term in terms]).unit * sum(term.weight for term in terms))


def speech(store: Store, shard: str) -> dict[Key, NDArray[np.bool_]]:
    """Which frames of a shard's documents are speech, by any track made of the recordings."""
    result = {}
    for row in Tracks(store).documents(shard, ["doc_id", "channel", "frames", "speech"]).to_pylist():
        result[row["doc_id"], row["channel"]] = unpack_marks(row["speech"], row["frames"]).astype(np.bool_)
    return result
