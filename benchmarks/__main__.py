"""Run all benchmarks, or those named, each in a process of its own, and print one table; or say what there is (`--list`)."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.rows import read_json, say, show

#: In the order in which they run.
NAMES = (
    "again",
    "alignment",
    "bands",
    "big_run",
    "calibration_steps",
    "collecting",
    "commit_scale",
    "discovery_measures",
    "discovery",
    "encoders",
    "engine",
    "fit_scale",
    "fixed_point",
    "harder_queries",
    "journals",
    "lattices",
    "forecasts",
    "libraries",
    "sweeps",
    "systems",
    "quality",
    "lower_bounds",
    "memory",
    "perturbed",
    "phnrec",
    "plan_scale",
    "questions",
    "first_passes",
    "first_pass_systems",
    "ray_cost",
    "roofline",
    "score_nist",
    "score_scale",
    "serving",
    "silence",
    "single_query",
    "ssl",
    "superb",
    "thousand_hours",
    "transcriptions",
    "trimming",
    "word_embeddings",
)


def about(name: str) -> str:
    """What a benchmark measures: the first paragraph of its module, which is not loaded."""
    told = ast.get_docstring(ast.parse((Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")))
    return " ".join((told or "").split("\n\n")[0].split())


def main() -> int:
    """Exit code 1 if a benchmark could not be run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--list", action="store_true", help="say what each one measures, and run none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    arguments = parser.parse_args()
    unknown = sorted({*arguments.names} - {*NAMES})
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(NAMES)}")
    if arguments.list:
        for name in arguments.names or NAMES:
            print(f"{name:<{max(map(len, NAMES))}}  {about(name)}")
        return 0
    rows, broken = [], []
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        for name in arguments.names or NAMES:
            say(f"== {name}")
            path = Path(scratch) / f"{name}.json"
            command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(path)]
            ended = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL, check=False)
            if ended.returncode != 0:
                broken.append(name)
                continue
            rows += read_json(path)
    show(rows, arguments.json)
    for name in broken:
        say(f"benchmark {name} broke off; what it wrote stands above")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
