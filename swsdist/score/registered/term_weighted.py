"""ATWV and MTWV with their rates and the threshold, and the optimum and supremum: OTWV, STWV."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from swsdist.score.measures.curve import CurvePoint, Means, Ranking, best_point, curve_blocks
from swsdist.score.measures.det import pooled_by_detection, pooled_maximum
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.measures.twv import OPTIMUM, optimum, optimum_rows
from swsdist.score.events import (
    CLASSES,
    EVENTS,
    Parts,
    PartTable,
    Sums,
    Value,
    curve_of,
    event_blocks,
    pooled_blocks,
)


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


class PooledMaximum:
    """The maximum of the pooled curve, the occurrence-weighted value at the best threshold, by the program's conventions
    (option -P)."""

    parts = (EVENTS, CLASSES)
    undefined = {
        "": "no query has a true occurrence",
        "pooled_maximum_pfa": "the false alarms of all queries exceed the trials of one",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without references; also if Pfa is not a probability."""
        sums = Sums.from_parts(parts, point, refless=True)
        if not sums.referenced:
            return {}
        pooled, by_detection = sums.as_one(), point.rules.pooled_by_detection
        blocks = pooled_blocks(event_blocks(parts[EVENTS.name], refless=True), sums.true)
        if by_detection:
            pieces = pooled_by_detection(
                blocks,
                true=sums.true,
                hits=int(pooled.hits[0]),
                false_alarms=int(pooled.false_alarms[0]),
                trials=point.trials,
                ratio=point.cost / point.value,
            )
        else:
            pieces = curve_blocks(blocks, pooled, trials=point.trials, beta=point.beta, reject_all=False)
        result = point_values("pooled_maximum", pooled_maximum(pieces, by_detection=by_detection), threshold=True)
        pfa = result.get("pooled_maximum_pfa")
        return result if pfa is None or 0 <= pfa <= 1 else {**result, "pooled_maximum_pfa": None}


class Decisions:
    """Precision, recall and F over the queries with references; the occurrence-weighted value over all that are counted."""

    parts = (CLASSES,)
    undefined = {
        "": "no query has a true occurrence, or a detection was not decided",
        "precision": "nothing was accepted, or a detection was not decided",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without references, or if a detection is not decided; precision also without accepted detections."""
        sums = Sums.from_parts(parts, point, refless=point.rules.all_terms or point.include_refless)
        true = sums.true
        if not true or sums.undecided.any():
            return {}
        referenced = sums.ntrue > 0
        correct, wrong = int(sums.yes_hits[referenced].sum()), int(sums.yes_false_alarms[referenced].sum())
        worth = point.value * int(sums.yes_hits.sum()) - point.cost * int(sums.yes_false_alarms.sum())
        return {
            "precision": correct / (correct + wrong) if correct + wrong else None,
            "recall": correct / true,
            "f1": 2 * correct / (true + correct + wrong),
            "occurrence_weighted_value": worth / (point.value * true),
        }
