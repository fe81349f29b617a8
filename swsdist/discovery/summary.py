"""Mean and standard deviation over folds, of the folds where all ratios of a measure are defined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from swsdist.discovery.measures.evaluating import Value


def summarised(folds: Sequence[Mapping[str, Value]], keys: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Mean, population standard deviation and number of folds, by key.

    F is that of each fold, averaged. A fold without precision or recall counts for neither.

    Args:
        folds: values of one measure.
        keys: of its ratios.
    """
    rows = [[fold[key] for key in keys] for fold in folds]
    defined = [[value for value in row if value is not None] for row in rows if None not in row]
    columns = zip(*defined, strict=True) if defined else [()] * len(keys)
    return {key: _statistics(column) for key, column in zip(keys, columns, strict=True)}


def _statistics(values: Sequence[float]) -> dict[str, Value]:
    if not values:
        return {"mean": None, "std": None, "n": 0}
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    return {"mean": mean, "std": deviation, "n": len(values)}
