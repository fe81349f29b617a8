"""Detection error trade-off: the term-weighted curve on normal-deviate axes, thinned for drawing.

x is the deviate of the mean false-alarm rate, y that of the mean miss rate; the deviate (probit) of a probability p is
the z with P(Z <= z) = p for a standard normal Z. Rates 0 and 1 lie at infinity; they are drawn at the border of the
picture. Source: Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsdist.score.twv import Curve

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Det:
    """Points of the curve that a drawing needs, by threshold ascending; all float64 (n,).

    Attributes:
        threshold: least score accepted; of the last point, which rejects everything, the highest score.
        pmiss: mean miss rate.
        pfa: mean false-alarm rate.
        x: deviate of pfa, within the picture.
        y: deviate of pmiss, within the picture.
    """

    threshold: Floats
    pmiss: Floats
    pfa: Floats
    x: Floats
    y: Floats


def ppndf(probability: NDArray[np.floating] | float, *, least: float = 1e-6) -> Floats:
    """Normal deviate of probabilities, which are first limited to [least, 1 - least].

    Args:
        probability: any shape.
        least: border of the picture, in (0, 0.5).
    """
    # Imported here: whoever needs a protocol's name only should not wait for scipy.
    from scipy.special import ndtri

    limited: Floats = ndtri(np.clip(np.asarray(probability, dtype=np.float64), least, 1 - least))
    return limited


def det(curve: Curve, *, least: float = 1e-6, step: float = 0.01) -> Det:
    """The curve's points for drawing: one of each run that stays within a square of the deviates, and the ends.

    Args:
        curve: from `twv_curve`.
        least: rates below it, or above 1 - least, are drawn at the border.
        step: side of the squares, in deviates; 0.01 is about a pixel where the picture is 900 pixels wide.
    """
    x, y = ppndf(curve.pfa, least=least), ppndf(curve.pmiss, least=least)
    square = np.stack([np.floor(x / step), np.floor(y / step)])
    kept = np.ones(len(x), dtype=bool)
    kept[1:-1] = (square[:, 1:-1] != square[:, :-2]).any(axis=0)
    return Det(curve.threshold[kept], curve.pmiss[kept], curve.pfa[kept], x[kept], y[kept])
