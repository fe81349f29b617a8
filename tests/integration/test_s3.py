"""Corpus, store, run, config and lists on S3, by a real server: written, killed, followed, cancelled, cleaned, read."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import s3fs
from commands import changed, expecting, in_this_process

from swsdist.config import load_config
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.operation import progress
from swsdist.pipeline.operation.monitor import Follower
from swsdist.pipeline.receipts import decoded
from swsdist.pipeline.task import Receipt
from swsdist.store.maintaining import check
from swsdist.store.reading import Store
from tests.support.coded import raises, says


@pytest.fixture
def environment(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells commands of the server."""
    for name, value in {"ENDPOINT_URL": "endpoint_url", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", s3.storage[value])


@pytest.fixture
def on_s3(scene: Any, s3: Any, environment: None) -> Any:
    """The scene with its corpus on S3; `scene.base["run"]` is there too."""
    scene.move_to_s3(s3, s3.storage)
    return scene


@pytest.mark.slow
def test_serial(on_s3: Any, s3: Any, undisturbed: dict[str, str]) -> None:
    run = on_s3.base["run"]
    first = on_s3.run("index.shards=3", run=run)
    assert on_s3.digest(run, s3.storage) == undisturbed
    folder = Folder(run, s3.storage)
    names = set(folder.listing())
    assert {"report.json", "report.html", "rejected.parquet", "config.yaml", "plan.json"} <= names
    assert "exports/detections.csv" in names
    assert "lock.json" not in names
    assert first.report is not None
    before = folder.listing()
    again = on_s3.run("index.shards=3", run=run)
    assert again.outcome.tasks_done == 0
    assert changed(before, folder.listing()) == {"events", "status.json"}, "it says only that it was asked"
    assert not list(check(Store(Folder(f"{run}/store", s3.storage))))
    folder.remove("report.html")
    told = in_this_process("report", run)
    assert (told.code, folder.exists("report.html")) == (0, True), told.err


@pytest.mark.slow
@pytest.mark.until("search")
def test_mixed_places(on_s3: Any, s3: Any, undisturbed: dict[str, str]) -> None:
    on_s3.run(f"index.store={on_s3.base['run']}-store")
    assert on_s3.digest(storage=s3.storage) == undisturbed


@pytest.mark.ray
@pytest.mark.xdist_group("ray")
@pytest.mark.until("reduce")
def test_driver_killed_then_ray(on_s3: Any, s3: Any, cluster: Any, undisturbed: dict[str, str]) -> None:
    run = on_s3.base["run"]
    folder = Folder(run, s3.storage)

    def receipts() -> dict[str, float]:
        found = {}
        for name in folder.listing():
            if "receipts/" in name:
                with suppress(FileNotFoundError):  # packed meanwhile
                    data = folder.read_bytes(name)
                    packed = name.endswith(".parquet")
                    for receipt in decoded(pq.read_table(io.BytesIO(data))) if packed else [Receipt.from_json(data)]:
                        found[receipt.fingerprint] = receipt.finished
        return found

    process = on_s3.start("index.shards=7", run=run)
    on_s3.wait(lambda: len(receipts()) >= 9, process)
    process.kill()
    process.communicate()
    before = receipts()
    on_s3.run(*cluster.sets, "executor.workers=2", "index.shards=7", run=run)
    assert on_s3.digest(run, s3.storage) == undisturbed
    assert before.items() <= receipts().items()


@pytest.mark.slow
def test_killed_in_mid_upload(on_s3: Any, s3: Any) -> None:
    """The shard is so large that it goes up in parts; its writer dies between them."""

    client = s3fs.S3FileSystem(**s3.storage, skip_instance_cache=True)
    large = ("features.options={n_mfcc: 128, n_mels: 128, hop_length: 11}",)
    run = on_s3.base["run"]
    key = run.removeprefix(f"s3://{s3.bucket}/")

    def uploading() -> list[str]:
        answer = client.call_s3("list_multipart_uploads", Bucket=s3.bucket)
        return [one["Key"] for one in answer.get("Uploads", []) if one["Key"].startswith(key)]

    process = on_s3.start(*large, run=run, command="index")
    on_s3.wait(uploading, process)
    process.kill()
    process.communicate()
    (shard,) = uploading()
    assert shard.startswith(f"{key}/store/shards/part-")
    names = set(Folder(run, s3.storage).listing())
    assert not any(name.startswith("store/") and name != "store/lock.json" for name in names), "nothing was published"
    on_s3.run(*large, run=run, until="index")
    store = Store(Folder(f"{run}/store", s3.storage))
    assert f"{run}/store/".removeprefix(f"s3://{s3.bucket}/") + store.manifest.shards[0].name == shard
    assert store.manifest.shards[0].size > 100_000_000
    assert not list(check(store))


swsdist = expecting(in_this_process)


@pytest.mark.slow
def test_it_is_followed_and_cancelled(on_s3: Any, s3: Any) -> None:
    run = on_s3.base["run"]
    folder = Folder(run, s3.storage)
    on_s3.sabotage(hold=2)  # recordings, which may be a task's
    process = on_s3.start("features.name=saboteur", "index.shards=7", run=run)
    try:
        on_s3.wait(_said(folder), process)
        told = json.loads(swsdist("status", run, "--json").out)
        assert (told["state"], told["stages"][0]["stage"], told["stages"][0]["tasks"]) == ("running", "index", 7)
        command = [sys.executable, "-m", "swsdist.cli.main", "status", run, "--follow", "--every", "0.3"]
        follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith("running")
        assert swsdist("cancel", run).out == "cancelled\n"
        _, err = process.communicate(timeout=240)
        assert process.returncode == 143, err
        assert says(err, codes.RUN_CANCELLED)
        followed = follower.communicate(timeout=240)[0]
        assert followed.endswith("the run ended: cancelled\ncancelled\n"), followed
    finally:
        process.kill()
        process.communicate()
    assert swsdist("status", run).out.startswith("cancelled")
    assert not folder.exists("lock.json")
    assert not folder.exists("cancel.json")
    assert says(swsdist("cancel", run, code=2).err, families.NOT_RUNNING)
    events = [json.loads(line) for line in swsdist("status", run, "--follow", "--json").out.splitlines()]
    assert events == list(Follower(folder).new())
    assert [event["state"] for event in events if event["event"] == "run-ended"] == ["cancelled"]
    assert "run incomplete: nothing removed" in swsdist("clean", run, "--dry-run").out


@pytest.mark.slow
def test_it_is_cleaned_as_on_a_disk(finished: Any, s3: Any, environment: None, undisturbed: dict[str, str]) -> None:
    finished.run("reduce.buckets=3")
    here = finished.folder / "run"
    folder = Folder(f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}/run", s3.storage)
    for path in here.rglob("*"):
        if path.is_file():
            folder.write_bytes(path.relative_to(here).as_posix(), path.read_bytes())
    before = set(folder.listing())
    shown = swsdist("clean", folder.root, "--dry-run").out
    assert set(folder.listing()) == before
    assert "/tables/detections/" in shown
    assert "no plan names it" in shown
    assert shown.replace(folder.root, "RUN") == swsdist("clean", str(here), "--dry-run").out.replace(str(here), "RUN")
    for run in (folder.root, str(here)):
        swsdist("clean", run)
    left = set(folder.listing())
    assert left == set(Folder(str(here)).listing()) < before
    assert swsdist("status", folder.root).out.startswith("done")
    assert finished.digest(folder.root, s3.storage) == undisturbed
    assert finished.run("reduce.buckets=3").outcome.tasks_done == 0, "nothing that is needed is gone"


def _said(run: Folder) -> Callable[[], bool]:
    """Whether a driver has said that a task is done."""

    def said() -> bool:
        with suppress(FileNotFoundError):
            found = progress.read(run)
            return found is not None and any(one.done for one in found.stages)
        return False

    return said


@pytest.fixture
def place(s3: Any, environment: None) -> Folder:
    return Folder(f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}", s3.storage)


def write(place: Folder, name: str, values: dict[str, Any]) -> str:
    place.write_bytes(name, json.dumps(values).encode())  # JSON is YAML
    return place.path(name)


def test_paths_are_relative_to_the_file(place: Folder) -> None:
    write(place, "corpora/mine.yaml", {"documents": "../tables/docs.csv", "queries": "/data/queries.csv"})
    config = write(place, "systems/mine.yaml", {"run": "../runs/one", "corpus": "../corpora/mine.yaml"})
    loaded = load_config(config)
    assert loaded.run == place.path("runs/one")
    assert loaded.corpus.documents == place.path("tables/docs.csv")
    assert loaded.corpus.queries == "/data/queries.csv"
    assert loaded.system == "mine"
    assert load_config(config, corpus=place.path("corpora/mine.yaml"), run="s3://other/run").run == "s3://other/run"


def test_what_is_not_there_or_wrong(place: Folder) -> None:
    with pytest.raises(UserError, match="there is no such config") as gone:
        load_config(place.path("none.yaml"))
    assert gone.value.where == place.path("none.yaml")
    config = write(place, "a.yaml", {"run": "run", "corpus": "none.yaml"})
    with raises(families.UNREADABLE_FILE, path="none.yaml") as caught:
        load_config(config)
    assert caught.value.where == f"{config}:1"
    bad = write(place, "b.yaml", {"run": "run", "corpus": {"documents": "d.csv"}, "serach": {}})
    with raises(config_codes.UNKNOWN_KEY, meant="; did you mean search?"):
        load_config(bad)
    err = swsdist("run", "http://host/x.yaml", code=2).err
    assert says(err, families.UNSUPPORTED)
    assert "does not exist" in swsdist("run", "none.yaml", code=2).err


#: Commands with {p} for the folder that corpus, run and store lie in, on a disk or on S3.
READING = {
    "status": "status {p}/run",
    "digest": "digest {p}/run",
    "resources": "resources {p}/run",
    "store info": "store info {p}/run/store --documents",
    "store check": "store check {p}/run/store",
    "store rejected": "store rejected {p}/run",
    "store cat": "store cat {p}/run/store d001",
    "search": "search {p}/run/store --query {p}/corpus/{query} --top 2 --csv",
    "compare": "compare a={p}/run b={p}/run --resamples 10 --documents {p}/corpus/docs.csv --queries {p}/corpus/queries.csv",
    "score a list": "score --references {p}/corpus/refs.csv --seconds 300 --protocol sws2013 -s {p}/run/exports/detections.csv",
    "calibrate": "calibrate --references {p}/corpus/refs.csv --seconds 300 --protocol sws2013 --method logistic "
    "-s {p}/run/exports/detections.csv --out {out}/c.csv --save {out}/fit.json",
    "fuse": "fuse a={p}/run/exports/detections.csv b={p}/run/exports/detections.csv --seconds 300 "
    "--protocol sws2013 --out {out}/f.csv",
    "paper table": "paper table {p}/run/exports/detections.csv {out}/t.md --first 3",
}


@pytest.fixture
def places(_finished: Any, s3: Any, environment: None, tmp_path: Path) -> dict[str, str]:
    """The finished run and its corpus on a disk, and copies on S3."""
    folder = Folder(f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}", s3.storage)
    own = tmp_path / "own"
    own.mkdir()
    (own / "run").symlink_to(_finished.folder / "run")
    (own / "corpus").symlink_to(_finished.corpus)
    for top in ("run", "corpus"):
        for path in sorted((own / top).rglob("*")):
            if path.is_file():
                folder.write_bytes(f"{top}/{path.relative_to(own / top).as_posix()}", path.read_bytes())
    return {"disk": str(own), "s3": folder.root}


@pytest.mark.slow
def test_reading(places: dict[str, str], tmp_path: Path) -> None:
    corpus = Path(places["disk"]) / "corpus"
    query = min((corpus / "queries").iterdir()).relative_to(corpus).as_posix()
    for name, text in READING.items():
        said = {}
        for where, place in places.items():
            words = [word.format(p=place, query=query, out=tmp_path) for word in text.split()]
            ended = in_this_process(*words)
            assert ended.code == 0, (name, where, ended.err)
            said[where] = re.sub(r"\d\d:\d\d:\d\d", "", ended.out.replace(place, ""))  # the time of day
        assert said["s3"] == said["disk"], name


def test_what_is_written_beside_a_run_goes_to_a_disk(tmp_path: Path) -> None:
    for words in (
        "search {p}/run/store --query x.wav --html s3://bucket/x.html",
        "search {p}/run/store --query x.wav --clips s3://bucket/clips",
        "compare a={p}/run b={p}/run --csv s3://bucket/csv",
        "paper table {p}/run/exports/detections.csv s3://bucket/t.md",
    ):
        ended = in_this_process(*words.format(p=tmp_path).split(), cwd=tmp_path)
        assert (ended.code, says(ended.err, families.OUTPUT_REFUSED)) == (2, True), words
        assert not list(tmp_path.iterdir())
