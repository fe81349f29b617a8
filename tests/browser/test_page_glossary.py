"""The glossary in a real browser: words, tokens, merging, splitting, taking along, two people at once, news."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

TEXTGRID = """File type = "ooTextFile"
Object class = "TextGrid"

0 3 <exists> 1 "IntervalTier" "words" 0 3 3 0 1 "" 1 1.6 "nzoku" 1.6 3 ""
"""


def add(at: Any, form: str) -> None:
    at.page.fill("#new-form", form)
    at.page.keyboard.press("Enter")
    at.page.wait_for_selector(f"#entries li[aria-current]:has-text('{form}')")


def judged(at: Any, form: str, keys: str) -> None:
    at.page.fill("#word-form", form)
    at.search()
    for n, key in enumerate(keys):
        at.page.keyboard.press(key)
        at.until(f"document.querySelectorAll('.hit[data-verdict]:not([data-verdict=\"\"])').length === {n + 1}")


def test_an_entry_is_kept_as_it_is_typed_and_it_is_told_who_changed_it(visit: Any) -> None:
    at = visit("#glossary")
    add(at, "mbote")
    for field, value in {"gloss": "hello", "variants": "mboté, mbota", "speaker": "Abo", "note": "also: good"}.items():
        at.page.fill(f"#entry-{field}", value)
        with at.page.expect_response(lambda reply: reply.request.method == "PATCH"):
            at.page.locator(f"#entry-{field}").blur()
    at.until("document.querySelector('#said').textContent === 'Saved.'")
    at.page.reload()
    at.until("document.querySelector('#entry-variants').value === 'mboté, mbota'")
    assert at.page.input_value("#entry-note") == "also: good"
    at.page.click("#history summary")
    at.page.wait_for_selector("#history-changes li >> nth=1")
    assert all("me: " in line for line in at.page.locator("#history-changes li").all_inner_texts())


def test_words_are_found_within_the_glossary_merged_and_removed_when_one_is_sure(visit: Any) -> None:
    at = visit("#glossary")
    for form in ("mbote", "nzoku", "ndako"):
        add(at, form)
    at.page.locator("#entry-title").click()
    at.page.keyboard.press("/")
    at.page.keyboard.type("nzo")
    at.until("document.querySelectorAll('#entries li').length === 1")
    assert at.text("#entries .form") == "nzoku"
    at.page.reload()
    at.until("document.querySelectorAll('#entries li').length === 3")
    for n in (0, 1):
        at.page.check(f"#entries li >> nth={n} >> input")
    at.page.click("#merge")
    at.until("document.querySelectorAll('#entries li').length === 2")
    at.page.locator("#entry-title").click()
    at.page.keyboard.press("z")
    at.until("document.querySelectorAll('#entries li').length === 3")
    add(at, "mwana")
    at.page.click("#entry-remove")
    add(at, "kota")
    at.page.click("#entry-remove")  # it was asked of the other word
    assert at.count("#entries li") == 5
    at.page.click("#entry-remove")
    at.page.wait_for_selector("#entries li >> nth=4", state="detached")
    assert "kota" not in at.page.locator("#entries .form").all_inner_texts()
    at.page.keyboard.press("z")
    at.page.wait_for_selector("#entries li >> nth=4")


def test_tokens_are_changed_and_split_off(visit: Any) -> None:
    at = visit()
    judged(at, "mbote", "yyn")
    at.page.keyboard.press("g")
    at.page.wait_for_selector(".token >> nth=3")
    at.until("document.querySelector('.token canvas').width > 300")
    at.page.select_option("#tokens-only", "no")
    assert at.count(".token") == 1
    with at.page.expect_response(lambda reply: reply.request.method == "PATCH"):
        at.page.select_option(".token select", "unsure")
    at.page.select_option("#tokens-only", "all")
    at.page.wait_for_selector(".token[data-verdict=unsure]")
    at.page.check(".token[data-verdict=unsure] .row input")
    at.page.fill("#split-form", "nzoku")
    at.page.keyboard.press("Enter")
    at.page.wait_for_selector("#entries li[aria-current]:has-text('nzoku')")
    at.until("document.querySelectorAll('.token').length === 1")


def test_a_token_is_moved_by_keys_and_removed(visit: Any) -> None:
    at = visit()
    judged(at, "mbote", "y")
    at.page.keyboard.press("g")
    at.page.wait_for_selector(".token >> nth=1")
    hit = ".token:not(:has-text('Given sound'))"
    handle = at.page.locator(f"{hit} .handle[data-side=end][aria-valuenow]")
    before = float(handle.get_attribute("aria-valuenow"))
    handle.focus()
    for times in (1, 2):  # the focus stays
        with at.page.expect_response(lambda reply: reply.url.endswith("/tokens") and reply.request.method == "GET"):
            at.page.keyboard.press("ArrowRight")
        at.page.wait_for_selector(f"{hit} .handle[data-side=end][aria-valuenow='{before + 0.01 * times:.2f}']")
    at.page.click(f"{hit} button:has-text('✕')")
    at.page.wait_for_selector(hit, state="detached")
    at.page.keyboard.press("z")
    at.page.wait_for_selector(hit)


def test_words_are_taken_along(visit: Any) -> None:
    at = visit()
    judged(at, "mbote", "y")
    at.page.keyboard.press("g")
    at.page.check("#entries li >> nth=0 >> input")
    kinds = at.page.locator("#export-kind option").evaluate_all("options => options.map((option) => option.value)")
    assert len(kinds) > 5
    for kind in kinds:
        at.page.select_option("#export-kind", kind)
        assert at.page.is_visible("#export-forms") == (kind == "lift")
        assert "entries=" in at.page.get_attribute("#export-link", "href")
        if kind == "lift":
            at.page.fill("#export-forms", "mdw")
            at.page.keyboard.press("Tab")
            assert "forms=mdw" in at.page.get_attribute("#export-link", "href")
        with at.page.expect_download() as download:
            at.page.click("#export-link")
        assert download.value.path().stat().st_size > 0, kind
        assert "." in download.value.suggested_filename


def test_a_hit_of_a_recording_that_moved_plays_again(visit: Any, served: Any) -> None:
    at = visit()
    folder = served.archive.folder
    moved = folder.rename(folder.with_name("moved"))
    try:
        at.search()
        assert at.count(".failure") == 0  # nobody has asked for its sound yet
        at.page.click(".hit.current .play")
        at.page.fill(".failure input", str(moved))
        at.page.keyboard.press("Enter")
        at.page.wait_for_selector(".hit.current .stretch.playing")
        at.page.wait_for_selector(".failure", state="detached")
    finally:
        moved.rename(folder)
        at.page.evaluate(
            "folder => import('/static/api.js').then(({ change }) => change('POST', 'recordings-folder', { folder }))",
            str(folder),
        )
    at.faults[:] = [fault for fault in at.faults if "415" not in fault]


@pytest.mark.parametrize("examples", [True, False])
def test_annotations_are_brought_in_as_examples_or_not(visit: Any, served: Any, tmp_path: Any, examples: bool) -> None:
    at = visit("#glossary")
    name = Path(served.archive.recordings[0]).name
    file = tmp_path / f"{name}.TextGrid"
    file.write_text(TEXTGRID)
    at.page.set_checked("#import-examples", examples)
    at.page.set_input_files("#import-file", file)
    at.page.wait_for_selector("#import-told:has-text('1 added')")
    at.page.click("#entries a:has-text('nzoku')")
    at.page.wait_for_selector(f".token:has-text('{name}')")
    assert at.page.is_checked(".token label input") == examples
    with at.page.expect_request("**/api/search") as sent:
        at.page.click("#entry-search")
    assert json.loads(sent.value.post_data)["text"] == (None if examples else "nzoku")
    at.page.wait_for_selector("#examples li")


def test_a_project_is_brought_in_and_annotations_of_no_recording_are_refused(visit: Any, tmp_path: Any) -> None:
    at = visit("#glossary")
    add(at, "mbote")
    brought, file = tmp_path / "words.json", tmp_path / "elsewhere.TextGrid"
    brought.write_bytes(at.page.request.get(at.page.url.partition("#")[0] + "api/export/project").body())
    at.page.set_input_files("#import-file", brought)
    at.page.wait_for_selector("#import-told:has-text('0 added')")
    file.write_text(TEXTGRID)
    at.page.set_input_files("#import-file", file)
    at.page.wait_for_selector(".failure")
    assert "elsewhere" in at.text(".failure p")
    at.faults[:] = [fault for fault in at.faults if "404" not in fault]


def test_two_people_at_once(visit: Any) -> None:
    ann, ben = visit(), visit()
    for at, name in ((ann, "Ann"), (ben, "Ben")):
        at.page.click("#person-button")
        at.page.fill("#person", name)
        at.page.keyboard.press("Enter")
        at.page.wait_for_selector(f"#person-name:has-text('{name}')")
    judged(ann, "mbote", "y")
    ben.page.wait_for_selector("#said:has-text('Ann')", state="attached")
    ben.page.keyboard.press("g")
    ben.page.click("#entries a:has-text('mbote')")
    ben.page.click("#entry-search")
    ben.page.keyboard.press("s")
    ben.wait_for_hits()
    ann.page.keyboard.press("n")  # while Ben has the hit on his page
    ben.page.wait_for_selector(".hit[data-verdict=no] .verdict:has-text('Ann')", state="attached")
    ben.page.keyboard.press("z")  # his own last change, of which there is none
    ben.page.wait_for_selector("#said:has-text('nothing')", state="attached")


def test_news_of_a_watched_folder(visit: Any, served: Any) -> None:
    at = visit("#glossary")
    add(at, "mbote")
    place = {"doc_id": served.archive.recordings[0], "channels": [1], "start": 3.1, "end": 3.7, "at": 3.1}
    about = {"recording": place["doc_id"], "speaker": "", "date": None, "score": 1.0, "likely": 0.8, "called": "likely"}
    news = {"entry_id": 1, "form": "mbote", "hits": [{**place, **about}], "documents": 2}
    (served.project / "news.json").write_text(json.dumps({"state": None, "news": [news]}))
    at.page.reload()
    at.page.click("#to-news")
    at.page.wait_for_selector("#news .hit")
    assert "2 recordings" in at.text("#news h3")
    with at.page.expect_request("**/tokens") as sent:
        at.page.click("#news .hit button[data-verdict=yes]")
    assert json.loads(sent.value.post_data)["verdict"] == "yes"
    at.page.wait_for_selector("#news .hit[data-verdict=yes]")
    at.page.click("#news-seen")
    at.page.wait_for_selector("#news-none")
