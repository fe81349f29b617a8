"""Tasks that raise, kill their process, or meet a disk or server that fails: kept apart, recorded, and tried again."""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile

from swsdist.audio import streams
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as pipeline_codes
from swsdist.core.codes import storage as codes
from swsdist.core.errors import StoreError
from swsdist.features import extractors
from swsdist.io.filesystem import Folder
from swsdist.pipeline import driver
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.estimate import diagnose
from swsdist.pipeline.execution import executor
from swsdist.pipeline.execution.executor import Worker
from swsdist.pipeline.lock import locked
from swsdist.pipeline.status import status
from swsdist.registry.registries import FEATURES
from swsdist.registry.registry import Entry
from swsdist.stages.inputs import corpus_documents as recordings
from tests.support.coded import raises, says

EARS = """\
import numpy as np
from swsdist.features.mfcc import Mfcc
from pathlib import Path

class Ears(Mfcc):
    name = "ears"
    version = 1

    def extract(self, samples):
        told = (Path(__file__).parent / "told").read_text().split()
        if told and told[0] in ("all", str(len(samples))):
            np.zeros((2, 3)) @ np.zeros((2, 3))  # line 12
        return super().extract(samples)

class Deaf(Mfcc):
    name = "deaf"
    version = 1

    def __init__(self, **options):
        raise RuntimeError("no ears at all")
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stranger's extractor, which fails on recordings of the length that this file says."""
    (tmp_path / "strangers_ears.py").write_text(EARS)
    monkeypatch.syspath_prepend(tmp_path)
    FEATURES.add("ears", Entry("strangers_ears:Ears", 1))
    FEATURES.add("deaf", Entry("strangers_ears:Deaf", 1))
    (tmp_path / "told").write_text("")
    yield tmp_path / "told"
    FEATURES.remove("ears")
    FEATURES.remove("deaf")
    sys.modules.pop("strangers_ears", None)
    extractors._created.clear()  # what was made of that module


@pytest.mark.until("index")
def test_a_failed_task_keeps_its_traceback(scene: Any, told: Path) -> None:
    told.write_text(str(soundfile.info(scene.corpus / "audio" / "d005.flac").frames))
    result = scene.run("features.name=ears", "index.shards=8", selection=StepSelection(keep_going=True))
    (failure,) = result.outcome.failures
    assert failure.message.startswith("ValueError: matmul")
    assert f"{told.parent}/strangers_ears.py, line 12, in extract" in failure.message
    kept = scene.folder / "run" / failure.file
    assert kept.parent.name == "failed"
    assert "# line 12" in kept.read_text()
    (row,) = scene.rejected()
    assert failure.file in row["remedy"]
    errors = [line for lines in scene.journals() for line in lines if line["event"] == "error"]
    assert ["strangers_ears.py" in line["traceback"] for line in errors] == [True], "it was not tried again"
    told.write_text("")
    assert scene.run("features.name=ears", "index.shards=8").outcome.failures == []
    assert not kept.exists()


def test_a_failure_is_kept_on_s3_too(scene: Any, told: Path, s3: Any) -> None:
    told.write_text("all")
    run = f"s3://{s3.bucket}/failures"
    with pytest.raises(StoreError) as found:
        scene.run("features.name=ears", f"storage={json.dumps(s3.storage)}", run=run)
    (name,) = Folder(run, s3.storage).listing("failed")
    assert f"{run}/{name}" in str(found.value)
    assert b"strangers_ears.py" in Folder(run, s3.storage).read_bytes(name)


def test_an_extractor_that_cannot_be_made(scene: Any, told: Path) -> None:
    with raises(families.EXTENSION, name="deaf", error="RuntimeError: no ears at all", line=20) as caught:
        scene.run("features.name=deaf")
    assert str(caught.value.values["file"]).endswith("strangers_ears.py")
    assert "strangers_ears:Deaf" in str(caught.value.remedy)


def test_entry_points_that_do_not_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torn.py").write_text("def f(:\n")
    info = tmp_path / "torn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torn\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[swsdist.features]\ntorn = torn:Torn\n")
    monkeypatch.syspath_prepend(tmp_path)
    FEATURES.__dict__.pop("_added", None)
    try:
        with raises(families.EXTENSION, name="torn"):
            _ = FEATURES["torn"]
        (bad,) = (one for one in diagnose(None, {}, False) if not one.good)
        assert (bad.name, "swsdist.features: torn" in bad.text, "SyntaxError" in bad.text) == ("extension", True, True)
    finally:
        FEATURES.__dict__.pop("_added", None)


def test_status_shows_nobody_of_an_earlier_run(finished: Any) -> None:
    """Its journal is seconds old; who holds the folder now has not begun to write."""
    run = Folder(str(finished.folder / "run"))
    with locked(run):
        found = status(run)
    assert found.state == "running"
    assert found.processes == ()


SHARDS = ("features.name=saboteur", "index.shards=64", "executor.workers=2")


def samples(scene: Any, doc_id: str) -> int:
    """Length of a document, by which the saboteur knows it."""
    return int(soundfile.info(scene.corpus / "audio" / f"{doc_id}.flac").frames)


@pytest.mark.ray
def test_a_task_that_kills_its_process(scene: Any, cluster: Any, undisturbed: dict[str, str]) -> None:
    scene.sabotage(how="kill", samples=[samples(scene, "d003")])  # at once, while the answer before it is on its way
    first = scene.go(*cluster.sets, "executor.attempts=2", *SHARDS, flags=("--keep-going",))
    assert first.returncode == 4, first.stderr
    (row,) = scene.rejected()
    assert (row["kind"], row["reason"]) == ("task", "killed")
    assert "died 2 times" in row["message"]
    assert "FAILED shard 3 of 8" in first.stderr, "the progress says it at once"
    assert "died 2 times" in first.stderr.partition("error: ")[2], "and the last line says it again"
    counts = scene.report()["counts"]
    assert (counts["documents"], counts["rejected"]) == (7, 1)
    # Of those in flight, the one at work was blamed each time, and no other.
    begun = [line["fingerprint"] for lines in scene.journals() for line in lines if line["event"] == "begin"]
    poisoned = row["id"].removeprefix("index-")
    assert begun.count(poisoned) == 2
    lost = [line["lost"] for lines in scene.journals() for line in lines if line["event"] == "died"]
    assert [names[0] for names in lost] == [poisoned] * 2
    # Mended, the next run does what failed, and what depends on it.
    before = scene.receipts()
    scene.order.unlink()
    second = scene.go(*SHARDS)
    assert second.returncode == 0, second.stderr
    assert scene.rejected() == []
    assert {k: v for k, v in before.items() if not k.startswith("export-")}.items() <= scene.receipts().items()
    now = scene.digest()
    assert all(now[name] == undisturbed[name] for name in ("documents", "features"))


@pytest.mark.ray
def test_a_process_that_dies_at_every_task(scene: Any, cluster: Any) -> None:
    lengths = [samples(scene, f"d{k:03d}") for k in range(1, 9)]
    scene.sabotage(how="kill", samples=lengths)
    done = scene.go(*cluster.sets, "executor.actor_restarts=1", *SHARDS)
    assert done.returncode == 3, done.stderr
    assert "none of the 8 documents could be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.ray
def test_a_task_that_raises(scene: Any, cluster: Any) -> None:
    scene.sabotage(how="system", samples=[samples(scene, "d005")])
    done = scene.go(*cluster.sets, *SHARDS, flags=("--keep-going",))
    assert done.returncode == 4, done.stderr
    (row,) = scene.rejected()
    assert (row["kind"], row["reason"]) == ("task", "io-error")
    assert "sabotaged" in row["message"]
    assert scene.report()["counts"]["documents"] == 7
    errors = [line for lines in scene.journals() for line in lines if line["event"] == "error"]
    assert ["saboteur.py" in line["traceback"] for line in errors] == [True] * 3, "the journal has the traceback"


@pytest.mark.ray
def test_a_users_mistake_found_in_a_worker_ends_the_run(scene: Any, ray_left: Any) -> None:
    scene.sabotage(how="user", samples=[samples(scene, "d005")])
    done = scene.go("executor.kind=ray", *SHARDS)
    assert done.returncode == 2
    assert "sabotaged settings" in done.stderr
    assert "remedy: do not sabotage" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (scene.folder / "run" / "lock.json").exists()
    assert not ray_left.processes()


@pytest.mark.ray
def test_an_inexact_blas_in_a_worker_ends_the_run(scene: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    # Python runs this before anything else; only in Ray's workers it spoils the probe of the matrix product.
    (broken / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('default_worker' in word for word in sys.orig_argv):\n"
        "    import swsdist.methods.dtw.backends.cpu as module\n"
        "    from swsdist.core.errors import UserError\n"
        "    def probe(chosen):\n"
        "        raise UserError('not exact', where='BLAS probe', remedy='another BLAS')\n"
        "    module.probe = probe\n"
    )
    scene.env["PYTHONPATH"] += os.pathsep + str(broken)
    done = scene.go("executor.kind=ray", "executor.workers=2", "search.backend=blas")
    assert done.returncode == 2, done.stderr
    assert "BLAS probe: not exact" in done.stderr


@pytest.mark.ray
def test_no_cluster_at_the_address_and_a_worker_that_fits_nowhere(scene: Any, cluster: Any) -> None:
    nowhere = ("executor.kind=ray", "executor.address=127.0.0.1:1")
    large = (*cluster.sets, "executor.memory_per_worker_gb=100000")
    for sets, code in ((nowhere, families.NO_CLUSTER), (large, families.NO_WORKER)):
        done = scene.go(*sets)
        assert (done.returncode, says(done.stderr, code)) == (2, True), done.stderr


@pytest.mark.ray
@pytest.mark.parametrize("workers", [1, 99])
def test_workers_that_cannot_start(
    scene: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str], workers: int
) -> None:
    """One node's disk is full: the others do the work. If all are, the run says why, and does not try for ever."""
    monkeypatch.delitem(sys.modules, "saboteur", raising=False)
    monkeypatch.syspath_prepend(Path(__file__).parent / "saboteur")
    saboteur = importlib.import_module("saboteur")
    monkeypatch.setattr(sys, "_is_driver", True, raising=False)
    monkeypatch.setenv("SABOTAGE", str(cluster.order))
    monkeypatch.setattr(driver, "Context", saboteur.Fussy)
    cluster.order.write_text(json.dumps({"how": "start", "workers": workers}))
    if workers > 1:
        with pytest.raises(OSError, match="No space left on device"):
            scene.run(*cluster.sets, "executor.workers=2", "index.shards=4")
        return
    result = scene.run(*cluster.sets, "executor.workers=2", "index.shards=4")
    assert cluster.order.with_suffix(".0").exists()
    assert result.outcome.failures == []
    assert scene.digest() == undisturbed


FOUR = "index.shards=4"
PCA = 'features={"name": "mfcc", "transforms": [{"name": "pca", "options": {"columns": 6}}]}'


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "pause", lambda attempt: 0.0)


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    return own_corpus


def opening(monkeypatch: pytest.MonkeyPatch, ending: str | tuple[str, ...], how: Callable[[int], None]) -> list[str]:
    """Let something happen when recordings are opened whose path ends so; it is told how often it did before."""
    real, opened = streams.open_path, []

    def open_path(path: str, *others: Any) -> Any:
        if path.endswith(ending):
            opened.append(path)
            how(len(opened) - 1)
        return real(path, *others)

    monkeypatch.setattr(streams, "open_path", open_path)
    return opened


def refusing(number: int) -> Callable[[int], None]:
    def refuse(before: int) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.until("search")
def test_a_disk_that_fails_once(scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]) -> None:
    def fails_once(before: int) -> None:
        if before == 0:
            refusing(errno.EIO)(before)

    opened = opening(monkeypatch, "d003.flac", fails_once)
    result = scene.run(FOUR)
    assert len(opened) > 1
    assert scene.rejected() == []
    assert result.outcome.failures == []
    assert scene.digest() == undisturbed


@pytest.mark.until("search")
def test_a_worker_that_does_not_see_a_file(
    scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]
) -> None:
    """Its node lacks the mount: document and query are there, so they must not be rejected for good."""
    with monkeypatch.context() as patch:
        opening(patch, ("d003.flac", "q001_1.wav"), refusing(errno.ENOENT))
        failed = scene.run(FOUR, selection=StepSelection(keep_going=True)).outcome.failures
    assert [(one.task.stage, one.reason) for one in failed] == [("index", "system"), ("queries", "system")]
    assert [(row["kind"], row["reason"]) for row in scene.rejected()] == [("task", "system")] * 2
    scene.run(FOUR)
    assert scene.rejected() == []
    assert scene.digest() == undisturbed


@pytest.mark.until("search")
def test_permissions_that_are_mended(scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]) -> None:
    real = recordings.is_readable
    with monkeypatch.context() as patch:
        patch.setattr(recordings, "is_readable", lambda path: not path.endswith("d003.flac") and real(path))
        scene.run(FOUR)
        (row,) = scene.rejected()
        assert (row["id"], row["reason"]) == ("d003", "unreadable-recording")
        assert "permission denied" in row["message"]
        assert scene.run(FOUR).outcome.tasks_done == 0
    scene.run(FOUR)
    assert scene.rejected() == []
    assert scene.digest()["features"] == undisturbed["features"]


@pytest.mark.until("search")
def test_a_server_that_does_not(scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]) -> None:
    def silent(before: int) -> None:
        raise codes.SERVER_UNREACHABLE(detail="")

    with monkeypatch.context() as patch:
        asked = opening(patch, "", silent)
        with raises(pipeline_codes.CONSECUTIVE_FAILURES, count=8):
            scene.run("index.shards=64", "executor.attempts=2")
    assert len(asked) == 16
    scene.run("index.shards=64")
    assert scene.digest() == undisturbed


def failing(monkeypatch: pytest.MonkeyPatch, stage: str, number: int) -> list[str]:
    """Let the system refuse to open three recordings as long as tasks of a stage are done."""
    real, failed, working = Worker.run, [], [""]

    def run(self: Any, task: Any) -> Any:
        working[0] = task.stage
        return real(self, task)

    def refuse(before: int) -> None:
        if working[0] == stage and opened[-1].endswith(("d001.flac", "d003.flac", "d005.flac")):
            failed.append(opened[-1])
            refusing(number)(before)

    monkeypatch.setattr(Worker, "run", run)
    opened = opening(monkeypatch, "", refuse)
    return failed


@pytest.mark.until("search")
@pytest.mark.slow
@pytest.mark.parametrize(("stage", "number"), [("fit-transforms", errno.EIO), ("query-statistics", errno.ENOENT)])
def test_nothing_is_fitted_without_what_cannot_be_read_now(
    scene: Any, monkeypatch: pytest.MonkeyPatch, stage: str, number: int
) -> None:
    """What would be fitted is pinned, and so would be other for good."""
    of_others = f"corpus.queries_from={{documents: {scene.corpus}/docs.csv}}"
    sets = (FOUR, PCA if stage == "fit-transforms" else of_others)
    scene.run(*sets, run="undisturbed")
    with monkeypatch.context() as patch:
        refused = failing(patch, stage, number)
        failed = scene.run(*sets)
        assert refused
        assert failed.outcome.failures
        assert "search" not in failed.outcome.chain_run.outcomes, (
            "it waits: what would be searched now would be done again"
        )
        assert all(failure.task.stage == stage for failure in failed.outcome.failures)
    scene.run(*sets)
    assert scene.digest() == scene.digest("undisturbed")
