"""Inputs of the chain fuse: the corpus, and the runs of the systems."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, PositiveInt, model_validator

from swsdist.config import Config
from swsdist.config.section import ONE_OR_MORE, IsPath, Section
from swsdist.core.codes import families
from swsdist.core.codes import fuse as codes
from swsdist.core.errors import ConfigError
from swsdist.io.filesystem import Folder
from swsdist.io.notices import SHARED
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.status import load_chain_run
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.stages.inputs.corpus_documents import scores_of
from swsdist.stages.inputs.search_inputs import CorpusInputs, SearchInputs
from swsdist.store.reading import keys_of


class FusedSystem(Section):
    """One system of a fusion: a finished run of the search chain, or a config that is run first, on the same corpus."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[^/\\:]+$")] = Field(description="its name in the fusion")
    run: IsPath | None = Field(None, description="folder of a finished run, local or s3://")
    config: IsPath | None = Field(
        None,
        description="config that is run first, in RUN/systems/NAME; corpus, protocol and executor are those of the fusion",
    )

    set: tuple[str, ...] = Field(
        (), description="overrides of that config, A.B=C each, as with --set; paths relative to its folder"
    )

    @model_validator(mode="after")
    def _has_run_or_config(self) -> FusedSystem:
        if (self.run is None) == (self.config is None):
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying("system {system} needs either a run or a config", "give run or config")
                .invalid(system=self.name)
            )
        if self.run is not None and self.set:
            raise families.UNUSED_OPTION.saying(
                "`set` of system {system} has no config to change", "give config instead of run"
            ).invalid(system=self.name)
        return self


class FuseOptions(Section):
    """The options of the chain fuse."""

    systems: Annotated[tuple[FusedSystem, ...], ONE_OR_MORE] = Field(
        (), description="the systems, at least one: {name, run} or {name, config} each"
    )
    scores: Literal["normalised", "q-norm", "final"] = Field(
        "normalised",
        description="scores of a system: normalised, after its calibration steps before the first fitted one; "
        "q-norm, these after z-norm per query over its list; final, those of its scored list",
    )
    meet: Literal["overlap", "middle"] = Field(
        "overlap",
        description="detections of two systems are one place if they overlap, or if the mid-point of one is in the other",
    )
    overlap: float = Field(0.5, ge=0, lt=1, description="overlap: least part of the shorter one")
    found_by: PositiveInt = Field(
        1, description="keep a place if at least so many systems detected it; 2 of 3: a majority"
    )
    missing: Literal["average", "least", "rescore"] = Field(
        "average",
        description="score of a system without a detection at a place: the average of the others; its least score for the "
        "query; or the score of its method for the place",
    )
    margin: float = Field(
        0.1, ge=0, description="rescore: s before and after a place in which the match may begin and end"
    )
    between_queries: bool = Field(
        False,
        description="keep only the one with the highest fused score of overlapping detections of different queries: decisions "
        "about a query then depend on the other queries",
    )

    @model_validator(mode="after")
    def _names_are_different(self) -> FuseOptions:
        names = [system.name for system in self.systems]
        for name in names:
            if names.count(name) > 1:
                raise (
                    families.DUPLICATE_NAME.of(ConfigError)
                    .saying("{count} systems are named {system}", "give each another name")
                    .invalid(count=names.count(name), system=name)
                )
        if names and self.found_by > len(names):
            raise families.INVALID_VALUE.saying(
                "found_by asks for {found_by} systems, and there are {systems}",
                "give at most {systems}, or more systems",
            ).invalid(found_by=self.found_by, systems=len(names))
        return self


#: Inputs that fused systems should share.
_SEARCHED: dict[str, Callable[[CorpusInputs], pa.Array]] = {
    "documents": lambda inputs: keys_of(inputs.corpus.documents["doc_id"], inputs.corpus.documents["channel"]),
    "queries": lambda inputs: pc.unique(inputs.corpus.queries["query_id"]).sort(),
}


class FuseInputs(CorpusInputs):
    """Inputs of a fusion; the store, and so the documents, are those of the first system."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        super().__init__(config, ledger)
        self.options = options_of(config)

    def place(self, system: FusedSystem) -> str:
        """The run folder of a system."""
        beside = f"{self.config.run.rstrip('/')}/systems/{system.name}"
        return beside if system.run is None else system.run.rstrip("/")

    @cached_property
    def chain_runs(self) -> dict[str, ChainRun]:
        """The runs of the systems, by name.

        Raises:
            StoreError: a run is not finished.
            ConfigError: a run is not of the chain search.
        """
        results = {}
        for system in self.options.systems:
            chain_run = load_chain_run(Folder(self.place(system), self.config.storage))
            where = f"options.systems: {system.name}"
            if not isinstance(chain_run.chain.inputs, SearchInputs) or chain_run.chain.source("detections") is None:
                raise families.WRONG_KIND.of(ConfigError)(
                    "system {system} is a run of the chain {chain}, which has no search of its own",
                    "name runs of the chain search",
                    where=f"{where} ({chain_run.run.path()})",
                    system=system.name,
                    chain=chain_run.config.chain,
                )
            if chain_run.ended("scored") is None:
                raise codes.UNFINISHED_SYSTEM(where=f"{where} ({chain_run.run.path()})", system=system.name)
            results[system.name] = chain_run
        return results

    def searches(self, chain_run: ChainRun) -> list[ChainRun]:
        """The systems."""
        return list(self.chain_runs.values())

    def settle(self) -> None:
        """Use the first system's store, and compare the inputs of the systems with the corpus.

        Raises:
            ConfigError: a system excluded other source places of queries than the fusion.
        """
        first, *_ = self.chain_runs.values()
        self.store = first.chain.inputs.store
        if not self.is_first("systems"):
            return
        for name, chain_run in self.chain_runs.items():
            if chain_run.chain.inputs.corpus.own_places != self.corpus.own_places:
                raise families.MISMATCH.of(ConfigError)(
                    "either system {system} or the fusion leaves out queries' own places, but not both",
                    "give all the same corpus.own_places and the same kind of trials",
                    where=f"options.systems: {name} ({chain_run.run.path()})",
                    system=name,
                )
            for what, of in _SEARCHED.items():
                in_corpus, in_system = of(self), of(chain_run.chain.inputs)
                if in_corpus.equals(in_system):
                    continue
                if odd := sorted(set(in_corpus.to_pylist()) ^ set(in_system.to_pylist())):
                    self.notices.weigh(
                        codes.UNSHARED_INPUTS,
                        where=f"{chain_run.run.path()}: {odd[0]!r}".replace("\\x00", ", channel "),
                        inputs=what,
                        system=name,
                        count=len(odd),
                        of=len({*in_corpus.to_pylist(), *in_system.to_pylist()}),
                        most=1 - SHARED,
                    )

    @cached_property
    def from_audio(self) -> bool:
        """Whether any system needs recordings."""
        return any(chain_run.chain.inputs.from_audio for chain_run in self.chain_runs.values())

    def scores(self) -> dict[str, str]:
        """The settings that affect fused scores, by key: the options, and the settings of each system."""
        results = {
            f"options.{key}": json.dumps(value) for key, value in self.options.matters().items() if key != "systems"
        }
        for name, chain_run in sorted(self.chain_runs.items()):
            results |= {f"{name}: {key}": value for key, value in scores_of(chain_run.config).items()}
        return results

    def recall(self, state: Mapping[str, str]) -> None:
        """Use the store of a plan, in its state then."""
        if state.get("store"):
            self.store.folder = Folder(state["store"], self.config.storage)
        super().recall(state)

    def read(self, labels: frozenset[str]) -> None:
        """Read the runs of the systems, and what the steps that make these tables need."""
        self.settle()
        if self.corpus.queries.num_rows and "aligned" in labels:
            self.check_scorable()
        for check in self.document_checks:
            check(self.corpus.documents)
        self.check_tables()


def options_of(config: Config) -> FuseOptions:
    """The options of a config of this chain.

    Raises:
        ConfigError: invalid or inconsistent options.
    """
    options = FuseOptions.model_validate(checked(CHAINS, "fuse", config.options, "options"))  # type: ignore[type-var]
    if not options.systems:
        raise families.EMPTY_INPUT.of(ConfigError)(
            "no systems to fuse", "name some: {{name, run}} or {{name, config}} each", where="options.systems"
        )
    if options.missing == "rescore" and options.scores == "final":
        raise families.UNSUPPORTED.of(ConfigError)(
            "rescored places have normalised scores, not final ones",
            "set options.scores: normalised, or missing: average",
            where="options.missing: rescore",
        )
    return options
