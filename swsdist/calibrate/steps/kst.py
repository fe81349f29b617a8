"""kst: keyword specific thresholding; see `swsdist.calibrate.thresholding`."""

from __future__ import annotations

from swsdist.calibrate.steps.by_term import ByTerm


class Kst(ByTerm):
    """p (1 - thr) / (p (1 - thr) + (1 - p) thr), thr being the threshold of the term (eqs. 3 and 4).

    So the odds of the score are those of p divided by those of thr, and the threshold is 1/2.
    """

    name = "kst"
    version = 1
    method = "kst"
