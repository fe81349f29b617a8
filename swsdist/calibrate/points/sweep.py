"""ATWV at many operating points of the thresholding methods, from one aligned list that is read once.

Every term's probabilities are sorted once, with the counts of hits and false alarms from the top down to each. A point (alpha,
beta) is then a binary search a term. Counts are integers per class of Ntrue and rates are evaluated from them as
`swsdist.score.measures.twv` does, so each value is the very double that deciding the list and counting it would give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from swsdist.calibrate.posterior import PosteriorSums, checked
from swsdist.calibrate.thresholding import Method, Thresholding, thresholds
from swsdist.errors import UserError
from swsdist.score.measures.ranking import Ranking

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Points whose counts of all terms are held at once.
_AT_ONCE = 64


def positive(alpha: ArrayLike, beta: ArrayLike) -> tuple[Floats, Floats]:
    """Alpha and beta of some points, float64 (P,) each; one of them may be given for all.

    Raises:
        UserError: one is not finite and positive.
    """
    alphas, betas = np.broadcast_arrays(np.atleast_1d(alpha).astype(np.float64), np.atleast_1d(beta).astype(np.float64))
    for name, values in (("alpha", alphas), ("beta", betas)):
        if not (np.isfinite(values) & (values > 0)).all():
            raise UserError(f"{name} is not finite and positive throughout", remedy=f"give every {name} above 0")
    return alphas, betas


class Points(NamedTuple):
    """ATWV and the mean rates at each point, float64 (P,)."""

    twv: Floats
    pmiss: Floats
    pfa: Floats


class Terms(NamedTuple):
    """Terms with references at one point, (Q,): counts of what is kept, and the threshold on p that kept it."""

    hits: Ints
    false_alarms: Ints
    threshold: Floats


@dataclass(frozen=True, eq=False)
class Sweep:
    """An aligned list of probabilities, sorted. Only terms with references count, as in TWV.

    Attributes:
        names: (Q,) ids of the terms, ascending.
        ntrue: int64 (Q,).
        sums: float64 (Q,), S(w).
        first: int64 (Q + 1,), where each term's rows begin.
        negative: float64 (n,), -p ascending within a term, distinct.
        hits, false_alarms: int64 (n,), from the top of the term down to here.
    """

    names: pa.Array
    ntrue: Ints
    sums: Floats
    first: Ints
    negative: Floats
    hits: Ints
    false_alarms: Ints

    @classmethod
    def of(cls, aligned: pa.Table, *, probabilities: bool = True) -> Sweep:
        """Read an aligned list.

        Args:
            aligned: schema TRIALS, all rows of each term.
            probabilities: scores are such; else they may be any, and S(w) is 0.

        Raises:
            UserError: a score is not a probability, or no term has a reference.
        """
        if probabilities:
            checked(aligned["score"].filter(pc.is_valid(aligned["score"])).to_numpy())
        ranking = Ranking.of(aligned)
        if not len(ranking.ntrue):
            raise UserError(
                "no query has a reference, so TWV is not defined",
                remedy="check that query ids of references and detections are the same",
            )
        first = np.searchsorted(ranking.query, np.arange(len(ranking.ntrue) + 1))
        return cls(
            names=ranking.names,
            ntrue=ranking.ntrue,
            sums=PosteriorSums.of(aligned).values(ranking.names.to_pylist())
            if probabilities
            else np.zeros(len(ranking.ntrue)),
            first=first,
            negative=-ranking.score,
            hits=ranking.hits_above + ranking.hits,
            false_alarms=ranking.false_above + ranking.false_alarms,
        )

    def atwv(self, method: Method, alpha: ArrayLike, beta: ArrayLike, *, trials: int) -> Points:
        """ATWV, mean Pmiss and mean Pfa at each of P points.

        Args:
            method: which thresholding.
            alpha, beta: (P,), or one for all points; positive.
            trials: T.

        Raises:
            UserError: alpha or beta is not positive, or a term occurs in every trial.
        """
        alphas, betas = positive(alpha, beta)
        parts = []
        for first in range(0, max(1, len(alphas)), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            limits = self.limits(method, alphas[some], betas[some], trials=trials)
            parts.append(self.means(*self.kept(limits), betas[some], trials=trials))
        return Points(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def limits(self, method: Method, alphas: Floats, betas: Floats, *, trials: int) -> Floats:
        """Thresholds on the probabilities of each term at each point, (Q, P); arguments as of `atwv`."""
        sums, ntrue = self.sums[:, None], self.ntrue[:, None]
        found = thresholds(method, sums, ntrue, alpha=alphas[None], beta=betas[None], trials=trials)
        return np.broadcast_to(found, (len(self.ntrue), len(alphas)))

    def kept(self, limits: Floats) -> tuple[Ints, Ints]:
        """Hits and false alarms of each term at each point, int64 (Q, P), given thresholds on its probabilities (Q, P)."""
        hits, false_alarms = (np.zeros(limits.shape, dtype=np.int64) for _ in range(2))
        for term, rows in self._rows():
            kept = np.searchsorted(self.negative[rows], -limits[term], side="right")
            some = np.flatnonzero(kept)
            last = rows.start + kept[some] - 1
            hits[term, some] = self.hits[last]
            false_alarms[term, some] = self.false_alarms[last]
        return hits, false_alarms

    def means(self, hits: Ints, false_alarms: Ints, betas: Floats, *, trials: int) -> Points:
        """ATWV and mean rates from what each term keeps at each point.

        Args:
            hits, false_alarms: int64 (Q, P).
            betas: (P,).
            trials: T.

        Raises:
            UserError: a term occurs in every trial.
        """
        if (self.ntrue >= trials).any():
            raise UserError(
                f"a query has {self.ntrue.max()} true occurrences in {trials} trials",
                remedy="check that all the audio that was searched is counted",
            )
        classes, member, terms = np.unique(self.ntrue, return_inverse=True, return_counts=True)
        by_class = np.zeros((2, len(classes), hits.shape[1]), dtype=np.int64)
        np.add.at(by_class[0], member, hits)
        np.add.at(by_class[1], member, false_alarms)
        pmiss, pfa = np.zeros(1), np.zeros(1)
        for k, (ntrue, size) in enumerate(zip(classes, terms, strict=True)):
            pmiss = pmiss + (size * ntrue - by_class[0, k]) / ntrue
            pfa = pfa + by_class[1, k] / (trials - ntrue)
        pmiss, pfa = pmiss / len(self.ntrue), pfa / len(self.ntrue)
        return Points(1 - (pmiss + betas * pfa), pmiss, pfa)

    def terms(self, thresholding: Thresholding) -> Terms:
        """What each term keeps at one point."""
        limits = thresholding.thresholds(self.sums, self.ntrue)
        hits, false_alarms = self.kept(limits[:, None])
        return Terms(hits[:, 0], false_alarms[:, 0], limits)

    def values(self, thresholding: Thresholding) -> Floats:
        """Each term's 1 - Pmiss - beta Pfa at one point, float64 (Q,); their mean is ATWV."""
        kept = self.terms(thresholding)
        pmiss = (self.ntrue - kept.hits) / self.ntrue
        result: Floats = 1 - (pmiss + thresholding.beta * (kept.false_alarms / (thresholding.trials - self.ntrue)))
        return result

    def _rows(self) -> Iterator[tuple[int, slice]]:
        for term, (begin, end) in enumerate(zip(self.first[:-1].tolist(), self.first[1:].tolist(), strict=True)):
            if begin < end:
                yield term, slice(begin, end)
