"""A corpus described: documents, recordings, speakers, words, queries and their occurrences, as values.

Source: tables 1 to 6 of J. Tejedor et al., "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and 2014
evaluations", EURASIP Journal on Audio, Speech, and Music Processing 2016. Signal-to-noise ratios are those of
`swsdist.audio.speech`.

Unknown values are None, never 0.

Durations, speech and noise of a corpus' documents.

Recordings are read in blocks of a minute at their sample rate, in threads; an hour needs 2 MB of memory.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio import commands, places
from swsdist.audio.speech import Listener
from swsdist.audio.reader import probe, read_blocks
from swsdist.audio.speech import BINS, HOP, WINDOW, Counts, Meter, signal_to_noise
from swsdist.config import Config
from swsdist.core.codes import discovery as codes
from swsdist.core.errors import AudioError
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import ENDINGS, part_of
from swsdist.corpora.kaldi import demand_permission
from swsdist.corpora.kinds import kind_of
from swsdist.corpora.places import Places
from swsdist.corpora.queries import read_queries
from swsdist.io.nist.ctm import ctm_batches
from swsdist.io.notices import Notices
from swsdist.io.tables import names_in, read_table
from swsdist.stages.inputs.corpus import documents_of, find_references
from swsdist.stages.inputs.corpus import corpus_of_queries, without_documents

SpeakerLookup = Callable[[Mapping[str, Any]], tuple[str | None, str]]


class Occurrences(NamedTuple):
    """The occurrences of a query in a part of a corpus, or in all of it.

    Attributes:
        number: of occurrences.
        mean_seconds: their mean length, s; None without occurrences.
        same_speaker: number by a speaker of the query's examples; None if speakers are unknown.
    """

    number: int
    mean_seconds: float | None
    same_speaker: int | None


@dataclass(frozen=True)
class Query:
    """A query; times in s.

    Attributes:
        query_id: its id.
        term: its text; None if unknown.
        examples: number of spoken examples.
        seconds: mean length of its readable examples; None without any.
        occurrences: in the whole corpus; None if unknown.
        by_part: the same by part of the corpus.
        unknown: whether any of its words is not in the training part; None without such a part.
    """

    query_id: str
    term: str | None
    examples: int
    seconds: float | None
    occurrences: Occurrences | None
    by_part: Mapping[str, Occurrences]
    unknown: bool | None


def queries_of(
    examples: pa.Table,
    references: pa.Table | None,
    speaker_of: SpeakerLookup,
    vocabulary: frozenset[str] | None,
    notices: Notices,
    storage: Mapping[str, object] | None = None,
) -> tuple[Query, ...]:
    """The queries of a corpus, in their order.

    Args:
        examples: QUERIES, all examples.
        references: REFERENCES; None if unknown.
        speaker_of: gives speaker and part of the document of a row of REFERENCES; None and empty if unknown.
        vocabulary: of the training part, in lower case; None without one.
        notices: receives unusable examples.
        storage: options for s3fs.
    """
    rows = examples.to_pylist()
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        lengths = list(pool.map(lambda row: _length(row, storage), rows))
    by_query: dict[str, list[tuple[Mapping[str, Any], float | None]]] = {}
    for row, length in zip(rows, lengths, strict=True):
        if isinstance(length, AudioError):
            notices.add(
                codes.UNUSABLE_EXAMPLE, where=f"{row['query_id']}, example {row['example']}: {length.message}", count=1
            )
        by_query.setdefault(row["query_id"], []).append((row, None if isinstance(length, AudioError) else length))
    true: dict[str, list[Mapping[str, Any]]] = {}
    for row in references.to_pylist() if references is not None else ():
        true.setdefault(row["query_id"], []).append(row)
    return tuple(
        _query(query_id, rows, None if references is None else true.get(query_id, []), speaker_of, vocabulary)
        for query_id, rows in by_query.items()
    )


def _query(
    query_id: str,
    rows: list[tuple[Mapping[str, Any], float | None]],
    true: list[Mapping[str, Any]] | None,
    speaker_of: SpeakerLookup,
    vocabulary: frozenset[str] | None,
) -> Query:
    term = " | ".join(dict.fromkeys(row["term"] for row, _ in rows if row["term"])) or None
    lengths = [length for _, length in rows if length is not None]
    speakers = {row["speaker"] for row, _ in rows if row["speaker"]}
    results = [(row, *speaker_of(row)) for row in true or ()]
    has_speakers = bool(speakers) and all(speaker is not None for _, speaker, _ in results)

    def summary(of: list[tuple[Mapping[str, Any], str | None, str]]) -> Occurrences:
        lengths = [row["end"] - row["start"] for row, _, _ in of]
        return Occurrences(
            len(of),
            sum(lengths) / len(of) if of else None,
            sum(speaker in speakers for _, speaker, _ in of) if has_speakers else None,
        )

    parts = dict.fromkeys(part for _, _, part in results if part)
    return Query(
        query_id,
        term,
        sum(row["path"] is not None for row, _ in rows),
        sum(lengths) / len(lengths) if lengths else None,
        None if true is None else summary(results),
        {part: summary([item for item in results if item[2] == part]) for part in parts},
        None if vocabulary is None or not term else any(word not in vocabulary for word in term.lower().split()),
    )


def _length(row: Mapping[str, Any], storage: Mapping[str, object] | None) -> float | AudioError | None:
    """Seconds of an example; None for text and for commands that are not allowed."""
    if row["start"] is not None and row["end"] is not None:
        return float(row["end"] - row["start"])
    if not row["path"] or (commands.is_command(row["path"]) and not commands.are_permitted()):
        return None
    try:
        length = probe(row["path"], storage).duration
    except AudioError as error:
        return error
    return float((row["end"] or length) - (row["start"] or 0.0))


#: More threads would wait for each other.
_THREADS = 8


@dataclass(frozen=True, eq=False)
class Acoustics:
    """Acoustics of a document; times in s.

    Attributes:
        seconds: its duration.
        speech: seconds of speech, by `swsdist.audio.speech`; None: not measured.
        powers: histogram of window powers (`swsdist.audio.speech`); None: not measured.
    """

    seconds: float
    speech: float | None = None
    powers: Counts | None = None


def measure_acoustics(
    documents: Sequence[Mapping[str, Any]],
    listen: bool,
    notices: Notices,
    storage: Mapping[str, object] | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> list[Acoustics | None]:
    """Measure the acoustics of each document; None without a usable recording, with a notice.

    Args:
        documents: rows of CORPUS or PLACED.
        listen: measure; else only durations, of the table, the segment, or the header.
        notices: receives unusable recordings.
        storage: options for s3fs.
        progress: receives seconds done since its last call; one thread at a time.
    """
    lock = Lock()

    def report_progress(seconds: float) -> None:
        with lock:
            progress(seconds)

    def measure(row: Mapping[str, Any]) -> Acoustics | AudioError | None:
        try:
            return _acoustics_of(row, storage, report_progress) if listen else _duration_of(row, storage)
        except AudioError as error:
            return error

    def together(rows: list[int]) -> list[Acoustics | AudioError | None]:
        with places.caching():  # places in a recording that ffmpeg decodes are decoded once
            return [measure(documents[row]) for row in rows]

    by_recording: dict[str, list[int]] = {}
    for k, row in enumerate(documents):
        by_recording.setdefault(row["path"] or f"none {k}", []).append(k)
    acoustics_by_row: dict[int, Acoustics | AudioError | None] = {}
    pool = ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1))
    try:
        for rows, result in zip(by_recording.values(), pool.map(together, by_recording.values()), strict=True):
            acoustics_by_row |= zip(rows, result, strict=True)
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupt does not wait for the rest
    return [_usable(row, acoustics_by_row[k], notices) for k, row in enumerate(documents)]


def _usable(row: Mapping[str, Any], result: Acoustics | AudioError | None, notices: Notices) -> Acoustics | None:
    if not isinstance(result, AudioError):
        return result
    notices.add(codes.UNUSABLE_RECORDING, where=f"{result.where or row['path']}: {result.message}", count=1)
    return None


def _duration_of(row: Mapping[str, Any], storage: Mapping[str, object] | None) -> Acoustics | None:
    if "start" in row:
        return Acoustics(row["end"] - row["start"])
    if row["duration"] is not None:
        return Acoustics(row["duration"])
    if not row["path"] or commands.is_command(row["path"]):
        return None
    return Acoustics(probe(row["path"], storage).duration)


def _acoustics_of(
    row: Mapping[str, Any], storage: Mapping[str, object] | None, progress: Callable[[float], None]
) -> Acoustics | None:
    if not row["path"]:
        return _duration_of(row, storage)
    rate = probe(row["path"], storage).rate
    listener, meter, samples = Listener(rate), Meter(rate), 0
    place = {"start": row["start"], "end": row["end"]} if "start" in row else {}
    for block in read_blocks(row["path"], channel=row["channel"], rate=rate, storage=storage, **place):
        listener.add(block)
        meter.add(block)
        samples += len(block)
        progress(len(block) / rate)
    hop = max(1, round(HOP * rate))
    marks = listener.marks(samples // hop, hop, round(WINDOW * rate))
    seconds = samples / rate
    return Acoustics(seconds, min(seconds, float(marks.sum()) * hop / rate), meter.counts)


Key = tuple[str, int]

#: Columns of a table of documents with attributes of NIST's ECF.
_KINDS = ("language", "source_type")


@dataclass(frozen=True)
class DocumentGroup:
    """A group of documents: of a recording, a speaker, a part of the corpus, or all.

    Attributes:
        name: of the recording, the speaker, the part.
        part: of the corpus: train, development, test; empty if unknown, or several.
        recordings, documents: their numbers; each channel of a recording is a document.
        seconds: of audio in usable documents; None if there are none.
        speech: s of speech; None if not measured.
        snr: signal-to-noise ratio, dB; None if not measured, or silent.
        speakers: their names; None if unknown for any document.
        words: number of spoken words; None if unknown.
        vocabulary: number of different words.
        unknown_words: spoken words outside of the training part's vocabulary; None without a training part.
        language, source_type: all values of these columns of the table of documents; empty if none.
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
    """The description of a corpus.

    Attributes:
        name: of its file.
        recordings: in the order of the documents.
        speakers: by name; empty if unknown.
        parts: of the corpus.
        total: the whole corpus.
        queries: in their order; None if the corpus has none.
        occurs: whether occurrences of queries are known.
        listened: whether the recordings were listened to.
        protocol: of its scoring.
        notices: warnings.
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
        config: with the corpus.
        name: of the corpus.
        listen: measure speech and noise of the recordings; else read only headers.
        strict: warnings are errors.
        progress: receives seconds done, and in total; 0 if unknown.

    Raises:
        UserError, DataError: a table is missing or invalid.
    """
    corpus, storage, notices = config.corpus, config.storage, Notices(strict)
    table = documents_of(corpus, storage, notices, listen)
    rows = table.to_pylist()
    if listen:
        demand_permission([row["path"] for row in rows], corpus.documents, storage)
    total, done = sum(_listed_duration(row) for row in rows), 0.0

    def report_progress(seconds: float) -> None:
        nonlocal done
        done += seconds
        progress(done, total)

    measured = measure_acoustics(rows, listen, notices, storage, report_progress)
    parts: dict[Key, str] = {}
    for part in ("train", "development", "test"):
        named = getattr(corpus.parts, part)
        if named is not None:
            chosen = part_of(table, named, storage).select(["doc_id", "channel"]).to_pylist()
            parts |= {(row["doc_id"], row["channel"]): part for row in chosen}
    places = Places(table)
    words = None
    if corpus.alignments.words is not None:
        words = _words(corpus.alignments.words, places, storage, notices)
    kinds = _kinds(corpus.documents, storage)
    documents = {
        (row["doc_id"], row["channel"]): _Document(
            row.get("recording", row["doc_id"]),
            row["speaker"] or None,
            parts.get((row["doc_id"], row["channel"]), ""),
            item,
            None if words is None else words[row["doc_id"], row["channel"]],
            kinds.get((row["doc_id"], row["channel"]), {}),
        )
        for row, item in zip(rows, measured, strict=True)
    }
    vocabulary = _vocabulary(documents.values())
    queries = None
    occurs = False
    if corpus.queries is not None:
        source = corpus_of_queries(config)
        of_queries = table if source is None else documents_of(source, storage, notices, listen)
        examples = read_queries(corpus.queries, of_queries, "all", storage, notices, corpus.spoken, audio=listen)
        examples = examples if source is None else without_documents(examples, config)
        truth = find_references(config, table, examples, notices) if corpus.has_references else None
        occurs = truth is not None
        queries = queries_of(
            examples,
            truth.references if truth is not None else None,
            lambda row: _speaker_and_part(row, places, documents),
            vocabulary,
            notices,
            storage,
        )
    everything = list(documents.values())
    return Description(
        name,
        _grouped(everything, lambda item: item.recording, vocabulary),
        _grouped(everything, lambda item: item.speaker, vocabulary),
        tuple(item for item in _grouped(everything, lambda item: item.part or None, vocabulary)),
        _group("All", everything, vocabulary),
        queries,
        occurs,
        listen,
        str(corpus.protocol or config.score.protocol),
        tuple(map(str, notices.entries.values())),
    )


def _kinds(source: str, storage: Mapping[str, object]) -> dict[Key, dict[str, str | None]]:
    """Attributes of documents in a table, which runs do not read; empty if the documents are not a table."""
    if kind_of(source, "documents", ENDINGS, storage) != "table":
        return {}
    columns = [name for name in _KINDS if name in names_in(source, storage)]
    key = [CORPUS.field(name) for name in ("doc_id", "channel")]
    table = read_table(source, pa.schema([*key, *(pa.field(name, pa.string()) for name in columns)]), storage=storage)
    return {(row["doc_id"], row["channel"]): {name: row[name] for name in columns} for row in table.to_pylist()}


def _listed_duration(row: Mapping[str, Any]) -> float:
    return float(row["end"] - row["start"] if "start" in row else row["duration"] or 0.0)


def _speaker_and_part(
    row: Mapping[str, Any], places: Places, documents: Mapping[Key, _Document]
) -> tuple[str | None, str]:
    """Speaker and part of the document with an occurrence; None and empty if unknown."""
    results = places.containing(row["doc_id"], row["channel"], row["start"], row["end"])
    if not results:
        return None, ""
    document = documents[results[0].doc_id, row["channel"]]
    return document.speaker, document.part


def _words(path: str, places: Places, storage: Mapping[str, object], notices: Notices) -> dict[Key, Counter[str]]:
    """The words of each document; a word belongs to the document that contains its mid-point."""
    results: dict[Key, Counter[str]] = {key: Counter() for key in places.documents}
    strange: list[str] = []
    for batch in ctm_batches(path, storage):
        for word in batch.to_pylist():
            middle = word["start"] + word["duration"] / 2
            documents_there = places.containing(word["doc_id"], word["channel"], middle, middle)
            if documents_there:
                results[documents_there[0].doc_id, word["channel"]][word["word"].lower()] += 1
            else:
                strange.append(f"{path}: {word['doc_id']}, {word['start']:g} s")
    if strange:
        notices.add(codes.UNPLACED_WORDS, where=strange[0], count=len(strange))
    return results


def _vocabulary(documents: Iterable[_Document]) -> frozenset[str] | None:
    """The vocabulary of the training part, in lower case; None if unknown."""
    training_words = [
        document.words for document in documents if document.part == "train" and document.words is not None
    ]
    return frozenset().union(*training_words) if training_words else None


def _grouped(
    documents: Sequence[_Document], by: Callable[[_Document], str | None], vocabulary: frozenset[str] | None
) -> tuple[DocumentGroup, ...]:
    groups: dict[str, list[_Document]] = {}
    for document in documents:
        name = by(document)
        if name is not None:
            groups.setdefault(name, []).append(document)
    return tuple(_group(name, some, vocabulary) for name, some in groups.items())


def _mean_ratio(documents: Sequence[_Document]) -> float | None:
    """The mean of the recordings' ratios, weighted by length; a joint histogram would count level differences as noise."""
    powers: dict[str, NDArray[np.int64]] = {}
    seconds: dict[str, float] = {}
    for document in documents:
        if document.acoustics is not None and document.acoustics.powers is not None:
            powers[document.recording] = (
                powers.get(document.recording, np.zeros(BINS, np.int64)) + document.acoustics.powers
            )
            seconds[document.recording] = seconds.get(document.recording, 0.0) + document.acoustics.seconds
    ratios = {name: signal_to_noise(counts) for name, counts in powers.items()}
    vocabulary = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    total = math.fsum(seconds[name] for name in vocabulary)
    return math.fsum(ratio * seconds[name] for name, ratio in vocabulary.items()) / total if total > 0 else None


def _group(name: str, documents: Sequence[_Document], vocabulary: frozenset[str] | None) -> DocumentGroup:
    measured = [document.acoustics for document in documents if document.acoustics is not None]
    listened = [item for item in measured if item.powers is not None]
    parts = {document.part for document in documents}
    all_known = all(document.speaker is not None for document in documents)
    words: Counter[str] | None = None
    if any(document.words is not None for document in documents):
        words = Counter()
        for entry in documents:
            words.update(entry.words or {})
    return DocumentGroup(
        name,
        parts.pop() if len(parts) == 1 else "",
        len({document.recording for document in documents}),
        len(documents),
        sum(item.seconds for item in measured) if measured else None,
        sum(item.speech or 0.0 for item in listened) if listened else None,
        _mean_ratio(documents),
        tuple(dict.fromkeys(str(document.speaker) for document in documents)) if all_known else None,
        None if words is None else words.total(),
        None if words is None else len(words),
        None if words is None or vocabulary is None else sum(n for word, n in words.items() if word not in vocabulary),
        *(", ".join(sorted({document.kind.get(name) or "" for document in documents} - {""})) for name in _KINDS),
    )
