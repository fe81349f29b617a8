"""A local distance by its name: see `swsdist.registry.registries.DISTANCES`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from swsdist.kernels.distances.interface import Distance
from swsdist.registry.entries import checked
from swsdist.registry.registries import DISTANCES


def create(name: str, dimension: int, options: Mapping[str, object] | None = None) -> Distance:
    """The distance of that name for features of that dimension.

    Args:
        name: registered.
        dimension: at least 1.
        options: those that are not as they are by default, such as `floor` or `cap`.

    Raises:
        ConfigError: there is no such distance, or it does not take such an option.
        UserError: the dimension is too large for it.
    """
    return _made(name, dimension, tuple(sorted(checked(DISTANCES, name, options or {}).items())))


@cache
def _made(name: str, dimension: int, options: tuple[tuple[str, object], ...]) -> Distance:
    entry = DISTANCES[name]
    distance: Distance = entry.load()(name, entry.unit, dimension, **dict(options))
    return distance
