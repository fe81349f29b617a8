"""Normalised cross entropy: actual, and least over affine maps and over rising maps of the scores."""

from __future__ import annotations

from collections.abc import Mapping

from swsdist.core.errors import UserError
from swsdist.score.measures.cnxe import measure
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.events import CLASSES, EVENTS, trials_of
from swsdist.score.parts.interface import Parts, Value


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
