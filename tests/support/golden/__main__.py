"""`python -m swsdist.testing.golden DIR...`: a line a group, and exit code 1 if any case is off (2: a folder without cases)."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from swsdist.core.errors import UserError
from tests.support.golden.runner import Case, cases_below, run_case
from tests.support.recipes import find_recipes

_SHOWN = 3  # differences on a group's line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases below folders and print what came of them.

    Args:
        arguments: of the command line; those of the process where they are not given.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m swsdist.testing.golden", description=__doc__)
    parser.add_argument(
        "folders", metavar="DIR", nargs="+", type=Path, help="a case, or a folder with cases at any depth"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="a line a case")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    find_recipes()  # some cases are of recipes
    try:
        found = [case for folder in options.folders for case in cases_below(folder)]
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    grouped: dict[str, list[Case]] = {}
    for item in {case.folder.resolve(): case for case in found}.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cases are odd on purpose
            case = run_case(item)
        name = f"{item.folder.resolve().parent.name} ({item.group.NAME})"
        grouped.setdefault(name, []).append(case)
        if options.verbose and not options.json:
            print(_case_line(name, case), flush=True)
    if options.json:
        print(json.dumps({name: _group_values(cases) for name, cases in grouped.items()}, indent=1, allow_nan=False))
    else:
        for name, cases in grouped.items():
            print(_group_line(name, cases))
    return int(any(case.differences for cases in grouped.values() for case in cases))


def _group_line(name: str, cases: list[Case]) -> str:
    off = [f"{case.name}: {difference}" for case in cases for difference in case.differences]
    more = f" and {len(off) - _SHOWN} more" if len(off) > _SHOWN else ""
    return (
        f"{name}: {len(cases)} cases, {_equal(cases)} equal; largest difference: {_shown(_largest(cases))}; "
        f"off: {'; '.join(off[:_SHOWN]) or 'none'}{more}"
    )


def _case_line(name: str, case: Case) -> str:
    parts = [f"  {name} {case.name}: {'OFF' if case.differences else 'equal'}, {case.compared} values compared"]
    parts += [str(difference) for difference in case.differences]
    return "; ".join([*parts, *case.treated])


def _group_values(cases: list[Case]) -> dict[str, object]:
    return {
        "cases": len(cases),
        "equal": _equal(cases),
        "largest": {measure: _plain(apart) for measure, apart in _largest(cases).items()},
        "each": [
            {
                "name": case.name,
                "folder": str(case.folder),
                "compared": case.compared,
                "largest": {measure: _plain(apart) for measure, apart in case.largest.items()},
                "differences": [
                    {"what": what, "ours": _plain(ours), "theirs": _plain(theirs)}
                    for what, ours, theirs in case.differences
                ],
                "treated": case.treated,
            }
            for case in cases
        ],
    }


def _equal(cases: list[Case]) -> int:
    return sum(not case.differences for case in cases)


def _largest(cases: list[Case]) -> dict[str, float]:
    """Largest difference of each measure over the cases; not a number is larger than all."""
    largest: dict[str, float] = {}
    for case in cases:
        for measure, apart in case.largest.items():
            known = largest.get(measure, 0.0)
            largest[measure] = apart if math.isnan(apart) or apart > known else known
    return largest


def _shown(largest: dict[str, float]) -> str:
    return ", ".join(f"{measure} {apart:.1e}" if apart else f"{measure} 0" for measure, apart in largest.items()) or "-"


def _plain(value: object) -> object:
    """What JSON can hold: numbers that are finite, texts, nothing; anything else as text."""
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return repr(value)


if __name__ == "__main__":
    sys.exit(main())
