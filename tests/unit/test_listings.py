"""Long listings: a page at a time, as many as there are."""

from __future__ import annotations

import itertools
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from swsdist.io.filesystem import Folder
from swsdist.io.remote import again


class Lister:
    """It lists a million objects, a thousand a page."""

    def __init__(self, number: int = 1_000_000) -> None:
        self.number, self.asked = number, 0

    def call_s3(self, method: str, *, Bucket: str, Prefix: str, ContinuationToken: str = "0") -> dict[str, Any]:
        """A page."""
        assert (method, Bucket, Prefix) == ("list_objects_v2", "bucket", "store/shards/")
        self.asked += 1
        begin = int(ContinuationToken)
        end = min(begin + 1000, self.number)
        contents = [{"Key": f"store/shards/{k:08d}", "Size": k, "ETag": '"e"'} for k in range(begin, end)]
        more = {"IsTruncated": True, "NextContinuationToken": str(end)} if end < self.number else {}
        return {"Contents": contents, **more}


def test_a_million_names_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    lister = Lister()
    monkeypatch.setattr(again, "connect", lambda storage: lister)
    pages = Folder("s3://bucket/store").pages("shards")
    assert next(pages)[1] == ("shards/00000001", (1, "1:e"))
    tracemalloc.start()
    try:
        count = 1000 + sum(len(page) for page in itertools.islice(pages, 49))
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    total = sum(range(count))
    for page in pages:
        count += len(page)
        total += sum(info.size for _, info in page)
    assert (count, total, lister.asked) == (1_000_000, 499_999_500_000, 1000)


@pytest.mark.parametrize("place", ["local", "s3"])
def test_pages_are_the_listing(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "root"))
    if place == "s3":
        server = request.getfixturevalue("s3")
        folder = Folder(f"s3://{server.bucket}/{tmp_path.name}", server.storage)
    assert list(folder.listing()) == []
    for name in ("b", "a/x", "a/y", "ab"):
        folder.write_bytes(name, name.encode())
    assert list(folder.listing()) == ["a/x", "a/y", "ab", "b"]
    assert sorted(name for page in folder.pages("a") for name, _ in page) == ["a/x", "a/y"]
    assert folder.listing("a")["a/x"] == folder.info("a/x")
    assert folder.listing("none") == {}
    with pytest.raises(OSError, match=r"folder|directory"):
        folder.open("a").read()


@pytest.mark.cluster
def test_twenty_thousand_objects(s3: Any, tmp_path: Path) -> None:
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", s3.storage)
    names = [f"receipts/{k:05d}.json" for k in range(20_000)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: folder.write_bytes(name, b"{}"), names))
    listing = folder.listing("receipts")
    assert list(listing) == names
    assert {info.size for info in listing.values()} == {2}
    assert [len(page) for page in folder.pages()] == [1000] * 20
