"""What was lost is made again, what failed leaves no trace, and nothing secret is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import in_this_process

import swsdist
from swsdist.chains.report import publish
from swsdist.config import load_config
from swsdist.core.codes import families
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import DataError, TableError
from swsdist.pipeline.chain_run import StepSelection
from swsdist.stages.index import Index
from swsdist.stages.reduce import Reduce
from swsdist.store.maintaining import check
from tests.support.coded import raises


@pytest.mark.slow
@pytest.mark.until("search")
def test_a_failed_shard_leaves_no_trace(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.run("index.shards=4", run="whole")
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
    assert first.outcome.chain_run.chain.inputs.store.manifest.provisional
    # What would be searched now would be done again: the search waits.
    assert list(first.outcome.chain_run.outcomes) == ["index"]
    second = scene.run("index.shards=4")
    assert not second.outcome.failures
    # Frozen statistics are those of the whole corpus, not of the shards that happened to succeed.
    assert scene.digest() == scene.digest("whole")


@pytest.mark.slow
@pytest.mark.until("search")
def test_a_lost_shard_is_made_again(scene: Any) -> None:
    result = scene.run("index.shards=3")
    before = scene.digest()
    shards = sorted((Path(result.folder) / "store" / "shards").glob("part-????????????????????????????????.parquet"))
    assert len(shards) == 3
    shards[0].unlink()
    shards[1].write_bytes(shards[1].read_bytes()[:-9])
    again = scene.run("index.shards=3")
    assert again.outcome.chain_run.outcomes["index"].done > 0
    assert not list(check(swsdist.open_store(f"{result.folder}/store")))
    assert scene.digest() == before


def test_a_lost_table_of_the_store_is_made_again(finished: Any) -> None:
    before = finished.digest()
    next((finished.folder / "run" / "store").glob("documents-*.parquet")).unlink()
    finished.run()
    assert finished.digest() == before


def test_a_damaged_file_of_receipts_is_named_and_its_tasks_are_done_again_without_it(
    finished: Any, undisturbed: dict[str, str]
) -> None:
    pack = finished.folder / "run" / "receipts" / "search.parquet"
    pack.write_bytes(pack.read_bytes()[: pack.stat().st_size // 2])
    with pytest.raises(DataError, match=r"search\.parquet: the file is damaged") as told:
        finished.run()
    assert "remove it and run again" in str(told.value)
    pack.unlink()
    assert finished.run().outcome.chain_run.outcomes["search"].done > 0
    assert finished.digest() == undisturbed


def test_a_mistake_in_the_last_table_is_told_first(scene: Any) -> None:
    table = scene.folder / "refs.csv"
    table.write_text("query_id,doc_id,start,end\nq001,nowhere,1,2\n")
    with pytest.raises(TableError, match="nowhere"):
        scene.run(f"corpus.references={table}")
    assert not (scene.folder / "run" / "store").exists()


def test_no_secret_is_written(scene: Any) -> None:
    clients = {
        "endpoint_url": "https://me:HUSHHUSH@localhost:9000/x",
        "aws_secret_access_key": "HUSHHUSH",
        "verify": "/etc/ca.pem",
        "region_name": "eu-1",
    }
    storage = {
        "anon": False,
        "secret": "HUSHHUSH",
        "username": "HUSHHUSH",  # s3fs's other name of the key
        "endpoint_url": "http://HUSHHUSH@localhost:9000",
        "client_kwargs": clients,
        "s3_additional_kwargs": {"SSECustomerKey": "HUSHHUSH", "ServerSideEncryption": "AES256"},
        "config_kwargs": {"proxies": {"http": "http://me:HUSHHUSH@proxy"}, "s3": {"addressing_style": "path"}},
        "custom": ["HUSHHUSH", {"deep": "HUSHHUSH"}],
    }
    result = scene.run(f"storage={json.dumps(storage)}")
    for file in Path(result.folder).rglob("*"):
        if file.is_file():
            assert b"HUSHHUSH" not in file.read_bytes(), file
    told = load_config(Path(result.folder) / "config.yaml").storage
    assert told == {
        "anon": False,
        "endpoint_url": "http://localhost:9000",
        "client_kwargs": {"endpoint_url": "https://localhost:9000/x", "verify": "/etc/ca.pem", "region_name": "eu-1"},
        "s3_additional_kwargs": {"ServerSideEncryption": "AES256"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }


def test_a_report_runs_nothing(scene: Any) -> None:
    scene.run(selection=StepSelection(until="index"))
    folder = scene.folder / "run"
    assert in_this_process("report", scene.config).code == 4  # what is left to do is told, and is not done
    assert not (folder / "tables" / "candidates").exists()


def test_half_a_run_has_no_digest(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, task: Any, context: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reduce, "run", fail)
    with pytest.raises(KeyboardInterrupt):
        scene.run()
    with raises(families.NOT_FINISHED, stage="reduce"):
        swsdist.digest(str(scene.folder / "run"))


def test_a_run_folder_that_is_a_file(scene: Any) -> None:
    (scene.folder / "run").write_text("not a folder")
    with raises(storage_codes.EXISTING_FILE, where=str(scene.folder / "run")):
        scene.run()


@pytest.mark.slow
def test_a_report_is_of_the_tables_that_are_there(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was interrupted is made the next time, though nothing else is left to do."""

    def killed(*given: Any) -> Any:
        raise KeyboardInterrupt

    def shown() -> tuple[str, str]:
        return scene.report()["digest"], (scene.folder / "run" / "report.html").read_text()

    scene.run()
    first, page = shown()
    other = "search.distance=cosine-squared"
    for place in ("build_report", "render_page", "write_report_json"):
        with monkeypatch.context() as patch:
            patch.setattr(publish, place, killed)
            with pytest.raises(KeyboardInterrupt):
                scene.run(other)
        result = scene.run(other)
        assert result.outcome.tasks_done == 0
        assert result.report is not None
        assert shown()[0] == result.report.digest != first
        assert shown()[1] != page
        assert scene.run(other).report is None  # up to date now
        scene.run()
        assert shown()[0] == first


def test_what_only_the_report_shows_makes_it_anew(own_corpus: Any) -> None:
    own_corpus.run()
    assert own_corpus.run("executor.workers=3", "index.shard_hours=2").report is None
    changed = own_corpus.run("report.exports=[csv]")
    assert changed.outcome.tasks_done == 0
    assert own_corpus.report()["resources"]["pl_lambda"] == 0.1
    table = own_corpus.corpus / "queries.csv"
    header, *rows = table.read_text().splitlines()
    at = header.split(",").index("term") if "term" in header else None
    if at is None:
        table.write_text("\n".join([f"{header},term", *(f"{row},word" for row in rows)]) + "\n")
    else:
        cells = [row.split(",") for row in rows]
        table.write_text("\n".join([header, *(",".join([*row[:at], "word", *row[at + 1 :]]) for row in cells)]) + "\n")
    assert own_corpus.run("report.exports=[csv]").outcome.tasks_done == 0
    assert {row["term"] for row in own_corpus.report()["per_query"]} == {"word"}
