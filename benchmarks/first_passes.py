"""First passes that propose where to search: work, recall and MTWV of each on Mboshi dev, against the full search.

Work is told twice. Cells: query frames times document frames, of the first pass and of the visits, as part of the full
search's; a cell of which only the distance was computed counts `DISTANCE`, one whose distance was looked up `LOOKUP`, about
what they cost in CPU here. CPU seconds: of this process, one thread, from reading the store to candidates, as part of the full
search's; the index of quantised frames is made before, and told on its own. No document is searched exactly whatever is
proposed (`sample: 0`).

Recall is of the full search's candidates that score at least its threshold of MTWV (sws2013), each found with the same
end, frames and cost. MTWV is told with q-norm by what was found, as a run with `sample: 0` has it, and by the full search's
sums, to tell apart what was not found and what the normalisation lost. `--plot FILE` draws the picture in
docs/concepts/first-passes.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Row, at_least, say, show
from swsdist.calibrate.procedure import Procedure, make_steps
from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.norms import moments
from swsdist.config.loader import load_config
from swsdist.config.model import Reduce
from swsdist.config.search import Search
from swsdist.methods.dtw.search import Matches, search
from swsdist.methods.dtw.shard import candidate_tables, engine_settings
from swsdist.methods.first_pass.interface import Budget, FirstPass, Material, Work, create
from swsdist.methods.first_pass.quantised import Quantised, build, index_of
from swsdist.methods.first_pass.search import material_of, run
from swsdist.methods.query.example import Example
from swsdist.methods.query.extraction import prepared
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.reduce.examples import Bucket
from swsdist.report.pictures import write_picture
from swsdist.report.plots.curves import Axes, Series, lines_svg
from swsdist.report.plots.svg import side_by_side
from swsdist.score.align import align
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.protocol import beta, number_of_trials, protocol
from swsdist.score.measures.twv import mtwv, twv_curve
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.queries import examples_in
from swsdist.testing.conformance.entry import recall

#: Of a cell, what its distance alone costs; and what a cell costs whose distance is looked up.
DISTANCE, LOOKUP = 0.6, 0.45

#: Windows an hour that are kept of a query, over the collection.
_HOURLY = (25, 50, 100, 200, 400)

#: Curves: a name, the first pass, its options.
_CURVES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("quantised, 20 ms, 5 bytes", "quantised", {"factor": 2, "bytes": 5}),
    ("quantised, 30 ms, 10 bytes", "quantised", {"factor": 3, "bytes": 10}),
    ("quantised, 40 ms, 10 bytes", "quantised", {"factor": 4, "bytes": 10}),
    ("coarse, 10 ms", "coarse", {"factor": 1}),
    ("coarse, 20 ms", "coarse", {"factor": 2}),
)
_DRAWN = tuple(label for label, *_ in _CURVES if label != "coarse, 10 ms")


class Point(NamedTuple):
    """One setting, measured; cells and cpu are parts of the full search's."""

    hourly: int
    cells: float
    cpu: float
    above: float
    overall: float
    mtwv: float
    mtwv_full: float


class Scene:
    """Mboshi dev, its full search, and what a search of it is worth."""

    def __init__(self, scratch: Path) -> None:
        places = (
            f"run={scratch / 'run'}",
            f"index.store={scratch / 'store'}",
            "executor.kind=serial",
            "queries.trim=none",
        )
        config = load_config(ROOT / "configs" / "mboshi-dev.yaml", places)
        outcome = run_stages(config, StepSelection(until="queries"), Progress())
        self.state: SearchInputs = outcome.chain_run.chain.inputs
        self.store = self.state.store.open()
        self._queries = examples_in(outcome.chain_run)
        self._shards = [shard.name for shard in self.store.manifest.shards]
        self.search_config = Search()
        self._warm: set[tuple[str, str]] = set()
        rules = protocol("sws2013")
        self._rules = rules
        self._trials = number_of_trials(rules, self.state.seconds)
        references = self.state.corpus.references
        if references is None:
            raise RuntimeError("the config names no references")
        self._references = references
        self._beta = beta(rules, self.state.seconds, references.num_rows)
        with threadpool_limits(limits=1):
            self._full()  # loads the kernels
            clock = time.process_time()
            self.full, self.examples = self._full()
            self.cpu = time.process_time() - clock
        lengths = self.new_material(self.search_config).lengths
        self.cells = sum(len(one.frames) for one in self.examples) * int(lengths.sum())
        self.mtwv, threshold, self.statistics = self.measure(self.full)
        mean, deviation = np.array(
            [moments(from_table(self.statistics)["cost-sums"])[one.query_id] for one in self.examples]
        ).T
        size = np.array([len(one.frames) for one in self.examples])
        raw = -self.full.cost / (size[self.full.query] * 2048)
        scores = (raw - mean[self.full.query]) / deviation[self.full.query]
        self.above: NDArray[np.bool_] = scores >= threshold

    def _examples(self, factor: int) -> list[Example]:
        return prepared(
            self._queries, self.store.statistics(), self.search_config, self.store.manifest.tracks[0].dimension, factor
        )

    def new_material(self, search_config: Search) -> Material:
        """As a task has it: nothing is read yet but the documents' table."""
        self._documents, material = material_of(self.store, self._shards, self._examples, search_config)
        return material

    def _full(self) -> tuple[Matches, list[Example]]:
        material = self.new_material(self.search_config)
        examples = material.examples(1)
        settings = engine_settings(self.search_config, material.distance, material.seconds)
        return search(examples, material.documents(1, None), material.most, settings._replace(threads=1)), examples

    def measure(self, found: Matches, statistics: pa.Table | None = None) -> tuple[float, float | None, pa.Table]:
        """MTWV, its threshold, and the sums that q-norm is made of.

        Args:
            statistics: to normalise by; those of what was found by default.
        """
        tables = [part for _, part in candidate_tables(self._documents.table, self.examples, found, 2048, 1)]
        shift = self.store.manifest.shift
        rules = {"overlap": Reduce().overlap, "nbest": 1000, "system": "", "statistics": ("cost-sums",)}
        reduced = Bucket(tick=shift, **rules).all_of(tables)
        own = reduced.statistics if statistics is None else statistics
        detections = Procedure(make_steps(["q-norm"], {})).scores(reduced.detections, from_table(own))
        scores = detections["score"].to_numpy()
        aligned = align(
            detections,
            self._references,
            low=float(scores.min()),
            high=float(scores.max()),
            tolerance=self._rules.tolerance,
        )
        best = mtwv(twv_curve(Counts.of(aligned), trials=self._trials, beta=self._beta))
        return best.twv, best.threshold, reduced.statistics

    def cost(self, work: Work) -> float:
        """Work as part of the full search's cells."""
        return (work.cells + DISTANCE * work.distances + LOOKUP * work.lookups) / self.cells

    def made(self, name: str, options: dict[str, Any]) -> tuple[FirstPass, Search, float]:
        """A first pass, the search that has it, and the CPU seconds of its index; its codebook is held."""
        first_pass = create(name, **options)
        rest = {key: value for key, value in options.items() if key != "factor"}
        section = {"name": name, "factor": options["factor"], "options": rest, "sample": 0}
        search_config = Search.model_validate({"first_pass": section})
        if not isinstance(first_pass, Quantised):
            return first_pass, search_config, 0.0
        with threadpool_limits(limits=1):
            material = self.new_material(search_config)
            book = material.codebook(first_pass.factor, first_pass.bytes)
            clock = time.process_time()
            table = build(material, first_pass.factor, book)
            seconds = time.process_time() - clock
        index = index_of([table], -(-material.lengths // first_pass.factor), len(book.columns) // 2, "")
        return replace(first_pass, index=index), search_config, seconds

    def point(self, first_pass: FirstPass, search_config: Search, hourly: int, budget: Budget | None = None) -> Point:
        """One setting, once the kernels are loaded; by default the budget is over the collection."""
        budget = budget or Budget(10, hourly / 3600, "collection")
        with threadpool_limits(limits=1):
            if (kind := (search_config.first_pass.name, budget.over)) not in self._warm:
                run(first_pass, self.new_material(search_config), budget)
                self._warm.add(kind)
            clock = time.process_time()
            found, work, _ = run(first_pass, self.new_material(search_config), budget)
            cpu = time.process_time() - clock
        return Point(
            hourly,
            self.cost(work),
            cpu / self.cpu,
            recall(found, self.full, self.above),
            recall(found, self.full),
            self.measure(found)[0],
            self.measure(found, self.statistics)[0],
        )


def measure(scratch: Path, plot: Path | None) -> list[Row]:
    """All curves. Without the recordings nothing is measured."""
    goals = ("first passes: times fewer cells at 0.99 of MTWV and recall", "first passes: times less CPU at the same")
    if mboshi() is None:
        return [Row(f"{goal} (Mboshi dev is not beside the checkout)", None, "x", at_least(10)) for goal in goals]
    numba.set_num_threads(1)
    scene = Scene(scratch)
    say(
        f"first passes: the full search takes {scene.cpu:.2f} CPU s and finds {len(scene.above)} candidates, "
        f"{int(scene.above.sum())} above its threshold"
    )
    rows = [Row("full search: MTWV", scene.mtwv, ""), Row("full search: CPU", scene.cpu, "s")]
    curves: dict[str, list[Point]] = {}
    for label, name, options in _CURVES:
        first_pass, search_config, indexing = scene.made(name, options)
        if indexing:
            rows.append(Row(f"{label}: making the index", 100 * indexing / scene.cpu, "% CPU"))
        curves[label] = [scene.point(first_pass, search_config, hourly) for hourly in _HOURLY]
        for point in curves[label]:
            rows += _rows(f"{label}, {point.hourly} windows an hour", point)
    # As the paper has it, and one window of each document: Mboshi's are sentences of three seconds.
    for label, name, options, budget in (
        ("coarse, 10 ms, max(100, seconds) of each document", "coarse", {"factor": 1}, Budget(100, 1.0, "document")),
        (
            "quantised, one window of each document",
            "quantised",
            {"factor": 3, "bytes": 10},
            Budget(1, 0.03, "document"),
        ),
    ):
        first_pass, search_config, _ = scene.made(name, options)
        rows += _rows(label, scene.point(first_pass, search_config, 0, budget))
    found = [p for points in curves.values() for p in points if p.above >= 0.99]
    good = [p for p in found if p.mtwv >= 0.99 * scene.mtwv]
    same_sums = [p for p in found if p.mtwv_full >= 0.99 * scene.mtwv]
    for goal, part in zip(goals, (lambda p: p.cells, lambda p: p.cpu), strict=True):
        rows.append(Row(goal, 1 / min(map(part, good), default=np.inf), "x", at_least(10)))
        rows.append(Row(f"{goal}, sums of the full search", 1 / min(map(part, same_sums), default=np.inf), "x"))
    if plot is not None:
        write_picture(_drawn({label: curves[label] for label in _DRAWN}, scene.mtwv), plot)
    return rows


def _rows(label: str, point: Point) -> list[Row]:
    return [
        Row(f"{label}: cells", 100 * point.cells, "%"),
        Row(f"{label}: CPU", 100 * point.cpu, "%"),
        Row(f"{label}: recall above the threshold", point.above, ""),
        Row(f"{label}: recall of all candidates", point.overall, ""),
        Row(f"{label}: MTWV", point.mtwv, ""),
        Row(f"{label}: MTWV, sums of the full search", point.mtwv_full, ""),
    ]


def _drawn(curves: dict[str, list[Point]], exact: float) -> str:
    """Recall, and MTWV as part of the exact one, against cells."""
    pictures = []
    shown: tuple[tuple[str, Callable[[Point], float]], ...] = (
        ("recall above the threshold", lambda p: p.above),
        ("MTWV / MTWV of the full search", lambda p: p.mtwv / exact),
    )
    for title, what in shown:
        lines = [
            Series(label, [100 * p.cells for p in points], [what(p) for p in points], kind)
            for kind, (label, points) in enumerate(curves.items())
        ]
        marks = [(100 * p.cells, what(p), k) for k, points in enumerate(curves.values()) for p in points]
        axes = Axes("cells, % of the full search", title, (0.0, 40.0), (0.7, 1.05))
        pictures.append(lines_svg(lines, axes, marks=[m for m in marks if m[0] <= 40 and m[1] >= 0.7], title=title))
    return side_by_side(pictures, title="Recall and MTWV against work, of first passes on mboshi-dev")


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the curves: .svg, .pdf or .png")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        rows = measure(Path(scratch), chosen.plot)
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
