"""Inputs of the chain fuse: the corpus, and the runs of the systems."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, PositiveInt, model_validator

from swsdist.chains.check import Checking, findings, more_than_trials
from swsdist.config import Config, load_config
from swsdist.config.loader import FileAssignment
from swsdist.config.section import ONE_OR_MORE, IsPath, Section
from swsdist.core.codes import fuse as codes
from swsdist.core.codes import line_of
from swsdist.core.errors import SwsdistError
from swsdist.core.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.io.notices import SHARED
from swsdist.pipeline.chain import Finding
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.inspection.status import load_chain_run
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.entries import checked, is_chain
from swsdist.registry.registries import CHAINS
from swsdist.stages.buckets import Extracted
from swsdist.stages.inputs.search_inputs import CorpusInputs, SearchInputs
from swsdist.stages.inputs.settings import scores_of, settings_of, stored
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
            raise codes.RUN_OR_CONFIG.invalid(system=self.name)
        if self.run is not None and self.set:
            raise codes.SET_WITHOUT_CONFIG.invalid(system=self.name)
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
    overlap: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="overlap: least part of the shorter one",
    )
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
                raise codes.DUPLICATE_SYSTEM.invalid(count=names.count(name), system=name)
        if names and self.found_by > len(names):
            raise codes.MAJORITY_TOO_LARGE.invalid(found_by=self.found_by, systems=len(names))
        return self


#: Inputs that fused systems should share.
_SEARCHED: dict[str, Callable[[CorpusInputs], pa.Array]] = {
    "documents": lambda inputs: keys_of(inputs.corpus.documents["doc_id"], inputs.corpus.documents["channel"]),
    "queries": lambda inputs: pc.unique(inputs.corpus.queries["query_id"]).sort(),
}


class FuseInputs(CorpusInputs):
    """The store, and so the documents, are those of the first system."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        super().__init__(config, ledger)
        self.options = options_of(config)

    def place(self, system: FusedSystem) -> str:
        """The run folder of a system."""
        return (
            system.run.rstrip("/") if system.run is not None else f"{self.config.run.rstrip('/')}/systems/{system.name}"
        )

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
                raise codes.NOT_A_SEARCH_RUN(
                    where=f"{where} ({chain_run.run.path()})", system=system.name, chain=chain_run.config.chain
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
                raise codes.OWN_PLACES_DIFFER(where=f"options.systems: {name} ({chain_run.run.path()})", system=name)
            for what, of in _SEARCHED.items():
                in_corpus, in_system = of(self), of(chain_run.chain.inputs)
                odd = (
                    sorted(set(in_corpus.to_pylist()) ^ set(in_system.to_pylist()))
                    if not in_corpus.equals(in_system)
                    else []
                )
                if odd:
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
        raise codes.NO_SYSTEMS(where="options.systems")
    if options.missing == "rescore" and options.scores == "final":
        raise codes.FINAL_SCORES_RESCORED(where="options.missing: rescore")
    return options


def configs(inputs: FuseInputs) -> dict[str, Config]:
    """Configs by name, with corpus, protocol, executor and storage of the fusion, in run folders below its own.

    Systems that store the same share a store, unless their configs name one: below RUN/systems/stores, named by a
    fingerprint of what it holds, whatever else is fused.

    Raises:
        ConfigError: a config cannot be read, is wrong, or is of another chain.
    """
    results: dict[str, Config] = {}
    fused = inputs.config
    for system in inputs.options.systems:
        if system.config is None:
            continue
        corpus = fused.corpus.model_dump(mode="json", exclude_defaults=True)
        base = system.config.rpartition("/")[0] or "."
        sets = [FileAssignment(item, base, f"options.systems: {system.name}: set") for item in system.set]
        config = load_config(system.config, sets, corpus=corpus, run=inputs.place(system))
        if not is_chain(CHAINS, config.chain, "searches"):
            fusible = ", ".join(name for name in CHAINS if is_chain(CHAINS, name, "searches"))
            raise codes.UNFUSIBLE_CHAIN(
                where=f"options.systems: {system.name}: {system.config}",
                system=system.name,
                chain=config.chain,
                fusible=fusible,
            )
        shared = {name: getattr(fused, name) for name in ("executor", "storage", "strict", "force", "score")}
        index = config.index
        if index.store is None:
            key = fingerprint(stored(config))[:16]
            place = f"{fused.run.rstrip('/')}/systems/stores/{key}"
            index = index.model_copy(update={"store": place})
        results[system.name] = config.model_copy(update={**shared, "index": index})
    return results


def demand_configured(inputs: FuseInputs) -> None:
    """Refuse systems whose run folder holds a run of another config.

    Raises:
        ConfigError: a system was run by other settings, or on another corpus.
    """
    for name, config in configs(inputs).items():
        was = inputs.chain_runs[name].config
        before = settings_of(was)
        if differ := [key for key, value in settings_of(config).items() if before.get(key) != value]:
            raise codes.CHANGED_SYSTEM_CONFIG(
                where=f"options.systems: {name} ({config.run})", system=name, keys=", ".join(differ)
            )


def check(inputs: FuseInputs) -> Iterator[Finding]:
    """Findings for each system, including all errors."""
    finished_systems = set()
    for system in inputs.options.systems:
        if system.run is None:
            continue
        try:
            chain_run = load_chain_run(Folder(inputs.place(system), inputs.config.storage))
            done = chain_run.ended("scored") is not None
            text = chain_run.run.path() if done else line_of(codes.UNFINISHED_SYSTEM, system=system.name)
            finished_systems |= {system.name} if done else set()
            yield Finding(f"{system.name}: run", done, text)
        except SwsdistError as error:
            yield Finding(f"{system.name}: run", False, str(error).replace("\n  remedy:", "; remedy:"))
    inputs.notices.force = True
    try:
        if all(system.name in finished_systems for system in inputs.options.systems):  # others are run first
            inputs.settle()
        for notice in inputs.notices.entries.values():
            yield Finding("systems", False if notice.forced else None, str(notice))
        results = configs(inputs)
    except SwsdistError as error:
        yield Finding("systems", False, str(error).replace("\n  remedy:", "; remedy:"))
        return
    listed, trials = 0, None
    for name, config in results.items():
        of_system = SearchInputs.of(config, Ledger(Folder(config.run, config.storage)))
        checking = Checking(of_system)
        for finding in findings(of_system, checking):
            yield finding._replace(name=f"{name}: {finding.name}")
        listed, trials = listed + checking.listed, checking.trials
    yield from more_than_trials("systems", listed, trials)


class CollectQueries(Stage[Extracted]):
    """A query of several systems has the examples and frames of the first of them."""

    name = "collect-queries"
    version = 1
    unit = "queries"
    phase = "search"
    tables = {"groups": Table(None, None, digested=False)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Extracted]]:
        """One task."""
        fuse_inputs = inputs.chain_inputs(FuseInputs)
        fuse_inputs.settle()
        demand_configured(fuse_inputs)
        seen: set[str] = set()
        result: dict[str, Any] = {"examples": 0, "query_ids": [], "frames": 0, "seconds": 0.0, "cuts": []}
        for chain_run in fuse_inputs.chain_runs.values():
            for group in chain_run.results("groups", Extracted):
                fresh = [query_id for query_id in group.query_ids if query_id not in seen]
                if not fresh:
                    continue
                result["query_ids"] += fresh
                result["cuts"] += [cut for cut in group.cuts if cut[0] not in seen]
                for name in ("examples", "frames", "seconds"):
                    result[name] += getattr(group, name) * len(fresh) / len(group.query_ids)
                seen.update(fresh)
        result |= {"examples": round(result["examples"]), "frames": round(result["frames"])}
        yield inputs.task(result, label=f"{len(seen)} queries", work=len(seen), payload=Extracted(**result))

    def run(self, task: Task[Extracted], context: Context) -> TaskOutput:
        """Return the queries."""
        return TaskOutput((), task.payload)
