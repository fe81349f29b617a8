"""A first pass by its name: see `swsdist.registry.registries.FIRST_PASSES`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swsdist.registry.entries import checked
from swsdist.registry.registries import FIRST_PASSES

if TYPE_CHECKING:
    from swsdist.methods.first_pass.interface import FirstPass


def create(name: str, **options: object) -> FirstPass:
    """The first pass of that name.

    Raises:
        ConfigError: there is none, or it does not take such an option.
    """
    complete = checked(FIRST_PASSES, name, options)
    first_pass: FirstPass = FIRST_PASSES[name].load()(**complete)
    return first_pass
