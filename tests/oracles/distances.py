"""What local distances mean, written slowly and plainly: the kernels are held against these.

Three things of each distance, on Python numbers and lists: its value (`exact`, float64, nothing in fixed point), the
integers that its frames become (`frame`), and the integer that a product of two frames becomes (`mapped`). Logarithms are
of decimals, so that they are right to the last bit.
"""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

#: What is passed for `options`: `floor` or `cap`, all that the distance takes.
Options = dict[str, float]


def ln(x: float | Decimal) -> float:
    """The natural logarithm, correctly rounded."""
    with localcontext() as context:
        context.prec = 40
        return float(Decimal(x).ln())


def _normalised(p: Sequence[float]) -> list[float]:
    total = _sum(p)
    return [one / total for one in p] if total else list(p)


def _smoothed(p: Sequence[float], floor: float) -> list[float]:
    if not any(p):
        return [1.0 / len(p)] * len(p)
    return [(one + floor) / (1.0 + len(p) * floor) for one in _normalised(p)]


def _centred(values: Sequence[float]) -> list[float]:
    mean = _sum(values) / len(values)
    return [value - mean for value in values]


def _sum(values: Sequence[float]) -> float:
    """In the order of the index, as the kernels add; Python's own sum of floats compensates from 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


def _family(name: str) -> str:
    return name.removesuffix("-squared")


def _cosine_of(name: str, values: Sequence[float], options: Options) -> tuple[list[float], float]:
    """The vector that a distance takes the cosine of, and the norm up to which it says nothing."""
    if name == "bhattacharyya":
        return [math.sqrt(p) for p in values], 0.0
    if name == "log-posterior-cosine":
        return _centred([ln(p + options["floor"]) for p in values]), 1e-6
    return list(values), 0.0


def exact(name: str, query: Sequence[float], document: Sequence[float], options: Options) -> float:
    """The value of a distance between two frames, in its own terms: 1 is 1."""
    if name.endswith("-squared"):
        return exact(_family(name), query, document, options) ** 2
    if name == "cosine-exp":
        return math.expm1(exact("cosine", query, document, options))
    if name == "cosine-neg-log":
        return -ln(max(4e-4, 1.0 - exact("cosine", query, document, options)))
    if name == "euclidean":
        return math.dist(query, document) / options["cap"]
    if name == "inner-product":
        product = math.fsum(a * b for a, b in zip(_normalised(query), _normalised(document), strict=True))
        return max(0.0, -ln(product + options["floor"]))
    if name in ("kl", "kl-symmetric"):
        q, x = _smoothed(query, options["floor"]), _smoothed(document, options["floor"])
        forth = math.fsum(a * (ln(a) - ln(b)) for a, b in zip(q, x, strict=True))
        back = math.fsum(b * (ln(b) - ln(a)) for a, b in zip(q, x, strict=True))
        return forth if name == "kl" else (forth + back) / 2
    (q, nothing), (x, _) = _cosine_of(name, query, options), _cosine_of(name, document, options)
    lengths = math.hypot(*q), math.hypot(*x)
    if min(lengths) <= nothing:
        return 1.0
    return 1.0 - math.fsum(a * b for a, b in zip(q, x, strict=True)) / lengths[0] / lengths[1]


def frame(name: str, values: Sequence[float], side: str, options: Options) -> tuple[list[int], bool]:
    """The integers that a normalised frame becomes, and whether it was saturated."""
    name = _family(name)
    if name == "euclidean":
        return _euclidean_frame(values, side, options["cap"])
    if name == "inner-product":
        added = round(options["floor"] * 3840 * 3840 / 64)
        return [*(round(p * 3840) for p in _normalised(values)), 64 if side == "query" else added], False
    if name in ("kl", "kl-symmetric"):
        of_nat = 128 if name == "kl" else 64
        smoothed = _smoothed(values, options["floor"])
        weights = [round(p * 4096) for p in smoothed]
        logarithms = [round(-ln(p) * of_nat) for p in smoothed]
        entropy = round(Fraction(-sum(q * log for q, log in zip(weights, logarithms, strict=True)), 2 * of_nat))
        if name == "kl":
            return ([*weights, entropy] if side == "query" else [*logarithms, 256]), False
        if side == "query":
            return [*weights, *logarithms, entropy, 128], False
        return [*logarithms, *weights, 128, entropy], False
    vector, nothing = _cosine_of(name, values, options)
    norm = math.sqrt(_sum([value * value for value in vector]))
    return [0 if norm <= nothing else round(value / norm * 2.0**11.5) for value in vector], False


def _euclidean_frame(values: Sequence[float], side: str, cap: float) -> tuple[list[int], bool]:
    of_cap = 2.0**11.5
    longest = of_cap - math.sqrt(len(values)) / 2
    norm = math.sqrt(_sum([value * value for value in values]))
    saturated = norm * (of_cap / cap) > longest
    factor = longest / norm if saturated else of_cap / cap
    whole = [round(value * factor) for value in values]
    high, low = divmod(sum(x * x for x in whole) // 2, 2048)
    return [*whole, *((-high, -low, -2048, -1) if side == "query" else (2048, 1, high, low))], saturated


def mapped(name: str, dot: int, options: Options) -> int:
    """The integer of 0..4095 that a product becomes."""
    if name == "euclidean-squared":
        d = (2048 - dot) // 4096
    elif name.endswith("-squared"):
        d = (mapped(_family(name), dot, options) ** 2 + 2048) // 4096
    elif name == "euclidean":
        d = (math.isqrt(4 * max(0, -dot)) + 1) // 2
    elif name == "inner-product":
        d = (2048 - 135347 + _from_2_to_24(min(max(dot, 1), 1 << 24))) // 4096
    elif name == "cosine-neg-log":
        d = (1024 + max(_from_2_to_24(min(max(dot, 3355), 1 << 23)) - 726817, 0)) // 2048
    elif name == "cosine-exp":
        x = min(max(2**23 - dot, 0), 2**24)
        k, f = divmod((x + 64) // 2**7 + (x // 2**9 * 58025 + 2**14) // 2**15, 2**16)
        series = 3955 + (852 + 222 * f // 2**16) * f // 2**16
        power = 2**21 + (11355 + (series * f + 2**15) // 2**16) * f // 2**9
        d = (2048 - 2**21 + power * 2**k) // 4096
    elif name in ("kl", "kl-symmetric"):
        d = (dot + 2048) // 4096
    else:
        d = round(Fraction(2048) - Fraction(dot, 4096))
    return min(max(d, 0), 4095)


def _from_2_to_24(n: int) -> int:
    """2^20 (24 ln 2 - ln n), of an integer up to 2^24, by a polynomial."""
    exponent = n.bit_length() - 1
    u = (n << 14 >> exponent) - 2**14
    series = 0
    for c in (-3731, 14590, -30789, 65356):
        series = c + (series * u >> 14)
    return 726817 * (24 - exponent) - (series * u >> 10)


def distance(name: str, query: Sequence[int], document: Sequence[int], options: Options) -> int:
    """The integer that the distance between two prepared frames is."""
    return mapped(name, sum(a * b for a, b in zip(query, document, strict=True)), options)


def weighted(values: Sequence[tuple[int, int, int]], unit: int) -> int:
    """The integer that a weighted sum is: of (d, its unit, weight), in units of its own."""
    total = sum((Fraction(weight * d, of_one) for d, of_one, weight in values), Fraction())
    return min(max(math.floor(total * unit + Fraction(1, 2)), 0), 4095)
