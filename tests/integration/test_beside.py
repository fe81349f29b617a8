"""What lies beside recordings is seen: speakers, words and tiers of annotations; and equal recordings are one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from swsdist.io.filesystem import Folder
from swsdist.server.app import create_app
from swsdist.server.security import Guard
from swsdist.server.service import Service, Settings
from swsdist.store.reading import Store
from tests.commands import in_this_process
from tests.support.field_folder import WORDS, eaf, make_folder

MFCC = 'features=[{"name": "mfcc", "options": {"fmax": 3700}}]'
PLAIN = ("--set", MFCC, "--set", "search.streams=[]", "--set", "executor.kind=serial")


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    tiers = {tier["name"]: tier["annotations"] for tier in state["annotations"]["tiers"]}
    once = dict.fromkeys(("notes", "A", "B", "later"), 1)
    assert tiers == {"words": len(WORDS["anna"]), "Ben - words": len(WORDS["ben"]), **once}
    assert state["annotations"]["recordings"] == 5
    assert state["speakers"] == ["Anna", "Ben"]
    assert "text" in state["kinds"]
    reasons = {Path(file["path"]).name: file["reason"] for file in state["rejected"]["files"]}
    bad = {"plain.eaf": "malformed-xml", "stereo.eaf": "late-annotations"}
    assert reasons == {"broken.wav": "damaged-header", **bad}


def test_tiers_of_a_stretch(client: TestClient) -> None:
    place = {"doc_id": "anna", "channel": 1, "start": 0.5, "end": 1.0}
    tiers = client.get("/api/tiers", params=place).json()["tiers"]
    assert [(tier["name"], tier["speaker"]) for tier in tiers] == [("words", "Anna"), ("notes", "")]
    assert [each["text"] for each in tiers[0]["annotations"]] == WORDS["anna"][:2]
    assert client.get("/api/tiers", params={**place, "doc_id": "plain"}).json() == {"tiers": []}
    copy = client.get("/api/tiers", params={**place, "doc_id": "backup/ben"}).json()["tiers"]
    assert [tier["speaker"] for tier in copy] == ["Ben"]


def test_what_is_saved_or_comes_later_is_seen(field: Path, service: Service, client: TestClient) -> None:
    saved, new = field / "anna.eaf", field / "plain.eaf"
    before = {path: path.read_bytes() for path in (saved, new)}
    place = {"channel": 1, "start": 0.4, "end": 0.9}

    def texts(name: str) -> list[str]:
        tiers = client.get("/api/tiers", params={**place, "doc_id": name}).json()["tiers"]
        return [each["text"] for tier in tiers for each in tier["annotations"]]

    try:
        new.unlink()
        service._look_beside(service.demand_archive())
        eaf(saved, {"words": ("Anna", ["saved"])})
        eaf(new, {"words": ("Anna", ["new"])})
        assert (texts("anna"), texts("plain")) == (["saved"], [])
        service._look_beside(service.demand_archive())
        assert texts("plain") == ["new"]
        assert not any(fault["id"] == "plain" for fault in service.beside.faults)
    finally:
        for path, data in before.items():
            path.write_bytes(data)


def test_all_files_are_imported_as_one_change(client: TestClient) -> None:
    answer = client.post("/api/annotations", json={"tiers": ["words", "Ben - words"]}).json()
    assert (answer["added"], answer["entries"], answer["unusable"]) == (5, 3, 1)
    entries = {entry["form"]: entry["yes"] for entry in client.get("/api/entries").json()["entries"]}
    assert entries == {"mbote": 2, "nzo": 2, "mai": 1}
    assert client.post("/api/undo").json()["change"] is not None
    assert client.get("/api/entries").json()["entries"] == []
    assert client.post("/api/annotations", json={"tiers": ["nothing"]}).json()["code"] == "empty-input"


def test_a_folder_is_imported(field: Path, tmp_path: Path) -> None:
    command = ["glossary", "import", tmp_path / "words", field, *("--person", "Ann", "--tier", "A", "--tier", "B")]
    ended = in_this_process(*command, "--store", f"{field}-swsdist/store")
    assert (ended.code, "2 added" in ended.out) == (0, True), ended.err
    assert "plain.eaf" in ended.err
    assert in_this_process(*command).code == 2


def test_what_sounds_the_same_is_one_recording(field: Path, client: TestClient) -> None:
    state = client.get("/api/state").json()
    assert (state["recordings"], state["documents"]) == (5, 8)
    seconds = sum(soundfile.info(str(field / f"{name}.wav")).duration for name in [*WORDS, "stereo", "plain"])
    assert state["hours"] == pytest.approx(seconds / 3600)
    rows = client.get("/api/recordings").json()["recordings"]
    also = {row["doc_id"]: row["also"] for row in rows}
    assert also == {"anna": ["anna.mp3"], "backup/ben": ["ben"], "both": [], "plain": [], "stereo": []}


@pytest.mark.parametrize(("doc_id", "other"), [("anna", "anna.mp3"), ("ben", "backup/ben"), ("stereo", "stereo")])
def test_a_hit_in_the_same_sound_is_judged_once(client: TestClient, doc_id: str, other: str) -> None:
    place = {"doc_id": doc_id, "channel": 1, "start": 0.5, "end": 0.9}
    entry = client.post("/api/entries", json={"form": "word"}).json()["entry_id"]

    def hits() -> list[tuple[str, float, float]]:
        answer = client.post("/api/search", json={"examples": [place], "entry_id": entry, "top": 200})
        listed = json.loads(answer.text.splitlines()[-1])["hits"]
        return [(hit["doc_id"], hit["start"], hit["end"]) for hit in listed if hit["doc_id"] in (doc_id, other)]

    before = hits()
    assert len({name for name, *_ in before}) == 1
    assert len(before) == len({round(start, 1) for _, start, _ in before})
    _, start, end = before[0]
    where = {"doc_id": other, "channel": 1 + (other == doc_id), "start": start, "end": end}
    judged = client.post(f"/api/entries/{entry}/tokens", json={"place": where, "verdict": "yes"})
    assert judged.status_code == 200
    assert len(hits()) == len(before) - 1


def test_a_search_lists_a_hit_once(field: Path) -> None:
    ended = in_this_process("search", f"{field}-swsdist", "--query", f"{field}/anna.wav:0.5-0.9", "--json")
    ranks: dict[int, set[str]] = {}
    for row in json.loads(ended.out):
        ranks.setdefault(row["rank"], set()).add(row["doc_id"])
    assert ranks[1] == {"anna", "anna.mp3"}
    assert all("anna" in names for names in ranks.values() if "anna.mp3" in names)
