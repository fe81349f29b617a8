"""The probability that hits are true, from their scores and judgements, and the number of true ones that are left.

The log-odds of a hit are a line in its score, a + b s (logistic regression). Before any judgement, a and b are those of
other words: normal, with a mean and a covariance that are fitted to the words of a run with references, else were
fitted to words of Mboshi dev for each kind of frames (`python -m benchmarks.collecting`). Each judgement updates them;
their uncertainty is the posterior covariance (Laplace; Bishop 2006, 4.4 and 4.5). Scores of Mboshi's words are
normalised within a word (q-norm), so that one line serves collections of any size.

A hit is called `likely` from a probability of one half, `possible` from a tenth, else `unlikely`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.kernels.regression import sigmoid

#: Least probability of each word for hits.
WORDS = {"likely": 0.5, "possible": 0.1, "unlikely": 0.0}


def word_of(probability: float | None) -> str:
    """The name of a hit's probability; empty if it is unknown."""
    return "" if probability is None else next(word for word, least in WORDS.items() if probability >= least)


class Prior(NamedTuple):
    """A normal distribution of a and b over words.

    Attributes:
        mean: (2,).
        covariance: (2, 2).
    """

    mean: Floats
    covariance: Floats

    @classmethod
    def of_words(cls, words: Ints, scores: Floats, truths: Bools) -> Prior:
        """The prior under which the hits of words are most probable, by EM; of each word Laplace's approximation.

        Args:
            words: index of each hit's word, (hits,).
            scores: (hits,), rounded to a twentieth of their deviation.
            truths: whether each is an occurrence, (hits,).
        """
        scale = float(scores.std()) or 1.0
        grid, cell = np.unique(np.rint(scores * (_CELLS / scale)), return_inverse=True)
        grid *= scale / _CELLS
        hits, true = np.zeros((2, int(words.max()) + 1, len(grid)))
        np.add.at(hits, (words, cell), 1)
        np.add.at(true, (words[truths], cell[truths]), 1)
        spread = np.array([1 + abs(float(scores.mean())) / scale, 1 / scale])
        (mean,), _ = _lines(grid, hits.sum(0)[None], true.sum(0)[None], cls(np.zeros(2), np.diag((10 * spread) ** 2)))
        prior = cls(mean, np.diag(spread**2))
        for _ in range(_ROUNDS):
            lines, covariances = _lines(grid, hits, true, prior)
            prior = cls(lines.mean(0), np.cov(lines.T, bias=True) + covariances.mean(0))
        return prior


#: Of MFCC and what is made of them; of a layer of a speech encoder.
MFCC = Prior(np.array([-7.75, 1.383]), np.array([[1.112, -0.382], [-0.382, 0.193]]))
ENCODER = Prior(np.array([-10.9, 2.28]), np.array([[4.448, -1.142], [-1.142, 0.333]]))


def prior_of(extractors: Collection[str]) -> Prior:
    """The prior of words whose frames these extractors make."""
    return ENCODER if "ssl" in extractors else MFCC


#: Newton's steps at most, and the least that goes on.
_STEPS, _SMALL = 50, 1e-9
#: To fit a prior: cells of a standard deviation of scores, and rounds.
_CELLS, _ROUNDS = 20, 20
#: Draws of a line and of all hits' truth, and the part of them in the interval.
_DRAWS, _INTERVAL = 500, 0.8
#: True ones that so many next hits must promise.
_BATCH, _STOP_BELOW = 20, 0.5
#: Judgements before it is said that there is no use to go on.
_FEWEST = 10


def _lines(scores: Floats, hits: Floats, true: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """The most probable line of each word, (words, 2), and its covariance, (words, 2, 2).

    Args:
        scores: (cells,).
        hits: how many of each word have each score, (words, cells).
        true: how many of them are occurrences, (words, cells).
        prior: of lines.
    """
    design = np.column_stack([np.ones(len(scores)), scores])
    squares = (design[:, :, None] * design[:, None, :]).reshape(-1, 4)
    precision = np.linalg.inv(prior.covariance)
    lines = np.tile(prior.mean, (len(hits), 1))
    for _ in range(_STEPS):
        p = sigmoid(lines @ design.T)
        slope = (hits * p - true) @ design + (lines - prior.mean) @ precision
        curvature = ((hits * p * (1 - p)) @ squares).reshape(-1, 2, 2) + precision
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        lines = lines - step
        if np.abs(step).max() < _SMALL:
            break
    return lines, np.linalg.inv(curvature).astype(np.float64)


class Summary(NamedTuple):
    """Estimates of what is left to find.

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

    mean: Floats
    covariance: Floats
    judged: int

    @classmethod
    def fit(cls, scores: Floats, truths: Bools, prior: Prior = MFCC) -> Likelihood:
        """The most probable line of judged hits.

        Args:
            scores: (hits,).
            truths: whether each is an occurrence, (hits,).
            prior: of lines.
        """
        (line,), (covariance,) = _lines(scores, np.ones((1, len(scores))), truths[None].astype(np.float64), prior)
        return cls(line, covariance, len(scores))

    def likely(self, scores: Floats) -> Floats:
        """The probability of each hit, with the doubt about the line (MacKay 1992), (hits,)."""
        design = np.column_stack([np.ones(len(scores)), scores])
        variance = np.einsum("ij,jk,ik->i", design, self.covariance, design)
        return sigmoid(design @ self.mean / np.sqrt(1 + np.pi * variance / 8))

    def summary(self, scores: Floats, shown: int) -> Summary:
        """A summary of the hits that are not judged.

        Args:
            scores: best first, (hits,).
            shown: how many of them are shown.
        """
        random = np.random.default_rng(0)
        lines = random.multivariate_normal(self.mean, self.covariance, _DRAWS)
        p = sigmoid(lines[:, :1] + lines[:, 1:] * scores)
        counts = (random.random(p.shape) < p).sum(axis=1)
        low, high = np.quantile(counts, [(1 - _INTERVAL) / 2, (1 + _INTERVAL) / 2])
        listed = float(p[:, :shown].sum(axis=1).mean())
        worth = self.judged < _FEWEST or bool(p[:, :_BATCH].sum(axis=1).mean() >= _STOP_BELOW)
        why = "unjudged" if not self.judged else "likely" if worth else "nothing-likely"
        return Summary(
            round(float(p.sum(axis=1).mean()), 2), int(low), int(np.ceil(high)), round(listed, 2), worth, why
        )
