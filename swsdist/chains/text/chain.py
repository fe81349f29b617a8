"""The chain text: from lattices or transcripts and written terms to a scored report.

::

    index-lattices -> collect-terms -> search -> reduce -> ... as in the chain search
"""

from __future__ import annotations

import dataclasses

from swsdist.chains.steps import assemble
from swsdist.chains.text.check import check
from swsdist.chains.text.collect_terms import CollectTerms, takes_text
from swsdist.chains.text.index_lattices import IndexLattices
from swsdist.chains.text.inputs import TextInputs
from swsdist.config import Config
from swsdist.core.codes import text as codes
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import METHODS
from swsdist.stages.lattice_store import LATTICE_STORE


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config: that of a search, with other first steps.

    Raises:
        ConfigError: invalid options; or a method that does not search lattices by text.
    """
    inputs = TextInputs.of(config, ledger)
    _ = inputs.lattices
    method = config.search.method
    if not takes_text(method) or METHODS[method].reads != LATTICE_STORE:
        methods = [name for name in METHODS if takes_text(name) and METHODS[name].reads == LATTICE_STORE]
        raise codes.NOT_A_TEXT_METHOD(where="search.method", method=method, methods=", ".join(methods))
    chain = assemble(config, ledger)
    inputs.document_checks, inputs.folds, inputs.files = (
        chain.inputs.document_checks,
        chain.inputs.folds,
        chain.inputs.files,
    )
    first = Step("index", IndexLattices()), Step("queries", CollectTerms())
    return dataclasses.replace(chain, name="text", check=check, inputs=inputs, stages=(*first, *chain.steps[2:]))
