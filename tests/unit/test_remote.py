"""Reading and writing S3 through a proxy that injects faults: what comes is what was written, or an error that says why."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError, TransientError
from swsdist.io import filesystem
from swsdist.io.filesystem import Folder
from swsdist.io.remote import client, objects
from swsdist.io.remote.client import connect
from tests.support.coded import raises
from tests.support.fault_proxy import KINDS, Fault, FaultProxy

DATA = random.Random(1).randbytes(300_000)

#: Quick pauses of botocore cannot be had, so it tries no more often than is needed.
QUICK: dict[str, Any] = {"read_timeout": 1, "retries": {"mode": "standard", "total_max_attempts": 3}}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses, of ours and of botocore."""
    monkeypatch.setattr(client, "pause", lambda attempt: 0.0)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda self, context: 0.0)


@pytest.fixture
def proxy(s3: Any) -> Iterator[FaultProxy]:
    """Without faults, until a test names them."""
    with FaultProxy(s3.endpoint, seed=3) as made:
        yield made


@pytest.fixture
def folder(s3: Any, proxy: FaultProxy, tmp_path: Path) -> Folder:
    """A folder through the proxy, with an object `x`."""
    storage = {**s3.storage, "endpoint_url": proxy.endpoint, "config_kwargs": QUICK}
    made = Folder(f"s3://{s3.bucket}/{tmp_path.name}", storage)
    made.write_bytes("x", DATA)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", [one for one in KINDS if one not in ("expired", "unknown-key", "cut-upload")])
def test_a_fault_that_passes(folder: Folder, proxy: FaultProxy, kind: str) -> None:
    """The bytes are the same, by whole and by ranges."""
    for verb in ("GET", "HEAD"):
        if verb == "HEAD" and kind in ("cut", "short", "long", "flipped", "drip"):
            continue  # it has no body
        proxy.faults = [Fault(kind, (verb,), last=2, seconds=1.5)]
        assert folder.read_bytes("x") == DATA
        with folder.open("x", ahead=1000) as file:
            file.seek(100_000)
            assert len(file.read(50_000)) == 50_000
        assert folder.info("x").size == len(DATA)
        assert proxy.done[kind] >= 2
        proxy.done.clear()


@pytest.mark.parametrize("kind", ["cut", "short", "long"])
def test_a_range_and_a_listing_that_are_cut(
    folder: Folder, proxy: FaultProxy, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.faults = [Fault(kind, ("GET",), last=2)]
    with folder.open("x", ahead=1000) as file:
        file.seek(100_000)
        assert file.read(50_000) == DATA[100_000:150_000]
    assert proxy.done[kind] == 2
    proxy.faults = [Fault(kind, ("GET",), last=2)]
    assert {name: info.size for name, info in folder.listing().items()} == {"x": len(DATA)}
    assert proxy.done[kind] == 4
    # Of an ETag that is no MD5 two equal readings of the right length are believed.
    monkeypatch.setattr(objects, "_agrees", lambda answer, data: False)
    assert folder.read_bytes("x") == DATA


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["500", "503", "refused", "no-answer", "cut-upload", "slow"])
def test_writing(folder: Folder, proxy: FaultProxy, kind: str) -> None:
    """At once, and in parts; removing too."""
    proxy.faults = [Fault(kind, ("PUT", "POST", "DELETE"), last=2, seconds=1.5)]
    folder.write_bytes("y", DATA)
    assert proxy.done[kind] == 2
    assert folder.read_bytes("y") == DATA
    proxy.faults = [Fault(kind, ("DELETE",), last=1, seconds=1.5)]
    folder.remove("y")
    assert not folder.exists("y")


def test_nothing_helps(folder: Folder, proxy: FaultProxy) -> None:
    """It is said, and the number of requests is bounded."""
    for kind, code, passes, most in (
        ("cut", codes.S3_TRANSFER_DAMAGED, True, client.ATTEMPTS),
        ("503", codes.S3_THROTTLED, True, None),
        ("expired", codes.EXPIRED_S3_CREDENTIALS, False, 1),
    ):
        proxy.faults = [Fault(kind, ("GET",))]
        proxy.requests.clear()
        with raises(code) as caught:
            folder.read_bytes("x")
        assert isinstance(caught.value, TransientError) == passes
        assert most in (None, proxy.requests["GET"])


@pytest.mark.slow
def test_an_outage_does_not_multiply_requests(
    folder: Folder, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget of a process is used up: what fails then fails at once."""
    monkeypatch.setattr(client, "budget", client.Budget(10))
    proxy.faults = [Fault("cut", ("GET",))]
    proxy.requests.clear()
    for _ in range(20):
        with pytest.raises(StorageError):
            folder.read_bytes("x")
    assert proxy.requests["GET"] == 20 + 10
    proxy.faults = []
    for _ in range(11):  # each gives a tenth of a repetition back
        assert folder.read_bytes("x") == DATA
    proxy.faults, proxy.requests["GET"] = [Fault("cut", ("GET",), last=1)], 0
    assert folder.read_bytes("x") == DATA
    assert proxy.requests["GET"] == 2


def test_credentials_in_a_file_that_is_renewed(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: FaultProxy
) -> None:
    """A client is made anew, also for a file that is open."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text("[default]\naws_access_key_id=OLD\naws_secret_access_key=x\n")
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", {"endpoint_url": proxy.endpoint})
    folder.write_bytes("x", DATA)
    with folder.open("x", ahead=10) as opened:
        proxy.faults = [Fault("expired", access_keys=("OLD",))]
        tried = []

        def renew(attempt: int) -> float:
            tried.append(attempt)
            if attempt == 2:
                file.write_text("[default]\naws_access_key_id=NEWER\naws_secret_access_key=y\n")
            return 0.0

        monkeypatch.setattr(client, "pause", renew)
        assert opened.read(1000) == DATA[:1000]
        assert tried == [1, 2]
    assert folder.read_bytes("x") == DATA
    assert tried == [1, 2]


def test_uploads_in_parts(folder: Folder, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A part that fails is sent again; if it fails for good, the others are removed, and nothing is published."""
    monkeypatch.setattr(filesystem, "_PART", 5 << 20)
    data = random.Random(2).randbytes(12_000_000)

    def publish(name: str) -> None:
        file = tmp_path / name
        file.write_bytes(data)
        folder.publish(file, name)

    parts = Fault("500", ("PUT",), keys="partNumber=2", last=2)
    proxy.faults = [parts, Fault("503", ("POST",), keys="uploadId", last=1)]
    publish("large")
    assert proxy.done == {"500": 2, "503": 1}
    assert folder.info("large").size == len(data)
    assert folder.read_bytes("large") == data
    proxy.faults = [Fault("500", ("PUT",), keys="partNumber=3")]
    with pytest.raises(StorageError, match="server failed"):
        publish("lost")
    assert not folder.exists("lost")
    client = connect(folder.storage)
    bucket, _, prefix = folder.root.removeprefix("s3://").partition("/")
    left = client.call_s3("list_multipart_uploads", Bucket=bucket).get("Uploads", [])
    assert [one["Key"] for one in left if one["Key"].startswith(prefix)] == []
