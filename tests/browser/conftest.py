"""The page of a real server in a real browser. Every test has a server over the same archive, with a glossary of its own."""

import contextlib
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.spoken_archive import SpokenArchive, make_archive

#: Programs that are a Chromium.
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")

#: Opens the servers, too.
PASSWORD = "open sesame"

#: Rules of axe-core.
AXE = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

#: Seconds after which what is waited for never comes, on a slow machine too.
NEVER = 120


@dataclass
class Browsed:
    """A server to browse: its address, what opens it, its glossary's folder, and the archive that it serves."""

    url: str
    token: str
    password: str
    project: Path
    archive: SpokenArchive

    @property
    def entrance(self) -> str:
        return f"{self.url}?token={self.token}"


@pytest.fixture(scope="session")
def spoken_archive(tmp_path_factory: pytest.TempPathFactory) -> SpokenArchive:
    return make_archive(tmp_path_factory.mktemp("archive"))


@contextlib.contextmanager
def serving(archive: SpokenArchive, project: Path, speak: tuple[str, ...] = ()) -> Iterator[Browsed]:
    import uvicorn

    from swsdist.server.app import create_app
    from swsdist.server.security import Guard
    from swsdist.server.service import Service, Settings

    service = Service(Settings(archive.run, project, texts=archive.texts, speak=speak, classes=archive.classes))
    token = secrets.token_urlsafe(8)
    app = create_app(service, Guard(token, frozenset({"127.0.0.1"}), PASSWORD))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        yield Browsed(f"http://127.0.0.1:{sock.getsockname()[1]}/", token, PASSWORD, project, archive)
        server.should_exit = True
        thread.join(10)
    service.close()


@pytest.fixture
def served(spoken_archive: SpokenArchive, tmp_path: Path) -> Iterator[Browsed]:
    with serving(spoken_archive, tmp_path / "words") as browsed:
        yield browsed


@pytest.fixture
def served_beside(spoken_archive: SpokenArchive, tmp_path: Path) -> Iterator[Browsed]:
    """Another server of this machine."""
    with serving(spoken_archive, tmp_path / "other-words") as browsed:
        yield browsed


@pytest.fixture
def served_without_words(spoken_archive: SpokenArchive, tmp_path: Path) -> Iterator[Browsed]:
    """A server of an archive whose words nobody recognised."""
    with serving(spoken_archive._replace(texts=None), tmp_path / "voices") as browsed:
        yield browsed


@pytest.fixture
def served_speaking(spoken_archive: SpokenArchive, tmp_path: Path) -> Iterator[list[Browsed]]:
    """Servers that speak typed words: of an archive with words, and of one without."""
    voice = ("espeak-ng:en-us",)
    with (
        serving(spoken_archive, tmp_path / "both", voice) as both,
        serving(spoken_archive._replace(texts=None), tmp_path / "frames", voice) as frames,
    ):
        yield [both, frames]


@pytest.fixture(scope="session")
def chromium(spoken_archive: SpokenArchive) -> Iterator[Any]:
    """A Chromium whose microphone gives the example."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        pytest.skip("there is no chromium on the PATH, and CHROMIUM names none")
    flags = ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with sync_api.sync_playwright() as playwright:
        capture = f"--use-file-for-fake-audio-capture={spoken_archive.word}"
        browser = playwright.chromium.launch(executable_path=found, args=[*flags, capture])
        yield browser
        browser.close()


@dataclass
class Visitor:
    """Somebody at the page: `page` is playwright's, `faults` what the browser complained of, `word` a file of the word."""

    page: Any
    faults: list[str]
    word: Path

    def open(self, url: str) -> "Visitor":
        self.page.goto(url)
        self.page.wait_for_selector("body[data-ready=yes]")
        return self

    def until(self, expression: str) -> None:
        """Wait until an expression holds. The page's policy forbids playwright's own way, which compiles in the page."""
        end = time.monotonic() + NEVER
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"never: {expression}"
            self.page.wait_for_timeout(20)

    def record(self) -> None:
        self.page.click("#record-button")
        self.until("document.querySelector('#record-clock').textContent > '0:01.2'")
        self.page.click("#record-button")
        self.page.wait_for_selector(".trim-search")

    def bring(self) -> None:
        """Upload the word: it is asked for sooner than said."""
        self.page.click("#tab-upload")
        self.page.set_input_files("#upload-file", self.word)
        self.page.wait_for_selector(".trim-search")

    def search(self) -> None:
        self.bring()
        self.page.click(".trim-search")
        self.wait_for_hits()

    def wait_for_hits(self) -> None:
        self.page.wait_for_selector(".hit")
        self.page.wait_for_selector("#search-part", state="hidden")

    def violations(self) -> list[str]:
        """What axe-core finds wrong with what is shown: rule, and the first element."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="there is no axe-playwright-python")
        wanted = {"runOnly": {"type": "tag", "values": AXE}}
        found = axe.Axe().run(self.page, options=wanted).response["violations"]
        return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())


@pytest.fixture
def visit(chromium: Any, served: Browsed) -> Iterator[Any]:
    """Opens the page for one more visitor; at the end no page may have complained."""
    visitors: list[Visitor] = []
    contexts = []

    def opened(where: str = "", **options: Any) -> Visitor:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-GB", **options})
        contexts.append(context)
        context.set_default_timeout(NEVER * 1000)
        visitor = Visitor(context.new_page(), [], served.archive.word)
        visitor.page.on("pageerror", lambda error: visitor.faults.append(str(error)))
        visitor.page.on("console", lambda line: line.type == "error" and visitor.faults.append(line.text))
        visitors.append(visitor)
        return visitor.open(served.entrance + where)

    yield opened
    faults = [fault for visitor in visitors for fault in visitor.faults]
    for context in contexts:
        context.close()
    assert faults == []
