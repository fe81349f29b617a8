"""sto: sum-to-one normalisation; see `swsdist.calibrate.thresholding`."""

from __future__ import annotations

from swsdist.calibrate.steps.by_term import ByTerm


class Sto(ByTerm):
    """A probability over the sum of those of its term (eqs. 5 and 6)."""

    name = "sto"
    version = 1
    method = "sto"
