"""The inputs of scoring: the task and a system's list."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from swsdist.corpora.places import Places
from swsdist.io.notices import Notices
from swsdist.score.conventions import Conventions
from swsdist.score.measures.protocol import OperatingPoint, Protocol
from swsdist.score.trials.excerpts import excerpt_documents, named_documents


@dataclass(frozen=True, eq=False)
class ScoringTask:
    """Queries, references and operating point that systems are scored against.

    Attributes:
        protocol: the rules.
        references: table REFERENCES, of the queries in `terms`.
        terms: table TERMS, in the order of the list, maybe with more columns.
        excerpts: table EXCERPTS; None if only the seconds are known.
        point: the operating point.
        segments: table SEGMENTS of segment trials, else None.
        notices: oddities.
        judged: places judged `yes` or `no`, REFERENCES, outside of which nothing is counted; None: everything is.
    """

    protocol: Protocol
    references: pa.Table
    terms: pa.Table
    excerpts: pa.Table | None
    point: OperatingPoint
    segments: pa.Table | None = None
    notices: Notices = field(default_factory=Notices)
    judged: pa.Table | None = None

    @cached_property
    def places(self) -> Places | None:
        """The documents of an ECF, one per excerpt; None without an ECF, or if names alone count."""
        if self.excerpts is None or self.conventions.by_name:
            return None
        return Places(excerpt_documents(self.excerpts, self.conventions))

    @property
    def document_names(self) -> list[str] | None:
        """What the excerpts of an ECF name, in its order; None without an ECF."""
        return None if self.excerpts is None else named_documents(self.excerpts, self.conventions)

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
        """Rules of the scoring program."""
        return self.protocol.rules


@dataclass(frozen=True, eq=False)
class System:
    """A system's list.

    Attributes:
        detections: query_id, doc_id, channel, start, end, duration (s), score, decision (may be null).
        attributes: of the list's outermost element; of a table, nothing.
        search_times: by query with a list (maybe empty), as written; None for a table, which does not distinguish
            queries without detections from queries that were not searched.
        path: its file.
    """

    detections: pa.Table
    attributes: dict[str, str]
    search_times: dict[str, str] | None
    path: str
