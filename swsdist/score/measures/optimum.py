"""TWV with the best threshold of each query (OTWV), and without false alarms (STWV).

Optimum term-weighted value (KWSEval's "Optimum"): each query is decided at its best threshold among those of the whole
list's curve. These reject all detections of a query only if a detection of another query scores higher.
Supremum ("Supremum"): all paired detections are accepted and nothing else, STWV = 1 - mean(unpaired references / Ntrue).

One row per query has its best point for both cases (`OPTIMUM`), so rows of parts are concatenated; which case applies is known
once all queries are present.

Source: F4DE 3.5, KWSEval; NIST, OpenKWS14 evaluation plan, appendix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.score.measures.curve import TIE, CurvePoint, nontargets
from swsdist.score.measures.curve import Ranking

Floats = NDArray[np.float64]
#: Per query with references: its highest score, null without detections; its best point where it cannot reject everything, and
#: where it can (`or_none_`).
OPTIMUM = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("ntrue", pa.int64(), False),
        pa.field("paired", pa.int64(), False),
        pa.field("highest", pa.float64()),
        *(
            pa.field(f"{case}{name}", pa.float64(), False)
            for case in ("", "or_none_")
            for name in ("pmiss", "pfa", "twv")
        ),
    ]
)


@dataclass(frozen=True, eq=False)
class Optimum:
    """Each query with references at its best, by query id.

    Attributes:
        names: (Q,) query ids.
        pmiss, pfa, twv: float64 (Q,), there.
        stwv: float64 (Q,), each query's supremum.
        otwv: mean over the queries, the value formed of the mean rates; not numbers where there is no query.
        supremum: the mean supremum, with its mean Pmiss.
    """

    names: pa.Array
    pmiss: Floats
    pfa: Floats
    twv: Floats
    stwv: Floats
    otwv: CurvePoint
    supremum: CurvePoint


def optimum_rows(ranking: Ranking, *, trials: int, beta: float) -> pa.Table:
    """The best points of each query; tables of disjoint sets of queries may be concatenated.

    Args:
        ranking: of an aligned list.
        trials: N.
        beta: weight of false alarms.

    Returns:
        A table of schema OPTIMUM, by query_id.

    Raises:
        UserError: N = Ntrue for a query.
    """
    size = len(ranking.ntrue)
    left = nontargets(ranking.ntrue, trials) if size else ranking.ntrue
    query = ranking.query
    hits = ranking.hits_above + ranking.hits
    pmiss = (ranking.ntrue[query] - hits) / ranking.ntrue[query]
    pfa = (ranking.false_above + ranking.false_alarms) / left[query]
    value = 1 - (pmiss + beta * pfa)
    highest = np.full(size, -math.inf)
    np.maximum.at(highest, query, ranking.score)
    detected = np.isfinite(highest)
    columns: list[Floats] = []
    for start in (np.where(detected, -math.inf, 0.0), np.zeros(size)):
        top = start.copy()
        np.maximum.at(top, query, value)
        # Scores descend within a query, so the last assignment is the lowest of equally good thresholds.
        chosen = np.flatnonzero(value >= top[query] - TIE)
        best = (np.ones(size), np.zeros(size), start)
        for target, source in zip(best, (pmiss, pfa, value), strict=True):
            target[query[chosen]] = source[chosen]
        columns += best
    paired = np.zeros(size, dtype=np.int64)
    np.add.at(paired, query, ranking.hits)
    named = (ranking.names, pa.array(ranking.ntrue), pa.array(paired), pa.array(highest, mask=~detected))
    return pa.Table.from_arrays([*named, *(pa.array(column) for column in columns)], schema=OPTIMUM)


def optimum(rows: pa.Table, *, beta: float) -> Optimum:
    """OTWV and STWV.

    Args:
        rows: schema OPTIMUM, all queries, by query_id.
        beta: weight of false alarms.
    """
    size = rows.num_rows
    highest = rows["highest"].fill_null(-math.inf).to_numpy()
    # Another query scores higher, so a threshold rejects all of these.
    rejecting = highest < highest.max(initial=-math.inf)
    pmiss, pfa, twv = (
        np.where(rejecting, rows[f"or_none_{name}"].to_numpy(), rows[name].to_numpy())
        for name in ("pmiss", "pfa", "twv")
    )
    ntrue, paired = rows["ntrue"].to_numpy(), rows["paired"].to_numpy()
    missed = (ntrue - paired) / ntrue
    otwv = supremum = CurvePoint(math.nan, math.nan, math.nan, None)
    if size:
        mean_pmiss, mean_pfa, mean_missed = (math.fsum(values) / size for values in (pmiss, pfa, missed))
        otwv = CurvePoint(1 - (mean_pmiss + beta * mean_pfa), mean_pmiss, mean_pfa, None)
        supremum = CurvePoint(1 - mean_missed, mean_missed, 0.0, None)
    return Optimum(rows["query_id"].combine_chunks(), pmiss, pfa, twv, 1 - missed, otwv, supremum)
