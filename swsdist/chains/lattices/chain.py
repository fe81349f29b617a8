"""The chain lattices: lattices of files, of a recogniser or of frames, in which queries are searched as text or as lattices.

::

    index-lattices -> label-queries -> search -> reduce -> ... as in the chain search

With frames these come before, and the first step is named `decode`::

    [fit-transforms] -> index -> decode ---> search -> reduce -> ... as in the chain search
                        examples -> queries -^
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from swsdist.chains.lattices.check import check
from swsdist.chains.lattices.index_lattices import IndexLatticeFiles, IndexLattices
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.label_queries import LabelQueries
from swsdist.chains.search.chain import assemble
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
        ConfigError: invalid options; features that are not used; or a method that does not search such lattices.
    """
    inputs = LatticeInputs.of(config, ledger)
    source, method = inputs.options.source, config.search.method
    takes = ("text", "lattices") if inputs.frames is not None else ("text",)
    methods = [name for name in METHODS if METHODS[name].reads == LATTICE_STORE and METHODS[name].queries in takes]
    if method not in methods:
        raise codes.NOT_A_LATTICE_METHOD(
            where="search.method", method=method, source=source, methods=", ".join(methods)
        )
    if inputs.frames is None and config.features != Config.model_fields["features"].default:
        raise lattice_codes.OPTION_OF_OTHER_SOURCE(where="features", key="features", sources="frames", source=source)
    if inputs.options.terms.patterns and METHODS[method].queries == "lattices":
        raise lattice_codes.PATTERNS_OF_LATTICES(where="options.terms.patterns", method=method)
    chain = assemble(config, ledger, inputs)
    return dataclasses.replace(chain, name="lattices", check=check, stages=tuple(_steps(chain, inputs)))


def _steps(chain: Chain, inputs: LatticeInputs) -> Iterator[Step]:
    """The steps of a search, of which the source replaces the first, or adds to them."""
    frames, queries = inputs.frames, Step("queries", LabelQueries())
    index = IndexLatticeFiles() if inputs.options.source == "files" else IndexLattices()
    for step in chain.steps:
        if step.name == "search":
            shards = "index:features" if frames is None else "decode:features"
            yield dataclasses.replace(step, reads={"queries": "queries:groups", "shards": shards})
        elif frames is None:
            yield {"index": Step("index", index), "queries": queries}.get(step.name, step)
        elif step.name == "queries":
            yield dataclasses.replace(step, name="examples", inputs=frames)
            yield queries
            yield Step("decode", index)
        else:
            yield dataclasses.replace(step, inputs=frames) if step.name in ("fit-transforms", "index") else step
