"""The proposers by name. A new one is a file here, and a line in `PROPOSERS`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from swsdist.errors import ConfigError

if TYPE_CHECKING:
    from swsdist.methods.first_pass.interface import Proposer

#: Name -> `module:class` in this package.
PROPOSERS = {
    "coarse": "coarse:Coarse",
    "averaged": "averaged:Averaged",
    "quantised": "quantised:Quantised",
}


def create(name: str, **options: Any) -> Proposer:
    """The proposer of that name; options are its fields.

    Raises:
        ConfigError: there is none.
    """
    if name not in PROPOSERS:
        raise ConfigError(
            f"there is no proposer {name!r}",
            where="search.proposer.name",
            remedy=f"one of none, {', '.join(PROPOSERS)}",
        )
    module, made = PROPOSERS[name].split(":")
    proposer: Proposer = getattr(import_module(f"swsdist.methods.first_pass.{module}"), made)(**options)
    return proposer
