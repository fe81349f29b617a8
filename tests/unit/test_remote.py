"""S3 with faults: what comes is what was written, or an error that says why; listings, local copies, temporary files."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swsdist.core.codes import storage as codes
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import StorageError, TransientError
from swsdist.io import filesystem
from swsdist.io.filesystem import Folder, local_file
from swsdist.io.remote import client, objects
from swsdist.io.remote.client import connect
from swsdist.io.remote.objects import objects_below
from swsdist.io.remote.scratch import scratch, sweep
from tests.support.coded import raises
from tests.support.fault_proxy import KINDS, Fault, FaultProxy

DATA = random.Random(1).randbytes(300_000)

#: Quick pauses of botocore cannot be had, so it tries no more often than is needed.
QUICK: dict[str, Any] = {"read_timeout": 0.5, "retries": {"mode": "standard", "total_max_attempts": 3}}


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
def test_ranges_and_listings_cut(folder: Folder, proxy: FaultProxy, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_budget_bounds_an_outage(folder: Folder, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def remote_folder(s3: Any, tmp_path: Path) -> Folder:
    return Folder(f"s3://{s3.bucket}/{tmp_path.name}", s3.storage)


def test_a_copy_is_that_of_the_object(remote_folder: Folder, tmp_path: Path) -> None:
    remote_folder.write_bytes("x", b"one")
    copy = local_file(remote_folder.path("x"))
    assert (copy.name, copy.read_bytes()) == ("x", b"one")
    assert local_file(remote_folder.path("x")) == copy
    copy.write_bytes(b"spoilt")
    assert local_file(remote_folder.path("x")).read_bytes() == b"one"
    remote_folder.write_bytes("x", b"two")
    assert local_file(remote_folder.path("x")).read_bytes() == b"two"
    with pytest.raises(FileNotFoundError):
        local_file(remote_folder.path("y"))
    assert local_file(str(tmp_path)) == tmp_path


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


_CODE = (
    "from swsdist.io.filesystem import Folder\n"
    "with Folder('s3://b/x').temporary() as path:\n"
    "    path.write_bytes(b'half')\n"
    "    print(path, flush=True)\n"
    "    input()\n"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def writer(place: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], Path]]]:
    """Starts a process that has a temporary file, and waits for a line."""
    with ExitStack() as stack:

        def start() -> tuple[subprocess.Popen[str], Path]:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, "TMPDIR": str(place)}}
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", _CODE], text=True, **pipes))
            stack.callback(process.kill)
            assert process.stdout is not None
            return process, Path(process.stdout.readline().strip())

        yield start


def test_killed_and_living_processes_and_nobody_else_may_look(
    writer: Callable[[], tuple[subprocess.Popen[str], Path]], place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    killed, left = writer()
    living, used = writer()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert left.read_bytes() == used.read_bytes() == b"half"
    mine = scratch()
    assert mine.is_dir()
    assert not left.parent.exists()
    assert used.exists()
    assert sweep() == 0
    living.communicate("\n")
    assert sorted(place.glob("swsdist-*/*")) == [mine], "a process that ends removes its own"
    mine = scratch()
    assert {mine.stat().st_mode & 0o777, mine.parent.stat().st_mode & 0o777} == {0o700}
    mine.parent.chmod(0o777)
    sweep()
    assert mine.parent.stat().st_mode & 0o777 == 0o700
    with Folder("s3://bucket/x").temporary(".wav") as file:
        assert file.parent == mine
    shutil.rmtree(mine)
    assert scratch().is_dir()
    shutil.rmtree(mine.parent)
    mine.parent.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with raises(storage_codes.UNSAFE_TEMPORARY_FOLDER):
        scratch()
