"""Words of documents, in a store inside that of their frames: options of the chain search, and the step `words`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from swsdist.chains.lattices.chain import IndexLattices, check_words
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.options import LatticesOptions
from swsdist.config import Config
from swsdist.config.model import Index
from swsdist.config.search import Search
from swsdist.config.section import ChainOptions
from swsdist.core.needs import Needs
from swsdist.pipeline.chain import Chain, Inputs, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.store.manifest import WORDS

#: Recognition costs many times what frames do, so its tasks are of so much less sound.
_SHARE = 0.1


class Words(LatticesOptions):
    """Words of the documents, in a store of lattices inside the store of frames."""

    source: Literal["recogniser", "files"] = Field(
        "recogniser", description="recogniser: recordings, which it recognises; files: lattices or transcripts"
    )


class SearchOptions(ChainOptions):
    """The options of the chain search."""

    words: Words = Field(
        Words(), description="words of the documents, in `words` in the folder of the store; default: none"
    )

    @classmethod
    def terms_in(cls, options: Mapping[str, Any]) -> Mapping[str, object]:
        """The section `terms` of the words; empty without words."""
        words = options.get("words")
        return Words.terms_in({"source": Words().source, **words}) if words else {}


def config_of_words(config: Config) -> Config:
    """The config of the chain lattices that makes the words of a config's documents."""
    words: Any = config.options["words"]
    index = Index(
        store=f"{config.store}/{WORDS}", shard_hours=config.index.shard_hours * _SHARE, shards=config.index.shards
    )
    options = {"source": Words().source, **words}
    changes = {"chain": "lattices", "options": options, "index": index, "search": Search(method="lattice")}
    return config.model_copy(update={**changes, "features": Config.model_fields["features"].default})


class IndexWords(IndexLattices):
    """Make words of documents."""

    may_take = {}

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """Resources that the recogniser needs."""
        return super().needs(config_of_words(config))

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digests of the lattices, under another name."""
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
    if chain.inputs.from_audio and (inputs.options.source == "recogniser" or inputs.options.lattices.path is not None):
        inputs.corpus = chain.inputs.corpus
    chain.inputs.others["words"] = inputs
    # What reads tables of frames is wired already, and does not take those of words.
    steps = list(chain.steps)
    labels = {name: "words" if name == "documents" else f"words.{name}" for name in IndexWords.tables}
    after = max(k for k, step in enumerate(steps) if step.phase == "index") + 1
    steps.insert(after, Step("words", IndexWords(), labels=labels, inputs=inputs))
    return dataclasses.replace(chain, check=check_words, stages=tuple(steps))
