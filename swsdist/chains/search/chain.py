"""The chain search: from audio and spoken queries to a scored report."""

from __future__ import annotations

from swsdist.chains.assembly import assemble
from swsdist.config import Config
from swsdist.core.codes import chains as codes
from swsdist.pipeline.chain import Chain
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import METHODS


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: the config has options of the chain, of which there are none; its method takes no spoken queries; or as
            `assemble`.
    """
    if config.options:
        raise codes.SEARCH_OPTIONS(where="options", options=", ".join(config.options))
    takes = METHODS[config.search.method].queries
    if takes != "spoken":
        raise codes.METHOD_TAKES_OTHER_QUERIES(where="search.method", method=config.search.method, takes=takes)
    return assemble(config, ledger)
