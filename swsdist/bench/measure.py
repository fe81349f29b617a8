"""One point of a benchmark: a run in a separate process, and the figures of its report and receipts.

The wall is that of the whole run, from its start to its report; each step's is from the end of the step before it. That of
index and search alone is from their first task to their last. The CPU time of starting processes and loading compiled code is
a separate figure (`warm_up_cpu_s`).

The points of a benchmark: numbers of workers, multiples of the data, and repetitions, in random order.

Data are multiplied without copies of audio: each further copy of a document is another `doc_id` of the same recording. The
first copy keeps its name, so that queries and references stay valid.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from swsdist.audio.streams import are_permitted
from swsdist.config import Config, dump_config, without_secrets
from swsdist.core.codes import cli as codes
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import read_documents
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.forecast.costs import Cluster, Kind, StepCost, costs_of
from swsdist.pipeline.forecast.forecast import forecast, rules_of
from swsdist.pipeline.status import load_partial_run
from swsdist.registry.registries import METHODS


class BenchPoint(NamedTuple):
    """One run of a benchmark: workers, times the data, and which repetition, from 0."""

    workers: int
    times: int
    repeat: int

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"w{self.workers}-x{self.times}-r{self.repeat}"


def points_of(workers: Sequence[int], times: Sequence[int], repeats: int, seed: int) -> list[BenchPoint]:
    """All points, in random order within each repetition, so that changes over time affect all equally.

    Raises:
        UserError: a number is below 1, or given twice.
    """
    for name, values in (("--workers", workers), ("--times", times), ("--repeats", [repeats])):
        if not values or min(values) < 1 or len(set(values)) < len(values):
            raise codes.INVALID_COUNTS(where=name, option=name, values=",".join(map(str, values)) or "empty")
    draw = random.Random(seed)
    results = []
    for repeat in range(repeats):
        some = [BenchPoint(w, x, repeat) for w in workers for x in times]
        draw.shuffle(some)
        results += some
    return results


def config_at(config: Config, point: BenchPoint, folder: Path) -> Config:
    """The config of a point: with its run in the folder, and its store in the run.

    Raises:
        UserError: the corpus cannot be multiplied, or a serial run has several workers.
    """
    if config.executor.entry.in_driver and point.workers > 1:
        raise codes.SERIAL_WORKERS(where="--workers", workers=point.workers)
    corpus = config.corpus
    if point.times > 1:
        place = folder / f"documents-x{point.times}.parquet"
        if not place.exists():
            _write(multiplied(config, point.times), place)
        # The table has absolute paths and speakers.
        corpus = corpus.model_copy(update={"documents": str(place), "audio": None, "prefer": (), "speakers": None})
    return config.model_copy(
        update={
            "run": str(folder / "runs" / point.name),
            "corpus": corpus,
            "index": config.index.model_copy(update={"store": None}),
            "executor": config.executor.model_copy(update={"workers": point.workers}),
            "strict": False,
        }
    )


def multiplied(config: Config, times: int) -> pa.Table:
    """The documents of a config, multiplied, as CORPUS.

    Raises:
        UserError: the documents are segments or of lattices, or their features are precomputed.
    """
    corpus = config.corpus
    if METHODS[config.search.method].queries == "text":
        raise codes.COPIED_LATTICES(where="--times")
    if any(feature.name == "external" for feature in config.features):
        raise codes.UNNAMED_COPIES(where="features")
    results = read_documents(
        corpus.documents, config.storage, corpus.speakers, prefer=corpus.prefer, audio_folder=corpus.audio
    )
    if results.schema.names != CORPUS.names:
        raise codes.COPIED_SEGMENTS(where="corpus.documents")
    copies = [results]
    for k in range(1, times):
        names = pa.array([f"{name}~{k}" for name in results["doc_id"].to_pylist()], pa.string())
        copies.append(results.set_column(0, results.schema.field(0), names))
    return pa.concat_tables(copies)


def _write(table: pa.Table, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    pq.write_table(table, part)
    part.replace(place)


#: Runs the config in a file.
Runner = Callable[[Path], None]

#: The timed phases.
PHASES = ("index", "search")


class Measurement(NamedTuple):
    """The measurement of one run of a point.

    Attributes:
        point: which.
        order: number of earlier runs of the benchmark.
        figures: by name: `isf`, `ssf`, `query_cost`, `pmu_index_gb`, `pmu_search_gb`, `pl`, `efficiency` (the part of the
            workers' time, from the start of the run to its report, in tasks that count), `busy` (CPU seconds of these tasks
            over their seconds), and seconds (`..._s`); None if undefined.
        steps: wall seconds of each step, and of `start` and `report`; together the wall of the run.
        forecast: wall seconds that the simulator gives for other points (`w2-x4`), from these receipts.
        hardware: types of nodes, as report.json has them.
        versions: of libraries.
        load: average number of runnable processes in the minute before the run (load average).
    """

    point: BenchPoint
    order: int
    figures: dict[str, float | None]
    steps: dict[str, float]
    forecast: dict[str, float]
    hardware: list[dict[str, Any]]
    versions: dict[str, str]
    load: float

    def values(self) -> dict[str, Any]:
        """The values for JSON."""
        return {**self.point._asdict(), **{k: v for k, v in self._asdict().items() if k != "point"}}

    @classmethod
    def of(cls, values: dict[str, Any]) -> Measurement:
        """The inverse of `values`."""
        rest = {**values}
        point = BenchPoint(*(rest.pop(name) for name in BenchPoint._fields))
        return cls(point, **rest)


def run_in_process(path: Path) -> None:
    """Run a config in a separate process.

    Raises:
        IncompleteError: the run failed.
    """
    allowed = ["--allow-commands"] if are_permitted() else []
    command = [sys.executable, "-m", "swsdist.cli.main", "run", str(path), *allowed]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise codes.FAILED_RUN(where=str(path), exit_code=ended.returncode, output=ended.stderr.strip()[-600:])


def measure_point(
    config: Config, order: int, point: BenchPoint, others: Sequence[BenchPoint], runner: Runner, keep: bool
) -> Measurement:
    """Run a point and read its costs.

    Args:
        config: of the point.
        order: number of earlier runs.
        point: which.
        others: points to forecast from its receipts.
        runner: runs a config.
        keep: keep its run folder.

    Raises:
        IncompleteError: the run failed.
        UserError: its chain reports no resources.
    """
    run = Path(config.run)
    shutil.rmtree(run, ignore_errors=True)
    path = run.parent / f"{point.name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump_config(without_secrets(config)), "utf-8")
    load = os.getloadavg()[0]
    runner(path)
    try:
        report = json.loads((run / "report.json").read_text("utf-8"))
        figures: dict[str, float | None] = {name: report[name] for name in ("isf", "ssf", "query_cost", "pl")}
        resources = report["resources"]
    except (FileNotFoundError, KeyError):
        raise codes.NO_RESOURCES(where="chain", chain=config.chain) from None
    figures |= {name: resources[name] for name in ("pmu_index_gb", "pmu_search_gb")}
    figures |= {name: resources[name] for name in resources if name.endswith("_cpu_s")}
    figures |= {
        "audio_s": resources["audio_seconds"],
        "query_s": resources["query_seconds"],
        "wall_s": resources["wall_s"],
    }
    figures |= {"start_s": resources["executor_start_s"], "stop_s": resources["executor_stop_s"]}
    chain_run = load_partial_run(Folder(config.run))
    costs = costs_of(chain_run)
    figures |= _walls(chain_run)
    in_workers = [cost for cost in costs if config.executor.entry.in_driver or not cost.in_driver]
    useful = math.fsum(float(cost.walls.sum()) for cost in in_workers if cost.unit)
    figures["efficiency"] = useful / (point.workers * resources["wall_s"])
    cpu_s = math.fsum(cost.cpu_s for cost in in_workers)
    figures["busy"] = cpu_s / (useful * config.executor.cpus_per_worker) if useful else None
    steps = dict.fromkeys((cost.name for cost in costs), 0.0)
    for cost in costs:
        steps[cost.name] += cost.driver_s + cost.span_s
    steps["start"] += resources["executor_start_s"] or 0.0
    foreseen = _foresee(chain_run, costs, config, resources["executor_start_s"] or 0.0, point, others)
    if not keep:
        shutil.rmtree(run, ignore_errors=True)
    return Measurement(point, order, figures, steps, foreseen, report["hardware"], report["versions"], load)


def _walls(chain_run: ChainRun) -> dict[str, float | None]:
    """Wall seconds of index, search and both together, from first task to last."""
    spans: dict[str, list[tuple[float, float]]] = {phase: [] for phase in PHASES}
    for step in (step for step in chain_run.chain.steps if step.phase in spans):
        receipts = step.stage.makers(chain_run.inputs(step))
        spans[step.phase] += [(receipt.started, receipt.finished) for receipt in receipts]
    named = {f"{phase}_wall_s": some for phase, some in spans.items()}
    named["index_search_wall_s"] = [item for some in spans.values() for item in some]
    results: dict[str, float | None] = {"tasks": float(len(named["index_search_wall_s"]))}
    for name, some in named.items():
        results[name] = max(end for _, end in some) - min(begin for begin, _ in some) if some else None
    return results


def _foresee(
    chain_run: ChainRun,
    costs: Sequence[StepCost],
    config: Config,
    start_s: float,
    point: BenchPoint,
    others: Sequence[BenchPoint],
) -> dict[str, float]:
    results, hours = {}, chain_run.chain.inputs.hours
    for workers, times in sorted({(other.workers, other.times) for other in others}):
        node = Kind(cpus=workers * config.executor.cpus_per_worker)
        prediction = forecast(
            costs,
            Cluster((node,), start_s=start_s),
            rules_of(config.executor),
            hours,
            keep=config.reduce.nbest,
            buckets=config.reduce.buckets_for,
            hours=hours * times / point.times,
        )
        results[f"w{workers}-x{times}"] = prediction.wall_s
    return results
