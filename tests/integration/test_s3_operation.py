"""A run on S3 is looked at, followed, cancelled and cleaned up by its url alone."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from commands import expecting, in_this_process

from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.operation import progress
from swsdist.pipeline.operation.monitor import Follower
from tests.support.coded import says

swsdist = expecting(in_this_process)


@pytest.fixture
def environment(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells commands of the server."""
    for name, value in {"ENDPOINT_URL": "endpoint_url", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", s3.storage[value])


@pytest.fixture
def on_s3(scene: Any, s3: Any, environment: None) -> Any:
    """The scene with corpus and runs on S3."""
    scene.move_to_s3(s3, s3.storage)
    return scene


@pytest.mark.slow
def test_it_is_followed_and_cancelled(on_s3: Any, s3: Any) -> None:
    run = on_s3.base["run"]
    folder = Folder(run, s3.storage)
    on_s3.sabotage(hold=2)  # recordings, which may be a task's
    process = on_s3.start("features.name=saboteur", "index.shards=7", run=run)
    try:
        on_s3.wait(_said(folder), process)
        told = json.loads(swsdist("status", run, "--json").out)
        assert (told["state"], told["stages"][0]["stage"], told["stages"][0]["tasks"]) == ("running", "index", 7)
        command = [sys.executable, "-m", "swsdist.cli.main", "status", run, "--follow", "--every", "0.3"]
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith("running")
        assert swsdist("cancel", run).out == "cancelled\n"
        _, err = process.communicate(timeout=240)
        assert process.returncode == 143, err
        assert says(err, codes.RUN_CANCELLED)
        followed = follower.communicate(timeout=240)[0]
        assert followed.endswith("the run ended: cancelled\ncancelled\n"), followed
    finally:
        process.kill()
        process.communicate()
    assert swsdist("status", run).out.startswith("cancelled")
    assert not folder.exists("lock.json")
    assert not folder.exists("cancel.json")
    assert says(swsdist("cancel", run, code=2).err, families.NOT_RUNNING)
    events = [json.loads(line) for line in swsdist("status", run, "--follow", "--json").out.splitlines()]
    assert events == list(Follower(folder).new())
    assert [event["state"] for event in events if event["event"] == "run-ended"] == ["cancelled"]
    assert "run incomplete: nothing removed" in swsdist("clean", run, "--dry-run").out


@pytest.mark.slow
def test_it_is_cleaned_as_on_a_disk(finished: Any, s3: Any, environment: None, undisturbed: dict[str, str]) -> None:
    finished.run("reduce.buckets=3")
    here = finished.folder / "run"
    folder = Folder(f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}/run", s3.storage)
    for path in here.rglob("*"):
        if path.is_file():
            folder.write_bytes(path.relative_to(here).as_posix(), path.read_bytes())
    before = set(folder.listing())
    shown = swsdist("clean", folder.root, "--dry-run").out
    assert set(folder.listing()) == before
    assert "/tables/detections/" in shown
    assert shown.replace(folder.root, "RUN") == swsdist("clean", str(here), "--dry-run").out.replace(str(here), "RUN")
    for run in (folder.root, str(here)):
        swsdist("clean", run)
    left = set(folder.listing())
    assert left == set(Folder(str(here)).listing()) < before
    assert swsdist("status", folder.root).out.startswith("done")
    assert finished.digest(folder.root, s3.storage) == undisturbed


def _said(run: Folder) -> Callable[[], bool]:
    """Whether a driver has said that a task is done."""

    def said() -> bool:
        with suppress(FileNotFoundError):
            found = progress.read(run)
            return found is not None and any(one.done for one in found.stages)
        return False

    return said
