"""The report of a discovery: a page with players, and its counts; and a summary for a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.discover.export_classes import places
from swsdist.chains.discover.group_matches import MEMBERS
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import files_of
from swsdist.chains.report import notices as of_search
from swsdist.core.codes import discovery as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.core.text import counted
from swsdist.discovery.evaluate import by_name, by_time, numbered
from swsdist.discovery.files import read_units
from swsdist.discovery.results import curve, scores
from swsdist.discovery.scene import Stretch, Word, alike, fragments_of, word_list
from swsdist.discovery.units import Corpus, Given, document_name
from swsdist.io.filesystem import Folder, identify
from swsdist.io.notices import Notices
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.chain_run import ChainRun, Outcome
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.report.answers import ClassCounts, render_classes
from swsdist.report.summary import short
from swsdist.stages.buckets import Bucket, Exported
from swsdist.store.reading import Store

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
    if not force and run.exists(PAGE) and _present_fingerprint(run) == made_of:
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


def _present_fingerprint(run: Folder) -> object:
    try:
        return json.loads(run.read_bytes(JSON))["made_of"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def stretches(chain_run: ChainRun, table: str) -> list[Stretch]:
    """The table `classes` or `parse` of a run."""
    inputs: DiscoverInputs = chain_run.chain.inputs
    return places(chain_run.read(table), inputs.store.open())


def words_of(chain_run: ChainRun) -> list[Word]:
    """The word list of a run; empty before its classes are there."""
    return word_list(stretches(chain_run, "classes")) if chain_run.ended("classes") is not None else []


def least_of(chain_run: ChainRun) -> float:
    """How sure a match is at least that makes a class."""
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
    lines = of_search.summary(chain_run)
    if not _is_grouped(chain_run):
        return lines
    counts = _counts(*(stretches(chain_run, table) for table in ("classes", "parse")))
    share = (
        f" ({100 * counts.class_seconds / counts.parsed_seconds:.0f} % of the speech)" if counts.parsed_seconds else ""
    )
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
        words: its first.
        least: of how sure a class is.
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
            left_out.add(codes.COPIES_LEFT_OUT, where=where, count=1)
    if chain_run.ended("classes") is not None:
        for where in _excerpts(chain_run, inputs):
            left_out.add(codes.EXCERPT, where=where, count=1)
    noted = [*of_search.doubts(chain_run), inputs.notices, of_search.note_store(inputs), left_out]
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
