"""The golden runner: every case of two groups is equal, and it can tell when one is not."""

import json
import lzma
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import families
from swsdist.testing import checkout
from tests.support.coded import says
from tests.support.golden import Case, cases_below, run_case
from tests.support.golden.__main__ import main

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "golden"

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no golden cases beside the checkout ({SHARED})")


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A copy of a small case that may be changed."""
    return copied("scoring_gtts/g1_tiny", tmp_path)


def copied(name: str, folder: Path) -> Path:
    # Copied by content: the originals cannot be written.
    target = folder / name
    target.mkdir(parents=True)
    for file in (SHARED / name).iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def change(case: Path, *path: str, value: Any) -> None:
    """Of what is expected."""
    content = part = json.loads((case / "expected.json").read_text())
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    (case / "expected.json").write_text(json.dumps(content))


def only(folder: Path) -> Case:
    (found,) = cases_below(folder)
    return run_case(found)


@pytest.mark.parametrize("group", ["cnxe", "scoring_gtts", pytest.param("superb", marks=pytest.mark.slow)])
def test_every_case_is_equal(group: str) -> None:
    cases = [run_case(found) for found in cases_below(SHARED / group)]
    assert {case.name for case in cases} == {folder.name for folder in (SHARED / group).iterdir() if folder.is_dir()}
    assert len(cases) >= 2
    for case in cases:
        assert case.differences == []
        assert case.compared > 10
        assert case.largest
        if group == "scoring_gtts":  # met closely
            assert max(case.largest[name] for name in ("act_twv", "act_cnxe", "min_cnxe", "per-query min_cnxe")) < 1e-12
            assert max(case.largest[name] for name in ("max_twv", "per-query max_twv")) < 1e-11


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("min_cnxe",), 0.3476273),
        (("act_twv",), -3.3715053),
        (("act_cnxe",), float("nan")),
        (("threshold",), 1.6),
        (("per_query", "max_twv"), 0.66667),
        (("printed",), ["actTWV: -3.3715053  maxTWV: 0.6666667  Threshold: 1.64595"]),
    ],
)
def test_a_changed_number_is_found(case: Path, key: tuple[str, ...], value: Any) -> None:
    assert only(case).differences == []
    change(case, *key, value=value)
    assert len(only(case).differences) == 1
    assert main([str(case), str(case.parent)]) == 1  # the same case twice is one


def test_a_changed_input_is_found(case: Path, tmp_path: Path) -> None:
    text = (case / "det.csv").read_text()
    (case / "det.csv").write_text(text.replace("1.64594,0.33333,0.0,", "1.64594,0.33335,0.0,"))
    assert [difference.what for difference in only(case).differences] == ["pmiss at 1.64594"]
    other = copied("cnxe/c1_small_complete", tmp_path)
    head, first, *lines = (other / "trials.csv").read_text().splitlines()
    score, target = first.split(",")
    (other / "trials.csv").write_text("\n".join([head, f"{float(score) + 1e-6},{target}", *lines]))
    assert "cnxe" in {difference.what for difference in only(other).differences}


def test_what_is_packed_is_unpacked(case: Path) -> None:
    for file in list(case.iterdir()):
        (case / f"{file.name}.xz").write_bytes(lzma.compress(file.read_bytes()))
        file.unlink()
    found = only(case.parent.parent)
    assert (found.differences, found.compared) == ([], 154)


def test_a_broken_case_is_off_and_the_others_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = copied("cnxe/c1_small_complete", tmp_path)
    for name in ("broken", "cut", "empty"):
        shutil.copytree(good, good.parent / name)
    (good.parent / "broken" / "params.json").write_text("{")
    (good.parent / "cut" / "expected.json").unlink()
    (good.parent / "empty" / "expected.json").write_text("{}")
    assert main(["-v", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert all(part in said for part in ("4 cases, 1 equal", "cut: OFF", "c1_small_complete: equal, 11 values"))


def test_no_folder_and_no_case(tmp_path: Path) -> None:
    assert main([str(tmp_path / "none")]) == main([str(SHARED / "cnxe"), str(tmp_path)]) == 2


@pytest.mark.parametrize("name", ["golden", "gpu"])
def test_an_installed_package_has_no_cases(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "swsdist" / "testing" / "checkout.py"))
    with pytest.raises(SystemExit) as ended:
        checkout.run(name)
    assert ended.value.code == 2
    assert says(capsys.readouterr().err, families.UNSUPPORTED)


def test_it_runs_by_its_name_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied("cnxe/c4_prior_half", tmp_path)
    monkeypatch.setattr(sys, "argv", ["golden", str(tmp_path)])
    monkeypatch.delitem(sys.modules, "tests.support.golden.__main__")
    with pytest.raises(SystemExit) as ended:
        checkout.run("golden")
    assert ended.value.code == 0
