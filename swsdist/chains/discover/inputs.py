"""Inputs of the chain discover: the store, and the options."""

from __future__ import annotations

from functools import cached_property

from swsdist.chains.discover.options import DiscoverOptions
from swsdist.config import Config
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.stages.inputs.search_inputs import SearchInputs


class DiscoverInputs(SearchInputs):
    """The inputs of a config.

    Raises:
        ConfigError: an option is invalid.
    """

    def __init__(self, config: Config, ledger: Ledger) -> None:
        super().__init__(config, ledger)
        self.options = DiscoverOptions.model_validate(checked(CHAINS, "discover", config.options, "options"))  # type: ignore[type-var]

    @cached_property
    def tasks(self) -> int:
        """Tasks of a stage that divides documents by their names."""
        return self.config.reduce.buckets
