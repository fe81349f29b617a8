"""kst: keyword specific thresholding; see `swsdist.calibrate.thresholding`."""

from __future__ import annotations

from swsdist.calibrate.steps.by_term import ByTerm


class Kst(ByTerm):
    """The odds of a probability over those of its term's threshold, as a score with threshold 1/2 (eqs. 3 and 4)."""

    name = "kst"
    version = 1
    method = "kst"
