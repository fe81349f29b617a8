"""What the stages behind the search cost for 1000 hours, and whether the driver's memory grows with rows.

The run is a real one, by two Ray workers, of what needs no speech: all documents (HOURS, of 30 s each) are one noise of 800 Hz,
the queries (QUERIES) another, frames are samples, and the method of search makes candidates from random numbers, as many as the
real one keeps at most by default: 9 a query and document, 1080 a query and hour, of which reduce keeps 360. Every 40th document
has one occurrence, whose candidate is good. Everything else is as in any run. It is done at each of SIZES (parts of the hours),
and with a tenth of the queries, for what grows with rows but not with documents, each in a process of its own. A step's
seconds and the driver's peak in it include its planning and what ends it.

The default of 100 queries makes 36 million detections, about 10 GB on disk; QUERIES=500, as many as a large set of queries has,
makes five times that, which takes about an hour on two cores.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import soundfile
from numpy.typing import NDArray

from benchmarks.corpora import ROOT, Corpus, write
from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist.methods.dtw.method import Dtw, Queries
from swsdist.methods.dtw.search import Matches
from swsdist.methods.method import Result
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Failure, Receipt
from swsdist.registry.entries import MethodEntry
from swsdist.store.reading import Store
from tests.support.reshape import RATE, WIDTH, Reshape

_HOURS = float(os.environ.get("HOURS", "1000"))
_QUERIES = int(os.environ.get("QUERIES", "100"))
_SIZES = [float(size) for size in os.environ.get("SIZES", "0.1,1").split(",")]
_SECONDS, _HOP = 30, 80
#: Candidates of a query in a document, and the frames from one to the next; a candidate is as long as a query.
_EACH = 9
_APART = _SECONDS * RATE // _HOP // _EACH
_LENGTH = 8
#: One of so many documents has an occurrence, which ends at the same frame in each.
_ONE_OF, _END = 40, 20


class Samples(Reshape):
    """Frames of 0.1 s are some of their samples."""

    name: ClassVar[str] = "samples"
    frame_length: ClassVar[int] = _HOP
    hop: ClassVar[int] = _HOP

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Frames of float32 (n,) samples, float32 (n / 80, 8)."""
        return samples[: len(samples) // _HOP * _HOP].reshape(-1, _HOP)[:, :WIDTH]


class Made(Dtw):
    """The method dtw with made candidates in place of those that are found."""

    def search(self, queries: Queries, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """Candidates of every query in every document of a shard, with random costs."""
        from swsdist.methods.dtw.shard import candidate_tables

        examples, (shard,) = queries(1), shards
        documents = store.documents(shard, ["doc_id", "channel"])
        numbers = np.array([int(name[1:]) for name in documents["doc_id"].to_pylist()])
        count, shape = len(numbers), (len(examples), len(numbers), _EACH)
        asked = np.array([int(example.query_id[1:]) for example in examples])
        random = np.random.default_rng([int(numbers.min()), int(asked[0])])
        ends = _END + np.arange(_EACH) * _APART + random.integers(0, 8, shape)
        costs = np.maximum(random.normal(700, 100, shape) * _LENGTH, 1).astype(np.int64)
        true = (numbers % _ONE_OF == 0) & (numbers // _ONE_OF % _QUERIES == asked[:, None])
        ends[true, 0], costs[true, 0] = _END, costs[true, 0] // 2
        query, document = (axis.reshape(-1).astype(np.int32) for axis in np.indices(shape)[:2])
        frames = np.full(len(query), _LENGTH, np.int32)
        matches = Matches(query, document, ends.reshape(-1), frames, costs.reshape(-1), 1.0)
        tables = (table for _, table in candidate_tables(documents, examples, matches, 1024, buckets))
        return Result(tables, len(query), len(examples) * count)


METHOD = MethodEntry("benchmarks.thousand_hours:Made", 1)
#: Entry points of the package that is made, a line a group.
_POINTS = {
    "swsdist.features": "samples = benchmarks.thousand_hours:Samples",
    "swsdist.methods": "made = benchmarks.thousand_hours:METHOD",
}


def make(hours: float, asked: int, folder: Path) -> None:
    """Tables of a corpus, and a package by whose entry points the processes of a run find the extractor and the method."""
    package = folder / "path" / "made-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: made\nVersion: 1\n")
    (package / "entry_points.txt").write_text("\n".join(f"[{group}]\n{line}" for group, line in _POINTS.items()))
    noise = np.random.default_rng(0).integers(-9999, 9999, _SECONDS * RATE, np.int16)
    soundfile.write(folder / "noise.wav", noise, RATE)
    soundfile.write(folder / "query.wav", noise[: _LENGTH * _HOP][::-1], RATE)
    documents = range(round(hours * 3600 / _SECONDS))
    doc = {"path": str(folder / "noise.wav"), "duration": _SECONDS}
    times = {"channel": 1, "start": (_END - _LENGTH + 1) * _HOP / RATE, "end": (_END + 1) * _HOP / RATE}
    queries = [{"query_id": f"q{k}", "path": str(folder / "query.wav")} for k in range(asked)]
    true = [(k, k // _ONE_OF % asked) for k in documents[::_ONE_OF]]
    write(folder / "docs.csv", [{"doc_id": f"d{k}", **doc} for k in documents])
    write(folder / "queries.csv", queries)
    write(folder / "refs.csv", [{"query_id": f"q{q}", "doc_id": f"d{k}", **times} for k, q in true])


class Watch(Progress):
    """Wall (s), peak of this process (MB) and rows of each step; what is before it counts with it."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}
        self._rows, self._clock = 0, time.perf_counter()

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """Rows of a task."""
        self._rows += 0 if isinstance(outcome, Failure) else outcome.outputs[0].rows

    def step_ends(self, step: Step, wall: float) -> None:
        """A step."""
        self.ended(step.name)

    def ended(self, name: str) -> None:
        """Note what ended, and begin anew."""
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))
        self.steps[name] = {"wall": time.perf_counter() - self._clock, "peak": peak, "rows": self._rows}
        self._rows, self._clock = 0, time.perf_counter()
        Path("/proc/self/clear_refs").write_text("5")


def run(folder: Path) -> None:
    """What `swsdist run` does, and what it took, as JSON."""
    watch = Watch()
    config = Corpus("made", *(folder / f"{table}.csv" for table in ("docs", "queries", "refs"))).config(
        folder / "run",
        features={"name": "samples"},
        search={"method": "made"},
        calibrate={"steps": ["q-norm", "llr"], "fit": "crossfit"},
        executor={"kind": "ray", "workers": 2},
        report={"clips": 0, "exports": ["csv", "stdlist"]},
    )
    outcome = run_stages(config, StepSelection(), watch)
    if outcome.failures:
        raise RuntimeError(f"{len(outcome.failures)} tasks failed: {outcome.failures[0].message}")
    watch.ended("report")
    print(json.dumps(watch.steps))


def _measured(hours: float, asked: int, scratch: Path) -> tuple[list[Row], float]:
    """A run, and the peak of its driver, MB."""
    folder = scratch / "made"
    say(f"thousand_hours: {hours:g} h, {asked} queries")
    make(hours, asked, folder)
    path = os.pathsep.join([str(folder / "path"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    call = [sys.executable, "-m", "benchmarks.thousand_hours", "--run", str(folder)]
    done = subprocess.run(
        call,
        env={**os.environ, "PYTHONPATH": path, "QUERIES": str(asked)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    steps = json.loads(done.stdout.splitlines()[-1])
    say(json.dumps(steps))
    name, peak = f"{hours:g} h, {asked} queries", max(one["peak"] for one in steps.values())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    mtwv = json.loads((folder / "run" / "report.json").read_text())["measures"]["mtwv"]
    rows = [
        Row(f"{name}: documents", round(hours * 3600 / _SECONDS), ""),
        Row(f"{name}: candidates", steps["search"]["rows"], ""),
        Row(f"{name}: detections", steps["decide"]["rows"], ""),
        Row(f"{name}: MTWV", mtwv, "", at_least(0.1)),
        Row(f"{name}: on disk", size / 1e9, "GB"),
        *(Row(f"{name}: {step}", one["wall"], "s") for step, one in steps.items()),
        Row(f"{name}: all", sum(one["wall"] for one in steps.values()), "s"),
        *(Row(f"{name}: peak of the driver, {step}", one["peak"], "MB") for step, one in steps.items()),
        Row(f"{name}: peak of the driver", peak, "MB", at_most(1500)),
    ]
    shutil.rmtree(folder)
    return rows, peak


def measure(scratch: Path) -> list[Row]:
    """A run of each size, and one with fewer queries."""
    sizes = [(size * _HOURS, _QUERIES) for size in _SIZES] + [(_SIZES[-1] * _HOURS, max(_QUERIES // 10, 2))]
    runs = [_measured(*size, scratch) for size in sizes]
    (less, more, few), (hours, _) = (runs[k][1] for k in (0, -2, -1)), sizes[-2]
    return [
        *(row for rows, _ in runs for row in rows),
        Row(f"peak of the driver, {hours:g} h to {sizes[0][0]:g} h", more / less, "ratio"),
        Row(f"peak of the driver, {_QUERIES} queries to {sizes[-1][1]}", more / few, "ratio", at_most(1.1)),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]))
    else:
        main(measure, __doc__)
