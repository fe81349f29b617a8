"""A search task is as large, and opens as much, however large the collection is that its shard is a part of."""

from __future__ import annotations

import io
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from swsdist.config import load_config
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Task
from tests.support.tables import read_rows, write_rows


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    read_of: dict[str, int]

    def readinto(self, buffer: Any) -> int:
        """As a file does."""
        count = super().readinto(buffer) or 0
        self.read_of[str(self.name)] = self.read_of.get(str(self.name), 0) + count
        return count

    def read(self, size: int | None = -1) -> bytes:
        """As a file does."""
        data = super().read(-1 if size is None else size) or b""
        self.read_of[str(self.name)] = self.read_of.get(str(self.name), 0) + len(data)
        return data


def search_tasks(scene: Any, documents: int) -> tuple[Any, list[Task], Context]:
    """Index so many documents, the first ones those of the corpus, the others copies of its shortest; plan the search."""
    table = scene.corpus / "docs.csv"
    rows = read_rows(scene.corpus / "docs.all.csv")
    short = min(rows, key=lambda row: (scene.corpus / row["path"]).stat().st_size)
    rows = rows[:2] + [{**short, "doc_id": f"x{k:03d}", "speaker": f"s{k:03d}"} for k in range(documents - 2)]
    write_rows(table, rows)
    config = load_config(scene.config, [f"run={scene.folder}/of-{documents}", f"index.shards={documents}"])
    chain_run = run_stages(config, StepSelection(until="queries"), Progress()).chain_run
    step = chain_run.chain.step("search")
    return step.stage, list(step.stage.plan(chain_run.inputs(step))), Context(chain_run.run, {})


def test_of_a_shard(own_corpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_corpus.corpus / "docs.csv").rename(own_corpus.corpus / "docs.all.csv")
    costs = []
    for documents in (3, 24):
        stage, tasks, context = search_tasks(own_corpus, documents)
        assert len(tasks) == documents
        sent = len(pickle.dumps(tasks[0]))
        stage.run(tasks[1], context)  # the first of a worker: it reads which row groups are of which shard
        read: dict[str, int] = {}
        monkeypatch.setattr(Counted, "read_of", read, raising=False)
        monkeypatch.setattr(Folder, "open", lambda self, name, ahead=0: Counted(self.path(name)))
        tracemalloc.start()
        try:
            stage.run(tasks[0], context)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            monkeypatch.undo()
        kinds = {Path(name).name.partition("-")[0]: size for name, size in read.items()}
        costs.append((sent, kinds, peak))
    (few_sent, few, few_peak), (many_sent, many, many_peak) = costs
    assert many_sent - few_sent < 100, "a search task names its own shard only"
    assert few.keys() == many.keys() == {"part", "documents"}
    assert many["part"] == few["part"]
    assert many["documents"] - few["documents"] < 100
    assert many_peak < 1.1 * few_peak
