"""Hits of a search by query, with how likely they are; equal hits on several channels are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swsdist.calibrate.likelihood import word_of


@dataclass(frozen=True)
class AnswerHit:
    """A hit; times in s.

    Attributes:
        channels: of the recording with this hit.
        likely: its probability; None where it is not known.
        path: of the recording, local or a url; None or empty without a recording.
    """

    query_id: str
    doc_id: str
    channels: tuple[int, ...]
    start: float
    end: float
    score: float
    likely: float | None
    path: str | None = None

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
) -> tuple[Answer, ...]:
    """Hits by query, in the order of the queries.

    Args:
        rows: DETECTIONS, best first within each query.
        likely: probability of each row, or None.
        query_ids: of all queries, with or without hits; by default those of the rows.
        paths: of recordings, by document and channel.
        most: best hits per query; equal hits on several channels count once. By default all.
    """
    hits_by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ("query_id", "doc_id", "start", "end", "score")
    for row, probability in zip(rows, likely, strict=True):
        hit = hits_by_key.setdefault(
            tuple(row[name] for name in names), {"channels": (), "likely": probability, "path": None}
        )
        hit["channels"] += (row["channel"],)
        hit["path"] = hit["path"] or (paths or {}).get((row["doc_id"], row["channel"]))
    hits = [AnswerHit(**dict(zip(names, key, strict=True)), **rest) for key, rest in hits_by_key.items()]
    ids = dict.fromkeys([*query_ids, *(hit.query_id for hit in hits)])
    return tuple(Answer(name, tuple(hit for hit in hits if hit.query_id == name)[:most]) for name in ids)
