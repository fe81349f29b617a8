"""Rank measures of each query, averaged; equal error rates; the figure of merit; areas over pairs of query and document."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.errors import UserError
from swsdist.core.types import columns
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
    trials_of,
)
from swsdist.score.measures.cnxe import measure
from swsdist.score.measures.curve import Block, CurvePoint, Means, Ranking, best_point, by_score, curve_blocks
from swsdist.score.measures.det import pooled_by_detection, pooled_maximum
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.measures.retrieval import FIGURE, RETRIEVAL, areas, equal_error_of, figure_of_merit, means, per_query
from swsdist.score.measures.twv import OPTIMUM, Counts, optimum, optimum_rows

#: N of P@N.
RANK = 10


def _retrieval(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    return per_query(aligned, n=RANK, trials=point.trials)


class Retrieval:
    """Means over the queries with references: average precision, P@N, area under ROC; precision, recall, F of decisions."""

    parts = (PartTable("retrieval", RETRIEVAL, ("query_id",), _retrieval, adds=False),)
    undefined = {
        "": "no query has a true occurrence",
        "auc": "a query has more false alarms than non-target trials, or none has a true occurrence",
        **dict.fromkeys(
            ("mean_precision", "mean_recall", "mean_f1"),
            "no query has a true occurrence, or a detection was not decided",
        ),
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without references; precision, recall and F also if a detection is not decided."""
        table = parts["retrieval"].table()
        if not table.num_rows:
            return {}
        result = means(table)
        return {
            "map": result.map,
            f"p_at_{RANK}": result.p_at_n,
            "p_at_ntrue": result.p_at_ntrue,
            "auc": result.auc,
            "mean_precision": result.precision,
            "mean_recall": result.recall,
            "mean_f1": result.f,
        }


class EqualErrors:
    """The rate at which Pmiss = Pfa: of the term-weighted curve, and of all trials pooled."""

    parts = (EVENTS, CLASSES)
    undefined = {"": "no query has a true occurrence"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without references."""
        sums = Sums.from_parts(parts, point, refless=False)
        if not sums.referenced:
            return {}
        pooled = curve_blocks(
            pooled_blocks(event_blocks(parts[EVENTS.name], refless=False), sums.true),
            sums.as_one(),
            trials=sums.referenced * point.trials,
            beta=point.beta,
        )
        return {"eer": equal_error_of(curve_of(parts, point)).rate, "pooled_eer": equal_error_of(pooled).rate}


def _figure(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    return figure_of_merit(Ranking.of(aligned), point.seconds)


class FigureOfMerit:
    """Mean detection rate from 0 to 10 false alarms a query and hour (`measures.figure_of_merit`)."""

    parts = (PartTable("figure", FIGURE, ("query_id",), _figure, adds=False),)
    undefined = {"": "no query has a true occurrence"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without references."""
        values = parts["figure"].table()["fom"].to_numpy()
        return {"fom": math.fsum(values) / len(values) if len(values) else None}


#: Per query: documents that contain it, and the area; null if the area is undefined.
PAIRS = columns("query_id string, ntrue int64, area float64?")

#: Per score of a pair, of the queries with references.
PAIR_EVENTS = pa.schema(
    [pa.field("score", pa.float64(), False), *(pa.field(name, pa.int64(), False) for name in ("hits", "false_alarms"))]
)


def _pairs(pairs: pa.Table, point: OperatingPoint) -> pa.Table:
    ranking = Ranking.of(pairs)
    false = (point.documents or 0) - ranking.ntrue
    area = areas(ranking.hits, ranking.false_alarms, ranking.false_above, ranking.query, ranking.ntrue, false)
    columns = [ranking.names, pa.array(ranking.ntrue), pa.array(area, mask=np.isnan(area))]
    return pa.Table.from_arrays(columns, schema=PAIRS)


def _pair_events(pairs: pa.Table, point: OperatingPoint) -> pa.Table:
    counts = Counts.of(pairs)
    columns = by_score(Block(counts.ntrue, counts.score, counts.hits, counts.false_alarms))
    return pa.table([pa.array(column) for column in columns], schema=PAIR_EVENTS)


class PairAreas:
    """Area under ROC over all pairs of a query with references and a document, ties counting half.

    Pairs without a detection rank below all others, as ties. `pair_auc` is the mean over the queries (queries in every
    document have no area, and are left out), `pooled_pair_auc` is over all pairs together.
    """

    parts = (
        PartTable("pairs", PAIRS, ("query_id",), _pairs, adds=False, by_document=True),
        PartTable("pair_events", PAIR_EVENTS, ("score",), _pair_events, by_document=True),
    )
    undefined = {"": "the number of documents is not known, or no pair or all pairs of query and document are true"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None if the number of documents is unknown, or all or no pairs are true."""
        queries = parts["pairs"].table()
        if point.documents is None or not queries.num_rows:
            return {}
        areas = queries["area"].drop_null().to_numpy()
        true = int(pc.sum(queries["ntrue"]).as_py())
        return {
            "pair_auc": math.fsum(areas) / len(areas) if len(areas) else None,
            "pooled_pair_auc": self._pooled(parts, true, queries.num_rows * point.documents - true),
        }

    def _pooled(self, parts: Parts, true: int, false: int) -> Value:
        """Twice the pairs won, counted from the lowest score, as integers."""
        won = true_hits = raised = 0
        for table in parts["pair_events"].blocks():
            hits, false_alarms = table["hits"].to_numpy(), table["false_alarms"].to_numpy()
            below = raised + np.cumsum(false_alarms) - false_alarms
            won += sum(
                h * (2 * b + f) for h, b, f in zip(*(c.tolist() for c in (hits, below, false_alarms)), strict=True)
            )
            true_hits, raised = true_hits + int(hits.sum()), raised + int(false_alarms.sum())
        if not true or false <= 0 or raised > false:
            return None
        # Pairs without a detection are below all hits, and tie with each other.
        missing = false - raised
        won += 2 * true_hits * missing + (true - true_hits) * missing
        return won / (2 * true * false)


class CrossEntropies:
    """Over all trials of all queries; scores are interpreted as log-likelihood ratios."""

    parts = (EVENTS, CLASSES)
    undefined = {
        "": "there is no target trial or no non-target trial",
        "cnxe_gamma": "no affine map is the best, or no cross entropy is defined",
        "cnxe_delta": "no affine map is the best, or no cross entropy is defined",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Nothing without targets or non-targets."""
        prior = point.effective_prior
        try:
            result = measure(trials_of(parts, point), prior)
        except UserError:
            return {}
        return {
            "effective_prior": prior,
            "cnxe": result.cnxe,
            "cnxe_min": result.cnxe_min,
            "cnxe_gamma": result.gamma,
            "cnxe_delta": result.delta,
            "cnxe_pav": result.cnxe_pav,
            "calibration_loss": result.loss,
        }


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
