"""What the first pass `quantised` misses and saves with the systems of `configs/systems`, on Mboshi dev and on changed
recordings.

Every system searches exactly and with the first pass, from one store. Told are: the part of the exact search's 20 best
hits of a query that is found with the same times and cost; MTWV of the exact run's scored list where only what was found
is kept, as part of the whole list's (so by the exact search's sums, of which a sample is an estimate: decision 44 has what
that costs); and the CPU seconds of the stage `search` of both, and of `quantise`.

Of a folder (`--runs`, as of `python -m benchmarks.perturbed`), finished runs and changed recordings are taken as they are.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from benchmarks.corpora import Corpus, mboshi
from benchmarks.perturbed import CHANGES, ORDER, documents
from benchmarks.rows import Row, at_least, say, show
from benchmarks.systems import SYSTEMS, report_in, row, run_of
from swsdist.chains.report.publish import from_run
from swsdist.core.types import DETECTIONS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.status import load_chain_run
from swsdist.score.align import align, score_limits
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import mtwv, twv_curve

CONDITIONS = ("clean", *CHANGES)
_BEST = 20
_HIT = ["query_id", "doc_id", "channel", "start", "end", "cost"]


class Result(NamedTuple):
    """Of one system and condition; CPU in seconds."""

    best: float
    mtwv: float
    kept: float
    exact_cpu: float
    cpu: float
    codes_cpu: float


def scored(run: Path) -> pd.DataFrame:
    """The scored list of a run, the best of a query first."""
    table = pa.concat_tables(load_chain_run(Folder(str(run))).read("scored")).to_pandas()
    return table.sort_values(["query_id", "score"], ascending=[True, False], kind="stable", ignore_index=True)


def spent(run: Path, stage: str) -> float:
    """CPU seconds of a stage."""
    return sum(float(each["cpu_s"]) for each in report_in(run)["stages"] if each["stage"] == stage)


def value(run: Path, detections: pd.DataFrame) -> float:
    """MTWV of a part of a run's scored list."""
    system = from_run("exact", str(run))
    assert system.trials is not None
    assert system.beta is not None
    table = pa.Table.from_pandas(detections, schema=DETECTIONS, preserve_index=False)
    low, high = score_limits(detections["score"])
    aligned = align(table, references_of(run), tolerance=0.5, low=low, high=high)
    return float(mtwv(twv_curve(Counts.of(aligned), trials=system.trials, beta=system.beta)).twv)


def references_of(run: Path) -> pa.Table:
    """The references that a run was scored by."""
    return load_chain_run(Folder(str(run))).chain.inputs.corpus.references


def compared(exact: Path, fast: Path) -> Result:
    """Two runs of one store."""
    whole, found = scored(exact), scored(fast)
    kept = whole.merge(found[_HIT].drop_duplicates(), on=_HIT, how="inner")
    best = whole.groupby("query_id").head(_BEST)
    return Result(
        best=len(best.merge(kept[_HIT], on=_HIT)) / len(best),
        mtwv=value(exact, whole),
        kept=value(exact, kept[whole.columns]),
        exact_cpu=spent(exact, "search"),
        cpu=spent(fast, "search"),
        codes_cpu=spent(fast, "quantise"),
    )


def measure(
    corpus: Corpus,
    folder: Path,
    names: list[str],
    conditions: list[str],
    examples: list[str],
    windows: int,
    others: list[str],
) -> tuple[list[Row], str]:
    """Rows with goals, and a table as Markdown; `others` are set of the first pass, too."""
    heads = (
        "system",
        "examples",
        "condition",
        "best 20 found",
        "MTWV",
        "of it kept",
        "CPU s, exact",
        "first pass",
        "codes",
    )
    rows, lines = [], [row(*heads), "|---" * len(heads) + "|"]
    for which in examples:
        for name in names:
            for condition in conditions:
                say(f"first pass: {name}, {which}, {condition}")
                place = folder / condition
                sets = documents(corpus, condition, place)
                shared = [*sets, f"index.store={run_of(name, 'primary', place, sets) / 'store'}"]
                exact = run_of(name, which, place, sets if which == "primary" else shared)
                first_pass: list[str] = [
                    "search.first_pass.name=quantised",
                    "search.first_pass.sample=0",
                    f"search.first_pass.windows={{least: 10, per_second: {windows / 3600:.6f}}}",
                    *others,
                ]
                fast = run_of(
                    name, which, place / "-".join(["first-pass", str(windows), *others]), [*shared, *first_pass]
                )
                result = compared(exact, fast)
                label = f"{Path(name).name}, {which}, {condition}"
                rows += [
                    Row(f"{label}: best {_BEST} found", result.best, "ratio", at_least(0.99)),
                    Row(f"{label}: MTWV of what is found", result.kept / result.mtwv, "of exact", at_least(0.99)),
                    Row(f"{label}: CPU of the exact search", result.exact_cpu / result.cpu, "x"),
                ]
                cells = [f"{result.best:.3f}", f"{result.mtwv:.3f}", f"{result.kept / result.mtwv:.3f}"]
                cells += [f"{seconds:.1f}" for seconds in result[3:]]
                lines.append(row(Path(name).name, which, condition, *cells))
    return rows, "\n".join(lines)


def main() -> None:
    """Print the table, and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="of the runs; by default one that is thrown away")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(ORDER), metavar="NAME", help="only these")
    parser.add_argument(
        "--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS), metavar="NAME", help="only these"
    )
    parser.add_argument(
        "--examples", nargs="+", choices=("primary", "all"), default=["primary", "all"], help="only these"
    )
    parser.add_argument("--windows", type=int, default=100, metavar="N", help="windows an hour (100)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="sets",
        metavar="KEY=VALUE",
        help="as of swsdist run, of the first pass",
    )
    given = parser.parse_args()
    corpus: Any = mboshi()
    if corpus is None:
        rows = [Row("first pass of systems (Mboshi dev is not beside the checkout)", None, "")]
    else:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            rows, text = measure(
                *(corpus, given.runs or Path(scratch), given.systems, given.conditions, given.examples),
                *(given.windows, given.sets),
            )
        print(text)
    show(rows, given.json)


if __name__ == "__main__":
    main()
