"""Pooled measures: the occurrence-weighted maximum; precision, recall and F of the decisions; the programs' "Value"."""

from __future__ import annotations

from collections.abc import Mapping

from swsdist.score.measures.curve import curve_blocks
from swsdist.score.measures.det import pooled_by_detection, pooled_maximum
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.events import CLASSES, EVENTS, Sums, event_blocks, pooled_blocks
from swsdist.score.parts.interface import Parts, Value
from swsdist.score.registered.term_weighted import point_values


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
