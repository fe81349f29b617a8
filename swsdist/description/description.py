"""A corpus described: documents, recordings, speakers, words, queries and their occurrences, as values.

Source: tables 1 to 6 of J. Tejedor et al., "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and 2014
evaluations", EURASIP Journal on Audio, Speech, and Music Processing 2016. Signal-to-noise ratios are those of
`swsdist.audio.noise`.

Whatever a corpus does not tell is None, and never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.noise import BINS, signal_to_noise
from swsdist.config import Config
from swsdist.core.codes import report as codes
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import ENDINGS, part_of, read_documents
from swsdist.corpora.kaldi import demand_permission
from swsdist.corpora.kinds import kind_of
from swsdist.corpora.places import Places
from swsdist.corpora.queries import read_queries
from swsdist.description.acoustics import Acoustics, measure_acoustics
from swsdist.description.query_statistics import Query, queries_of
from swsdist.io.nist.ctm import ctm_batches
from swsdist.io.notices import Notices
from swsdist.io.tables import names_in, read_table
from swsdist.stages.inputs.cross_corpus import corpus_of_queries, without_documents
from swsdist.stages.inputs.references import find_references

Key = tuple[str, int]

#: Columns of a table of documents that say what they are, by the words of NIST's ECF.
_KINDS = ("language", "source_type")


@dataclass(frozen=True)
class DocumentGroup:
    """Documents that belong together: a recording, a speaker, a part of the corpus, or all of it.

    Attributes:
        name: of the recording, the speaker, the part.
        part: of the corpus: train, development, test; empty if none is told, or they are of several.
        recordings, documents: how many; channels of one recording are documents of their own.
        seconds: of audio, of the documents whose recording can be used; None if there are none.
        speech: s of speech; None if nobody listened.
        snr: signal-to-noise ratio, dB; None if nobody listened, or nothing sounds.
        speakers: their names; None if not told of all documents.
        words: how many are said; None if nothing tells.
        vocabulary: how many different ones.
        unknown_words: said words that are not in the vocabulary of the part for training; None if there is no such part.
        language, source_type: all that the table of documents tells in columns of these names; empty if nothing.
    """

    name: str
    part: str
    recordings: int
    documents: int
    seconds: float | None
    speech: float | None
    snr: float | None
    speakers: tuple[str, ...] | None
    words: int | None
    vocabulary: int | None
    unknown_words: int | None
    language: str
    source_type: str


@dataclass(frozen=True)
class Description:
    """A corpus.

    Attributes:
        name: of its file.
        recordings: in the order of the documents.
        speakers: by name; none if no document tells its speaker.
        parts: those that the corpus tells of.
        total: all of it.
        queries: in their order; None if the corpus has none.
        occurs: whether it is told where queries occur.
        listened: whether the recordings were listened to.
        protocol: by which it is scored.
        notices: what is odd.
    """

    name: str
    recordings: tuple[DocumentGroup, ...]
    speakers: tuple[DocumentGroup, ...]
    parts: tuple[DocumentGroup, ...]
    total: DocumentGroup
    queries: tuple[Query, ...] | None
    occurs: bool
    listened: bool
    protocol: str
    notices: tuple[str, ...]


@dataclass(frozen=True)
class _Document:
    recording: str
    speaker: str | None
    part: str
    acoustics: Acoustics | None
    words: Counter[str] | None
    kind: Mapping[str, str | None]


def describe(
    config: Config,
    name: str,
    *,
    listen: bool = True,
    strict: bool = False,
    progress: Callable[[float, float], None] = lambda done, total: None,
) -> Description:
    """Read a corpus, and describe it.

    Args:
        config: whose corpus it is.
        name: what to call it.
        listen: to the recordings, for speech and noise; else their headers are read.
        strict: what is odd is an error.
        progress: told how many seconds have been heard, and of how many; 0 where the tables do not tell.

    Raises:
        UserError, DataError: a table is missing or wrong, as in a run.
    """
    corpus, storage, notices = config.corpus, config.storage, Notices(strict)
    table = read_documents(
        corpus.documents, storage, corpus.speakers, notices, corpus.prefer, corpus.audio, audio=listen
    )
    rows = table.to_pylist()
    if listen:
        demand_permission([row["path"] for row in rows], corpus.documents, storage)
    total, done = sum(_listed_duration(row) for row in rows), 0.0

    def told(seconds: float) -> None:
        nonlocal done
        done += seconds
        progress(done, total)

    heard = measure_acoustics(rows, listen, notices, storage, told)
    parts: dict[Key, str] = {}
    for part in ("train", "development", "test"):
        named = getattr(corpus.parts, part)
        if named is not None:
            chosen = part_of(table, named, storage).select(["doc_id", "channel"]).to_pylist()
            parts |= {(row["doc_id"], row["channel"]): part for row in chosen}
    places = Places(table)
    said = None
    if corpus.alignments.words is not None:
        said = _words(corpus.alignments.words, places, storage, notices)
    kinds = _kinds(corpus.documents, storage)
    documents = {
        (row["doc_id"], row["channel"]): _Document(
            row.get("recording", row["doc_id"]),
            row["speaker"] or None,
            parts.get((row["doc_id"], row["channel"]), ""),
            one,
            None if said is None else said[row["doc_id"], row["channel"]],
            kinds.get((row["doc_id"], row["channel"]), {}),
        )
        for row, one in zip(rows, heard, strict=True)
    }
    known = _vocabulary(documents.values())
    queries = None
    occurs = False
    if corpus.queries is not None:
        theirs = corpus_of_queries(config)
        of_queries = (
            table
            if theirs is None
            else read_documents(
                theirs.documents, storage, theirs.speakers, notices, theirs.prefer, theirs.audio, audio=listen
            )
        )
        examples = read_queries(corpus.queries, of_queries, "all", storage, notices, corpus.spoken, audio=listen)
        examples = examples if theirs is None else without_documents(examples, config)
        truth = find_references(config, table, examples, notices) if corpus.has_references else None
        occurs = truth is not None
        queries = queries_of(
            examples,
            truth.references if truth is not None else None,
            lambda row: _speaker_and_part(row, places, documents),
            known,
            notices,
            storage,
        )
    everything = list(documents.values())
    return Description(
        name,
        _grouped(everything, lambda one: one.recording, known),
        _grouped(everything, lambda one: one.speaker, known),
        tuple(one for one in _grouped(everything, lambda one: one.part or None, known)),
        _group("All", everything, known),
        queries,
        occurs,
        listen,
        str(corpus.protocol or config.score.protocol),
        tuple(map(str, notices.found.values())),
    )


def _kinds(source: str, storage: Mapping[str, object]) -> dict[Key, dict[str, str | None]]:
    """What a table of documents tells of each besides what runs read; nothing of what is no table."""
    if kind_of(source, "documents", ENDINGS, storage) != "table":
        return {}
    told = [name for name in _KINDS if name in names_in(source, storage)]
    key = [CORPUS.field(name) for name in ("doc_id", "channel")]
    table = read_table(source, pa.schema([*key, *(pa.field(name, pa.string()) for name in told)]), storage=storage)
    return {(row["doc_id"], row["channel"]): {name: row[name] for name in told} for row in table.to_pylist()}


def _listed_duration(row: Mapping[str, Any]) -> float:
    return float(row["end"] - row["start"] if "start" in row else row["duration"] or 0.0)


def _speaker_and_part(
    row: Mapping[str, Any], places: Places, documents: Mapping[Key, _Document]
) -> tuple[str | None, str]:
    """Speaker and part of the document that an occurrence is in; of none: not told."""
    found = places.containing(row["doc_id"], row["channel"], row["start"], row["end"])
    if not found:
        return None, ""
    one = documents[found[0].doc_id, row["channel"]]
    return one.speaker, one.part


def _words(path: str, places: Places, storage: Mapping[str, object], notices: Notices) -> dict[Key, Counter[str]]:
    """The words of each document; those of a recording belong to the document that their middle is in."""
    found: dict[Key, Counter[str]] = {key: Counter() for key in places.documents}
    strange: list[str] = []
    for batch in ctm_batches(path, storage):
        for word in batch.to_pylist():
            middle = word["start"] + word["duration"] / 2
            there = places.containing(word["doc_id"], word["channel"], middle, middle)
            if there:
                found[there[0].doc_id, word["channel"]][word["word"].lower()] += 1
            else:
                strange.append(f"{path}: {word['doc_id']}, {word['start']:g} s")
    if strange:
        notices.add(codes.UNPLACED_WORDS, where=strange[0], count=len(strange))
    return found


def _vocabulary(documents: Iterable[_Document]) -> frozenset[str] | None:
    """The words of the part for training, in lower case; None if there is no such part, or nothing tells what is said."""
    mine = [one.words for one in documents if one.part == "train" and one.words is not None]
    return frozenset().union(*mine) if mine else None


def _grouped(
    documents: Sequence[_Document], by: Callable[[_Document], str | None], known: frozenset[str] | None
) -> tuple[DocumentGroup, ...]:
    groups: dict[str, list[_Document]] = {}
    for one in documents:
        name = by(one)
        if name is not None:
            groups.setdefault(name, []).append(one)
    return tuple(_group(name, some, known) for name, some in groups.items())


def _mean_ratio(documents: Sequence[_Document]) -> float | None:
    """The mean of the recordings' ratios, by their lengths: a histogram of all would take differences of level for noise."""
    powers: dict[str, NDArray[np.int64]] = {}
    seconds: dict[str, float] = {}
    for one in documents:
        if one.acoustics is not None and one.acoustics.powers is not None:
            powers[one.recording] = powers.get(one.recording, np.zeros(BINS, np.int64)) + one.acoustics.powers
            seconds[one.recording] = seconds.get(one.recording, 0.0) + one.acoustics.seconds
    ratios = {name: signal_to_noise(counts) for name, counts in powers.items()}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    total = math.fsum(seconds[name] for name in known)
    return math.fsum(ratio * seconds[name] for name, ratio in known.items()) / total if total > 0 else None


def _group(name: str, documents: Sequence[_Document], known: frozenset[str] | None) -> DocumentGroup:
    heard = [document.acoustics for document in documents if document.acoustics is not None]
    listened = [one for one in heard if one.powers is not None]
    parts = {one.part for one in documents}
    told = all(one.speaker is not None for one in documents)
    words: Counter[str] | None = None
    if any(one.words is not None for one in documents):
        words = Counter()
        for one in documents:
            words.update(one.words or {})
    return DocumentGroup(
        name,
        parts.pop() if len(parts) == 1 else "",
        len({one.recording for one in documents}),
        len(documents),
        sum(one.seconds for one in heard) if heard else None,
        sum(one.speech or 0.0 for one in listened) if listened else None,
        _mean_ratio(documents),
        tuple(dict.fromkeys(str(one.speaker) for one in documents)) if told else None,
        None if words is None else words.total(),
        None if words is None else len(words),
        None if words is None or known is None else sum(n for word, n in words.items() if word not in known),
        *(", ".join(sorted({one.kind.get(name) or "" for one in documents} - {""})) for name in _KINDS),
    )
