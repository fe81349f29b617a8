"""Hits of a search by query, with how likely they are; those of the same sound at the same time are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swsdist.calibrate.likelihood import word_of
from swsdist.store.same_sound import Copies


@dataclass(frozen=True)
class AnswerHit:
    """A hit; times in s.

    Attributes:
        channels: of the recording with this hit.
        likely: its probability; None where it is not known.
        path: of the recording, local or a url; None or empty without a recording.
        also: other recordings with the same sound.
        rows: its detections, as places in the list of all.
    """

    query_id: str
    doc_id: str
    channels: tuple[int, ...]
    start: float
    end: float
    score: float
    likely: float | None
    path: str | None = None
    also: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()

    @property
    def called(self) -> str:
        """The word for that probability (`swsdist.calibrate.likelihood`)."""
        return word_of(self.likely)


@dataclass(frozen=True)
class Answer:
    """The hits of one query, best first."""

    query_id: str
    hits: tuple[AnswerHit, ...]

    @property
    def likely(self) -> int:
        """How many hits are called likely."""
        return sum(hit.called == "likely" for hit in self.hits)


def answers_by_query(
    rows: Sequence[Mapping[str, Any]],
    likely: Sequence[float | None],
    query_ids: Sequence[str] = (),
    paths: Mapping[tuple[str, int], str] | None = None,
    most: int | None = None,
    copies: Copies | None = None,
) -> tuple[Answer, ...]:
    """Hits by query, in the order of the queries.

    Args:
        rows: DETECTIONS, best first within each query.
        likely: probability of each row, or None.
        query_ids: of all queries, with or without hits; by default those of the rows.
        paths: of recordings, by document and channel.
        most: best hits per query. By default all.
        copies: recordings with the same sound; by default none are known.
    """
    copies, by_query = copies or Copies({}), dict[str, list[dict[str, Any]]]()
    for name in query_ids:
        by_query[name] = []
    for number, (row, probability) in enumerate(zip(rows, likely, strict=True)):
        by_query.setdefault(row["query_id"], []).append({**row, "number": number, "likely": probability})
    answers = []
    for name, found in by_query.items():
        hits = []
        for hit in copies.joined(found)[:most]:
            lead, best = hit[0], min(hit, key=lambda row: int(row["number"]))
            key = lead["doc_id"], lead["channel"]
            channels = tuple(row["channel"] for row in hit if row["doc_id"] == lead["doc_id"])
            place = {each: lead[each] for each in ("query_id", "doc_id", "start", "end")}
            told = {"score": best["score"], "likely": best["likely"], "path": (paths or {}).get(key)}
            numbers = tuple(row["number"] for row in hit)
            hits.append(AnswerHit(**place, **told, channels=channels, also=tuple(copies.also(key)), rows=numbers))
        answers.append(Answer(name, tuple(hits)))
    return tuple(answers)
