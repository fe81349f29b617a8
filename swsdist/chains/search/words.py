"""Words of the documents beside their frames: the first step of the chain lattices, in a store inside that of the frames."""

from __future__ import annotations

import dataclasses

from swsdist.chains.lattices.check import check_words
from swsdist.chains.lattices.index_lattices import IndexLattices
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.search.options import config_of_words
from swsdist.config import Config
from swsdist.core.needs import Needs
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS


class IndexWords(IndexLattices):
    """Make words of documents."""

    may_take = {}

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """The recogniser's."""
        return super().needs(config_of_words(config))

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """As of any lattices, by another name."""
        return dict(zip(["words"], super().digests(inputs).values(), strict=False))


def with_words(chain: Chain, config: Config, ledger: Ledger) -> Chain:
    """The chain search with the step `words` behind those that index.

    Raises:
        ConfigError: an option is unknown or invalid.
    """
    checked(CHAINS, config.chain, config.options, "options")  # type: ignore[type-var]
    if not config.options.get("words"):
        return chain
    inputs = LatticeInputs.of(config_of_words(config), ledger)
    inputs.notices = chain.inputs.notices
    if chain.inputs.from_audio and inputs.options.source == "recogniser":
        inputs.corpus = chain.inputs.corpus
    chain.inputs.others["words"] = inputs
    # What reads tables of frames is wired already, and does not take those of words.
    steps = list(chain.steps)
    labels = {name: "words" if name == "documents" else f"words.{name}" for name in IndexWords.tables}
    after = max(k for k, step in enumerate(steps) if step.phase == "index") + 1
    steps.insert(after, Step("words", IndexWords(), labels=labels, inputs=inputs))
    return dataclasses.replace(chain, check=check_words, stages=tuple(steps))
