"""The chain search: from audio and spoken queries to a scored report; with `options.words` also to words."""

from __future__ import annotations

from swsdist.chains.check import assemble
from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
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
        raise families.UNSUPPORTED.of(ConfigError)(
            "the method {method} takes {takes} queries, and the chain search spoken ones",
            "name the chain that belongs to the method (key chain)",
            where="search.method",
            method=config.search.method,
            takes=takes,
        )
    chain = assemble(config, ledger)
    if not config.options:
        return chain
    from swsdist.chains.search.words import with_words  # loads kernels of lattices

    return with_words(chain, config, ledger)
