"""The reference pages say what the code says."""

from __future__ import annotations

import importlib
import re
import tomllib

import click
import pytest
from markdown_pages import DOCS, ROOT, rows, sections
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from swsdist.config.loader import config_from_dict
from swsdist.config.search import WindowsOptions
from swsdist.features.librosa import Librosa, MfccFingerprint
from swsdist.features.mfcc import Mfcc
from swsdist.features.phnrec.extractor import Phnrec
from swsdist.features.plp import Plp
from swsdist.features.ssl.extractor import Ssl
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import CHAINS, DISTANCES, MEASURES
from swsdist.score.measures.protocol import PROTOCOLS
from tools.pages import PAGES
from tools.pages.commands import all_commands


def test_every_measure_has_its_row() -> None:
    shown = [tuple(row) for row in rows(sections(DOCS / "reference/metrics.md")["What is registered"])]
    entries = [each for entry in MEASURES.available.values() for each in entry.gives]
    assert shown == [(f"`{one.key}`", one.name, one.best, str(one.decimals), one.unit) for one in entries]


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
    table = rows(sections(DOCS / "concepts/windows.md")["Options"])
    assert [_plain(name) for name, *_ in table] == list(WindowsOptions.model_fields)


def _options(page: str, title: str) -> dict[str, tuple[str, str]]:
    """Default and text of each option in a table."""
    table = rows(sections(DOCS / page)[title])
    return {_plain(name): (_plain(default), text) for name, default, text in table}


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    return "null" if field.default is None else re.sub(r"'", "", str(field.default).translate({40: 91, 41: 93}))


@pytest.mark.parametrize("extractor", [Mfcc, Plp, Phnrec, Ssl, Librosa, MfccFingerprint], ids=lambda one: one.name)
def test_options_of_extractors(extractor: type[BaseModel]) -> None:
    """Those of fingerprints are those of mfcc, but for what is told."""
    fields = extractor.model_fields
    if extractor is MfccFingerprint:
        fields = {name: one for name, one in fields.items() if one.default != Mfcc.model_fields[name].default}
    shown = _options("reference/features.md", extractor.name)
    assert shown == {name: (_default(field), field.description) for name, field in fields.items()}


def test_distances() -> None:
    table = rows(sections(DOCS / "concepts/exact-numbers.md")["The distances"])
    assert {_plain(row[0]): int(row[4]) for row in table} == {name: DISTANCES[name].unit for name in DISTANCES}


def test_protocols() -> None:
    table = rows(sections(DOCS / "concepts/scoring.md")["Protocols"])
    shown = {_plain(name): (beta, tolerance, gap) for name, beta, tolerance, gap, _ in table}
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


def _without_values(message: str) -> str:
    """A message with the names of its values in capitals."""
    return re.sub(r"\{(\w+)[^}]*\}", lambda match: match[1].upper(), message)


def test_recordings_and_why_one_is_rejected() -> None:
    from swsdist.audio.formats.views import CHANNELS, RATES
    from swsdist.core.codes import audio, codes_of
    from swsdist.core.errors import AudioError
    from swsdist.corpora.documents import ENDINGS

    page = sections(DOCS / "reference/recordings.md")
    rejections = [code for code in codes_of(vars(audio).values()) if issubclass(code.error, AudioError)]
    listed = [(_plain(word), meaning) for word, meaning in rows(page["Rejected recordings"])]
    assert listed == [(code.name, _without_values(code.message)) for code in rejections]
    text = (DOCS / "reference/recordings.md").read_text(encoding="utf-8")
    endings = set(re.findall(r"`(\w+)`", text.partition("## ffmpeg")[0]))
    assert endings == ENDINGS - {"raw"}
    assert f"{RATES[0]} Hz" in text
    assert f"{CHANNELS} channels" in text
