"""Systems of a fusion that are run first: their configs, on the corpus of the fusion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from swsdist.chains.check import Checking, findings, more_than_trials
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.config import Config, load_config
from swsdist.config.loader import FileAssignment
from swsdist.core.codes import fuse as codes
from swsdist.core.codes import line_of
from swsdist.core.errors import SwsdistError
from swsdist.core.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Finding
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.inspection.status import load_chain_run
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CHAINS
from swsdist.stages.buckets import Extracted
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.inputs.settings import settings_of, stored


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
