"""What a run does to comparable scores when it is asked for probabilities, KST or STO: fitted once, applied to each part.

    scores ── a logistic ──► probabilities ── KST or STO ──► normalised scores ── a threshold ──► decisions

The logistic is fitted on aligned lists, crossfit by default: each fold of queries has the logistic that was fitted on the
others. The threshold is the method's own (1/2, eq. 5), or, where asked for and for bare probabilities, that of best TWV: for
a fold it is fitted on the scores which that fold's logistic gives to the others, so nothing of a query reaches its own
decisions. S(w) is over the detections of the list.

Both steps keep the order within a query, but not the distances, and STDEval's alignment looks at these where two detections
could be paired with one occurrence. So the list is aligned again with its final scores, whose least and greatest are noted
here: what is scored is what is exported.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.logistic import Labelled, Logistics, fit_logistics
from swsdist.calibrate.threshold import Calibration, by_fold, decide
from swsdist.calibrate.thresholding import Thresholding
from swsdist.errors import ConfigError, UserError
from swsdist.score import Counts, fit_threshold, score_limits

Kind = Literal["logistic", "kst", "sto"]


@dataclass(frozen=True)
class Chain:
    """The steps, and what was fitted.

    Attributes:
        logistics: from scores to probabilities.
        thresholding: from these to normalised scores; None leaves them.
        thresholds: for the result, one for all queries or one a fold; a fold without one is decided NO throughout.
        low, high: least and greatest score of the resulting list.
    """

    logistics: Logistics
    thresholding: Thresholding | None
    thresholds: tuple[float | None, ...] = ()
    low: float = 0.0
    high: float = 0.0

    @property
    def kind(self) -> str:
        """Its last step."""
        return "logistic" if self.thresholding is None else self.thresholding.method

    def scores(self, table: pa.Table) -> pa.Table:
        """DETECTIONS or TRIALS with their final scores, all rows of each query."""
        table = self.logistics.apply(table)
        return table if self.thresholding is None else self.thresholding.apply(table)

    def apply(self, table: pa.Table) -> pa.Table:
        """The same, decided."""
        return decide(self.scores(table), Calibration(self.logistics.fit, self.thresholds, {}))

    def of_fold(self, fold: int) -> Chain:
        """With the logistic of one fold for all queries."""
        return Chain(self.logistics.of_fold(fold), self.thresholding)

    def to_json(self) -> bytes:
        """As a file, from which `Logistics.from_json` reads the logistic alone."""
        how = self.thresholding
        point = {} if how is None else {"alpha": how.alpha, "beta": how.beta, "trials": how.trials}
        return self.logistics.to_json(kind=self.kind, **point, thresholds=self.thresholds, low=self.low, high=self.high)

    @classmethod
    def from_run(cls, data: bytes) -> Chain:
        """From a run's own file, folds and all."""
        values = json.loads(data)
        kind = values["kind"]
        how = None if kind == "logistic" else Thresholding(kind, values["trials"], values["beta"], values["alpha"])
        logistics = Logistics.from_json(data, "calibration", average=False)
        return cls(logistics, how, tuple(values["thresholds"]), values["low"], values["high"])


def fit_chain(
    parts: Callable[[], Iterable[pa.Table]],
    thresholding: Thresholding | None,
    *,
    folds: int,
    own: bool,
    trials: int,
    beta: float,
    trained_on: dict[str, Any],
) -> Chain:
    """Fit logistics, and thresholds unless the method's own is to decide.

    Args:
        parts: yields the aligned lists (schema TRIALS), each with all rows of its queries; called twice.
        thresholding: what follows the logistic; None: nothing.
        folds: 1 fits and decides on all (oracle).
        own: decide by the method's own threshold.
        trials: N of each query.
        beta: weight of false alarms.
        trained_on: goes into the file, with the number of queries.

    Raises:
        UserError: there are no hits, or no false alarms, to learn from.
    """
    labelled: dict[int, Labelled] = {fold: Labelled.zero() for fold in range(folds)}
    queries = 0
    for table in parts():
        queries += pc.count_distinct(table["query_id"]).as_py()
        for fold, rows in by_fold(table, folds):
            labelled[fold] = labelled[fold] + Labelled.of(rows)
    logistics = fit_logistics(labelled, folds, trained_on={**trained_on, "queries": queries})
    return completed(Chain(logistics, thresholding), parts, folds=folds, own=own, trials=trials, beta=beta)


def completed(
    chain: Chain, parts: Callable[[], Iterable[pa.Table]], *, folds: int, own: bool, trials: int, beta: float
) -> Chain:
    """A chain with the limits of its scores, and with thresholds unless it has some; arguments as of `fit_chain`."""
    how, given = chain.thresholding, chain.thresholds
    if not given and own and how is not None:
        given = (how.threshold,)
    counts = [Counts.zero() for _ in range(0 if given else folds)]
    low, high = score_limits([])
    for table in parts():
        scores = chain.scores(table)["score"]
        low, high = score_limits(scores.drop_null(), low, high)
        for fold, rows in by_fold(table, folds) if counts else ():
            for k in range(folds):
                if folds == 1 or k != fold:
                    counts[k] = counts[k] + Counts.of(chain.of_fold(k).scores(rows))
    thresholds = given or tuple(_fitted(each, trials, beta) for each in counts)
    return Chain(chain.logistics, how, thresholds, low, high)


def _fitted(counts: Counts, trials: int, beta: float) -> float | None:
    try:
        return fit_threshold(counts, trials=trials, beta=beta)
    except UserError:
        return None  # nothing to learn from: such a fold decides NO


def thresholds_of(data: bytes, where: str, chain: Chain) -> tuple[float, ...]:
    """The mean of the thresholds that another run's chain of the same kind was fitted with.

    Raises:
        ConfigError: it was of another kind or alpha, or has no threshold.
    """
    values = json.loads(data)
    alpha = None if chain.thresholding is None else chain.thresholding.alpha
    if (values.get("kind"), values.get("alpha")) != (chain.kind, alpha):
        raise ConfigError(
            f"its thresholds are for {values.get('kind')} with alpha {values.get('alpha')}, not for {chain.kind} with {alpha}",
            where=where,
            remedy="decide by the own threshold (calibrate.threshold: own), or name a file of the same kind",
        )
    given = [value for value in values.get("thresholds", ()) if value is not None]
    if not given:
        raise ConfigError("it holds no threshold", where=where, remedy="name a file of a run that was decided")
    return (math.fsum(given) / len(given),)
