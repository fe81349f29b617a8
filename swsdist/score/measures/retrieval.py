"""Retrieval measures of an aligned list: precision, recall, F, P@N, average precision, EER, area under ROC, figure of
merit.

The aligned list (schema TRIALS) has, for each query, its correct detections and the number of missed occurrences;
document trials (`swsdist.score.trials`) are such a list, too. Queries without references are left out of everything, as
for TWV: their detections affect no measure here. A mean over queries counts each query once; a pooled measure counts
each detection once. Means are exactly rounded sums, so the order of rows and queries has no effect.

Equal scores are not ordered arbitrarily: a rank measure is its exact mean over all orders of equal
scores (McSherry and Najork). Trials that were not submitted rank below everything, as one group of equal scores.

Undefined cases: a query without accepted detections has precision 0 and F 0; ranks past the end of
a list are empty, so P@N always divides by N; a missed occurrence adds nothing to average precision.

Figure of merit (FOM): the mean detection rate of a query from 0 to 10 false alarms an hour, averaged over the queries
with references. With p_i the part of a query's true occurrences that score above its i-th false alarm, T hours of
audio, and N the whole part of 10 T,

    FOM = (p_1 + ... + p_N + a p_(N+1)) / (10 T)        a = 10 T - N

which is the mean of a step function. (HTK's HResults takes the whole number next to 10 T for N, and a may then be
negative.) Behind the last false alarm of a list the rate stays what it is; trials that were not submitted are never
found. Of h hits and f false alarms of one score, the j-th false alarm has h j / (f + 1) of the hits above it, the mean
over all orders.

Sources: Manning, Raghavan and Schuetze, "Introduction to information retrieval", 2008, chapter 8; McSherry and Najork,
"Computing information retrieval performance measures efficiently in the presence of tied scores", 2008; Hanley and
McNeil, "The meaning and use of the area under a receiver operating characteristic curve", 1982; figure of merit:
Rohlicek, Russell, Roukos and Gish, "Continuous hidden Markov modeling for speaker-independent word spotting", ICASSP
1989, and for the formula The HTK Book 3.4, section 17.11 (HResults).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.types import columns
from swsdist.registry.entries import MeasureEntry, Quantity
from swsdist.score.events import CLASSES, EVENTS, Parts, PartTable, Sums, Value, curve_of, event_blocks, pooled_blocks
from swsdist.score.measures.curve import Block, Counts, Curve, Ranking, by_score, curve_blocks, query_index
from swsdist.score.measures.protocol import OperatingPoint

#: Per query with references. The four columns from `accepted` on are null if a detection of the query is not decided;
#: `auc` is null if the number of trials is unknown, or less than the occurrences and false alarms.
RETRIEVAL = columns(
    "query_id string, ntrue int64, accepted int64?, precision float64?, recall float64?, f float64?, "
    "p_at_n float64, p_at_ntrue float64, average_precision float64, auc float64?"
)


def per_query(aligned: pa.Table, *, n: int = 10, trials: int | None = None) -> pa.Table:
    """Retrieval measures of each query with references, by query_id.

    Tables of disjoint sets of queries may be concatenated.

    Args:
        aligned: schema TRIALS, rows in any order, all rows of each query.
        n: of P@N.
        trials: N, trials of a query (documents, of document trials), for the area under the curve.

    Returns:
        A table of schema RETRIEVAL.

    Raises:
        UserError: n is not positive.
    """
    if n < 1:
        raise families.INVALID_VALUE.of(UserError)("P@{rank} is not defined", "give a rank of at least 1", rank=n)
    ranking = Ranking.of(aligned)
    ntrue = ranking.ntrue
    hits, false_alarms, decided = _accepted(aligned, ranking)
    accepted = hits + false_alarms
    area = None
    if trials is not None:
        area = areas(ranking.hits, ranking.false_alarms, ranking.false_above, ranking.query, ntrue, trials - ntrue)
    values = {
        "query_id": ranking.names,
        "ntrue": pa.array(ntrue),
        "accepted": pa.array(accepted, mask=~decided),
        "precision": pa.array(hits / np.maximum(accepted, 1), mask=~decided),
        "recall": pa.array(hits / ntrue, mask=~decided),
        # In counts: it needs no special case where precision and recall are 0.
        "f": pa.array(2 * hits / (ntrue + accepted), mask=~decided),
        "p_at_n": pa.array(_precision_at(ranking, np.full(len(ntrue), n))),
        "p_at_ntrue": pa.array(_precision_at(ranking, ntrue)),
        "average_precision": pa.array(_average_precision(ranking)),
        "auc": pa.nulls(len(ntrue), pa.float64()) if area is None else pa.array(area, mask=np.isnan(area)),
    }
    return pa.table(values, schema=RETRIEVAL)


#: Columns of RETRIEVAL whose means are values.
_MEANS = {
    "map": "average_precision",
    "p_at_10": "p_at_n",
    "p_at_ntrue": "p_at_ntrue",
    "auc": "auc",
    "mean_precision": "precision",
    "mean_recall": "recall",
    "mean_f1": "f",
}


def means(queries: pa.Table) -> dict[str, Value]:
    """Means over the queries of a table from `per_query`; None where a query has no value, empty without queries."""
    if not queries.num_rows:
        return {}
    columns = {key: queries[name] for key, name in _MEANS.items()}
    return {
        key: None if values.null_count else math.fsum(values.to_numpy()) / len(values)
        for key, values in columns.items()
    }


def equal_error_of(pieces: Iterable[Curve]) -> float:
    """The rate at which Pmiss = Pfa, on straight lines between neighbouring points of the curve.

    Args:
        pieces: of the curve, thresholds ascending. Below its lowest threshold it goes on in a straight line to Pmiss = 0,
            Pfa = 1, where all trials are accepted: what was not submitted is one group of equal scores, and a group's trials
            are accepted in proportion.
    """
    before_miss, before_false = 0.0, 1.0
    end = Curve(np.array([math.nan]), np.array([1.0]), np.array([0.0]), np.array([0.0]))
    for piece in itertools.chain(pieces, [end]):
        crossed = np.flatnonzero(piece.pmiss >= piece.pfa)
        if not len(crossed):
            before_miss, before_false = float(piece.pmiss[-1]), float(piece.pfa[-1])
            continue
        at = int(crossed[0])
        if at:
            before_miss, before_false = float(piece.pmiss[at - 1]), float(piece.pfa[at - 1])
        pmiss, pfa = float(piece.pmiss[at]), float(piece.pfa[at])
        before, after = before_false - before_miss, pmiss - pfa
        return before_miss + before / (before + after) * (pmiss - before_miss)
    raise AssertionError  # the last piece crosses


def _accepted(aligned: pa.Table, ranking: Ranking) -> tuple[Ints, Ints, Bools]:
    """Hits and false alarms accepted of each ranked query, and whether they are known."""
    names, index = query_index(aligned)
    used = pc.is_in(names, value_set=ranking.names).to_numpy(zero_copy_only=False)
    detected, true = pc.is_valid(aligned["score"]).to_numpy(), pc.is_valid(aligned["ref_start"]).to_numpy()
    decision = pc.fill_null(aligned["decision"].cast(pa.int8()), -1).to_numpy()

    def count(chosen: Bools) -> Ints:
        counted: Ints = np.bincount(index[detected & chosen], minlength=len(names))[used]
        return counted

    return count((decision == 1) & true), count((decision == 1) & ~true), count(decision < 0) == 0


def _precision_at(ranking: Ranking, n: Ints) -> Floats:
    """Mean of P@n over the orders of equal scores; `n` per query."""
    size = ranking.hits + ranking.false_alarms
    places = np.clip(n[ranking.query] - ranking.hits_above - ranking.false_above, 0, size)
    # All hits of a group count, except in the group that contains rank n.
    return np.bincount(ranking.query, weights=ranking.hits * places / size, minlength=len(n)) / n


def _average_precision(ranking: Ranking) -> Floats:
    """Mean of average precision over the orders of equal scores (McSherry and Najork 2008, section 2.5)."""
    some = np.flatnonzero(ranking.hits)
    hits, size = ranking.hits[some], (ranking.hits + ranking.false_alarms)[some]
    above = (ranking.hits_above + ranking.false_above)[some]
    row = np.repeat(np.arange(len(some)), size)
    place = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)  # within the group, from 0
    others = place * (hits - 1)[row] / np.maximum(size - 1, 1)[row]
    precision = (ranking.hits_above[some][row] + others + 1) / (above[row] + place + 1)
    gain = (hits / size)[row] * precision
    return np.bincount(ranking.query[some][row], weights=gain, minlength=len(ranking.ntrue)) / ranking.ntrue


def areas(hits: Ints, false_alarms: Ints, false_above: Ints, query: Ints, true: Ints, false: Ints) -> Floats:
    """Area under ROC of each query, float64 (Q,); NaN if more non-targets were submitted than there are, or none exist.

    Args:
        hits, false_alarms, false_above, query: int64 (G,), of each group of equal score, as in `Ranking`.
        true, false: int64 (Q,), targets and non-targets of each query, submitted or not.
    """
    queries = len(true)
    true_hits, raised = _summed(hits, query, queries), _summed(false_alarms, query, queries)
    # Twice the pairs won: a tie counts half. Trials that were not submitted tie with each other.
    won = _summed(hits * (2 * (false[query] - false_above) - false_alarms), query, queries)
    won = won + (true - true_hits) * (false - raised)
    area: Floats = np.where((false > 0) & (raised <= false), won / np.maximum(2 * true * false, 1), np.nan)
    return area


def _summed(values: Ints, index: Ints, size: int) -> Ints:
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, index, values)
    return sums


#: Maximum false alarms per hour of the average.
FALSE_ALARMS_PER_HOUR = 10

FIGURE = columns("query_id string, fom float64")


def figure_of_merit(ranking: Ranking, seconds: float) -> pa.Table:
    """The figure of merit of each query with references.

    Args:
        ranking: of an aligned list.
        seconds: T, s of audio.

    Returns:
        A table of schema FIGURE, by query_id; values in [0, 1].

    Raises:
        UserError: there is no audio.
    """
    if not 0 < seconds < math.inf:
        raise codes.VALUE_NOT_POSITIVE(name="seconds of audio", value=seconds)
    span = FALSE_ALARMS_PER_HOUR * seconds / 3600
    whole_hours = math.floor(span)
    size = len(ranking.ntrue)
    # One row for each of the first false alarms.
    many = np.clip(whole_hours + 1 - ranking.false_above, 0, ranking.false_alarms)
    row = np.repeat(np.arange(len(many)), many)
    order = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many) + 1
    above = ranking.hits_above[row] + ranking.hits[row] * order / (ranking.false_alarms[row] + 1)
    place = ranking.false_above[row] + order
    weight = np.where(place <= whole_hours, 1.0, span - whole_hours)
    query = ranking.query[row]
    # Whole hits and parts of hits are added in the order of the ranking, one query after the other.
    sums = np.bincount(query, weights=weight * above, minlength=size)
    hits = np.bincount(ranking.query, weights=ranking.hits, minlength=size)
    totals = np.bincount(query, minlength=size)
    # Behind the last false alarm; of the part of a place there is one, the last.
    rest = np.where(totals <= whole_hours, (whole_hours - np.minimum(totals, whole_hours)) + (span - whole_hours), 0.0)
    values: Floats = (sums + rest * hits) / (span * ranking.ntrue)
    return pa.Table.from_arrays([ranking.names, pa.array(values)], schema=FIGURE)


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
        """Values by key; None without references; precision, recall and F also if a detection is not decided."""
        return means(parts["retrieval"].table())


class EqualErrors:
    """The rate at which Pmiss = Pfa: of the term-weighted curve, and of all trials pooled."""

    parts = (EVENTS, CLASSES)
    undefined = {"": "no query has a true occurrence"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by key; None without references."""
        sums = Sums.from_parts(parts, point, refless=False)
        if not sums.referenced:
            return {}
        pooled = curve_blocks(
            pooled_blocks(event_blocks(parts[EVENTS.name], refless=False), sums.true),
            sums.as_one(),
            trials=sums.referenced * point.trials,
            beta=point.beta,
        )
        return {"eer": equal_error_of(curve_of(parts, point)), "pooled_eer": equal_error_of(pooled)}


def _figure(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    return figure_of_merit(Ranking.of(aligned), point.seconds)


class FigureOfMerit:
    """Mean detection rate from 0 to 10 false alarms per query and hour."""

    parts = (PartTable("figure", FIGURE, ("query_id",), _figure, adds=False),)
    undefined = {"": "no query has a true occurrence"}

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by key; None without references."""
        values = parts["figure"].table()["fom"].to_numpy()
        return {"fom": math.fsum(values) / len(values) if len(values) else None}


#: Per query: documents that contain it, and the area; null if the area is undefined.
PAIRS = columns("query_id string, ntrue int64, area float64?")


#: Per score of a pair, of the queries with references.
PAIR_EVENTS = columns("score float64, hits int64, false_alarms int64")


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
        """Values by key; None if the number of documents is unknown, or all or no pairs are true."""
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


RETRIEVAL_MEANS = MeasureEntry(
    f"{__name__}:Retrieval",
    1,
    (
        Quantity("map", "MAP"),
        Quantity("p_at_10", "P@10"),
        Quantity("p_at_ntrue", "R-precision"),
        Quantity("auc", "AUC"),
        Quantity("mean_precision"),
        Quantity("mean_recall"),
        Quantity("mean_f1", "mean F1"),
    ),
)
EQUAL_ERRORS = MeasureEntry(
    f"{__name__}:EqualErrors",
    1,
    tuple(Quantity(*names, "lowest", unit="probability") for names in (("eer", "EER"), ("pooled_eer", "pooled EER"))),
)
FIGURE_OF_MERIT = MeasureEntry(f"{__name__}:FigureOfMerit", 1, (Quantity("fom", "FOM"),))
PAIR_AREAS = MeasureEntry(
    f"{__name__}:PairAreas",
    1,
    (Quantity("pair_auc", "pair AUC"), Quantity("pooled_pair_auc", "pooled pair AUC")),
    takes="pairs",
)
