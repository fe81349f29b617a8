"""A measure and a step of calibration that another package adds: every command that shows such shows them, as entries say."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command

from swsdist.registry.registries import CALIBRATION, MEASURES

CODE = '''
import numpy as np

from swsdist.calibrate.steps.interface import Options, Step, scores_of
from swsdist.registry.entries import MeasureEntry, Quantity
from swsdist.score.events import CLASSES
from swsdist.registry.entries import StepEntry


class Silence:
    """The part of the queries with references of which nothing was found."""

    parts = (CLASSES,)

    def values(self, parts, point):
        table = parts["classes"].table().to_pydict()
        queries = sum(n for n, true in zip(table["terms"], table["ntrue"]) if true)
        return {"silence": 1 / queries} if queries else {}


class Halved(Step):
    name = "halved"
    version = 1
    model = Options

    def apply(self, table, fitted, statistics, point):
        return scores_of(table) / 2


MEASURE = MeasureEntry("strange_measure:Silence", 1, (Quantity("silence", "Silence!", "lowest", decimals=2, unit="part"),))
STEP = StepEntry("strange_measure:Halved", 1, says="half as much")
'''

SWEEP = """\
config: config.yaml
run: run2
points:
  list: [{calibrate.steps: [q-norm]}, {calibrate.steps: [q-norm, halved]}]
measures: [mtwv, silence]
objective: silence
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "strange_measure.py").write_text(CODE)
    info = tmp_path / "strange_measure-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-measure\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[swsdist.measures]\nsilence = strange_measure:MEASURE\n[swsdist.calibration]\nhalved = strange_measure:STEP\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for registry in (MEASURES, CALIBRATION):
        registry.__dict__.pop("_added", None)
    yield
    sys.modules.pop("strange_measure", None)
    for registry in (MEASURES, CALIBRATION):
        registry.__dict__.pop("_added", None)


@pytest.mark.slow
def test_it_is_in_all_that_is_shown(installed: None, swsdist: Command, corpus: Path, tmp_path: Path) -> None:
    config = (corpus / "config.yaml").read_text().replace("corpus/", f"{corpus}/corpus/")
    (tmp_path / "config.yaml").write_text(config + "calibrate:\n  steps: [q-norm, logistic, halved]\n")
    wrong = swsdist("check", "config.yaml", "--set", "calibrate.steps=[halve]", cwd=tmp_path, code=2)
    assert "did you mean halved?" in wrong.err
    swsdist("run", "config.yaml", cwd=tmp_path)
    found = json.loads((tmp_path / "run/report.json").read_text())["measures"]["further"]
    assert found["silence"] == pytest.approx(1 / 3)
    assert "Silence!" in (tmp_path / "run/report.html").read_text()
    swsdist("report", "run", "--table", "table.md", cwd=tmp_path)
    assert "| Silence! | 0.33 |" in (tmp_path / "table.md").read_text()
    swsdist("compare", "run", "--paper", "paper.md", "--columns", "mtwv,silence", cwd=tmp_path)
    assert "| system | MTWV ↑ | 95% interval | Silence! ↓ |" in (tmp_path / "paper.md").read_text()
    swsdist(
        *("score", "-s", "run/exports/detections.csv", "--references", f"{corpus}/corpus/refs.csv"),
        *("--seconds", "100", "--all-measures", "--measures", "scored.md"),
        cwd=tmp_path,
    )
    assert "| Silence! | 0.33 |" in (tmp_path / "scored.md").read_text()
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    swsdist("sweep", "sweep.yaml", cwd=tmp_path)
    with (tmp_path / "run2/sweeps/sweep/points.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["calibrate.steps"], float(row["silence"])) for row in rows] == [
        ("[q-norm]", pytest.approx(1 / 3)),
        ("[q-norm, halved]", pytest.approx(1 / 3)),
    ]
