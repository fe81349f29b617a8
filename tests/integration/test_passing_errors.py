"""What the file system or a server does for a while: tried again, or left for the next run; never taken for broken data."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from swsdist.audio import streams
from swsdist.core.codes import pipeline as pipeline_codes
from swsdist.core.codes import storage as codes
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.execution import executor
from swsdist.stages.inputs import corpus_documents as recordings
from tests.support.coded import raises

pytestmark = pytest.mark.until("search")

SHARDS = "index.shards=4"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses."""
    monkeypatch.setattr(executor, "pause", lambda attempt: 0.0)


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def opening(monkeypatch: pytest.MonkeyPatch, doc_id: str, how: Callable[[int], None]) -> list[str]:
    """Let something happen when a recording is opened; it is told how often it was before."""
    real, opened = streams.open_path, []

    def open_path(path: str, *others: Any) -> Any:
        if path.endswith(f"{doc_id}.flac"):
            opened.append(path)
            how(len(opened) - 1)
        return real(path, *others)

    monkeypatch.setattr(streams, "open_path", open_path)
    return opened


def test_a_disk_that_fails_once(scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]) -> None:
    def fails_once(before: int) -> None:
        if before == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    opened = opening(monkeypatch, "d003", fails_once)
    result = scene.run(SHARDS)
    assert len(opened) > 1
    assert scene.rejected() == []
    assert result.outcome.failures == []
    assert scene.digest() == undisturbed


def test_a_worker_that_does_not_see_the_file(
    scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]
) -> None:
    """Its node lacks the mount: the recording is there, so it must not be rejected for good."""

    def gone(before: int) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    with monkeypatch.context() as patch:
        opening(patch, "d003", gone)
        failed = scene.run(SHARDS, selection=StepSelection(keep_going=True))
    (failure,) = failed.outcome.failures
    assert failure.reason == "system"
    assert [(row["kind"], row["reason"]) for row in scene.rejected()] == [("task", "system")]
    scene.run(SHARDS)
    assert scene.rejected() == []
    assert scene.digest() == undisturbed


def test_a_query_is_not_rejected_either(
    scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]
) -> None:
    real = streams.open_path

    def open_path(path: str, *others: Any) -> Any:
        if "/queries/" in path:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path, *others)

    with monkeypatch.context() as patch:
        patch.setattr(streams, "open_path", open_path)
        assert len(scene.run().outcome.failures) == 1
    scene.run()
    assert scene.digest() == undisturbed


def test_permissions_that_are_mended(scene: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str]) -> None:
    real = recordings.is_readable
    with monkeypatch.context() as patch:
        patch.setattr(recordings, "is_readable", lambda path: not path.endswith("d003.flac") and real(path))
        scene.run(SHARDS)
        (row,) = scene.rejected()
        assert (row["id"], row["reason"]) == ("d003", "unreadable")
        assert "permission denied" in row["message"]
        assert scene.run(SHARDS).outcome.tasks_done == 0
    scene.run(SHARDS)
    assert scene.rejected() == []
    assert scene.digest()["features"] == undisturbed["features"]


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


def failing(monkeypatch: pytest.MonkeyPatch, stages: set[str], names: tuple[str, ...], number: int) -> list[str]:
    """Let the system refuse to open some recordings as long as tasks of some stages are done."""
    from swsdist.pipeline.execution.executor import Worker

    done, real, opened = Worker.run, streams.open_path, []
    working: list[str] = []

    def run(self: Any, task: Any) -> Any:
        working[:] = [task.stage]
        try:
            return done(self, task)
        finally:
            working.clear()

    def open_path(path: str, *others: Any) -> Any:
        if stages.issuperset(working) and working and any(path.endswith(f"{name}.flac") for name in names):
            opened.append(path)
            raise OSError(number, os.strerror(number), path)
        return real(path, *others)

    monkeypatch.setattr(Worker, "run", run)
    monkeypatch.setattr(streams, "open_path", open_path)
    return opened


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "number"), [("fit-transforms", errno.EIO), ("query-statistics", errno.ENOENT)])
def test_nothing_is_fitted_without_what_cannot_be_read_now(
    scene: Any, monkeypatch: pytest.MonkeyPatch, stage: str, number: int
) -> None:
    """What would be fitted is pinned, and so would be other for good."""
    pca = 'features={"name": "mfcc", "transforms": [{"name": "pca", "options": {"columns": 6}}]}'
    of_others = f"corpus.queries_from={{documents: {scene.corpus}/docs.csv}}"
    sets = (SHARDS, pca if stage == "fit-transforms" else of_others)
    scene.run(*sets, run="undisturbed")
    with monkeypatch.context() as patch:
        opened = failing(patch, {stage}, ("d001", "d003", "d005"), number)
        failed = scene.run(*sets)
        assert opened
        assert failed.outcome.failures
        assert all(failure.task.stage == stage for failure in failed.outcome.failures)
    scene.run(*sets)
    assert scene.digest() == scene.digest("undisturbed")


@pytest.mark.slow
def test_a_model_is_fitted_without_what_may_not_be_read(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights do not pass: the document is rejected, and the model is that of the corpus without it; until they are mended."""
    sets = ('features={"name": "mfcc", "transforms": [{"name": "pca", "options": {"columns": 6}}]}', SHARDS)
    with monkeypatch.context() as patch:
        opened = failing(patch, {"fit-transforms", "index"}, ("d003",), errno.EACCES)
        scene.run(*sets)
    assert len(opened) == 2
    (row,) = scene.rejected()
    assert (row["id"], row["reason"], row["message"]) == (
        "d003",
        "unreadable-recording",
        "the file cannot be read: permission denied",
    )
    found = scene.digest()["features"]
    scene.run(*sets)
    assert scene.rejected() == []
    scene.select(1, 2, 4, 5, 6, 7, 8)
    scene.run(*sets, run="without")
    assert scene.digest("without")["features"] == found
