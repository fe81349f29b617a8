"""Queries that documents hold exactly (T1), with another beginning or end (T2), or in another order or with speech between.

The set is made of Mboshi dev (`benchmarks.harder_set`), each query of one kind, and scored as in QUESST: a trial is a query
and a document. Each system searches with whole queries, and with their parts beside them (`search.parts`): MTWV and min Cnxe
of each kind, the gain with its 95 % interval over queries, and CPU seconds of search and reduce. Of a folder, the set and
finished runs are taken as they are.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.corpora import ROOT, Corpus, mboshi, read
from benchmarks.harder_set import KINDS, make
from benchmarks.perturbed import CHANGES, documents
from benchmarks.rows import Row, say, show
from benchmarks.systems import report_in, row
from swsdist import api
from swsdist.chains.report.publish import from_run
from swsdist.config import load_config
from swsdist.evaluation.comparison import finite_threshold, values_at
from swsdist.score.compare.bootstrap import Interval, bootstrap_terms
from swsdist.score.compare.cross_entropy import compare_entropies
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.protocol import prior_of_beta
from swsdist.score.measures.twv import mtwv, twv_curve

SYSTEMS = ("mboshi-dev", "systems/phnrec-tracks")
CONDITIONS = ("clean", *CHANGES)
GROUPS = (*KINDS, "all")


class Searched(NamedTuple):
    """What a run found (TRIALS), trials of a query, beta, and CPU seconds of search and reduce."""

    aligned: pa.Table
    trials: int
    beta: float
    cpu: float


class Gain(NamedTuple):
    """A value with whole queries, with parts, and the interval of the difference."""

    whole: float
    parts: float
    interval: Interval


def searched(name: str, corpus: Corpus, run: Path, sets: list[str]) -> Searched:
    """A system's search; one that is in the folder is not repeated."""
    tables = {"documents": corpus.documents, "queries": corpus.queries, "references": corpus.references}
    given = {key: str(path) for key, path in tables.items()} | {"protocol": "quesst"}
    sets = ["executor.kind=serial", "report.exports=[]", *sets]
    result = api.run(load_config(ROOT / "configs" / f"{name}.yaml", sets, corpus=given, run=str(run)))
    if result.outcome.failures:
        raise RuntimeError(f"{name}: {result.outcome.failures[0].message}")
    scored = from_run(name, str(run))
    assert scored.trials is not None
    assert scored.beta is not None
    cpu = sum(stage["cpu_s"] for stage in report_in(run)["stages"] if stage["stage"] in ("search", "reduce"))
    return Searched(pa.concat_tables(scored.aligned("MTWV")), scored.trials, scored.beta, cpu)


def gains(whole: Searched, parts: Searched, queries: list[str]) -> dict[str, Gain]:
    """MTWV and min Cnxe of some queries, all of which have references."""
    wanted = pa.array(sorted(queries))
    both = [one.aligned.filter(pc.is_in(one.aligned["query_id"].cast(pa.string()), wanted)) for one in (whole, parts)]
    points = [mtwv(twv_curve(Counts.of(some), trials=whole.trials, beta=whole.beta)) for some in both]
    by_query = []
    for some, point in zip(both, points, strict=True):
        cut = finite_threshold(point.threshold, point.pmiss, point.pfa)
        by_query.append(values_at([some], cut, whole.trials, whole.beta).sort_by("query_id")["twv"].to_numpy())
    entropies = compare_entropies(
        {"parts": [both[1]], "whole": [both[0]]},
        trials=whole.trials,
        queries=len(queries),
        prior=prior_of_beta(whole.beta),
        resamples=1000,
    )
    first, second = points
    return {
        "MTWV": Gain(first.twv, second.twv, bootstrap_terms(np.stack(by_query[::-1])).interval(0, 1)),
        "min Cnxe": Gain(entropies.systems[1].value, entropies.systems[0].value, entropies.pairs[0].interval),
    }


def measure(
    corpus: Corpus, folder: Path, names: list[str], conditions: list[str], sets: list[str]
) -> tuple[list[Row], str]:
    """Rows, and a table as Markdown."""
    queries = {one["query_id"]: one["kind"] for one in read(corpus.queries)}
    references = [queries[one["query_id"]] for one in read(corpus.references or Path())]
    rows = [Row(f"{kind}: queries", list(queries.values()).count(kind), "") for kind in KINDS]
    rows += [Row(f"{kind}: documents that hold a query", references.count(kind), "") for kind in KINDS]
    lines = [row("system", "documents", "measure", *GROUPS), "|---" * (3 + len(GROUPS)) + "|"]
    for condition in conditions:
        for name in names:
            say(f"harder queries: {condition}, {name}")
            run, system = folder / condition / Path(name).name, Path(name).name
            given = [*sets, *documents(corpus, condition, folder / condition)]
            whole = searched(name, corpus, run, given)
            parts = searched(name, corpus, run, [*given, "search.parts=true"])
            cells: dict[str, list[str]] = {"MTWV": [], "min Cnxe": []}
            for group in GROUPS:
                members = [query_id for query_id, kind in queries.items() if group in (kind, "all")]
                for label, gain in gains(whole, parts, members).items():
                    low, high = gain.interval[:2]
                    cells[label].append(f"{gain.whole:.3f} to {gain.parts:.3f} ({low:+.3f} to {high:+.3f})")
                    about = f"{system}, {condition}, {group}: {label}"
                    rows += [Row(f"{about}, whole", gain.whole, ""), Row(f"{about}, parts", gain.parts, "")]
            lines += [row(system, condition, label, *values) for label, values in cells.items()]
            rows.append(Row(f"{system}, {condition}: CPU of parts / whole", parts.cpu / whole.cpu, ""))
    return rows, "\n".join(lines)


def main() -> None:
    """Print the table, and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument(
        "--runs", type=Path, metavar="FOLDER", help="of the set and the runs; by default one that is thrown away"
    )
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), metavar="NAME", help="below configs/")
    parser.add_argument(
        "--conditions", nargs="+", choices=CONDITIONS, default=["clean"], metavar="NAME", help="of the documents"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="as of swsdist run"
    )
    given = parser.parse_args()
    corpus = mboshi()
    if corpus is None:
        rows = [Row("harder queries (Mboshi dev is not beside the checkout)", None, "")]
    else:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            folder = given.runs or Path(scratch)
            made = make(corpus, folder / "set")
            rows, text = measure(made, folder, given.systems, given.conditions, given.sets)
        print(text)
    show(rows, given.json)


if __name__ == "__main__":
    main()
