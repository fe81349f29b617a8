"""Inputs of the chain phones: one store of frames, another of the lattices that are decoded from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from swsdist.chains.phones.options import PhonesOptions
from swsdist.config import Config
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.corpus import Corpus
from swsdist.stages.inputs.search_inputs import SearchInputs


class FrameInputs(SearchInputs):
    """Inputs of the steps that make frames: of written queries there are none."""

    @cached_property
    def examples(self) -> list[dict[str, Any]]:
        """Rows of the spoken queries."""
        queries = self.corpus.queries
        return self.with_identities(queries.filter(queries["path"].is_valid()))


class PhoneInputs(SearchInputs):
    """Inputs of the steps after the decoder; `store` is that of lattices.

    Attributes:
        frames: inputs of the steps before it.
    """

    def __init__(self, config: Config, ledger: Ledger) -> None:
        super().__init__(config, ledger)
        self.options = PhonesOptions.model_validate(checked(CHAINS, "phones", config.options, "options"))  # type: ignore[type-var]
        self.frames = FrameInputs(config, ledger)
        self.frames.notices = self.notices
        self.store.folder = Folder(self.options.store or f"{config.run.rstrip('/')}/lattices", config.storage)

    @classmethod
    def of(cls, config: Config, ledger: Ledger) -> PhoneInputs:
        """The inputs of a config, shared with equal ones."""
        keys = {"run", "corpus", "features", "index", "score", "options", "storage", "strict", "force"}
        values: dict[str, Any] = config.model_dump(mode="json", include=keys)
        values["trials"] = protocol_of(config.score).trials
        return ledger.memoize(("phones", json.dumps(values, sort_keys=True)), lambda: cls(config, ledger))

    @cached_property
    def corpus(self) -> Corpus:
        """The tables of the corpus, read once for both."""
        return self.frames.corpus

    @property
    def state(self) -> dict[str, str]:
        """Folders and states of both stores."""
        return {**super().state, **{f"frames-{key}": value for key, value in self.frames.state.items()}}

    def recall(self, state: Mapping[str, str]) -> None:
        """Return both stores to the states that a plan had."""
        super().recall(state)
        self.frames.store.recall(state.get("frames-manifest", ""))
