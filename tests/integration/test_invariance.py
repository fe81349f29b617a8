"""The same bytes, however the work was cut and wherever it was done; a task is no larger in a larger collection."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from swsdist.config import load_config
from swsdist.io.filesystem import Folder
from swsdist.kernels.regression import Labelled
from swsdist.pipeline.chain import Context
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Task
from tests.support.tables import read_rows, write_rows

TABLES = {
    *("documents", "features", "queries", "candidates", "statistics", "detections", "normalised", "aligned"),
    *("scored", "trials", "terms", "measures", "all"),
}


def test_every_table_has_a_digest(undisturbed: dict[str, str]) -> None:
    assert set(undisturbed) == TABLES


def test_long_tables_of_counts_are_merged_first(
    scene: Any, undisturbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swsdist.stages.score._FEW", 0)
    monkeypatch.setattr("swsdist.stages.score._TOGETHER", 2)
    tasks = scene.run("reduce.buckets=5").outcome.chain_run.outcomes["score"].tasks
    assert tasks > 4
    assert scene.digest() == undisturbed
    assert scene.run("reduce.buckets=5").outcome.tasks_done == 0


@pytest.mark.slow
@pytest.mark.parametrize("steps", [[], ["q-norm", "llr"], ["q-norm", "logistic", "kst"]])
def test_long_lists_are_fitted_in_parts(scene: Any, monkeypatch: pytest.MonkeyPatch, steps: list[str]) -> None:
    """As the whole list is, if rows are not coarse; and alike for any parts, if they are."""
    sets = [f"calibrate.steps={json.dumps(steps)}"] if steps else []
    scene.run(*sets, run="whole")
    monkeypatch.setattr("swsdist.stages.score.MOST", 0)
    with monkeypatch.context() as patch:
        patch.setattr(Labelled.coarse, "__defaults__", (52,))
        result = scene.run(*sets, "reduce.buckets=5", run="parts")
        assert result.outcome.chain_run.outcomes["fit"].tasks > 6
        assert scene.digest("parts") == scene.digest("whole")
        assert _calibration(scene, "parts") == _calibration(scene, "whole")
    assert scene.run(*sets, "reduce.buckets=5", run="parts").outcome.tasks_done == 0
    with monkeypatch.context() as patch:
        patch.setattr("swsdist.stages.score.count", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            scene.run(*sets, "reduce.buckets=3", run="three")
    receipts = scene.receipts("three")
    assert any(name.startswith("fit-") for name in receipts) == bool(steps)
    scene.run(*sets, "reduce.buckets=3", run="three")
    assert receipts.items() <= scene.receipts("three").items(), "a round that had its receipts was done again"
    scene.run(*sets, run="sixteen")
    assert scene.digest("three") == scene.digest("sixteen")
    assert _calibration(scene, "three") == _calibration(scene, "sixteen")
    measures = [scene.report(run)["measures"]["atwv"] for run in ("whole", "three")]
    assert measures[0] == pytest.approx(measures[1], abs=0.01)


def _interrupt(*arguments: Any) -> None:
    raise KeyboardInterrupt


def _calibration(scene: Any, run: str) -> Any:
    (part,) = scene.chain_runs[run].table("calibration").parts
    values = json.loads((scene.folder / run / part.name).read_text())
    values["trained_on"].pop("aligned")  # files
    return values


def test_a_label_is_no_result(scene: Any, undisturbed: dict[str, str]) -> None:
    scene.run("system=another name")
    assert scene.digest() == undisturbed


@pytest.mark.until("reduce")
def test_one_example_is_as_the_primary_one(own_corpus: Any, undisturbed: dict[str, str]) -> None:
    place = own_corpus.corpus / "queries.csv"
    header, *rows = place.read_text().splitlines()
    first = [row for row in rows if row.split(",")[2] == "1"]
    assert len(first) < len(rows)
    place.write_text("\n".join([header, *first]) + "\n")
    for how in ("mean", "template"):
        own_corpus.run("corpus.examples=all", f"search.examples={how}")
        assert own_corpus.digest() == undisturbed


@pytest.mark.until("reduce")
def test_lists_of_files_that_are_too_long_for_a_task(
    scene: Any, undisturbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each bucket finds its own files in a list in the run folder; its name, and what it makes, are the same."""
    scene.run("index.shards=5", "reduce.buckets=3", run="short")
    monkeypatch.setattr("swsdist.stages.reduce.MOST_NAMED", 2)
    scene.run("index.shards=5", "reduce.buckets=3")
    assert len(list((scene.folder / "run" / "tables" / "lists").iterdir())) == 1
    assert not (scene.folder / "short" / "tables" / "lists").exists()
    assert scene.digest() == undisturbed
    assert scene.receipts().keys() == scene.receipts("short").keys()


def test_row_groups_may_be_cut_anywhere(scene, undisturbed, monkeypatch) -> None:
    """A stage reads the rows it wants, not the row group at a place: large buckets span several."""
    monkeypatch.setattr("swsdist.store.parquet.LARGEST_ROW_GROUP", 5)
    scene.run("index.shards=1", "reduce.buckets=2")
    assert scene.digest() == undisturbed


def tracks(*given: Any) -> str:
    return f"features={json.dumps(given)}"


PCA = {"name": "pca", "options": {"columns": 8, "hours": 1}}
GMM = {"name": "gmm", "options": {"components": 4, "iterations": 2, "hours": 1}}
LONG = {"name": "mfcc", "track": "long", "options": {"n_mfcc": 7, "deltas": 0, "n_fft": 1024, "win_length": 800}}
WEIGHED = (
    'search.streams=[{"track": "long", "distance": "euclidean", "weight": 2}, {"track": "mfcc", "columns": [13, 26]}]'
)
ALL_EXAMPLES = ("corpus.examples=all", "queries.trim=none")
#: Settings by what is cut: examples, tracks, models that are fitted, passes, scores.
SETTINGS: dict[str, tuple[str, ...]] = {
    **{how: (*ALL_EXAMPLES, f"search.examples={how}") for how in ("mean", "template")},
    "parts": (*ALL_EXAMPLES, "search.examples=template", "search.parts=true", "search.parts_least=0.1"),
    "two tracks": (tracks({"name": "mfcc"}, LONG), WEIGHED),
    "fitted": (tracks({"name": "mfcc", "transforms": [PCA, GMM]}),),
    "warped": (tracks({"name": "vtln", "options": {"step": 0.12, "components": 3, "iterations": 1, "hours": 1}}),),
    "half": (tracks({"name": "mfcc", "dtype": "float16"}), "search.first_pass.name=quantised"),
    "quantised": ('search.first_pass={"name": "quantised", "factor": 2, "sample": 0, "over": "document"}',),
    "speech": ("search.skip_silence=true",),
    "by speaker": ("calibrate.steps=[speaker-norm]", "search.examples=mean", "corpus.examples=all"),
    "side information": (
        "calibrate.steps=[m-norm, llr]",
        "calibrate.options={llr: {covariates: [duration, speech, mean, gap, length-ratio], curve: rising}}",
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*negative-slope")
@pytest.mark.parametrize("name", SETTINGS)
def test_the_cut_changes_nothing(scene: Any, name: str) -> None:
    scene.run(*SETTINGS[name], "index.shards=1", "report.exports=[]", run="one")
    cut = ("index.shards=5", "search.lanes=3", "search.piece_seconds=2", "reduce.buckets=2")
    scene.run(*SETTINGS[name], *cut, "report.exports=[]", run="five")
    assert scene.digest("one") == scene.digest("five")
    assert scene.run(*SETTINGS[name], *cut, "report.exports=[]", run="five").outcome.tasks_done == 0


@pytest.mark.ray
@pytest.mark.parametrize("name", ["template", "two tracks", "fitted", "quantised"])
@pytest.mark.until("reduce")
def test_ray_changes_nothing(scene: Any, cluster: Any, name: str) -> None:
    workers = ("executor.workers=1", "executor.in_flight=1") if name == "fitted" else ("executor.workers=2",)
    scene.run(*SETTINGS[name], "index.shards=1", run="here")
    scene.run(*SETTINGS[name], *cluster.sets, *workers, "search.lanes=7", "index.shards=3", run="there")
    assert scene.digest("here") == scene.digest("there")


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    read_of: Counter[str]

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self.read_of[str(self.name)] += count
        return count

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        self.read_of[str(self.name)] += len(data)
        return data


def search_tasks(scene: Any, documents: int) -> tuple[Any, list[Task], Context]:
    """Index so many documents, the first ones those of the corpus, the others copies of its shortest; plan the search."""
    table = scene.corpus / "docs.csv"
    rows = read_rows(scene.corpus / "docs.all.csv")
    short = min(rows, key=lambda row: (scene.corpus / row["path"]).stat().st_size)
    rows = rows[:2] + [{**short, "doc_id": f"x{k:03d}", "speaker": f"s{k:03d}"} for k in range(documents - 2)]
    write_rows(table, rows)
    config = load_config(scene.config, [f"run={scene.folder}/of-{documents}", f"index.shards={documents}"])
    chain_run = run_stages(config, StepSelection(until="queries"), Progress()).chain_run
    step = chain_run.chain.step("search")
    return step.stage, list(step.stage.plan(chain_run.inputs(step))), Context(chain_run.run, {})


def test_of_a_shard(own_corpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_corpus.corpus / "docs.csv").rename(own_corpus.corpus / "docs.all.csv")
    costs = []
    for documents in (3, 24):
        stage, tasks, context = search_tasks(own_corpus, documents)
        assert len(tasks) == documents
        sent = len(pickle.dumps(tasks[0]))
        stage.run(tasks[1], context)  # the first of a worker: it reads which row groups are of which shard
        read: Counter[str] = Counter()
        monkeypatch.setattr(Counted, "read_of", read, raising=False)
        monkeypatch.setattr(Folder, "open", lambda self, name, ahead=0: Counted(self.path(name)))
        tracemalloc.start()
        try:
            stage.run(tasks[0], context)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            monkeypatch.undo()
        kinds = {Path(name).name.partition("-")[0]: size for name, size in read.items()}
        costs.append((sent, kinds, peak))
    (few_sent, few, few_peak), (many_sent, many, many_peak) = costs
    assert many_sent - few_sent < 100, "a search task names its own shard only"
    assert few.keys() == many.keys() == {"part", "documents"}
    assert many["part"] == few["part"]
    assert many["documents"] - few["documents"] < 100
    assert many_peak < 1.1 * few_peak
