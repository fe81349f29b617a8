"""The commented config and the reference page say what the model says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from swsdist.config import Config, load_config
from swsdist.config.template import PLACEHOLDERS, Key, is_one_or_more, keys, reference, template

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config.md"


def test_the_template_loads_and_gives_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(template())
    given = {name: str(tmp_path / PLACEHOLDERS[f"corpus.{name}"]) for name in ("documents", "queries")}
    least = Config.model_validate({"run": str(tmp_path / PLACEHOLDERS["run"]), "corpus": given, "system": "my"})
    assert load_config(path) == least


def test_the_template_with_every_default_uncommented_is_the_same_config(tmp_path: Path) -> None:
    (tmp_path / "mfcc-cosine.yaml").write_text(template())
    (tmp_path / "plain.yaml").write_text(re.sub(r"(?m)^( *)#(?=\w)", r"\1", template()))
    assert load_config(tmp_path / "plain.yaml") == load_config(tmp_path / "mfcc-cosine.yaml")


def test_the_template_shows_every_key_with_its_meaning() -> None:
    text = template()
    for key in keys():
        indent = "  " * (len(key.place) - 1)
        assert re.search(rf"(?m)^{indent}# .*\n(?:{indent}#   .*\n)*{indent}#?{key.place[-1]}:", text), key.dotted
    assert max(map(len, text.splitlines())) <= 120


def test_the_template_takes_values(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(template({"run": "s3://b/r", "corpus.documents": "/a b/$x: #.csv", "report.exports": ["csv"]}))
    config = load_config(path)
    assert config.run == "s3://b/r"
    assert config.corpus.documents == "/a b/$x: #.csv"
    assert config.corpus.queries is None
    assert config.report.exports == ("csv",)


def test_the_reference_page_is_that_of_the_model() -> None:
    assert PAGE.read_text() == reference(), "run: python -m tools.pages"


@pytest.mark.parametrize("key", list(keys()), ids=lambda key: key.dotted)
def test_the_reference_has_a_row_for_every_key(key: Key) -> None:
    above = ".".join(key.place[:-1])
    part = reference().split(f"## `{above}`\n" if above else "## Top level\n")[-1].split("\n## ")[0]
    if key.section:
        assert f"## `{key.dotted}`\n" in reference()
    if not key.section or above:
        assert part.count(f"\n- `{key.place[-1]}`{' **execution-only**' if key.execution_only else ''}") == 1


def test_a_section_left_out_equals_a_section_left_empty() -> None:
    """So that the defaults in the page hold also for a section that is given in part."""
    for key in keys():
        if key.section and not key.field.is_required():
            alone = key.section()
            assert key.field.default == ((alone,) if is_one_or_more(key.field) else alone), key.dotted
