"""The queries of a corpus: how long they are, how often they occur, who says them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.audio import commands
from swsdist.audio.reader import probe
from swsdist.core.codes import report as codes
from swsdist.core.errors import AudioError
from swsdist.io.notices import Notices

#: Headers are read side by side.
_THREADS = 8

SpeakerLookup = Callable[[Mapping[str, Any]], tuple[str | None, str]]


class Occurrences(NamedTuple):
    """The occurrences of a query in a part of a corpus, or in all of it.

    Attributes:
        number: how many.
        mean_seconds: their mean length (s); None if there are none.
        same_speaker: those that a speaker of the query's examples says; None if speakers are not told.
    """

    number: int
    mean_seconds: float | None
    same_speaker: int | None


@dataclass(frozen=True)
class Query:
    """A query; times in s.

    Attributes:
        query_id: its id.
        term: its text; None if not told.
        examples: spoken ones.
        seconds: mean length of its examples; None if there are none, or none can be read.
        occurrences: its occurrences in the whole corpus; None if nothing tells.
        by_part: the same in each part of the corpus that it occurs in.
        unknown: whether a word of it is not said in the part for training; None if there is no such part.
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
    known: frozenset[str] | None,
    notices: Notices,
    storage: Mapping[str, object] | None = None,
) -> tuple[Query, ...]:
    """The queries of a corpus, in their order.

    Args:
        examples: QUERIES, all examples.
        references: REFERENCES; None if nothing tells.
        speaker_of: speaker and part of the document that a row of REFERENCES is in; None and empty where they are not told.
        known: words that are said in the part for training, in lower case; None if there is none.
        notices: told of examples that cannot be used.
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
        _query(query_id, mine, None if references is None else true.get(query_id, []), speaker_of, known)
        for query_id, mine in by_query.items()
    )


def _query(
    query_id: str,
    mine: list[tuple[Mapping[str, Any], float | None]],
    true: list[Mapping[str, Any]] | None,
    speaker_of: SpeakerLookup,
    known: frozenset[str] | None,
) -> Query:
    term = next((row["term"] for row, _ in mine if row["term"]), None)
    lengths = [length for _, length in mine if length is not None]
    own = {row["speaker"] for row, _ in mine if row["speaker"]}
    found = [(row, *speaker_of(row)) for row in true or ()]
    told = bool(own) and all(speaker is not None for _, speaker, _ in found)

    def said(of: list[tuple[Mapping[str, Any], str | None, str]]) -> Occurrences:
        lengths = [row["end"] - row["start"] for row, _, _ in of]
        return Occurrences(
            len(of),
            sum(lengths) / len(of) if of else None,
            sum(speaker in own for _, speaker, _ in of) if told else None,
        )

    parts = dict.fromkeys(part for _, _, part in found if part)
    return Query(
        query_id,
        term,
        sum(row["path"] is not None for row, _ in mine),
        sum(lengths) / len(lengths) if lengths else None,
        None if true is None else said(found),
        {part: said([one for one in found if one[2] == part]) for part in parts},
        None if known is None or not term else any(word not in known for word in term.lower().split()),
    )


def _length(row: Mapping[str, Any], storage: Mapping[str, object] | None) -> float | AudioError | None:
    """Seconds of an example; None of text, and where finding out would take a command."""
    if row["start"] is not None and row["end"] is not None:
        return float(row["end"] - row["start"])
    if not row["path"] or (commands.is_command(row["path"]) and not commands.are_permitted()):
        return None
    try:
        length = probe(row["path"], storage).duration
    except AudioError as error:
        return error
    return float((row["end"] or length) - (row["start"] or 0.0))
