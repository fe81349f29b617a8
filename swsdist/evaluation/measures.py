"""All measures of a scored list by their names: what a report shows, and what is written as JSON.

They are the registered ones (`swsdist.registries.MEASURES`), from the same part tables as those of a run.
"""

from __future__ import annotations

from swsdist.evaluation.evaluate import Evaluation
from swsdist.registries import MEASURES
from swsdist.score.parts.evaluating import basic_measures, measure_parts, merge_tables
from swsdist.score.parts.evaluating import values as values_of_parts


def values(result: Evaluation) -> dict[str, float | None]:
    """Term-weighted values with their rates, the pooled maximum, precision, recall and F at the decisions; None if undefined.

    Precision and F are of the terms with references, as all of TWV is; the occurrence-weighted value is STDEval's, of all.
    """
    return _values(result, basic_measures())


def more_values(result: Evaluation) -> dict[str, float | None]:
    """All other measures: of ranks, equal error rates, cross entropies, areas over pairs, and what a stranger has added.

    Cross entropies are of all trials of all queries: what was not submitted has the least score that was (see
    `swsdist.score.measures.cnxe`); the prior is the one that beta implies. None where they are not defined.
    """
    basic = basic_measures()
    return _values(result, tuple(name for name in MEASURES if name not in basic))


def _values(result: Evaluation, measures: tuple[str, ...]) -> dict[str, float | None]:
    parts = merge_tables([measure_parts(result.aligned, result.point, measures)], measures)
    return values_of_parts(parts, result.point, measures)
