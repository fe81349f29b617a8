"""Term discovery: classes, phones and words, with the numbers of two programs, and of the formulas on exact integers.

Counts are compared exactly, ratios at 1e-12 (tde1: 1e-9), undefined with undefined. Where a program died, so does the case.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swsdist.discovery.evaluate import Files, score_files
from swsdist.io.notices import Notices
from tests.support.golden.runner import Case, needed, place, values

NAME = "term discovery"

TOLERANCES = {"seed": 1e-12, "tdev2": 1e-12, "tde1": 1e-9}


def handles(folder: Path) -> bool:
    """Has it classes, phones and words?"""
    return all(place(folder, name) for name in ("disc.class", "gold.phn", "gold.wrd", "expected.json"))


def scores(folder: Path, mode: str) -> dict[str, Any]:
    """Ours of a case, by the keys of its answers."""
    files = Files(
        needed(folder, "disc.class"),
        needed(folder, "gold.phn"),
        needed(folder, "gold.wrd"),
        needed(folder, "talkers.txt"),
        {name: needed(folder, f"folds.{name}") for name in ("cross", "within")},
        needed(folder, "gold.split"),
        needed(folder, "gold.classes") if mode == "tde1" else None,
    )
    result: dict[str, Any] = score_files(files, mode, Notices())
    return {**result, **{f"folds_{name}": folds for name, folds in result.get("folds", {}).items()}}


def run(folder: Path) -> Case:
    """Compare all values of all modes."""
    case = Case.of(folder)
    expected = values(folder, "expected.json")
    for mode, tolerance in TOLERANCES.items():
        _compare(case, mode, mode, scores(folder, mode), expected[mode], tolerance)
    return case


def _compare(case: Case, mode: str, what: str, ours: object, theirs: object, tolerance: float) -> None:
    if isinstance(theirs, Mapping):
        for key, value in theirs.items():
            if key == "error":  # the exceptions' texts are the programs' own
                case.equal(f"{what} dies", isinstance(ours, Mapping) and "error" in ours, True)
            elif isinstance(ours, Mapping) and key in ours:
                _compare(case, mode, f"{what} {key}", ours[key], value, tolerance)
            else:
                case.equal(f"{what} {key}", "nothing", value)
    elif isinstance(theirs, list):
        case.equal(f"{what}: how many", isinstance(ours, list) and len(ours), len(theirs))
        for k, (our, their) in enumerate(zip(ours if isinstance(ours, list) else [], theirs, strict=False)):
            _compare(case, mode, f"{what} {k}", our, their, tolerance)
    elif isinstance(theirs, float) and isinstance(ours, int | float):
        case.close(mode, float(ours), theirs, tolerance, what=what)
    else:
        case.equal(what, ours, theirs)
