"""The chain discover: from audio to classes of stretches that recur, and a parse of all speech.

::

    [fit-transforms] -> index -> cut-segments -> propose-pairs | search-segments -> select-pairs -> align-pairs
        -> find-boundaries -> group-matches -> [score-discovery], export
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import stretches as spoken_stretches
from swsdist.chains.check import check
from swsdist.chains.discover.inputs import DiscoverInputs, DiscoverOptions, speech, unit_of
from swsdist.chains.discover.propose_pairs import (
    AlignPairs,
    CutSegments,
    ProposePairs,
    SearchSegments,
    SelectPairs,
    files_of,
)
from swsdist.chains.report import reporting
from swsdist.chains.report.publish import present_fingerprint
from swsdist.chains.report.reporting import barrier, counts, rejected_rows
from swsdist.config import Config
from swsdist.config.search import Search
from swsdist.core.arrays import Bools, Floats
from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.fingerprint import fingerprint
from swsdist.core.text import counted
from swsdist.core.types import columns, table_of
from swsdist.discovery import clusters
from swsdist.discovery.clusters import Edge, Side, Token, choose, with_rest
from swsdist.discovery.clusters import places as member_places
from swsdist.discovery.evaluate import by_name, by_time, numbered
from swsdist.discovery.files import read_units, write_classes
from swsdist.discovery.neighbours import DECIBEL, falls, without_margins
from swsdist.discovery.results import curve, scores
from swsdist.discovery.scene import WORDS, Stretch, Word, alike, fragments_of, word_list
from swsdist.discovery.units import Corpus, Given, document_name
from swsdist.exports.tiers import WRITERS, Labelled, Recordings, write_tiers
from swsdist.io.filesystem import identify
from swsdist.io.notices import Notices
from swsdist.io.tables import write_csv
from swsdist.pipeline.chain import Chain, Context, Inputs, Stage, Step, Table
from swsdist.pipeline.chain_run import ChainRun, Outcome
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.report.answers import ClassCounts, render_classes
from swsdist.report.summary import short
from swsdist.stages.buckets import Bucket, Exported
from swsdist.stages.export import keep_exports, write_exports
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.stages.index import Index
from swsdist.stages.inputs.corpus_documents import is_fitted
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
            placed = member_places(group, nodes, between, boundaries, frames, options.boundaries.reach)
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


def _boundaries(payload: Grouping, documents: list[Key], spoken: list[Bools], context: Context) -> list[list[int]]:
    """Boundaries of each document, ascending: falls of loudness in speech, and ends of speech."""
    number = {key: k for k, key in enumerate(documents)}
    result = [{end for stretch in spoken_stretches(marks) for end in stretch} for marks in spoken]
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


def _sureness(nodes: list[Side], edges: list[Edge], groups: list[list[int]], unit: int) -> Floats:
    """Of each node the best of its edges within its class; 0 without."""
    sure = np.zeros(len(nodes))
    group = {node: k for k, members in enumerate(groups) for node in members}
    for left, right, score, sides in edges:
        if left in group and group[left] == group.get(right):
            quality = _per_root(score, *sides, unit)
            sure[[left, right]] = np.maximum(sure[[left, right]], quality)
    return sure


def _parse(
    members: list[tuple[int, Side, float]], spoken: list[Bools], boundaries: list[list[int]], rest: int
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
    return table_of(rows, MEMBERS)


#: Frames of documents at which syllables may begin.
BOUNDARIES = columns("doc_id string, channel int32, frame int32")


class Finding(NamedTuple):
    """The payload of a task: the track, and the number of its units in 1 dB."""

    store: tuple[str, str]
    shard: str
    track: str
    decibel: float
    smooth: int
    fall: float


class FindBoundaries(Stage[Finding]):
    """Falls of loudness in a shard, by the first coefficients of MFCC; none in a store without MFCC."""

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


def places(tables: Iterable[pa.Table], store: Store) -> list[Stretch]:
    """Rows of MEMBERS with speakers and recordings; a document that is a place has its recording's name and times.

    Args:
        tables: MEMBERS.
        store: of their documents.
    """
    columns = ["doc_id", "channel", "speaker", "recording", "start"]
    documents = {(row["doc_id"], row["channel"]): row for row in store.documents(columns=columns).to_pylist()}
    recordings = store.recordings()
    stretches = []
    for row in (row for table in tables for row in table.to_pylist()):
        document = documents[row["doc_id"], row["channel"]]
        name, begin = document["recording"] or row["doc_id"], document["start"] or 0.0
        start, end = (round(begin + row[key], 6) for key in ("start", "end"))
        path = recordings[name, row["channel"]].path
        speaker = document["speaker"] or ""
        stretches.append(Stretch(row["class"], name, row["channel"], start, end, row["sure"], speaker, path))
    return stretches


#: Columns of classes.csv and parse.csv.
STRETCHES = pa.schema([*MEMBERS, pa.field("speaker", pa.string())])
#: Columns of queries.csv, a table of queries: places in documents.
_QUERIES = columns("query_id string?, example int32?, doc_id string?, channel int32?, start float64?, end float64?")


#: Columns of classes-names.csv.
_NAMES = columns("name string, document string")
_BLANKS = re.compile(r"\s")


def write_tables(classes: Sequence[Stretch], parse: Sequence[Stretch], folder: Path) -> None:
    """Write `classes.csv`, `parse.csv` and the word list, `words.csv`."""
    for name, stretches in (("classes", classes), ("parse", parse)):
        rows = [(*stretch[:6], stretch.speaker or None) for stretch in stretches]
        write_csv(table_of(rows, STRETCHES), STRETCHES, folder / f"{name}.csv")
    words = pa.Table.from_pylist([word.row() for word in word_list(classes)], WORDS)
    write_csv(words, WORDS, folder / "words.csv")


def write_queries(classes: Sequence[Stretch], folder: Path) -> None:
    """Write `queries.csv`: a query for each class, named by its number; its members, surest first, are the examples."""
    rows = [
        (str(word.group), number, *member[1:5])
        for word in word_list(classes)
        for number, member in enumerate(word.members, 1)
    ]
    write_csv(table_of(rows, _QUERIES), _QUERIES, folder / "queries.csv")


def write_class_file(classes: Sequence[Stretch], folder: Path) -> None:
    """Write `classes.txt`, a class file of the ZeroSpeech challenges; a channel after the first is a document `NAME#CHANNEL`.

    The format has no blanks in names: they are `_` there, and `classes-names.csv` has such names and what they stand for.
    """
    documents = sorted({stretch.document for stretch in classes})
    names = [_BLANKS.sub("_", name) for name in documents]
    while len(set(names)) < len(names):  # of "a b" and "a_b"
        names = [name + "_" * names[:number].count(name) for number, name in enumerate(names)]
    fragments = fragments_of(classes, {name: number for number, name in enumerate(documents)})
    write_classes(fragments, names, folder / "classes.txt")
    renamed = [pair for pair in zip(names, documents, strict=True) if pair[0] != pair[1]]
    if renamed:
        write_csv(table_of(renamed, _NAMES), _NAMES, folder / "classes-names.csv")


def labelled(classes: Sequence[Stretch], parse: Sequence[Stretch]) -> Iterator[Labelled]:
    """Annotations: a stretch's text is the number of its class; of a token of no class it is `-`."""
    for tier, stretches in (("classes", classes), ("parse", parse)):
        for stretch in stretches:
            text = "-" if stretch.group is None else str(stretch.group)
            yield Labelled(*stretch[1:3], tier, *stretch[3:5], stretch.sure or 0.0, text)


#: Names in `report.exports`, and what they write.
KINDS = ("csv", *WRITERS)


def writers(
    kinds: Sequence[str], classes: Sequence[Stretch], parse: Sequence[Stretch], recordings: Recordings
) -> dict[str, Callable[[Path], None]]:
    """Functions that write the files, by name: those of `kinds`, the queries and the class file."""
    annotations, tables = list(labelled(classes, parse)), partial(write_tables, classes, parse)
    chosen = {
        kind: partial(write_tiers, kind, annotations, recordings) if kind in WRITERS else tables for kind in kinds
    }
    return {**chosen, "queries": partial(write_queries, classes), "zerospeech": partial(write_class_file, classes)}


class Exporting(NamedTuple):
    """The payload of the task."""

    store: tuple[str, str]
    classes: tuple[str, ...]
    parse: tuple[str, ...]
    kinds: tuple[str, ...]


class ExportClasses(Stage[Exporting]):
    """The stage that writes all exports, in one task."""

    name = "export-classes"
    version = 2
    unit = "members"
    phase = "score"
    takes = {"classes": "classes", "parse": "parse"}
    grows_with_hours = "larger"
    grows_with_queries = "same"
    tables = {"exports": Table(None, None, digested=False)}
    replaces = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Exporting]]:
        """One task."""
        store = inputs.chain_inputs(DiscoverInputs).store.state
        classes, parse = (files_of(inputs.parts(word)) for word in ("classes", "parse"))
        payload = Exporting(store, classes, parse, inputs.config.report.exports or ("csv",))
        rows = sum(part.rows for part in inputs.parts("classes"))
        yield inputs.task(*payload, label=", ".join(payload.kinds), work=rows, payload=payload)

    def finish(self, inputs: Inputs) -> None:
        """Remove the exports of other configs."""
        keep_exports(inputs)

    def run(self, task: Task[Exporting], context: Context) -> TaskOutput:
        """Write each format to a temporary folder, then publish its files."""
        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        classes, parse = (places(map(context.read, names), store) for names in (payload.classes, payload.parse))
        return write_exports(writers(payload.kinds, classes, parse, store.recordings), context.run)


SCHEMA = "swsdist-classes/2"

JSON, PAGE = "classes.json", "classes.html"
FILES = (JSON, PAGE)

#: Matches of two recordings at one lag that last so long (s) together are of the same sound: speech is not repeated so exactly.
_EXCERPT = 10.0


def publish_report(outcome: Outcome, chain_run: ChainRun, force: bool = False) -> ClassCounts | None:
    """Write classes.html, and last classes.json.

    Args:
        outcome: of the whole run.
        chain_run: that came to its last step, or stopped earlier by choice.
        force: write even if the present report is of the same classes.

    Returns:
        The counts; None if there are no classes yet, or the report is up to date.
    """
    run = chain_run.run
    if not _is_grouped(chain_run):
        return None
    digests = [part.sha256 for table in ("classes", "parse") for part in chain_run.table(table).parts]
    made_of = fingerprint("classes", SCHEMA, digests, chain_run.config.report.clips)
    if not force and run.exists(PAGE) and present_fingerprint(run, JSON) == made_of:
        return None
    classes, parse = (stretches(chain_run, table) for table in ("classes", "parse"))
    words, counts = word_list(classes), _counts(classes, parse)
    page = render_classes(words, counts, chain_run.config.report.clips, least_of(chain_run), chain_run.config.storage)
    run.write_bytes(PAGE, page.encode())
    values = {"schema": SCHEMA, "made_of": made_of, **asdict(counts), "words": [word.row() for word in words]}
    run.write_bytes(JSON, json.dumps(values, indent=1).encode())
    return counts


def _is_grouped(chain_run: ChainRun) -> bool:
    """Whether the classes are complete."""
    ended = chain_run.ended("classes")
    return ended is not None and not ended.failures


def stretches(chain_run: ChainRun, table: str) -> list[Stretch]:
    """The table `classes` or `parse` of a run."""
    inputs: DiscoverInputs = chain_run.chain.inputs
    return places(chain_run.read(table), inputs.store.open())


def words_of(chain_run: ChainRun) -> list[Word]:
    """The word list of a run; empty before its classes are there."""
    return word_list(stretches(chain_run, "classes")) if chain_run.ended("classes") is not None else []


def least_of(chain_run: ChainRun) -> float:
    """The least certainty of a match that makes a class."""
    inputs: DiscoverInputs = chain_run.chain.inputs
    return inputs.options.clustering.score


def _counts(classes: Sequence[Stretch], parse: Sequence[Stretch]) -> ClassCounts:
    of_classes = [token for token in parse if token.group is not None]
    return ClassCounts(
        classes=len({member.group for member in classes}),
        members=len(classes),
        speakers=len({member.speaker for member in classes} - {""}),
        documents=len({(member.doc_id, member.channel) for member in classes}),
        tokens=len(parse),
        class_tokens=len(of_classes),
        parsed_seconds=_seconds(parse),
        class_seconds=_seconds(of_classes),
    )


def _seconds(tokens: Sequence[Stretch]) -> float:
    return round(math.fsum(token.end - token.start for token in tokens), 6)


def summary(chain_run: ChainRun) -> list[str]:
    """The contents of the store; the counts of classes and parse, and where they are."""
    lines = reporting.summary(chain_run)
    if not _is_grouped(chain_run):
        return lines
    counts = _counts(*(stretches(chain_run, table) for table in ("classes", "parse")))
    part = 100 * counts.class_seconds / (counts.parsed_seconds or 1)
    share = f" ({part:.0f} % of the speech)" if counts.parsed_seconds else ""
    speakers = f" of {counted(counts.speakers, 'speaker')}" if counts.speakers else ""
    return [
        *lines,
        f"{counted(counts.classes, 'word candidate')}, {counted(counts.members, 'occurrence')} "
        f"in {counted(counts.documents, 'recording')}{speakers}{share}",
        f"page: {chain_run.run.path(PAGE)}; tables, class file and queries: {chain_run.run.path('exports')}",
    ]


def first_words(words: Sequence[Word], least: float) -> list[list[str]]:
    """The word list for a terminal: a heading, and rows of cells.

    Args:
        words: the first words of the list.
        least: the least certainty of a class.
    """
    cells = [
        [
            str(word.group),
            str(len(word.members)),
            str(word.speakers or "–"),
            short(word.seconds),
            alike(word.sure, least),
        ]
        for word in words
    ]
    return [["candidate", "occurrences", "speakers", "length (s)", "how alike"], *cells]


def notices(chain_run: ChainRun) -> list[str]:
    """Warnings: suspicious tables, most documents rejected, an odd store, omitted exports."""
    inputs: DiscoverInputs = chain_run.chain.inputs
    inputs.notices.force = True  # implausible inputs ended the run before, or were forced
    inputs.check_tables()
    left_out = Notices()
    if chain_run.ended("documents") is not None:
        for (name, channel), (other, its) in sorted(inputs.copies.items()):
            where = f"{document_name(name, channel)} of {document_name(other, its)}"
            left_out.add(
                families.LEFT_OUT.saying(
                    "{count} document{s} left out as copies: channels and recordings with the sound of another",
                    "what recurs in them is counted in that one",
                ),
                where=where,
                count=1,
            )
    if chain_run.ended("classes") is not None:
        for where in _excerpts(chain_run, inputs):
            left_out.add(codes.EXCERPT, where=where, count=1)
    noted = [*reporting.doubts(chain_run), inputs.notices, reporting.note_store(inputs), left_out]
    warnings = [str(notice) for some in noted for notice in some.entries.values()]
    return [*warnings, *(text for result in chain_run.results("exports", Exported) for text in result.warnings)]


def _excerpts(chain_run: ChainRun, inputs: DiscoverInputs) -> Iterator[str]:
    """Recordings with common sound, two by two."""
    documents = ["doc_id", "channel", "other_doc_id", "other_channel"]
    least = _EXCERPT / inputs.store.open().manifest.shift
    for table in chain_run.read("matches"):
        table = table.filter(pc.not_equal(table["doc_id"], table["other_doc_id"]))
        lag, length = pc.subtract(table["first"], table["other_first"]), pc.subtract(table["stop"], table["first"])
        table = table.append_column("lag", lag).append_column("length", length)
        sums = table.group_by([*documents, "lag"]).aggregate([("length", "sum")])
        common = sums.filter(pc.greater_equal(sums["length_sum"], least))
        pairs = common.group_by(documents).aggregate([]).sort_by([(name, "ascending") for name in documents])
        for first, channel, second, its in zip(*(pairs[name].to_pylist() for name in documents), strict=True):
            yield f"{document_name(first, channel)} and {document_name(second, its)}"


class Scoring(NamedTuple):
    """The payload of a task; speakers by document, none if one is unknown."""

    store: tuple[str, str]
    matches: tuple[str, ...]
    classes: tuple[str, ...]
    parse: tuple[str, ...]
    phones: str
    words: str | None
    speakers: dict[str, str]


class ScoreDiscovery(Stage[Scoring]):
    """Scores in the mode `seed`, as JSON; documents are the recordings' channels, as in the files of phones and words."""

    name = "score-discovery"
    version = 3
    unit = "fragments"
    phase = "score"
    takes = {"matches": "matches", "classes": "classes", "parse": "parse"}
    grows_with_queries = "same"
    tables = {"measures": Table(None, None)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Scoring]]:
        """One task, if there are phones."""
        chain_inputs, given = inputs.chain_inputs(DiscoverInputs), inputs.config.corpus.alignments
        if given is None or given.phones is None:
            return
        storage = inputs.config.storage
        documents = chain_inputs.store.open().documents(columns=["doc_id", "channel", "speaker", "recording"])
        speakers = {
            document_name(row["recording"] or row["doc_id"], row["channel"]): row["speaker"]
            for row in documents.to_pylist()
        }
        known = speakers if all(speakers.values()) else {}
        matches, classes, parse = (files_of(inputs.parts(word)) for word in ("matches", "classes", "parse"))
        payload = Scoring(chain_inputs.store.state, matches, classes, parse, given.phones, given.words, known)
        files = [identify(path, storage) for path in (given.phones, given.words) if path is not None]
        key_parts = matches, classes, parse, files, sorted(known.items())
        work = sum(part.rows for word in ("classes", "parse") for part in inputs.parts(word))
        yield inputs.task(*key_parts, label="all", work=work, payload=payload)

    def run(self, task: Task[Scoring], context: Context) -> TaskOutput:
        """Score."""
        payload, numbers = task.payload, dict[str, int]()
        store = Store.at(*payload.store, storage=context.storage)
        phones = read_units(payload.phones, numbers, context.storage)
        words = read_units(payload.words, numbers, context.storage) if payload.words else None
        sides, quality = _sides(payload.matches, store.manifest.shift, context)
        tokens = places(map(context.read, payload.parse), store)
        results: dict[Given, list[Stretch]] = {
            "pairs": places([sides], store),
            "classes": places(map(context.read, payload.classes), store),
            "parse": [token._replace(group=number) for number, token in enumerate(tokens)],
        }
        for stretch in (stretch for stretches in results.values() for stretch in stretches):
            numbers.setdefault(stretch.document, len(numbers))
        documents, order = by_name(numbers)
        corpus = Corpus(
            documents,
            by_time(numbered(phones, order)),
            words and by_time(numbered(words, order)),
            _talkers(documents, payload.speakers),
        )
        fragments = {given: numbered(fragments_of(some, numbers), order) for given, some in results.items()}
        result = scores(corpus, fragments)
        result["curve"] = curve(corpus, fragments["pairs"], np.array(quality, np.int64))
        data = json.dumps(result, indent=1, sort_keys=True).encode()
        return TaskOutput((context.write(task, "measures", data),), Bucket(len(results["classes"])))


def _sides(files: Sequence[str], shift: float, context: Context) -> tuple[pa.Table, list[int]]:
    """The sides of matches as MEMBERS of a class a match; and scores of matches, squared, a frame."""
    rows: list[dict[str, object]] = []
    quality: list[int] = []
    for row in (row for name in files for row in context.read(name).to_pylist()):
        for side in ("", "other_"):
            start, end = (row[f"{side}{edge}"] * shift for edge in ("first", "stop"))
            key = {"doc_id": row[f"{side}doc_id"], "channel": row[f"{side}channel"]}
            rows.append({"class": len(quality), **key, "start": start, "end": end})
        frames = min(row["stop"] - row["first"], row["other_stop"] - row["other_first"])
        quality.append(row["score"] ** 2 // frames)
    return pa.Table.from_pylist(rows, MEMBERS), quality


def _talkers(documents: Sequence[str], speakers: dict[str, str]) -> np.ndarray | None:
    """Number of each document's speaker, -1: not known; None: no speakers are."""
    number = {name: k for k, name in enumerate(sorted(set(speakers.values())))}
    return np.array([number.get(speakers.get(name, ""), -1) for name in documents], np.int64) if speakers else None


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: invalid options, or exports that are of detections only.
    """
    others = [kind for kind in config.report.exports or () if kind not in KINDS]
    if others:
        raise codes.NO_EXPORT_OF_CLASSES(where="report.exports", export=others[0], exports=", ".join(KINDS))
    inputs = DiscoverInputs(config, ledger)
    stages: tuple[Stage | Step, ...] = (
        *([FitTransforms()] if is_fitted(config.features) else []),
        Index(),
        CutSegments(),
        SearchSegments() if inputs.options.neighbours.by == "exact" else ProposePairs(),
        SelectPairs(),
        AlignPairs(),
        FindBoundaries(),
        GroupMatches(),
        ScoreDiscovery(),
        Step("export", ExportClasses()),
    )
    return Chain(
        *("discover", stages, inputs, publish_report, FILES, notices, rejected_rows, check, summary),
        barrier=barrier,
        counts=counts,
    )
