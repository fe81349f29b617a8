"""Cepstra of frames of samples, sixteen frames at a time: window, Fourier transform, filters, logarithm, cosine transform.

A frame is one lane of `kernels.vectors`, so its bytes depend on no other frame, on no block and on no processor: each
sum has one order, and nothing is contracted or left to a library. float64 throughout.

The transform of n real samples is that of n / 2 complex ones, x[2k] + i x[2k + 1], taken apart afterwards; of an odd
n it is that of n samples without an imaginary part. It is Stockham's (Cochran and others 1967, "What is the fast
Fourier transform?"), which needs no bit reversal: stages of radix 4, then of the other prime factors. Arrays of lanes
are flat: number k of frame j lies at ``16 * k + j``.

The logarithm of 2^e m, with m from sqrt(1/2) up to sqrt(2), is that of 2^e and 2 atanh((m - 1) / (m + 1)), a power
series, to the last bit or two.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import literal_unroll, types

from swsdist.core.arrays import Floats, Ints, Singles
from swsdist.kernels.arithmetic import choose
from swsdist.kernels.compiled import compiled
from swsdist.kernels.vectors import WIDTH, lanes_of, load, spread, store

#: Decibels of a factor e and of a factor 2.
_PER_E, _PER_2 = 10.0 / math.log(10.0), 10.0 * math.log10(2.0)

#: Coefficients of atanh(s) / s in powers of s^2, the highest first; s^2 is below 0.03.
_SERIES = tuple(1.0 / (2 * k + 1) for k in range(11, -1, -1))

#: Bits of sqrt(1/2); what makes a small integer a float64 when it is added to the bits of 1.5 * 2^52.
_ROOT, _MAGIC, _MAGIC_BITS = 0x3FE6A09E667F3BCD, 6755399441055744.0, 0x4338000000000000


class Transform(NamedTuple):
    """A Fourier transform.

    Attributes:
        radices: int64, of the stages.
        cos, sin: float64 (complex length,), of -2 pi k / length.
        post_cos, post_sin: float64 (bins,), of -2 pi k / n, for an even n.
    """

    radices: Ints
    cos: Floats
    sin: Floats
    post_cos: Floats
    post_sin: Floats


@cache
def transform(n: int) -> Transform:
    """The transform of n real samples."""
    length = n if n % 2 else n // 2
    radices, left, factor = [], length, 2
    while left % 4 == 0:
        radices.append(4)
        left //= 4
    while left > 1:
        while left % factor == 0:
            radices.append(factor)
            left //= factor
        factor += 1
    return Transform(np.array(radices, np.int64), *circle(length, length), *circle(n // 2 + 1, n))


def circle(count: int, n: int) -> tuple[Floats, Floats]:
    """cos and sin of -2 pi k / n for k below `count`, by long doubles: float64 functions differ between processors."""
    angles = -8 * np.arctan(np.longdouble(1)) * (np.arange(count) % n).astype(np.longdouble) / n
    return np.cos(angles).astype(np.float64), np.sin(angles).astype(np.float64)


@compiled("void(float64[::1],float64[::1],float64[::1],float64[::1],int64,int64,float64[::1],float64[::1])")
def _radix_4(xr: Floats, xi: Floats, yr: Floats, yi: Floats, n: int, s: int, cos: Floats, sin: Floats) -> None:
    stride, step = s * WIDTH, len(cos) // n
    quarter = n // 4 * stride
    for p in range(n // 4):
        c1, d1 = cos[p * step], sin[p * step]
        c2, d2 = cos[2 * p * step], sin[2 * p * step]
        c3, d3 = cos[3 * p * step], sin[3 * p * step]
        for q in range(0, stride, WIDTH):
            i, j = p * stride + q, 4 * p * stride + q
            x0, x1, x2, x3 = load(xr, i), load(xr, i + quarter), load(xr, i + 2 * quarter), load(xr, i + 3 * quarter)
            ar, br, cr, dr = x0 + x2, x0 - x2, x1 + x3, x1 - x3
            x0, x1, x2, x3 = load(xi, i), load(xi, i + quarter), load(xi, i + 2 * quarter), load(xi, i + 3 * quarter)
            ai, bi, ci, di = x0 + x2, x0 - x2, x1 + x3, x1 - x3
            store(yr, j, ar + cr)
            store(yi, j, ai + ci)
            re, im = br + di, bi - dr
            store(yr, j + stride, re * c1 - im * d1)
            store(yi, j + stride, re * d1 + im * c1)
            re, im = ar - cr, ai - ci
            store(yr, j + 2 * stride, re * c2 - im * d2)
            store(yi, j + 2 * stride, re * d2 + im * c2)
            re, im = br - di, bi + dr
            store(yr, j + 3 * stride, re * c3 - im * d3)
            store(yi, j + 3 * stride, re * d3 + im * c3)


@compiled("void(float64[::1],float64[::1],float64[::1],float64[::1],int64,int64,int64,float64[::1],float64[::1])")
def _radix(xr: Floats, xi: Floats, yr: Floats, yi: Floats, r: int, n: int, s: int, cos: Floats, sin: Floats) -> None:
    stride, step, turn = s * WIDTH, len(cos) // n, len(cos) // r
    leg = n // r * stride
    for p in range(n // r):
        for q in range(0, stride, WIDTH):
            i = p * stride + q
            for j in range(r):
                re, im = load(xr, i), load(xi, i)
                for k in range(1, r):
                    c, d = cos[j * k % r * turn], sin[j * k % r * turn]
                    xk, yk = load(xr, i + k * leg), load(xi, i + k * leg)
                    re, im = re + (xk * c - yk * d), im + (xk * d + yk * c)
                c, d = cos[j * p * step], sin[j * p * step]
                at = (r * p + j) * stride + q
                store(yr, at, re * c - im * d)
                store(yi, at, re * d + im * c)


@compiled("void(float64[::1],float64[::1],float64[::1],float64[::1],float64[::1])")
def _halves_power(zr: Floats, zi: Floats, cos: Floats, sin: Floats, power: Floats) -> None:
    """Squared magnitudes of bins 0 to n / 2, from the transform of pairs."""
    length = len(cos) - 1
    for k in range(length + 1):
        a, b = k % length * WIDTH, (length - k) % length * WIDTH
        ar, ai, br, bi = load(zr, a), load(zi, a), load(zr, b), load(zi, b)
        er, ei, dr, di = ar + br, ai - bi, ai + bi, br - ar
        re, im = er + (dr * cos[k] - di * sin[k]), ei + (dr * sin[k] + di * cos[k])
        store(power, k * WIDTH, (re * re + im * im) * 0.25)


@compiled("void(float64[::1],int64[::1],int64[::1],int64[::1],float64[::1])")
def _decibels(energies: Floats, bits: Ints, mantissas: Ints, exponents: Ints, out: Floats) -> None:
    """10 log10 of positive normal numbers, whose bits are `bits`; of others not a number. Two arrays are scratch."""
    mantissa, magic = mantissas.view(np.float64), exponents.view(np.float64)
    for k in range(0, len(bits), WIDTH):
        number, energy = load(bits, k), load(energies, k)
        exponent = (number - _ROOT) >> 52
        store(mantissas, k, number - (exponent << 52))
        store(exponents, k, exponent + _MAGIC_BITS)
        m = load(mantissa, k)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        total = z * _SERIES[0] + _SERIES[1]
        for coefficient in literal_unroll(_SERIES[2:]):
            total = total * z + coefficient
        # The last term is 0, or not a number.
        store(out, k, (load(magic, k) - _MAGIC) * _PER_2 + s * total * (2.0 * _PER_E) + (energy - energy))


@compiled(
    types.void(
        types.Array(types.float32, 1, "C", readonly=True),
        *(types.int64, types.float64[::1], types.int64, types.int64[::1]),
        *(types.float64[::1], types.float64[::1], types.float64[::1], types.float64[::1]),
        *(types.int64[:, ::1], types.float64[::1], types.float64, types.float64[:, ::1], types.float64[:, ::1]),
    )
)
def _cepstra(
    samples: Singles,
    hop: int,
    window: Floats,
    n: int,
    radices: Ints,
    cos: Floats,
    sin: Floats,
    post_cos: Floats,
    post_sin: Floats,
    filters: Ints,
    weights: Floats,
    floor: float,
    cosines: Floats,
    out: Floats,
) -> None:
    length, bins, left = len(cos), n // 2 + 1, (n - len(window)) // 2
    paired, starts = 2 - n % 2, np.empty(WIDTH, np.int64)
    xr, xi = np.zeros(length * WIDTH), np.zeros(length * WIDTH)
    yr, yi = np.empty(length * WIDTH), np.empty(length * WIDTH)
    power, energies = np.empty(bins * WIDTH), np.empty(len(filters) * WIDTH)
    mantissas, exponents = np.empty(len(energies), np.int64), np.empty(len(energies), np.int64)
    decibels, cepstrum = np.empty(len(energies)), np.empty(WIDTH)
    for first in range(0, len(out), WIDTH):
        count = min(WIDTH, len(out) - first)
        for lane in range(WIDTH):  # lanes that are left over repeat a frame
            starts[lane] = min(first + lane, len(out) - 1) * hop + left
        xr[:], xi[:] = 0.0, 0.0
        for k in range(len(window)):
            place, weight = (left + k) // paired * WIDTH, window[k]
            into = xi if (left + k) % paired else xr
            for lane in range(WIDTH):
                into[place + lane] = np.float64(samples[starts[lane] + k]) * weight
        size, s = length, 1
        for r in radices:
            if r == 4:
                _radix_4(xr, xi, yr, yi, size, s, cos, sin)
            else:
                _radix(xr, xi, yr, yi, r, size, s, cos, sin)
            xr, xi, yr, yi = yr, yi, xr, xi
            size, s = size // r, s * r
        if paired == 2:
            _halves_power(xr, xi, post_cos, post_sin, power)
        else:
            for k in range(0, bins * WIDTH, WIDTH):
                re, im = load(xr, k), load(xi, k)
                store(power, k, re * re + im * im)
        for band in range(len(filters)):
            begin, end, at = filters[band]
            total = lanes_of(power)
            for k in range(begin, end):
                total = total + load(power, k * WIDTH) * weights[at + k - begin]
            least = spread(floor, total)
            store(energies, band * WIDTH, choose(total, least, least, total))
        _decibels(energies, energies.view(np.int64), mantissas, exponents, decibels)
        for c in range(len(cosines)):
            total = load(decibels, 0) * cosines[c, 0]
            for band in range(1, len(filters)):
                total = total + load(decibels, band * WIDTH) * cosines[c, band]
            store(cepstrum, 0, total)
            for lane in range(count):
                out[first + lane, c] = cepstrum[lane]


@compiled("void(float64[:,::1],float64[::1],float64,float32[:,:])")
def differences(values: Floats, weights: Floats, sign: float, out: Singles) -> None:
    """Sums of neighbouring rows with weights; beyond the ends the end rows are repeated.

    Args:
        values: (rows, columns).
        weights: of an odd number of rows, as many before a row as behind it.
        sign: 1: weights before and behind are equal; -1: they are opposite.
        out: (rows, columns).
    """
    rows, columns = values.shape
    middle = len(weights) // 2
    for t in range(rows):
        for c in range(columns):
            total = values[t, c] * weights[middle]
            for k in range(middle, 0, -1):
                before, behind = values[max(0, t - k), c], values[min(rows - 1, t + k), c]
                total = total + (before + sign * behind) * weights[middle - k]
            out[t, c] = total


class Filters(NamedTuple):
    """Filters of neighbouring bins.

    Attributes:
        places: int64 (filters, 3): first bin, bin after the last, place of the first weight.
        weights: float64, of all filters, one after the other.
    """

    places: Ints
    weights: Floats


def packed(filters: Floats) -> Filters:
    """Filters as float64 (filters, bins), without their zeros at both ends."""
    places, weights, at = [], [np.empty(0)], 0
    for row in filters:
        used = np.flatnonzero(row)
        begin, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
        places.append((begin, end, at))
        weights.append(row[begin:end])
        at += end - begin
    return Filters(np.array(places, np.int64), np.concatenate(weights))


def cepstra(
    samples: Singles, hop: int, window: Floats, n: int, filters: Filters, floor: float, cosines: Floats
) -> Floats:
    """Cepstra of all frames in a stretch of samples.

    Args:
        samples: float32 (at least n,).
        hop: samples from one frame to the next.
        window: float64 (at most n,), centred in the frame.
        n: samples of a frame, and points of the transform.
        filters: of bins 0 to n / 2 of the power.
        floor: least energy, a positive normal number.
        cosines: float64 (cepstra, filters), the transform of decibels.

    Returns:
        float64 (frames, cepstra); of a frame with samples that are not finite, not finite.
    """
    out = np.empty((1 + (len(samples) - n) // hop, len(cosines)))
    _cepstra(np.ascontiguousarray(samples), hop, window, n, *transform(n), *filters, floor, cosines, out)
    return out
