"""What a list could reach with a threshold of its own for each query: OTWV; and with no false alarm at all: STWV.

Optimum term-weighted value (KWSEval's "Optimum"): each query is taken at its best threshold among those of the whole
list's curve. To reject all of a query's detections is among them only if a detection of another query scores higher.
Supremum ("Supremum"): all paired detections are accepted and nothing else, STWV = 1 - mean(unpaired references / Ntrue).

Source: F4DE 3.5, KWSEval; NIST, OpenKWS14 evaluation plan, appendix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.score.measures.ranking import Ranking
from swsdist.score.measures.twv import TIE, Point, _nontargets

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Optimum:
    """Each query with references at its best, by query id.

    Attributes:
        names: (Q,) query ids.
        threshold: float64 (Q,), NaN where the query has no detection and none may be rejected.
        pmiss, pfa, twv: float64 (Q,), there.
        stwv: float64 (Q,), each query's supremum.
        otwv: mean over the queries, the value formed of the mean rates.
        supremum: the mean supremum, with its mean Pmiss.
    """

    names: pa.Array
    threshold: Floats
    pmiss: Floats
    pfa: Floats
    twv: Floats
    stwv: Floats
    otwv: Point
    supremum: Point


def optimum(ranking: Ranking, *, trials: int, beta: float) -> Optimum:
    """OTWV and STWV.

    Args:
        ranking: of the aligned list.
        trials: N.
        beta: weight of false alarms.

    Raises:
        UserError: N = Ntrue for a query.
    """
    size = len(ranking.ntrue)
    left = _nontargets(ranking.ntrue, trials) if size else ranking.ntrue
    query = ranking.query
    hits = ranking.hits_above + ranking.hits
    pmiss = (ranking.ntrue[query] - hits) / ranking.ntrue[query]
    pfa = (ranking.false_above + ranking.false_alarms) / left[query]
    value = 1 - (pmiss + beta * pfa)

    scores = np.unique(ranking.score)
    highest = np.full(size, -math.inf)
    np.maximum.at(highest, query, ranking.score)
    above = np.searchsorted(scores, highest, side="right")
    rejecting = above < len(scores)  # somebody else scores higher, so there is a threshold that rejects all of these
    best = Optimum(
        ranking.names,
        np.where(rejecting, np.append(scores, math.nan)[above], math.nan),
        np.ones(size),
        np.zeros(size),
        np.where(rejecting | ~np.isfinite(highest), 0.0, -math.inf),
        np.zeros(size),
        Point(math.nan, math.nan, math.nan, None),
        Point(math.nan, math.nan, math.nan, None),
    )
    top = best.twv.copy()
    np.maximum.at(top, query, value)
    # Scores descend within a query, so what is written last is the lowest of equally good thresholds.
    chosen = np.flatnonzero(value >= top[query] - TIE)
    for target, source in ((best.threshold, ranking.score), (best.pmiss, pmiss), (best.pfa, pfa), (best.twv, value)):
        target[query[chosen]] = source[chosen]
    paired = np.bincount(query, weights=ranking.hits, minlength=size)
    best.stwv[:] = 1 - (ranking.ntrue - paired) / ranking.ntrue
    if not size:
        return best
    mean_pmiss, mean_pfa = math.fsum(best.pmiss) / size, math.fsum(best.pfa) / size
    missed = math.fsum((ranking.ntrue - paired) / ranking.ntrue) / size
    return Optimum(
        best.names,
        best.threshold,
        best.pmiss,
        best.pfa,
        best.twv,
        best.stwv,
        Point(1 - (mean_pmiss + beta * mean_pfa), mean_pmiss, mean_pfa, None),
        Point(1 - missed, missed, 0.0, None),
    )
