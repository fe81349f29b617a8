"""Mode `tdev2`: F as the program has it."""

from __future__ import annotations

from swsdist.discovery.ratios import Value, f_score

#: Values of a measure by key, and names of exceptions.
Measure = dict[str, Value | str]


def with_f(precision: float | None, recall: float | None) -> Measure:
    """Precision, recall and F; where both are 0 the program divides by 0."""
    fails = precision == 0 and recall == 0
    return f_or_error(precision, recall, "ZeroDivisionError" if fails else None)


def f_or_error(precision: float | None, recall: float | None, error: str | None) -> Measure:
    """Precision, recall and F; None for F if the program raises an error there, which is named."""
    f = f_score(precision, recall) if error is None else None
    return {"precision": precision, "recall": recall, "fscore": f, "tool_fscore_error": error}
