"""The page over a folder with annotations beside its recordings."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Visitor, serving
from tests.commands import in_this_process
from tests.support.field_folder import WORDS, make_folder
from tests.support.spoken_archive import SpokenArchive


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
