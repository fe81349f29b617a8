"""The queries of a corpus: lengths, occurrences, speakers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.audio import commands
from swsdist.audio.reader import probe
from swsdist.core.codes import discovery as codes
from swsdist.core.errors import AudioError
from swsdist.io.notices import Notices

#: Threads that read headers.
_THREADS = 8

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
