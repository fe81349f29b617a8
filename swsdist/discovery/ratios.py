"""Precision, recall and F of counts; None where a value is not defined, never NaN and never 0 in its place."""

from __future__ import annotations

from collections.abc import Mapping

#: A value of a result: counts are integers, ratios floats, None is undefined.
Value = int | float | None


def ratio(part: int | float, total: int) -> float | None:
    """Part of a total; None of nothing."""
    return part / total if total else None


def f_score(precision: float | None, recall: float | None) -> float | None:
    """``2 P R / (P + R)``; 0 if both are 0, None if one is None."""
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def of_counts(hit: int, disc: int, gold: int) -> Mapping[str, Value]:
    """Counts, and the ratios of them, by the keys of results."""
    precision, recall = ratio(hit, disc), ratio(hit, gold)
    counts = {"n_hit": hit, "n_disc": disc, "n_gold": gold}
    return {**counts, "precision": precision, "recall": recall, "fscore": f_score(precision, recall)}
