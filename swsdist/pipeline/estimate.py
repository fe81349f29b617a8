"""Estimates for `--dry-run`: open tasks, their work, and their cost, extrapolated from earlier receipts.

The simulator of `swsdist.pipeline.forecast` estimates the duration with the configured workers.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from swsdist.accounts.hardware import describe, versions
from swsdist.audio.formats import ffmpeg
from swsdist.config import Config
from swsdist.config.model import Executor
from swsdist.core.errors import ConfigError, SwsdistError
from swsdist.features.ssl.folder import ENCODER_FILES, cached_models
from swsdist.io.filesystem import Folder
from swsdist.io.local import way_to
from swsdist.lattices.recognition import Recognition
from swsdist.pipeline.chain import ExternalTable, Finding, Step
from swsdist.pipeline.chain_run import ChainRun, StepSelection, plan_rounds, prepare_chain_run
from swsdist.pipeline.forecast.costs import Cluster, Kind, Load, StepCost, cost_of
from swsdist.pipeline.forecast.forecast import Forecast, rules_of, simulate
from swsdist.pipeline.ledger import ONLY, Ledger, StepOutcome
from swsdist.pipeline.receipts import Receipts
from swsdist.registry import registries
from swsdist.registry.registries import EXECUTORS, FEATURES, RECOGNISERS
from swsdist.registry.registry import Entry, Registry

#: Simulated runs, each with other draws.
_DRAWS = 5


@dataclass(frozen=True)
class Estimate:
    """The estimate of one step.

    Attributes:
        stage: name of the step.
        unit: unit of `work`.
        tasks, work: number and work of its tasks; None: depends on open steps.
        done: finished tasks.
        cpu_s: CPU s of the open tasks; None: unknown.
        left: work of each open task, as far as it is known.
        cost: cost of earlier tasks, or None.
    """

    stage: str
    unit: str
    tasks: int | None
    done: int
    work: float | None
    cpu_s: float | None
    left: tuple[float, ...] = ()
    cost: StepCost | None = None


def estimates(config: Config, selection: StepSelection) -> list[Estimate]:
    """Plan without running: exact up to the first step with open tasks, estimated beyond. Prerequisite runs come first."""
    chain_run = prepare_chain_run(ONLY, config, Ledger(Folder(config.run, config.storage)), selection)
    result = []
    exact = True
    for name, before in (chain_run.chain.prerequisites() if chain_run.chain.prerequisites is not None else {}).items():
        rows = estimates(before, StepSelection(keep_going=selection.keep_going))
        result += [replace(row, stage=f"{name}: {row.stage}") for row in rows]
        exact &= all(row.tasks is not None and row.tasks == row.done for row in rows)
    for step in chain_run.steps:
        if not exact and any(isinstance(source, ExternalTable) for word in step.reads for source in step.sources(word)):
            result.append(Estimate(step.name, step.stage.unit, None, 0, None, None))  # its input does not exist yet
            continue
        receipts = chain_run.ledger.receipts(step.stage.name, chain_run.inputs(step).place)
        cost = _cost(step, receipts)
        spent = 0.0 if cost is None else float(cost.work.sum())
        rate = cost.cpu_s / spent if cost is not None and spent > 0 else None  # CPU s per unit of work
        if exact:
            estimate, exact = _planned(chain_run, step, rate)
            estimate = replace(estimate, cost=cost)
        else:
            work = step.stage.expected(chain_run.inputs(step))
            cpu = None if rate is None else work * rate if work is not None else _last_cpu(receipts)
            estimate = Estimate(step.name, step.stage.unit, None, 0, work, cpu, _task_sizes(work, cost), cost)
        result.append(estimate)
    return result


def _cost(step: Step, receipts: Receipts) -> StepCost | None:
    return cost_of(step, receipts.table().take(pa.array(receipts.current_rows()))) if receipts else None


def _planned(chain_run: ChainRun, step: Step, rate: float | None) -> tuple[Estimate, bool]:
    """Estimate a step whose inputs exist.

    Returns:
        The estimate, and whether the step has no open task, so that the next one can be planned exactly.
    """
    outcome = chain_run.outcomes[step.name] = StepOutcome()
    tasks = done = 0
    works: list[float] = []
    left = False
    for plan_round in plan_rounds(chain_run, step):
        outcome.receipts += plan_round.done
        tasks, done = tasks + len(plan_round.names), done + len(plan_round.done)
        works += plan_round.left.works
        if plan_round.left:
            left = True
            break
    work = sum(works)
    cpu = 0.0 if not left else None if rate is None else work * rate
    return Estimate(step.name, step.stage.unit, tasks, done, work, cpu, tuple(works)), not left


def _task_sizes(work: float | None, cost: StepCost | None) -> tuple[float, ...]:
    """Work of each task of a step that cannot be planned yet, assuming the task size of earlier runs."""
    if cost is None or work == 0:
        return ()
    if work is None or not float(cost.work.sum()):
        return tuple(map(float, cost.work))  # as in the last run
    tasks = max(1, round(work / float(cost.work.mean())))
    return (work / tasks,) * tasks


def forecast_remaining(config: Config, rows: Sequence[Estimate]) -> Forecast | None:
    """Forecast of the open tasks with the configured workers; None: a step's cost or the cluster is unknown."""
    settings = config.executor
    if any(row.cost is None and (row.left or row.tasks is None) for row in rows):
        return None
    if not any(row.left for row in rows):
        return None
    in_driver = settings.entry.in_driver
    workers = 1 if in_driver else settings.workers
    if workers is None and settings.cluster is None:
        workers = max(1, describe()["cores"] // settings.cpus_per_worker)
    if workers is None:
        return None
    node = Kind(cpus=workers * settings.cpus_per_worker)
    cluster = Cluster((node,), start_s=0.0) if in_driver else Cluster((node,))
    several = [[_load(row, seed) for row in rows if row.left] for seed in range(_DRAWS)]
    return simulate(several, cluster, rules_of(settings))


def _load(row: Estimate, seed: int) -> Load:
    assert row.cost is not None
    draw = random.Random(seed)
    jobs = [row.cost.job(f"{row.stage}-{k}", work, draw) for k, work in enumerate(row.left)]
    return Load(row.stage, jobs, row.cost.in_driver, row.cost.driver_s, row.cost.gap_s)


def _last_cpu(receipts: Receipts) -> float:
    """CPU s of a step in the last run: the estimate if its work is unknown."""
    table = receipts.table().take(pa.array(receipts.current_rows()))
    user, system, finished = (table[name].to_numpy() for name in ("cpu_user", "cpu_system", "finished"))
    return float((user + system)[finished > finished.max(initial=0.0) - 3600].sum())


_REGISTRIES: tuple[Registry[Any], ...] = tuple(var for var in vars(registries).values() if isinstance(var, Registry))


def diagnose(s3: str | None, storage: Mapping[str, Any], with_executors: bool) -> Iterator[Finding]:
    """Run all checks.

    Args:
        s3: folder to list, or None.
        storage: options for s3fs.
        with_executors: start the executors, or connect to their clusters.
    """
    machine = describe()
    clock = f" at {machine['clock_ghz']} GHz" if machine["clock_ghz"] else ""
    yield Finding("machine", True, f"{machine['brand']}, {machine['os']}")
    yield Finding("cpu", True, f"{machine['cpu']}, {machine['cores']} cores{clock}, {machine['ram_gb']} GB")
    yield Finding("versions", True, ", ".join(f"{name} {value}" for name, value in versions().items()))
    yield _blas()
    yield Finding("features", True, ", ".join(f"{name} ({place})" for name, place in FEATURES.targets()))
    encoders = (
        ", ".join(cached_models()) or f"none in the cache of the hub; {way_to('openai/whisper-base', ENCODER_FILES)}"
    )
    yield Finding("encoders", True, f"{encoders} (--model, or the extractor ssl)")
    yield Finding("recognisers", True, ", ".join(map(_recogniser, RECOGNISERS)))
    for error in (error for registry in _REGISTRIES for error in registry.broken()):
        yield Finding("extension", False, f"{error.where}: {error.message}" if error.where else error.message)
    yield _ffmpeg()
    free = shutil.disk_usage(tempfile.gettempdir()).free / 1e9
    yield Finding("disk", free > 1, f"{free:.1f} GB free in {tempfile.gettempdir()}")
    yield _gpu()
    for name in EXECUTORS if with_executors else ():
        yield from _executor(Executor(kind=name))
    if s3 is not None:
        yield _s3(s3, storage)


def _recogniser(name: str) -> str:
    """A recogniser, and what it lacks."""
    try:
        Recognition(name=name).create()
    except ConfigError as error:
        return f"{name} ({error.message}: {error.remedy})"
    return name


def _ffmpeg() -> Finding:
    program = ffmpeg.program()
    if program is None:
        return Finding(
            "ffmpeg",
            True,
            "none: m4a, mp4, wma, webm, video ... are rejected; install ffmpeg as a package of the system",
        )
    return Finding("ffmpeg", True, f"{ffmpeg.version(program)} ({program}): m4a, mp4, wma, webm, video ... are read")


def _blas() -> Finding:
    from threadpoolctl import threadpool_info

    from swsdist.methods.dtw.backends.cpu import by_numpy

    libraries = {
        f"{item['internal_api']} {item['version']} ({item.get('architecture', '?')})" for item in threadpool_info()
    }
    try:
        by_numpy()
    except SwsdistError as error:
        return Finding("BLAS", False, str(error))
    return Finding("BLAS", True, f"exact on integers below 2^24; {', '.join(sorted(libraries))}")


def _gpu() -> Finding:
    if find_spec("numba_cuda") is None:
        return Finding("GPU", True, "none (extra `gpu` is not installed); searches run on the CPU")
    from numba import cuda

    from swsdist.kernels.cuda.launch import SIMULATED

    if SIMULATED:
        return Finding("GPU", True, "numba's simulator of one (NUMBA_ENABLE_CUDASIM is set)")
    if not cuda.is_available():
        return Finding("GPU", True, "none that can be used; searches run on the CPU")
    from numba.cuda.cudadrv.error import CudaSupportError, NvvmSupportError

    from swsdist.kernels.distances.interface import create
    from swsdist.methods.dtw.search import warm
    from swsdist.methods.dtw.settings import Settings

    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    try:
        warm(Settings(create("cosine", 1), 1, 1, 1, backend="cuda"))
    except (CudaSupportError, NvvmSupportError) as error:
        return Finding("GPU", False, f"{name}, but nothing can be compiled for it: {error}")
    free, total = cuda.current_context().get_memory_info()
    return Finding("GPU", True, f"{name}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free; search.backend: cuda works")


def _executor(settings: Executor) -> Iterator[Finding]:
    clock = time.perf_counter()
    try:
        if check := settings.entry.check:
            text = Entry(check, 1).load()(settings.cluster)
            yield Finding(settings.kind, True, f"{text}; up and down in {time.perf_counter() - clock:.1f} s")
    except (SwsdistError, OSError, RuntimeError) as error:
        yield Finding(settings.kind, False, str(error))


def _s3(place: str, storage: Mapping[str, Any]) -> Finding:
    clock = time.perf_counter()
    try:
        files = len(Folder(place, storage).listing())
    except (SwsdistError, OSError) as error:
        return Finding("S3", False, str(error))
    return Finding("S3", True, f"{place}: {files} files, listed in {time.perf_counter() - clock:.2f} s")
