"""`swsdist sweep`, as a user types it."""

import json
from pathlib import Path

import pytest
from commands import Command, untold
from lists_of_others import rows

GRID = """\
config: config.yaml
run: swept
points:
  grid:
    calibrate.steps: [[q-norm, logistic, kst], [q-norm, logistic, sto]]
    calibrate.alpha: [0.5, 1]
measures: [atwv, atwv_pmiss, atwv_pfa]
"""


def alphas(folder: Path) -> list[float]:
    return [float(row["calibrate.alpha"]) for row in rows(folder / "points.csv")]


@pytest.fixture
def place(tmp_path: Path, corpus: Path) -> Path:
    (tmp_path / "config.yaml").write_text((corpus / "config.yaml").read_text().replace("corpus/", f"{corpus}/corpus/"))
    (tmp_path / "sweep.yaml").write_text(GRID)
    return tmp_path


def test_a_sweep(place: Path, swsdist: Command) -> None:
    """What all points share may be set."""
    shared = ("--set", "reduce.buckets=2", "--set", "calibrate.folds=2")
    ended = swsdist("sweep", "sweep.yaml", *shared, cwd=place)
    assert "points: 4" in ended.out
    assert "points done: 4" in ended.err
    folder = place / "swept/sweeps/sweep"
    assert (folder / "sweep.html").is_file()
    assert alphas(folder) == [0.5, 1.0, 0.5, 1.0]
    (plan, *_) = json.loads((place / "swept/plan.json").read_text())["plans"].values()
    assert plan["config"]["calibrate"]["folds"] == 2
    again = swsdist("sweep", "sweep.yaml", "--json", *shared, cwd=place)
    assert "points done" not in again.err
    values = json.loads(again.out)
    assert (len(values["best"]), values["failed"]) == (4, {})
    assert swsdist("status", "swept", cwd=place).out.startswith("done")
    # Where all fail, the first is told.
    (place / "wrong.json").write_text('{"schema": "something else"}')
    (place / "sweep.yaml").write_text(GRID + "set: {calibrate.fit: wrong.json}\n")
    told = swsdist("sweep", "sweep.yaml", "--set", "reduce.buckets=2", cwd=place, code=4).err
    assert "4 of 4 points failed; the first, point 1: " in told
    assert "[tasks-failed]" in told
    assert told.count("\n  remedy:") == 1


def test_the_run_folder_of_a_config_in_the_sweep_is_relative_to_here(place: Path, swsdist: Command) -> None:
    (place / "below").mkdir()
    lines = [line for line in (place / "config.yaml").read_text().splitlines() if not line.startswith("run:")]
    base = "config:\n" + "".join(f"  {line}\n" for line in lines)
    (place / "below/sweep.yaml").write_text(f"{base}run: elsewhere\npoints: {{list: [{{}}]}}\n")
    swsdist("sweep", "below/sweep.yaml", "--run", "mine", cwd=place)
    assert (place / "mine/sweeps/sweep/points.csv").is_file()
    assert not (place / "below/mine").exists()


def test_mistakes(place: Path, swsdist: Command) -> None:
    def grid(old: str, new: str) -> str:
        assert old in GRID
        return GRID.replace(old, new)

    both_alphas, measures = "calibrate.alpha: [0.5, 1]", "[atwv, atwv_pmiss, atwv_pfa]"
    lists = "lists: {tasks: {a: {systems: {x: y}}}}\npoints: {list: [{}]}\n"
    both = (
        "9: calibrate.alpha is set for all points .. every point sets calibrate.alpha itself, the first in sweep.yaml"
    )
    for text, options, told in (
        (
            grid("alpha: [", "alpah: ["),
            "",
            "sweep.yaml:6, point 1 (calibrate.alpah: 0.5): calibrate.alpah: unknown key",
        ),
        (grid("[0.5, 1]", "[0.5, -1]"), "", "sweep.yaml:6, point 2 (calibrate.alpha: -1): calibrate.alpha: -1"),
        (GRID + "set: {calibrate.fodls: 3}\n", "", "sweep.yaml:8, set.calibrate.fodls: calibrate.fodls: unknown key"),
        (grid("config.yaml", "{systme: a}"), "", "sweep.yaml:1: systme: unknown key"),
        (grid("kst]", "kts]"), "", "sweep.yaml:5, point 1 (calibrate.steps: [q-norm, logistic, kts])"),
        (grid(both_alphas, "calibrate.options.kst.alpha: [1, x]"), "", "sweep.yaml:6, point 2 .. step kst refuses its"),
        (GRID, "--set calibrate.alpha=9", both),
        (grid(measures, "all") + "oracle_kst: true\n", "", "sweep.yaml:8, oracle_kst: "),
        (grid(measures, "all") + "report: kst\n", "", "sweep.yaml:8, report: report: kst needs points"),
        (GRID + "report_alpha: 1.5\n", "", "[unused-option]"),
        (lists, "--set a=b", "sweep.yaml:1, lists: a sweep over lists has no config"),
        (lists, "", "[missing-input]"),
    ):
        (place / "sweep.yaml").write_text(text)
        assert untold(swsdist, {f"sweep sweep.yaml {options}": told}, place) == {}
    assert not (place / "swept").exists()
