"""The chain phones: posteriors to lattices of phones, in which strings or lattices of queries are searched.

::

    [fit-transforms] -> index -> decode ---> search -> reduce -> ... as in the chain search
                        examples -> queries -^
"""

from __future__ import annotations

import dataclasses

from swsdist.chains.phones.check import check
from swsdist.chains.phones.decode import Decode
from swsdist.chains.phones.decode_queries import DecodeQueries
from swsdist.chains.phones.inputs import PhoneInputs
from swsdist.chains.steps import assemble
from swsdist.config import Config
from swsdist.core.codes import chains as codes
from swsdist.core.codes import lattices as lattice_codes
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import METHODS
from swsdist.stages.lattice_store import LATTICE_STORE


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: invalid options; or a method that does not search lattices.
    """
    inputs = PhoneInputs.of(config, ledger)
    method = config.search.method
    if METHODS[method].reads != LATTICE_STORE:
        methods = [name for name in METHODS if METHODS[name].reads == LATTICE_STORE]
        raise codes.NOT_A_LATTICE_METHOD(where="search.method", method=method, methods=", ".join(methods))
    if inputs.options.terms.patterns and METHODS[method].queries == "lattices":
        raise lattice_codes.PATTERNS_OF_LATTICES(where="options.terms.patterns", method=method)
    chain = assemble(config.model_copy(update={"options": {}}), ledger)
    inputs.document_checks, inputs.folds, inputs.files = (
        chain.inputs.document_checks,
        chain.inputs.folds,
        chain.inputs.files,
    )
    steps: list[Step] = []
    for step in chain.steps:
        if step.name in ("fit-transforms", "index"):
            steps.append(dataclasses.replace(step, inputs=inputs.frames))
        elif step.name == "queries":
            steps += [
                dataclasses.replace(step, name="examples", inputs=inputs.frames),
                Step("queries", DecodeQueries(), {"queries": "examples:groups"}),
                Step("decode", Decode(), {"shards": "index:features"}),
            ]
        elif step.name == "search":
            steps.append(dataclasses.replace(step, reads={"queries": "queries:groups", "shards": "decode:features"}))
        else:
            steps.append(step)
    return dataclasses.replace(chain, name="phones", check=check, inputs=inputs, stages=tuple(steps))
