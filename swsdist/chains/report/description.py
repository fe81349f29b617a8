"""Description of a corpus as values and tables: documents, recordings, speakers, words, queries and their occurrences.

Unknown values are None, never 0; columns without any value are omitted. Recordings are read in blocks of a minute at
their sample rate, in threads; an hour needs 2 MB of memory. Signal-to-noise ratios are those of `swsdist.audio.speech`.

Source: tables 1 (recordings), 2 to 5 (queries) and 6 (all) of J. Tejedor et al., "Comparison of ALBAYZIN
query-by-example spoken term detection 2012 and 2014 evaluations", EURASIP Journal on Audio, Speech, and Music
Processing 2016.
"""

from __future__ import annotations

import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio import streams
from swsdist.audio.formats import ffmpeg as places
from swsdist.audio.reader import probe, read_blocks
from swsdist.audio.speech import BINS, HOP, WINDOW, Counts, Listener, Meter, signal_to_noise
from swsdist.config import Config
from swsdist.core.arrays import Ints
from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.errors import AudioError
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import ENDINGS, kind_of, part_of
from swsdist.corpora.kaldi import demand_permission
from swsdist.corpora.places import Places
from swsdist.corpora.queries import read_queries
from swsdist.io.nist.ctm import ctm_batches
from swsdist.io.notices import Notices
from swsdist.io.tables import names_in, read_table
from swsdist.report.summary import NOTHING, fixed, integer, short
from swsdist.report.tables import Table
from swsdist.stages.inputs.corpus import corpus_of_queries, documents_of, find_references, without_documents

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
                families.UNUSABLE_INPUT.saying(
                    "{count} unusable query example{s}; a run rejects them", "correct or remove them"
                ),
                where=f"{row['query_id']}, example {row['example']}: {length.message}",
                count=1,
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
    if not row["path"] or (streams.is_command(row["path"]) and not streams.are_permitted()):
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
    notices.add(
        families.UNUSABLE_INPUT.saying("{count} unusable recording{s}; a run rejects them", "correct or remove them"),
        where=f"{result.where or row['path']}: {result.message}",
        count=1,
    )
    return None


def _duration_of(row: Mapping[str, Any], storage: Mapping[str, object] | None) -> Acoustics | None:
    if "start" in row:
        return Acoustics(row["end"] - row["start"])
    if row["duration"] is not None:
        return Acoustics(row["duration"])
    if not row["path"] or streams.is_command(row["path"]):
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
        _grouped(everything, lambda item: item.part or None, vocabulary),
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
    powers: dict[str, Ints] = {}
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


#: Queries per row, as in tables 2 to 5.
_BESIDE = 3
#: Most recordings to print.
_MOST = 30

_SNR = "SNR: peak speech to mean noise, as of NIST's stnr."

#: Cells of a group, by heading.
_CELLS: dict[str, Callable[[DocumentGroup], str]] = {
    "language": lambda item: item.language,
    "type of speech": lambda item: item.source_type,
    "part": lambda item: item.part,
    "documents": lambda item: str(item.documents),
    "recordings": lambda item: str(item.recordings),
    "h": lambda item: _time(item.seconds, 3600, 3),
    "h of speech": lambda item: _time(item.speech, 3600, 3),
    "min": lambda item: _time(item.seconds, 60, 2),
    "min of speech": lambda item: _time(item.speech, 60, 2),
    "SNR (dB)": lambda item: fixed(item.snr, 1),
    "speakers": lambda item: integer(None if item.speakers is None else len(item.speakers)),
    "word occ.": lambda item: integer(item.words),
    "words": lambda item: integer(item.vocabulary),
    "unknown word occ.": lambda item: integer(item.unknown_words),
}


def tables_of(*described: Description) -> list[Table]:
    """All tables of a corpus: corpus, recordings, speakers, queries, lengths; without empty ones.

    For several corpora: one table of all, then those of each, with its name in captions.
    """
    if len(described) == 1:
        return _tables(described[0])
    entry = [
        replace(table, caption=f"{item.name}: {table.caption}") for item in described for table in _tables(item)[1:]
    ]
    return [corpora_table(described), *(corpus_table(item) for item in described if item.parts), *entry]


def _tables(description: Description) -> list[Table]:
    tables = [corpus_table(description), recordings_table(description)]
    if description.speakers:
        tables.append(speakers_table(description))
    if description.queries is not None:
        tables += [*query_tables(description), lengths_table(description.queries)]
    return tables


def text_tables(*described: Description) -> list[Table]:
    """All tables for a terminal: without long tables of recordings, and for several corpora only the joint tables."""
    if len(described) > 1:
        return [corpora_table(described), *(corpus_table(item) for item in described if item.parts)]
    tables = _tables(described[0])
    if len(described[0].recordings) > _MOST:
        tables.pop(1)
    return tables


def corpora_table(described: Sequence[Description]) -> Table:
    """One row per corpus (table 6)."""
    wholes = [item.total for item in described]
    counts = [_counts(item, item.total) for item in described]
    columns = [
        ("corpus", [item.name for item in described]),
        ("metric", [item.protocol for item in described]),
        *_columns(
            wholes, "language", "type of speech", "recordings", "h", "h of speech", "SNR (dB)", "speakers", "word occ."
        ),
        ("queries", [_by_part(item, 0) for item in described]),
        ("query occ.", [_by_part(item, 1) for item in described]),
    ]
    parts = list(dict.fromkeys(part.name for item in described if _has_parts(item) for part in item.parts))
    notes = [f"Queries and occurrences: {'/'.join(parts)}, where a corpus has parts."] if parts else []
    notes += [_SNR] if any(item.listened for item in described) else []
    plain = [
        {"corpus": item.name, "protocol": item.protocol, **_counted(group, count)}
        for item, group, count in zip(described, wholes, counts, strict=True)
    ]
    return _table("Corpora", columns, " ".join(notes), plain)


def _by_part(description: Description, which: int) -> str:
    """A count of queries, by part if the corpus has parts."""
    if not _has_parts(description):
        return integer(_counts(description, description.total)[which])
    return "/".join(integer(_counts(description, part)[which]) for part in description.parts)


def _has_parts(description: Description) -> bool:
    return bool(description.parts) and description.queries is not None and description.occurs


def corpus_table(description: Description) -> Table:
    """Sizes and occurrences of queries of the parts and the whole corpus (table 6)."""
    groups = [*description.parts, description.total] if description.parts else [description.total]
    counts = [_counts(description, group) for group in groups]
    columns = [
        ("", [group.name for group in groups]),
        *_columns(groups, "language", "type of speech", "documents", "recordings", "h", "h of speech", "SNR (dB)"),
        *_columns(groups, "speakers", "word occ.", "words", "unknown word occ."),
        ("queries", [integer(queries) for queries, _, _ in counts]),
        ("query occ.", [integer(occurrences) for _, occurrences, _ in counts]),
        ("unknown queries", [integer(unknown) for _, _, unknown in counts]),
    ]
    notes = [f"Protocol {description.protocol}."]
    if _has_parts(description):
        notes.append("Queries of a part are those that occur in it.")
    if description.listened:
        notes.append(_SNR)
    if description.total.unknown_words is not None:
        notes.append("Unknown: not said in the part for training.")
    elif description.total.words is not None:
        notes.append("There is no part for training, so no vocabulary that words could be unknown to.")
    plain = [_counted(group, count) for group, count in zip(groups, counts, strict=True)]
    return _table(f"Corpus {description.name}", columns, " ".join(notes), plain)


def recordings_table(description: Description) -> Table:
    """One row per recording, then the parts and the whole corpus (table 1)."""
    groups = [*description.recordings, *description.parts, description.total]
    names = [
        *(recording.name for recording in description.recordings),
        *[description.total.name] * (len(description.parts) + 1),
    ]
    columns = [
        ("recording", names),
        *_columns(groups, "part", "word occ.", "min", "min of speech", "speakers", "SNR (dB)"),
    ]
    plain = [_plain(group) for group in description.recordings]
    return _table("Recordings", columns, _SNR if description.listened else "", plain)


def speakers_table(description: Description) -> Table:
    """One row per speaker."""
    groups = description.speakers
    columns = [
        ("speaker", [group.name for group in groups]),
        *_columns(groups, "part", "recordings", "word occ.", "min", "min of speech", "SNR (dB)"),
    ]
    note = _SNR if description.listened else ""
    return _table("Speakers", columns, note, [_plain(group) for group in groups])


def query_tables(description: Description) -> list[Table]:
    """Queries with lengths and occurrences, three per row (tables 2 to 5); one table per part of the corpus.

    Occurrences are those in the table's part, or in the whole corpus without parts.
    """
    queries = description.queries or ()
    if not (description.parts and description.occurs):
        return [_queries("Queries", queries, [query.occurrences for query in queries], "in the whole corpus")]
    tables = []
    for part in description.parts:
        selected = [query for query in queries if query.by_part.get(part.name)]
        occurrences = [query.by_part[part.name] for query in selected]
        tables.append(_queries(f"Queries, {part.name}", selected, occurrences, f"in the part {part.name}"))
    if silent := [query for query in queries if not query.by_part]:
        rest = [query.occurrences for query in silent]
        tables.append(_queries("Queries that occur in no part", silent, rest, "in the whole corpus"))
    return tables


def _queries(caption: str, queries: Sequence[Query], occurring: Sequence[Occurrences | None], where: str) -> Table:
    cells = [
        f"{query.term or query.query_id} ({fixed(None if query.seconds is None else 1000 * query.seconds, 0)})"
        + ("" if occurrences is None else f"–({occurrences.number})")
        for query, occurrences in zip(queries, occurring, strict=True)
    ]
    height = -(-len(cells) // _BESIDE)
    rows = [[cells[k] if k < len(cells) else "" for k in range(row, _BESIDE * height, height)] for row in range(height)]
    has_occurrences = any(occurrences is not None for occurrences in occurring)
    head = "query (ms)–(occ.)" if has_occurrences else "query (ms)"
    plain: list[dict[str, object]] = [
        {
            "query_id": query.query_id,
            "term": query.term,
            "examples": query.examples,
            "seconds": query.seconds,
            "occurrences": None if occurrences is None else occurrences.number,
            "spoken": None if occurrences is None else occurrences.mean_seconds,
            "own_speaker": None if occurrences is None else occurrences.same_speaker,
            "unknown": query.unknown,
            **{f"occurrences_{part}": item.number for part, item in query.by_part.items()},
        }
        for query, occurrences in zip(queries, occurring, strict=True)
    ]
    names = list(dict.fromkeys(name for row in plain for name in row))
    plain = [{name: row.get(name, 0) for name in names} for row in plain]
    note = "ms: mean length of a query's examples." + (f" occ.: occurrences {where}." if has_occurrences else "")
    return Table(caption, [head] * _BESIDE, rows, note, texts=range(_BESIDE), plain=plain)


def lengths_table(queries: Sequence[Query]) -> Table:
    """Distributions of queries and their occurrences in the whole corpus: least, median, mean, greatest."""
    occurrences = [query.occurrences for query in queries if query.occurrences is not None]
    spread: list[tuple[str, list[float], int]] = [
        ("examples of a query", [query.examples for query in queries], 1),
        ("length of a query (ms)", [1000 * query.seconds for query in queries if query.seconds is not None], 0),
        ("occurrences of a query", [item.number for item in occurrences], 1),
        (
            "length of its occurrences (ms)",
            [1000 * item.mean_seconds for item in occurrences if item.mean_seconds is not None],
            0,
        ),
        (
            "of these by its own speaker",
            [item.same_speaker for item in occurrences if item.same_speaker is not None],
            1,
        ),
        ("letters of a query", [len("".join(query.term.split())) for query in queries if query.term], 1),
        ("words of a query", [len(query.term.split()) for query in queries if query.term], 1),
    ]
    rows, plain = [], []
    for name, values, digits in spread:
        if not values:
            continue
        median, mean = statistics.median(values), statistics.fmean(values)
        shown = [short(min(values), 6), fixed(median, digits), fixed(mean, digits), short(max(values), 6)]
        if digits == 0:
            shown[0], shown[3] = fixed(min(values), 0), fixed(max(values), 0)
        rows.append([name, str(len(values)), *shown, "" if digits == 0 else short(sum(values), 6)])
        plain.append(
            {
                "what": name,
                "queries": len(values),
                "least": min(values),
                "median": median,
                "mean": mean,
                "greatest": max(values),
                "sum": sum(values),
            }
        )
    columns = ["", "queries", "least", "median", "mean", "greatest", "sum"]
    note = "Occurrences in the whole corpus." if occurrences else ""
    return Table("Lengths and occurrences", columns, rows, note, plain=plain)


def _counts(description: Description, group: DocumentGroup) -> tuple[int | None, int | None, int | None]:
    """Numbers of queries that occur in a part (for the whole: all), of their occurrences, and of queries with unknown words."""
    if description.queries is None:
        return None, None, None
    selected = description.queries
    if not description.occurs and group is not description.total:
        return None, None, None
    occurrences = None
    if group is not description.total:
        selected = tuple(item for item in selected if item.by_part.get(group.name))
        occurrences = sum(item.by_part[group.name].number for item in selected)
    elif description.occurs:
        occurrences = sum(item.occurrences.number for item in selected if item.occurrences is not None)
    unknown = [item.unknown for item in selected if item.unknown is not None]
    return len(selected), occurrences, sum(unknown) if unknown else None


def _columns(groups: Sequence[DocumentGroup], *headings: str) -> list[tuple[str, list[str]]]:
    """Headings of `_CELLS`, and below each a cell a group."""
    return [(heading, [_CELLS[heading](group) for group in groups]) for heading in headings]


def _table(
    caption: str, columns: Sequence[tuple[str, Sequence[str]]], note: str, plain: Sequence[dict[str, object]]
) -> Table:
    """A table without empty columns."""
    kept = [(title, cells) for title, cells in columns if any(cell not in ("", NOTHING) for cell in cells)]
    names = ("", "corpus", "metric", "language", "type of speech", "recording", "speaker", "part")
    texts = [k for k, (title, _) in enumerate(kept) if title in names]
    cells = list(zip(*(cells for _, cells in kept), strict=True))
    return Table(caption, [title for title, _ in kept], cells, note, texts=texts, plain=plain)


def _counted(group: DocumentGroup, count: tuple[int | None, int | None, int | None]) -> dict[str, object]:
    return {**_plain(group), "queries": count[0], "query_occurrences": count[1], "unknown_queries": count[2]}


def _plain(group: DocumentGroup) -> dict[str, object]:
    return {**asdict(group), "speakers": None if group.speakers is None else len(group.speakers)}


def _time(seconds: float | None, unit: float, digits: int) -> str:
    return NOTHING if seconds is None else fixed(seconds / unit, digits)
