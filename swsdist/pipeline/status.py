"""State of a run from its folder: what it does now or how it ended, rejections, and digests of its results.

For a running run the status file of the driver is read and the ends of the journals of live processes, whose size does
not depend on the number of tasks. For other runs receipts are counted.

Digests are SHA-256 of the results of a plan. Equal digests prove equal results, however the work was divided. A digest
covers the rows of the digested tables, each in canonical order. Paths, identities of files, shards and costs are not
part of these tables; the column `system` of detections, a label that defaults to the name of the config's file, is left
out.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from swsdist.accounts.journal import lines_of
from swsdist.config import Config
from swsdist.config.section import UNKNOWN
from swsdist.core.codes import families
from swsdist.core.errors import StoreError
from swsdist.core.fingerprint import slots_of
from swsdist.core.types import REJECTED
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Table
from swsdist.pipeline.chain_run import ChainRun, StepSelection, prepare_chain_run
from swsdist.pipeline.ledger import ONLY, Ledger, Plan, StepOutcome, another_version, load_plans, receipts_of
from swsdist.pipeline.lock import STALE_AFTER, lives, read
from swsdist.pipeline.operation import progress
from swsdist.pipeline.operation.progress import RunStatus
from swsdist.pipeline.receipts import Parts, ReceiptList
from swsdist.store import parquet
from swsdist.store.manifest import words_store
from swsdist.store.reading import Store, of_rows


def load_chain_run(run: Folder, name: str = ONLY) -> ChainRun:
    """Load a finished chain run: its chain, and the receipts of its planned tasks.

    Raises:
        StoreError: not a run folder, no such plan, or a planned task is not done.
    """
    chain_run = _prepare(run, name)
    for step in chain_run.steps:
        planned = chain_run.plan.steps.get(step.name)
        if planned is None:
            break
        receipts = receipts_of(chain_run.ledger, planned)
        # A store may have been compacted since: its state identifies its tables.
        if len(receipts) < planned.planned and not chain_run.plan.in_state(planned.place):
            raise families.NOT_FINISHED(
                "stage {stage} is not done: {left} of {tasks} tasks are left",
                "finish the run; only a finished run has a digest",
                where=chain_run.run.path(),
                stage=step.name,
                left=planned.planned - len(receipts),
                tasks=planned.planned,
            )
        chain_run.outcomes[step.name] = StepOutcome(receipts)
    chain_run.chain.inputs.recall(chain_run.plan.state)
    return chain_run


def load_partial_run(run: Folder, name: str = ONLY) -> ChainRun:
    """Load the finished steps of a chain run; the store need not exist.

    Raises:
        StoreError: not a run folder, or no such plan.
    """
    chain_run = _prepare(run, name)
    for step in chain_run.steps:
        planned = chain_run.plan.steps.get(step.name)
        receipts = ReceiptList() if planned is None else receipts_of(chain_run.ledger, planned)
        if planned is not None and len(receipts) == planned.planned:
            chain_run.outcomes[step.name] = StepOutcome(receipts)
    return chain_run


def config_of(run: Folder, plan: Plan) -> Config:
    """The config of a plan, with the present folder of the run.

    The run may come from a stranger: no environment variables are inserted, and the storage options, which determine the server
    that gets our keys, are those of the caller.

    Raises:
        StoreError: a name is not installed here, or another version of swsdist or another program wrote the plan.
    """
    try:
        return Config.model_validate({**plan.config, "run": run.root, "storage": dict(run.storage)})
    except ValidationError as error:
        raise _unknown_name(run, error) or another_version(run) from None
    except TypeError:
        raise another_version(run) from None


def _unknown_name(run: Folder, error: ValidationError) -> StoreError | None:
    """The error of a config whose only faults are names that are not registered here; None if it has others."""
    faults = error.errors(include_url=False)
    if any(item["type"] != UNKNOWN for item in faults):
        return None
    kind, group = (str(faults[0]["ctx"][key]) for key in ("kind", "group"))
    return families.EXTENSION.of(StoreError)(
        "the run's {kind} {name!r} is not installed here",
        "install its package (an entry point of {group}), or call it from Python after {registry}.add",
        where=run.path(),
        kind=kind,
        name=faults[0]["input"],
        group=group,
        registry=group.removeprefix("swsdist.").upper(),
    )


def plan_of(run: Folder, name: str = ONLY) -> Plan:
    """Load a plan of a run folder.

    Raises:
        StoreError: not a run folder, or no such plan.
    """
    plans = load_plans(run)
    if name not in plans:
        raise families.UNKNOWN_NAME.of(StoreError)(
            "the run has no plan {plan!r}",
            "name one of its plans: {plans}",
            where=run.path(),
            plan=name,
            plans=", ".join(plans),
        )
    return plans[name]


def _prepare(run: Folder, name: str) -> ChainRun:
    plan = plan_of(run, name)
    chain_run = prepare_chain_run(name, config_of(run, plan), Ledger(run), StepSelection())
    chain_run.plan = plan
    return chain_run


#: First and largest number of bytes read at the end of a journal, to find the start of the present task.
_FIRST_TAIL, _LARGEST_TAIL = 1 << 16, 1 << 22


#: Age in s of a heartbeat up to which the lock file is watched, since clocks differ; older: dead.
_WATCHED_AGE = 86_400.0


@dataclass(frozen=True)
class StageStatus:
    """Numbers of tasks of a step: all, finished, and failed as far as is known."""

    stage: str
    tasks: int
    done: int
    failed: int = 0


@dataclass(frozen=True)
class ProcessStatus:
    """A process of the run: its present task, for `busy_s`, the finished part of it, and the age `seen_s` of its last line."""

    host: str
    pid: int
    role: str
    stage: str | None
    busy_s: float
    cpu_s: float
    memory_gb: float
    seen_s: float
    part: float | None = None


@dataclass(frozen=True)
class Status:
    """The state of a run: `running`, `died`, or as its last driver ended (`progress`).

    `ended` is the message with which it ended, if any.
    """

    state: str
    holder: str | None
    stages: tuple[StageStatus, ...]
    processes: tuple[ProcessStatus, ...] = ()
    eta_s: float | None = None
    ended: str | None = None


def status(run: Folder) -> Status:
    """The status of a run.

    Raises:
        StoreError: not a run folder.
    """
    holder = read(run)
    driver_status = progress.read(run)
    text = f"process {holder['pid']} on {holder['host']}" if holder is not None else None
    if holder is not None and lives(run, holder, within=_WATCHED_AGE):
        if driver_status is not None and driver_status.token == holder["token"]:
            return _running(run, text, driver_status)
        return Status("running", text, _counted(run, load_plans(run)))  # no open task, or not started yet
    plans = load_plans(run)
    stages = _counted(run, plans)
    complete = all(stage.done == stage.tasks for stage in stages)
    last = all(plan.complete for plan in plans.values())
    if holder is not None:
        return Status("died", text, stages)
    if complete and last and (driver_status is None or driver_status.state != "stopped"):
        return Status("done", text, stages)
    if driver_status is None or driver_status.state == "running" or (driver_status.state == "done" and not complete):
        return Status("incomplete", text, stages)
    return Status(driver_status.state, text, stages, ended=driver_status.message or None)


def _counted(run: Folder, plans: dict[str, Plan]) -> tuple[StageStatus, ...]:
    """Status of all steps, by their receipts."""
    ledger = Ledger(run, receipts_only=True)
    stages = []
    for name in dict.fromkeys(step for plan in plans.values() for step in plan.steps):
        steps = [plan.steps[name] for plan in plans.values() if name in plan.steps]
        tasks = done = 0
        for place, stage in sorted({(step.place, step.stage) for step in steps}):
            fingerprints = [step.tasks.array for step in steps if (step.place, step.stage) == (place, stage)]
            distinct = np.unique(np.concatenate(fingerprints))
            tasks += len(distinct)
            done += int((ledger.receipts(stage, place).find(distinct) >= 0).sum())
        stages.append(StageStatus(name, max(tasks, *(step.planned for step in steps)), done))
    return tuple(stages)


def _running(run: Folder, holder: str | None, driver_status: RunStatus) -> Status:
    """Status of a running run, from the driver's status file."""
    stages = {
        stage.stage: StageStatus(stage.stage, stage.tasks, stage.done, stage.failed) for stage in driver_status.stages
    }
    names = set(run.listing("accounts")) if run.local() is None else None
    journals = [lines for name in driver_status.journals if (lines := _end(run, name, names))]
    processes = tuple(process for process in map(_process, journals) if process.seen_s < STALE_AFTER)
    return Status("running", holder, tuple(stages.values()), processes, _eta(driver_status))


def _end(run: Folder, name: str, names: set[str] | None) -> list[dict[str, Any]]:
    """The first line and the end of a journal, enough to find the present task; empty if it cannot be read.

    The files of a journal that has several begin alike.
    """
    stem = name.removesuffix(".jsonl")
    files = [name] if names is None else sorted(name for name in names if name.startswith(stem))
    try:
        first = lines_of(run, files[0], 0, 4096)[:1]
        size, length = run.info(files[-1]).size, _FIRST_TAIL
        while True:
            lines = lines_of(run, files[-1], max(0, size - length), length + 4096)
            sufficient = any(line["event"] in ("begin", "end", "failed", "close") for line in lines)
            if sufficient or length >= min(size, _LARGEST_TAIL):
                return first + [line for line in lines if line["event"] != "open"]
            length *= 8
    except (FileNotFoundError, IndexError):
        return []


def _process(lines: list[dict[str, Any]]) -> ProcessStatus:
    first, last = lines[0], lines[-1]
    begun: dict[str, Any] | None = None
    memory, part = 0, None
    for line in lines:
        if line["event"] == "begin":
            begun, part = line, None
        elif line["event"] in ("end", "failed", "close"):
            begun = None
        elif line["event"] == "sample":
            memory, part = line["pss"], line.get("part")
    now = time.time()
    return ProcessStatus(
        host=first["host"],
        pid=first["pid"],
        role=first["role"],
        stage=begun["stage"] if begun is not None else None,
        busy_s=now - begun["t"] if begun is not None else 0.0,
        cpu_s=last["cpu"],
        memory_gb=memory / 1e9,
        seen_s=now - last["t"],
        part=part if begun is not None else None,
    )


def _eta(driver_status: RunStatus) -> float | None:
    """Seconds until the present stage ends, at its pace so far; None before its first task has ended."""
    for stage in driver_status.stages:
        done = stage.done - stage.before
        if stage.ended is None and stage.done < stage.tasks:
            return (driver_status.t - stage.begun) / done * (stage.tasks - stage.done) if done else None
    return None


#: Table of a run with a report.
_TABLE = "rejected.parquet"


def rejections(folder: str) -> pa.Table:
    """REJECTED: documents of a store; for a run with a report also queries and failed tasks.

    Args:
        folder: folder of a store or a run, local or `s3://`.

    Raises:
        StoreError: neither a store nor a run, or the run has no store yet.
    """
    place = Folder(folder.rstrip("/"))
    if place.exists("plan.json"):
        if place.exists(_TABLE):
            return parquet.read(place, _TABLE)
        plan = next(iter(load_plans(place).values()))
        place = Folder(config_of(place, plan).store, place.storage)
    tables = [Store(place).rejected().select(REJECTED.names)]
    if (words := words_store(place.path())) is None:
        return tables[0]
    tables.append(Store(Folder(words, place.storage)).rejected().select(REJECTED.names))
    # A recording may be unreadable to both.
    rows = {tuple(row.values()): row for row in pa.concat_tables(tables).to_pylist()}
    return pa.Table.from_pylist(list(rows.values()), REJECTED)


#: Ranges of slots, one at a time in memory, of tables whose keys spread over several files.
_RANGES = 16


def digests(chain_run: ChainRun, only: tuple[str, ...] | None = None) -> dict[str, str]:
    """SHA-256 of each table of a plan, by name.

    Args:
        chain_run: with the receipts of its steps.
        only: names of tables; None: all.
    """
    by_name: dict[str, str] = {}
    for step in chain_run.chain.steps:
        if step.name not in chain_run.outcomes:
            continue
        inputs = chain_run.inputs(step)
        if only is None:
            by_name.update(step.stage.digests(inputs))
        for label, table in chain_run.chain.digested(step):
            parts = chain_run.receipts(step.name).parts(table)
            if parts and (only is None or label in only):
                by_name[label] = _table(chain_run.ledger.folder(inputs.place), parts, step.stage.tables[table])
    return by_name


def _table(folder: Folder, parts: Parts, declared: Table) -> str:
    if declared.schema is None:
        digests = sorted(part.sha256 for part in parts)
        return digests[0] if len(digests) == 1 else hashlib.sha256(json.dumps(digests).encode()).hexdigest()
    if declared.key is None:
        tables = (parquet.read(folder, part.name) for part in parts)
        order = [(name, "ascending") for name in declared.order]
        table = unlabelled(pa.concat_tables(tables))
        return of_rows(table.sort_by(order) if order else table)
    if not declared.order:
        return by_key((unlabelled(parquet.read(folder, part.name)) for part in parts), declared.key)
    return by_key(map(unlabelled, _gathered(folder, parts, declared)), declared.key)


def unlabelled(table: pa.Table) -> pa.Table:
    """A table of detections without the column `system`, which is a label."""
    return table.drop_columns(["system"]) if {"system", "doc_id"} <= set(table.column_names) else table


def _gathered(folder: Folder, parts: Parts, declared: Table) -> Iterator[pa.Table]:
    """Rows of all files, range by range of slots, each range in canonical order."""
    order = [(name, "ascending") for name in (declared.key, *declared.order)]
    for k in range(_RANGES):
        slots = slots_of(k, _RANGES)
        tables = [parquet.in_slots(folder, part.name, slots) for part in parts.meeting(slots)]
        if tables:
            yield pa.concat_tables(tables).drop_columns(["slot"]).sort_by(order)


def by_key(parts: Iterable[pa.Table], key: str) -> str:
    """SHA-256 over the SHA-256 of each key's rows; independent of how keys are spread over parts."""
    of_keys: dict[str, str] = {}
    columns: list[str] = []
    for table in parts:
        columns = table.column_names
        of_keys |= each_key(table, key)
    return of_all_keys(columns, of_keys)


def each_key(table: pa.Table, key: str) -> dict[str, str]:
    """SHA-256 of each key's rows, which lie together."""
    of_keys: dict[str, str] = {}
    first = 0
    for value, group in groupby(table[key].to_pylist()):
        count = sum(1 for _ in group)
        of_keys[value] = of_rows(table.slice(first, count))
        first += count
    return of_keys


def of_all_keys(columns: list[str], of_keys: Mapping[str, str]) -> str:
    """The SHA-256 of a table with these columns, given that of each key's rows."""
    return hashlib.sha256(json.dumps([columns, sorted(of_keys.items())]).encode()).hexdigest()
