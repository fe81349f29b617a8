"""The stage group-matches: classes of stretches, and a parse of every document, in one task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.speech import stretches
from swsdist.chains.discover.inputs import DiscoverInputs, DiscoverOptions, speech, unit_of
from swsdist.chains.discover.propose_pairs import files_of
from swsdist.config.search import Search
from swsdist.core.types import columns
from swsdist.discovery import clusters
from swsdist.discovery.clusters import Edge, Side, Token, choose, places, with_rest
from swsdist.discovery.neighbours import DECIBEL, falls, without_margins
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import Bucket
from swsdist.store.reading import Store, pieces_of
from swsdist.store.same_sound import WHEN, Key, times

#: Members of classes, or tokens of a parse; `class` is null for a token of no class. Times in s; sure: score per square root of
#: the frames of its best match within the class, in units of distance.
MEMBERS = columns("class int32?, doc_id string, channel int32, start float64, end float64, sure float64?")


#: Class, place, and how sure: of a token of no class the first and the last are None.
_Token = tuple[int | None, Side, float | None]


class Grouping(NamedTuple):
    """The payload of a task; copies have no parse."""

    store: tuple[str, str]
    files: tuple[str, ...]
    boundaries: tuple[str, ...]
    copies: tuple[Key, ...]
    search: Search
    options: DiscoverOptions


class GroupMatches(Stage[Grouping]):
    """Classes, the largest first, and a parse."""

    name = "group-matches"
    version = 3
    unit = "matches"
    phase = "search"
    takes = {"matches": "matches", "boundaries": "boundaries"}
    grows_with_hours = "larger"
    grows_with_queries = "same"
    tables = {
        "classes": Table(MEMBERS, key=None, order=("class", "doc_id", "channel", "start")),
        "parse": Table(MEMBERS, key=None, order=("doc_id", "channel", "start")),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Grouping]]:
        """One task."""
        chain_inputs, parts = inputs.chain_inputs(DiscoverInputs), inputs.parts("matches")
        options, search = chain_inputs.options, inputs.config.search
        files, boundaries = files_of(parts), files_of(inputs.parts("boundaries"))
        copies = tuple(sorted(chain_inputs.copies))
        payload = Grouping(chain_inputs.store.state, files, boundaries, copies, search, options)
        used = options.clustering.matters(), options.boundaries.margin, options.boundaries.reach, options.rest
        key_parts = chain_inputs.store.state, files, boundaries, search.matters(), *used
        yield inputs.task(*key_parts, label="all", work=sum(part.rows for part in parts), payload=payload)

    def run(self, task: Task[Grouping], context: Context) -> TaskOutput:
        """Group, and parse."""
        payload, options = task.payload, task.payload.options
        store = Store.at(*payload.store, storage=context.storage)
        marks = {key: marks for shard in store.manifest.shards for key, marks in speech(store, shard.name).items()}
        documents = sorted(marks.keys() - set(payload.copies))
        by_key = times(store.documents(columns=list(WHEN)), store.manifest.shift)
        time = [by_key[key] for key in documents]
        spoken = [without_margins(marks[key], options.boundaries.margin) for key in documents]
        boundaries = _boundaries(payload, documents, spoken, context)
        unit = unit_of(payload.search)
        nodes, edges = clusters.nodes_of(_matches(payload, documents, unit, context), options.clustering.overlap, time)
        group_by = {"centres": clusters.centres, "components": clusters.components}[options.clustering.by]
        groups = group_by(len(nodes), edges)
        sure = _sureness(nodes, edges, groups, unit)
        between = {(edge.left, edge.right): edge for edge in edges}
        frames = [len(marks) for marks in spoken]
        classes = []
        for group in groups:
            if options.clustering.largest is not None and len(group) >= options.clustering.largest:
                continue
            placed = places(group, nodes, between, boundaries, frames, options.boundaries.reach)
            stay = clusters.distinct(placed, options.clustering.duplicates, time)
            if len(stay) > 1:
                classes.append(sorted((placed[number], float(sure[group[number]])) for number in stay))
        classes.sort(key=lambda members: (-len(members), members))
        members = [(number, *member) for number, members in enumerate(classes) for member in members]
        parse = _parse(members, spoken, boundaries, options.rest)
        made, tokens = (_table(some, documents, store.manifest.shift) for some in (members, parse))
        outputs = (
            context.publish(task, "classes", [made], MEMBERS),
            context.publish(task, "parse", [tokens], MEMBERS, "-parse.parquet"),
        )
        return TaskOutput(outputs, Bucket(made.num_rows))


def _boundaries(
    payload: Grouping, documents: list[Key], spoken: list[NDArray[np.bool_]], context: Context
) -> list[list[int]]:
    """Boundaries of each document, ascending: falls of loudness in speech, and ends of speech."""
    number = {key: k for k, key in enumerate(documents)}
    result = [{end for stretch in stretches(marks) for end in stretch} for marks in spoken]
    for row in (row for name in payload.boundaries for row in context.read(name).to_pylist()):
        document = number.get((row["doc_id"], row["channel"]))
        if document is not None and row["frame"] < len(spoken[document]) and spoken[document][row["frame"]]:
            result[document].add(row["frame"])
    return [sorted(frames) for frames in result]


def _matches(payload: Grouping, documents: list[Key], unit: int, context: Context) -> list[tuple[Side, Side, int]]:
    """Matches that are good enough, best first."""
    number = {key: k for k, key in enumerate(documents)}
    ranked = []
    for row in (row for name in payload.files for row in context.read(name).to_pylist()):
        left = Side(number[row["doc_id"], row["channel"]], row["first"], row["stop"])
        right = Side(number[row["other_doc_id"], row["other_channel"]], row["other_first"], row["other_stop"])
        quality = _per_root(row["score"], left, right, unit)
        if quality >= payload.options.clustering.score:
            ranked.append((-quality, left, right, row["score"]))
    return [(left, right, score) for _, left, right, score in sorted(ranked)]


def _per_root(score: int, left: Side, right: Side, unit: int) -> float:
    """The score of a match over the square root of its frames: a long one is worth more than its mean says."""
    frames = min(left.stop - left.first, right.stop - right.first)
    return float(score / unit / np.sqrt(frames))


def _sureness(nodes: list[Side], edges: list[Edge], groups: list[list[int]], unit: int) -> NDArray[np.float64]:
    """Of each node the best of its edges within its class; 0 without."""
    sure = np.zeros(len(nodes))
    group = {node: k for k, members in enumerate(groups) for node in members}
    for left, right, score, sides in edges:
        if left in group and group[left] == group.get(right):
            quality = _per_root(score, *sides, unit)
            sure[[left, right]] = np.maximum(sure[[left, right]], quality)
    return sure


def _parse(
    members: list[tuple[int, Side, float]], spoken: list[NDArray[np.bool_]], boundaries: list[list[int]], rest: int
) -> list[_Token]:
    """Tokens of all documents in their order, by the members of classes, and the speech and boundaries of each document."""
    tokens: dict[int, list[Token]] = defaultdict(list)
    for number, side, sure in members:
        tokens[side.document].append(Token(side.first, side.stop, number, sure * (side.stop - side.first)))
    sureness = {(number, side): sure for number, side, sure in members}
    parse: list[_Token] = []
    for document, speech_marks in enumerate(spoken):
        for token in with_rest(choose(tokens[document]), speech_marks, boundaries[document], rest):
            side = Side(document, token.first, token.stop)
            group = None if token.group < 0 else token.group
            parse.append((group, side, None if group is None else sureness[group, side]))
    return parse


def _table(members: Sequence[_Token], documents: list[Key], shift: float) -> pa.Table:
    """MEMBERS."""
    rows = [
        (number, *documents[side.document], side.first * shift, side.stop * shift, sure)
        for number, side, sure in members
    ]
    return pa.Table.from_pylist([dict(zip(MEMBERS.names, row, strict=True)) for row in rows], MEMBERS)


#: Frames of documents at which syllables may begin.
BOUNDARIES = columns("doc_id string, channel int32, frame int32")


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
