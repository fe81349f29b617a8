"""The points of a sweep: a grid, a list, and random draws of values of config keys.

A key is written as for `--set`: `search.distance`. Its values in a grid are a list; or a range,

    {from: 1, to: 3, step: 0.1}                both ends included, free of the rounding of repeated addition
    {from: 1, to: 1000, count: 7, scale: log}  equally spaced, or with scale: log in equal ratios

or all subsets of a list, `{subsets: [a, b, c], least: 1, most: 2}`, in the list's order, the small ones first. A random draw
takes each key from a distribution: `{uniform: [1, 3]}`, `{log-uniform: [1, 1000]}`, `{integer: [1, 8]}`,
`{choice: [a, b]}`. Draw k depends only on the seed, k and the key's name, so more draws do not change
earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, product

import numpy as np

from swsdist.config.reading import Origin
from swsdist.config.suggest import Place, dotted, shown
from swsdist.core.codes import sweep as codes
from swsdist.core.fingerprint import stable_hash
from swsdist.core.text import suggestion

#: A point: the keys that differ from the base, with their values.
Keys = dict[str, object]


@dataclass(frozen=True)
class SweepPlace:
    """A place in a sweep's file for messages: file, line and key.

    Attributes:
        origins: of all values of the file, by their places.
        place: its key, after the keys above it.
    """

    origins: Mapping[Place, Origin]
    place: Place = ()

    def below(self, *parts: int | str) -> SweepPlace:
        """A place below this one."""
        return SweepPlace(self.origins, (*self.place, *parts))

    @property
    def line(self) -> str:
        """File and line of the place, or of the nearest place above."""
        place = self.place
        while place not in self.origins:
            place = place[:-1]
        return str(self.origins[place])

    def __str__(self) -> str:
        return f"{self.line}, {dotted(self.place)}" if self.place else self.line


#: Most points of a grid; more come from a wrong range.
MOST_POINTS = 100_000

_RANGE, _SUBSETS = {"from", "to", "step", "count", "scale"}, {"subsets", "least", "most"}


def grid_points(keys: Mapping[str, object], where: SweepPlace) -> Iterator[Keys]:
    """Every combination of the values of some keys, the last key the fastest.

    Args:
        keys: by name, values as in the module's docstring.
        where: of the keys, for messages.

    Raises:
        ConfigError: a key has no values, or a range is invalid.
    """
    if not keys:
        raise codes.EMPTY_GRID(where=str(where))
    several = [_values(values, where.below(name)) for name, values in keys.items()]
    size = math.prod(len(values) for values in several)
    if size > MOST_POINTS:
        raise codes.LARGE_GRID(where=str(where), count=size, limit=MOST_POINTS)
    for values in product(*several):
        yield dict(zip(keys, values, strict=True))


def list_points(rows: Sequence[object], where: SweepPlace) -> Iterator[Keys]:
    """Points of a list.

    Raises:
        ConfigError: a point is not a mapping of keys to values, or the list is empty.
    """
    if not rows:
        raise codes.EMPTY_LIST(where=str(where))
    for k, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise codes.NOT_A_POINT(where=str(where.below(k)), value=shown(row, 60))
        yield {str(name): value for name, value in row.items()}


def draw_points(draws: int, seed: int, keys: Mapping[str, object], where: SweepPlace) -> Iterator[Keys]:
    """Points at random.

    Args:
        draws: how many.
        seed: not negative.
        keys: by name, distributions as in the module's docstring.
        where: of the keys, for messages.

    Raises:
        ConfigError: an invalid distribution.
    """
    if not keys:
        raise codes.EMPTY_DRAW(where=str(where))
    by_key = {name: _distribution(value, where.below(name)) for name, value in keys.items()}
    for k in range(draws):
        yield {
            name: draw(np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, k, stable_hash(name)]))))
            for name, draw in by_key.items()
        }


def _values(value: object, where: SweepPlace) -> list[object]:
    if isinstance(value, list | tuple):
        results = list(value)
    elif isinstance(value, Mapping) and "subsets" in value:
        results = _subsets(value, where)
    elif isinstance(value, Mapping) and "from" in value:
        results = _range(value, where)
    else:
        raise codes.NOT_GRID_VALUES(where=str(where), value=shown(value, 60))
    if not results:
        raise codes.NO_GRID_VALUES(where=str(where))
    return results


def _subsets(value: Mapping[str, object], where: SweepPlace) -> list[object]:
    _refuse_unknown_keys(value, _SUBSETS, where)
    members = value["subsets"]
    if not isinstance(members, list | tuple):
        raise codes.SUBSETS_OF_LIST(where=str(where))
    least, most = value.get("least", 1), value.get("most", len(members))
    if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most <= len(members)):
        raise codes.SUBSET_SIZES(where=str(where), least=shown(least), most=shown(most), members=len(members))
    many = sum(math.comb(len(members), size) for size in range(least, most + 1))
    if many > MOST_POINTS:
        raise codes.MANY_SUBSETS(where=str(where), count=many, limit=MOST_POINTS)
    return [list(some) for size in range(least, most + 1) for some in combinations(members, size)]


def _range(given: Mapping[str, object], where: SweepPlace) -> list[object]:
    _refuse_unknown_keys(given, _RANGE, where)
    if "to" not in given:
        raise codes.RANGE_WITHOUT_END(where=str(where))
    first, last = _number(given.get("from"), where, "from"), _number(given.get("to"), where, "to")
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise codes.RANGE_SCALE(where=str(where), value=shown(scale))
    if ("step" in given) == ("count" in given):
        raise codes.STEP_OR_COUNT(where=str(where))
    if "step" in given:
        step = _number(given["step"], where, "step")
        many = int((Decimal(str(last)) - Decimal(str(first))) / Decimal(str(step))) + 1 if step > 0 else 0
        if scale == "log" or not 0 < many <= MOST_POINTS or last < first:
            raise codes.EMPTY_RANGE(where=str(where), first=first, last=last, step=step)
        exact = [Decimal(str(first)) + k * Decimal(str(step)) for k in range(many)]
        integral = all(isinstance(given[name], int) for name in ("from", "to", "step"))
        return [int(value) if integral else float(value) for value in exact]
    count = given["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_POINTS:
        raise codes.RANGE_COUNT(where=str(where), value=shown(count))
    if scale == "log" and not 0 < first <= last:
        raise codes.LOG_OF_ZERO(where=str(where))
    values = np.geomspace(first, last, count) if scale == "log" else np.linspace(first, last, count)
    # Twelve digits, so that values equal those in the table, on every machine.
    return [float(f"{value:.12g}") for value in values]


def _distribution(value: object, where: SweepPlace) -> Callable[[np.random.Generator], object]:
    kinds = ("uniform", "log-uniform", "integer", "choice")
    if not isinstance(value, Mapping) or len(value) != 1:
        raise codes.NOT_A_DISTRIBUTION(where=str(where), value=shown(value, 60))
    ((kind, bounds),) = value.items()
    if kind not in kinds:
        raise codes.UNKNOWN_DISTRIBUTION(
            where=str(where), name=kind, meant=suggestion(str(kind), kinds), known=", ".join(kinds)
        )
    if not isinstance(bounds, list | tuple) or not bounds or (kind != "choice" and len(bounds) != 2):
        raise codes.DISTRIBUTION_BOUNDS(where=str(where), name=kind, value=shown(bounds, 60))
    if kind == "choice":
        choices = list(bounds)
        return lambda random: choices[int(random.integers(len(choices)))]
    low, high = (_number(bound, where, kind) for bound in bounds)
    if low > high or (kind == "log-uniform" and low <= 0):
        error = codes.NOT_ABOVE_ZERO if kind == "log-uniform" else codes.EMPTY_DISTRIBUTION
        raise error(where=str(where), name=kind, low=low, high=high)
    if kind == "integer":
        if not (low.is_integer() and high.is_integer()):
            raise codes.FRACTIONAL_BOUNDS(where=str(where), value=shown(bounds, 60))
        return lambda random: int(random.integers(int(low), int(high), endpoint=True))
    if kind == "uniform":
        return lambda random: float(f"{random.uniform(low, high):.12g}")
    return lambda random: float(f"{math.exp(random.uniform(math.log(low), math.log(high))):.12g}")


def _number(value: object, where: SweepPlace, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise codes.NOT_FINITE_BOUND(where=str(where), name=name, value=shown(value))
    return float(value)


def _refuse_unknown_keys(value: Mapping[str, object], allowed: set[str], where: SweepPlace) -> None:
    if others := sorted(set(value) - allowed):
        raise codes.UNKNOWN_SWEEP_KEY(
            where=str(where),
            key=others[0],
            meant=suggestion(others[0], sorted(allowed)),
            known=", ".join(sorted(allowed)),
        )
