"""The natural logarithm with + - * / alone, so that it is the same on every CPU; and that of an integer, for maps.

Those of the C libraries and of numpy's vector code differ in their last bit between CPUs; IEEE 754 fixes the four
operations. With x = m 2^e, m within sqrt(1/2)..sqrt(2), and s = (m - 1)/(m + 1)::

    ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)          |s| <= 0.172: the first term left out is below 2^-60 of the sum

Error: at most some 2^-50 of max(1, |ln x|).
"""

from __future__ import annotations

from math import frexp

import numba

from swsdist.kernels.arithmetic import Value
from swsdist.kernels.compiled import compiled

_LN_2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
#: 1/23, 1/21, ... 1/3, 1: Horner's scheme begins with the smallest.
_SERIES = tuple(1.0 / odd for odd in range(23, 0, -2))


def ln(x: float) -> float:
    """The natural logarithm of a positive float64.

    A plain function: the tests hold it against decimals, the kernels compile it as `compiled_ln`.
    """
    mantissa, exponent = frexp(x)
    if mantissa < _ROOT_HALF:
        mantissa = mantissa * 2.0
        exponent = exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    total = 0.0
    for term in _SERIES:
        total = total * square + term
    return exponent * _LN_2 + 2.0 * s * total


compiled_ln = compiled("float64(float64)")(ln)


def below_24_bits(x: Value) -> Value:
    """24 ln 2 - ln x, 2^20 for 1, of an integer 1..2^24, in 32 bits.

    With x = m 2^e, m within 1..2, ln(1 + u) ~ u (c1 + u (c2 + u (c3 + u c4))): c is the polynomial of that form that is
    nearest to the logarithm within 0..1 at worst, and equal to it at both ends, so the value never rises with x. Error: at
    most 0.05 / 2^8.
    """
    shifted = x & 0
    for step in (16, 8, 4, 2, 1):  # until 2^24 <= x < 2^25
        by = ((x - (1 << (25 - step))) >> 31) & step
        x = x << by
        shifted = shifted + by
    u = (x - 16777216) >> 10
    series = 14590 + ((-3731 * u) >> 14)
    series = -30789 + ((series * u) >> 14)
    series = 65356 + ((series * u) >> 14)
    return 726817 * shifted - ((series * u) >> 10)  # 2^20 ln 2


numba.extending.register_jitable(below_24_bits)
