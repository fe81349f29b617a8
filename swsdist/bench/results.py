"""Benchmarks: their points, measurement, statistics, and comparison of two.

Points are numbers of workers, multiples of the data, and repetitions, in random order. Data are multiplied without
copies of audio: each further copy of a document is another `doc_id` of the same recording. The first copy keeps its
name, so that queries and references stay valid.

A point is measured by a run in a separate process. Its figures are those of its report and receipts. The wall time is
that of the whole run, from its start to its report; each step's is from the end of the step before it. That of index
and search alone is from their first task to their last. The CPU time of starting processes and loading compiled code is
a separate figure (`warm_up_cpu_s`).

Each measured point is a file (`points/w2-x4-r0.json`), so an interrupted benchmark can continue, also with more
workers, sizes or repetitions. Results are written to `bench.json`. How to:
docs/how-to/benchmark-a-cluster.md.

Statistics: seconds, GB and factors are positive and compared by ratios, so means are geometric, and intervals are those
of Student's t on logarithms. Ratios of two groups use Welch's t, which allows unequal variances. A single measurement
has no interval. Two benchmarks are compared by one Welch test on the logarithms of repetitions for each figure at each
common point, corrected by Holm's method: the probability of any false alarm is at most 5 %.

Sources: Welch, "The generalization of Student's problem when several different population variances are involved",
1947; Holm, "A simple sequentially rejective multiple test procedure", 1979.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from swsdist.audio.streams import are_permitted
from swsdist.config import Config, dump_config, without_secrets
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import read_documents
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.forecast.costs import Cluster, Kind, StepCost, costs_of
from swsdist.pipeline.forecast.forecast import forecast
from swsdist.pipeline.status import load_partial_run
from swsdist.registry.registries import METHODS
from swsdist.report.summary import short
from swsdist.score.compare.paired import holm


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
            raise families.INVALID_VALUE.of(UserError)(
                "{option} is {values}",
                "give numbers from 1 on, each once: 1,2,4",
                where=name,
                option=name,
                values=",".join(map(str, values)) or "empty",
            )
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
        raise families.CONFLICTING_OPTIONS(
            "a serial run has one worker, not {workers}",
            "set executor.kind=ray",
            where="--workers",
            workers=point.workers,
        )
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
        raise families.UNSUPPORTED(
            "lattices and transcripts name their documents, and copies of documents have other names",
            "leave the data as they are: --times 1",
            where="--times",
        )
    if any(feature.name == "external" for feature in config.features):
        raise families.UNSUPPORTED(
            "precomputed frames are named by document, and copies of documents have other names",
            "leave --times out, or use an extractor",
            where="features",
        )
    results = read_documents(
        corpus.documents, config.storage, corpus.speakers, prefer=corpus.prefer, audio_folder=corpus.audio
    )
    if results.schema.names != CORPUS.names:
        raise families.UNSUPPORTED(
            "documents that are segments of recordings cannot be multiplied",
            "leave --times out, or give a table of whole recordings",
            where="corpus.documents",
        )
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
        raise families.TASKS_FAILED(
            "the run ended with exit code {exit_code}: {output}",
            "correct the cause and give the same command again: points that were measured are kept",
            where=str(path),
            exit_code=ended.returncode,
            output=ended.stderr.strip()[-600:],
        )


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
        raise families.UNSUPPORTED(
            "the chain {chain} reports no resources",
            "benchmark a config of the chain search or text",
            where="chain",
            chain=config.chain,
        ) from None
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
            config.executor,
            hours,
            keep=config.reduce.nbest,
            buckets=config.reduce.buckets_for,
            hours=hours * times / point.times,
        )
        results[f"w{workers}-x{times}"] = prediction.wall_s
    return results


#: Confidence level of all intervals.
LEVEL = 0.95


class Estimate(NamedTuple):
    """A value with its 95 % confidence interval from `n` measurements; None: measured once."""

    value: float
    low: float | None
    high: float | None
    n: int


class Ratio(NamedTuple):
    """The ratio of two groups of measurements, with `p` of Welch's test of equality; None: too few."""

    value: float
    low: float | None
    high: float | None
    p: float | None


def mean(values: Sequence[float]) -> Estimate | None:
    """Geometric mean with its interval; None without values, or if any is not above 0."""
    if not values or min(values) <= 0:
        return None
    logs = np.log(np.asarray(values, np.float64))
    middle = float(logs.mean())
    if len(logs) < 2:
        return Estimate(math.exp(middle), None, None, 1)
    from scipy.stats import t

    half = float(t.ppf((1 + LEVEL) / 2, len(logs) - 1)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Estimate(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def ratio(first: Sequence[float], second: Sequence[float]) -> Ratio | None:
    """Geometric mean of the first over that of the second; None if undefined."""
    if not first or not second or min(*first, *second) <= 0:
        return None
    a, b = np.log(np.asarray(first, np.float64)), np.log(np.asarray(second, np.float64))
    middle = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Ratio(math.exp(middle), None, None, None)
    from scipy.stats import t

    parts = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    error = math.sqrt(sum(parts))
    if error == 0:
        return Ratio(math.exp(middle), math.exp(middle), math.exp(middle), 1.0 if middle == 0 else 0.0)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1))
    half = float(t.ppf((1 + LEVEL) / 2, freedom)) * error
    p = 2 * float(t.sf(abs(middle) / error, freedom))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), p)


class Scaling(NamedTuple):
    """The scaling of a point against its base.

    Attributes:
        workers, times: of the point.
        speedup: for strong scaling, wall time of the fewest workers over that of these, with the same data; for weak
            scaling, work per second against the base.
        per_worker: speedup over the ratio of workers.
    """

    workers: int
    times: int
    speedup: Ratio
    per_worker: Ratio


#: Measurements of a figure by workers and times.
Walls = Mapping[tuple[int, int], Sequence[float]]


def strong_scaling(walls: Walls) -> list[Scaling]:
    """Strong scaling: the same data on more workers, for each size of data."""
    results = []
    for workers, times in sorted(walls, key=lambda key: (key[1], key[0])):
        least = min(w for w, x in walls if x == times)
        speedup = ratio(walls[least, times], walls[workers, times])
        if speedup is not None and workers > least:
            results.append(Scaling(workers, times, speedup, _times(speedup, 1 / (workers / least))))
    return results


def weak_scaling(walls: Walls) -> list[Scaling]:
    """Weak scaling: as many times more data as workers, against the fewest workers and the least data."""
    base = min(walls, default=None)
    results = []
    for workers, times in sorted(walls):
        if base is None or workers <= base[0] or times * base[0] != base[1] * workers:
            continue
        speedup = ratio(walls[base], walls[workers, times])
        if speedup is not None:
            more = workers / base[0]
            results.append(Scaling(workers, times, _times(speedup, more), speedup))
    return results


def _times(speedup: Ratio, factor: float) -> Ratio:
    low, high = (None if value is None else value * factor for value in (speedup.low, speedup.high))
    return Ratio(speedup.value * factor, low, high, speedup.p)


SCHEMA = "swsdist-bench/2"

#: Figures of a point that are shown and compared.
FIGURES = (
    *("wall_s", "efficiency", "index_search_wall_s", "index_wall_s", "search_wall_s"),
    *("isf", "ssf", "query_cost", "pmu_index_gb", "pmu_search_gb", "pl"),
)


class Plan(NamedTuple):
    """The plan of a benchmark: workers, multiples of the data, repetitions, seed of the order, whether to keep run folders."""

    workers: Sequence[int]
    times: Sequence[int]
    repeats: int
    seed: int = 0
    keep: bool = False


@dataclass(frozen=True)
class Results:
    """The results of a benchmark.

    Attributes:
        settings: fingerprint of the config, but for its folders and workers, and of the version of swsdist.
        config: YAML, without secrets.
        warm_up: the uncounted run; None if not in the file.
        measured: in the order of points.
    """

    settings: str
    config: str
    version: str
    warm_up: Measurement | None
    measured: tuple[Measurement, ...]

    def values(self, figure: str) -> Walls:
        """All measurements of a figure, by workers and times."""
        results: dict[tuple[int, int], list[float]] = {}
        for item in self.measured:
            value = item.figures.get(figure)
            if value is not None:
                results.setdefault((item.point.workers, item.point.times), []).append(value)
        return results

    def estimates(self, figure: str) -> dict[tuple[int, int], Estimate]:
        """The means of a figure with intervals."""
        results = {key: mean(some) for key, some in sorted(self.values(figure).items())}
        return {key: value for key, value in results.items() if value is not None}

    def forecasts(self) -> dict[tuple[int, int], list[float]]:
        """Wall seconds of the run at each point, as forecast from the receipts of the first point's runs."""
        if not self.measured:
            return {}
        base = min((item.point.workers, item.point.times) for item in self.measured)
        results: dict[tuple[int, int], list[float]] = {}
        for key in self.values("wall_s"):
            name = f"w{key[0]}-x{key[1]}"
            of_base = [item for item in self.measured if (item.point.workers, item.point.times) == base]
            some = [item.forecast[name] for item in of_base if name in item.forecast]
            if some:
                results[key] = some
        return results

    @property
    def hardware(self) -> set[str]:
        """Types of nodes that were used, a line each."""
        return {
            f"{kind['cpu']}, {kind['cores']} cores, {kind['ram_gb']} GB, {kind['os']}, {kind['nodes']} node(s)"
            for item in self.measured
            for kind in item.hardware
        }


def settings_of(config: Config) -> str:
    """A fingerprint of everything that a benchmark depends on besides its points."""
    values = without_secrets(config).model_dump(mode="json")
    del values["run"], values["storage"], values["strict"]
    del values["executor"]["workers"], values["index"]["store"]
    return fingerprint(version("swsdist"), values)


def run_benchmark(
    config: Config, folder: Path, plan: Plan, say: Callable[[str], None] = print, runner: Runner = run_in_process
) -> Results:
    """Measure the remaining points of a benchmark, and write `bench.json`.

    Args:
        config: to benchmark.
        folder: of the results.
        plan: the points.
        say: receives one line per run.
        runner: runs a config's file; by default in a separate process.

    Raises:
        UserError: the folder holds a benchmark of other settings, or a point is impossible.
        IncompleteError: a run failed.
    """
    folder = folder.resolve()  # paths in a config are relative to its file
    settings = settings_of(config)
    points = points_of(plan.workers, plan.times, plan.repeats, plan.seed)
    configs = {
        point: config_at(config, point, folder) for point in points
    }  # raises for impossible points before any work
    kept = _measured_before(folder, settings)
    left = [point for point in points if point.name not in kept]
    if left and "warm-up" not in kept:
        least = min(points)
        say(f"warm-up: {_words(least)}, not counted")
        measurement = measure_point(configs[least], -1, least, points, runner, keep=False)
        kept["warm-up"] = _keep(folder, settings, "warm-up", measurement)
    for k, point in enumerate(left):
        measurement = measure_point(configs[point], len(points) - len(left) + k, point, points, runner, plan.keep)
        kept[point.name] = _keep(folder, settings, point.name, measurement)
        say(f"{k + 1} of {len(left)}: {_words(point)}, {measurement.figures['wall_s']:.1f} s")
    measured = tuple(sorted((item for name, item in kept.items() if name != "warm-up"), key=lambda item: item.point))
    text = dump_config(without_secrets(config))
    results = Results(settings, text, version("swsdist"), kept.get("warm-up"), measured)
    (folder / "bench.json").write_text(as_json(results) + "\n", "utf-8")
    return results


def _words(point: BenchPoint) -> str:
    workers = "1 worker" if point.workers == 1 else f"{point.workers} workers"
    return f"{workers}, {point.times} times the data, run {point.repeat + 1}"


def _keep(folder: Path, settings: str, name: str, measurement: Measurement) -> Measurement:
    place = folder / "points" / f"{name}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    part.write_text(json.dumps({"settings": settings, **measurement.values()}, indent=1), "utf-8")
    part.replace(place)
    return measurement


def _measured_before(folder: Path, settings: str) -> dict[str, Measurement]:
    """Points that were measured before, by name."""
    results = {}
    for place in sorted((folder / "points").glob("*.json")):
        values = json.loads(place.read_text("utf-8"))
        if values.pop("settings") != settings:
            raise families.MISMATCH(
                "this folder holds a benchmark of another config, or of another version of swsdist",
                "give another folder (--folder FOLDER), or remove it",
                where=str(folder),
            )
        results[place.stem] = Measurement.of(values)
    return results


def as_json(results: Results) -> str:
    """The text of `bench.json`: measurements, and figures derived from them."""
    walls, alone = results.values("wall_s"), results.values("index_search_wall_s")
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "version": results.version,
        "settings": results.settings,
        "config_yaml": results.config,
        "warm_up": None if results.warm_up is None else results.warm_up.values(),
        "measured": [item.values() for item in results.measured],
        "figures": {
            figure: [{"workers": w, "times": x, **e._asdict()} for (w, x), e in results.estimates(figure).items()]
            for figure in FIGURES
        },
        "strong": [_scaling(item) for item in strong_scaling(walls)],
        "weak": [_scaling(item) for item in weak_scaling(walls)],
        "strong_index_search": [_scaling(item) for item in strong_scaling(alone)],
        "forecasts": [{"workers": w, "times": x, "wall_s": some} for (w, x), some in results.forecasts().items()],
    }
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)


def _scaling(item: Any) -> dict[str, Any]:
    return {**item._asdict(), "speedup": item.speedup._asdict(), "per_worker": item.per_worker._asdict()}


def read_results(path: str) -> Results:
    """Results from `bench.json`, or from the folder that holds it.

    Raises:
        UserError: not such a file, or of another version.
    """
    place = Path(path) / "bench.json" if Path(path).is_dir() else Path(path)
    try:
        values = json.loads(place.read_text("utf-8"))
        if values["schema"] != SCHEMA:
            raise ValueError(values["schema"])
        warm_up = values["warm_up"]
        return Results(
            values["settings"],
            values["config_yaml"],
            values["version"],
            None if warm_up is None else Measurement.of(warm_up),
            tuple(Measurement.of(value) for value in values["measured"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise families.WRONG_KIND(
            "not the results of a benchmark ({schema}): {error}",
            "name a bench.json that swsdist bench wrote",
            where=str(place),
            schema=SCHEMA,
            error=error,
        ) from None


COMPARISON_SCHEMA = "swsdist-bench-comparison/1"
_ALPHA = 0.05


class Difference(NamedTuple):
    """One figure at one point: the second benchmark over the first, and corrected p; None: not tested."""

    figure: str
    workers: int
    times: int
    ratio: Ratio
    p: float | None

    @property
    def beyond_noise(self) -> bool | None:
        """Whether it is significant; None if not tested."""
        return None if self.p is None else self.p < _ALPHA


class Comparison(NamedTuple):
    """Differences of figures, and notices on other differences, which may be their causes."""

    differences: tuple[Difference, ...]
    notices: tuple[str, ...]


def compare_results(first: Results, second: Results) -> Comparison:
    """The second against the first, point by point."""
    results = []
    for figure in FIGURES:
        before, after = first.values(figure), second.values(figure)
        for key in sorted(before.keys() & after.keys()):
            comparison = ratio(after[key], before[key])
            if comparison is not None:
                results.append((figure, key, comparison))
    corrected = holm([comparison.p for _, _, comparison in results])
    differences = tuple(
        Difference(figure, *key, comparison, p) for (figure, key, comparison), p in zip(results, corrected, strict=True)
    )
    return Comparison(differences, tuple(_notices(first, second, bool(results))))


def _notices(first: Results, second: Results, some: bool) -> list[str]:
    results = []
    if first.hardware != second.hardware:
        results.append(
            f"the hardware differs: {'; '.join(sorted(first.hardware))} against {'; '.join(sorted(second.hardware))}"
        )
    libraries = [
        {name: value for item in item.measured for name, value in item.versions.items()} for item in (first, second)
    ]
    for name in sorted(libraries[0].keys() | libraries[1].keys()):
        if libraries[0].get(name) != libraries[1].get(name):
            results.append(f"{name} {libraries[0].get(name, 'absent')} against {libraries[1].get(name, 'absent')}")
    lines = [set(item.config.splitlines()) for item in (first, second)]
    for line in sorted(lines[1] - lines[0]):
        if not line.strip().startswith("run:"):
            results.append(f"only the second config says: {line.strip()}")
    points = [set(item.values("wall_s")) for item in (first, second)]
    for workers, times in sorted(points[0] ^ points[1]):
        results.append(f"only one of them has {workers} worker(s) at {times} times the data")
    if not some:
        results.append("there is no point that both have")
    return results


def comparison_lines(comparison: Comparison) -> list[str]:
    """Lines for a terminal, significant differences first."""
    rank = {True: 0, None: 1, False: 2}
    lines = [f"note: {notice}" for notice in comparison.notices]
    for difference in sorted(comparison.differences, key=lambda item: rank[item.beyond_noise]):
        verdict = {True: "beyond noise", False: "within noise", None: "measured once: unknown"}[difference.beyond_noise]
        low, high = difference.ratio.low, difference.ratio.high
        interval = "" if low is None else f" [{short(low)}, {short(high)}]"
        chance = "" if difference.p is None else f", p {short(difference.p, 2)}"
        where = f"{difference.workers} worker(s), {difference.times} times the data"
        lines.append(
            f"{difference.figure} at {where}: {short(difference.ratio.value)} times{interval}{chance}: {verdict}"
        )
    return lines


def comparison_json(comparison: Comparison) -> str:
    """Every number."""
    rows = [
        {**difference._asdict(), "ratio": difference.ratio._asdict(), "beyond_noise": difference.beyond_noise}
        for difference in comparison.differences
    ]
    return json.dumps(
        {"schema": COMPARISON_SCHEMA, "differences": rows, "notices": comparison.notices}, indent=1, ensure_ascii=False
    )
