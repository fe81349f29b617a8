"""What a comparison of systems comes to, as plain values: of each measure, over documents where asked, and broken down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import pyarrow as pa

from swsdist.score.compare.bootstrap import Interval, Method
from swsdist.score.compare.paired import Comparison
from swsdist.score.compare.significance import Zeros


class Options(TypedDict):
    """Keywords of `swsdist.score.compare.paired.compare`."""

    level: float
    resamples: int
    seed: int
    method: Method
    zero_method: Zeros


@dataclass(frozen=True)
class Settings:
    """How intervals and tests are made; defaults as of `swsdist.score.compare.paired`."""

    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0
    method: Method = "percentile"
    zero_method: Zeros = "wilcox"

    def options(self) -> Options:
        """As keywords of `swsdist.score.compare.paired.compare`."""
        return {
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "method": self.method,
            "zero_method": self.zero_method,
        }


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


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """All that a comparison shows. `units` says what the paired values are of: queries, or systems under conditions."""

    systems: tuple[str, ...]
    blocks: tuple[Measured, ...]
    breakdowns: tuple[BreakdownTable, ...]
    settings: Settings
    notices: tuple[str, ...] = ()
    units: str = "queries"
