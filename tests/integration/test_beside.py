"""What lies beside recordings is seen: speakers, words and tiers of annotations; and equal recordings are one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from swsdist.io.filesystem import Folder
from swsdist.server.app import create_app
from swsdist.server.security import Guard
from swsdist.server.service import Service, Settings
from swsdist.store.reading import Store
from tests.commands import in_this_process
from tests.support.field_folder import WORDS, make_folder

PLAIN = ("--set", 'features=[{"name": "mfcc"}]', "--set", "search.streams=[]", "--set", "executor.kind=serial")


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, indexed."""
    folder = make_folder(tmp_path_factory.mktemp("field"))
    ended = in_this_process("index", str(folder), "--run", f"{folder}-swsdist", *PLAIN)
    assert ended.code == 0, ended.err
    return folder


@pytest.fixture
def service(field: Path, tmp_path: Path) -> Iterator[Service]:
    service = Service(Settings(f"{field}-swsdist", tmp_path / "words"))
    until = time.monotonic() + 30
    while service.beside is None and time.monotonic() < until:
        time.sleep(0.02)
    yield service
    service.close()


@pytest.fixture
def client(service: Service) -> TestClient:
    guard = Guard("token", frozenset({"testserver"}))
    client = TestClient(create_app(service, guard), headers={"X-Swsdist": "1"})
    client.get("/", params={"token": "token"})
    return client


def test_speakers_that_tiers_name(field: Path) -> None:
    table = Store(Folder(f"{field}-swsdist/store")).documents(columns=["doc_id", "speaker"])
    named = {row["doc_id"]: row["speaker"] for row in table.to_pylist() if row["speaker"]}
    assert named == {"anna": "Anna", "anna.mp3": "Anna", "ben": "Ben"}


def test_annotations_are_told(client: TestClient) -> None:
    state = client.get("/api/state").json()
    assert {tier["name"]: tier["annotations"] for tier in state["annotations"]["tiers"]} == {
        "words": len(WORDS["anna"]),
        "notes": 1,
        "Ben - words": len(WORDS["ben"]),
        "A": 1,
        "B": 1,
    }
    assert state["annotations"]["recordings"] == 4
    assert state["speakers"] == ["Anna", "Ben"]
    assert "text" in state["kinds"]
    assert {Path(file["path"]).name for file in state["rejected"]["files"]} == {"broken.wav", "plain.eaf"}
    assert all(file["reason"] and file["message"] for file in state["rejected"]["files"])


def test_tiers_of_a_stretch(client: TestClient) -> None:
    place = {"doc_id": "anna", "channel": 1, "start": 0.5, "end": 1.0}
    tiers = client.get("/api/tiers", params=place).json()["tiers"]
    assert [(tier["name"], tier["speaker"]) for tier in tiers] == [("words", "Anna"), ("notes", "")]
    assert [each["text"] for each in tiers[0]["annotations"]] == WORDS["anna"][:2]
    assert client.get("/api/tiers", params={**place, "doc_id": "plain"}).json() == {"tiers": []}


def test_all_files_are_imported_as_one_change(client: TestClient) -> None:
    answer = client.post("/api/annotations", json={"tiers": ["words", "Ben - words"]}).json()
    assert (answer["added"], answer["entries"], answer["unusable"]) == (5, 3, 1)
    entries = {entry["form"]: entry["yes"] for entry in client.get("/api/entries").json()["entries"]}
    assert entries == {"mbote": 2, "nzo": 2, "mai": 1}
    assert client.post("/api/undo").json()["change"] is not None
    assert client.get("/api/entries").json()["entries"] == []
    assert client.post("/api/annotations", json={"tiers": ["nothing"]}).json()["code"] == "nothing-to-import"
