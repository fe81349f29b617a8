"""The chain search: from audio and spoken queries to a scored report; with `options.words` also to words."""

from __future__ import annotations

from swsdist.chains.check import assemble
from swsdist.config import Config
from swsdist.core.codes import pipeline as codes
from swsdist.pipeline.chain import Chain
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import METHODS


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: its method takes no spoken queries; or as `assemble` and `with_words`.
    """
    takes = METHODS[config.search.method].queries
    if takes != "spoken":
        raise codes.METHOD_TAKES_OTHER_QUERIES(where="search.method", method=config.search.method, takes=takes)
    chain = assemble(config, ledger)
    if not config.options:
        return chain
    from swsdist.chains.search.words import with_words  # loads kernels of lattices

    return with_words(chain, config, ledger)
