"""The stage group-matches: classes of stretches, and a parse of every document, in one task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.chains.discover.frames import Key, speech, unit_of
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import files_of
from swsdist.config.search import Search
from swsdist.discovery.search import clusters
from swsdist.discovery.search.clusters import Clustering, Side
from swsdist.discovery.search.parsing import Token, choose, with_rest
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.task_results import Bucket
from swsdist.store.reading import Store

#: Members of classes, or tokens of a parse; `class` is null for a token of no class. Times in s; sure: score per square root of
#: the frames of its best match within the class, in units of distance.
MEMBERS = pa.schema(
    [
        pa.field("class", pa.int32()),
        pa.field("doc_id", pa.string(), False),
        pa.field("channel", pa.int32(), False),
        pa.field("start", pa.float64(), False),
        pa.field("end", pa.float64(), False),
        pa.field("sure", pa.float64()),
    ]
)


class Grouping(NamedTuple):
    """The payload of a task."""

    store: tuple[str, str]
    files: tuple[str, ...]
    search: Search
    clustering: Clustering
    rest: int


class GroupMatches(Stage[Grouping]):
    """Classes, the largest first, and a parse."""

    name = "group-matches"
    version = 1
    unit = "matches"
    phase = "search"
    takes = {"matches": "matches"}
    with_hours = "larger"
    with_queries = "same"
    tables = {
        "classes": Table(MEMBERS, key=None, order=("class", "doc_id", "channel", "start")),
        "parse": Table(MEMBERS, key=None, order=("doc_id", "channel", "start")),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Grouping]]:
        """One task."""
        chain_inputs, parts = inputs.chain_inputs(DiscoverInputs), inputs.parts("matches")
        options, search, files = chain_inputs.options, inputs.config.search, files_of(parts)
        payload = Grouping(chain_inputs.store.state, files, search, options.clustering, options.rest)
        matters = chain_inputs.store.state, files, search.matters(), options.clustering.matters(), options.rest
        yield inputs.task(*matters, label="all", work=sum(part.rows for part in parts), payload=payload)

    def run(self, task: Task[Grouping], context: Context) -> TaskOutput:
        """Group, and parse."""
        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        unit = unit_of(payload.search)
        documents, matches = _matches(payload, unit, context)
        nodes, edges = clusters.nodes_of([item[:3] for item in matches], payload.clustering.overlap)
        groups = {"centres": clusters.centres, "components": clusters.components}[payload.clustering.by](
            len(nodes), edges
        )
        sure = np.zeros(len(nodes))
        member = {node: k for k, group in enumerate(groups) for node in group}
        for left, right, score in edges:
            if left in member and member[left] == member.get(right):
                for node in (left, right):
                    sure[node] = max(sure[node], _per_root(score, nodes[left], nodes[right], unit))
        groups.sort(key=lambda group: (-len(group), [nodes[node] for node in sorted(group)]))
        shift = store.manifest.shift

        def rows(tokens: list[tuple[int | None, Side, float | None]]) -> list[dict[str, Any]]:
            return [
                {
                    "class": number,
                    "doc_id": documents[side.document][0],
                    "channel": documents[side.document][1],
                    "start": side.first * shift,
                    "end": side.stop * shift,
                    "sure": certain,
                }
                for number, side, certain in tokens
            ]

        members = [
            (number, nodes[node], float(sure[node]))
            for number, group in enumerate(groups)
            for node in sorted(group, key=lambda node: nodes[node])
        ]
        by_document: dict[int, list[Token]] = {}
        for number, side, certain in members:
            by_document.setdefault(side.document, []).append(
                Token(side.first, side.stop, number, certain * (side.stop - side.first))
            )
        known = {(number, side): certain for number, side, certain in members}
        place = {key: k for k, key in enumerate(documents)}
        parse: list[tuple[int | None, Side, float | None]] = []
        for shard in store.manifest.shards:
            for key, spoken in speech(store, shard.name).items():
                number = place.setdefault(key, len(place))
                if number == len(documents):
                    documents.append(key)
                for token in with_rest(choose(by_document.get(number, [])), spoken, payload.rest):
                    side = Side(number, token.first, token.stop)
                    group = None if token.group < 0 else token.group
                    parse.append((group, side, None if group is None else known[group, side]))
        classes = pa.Table.from_pylist(rows(list(members)), MEMBERS)
        tokens = pa.Table.from_pylist(rows(parse), MEMBERS).sort_by(
            [(name, "ascending") for name in ("doc_id", "channel", "start")]
        )
        outputs = (
            context.publish(task, "classes", [classes], MEMBERS),
            context.publish(task, "parse", [tokens], MEMBERS, "-parse.parquet"),
        )
        return TaskOutput(outputs, Bucket(classes.num_rows))


def _matches(payload: Grouping, unit: int, context: Context) -> tuple[list[Key], list[tuple[Side, Side, int]]]:
    """Documents in order, and matches that are good enough, best first."""
    rows = [row for name in payload.files for row in context.read(name).to_pylist()]
    keys = {(row["doc_id"], row["channel"]) for row in rows} | {
        (row["other_doc_id"], row["other_channel"]) for row in rows
    }
    documents = sorted(keys)
    number = {key: k for k, key in enumerate(documents)}
    matches = []
    for row in rows:
        left = Side(number[row["doc_id"], row["channel"]], row["first"], row["stop"])
        right = Side(number[row["other_doc_id"], row["other_channel"]], row["other_first"], row["other_stop"])
        if _per_root(row["score"], left, right, unit) >= payload.clustering.score:
            matches.append((left, right, row["score"]))
    matches.sort(key=lambda item: (-_per_root(item[2], item[0], item[1], unit), item))
    return documents, matches


def _per_root(score: int, left: Side, right: Side, unit: int) -> float:
    """The score of a match over the square root of its frames: a long one is worth more than its mean says."""
    frames = min(left.stop - left.first, right.stop - right.first)
    return float(score / unit / np.sqrt(frames))
