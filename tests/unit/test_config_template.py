"""The commented config and the reference page say what the model says."""

from __future__ import annotations

import re
from pathlib import Path

from swsdist.config import Config, load_config
from swsdist.config.template import PLACEHOLDERS, is_one_or_more, keys, reference, template

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config.md"


def test_the_template_loads_and_gives_the_defaults(tmp_path: Path) -> None:
    path, plain = tmp_path / "my.yaml", tmp_path / "plain.yaml"
    path.write_text(template())
    given = {name: str(tmp_path / PLACEHOLDERS[f"corpus.{name}"]) for name in ("documents", "queries")}
    least = Config.model_validate({"run": str(tmp_path / PLACEHOLDERS["run"]), "corpus": given, "system": "my"})
    assert load_config(path) == least
    # And with every default uncommented.
    plain.write_text(re.sub(r"(?m)^( *)#(?=\w)", r"\1", template()))
    assert load_config(plain) == load_config(path, ["system=mfcc-cosine"])


def test_the_template_shows_every_key_with_its_meaning() -> None:
    for key in keys():
        indent = "  " * (len(key.place) - 1)
        assert re.search(rf"(?m)^{indent}# .*\n(?:{indent}#   .*\n)*{indent}#?{key.place[-1]}:", template()), key.dotted


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


def test_a_section_left_out_equals_a_section_left_empty() -> None:
    """So that the defaults in the page hold also for a section that is given in part."""
    for key in keys():
        if key.section and not key.field.is_required():
            alone = key.section()
            assert key.field.default == ((alone,) if is_one_or_more(key.field) else alone), key.dotted
