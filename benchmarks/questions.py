"""One spoken question over many hours, by the first pass `quantised` and by the exact search, in a new process and a warm one.

Mboshi dev TIMES over (90: 91 hours), indexed once with codes: MFCC, or the frames of another system of `configs` (`--system`),
as float16, computed of one hour and copied; 8 queries, one after the other, in a process for each way.
New: the first answer of a process, from its start, with the store's files in the page cache. Warm: the median of the third and
later answers, and its CPU less that of the query's own frames. The best 20 hits are compared with those of the exact search. A
batch: CPU of the first examples of all queries in one search, less that of their frames.
`--store FOLDER` takes a store that there is.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import ROOT, Corpus, base, read, repeated
from benchmarks.rows import Row, at_least, at_most, say, show
from swsdist.config import Config, load_config
from swsdist.methods.method import create
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


def measure(scratch: Path, store: Path | None, system: str) -> list[Row]:
    """All figures."""
    corpus = base(scratch)
    big, place = repeated(corpus, _TIMES, scratch), store or scratch / "store"

    def config_of(one: Corpus, *sets: str) -> Config:
        tables, run = {"documents": str(one.documents)}, str(scratch / one.documents.stem)
        how = ("executor.kind=serial", f"index.store={place}")
        return load_config(ROOT / "configs" / f"{system}.yaml", [*how, *sets], corpus=tables, run=run)

    plain = config_of(big)
    tracks = [{**track.model_dump(mode="json"), "dtype": "float16"} for track in plain.features]
    # What the system sets of the first pass, such as the bytes of a code, holds for each way.
    own = plain.search.first_pass.model_dump(exclude_defaults=True)
    ways, batch_ways = ({way: {**own, **each} for way, each in of.items()} for of in (FIRST_PASSES, _BATCH))
    outcomes = []
    for one in [big] if (place / "manifest.json").is_file() else [corpus, big]:
        say(f"questions: indexing {one.name}")
        sets = {"features": tracks, "search.first_pass": ways["quantised"]}
        config = config_of(one, *(f"{key}={json.dumps(value)}" for key, value in sets.items()))
        outcomes.append(run_stages(config, StepSelection(until="index"), Progress()).chain_run)
    opened = outcomes[-1].chain.inputs.store.open()
    folder, hours = Path(opened.folder.root), opened.manifest.counts["seconds"] / 3600
    held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    codes = sum(path.stat().st_size for path in (folder / "codes").glob("*"))  # none where all is searched exactly
    rows = [
        Row("hours", hours, "h"),
        Row("codes and sampled features", codes / hours / 1e6, "MB/h"),
        Row("the whole store", held / hours / 1e6, "MB/h", at_most(30)),
    ]
    for step, chain_run in (("index", outcomes[0]), ("quantise", outcomes[-1])):
        spent = sum(receipt.cost.cpu for receipt in chain_run.outcomes[step].receipts)
        rows.append(Row(f"CPU of {step}", 3600 * spent / chain_run.chain.inputs.seconds, "s/h"))
    queries = [str(corpus.queries.parent / row["path"]) for row in read(corpus.queries) if row["example"] == "1"]
    found = {}
    for way in FIRST_PASSES:
        say(f"questions: {way}")
        began = time.time()
        result = _asked(ways[way], folder, queries[:: max(1, len(queries) // _QUESTIONS)][:_QUESTIONS])
        found[way] = result["hits"]
        goals = (at_most(5), at_most(1)) if way == "quantised" else (None, None)
        rows.append(Row(f"{way}: the first answer of a new process", result["first"] - began, "s", goals[0]))
        rows.append(Row(f"{way}: an answer, warm", median(result["walls"][2:]), "s", goals[1]))
        rows.append(
            Row(f"{way}: CPU of it, less that of the query's frames", median(result["cpu"][2:]) - result["own"], "s")
        )
        rows.append(Row(f"{way}: memory", result["memory"], "GB"))
    pairs = list(zip(found["exact"], found["quantised"], strict=True))
    same = sum(len({tuple(hit) for hit in exact} & {tuple(hit) for hit in fast}) for exact, fast in pairs)
    rows.append(Row("best 20 hits found", same / sum(len(exact) for exact, _ in pairs), "ratio", at_least(1)))
    rows.append(Row("CPU of a query's own frames", result["own"], "s"))
    batch = {}
    for way, first_pass in batch_ways.items():
        result = _asked(first_pass, folder, queries, batch=True)
        batch[way] = result["cpu"][1] - result["own"] * len(queries)
    rows += [Row(f"{way}: CPU of a batch of {len(queries)}", spent, "s") for way, spent in batch.items()]
    rows.append(Row("batch: exact to quantised", batch["exact"] / batch["quantised"], "x CPU", at_least(6)))
    return rows


def _asked(first_pass: dict[str, Any], store: Path, queries: list[str], *, batch: bool = False) -> dict[str, Any]:
    """What `_ask` says in a process of its own."""
    task = json.dumps([first_pass, str(store), queries, batch])
    command = [sys.executable, "-m", "benchmarks.questions", "--ask", task]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _ask(first_pass: dict[str, Any], store: str, queries: list[str], batch: bool) -> dict[str, Any]:
    """Wall and CPU s of each answer, when the first came, the hits, peak memory, and CPU s of a query's own frames; with
    `batch` one question first, then all at once.
    """
    result: dict[str, Any] = {"walls": [], "cpu": [], "hits": []}
    with Searcher(store, options={"first_pass": first_pass}, trim=False) as searcher:
        for query in [queries[0], queries] if batch else queries:
            wall, cpu = time.perf_counter(), time.process_time()
            hits = searcher.search(query, top=_HITS)
            result["walls"].append(time.perf_counter() - wall)
            result["cpu"].append(time.process_time() - cpu)
            result.setdefault("first", time.time())
            if not batch:
                result["hits"].append(hits[["doc_id", "start", "end", "cost"]].values.tolist())
        result["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        cpu = time.process_time()
        examples, _ = searcher.queries.examples(queries[:_QUESTIONS])
        create(searcher.settings).prepare(examples, searcher.store)
        result["own"] = (time.process_time() - cpu) / examples.num_rows
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the store there, or take the one that is there"
    )
    parser.add_argument("--system", default="mboshi-dev", metavar="NAME", help="a config of configs (mboshi-dev: MFCC)")
    parser.add_argument("--ask", metavar="TASK", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.ask is not None:
        print(json.dumps(_ask(*json.loads(chosen.ask))))
        return
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        rows = measure(Path(scratch), chosen.store, chosen.system)
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
