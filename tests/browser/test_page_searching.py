"""Asking and judging in a real browser: record, upload, mark, type, word candidates; keys; undo; again with the examples."""

import json
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.support.spoken_archive import WRITTEN

pytestmark = pytest.mark.browser

#: Recording and time of hits.
WHERE = "hits => hits.map((hit) => ['.where', '.time'].map((name) => hit.querySelector(name).textContent).join(' '))"


def test_the_recorded_word_is_found_where_it_is_said(visit: Any, served: Any) -> None:
    at = visit()
    at.record()
    at.page.click(".trim-search")
    at.wait_for_hits()
    best = at.page.locator(".hit .where").all_inner_texts()[:2]
    assert sorted(best) == served.archive.said_in
    assert at.text("#store-name") == served.archive.folder.name
    assert at.page.locator(".hit .likely").first.inner_text()
    assert at.text("#hits-count").split()[0] == str(at.count(".hit"))
    assert at.count("#examples li") == 1
    assert at.page.locator("#entries li").count() == 0  # nothing is kept before a judgement
    at.page.uncheck("#examples input")
    assert at.page.locator("#search-button").is_disabled()
    assert at.text("#examples-count").startswith("0 of 1")
    at.page.fill("#most", "1")
    at.page.locator("#most").blur()
    at.page.check("#examples input")
    at.page.locator(".hit.current").focus()
    at.page.keyboard.press("y")
    at.page.wait_for_selector("#examples li >> nth=1")
    assert at.text("#examples-count").startswith("1 of 2")  # one is enough, the person said


def test_hits_are_drawn_play_at_once_and_their_ends_move(visit: Any) -> None:
    at = visit()
    at.search()
    at.until("document.querySelector('.hit.current canvas').width > 300")
    drawn = "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return new Set(d).size }"
    assert at.page.locator(".hit.current canvas").evaluate(drawn) > 50
    begin, end = (
        float(at.page.locator(f".hit.current .handle[data-side={s}]").get_attribute("aria-valuenow"))
        for s in ("start", "end")
    )
    low = float(at.page.locator(".hit.current .handle").first.get_attribute("aria-valuemin"))
    assert low < begin < end  # within its context
    at.page.keyboard.press(" ")
    at.page.wait_for_selector(".hit.current .stretch.playing")
    at.page.wait_for_selector(".hit.current .stretch.playing", state="detached")
    first = at.page.locator(".hit.current").get_attribute("aria-label")
    at.page.keyboard.press("j")
    assert at.page.locator(".hit:focus").get_attribute("aria-label") != first
    at.page.keyboard.press("k")
    assert at.page.locator(".hit:focus").get_attribute("aria-label") == first
    assert at.count(".hit[tabindex='0']") == 1  # Tab goes through one hit, not through all
    at.page.keyboard.press("t")
    before = float(at.page.locator(":focus").get_attribute("aria-valuenow"))
    at.page.keyboard.press("Shift+ArrowRight")
    assert float(at.page.locator(":focus").get_attribute("aria-valuenow")) == pytest.approx(before + 0.1, abs=0.011)
    with at.page.expect_request(lambda one: one.url.endswith("/tokens") and "score" in (one.post_data or "")) as sent:
        at.page.keyboard.press("y")
    assert json.loads(sent.value.post_data)["place"]["start"] == pytest.approx(before + 0.1, abs=0.02)


def test_hits_are_best_first_or_by_recording_and_keys_take_the_next_best(visit: Any) -> None:
    at = visit()
    assert at.page.locator("#steps").is_visible()
    at.search()
    assert not at.page.locator("#steps").is_visible()
    ranks = [int(rank) for rank in at.page.locator(".hit .rank").all_inner_texts()]
    assert ranks == sorted(ranks)
    at.page.click("#grouped")
    groups = at.page.locator("#hits > .recording .name").all_inner_texts()
    assert len(groups) == len(set(groups)) > 1
    for rank in ("1", "2", "3"):
        at.until(f"document.querySelector('.hit.current .rank').textContent === '{rank}'")
        at.page.locator(".hit.current").focus()
        at.page.keyboard.press("n")
    at.page.wait_for_selector(".hit[data-verdict=no] >> nth=2")


def test_judging_by_keys_undo_and_searching_again(visit: Any) -> None:
    at = visit()
    at.page.fill("#word-form", "mbote")
    at.search()
    before = at.page.locator(".hit").evaluate_all(WHERE)
    for key in "ynu":
        at.page.keyboard.press(key)
    at.until("document.querySelectorAll('.hit[data-verdict]:not([data-verdict=\"\"])').length === 3")
    at.until("document.querySelector('#word-counts').textContent.startsWith('1 yes, 1 no, 1 unsure')")
    assert at.page.input_value("#word-form") == "mbote"
    assert at.count("#examples li") == 2  # the given one and the confirmed one
    assert at.page.locator("#expected").is_visible()
    at.page.keyboard.press("z")
    at.page.wait_for_selector(".hit[data-verdict=unsure]", state="detached")
    at.page.keyboard.press("s")
    at.until("document.querySelector('.hit.current .rank')?.textContent === '1'")
    at.wait_for_hits()
    again = at.page.locator(".hit").evaluate_all(WHERE)
    assert not set(before[:2]) & set(again)
    assert at.count(".hit:not([data-verdict=''])") == 0  # what was judged does not come back


def test_a_note_goes_with_the_judgement_which_is_there_after_a_reload(visit: Any) -> None:
    at = visit()
    at.page.fill("#word-form", "mbote")
    at.search()
    at.page.keyboard.press("m")
    at.page.keyboard.type("sung, not said")
    at.page.keyboard.press("Escape")
    at.page.locator(".hit.current").focus()
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".hit[data-verdict=yes] .verdict:has-text('me')", state="attached")
    at.page.reload()
    at.page.wait_for_selector("#examples li >> nth=1")
    assert at.page.input_value("#word-form") == "mbote"
    assert at.page.locator("#search-button").is_enabled()
    at.page.keyboard.press("g")
    at.until("[...document.querySelectorAll('.token input')].some((input) => input.value === 'sung, not said')")


def test_what_is_no_audio_is_refused_in_words(visit: Any, served: Any, tmp_path: Any) -> None:
    at = visit()
    wrong, silence = tmp_path / "letter.wav", tmp_path / "silence.wav"
    wrong.write_text("Dear archive")
    soundfile.write(silence, np.zeros(16000), 16000)
    at.page.click("#tab-upload")
    for good in (served.archive.word, silence):
        at.page.set_input_files("#upload-file", good)
        at.page.wait_for_selector(".trim-search")
        assert at.count(".failure") == 0  # of the last that was sent
        at.page.set_input_files("#upload-file", wrong)
        at.page.wait_for_selector(".failure")
        assert len(at.text(".failure p").split(".")) >= 2  # what is wrong, and what to do
        assert at.count(".failure button") == 1  # the same again would be refused again
        assert at.count(".trim-search, #said.shown") == 0
    at.page.set_input_files("#upload-file", silence)
    at.page.click(".trim-search")
    at.page.wait_for_selector(".failure[data-about=search]")
    assert "trim" not in at.text(".failure")
    assert not at.page.locator("#hits-none").is_visible()
    at.faults[:] = [fault for fault in at.faults if "415" not in fault]


def test_a_word_or_a_stretch_of_a_recording_is_marked(visit: Any, served: Any) -> None:
    at = visit()
    at.page.click("#tab-mark")
    name = served.archive.recordings[0]  # longer than what is shown at once
    at.page.fill("#recordings-text", name)
    at.page.wait_for_selector("#recordings li >> nth=1", state="detached")
    at.page.click(f"#recordings button:has-text('{name}')")
    at.page.wait_for_selector("#asked-sound .handle[aria-valuemax]")
    at.page.click("#asked-sound .word")
    ends = [float(handle.get_attribute("aria-valuenow")) for handle in at.page.locator("#asked-sound .handle").all()]
    assert ends == pytest.approx([0.4, 0.9], abs=0.01)
    at.page.locator("#mark-place").focus()
    at.page.keyboard.press("PageUp")
    at.until("document.querySelector('#mark-place').value > 0")
    at.page.click("#mark-closer")
    at.page.click("#asked-sound .trim-take")
    at.page.wait_for_selector(f"#examples [title^='{name}']")


def test_a_stretch_is_drawn_over_the_picture(visit: Any, served: Any) -> None:
    at = visit()
    at.page.click("#tab-mark")
    at.page.click("#recordings button >> nth=0")
    at.page.wait_for_selector("#asked-sound .handle[aria-valuemax]")
    box = at.page.locator("#asked-sound canvas").bounding_box()
    low, high = (float(at.page.get_attribute("#asked-sound .handle", f"aria-value{end}")) for end in ("min", "max"))

    def shares() -> list[float]:
        ends = [float(each.get_attribute("aria-valuenow")) for each in at.page.locator("#asked-sound .handle").all()]
        return [(end - low) / (high - low) for end in ends]

    def draw(first: float, last: float, y: float = 20) -> None:
        at.page.mouse.move(box["x"] + first * box["width"], box["y"] + y)
        at.page.mouse.down()
        at.page.mouse.move(box["x"] + last * box["width"], box["y"] + y, steps=5)
        at.page.mouse.up()

    draw(shares()[0], 0.2)  # above the handle
    assert shares()[0] == pytest.approx(0.2, abs=0.01)
    draw(0.1, 0.2)
    assert shares() == pytest.approx([0.1, 0.2], abs=0.01)
    draw(0.1, 0.3, box["height"] - 12)  # a handle, across the other
    assert shares() == pytest.approx([0.2, 0.3], abs=0.01)
    draw(0.5, 0.51)
    assert at.page.locator(".trim-search").is_disabled()
    at.page.locator("#asked-sound canvas").click(position={"x": 5, "y": 5})
    at.page.wait_for_selector("#asked-sound .playing")


def test_a_form_that_the_glossary_has_is_no_second_word(visit: Any) -> None:
    at = visit("#glossary")
    at.page.fill("#new-form", "mbote")
    at.page.keyboard.press("Enter")
    at.page.wait_for_selector("#entries li[aria-current]")
    at.page.goto(at.page.url.partition("#")[0] + "#search")
    at.page.fill("#word-form", "mbote")
    assert "is in the glossary" in at.text("#word-counts")
    at.search()
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".hit[data-verdict=yes]")
    at.page.keyboard.press("g")
    assert at.count("#entries li") == 1
    at.page.click("#undo")
    at.page.wait_for_selector(".token >> nth=1", state="detached")


def test_another_text_is_another_word(visit: Any, served: Any) -> None:
    at = visit()

    def ask(text: str) -> None:
        at.page.fill("#text-query", text)
        at.page.keyboard.press("Enter")
        at.until(f"document.querySelector('#word-form').value === {json.dumps(text)}")
        at.until("!document.querySelector('#halt').checkVisibility()")
        at.until(f"document.querySelector('#text-query').value === {json.dumps(text)}")

    ask("mbotu")
    assert f"like it: {WRITTEN}." in at.text("#hits-none")
    ask("library")
    at.page.reload()
    at.page.wait_for_selector("body[data-ready=yes]")
    ask("museum")
    ask(WRITTEN)
    at.wait_for_hits()
    assert at.count(".hit") == len(served.archive.recordings)  # each has the word once
    at.page.keyboard.press("y")
    at.page.wait_for_selector(".hit[data-verdict=yes]")
    ask("library")
    at.page.wait_for_selector(".hit", state="detached")
    ask(WRITTEN)
    at.until("document.querySelector('#word-counts').textContent.startsWith('1 yes')")
    at.page.click("#word-new")
    at.until("document.querySelector('#text-query').value + document.querySelector('#word-form').value === ''")
    at.page.keyboard.press("g")
    at.page.wait_for_selector("#entries li")
    assert at.page.locator("#entries .form").all_inner_texts() == [WRITTEN]


def test_candidates_are_named_set_aside_and_searched_by_keys(visit: Any, served: Any) -> None:
    at = visit()
    at.page.click("#to-candidates")
    at.page.wait_for_selector(".candidate.current")
    candidate = ".candidate >> nth={}".format
    at.page.keyboard.press("n")
    aside = candidate(0) + " >> css=[data-verdict=no][aria-pressed=true]"
    at.page.wait_for_selector(aside)
    at.page.keyboard.press("z")
    at.page.wait_for_selector(aside, state="detached")
    at.page.locator(".candidate").nth(0).focus()
    at.page.keyboard.press("n")
    at.page.wait_for_selector(aside)
    at.page.keyboard.press("m")
    at.page.keyboard.type("kota")
    at.page.keyboard.press("Escape")
    at.page.keyboard.press(" ")
    at.page.keyboard.press("y")
    at.page.wait_for_selector(candidate(1) + " >> css=[data-verdict=yes][aria-pressed=true]")
    at.page.reload()
    at.page.wait_for_selector(".candidate[data-verdict=no]")
    assert at.page.input_value(".candidate[data-verdict=yes] input") == "kota"
    at.page.click(".candidate[data-verdict=no] button[data-verdict=no]")
    at.page.wait_for_selector(".candidate[data-verdict=no]", state="detached")
    at.page.click(".candidate[data-verdict=yes] button.plain")
    at.wait_for_hits()
    assert at.page.input_value("#word-form") == "kota"
    assert at.count("#examples li") == 1


def test_a_search_is_narrowed(visit: Any) -> None:
    at = visit()
    at.page.click("#narrow summary")
    folder = at.page.locator("#narrow-folder option").nth(1).get_attribute("value")
    at.page.select_option("#narrow-folder", folder)
    with at.page.expect_request("**/api/search") as sent:
        at.search()
    assert json.loads(sent.value.post_data)["narrow"] == {"folder": folder}
    assert folder in at.text("#narrow-summary")
    assert all(name.startswith(folder) for name in at.page.locator("#hits .where").all_inner_texts())


def test_it_says_when_one_can_stop(visit: Any) -> None:
    at = visit()
    nothing = {"judged": 20, "yes": 1, "no": 19, "expected": 0.2, "low": 0, "high": 1, "listed": 0.2, "worth": False}
    line = {"part": 1, "hits": [], "final": True, "search": "s", "likelihood": {**nothing, "why": None}, "seconds": 1}
    body = json.dumps({**line, "warnings": ["Two files went away."]}) + "\n"
    at.page.route("**/api/search", lambda route: route.fulfill(body=body))
    at.bring()
    at.page.click(".trim-search")
    at.page.wait_for_selector("#worth[data-worth=false]")
    assert "can stop" in at.text("#worth")
    assert at.page.locator("#hits-none").is_visible()
    assert at.text("#warnings") == "Two files went away."
