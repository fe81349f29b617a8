"""ATWV and MTWV with their rates and the threshold, and the optimum and supremum: OTWV, STWV."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from swsdist.score.measures.curve import CurvePoint, Means, best_point
from swsdist.score.measures.twv import OPTIMUM, optimum, optimum_rows
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.measures.curve import Ranking
from swsdist.score.parts.events import CLASSES, EVENTS, Sums, curve_of
from swsdist.score.parts.interface import Parts, PartTable, Value


def point_values(name: str, point: CurvePoint | None, *, threshold: bool = False) -> dict[str, Value]:
    """A value with its rates, and its threshold if it has one."""
    if point is None:
        return {}
    result: dict[str, Value] = {name: point.twv, f"{name}_pmiss": point.pmiss, f"{name}_pfa": point.pfa}
    return result | ({f"{name}_threshold": point.threshold} if threshold else {})


def point_in(values: Mapping[str, Value], name: str) -> CurvePoint | None:
    """The point that `point_values` describes, if it is defined."""
    twv, pmiss, pfa = (values.get(f"{name}{end}") for end in ("", "_pmiss", "_pfa"))
    if twv is None or pmiss is None or pfa is None:
        return None
    return CurvePoint(twv, pmiss, pfa, values.get(f"{name}_threshold"))


class TermWeighted:
    """At the decisions (ATWV) and at the threshold of the maximum (MTWV); the rules are in `measures.twv`."""

    parts = (EVENTS, CLASSES)
    undefined = {
        "": "no query has a true occurrence",
        "atwv": "no query has a true occurrence, or a detection was not decided",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without references; the actual value also if a detection is not decided."""
        sums = Sums.from_parts(parts, point, refless=point.include_refless)
        if not sums.referenced:
            return {}
        actual: CurvePoint | None = None
        if not sums.undecided.any():
            means = Means.of(sums.ntrue, sums.terms, trials=point.trials)
            actual = means.point(sums.yes_hits, sums.yes_false_alarms, point.beta)
        greatest = best_point(curve_of(parts, point)).point
        return point_values("atwv", actual) | point_values("mtwv", greatest, threshold=True)


def _optimum(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    return optimum_rows(Ranking.of(aligned), trials=point.trials, beta=point.beta)


class OptimumAndSupremum:
    """OTWV and STWV (`measures.optimum`)."""

    parts = (PartTable("optimum", OPTIMUM, ("query_id",), _optimum, adds=False),)
    undefined = {"": "no query has a true occurrence"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without references."""
        result = optimum(parts["optimum"].table(), beta=point.beta)
        return point_values("otwv", result.otwv) | point_values("stwv", result.supremum)
