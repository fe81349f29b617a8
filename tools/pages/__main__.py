"""Write the generated pages."""

from __future__ import annotations

from tools.pages import FOLDER, PAGES

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
        print(f"written: {FOLDER / name}")
