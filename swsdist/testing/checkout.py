"""Runs programs among the tests of a checkout by a name of the package."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from swsdist.core.codes import families


def run(name: str) -> None:
    """Run `tests/support/NAME` of this package's checkout; exit with code 2 if it is not in a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "tests" / "support").is_dir():
        error = families.UNSUPPORTED(
            "swsdist.testing.{program} runs from a checkout of the project, and this package is an installed copy",
            "clone the project, and run it there after pip install -e .",
            where=str(root / "swsdist"),
            program=name,
        )
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    sys.path.insert(0, str(root))
    runpy.run_module(f"tests.support.{name}", run_name="__main__", alter_sys=True)
