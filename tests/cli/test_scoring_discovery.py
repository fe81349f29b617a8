"""`swsdist score-discovery`: thin over `swsdist.score_discovery`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import swsdist
from swsdist.cli.scoring import score_discovery
from swsdist.core.codes import families
from tests.support.coded import raises


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Paths of an evaluation."""
    texts = {
        "classes": "Class 1\nd 0 0.3\nd 0.4 0.7\n\n",
        "phones": "d 0 0.1 a\nd 0.1 0.2 b\nd 0.2 0.3 c\nd 0.4 0.5 a\nd 0.5 0.6 b\nd 0.6 0.7 c\n",
        "words": "d 0 0.3 abc\nd 0.4 0.7 abc\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


def output(*arguments: str) -> str:
    result = CliRunner().invoke(score_discovery, arguments, catch_exceptions=False, standalone_mode=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_is_what_python_returns(files, tmp_path) -> None:
    """With oddities: here a fragment of a document without phones."""
    options = ("--phones", files["phones"], "--words", files["words"])
    printed = json.loads(output(files["classes"], *options, "--folds", "1", "--json"))
    scores = swsdist.score_discovery(files["classes"], phones=files["phones"], words=files["words"], folds=1)
    assert printed == scores
    assert (scores["mode"], scores["warnings"]) == ("seed", [])
    (tmp_path / "elsewhere").write_text("Class 1\nnowhere 0 0.3\n")
    (warning,) = swsdist.score_discovery(tmp_path / "elsewhere", phones=files["phones"])["warnings"]
    assert "elsewhere" in warning


def test_the_table_names_the_mode(files, tmp_path) -> None:
    """What is undefined is no number."""
    options = ("--phones", files["phones"], "--words", files["words"])
    for mode in ("seed", "tdev2"):
        lines = output(files["classes"], *options, "--mode", mode).splitlines()
        assert lines[0] == f"mode {mode}, classes"
        token = next(line for line in lines if "token" in line).split()
        assert token[2:] == ["1.0000"] * 3
    (tmp_path / "parse").write_text("d 0.1 0.2\n")
    assert "ned" not in output(str(tmp_path / "parse"), *options, "--parse")
    (tmp_path / "one").write_text("Class 1\nd 0 0.3\n")
    (ned,) = (line for line in output(str(tmp_path / "one"), *options[:2]).splitlines() if "ned" in line)
    assert ned.split() == ["all", "ned", "-"]


def test_a_mode_without_its_files(files) -> None:
    with raises(families.MISSING_INPUT, what="words"):
        output(files["classes"], "--phones", files["phones"], "--mode", "tdev2")
