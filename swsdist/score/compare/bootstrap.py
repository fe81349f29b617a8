"""Bootstrap intervals of mean term values, resampled over terms or over documents, for several systems at once.

Two units:

- **over terms**: variation over queries for the same speech. Q queries are drawn with replacement from the
  Q with references; the estimator is the mean of their values, ATWV* = sum_q m_q TWV(q) / Q, with m_q the times q was
  drawn.
- **over documents**: variation over recordings for the same queries. D documents are drawn with
  replacement; d is drawn w_d times. All counts change with them, as does the mean:

      Ntrue*(q) = sum_d w_d Ntrue(q, d)        misses and false alarms alike
      N* = rint(trials per second x sum_d w_d seconds(d))
      ATWV* = mean over q with Ntrue*(q) > 0 of 1 - misses*(q) / Ntrue*(q) - beta FA*(q) / (N* - Ntrue*(q))

  A query without a reference among the documents drawn is left out of that mean, as TWV leaves it out. A draw in which
  no query has one, or a query has no non-target left, has no value; such draws are counted and left out. beta and the
  decisions are unchanged. A document is a recording with all its channels.

  The estimator is biased if rare terms are better or worse than frequent ones, because a term with one reference is
  left out of a third of the draws: BCa corrects for that, percentiles do not.

All systems use the same draws, so the interval of a difference is that of paired values. Intervals are percentiles of
the draws, or BCa (bias corrected and accelerated, acceleration from the jackknife over the same unit); where BCa is not
defined, because all draws lie on one side of the value observed, the percentiles are given and named as such.

Draws come from numpy's PCG64 with the given seed, and do not depend on the size of the pieces that they are computed
in. Counts are integers (in float64, exact), and sums over queries run in the order of their ids, so intervals have the
same bytes everywhere.

Sources: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapters 13 and 14; Bisani and Ney, "Bootstrap
estimates for confidence intervals in ASR performance evaluation", ICASSP 2004.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError

Method = Literal["percentile", "bca"]

#: Weights (8 bytes each) in memory at once.
_CELLS = 1 << 20


class Interval(NamedTuple):
    """A confidence interval from `low` to `high` at `level`."""

    low: float
    high: float
    level: float
    method: Method


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Values of S systems in the same B draws.

    Attributes:
        observed: float64 (S,), observed values.
        replicates: float64 (S, B), the estimator on each draw that has a value.
        jackknife: float64 (S, n), the estimator with each unit left out.
        undefined: number of draws without a value, which are not in `replicates`.
    """

    observed: Floats
    replicates: Floats
    jackknife: Floats
    undefined: int = 0

    def interval(
        self, system: int, other: int | None = None, *, level: float = 0.95, method: Method = "percentile"
    ) -> Interval:
        """Interval of a system's value, or of its difference to another's.

        Args:
            system: index.
            other: index of the system whose value is subtracted, if any.
            level: of confidence, between 0 and 1.
            method: `percentile` or `bca`.

        Raises:
            UserError: the level is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise families.INVALID_VALUE.of(UserError)(
                "the confidence level {level} is not between 0 and 1",
                "give one between 0 and 1, such as 0.95",
                level=level,
            )
        observed, draws, left = (
            values[system] if other is None else values[system] - values[other]
            for values in (self.observed, self.replicates, self.jackknife)
        )
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        corrected = _bca(float(observed), draws, left, tails) if method == "bca" else None
        low, high = np.quantile(draws, tails if corrected is None else corrected)
        return Interval(float(low), float(high), level, "percentile" if corrected is None else "bca")


def bootstrap_terms(values: Floats, *, resamples: int = 10_000, seed: int = 0) -> Bootstrap:
    """Resample terms.

    Args:
        values: float64 (S, Q), value of each system for each query with references; Q at least 1.
        resamples: draws.
        seed: of the generator.

    Raises:
        UserError: there is no query, or no draw is asked for.
    """
    systems, queries = values.shape
    _check(queries, "query with references", resamples)
    sums = np.array([math.fsum(row) for row in values])
    pieces = []
    for weights in draws_of(queries, resamples, seed):
        total = np.zeros((systems, weights.shape[1]))
        for value, times in zip(values.T, weights, strict=True):
            total += value[:, None] * times
        pieces.append(total / queries)
    left = (sums[:, None] - values) / (queries - 1) if queries > 1 else np.empty((systems, 0))
    return Bootstrap(sums / queries, np.concatenate(pieces, axis=1), left)


@dataclass(frozen=True, eq=False)
class DocumentCounts:
    """Counts of one system by query and document, where there are any.

    Attributes:
        documents: ids of the D documents, ascending.
        microseconds: int64 (D,), searched time of each document, as trials are counted.
        queries: ids of the Q queries with references, ascending.
        begin: int64 (Q + 1,), rows of query q are begin[q] to begin[q + 1].
        document: int64 (E,), index of the document.
        counts: float64 (3, E), integer values: true occurrences, hits decided YES, false alarms decided YES.
    """

    documents: tuple[str, ...]
    microseconds: Ints
    queries: tuple[str, ...]
    begin: Ints
    document: Ints
    counts: Floats

    @classmethod
    def of(cls, aligned: pa.Table, documents: pa.Table) -> DocumentCounts:
        """Count an aligned list.

        Args:
            aligned: schema TRIALS with all detections decided; all rows of each query.
            documents: `doc_id` and `seconds` (s that were searched, as trials are counted); rows of one document add.

        Raises:
            UserError: a detection of a query with references is not decided.
            DataError: the list has a document that is not in `documents`.
        """
        summed = documents.group_by("doc_id").aggregate([("seconds", "sum")]).sort_by("doc_id")
        names = summed["doc_id"].combine_chunks()
        true = pc.is_valid(aligned["ref_start"])
        kept = pc.is_in(aligned["query_id"], value_set=aligned.filter(true)["query_id"].combine_chunks().unique())
        rows = aligned.filter(kept).sort_by([("query_id", "ascending"), ("doc_id", "ascending")])
        detected = pc.is_valid(rows["score"]).to_numpy()
        undecided = detected & pc.is_null(rows["decision"]).to_numpy()
        if undecided.any():
            raise codes.UNDECIDED_DETECTIONS(count=int(undecided.sum()))
        document = pc.index_in(rows["doc_id"], value_set=names)
        if document.null_count:
            stranger = rows["doc_id"][pc.index(pc.is_null(document), True).as_py()]
            raise codes.UNSEARCHED_DOCUMENT(doc_id=str(stranger))
        true = pc.is_valid(rows["ref_start"]).to_numpy()
        yes = pc.fill_null(rows["decision"], False).to_numpy() & detected
        events = np.stack([true, yes & true, yes & ~true]).astype(np.int64)
        query = rows["query_id"].combine_chunks().dictionary_encode()
        code, where = query.indices.to_numpy().astype(np.int64), document.to_numpy().astype(np.int64)
        first = np.flatnonzero((np.diff(code, prepend=-1) != 0) | (np.diff(where, prepend=-1) != 0))
        sums = np.add.reduceat(events, first, axis=1) if len(first) else events
        # Rows are sorted by query, so a dictionary's codes ascend with them.
        begin = np.searchsorted(code[first], np.arange(len(query.dictionary) + 1))
        seconds = summed["seconds_sum"].to_numpy()
        microseconds = np.rint(seconds * 1e6).astype(np.int64)
        queries = tuple(query.dictionary.to_pylist())
        return cls(tuple(names.to_pylist()), microseconds, queries, begin, where[first], sums.astype(np.float64))

    @classmethod
    def concat(cls, parts: Sequence[DocumentCounts]) -> DocumentCounts:
        """Combine the counts of disjoint sets of queries over the same documents.

        Raises:
            UserError: there is no part, or a query is in two.
        """
        owner = sorted((query, k, q) for k, part in enumerate(parts) for q, query in enumerate(part.queries))
        queries = tuple(query for query, _, _ in owner)
        if not parts or len(set(queries)) < len(queries):
            raise families.CONFLICTING_ROWS.of(UserError)(
                "the list has no parts, or a query is in two of them", "put all detections of a query in one part"
            )
        slices = [slice(parts[k].begin[q], parts[k].begin[q + 1]) for _, k, q in owner]
        document = [parts[k].document[rows] for (_, k, _), rows in zip(owner, slices, strict=True)]
        counts = [parts[k].counts[:, rows] for (_, k, _), rows in zip(owner, slices, strict=True)]
        return cls(
            parts[0].documents,
            parts[0].microseconds,
            queries,
            np.cumsum([0, *(len(item) for item in document)]),
            np.concatenate([np.zeros(0, dtype=np.int64), *document]),
            np.concatenate([np.zeros((3, 0)), *counts], axis=1),
        )


def bootstrap_documents(
    systems: Sequence[DocumentCounts],
    *,
    beta: float,
    trials_per_second: float = 1.0,
    resamples: int = 10_000,
    seed: int = 0,
) -> Bootstrap:
    """Resample documents.

    Args:
        systems: counts of each, over the same documents.
        beta: weight of false alarms.
        trials_per_second: trials in a second of audio.
        resamples: draws.
        seed: of the generator.

    Raises:
        UserError: documents differ, there are none, no draw is asked for, or no draw has a value.
    """
    first = systems[0]
    _check(len(first.documents), "document", resamples)
    if any(
        system.documents != first.documents or not np.array_equal(system.microseconds, first.microseconds)
        for system in systems
    ):
        raise codes.DIFFERENT_DOCUMENTS()

    def values(weights: Floats) -> Floats:
        trials = np.rint(trials_per_second * (first.microseconds.astype(np.float64) @ weights) / 1e6)
        return np.stack([_values(system, weights, trials, beta) for system in systems])

    size = len(first.documents)
    observed = values(np.ones((size, 1)))[:, 0]
    replicates = np.concatenate([values(weights) for weights in draws_of(size, resamples, seed)], axis=1)
    jackknife = np.empty((len(systems), 0))
    if size > 1:
        microseconds = first.microseconds.astype(np.float64)
        trials = np.rint(trials_per_second * (microseconds.sum() - microseconds) / 1e6)
        jackknife = np.stack([_without_each(system, trials, beta) for system in systems])
    defined = np.isfinite(replicates).all(axis=0)
    if not defined.any() or not np.isfinite(observed).all():
        raise families.UNDEFINED(
            "no value is defined: no query has a reference, or a query has no non-target trial",
            "check the references and the durations of the documents",
        )
    return Bootstrap(observed, replicates[:, defined], jackknife, int((~defined).sum()))


def _values(system: DocumentCounts, weights: Floats, trials: Floats, beta: float) -> Floats:
    """TWV for each column of weights (D, B), NaN where it is not defined."""
    # Integers below 2^53: exact in any order of summation by BLAS.
    ranges = zip(system.begin[:-1], system.begin[1:], strict=True)
    sums = (system.counts[:, low:high] @ weights[system.document[low:high]] for low, high in ranges)
    return _means(sums, trials, beta)


def _without_each(system: DocumentCounts, trials: Floats, beta: float) -> Floats:
    """TWV without each document (D,), NaN if undefined: all counts minus those of the document."""

    def sums() -> Iterator[Floats]:
        for low, high in zip(system.begin[:-1], system.begin[1:], strict=True):
            counts = system.counts[:, low:high]
            left = np.repeat(counts.sum(axis=1, keepdims=True).astype(np.float64), len(trials), axis=1)
            for sums_of, taken in zip(left, counts, strict=True):
                np.subtract.at(sums_of, system.document[low:high], taken)
            yield left

    return _means(sums(), trials, beta)


def _means(sums: Iterable[Floats], trials: Floats, beta: float) -> Floats:
    """Means of the queries' values; of each query true occurrences, hits and false alarms, (3, B)."""
    total, used = np.zeros(len(trials)), np.zeros(len(trials))
    for ntrue, hits, false_alarms in sums:
        referenced, nontargets = ntrue > 0, trials - ntrue
        with np.errstate(divide="ignore", invalid="ignore"):
            value = 1 - ((ntrue - hits) / ntrue + beta * (false_alarms / np.where(nontargets > 0, nontargets, np.nan)))
        total += np.where(referenced, value, 0.0)
        used += referenced
    with np.errstate(invalid="ignore"):
        mean: Floats = total / np.where(used > 0, used, np.nan)
    return mean


def _check(units: int, name: str, resamples: int) -> None:
    if units < 1:
        raise families.EMPTY_INPUT(
            "no {unit} to resample", "give references, and the documents that they are in", unit=name
        )
    if resamples < 1:
        raise codes.TOO_FEW_RESAMPLES(resamples=resamples)


def _pieces(units: int, columns: int) -> Iterator[slice]:
    step = max(1, _CELLS // units)
    for begin in range(0, columns, step):
        yield slice(begin, min(begin + step, columns))


def draws_of(units: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each unit is drawn: (units, draws), some draws at a time. Each draw takes `units` doubles."""
    generator = np.random.Generator(np.random.PCG64(seed))
    for piece in _pieces(units, resamples):
        draws = piece.stop - piece.start
        drawn = (generator.random((draws, units)) * units).astype(np.int64) + units * np.arange(draws)[:, None]
        times = np.bincount(drawn.ravel(), minlength=units * draws).reshape(draws, units)
        yield np.ascontiguousarray(times.T, dtype=np.float64)


def _bca(observed: float, draws: Floats, left: Floats, tails: Floats) -> Floats | None:
    """Corrected tails (Efron and Tibshirani 1993, eqs. 14.9 to 14.15); None where they are not defined."""
    from scipy.special import ndtr, ndtri

    bias = ndtri(((draws < observed).sum() + (draws <= observed).sum()) / (2 * len(draws)))
    deviation = left.mean() - left if len(left) else left
    spread = float((deviation**2).sum())
    if not np.isfinite(bias) or not spread > 0:
        return None
    acceleration = float((deviation**3).sum()) / (6 * spread**1.5)
    shifted = bias + ndtri(tails)
    corrected: Floats = ndtr(bias + shifted / (1 - acceleration * shifted))
    return corrected
