"""The reference pages say what the code says."""

import importlib
import re
import tomllib
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from swsdist.config.loader import config_from_dict
from swsdist.config.search import WindowsOptions
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import CHAINS, DISTANCES, FEATURES
from swsdist.score.measures.protocol import PROTOCOLS
from tools.markdown_pages import DOCS, ROOT, rows, sections
from tools.pages import PAGES
from tools.pages.commands import all_commands


def _plain(cell: str) -> str:
    return cell.strip("`")


@pytest.mark.parametrize("name", list(PAGES))
def test_generated_pages_are_current(name: str) -> None:
    written = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run: python -m tools.pages"


def test_every_option_and_command_has_help() -> None:
    for name, command in all_commands().items():
        assert command.help, name
        assert [param.name for param in command.params if isinstance(param, click.Option) and not param.help] == []


def test_options_of_windows() -> None:
    text = sections(DOCS / "concepts/first-passes.md")["The method windows"]
    table = rows(text.partition("The exact search")[0])
    assert [_plain(name) for name, *_ in table] == list(WindowsOptions.model_fields)


def test_words_that_options_of_features_take() -> None:
    for name, text in sections(DOCS / "reference/features.md").items():
        if name == "mfcc-fingerprint":  # its options are those of mfcc
            continue
        fields = FEATURES[name].load().model_fields.values()
        literals = re.findall(r"Literal\[(.*?)\]", " ".join(str(field.annotation) for field in fields))
        words = re.findall(r"'(\w+)'", " ".join(literals))
        assert [word for word in words if not re.search(rf"\b{word}\b", text)] == []


def test_distances() -> None:
    table = rows(sections(DOCS / "concepts/exact-numbers.md")["The distances"])
    assert {_plain(row[0]): int(row[3]) for row in table} == {name: DISTANCES[name].unit for name in DISTANCES}


def test_protocols() -> None:
    table = rows(sections(DOCS / "concepts/scoring.md")["Protocols"])
    shown = {}
    for names, betas, *limits, _ in table:  # a row may hold several; an end such as -dev-eval is of the first name
        first, *others = map(_plain, names.split(", "))
        every = [first, *(first.removesuffix("-dev-dev") + one if one.startswith("-") else one for one in others)]
        values = betas.split(", ") if ", " in betas else [betas] * len(every)
        shown |= {name: (beta, *limits) for name, beta in zip(every, values, strict=True)}
    assert set(shown) == set(PROTOCOLS)
    for name, (beta, tolerance, gap) in shown.items():
        rules = PROTOCOLS[name]
        assert (tolerance, gap) == (f"{rules.tolerance:g} s", f"{rules.word_gap:g} s")
        if not isinstance(rules.beta, str):
            assert abs(float(beta) - rules.beta) < 0.01


def test_stages() -> None:
    text = (DOCS / "concepts/stages.md").read_text(encoding="utf-8").split("## Tasks and receipts")[0]
    config = config_from_dict({"run": "run", "corpus": {"documents": "docs.csv"}})
    chain = CHAINS["search"].load()(config, Ledger(Folder("run")))
    assert [_plain(row[0]) for row in rows(text)] == [step.name for step in chain.steps]


def test_dependencies_are_argued() -> None:
    """Each dependency with its bound, and nothing else, has a row in decision 1."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (DOCS / "decisions/0001-dependencies.md").read_text(encoding="utf-8").split("## Measured")[0]
    argued = {_plain(name): (why, version) for name, why, version in rows(text)}
    assert sorted(argued) == sorted(project["dependencies"])
    assert all(why and version for why, version in argued.values())


def test_sources_name_what_is_there() -> None:
    """Each place in sources.md is a file and a name in it."""
    text = (DOCS / "sources.md").read_text(encoding="utf-8")
    places = re.findall(r"\[(swsdist/[\w/]+\.py)\]\(\.\./\1\): ((?:`[\w.]+`(?:, (?=`))?)+)", text)
    assert len(places) == text.count("[swsdist/"), "a place without a name, or a link that differs from its text"
    for path, names in places:
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        for name in re.findall(r"`([\w.]+)`", names):
            assert hasattr(module, name), f"{path} has no {name}"


def test_the_glossary_has_each_word_once_and_names_what_is_there() -> None:
    table = [row for text in sections(DOCS / "reference/glossary.md").values() for row in rows(text)]
    words = [row[0] for row in table]
    assert len(words) > 40
    assert len(set(words)) == len(words)
    for word, meaning, where in table:
        assert all((meaning, where)), word
        for path in re.findall(r"`([\w/]+(?:\.py|/))`", where):
            assert (ROOT / "swsdist" / path).exists(), f"{word}: there is no {path}"


def test_recordings() -> None:
    from swsdist.audio.formats.views import CHANNELS, RATES
    from swsdist.corpora.documents import ENDINGS

    text = (DOCS / "reference/recordings.md").read_text(encoding="utf-8")
    endings = set(re.findall(r"`(\w+)`", text.partition("## ffmpeg")[0]))
    assert endings == ENDINGS - {"raw"}
    assert f"{RATES[0]} Hz" in text
    assert f"{CHANNELS} channels" in text


def test_citation() -> None:
    citation: dict[str, Any] = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["authors"]
    assert all(set(author) == {"name"} and author["name"] for author in citation["authors"])
    assert all(isinstance(citation[key], str) for key in ("message", "title", "version", "license", "abstract"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {key: citation[key] for key in ("version", "license", "keywords")}.items() <= project.items()
    assert all(citation[key] == value for key, value in citation["preferred-citation"].items() if key != "year")
