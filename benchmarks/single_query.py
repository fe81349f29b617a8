"""What a search task adds to the engine, reading and preparing documents, for one query and for all.

On Mboshi dev, four times over. The whole task is `search_shard` of each shard, as a search without memory does it; the engine
alone searches the same frames, prepared in memory. CPU seconds of one thread, least of three rounds in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from benchmarks.corpora import base, repeated
from benchmarks.rows import Row, at_most, main, say
from swsdist.config.search import Search
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.shard import Documents, engine_settings, search_shard
from swsdist.methods.query.extraction import prepared
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.stages.queries import examples_in
from swsdist.store.reading import Store

_ROUNDS = 3


def measure(scratch: Path) -> list[Row]:
    """Both, for one query and for all."""
    corpus = repeated(base(scratch), 4, scratch)
    config = corpus.config(scratch / "run", executor={"kind": "serial"})
    outcome = run_stages(config, StepSelection(until="queries"), Progress())
    store, options = Store(outcome.chain_run.chain.inputs.store.folder), Search()
    queries = prepared(
        examples_in(outcome.chain_run), store.statistics(), options, store.manifest.tracks[0].dimension, 1
    )
    shards = [shard.name for shard in store.manifest.shards]
    numba.set_num_threads(1)
    memory: list[tuple[Documents, list[tuple[int, list[Any]]]]] = []
    for shard in shards:
        documents = Documents(store, [shard], options)
        memory.append((documents, [(k, list(blocks)) for k, blocks in documents.stream()]))
    rows = []
    for examples, goal in ((queries[:1], 1.5), (queries, 1.15)):
        say(f"single_query: {len(examples)} queries")

        def task(examples: Any = examples) -> None:
            for shard in shards:
                search_shard(store, shard, examples, options)

        def engine(examples: Any = examples) -> None:
            for documents, frames in memory:
                settings = engine_settings(options, documents.distance, store.manifest.shift)
                search(examples, frames, documents.most, settings)

        engine()  # loads the kernels
        rounds = [(_cpu(task), _cpu(engine)) for _ in range(_ROUNDS)]
        whole, alone = (min(column) for column in zip(*rounds, strict=True))
        name = f"{corpus.name}, {len(examples)} {'query' if len(examples) == 1 else 'queries'}"
        rows += [
            Row(f"{name}: whole search task against the engine alone", whole / alone, "ratio", at_most(goal)),
            Row(f"{name}: whole search task", whole, "CPU s"),
        ]
    return rows


def _cpu(work: Callable[[], None]) -> float:
    clock = time.process_time()
    work()
    return time.process_time() - clock


if __name__ == "__main__":
    main(measure, __doc__)
