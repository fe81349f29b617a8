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

from swsdist.chains.assembly import assemble
from swsdist.chains.lattices.check import check
from swsdist.chains.lattices.index_lattices import IndexLatticeFiles, IndexLattices
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.label_queries import LabelQueries
from swsdist.config import Config
from swsdist.core.codes import chains as codes
from swsdist.core.codes import lattices as lattice_codes
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.stage import Stage
from swsdist.registry.registries import METHODS
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.stages.index import Index
from swsdist.stages.lattice_store import LATTICE_STORE
from swsdist.stages.queries import Queries
from swsdist.stages.steps import steps


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
    chain = assemble(config, ledger, tuple(_steps(config, inputs)), inputs)
    return dataclasses.replace(chain, check=check, stages=chain.steps)


def _steps(config: Config, inputs: LatticeInputs) -> Iterator[Step | Stage]:
    """The steps of a search, of which the source replaces the first, or adds to them."""
    frames, queries = inputs.frames, Step("queries", LabelQueries())
    index = IndexLatticeFiles() if inputs.options.source == "files" else IndexLattices()
    for step in steps(config):
        if frames is None:
            yield {"index": Step("index", index), "queries": queries}.get(step.name, step)
        elif step.name == "queries":
            yield Step("examples", Queries(), labels={"groups": "examples"}, inputs=frames)
            yield queries
            yield Step("decode", index)
        elif isinstance(step, FitTransforms | Index):
            yield Step(step.name, step, inputs=frames)
        else:
            yield step
