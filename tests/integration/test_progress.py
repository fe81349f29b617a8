"""Progress within a task: a long recording moves the bar, and nothing else changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.accounts.journal import Journal, last_part
from swsdist.cli.progress import _Pace, events_to, with_point_count
from swsdist.io.filesystem import Folder
from swsdist.pipeline.execution import executor
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import _process
from swsdist.pipeline.task import Failure, Task
from tests.support.journals import read_journals


@dataclass
class Heard(Progress):
    """All that a driver tells."""

    stages: dict[str, tuple[float, float]] = field(default_factory=dict)
    parts: dict[str, list[float]] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def step_begins(self, step: Any, todo: int, skipped: int, work: float, hours: float) -> None:
        self.stages[step.name] = work, hours

    def part(self, step: Any, task: Any, part: float) -> None:
        assert step.name not in self.ended
        self.parts.setdefault(step.name, []).append(part)

    def step_ends(self, step: Any, wall: float) -> None:
        self.ended.append(step.name)


@pytest.fixture
def talk(tmp_path: Path, small_corpus: Path) -> Path:
    """A folder with one recording of twenty minutes."""
    parts = [soundfile.read(path, dtype="float32") for path in sorted((small_corpus / "audio").glob("*.flac"))]
    once = np.concatenate([samples for samples, _ in parts])
    rate = parts[0][1]
    (tmp_path / "talks").mkdir()
    soundfile.write(tmp_path / "talks" / "talk.wav", np.resize(once, 1200 * rate), rate)
    return tmp_path / "talks"


def sets(talk: Path) -> tuple[str, ...]:
    """A config on it, which nothing is scored in."""
    return (
        *(f"corpus.documents={talk}", "corpus.references=null", "calibrate.fit=none"),
        *("report.exports=[csv]", "report.clips=0"),
    )


@pytest.mark.slow
def test_a_long_recording_moves_the_bar(scene, talk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process, as often as one likes; the same tables come out."""
    scene.run(*sets(talk), run="quiet")
    monkeypatch.setattr(executor, "REPORT_INTERVAL", 0.0)
    heard = Heard()
    scene.run(*sets(talk), progress=heard)
    assert scene.digest() == scene.digest("quiet")
    for stage in ("index", "search"):
        parts = heard.parts[stage]
        assert len(parts) >= 20, stage
        assert parts == sorted(parts)
        assert parts[0] < 0.1
        assert 0.99 < parts[-1] <= 1.0
    assert heard.stages["index"][0] == pytest.approx(1200, abs=1)
    assert heard.stages["index"][1] == heard.stages["search"][1] == pytest.approx(1200 / 3600, rel=1e-3)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.until("index")
def test_an_hour_counts_once_however_many_tracks_go_through_it(scene, shards: int) -> None:
    """Also where a part of the tracks is there; work is that of all tracks."""
    one = {"name": "mfcc"}
    others = [{**one, "track": f"more{k}", "options": {"n_mfcc": 7 + k}} for k in range(2)]
    told = []
    for features in ([one, *others[:1]], [one, *others]):
        heard = Heard()
        scene.run(f"features={json.dumps(features)}", f"index.shards={shards}", progress=heard)
        told.append(heard.stages["index"])
    hours = told[0][1]
    assert hours == pytest.approx(told[0][0] / 2 / 3600)
    assert told[1] == pytest.approx((told[0][0] / 2, hours))
    heard = Heard()
    scene.run(f"features={json.dumps([one, *others])}", run="anew", progress=heard)
    assert heard.stages["index"] == pytest.approx((3 * told[1][0], hours))


@pytest.mark.ray
def test_workers_tell_it_through_their_journals(scene, cluster, talk: Path) -> None:
    samples, rate = soundfile.read(talk / "talk.wav", dtype="float32")
    soundfile.write(talk / "talk.wav", np.tile(samples, 4), rate)
    heard = Heard()
    scene.run(*sets(talk), *cluster.sets, progress=heard)
    assert any(0 < part < 1 for part in heard.parts["index"])
    assert heard.parts["index"] == sorted(heard.parts["index"])


def test_a_journal_says_how_far_its_task_is(tmp_path: Path) -> None:
    """Its last sample does; one of a task that has ended says nothing."""
    folder = Folder(str(tmp_path))
    journal = Journal(folder, "worker")
    journal.write("begin", stage="index", phase="index", fingerprint="abc")
    assert last_part(folder, journal.name) is None
    journal.part = "abc", 0.25
    with journal.phase("index"):
        pass
    assert last_part(folder, journal.name) == ("abc", 0.25)
    (lines,) = read_journals(folder)
    assert _process(lines).part == 0.25
    with (tmp_path / journal.name).open("a") as file:
        file.write('{"event": "sample", "part": 0.5, "finger')  # it writes while it is read
    assert last_part(folder, journal.name) == ("abc", 0.25)
    with (tmp_path / journal.name).open("a") as file:
        file.write('print": "abc"}\n')
    assert last_part(folder, journal.name) == ("abc", 0.5)
    journal.part = None
    journal.close()
    assert last_part(folder, journal.name) is None
    assert last_part(folder, "accounts/gone.jsonl") is None
    assert last_part(Folder("s3://bucket/run"), journal.name) is None


def test_the_bar_counts_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of tasks that run and of tasks that have ended, whatever their order; another attempt begins anew."""
    clock = 1000.0
    monkeypatch.setattr("swsdist.cli.progress.time", SimpleNamespace(monotonic=lambda: clock))
    step: Any = SimpleNamespace(stage=SimpleNamespace(unit="cells"))
    small, large = (Task("search", name, "", work, {}) for name, work in (("a", 30.0), ("b", 70.0)))
    pace = _Pace(step, 2, 0, 100.0, 10.0)
    pace.part(small, 0.02)
    assert pace.text() == "0.06 of 10 h of audio, 0/2 tasks", "what so little says of the rest is mostly wrong"
    pace.part(small, 0.0)
    pace.part(large, 0.5)
    assert "ETA" not in pace.text(), "so short a time says nothing either"
    clock += 70.0
    assert pace.text().endswith("0.0491 h/s, ETA 2 min 12 s"), "since the first news"
    assert pace.done == 35
    assert "3.5 of 10 h of audio, 0/2 tasks" in pace.text()
    pace.part(large, 0.1)
    pace.part(small, 0.9)
    assert pace.done == pytest.approx(34)
    pace.add(Failure(small, "data", "broken", 1))
    assert pace.done == pytest.approx(37)
    assert "1/2 tasks, 1 FAILED" in pace.text()
    step.stage.unit = "detections"
    counted = _Pace(step, 2, 1, 100.0, 10.0)
    assert counted.text() == "0/2 tasks, 1 done before"


def test_a_note_reaches_the_display_through_those_who_listen_too(tmp_path: Path) -> None:
    heard = Heard()
    with events_to(str(tmp_path / "events.jsonl"), with_point_count(heard)) as outer:
        outer.note("a lock is watched")
    assert heard.notes == ["a lock is watched"]
