"""-ln of the inner product of posteriors, in nats: minus the logarithm of the chance that both frames are of one class.

Frames are brought to a sum of 1, multiplied by 3840 and rounded. `floor` is added to every inner product, so that no
logarithm is infinite, by one more coordinate that meets 64 in the query's frame; so it is rounded to a multiple of 64 /
3840^2. It is at least 1e-4: in 12 bits a frame's smallest probability is 1/3840, and smaller products are mostly
rounding. A frame that is all zero is at the largest distance, -ln floor, from everything.

Bound: the Euclidean norm of a frame is at most 3840 + math.sqrt(D)/2, so by Cauchy-Schwarz a partial sum is at most its
square, and the floor.

Map: 256 is one nat, ``d = 256 (ln 3840^2 - ln dot)`` within 0..4095, by `interface.below_24_bits`; it never rises.

Error: the inner product and its floor are right within 1/3840 + (D/4 + 32) / 3840^2, the logarithm within 0.55/256.
Roundings of a frame cancel, so that products of many classes are much better than that.

Source: Hazen, Shen and White 2009, Query-by-example spoken term detection using phonetic posteriorgram templates, eq.
1.
"""

from __future__ import annotations

import math
from functools import partial

import numba
import numpy as np

from swsdist.core.arrays import Floats
from swsdist.kernels.arithmetic import Value, least, most
from swsdist.kernels.distances.interface import Distance, Prepared, Side, below_24_bits, single, totals

#: The integer for a probability of 1.
OF_ONE = 3840

#: The query coordinate that meets the floor.
_OF_FLOOR = 64


def _log(dot: Value) -> Value:
    """-ln of dot / 3840^2, 2^20 for 1, at least 0."""
    return most(below_24_bits(least(most(dot, 1), 16777216)) - 135347, 0)


numba.extending.register_jitable(_log)


def from_dot(dot: Value) -> Value:
    """-ln of dot / 3840^2, 256 for 1, within 0..4095."""
    return least((_log(dot) + 2048) >> 12, 4095)


def from_dot_fine(dot: Value) -> Value:
    """The same, 2048 for 1, within 0..32767."""
    return least((_log(dot) + 256) >> 9, 32767)


def _fill(name: str, added: int, values: Floats, side: Side, where: str | None) -> Prepared:
    total = totals(values, name, where)
    total[total == 0.0] = 1.0
    out = np.empty((len(values), values.shape[1] + 1), np.float32)
    out[:, :-1] = np.rint(values / total[:, None] * OF_ONE)
    out[:, -1] = _OF_FLOOR if side == "query" else added
    return Prepared(out, 0)


def negative_log(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """-ln of the inner product; the floor is at least 1e-4."""
    added = round(floor * OF_ONE * OF_ONE / _OF_FLOOR)
    bound = math.floor((OF_ONE + math.sqrt(dimension) / 2) ** 2) + _OF_FLOOR * added
    fill = partial(_fill, name, added)
    return single(name, dimension, unit, dimension + 1, bound, fill, from_dot=from_dot, fine=from_dot_fine)
