"""The scorer of QUESST, MediaEval's query by example task of 2014 and 2015: one trial for each query and document.

Every trial has a score and a decision: the system provides them all, or the evaluation has a default score (decision NO) for
missing ones. Queries without a target document are removed with all their trials. Costs and prior are combined in one number,
the effective prior; beta = (1 - prior) / prior. Rates are means over the queries, cross entropies are over all trials
together, their scores log-likelihood ratios (`swsdist.score.measures.cnxe`).

The rules are those of the program that the evaluation used, which differ from STDEval's:

- A trial is accepted if its score is **greater** than the threshold; the threshold that is named is the largest score that is
  rejected, minus infinity where none is. The lowest of equal maxima wins. (Ours: rates come from counts, values within
  1e-12 are equal; the program's sums are off by some 1e-13.)
- The least Cnxe is that of pool adjacent violators over single trials: equal scores are pooled in the order of the system's
  file, then the defaults by query and document. Non-targets that stand before targets of the same score stay apart, so it
  is lower than `swsdist.score.measures.cnxe.cnxe_pav`, and is no property of the scores alone.
- The second set of values shows the gain of a threshold, or recalibration, per query. It starts from the
  scores that the pooling above made: TWV with each query's best threshold taken off its scores, and Cnxe after pooling each
  query's trials alone, relative to the rate of targets of all; its least Cnxe pools all once more, equal ones query
  after query. The last depends on which of the pooled rates are equal to the last bit, so rates are formed step by step as the
  program forms them.
- A query whose every document is a target has no false-alarm rate: TWV of the decisions is not a number. In the curve the
  program takes its Pfa for 1 at every threshold.

Sources: Szoeke, Rodriguez-Fuentes, Buzo, Anguera, Metze, Proenca, Lojka and Xiong, "Query by example search on speech at
MediaEval 2015", 2015; and what the program does.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.codes import score as codes
from swsdist.core.codes import warning_text
from swsdist.score.measures.cnxe import bayes_threshold, check_prior, log_cost, prior_entropy
from swsdist.score.measures.curve import TIE, Curve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Values(NamedTuple):
    """TWV at the decisions and at the best threshold; Cnxe of the scores, and the least Cnxe."""

    act_twv: float
    max_twv: float
    threshold: float
    act_cnxe: float
    min_cnxe: float


@dataclass(frozen=True, eq=False)
class Quesst:
    """The values that the program reports.

    Attributes:
        pooled: of the unchanged scores.
        per_query: with a threshold or recalibration per query ("model-dependent").
        curve: threshold (largest score rejected, first minus infinity), mean Pmiss, mean Pfa, TWV.
        per_query_curve: the same with each query's best threshold shifted to 0.
        queries: queries with targets, in the order of the term list.
        removed: queries without targets.
        documents: number of documents.
        scored: trials of the remaining queries with a score of the system.
        least, greatest: of these scores; NaN if there are none.
    """

    pooled: Values
    per_query: Values
    curve: Curve
    per_query_curve: Curve
    queries: tuple[str, ...]
    removed: tuple[str, ...]
    documents: int
    scored: int
    least: float
    greatest: float


def score_quesst(
    detections: pa.Table,
    references: pa.Table,
    queries: Sequence[str],
    documents: Sequence[str],
    *,
    prior: float,
    default: float | None = None,
) -> Quesst:
    """Score a list of trials as the QUESST program does.

    Args:
        detections: query_id, doc_id, score, decision; the order of the rows is the file's, and matters (see above).
        references: query_id, doc_id; target documents. Unlisted ids are ignored; duplicates cause a warning.
        queries: ids of the term list, in its order.
        documents: ids of the ECF's excerpts, in its order.
        prior: effective prior, in (0, 1).
        default: score of trials without one; without a default they are an error.

    Raises:
        DataError: a query or document is listed twice; a trial is of an unknown query or document, is a duplicate, has no
            finite score or no decision, or is missing and there is no default; no query has a target, or all trials are
            targets.
        UserError: the prior is not between 0 and 1.
    """
    check_prior(prior)
    beta = (1 - prior) / prior
    for names, what in ((queries, "query"), (documents, "document")):
        _check_unique(names, what)
    targets = _targets(references, queries, documents)
    seen = np.flatnonzero(targets.sum(axis=1))
    if not len(seen):
        raise codes.NO_TARGET_DOCUMENT()
    trials = _Trials.read(detections, targets, queries, documents, default)
    if trials.target.all():
        raise codes.NO_NONTARGET_DOCUMENT()
    curve = _curve(trials.score, trials, beta)
    best, threshold = _best(curve)
    pooled = _recalibrated(trials.score, trials.target, float(trials.target.mean()))
    per_query, per_query_curve = _per_query(pooled, trials, prior, beta)
    return Quesst(
        pooled=Values(
            act_twv=_twv(trials.decision, trials, beta),
            max_twv=best,
            threshold=threshold,
            act_cnxe=_cnxe(trials.score, trials.target, prior),
            min_cnxe=_cnxe(pooled, trials.target, prior),
        ),
        per_query=per_query,
        curve=curve,
        per_query_curve=per_query_curve,
        queries=tuple(queries[int(k)] for k in seen),
        removed=tuple(query for k, query in enumerate(queries) if not targets[k].any()),
        documents=len(documents),
        scored=len(trials.scores),
        least=float(trials.scores.min()) if len(trials.scores) else math.nan,
        greatest=float(trials.scores.max()) if len(trials.scores) else math.nan,
    )


class _Trials(NamedTuple):
    """All trials of the queries kept, in the program's order; `query` is the index among them."""

    query: Ints
    score: Floats
    target: Flags
    decision: Flags
    scores: Floats

    @classmethod
    def read(
        cls,
        detections: pa.Table,
        targets: Flags,
        queries: Sequence[str],
        documents: Sequence[str],
        default: float | None,
    ) -> _Trials:
        query = _places(detections, "query_id", queries)
        document = _places(detections, "doc_id", documents)
        score = detections["score"].cast(pa.float64())
        for column, bad, problem in (
            ("query_id", query < 0, "is not in the term list"),
            ("doc_id", document < 0, "is not in the ECF"),
            ("score", ~pc.fill_null(pc.is_finite(score), False).to_numpy(), "is not a finite number"),
            ("decision", pc.is_null(detections["decision"]).to_numpy(), "is neither YES nor NO"),
        ):
            if bad.any():
                raise codes.INVALID_TRIAL(
                    where=_row(detections, int(np.flatnonzero(bad)[0])), column=column, problem=problem
                )
        cell = query * len(documents) + document
        _, first = np.unique(cell, return_index=True)
        if len(first) < len(cell):
            row = int(np.setdiff1d(np.arange(len(cell)), first)[0])
            raise codes.DUPLICATE_TRIAL(where=_row(detections, row))

        left_out = np.setdiff1d(np.arange(targets.size), cell)
        seen = targets.sum(axis=1) > 0
        left_out = left_out[seen[left_out // len(documents)]]
        if len(left_out) and default is None:
            q, d = divmod(int(left_out[0]), len(documents))
            raise codes.UNSCORED_TRIALS(
                where=f"first: query {queries[q]}, document {documents[d]}", count=len(left_out)
            )
        kept = seen[query]
        # Adding 0 gives -0.0 and 0.0, which are equal, the same sign.
        scores = score.to_numpy()[kept] + 0.0
        order = np.concatenate([cell[kept], left_out])
        return cls(
            query=(np.cumsum(seen) - 1)[order // len(documents)],
            score=np.concatenate([scores, np.full(len(left_out), 0.0 if default is None else default)]),
            target=targets.ravel()[order],
            decision=np.concatenate([detections["decision"].to_numpy()[kept], np.zeros(len(left_out), dtype=bool)]),
            scores=scores,
        )

    def take(self, rows: Ints) -> _Trials:
        """Some rows, of one query."""
        columns = self.score[rows], self.target[rows], self.decision[rows]
        return _Trials(np.zeros(len(rows), dtype=np.int64), *columns, self.scores)

    def of_each_query(self) -> Iterator[Ints]:
        """Rows of each query, in the program's order."""
        order = np.argsort(self.query, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(self.query[order])) + 1)


def _per_query(pooled: Floats, trials: _Trials, prior: float, beta: float) -> tuple[Values, Curve]:
    """Values and curve with a threshold, or recalibration, per query; `pooled` are recalibrated scores."""
    rate = float(trials.target.mean())
    shifted, per_query = np.empty(len(pooled)), np.empty(len(pooled))
    by_query = list(trials.of_each_query())
    for rows in by_query:
        alone = trials.take(rows)
        _, threshold = _best(_curve(pooled[rows], alone, beta))
        with np.errstate(invalid="ignore"):
            # An infinite score at an infinite threshold is not above it.
            shifted[rows] = np.nan_to_num(pooled[rows] - threshold, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
        per_query[rows] = _recalibrated(pooled[rows], alone.target, rate)
    curve = _curve(shifted, trials, beta)
    best, threshold = _best(curve)
    # The last pooling meets equal scores query after query.
    order = np.concatenate(by_query)
    values = Values(
        act_twv=_twv(shifted > 0, trials, beta),
        max_twv=best,
        threshold=threshold,
        act_cnxe=_cnxe(per_query, trials.target, prior),
        min_cnxe=_cnxe(_recalibrated(per_query[order], trials.target[order], rate), trials.target[order], prior),
    )
    return values, curve


def _twv(accepted: Flags, trials: _Trials, beta: float) -> float:
    """Mean over the queries of 1 - Pmiss - beta Pfa."""
    targets, nontargets = _sizes(trials)
    queries = len(targets)
    misses = np.bincount(trials.query[trials.target & ~accepted], minlength=queries)
    false_alarms = np.bincount(trials.query[~trials.target & accepted], minlength=queries)
    if not nontargets.all():
        return math.nan
    return 1 - math.fsum(misses / targets + beta * (false_alarms / nontargets)) / queries


def _curve(score: Floats, trials: _Trials, beta: float) -> Curve:
    """Means with all scores up to each distinct one rejected; the first point rejects none."""
    targets, nontargets = _sizes(trials)
    distinct, place = np.unique(score, return_inverse=True)
    pmiss, pfa = np.zeros(len(distinct) + 1), np.zeros(len(distinct) + 1)
    # Per number of targets, so that sums before the division are integers.
    for ntrue in np.unique(targets):
        rows = (targets == ntrue)[trials.query]
        left = nontargets[targets == ntrue][0]
        misses = np.bincount(place[rows & trials.target] + 1, minlength=len(distinct) + 1)
        rejected = np.bincount(place[rows & ~trials.target] + 1, minlength=len(distinct) + 1)
        pmiss = pmiss + np.cumsum(misses) / ntrue
        raised = np.count_nonzero(rows & ~trials.target) - np.cumsum(rejected)
        pfa = pfa + (raised / left if left else 1.0)
    pmiss, pfa = pmiss / len(targets), pfa / len(targets)
    return Curve(np.append(-math.inf, distinct), pmiss, pfa, 1 - (pmiss + beta * pfa))


def _best(curve: Curve) -> tuple[float, float]:
    """Greatest value and its threshold, the lowest of equal ones."""
    at = int(np.flatnonzero(curve.twv >= curve.twv.max() - TIE)[0])
    return float(curve.twv[at]), float(curve.threshold[at])


def _sizes(trials: _Trials) -> tuple[Ints, Ints]:
    """Targets and non-targets of each query."""
    targets = np.bincount(trials.query[trials.target])
    return targets, np.bincount(trials.query, minlength=len(targets)) - targets


def _cnxe(llr: Floats, target: Flags, prior: float) -> float:
    nats = prior * math.fsum(log_cost(llr[target], prior, target=True)) / np.count_nonzero(target)
    nats += (1 - prior) * math.fsum(log_cost(llr[~target], prior, target=False)) / np.count_nonzero(~target)
    return float(nats / (prior_entropy(prior) * math.log(2)))


def _recalibrated(score: Floats, target: Flags, rate: float) -> Floats:
    """Log-likelihood ratios by pooling single trials, equal scores in their order; `rate` of targets is the prior."""
    order = np.argsort(score, kind="stable")
    means: list[float] = []
    sizes: list[int] = []
    for label in target[order].tolist():
        mean, size = float(label), 1
        while means and means[-1] >= mean:
            before, larger = means.pop(), size + sizes.pop()
            mean = before + size / larger * (mean - before)
            size = larger
        means.append(mean)
        sizes.append(size)
    llr = np.empty(len(score))
    llr[order] = np.repeat([_log_odds(mean) + bayes_threshold(rate) for mean in means], sizes)
    return llr


def _log_odds(probability: float) -> float:
    if probability == 0:
        return -math.inf
    return math.inf if probability == 1 else -math.log(1 / probability - 1)


def _targets(references: pa.Table, queries: Sequence[str], documents: Sequence[str]) -> Flags:
    """Whether each (query, document) is a target."""
    query, document = _places(references, "query_id", queries), _places(references, "doc_id", documents)
    valid = (query >= 0) & (document >= 0)
    cell, times = np.unique(query[valid] * len(documents) + document[valid], return_counts=True)
    if (times > 1).any():
        warnings.warn(warning_text(codes.DUPLICATE_TARGETS, count=np.count_nonzero(times > 1)), stacklevel=3)
    targets = np.zeros(len(queries) * len(documents), dtype=bool)
    targets[cell] = True
    return targets.reshape(len(queries), len(documents))


def _places(table: pa.Table, column: str, names: Sequence[str]) -> Ints:
    """Index of each row's name, -1 if unknown."""
    indices = pc.index_in(table[column].cast(pa.string()), value_set=pa.array(names, pa.string()))
    places: Ints = pc.fill_null(indices, -1).to_numpy().astype(np.int64)
    return places


def _check_unique(names: Sequence[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise codes.DUPLICATE_TRIAL_ID(kind=what, name=twice)


def _row(detections: pa.Table, row: int) -> str:
    shown = ", ".join(f"{name} {detections[name][row].as_py()}" for name in ("query_id", "doc_id", "score"))
    return f"detections, row {row + 1} ({shown})"
