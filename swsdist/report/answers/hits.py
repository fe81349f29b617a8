"""Hits of a search by query: the same sound on several channels once, with the word that says how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

#: What a hit is called by its score. `likely` promises something (`promise`), `strong` does not.
Verdict = Literal["likely", "strong", "unsure", "weak"]
#: What those are called that are not.
LOWER_VERDICTS: dict[Verdict, Verdict] = {"likely": "unsure", "strong": "weak"}
#: Without a threshold that was fitted a hit is strong so many standard deviations above the mean of its query's candidates; of
#: such hits 46 % are right on Mboshi dev (`python -m benchmarks.bands`).
STRONG_SCORE = 4.0


@dataclass(frozen=True)
class AnswerHit:
    """A place that was found; times in s.

    Attributes:
        channels: of the recording, that have the same sound there.
        verdict: what it is called.
        path: of the recording, local or a url; None or empty where there is none.
    """

    query_id: str
    doc_id: str
    channels: tuple[int, ...]
    start: float
    end: float
    score: float
    verdict: Verdict
    path: str | None = None


@dataclass(frozen=True)
class Answer:
    """What was found of one query, best first."""

    query_id: str
    hits: tuple[AnswerHit, ...]

    @property
    def confident(self) -> int:
        """How many hits are likely, or strong."""
        return sum(hit.verdict in LOWER_VERDICTS for hit in self.hits)


def answers_by_query(
    rows: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Verdict],
    query_ids: Sequence[str] = (),
    paths: Mapping[tuple[str, int], str] | None = None,
    most: int | None = None,
) -> tuple[Answer, ...]:
    """Hits by query, in the order of the queries.

    Args:
        rows: DETECTIONS, best first within each query.
        verdicts: what each row is called.
        query_ids: of all queries, found or not; by default those of the rows.
        paths: of recordings, by document and channel.
        most: hits of each query, the best; the same sound on several channels is one. By default all.
    """
    made: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ("query_id", "doc_id", "start", "end", "score")
    for row, verdict in zip(rows, verdicts, strict=True):
        hit = made.setdefault(tuple(row[name] for name in names), {"channels": (), "verdict": verdict, "path": None})
        hit["channels"] += (row["channel"],)
        hit["path"] = hit["path"] or (paths or {}).get((row["doc_id"], row["channel"]))
    hits = [AnswerHit(**dict(zip(names, key, strict=True)), **rest) for key, rest in made.items()]
    wanted = dict.fromkeys([*query_ids, *(hit.query_id for hit in hits)])
    return tuple(Answer(name, tuple(hit for hit in hits if hit.query_id == name)[:most]) for name in wanted)
