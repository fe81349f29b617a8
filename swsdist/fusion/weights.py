"""Fuses the scores of several systems for the same detections into a log-likelihood ratio.

Linear logistic fusion of joined lists (`swsdist.fusion.fusion`)::

    llr = w_0 + sum_k w_k s_k (+ sum_k m_k [system k made no detection there])

s_k are the systems' scores, normalised by query. The weights maximise the likelihood of hits and false alarms, at the prior P
of the operating point (1 / (1 + beta)): a target trial weighs P / Ntrue and a non-target trial (1 - P) / Nnontarget of the
whole set, so the log-odds of the regression minus logit(P) are a log-likelihood ratio with threshold ln(beta). Ntrue counts
missed occurrences too, and Nnontarget all trials, though only listed detections are fitted. Without an operating point each
detection has the same weight, and the log-odds are those of the unweighted detections.

Imputation of the score of a system without a detection:

=========  ==========================================================================================================
average    the mean of the scores that the other systems gave to that detection
least      the least score of the system for any detection of the query; if it has none: average
=========  ==========================================================================================================

Alternatively the system rescores the place (`swsdist.chains.fuse.rescore`); scores still missing are imputed by `least`.

Without references nothing is fitted: the fused score is the mean of the systems' scores.

Sources: Brummer et al. 2007, "Fusion of heterogeneous speaker recognition systems in the STBU submission", section VI; Abad
et al. 2013, "On the calibration and fusion of heterogeneous spoken term detection systems" (missing scores, side information);
Tejedor et al. 2016, "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and 2014 evaluations", section
"System fusion".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.codes import fuse as codes
from swsdist.core.types import DETECTIONS
from swsdist.fusion.parts import KEY, parts_of, row_keys, sort_list, with_parts
from swsdist.kernels.coding import coded
from swsdist.kernels.regression import Fitted as Coefficients
from swsdist.kernels.regression import Labelled, linear, log_odds, maximise, prior_weights, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Floats = NDArray[np.float64]

#: Imputation of missing scores.
Missing = Literal["average", "least"]


#: Statistics of a system's scores for a query: least score, in the fused scale, and mean and standard deviation that
#: convert the system's scale to it; 0 and 1 if it is the same.
KNOWN = pa.schema(
    [pa.field("system", pa.string(), False), pa.field("query_id", pa.string(), False)]
    + [pa.field(name, pa.float64(), False) for name in ("mean", "deviation", "least")]
)

#: Score of a system at a place without a detection of its own.
RESCORED = pa.schema(
    [*(DETECTIONS.field(name) for name in KEY), pa.field("system", pa.string()), DETECTIONS.field("score")]
)


def standardise_lists(lists: Mapping[str, pa.Table], *, standardise: bool) -> tuple[dict[str, pa.Table], pa.Table]:
    """Standardise the scores of lists, and compute their statistics.

    Scores minus the mean of the query's detections in that list, over their standard deviation (q-norm, from
    the list alone). If a query's scores do not vary, or it has one detection, they become 0.

    Args:
        lists: by system: query_id, score, maybe more columns; all rows of each query, in any order.
        standardise: otherwise the scores are unchanged.

    Returns:
        The lists, and KNOWN of all of them.
    """
    scaled: dict[str, pa.Table] = {}
    rows: list[dict[str, object]] = []
    for name, table in lists.items():
        names, code = coded(table["query_id"])
        scores = table["score"].to_numpy().astype(np.float64)
        order = np.lexsort((scores, code))  # summed in ascending order, so the order of rows has no effect
        bounds = np.append(np.flatnonzero(np.diff(code[order], prepend=-1)), len(code))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            query_rows = order[begin:end]
            mean, deviation = _moments(scores[query_rows]) if standardise else (0.0, 1.0)
            if standardise:
                scores[query_rows] = (scores[query_rows] - mean) / deviation
            row = {"mean": mean, "deviation": deviation, "least": float(scores[query_rows[0]])}
            rows.append({"system": name, "query_id": names[code[query_rows[0]]], **row})
        place = table.schema.get_field_index("score")
        scaled[name] = table.set_column(place, table.schema.field(place), pa.array(scores))
    order_of = [("system", "ascending"), ("query_id", "ascending")]
    return scaled, pa.Table.from_pylist(rows, KNOWN).sort_by(order_of)


def _moments(ascending: Floats) -> tuple[float, float]:
    """Mean and standard deviation; the value itself and 1 where they do not vary."""
    if ascending[0] == ascending[-1]:
        return float(ascending[0]), 1.0
    mean = total(ascending) / len(ascending)
    centred = ascending - mean
    return mean, math.sqrt(total(centred * centred) / len(ascending)) or 1.0


def with_rescored(table: pa.Table, rescored: pa.Table) -> pa.Table:
    """Add scores of systems at places without their detections.

    Args:
        table: JOINED.
        rescored: RESCORED, in the fused scale.
    """
    if not rescored.num_rows or not table.num_rows:
        return table
    systems, scores, detected = parts_of(table)
    rows = {key: row for row, key in enumerate(row_keys(table))}
    place = [rows[key] for key in row_keys(rescored)]
    columns = [systems.index(name) for name in rescored["system"].to_pylist()]
    scores[place, columns] = rescored["score"].to_numpy()
    return with_parts(table, systems, scores, detected)


@dataclass(frozen=True)
class ImputedList:
    """A joined list without missing scores, and the number of imputed ones by rule.

    Attributes:
        table: JOINED; the score is the mean of the systems' scores; in total order.
        average, least: number of scores imputed by the rule.
    """

    table: pa.Table
    average: int
    least: int


def impute_scores(table: pa.Table, missing: Missing, statistics: pa.Table) -> ImputedList:
    """Impute the missing scores of a joined list.

    Args:
        table: JOINED, with null scores; a row has at least one score.
        missing: the rule.
        statistics: KNOWN, for the rule `least`.
    """
    if not table.num_rows:
        return ImputedList(table, 0, 0)
    systems, scores, detected = parts_of(table)
    lacking = np.isnan(scores)
    by_least = 0
    if missing == "least" and lacking.any():
        names, code = coded(table["query_id"])
        pairs = zip(statistics["system"].to_pylist(), statistics["query_id"].to_pylist(), strict=True)
        least = dict(zip(pairs, statistics["least"].to_pylist(), strict=True))
        for k, system in enumerate(systems):
            least_scores = np.array([least.get((system, name), np.nan) for name in names], np.float64)
            scores[:, k] = np.where(lacking[:, k], least_scores[code], scores[:, k])
        by_least = int(lacking.sum() - np.isnan(scores).sum())
    undetected = np.isnan(scores)
    scores = np.where(undetected, mean_of_rows(np.where(detected, scores, np.nan))[:, None], scores)
    place = table.schema.get_field_index("score")
    table = table.set_column(place, table.schema.field(place), pa.array(mean_of_rows(scores)))
    return ImputedList(sort_list(with_parts(table, systems, scores, detected)), int(undetected.sum()), by_least)


def mean_of_rows(scores: Floats) -> Floats:
    """The mean of each row's scores, summed in ascending order, so the order of systems has no effect.

    Args:
        scores: float64 (rows, systems), NaN if missing, at least one per row.
    """
    ordered = np.sort(scores, axis=1)  # NaN last
    defined = ~np.isnan(ordered)
    summed = np.zeros(len(scores))
    for column, present in zip(ordered.T, defined.T, strict=True):
        summed = summed + np.where(present, column, 0.0)
    result: Floats = summed / defined.sum(axis=1)
    return result


def label_rows(aligned: pa.Table, *, marks: bool) -> Labelled:
    """Count an aligned joined list by the systems' scores.

    Args:
        aligned: JOINED_TRIALS, all rows of its queries, in any order.
        marks: add columns for systems without a detection.
    """
    systems, columns = columns_of(aligned.filter(pc.is_valid(aligned["score"])), marks=marks)
    return Labelled.of(aligned, columns, systems=systems)


def columns_of(table: pa.Table, *, marks: bool) -> tuple[tuple[str, ...], Floats]:
    """Systems and regressors of a joined list: scores, then, optionally, 1 for missing detections.

    Raises:
        UserError: a score is missing.
    """
    systems, scores, detected = parts_of(table)
    if np.isnan(scores).any():
        row, place = (int(indices[0]) for indices in np.nonzero(np.isnan(scores)))
        raise codes.MISSING_SCORE(where=f"row {row + 1}, query {table['query_id'][row]}", system=systems[place])
    return systems, np.hstack([scores, (~detected).astype(np.float64)]) if marks else scores


@dataclass(frozen=True)
class Fusion:
    """A fitted fusion.

    Attributes:
        systems: names.
        weights: w_k, one per system.
        offset: w_0.
        marks: m_k, one per system; empty without side information.
    """

    systems: tuple[str, ...]
    weights: tuple[float, ...]
    offset: float
    marks: tuple[float, ...] = ()

    def scores(self, table: pa.Table) -> Floats:
        """The fused scores of a joined list, float64 (rows,); NaN for rows without score (misses).

        Raises:
            UserError: the list is of other systems.
        """
        result = np.full(table.num_rows, np.nan)
        there = pc.is_valid(table["score"]).to_numpy()
        if not there.any():
            return result
        systems, columns = columns_of(table.filter(pa.array(there)), marks=bool(self.marks))
        if systems != self.systems:
            raise codes.FUSION_OF_OTHER_SYSTEMS(fitted=", ".join(self.systems), systems=", ".join(systems))
        result[there] = linear(columns, Coefficients((*self.weights, *self.marks), self.offset))
        return result


def fit_fusion(parts: Iterable[Labelled], *, trials: int | None = None, prior: float | None = None) -> Fusion:
    """Maximum-likelihood weights (see `regression`), independent of the order and partition of the rows.

    Args:
        parts: labelled rows.
        trials: of each query; None, or fewer than detections: only the detections count.
        prior: effective prior of target trials; None: unweighted.

    Raises:
        UserError: no hits or no false alarms.
    """
    rows = Labelled.total(parts)
    hits, false_alarms = prior_weights(rows.hits, rows.false_alarms, None)
    shift = 0.0
    if prior is not None:
        n_true, n_false = total(hits) + rows.missed, total(false_alarms)
        if trials is not None:
            n_false = max(n_false, float(rows.queries * trials - rows.missed - int(rows.hits.sum())))
        target, other = prior / n_true, (1 - prior) / n_false
        # Total weight equals the number of detections, so the weak prior on the slopes has its usual weight.
        scale = (total(hits) + total(false_alarms)) / (total(hits) * target + total(false_alarms) * other)
        hits, false_alarms = hits * (target * scale), false_alarms * (other * scale)
        shift = log_odds(prior)
    fitted = maximise(rows.columns, hits, false_alarms)
    many = len(rows.systems)
    return Fusion(rows.systems, fitted.slopes[:many], fitted.offset - shift, fitted.slopes[many:])
