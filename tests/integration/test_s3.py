"""Corpus, store and run folder on S3: a real server in a process of its own, and writers that die."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import s3fs
from commands import changed, in_this_process

from swsdist.io.filesystem import Folder
from swsdist.pipeline.receipts import decoded
from swsdist.pipeline.task import Receipt
from swsdist.store.maintaining import check
from swsdist.store.reading import Store


@pytest.fixture
def on_s3(scene: Any, s3: Any) -> Any:
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
    with pytest.MonkeyPatch.context() as patch:  # what the commands take from the environment
        for name, value in {
            "ENDPOINT_URL_S3": "endpoint_url",
            "ACCESS_KEY_ID": "key",
            "SECRET_ACCESS_KEY": "secret",
        }.items():
            patch.setenv(f"AWS_{name}", s3.storage[value])
        told = in_this_process("report", run)
        assert (told.code, folder.exists("report.html")) == (0, True), told.err
        assert f"{run}/report.html" in told.out
        listed = in_this_process("store", "rejected", run)
        assert (listed.code, listed.out) == (0, "0 rejected\n"), listed.err


@pytest.mark.slow
@pytest.mark.until("search")
def test_mixed_places(on_s3: Any, s3: Any, undisturbed: dict[str, str]) -> None:
    """Store on S3, run folder on disk."""
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

    for target in (2, 9):
        process = on_s3.start("index.shards=7", run=run)
        on_s3.wait(lambda target=target: len(receipts()) >= target, process)
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


@pytest.mark.slow
def test_a_writer_that_dies_publishes_nothing(s3: Any, tmp_path: Path) -> None:
    """Also in one put: the server has a part of the body when the writer dies."""
    code = (
        "import sys, json, pathlib\n"
        "from swsdist.io.filesystem import Folder\n"
        "folder = Folder(sys.argv[1], json.loads(sys.argv[2]))\n"
        "with folder.temporary() as path:\n"
        "    path.write_bytes(bytes(90_000_000))\n"
        "    print('uploading', flush=True)\n"
        "    folder.publish(path, 'large')\n"
    )
    place = f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}"
    folder = Folder(place, s3.storage)
    for delay in (0.0, 0.1, 0.2, 0.3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, place, json.dumps(s3.storage)],
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        sizes = {info.size for info in folder.listing().values()}
        assert sizes <= {90_000_000}, "whole or not at all"


@pytest.mark.slow
def test_no_server_and_no_bucket(scene: Any, s3: Any) -> None:
    scene.base = {"storage": s3.storage}
    nowhere = scene.here(run="s3://no-such-bucket-here/run")
    assert nowhere.code == 2, nowhere.err
    assert "no such bucket: no-such-bucket-here [no-such-bucket]" in nowhere.err
    assert "Traceback" not in nowhere.err


@pytest.mark.slow
@pytest.mark.until("search")
def test_a_fitted_transform_in_a_store_on_s3(scene: Any, s3: Any) -> None:
    """Its model is fetched where the extractor is made, and is the same as one on a disk."""
    pca = [{"name": "pca", "options": {"columns": 8, "hours": 1}}]
    sets = ("features=" + json.dumps([{"name": "mfcc", "transforms": pca}]), "index.shards=2")
    scene.run(*sets)
    place = f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}"
    storage = f"storage={json.dumps(s3.storage)}"
    scene.run(*sets, storage, run=place)
    assert scene.digest(place, s3.storage) == scene.digest()
    assert scene.run(*sets, storage, run=place).outcome.tasks_done == 0
    models = Store(Folder(f"{place}/store", s3.storage)).manifest.models
    model = f"{place}/store/{models['pca.mfcc']}"
    named = [{"name": "pca", "options": {"columns": 8, "hours": 1, "model": model}}]
    other = "features=" + json.dumps([{"name": "mfcc", "transforms": named}])
    scene.run(other, storage, "index.shards=2", run="named")
    assert scene.digest("named")["features"] == scene.digest()["features"]
