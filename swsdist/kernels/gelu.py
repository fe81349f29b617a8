"""The activation GELU (Hendrycks and Gimpel 2016), x / 2 (1 + erf(x / sqrt(2))), in float32.

erf is a quotient of two polynomials, of degree 13 and 8, for |x| up to 4, beyond which it is 1 to the last bit; its
relative error is below 4e-7. Only + - * / are used, sixteen numbers at a time, so bytes do not depend on the
processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swsdist.core.arrays import Singles
from swsdist.kernels.arithmetic import least, most
from swsdist.kernels.compiled import compiled
from swsdist.kernels.vectors import WIDTH, lanes_of, load, spread, store

_ROOT, _HALF = np.float32(0.5**0.5), np.float32(0.5)

#: Coefficients in powers of x^2, the highest first.
_P0, _P1, _P2, _P3, _P4, _P5, _P6 = map(
    np.float32,
    (
        *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
        *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
    ),
)
_Q0, _Q1, _Q2, _Q3, _Q4 = map(
    np.float32,
    (
        *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03),
        -1.42647390514189e-02,
    ),
)


def gelu(values: Singles) -> None:
    """Apply it to float32 (n,), C-contiguous, in place."""
    complete = len(values) // WIDTH * WIDTH
    _gelu(values[:complete])
    if complete < len(values):
        rest = np.zeros(WIDTH, np.float32)
        rest[: len(values) - complete] = values[complete:]
        _gelu(rest)
        values[complete:] = rest[: len(values) - complete]


@compiled("void(float32[::1])")
def _gelu(values: Singles) -> None:
    like = lanes_of(values)
    lowest, highest = spread(-4.0, like), spread(4.0, like)
    for k in range(0, len(values), WIDTH):
        value: Any = load(values, k)
        x = least(most(value * _ROOT, lowest), highest)
        y = x * x
        above = (((((y * _P0 + _P1) * y + _P2) * y + _P3) * y + _P4) * y + _P5) * y + _P6
        below = (((y * _Q0 + _Q1) * y + _Q2) * y + _Q3) * y + _Q4
        store(values, k, value * _HALF * (x * above / below + np.float32(1)))
