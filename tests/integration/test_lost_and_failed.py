"""What was lost is made again, what failed leaves no trace, and nothing secret is written down."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from commands import in_this_process

import swsdist
from swsdist.chains.search.index import Index
from swsdist.chains.search.reduce import Reduce
from swsdist.errors import DataError, StoreError, TableError, UserError
from swsdist.pipeline.course import Choice
from swsdist.store.maintaining import check


def test_a_failed_shard_leaves_no_trace(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = swsdist.digest(scene.run("index.shards=4", run="whole").folder)
    honest = Index.run
    broken: list[str] = []

    def run(self: Index, task: Any, context: Any) -> Any:
        broken.append(task.fingerprint)
        if len(broken) == 2:
            raise RuntimeError("this shard fails once")
        return honest(self, task, context)

    monkeypatch.setattr(Index, "run", run)
    first = scene.run("index.shards=4")
    assert [failure.reason for failure in first.outcome.failures] == ["bug"]
    assert first.outcome.course.chain.own.manifest.provisional
    second = scene.run("index.shards=4")
    assert not second.outcome.failures
    # Frozen statistics are those of the whole corpus, not of the shards that happened to succeed.
    assert swsdist.digest(second.folder) == whole


def test_a_lost_shard_is_made_again(scene: Any) -> None:
    result = scene.run("index.shards=3")
    before = swsdist.digest(result.folder)
    shards = sorted((Path(result.folder) / "store" / "shards").glob("part-????????????????????????????????.parquet"))
    assert len(shards) == 3
    shards[0].unlink()
    shards[1].write_bytes(shards[1].read_bytes()[:-9])
    again = scene.run("index.shards=3")
    assert again.outcome.course.ended["index"].done > 0
    assert not list(check(swsdist.open_store(f"{result.folder}/store")))
    assert swsdist.digest(result.folder) == before


def test_a_lost_table_of_the_store_is_made_again(finished: Any) -> None:
    before = finished.digest()
    next((finished.folder / "run" / "store").glob("documents-*.parquet")).unlink()
    finished.run()
    assert finished.digest() == before


def test_one_bad_place_does_not_take_the_other_queries_down(scene: Any) -> None:
    with (scene.corpus / "docs.csv").open() as file:
        document = next(csv.DictReader(file))
    with (scene.corpus / "queries.csv").open() as file:
        queries = list(csv.DictReader(file))
    table = scene.folder / "queries.csv"
    end = float(document["duration"])
    rows = [f"{row['query_id']},{scene.corpus / row['path']},,,\n" for row in queries]
    # 20 ms before the recording's end there is no whole frame left.
    table.write_text("query_id,path,doc_id,start,end\n" + "".join(rows) + f"late,,{document['doc_id']},{end - 0.02},\n")
    result = scene.run(f"corpus.queries={table}")
    assert result.rejected()[0][:3] == ("query", "too-short", 1)
    assert not result.outcome.failures
    assert len(result.detections()) > 0


def test_no_usable_query_is_an_error(scene: Any) -> None:
    table = scene.folder / "queries.csv"
    table.write_text("query_id,path\nq1,nothing.wav\n")
    with pytest.raises(DataError, match="none of the 1 query examples"):
        scene.run(f"corpus.queries={table}", "corpus.references=null")


def test_a_mistake_in_the_last_table_is_told_first(scene: Any) -> None:
    table = scene.folder / "refs.csv"
    table.write_text("query_id,doc_id,start,end\nq001,nowhere,1,2\n")
    with pytest.raises(TableError, match="nowhere"):
        scene.run(f"corpus.references={table}")
    assert not (scene.folder / "run" / "store").exists()


def test_no_secret_is_written(scene: Any) -> None:
    sets = ["storage.secret=HUSHHUSH", "storage.client_kwargs.aws_secret_access_key=HUSHHUSH", "storage.anon=false"]
    result = scene.run(*sets)
    for file in Path(result.folder).rglob("*"):
        if file.is_file():
            assert b"HUSHHUSH" not in file.read_bytes(), file
    assert "anon" in (Path(result.folder) / "config.yaml").read_text()


def test_a_report_runs_nothing(scene: Any) -> None:
    scene.run(choice=Choice(until="index"))
    folder = scene.folder / "run"
    assert in_this_process("report", scene.config).code == 4  # what is left to do is told, and is not done
    assert not (folder / "tables" / "candidates").exists()


def test_half_a_run_has_no_digest(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, task: Any, context: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reduce, "run", fail)
    with pytest.raises(KeyboardInterrupt):
        scene.run()
    with pytest.raises(StoreError, match="stage reduce is not done"):
        swsdist.digest(str(scene.folder / "run"))


def test_a_run_folder_that_is_a_file(scene: Any) -> None:
    (scene.folder / "run").write_text("not a folder")
    with pytest.raises(UserError, match="a folder is needed"):
        scene.run()
