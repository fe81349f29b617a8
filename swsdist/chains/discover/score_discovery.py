"""The stage score-discovery: what a run discovers, against phones and words, where the corpus has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.discovery.formats.units import read_units
from swsdist.discovery.reading import by_name, by_time, numbered
from swsdist.discovery.results import Stretch, curve, fragments_of, scores
from swsdist.discovery.units import Corpus, Given
from swsdist.io.filesystem import identify
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.task_results import Bucket


class Scoring(NamedTuple):
    """The payload of a task; speakers by document."""

    matches: tuple[str, ...]
    classes: str
    parse: str
    phones: str
    words: str | None
    speakers: dict[str, str]
    shift: float


class ScoreDiscovery(Stage[Scoring]):
    """Scores in the mode `seed`, as JSON."""

    name = "score-discovery"
    version = 1
    unit = "fragments"
    phase = "score"
    takes = {"matches": "matches", "classes": "classes", "parse": "parse"}
    with_queries = "same"
    tables = {"measures": Table(None, None)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Scoring]]:
        """One task, if there are phones."""
        chain_inputs, given = inputs.chain_inputs(DiscoverInputs), inputs.config.corpus.alignments
        if given is None or given.phones is None:
            return
        storage = inputs.config.storage
        documents = chain_inputs.store.open().documents(columns=["doc_id", "speaker"]).to_pylist()
        speakers = {row["doc_id"]: row["speaker"] for row in documents}
        known = speakers if all(speakers.values()) else {}
        (classes,), (parse,) = inputs.parts("classes"), inputs.parts("parse")
        matches = tuple(sorted(part.name for part in inputs.parts("matches")))
        shift = chain_inputs.store.open().manifest.shift
        payload = Scoring(matches, classes.name, parse.name, given.phones, given.words, known, shift)
        files = [identify(path, storage) for path in (given.phones, given.words) if path is not None]
        matters = sorted(part.sha256 for part in inputs.parts("matches")), classes.sha256, parse.sha256, files
        yield inputs.task(*matters, sorted(known.items()), label="all", work=classes.rows + parse.rows, payload=payload)

    def run(self, task: Task[Scoring], context: Context) -> TaskOutput:
        """Score."""
        payload, numbers = task.payload, dict[str, int]()
        phones = read_units(payload.phones, numbers, context.storage)
        words = read_units(payload.words, numbers, context.storage) if payload.words else None
        results: dict[Given, list[Stretch]] = {"pairs": [], "classes": [], "parse": []}
        quality: list[int] = []
        for name in payload.matches:
            for row in context.read(name).to_pylist():
                for side in ("", "other_"):
                    start, end = (row[f"{side}{edge}"] * payload.shift for edge in ("first", "stop"))
                    results["pairs"].append(Stretch(row[f"{side}doc_id"], start, end, len(quality)))
                frames = min(row["stop"] - row["first"], row["other_stop"] - row["other_first"])
                quality.append(row["score"] ** 2 // frames)
        results["classes"] = _members(context.read(payload.classes), alone=False)
        results["parse"] = _members(context.read(payload.parse), alone=True)
        for stretches in results.values():
            for item in stretches:
                numbers.setdefault(item.document, len(numbers))
        documents, order = by_name(numbers)
        speakers = {name: k for k, name in enumerate(sorted(set(payload.speakers.values())))}
        talker = [speakers.get(payload.speakers.get(name, ""), -1) for name in documents]
        corpus = Corpus(
            documents,
            by_time(numbered(phones, order)),
            words and by_time(numbered(words, order)),
            np.array(talker, np.int64) if payload.speakers else None,
        )
        fragments = {given: numbered(fragments_of(some, numbers), order) for given, some in results.items()}
        result = scores(corpus, fragments)
        result["curve"] = curve(corpus, fragments["pairs"], np.array(quality, np.int64))
        data = json.dumps(result, indent=1, sort_keys=True).encode()
        return TaskOutput((context.write(task, "measures", data),), Bucket(len(results["classes"])))


def _members(table: pa.Table, alone: bool) -> list[Stretch]:
    """Fragments of MEMBERS; `alone`: each a class of its own."""
    return [
        Stretch(row["doc_id"], row["start"], row["end"], k if alone else row["class"])
        for k, row in enumerate(table.to_pylist())
    ]
