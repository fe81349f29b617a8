"""What a stranger can send to the server, or hold of it, is bounded; and what follows when the server is killed."""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import psutil
import pytest

from swsdist.glossary.project import Project
from swsdist.io.filesystem import Folder
from swsdist.pipeline.lock import locked

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
import uvicorn

from swsdist.audio.reader import as_bytes
from swsdist.server import security as connections
from swsdist.server.app import Turns, create_app
from swsdist.server.security import Guard
from swsdist.server.service import Indexing, Service, Settings

TOKEN, PASSWORD = "the token", "open sesame"


class Served:
    """A real server; `ask` is a browser without a cookie."""

    def __init__(self, service: Service, server: uvicorn.Server, port: int) -> None:
        self.service, self.server, self.port = service, server, port
        self.headers = {"X-Swsdist": "1"}

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body or None, {**self.headers, **headers})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def wait_until_alone(self) -> None:
        until = time.monotonic() + 60
        while self.server.server_state.connections:
            assert time.monotonic() < until
            time.sleep(0.02)

    def enter(self) -> str:
        """The cookie that somebody with the address gets."""
        status, headers, _ = self.ask("GET", f"/?token={quote(TOKEN)}")
        assert status == 303
        return headers["set-cookie"].partition(";")[0]


@contextmanager
def serving(
    service: Service, most: int = 200, headers: float = 10.0, answers: float = 20.0, **guard: Any
) -> Iterator[Served]:
    kinds: dict[str, Any] = {"token": TOKEN, "hosts": frozenset({"127.0.0.1"}), "password": PASSWORD, **guard}
    app = create_app(service, Guard(**kinds))
    http = connections.protocol(most, headers, answers)
    config = uvicorn.Config(app, log_level="error", proxy_headers=False, http=http, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        yield Served(service, server, sock.getsockname()[1])
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def service(finished: Any, tmp_path: Path) -> Iterator[Service]:
    service = Service(Settings(str(finished.folder / "run"), tmp_path / "words"))
    yield service
    service.close()


def test_who_holds_connections_keeps_nobody_out(service: Service) -> None:
    with serving(service, most=20, headers=1.0) as served:
        held = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(60)]
        for each in held:
            each.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert served.ask("GET", "/health")[0] == 200
        served.wait_until_alone()  # each is closed, at once or after its second
        for each in held:
            each.close()


@pytest.mark.parametrize("ahead", [0, 4000])
def test_who_reads_nothing_keeps_nobody_out(service: Service, ahead: int) -> None:
    with serving(service, most=20, headers=1.0, answers=1.0) as served:
        held = []
        for _ in range(60):
            each = socket.socket()
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            each.connect(("127.0.0.1", served.port))
            held.append(each)
            with suppress(ConnectionError):  # who asks for too much at once
                each.sendall(b"GET /static/index.html HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * (ahead + 1))
            assert served.ask("GET", "/health")[0] == 200
        served.wait_until_alone()
        for each in held:
            each.close()


def test_who_reads_slowly_gets_all(service: Service) -> None:
    sound = service.project.add_sound(as_bytes(np.zeros(480_000), 16_000), name="long", person="Ann").sound
    with serving(service, answers=0.5) as served, closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        slow.connect(("127.0.0.1", served.port))
        target = f"/api/sound?sound={sound}&end=30"
        slow.sendall(
            f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nCookie: {served.enter()}\r\n\r\n".encode()
        )
        size = 0
        while size < 960_000:
            part = slow.recv(8192)
            assert part
            size += len(part)
            time.sleep(0.01)


def test_wrong_secrets_keep_nobody_out(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    def login(password: str) -> int:
        return served.ask("POST", "/login", urlencode({"password": password, "person": "Ann"}).encode())[0]

    with serving(service, most=400) as served, ThreadPoolExecutor(60) as pool:
        wrong = [pool.submit(login, f"no {n}") for n in range(60)]
        assert login(PASSWORD) == 303  # while the others wait
        assert not all(each.done() for each in wrong)
        assert {each.result() for each in wrong} == {401}
        assert "127.0.0.1" in caplog.text
        status, _, _ = served.ask("GET", "/?token=x", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"})
        assert status == 403
        assert served.enter()


def test_an_address_guesses_slowly(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsdist.server.security._WRONG", 3)
    monkeypatch.setattr("swsdist.server.security._DELAY", 0.0)
    with serving(service) as served:
        statuses = [served.ask("POST", "/login", b"password=no&person=x")[0] for _ in range(5)]
        assert (statuses[:3], statuses[-1]) == ([401] * 3, 429)
        assert served.ask("POST", "/login", urlencode({"password": PASSWORD, "person": "x"}).encode())[0] == 303
        assert served.enter()


def test_cookies_and_hosts_of_others(service: Service) -> None:
    cookies = ['prefs={"a":1}', "x=a b", "foo@bar=1", "a,b=1", "=", "x", "a=b; ; c", 'q="', "\xe9=\xe9"]
    hosts = ["[::1]", "127.0.0.1:8765;x", "evil.com@127.0.0.1:8765", "http://127.0.0.1", "127.0.0.1:x", "evil.com", "["]
    with serving(service) as served:
        cookie, leaving = served.enter(), served.enter()
        for other in cookies:
            for given in (f"{other}; {cookie}", f"{cookie}; {other}"):
                assert served.ask("GET", "/api/state", Cookie=given)[0] == 200
            assert served.ask("GET", "/api/state", Cookie=other)[0] == 401
        for host in hosts:
            assert served.ask("GET", f"/?token={quote(TOKEN)}", Host=host)[0] == 421
        assert served.ask("POST", "/logout", Cookie=leaving)[0] == 200
        assert [served.ask("GET", "/api/state", Cookie=one)[0] for one in (leaving, cookie)] == [401, 200]


@pytest.mark.parametrize(("proxies", "secure"), [((), False), (("127.0.0.1",), True)])
def test_a_session_ends_and_keeps_to_https(service: Service, proxies: Any, secure: bool, monkeypatch: Any) -> None:
    with serving(service, proxies=frozenset(proxies)) as served:
        _, headers, _ = served.ask("GET", f"/?token={quote(TOKEN)}", **{"X-Forwarded-Proto": "https"})
        assert ("; secure" in headers["set-cookie"].lower()) == secure
        cookie = headers["set-cookie"].partition(";")[0]
        assert served.ask("GET", "/api/state", Cookie=cookie)[0] == 200
        monkeypatch.setattr("swsdist.server.security._SESSION_SECONDS", 0.0)
        assert served.ask("GET", "/api/state", Cookie=cookie)[0] == 401


def test_a_place_beyond_its_recording_is_not_kept(service: Service) -> None:
    entry = service.project.add_entry(person="Ann", form="mwana")
    with serving(service) as served:
        for end, status in ((0.5, 200), (1e4, 400)):
            body = json.dumps({"place": {**PLACE, "end": end}, "verdict": "yes"}).encode()
            path = f"/api/entries/{entry.entry_id}/tokens"
            assert served.ask("POST", path, body, Cookie=served.enter())[0] == status


def test_a_proxy_names_people_as_they_write_themselves(service: Service) -> None:
    proxies = frozenset({"127.0.0.1"})
    with serving(service, token=None, user_header="X-User", proxies=proxies, password=None) as served:
        body = json.dumps({"form": "mwana"}).encode()
        assert served.ask("POST", "/api/entries", body, **{"X-User": "José".encode().decode("latin-1")})[0] == 200
    assert service.project.people() == ["José"]


def test_turns_have_an_end() -> None:
    turns = Turns(1, 2)
    with turns.waiting(), turns.waiting(), pytest.raises(Exception, match="waiting"), turns.waiting():
        pass
    with turns.waiting():
        pass


def test_an_imported_glossary_breaks_no_word(service: Service) -> None:
    with serving(service) as served:
        cookie = served.enter()
        entry = service.project.add_entry(person="Ann", form="mwana")
        body = json.dumps({"place": PLACE, "verdict": "yes"}).encode()
        assert served.ask("POST", f"/api/entries/{entry.entry_id}/tokens", body, Cookie=cookie)[0] == 200
        glossary = json.loads(served.ask("GET", "/api/export/project", Cookie=cookie)[2])
        (token,) = glossary["tokens"]
        with Project.open(service.project.folder.with_name("empty")) as empty:
            service.project, before = empty, service.project
            for change in ({"score": float("inf")}, {"score": float("nan")}, {"end": 1e9}, {"channel": 1 << 70}):
                sent = json.dumps({**glossary, "tokens": [token | change]}).encode()
                status, _, answer = served.ask(
                    "POST", "/api/import", sent, Cookie=cookie, **{"X-Name": "glossary.json"}
                )
                assert (status, json.loads(answer)["code"]) == (400, "malformed-file")
                assert empty.entries() == []
            service.project = before


#: Values that no form wants, by what is wrong with them.
HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 1 << 63, 1 << 70, 10**400, 1e300, -1e300, 1e9, 0.5, "1e400", "NaN", "-inf", "", " "),
    *("x" * 300, "語" * 90, "x" * 900_000, "\0", "\n", "|", "-", "#", "a|", "../../etc/passwd", "%s%n", "{}", "'\"<>"),
    *("\ud800", "\udfff.eaf", [], {}, [[]], {"a": {}}, [1 << 70], ["x"] * 300, [None], {"start": 1e300}),
)
#: Bodies that are no values at all.
BODIES = (
    *(b"[" * 200_000, b"{" * 1000, b"NaN", b'{"a":Infinity}', b"\xff\xfe", b'"\\ud800"', b"{}" * 9, b"[]", b"1" * 5000),
)
PLACE = {"doc_id": "d001", "channel": 1, "start": 0.1, "end": 0.5}
FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/person"): {"person": "Ann"},
    ("POST", "/api/search"): {"examples": [PLACE], "entry_id": 1, "narrow": {"folder": "x"}, "top": 5, "text": None}
    | {"speak": True},
    ("POST", "/api/entries"): {"form": "a", "gloss": "b", "variants": ["c"], "speaker": "d", "note": "e"},
    ("PATCH", "/api/entries/1"): {"form": "a", "gloss": "b", "variants": ["c"], "speaker": "d", "note": "e"},
    ("POST", "/api/entries/1/merge"): {"other": 2},
    ("POST", "/api/entries/1/split"): {"tokens": [1], "form": "x"},
    ("POST", "/api/entries/1/tokens"): {"place": PLACE, "verdict": "no", "score": 1.0, "example": True, "search": "s"},
    ("PATCH", "/api/tokens/1"): {"place": PLACE, "verdict": "yes", "note": "n", "variant": "v", "speaker": "s"},
    ("POST", "/api/corrections"): {"place": PLACE, "text": "a"},
    ("POST", "/api/classes"): {"key": "a", "aside": True},
    **{("DELETE", f"/api/{kind}/9"): {} for kind in ("corrections", "entries", "tokens")},
    **{("POST", f"/api/{what}"): {} for what in ("undo", "news/seen")},
}
QUERIES: dict[str, dict[str, Any]] = {
    "/api/sound": {"doc_id": "d001", "channel": 1, "start": 0.1, "end": 0.5, "pad": 0.1},
    "/api/overview": {"doc_id": "d001", "channel": 1, "start": 0.1, "end": 0.5, "points": 10},
    "/api/transcript": {"doc_id": "d001", "channel": 1, "start": 0.1, "end": 0.5},
    "/api/recordings": {"text": "d", "offset": 0},
    "/api/classes": {"offset": 0},
    "/api/likely": {"entry_id": 1, "search": "s"},
    "/api/entries": {"text": "a"},
    "/api/changes": {"after": 0},
    "/api/export/csv": {"entries": "1", "tier": "entry"},
    "/api/export/clips": {"entries": "1"},
}
IDS = ("99999999999999999999", "9" * 5000, "-1", "0", "x", "1e3", "%00", "%ED%A0%80", "..", "1%2F2", "%D9%A3", " 1")
HEADERS = ("Host", "Origin", "Cookie", "X-Name", "Range", "Sec-Fetch-Site", "X-Forwarded-For", "Content-Type")
WRITTEN = (
    *("", "[", "http://[", "a" * 9000, "\xff\xfe", "bytes=0-0,5-,-9999999999999999999", "%ED%A0%80"),
    "語".encode().decode("latin-1"),
)
#: Of files that are sent.
SENT = ("a.eaf", "a.TextGrid", "a.json", "語" * 96 + ".eaf", "a.eaf|", "%00", "\n", "x" * 4000, "a.wav", "a.ark:1")


def hostile(rng: random.Random) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Each route with each of its fields as each hostile value, and what else a request consists of."""
    for (method, path), fields in FORMS.items():
        for name, value in ((name, value) for name in fields for value in HOSTILE):
            values = {name: value} if isinstance(fields[name], dict) and rng.random() < 0.2 else {**fields, name: value}
            yield method, path, json.dumps(values).encode(), {}
        for inside in ("place", "examples"):
            for name, value in ((name, value) for name in (*PLACE, "sound") for value in HOSTILE if inside in fields):
                place: Any = {**PLACE, name: value}
                yield method, path, json.dumps({**fields, inside: place if inside == "place" else [place]}).encode(), {}
        yield from ((method, path, body, {}) for body in BODIES)
    for path, query in QUERIES.items():
        for name, value in ((name, value) for name in query for value in HOSTILE if len(str(value)) < 5000):
            text = urlencode({**query, name: value}, errors="surrogatepass")
            yield "GET", f"{path}?{text}", b"", {}
    for method, path in FORMS:
        if "/1" in path or "/9" in path:
            yield from ((method, path.replace("/1", f"/{each}").replace("/9", f"/{each}"), b"{}", {}) for each in IDS)
    yield from (("GET", f"/api/export/{each}", b"", {}) for each in IDS)
    for path in ("/api/state", "/api/sound?doc_id=d001&end=0.5", "/static/main.js", "/login", "/nowhere", "/?token=x"):
        for name, value in ((name, value) for name in HEADERS for value in WRITTEN):
            yield "GET", path, b"", {name: value}
    glossary = b'{"schema":"swsdist-glossary/1"}'
    for name in SENT:
        for body in (b"", b"<", b"\xff" * 99, b"{}", glossary, b"<ANNOTATION_DOCUMENT/>", TEXTGRID, *BODIES):
            yield "POST", rng.choice(["/api/import", "/api/sounds"]), body, {"X-Name": quote(name)}


TEXTGRID = b'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n1\n<exists>\n99999999\n'


@pytest.mark.slow
def test_hostile_requests(
    service: Service, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    entry = service.project.add_entry(person="Ann", form="mwana")
    requests = list(hostile(random.Random(1)))
    assert len(requests) > 1000
    process = psutil.Process()
    with serving(service) as served:
        cookie = served.enter()

        def ask(request: tuple[str, str, bytes, dict[str, str]]) -> tuple[Any, int, bytes]:
            method, path, body, headers = request
            named = {"Cookie": cookie, **headers}
            status, _, answer = served.ask(method, path.replace(" ", "%20"), body, **named)
            return (method, path[:200], body[:200], headers), status, answer

        ask(requests[0])
        before = process.memory_info().rss, process.num_fds()
        with ThreadPoolExecutor(4) as pool:
            for of, status, answer in pool.map(ask, requests):
                assert status < 500 or status == 503, (of, status, answer[:300])
                if status >= 400 and of[1].startswith("/api") and "Host" not in of[3]:
                    assert json.loads(answer)["code"], (of, status)
        assert service.project.entry(entry.entry_id)
        assert served.ask("GET", "/api/state", Cookie=cookie)[0] == 200
        assert process.memory_info().rss - before[0] < 500e6
        assert process.num_fds() - before[1] < 60
    assert "Traceback" not in caplog.text + "".join(capfd.readouterr())


INDEX = """
import sys
from swsdist.server.service import Indexing
indexing = Indexing(sys.argv[1], sys.argv[2], lambda: None)
import threading
threading.Thread(target=indexing.once, daemon=True).start()
while indexing._process is None:
    pass
print(indexing._process.pid, flush=True)
threading.Event().wait()
"""


@pytest.fixture
def tapes(small_corpus: Path, tmp_path: Path) -> Path:
    """A folder with one recording."""
    (tmp_path / "tapes").mkdir()
    shutil.copy(small_corpus / "audio" / "d001.flac", tmp_path / "tapes")
    return tmp_path / "tapes"


@pytest.mark.slow
def test_an_index_ends_with_its_server(tapes: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INDEX, str(tapes), str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        index = psutil.Process(int(server.stdout.readline()))
        os.kill(server.pid, signal.SIGKILL)
    index.wait(30)


@pytest.mark.slow
def test_the_index_of_another_is_waited_for(tapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsdist.server.service._AGAIN", 0.1)
    committed = threading.Event()
    indexing = Indexing(str(tapes), str(tmp_path / "run"), committed.set)
    with locked(Folder(str(tmp_path / "run"))):
        thread = threading.Thread(target=indexing.once)
        thread.start()
        until = time.monotonic() + 60
        while (indexing.state or {}).get("text") != "waiting":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert indexing.error is None
    thread.join(90)
    assert indexing.error is None
    assert committed.is_set()
