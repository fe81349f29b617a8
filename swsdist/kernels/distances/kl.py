"""Kullback-Leibler divergence between posteriors, in nats.

KL(q || x) of a query's frame from a document's; and the symmetric form, the mean of KL(q || x) and KL(x || q), half of
what Kullback and Leibler (1951) call J.

Frames are first scaled to a sum of 1 and smoothed, ``p' = (p + floor) / (1 + D floor)``, so that all logarithms are
finite; a frame of zeros becomes the uniform distribution.

Fixed point: Q = rint(4096 q'), L = rint(-128 ln x'), and the term of q alone as an additional coordinate, h = rint(-sum
of Q L / 256) with L of q', which meets 256 in the document's frame::

    dot = sum of Q L + 256 h ~ 2^19 KL(q' || x')      d = (dot + 2048) >> 12 within 0..4095, 128 for one nat

h is computed from the rounded Q and L, so that a frame has distance 0 from itself. The symmetric form concatenates both
halves, with L = rint(-64 ln p'), and 128 for 256, and the same map.

Bound (Hoelder): the terms Q L are positive and sum to (4096 + D/2) max L at most; the other terms are negative and sum
to -256 max |h| at most. A partial sum lies between the two.

Error, in nats, with m = ln((1 + D floor) / floor), the largest logarithm: at most m D / 8192 from the rounding of Q, (1
+ D / 8192) / 128 from that of L (twice that in the symmetric form), 1/4096 from that of h, and 1/256 from that of d.
"""

from __future__ import annotations

from functools import partial
from math import ceil

import numpy as np

from swsdist.core.arrays import Floats, Singles
from swsdist.kernels.arithmetic import Value, least, most
from swsdist.kernels.compiled import compiled
from swsdist.kernels.distances.interface import (
    LARGEST_COORDINATE,
    LARGEST_SUM,
    Distance,
    Prepared,
    Side,
    compiled_ln,
    ln,
    single,
    totals,
)

#: The integers for a probability of 1, and for one nat of a logarithm.
OF_ONE, OF_NAT, OF_NAT_SYMMETRIC = 4096.0, 128.0, 64.0


@compiled("void(float64[:,::1], float64[::1], float64, float64, float32[:,::1], float32[:,::1], float32[::1])")
def _fixed(
    values: Floats,
    total: Floats,
    floor: float,
    of_nat: float,
    weights: Singles,
    logarithms: Singles,
    entropy: Singles,
) -> None:
    frames, dimension = values.shape
    for t in range(frames):
        gathered = 0.0
        for k in range(dimension):
            if total[t] == 0.0:
                p = 1.0 / dimension
            else:
                p = (values[t, k] / total[t] + floor) / (1.0 + dimension * floor)
            weight, logarithm = np.rint(p * OF_ONE), np.rint(-compiled_ln(p) * of_nat)
            weights[t, k], logarithms[t, k] = weight, logarithm
            gathered = gathered + weight * logarithm
        entropy[t] = np.rint(-gathered / (2.0 * of_nat))


def from_dot(dot: Value) -> Value:
    """Map from 2^19 per nat to 128 per nat, clipped to 0..4095; only rounding makes a divergence negative."""
    return least(most((dot + 2048) >> 12, 0), 4095)


def _parts(
    name: str, floor: float, of_nat: float, values: Floats, where: str | None
) -> tuple[Singles, Singles, Singles]:
    weights, logarithms = np.empty(values.shape, np.float32), np.empty(values.shape, np.float32)
    entropy = np.empty(len(values), np.float32)
    _fixed(values, totals(values, name, where), floor, of_nat, weights, logarithms, entropy)
    return weights, logarithms, entropy[:, None]


def _fill(name: str, floor: float, values: Floats, side: Side, where: str | None) -> Prepared:
    weights, logarithms, entropy = _parts(name, floor, OF_NAT, values, where)
    if side == "query":
        return Prepared(np.concatenate([weights, entropy], axis=1), 0)
    return Prepared(np.concatenate([logarithms, np.full_like(entropy, 2 * OF_NAT)], axis=1), 0)


def _fill_symmetric(name: str, floor: float, values: Floats, side: Side, where: str | None) -> Prepared:
    weights, logarithms, entropy = _parts(name, floor, OF_NAT_SYMMETRIC, values, where)
    constant = np.full_like(entropy, 2 * OF_NAT_SYMMETRIC)
    if side == "query":
        return Prepared(np.concatenate([weights, logarithms, entropy, constant], axis=1), 0)
    return Prepared(np.concatenate([logarithms, weights, constant, entropy], axis=1), 0)


def _bound(dimension: int, floor: float, of_nat: float) -> int:
    """Upper bound of partial sums of one direction; beyond 2^24 if h would not fit 16 bits."""
    largest = ceil(-of_nat * ln(floor / (1.0 + dimension * floor))) + 1
    # Q is 0 unless p' >= 1/8192, whose logarithm is -9.02: rounding adds less than 9.02 / 2 a dimension to 2 h by way
    # of Q, and half a step of L times each Q.
    total = 4096 + dimension / 2
    entropy = ceil((OF_ONE * ln(1.0 * dimension) + 4.51 * dimension + total / (2 * of_nat)) / 2) + 1
    if entropy > LARGEST_COORDINATE or largest > LARGEST_COORDINATE:
        return LARGEST_SUM + 1
    return int(max(ceil(total) * largest, 2 * of_nat * entropy))


def directed(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """KL(q || x)."""
    largest, fill = _bound(dimension, floor, OF_NAT), partial(_fill, name, floor)
    return single(name, dimension, unit, dimension + 1, largest, fill, from_dot=from_dot)


def symmetric(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """The mean of KL(q || x) and KL(x || q)."""
    largest, fill = 2 * _bound(dimension, floor, OF_NAT_SYMMETRIC), partial(_fill_symmetric, name, floor)
    return single(name, dimension, unit, 2 * dimension + 2, largest, fill, from_dot=from_dot)
