"""Words beside the sound in a real browser: typed, marked, heard, corrected, taken along; annotations beside it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Visitor, serving
from tests.commands import in_this_process
from tests.support.field_folder import WORDS, make_folder
from tests.support.spoken_archive import WRITTEN, SpokenArchive

pytestmark = pytest.mark.browser

CORRECTED = "mbóte <b>ya</b>"


def ask_for_the_word(at: Any) -> None:
    at.page.keyboard.press("q")
    at.page.keyboard.type(WRITTEN)
    at.page.keyboard.press("Enter")
    at.wait_for_hits()


def test_a_word_is_typed_corrected_and_taken_along(visit: Any) -> None:
    at = visit()
    ask_for_the_word(at)
    words = ".hit.current .word"
    at.page.wait_for_selector(f"{words} mark")
    assert at.page.locator(words).all_inner_texts() == [WRITTEN]
    assert at.text(f"{words} mark") == WRITTEN
    assert at.page.input_value("#word-form") == WRITTEN
    at.page.click(words)
    at.page.wait_for_selector(f"{words}.speaking")
    at.page.click(".hit.current .transcript > button")
    assert at.page.input_value(".hit.current .correcting input") == WRITTEN
    at.page.keyboard.type(CORRECTED)
    at.page.keyboard.press("Enter")
    at.page.wait_for_selector(f"{words}.corrected")
    assert at.text(f"{words} mark") == CORRECTED
    assert WRITTEN in at.page.get_attribute(words, "title")
    at.page.reload()
    at.page.wait_for_selector("body[data-ready=yes]")
    ask_for_the_word(at)
    at.page.wait_for_selector(".word.corrected")  # what is corrected is found by what was recognised
    at.page.keyboard.press("g")
    with at.page.expect_download() as download:
        at.page.click("#export-link")
    file = download.value.path().read_text(encoding="utf-8")
    assert 'TIER_ID="corrected text"' in file
    assert "mbóte &lt;b&gt;ya&lt;/b&gt;" in file
    at.page.keyboard.press("f")
    at.page.keyboard.press("z")
    at.page.wait_for_selector(".word.corrected", state="detached")


def test_an_archive_without_words_says_so(visit: Any, served_without_words: Any) -> None:
    at = visit()
    assert at.page.locator("#text-none").is_hidden()
    at.open(served_without_words.entrance)
    assert "swsdist index" in at.text("#text-none")
    assert at.page.locator("#text-form").is_hidden()
    at.search()
    assert at.count(".transcript") == 0


def test_a_typed_word_is_searched_by_its_sound(visit: Any, served_speaking: Any) -> None:
    """Where there are words too, a box chooses; where there are none, no place has a transcript."""
    at = visit()
    box = at.page.get_by_label("by its sound")
    assert box.is_hidden()
    for served, has_words in zip(served_speaking, (True, False), strict=True):
        at.open(served.entrance)
        assert box.is_visible() == has_words
        if has_words:
            box.check()
        at.page.fill("#text-query", "mother")
        with at.page.expect_request("**/api/search") as request:
            at.page.keyboard.press("Enter")
        assert request.value.post_data_json["speak"] == has_words
        if shutil.which("espeak-ng"):
            at.wait_for_hits()
            assert bool(at.count(".transcript")) == has_words


@pytest.mark.slow
def test_tiers_are_shown_and_imported(chromium: Any, tmp_path: Path) -> None:
    folder, run = make_folder(tmp_path), str(tmp_path / "field-swsdist")
    assert in_this_process("index", str(folder), "--run", run, "--set", "executor.kind=serial").code == 0
    archive = SpokenArchive(folder, run, None, "", [], folder / "anna.wav", [])
    with serving(archive, tmp_path / "words") as browsed:
        page = chromium.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB").new_page()
        at = Visitor(page, [], archive.word).open(browsed.entrance)
        assert page.is_visible("#text-form")
        page.click("#tab-mark")
        page.click("#recordings button")
        page.wait_for_selector(".tiers .annotation")
        assert at.text(".tier:first-child .annotation:nth-of-type(1)") == WORDS["anna"][0]
        page.click("button.annotation >> nth=1")
        assert "0.5" in at.text("#asked-sound .row .quiet")
        page.click("#to-glossary")
        page.select_option("#beside-tier", ["words", "B"])
        page.click("#beside button")
        page.wait_for_selector("#entries li")
        assert at.count("#entries li") == 2
        page.context.close()
