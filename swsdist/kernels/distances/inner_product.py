"""-ln of the inner product of posteriors, in nats: minus the logarithm of the chance that both frames are of one class.

Frames are brought to a sum of 1, multiplied by 3840 and rounded. `floor` is added to every inner product, so that no
logarithm is infinite, by one more coordinate that meets 64 in the query's frame; so it is rounded to a multiple of 64 /
3840^2. It is at least 1e-4: in 12 bits a frame's smallest probability is 1/3840, and smaller products are mostly
rounding. A frame that is all zero is at the largest distance, -ln floor, from everything.

Bound: the Euclidean norm of a frame is at most 3840 + sqrt(D)/2, so by Cauchy-Schwarz a partial sum is at most its
square, and the floor.

Map: 256 is one nat. With dot = m 2^e, m within 1..2::

    d = 256 (ln 3840^2 - e ln 2 - ln m) within 0..4095      ln(1 + u) ~ u (c1 + u (c2 + u (c3 + u c4)))

in whole numbers of 32 bits, 4096 for 1; c is the polynomial of that form that is nearest to the logarithm within 0..1
at worst, and equal to it at both ends, so the map never rises.

Error: the inner product and its floor are right within 1/3840 + (D/4 + 32) / 3840^2, the logarithm within 0.55/256.
Roundings of a frame cancel, so that products of many classes are much better than that.

Source: Hazen, Shen and White 2009, Query-by-example spoken term detection using phonetic posteriorgram templates, eq.
1.
"""

from __future__ import annotations

from functools import partial
from math import floor as whole
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import Value, least, most
from swsdist.kernels.distances.interface import Distance, Prepared, Side, single
from swsdist.kernels.distances.probabilities import totals

#: The integer for a probability of 1.
OF_ONE = 3840

#: The query coordinate that meets the floor.
_OF_FLOOR = 64


def from_dot(dot: Value) -> Value:
    """-ln of dot / 3840^2, 256 for 1, within 0..4095."""
    x = least(most(dot, 1), 16777216)
    shifted = x & 0
    for step in (16, 8, 4, 2, 1):  # until 2^24 <= x < 2^25
        by = ((x - (1 << (25 - step))) >> 31) & step
        x = x << by
        shifted = shifted + by
    u = (x - 16777216) >> 10
    series = 14590 + ((-3731 * u) >> 14)
    series = -30789 + ((series * u) >> 14)
    series = 65356 + ((series * u) >> 14)
    # 2^20 (ln 3840^2 - 24 ln 2) and 2^20 ln 2.
    d = (-135347 + 726817 * shifted - ((series * u) >> 10) + 2048) >> 12
    return least(most(d, 0), 4095)


def _fill(name: str, added: int, values: NDArray[np.float64], side: Side, where: str | None) -> Prepared:
    total = totals(values, name, where)
    total[total == 0.0] = 1.0
    out = np.empty((len(values), values.shape[1] + 1), np.float32)
    out[:, :-1] = np.rint(values / total[:, None] * OF_ONE)
    out[:, -1] = _OF_FLOOR if side == "query" else added
    return Prepared(out, 0)


def negative_log(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """-ln of the inner product; the floor is at least 1e-4."""
    added = round(floor * OF_ONE * OF_ONE / _OF_FLOOR)
    bound = whole((OF_ONE + sqrt(dimension) / 2) ** 2) + _OF_FLOOR * added
    fill = partial(_fill, name, added)
    return single(name, dimension, unit, dimension + 1, bound, fill, from_dot=from_dot)
