"""Options of the chain search: the section `options` of its config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from swsdist.chains.lattices.options import LatticesOptions
from swsdist.config import Config
from swsdist.config.model import Index
from swsdist.config.search import Search
from swsdist.config.section import ChainOptions
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
        Words(),
        description="words of the documents, in `words` in the folder of the store; default: none",
    )

    @classmethod
    def terms_in(cls, options: Mapping[str, Any]) -> Mapping[str, object]:
        """Of the words; none where there are none."""
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
