"""Folders, local and on S3, errors of both, and names that do not lead out of them."""

import errno
import json
import os
import pickle
import resource
import socket
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import swsdist
from swsdist.audio.reader import write_sound
from swsdist.core.codes import families
from swsdist.core.codes import storage as codes
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import DamagedTransferError, StorageError, StoreError, TransientError, UserError
from swsdist.features.fitting.files import write_document
from swsdist.features.fitting.interface import Document
from swsdist.io.failures import explain, storage_errors
from swsdist.io.filesystem import Folder, demand_inside, identify, is_remote, locate, open_path
from swsdist.pipeline.execution.executor import error_action, failure_of, origin
from swsdist.pipeline.ledger import SCHEMA as PLAN
from swsdist.pipeline.ledger import Ledger, load_plans
from swsdist.pipeline.task import Cost, Part, Receipt, Task
from swsdist.store import manifest, parquet
from tests.support.coded import raises

TASK = Task("index", "0" * 32, "shard 1 of 1", 1.0, {})


def caught(do, *arguments) -> OSError:
    with pytest.raises(OSError) as found:
        do(*arguments)
    return found.value


@contextmanager
def few_files(number: int):
    """At most so many open files in this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_a_file_system_does(tmp_path: Path) -> None:
    """Each as the system itself says it."""
    file, loop, full = tmp_path / "file", tmp_path / "loop", tmp_path / "folder"
    file.write_text("x")
    loop.symlink_to(loop)
    (full / "sub").mkdir(parents=True)
    with Path("/dev/full").open("wb", buffering=0) as device:
        no_room = caught(device.write, b"x")
    with few_files(20):
        opened = []
        try:
            many = caught(lambda: opened.extend(file.open() for _ in range(30)))
        finally:
            for one in opened:
                one.close()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        refused = caught(socket.create_connection, nobody.getsockname(), 1)
    for error, code, passing in (
        (no_room, codes.DISK_FULL, True),
        (many, codes.TOO_MANY_OPEN_FILES, True),
        (refused, codes.SERVER_UNREACHABLE, True),
        (caught((tmp_path / ("n" * 300)).touch), codes.NAME_TOO_LONG, False),
        (caught((file / "x").read_bytes), codes.NOT_A_FOLDER, False),
        (caught((tmp_path / "none").read_bytes), codes.MISSING_FILE, False),
        (caught(full.read_bytes), codes.PATH_IS_A_FOLDER, False),
        (caught(full.rmdir), codes.NONEMPTY_FOLDER, False),
        (caught(full.mkdir), codes.EXISTING_FILE, False),
        (caught(loop.read_bytes), codes.LINK_LOOP, False),
    ):
        told = explain(error, "/the/place")
        assert told is not None, error
        assert (told.code, isinstance(told, TransientError)) == (code.name, passing)
        assert told.remedy
        assert told.where in {"/the/place", error.filename}
        assert error_action(error) == ("retry" if passing else "fail")
        assert error_action(told) == ("retry" if passing else "stop")
        assert explain(told) is told


def test_what_cannot_be_had_here_and_what_is_a_bug(tmp_path: Path) -> None:
    for number, code in {
        errno.EROFS: codes.READ_ONLY_FILE_SYSTEM,
        errno.EDQUOT: codes.QUOTA_EXCEEDED,
        errno.EACCES: codes.PERMISSION_DENIED,
        errno.ESTALE: codes.STALE_FILE_HANDLE,
        errno.EIO: codes.IO_ERROR,
        errno.ETIMEDOUT: codes.STORAGE_TIMEOUT,
        errno.ENOTCONN: codes.DEVICE_GONE,
        errno.EFBIG: codes.FILE_TOO_LARGE,
    }.items():
        error = OSError(number, os.strerror(number), "/the/file")
        told, recorded = explain(error), failure_of(TASK, error, 3, "")
        assert told is not None
        assert (told.code, told.where, recorded.reason) == (code.name, "/the/file", code.name)
        assert str(recorded.storage) == str(told)
    for error in (OSError(errno.EBADF, "Bad"), OSError("no number"), ValueError("x"), BrokenPipeError()):
        assert explain(error) is None
    assert error_action(OSError("no number")) == "retry"
    assert error_action(StoreError("the file is damaged")) == "fail"
    assert error_action(DamagedTransferError("the file is damaged")) == "retry"  # perhaps on its way
    told = explain(OSError(errno.EACCES, "Permission denied", f"{tmp_path}/.tmp/swsdist-0123.parquet"))
    assert told is not None
    assert told.where == str(tmp_path)  # temporary names are not told
    with pytest.raises(FileNotFoundError), storage_errors("/here"):
        Path("/nowhere/at/all").read_bytes()


def test_the_file_that_was_meant_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(StorageError) as found:
        Folder(str(tmp_path)).write_bytes("run/plan.json", b"x")
    assert found.value.code in {"existing-file", "not-a-folder"}
    assert found.value.where == f"{tmp_path}/run/plan.json"
    with pytest.raises(StorageError) as found, Folder(str(tmp_path)).temporary():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (found.value.code, found.value.where) == ("disk-full", str(tmp_path))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for do in (Folder(str(tmp_path)).open, Folder(str(tmp_path)).read_bytes):
        assert caught(do, "loop").filename == str(tmp_path / "loop")


def test_what_s3_answers() -> None:
    from botocore import exceptions
    from s3fs.errors import translate_boto_error

    for answer, code, passing in (
        ("ExpiredToken", codes.EXPIRED_S3_CREDENTIALS, False),
        ("InvalidAccessKeyId", codes.INVALID_S3_CREDENTIALS, False),
        ("AccessDenied", codes.S3_ACCESS_DENIED, False),
        ("SlowDown", codes.S3_THROTTLED, True),
        ("InternalError", codes.S3_SERVER_ERROR, True),
        ("RequestTimeout", codes.S3_UNREACHABLE, True),
        ("RequestTimeTooSkewed", codes.CLOCK_SKEW, True),
        ("PermanentRedirect", codes.WRONG_S3_REGION, False),
        ("QuotaExceeded", codes.S3_STORAGE_FULL, True),
        ("InvalidObjectState", codes.ARCHIVED_OBJECT, False),
        ("NoSuchBucket", codes.NO_SUCH_BUCKET, False),
        ("KeyTooLongError", codes.NAME_TOO_LONG, False),
    ):
        response = {"Error": {"Code": answer, "Message": "the server says so"}}
        error = translate_boto_error(exceptions.ClientError(response, "GetObject"))
        told = explain(error, "s3://bucket/run/x")
        assert told is not None
        assert (told.code, isinstance(told, TransientError), told.where) == (code.name, passing, "s3://bucket/run/x")
    for error, code in (
        (exceptions.NoCredentialsError(), codes.NO_S3_CREDENTIALS),
        (exceptions.EndpointConnectionError(endpoint_url="http://x"), codes.S3_UNREACHABLE),
        (exceptions.UnauthorizedSSOTokenError(), codes.EXPIRED_S3_CREDENTIALS),
        (exceptions.ProfileNotFound(profile="x"), codes.NO_SUCH_AWS_PROFILE),
    ):
        told = explain(error, "s3://bucket/x")
        assert told is not None
        assert told.code == code.name
    assert explain(exceptions.UnknownServiceError(service_name="x", known_service_names=[])) is None


def test_the_origin_of_an_exception() -> None:
    theirs = '  File "/v/lib/python3.12/site-packages/swsdist_x/a.py", line 3, in frames'
    library = '  File "/v/lib/python3.12/site-packages/numpy/core.py", line 9, in dot'
    ours = f'  File "{Path(swsdist.__file__).parent}/store/writing.py", line 7, in f'

    def told(*lines: str) -> str | None:
        return origin("\n".join(["Traceback (most recent call last):", *lines, "ValueError: shapes"]))

    assert told(theirs, library) == "/v/lib/python3.12/site-packages/swsdist_x/a.py, line 3, in frames"
    assert told(ours, theirs, library) == told(theirs, library)
    assert str(told(theirs, library, ours)).endswith("line 7, in f")
    assert origin("no traceback") is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
def test_a_full_disk_is_told_of_what_libraries_write(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.symlink_to("/dev/full")
    for write in (
        lambda file: write_document(file, Document([np.zeros((20_000, 39), np.float32)])),
        lambda _: write_sound(path, np.zeros(16_000), 16_000),
    ):
        with raises(codes.DISK_FULL), Folder(str(tmp_path)).temporary(), path.open("wb", buffering=0) as file:
            write(file)


@pytest.fixture(params=["local", "s3"])
def folder(request, tmp_path) -> Folder:
    if request.param == "local":
        return Folder(str(tmp_path / "root"))
    server = request.getfixturevalue("s3")
    return Folder(f"s3://{server.bucket}/{tmp_path.name}", server.storage)


def test_files_are_what_the_listing_tells_and_change_their_identity(folder):
    assert list(folder.files()) == []
    for name in ("top", "a/one", "a/b/two", "a/b/c/d/three", "z/four", "receipts/a-b.json"):
        folder.write_bytes(name, name.encode())
    beside = Folder(f"{folder.root}-beside", folder.storage)
    beside.write_bytes("a/other", b"x")
    assert sorted(folder.files()) == list(folder.listing().items())
    for read in (folder.read_bytes, folder.open, folder.identity, folder.info):
        with pytest.raises(FileNotFoundError):
            read("x")
    folder.write_bytes("x", b"one")
    before = folder.identity("x")
    assert before.startswith("3:")
    assert before == folder.listing()["x"].identity == identify(folder.path("x"), folder.storage)
    folder.write_bytes("x", b"two")
    assert folder.identity("x") != before
    again = pickle.loads(pickle.dumps(folder))
    assert (again, hash(again)) == (folder, hash(folder))


def test_what_is_published_is_there(folder):
    assert folder.listing() == {}
    assert not folder.exists("a/b.bin")
    folder.write_bytes("a/b.bin", b"one")
    with folder.temporary(".part") as file:
        assert file.suffix == ".part"
        file.write_bytes(b"three")
        folder.publish(file, "c.bin")
        assert not file.exists()
    assert {name: info.size for name, info in folder.listing().items()} == {"a/b.bin": 3, "c.bin": 5}
    assert list(folder.listing("a")) == list(folder.listing("a/")) == ["a/b.bin"]
    assert folder.read_bytes("a/b.bin") == b"one"
    with folder.open("c.bin") as opened:
        opened.seek(1)
        assert opened.read() == b"hree"
    assert folder.exists("a/b.bin")
    assert not folder.exists("a")
    assert not folder.exists("c.bin/d")
    folder.remove("a/b.bin")
    folder.remove("a/b.bin")
    assert list(folder.listing()) == ["c.bin"]


def test_half_a_file_is_never_seen(folder):
    def write() -> None:
        with folder.temporary() as file:
            file.write_bytes(b"half")
            raise RuntimeError("died")

    with pytest.raises(RuntimeError):
        write()
    assert list(folder.listing()) == []


def test_names_lead_to_paths_and_not_out():
    assert Folder("s3://bucket/a/").path("b/c") == "s3://bucket/a/b/c"
    assert Folder("s3://bucket").local("x") is None
    assert Folder("/data").local("x/y") == Path("/data/x/y")
    assert Folder("data").root == str(Path.cwd() / "data")
    assert locate("s3://bucket/a/b.wav") == (Folder("s3://bucket/a"), "b.wav")
    assert locate("/b.wav") == (Folder("/"), "b.wav")
    assert is_remote("s3://x/y")
    with raises(families.INVALID_VALUE) as found:
        is_remote("s3:/bucket/x")
    assert "s3://bucket/x" in found.value.remedy
    with raises(families.UNSUPPORTED, scheme="gs"):
        Folder("gs://bucket")
    outside: list[Any] = ["../x", "/etc/passwd", "a/../../x", "a\0b", "s3://bucket/x", "http://host/x", "file:///x"]
    for name in [*outside, "", ".", "a//b", "a/./b", 7]:
        with raises(families.DAMAGED_FILE, where="plan.json"):
            demand_inside(name, "plan.json", "a key")
    for name in ("a", "shards/part-0.parquet", "..a/b..", "ä ö", "a:b"):
        assert demand_inside(name, "", "") == name


def test_publishing_from_another_filesystem(tmp_path, monkeypatch):
    folder, file = Folder(str(tmp_path / "root")), tmp_path / "elsewhere"
    folder.write_bytes("ordinary", b"")
    file.write_bytes(b"from afar")
    assert stat.S_IMODE((tmp_path / "root/ordinary").stat().st_mode) == stat.S_IMODE(file.stat().st_mode)
    rename = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if self == file:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    folder.publish(file, "x")
    assert folder.read_bytes("x") == b"from afar"
    assert not file.exists()
    assert list(folder.listing()) == ["ordinary", "x"]


def test_keys_that_are_prefixes_and_s3_without_bucket_server_or_credentials(s3, tmp_path, monkeypatch):
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", s3.storage)
    folder.write_bytes("run", b"a file")
    folder.write_bytes("run/x", b"below a folder of the same name")
    folder.write_bytes("runs/x", b"another folder")
    assert list(folder.listing("run")) == ["run/x"]
    folder = Folder("s3://no-such-bucket/run", s3.storage)
    for call in (folder.exists, folder.read_bytes, folder.open, folder.remove, folder.listing):
        with raises(storage_codes.NO_SUCH_BUCKET):
            call("x")
    with raises(storage_codes.NO_SUCH_BUCKET):
        folder.write_bytes("x", b"")
    patience = {"config_kwargs": {"retries": {"max_attempts": 0}}}
    with raises(storage_codes.S3_UNREACHABLE):
        Folder("s3://b/x", {"endpoint_url": "http://127.0.0.1:9", "key": "a", "secret": "b", **patience}).listing()
    for name, value in (("ENDPOINT_URL", s3.endpoint), ("ACCESS_KEY_ID", "testing"), ("SECRET_ACCESS_KEY", "testing")):
        monkeypatch.setenv(f"AWS_{name}", value)
    path = f"s3://{s3.bucket}/environment/x"
    folder, name = locate(path)
    folder.write_bytes(name, b"found")
    with open_path(path) as file:
        assert file.read() == b"found"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    place, storage = f"s3://{s3.bucket}/none", {"endpoint_url": s3.endpoint}
    with raises(storage_codes.NO_S3_CREDENTIALS):
        Folder(place, storage).listing()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    assert Folder(place, storage).listing() == {}  # credentials set since then count


STATE: dict[str, Any] = {
    "fingerprint": "f" * 32,
    "kind": "frames",
    "tick": 0.01,
    "rejected": "rejected.parquet",
    "counts": {},
    "tracks": [
        {"name": "features", "recipe": {}, "fingerprint": "e" * 32, "dimension": 2, "columns": ["a", "b"]}
        | {"kind": "features", "documents": "documents.parquet"}
    ],
    "shards": [
        {"name": "s", "files": {"features": {"name": "shards/s", "size": 1, "sha256": ""}}, "documents": 1, "frames": 1}
    ],
    "models": {"statistics.features": "models/statistics.parquet"},
    "schema": manifest.SCHEMA,
}


def test_manifests_receipts_and_plans_lead_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(STATE))
    assert manifest.load(Folder(str(tmp_path))) is not None
    for place, value in (
        (("tracks", 0, "documents"), "../documents.parquet"),
        (("shards", 0, "files", "features", "name"), "/etc/passwd"),
        (("rejected",), "s3://elsewhere/x"),
        (("models", "statistics.features"), "models/../../x"),
    ):
        values = inner = json.loads(json.dumps(STATE))
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        (tmp_path / "manifest.json").write_text(json.dumps(values))
        with raises(families.DAMAGED_FILE, where=str(tmp_path / "manifest.json")):
            manifest.load(Folder(str(tmp_path)))
    with raises(families.DAMAGED_FILE):
        manifest.load(Folder(str(tmp_path)), manifest.state_name("/../../../x"))
    file, cost = tmp_path / "receipts" / f"search-{'a' * 32}.json", Cost(0.0, 0.0, 0.0, 0)
    file.parent.mkdir()
    for name in ("hits/x", "../../hits/x"):
        part = Part("hits", name, 1, "0" * 64)
        receipt = Receipt("search", 1, "a" * 32, "", 1.0, (part,), {}, [], cost, "host", 1, 0.0, 0.0)
        file.write_text(receipt.to_json())
        if name == "hits/x":
            assert list(Ledger(Folder(str(tmp_path))).receipts("search")) == ["a" * 32]
    with raises(families.DAMAGED_FILE, where=str(file), key="outputs.name"):
        Ledger(Folder(str(tmp_path))).receipts("search")

    def load(place: str) -> None:
        step = {"stage": "index", "tasks": "k", "planned": 0, "place": place, "ended": True}
        plan = {"chain": "search", "config": {}, "order": ["index"], "steps": {"index": step}, "state": {}}
        (tmp_path / "plan.json").write_text(json.dumps({"schema": PLAN, "plans": {"run": plan}, "tasks": {"k": ""}}))
        load_plans(Folder(str(tmp_path)))

    for fine in ("", "./store", "s3://bucket/store", "/data/store"):
        load(fine)
    for place, error in (("./../../store", StoreError), ("http://host/store", UserError)):
        with pytest.raises(error):
            load(place)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's links")
@pytest.mark.parametrize("linked", ["the file", "its folder"])
def test_links_of_others(tmp_path: Path, linked: str) -> None:
    """A link of one's own is obeyed, and one of another user that stays within the folder; no other."""
    schema = pa.schema([("x", pa.int64())])
    table = pa.table({"x": [1]}, schema)
    secret, store = Folder(str(tmp_path / "secret")), Folder(str(tmp_path / "store"))
    for folder in (secret, store):
        parquet.publish(folder, "tables/t.parquet", [table], schema)
    name = "links/t.parquet" if linked == "its folder" else "tables/link.parquet"
    link = tmp_path / "store" / ("links" if linked == "its folder" else name)

    def lead(root: Folder, owner: int) -> None:
        link.unlink(missing_ok=True)
        link.symlink_to(f"{root.root}/tables{'' if linked == 'its folder' else '/t.parquet'}")
        os.chown(link, owner, owner, follow_symlinks=False)

    for root, owner in ((secret, 0), (store, 12345)):
        lead(root, owner)
        assert parquet.read(store, name) == table
    lead(secret, 12345)
    with raises(families.WRONG_KIND) as caught:
        parquet.read(store, name)
    assert caught.value.where == str(link)
    with raises(families.WRONG_KIND):
        store.write_bytes(name, b"of ours")
    assert parquet.read(secret, "tables/t.parquet") == table
