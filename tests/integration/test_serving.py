"""The server's addresses, asked as the page asks them, over a run of the small corpus."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import soundfile

from swsdist.audio.streams import permitted
from swsdist.calibrate.likelihood import WORDS
from swsdist.glossary.project import KeptSounds, Project
from swsdist.glossary.words import Place
from swsdist.pipeline.lock import locked
from swsdist.searcher.searcher import Searcher
from tests.support.tables import read_rows

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from swsdist.server.app import create_app
from swsdist.server.running import as_before, settings_for, shown
from swsdist.server.security import Guard, Kept
from swsdist.server.service import Service, Settings
from tests.commands import in_this_process

TOKEN = "a token of this test"
ASK = {"X-Swsdist": "1"}


@pytest.fixture(scope="module")
def indexed(new_scene: Any, small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus and an index of it; to be copied, for recordings come and go here."""
    folder = tmp_path_factory.mktemp("indexed")
    shutil.copytree(small_corpus, folder / "corpus")
    new_scene(folder, folder / "corpus", {}).run(until="index")
    return folder


@pytest.fixture
def scene(new_scene: Any, indexed: Path, tmp_path: Path, env: dict[str, str]) -> Any:
    folder = tmp_path / "archive"
    shutil.copytree(indexed, folder, ignore=shutil.ignore_patterns("config.yaml"))
    return new_scene(folder, folder / "corpus", env)


@pytest.fixture
def service(scene: Any, tmp_path: Path) -> Iterator[Service]:
    scene.run(until="index")  # has nothing to do
    service = Service(Settings(str(scene.folder / "run"), tmp_path / "words"))
    yield service
    service.close()


def client_of(service: Service, **guard: Any) -> TestClient:
    """A browser that nobody has let in yet."""
    values = {"token": TOKEN, "hosts": frozenset({"testserver"}), **guard}
    return TestClient(create_app(service, Guard(**values)), headers=ASK)


@pytest.fixture
def client(service: Service) -> TestClient:
    client = client_of(service)
    assert client.get("/", params={"token": TOKEN}).status_code == 200
    return client


def index_anew(scene: Any, service: Service) -> None:
    scene.run(until="index")
    service._open()
    service.search_news()


def query_of(scene: Any, number: int = 0) -> Path:
    return scene.corpus / read_rows(scene.corpus / "queries.csv")[number]["path"]


def sent(client: TestClient, path: Path, name: str = "word.wav") -> dict[str, Any]:
    answer = client.post("/api/sounds", content=path.read_bytes(), headers={"X-Name": name})
    assert answer.status_code == 200, answer.text
    return answer.json()


def asked(client: TestClient, **values: Any) -> list[dict[str, Any]]:
    answer = client.post("/api/search", json=values)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def place_of(sound: dict[str, Any]) -> dict[str, Any]:
    return {"sound": sound["sound"], "channel": 1, "start": 0.0, "end": sound["duration"]}


def test_hits_are_those_of_a_searcher(scene: Any, client: TestClient) -> None:
    path = query_of(scene)
    *_, last = asked(client, examples=[place_of(sent(client, path))], top=20)
    assert last["final"]
    with Searcher(str(scene.folder / "run"), trim=False) as searcher:
        found = searcher.search(str(path), top=20)
    keys = ["doc_id", "start", "end"]
    assert [[hit[key] for key in keys] for hit in last["hits"]] == found[keys].to_numpy().tolist()
    likely = [hit["likely"] for hit in last["hits"]]
    assert likely == sorted(likely, reverse=True)
    assert 0 < last["likelihood"]["expected"] < 100


def test_what_was_judged_never_comes_back(scene: Any, client: TestClient) -> None:
    sound = sent(client, query_of(scene))
    entry = client.post("/api/entries", json={"form": "mubhu", "gloss": "tree"}).json()
    judged = {"place": place_of(sound), "verdict": "yes", "example": True}
    assert client.post(f"/api/entries/{entry['entry_id']}/tokens", json=judged).status_code == 200
    *_, last = asked(client, entry_id=entry["entry_id"])
    first, second = last["hits"][:2]
    before = last["likelihood"]["expected"]
    for hit, verdict in ((first, "yes"), (second, "no")):
        place = {"doc_id": hit["doc_id"], "channel": hit["channels"][0], "start": hit["start"], "end": hit["end"]}
        values = {"place": place, "verdict": verdict, "score": hit["score"]}
        answer = client.post(f"/api/entries/{entry['entry_id']}/tokens", json=values).json()
        assert answer["token"]["verdict"] == verdict
    assert answer["likelihood"]["judged"] == 2
    assert answer["likelihood"]["expected"] < before + 5
    *_, again = asked(client, entry_id=entry["entry_id"])
    assert "error" not in again, again
    places = [(hit["doc_id"], hit["start"]) for hit in again["hits"]]
    assert (first["doc_id"], first["start"]) not in places
    assert (second["doc_id"], second["start"]) not in places
    assert client.post("/api/undo").json()["change"]["kind"] == "judge"
    *_, undone = asked(client, entry_id=entry["entry_id"])
    there = [hit["start"] for hit in undone["hits"] if hit["doc_id"] == second["doc_id"]]
    assert any(abs(start - second["start"]) < 0.2 for start in there)


def test_an_example_that_cannot_be_used_is_left_out(scene: Any, client: TestClient) -> None:
    sound, row = sent(client, query_of(scene)), client.get("/api/recordings").json()["recordings"][0]
    lost = {"doc_id": row["doc_id"], "channel": 1, "start": 0.2, "end": 0.9}
    path = next((scene.corpus / "audio").glob(f"{row['doc_id']}.*"))
    path.rename(path.with_suffix(".gone"))
    short = {**lost, "end": 0.205}
    *_, last = asked(client, examples=[place_of(sound), lost, short])
    alone = client.post("/api/search", json={"examples": [lost]})
    heard = client.get("/api/sound", params={"doc_id": row["doc_id"], "start": 0, "end": 1})
    assert (heard.status_code, bool(heard.json()["remedy"])) == (415, True)
    path.with_suffix(".gone").rename(path)
    assert {warning.partition(" is")[0] for warning in last["warnings"]} == {"example 2", "example 3"}
    *_, own = asked(client, examples=[lost])
    around = [hit for hit in own["hits"] if hit["doc_id"] == row["doc_id"] and hit["start"] < 0.7 and hit["end"] > 0.4]
    assert (bool(last["hits"]), bool(own["hits"]), around) == (True, True, []), "the place that is asked with is no hit"
    assert (alone.status_code, alone.json()["code"]) == (415, "missing-recording")


def test_narrowed(scene: Any, client: TestClient) -> None:
    rows = client.get("/api/recordings").json()
    wanted = rows["recordings"][3]["recording"]
    sound = sent(client, query_of(scene))
    *_, last = asked(client, examples=[place_of(sound)], narrow={"recording": wanted})
    assert {hit["recording"] for hit in last["hits"]} == {wanted}
    *_, everywhere = asked(client, examples=[place_of(sound)], top=1000)
    keys = ("start", "end", "score", "likely")
    there = [[hit[key] for key in keys] for hit in everywhere["hits"] if hit["recording"] == wanted]
    assert [[hit[key] for key in keys] for hit in last["hits"]] == there
    answer = client.post("/api/search", json={"examples": [place_of(sound)], "narrow": {"speaker": "nobody at all"}})
    assert "nothing-there" in answer.text


def test_clips_in_parts(scene: Any, client: TestClient) -> None:
    row = client.get("/api/recordings").json()["recordings"][0]
    query = {"doc_id": row["doc_id"], "channel": 1, "start": 0.5, "end": 1.0, "pad": 0.25}
    whole = client.get("/api/sound", params=query)
    samples, rate = soundfile.read(io.BytesIO(whole.content))
    assert abs(len(samples) / rate - 1.0) < 0.01
    assert float(whole.headers["x-begin"]) == pytest.approx(0.25)
    part = client.get("/api/sound", params=query, headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, whole.content[100:200])
    for wrong, status in (("bytes=5-1", 400), ("x", 400), ("bytes=999999999-", 416)):
        answer = client.get("/api/sound", params=query, headers={"Range": wrong})
        assert (answer.status_code, answer.json()["code"]) == (status, "invalid-value")
    drawn = client.get("/api/overview", params={"doc_id": row["doc_id"], "points": 50}).json()
    assert len(drawn["low"]) == len(drawn["high"]) == 50
    assert min(drawn["low"]) < 0 < max(drawn["high"])


def test_nobody_enters_without_the_token(service: Service) -> None:
    client = client_of(service)
    for path in ("/api/state", "/api/entries", "/api/sound?doc_id=a&channel=1", "/"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/", params={"token": "wrong"}).status_code == 401
    for path in ("/", "/?token=old", "/api/state"):
        answer = client.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (answer.status_code, answer.headers["Content-Type"]) == (401, "text/html; charset=utf-8")
        assert TOKEN not in answer.text
    assert client.get("/api/state").json()["code"] == "request-refused"
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    linked = client.get("/", params={"token": TOKEN}, headers=elsewhere)
    assert 'url=/"' in linked.text  # a page of this server leads on, so that the cookie is sent
    assert client.get("/api/state").status_code == 200


def test_other_pages_change_nothing(client: TestClient) -> None:
    for headers in ({"X-Swsdist": ""}, {"Origin": "https://evil.example"}):
        assert client.post("/api/entries", json={"form": "x"}, headers=headers).status_code == 403
    assert client.get("/api/entries").json() == {"entries": []}


def test_password_and_proxy(service: Service) -> None:
    client = client_of(service, token=None, password="open sesame")
    assert client.get("/api/state").status_code == 401
    for password, status in (("no", 401), ("open sesame", 303)):
        login = client.post("/login", data={"password": password, "person": "Ann"}, follow_redirects=False)
        assert login.status_code == status
    assert client.get("/api/state").json()["person"] == "Ann"
    assert client.get("/").headers["Referrer-Policy"] == "same-origin"  # else a browser sends forms with `Origin: null`
    behind = client_of(service, token=None, user_header="X-User", proxies=frozenset({"testclient"}))
    assert behind.get("/api/state").status_code == 401
    assert behind.get("/api/state", headers={"X-User": "Ben"}).json()["person"] == "Ben"
    elsewhere = client_of(service, token=None, user_header="X-User", proxies=frozenset({"10.0.0.1"}))
    assert elsewhere.get("/api/state", headers={"X-User": "Ben"}).status_code == 401


def test_addresses_and_browsers_outlive_the_server(service: Service, tmp_path: Path) -> None:
    file = tmp_path / ".access.json"

    def started() -> TestClient:
        kept = Kept(file)
        return client_of(service, token=kept.token, kept=kept)

    first = started()
    token = json.loads(file.read_text())["token"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert first.get("/", params={"token": token}, follow_redirects=False).status_code == 303
    assert all(cookie.value not in file.read_text() for cookie in first.cookies.jar)
    second = started()
    second.cookies = first.cookies
    assert second.get("/api/state").status_code == 200  # the same browser
    assert started().get("/", params={"token": token}).status_code == 200  # a bookmark of the address
    assert second.post("/logout").status_code == 200
    third = started()
    third.cookies.update(dict(first.cookies))
    assert third.get("/api/state").status_code == 401

    file.chmod(0o644)  # others may have read it
    assert started().get("/", params={"token": token}).status_code == 401


def test_a_damaged_file_of_access_lets_nobody_in(service: Service, tmp_path: Path) -> None:
    file = tmp_path / ".access.json"
    for written in ("", "[", "[1]", '{"token": 1, "sessions": []}', '{"token": "short", "sessions": {"a": "b"}}'):
        file.write_text(written)
        file.chmod(0o600)
        kept = Kept(file)
        client = client_of(service, token=kept.token, kept=kept)
        assert client.get("/", params={"token": "short"}).status_code == 401
        assert client.get("/", params={"token": kept.token}).status_code == 200


def test_the_browser_gets_the_address_by_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Queue[tuple[str, int]] = Queue()

    def browse(uri: str) -> bool:
        page = Path(uri.removeprefix("file://"))
        opened.put((page.read_text(), page.stat().st_mode & 0o777))
        return True

    monkeypatch.delenv("WSL_DISTRO_NAME", raising=False)
    monkeypatch.setattr("webbrowser.open", browse)
    (tmp_path / ".open-left.html").write_text("of a killed server")
    with shown("http://127.0.0.1:1/?token=a&b", tmp_path):
        text, mode = opened.get(timeout=10)
        assert len(list(tmp_path.iterdir())) == 1
    assert "url=http://127.0.0.1:1/?token=a&amp;b" in text
    assert mode == 0o600
    assert not list(tmp_path.iterdir())


def test_wrong_requests(client: TestClient) -> None:
    place = {"doc_id": "d001", "start": 0, "end": 1}
    search, corrections, transcript = "/api/search", "/api/corrections", "/api/transcript?doc_id="
    stolen = {"sound": "../../etc/passwd", "start": 0, "end": 1}
    wrong: list[tuple[str, str, Any, int, str]] = [
        ("POST", search, {"examples": []}, 400, "missing-input"),
        ("POST", search, {"text": "word"}, 400, "empty-input"),
        ("POST", search, {"examples": [{**place, "start": 2}]}, 400, "invalid-value"),
        ("POST", search, {"examples": [{**place, "doc_id": "nowhere"}]}, 404, "not-in-archive"),
        ("POST", search, {"examples": [stolen]}, 404, "unknown-name"),
        ("POST", "/api/entries", {"gloss": "x"}, 400, "wrong-request"),
        ("PATCH", "/api/entries/99", {"gloss": "x"}, 404, "unknown-name"),
        ("POST", "/api/entries/99/tokens", {"verdict": "maybe"}, 400, "wrong-request"),
        ("GET", "/api/sound?doc_id=nowhere&channel=1", None, 404, "not-in-archive"),
        ("GET", "/api/sound?sound=../../etc/passwd", None, 404, "unknown-name"),
        ("GET", "/api/sound?doc_id=d001&start=999", None, 400, "invalid-times"),
        ("GET", "/api/sound?doc_id=d001&start=2&end=1", None, 400, "invalid-times"),
        ("GET", "/api/overview?doc_id=d001&start=999", None, 400, "invalid-times"),
        ("GET", "/api/overview?doc_id=nowhere", None, 404, "not-in-archive"),
        ("GET", "/api/export/nothing", None, 404, "unknown-name"),
        ("GET", f"{transcript}d001&start=99&end=121", None, 400, "invalid-value"),
        ("GET", f"{transcript}nowhere&start=0&end=1", None, 404, "not-in-archive"),
        ("POST", corrections, {"text": "x", "place": {"sound": "s", "start": 0, "end": 1}}, 404, "unknown-name"),
        ("POST", corrections, {"place": place}, 400, "invalid-value"),
        ("POST", corrections, {"text": "x", "place": {**place, "end": 999}}, 400, "invalid-value"),
    ]
    for method, path, values, status, code in wrong:
        answer = client.request(method, path, json=values)
        assert (answer.status_code, code in json.loads(answer.text.splitlines()[-1])["code"]) == (status, True), path


def test_what_is_sent_is_looked_at(client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = client.post("/api/sounds", content=b"this is no sound" * 100, headers={"X-Name": "x.wav"})
    assert answer.status_code == 415
    assert answer.json()["error"]
    monkeypatch.setattr("swsdist.server.sounds.UPLOAD_BYTES", 1000)
    assert client.post("/api/sounds", content=b"x" * 2000).status_code == 413
    monkeypatch.undo()
    monkeypatch.setattr("swsdist.server.sounds.UPLOAD_SECONDS", 1.0)
    file = tmp_path / "long.wav"
    soundfile.write(file, np.zeros(32_000), 16_000)
    assert "too-long" in client.post("/api/sounds", content=file.read_bytes()).text


def test_the_name_of_what_is_sent_is_no_command(
    scene: Any, client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sound = query_of(scene).read_bytes()
    seconds = soundfile.info(io.BytesIO(sound)).duration
    with permitted(True):
        for ending in (".;>z|", " >z|", ".wav|", ".ark:0", ".flac;>z |", "\0|", ".\n>z|", ".arrow:0+9"):
            answer = client.post("/api/sounds", content=sound, headers={"X-Name": quote(f"a{ending}")})
            client.post("/api/import", content=sound, headers={"X-Name": quote(f"a{ending}")})
            assert answer.json()["duration"] == pytest.approx(seconds)
    assert not (tmp_path / "z").exists()


def test_a_pack_elsewhere(scene: Any, service: Service, client: TestClient, tmp_path: Path) -> None:
    """A colleague hears and searches the words without the recordings, and says where they are when they come."""
    rows = client.get("/api/recordings").json()["recordings"][:2]
    entry = client.post("/api/entries", json={"form": "mubhu", "gloss": "tree"}).json()["entry_id"]
    places = [{"doc_id": row["doc_id"], "channel": 1, "start": 0.2, "end": 0.9} for row in rows]
    for place in places:
        client.post(f"/api/entries/{entry}/tokens", json={"place": place, "verdict": "yes"})
    (service.project.folder / "token").write_text("secret")
    for out in ("pack", "pack.zip"):
        assert in_this_process("glossary", "pack", service.project.folder, tmp_path / out).code == 0
    assert "[output-refused]" in in_this_process("glossary", "pack", service.project.folder, tmp_path / "pack").err
    found = in_this_process("search", tmp_path / "pack", "--query", query_of(scene))
    assert (found.code, bool(found.out)) == (0, True), found.err
    with zipfile.ZipFile(tmp_path / "pack.zip") as packed:
        files = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "pack").rglob("*") if path.is_file()}
        assert set(packed.namelist()) == files
    assert not any(name.endswith("/token") for name in files)
    (tmp_path / "other").mkdir()
    (tmp_path / "pack").rename(tmp_path / "other" / "pack")
    moved, elsewhere = scene.corpus / "audio", tmp_path / "new" / "place"
    elsewhere.parent.mkdir()
    moved.rename(elsewhere)
    with Project.open(tmp_path / "other" / "pack" / "words") as words:
        assert words.store == str(tmp_path / "other" / "pack" / "store"), "which was moved with it"
    colleague = Service(settings_for(str(tmp_path / "other" / "pack"), None))
    try:
        page = client_of(colleague)
        page.get("/", params={"token": TOKEN})
        assert [each["gloss"] for each in page.get("/api/entries").json()["entries"]] == ["tree"]
        heard = page.get("/api/sound", params={**places[0], "pad": 0.1})
        sound, rate = soundfile.read(io.BytesIO(heard.content))
        assert (heard.headers["x-begin"], len(sound)) == ("0.100000", round(0.9 * rate))
        *_, without = asked(page, entry_id=entry)
        assert without["warnings"] == []
        lost = page.get("/api/sound", params={**places[0], "start": 2.0, "end": 2.5})
        assert (lost.status_code, lost.json()["code"]) == (415, "missing-recording")
        wrong = page.post("/api/recordings-folder", json={"folder": str(tmp_path)})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "not-the-recordings")
        with locked(colleague.archive.searcher.store.folder):  # an index commits to it
            taken = page.post("/api/recordings-folder", json={"folder": str(elsewhere)})
        assert taken.json()["code"] == "folder-in-use"
        found = page.post("/api/recordings-folder", json={"folder": str(elsewhere)}).json()
        assert found["there"] == found["of"] > 0
        assert page.get("/api/sound", params={**places[0], "start": 2.0, "end": 2.5}).status_code == 200
        *_, with_recordings = asked(page, entry_id=entry)
        keys = ("doc_id", "start", "score")
        one, other = ([[hit[key] for key in keys] for hit in last["hits"]] for last in (without, with_recordings))
        assert one == other
        first = next(iter(elsewhere.iterdir()))
        (tmp_path / "fewer").mkdir()
        shutil.copy(first, tmp_path / "fewer")
        fewer = page.post("/api/recordings-folder", json={"folder": str(tmp_path / "fewer")})
        assert (fewer.status_code, first.name in fewer.text) == (400, False)
        first.write_bytes(first.read_bytes()[:-2])
        other = page.post("/api/recordings-folder", json={"folder": str(elsewhere)})
        assert (other.status_code, first.name in other.text) == (400, True)
        folder, place = colleague.project.folder, Place(**places[0])
        assert KeptSounds(folder).of(place, None) is not None
        assert colleague.project.forget([places[0]["doc_id"]])["tokens"] == 1
        assert KeptSounds(folder).of(place, None) is None, "nothing of a document that is forgotten is left"
    finally:
        colleague.close()


def test_news_of_recordings_that_came_later(
    scene: Any, service: Service, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Scores are no higher among the few candidates of nine recordings.
    monkeypatch.setitem(WORDS, "possible", 0.01)
    service.search_news()
    assert service.news() == []
    entry = service.project.add_entry(person="Ann", form="word")
    row = read_rows(scene.corpus / "refs.csv")[0]
    place = Place(doc_id=row["doc_id"], channel=1, start=float(row["start"]), end=float(row["end"]), sound=None)
    service.project.judge(entry.entry_id, place, "yes", person="Ann", example=True)
    documents = read_rows(scene.corpus / "docs.csv")
    again = {**next(each for each in documents if each["doc_id"] == row["doc_id"]), "doc_id": "new"}
    samples, rate = soundfile.read(scene.corpus / again["path"])
    again |= {"path": str(scene.folder / "new.wav"), "duration": ""}  # longer: a copy is no news
    soundfile.write(again["path"], np.concatenate([samples, samples[: rate // 2]]), rate)
    listed = scene.corpus / "docs.csv"
    with listed.open("a", newline="") as file:
        csv.DictWriter(file, list(documents[0])).writerow(again)
    index_anew(scene, service)
    (news,) = client.get("/api/news").json()["news"]
    assert {hit["doc_id"] for hit in news["hits"]} == {"new"}
    client.post("/api/news/seen")
    assert client.get("/api/news").json() == {"news": []}


def test_a_replaced_recording(scene: Any, service: Service, client: TestClient) -> None:
    rows = client.get("/api/recordings").json()["recordings"]
    row, other = rows[0]["doc_id"], rows[1]["doc_id"]
    place = {"doc_id": row, "channel": 1, "start": 0.5, "end": 1.0}
    entry = client.post("/api/entries", json={"form": "word"}).json()["entry_id"]
    sound = sent(client, query_of(scene))
    for each in (place, place_of(sound), {**place, "doc_id": other}):
        assert client.post(f"/api/entries/{entry}/tokens", json={"place": each, "verdict": "yes"}).status_code == 200

    def heard() -> tuple[bytes, bool]:
        answer = client.get("/api/sound", params={**place, "pad": 0})
        return answer.content, "x-replaced" in answer.headers

    def tokens() -> dict[str, bool]:
        listed = client.get(f"/api/entries/{entry}/tokens").json()["tokens"]
        return {token["place"]["doc_id"]: token["replaced"] for token in listed}

    (first, replaced), path = heard(), next((scene.corpus / "audio").glob(f"{row}.*"))
    os.utime(path)
    assert (replaced, heard()) == (False, (first, False))  # a copy has a new time
    *_, before = asked(client, entry_id=entry)
    samples, rate = soundfile.read(path)
    soundfile.write(path, samples[::-1], rate)
    (second, replaced) = heard()
    assert replaced
    assert second != first
    assert tokens() == {row: True, None: False, other: False}  # before it is indexed, too
    for values in ({"entry_id": entry}, {"examples": [place, place_of(sound)]}):
        *_, last = asked(client, **values)
        assert [row in warning for warning in last["warnings"]] == [True]
    alone = client.post("/api/search", json={"examples": [place]})
    assert (alone.status_code, alone.json()["code"]) == (400, "changed-input")
    for kind, count in (("labels", 1), ("clips", 2), ("tables", None)):
        with zipfile.ZipFile(io.BytesIO(client.get(f"/api/export/{kind}").content)) as exported:
            assert row in exported.read("left-out.txt").decode()
            if kind == "tables":
                assert row not in exported.read("queries.csv").decode() + exported.read("judgements.csv").decode()
            else:
                assert len([name for name in exported.namelist() if name.startswith(kind)]) == count
    index_anew(scene, service)
    assert heard() == (second, False)
    assert tokens() == {row: True, None: False, other: False}
    *_, last = asked(client, entry_id=entry)
    assert len(last["warnings"]) == 1
    assert last["likelihood"]["yes"] == 1
    assert client.get("/api/likely", params={"entry_id": entry, "search": before["search"]}).json()["likely"] == []
    with zipfile.ZipFile(io.BytesIO(client.get("/api/export/labels").content)) as exported:
        assert exported.namelist() == [f"labels/{other}.txt", "left-out.txt"]
    client.post(f"/api/entries/{entry}/tokens", json={"place": place, "verdict": "no"})
    assert tokens()[row] is False
    client.post("/api/undo")
    assert tokens()[row] is True


def words_of(scene: Any, service: Service, folder: Path, **said: list[tuple[str, float, float]]) -> None:
    """Put words into the store of the archive, which the server looks for."""
    transcripts, words = folder / "transcripts", scene.folder / "run/store/words"
    shutil.rmtree(transcripts, ignore_errors=True)
    transcripts.mkdir()
    for doc_id, some in said.items():
        written = [{"word": f" {text}", "start": start, "end": end, "probability": 0.9} for text, start, end in some]
        (transcripts / f"{doc_id}.json").write_text(json.dumps({"segments": [{"words": written}]}))
    run = str(folder / "recognised")
    ended = in_this_process("index", str(transcripts), "--run", run, "--set", "executor.kind=serial", "--force")
    assert ended.code == 0, ended.err
    shutil.rmtree(words, ignore_errors=True)
    shutil.copytree(f"{run}/store", words)
    service.look_for_words(after=0)


def test_an_archive_and_its_index_share_words(tmp_path: Path) -> None:
    """Whichever is opened or named; words that an index already has under its own name stay there."""
    run = tmp_path / "tapes-swsdist"
    for folder, name in ((tmp_path / "tapes", ""), (run, "plan.json"), (run / "store", "manifest.json")):
        folder.mkdir()
        if name:
            (folder / name).touch()
    archives = [str(tmp_path / "tapes"), str(run), str(run / "store")]
    assert {settings_for(archive, None).project for archive in archives} == {tmp_path / "tapes-words"}
    Project.open(tmp_path / "tapes-words").close()
    assert [in_this_process("glossary", "list", archive).code for archive in archives] == [0, 0, 0]
    Project.open(tmp_path / "tapes-swsdist-words").close()
    assert {settings_for(archive, None).project.name for archive in archives[1:]} == {"tapes-swsdist-words"}
    assert settings_for(archives[0], None).project.name == "tapes-words"


def test_words_of_the_archive(scene: Any, service: Service, client: TestClient, tmp_path: Path) -> None:
    names = sorted(row["doc_id"] for row in client.get("/api/recordings").json()["recordings"])
    assert client.get("/api/state").json()["kinds"] == ["spoken"]
    stretch = {"doc_id": names[0], "start": 0, "end": 2}
    assert client.get("/api/transcript", params=stretch).json() == {"words": [], "known": False, "replaced": 0}
    said = [("Mbote,", 0.2, 0.5), ("na", 0.5, 0.6), ("mwana", 0.8, 1.2)]
    words_of(scene, service, tmp_path, **{names[0]: said, names[1]: said[2:]})
    state = client.get("/api/state").json()
    assert (state["kinds"], state["words"]) == (["spoken", "text"], True)
    *_, last = asked(client, text="mwana")
    assert sorted(hit["doc_id"] for hit in last["hits"]) == names[:2]
    assert last["unsearched"] == {"count": len(names) - 2, "names": names[2:5]}
    *_, last = asked(client, text="mwána")
    assert (len(last["hits"]), last["instead"]) == (2, ["mwana"])
    *_, last = asked(client, text="mwana", narrow={"recording": names[1]})
    assert ([hit["doc_id"] for hit in last["hits"]], last["unsearched"]["count"]) == (names[1:2], 0)
    nothing = client.post("/api/search", json={"text": "mwana", "narrow": {"recording": names[2]}})
    assert (nothing.status_code, nothing.json()["code"]) == (400, "empty-input")
    words_of(scene, service, tmp_path, **dict.fromkeys(names, said))
    *_, last = asked(client, text="mbote")
    assert (len(last["hits"]), last["unsearched"]["count"]) == (len(names), 0)


def test_a_correction(scene: Any, service: Service, client: TestClient, tmp_path: Path) -> None:
    name = min(row["doc_id"] for row in client.get("/api/recordings").json()["recordings"])
    words_of(scene, service, tmp_path, **{name: [("Mbote,", 0.2, 0.5), ("na", 0.5, 0.6), ("mwana", 0.8, 1.2)]})

    def shown(start: float = 0.0, end: float = 2.0) -> list[tuple[str, str | None]]:
        answer = client.get("/api/transcript", params={"doc_id": name, "start": start, "end": end}).json()
        assert answer["known"]
        return [(word["text"], word.get("recognised")) for word in answer["words"]]

    assert shown() == [("Mbote,", None), ("na", None), ("mwana", None)]
    assert shown(0.55, 99) == [("na", None), ("mwana", None)]  # until its end
    place = {"doc_id": name, "channel": 1, "start": 0.2, "end": 0.6}
    made = client.post("/api/corrections", json={"place": place, "text": " mbote  nayo "}).json()
    assert shown() == [("mbote nayo", "Mbote, na"), ("mwana", None)]
    words_of(scene, service, tmp_path, **{name: [("mbo", 0.21, 0.4), ("teno", 0.41, 0.61), ("wana", 0.8, 1.2)]})
    assert shown() == [("mbote nayo", "mbo teno"), ("wana", None)]  # of the place, whatever is recognised there
    assert "mbote nayo" in client.get("/api/export/eaf").text
    assert client.post("/api/undo").status_code == 200
    assert shown() == [("mbo", None), ("teno", None), ("wana", None)]
    client.post("/api/corrections", json={"place": place, "text": ""})
    assert shown() == [("", "mbo teno"), ("wana", None)]
    path = next((scene.corpus / "audio").glob(f"{name}.*"))
    samples, rate = soundfile.read(path)
    soundfile.write(path, samples[::-1], rate)
    answer = client.get("/api/transcript", params={"doc_id": name, "start": 0, "end": 2}).json()
    assert ([word["text"] for word in answer["words"]], answer["replaced"]) == (["mbo", "teno", "wana"], 1)
    with zipfile.ZipFile(io.BytesIO(client.get("/api/export/csv").content)) as exported:  # tables hold all
        assert '0.6,""' in exported.read("corrections.csv").decode()
    assert name in client.get("/api/export/textgrid").text  # left-out.txt
    index_anew(scene, service)
    made = client.post("/api/corrections", json={"place": place, "text": "mbote"}).json()
    assert shown() == [("mbote", "mbo teno"), ("wana", None)]
    assert client.delete(f"/api/corrections/{made['correction_id']}").status_code == 200
    assert client.delete(f"/api/corrections/{made['correction_id']}").status_code == 404


def test_a_removed_recording(scene: Any, service: Service, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORDS, "possible", 0.0)
    monkeypatch.setattr(Project, "keep_sounds", lambda *_: 0)  # judged before sounds were kept
    first, second = (row["doc_id"] for row in client.get("/api/recordings").json()["recordings"][:2])
    entry = client.post("/api/entries", json={"form": "word"}).json()["entry_id"]
    for doc_id in (first, second):
        place = {"doc_id": doc_id, "channel": 1, "start": 0.5, "end": 1.0}
        client.post(f"/api/entries/{entry}/tokens", json={"place": place, "verdict": "yes"})
    service.search_news()
    listed = scene.corpus / "docs.csv"
    listed.write_text("".join(line for line in listed.open() if not line.startswith(first)))
    index_anew(scene, service)
    *_, last = asked(client, entry_id=entry)
    assert last["hits"]
    assert [warning[:10] for warning in last["warnings"]] == ["example 1 "]
    with zipfile.ZipFile(io.BytesIO(client.get("/api/export/clips").content)) as exported:
        assert first in exported.read("left-out.txt").decode()
    state = service._kept()["state"]
    client.patch("/api/tokens/2", json={"example": False})  # all that is left
    client.post("/api/entries", json={"form": "other"})
    listed.write_text(listed.read_text().replace(f"{second},", "new,"))
    index_anew(scene, service)
    assert service._kept()["failed"] == {str(entry): state}  # what it was not searched in is searched later
    client.patch("/api/tokens/2", json={"place": {**place, "doc_id": "new"}, "example": True})
    service.search_news()
    assert [hit["doc_id"] for news in service.news() for hit in news["hits"]]
    assert service._kept()["failed"] == {}


def test_voices_and_classes_are_as_before(tmp_path: Path) -> None:
    said = list[str]()
    words, voice = tmp_path / "words", ("espeak-ng:en-us",)
    as_before(Settings("run", words, speak=voice, classes="found"), said.append)
    assert said == []
    again = as_before(Settings("run", words), said.append)
    assert (again.speak, again.classes, len(said)) == (voice, str(Path("found").resolve()), 1)
    as_before(Settings("run", words, speak=("flite:slt",)), said.append)
    last = as_before(Settings("run", words, classes="other"), said.append)
    assert (last.speak, last.classes) == (("flite:slt",), str(Path("other").resolve()))
    Project.open(words).close()
