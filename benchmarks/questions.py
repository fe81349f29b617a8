"""One spoken question over many hours, by the first pass `quantised` and by the exact search, in a new process and a warm one.

Mboshi dev TIMES over (90: 91 hours), MFCC as float16, indexed once with codes; 8 queries,
one after the other, in a process for each way.
New: the first answer of a process, from its start, with the store's files in the page cache. Warm: the median of the third and
later answers. The best 20 hits are compared with those of the exact search. A batch: CPU of the first
examples of all queries in one search.
`--store FOLDER` takes a store that there is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import base, read, repeated
from benchmarks.rows import Row, at_least, at_most, say, show
from swsdist.config import config_from_dict
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.searcher.searcher import Searcher

_TIMES = int(os.environ.get("TIMES", "16"))
_QUESTIONS, _HITS = 8, 20
FIRST_PASSES: dict[str, dict[str, Any]] = {
    "exact": {"name": "none"},
    "quantised": {"name": "quantised", "windows": {"least": 300, "per_second": 0}},
}
#: Of a batch: windows in proportion to the hours.
_BATCH: dict[str, dict[str, Any]] = {
    **FIRST_PASSES,
    "quantised": {"name": "quantised", "windows": {"per_second": 0.014}},
}


def measure(scratch: Path, store: Path | None) -> list[Row]:
    """All figures."""
    corpus = base(scratch)
    big = repeated(corpus, _TIMES, scratch)
    config = {"run": str(scratch / "run"), "corpus": {"documents": str(big.documents)}, "executor": {"kind": "serial"}}
    config["search"] = {"first_pass": FIRST_PASSES["quantised"]}
    config["features"] = {"name": "mfcc", "dtype": "float16"}
    if store is not None:
        config["index"] = {"store": str(store)}
    say("questions: indexing")
    outcome = run_stages(config_from_dict(config), StepSelection(until="index"), Progress())
    opened = outcome.chain_run.chain.inputs.store.open()
    folder, hours = Path(opened.folder.root), opened.manifest.counts["seconds"] / 3600
    held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    codes = sum(path.stat().st_size for path in (folder / "codes").iterdir())
    rows = [
        Row("hours", hours, "h"),
        Row("codes and sampled features", codes / hours / 1e6, "MB/h"),
        Row("the whole store", held / hours / 1e6, "MB/h", at_most(30)),
    ]
    for step in ("index", "quantise"):
        receipts = outcome.chain_run.outcomes[step].receipts
        rows.append(Row(f"CPU of {step}", sum(receipt.cost.cpu for receipt in receipts) / hours, "s/h"))
    queries = [str(corpus.queries.parent / row["path"]) for row in read(corpus.queries) if row["example"] == "1"]
    found = {}
    for way in FIRST_PASSES:
        say(f"questions: {way}")
        began = time.time()
        result = _asked(way, folder, queries[:: max(1, len(queries) // _QUESTIONS)][:_QUESTIONS])
        found[way] = result["hits"]
        goals = (at_most(5), at_most(1)) if way == "quantised" else (None, None)
        rows.append(Row(f"{way}: the first answer of a new process", result["first"] - began, "s", goals[0]))
        rows.append(Row(f"{way}: an answer, warm", median(result["walls"][2:]), "s", goals[1]))
        rows.append(Row(f"{way}: CPU of it", median(result["cpu"][2:]), "s"))
    pairs = list(zip(found["exact"], found["quantised"], strict=True))
    same = sum(len({tuple(hit) for hit in exact} & {tuple(hit) for hit in fast}) for exact, fast in pairs)
    rows.append(Row("best 20 hits found", same / sum(len(exact) for exact, _ in pairs), "ratio", at_least(1)))
    batch = {way: _asked(way, folder, queries, batch=True)["cpu"][0] for way in FIRST_PASSES}
    rows += [Row(f"{way}: CPU of a batch of {len(queries)}", spent, "s") for way, spent in batch.items()]
    rows.append(Row("batch: exact to quantised", batch["exact"] / batch["quantised"], "x CPU", at_least(6)))
    return rows


def _asked(way: str, store: Path, queries: list[str], *, batch: bool = False) -> dict[str, Any]:
    """What `_ask` says in a process of its own."""
    task = json.dumps([way, str(store), queries, batch])
    command = [sys.executable, "-m", "benchmarks.questions", "--ask", task]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _ask(way: str, store: str, queries: list[str], batch: bool) -> dict[str, Any]:
    """Wall and CPU s of each answer, when the first came, and the hits; of a batch the CPU, after one question."""
    options = {"first_pass": (_BATCH if batch else FIRST_PASSES)[way]}
    result: dict[str, Any] = {"walls": [], "cpu": [], "hits": []}
    with Searcher(store, options=options, trim=False) as searcher:
        for query in [queries[0], queries] if batch else queries:
            wall, cpu = time.perf_counter(), time.process_time()
            hits = searcher.search(query, top=_HITS)
            result["walls"].append(time.perf_counter() - wall)
            result["cpu"].append(time.process_time() - cpu)
            result.setdefault("first", time.time())
            if not batch:
                result["hits"].append(hits[["doc_id", "start", "end", "cost"]].values.tolist())
    if batch:
        result["cpu"] = result["cpu"][1:]
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the store there, or take the one that is there"
    )
    parser.add_argument("--ask", metavar="TASK", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.ask is not None:
        print(json.dumps(_ask(*json.loads(chosen.ask))))
        return
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        rows = measure(Path(scratch), chosen.store)
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
