"""The natural logarithm with + - * / alone, so that it is the same on every CPU.

Those of the C libraries and of numpy's vector code differ in their last bit between CPUs; IEEE 754 fixes the four
operations. With x = m 2^e, m within sqrt(1/2)..sqrt(2), and s = (m - 1)/(m + 1)::

    ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)          |s| <= 0.172: the first term left out is below 2^-60 of the sum

Error: at most some 2^-50 of max(1, |ln x|).
"""

from __future__ import annotations

from math import frexp

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
