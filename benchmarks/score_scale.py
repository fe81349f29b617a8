"""Scoring out of core: millions of detections that no process ever holds, aligned on Ray and counted part by part.

A system list of 2000 terms over 500 hours is made as a run's stage `normalise` would leave it: a Parquet file a bucket of
queries, each query whole. From there the run's own way is gone: the least and greatest score of the whole list come from
the receipts (STDEval's kernel needs them), the stage `align` runs on the Ray executor, and counts of its parts are added
in the driver, rates evaluated once. Scores have 4 decimals, so at most 10 001 thresholds; with `--decimals 6` there are a
hundred times as many, and the counts, which are exact at every threshold, grow with them.

Memory is PSS, sampled twice a second: driver and workers together, and Ray's own processes apart.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row, at_most, say, show
from swsdist.accounts.journal import DriverJournal, pss_bytes
from swsdist.config import config_from_dict
from swsdist.core.fingerprint import bucket_of, slots_of
from swsdist.core.needs import Needs
from swsdist.core.types import DETECTIONS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.chain_run import ChainRun, StepSelection, prepare_chain_run
from swsdist.pipeline.execution.ray_executor import RayExecutor
from swsdist.pipeline.ledger import ONLY, Ledger, StepOutcome
from swsdist.pipeline.receipts import ReceiptList
from swsdist.pipeline.task import Cost, Part, Receipt
from swsdist.score.align import score_limits
from swsdist.score.measures.curve import Counts, total
from swsdist.score.measures.protocol import beta, number_of_trials, protocol
from swsdist.score.measures.twv import PER_TERM, atwv, mtwv, per_term, twv_curve
from swsdist.stages.buckets import Bucket
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store import parquet

TERMS, DOCUMENTS, SECONDS = 2000, 3000, 600.0
_PER_PART = 100_000  # detections that a part aims at
_LIMIT_GB = 2.0


@dataclass(frozen=True)
class Size:
    """How much is made."""

    detections: int
    decimals: int

    @property
    def parts(self) -> int:
        """Buckets of queries."""
        return max(4, self.detections // _PER_PART)


def query_name(query: int) -> str:
    """Its id."""
    return f"q{query:04d}"


def true_places(query: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Document, start and end (s) of a query's occurrences, one a document; few queries are frequent."""
    rng = np.random.default_rng([1, query])
    count = min(DOCUMENTS, int(1 + 400 / (1 + query / 8)))
    document = rng.choice(DOCUMENTS, size=count, replace=False)
    start = np.round(rng.uniform(0, SECONDS - 2, count), 2)
    return document, start, np.round(start + rng.uniform(0.3, 0.9, count), 2)


def detections_of(query: int, count: int, decimals: int) -> pa.Table:
    """A query's detections: four of five true occurrences, a little beside them, and chance."""
    rng = np.random.default_rng([2, query])
    document, start, end = true_places(query)
    found = rng.random(len(document)) < 0.8
    found &= np.cumsum(found) <= count
    hits = int(found.sum())
    beside = np.round(np.maximum(start[found] + rng.normal(0, 0.05, hits), 0), 2)
    chance = count - hits
    where = np.concatenate([document[found], rng.integers(0, DOCUMENTS, chance)])
    begin = np.concatenate([beside, np.round(rng.uniform(0, SECONDS - 2, chance), 2)])
    last = np.concatenate([beside + (end - start)[found], begin[hits:] + rng.uniform(0.3, 0.9, chance)])
    score = np.round(np.concatenate([rng.beta(5, 2, hits), rng.beta(1, 6, chance)]), decimals)
    size = len(where)
    return pa.table(
        {
            "query_id": pa.repeat(query_name(query), size),
            "doc_id": pa.array([f"d{k:04d}" for k in where]),
            "channel": np.ones(size, dtype=np.int32),
            "start": begin,
            "end": np.maximum(np.round(last, 2), begin),
            "score": score,
            "decision": score >= 0.6,
            **{name: pa.nulls(size, DETECTIONS.field(name).type) for name in ("cost", "frames", "example", "system")},
        },
        schema=DETECTIONS,
    )


def make_part(run: str, bucket: int, queries: list[int], size: Size) -> tuple[float, float, int]:
    """Write one part, a query at a time; least and greatest score, and rows."""
    share, rest = divmod(size.detections, TERMS)
    low, high = score_limits([])
    rows = 0

    def tables() -> Iterator[pa.Table]:
        nonlocal low, high, rows
        for query in queries:
            made = detections_of(query, share + (query < rest), size.decimals)
            low, high = score_limits(made["score"].to_numpy(), low, high)
            rows += made.num_rows
            yield made

    parquet.publish(Folder(run), _name(bucket), tables(), DETECTIONS)
    return low, high, rows


def make_inputs(folder: Path) -> dict[str, str]:
    """The tables of a corpus whose audio nobody will look for."""
    tables: dict[str, tuple[list[str], Iterator[list[Any]]]] = {
        "documents": (
            ["doc_id", "path", "duration"],
            ([f"d{k:04d}", f"/nowhere/d{k:04d}.flac", SECONDS] for k in range(DOCUMENTS)),
        ),
        "queries": (["query_id", "path"], ([query_name(q), f"/nowhere/{query_name(q)}.wav"] for q in range(TERMS))),
        "references": (
            ["query_id", "doc_id", "start", "end"],
            (
                [query_name(q), f"d{document:04d}", start, end]
                for q in range(TERMS)
                for document, start, end in zip(*(column.tolist() for column in true_places(q)), strict=True)
            ),
        ),
    }
    for name, (header, rows) in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
    return {name: str(folder / f"{name}.csv") for name in tables}


@dataclass
class Memory:
    """Peaks of PSS, bytes, of processes that this one started, by what they are."""

    driver: int = 0
    workers: int = 0
    ours: int = 0
    ray: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def take(self, workers: set[int]) -> None:
        """One sample."""
        import psutil

        children = {child.pid for child in psutil.Process().children(recursive=True)}
        driver = pss_bytes()
        busy = sum(pss_bytes(pid) for pid in children & workers)
        self.driver, self.workers = max(self.driver, driver), max(self.workers, busy)
        self.ours = max(self.ours, driver + busy)
        self.ray = max(self.ray, sum(pss_bytes(pid) for pid in children - workers))

    @contextmanager
    def watched(self, workers: set[int]) -> Iterator[None]:
        """Sample while something runs."""

        def watch() -> None:
            while not self._stop.wait(0.5):
                self.take(workers)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self.take(workers)


def make(scratch: Path, size: Size) -> ChainRun:
    """The list, and the state of a run that has just normalised it."""
    clock = time.perf_counter()
    config = config_from_dict(
        {
            "run": str(scratch / "run"),
            "corpus": make_inputs(scratch),
            "reduce": {"buckets": size.parts},
            "calibrate": {"fit": "none"},
            "executor": {"kind": "ray", "workers": 2},
        }
    )
    chain_run = prepare_chain_run(ONLY, config, Ledger(Folder(config.run)), StepSelection())
    members: dict[int, list[int]] = {}
    for query in range(TERMS):
        members.setdefault(bucket_of(query_name(query), size.parts), []).append(query)
    # Processes of their own: what making leaves behind in memory is not the scoring's.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        made = {
            bucket: pool.submit(make_part, chain_run.run.root, bucket, queries, size)
            for bucket, queries in sorted(members.items())
        }
        buckets = chain_run.config.reduce.buckets
        receipts = [_receipt(bucket, buckets, *one.result()) for bucket, one in made.items()]
    chain_run.outcomes["normalise"] = StepOutcome(ReceiptList(receipts))
    say(f"score_scale: {size.detections} detections made in {time.perf_counter() - clock:.0f} s, {len(receipts)} parts")
    return chain_run


def _name(bucket: int) -> str:
    """Where a part lies in the run folder."""
    return f"tables/normalised/part{bucket:05d}.parquet"


def _receipt(bucket: int, buckets: int, low: float, high: float, rows: int) -> Receipt:
    slots = slots_of(bucket, buckets)
    part = Part("normalised", _name(bucket), 0, "", rows, (slots[0], slots[-1]))
    told = Bucket(rows, low, high)._asdict()
    cost = Cost(0.0, 0.0, 0.0, 0)
    return Receipt("normalise", 1, f"part{bucket:05d}", "", rows, (part,), told, [], cost, "", 0, 0.0, 0.0)


def align_all(chain_run: ChainRun, memory: Memory) -> list[Receipt]:
    """The stage `align`, on two Ray workers."""
    step = chain_run.chain.step("align.train")
    tasks = list(step.stage.plan(chain_run.inputs(step)))
    journal = DriverJournal(chain_run.run)
    executor = RayExecutor(Context(chain_run.run, {step.stage.name: step.stage}), journal, chain_run.config.executor)
    receipts: list[Receipt] = []
    try:
        with memory.watched(journal.others):
            for _, result in executor.run(tasks, [Needs()], lambda *_: None):
                if not isinstance(result, Receipt):
                    raise RuntimeError(result.message)
                receipts.append(result)
    finally:
        executor.close()
        journal.close()
    return sorted(receipts, key=lambda receipt: receipt.fingerprint)


def count_all(chain_run: ChainRun, receipts: list[Receipt]) -> dict[str, float]:
    """Counts of the parts, added as they are read; rates once."""
    rules = protocol("nist-std06")
    state: SearchInputs = chain_run.chain.inputs
    true = state.corpus.references
    assert true is not None
    trials, weight = number_of_trials(rules, state.seconds), beta(rules, state.seconds, true.num_rows)
    terms = [PER_TERM.empty_table()]

    def parts() -> Iterator[Counts]:
        for receipt in receipts:
            part = parquet.read(chain_run.run, receipt.parts("trials")[0].name)
            terms.append(per_term(part, trials=trials, beta=weight))
            yield Counts.of(part)

    whole = total(parts())
    best = mtwv(twv_curve(whole, trials=trials, beta=weight))
    values = pa.concat_tables(terms)["twv"].drop_null().to_pylist()
    actual = atwv(whole, trials=trials, beta=weight).twv
    if abs(math.fsum(values) / len(values) - actual) > 1e-9:
        raise RuntimeError("the mean of the terms is not ATWV")
    return {"atwv": actual, "mtwv": best.twv, "keys": len(whole.score)}


def measure(scratch: Path, size: Size) -> list[Row]:
    """Make, align, count."""
    chain_run = make(scratch, size)
    memory, name = Memory(), f"{size.detections / 1e6:g} M detections"
    clock = time.perf_counter()
    receipts = align_all(chain_run, memory)
    aligned = time.perf_counter() - clock
    before, clock = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    with (counting := Memory()).watched(set()):
        found = count_all(chain_run, receipts)
    counted = time.perf_counter() - clock
    after = resource.getrusage(resource.RUSAGE_SELF)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cpu = math.fsum(receipt.cost.cpu for receipt in receipts)
    rows = sum(receipt.work for receipt in receipts)
    peak = max(memory.ours, counting.ours)
    return [
        Row(f"{name}: driver and workers, highest PSS", peak / 1e9, "GB", at_most(_LIMIT_GB)),
        Row(f"{name}: of it the driver while aligning", memory.driver / 1e9, "GB"),
        Row(f"{name}: of it two workers", memory.workers / 1e9, "GB"),
        Row(f"{name}: the driver while counting", counting.driver / 1e9, "GB"),
        Row(f"{name}: Ray's own processes, highest PSS", memory.ray / 1e9, "GB"),
        Row(f"{name}: highest peak of a task", max(r.cost.peak_bytes for r in receipts) / 1e9, "GB"),
        Row(f"{name}: aligning", cpu, "CPU s"),
        Row(f"{name}: counting", own, "CPU s"),
        Row(f"{name}: aligning", aligned, "wall s"),
        Row(f"{name}: counting", counted, "wall s"),
        Row(f"{name}: CPU of a million", (cpu + own) / rows * 1e6, "s"),
        Row(f"{name}: parts", float(len(receipts)), ""),
        Row(f"{name}: keys of the counts", found["keys"], ""),
        Row(f"{name}: ATWV", found["atwv"], ""),
        Row(f"{name}: MTWV", found["mtwv"], ""),
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--detections", type=float, default=50e6, help="how many (50e6 by default; try 1e6 first)")
    parser.add_argument("--decimals", type=int, default=4, help="of the scores; 4 by default")
    parser.add_argument("--scratch", type=Path, help="folder for the data; the system's temporary one by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    arguments = parser.parse_args()
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-", dir=arguments.scratch) as scratch:
        rows = measure(Path(scratch), Size(int(arguments.detections), arguments.decimals))
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
