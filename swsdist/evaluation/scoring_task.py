"""Scoring compares what a system was asked with what it answered; these are the two values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from swsdist.corpora.places import Places
from swsdist.io.notices import Notices
from swsdist.score.conventions import Conventions
from swsdist.score.measures.protocol import OperatingPoint, Protocol
from swsdist.score.trials.excerpts import excerpt_documents


@dataclass(frozen=True, eq=False)
class ScoringTask:
    """A scoring task is what a system was asked.

    Attributes:
        protocol: the rules.
        references: table REFERENCES, of the queries in `terms`.
        terms: table TERMS, in the order of the list, maybe with more columns.
        excerpts: table EXCERPTS; None where the seconds were given instead.
        point: the operating point.
        segments: table SEGMENTS of segment trials, else None.
        notices: what was odd.
    """

    protocol: Protocol
    references: pa.Table
    terms: pa.Table
    excerpts: pa.Table | None
    point: OperatingPoint
    segments: pa.Table | None = None
    notices: Notices = field(default_factory=Notices)

    @cached_property
    def places(self) -> Places | None:
        """The documents of an ECF: each excerpt is one, as of a run whose documents an ECF names. None without an ECF."""
        return None if self.excerpts is None else Places(excerpt_documents(self.excerpts, self.conventions))

    @property
    def seconds(self) -> float:
        """T, s of audio."""
        return self.point.seconds

    @property
    def trials(self) -> int:
        """N of every query."""
        return self.point.trials

    @property
    def beta(self) -> float:
        """Weight of false alarms."""
        return self.point.beta

    @property
    def conventions(self) -> Conventions:
        """Whose rules of counting hold."""
        return self.protocol.rules


@dataclass(frozen=True, eq=False)
class System:
    """A system is known by what it answered.

    Attributes:
        detections: query_id, doc_id, channel, start, end, duration (s), score, decision (may be null).
        attributes: of the list's outermost element; of a table, nothing.
        search_times: of each query that has a list (maybe an empty one), as written; None of a table, where a query
            without detections cannot be told from one that was not searched.
        path: where it was read.
    """

    detections: pa.Table
    attributes: dict[str, str]
    search_times: dict[str, str] | None
    path: str
