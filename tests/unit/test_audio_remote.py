"""A recording on S3 is fetched once, for its samples and its SHA-256; requests are counted by a proxy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.audio.reader import read_blocks
from swsdist.audio.streams import Digest, digested, digesting, sha256
from swsdist.features.extractors import create
from swsdist.io.filesystem import READ_AHEAD, Folder
from swsdist.store.writing import write_tracks
from tests.support.fault_proxy import FaultProxy


@pytest.fixture
def proxy(s3: Any) -> Iterator[FaultProxy]:
    """It counts."""
    with FaultProxy(s3.endpoint) as made:
        yield made


def put(folder: Folder, name: str, seconds: float, path: Path) -> bytes:
    """Noise in a file on S3; its bytes."""
    noise = np.random.default_rng(5).normal(0, 0.1, round(seconds * 16_000)).astype(np.float32)
    soundfile.write(path / name, noise, 16_000)
    data = (path / name).read_bytes()
    folder.write_bytes(name, data)
    return data


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3"])
def test_one_download_is_enough(s3: Any, proxy: FaultProxy, tmp_path: Path, ending: str) -> None:
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", {**s3.storage, "endpoint_url": proxy.endpoint})
    data = put(folder, f"x.{ending}", 400.0 if ending == "wav" else 60.0, tmp_path)
    digest = Digest(folder.path(f"x.{ending}"))
    proxy.asked.clear()
    with digesting(digest):
        samples = sum(map(len, read_blocks(digest.path, rate=16_000, storage=folder.storage)))
    assert samples > 900_000
    assert digested(digest, folder.storage) == hashlib.sha256(data).hexdigest()
    fetched = [path for verb, path in proxy.asked if verb == "GET"]
    # The end of a compressed file may be looked at first.
    assert len(fetched) <= len(data) // READ_AHEAD + 2 + (ending != "wav")
    assert sum(verb == "HEAD" for verb, _ in proxy.asked) <= 2
    assert sha256(digest.path, folder.storage) == hashlib.sha256(data).hexdigest()


def test_another_object_is_digested_anew(s3: Any, tmp_path: Path) -> None:
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", s3.storage)
    put(folder, "x.wav", 3.0, tmp_path)
    digest = Digest(folder.path("x.wav"))
    with digesting(digest):
        list(read_blocks(digest.path, rate=16_000, storage=folder.storage))
        data = put(folder, "x.wav", 5.0, tmp_path)
        list(read_blocks(digest.path, rate=16_000, end=1.0, storage=folder.storage))
    assert digested(digest, folder.storage) == hashlib.sha256(data).hexdigest()


def test_indexing_fetches_it_once(s3: Any, proxy: FaultProxy, tmp_path: Path) -> None:
    """A FLAC of some megabytes, listened to and digested while its features are computed."""
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", {**s3.storage, "endpoint_url": proxy.endpoint})
    data = put(folder, "x.flac", 300.0, tmp_path)
    row = {"doc_id": "x", "channel": 1, "path": folder.path("x.flac"), "speaker": None}
    row["identity"] = folder.identity("x.flac")
    proxy.asked.clear()
    (found,) = write_tracks(folder, "0" * 32, [row], create("mfcc", {}))
    assert found.documents["sha256"].to_pylist() == [hashlib.sha256(data).hexdigest()]
    assert len(data) > READ_AHEAD
    fetched = [verb for verb, path in proxy.asked if verb == "GET" and path.endswith("x.flac")]
    assert len(fetched) <= len(data) // READ_AHEAD + 2
