"""Long listings: a page at a time, as many as there are."""

from __future__ import annotations

import itertools
import tracemalloc
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swsdist.io.filesystem import Folder
from swsdist.io.remote import client
from swsdist.io.remote.objects import objects_below


class Lister:
    """It answers list_objects_v2 as S3 does, of names in their order, so many a page."""

    def __init__(self, names: Sequence[str], page: int = 1000) -> None:
        self.names, self.page, self.asked = names, page, 0

    def __call__(self, *, Prefix: str, Delimiter: str = "", StartAfter: str = "", ContinuationToken: str = "") -> Any:
        """A page."""
        self.asked += 1
        after = ContinuationToken or StartAfter
        at = max(bisect_right(self.names, after) if after else 0, bisect_left(self.names, Prefix))
        contents: list[dict[str, Any]] = []
        folders: list[str] = []
        while at < len(self.names) and self.names[at].startswith(Prefix):
            name = self.names[at]
            below = name[len(Prefix) :].find(Delimiter) if Delimiter else -1
            folder = name[: len(Prefix) + below + 1] if below >= 0 else ""
            if folder and folder <= after:  # it was told before
                at = bisect_left(self.names, folder + chr(0x10FFFF), at)
                continue
            if len(contents) + len(folders) == self.page:
                last = max([one["Key"] for one in contents[-1:]] + folders[-1:])
                more = {"IsTruncated": True, "NextContinuationToken": last}
                return {"Contents": contents, "CommonPrefixes": [{"Prefix": one} for one in folders], **more}
            if folder:
                folders.append(folder)
                at = bisect_left(self.names, folder + chr(0x10FFFF), at)
            else:
                contents.append({"Key": name, "Size": at, "ETag": '"e"'})
                at += 1
        return {"Contents": contents, "CommonPrefixes": [{"Prefix": one} for one in folders]}

    def call_s3(self, method: str, *, Bucket: str, **asked: str) -> Any:
        """As s3fs has it."""
        assert (method, Bucket) == ("list_objects_v2", "bucket")
        return self(**asked)


class Hashes(Sequence[str]):
    """A million names of tables in their order: digits of fingerprints, of which as many begin with each."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, place: Any) -> Any:
        return f"run/tables/candidates/{place * 2**108 // 1_000_000:027x}.parquet"


@pytest.mark.slow
def test_a_million_names_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """And in little more than a request a thousand."""
    lister = Lister(Hashes())
    monkeypatch.setattr(client, "connect", lambda storage: lister)
    files = Folder("s3://bucket/run").files()
    tracemalloc.start()
    try:
        count = sum(1 for _ in itertools.islice(files, 100_000))
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()
    total = sum(info.size for _, info in itertools.islice(files, 100_000))
    assert (count, total > 0) == (100_000, True)
    assert lister.asked < 250


NAMES = st.lists(st.text("/-09:aAbf~gz\u00e9", min_size=1, max_size=6), max_size=40, unique=True)


@example(names=["/0", "0"], page=1, prefix="")
@given(names=NAMES, page=st.integers(1, 4), prefix=st.sampled_from(["", "a/", "0/"]))
def test_no_name_is_lost_or_told_twice(names: list[str], page: int, prefix: str) -> None:
    """Whatever the names are, and wherever pages end."""
    found = [one.key for one in objects_below(Lister(sorted(names), page), prefix)]
    assert sorted(found) == sorted(one for one in names if one.startswith(prefix) and not one.endswith("/"))


def test_a_server_that_lists_in_no_order() -> None:
    pages = [[f"d/{(37 * k) % 101:03d}" for k in range(first, first + 10)] for first in range(0, 100, 10)]

    def ask(*, Prefix: str, ContinuationToken: str = "0", Delimiter: str = "") -> Any:
        if Delimiter and Prefix == "":
            return {"CommonPrefixes": [{"Prefix": "d/"}]}
        at = int(ContinuationToken)
        more = {"IsTruncated": True, "NextContinuationToken": str(at + 1)} if at < 9 else {}
        return {"Contents": [{"Key": key, "Size": 1, "ETag": "e"} for key in pages[at]], **more}

    assert sorted(one.key for one in objects_below(ask, "")) == sorted(key for page in pages for key in page)


@pytest.mark.parametrize("place", ["local", "s3"])
def test_files_are_the_listing(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "root"))
    if place == "s3":
        server = request.getfixturevalue("s3")
        folder = Folder(f"s3://{server.bucket}/{tmp_path.name}", server.storage)
    assert list(folder.listing()) == []
    for name in ("b", "a/x", "a/y", "ab"):
        folder.write_bytes(name, name.encode())
    assert list(folder.listing()) == ["a/x", "a/y", "ab", "b"]
    assert sorted(folder.files("a")) == list(folder.listing("a").items())
    assert list(folder.listing("a")) == ["a/x", "a/y"]
    assert folder.listing("a")["a/x"] == folder.info("a/x")
    assert folder.listing("none") == {}
    with pytest.raises(OSError, match=r"folder|directory"):
        folder.open("a").read()
