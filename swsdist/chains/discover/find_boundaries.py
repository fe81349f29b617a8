"""The stage find-boundaries: where syllables may begin, by loudness, a task per shard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.discovery.search.boundaries import DECIBEL, falls
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.task_results import Bucket
from swsdist.store.reading import Store, pieces_of

#: Frames of documents at which syllables may begin.
BOUNDARIES = pa.schema(
    [
        pa.field("doc_id", pa.string(), False),
        pa.field("channel", pa.int32(), False),
        pa.field("frame", pa.int32(), False),
    ]
)


class Finding(NamedTuple):
    """The payload of a task: the track, and how many of its units make 1 dB."""

    store: tuple[str, str]
    shard: str
    track: str
    decibel: float
    smooth: int
    fall: float


class FindBoundaries(Stage[Finding]):
    """Falls of loudness in a shard, by the first coefficients of MFCC; nothing in a store that has none."""

    name = "find-boundaries"
    version = 1
    unit = "s"
    phase = "search"
    takes = {"shards": "features"}
    grows_with_hours = "more"
    grows_with_queries = "same"
    tables = {"boundaries": Table(BOUNDARIES, key="doc_id", order=("channel", "frame"), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Finding]]:
        """A task per shard."""
        chain_inputs = inputs.chain_inputs(DiscoverInputs)
        store, options = chain_inputs.store.open(), chain_inputs.options.boundaries
        loud = _loud_track(store)
        if loud is None:
            return
        for shard in store.manifest.shards:
            if loud[0] in shard.files:
                key_parts = *loud, options.smooth, options.fall
                documents = store.live(shard.name, loud[0])
                payload = Finding(chain_inputs.store.state, shard.name, *key_parts)
                yield inputs.task(
                    *key_parts,
                    shard.files[loud[0]].sha256,
                    sorted(documents),
                    label=f"{len(documents)} documents",
                    work=shard.frames * store.manifest.shift,
                    payload=payload,
                )

    def run(self, task: Task[Finding], context: Context) -> TaskOutput:
        """Find falls, a row group for each document."""
        payload, rows = task.payload, 0
        store = Store.at(*payload.store, storage=context.storage)

        def tables() -> Iterator[pa.Table]:
            nonlocal rows
            for piece in pieces_of(store.blocks(payload.shard, track=payload.track)):
                blocks = list(piece)
                first = np.concatenate([block.features[:, 0] for block in blocks]).astype(np.float64)
                loudness = np.rint(first / payload.decibel * DECIBEL).astype(np.int64)
                frames = falls(loudness, payload.smooth, payload.fall)
                rows += len(frames)
                key = [blocks[0].doc_id] * len(frames), [blocks[0].channel] * len(frames)
                yield pa.table([*key, frames], schema=BOUNDARIES)

        return TaskOutput((context.publish(task, "boundaries", tables(), BOUNDARIES),), Bucket(rows))


def _loud_track(store: Store) -> tuple[str, float] | None:
    """The first track of MFCC as they are extracted, and its units a decibel.

    The first coefficient is the sum of the decibels of the mel bands over the square root of their number.
    """
    for track in store.manifest.tracks:
        options = track.recipe.get("options")
        if track.recipe.get("name") == "mfcc" and "transforms" not in track.recipe and isinstance(options, dict):
            return track.name, float(np.sqrt(options["n_mels"]))
    return None
