"""The stage score-discovery: what a run discovers, against phones and words, where the corpus has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.chains.discover.export_classes import places
from swsdist.chains.discover.group_matches import MEMBERS
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import files_of
from swsdist.discovery.formats.units import read_units
from swsdist.discovery.reading import by_name, by_time, numbered
from swsdist.discovery.results import curve, scores
from swsdist.discovery.scene import Stretch, fragments_of
from swsdist.discovery.units import Corpus, Given, document_name
from swsdist.io.filesystem import identify
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import Bucket
from swsdist.store.reading import Store


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
