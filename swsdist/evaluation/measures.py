"""All measures of a scored list by their names: what a report shows, and what is written as JSON.

Those of the term-weighted value come from the evaluation as it is. Those that take time of their own, or that suppose
something of the scores (cross entropies take them for log-likelihood ratios), are computed on demand.
"""

from __future__ import annotations

import math

from swsdist.evaluation.evaluate import Evaluation
from swsdist.score.measures.det import referenced
from swsdist.score.measures.twv import Point


def values(result: Evaluation) -> dict[str, float | None]:
    """Term-weighted values with their rates, the pooled maximum, precision, recall and F at the decisions; None if undefined.

    Precision and F are of the terms with references, as all of TWV is; the occurrence-weighted value is STDEval's, of all.
    """
    return {name: value if value is None or math.isfinite(value) else None for name, value in _values(result).items()}


def _values(result: Evaluation) -> dict[str, float | None]:
    found: dict[str, float | None] = {}

    def take(name: str, point: Point | None, *, threshold: bool = False) -> None:
        found[name] = None if point is None else point.twv
        found[f"{name}_pmiss"] = None if point is None else point.pmiss
        found[f"{name}_pfa"] = None if point is None else point.pfa
        if threshold:
            found[f"{name}_threshold"] = None if point is None else point.threshold

    best = result.optimum
    take("atwv", result.whole.actual)
    take("mtwv", result.whole.maximum, threshold=True)
    take("otwv", None if best is None else best.otwv)
    take("stwv", None if best is None else best.supremum)
    take("pooled_maximum", result.pooled_maximum, threshold=True)
    totals, counts = result.whole.totals, referenced(result.counts)
    ntrue = totals.ntrue
    if totals.ncorr is None or totals.nfa is None or not ntrue:
        return found | dict.fromkeys(("precision", "recall", "f1", "occurrence_weighted_value"))
    ncorr, nfa = int(counts.yes_hits.sum()), int(counts.yes_false_alarms.sum())
    rules = result.task.protocol
    worth = rules.value * totals.ncorr - rules.cost * totals.nfa
    return found | {
        "precision": ncorr / (ncorr + nfa) if ncorr + nfa else None,
        "recall": ncorr / ntrue,
        "f1": 2 * ncorr / (ntrue + ncorr + nfa),
        "occurrence_weighted_value": worth / (rules.value * ntrue),
    }


def more_values(result: Evaluation) -> dict[str, float | None]:
    """Ranking measures, equal error rates and cross entropies.

    Cross entropies are of all trials of all queries: what was not submitted has the least score that was (see
    `swsdist.score.measures.cnxe`); the prior is the one that beta implies. None where they are not defined.
    """
    return {name: value if value is None or math.isfinite(value) else None for name, value in _more(result).items()}


def _more(result: Evaluation) -> dict[str, float | None]:
    from swsdist.errors import UserError
    from swsdist.score.measures import retrieval
    from swsdist.score.measures.cnxe import Trials, measure, prior_of_beta
    from swsdist.score.measures.det import pooled_curve
    from swsdist.score.measures.twv import Counts

    task = result.task
    if result.whole.curve is None:
        return {}
    ranked = retrieval.means(retrieval.per_query(result.aligned, trials=task.trials))
    found: dict[str, float | None] = {
        "map": ranked.map,
        "p_at_10": ranked.p_at_n,
        "p_at_ntrue": ranked.p_at_ntrue,
        "auc": ranked.auc,
        "mean_precision": ranked.precision,
        "mean_recall": ranked.recall,
        "mean_f1": ranked.f,
        "eer": retrieval.equal_error_rate(result.whole.curve).rate,
        "pooled_eer": retrieval.equal_error_rate(
            pooled_curve(Counts.of(result.aligned), trials=task.trials, beta=task.beta)
        ).rate,
    }
    prior = prior_of_beta(task.beta)
    try:
        whole = Trials.of_aligned(result.aligned, trials=task.trials, queries=task.terms.num_rows)
        entropy = measure(whole, prior)
    except UserError:
        return found | dict.fromkeys(("cnxe", "cnxe_min", "cnxe_pav", "calibration_loss"))
    return found | {
        "effective_prior": prior,
        "cnxe": entropy.cnxe,
        "cnxe_min": entropy.cnxe_min,
        "cnxe_gamma": entropy.gamma,
        "cnxe_delta": entropy.delta,
        "cnxe_pav": entropy.cnxe_pav,
        "calibration_loss": entropy.loss,
    }
