"""Searches by examples of a word, or by text, whose hits are sent as they come."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa

from swsdist.calibrate.likelihood import Likelihood, Prior, Summary, word_of
from swsdist.core.arrays import Floats
from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError, UserError
from swsdist.core.types import QUERIES
from swsdist.glossary.project import KeptSounds, Project, is_missing
from swsdist.glossary.words import Place, Places, Token
from swsdist.io.remote.scratch import scratch
from swsdist.searcher.queries import Skip, WrittenQueries
from swsdist.searcher.searcher import Searcher
from swsdist.server.archive import Archive, Filters
from swsdist.server.security import error_values

#: Hits that are shown, and most that may be asked for.
TOP, MOST = 50, 1000
#: Hits among which true ones are expected.
_LOOKED_AT = 1000
#: Shortest and longest example, s.
SHORTEST, LONGEST = 0.1, 30.0
#: Searches whose hits are remembered.
_KEPT = 200
#: Scores beyond count as this one.
_FAR = 100.0
#: Least time between two lists of an answer that grows, s.
_PAUSE = 0.2
#: Name of the query.
_QUERY = "word"
#: Recordings without words that are named.
_NAMED = 3


class Question(NamedTuple):
    """What is asked.

    Attributes:
        examples: places of it that are heard.
        text: what is written, instead.
        entry_id: the entry of the glossary whose judged places are left out.
        filters: of the documents.
        top: hits that are shown.
        voices: that speak the text, to be searched by example.
    """

    examples: tuple[Place, ...]
    text: str | None = None
    entry_id: int | None = None
    filters: Filters = Filters()
    top: int = TOP
    voices: tuple[str, ...] = ()


class CachedSearch(NamedTuple):
    """A search that is remembered.

    Attributes:
        hits: best first, more than were shown.
        shown: how many were.
        prior: of their likelihood; None: judgements do not move it.
    """

    hits: list[dict[str, Any]]
    shown: int
    prior: Prior | None


@dataclass
class SearchCache:
    """The last searches, whose hits judgements make more or less likely."""

    _kept: dict[str, CachedSearch] = field(default_factory=dict)
    _last: dict[int, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def keep(self, name: str, entry_id: int | None, kept: CachedSearch) -> None:
        """Remember a search."""
        with self._lock:
            self._kept[name] = kept
            if entry_id is not None:
                self._last[entry_id] = name
            for old in list(self._kept)[:-_KEPT]:
                del self._kept[old]

    def forget(self, recordings: Set[str]) -> None:
        """Forget searches with hits in these recordings, which hold another sound now."""
        with self._lock:
            for name, kept in list(self._kept.items()):
                if any(hit["doc_id"] in recordings for hit in kept.hits):
                    del self._kept[name]

    def of(self, entry_id: int, name: str | None) -> CachedSearch | None:
        """A search, or the entry's last; None: it is forgotten."""
        with self._lock:
            return self._kept.get(name or self._last.get(entry_id, ""))

    def likelihood(self, project: Project, archive: Archive, entry_id: int, name: str | None = None) -> dict[str, Any]:
        """How likely the hits of a search are by the judgements that an entry has now.

        Args:
            project: has them.
            archive: what was searched.
            entry_id: the entry.
            name: of the search; None: the entry's last.

        Returns:
            `likelihood` is None where the search is forgotten, or judgements do not move how likely its hits are.
        """
        kept = self.of(entry_id, name)
        if kept is None or kept.prior is None:
            return {"likelihood": None, "likely": []}
        tokens, _ = _current(project, archive, entry_id)
        fitted, places = _fitted(tokens, kept.prior), _placed([token.place for token in tokens], archive)
        likely = fitted.likely(_scores(kept.hits[: kept.shown]))
        shown, others = (
            [hit["score"] for hit in hits if not _judged(hit, places, archive)]
            for hits in (kept.hits[: kept.shown], kept.hits[kept.shown :])
        )
        summary = fitted.summary(np.array([*shown, *others]), len(shown))
        return {"likelihood": _summary_of(summary, tokens), "likely": [_called(p) for p in likely.tolist()]}


def answer(
    question: Question,
    archive: Archive,
    project: Project,
    answers: SearchCache,
    searcher: Searcher | None = None,
    unsearched: Sequence[str] = (),
    same: Archive | None = None,
) -> Generator[dict[str, Any]]:
    """What has been found, each time that more has been searched.

    Args:
        searcher: of some documents; by default those that the question is narrowed to.
        unsearched: names of recordings among them that have no words.
        same: knows which recordings sound the same; by default the archive.

    Yields:
        search (its name), part, hits, final; the last with likelihood, warnings, instead (what is found of a text of which
        nothing is: its words with other marks), unsearched (their count and the first names), missing (where a text has no
        hits: words that nobody says, with similar ones) and seconds.

    Raises:
        UserError, AudioError: the question cannot be asked.
    """
    began, name, same = time.perf_counter(), uuid4().hex, same or archive
    warnings, unusable = list[str](), list[SwsdistError]()
    tokens, others = _current(project, archive, question.entry_id) if question.entry_id is not None else ([], [])
    searcher = searcher or archive.filtered(question.filters)

    def skip(_: str, number: int, error: SwsdistError) -> None:
        unusable.append(error)
        warnings.append(f"example {number} is left out: {error.message}")

    prior, known = archive.likelihood.prior, [token.place for token in tokens]
    for example in question.examples:  # nobody need judge what is asked with
        with suppress(UserError):
            known.append(archive.in_recording(example))
    places = _placed(known, same)
    fitted = None if prior is None else _fitted(tokens, prior)
    hits, instead = list[dict[str, Any]](), list[str]()
    most = max(_LOOKED_AT, question.top)
    due = began + _PAUSE
    with TemporaryDirectory(dir=scratch()) as place:
        queries: Any
        if question.text is None:
            queries = _examples(question.examples, archive, project, others, skip)
        else:  # a row, since a text may be the name of a table
            queries = [_written(question.text, question.text)]
        if question.voices:
            queries = searcher.spoken_rows(queries, question.voices, Path(place), skip)
        while queries is not None:
            found = 0
            for part in searcher.stream(queries, most, skip=skip, say=warnings.append, warn=warnings.append):
                if part.part == 0:
                    yield {"search": name, "part": 0.0, "hits": [], "final": False}
                elif part.part < 1:
                    if (now := time.perf_counter()) < due:
                        continue
                    hits = _hits(part.table(), archive, question.top, places, fitted, same)
                    yield {"search": name, "part": part.part, "hits": hits, "final": False}
                    # At most a fifth of the time.
                    due = time.perf_counter() + max(_PAUSE, 4 * (time.perf_counter() - now))
                else:
                    found = part.table().num_rows
                    hits = _hits(part.table(), archive, most, places, fitted, same)
            written, queries = searcher.queries, None
            if question.text and isinstance(written, WrittenQueries) and not (found or instead or unusable):
                instead = written.remarked(question.text)
                rows = [_written(question.text, text, number) for number, text in enumerate(instead, 1)]
                queries = rows or None
    if len(unusable) == max(1, len(question.examples), len(question.voices)):
        raise unusable[0]
    answers.keep(name, question.entry_id, CachedSearch(hits, question.top, prior))
    asked, missing = searcher.queries, dict[str, list[str]]()
    if not hits and question.text is not None and isinstance(asked, WrittenQueries):
        missing = asked.missing([question.text])
    summary = None if fitted is None else _summary_of(fitted.summary(_scores(hits), question.top), tokens)
    yield {
        "search": name,
        "part": 1.0,
        "hits": hits[: question.top],
        "final": True,
        "likelihood": summary,
        "warnings": [*archive.searcher.setup.warnings, *warnings],
        "instead": instead,
        "unsearched": {"count": len(unsearched), "names": list(unsearched[:_NAMED])},
        "missing": missing,
        "seconds": round(time.perf_counter() - began, 3),
    }


def as_line(error: SwsdistError) -> str:
    """An error that comes while an answer is sent."""
    return json.dumps(error_values(error)) + "\n"


def examples_of(project: Project, entry_id: int) -> tuple[Place, ...]:
    """The places by which an entry is searched."""
    return tuple(token.place for token in project.tokens(entry_id) if token.example)


def _current(project: Project, archive: Archive, entry_id: int) -> tuple[list[Token], list[Token]]:
    """The tokens of an entry; and those of another sound than their documents hold, or files are."""
    tokens = project.tokens(entry_id)
    replaced = archive.replaced(tokens)
    return [each for each in tokens if each not in replaced], [each for each in tokens if each in replaced]


def _examples(
    examples: Sequence[Place], archive: Archive, project: Project, others: Sequence[Token], skip: Skip
) -> pa.Table:
    """QUERIES, all of one query; what `skip` takes is not in it.

    Args:
        others: judged in another sound than the archive has.
    """
    if not examples:
        raise families.MISSING_INPUT(
            "the word has no example yet", "record it, mark a place, or judge a hit with yes first", where="examples"
        )
    rows, error = [], None
    for number, place in enumerate(examples, 1):
        try:
            rows.append(
                {**dict.fromkeys(QUERIES.names), **_example(place, archive, project, others), "example": number}
            )
        except SwsdistError as fault:
            skip(_QUERY, number, error := fault)
    if error is not None and not rows:
        raise error
    return pa.Table.from_pylist(rows, schema=QUERIES)


def _written(query: str, text: str, number: int = 1) -> dict[str, Any]:
    return dict.fromkeys(QUERIES.names) | {"query_id": query, "example": number, "channel": 1, "term": text}


def _example(place: Place, archive: Archive, project: Project, others: Sequence[Token]) -> dict[str, Any]:
    where, seconds = place.doc_id or place.sound, place.end - place.start
    if seconds < SHORTEST - 1e-3:  # times are rounded
        raise families.TOO_FEW(
            "the example lasts {seconds:.2f} s, less than {least:.1f} s",
            "mark the whole word",
            where=where,
            seconds=seconds,
            least=SHORTEST,
        )
    if seconds > LONGEST:
        raise families.TOO_LARGE(
            "the example lasts {seconds:.1f} s, more than {most:.0f} s",
            "mark the word alone",
            where=where,
            seconds=seconds,
            most=LONGEST,
        )
    if place.sound is not None:
        facts: dict[str, Any] = {"path": str(project.sound_file(place.sound))}
    else:
        asked, fault, facts = place, None, {"path": ""}
        try:
            place, document = archive.source(place, others)
            facts = {"path": document["path"], "speaker": document["speaker"]}
        except UserError as error:
            if error.code != codes.NOT_IN_ARCHIVE.name:
                raise
            fault = error
        if is_missing(facts["path"]):
            kept = KeptSounds(project.folder).of(asked, archive.content_of(asked))
            if kept is not None:  # normalised as its recording, which the store knows by its document
                facts |= {"path": kept.path, "doc_id": place.doc_id}
                place = kept.within(place)
            elif fault is not None:
                raise fault
    return {"query_id": _QUERY, "channel": place.channel, "start": place.start, "end": place.end, **facts}


def _hits(
    table: pa.Table, archive: Archive, top: int, known: Places[Place], fitted: Likelihood | None, same: Archive
) -> list[dict[str, Any]]:
    """The best hits at no known place, of those of the same sound at the same time one.

    Args:
        known: places that are judged or asked with.
        same: knows what sounds the same.
    """
    joined = same.copies.joined(table.to_pylist())
    leading = [same.leading(hit) for hit in joined]
    where = archive.rows_of(list({row["doc_id"] for row in leading}))
    shown = []
    for hit, row in zip(joined, leading, strict=True):
        score = max(each["score"] for each in hit)
        channels = [each["channel"] for each in hit if each["doc_id"] == row["doc_id"]]
        place = {**{name: row[name] for name in ("doc_id", "start", "end")}, "channels": channels, "score": score}
        if _judged(place, known, same):
            continue
        document = where.of(row["doc_id"], row["channel"], (row["start"] + row["end"]) / 2)
        assert document is not None  # the store has what it finds
        facts = {
            "recording": row["doc_id"],
            "also": same.copies.also((row["doc_id"], row["channel"])),
            "speaker": document["speaker"],
            "date": document["day"],
            "at": row["start"],
        }
        shown.append({**place, **facts})
        if len(shown) == top:
            break
    scores = _scores(shown)
    likely = archive.likelihood.of(scores) if fitted is None else fitted.likely(scores).tolist()
    return [{**hit, **_called(p)} for hit, p in zip(shown, likely, strict=True)]


def _called(likely: float | None) -> dict[str, Any]:
    return {"likely": likely if likely is None else round(likely, 4), "called": word_of(likely)}


def _scores(hits: Sequence[Mapping[str, Any]]) -> Floats:
    return np.array([hit["score"] for hit in hits], np.float64)


def _placed(known: Sequence[Place], same: Archive) -> Places[Place]:
    places = Places[Place]()
    for place in known:
        places.add(same.heard_at(place), place)
    return places


def _judged(hit: Mapping[str, Any], known: Places[Place], same: Archive) -> bool:
    """Whether a place that is judged, or an example, is that of a hit, or of the same sound."""
    places = (Place(hit["doc_id"], channel, hit["start"], hit["end"]) for channel in hit["channels"])
    return any(known.same(same.heard_at(place)) is not None for place in places)


def _fitted(tokens: Sequence[Token], prior: Prior) -> Likelihood:
    clear = [token for token in tokens if token.verdict != "unsure" and token.score is not None]
    scores = np.array([token.score for token in clear], np.float64).clip(-_FAR, _FAR)
    return Likelihood.fit(scores, np.array([token.verdict == "yes" for token in clear]), prior)


def _summary_of(summary: Summary, tokens: Sequence[Token]) -> dict[str, Any]:
    verdicts = [token.verdict for token in tokens if token.place.sound is None]
    counts = {"judged": len(verdicts), "yes": verdicts.count("yes"), "no": verdicts.count("no")}
    return {**summary._asdict(), **counts}
