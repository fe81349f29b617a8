"""The row range: distances of a query frame to a document's frames, mapped to 0..4095 by their least and greatest.

Distances before are eight times as fine as others, 0..32767, where `Stream.fine` says so: a row may have a small range.

A query frame that is far from everything, or near to everything, then counts as much as any other: what matters is where in
the document it is nearest. In a document with least and greatest distance l and g of a query frame::

    scale = (4095 2^19 + (r >> 1)) // r             r = max(g - l, 1)
    d' = ((d - l) scale + 2^18) >> 19               0 at l, 4095 at g, at most 0.54 from 4095 (d - l) / r

in whole numbers of 32 bits. Where all are equal, all become 0. A score is minus the mean of d' / 4095.

Source: min-max normalisation of a query frame's distances: Rodriguez-Fuentes, Varona, Penagarikano, Bordel and Diez 2014,
"High-performance query-by-example spoken term detection on the SWS 2013 evaluation", and `minmax_norm` of SUPERB's task.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import Value, least, most
from swsdist.kernels.scales import MAX_DISTANCE

#: Largest distance before.
LARGEST = (1 << 15) - 1

#: Fractional bits of a scale: 4095 of them times the range fit 32 bits.
_BITS = 19


def scale_of(low: Value, high: Value) -> Value:
    """The factor of a range; where there are no distances, `high` is below `low`, and no distance is mapped."""
    width = most(high - low, 1)
    return ((width >> 1) + (MAX_DISTANCE << _BITS)) // width  # type: ignore[operator, no-any-return] # lanes have it


def in_range(d: Value, low: Value, scale: Value) -> Value:
    """A distance in its range, 0..4095; distances of padding, outside of the range, become any of these."""
    return least(most((d - low) * scale + (1 << (_BITS - 1)), 0) >> _BITS, MAX_DISTANCE)


def row_range(table: NDArray[np.int16]) -> NDArray[np.int16]:
    """The same of a complete table of distances, int16 (query frames, document frames), at least one of each."""
    low, high = (bound(axis=1).astype(np.int64) for bound in (table.min, table.max))
    scale = np.array([scale_of(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)])
    wide: NDArray[np.int64] = (table - low[:, None]) * scale[:, None] + (1 << (_BITS - 1)) >> _BITS
    return wide.astype(np.int16)


for _function in (scale_of, in_range):
    numba.extending.register_jitable(_function)
