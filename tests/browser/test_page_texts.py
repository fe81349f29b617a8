"""Every text of the page is in texts/LANGUAGE.json, in each language; nothing is written in JavaScript or HTML."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import swsdist

STATIC = Path(swsdist.__file__).parent / "server" / "static"
LANGUAGES = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted((STATIC / "texts").glob("*.json"))}
SCRIPTS = sorted(STATIC.glob("*.js"))
SHOWN = {"aria-label", "title", "placeholder", "alt"}
#: Keys of which the last part is a value: `export.csv`.
BUILT = "called change export language stretch tokens verdict why key keys failure reason record stage"


def holes(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def test_each_language_has_every_text() -> None:
    english = LANGUAGES["en"]
    for texts in LANGUAGES.values():
        assert list(texts) == list(english)
        assert {key for key in english if holes(texts[key]) != holes(english[key])} == set()
        assert [key for key, text in texts.items() if not text.strip()] == []


def test_the_page_knows_the_languages_that_there_are() -> None:
    source = (STATIC / "texts.js").read_text(encoding="utf-8")
    named = re.search(r"LANGUAGES = (\[.*?\])", source)
    assert named is not None
    assert sorted(json.loads(named[1])) == sorted(LANGUAGES)


def test_every_text_that_is_named_is_there_and_every_text_is_named() -> None:
    named: set[str] = set()
    for path in (*SCRIPTS, STATIC / "index.html"):
        named |= set(re.findall(r"[\"`]([a-z]+(?:\.[a-z]+)+)[\"`]", path.read_text(encoding="utf-8")))
    known = {key.removesuffix(".one").removesuffix(".other") for key in LANGUAGES["en"]}
    files = {path.name for path in STATIC.rglob("*")}
    wrong = {key for key in named - known - files if not re.search(r"\.(js|json|css|svg|html|wav)$", key)}
    assert {key for key in wrong if "." in key and not key.startswith(TAGS)} == set()
    assert {key for key in known - named if key.partition(".")[0] not in BUILT.split()} == set()


#: Elements with classes, as `el` takes them.
TAGS = ("a.", "article.", "button.", "div.", "dt.", "form.", "h3.", "input.", "label.", "li.", "p.", "span.")


class Written(HTMLParser):
    """Texts of a page that have letters, and attributes that are read out or shown."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        self.texts += [f"{name}={value}" for name, value in attrs if name in SHOWN]

    def handle_data(self, data: str) -> None:
        if self.inside != "title" and re.search(r"[^\W\d_]", data):
            self.texts.append(data.strip())


def test_no_text_is_written_in_the_page() -> None:
    page = Written()
    page.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    assert page.texts == []


def test_no_text_is_written_in_a_script() -> None:
    shown = re.compile(r"(?:textContent|innerText|title|placeholder|innerHTML) = (\"[^\"]*[A-Za-z][^\"]*\")")
    found = []
    for path in SCRIPTS:
        source = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', source)
        sentences = [text for text in literals if re.search(r"[^\W\d_]{2,} [^\W\d_]{2,}", text)]
        found += [text for text in sentences if not re.search(r"[.#\[(]", text)] + shown.findall(source)
    assert found == []


def test_nothing_comes_from_another_host() -> None:
    for path in (*SCRIPTS, *STATIC.glob("*.css"), STATIC / "index.html"):
        source = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", source) == [], path.name
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|innerHTML|eval\(", source), path.name


def test_scripts_are_short_and_say_what_they_are() -> None:
    for path in SCRIPTS:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert (len(lines) <= 260, lines[0][:3], max(map(len, lines)) <= 140) == (True, "/**", True), path.name
