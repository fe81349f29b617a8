"""The same bytes, however the work was cut and wherever it was done."""

from __future__ import annotations

import csv
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist.kernels.regression import Labelled
from tests.support.processors import runnable

TABLES = {
    *("documents", "features", "queries", "candidates", "statistics", "detections", "normalised", "aligned"),
    *("scored", "trials", "terms", "measures", "all"),
}


def test_every_table_has_a_digest(undisturbed: dict[str, str]) -> None:
    assert set(undisturbed) == TABLES
    assert all(len(value) == 64 for value in undisturbed.values())


@pytest.mark.parametrize("shards", [1, 2, 7, 64])
def test_shards_serial(scene: Any, undisturbed: dict[str, str], shards: int) -> None:
    scene.run(f"index.shards={shards}")
    assert scene.digest() == undisturbed


@pytest.mark.parametrize(
    "sets",
    [
        ("search.lanes=1", "search.piece_seconds=2"),
        ("search.lanes=7", "search.piece_seconds=3.7", "index.shards=3"),
        ("reduce.buckets=1", "executor.cpus_per_worker=2"),
        ("reduce.buckets=97",),
    ],
)
def test_ways_of_cutting(scene: Any, undisturbed: dict[str, str], sets: tuple[str, ...]) -> None:
    scene.run(*sets)
    assert scene.digest() == undisturbed


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
    """`system` defaults to the name of the config's file."""
    scene.run("system=another name")
    assert scene.digest() == undisturbed


@pytest.mark.ray
def test_ray_with_one_worker(scene: Any, cluster: Any, undisturbed: dict[str, str]) -> None:
    scene.run(*cluster.sets, "executor.workers=1", "index.shards=7", "executor.in_flight=1")
    assert scene.digest() == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("how", ["best", "mean", "template"])
def test_all_examples(scene: Any, how: str) -> None:
    digests = []
    for k, sets in enumerate([(), ("index.shards=5", "search.lanes=3", "reduce.buckets=2")]):
        scene.run("corpus.examples=all", f"search.examples={how}", *sets, run=f"run{k}")
        digests.append(scene.digest(f"run{k}"))
    assert digests[0] == digests[1]
    # SSF counts the seconds of all examples, also where one template of them is searched.
    with (scene.corpus / "queries.csv").open(newline="") as file:
        seconds = [float(row["duration"]) for row in csv.DictReader(file)]
    counted = scene.report("run1")["resources"]["query_seconds"]
    assert sum(seconds) - 0.01 * len(seconds) <= counted <= sum(seconds)  # in whole frames of 10 ms


@pytest.mark.parametrize("how", ["best", "template"])
@pytest.mark.until("reduce")
def test_parts_of_queries(scene: Any, how: str) -> None:
    """Halves and thirds are searched and joined alike; the example that was found is one of the table."""
    digests = []
    for k, sets in enumerate([(), ("index.shards=5", "search.lanes=3", "search.piece_seconds=2", "reduce.buckets=2")]):
        how_searched = ("corpus.examples=all", f"search.examples={how}", "search.parts=true", "search.parts_least=0.1")
        done = scene.run(*how_searched, *sets, run=f"run{k}")
        digests.append(scene.digest(f"run{k}"))
    assert digests[0] == digests[1]
    detections = pa.concat_tables(done.outcome.chain_run.read("detections"))
    with (scene.corpus / "queries.csv").open(newline="") as file:
        assert set(detections["example"].to_pylist()) <= {int(row["example"]) for row in csv.DictReader(file)}


@pytest.mark.ray
@pytest.mark.parametrize("how", ["mean", "template"])
@pytest.mark.until("reduce")
def test_all_examples_on_ray(scene: Any, cluster: Any, how: str) -> None:
    sets = ("corpus.examples=all", f"search.examples={how}", "index.shards=3")
    scene.run(*sets, run="here")
    scene.run(*sets, *cluster.sets, "executor.workers=2", "search.lanes=7", run="there")
    assert scene.digest("here") == scene.digest("there")


@pytest.mark.parametrize("how", ["mean", "template"])
def test_one_example_is_as_the_primary_one(own_corpus: Any, how: str, undisturbed: dict[str, str]) -> None:
    """A table with the first example of each query: averaging changes nothing."""
    place = own_corpus.corpus / "queries.csv"
    header, *rows = place.read_text().splitlines()
    first = [row for row in rows if row.split(",")[2] == "1"]
    assert len(first) < len(rows)
    place.write_text("\n".join([header, *first]) + "\n")
    own_corpus.run("corpus.examples=all", f"search.examples={how}")
    assert own_corpus.digest() == undisturbed


@pytest.mark.slow
@pytest.mark.until("reduce")
def test_what_changes_with_how_examples_are_used(scene: Any) -> None:
    """The mean takes the candidates that the best took; the template is searched, in the cells of one example a query."""
    sets = ("corpus.examples=all", "index.shards=2")
    scene.run(*sets)
    before = scene.receipts()
    scene.run(*sets, "search.examples=mean")
    new = {name.split("-")[0] for name in scene.receipts().keys() - before.keys()}
    assert "reduce" in new
    assert not new & {"queries", "search"}
    scene.run(*sets, "search.examples=template", run="template")
    cells = [
        sum(receipt.cost.cells for receipt in scene.all_receipts(run) if receipt.stage == "search")
        for run in ("run", "template")
    ]
    assert cells[1] < 0.6 * cells[0]


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


@pytest.mark.ray
@pytest.mark.until("reduce")
def test_real_speech_on_ray_with_two_workers(tiny: Path, scene: Any, cluster: Any) -> None:
    scene.base["corpus"] = {
        "documents": str(tiny / "docs.csv"),
        "queries": str(tiny / "queries.csv"),
        "references": str(tiny / "refs.csv"),
    }
    scene.run(run="one")
    scene.run(*cluster.sets, "executor.workers=2", "executor.in_flight=3", "index.shards=64", run="two")
    assert scene.digest("one") == scene.digest("two")


def _digests_on(kernel: str, scene: Any, run: str) -> dict[str, str]:
    """Search a finished store again with another of OpenBLAS's kernels, and give the digests."""
    code = (
        "import json, sys, swsdist, numpy, threadpoolctl\n"
        "config, sets = sys.argv[1], sys.argv[2:]\n"
        "from swsdist.pipeline.chain_run import StepSelection\n"
        "from swsdist.pipeline.status import digests\n"
        "done = swsdist.run(config, sets=sets, selection=StepSelection(until='search'))\n"
        "kernels = [one.get('architecture') for one in threadpoolctl.threadpool_info()]\n"
        "print(json.dumps([kernels, digests(done.outcome.chain_run)]))\n"
    )
    sets = [f"run={scene.folder / run}", f"index.store={scene.folder / 'store'}", "search.backend=blas"]
    done = subprocess.run(
        [sys.executable, "-c", code, str(scene.config), *sets],
        env={**scene.env, "OPENBLAS_CORETYPE": kernel},
        capture_output=True,
        text=True,
        check=True,
    )
    kernels, digests = json.loads(done.stdout.splitlines()[-1])
    # The oldest one that is built in stands for those before it, and threadpoolctl calls it by the first of their names.
    if kernel not in kernels and not (kernel == "Prescott" and "Katmai" in kernels):
        pytest.skip(f"this machine has no OpenBLAS kernel {kernel}, but {kernels}")
    found: dict[str, str] = digests
    return found


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the kernels are those of x86-64")
@pytest.mark.parametrize("kernel", runnable(["Prescott", "Haswell", "SkylakeX"]))
@pytest.mark.until("search")
def test_blas_kernels_over_one_store(scene: Any, kernel: str) -> None:
    """Every product of the search is that kernel's: `backend: blas`, held against our own product."""
    scene.run(f"index.store={scene.folder / 'store'}", "search.backend=int16", run="native")
    assert _digests_on(kernel, scene, kernel) == scene.digest("native")


def test_row_groups_may_be_cut_anywhere(scene, undisturbed, monkeypatch) -> None:
    """A stage reads the rows it wants, not the row group at a place: large buckets span several."""
    monkeypatch.setattr("swsdist.store.parquet.LARGEST_ROW_GROUP", 5)
    scene.run("index.shards=1", "reduce.buckets=2")
    assert scene.digest() == undisturbed
