"""The points of a sweep: a grid, a list and random draws of values of a config's keys, one after the other.

A key is written as for `--set`: `search.distance`. Its values in a grid are a list; or a range,

    {from: 1, to: 3, step: 0.1}                both ends included, free of the rounding of repeated addition
    {from: 1, to: 1000, count: 7, scale: log}  equally spaced, or with scale: log in equal ratios

or all subsets of a list, `{subsets: [a, b, c], least: 1, most: 2}`, in the list's order, the small ones first. A random draw
takes each key from a distribution of its own: `{uniform: [1, 3]}`, `{log-uniform: [1, 1000]}`, `{integer: [1, 8]}`,
`{choice: [a, b]}`. Draw k depends on the seed, k and the key's name alone, so more draws leave those that there were as they
are.
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
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import stable_hash
from swsdist.core.text import suggestion

#: A point: the keys in which it differs from the base, with their values.
Keys = dict[str, object]


@dataclass(frozen=True)
class Where:
    """A place in a sweep's file, as messages name it: file, line and key.

    Attributes:
        origins: of all values of the file, by their places.
        place: the keys above it, and its own.
    """

    origins: Mapping[Place, Origin]
    place: Place = ()

    def below(self, *parts: int | str) -> Where:
        """A place below this one."""
        return Where(self.origins, (*self.place, *parts))

    @property
    def line(self) -> str:
        """File and line, of it or of the nearest thing above it."""
        place = self.place
        while place not in self.origins:
            place = place[:-1]
        return str(self.origins[place])

    def __str__(self) -> str:
        return f"{self.line}, {dotted(self.place)}" if self.place else self.line


#: What a grid may hold: more is a mistake of a range.
MOST_POINTS = 100_000

_RANGE, _SUBSETS = {"from", "to", "step", "count", "scale"}, {"subsets", "least", "most"}


def grid(keys: Mapping[str, object], where: Where) -> Iterator[Keys]:
    """Every combination of the values of some keys, the last key the fastest.

    Args:
        keys: by name, values as the module says.
        where: of the keys, for messages.

    Raises:
        ConfigError: a key has no values, or a range is not one.
    """
    if not keys:
        raise ConfigError("the grid is empty", where=str(where), remedy="name at least one key with its values")
    several = [_values(values, where.below(name)) for name, values in keys.items()]
    size = math.prod(len(values) for values in several)
    if size > MOST_POINTS:
        raise ConfigError(
            f"the grid has {size} points, more than {MOST_POINTS}",
            where=str(where),
            remedy="take coarser steps, or draw points at random (points.random)",
        )
    for values in product(*several):
        yield dict(zip(keys, values, strict=True))


def listed(rows: Sequence[object], where: Where) -> Iterator[Keys]:
    """Points as they are.

    Raises:
        ConfigError: one is no mapping of keys to values, or there are none.
    """
    if not rows:
        raise ConfigError("the list is empty", where=str(where), remedy="name at least one point, {key: value}")
    for k, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ConfigError(
                f"{shown(row, 60)} is no point", where=str(where.below(k)), remedy="write it as {key: value, ...}"
            )
        yield {str(name): value for name, value in row.items()}


def drawn(draws: int, seed: int, keys: Mapping[str, object], where: Where) -> Iterator[Keys]:
    """Points at random.

    Args:
        draws: how many.
        seed: not negative.
        keys: by name, distributions as the module says.
        where: of the keys, for messages.

    Raises:
        ConfigError: a distribution is not one.
    """
    if not keys:
        raise ConfigError(
            "there is nothing to draw", where=str(where), remedy="name at least one key with its distribution"
        )
    by_key = {name: _distribution(given, where.below(name)) for name, given in keys.items()}
    for k in range(draws):
        yield {
            name: draw(np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, k, stable_hash(name)]))))
            for name, draw in by_key.items()
        }


def _values(given: object, where: Where) -> list[object]:
    if isinstance(given, list | tuple):
        found = list(given)
    elif isinstance(given, Mapping) and "subsets" in given:
        found = _subsets(given, where)
    elif isinstance(given, Mapping) and "from" in given:
        found = _range(given, where)
    else:
        raise ConfigError(
            f"{shown(given, 60)} are no values of a grid",
            where=str(where),
            remedy="give a list, {from: 1, to: 3, step: 0.1}, {from: 1, to: 9, count: 3}, or {subsets: [a, b]}",
        )
    if not found:
        raise ConfigError(
            "the grid is empty: this key has no values", where=str(where), remedy="give at least one value"
        )
    return found


def _subsets(given: Mapping[str, object], where: Where) -> list[object]:
    _refuse_others(given, _SUBSETS, where)
    members = given["subsets"]
    if not isinstance(members, list | tuple):
        raise ConfigError("subsets are of a list", where=str(where), remedy="write {subsets: [a, b, c]}")
    least, most = given.get("least", 1), given.get("most", len(members))
    if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most <= len(members)):
        raise ConfigError(
            f"there are no subsets of {shown(least)} to {shown(most)} of {len(members)} members",
            where=str(where),
            remedy="give least and most between 0 and the number of members",
        )
    many = sum(math.comb(len(members), size) for size in range(least, most + 1))
    if many > MOST_POINTS:
        raise ConfigError(
            f"there are {many} subsets, more than {MOST_POINTS}",
            where=str(where),
            remedy="name fewer members, or set least and most closer together",
        )
    return [list(some) for size in range(least, most + 1) for some in combinations(members, size)]


def _range(given: Mapping[str, object], where: Where) -> list[object]:
    _refuse_others(given, _RANGE, where)
    if "to" not in given:
        raise ConfigError("a range has from and to, and to is missing", where=str(where), remedy="give to")
    first, last = _number(given.get("from"), where, "from"), _number(given.get("to"), where, "to")
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise ConfigError(f"scale is {shown(scale)}", where=str(where), remedy="it is linear or log")
    if ("step" in given) == ("count" in given):
        raise ConfigError(
            "a range has a step or a count, and one of them", where=str(where), remedy="give step, or count"
        )
    if "step" in given:
        step = _number(given["step"], where, "step")
        many = int((Decimal(str(last)) - Decimal(str(first))) / Decimal(str(step))) + 1 if step > 0 else 0
        if scale == "log" or not 0 < many <= MOST_POINTS or last < first:
            raise ConfigError(
                f"there are no values from {first:g} to {last:g} by {step:g}",
                where=str(where),
                remedy="give from below to, and a step above 0; a scale of log goes with count",
            )
        exact = [Decimal(str(first)) + k * Decimal(str(step)) for k in range(many)]
        whole = all(isinstance(given[name], int) for name in ("from", "to", "step"))
        return [int(value) if whole else float(value) for value in exact]
    count = given["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_POINTS:
        raise ConfigError(
            f"count is {shown(count)}", where=str(where), remedy="give how many values there are, 1 or more"
        )
    if scale == "log" and not 0 < first <= last:
        raise ConfigError("a scale of log is of numbers above 0", where=str(where), remedy="give from and to above 0")
    made = np.geomspace(first, last, count) if scale == "log" else np.linspace(first, last, count)
    # Twelve digits: a value is what the table shows of it, on every machine.
    return [float(f"{value:.12g}") for value in made]


def _distribution(given: object, where: Where) -> Callable[[np.random.Generator], object]:
    kinds = ("uniform", "log-uniform", "integer", "choice")
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ConfigError(
            f"{shown(given, 60)} is no distribution",
            where=str(where),
            remedy="give {uniform: [LOW, HIGH]}, {log-uniform: [LOW, HIGH]}, {integer: [LOW, HIGH]} or {choice: [...]}",
        )
    ((kind, bounds),) = given.items()
    if kind not in kinds:
        raise ConfigError(
            f"there is no distribution {kind!r}{suggestion(str(kind), kinds)}",
            where=str(where),
            remedy=f"distributions are {', '.join(kinds)}",
        )
    if not isinstance(bounds, list | tuple) or not bounds or (kind != "choice" and len(bounds) != 2):
        raise ConfigError(f"{kind} has {shown(bounds, 60)}", where=str(where), remedy=f"write {{{kind}: [LOW, HIGH]}}")
    if kind == "choice":
        choices = list(bounds)
        return lambda random: choices[int(random.integers(len(choices)))]
    low, high = (_number(bound, where, kind) for bound in bounds)
    if low > high or (kind == "log-uniform" and low <= 0):
        raise ConfigError(
            f"{kind} from {low:g} to {high:g} has no values",
            where=str(where),
            remedy="give the lower bound first" + (", above 0" if kind == "log-uniform" else ""),
        )
    if kind == "integer":
        if not (low.is_integer() and high.is_integer()):
            raise ConfigError(
                f"integer has {shown(bounds, 60)}", where=str(where), remedy="give whole numbers, or take uniform"
            )
        return lambda random: int(random.integers(int(low), int(high), endpoint=True))
    if kind == "uniform":
        return lambda random: float(f"{random.uniform(low, high):.12g}")
    return lambda random: float(f"{math.exp(random.uniform(math.log(low), math.log(high))):.12g}")


def _number(value: object, where: Where, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{name} is {shown(value)}, no finite number", where=str(where), remedy="give a number")
    return float(value)


def _refuse_others(given: Mapping[str, object], known: set[str], where: Where) -> None:
    if others := sorted(set(given) - known):
        raise ConfigError(
            f"no such key {others[0]}{suggestion(others[0], sorted(known))}",
            where=str(where),
            remedy=f"allowed here: {', '.join(sorted(known))}",
        )
