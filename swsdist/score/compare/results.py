"""What a comparison of systems comes to, as plain values: of each measure, over documents where asked, and broken down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.score.compare.bootstrap import Interval
from swsdist.score.compare.cross_entropy import Entropies
from swsdist.score.compare.paired import Comparison
from swsdist.score.compare.paired import Settings as Settings
from swsdist.score.measures.curve import CurvePoint
from swsdist.score.measures.protocol import OperatingPoint


@dataclass(frozen=True, kw_only=True)
class SystemInfo:
    """What is known of a system that is compared, for a reader who was not there; None or empty where it is not.

    Attributes:
        name: what the comparison calls it.
        kind: what was given of it.
        path: of the run folder, list or table.
        label: what it calls itself (key `system` of a run, `system_id` of a list).
        digest: of a run that of its scored list and measures, as its report shows it; of a file its SHA-256.
        corpus: the tables, or files of an evaluation, that say what was searched for and where.
        point: protocol, beta, N, T, and how many queries, references and documents.
        protocol_text: the protocol in a line, `swsdist.score.measures.protocol.Protocol.describe`.
        tolerance: s, of the protocol's rule of what matches a reference; None where trials are not of time.
        detections: in its list.
        made: when a run's report was written, ISO 8601.
        versions: of swsdist and of the libraries that it was made with.
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
    """A system's DET curve: float64 (n,) each, by threshold ascending; and where its decisions, and MTWV, lie on it."""

    name: str
    threshold: NDArray[np.float64]
    pmiss: NDArray[np.float64]
    pfa: NDArray[np.float64]
    actual: CurvePoint | None = None
    maximum: CurvePoint | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """A comparison by one measure.

    Attributes:
        measure: its name.
        comparison: over queries, or over systems under conditions.
        systems, pairs: intervals over documents, in the order of the comparison's; None where they were not asked for.
        undefined: draws of documents that have no value.
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
    """All that a comparison shows.

    Attributes:
        systems: names, in order.
        blocks: by measure.
        breakdowns: of the first measure.
        settings: of intervals and tests.
        notices: what is odd.
        units: what the paired values are of: queries, or systems under conditions.
        about: what is known of each system given.
        lines: DET curves of the systems that have one, if they were asked for.
        made: when it was made, ISO 8601.
        versions: of swsdist and libraries that made it.
        entropies: min Cnxe of the systems, if it was asked for.
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
