"""A picture of the page of `swsdist serve` after a search, by a Chromium without a window.

    swsdist demo demo && python -m tools.page_picture demo/run demo/corpus/queries/q001_1.wav docs/images/page.png

`CHROMIUM` names the browser; otherwise it is the one on the PATH. Needs Pillow, which matplotlib brings.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright


def take(run: str, query: Path, picture: Path, word: str = "") -> None:
    """Serve a run, search one spoken query in it, confirm the best hit, and write a PNG of the page."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as words, sync_playwright() as playwright:
        command = ["swsdist", "serve", run, "--project", f"{words}/words", "--port", "0", "--no-open"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            try:
                assert server.stdout is not None
                address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
                chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
                page = chromium.new_page(viewport={"width": 1180, "height": 940}, locale="en-GB")
                page.set_default_timeout(120_000)
                page.goto(address)
                page.wait_for_selector("body[data-ready=yes]")
                page.fill("#word-form", word or query.stem)
                page.click("#tab-upload")
                page.set_input_files("#upload-file", query)
                page.click(".trim-search")
                page.wait_for_selector(".hit")
                page.wait_for_selector("#search-part", state="hidden")
                page.keyboard.press("y")
                page.wait_for_selector(".hit[data-verdict=yes]")
                page.wait_for_timeout(2000)  # until the waveform of the next hit is drawn
                page.evaluate("window.scrollTo(0, 0)")
                colours = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(48)
                colours.save(picture, optimize=True)
                chromium.close()
            finally:
                server.terminate()


if __name__ == "__main__":
    take(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
