"""A node's cache of a remote store's files: bounded, checked, shared; the least recently used go first."""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import families
from swsdist.core.errors import StoreError
from swsdist.io.filesystem import Folder
from swsdist.store.memory import Cache
from tests.support.coded import raises


class Remote:
    """Stands for a folder on S3; counts what is read."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.opened: list[str] = []

    def local(self, name: str = "") -> None:
        """It is none."""

    def path(self, name: str = "") -> str:
        return f"s3://bucket/{name}"

    def open(self, name: str) -> BytesIO:
        self.opened.append(name)
        return BytesIO(self.files[name])

    def put(self, name: str, data: bytes) -> tuple[str, int, str]:
        """A file, as a manifest has it."""
        self.files[name] = data
        return name, len(data), hashlib.sha256(data).hexdigest()


def _read(place: tuple[Folder, str]) -> bytes:
    return place[0].read_bytes(place[1])


def test_a_file_is_fetched_once_and_the_oldest_goes(tmp_path: Path) -> None:
    remote: Any = Remote()
    files = [remote.put(name, name.encode() * 40) for name in ("a", "b", "c")]
    cache = Cache(str(tmp_path / "cache"), 100)
    for k, file in enumerate(files[:2]):
        assert _read(cache.at(remote, *file)) == remote.files[file[0]]
        os.utime(tmp_path / f"cache-{os.getuid()}/{file[2]}.cached", (k + 1, k + 1))
    assert _read(cache.at(remote, *files[0])) == b"a" * 40
    assert remote.opened == ["a", "b"]
    # a was used after b: for c there is room when b goes.
    assert _read(cache.at(remote, *files[2])) == b"c" * 40
    assert {path.name for path in (tmp_path / f"cache-{os.getuid()}").iterdir()} == {
        f"{files[k][2]}.cached" for k in (0, 2)
    }
    other = Cache(str(tmp_path / "cache"), 100)  # another process
    assert _read(other.at(remote, *files[0])) == b"a" * 40
    assert remote.opened == ["a", "b", "c"]


def test_what_is_damaged_is_fetched_again_and_what_is_not_as_the_manifest_says_is_an_error(tmp_path: Path) -> None:
    remote: Any = Remote()
    file = remote.put("a", b"x" * 10)
    Cache(str(tmp_path / "c"), 100).at(remote, *file)
    (tmp_path / f"c-{os.getuid()}/{file[2]}.cached").write_bytes(b"y" * 10)
    assert _read(Cache(str(tmp_path / "c"), 100).at(remote, *file)) == b"x" * 10
    assert remote.opened == ["a", "a"]
    remote.files["a"] = b"z" * 10
    with pytest.raises(StoreError, match=r"not what the store's manifest says"):
        Cache(str(tmp_path / "d"), 100).at(remote, *file)
    assert list((tmp_path / f"d-{os.getuid()}").iterdir()) == []


def test_what_is_local_or_too_large_stays_where_it_is(tmp_path: Path) -> None:
    remote: Any = Remote()
    file = remote.put("a", b"x" * 10)
    assert Cache(str(tmp_path / "cache"), 9).at(remote, *file) == (remote, "a")
    local = Folder(str(tmp_path))
    assert Cache(str(tmp_path / "cache"), 99).at(local, *file) == (local, "a")
    (tmp_path / f"file-{os.getuid()}").write_text("")
    assert Cache(str(tmp_path / "file"), 99).at(remote, *file) == (remote, "a"), "there is no such folder"
    assert not (tmp_path / f"cache-{os.getuid()}").exists()


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    remote: Any = Remote()
    file = remote.put("a", b"x" * 10)
    mine = tmp_path / f"c-{os.getuid()}"
    mine.mkdir()
    mine.chmod(0o777)
    assert Cache(str(tmp_path / "c"), 99).at(remote, *file) == (remote, "a")
    mine.rmdir()
    (tmp_path / "elsewhere").mkdir()
    mine.symlink_to(tmp_path / "elsewhere")
    assert Cache(str(tmp_path / "c"), 99).at(remote, *file) == (remote, "a")
    mine.unlink()
    assert Cache(str(tmp_path / "c"), 99).at(remote, *file) != (remote, "a")


def test_what_a_killed_process_fetched_in_part_counts_and_goes(tmp_path: Path) -> None:
    remote: Any = Remote()
    first, second = (remote.put(name, name.encode() * 40) for name in ("a", "b"))
    cache = Cache(str(tmp_path / "c"), 100)
    cache.at(remote, *first)
    place = tmp_path / f"c-{os.getuid()}"
    (place / "old.part").write_bytes(b"z" * 50)
    os.utime(place / "old.part", (1, 1))
    (place / "now.part").write_bytes(b"z" * 30)  # another process fetches it
    cache.at(remote, *second)
    assert {path.name for path in place.iterdir()} == {"now.part", f"{second[2]}.cached"}


def test_what_a_process_writes_is_kept_and_told_the_least_recently_used_first(tmp_path: Path) -> None:
    remote: Any = Remote()
    cache = Cache(str(tmp_path / "c"), 100)
    files = {name: (name.encode() * 40, hashlib.sha256(name.encode() * 40).hexdigest()) for name in ("a", "b", "c")}
    for k, (name, (data, digest)) in enumerate(files.items()):
        written = tmp_path / name
        written.write_bytes(data)
        cache.keep(remote, written, len(data), digest)
        written.unlink()  # it was published
        os.utime(tmp_path / f"c-{os.getuid()}/{digest}.cached", (k + 1, k + 1))
    assert cache.files() == [(files[name][1], 40) for name in ("b", "c")], "a went: there was no room"
    assert _read(cache.at(remote, "c", 40, files["c"][1])) == files["c"][0]
    assert remote.opened == []
    again = tmp_path / "c"
    again.write_bytes(files["c"][0])
    cache.keep(remote, again, 40, files["c"][1])
    assert len(cache.files()) == 2, "nothing goes for what is there"
    local = tmp_path / "d"
    local.write_bytes(b"d")
    cache.keep(Folder(str(tmp_path)), local, 1, hashlib.sha256(b"d").hexdigest())
    assert len(cache.files()) == 2, "what is written here need not be kept twice"


def test_a_variable_of_the_node_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_DISK", str(tmp_path))
    assert Cache("$NODE_DISK/c", 1).root == tmp_path / f"c-{os.getuid()}"
    for change in (lambda: monkeypatch.setenv("NODE_DISK", ""), lambda: monkeypatch.delenv("NODE_DISK")):
        change()
        with raises(families.UNSET_VARIABLE, root="$NODE_DISK/c", variable="NODE_DISK"):
            Cache("$NODE_DISK/c", 1)
