"""The golden runner: every case of two groups is equal, and it can tell when one is not."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import families
from swsdist.core.errors import UserError
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


def change(case: Path, name: str, *path: str, value: Any) -> None:
    content = json.loads((case / name).read_text())
    part = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    (case / name).write_text(json.dumps(content))


def only(folder: Path) -> Case:
    (found,) = cases_below(folder)
    return run_case(found)


@pytest.mark.parametrize("group", ["cnxe", "scoring_gtts"])
def test_every_case_is_equal(group: str) -> None:
    cases = [run_case(found) for found in cases_below(SHARED / group)]
    assert {case.name for case in cases} == {folder.name for folder in (SHARED / group).iterdir()}
    assert len(cases) >= 6
    for case in cases:
        assert case.differences == []
        assert case.compared > 10
        assert case.largest


def test_the_quesst_programs_numbers_are_met_closely() -> None:
    for found in cases_below(SHARED / "scoring_gtts"):
        largest = run_case(found).largest
        assert max(largest[name] for name in ("act_twv", "act_cnxe", "min_cnxe", "per-query min_cnxe")) < 1e-12
        assert max(largest[name] for name in ("max_twv", "per-query max_twv")) < 1e-11


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("min_cnxe",), 0.3476273),
        (("act_twv",), -3.3715053),
        (("threshold",), 1.6),
        (("per_query", "max_twv"), 0.66667),
        (("printed",), ["actTWV: -3.3715053  maxTWV: 0.6666667  Threshold: 1.64595"]),
    ],
)
def test_a_changed_number_is_found(case: Path, key: tuple[str, ...], value: Any) -> None:
    assert only(case).differences == []
    change(case, "expected.json", *key, value=value)
    found = only(case)
    assert len(found.differences) == 1
    assert main([str(case)]) == 1


def test_a_changed_point_of_the_curve_is_found(case: Path) -> None:
    text = (case / "det.csv").read_text()
    (case / "det.csv").write_text(text.replace("1.64594,0.33333,0.0,", "1.64594,0.33335,0.0,"))
    assert [difference.what for difference in only(case).differences] == ["pmiss at 1.64594"]


def test_a_changed_score_is_found(tmp_path: Path) -> None:
    case = copied("cnxe/c1_small_complete", tmp_path)
    lines = (case / "trials.csv").read_text().splitlines()
    lines[1] = f"{float(lines[1].split(',')[0]) + 1e-6},{lines[1].split(',')[1]}"
    (case / "trials.csv").write_text("\n".join(lines))
    assert "cnxe" in {difference.what for difference in only(case).differences}


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
    assert "4 cases, 1 equal" in said
    assert "cut: OFF" in said
    assert "the case has no expected.json" in said
    assert "c1_small_complete: equal, 11 values compared" in said


def test_json(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(case, "expected.json", "act_cnxe", value=float("nan"))
    assert main(["--json", str(case), str(case.parent)]) == 1  # the same case twice is one
    (group,) = json.loads(capsys.readouterr().out).values()
    assert (group["cases"], group["equal"]) == (1, 0)
    assert group["each"][0]["differences"][0]["theirs"] == "nan"
    assert group["largest"]["act_cnxe"] == "nan"


def test_no_folder_and_no_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert main([str(SHARED / "cnxe"), str(tmp_path)]) == 2
    assert "there is no case in it" in capsys.readouterr().err
    with pytest.raises(UserError):
        list(cases_below(tmp_path))


def test_as_a_command(tmp_path: Path) -> None:
    copied("cnxe/c4_prior_half", tmp_path)
    command = [sys.executable, "-m", "swsdist.testing.golden", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cnxe (cross entropy): 1 cases, 1 equal; largest difference:")
    assert done.stdout.endswith("off: none\n")


@pytest.mark.parametrize("name", ["golden", "gpu"])
def test_an_installed_package_has_no_cases(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "swsdist" / "testing" / "checkout.py"))
    with pytest.raises(SystemExit) as ended:
        checkout.run(name)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert says(err, families.UNSUPPORTED)
    assert f"swsdist.testing.{name} runs from a checkout" in err
