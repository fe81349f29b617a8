"""How likely hits are true, by their scores and what somebody judged, and how many true ones are left.

The log-odds of a hit are a line in its score, a + b s (logistic regression). Before anybody judges, a and b are those of other
words: normal, with a mean and a covariance that were fitted to words of Mboshi dev (`python -m benchmarks.collecting`), for
each kind of frames. Each judgement moves them; what is left of doubt is their posterior covariance (Laplace; Bishop 2006, 4.4
and 4.5). Scores are normalised within a word (q-norm), so that one line serves collections of any size.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.regression import sigmoid

Array = NDArray[np.float64]


class Prior(NamedTuple):
    """A normal distribution of a and b over words.

    Attributes:
        mean: (2,).
        covariance: (2, 2).
    """

    mean: Array
    covariance: Array


#: Of MFCC and what is made of them; of a layer of a speech encoder.
MFCC = Prior(np.array([-7.75, 1.383]), np.array([[1.112, -0.382], [-0.382, 0.193]]))
ENCODER = Prior(np.array([-10.9, 2.28]), np.array([[4.448, -1.142], [-1.142, 0.333]]))


def prior_of(extractors: Collection[str]) -> Prior:
    """The prior of words whose frames these extractors make."""
    return ENCODER if "ssl" in extractors else MFCC


#: Newton's steps at most, and the least that goes on.
_STEPS, _SMALL = 50, 1e-9
#: Draws of a line and of all hits' truth, and the part of them in the interval.
_DRAWS, _INSIDE = 500, 0.8
#: True ones that so many next hits must promise.
_NEXT, _WORTH = 20, 0.5
#: Judgements before it is said that there is no use to go on.
_FEWEST = 10


class Summary(NamedTuple):
    """What is left to find.

    Attributes:
        expected: true ones among hits that nobody judged.
        low, high: of them, with a probability of 80 %.
        listed: expected among the hits that are shown.
        worth: whether the next 20 are expected to hold one in two times at least, or few were judged.
        why: `likely`, `nothing-likely`; `unjudged` where nobody judged a hit yet.
    """

    expected: float
    low: int
    high: int
    listed: float
    worth: bool
    why: str


class Likelihood(NamedTuple):
    """The line of a word.

    Attributes:
        mean: a and b, (2,).
        covariance: of them, (2, 2).
        judged: hits that it was fitted to.
    """

    mean: Array
    covariance: Array
    judged: int

    @classmethod
    def fit(cls, scores: Array, truths: NDArray[np.bool_], prior: Prior = MFCC) -> Likelihood:
        """The most probable line of judged hits.

        Args:
            scores: (hits,).
            truths: whether each is an occurrence, (hits,).
            prior: of lines.
        """
        design = np.column_stack([np.ones(len(scores)), scores])
        precision = np.linalg.inv(prior.covariance)
        line = prior.mean
        for _ in range(_STEPS):
            p = sigmoid(design @ line)
            slope = design.T @ (p - truths) + precision @ (line - prior.mean)
            curvature = design.T @ (design * (p * (1 - p))[:, None]) + precision
            step = np.linalg.solve(curvature, slope)
            line = line - step
            if np.abs(step).max() < _SMALL:
                break
        return cls(line, np.linalg.inv(curvature).astype(np.float64), len(scores))

    def likely(self, scores: Array) -> Array:
        """The probability of each hit, with the doubt about the line (MacKay 1992), (hits,)."""
        design = np.column_stack([np.ones(len(scores)), scores])
        variance = np.einsum("ij,jk,ik->i", design, self.covariance, design)
        return sigmoid(design @ self.mean / np.sqrt(1 + np.pi * variance / 8))

    def summary(self, scores: Array, shown: int) -> Summary:
        """What hits that nobody judged promise.

        Args:
            scores: best first, (hits,).
            shown: how many of them are shown.
        """
        random = np.random.default_rng(0)
        lines = random.multivariate_normal(self.mean, self.covariance, _DRAWS)
        p = sigmoid(lines[:, :1] + lines[:, 1:] * scores)
        counts = (random.random(p.shape) < p).sum(axis=1)
        low, high = np.quantile(counts, [(1 - _INSIDE) / 2, (1 + _INSIDE) / 2])
        listed = float(p[:, :shown].sum(axis=1).mean())
        worth = self.judged < _FEWEST or bool(p[:, :_NEXT].sum(axis=1).mean() >= _WORTH)
        why = "unjudged" if not self.judged else "likely" if worth else "nothing-likely"
        return Summary(
            round(float(p.sum(axis=1).mean()), 2), int(low), int(np.ceil(high)), round(listed, 2), worth, why
        )
