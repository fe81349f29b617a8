"""A task that failed keeps its traceback in a file that the message names, until it is done; and whose line it was."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.core.errors import ConfigError, StoreError
from swsdist.features import extractors
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.estimate import diagnose
from swsdist.pipeline.lock import locked
from swsdist.pipeline.status import status
from swsdist.registry.registries import FEATURES
from swsdist.registry.registry import Entry
from tests.support.coded import raises

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


def test_a_failed_task_keeps_its_traceback(scene: Any, told: Path) -> None:
    told.write_text(str(soundfile.info(scene.corpus / "audio" / "d005.flac").frames))
    result = scene.run("features.name=ears", "index.shards=8", selection=StepSelection(keep_going=True))
    (failure,) = result.outcome.failures
    assert failure.message.startswith("ValueError: matmul")
    assert f"{told.parent}/strangers_ears.py, line 12, in extract" in failure.message
    kept = scene.folder / "run" / failure.file
    assert kept.parent.name == "failed"
    text = kept.read_text()
    assert "Traceback (most recent call last)" in text
    assert "# line 12" in text
    (row,) = scene.rejected()
    assert failure.file in row["remedy"]
    told.write_text("")
    assert scene.run("features.name=ears", "index.shards=8").outcome.failures == []
    assert not kept.exists()


def test_where_all_fail_the_first_is_told(scene: Any, told: Path) -> None:
    told.write_text("all")
    with pytest.raises(StoreError) as found:
        scene.run("features.name=ears")
    assert "strangers_ears.py, line 12" in str(found.value)
    (kept,) = (scene.folder / "run" / "failed").iterdir()
    assert str(kept) in str(found.value)
    scene.run()  # another config, of which no task failed
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


@pytest.mark.ray
def test_on_ray(scene: Any, cluster: Any) -> None:
    frames = int(soundfile.info(scene.corpus / "audio" / "d005.flac").frames)
    scene.sabotage(how="bug", samples=[frames])
    done = scene.go(*cluster.sets, "features.name=saboteur", "index.shards=8")
    assert done.returncode == 4, done.stderr
    assert "saboteur.py, line " in done.stderr
    (kept,) = (scene.folder / "run" / "failed").iterdir()
    assert str(kept) in done.stderr
    assert "saboteur.py" in kept.read_text()
    assert "\x1b" not in kept.read_text()


def test_entry_points_that_do_not_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torn.py").write_text("def f(:\n")
    info = tmp_path / "torn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torn\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[swsdist.features]\ntorn = torn:Torn\n")
    monkeypatch.syspath_prepend(tmp_path)
    FEATURES.__dict__.pop("_added", None)
    try:
        with pytest.raises(ConfigError, match=r"feature extractor torn cannot be loaded from torn:Torn \(SyntaxError"):
            _ = FEATURES["torn"]
        bad = [one for one in diagnose(None, {}, False) if not one.good]
        assert [one.name for one in bad] == ["extension"]
        assert "swsdist.features: torn" in bad[0].text
        assert "SyntaxError" in bad[0].text
    finally:
        FEATURES.__dict__.pop("_added", None)


def test_status_shows_nobody_of_an_earlier_run(finished: Any) -> None:
    """Its journal is seconds old; who holds the folder now has not begun to write."""
    run = Folder(str(finished.folder / "run"))
    with locked(run):
        found = status(run)
    assert found.state == "running"
    assert found.processes == ()
