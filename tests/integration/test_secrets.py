"""Keys of every form are planted in a run; afterwards they are in no file, in no output, and on no command line."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import soundfile

from swsdist.io.filesystem import Folder
from tests.support.tables import read_rows, write_rows

#: In every planted value.
HUSH = "HuShHuSh"


def planted(name: str) -> str:
    """A value as keys have them."""
    return f"{HUSH}/{name}+{uuid.uuid4().hex[:8]}="


SIGNED = f"X-Amz-Credential={HUSH}%2Fkey&X-Amz-Security-Token={HUSH}%2Ftoken&X-Amz-Signature={HUSH}0a1b"


@contextmanager
def watched_commands() -> Iterator[list[str]]:
    """Command lines with something planted, of whatever process, while this lasts."""
    found: list[str] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            for place in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    if HUSH.encode() in (text := place.read_bytes()):
                        found.append(text.decode(errors="replace"))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        ended.set()
        watcher.join()


def telling(folder: Folder) -> list[str]:
    """Files of a folder with something planted; tables, which are compressed, are looked through value by value."""
    found = []
    for name in folder.listing():
        held = HUSH.encode() in folder.read_bytes(name)
        if not held and name.endswith(".parquet"):
            with folder.open(name) as file:
                table = pq.read_table(file)
            held = HUSH in str(table.select([n for n in table.column_names if n != "features"]).to_pylist())
        if held:
            found.append(name)
    return found


def with_keys(scene: Any) -> dict[str, str]:
    """Keys in the environment of drivers; and a recording whose task fails and tells of them."""
    scene.env |= {name: planted(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")}
    scene.env["TELL"] = f"https://me:{HUSH}@localhost/b/k?{SIGNED}"
    scene.sabotage(how="tell", samples=[int(soundfile.info(scene.corpus / "audio" / "d005.flac").frames)])
    return {"key": planted("key"), "secret": planted("secret"), "token": planted("token")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["serial", pytest.param("ray", marks=pytest.mark.ray)])
def test_no_key_is_told(scene: Any, s3: Any, kind: str) -> None:
    scene.move_to_s3(s3, {**with_keys(scene), "endpoint_url": s3.endpoint})
    scene.base |= {
        "features": {"name": "saboteur"},
        "index": {"shards": 3},
        "executor": {"kind": kind, "workers": 1, "attempts": 1},
    }
    with watched_commands() as told:
        done = scene.go(run=scene.base["run"], flags=("--keep-going",))
    assert done.returncode == 4, done.stderr
    assert told == []
    assert HUSH not in done.stdout + done.stderr
    assert "cannot reach https://localhost/b/k?X-Amz-Credential=***" in done.stderr
    run = Folder(scene.base["run"], s3.storage)
    names = set(run.listing())
    assert {"config.yaml", "plan.json", "report.json", "report.html", "rejected.parquet"} <= names
    assert any(name.startswith("failed/") for name in names)
    assert telling(run) == []
    assert telling(Folder(scene.env["TMPDIR"])) == []


def test_no_key_is_told_of_what_cannot_be_reached(scene: Any) -> None:
    """The endpoint has a password, which some S3 clients tell when they cannot reach it."""
    quick = {"connect_timeout": 0.5, "retries": {"max_attempts": 0}}
    storage = {**with_keys(scene), "endpoint_url": f"http://me:{HUSH}@127.0.0.1:9", "config_kwargs": quick}
    scene.base = {"storage": storage}
    done = scene.go(run="s3://nowhere/run")
    assert done.returncode == 2, done.stderr
    assert HUSH not in done.stdout + done.stderr
    assert "the S3 server does not answer" in done.stderr


@pytest.mark.slow
def test_no_signed_url_is_written(own_corpus: Any) -> None:
    rows = read_rows(own_corpus.corpus / "docs.csv")
    for row, scheme in zip(rows, ("https", "s3"), strict=False):
        row["path"] = f"{scheme}://bucket/{row['doc_id']}.flac?{SIGNED}"
    write_rows(own_corpus.corpus / "docs.csv", rows)
    done = own_corpus.go()
    assert done.returncode in (0, 2, 3), done.stderr
    assert HUSH not in done.stdout + done.stderr
    assert telling(Folder(str(own_corpus.folder / "run"))) == []
