"""Inputs of the chain words: its options, and a store of lattices; of features it has none."""

from __future__ import annotations

import json
from typing import Any

from swsdist.chains.words.options import WordsOptions
from swsdist.config import Config
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.search_inputs import SearchInputs


class WordInputs(SearchInputs):
    """The inputs of a search in what a recogniser makes of audio."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        super().__init__(config, ledger)
        self.options = WordsOptions.model_validate(checked(CHAINS, "words", config.options, "options"))  # type: ignore[type-var]

    @classmethod
    def of(cls, config: Config, ledger: Ledger) -> WordInputs:
        """The inputs of a config, shared with equal ones."""
        keys = {"run", "corpus", "index", "score", "options", "storage", "strict", "force"}
        values: dict[str, Any] = config.model_dump(mode="json", include=keys)
        values["trials"] = protocol_of(config.score).trials
        return ledger.memoize(("words", json.dumps(values, sort_keys=True)), lambda: cls(config, ledger))

    def expected_cells(self) -> float:
        """Terms times milliseconds of documents, from durations."""
        seconds = sum(value or 0.0 for value in self.corpus.documents["duration"].to_pylist())
        return float(self.corpus.queries.num_rows * seconds * 1000)
