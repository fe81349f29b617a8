"""Folders, local and on a real S3 server: files appear whole, listings are fresh, errors say what to do."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import stat
from pathlib import Path

import pytest

from swsdist.core.codes import families
from swsdist.core.codes import storage as storage_codes
from swsdist.io.filesystem import Folder, identify, is_remote, locate, open_path
from tests.support.coded import raises


@pytest.fixture(params=["local", "s3"])
def folder(request, tmp_path) -> Folder:
    if request.param == "local":
        return Folder(str(tmp_path / "root"))
    server = request.getfixturevalue("s3")
    return Folder(f"s3://{server.bucket}/{tmp_path.name}", server.storage)


def test_files_are_what_the_listing_tells(folder):
    assert list(folder.files()) == []
    for name in ("top", "a/one", "a/b/two", "a/b/c/d/three", "z/four", "receipts/a-b.json"):
        folder.write_bytes(name, name.encode())
    beside = Folder(f"{folder.root}-beside", folder.storage)
    beside.write_bytes("a/other", b"x")
    assert sorted(folder.files()) == list(folder.listing().items())


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


def test_identity_changes_with_the_file(folder):
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


def test_another_writers_file_is_seen_at_once_and_half_a_file_never(folder):
    folder.write_bytes("x/1", b"")
    folder.listing("x")
    process = multiprocessing.get_context("spawn").Process(target=folder.write_bytes, args=("x/2", b"new"))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert list(folder.listing("x")) == ["x/1", "x/2"]

    def write() -> None:
        with folder.temporary() as file:
            file.write_bytes(b"half")
            raise RuntimeError("died")

    with pytest.raises(RuntimeError):
        write()
    assert list(folder.listing()) == ["x/1", "x/2"]


def test_paths():
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


def test_large_files_and_keys_that_are_prefixes(s3, tmp_path):
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", s3.storage)
    folder.write_bytes("run", b"a file")
    folder.write_bytes("run/x", b"below a folder of the same name")
    folder.write_bytes("runs/x", b"another folder")
    assert list(folder.listing("run")) == ["run/x"]
    with folder.temporary() as file:
        file.write_bytes(bytes(60_000_000))  # goes up in several parts
        folder.publish(file, "large")
    assert folder.info("large").size == 60_000_000


def test_endpoint_from_the_environment(s3, monkeypatch):
    for name, value in (("ENDPOINT_URL", s3.endpoint), ("ACCESS_KEY_ID", "testing"), ("SECRET_ACCESS_KEY", "testing")):
        monkeypatch.setenv(f"AWS_{name}", value)
    path = f"s3://{s3.bucket}/environment/x"
    folder, name = locate(path)
    folder.write_bytes(name, b"found")
    with open_path(path) as file:
        assert file.read() == b"found"


def test_no_bucket_and_no_server(s3):
    folder = Folder("s3://no-such-bucket/run", s3.storage)
    for call in (folder.exists, folder.read_bytes, folder.open, folder.remove, folder.listing):
        with raises(storage_codes.NO_SUCH_BUCKET):
            call("x")
    with raises(storage_codes.NO_SUCH_BUCKET):
        folder.write_bytes("x", b"")
    patience = {"config_kwargs": {"retries": {"max_attempts": 0}}}
    with raises(storage_codes.S3_UNREACHABLE):
        Folder("s3://b/x", {"endpoint_url": "http://127.0.0.1:9", "key": "a", "secret": "b", **patience}).listing()


def test_no_credentials(s3, monkeypatch, tmp_path):
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
