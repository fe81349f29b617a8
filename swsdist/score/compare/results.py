"""Results of a comparison of systems as plain values: by measure, optionally over documents, and broken down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from swsdist.core.arrays import Floats
from swsdist.score.compare.bootstrap import Interval
from swsdist.score.compare.cross_entropy import Entropies
from swsdist.score.compare.paired import Comparison, Settings
from swsdist.score.measures.curve import CurvePoint
from swsdist.score.measures.protocol import OperatingPoint


@dataclass(frozen=True, kw_only=True)
class SystemInfo:
    """Provenance of a compared system; unknown values are None or empty.

    Attributes:
        name: in the comparison.
        kind: of the input.
        path: of the run folder, list or table.
        label: its own name (key `system` of a run, `system_id` of a list).
        digest: for a run, of its scored list and measures, as in its report; for a file, its SHA-256.
        corpus: tables or files of the queries, documents and references.
        point: protocol, beta, N, T, and how many queries, references and documents.
        protocol_text: the protocol in a line, `swsdist.score.measures.protocol.Protocol.describe`.
        tolerance: s, of the protocol's alignment; None unless trials are of time.
        detections: number in its list.
        made: when a run's report was written, ISO 8601.
        versions: of swsdist and libraries.
        settings: keys of a run's config that change results, with their values as text.
    """

    name: str
    kind: Literal["run", "list", "per-term table"]
    path: str
    label: str | None = None
    digest: str | None = None
    corpus: tuple[str, ...] = ()
    point: OperatingPoint | None = None
    protocol_text: str = ""
    tolerance: float | None = None
    detections: int | None = None
    made: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DetLine:
    """A system's DET curve: float64 (n,) each, by threshold ascending; with the points of its decisions and of MTWV."""

    name: str
    threshold: Floats
    pmiss: Floats
    pfa: Floats
    actual: CurvePoint | None = None
    maximum: CurvePoint | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """A comparison by one measure.

    Attributes:
        measure: its name.
        comparison: over queries, or over systems under conditions.
        systems, pairs: intervals over documents, in the comparison's order; None if not requested.
        undefined: number of draws of documents without a value.
    """

    measure: str
    comparison: Comparison
    systems: tuple[Interval, ...] | None = None
    pairs: tuple[Interval, ...] | None = None
    undefined: int = 0


@dataclass(frozen=True, eq=False)
class BreakdownTable:
    """A system's values, or its difference to another's, by a property; see `swsdist.score.compare.breakdown` for the table."""

    column: str
    first: str
    second: str | None
    table: pa.Table


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonData:
    """All results of a comparison.

    Attributes:
        systems: names, in order.
        blocks: by measure.
        breakdowns: of the first measure.
        settings: of intervals and tests.
        notices: oddities.
        units: units of the paired values: queries, or systems under conditions.
        about: provenance of each system.
        lines: DET curves of the systems that have one, if requested.
        made: time of the comparison, ISO 8601.
        versions: of swsdist and libraries.
        entropies: min Cnxe of the systems, if requested.
    """

    systems: tuple[str, ...]
    blocks: tuple[Measured, ...]
    breakdowns: tuple[BreakdownTable, ...]
    settings: Settings
    notices: tuple[str, ...] = ()
    units: str = "queries"
    about: tuple[SystemInfo, ...] = ()
    lines: tuple[DetLine, ...] = ()
    made: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    entropies: Entropies | None = None

    def __repr__(self) -> str:
        measures = ", ".join(block.measure for block in self.blocks)
        return f"<ComparisonData of {', '.join(self.systems)}: {measures}>"
