"""The page for everybody: keyboard alone, screen readers, contrast, 200 %, a phone, French, and a server that fails."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from swsdist.server import running

pytestmark = pytest.mark.browser

WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(visit: Any, served: Any, scheme: str, width: int) -> None:
    at = visit(color_scheme=scheme, viewport={"width": width, "height": 900})
    found = {"empty": at.violations()}
    at.page.click("#tab-mark")
    at.page.click("#recordings button >> nth=0")
    at.page.wait_for_selector(".trim-search")
    found["mark"] = at.violations()
    at.search()
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".hit[data-verdict=yes]")
    at.page.click(".hit.current .transcript > button")
    at.page.evaluate("document.querySelectorAll('.hit:nth-child(n + 3)').forEach((hit) => hit.remove())")  # the same
    found["hits"] = at.violations()
    for view, shown in (("candidates", ".candidate"), ("glossary", "#entry"), ("news", "#view-news")):
        at.page.evaluate(f"document.querySelector('#to-{view}').click()")
        at.page.wait_for_selector(shown)
        found[view] = at.violations()
    at.page.keyboard.press("?")
    found["help"] = at.violations()
    at.page.keyboard.press("Escape")
    at.page.click("#person-button")
    found["person"] = at.violations()
    at.page.context.clear_cookies()
    at.page.goto(served.url)
    found["entrance"] = at.violations()
    assert {view: rules for view, rules in found.items() if rules} == {}
    at.faults[:] = [fault for fault in at.faults if "401" not in fault]


def test_nothing_scrolls_sideways(visit: Any) -> None:
    """At a phone's width, at 200 % on a screen of 1280 (a page of 640), and there with letters twice as large."""
    at = visit(viewport={"width": 390, "height": 800}, device_scale_factor=2)
    at.search()
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".hit[data-verdict=yes]")
    for width in (390, 640, 1280):
        at.page.set_viewport_size({"width": width, "height": 900})
        if width == 1280:
            at.page.evaluate("""() => {
              const sheet = new CSSStyleSheet();
              sheet.replaceSync("html { font-size: 200% }");
              document.adoptedStyleSheets = [sheet];
            }""")
        for view in ("glossary", "candidates", "news", "search"):
            at.page.evaluate(f"document.querySelector('#to-{view}').click()")
            at.page.wait_for_selector(f"#view-{view}")
            assert at.page.evaluate(WIDE) <= 0, view
        for tab in ("upload", "mark"):
            if at.page.locator(f"#tab-{tab}").is_visible():
                at.page.click(f"#tab-{tab}")
                assert at.page.evaluate(WIDE) <= 0, tab


def test_the_whole_way_by_keyboard_alone(visit: Any) -> None:
    at = visit()
    at.page.keyboard.press("Tab")
    assert at.page.locator("#skip:focus").is_visible()
    at.page.keyboard.press("r")
    at.until("document.querySelector('#record-clock').textContent > '0:01.2'")
    at.page.keyboard.press("r")
    at.page.wait_for_selector(".trim-search")
    for _ in range(40):
        at.page.keyboard.press("Tab")
        focus = "getComputedStyle(document.activeElement).outlineStyle"
        assert at.page.evaluate(focus) != "none"  # one sees where one is
        if at.page.evaluate("document.activeElement.classList.contains('trim-search')"):
            break
    at.page.keyboard.press("Enter")
    at.wait_for_hits()
    at.page.keyboard.press("j")
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".hit[data-verdict=yes]")
    at.page.keyboard.press("?")
    assert at.page.locator("#help").is_visible()
    assert at.count("#keys dt") == at.count("#keys dd") > 12
    at.page.keyboard.press("Escape")
    assert not at.page.locator("#help").is_visible()


def test_keys_are_heeded_where_they_are_meant_and_screen_readers_are_told(visit: Any) -> None:
    """Tabs are chosen by arrows, what is typed is no key, and single keys can be switched off."""
    at = visit()
    at.page.locator("#tab-record").focus()
    at.page.keyboard.press("ArrowRight")
    assert at.page.locator("#ask-upload").is_visible()
    at.page.keyboard.press("Home")
    assert at.page.locator("#ask-record").is_visible()
    assert at.count("[role=tab][aria-selected=true]") == 1
    at.search()
    assert at.page.get_attribute("#said", "aria-live") == "polite"
    assert str(at.count(".hit")) in at.page.locator("#said").text_content()
    label = at.page.get_attribute(".hit.current", "aria-label")
    assert "likely" in label
    assert at.text(".hit.current .time") in label
    at.page.fill("#word-form", "")
    at.page.locator("#word-form").focus()
    at.page.keyboard.type("synuz")
    assert at.page.input_value("#word-form") == "synuz"
    at.page.locator(".hit.current").focus()
    at.page.keyboard.press("?")
    at.page.uncheck("#keys-on")
    at.page.keyboard.press("Escape")
    at.page.locator(".hit.current").focus()
    at.page.keyboard.press("y")
    assert at.count(".hit:not([data-verdict=''])") == 0


def test_one_enters_by_a_password(visit: Any, served: Any) -> None:
    at = visit()
    at.page.context.clear_cookies()
    at.page.goto(served.url)
    for password, shown in (("wrong", "text=not the password"), (served.password, "body[data-ready=yes]")):
        at.page.fill("[name=person]", "Mère Ngala")
        at.page.fill("[name=password]", password)
        at.page.keyboard.press("Enter")
        at.page.wait_for_selector(shown)
    assert at.text("#person-name") == "Mère Ngala"
    at.faults[:] = [fault for fault in at.faults if "401" not in fault]


def test_the_page_is_french_for_who_wants_it(visit: Any, served: Any, served_beside: Any) -> None:
    at = visit(locale="fr-FR")
    assert at.page.get_attribute("html", "lang") == "fr"
    assert at.text("#to-glossary") == "Glossaire"
    at.page.select_option("#language", "en")
    at.page.wait_for_selector("html[lang=en] #to-glossary:has-text('Glossary')")
    for url in (served_beside.entrance, served.url, served_beside.url):
        at.open(url)


def test_no_text_comes_from_elsewhere_than_the_texts(visit: Any) -> None:
    """With every text in brackets, each text that is shown has brackets, or is a name, a number or a key."""
    at = visit()

    def bracketed(route: Any) -> None:
        texts = json.loads(route.fetch().text())
        route.fulfill(body=json.dumps({key: f"⟦{text}⟧" for key, text in texts.items()}))

    at.page.route("**/texts/en.json", bracketed)
    at.page.reload()
    at.page.wait_for_selector("body[data-ready=yes]")
    at.search()
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".hit[data-verdict=yes]")
    at.page.keyboard.press("?")
    bare = at.page.evaluate("""() => {
      const found = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const part = walker.currentNode.parentElement;
        if (part.closest("kbd, .where, .who, .transcribed, #people, #person-name, #store-name, #narrow option")) continue;
        if (part.closest(".what") && !part.classList.contains("quiet")) continue;
        found.push(walker.currentNode.textContent);
      }
      return found;
    }""")
    letters = [text for text in bare if any(c.isalpha() for c in text) and not ("⟦" in text and "⟧" in text)]
    assert letters == []


def test_a_judgement_that_fails_is_tried_again(visit: Any) -> None:
    at = visit()
    at.search()
    full = {"error": "The disk is full.", "remedy": "Make room, then try again.", "code": "disk"}
    at.page.route("**/api/entries*", lambda route: route.fulfill(status=507, body=json.dumps(full)))
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".failure")
    assert "The disk is full. Make room, then try again." in at.text(".failure")
    assert "Not saved" in at.page.locator(".hit .verdict").all_inner_texts()[0]
    at.page.unroute("**/api/entries*")
    at.page.click(".failure button >> nth=0")
    at.page.wait_for_selector(".hit[data-verdict=yes]")
    assert at.count(".failure") == 0
    at.faults[:] = [fault for fault in at.faults if "507" not in fault]


def test_a_server_that_goes_away_is_told_and_nothing_is_lost(visit: Any) -> None:
    at = visit()
    at.page.fill("#word-form", "mbote")
    at.search()
    at.page.context.set_offline(True)
    at.page.wait_for_selector("#lost")
    assert at.page.input_value("#word-form") == "mbote"
    at.page.context.set_offline(False)
    at.page.wait_for_selector("#lost", state="hidden")
    assert at.count("#examples li") == 1
    at.faults[:] = [fault for fault in at.faults if "ERR_INTERNET" not in fault]


def test_a_folder_is_indexed_while_one_looks(visit: Any, served: Any, tmp_path: Path) -> None:
    """`swsdist serve FOLDER` as one types it."""
    folder = tmp_path / "recordings"
    shutil.copytree(served.archive.folder, folder)
    command = [sys.executable, "-m", "swsdist.cli.main", "serve", ".", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = next(line for line in process.stdout if line.startswith("open:"))
            at = visit()
            at.open(printed.split()[1])
            at.page.wait_for_selector("#indexing")
            assert at.text("#store-name") == "recordings"
            at.page.wait_for_selector("#indexing", state="hidden", timeout=120_000)
            at.page.wait_for_selector(f"#store-size:has-text('{len(served.archive.recordings)} recordings')")
            at.search()
            at.page.keyboard.press("y")
            at.page.wait_for_selector(".hit[data-verdict=yes]")
        finally:
            process.terminate()
    assert process.returncode == 0
    assert (tmp_path / "recordings-words").is_dir()


def test_a_desktop_opens_the_page(chromium: Any, served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a file, from which a browser enters as from another site."""
    opened: Queue[str] = Queue()
    monkeypatch.delenv("WSL_DISTRO_NAME", raising=False)
    monkeypatch.setattr("webbrowser.open", opened.put)
    with chromium.new_context() as context, running.shown(served.entrance, tmp_path):
        page = context.new_page()
        page.goto(opened.get(timeout=10))
        page.wait_for_selector("body[data-ready=yes]")
        page.goto(served.url)
        page.wait_for_selector("body[data-ready=yes]")


def test_progress_of_indexing_is_at_the_top(visit: Any) -> None:
    at = visit()
    told = at.page.evaluate("fetch('api/state').then((reply) => reply.json())")
    told["indexing"] = {"part": 0.4, "documents": 40, "of": 100, "text": "indexing"}
    message = {"path": "/tapes/empty.wav", "id": "empty", "message": "the file has 0 bytes", "remedy": "copy it again"}
    told["rejected"] = {"count": 1, "files": [message]}
    at.page.route("**/api/state", lambda route: route.fulfill(body=json.dumps(told)))
    at.page.reload()
    at.page.wait_for_selector("#indexing")
    assert "40 of 100" in at.text("#indexing-words")
    assert "can search" in at.text("#indexing-words")
    at.page.click("#rejected-count")
    assert " ".join(at.text("#rejected-files li").split()) == "empty.wav the file has 0 bytes – copy it again"
    told["indexing"] = None
    at.page.wait_for_selector("#indexing", state="hidden")
