"""The chain words: audio to word lattices, in which written queries, and the words of spoken ones, are searched.

::

    recognise -> recognise-queries -> search -> reduce -> ... as in the chain search
"""

from __future__ import annotations

import dataclasses

from swsdist.chains.steps import assemble
from swsdist.chains.words.check import check
from swsdist.chains.words.inputs import WordInputs
from swsdist.chains.words.recognise import Recognise
from swsdist.chains.words.recognise_queries import RecogniseQueries
from swsdist.config import Config
from swsdist.core.codes import lattices as lattice_codes
from swsdist.core.codes import text as codes
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import METHODS
from swsdist.stages.lattice_store import LATTICE_STORE


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: invalid options; features; or a method that does not search lattices by text.
    """
    inputs = WordInputs.of(config, ledger)
    methods = [name for name in METHODS if (METHODS[name].queries, METHODS[name].reads) == ("text", LATTICE_STORE)]
    if config.search.method not in methods:
        raise codes.NOT_A_TEXT_METHOD(where="search.method", method=config.search.method, methods=", ".join(methods))
    if config.features != Config.model_fields["features"].default:
        raise lattice_codes.UNUSED_FEATURES(where="features", chain=config.chain)
    chain = assemble(config.model_copy(update={"options": {}}), ledger)
    inputs.document_checks, inputs.folds, inputs.files = (
        chain.inputs.document_checks,
        chain.inputs.folds,
        chain.inputs.files,
    )
    first = Step("index", Recognise()), Step("queries", RecogniseQueries())
    return dataclasses.replace(chain, name="words", check=check, inputs=inputs, stages=(*first, *chain.steps[2:]))
