"""Fusion: one probability from the scores that several systems give to the same detections.

Linear logistic fusion, ``p = sigmoid(b + sum a_i s_i)``, one weight a_i a system. A detection that a system did not make
has no score there (NaN); it gets the least score that the system gave in the training data, as if it had stood at the
end of its list. Which detections of different systems are one is decided before, by their times.

Sources: Brummer et al. 2007, "Fusion of heterogeneous speaker recognition systems in the STBU submission", section VI;
missing scores, Abad et al. 2013, "On the calibration and fusion of heterogeneous spoken term detection systems".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsdist.calibrate.regression import Fitted, linear, maximise, prior_weights, sigmoid
from swsdist.errors import UserError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fusion:
    """What `fit_fusion` found.

    Attributes:
        weights: a_i, one a system.
        offset: b.
        least: the score that stands for a missing one, one a system.
    """

    weights: tuple[float, ...]
    offset: float
    least: tuple[float, ...]

    def probability(self, scores: ArrayLike) -> Floats:
        """P(hit) of each row.

        Args:
            scores: float64 (n, systems), NaN where a system has none.

        Raises:
            UserError: another number of systems, or an infinite score.
        """
        columns = _filled(_checked(scores, len(self.weights)), self.least)
        return sigmoid(linear(columns, Fitted(self.weights, self.offset)))


def fit_fusion(scores: ArrayLike, hits: ArrayLike, *, prior: float | None = None) -> Fusion:
    """Weights of greatest likelihood (see `regression`), whatever the order of the rows.

    Args:
        scores: float64 (n, systems), NaN where a system has none.
        hits: bool (n,), whether the detection is right.
        prior: effective prior that hits are weighted to; None: as they are.

    Raises:
        UserError: no hits or no false alarms, a system without any score, an infinite score.
    """
    given = _checked(scores, None)
    right = np.asarray(hits, dtype=bool)
    if right.shape != given.shape[:1]:
        raise UserError(f"{len(given)} rows of scores have {right.size} labels", remedy="give each row its label, once")
    if empty := np.flatnonzero(np.isnan(given).all(axis=0)).tolist():
        raise UserError(f"system {empty[0] + 1} has no score at all", remedy="leave it out of the fusion")
    least = tuple(np.nanmin(given, axis=0).tolist())
    rows, row = np.unique(_filled(given, least), axis=0, return_inverse=True)
    row = row.reshape(-1)  # numpy 2.0 gives it another shape
    true = np.bincount(row[right], minlength=len(rows))
    false = np.bincount(row[~right], minlength=len(rows))
    fitted = maximise(rows, *prior_weights(true, false, prior))
    return Fusion(fitted.slopes, fitted.offset, least)


def _checked(scores: ArrayLike, systems: int | None) -> Floats:
    given = np.asarray(scores, dtype=np.float64) + 0.0  # -0.0 and 0.0 are one score
    if given.ndim != 2 or (systems is not None and given.shape[1] != systems) or given.shape[1] == 0:
        wanted = "(detections, systems)" if systems is None else f"(detections, {systems})"
        raise UserError(f"scores of shape {given.shape} cannot be fused", remedy=f"give an array {wanted}")
    if np.isinf(given).any():
        raise UserError("a score is infinite", remedy="leave the detection out, or leave its score empty (NaN)")
    return given


def _filled(scores: Floats, least: tuple[float, ...]) -> Floats:
    return np.where(np.isnan(scores), np.array(least), scores)
