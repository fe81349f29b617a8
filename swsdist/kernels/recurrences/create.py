"""A recurrence by its name: see `swsdist.registry.registries.RECURRENCES`. docs/concepts/recurrences.md compares them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from swsdist.kernels.recurrences.interface import Recurrence
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECURRENCES


def create(name: str, options: Mapping[str, object] | None = None) -> Recurrence:
    """The recurrence of that name.

    Args:
        name: registered.
        options: those that are not as they are by default, such as `band`.

    Raises:
        ConfigError: there is no such recurrence, or it does not take such an option.
    """
    return _made(name, tuple(sorted(checked(RECURRENCES, name, options or {}).items())))


@cache
def _made(name: str, options: tuple[tuple[str, object], ...]) -> Recurrence:
    recurrence: Recurrence = RECURRENCES[name].load()(**dict(options))
    return recurrence
