"""The local distances by name. A new one is a file here, a line in `REGISTRY`, and its name in
`swsdist.config.distances`.

Loads no kernels until a distance is made: planning needs the units only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from swsdist.errors import ConfigError

if TYPE_CHECKING:
    from swsdist.kernels.distances.interface import Distance


class Entry(NamedTuple):
    """Where a distance is made.

    Attributes:
        maker: `module:function` in this package; the function takes name, unit and dimension, and the options by name.
        unit: the integer that stands for a distance of 1; a power of two.
        options: those that the maker takes, numbers all.
    """

    maker: str
    unit: int
    options: tuple[str, ...] = ()


REGISTRY: dict[str, Entry] = {
    "cosine": Entry("cosine:plain", 2048),
    "cosine-squared": Entry("cosine:squared", 1024),
    "bhattacharyya": Entry("bhattacharyya:plain", 2048),
    "bhattacharyya-squared": Entry("bhattacharyya:squared", 1024),
    "log-posterior-cosine": Entry("log_posterior:plain", 2048, ("floor",)),
    "log-posterior-cosine-squared": Entry("log_posterior:squared", 1024, ("floor",)),
    "kl": Entry("kl:directed", 128, ("floor",)),
    "kl-symmetric": Entry("kl:symmetric", 128, ("floor",)),
    "inner-product": Entry("inner_product:negative_log", 256, ("floor",)),
    "euclidean": Entry("euclidean:plain", 2048, ("cap",)),
    "euclidean-squared": Entry("euclidean:squared", 1024, ("cap",)),
}


def create(name: str, dimension: int, options: Mapping[str, float] | None = None) -> Distance:
    """The distance of that name for features of that dimension.

    Args:
        name: in `REGISTRY`.
        dimension: at least 1.
        options: `floor` or `cap`, where the distance takes it; its default otherwise.

    Raises:
        ConfigError: there is no such distance, or it does not take such an option.
        UserError: the dimension is too large for it.
    """
    given = {} if options is None else dict(options)
    if name not in REGISTRY:
        raise ConfigError(
            f"there is no distance {name}", where="search.distance", remedy=f"one of {', '.join(REGISTRY)}"
        )
    for option in given:
        if option not in REGISTRY[name].options:
            raise ConfigError(
                f"the distance {name} takes no {option}",
                where=f"search.{option}",
                remedy=f"it takes {', '.join(REGISTRY[name].options) or 'no options'}",
            )
    return _made(name, dimension, tuple(sorted(given.items())))


@cache
def _made(name: str, dimension: int, options: tuple[tuple[str, float], ...]) -> Distance:
    module, function = REGISTRY[name].maker.split(":")
    maker = getattr(import_module(f"swsdist.kernels.distances.{module}"), function)
    made: Distance = maker(name, REGISTRY[name].unit, dimension, **dict(options))
    return made
