"""Rank measures of each query, averaged; equal error rates; the figure of merit; areas over pairs of query and document."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.errors import UserError
from swsdist.score.measures.cnxe import measure
from swsdist.score.measures.curve import Block, Ranking, by_score, curve_blocks
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.measures.retrieval import FIGURE, RETRIEVAL, areas, equal_error_of, figure_of_merit, means, per_query
from swsdist.score.measures.twv import Counts
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
PAIRS = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("ntrue", pa.int64(), False),
        pa.field("area", pa.float64()),
    ]
)

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
