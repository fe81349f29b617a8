"""A run on S3 through a proxy that injects faults: the digests of an undisturbed run, or a clear error, and a resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import storage as codes
from swsdist.core.errors import SwsdistError
from swsdist.io.filesystem import Folder
from swsdist.io.remote import client
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.execution import executor
from tests.support.coded import raises
from tests.support.fault_proxy import Fault, FaultProxy


@pytest.fixture
def proxy(s3: Any) -> Iterator[FaultProxy]:
    """Before moto's server; without faults, until a test names them."""
    with FaultProxy(s3.endpoint, seed=11) as made:
        yield made


@pytest.fixture
def disturbed(scene: Any, s3: Any, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The scene with corpus, store and run on S3 behind the proxy, and no pauses before things are done again."""
    monkeypatch.setattr(client, "pause", lambda attempt: 0.0)
    monkeypatch.setattr(executor, "pause", lambda attempt: 0.0)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda self, context: 0.0)
    storage = {**s3.storage, "endpoint_url": proxy.endpoint, "config_kwargs": {"read_timeout": 1}}
    scene.move_to_s3(s3, storage)
    return scene


def comes_through(scene: Any, s3: Any, proxy: FaultProxy, faults: list[Fault], wanted: dict[str, str]) -> str:
    """Run with faults; whether it came to its end at once. If not, it says why, and the next run, without faults, does."""
    run, outcome = scene.base["run"], "done"
    proxy.faults = faults
    try:
        result = scene.run("index.shards=3", run=run, selection=StepSelection(keep_going=True))
        if result.outcome.failures:
            outcome = "failed tasks"
    except SwsdistError as error:
        outcome, said = "stopped", error.remedy
    else:
        said = "nothing"
    assert said
    assert sum(proxy.done.values()) > 0, "no fault was met"
    proxy.faults = []
    if outcome != "done":
        # They could not be given back, and this process lives on; a driver's locks go with its process.
        for name in ("lock.json", "store/lock.json"):
            Folder(run, s3.storage).remove(name)
        scene.run("index.shards=3", run=run)
    assert scene.digest(run, s3.storage) == wanted
    return outcome


@pytest.mark.slow
def test_many_kinds_at_once(disturbed: Any, s3: Any, proxy: FaultProxy, undisturbed: dict[str, str]) -> None:
    kinds = ("500", "503", "refused", "no-answer", "cut", "short", "long", "flipped", "cut-upload")
    faults = [Fault(kind, probability=0.015) for kind in kinds]
    assert comes_through(disturbed, s3, proxy, faults, undisturbed) == "done"
    assert len(proxy.done) >= 6, proxy.done


@pytest.mark.parametrize(
    "fault",
    [
        *(
            pytest.param(Fault(kind, probability=0.15), marks=pytest.mark.soak, id=kind)
            for kind in ("500", "503", "refused", "no-answer", "cut", "short", "long", "flipped")
        ),
        pytest.param(Fault("cut-upload", ("PUT", "POST"), probability=0.3), marks=pytest.mark.soak, id="cut-upload"),
        pytest.param(Fault("slow", probability=0.03, seconds=1.5), marks=pytest.mark.soak, id="slow"),
        pytest.param(Fault("drip", ("GET",), probability=0.02, seconds=0.4), marks=pytest.mark.slow, id="drip"),
    ],
)
@pytest.mark.until("search")
def test_one_kind(disturbed: Any, s3: Any, proxy: FaultProxy, undisturbed: dict[str, str], fault: Fault) -> None:
    assert comes_through(disturbed, s3, proxy, [fault], undisturbed) == "done"


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("503", "cut-upload")),
        *(
            pytest.param(kind, marks=pytest.mark.soak)
            for kind in ("500", "refused", "expired", "unknown-key", "no-answer")
        ),
    ],
)
@pytest.mark.until("search")
def test_an_outage(disturbed: Any, s3: Any, proxy: FaultProxy, undisturbed: dict[str, str], kind: str) -> None:
    """From the fortieth request on nothing goes: the run ends by itself and says why; later it goes on."""
    fault = Fault(kind, ("PUT",) if kind == "cut-upload" else (), first=10 if kind == "cut-upload" else 40)
    assert comes_through(disturbed, s3, proxy, [fault], undisturbed) != "done"


@pytest.mark.slow
@pytest.mark.until("search")
def test_credentials_are_rotated(
    disturbed: Any, s3: Any, proxy: FaultProxy, undisturbed: dict[str, str], tmp_path: Path, monkeypatch: Any
) -> None:
    """The server refuses the old key from the thirtieth request on; the file of credentials has the new one by then."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text("[default]\naws_access_key_id=OLD\naws_secret_access_key=x\n")
    disturbed.base["storage"] = {"endpoint_url": proxy.endpoint}

    def renew(attempt: int) -> float:
        file.write_text("[default]\naws_access_key_id=NEWER\naws_secret_access_key=y\n")
        return 0.0

    monkeypatch.setattr(client, "pause", renew)
    fault = Fault("expired", access_keys=("OLD",), first=30)
    assert comes_through(disturbed, s3, proxy, [fault], undisturbed) == "done"
    assert "NEWER" in file.read_text()


@pytest.mark.slow
def test_a_bucket_that_may_not_be_written(disturbed: Any, s3: Any, proxy: FaultProxy) -> None:
    proxy.faults = [Fault("unknown-key", ("PUT", "POST"))]
    with raises(codes.INVALID_S3_CREDENTIALS):
        disturbed.run(run=disturbed.base["run"])
    assert proxy.done["unknown-key"] <= 3
