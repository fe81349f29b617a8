"""The commit of a store at scale: fabricated tasks of `index`, and the real driver.

The tables of documents that the tasks of `index` leave (no audio, no frames) and their receipts are written, for a corpus of
short recordings in no order, half without a speaker. Then a process of its own, on one core, plans the stage and finishes it,
which commits the store. Peaks of memory are those of the process, with all that it imports.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.plan_scale import config_of, finish_tasks, receipt_of
from benchmarks.rows import Row, at_most, say, show
from swsdist.core.types import CORPUS, DOCUMENTS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection, plan_rounds, prepare_chain_run
from swsdist.pipeline.ledger import ONLY, Ledger, StepOutcome
from swsdist.pipeline.task import Part, Receipt
from swsdist.stages.buckets import Indexed
from swsdist.store import parquet
from swsdist.store.manifest import REJECTED_DOCUMENTS
from swsdist.store.writing import documents_name, rejected_name, shard_name

_FRAMES = 300
#: Recordings that exist; documents share them.
_FILES = 1000


def _make_corpus(folder: Path, documents: int) -> None:
    """Tables of a corpus, and its recordings, which are empty."""
    (folder / "audio").mkdir()
    for k in range(_FILES):
        (folder / "audio" / f"recording-{k:07d}.wav").touch()
    names = np.random.default_rng(0).permutation(documents)
    columns = {
        "doc_id": [f"doc-{k:07d}" for k in names.tolist()],
        "channel": np.ones(documents, np.int32),
        "path": [str(folder / "audio" / f"recording-{k % _FILES:07d}.wav") for k in range(documents)],
        "duration": np.full(documents, _FRAMES / 100),
        "speaker": [f"s{k % 500}" if k % 2 else None for k in range(documents)],
    }
    parquet.publish(Folder(str(folder)), "documents.parquet", [pa.table(columns, schema=CORPUS)], CORPUS)


def _prepare(folder: Path) -> None:
    """Do the tasks of `index` without audio."""
    chain_run = _chain_run(folder)
    (only,) = _rounds(chain_run)
    receipts = [_indexed(chain_run, task.fingerprint, task.payload.documents) for task in only.left]
    finish_tasks(chain_run, "index", receipts)


def _indexed(chain_run: ChainRun, name: str, rows: list[dict[str, Any]]) -> Receipt:
    """Write the tables of a task, and make its receipt."""
    store = chain_run.ledger.folder(chain_run.place(chain_run.chain.step("index")))
    (source,) = chain_run.chain.inputs.features.sources
    dimension, count = source.extractor.dimension, len(rows)
    numbers = np.random.default_rng(int(name[:8], 16))
    moments = numbers.random((2, count * dimension))
    offsets = np.arange(0, count * dimension + 1, dimension, dtype=np.int32)
    mean, variance = (pa.ListArray.from_arrays(offsets, pa.array(values)) for values in moments)
    columns: dict[str, Any] = {
        field: [row[field] for row in rows] for field in ("doc_id", "channel", "path", "speaker")
    }
    columns |= {
        "duration": np.full(count, _FRAMES / 100),
        "frames": np.full(count, _FRAMES),
        "shard": [shard_name(name)] * count,
        "rows": np.ones(count, np.int32),
        "identity": [row["identity"] for row in rows],
        "sha256": [hashlib.sha256(row["doc_id"].encode()).hexdigest() for row in rows],
        "mean": mean,
        "variance": variance,
        "speech": pa.array([numbers.bytes(_FRAMES // 8 + 1) for _ in rows], pa.large_binary()),
    }
    columns |= {field.name: pa.nulls(count, field.type) for field in DOCUMENTS if field.name not in columns}
    table = pa.table({field: columns[field] for field in DOCUMENTS.names}, schema=DOCUMENTS)
    parts = (
        Part("features", shard_name(name), 0, "0" * 64, _FRAMES * count),
        Part("documents", *parquet.publish(store, documents_name(name), [table], DOCUMENTS), count),
        Part(
            "rejected",
            *parquet.publish(store, rejected_name(name), [REJECTED_DOCUMENTS.empty_table()], REJECTED_DOCUMENTS),
            0,
        ),
    )
    told = Indexed(count, _FRAMES * count, _FRAMES / 100 * count)
    return receipt_of("index", name, parts, told._asdict(), _FRAMES / 100 * count)


def _chain_run(folder: Path) -> ChainRun:
    config = config_of(folder, str(folder / "run"))
    chain_run = prepare_chain_run(ONLY, config, Ledger(Folder(config.run)), StepSelection(until="index"))
    chain_run.chain.inputs.read(frozenset({"documents"}))
    return chain_run


def _rounds(chain_run: ChainRun) -> list[Any]:
    return list(plan_rounds(chain_run, chain_run.chain.step("index")))


def _commit(folder: Path) -> dict[str, Any]:
    """Plan the stage and commit it: CPU seconds and peak memory (MB) of each, and what was committed."""
    found: dict[str, Any] = {}
    clock = time.process_time()
    chain_run = _chain_run(folder)
    step = chain_run.chain.step("index")
    (only,) = _rounds(chain_run)
    chain_run.outcomes["index"] = StepOutcome(receipts=only.done)
    found["plan"] = {"cpu": time.process_time() - clock, "mb": _peak()}
    Path("/proc/self/clear_refs").write_text("5")
    clock = time.process_time()
    step.stage.finish(chain_run.inputs(step))
    found["finish"] = {"cpu": time.process_time() - clock, "mb": _peak()}
    manifest = chain_run.chain.inputs.store.manifest
    found["state"], found["documents"] = manifest.fingerprint, manifest.counts["documents"]
    found["table"] = hashlib.sha256((folder / "store" / manifest.tracks[0].documents).read_bytes()).hexdigest()
    return found


def _peak() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))


def _apart(part: str, folder: Path) -> str:
    """Output of a part, in a process of its own on one core."""
    call = [sys.executable, "-m", "benchmarks.commit_scale", "--part", part, "--folder", str(folder)]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


def measure(folder: Path, documents: int) -> list[Row]:
    """The commit of so many documents."""
    say(f"writing {documents} documents")
    _make_corpus(folder, documents)
    _apart("prepare", folder)
    found = json.loads(_apart("commit", folder))
    say(json.dumps(found))
    rows = []
    for part in ("plan", "finish"):
        rows += [
            Row(f"{part}: {documents} documents, CPU", found[part]["cpu"], "s"),
            Row(f"{part}: {documents} documents, peak memory", found[part]["mb"], "MB", at_most(1500)),
        ]
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[20_000])
    parser.add_argument("--folder", type=Path, help="a folder to work in; default: a temporary one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--part", choices=("prepare", "commit"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        if given.part == "prepare":
            _prepare(given.folder)
        else:
            print(json.dumps(_commit(given.folder)))
        return
    rows = []
    for documents in given.documents:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-", dir=given.folder) as scratch:
            rows += measure(Path(scratch), documents)
    show(rows, given.json)


if __name__ == "__main__":
    main()
