"""The stage propose-pairs: pairs of segments that stand near each other in a sorted order, a task per order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.core.partition import SLOTS, slot_of
from swsdist.discovery.search.neighbours import Neighbours, Pairs, Places, joined, near
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.stages.task_results import Bucket

#: Row groups of a file of pairs.
_GROUPS = 64

#: Pairs of segments, by number in the order of documents and first frames; the slot is that of the left one's document.
PAIRS = pa.schema(
    [
        pa.field("slot", pa.int32(), False),
        pa.field("left", pa.int32(), False),
        pa.field("right", pa.int32(), False),
        pa.field("unlike", pa.int32(), False),
    ]
)


class Collection(NamedTuple):
    """All segments, and the documents that they are of, in order."""

    documents: list[tuple[str, int]]
    slots: NDArray[np.int32]
    places: Places


class Proposing(NamedTuple):
    """The payload of a task."""

    files: tuple[str, ...]
    number: int
    apart: int
    hop: int
    neighbours: Neighbours


class ProposePairs(Stage[Proposing]):
    """Pairs of one order: of segments in two rows each, once as neighbour of either; of diagonals in one."""

    name = "propose-pairs"
    version = 2
    unit = "segments"
    phase = "search"
    takes = {"segments": "segments"}
    with_hours = "larger"
    with_queries = "same"
    tables = {"proposed": Table(PAIRS, key="left", order=("right",), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Proposing]]:
        """A task per order; each reads all signatures."""
        options, parts = inputs.chain_inputs(DiscoverInputs).options, inputs.parts("segments")
        neighbours = options.neighbours
        files, rows = files_of(parts), sum(part.rows for part in parts)
        for number in range(neighbours.orders if rows else 0):
            payload = Proposing(files, number, options.apart, options.segments.hop, neighbours)
            matters = neighbours.model_dump(mode="json", exclude={"orders", "kept", "width", "points"})
            yield inputs.task(*payload[:-1], matters, label=f"order {number}", work=rows, payload=payload)

    def run(self, task: Task[Proposing], context: Context) -> TaskOutput:
        """Sort, and compare neighbours."""
        payload = task.payload
        everything = collection(payload.files, context)
        pairs = near(everything.places, payload.number, payload.apart, payload.hop, payload.neighbours)
        if payload.neighbours.by == "segments":
            pairs = joined([pairs, Pairs(pairs.right, pairs.left, pairs.unlike)])
        table = by_slot(pairs, everything)
        return TaskOutput((context.publish(task, "proposed", in_groups(table), PAIRS),), Bucket(table.num_rows))


def in_groups(table: pa.Table) -> Iterator[pa.Table]:
    """PAIRS by row groups of some slots each, so that a bucket reads few others."""
    edges = np.searchsorted(table["slot"].to_numpy(), np.arange(0, SLOTS + 1, SLOTS // _GROUPS))
    for begin, end in pairwise(edges.tolist()):
        yield table.slice(begin, end - begin)


def files_of(parts: Sequence[Part]) -> tuple[str, ...]:
    """Names of files, in an order of their own."""
    return tuple(sorted(part.name for part in parts))


def collection(files: tuple[str, ...], context: Context) -> Collection:
    """All segments of some files, kept for the next task of the process."""
    return context.cached("collection", files, lambda: _read(files, context))


def _read(files: tuple[str, ...], context: Context) -> Collection:
    table = pa.concat_tables([context.read(name) for name in files])
    keys = table.select(["doc_id", "channel"]).group_by(["doc_id", "channel"]).aggregate([]).to_pylist()
    documents = sorted((row["doc_id"], row["channel"]) for row in keys)
    number = {key: k for k, key in enumerate(documents)}
    ids, channels = table["doc_id"].to_pylist(), table["channel"].to_pylist()
    document = np.array([number[key] for key in zip(ids, channels, strict=True)], np.int32)
    first = table["first"].to_numpy().astype(np.int32)
    order = np.lexsort((first, document))
    width = len(table["signature"][0].as_py()) if table.num_rows else 8
    packed = np.frombuffer(b"".join(table["signature"].to_pylist()), np.uint8).reshape(-1, width)
    slots = np.array([slot_of(doc_id) for doc_id, _ in documents], np.int32)
    places = Places(document[order], first[order], np.ascontiguousarray(packed[order]))
    return Collection(documents, slots, places)


def by_slot(pairs: Pairs, everything: Collection) -> pa.Table:
    """PAIRS, ascending."""
    slot = everything.slots[everything.places.document[pairs.left]]
    order = np.lexsort((pairs.right, pairs.left, slot))
    return pa.table([slot[order], *pairs.take(order)], schema=PAIRS)
