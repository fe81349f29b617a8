"""Hits of a search by query, with verdicts; equal hits on several channels are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

#: Verdicts on hits by score. `likely` promises a precision (`promise`), `strong` does not.
Verdict = Literal["likely", "strong", "unsure", "weak"]
#: Verdicts below the threshold.
LOWER_VERDICTS: dict[Verdict, Verdict] = {"likely": "unsure", "strong": "weak"}
#: Threshold of strong hits where none was fitted, in standard deviations above the mean of a query's candidates: precision
#: 46 % on Mboshi dev (`python -m benchmarks.bands`).
STRONG_SCORE = 4.0


@dataclass(frozen=True)
class AnswerHit:
    """A hit; times in s.

    Attributes:
        channels: of the recording with this hit.
        path: of the recording, local or a url; None or empty without a recording.
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
    """The hits of one query, best first."""

    query_id: str
    hits: tuple[AnswerHit, ...]

    @property
    def confident(self) -> int:
        """The number of likely, or strong, hits."""
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
        verdicts: of the rows.
        query_ids: of all queries, with or without hits; by default those of the rows.
        paths: of recordings, by document and channel.
        most: best hits per query; equal hits on several channels count once. By default all.
    """
    hits_by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ("query_id", "doc_id", "start", "end", "score")
    for row, verdict in zip(rows, verdicts, strict=True):
        hit = hits_by_key.setdefault(
            tuple(row[name] for name in names), {"channels": (), "verdict": verdict, "path": None}
        )
        hit["channels"] += (row["channel"],)
        hit["path"] = hit["path"] or (paths or {}).get((row["doc_id"], row["channel"]))
    hits = [AnswerHit(**dict(zip(names, key, strict=True)), **rest) for key, rest in hits_by_key.items()]
    ids = dict.fromkeys([*query_ids, *(hit.query_id for hit in hits)])
    return tuple(Answer(name, tuple(hit for hit in hits if hit.query_id == name)[:most]) for name in ids)
