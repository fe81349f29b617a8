"""-ln of the inner product of posteriors, in nats: minus the logarithm of the chance that both frames are of one class.

Frames are brought to a sum of 1, multiplied by 4064 and rounded. Their Euclidean norm is at most 4064 + sqrt(D)/2, so
by Cauchy-Schwarz a partial sum is at most the square of that, below 2^24 up to D = 4096. The map is a table, made of
integer thresholds: 64 products share an entry, that of the middle one, and 256 is one nat. An inner product below
`floor` counts as floor, at least 1e-4: in 12 bits a frame's smallest probabilities are 1/4064, so smaller products are
mostly rounding. A frame that is all zero is at the largest distance, -ln floor.

Error: the inner product is right within 1/4064 + D / (4 * 4064^2) + 32 / 4064^2, the distance within that over the
product (and floor), and 1/512. Products of frames that are not peaked are better than that by far, since roundings
cancel.

Source: Hazen, Shen and White 2009, Query-by-example spoken term detection using phonetic posteriorgram templates, eq.
1.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from functools import partial
from math import floor as whole
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from swsdist.errors import ConfigError
from swsdist.kernels.distances.interface import Distance, Prepared, Side, single
from swsdist.kernels.distances.probabilities import totals

#: The least inner product, where the config gives no other, and the least that it may give.
FLOOR = LEAST_FLOOR = 1e-4

#: What stands for a probability of 1.
OF_ONE = 4064

#: Products that share an entry of the table, as a shift.
SHIFT = 6


def _fill(name: str, values: NDArray[np.float64], side: Side, where: str | None) -> Prepared:
    total = totals(values, name, where)
    total[total == 0.0] = 1.0
    values /= total[:, None]
    return Prepared(np.rint(values * OF_ONE).astype(np.float32), 0)


def table(unit: int, floor: float) -> NDArray[np.int16]:
    """The map: entry i is round(-unit ln(max((64 i + 32) / 4064^2, floor))), exactly.

    d is the number of k = 1, 2, ... for which the product is below 4064^2 exp(-(k - 1/2) / unit). These thresholds are
    irrational, so no product meets one; 60 decimals tell their whole parts.
    """
    with localcontext() as context:
        context.prec = 60
        largest = int((-unit * Decimal(floor).ln()).to_integral_value(ROUND_HALF_EVEN))
        ratio = (Decimal(-1) / unit).exp()
        threshold = OF_ONE * OF_ONE * (Decimal(1) / (2 * unit)).exp()
        below = []
        for _ in range(largest):
            threshold *= ratio
            below.append(int(threshold.to_integral_value(ROUND_FLOOR)))
    middle = (np.arange((OF_ONE * OF_ONE >> SHIFT) + 1) << SHIFT) + (1 << SHIFT >> 1)
    return (largest - np.searchsorted(np.array(below[::-1]), middle, side="left")).astype(np.int16)


def negative_log(name: str, unit: int, dimension: int, floor: float = FLOOR) -> Distance:
    """-ln of the inner product.

    Raises:
        ConfigError: the floor is below 1e-4.
    """
    if floor < LEAST_FLOOR:
        raise ConfigError(
            f"the distance {name} cannot tell inner products below {LEAST_FLOOR:g} apart, and the floor is {floor:g}",
            where="search.floor",
            remedy=f"{LEAST_FLOOR:g} or more",
        )
    bound = whole((OF_ONE + sqrt(dimension) / 2) ** 2)
    fill = partial(_fill, name)
    return single(name, dimension, unit, dimension, bound, fill, table=table(unit, floor), table_shift=SHIFT)
