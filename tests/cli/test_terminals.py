"""Terminals and pipes of every kind: those that lack characters, and shells that complete."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = "run: run\ncorpus: {documents: audio, queries: queries}\nexecutor: {kind: serial}\n"


@pytest.fixture
def umlauts(corpus: Path, tmp_path: Path) -> Path:
    """A folder with a recording and a query whose names are not ASCII."""
    for kind, source, name in (
        ("audio", "audio/d001.flac", "Bücher – eins.flac"),
        ("queries", "queries/q001_1.wav", "Wört.wav"),
    ):
        (tmp_path / kind).mkdir()
        shutil.copy(corpus / "corpus" / source, tmp_path / kind / name)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


@pytest.mark.slow
def test_a_terminal_of_ascii(process, umlauts: Path) -> None:
    """Characters that it lacks are written plainly or by number; tables for programs are UTF-8 all the same."""

    def said(*words: str) -> str:
        return str(process(*words, cwd=umlauts, PYTHONIOENCODING="ascii").out)

    assert "detections" in said("run", "config.yaml", "--set", "report.clips=1")
    ask = ("search", "run", "--query", "queries/Wört.wav", "--top", "1")
    assert "queries/W\\xf6rt.wav: 1 hits shown" in said(*ask)
    assert "B\\xfccher - eins" in said(*ask)
    assert "B\\xfccher - eins\t1\t" in said("store", "info", "run/store", "--documents")
    (by_csv,), (by_json,) = csv.DictReader(io.StringIO(said(*ask, "--csv"))), json.loads(said(*ask, "--json"))
    for row in (by_csv, by_json):
        assert (row["query_id"], row["doc_id"]) == ("queries/Wört.wav", "Bücher – eins")


def test_a_name_that_is_no_text_is_shown_byte_for_byte(place: Path) -> None:
    """As other programs show it, so that it can be found again."""
    argv = [sys.executable, "-m", "swsdist.cli.main", "search", "run", "--query", b"gone\xe9.wav"]
    ended = subprocess.run(argv, cwd=place, capture_output=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(
        b"error: gone\xe9.wav: the name of the query is not UTF-8 [invalid-value]\n  remedy: "
    )


def test_a_shell_completes() -> None:
    """As docs/reference/commands.md says."""
    script = "import sys; sys.argv[0] = 'swsdist'; from swsdist.cli.main import main; main()"
    for words, offered in {
        "swsdist sea": "plain,search",
        "swsdist store rej": "plain,rejected",
        "swsdist search --ht": "plain,--html",
    }.items():
        told = {"_SWSDIST_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        command = [sys.executable, "-c", script]
        ended = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, check=True)
        assert ended.stdout.split() == [offered]
