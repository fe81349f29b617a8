"""The driver at scale: fabricated stores, receipts and files, and the real planner.

A corpus, a store and groups of queries are written as `index` and `queries` would leave them (no audio, no frames), and what
the driver does with them is measured, each in a process of its own, on one core: making the plan of a run with all search tasks
to do, telling that nothing is left to do of a run that is done, `--dry-run`, and `status`. With `--s3` the finished run lies on
moto's server. The peak of memory is that of the process, with all that it imports.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row, at_most, say, show
from swsdist.config import Config, config_from_dict
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import CORPUS, DOCUMENTS, QUERIES, STATISTICS
from swsdist.features.extractors import recipe, recipe_fingerprint
from swsdist.io.filesystem import Folder
from swsdist.methods.query.extraction import groups as grouped
from swsdist.pipeline.chain_run import ChainRun, StepSelection, plan_rounds, prepare_chain_run
from swsdist.pipeline.estimate import estimates
from swsdist.pipeline.ledger import ONLY, Ledger, PlannedStep, StepOutcome, load_plans, pack_name, save_plans
from swsdist.pipeline.receipts import Names, ReceiptList, encoded
from swsdist.pipeline.status import status
from swsdist.pipeline.task import Cost, Part, Receipt
from swsdist.stages.buckets import Extracted
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store import parquet
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, Manifest, Shard, Track, state_name, write_state

_DIMENSION = 2

#: On moto's server.
_BUCKET = "bench"


def config_of(folder: Path, run: str, storage: dict[str, Any] | None = None) -> Config:
    """The config of all parts."""
    values = {
        "run": run,
        "corpus": {"documents": str(folder / "documents.parquet"), "queries": str(folder / "queries.parquet")},
        "index": {"store": str(folder / "store")},
        "executor": {"kind": "serial"},
        "queries": {"trim": "none"},
        "storage": storage or {},
    }
    return config_from_dict(values, folder)


def make_corpus(folder: Path, documents: int, queries: int, shards: int) -> None:
    """Tables of a corpus, its recordings (empty files), and its store of so many shards."""
    folder.mkdir(parents=True, exist_ok=True)
    audio = folder / "audio"
    each = 1000
    for first in range(0, documents, each):
        place = audio / f"{first // each:04d}"
        place.mkdir(parents=True)
        for k in range(first, min(first + each, documents)):
            os.close(os.open(place / f"{k:07d}.wav", os.O_CREAT | os.O_WRONLY))
    keys = [f"doc-{k:07d}" for k in range(documents)]
    paths = [str(audio / f"{k // each:04d}" / f"{k:07d}.wav") for k in range(documents)]
    columns = {
        "doc_id": keys,
        "channel": np.ones(documents, np.int32),
        "path": paths,
        "duration": np.full(documents, 3.0),
        "speaker": [f"s{k % 500}" for k in range(documents)],
    }
    corpus = pa.table(columns, schema=CORPUS)
    parquet.publish(Folder(str(folder)), "documents.parquet", [corpus], CORPUS)
    asked: dict[str, Any] = {name: [None] * queries for name in QUERIES.names}
    asked |= {"query_id": [f"q{k:06d}" for k in range(queries)], "example": [1] * queries, "channel": [1] * queries}
    asked |= {"doc_id": [keys[k % documents] for k in range(queries)]}
    asked |= {"start": [0.5] * queries, "end": [1.0] * queries}
    parquet.publish(Folder(str(folder)), "queries.parquet", [pa.table(asked, schema=QUERIES)], QUERIES)
    _make_store(folder, corpus, shards)


def _make_store(folder: Path, corpus: pa.Table, shards: int) -> None:
    own = SearchInputs.of(config_of(folder, str(folder / "none")), Ledger(Folder(str(folder / "none"))))
    (source,) = own.features.sources
    place, count = Folder(str(folder / "store")), corpus.num_rows
    cut = np.arange(count) * shards // count
    names = [f"shards/part-{fingerprint('shard', k)}.parquet" for k in range(shards)]
    identities = []
    for path in corpus["path"].to_pylist():
        known = Path(path).stat()
        identities.append(f"{known.st_size}:{known.st_mtime_ns}")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(count * _DIMENSION)), _DIMENSION)
    columns = {
        **{name: corpus[name] for name in ("doc_id", "channel", "path", "duration", "speaker")},
        "frames": np.full(count, 300),
        "shard": pa.array(names).take(pa.array(cut)),
        "rows": np.ones(count, np.int32),
        "identity": identities,
        "sha256": pa.array(["0" * 64]).take(pa.array(np.zeros(count, np.int64))),
        "mean": vectors.cast(pa.list_(pa.float64())),
        "variance": vectors.cast(pa.list_(pa.float64())),
    }
    columns |= {name: pa.nulls(count, DOCUMENTS.field(name).type) for name in DOCUMENTS.names if name not in columns}
    state = fingerprint("store", count, shards)
    (track,) = source.tracks
    made = recipe(source.extractor)
    documents = pa.table({name: columns[name] for name in DOCUMENTS.names}, schema=DOCUMENTS)
    starts = np.flatnonzero(np.diff(cut, prepend=-1))
    every = starts[:: -(-len(starts) // 4096)]
    pieces = [documents.slice(a, b - a) for a, b in zip(every, [*every[1:], count], strict=True)]
    parquet.publish(place, f"documents-{state}.parquet", pieces, DOCUMENTS)
    parquet.publish(place, f"rejected-{state}.parquet", [REJECTED_DOCUMENTS.empty_table()], REJECTED_DOCUMENTS)
    zeros, ones = [0.0] * _DIMENSION, [1.0] * _DIMENSION
    statistics = pa.Table.from_pylist(
        [
            {
                "scope": "collection",
                "name": "",
                "frames": 300 * count,
                "mean": zeros,
                "variance": ones,
                "frozen": True,
                "taken_from": [],
            }
        ],
        STATISTICS,
    )
    parquet.publish(place, f"models/statistics-{state}.parquet", [statistics], STATISTICS)
    (folder / "store" / "shards").mkdir()
    for name in names:
        os.close(os.open(folder / "store" / name, os.O_CREAT | os.O_WRONLY))
    held = np.bincount(cut, minlength=shards)
    manifest = Manifest(
        fingerprint=state,
        kind="frames",
        tick=0.01,
        tracks=(
            Track(
                track.name,
                made,
                recipe_fingerprint(made),
                track.stop - track.first,
                tuple(f"c{k}" for k in range(track.stop - track.first)),
                "features",
                f"documents-{state}.parquet",
            ),
        ),
        shards=tuple(
            Shard(name, {track.name: File(name, 0, "0" * 64)}, int(n), int(n) * 300)
            for name, n in zip(names, held, strict=True)
        ),
        rejected=f"rejected-{state}.parquet",
        models={f"statistics.{track.name}": f"models/statistics-{state}.parquet"},
        counts={"documents": count, "frames": 300 * count, "seconds": 3.0 * count, "rejected": 0, "statistics_gone": 0},
        libraries={"numpy": ("0",)},
    )
    write_state(place, manifest)
    place.write_bytes("manifest.json", place.read_bytes(state_name(state)))


def receipt_of(stage: str, name: str, parts: tuple[Part, ...], told: dict[str, Any], work: float = 1.0) -> Receipt:
    cost = Cost(1.5, 0.1, 1.7, 300_000_000, 10_000, sum(part.size for part in parts), 1_000_000)
    return Receipt(stage, 1, name, f"{stage} task", work, parts, told, [], cost, "host", 4711, 1.7e9, 1.7e9 + 2)


def _planned(chain_run: ChainRun, name: str) -> Any:
    """The rounds of a step."""
    return plan_rounds(chain_run, chain_run.chain.step(name))


def plan(config: Config, finished: bool = False) -> dict[str, int]:
    """What `swsdist run` does until the first search task is done: read the tables, plan index, queries (whose tasks are taken
    for done) and search, and write the plan, or compare it with that of the folder; with `finished` write receipts and files.
    """
    chain_run = prepare_chain_run(ONLY, config, Ledger(Folder(config.run, config.storage)), StepSelection())
    counts = {}
    chain_run.chain.inputs.read(frozenset(label for step in chain_run.steps for label in step.tables))
    for name in ("index", "queries", "search"):
        step = chain_run.chain.step(name)
        ended = chain_run.outcomes[name] = StepOutcome()
        for one in _planned(chain_run, name):
            ended.receipts += one.done
            counts[name] = counts.get(name, 0) + len(one.names)
            counts[f"{name} left"] = len(one.left)
            if name == "queries" and one.left:
                groups = [_group(chain_run, task.fingerprint, task.payload.examples) for task in one.left]
                ended.receipts = ReceiptList(groups)
                if finished:
                    finish_tasks(chain_run, name, groups)
            elif finished and one.left:
                finish_tasks(chain_run, name, [_searched(task.stage, task.fingerprint, task.work) for task in one.left])
        if name == "index":
            step.stage.finish(chain_run.inputs(step))
        names = Names(one.names) if name == "search" else Names(ended.receipts.fingerprints)
        ended_now = finished or name != "search" or not one.left
        chain_run.plan.steps[name] = PlannedStep(
            step.stage.name, names, len(names), chain_run.inputs(step).place, ended_now
        )
        chain_run.plan.state = dict(chain_run.chain.inputs.state)
    if counts["search left"]:
        save_plans(chain_run.run, {ONLY: chain_run.plan})
    elif load_plans(chain_run.run)[ONLY].tables() != chain_run.plan.tables():
        raise RuntimeError("a finished run is planned otherwise than it was")
    return counts


def _group(chain_run: ChainRun, name: str, examples: list[dict[str, Any]]) -> Receipt:
    told = Extracted(len(examples), [row["query_id"] for row in examples], 50 * len(examples), 0.5 * len(examples))
    part = Part("groups", f"manifest-{name}.json", 0, "0" * 64)
    return receipt_of("queries", name, (part,), told._asdict(), len(examples))


def _searched(stage: str, name: str, work: float) -> Receipt:
    slots = int(name[:4], 16) % 2048
    part = Part("candidates", f"tables/candidates/{name}.parquet", 0, name * 2, 10, (slots, slots + 2047))
    return receipt_of(stage, name, (part,), {"candidates": 10, "fill": None, "saturated": 0}, work)


def finish_tasks(chain_run: ChainRun, step: str, receipts: list[Receipt]) -> None:
    """Write the files of tasks, empty ones, and their receipts as the driver packs them."""
    place = chain_run.place(chain_run.chain.step(step))
    folder = chain_run.ledger.folder(place)
    for receipt in receipts:
        for part in receipt.outputs:
            local = folder.local(part.name)
            if local is None:
                folder.write_bytes(part.name, b"")
            else:
                local.parent.mkdir(parents=True, exist_ok=True)
                local.touch()
    parquet.publish(folder, pack_name(receipts[0].stage), [encoded(receipts)], encoded(receipts[:1]).schema)


def look(config: Config) -> dict[str, int]:
    """Tell what is left of a finished run: the first steps of what `swsdist run` does."""
    return plan(config)


def dry_run(config: Config) -> dict[str, int]:
    """`--dry-run`."""
    return {row.stage: row.done for row in estimates(config, StepSelection(until="search"))}


def stand(config: Config) -> dict[str, int]:
    """`status`."""
    return {one.stage: one.done for one in status(Folder(config.run, config.storage)).stages}


_PARTS = {"plan": plan, "resume": look, "dry-run": dry_run, "status": stand}


def measured(part: str, folder: Path, run: str, storage: dict[str, Any]) -> dict[str, Any]:
    """Seconds, CPU seconds and peak memory (MB) of a part, in a process of its own on one core."""
    call = [sys.executable, "-m", "benchmarks.plan_scale", "--part", part, "--folder", str(folder), "--run", run]
    done = subprocess.run(
        [*call, "--storage", json.dumps(storage)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    say(f"{part}: {found['s']:.1f} s, CPU {found['cpu']:.1f} s, {found['mb']:.0f} MB: {found['counts']}")
    return found


def _do_part(part: str, folder: Path, run: str, storage: dict[str, Any]) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    clock, cpu = time.perf_counter(), time.process_time()
    counts = _PARTS[part](config_of(folder, run, storage))
    lines = Path("/proc/self/status").read_text().splitlines()  # what getrusage says is also of who started it
    peak = next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))
    print(
        json.dumps({"s": time.perf_counter() - clock, "cpu": time.process_time() - cpu, "mb": peak, "counts": counts})
    )


def measure(folder: Path, documents: int, queries: int, tasks: int, finished: int, s3: bool) -> list[Row]:
    """All parts; `tasks` of search to plan, `finished` of a run that is done."""
    groups = len(grouped([f"q{k:06d}" for k in range(queries)]))
    say(f"writing {documents} documents in {tasks // groups} shards")
    make_corpus(folder / "planned", documents, queries, max(1, tasks // groups))
    first = measured("plan", folder / "planned", str(folder / "planned" / "run"), {})
    told = f"{documents} documents, {queries} queries, {first['counts']['search']} search tasks"
    rows = [
        Row(f"plan: {told}", first["s"], "s", at_most(60)),
        Row("plan: CPU", first["cpu"], "s"),
        Row("plan: peak memory", first["mb"], "MB", at_most(1000)),
        Row("plan: documents to index", first["counts"]["index left"], "", at_most(0)),
    ]
    if not finished:
        return rows
    small = folder / "finished"
    make_corpus(small, max(1, documents * finished // tasks), queries, max(1, finished // groups))
    run = str(small / "run")
    plan(config_of(small, run), finished=True)
    for part, goal in (("resume", 10), ("dry-run", 10), ("status", 10)):
        found = measured(part, small, run, {})
        rows += [
            Row(f"{part} of a finished run, {found['counts']['search']} search tasks", found["s"], "s", at_most(goal)),
            Row(f"{part}: CPU", found["cpu"], "s"),
            Row(f"{part}: peak memory", found["mb"], "MB"),
        ]
    return rows + (_on_s3(small, run) if s3 else [])


def _on_s3(small: Path, run: str) -> list[Row]:
    """The same on moto's server, as a process of its own."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    call = [sys.executable, "-m", "benchmarks.plan_scale", "--serve", str(port), "--run", run]
    server = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        say(next(line.strip() for line in server.stdout if "objects" in line))
        storage = {"key": "k", "secret": "s", "endpoint_url": f"http://127.0.0.1:{port}"}
        rows = []
        for part, goal in (("resume", 60), ("status", 60)):
            found = measured(part, small, f"s3://{_BUCKET}/run", storage)
            name = f"{part} from S3, {found['counts']['search']} search tasks"
            rows += [Row(name, found["s"], "s", at_most(goal)), Row(f"{part} from S3: CPU", found["cpu"], "s")]
            rows.append(Row(f"{part} from S3: peak memory", found["mb"], "MB"))
        return rows
    finally:
        server.terminate()
        server.wait()


def _serve(run: Path, port: int) -> None:
    """Be moto's server with a copy of a run; it is put there without requests, of which 100 000 take a quarter of an hour."""
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer
    from moto.s3.models import s3_backends

    backend = s3_backends["123456789012"]["aws"]
    backend.create_bucket(_BUCKET, "us-east-1")
    files = [path for path in sorted(run.rglob("*")) if path.is_file()]
    for path in files:
        backend.put_object(_BUCKET, f"run/{path.relative_to(run).as_posix()}", path.read_bytes())
    server = ThreadedMotoServer("127.0.0.1", port)
    server.start()
    print(f"a finished run of {len(files)} objects lies on moto's server", flush=True)
    threading.Event().wait()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=20_000, help="search tasks to plan")
    parser.add_argument("--finished", type=int, default=2_000, help="search tasks of the run that is done")
    parser.add_argument("--s3", action="store_true", help="also resume from moto's server")
    parser.add_argument("--folder", type=Path, help="an empty folder to work in; default: a temporary one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--part", choices=_PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--storage", type=json.loads, default={}, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        _serve(Path(given.run), given.serve)
        return
    if given.part:
        _do_part(given.part, given.folder, given.run, given.storage)
        return
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-", dir=given.folder) as scratch:
        rows = measure(Path(scratch), given.documents, given.queries, given.tasks, given.finished, given.s3)
    show(rows, given.json)


if __name__ == "__main__":
    main()
