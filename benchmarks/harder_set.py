"""A set of harder queries from aligned speech, after the types of QUESST 2014 (Anguera and others 2015).

- T1: a document holds the query's words in their order, at most `GAP` s apart, or its phones without a pause.
- T2: not that, but the first or last `SHARED` of its phones, at least five that last `LEAST` s.
- T3: neither, but all of its words, once each and at most `FILLER` s from the next, in another order or with speech between.

Queries are stretches of a document of dev, which then is no document. Few phrases recur in another order, so for T3 some
documents are cut at the borders of words and joined again: two stretches of a document change places, so that the words of a
query are swapped, or stand apart. A query has one kind: all documents that hold it do so in one way. The same corpus gives the
same set.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile

from benchmarks.corpora import Corpus, write

KINDS = ("T1", "T2", "T3")
#: Greatest gap between the words of T1, and between the words of a query, s.
GAP, INSIDE = 0.5, 0.1
#: Shared part of T2's phones, and its least seconds.
SHARED, LEAST = Fraction(2, 3), 0.25
#: Longest speech between words of T3, s.
FILLER = 1.0
#: Seconds and least phones of a query, and least phones of a word of T3.
SECONDS, PHONES, OF_WORD = (0.5, 1.5), 7, 3


class Piece(NamedTuple):
    """A word or phone: its first and last second, and its name."""

    start: float
    end: float
    name: str


@dataclass(frozen=True, eq=False)
class Speech:
    """An aligned document."""

    words: list[Piece]
    phones: list[Piece]

    @cached_property
    def text(self) -> str:
        """Names of the phones, with blanks around each."""
        return _text(self.phones)

    def within(self, start: float, end: float) -> list[Piece]:
        """Phones of a place."""
        return [phone for phone in self.phones if phone.start > start - 0.005 and phone.end < end + 0.005]

    def swapped(self, first: float, middle: float, last: float) -> Speech:
        """With two adjacent stretches in each other's place."""

        def moved(piece: Piece) -> Piece:
            place = (piece.start + piece.end) / 2
            by = 0.0
            if first <= place < middle:
                by = last - middle
            elif middle <= place < last:
                by = first - middle
            return Piece(round(piece.start + by, 3), round(piece.end + by, 3), piece.name)

        return Speech(sorted(map(moved, self.words)), sorted(map(moved, self.phones)))


class Query(NamedTuple):
    """A stretch of a document: its place, words, phones, and the phones of each word."""

    doc_id: str
    start: float
    end: float
    words: tuple[str, ...]
    phones: tuple[Piece, ...]
    of_words: tuple[int, ...]


class Swap(NamedTuple):
    """Seconds of the first stretch's begin, the second's, and its end."""

    first: float
    middle: float
    last: float


class Set(NamedTuple):
    """Queries by kind, places of each query by document, swapped documents, and documents that are none any more."""

    queries: list[tuple[str, Query]]
    places: list[dict[str, tuple[float, float]]]
    swaps: dict[str, Swap]
    sources: set[str]


def speech_of(corpus: Path) -> dict[str, Speech]:
    """The alignments in a folder, by document."""
    pieces: dict[str, dict[str, list[Piece]]] = {}
    for table in ("align.ctm", "phones.ctm"):
        pieces[table] = defaultdict(list)
        for line in (corpus / table).read_text(encoding="utf-8").splitlines():
            doc_id, _, start, seconds, name = line.split()
            piece = Piece(float(start), round(float(start) + float(seconds), 3), name)
            pieces[table][doc_id].append(piece)
    words, phones = pieces.values()
    return {doc_id: Speech(words[doc_id], phones[doc_id]) for doc_id in sorted(words)}


def stretches(speech: dict[str, Speech]) -> list[Query]:
    """All places that may be queries, in an order by hash."""
    result = []
    for doc_id, document in speech.items():
        for i, first in enumerate(document.words):
            for j in range(i, min(i + 3, len(document.words))):
                inside = document.words[i : j + 1]
                start, end = first.start, inside[-1].end
                phones = document.within(start, end)
                if any(b.start - a.end > INSIDE for a, b in pairwise(inside)) or end - start > SECONDS[1]:
                    break
                if end - start >= SECONDS[0] and len(phones) >= PHONES:
                    counts = tuple(len(document.within(word.start, word.end)) for word in inside)
                    names = tuple(word.name for word in inside)
                    result.append(Query(doc_id, start, end, names, tuple(phones), counts))
    return sorted(result, key=lambda query: _hash(f"{query.doc_id} {query.start} {query.end}"))


def match(query: Query, document: Speech) -> tuple[str, float, float] | None:
    """The least kind of match in a document, and its place."""
    words, count = document.words, len(query.words)
    for k in range(len(words) - count + 1):
        some = words[k : k + count]
        if tuple(word.name for word in some) == query.words and all(b.start - a.end <= GAP for a, b in pairwise(some)):
            return "T1", some[0].start, some[-1].end
    phones = query.phones
    for part in _parts(phones):
        place = _run_of(part, document.phones) if _text(part) in document.text else None
        if place is not None and place[1] - place[0] >= LEAST:
            return ("T1" if len(part) == len(phones) else "T2"), *place
    if count > 1 and len(set(query.words)) == count and min(query.of_words) >= OF_WORD:
        places = [[word for word in words if word.name == name] for name in query.words]
        if all(places):
            some = sorted(of_name[0] for of_name in places)
            if all(b.start - a.end <= FILLER for a, b in pairwise(some)):
                return "T3", some[0].start, some[-1].end
    return None


def _parts(phones: tuple[Piece, ...]) -> Iterator[tuple[Piece, ...]]:
    """All phones, then the first and the last ones that count for T2, longest first."""
    yield phones
    least = max(5, math.ceil(SHARED * len(phones)))
    for count in range(len(phones) - 1, least - 1, -1):
        for part in (phones[:count], phones[-count:]):
            if part[-1].end - part[0].start >= LEAST:
                yield part


def _text(phones: Sequence[Piece]) -> str:
    return f" {' '.join(phone.name for phone in phones)} "


def _run_of(part: tuple[Piece, ...], phones: list[Piece]) -> tuple[float, float] | None:
    """The first place of these phones without a pause."""
    wanted = [phone.name for phone in part]
    names = [phone.name for phone in phones]
    for k in range(len(names) - len(wanted) + 1):
        if names[k : k + len(wanted)] == wanted:
            some = phones[k : k + len(wanted)]
            if all(b.start - a.end <= INSIDE for a, b in pairwise(some)):
                return some[0].start, some[-1].end
    return None


def swap_for(query: Query, document: Speech, parted: bool) -> Swap | None:
    """How a document that holds a query of two words comes to hold them swapped, or parted by the words beside them."""
    words = document.words
    for k, (a, b) in enumerate(pairwise(words)):
        if (a.name, b.name) != query.words:
            continue
        if not parted:
            return Swap(a.start, b.start, b.end)
        for count in (1, 2, 3):
            after, before = words[k + 2 : k + 2 + count], words[max(0, k - count) : k]
            if len(after) == count and 0.2 <= after[-1].end - b.end <= 0.8:
                return Swap(b.start, b.end, after[-1].end)
            if len(before) == count and 0.2 <= a.start - before[0].start <= 0.8:
                return Swap(before[0].start, a.start, a.end)
    return None


def choose(speech: dict[str, Speech], each: int) -> Set:
    """Up to so many queries of each kind."""
    speech = dict(speech)
    candidates = stretches(speech)
    taken: list[tuple[str, Query]] = []
    swaps: dict[str, Swap] = {}
    sources: set[str] = set()
    targets: set[str] = set()
    counts = dict.fromkeys(KINDS, 0)
    used: dict[str, set[str]] = {kind: set() for kind in KINDS}

    def matches(query: Query) -> dict[str, tuple[str, float, float]]:
        found = {
            doc_id: match(query, document)
            for doc_id, document in speech.items()
            if doc_id not in sources and doc_id != query.doc_id
        }
        return {doc_id: hit for doc_id, hit in found.items() if hit is not None}

    def take(kind: str, query: Query, hits: dict[str, tuple[str, float, float]]) -> None:
        taken.append((kind, query))
        sources.add(query.doc_id)
        targets.update(hits)
        counts[kind] += 1
        used[kind].update(word for word in query.words if len(word) > 3)

    def free(kind: str, query: Query) -> bool:
        return counts[kind] < each and query.doc_id not in targets | set(swaps) and not used[kind] & set(query.words)

    # Swaps come first, for they change what the documents hold.
    for query in candidates:
        if not free("T3", query) or len(query.words) != 2 or min(query.of_words) < OF_WORD:
            continue
        hits = matches(query)
        if not hits or len(hits) > 4 or targets & set(hits) or {kind for kind, *_ in hits.values()} - {"T1", "T3"}:
            continue
        exact = [doc_id for doc_id, hit in hits.items() if hit[0] == "T1"]
        new = {doc_id: swap_for(query, speech[doc_id], counts["T3"] % 2 == 1) for doc_id in exact}
        if None in new.values():
            continue
        changed = {doc_id: speech[doc_id].swapped(*swap) for doc_id, swap in new.items() if swap is not None}
        if any((match(query, document) or ("",))[0] != "T3" for document in changed.values()):
            continue
        speech.update(changed)
        swaps.update({doc_id: swap for doc_id, swap in new.items() if swap is not None})
        take("T3", query, hits)
    for query in candidates:
        if not any(free(kind, query) for kind in ("T1", "T2")):
            continue
        hits = matches(query)
        kinds = {kind for kind, *_ in hits.values()}
        if len(kinds) == 1 and (kind := kinds.pop()) != "T3" and free(kind, query):
            take(kind, query, hits)
    places = []
    for _, query in taken:
        places.append({doc_id: (start, end) for doc_id, (_, start, end) in matches(query).items()})
    return Set(taken, places, swaps, sources)


def make(corpus: Corpus, folder: Path, each: int = 60) -> Corpus:
    """The set in a folder: documents, queries with their `kind`, references, and the sound of what was cut; it is made if it is
    not there.
    """
    tables = [folder / f"{name}.csv" for name in ("docs", "queries", "refs")]
    if not tables[-1].is_file():
        _write(corpus, folder, choose(speech_of(corpus.documents.parent), each))
    return Corpus("harder queries", *tables)


def _write(corpus: Corpus, folder: Path, chosen: Set) -> None:
    rows = {row["doc_id"]: row for row in corpus.rows()}
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    documents = []
    for doc_id, row in rows.items():
        if doc_id in chosen.sources:
            continue
        if doc_id in chosen.swaps:
            sound, rate = soundfile.read(row["path"], dtype="int16")
            a, b, c = (round(second * rate) for second in chosen.swaps[doc_id])
            path = folder / "audio" / f"{doc_id}.flac"
            joined = np.concatenate([sound[:a], sound[b:c], sound[a:b], sound[c:]])
            soundfile.write(path, joined, rate, "PCM_16", format="FLAC")
            row = {**row, "path": str(path)}
        documents.append(row)
    queries: list[dict[str, Any]] = []
    references: list[dict[str, Any]] = []
    for k, ((kind, query), places) in enumerate(zip(chosen.queries, chosen.places, strict=True), start=1):
        query_id, source = f"{kind}-{k:03d}", rows[query.doc_id]
        sound, rate = soundfile.read(source["path"], dtype="int16")
        path = folder / "audio" / f"{query_id}.flac"
        cut = sound[round(query.start * rate) : round(query.end * rate)]
        soundfile.write(path, cut, rate, "PCM_16", format="FLAC")
        about = {"query_id": query_id, "term": " ".join(query.words), "example": 1, "path": str(path)}
        queries.append({**about, "speaker": source["speaker"], "kind": kind})
        for doc_id, (start, end) in sorted(places.items()):
            references.append({"query_id": query_id, "doc_id": doc_id, "channel": 1, "start": start, "end": end})
    write(folder / "docs.csv", documents)
    write(folder / "queries.csv", queries)
    write(folder / "refs.csv", references)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
