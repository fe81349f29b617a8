"""`python -m swsdist.testing.golden DIR...`: a line a group, and exit code 1 if any case is off (2: a folder without cases)."""

import argparse
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
    """Run the cases below folders, print what came of them, and give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m swsdist.testing.golden", description=__doc__)
    parser.add_argument(
        "folders", metavar="DIR", nargs="+", type=Path, help="a case, or a folder with cases at any depth"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="a line a case")
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
        if options.verbose:
            state = f"{'OFF' if case.differences else 'equal'}, {case.compared} values compared"
            print("; ".join([f"  {name} {case.name}: {state}", *map(str, case.differences), *case.treated]), flush=True)
    for name, cases in grouped.items():
        print(_group_line(name, cases))
    return int(any(case.differences for cases in grouped.values() for case in cases))


def _group_line(name: str, cases: list[Case]) -> str:
    off = [f"{case.name}: {difference}" for case in cases for difference in case.differences]
    more = f" and {len(off) - _SHOWN} more" if len(off) > _SHOWN else ""
    equal = sum(not case.differences for case in cases)
    largest: dict[str, float] = {}
    for measure, apart in (pair for case in cases for pair in case.largest.items()):
        known = largest.get(measure, 0.0)
        largest[measure] = apart if math.isnan(apart) or apart > known else known  # not a number is larger than all
    shown = ", ".join(f"{measure} {apart:.1e}" if apart else f"{measure} 0" for measure, apart in largest.items())
    return (
        f"{name}: {len(cases)} cases, {equal} equal; largest difference: {shown or '-'}; "
        f"off: {'; '.join(off[:_SHOWN]) or 'none'}{more}"
    )


if __name__ == "__main__":
    sys.exit(main())
