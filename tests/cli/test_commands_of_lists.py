"""Corpora of others on the command line: what may be run, what is told."""

from pathlib import Path

import lists_of_others as others
import pytest
from commands import Command

CONFIG = """\
run: run
corpus:
  documents: data
  queries: corpus/queries.csv
executor:
  kind: serial
"""


@pytest.fixture
def folder(corpus: Path, tmp_path: Path) -> Path:
    others.data_folder(corpus / "corpus", tmp_path / "data", "cat audio/{}.wav |")
    (tmp_path / "corpus").symlink_to(corpus / "corpus")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def test_commands_need_the_flag_at_each_call(folder: Path, swsdist: Command) -> None:
    for command in ("index", "run", "score"):
        ended = swsdist(command, "config.yaml", cwd=folder, code=3)
        assert "[command-not-allowed]" in ended.err
        assert "--allow-commands" in ended.err
    assert "BAD  documents" in swsdist("check", "config.yaml", cwd=folder, code=2).out
    assert "ok   documents    8 of 8" in swsdist("check", "config.yaml", "--allow-commands", cwd=folder).out
    swsdist("index", "config.yaml", "--allow-commands", cwd=folder)
    swsdist("run", "config.yaml", cwd=folder)  # nothing is to be read any more
    assert "rec1\t0.35" in swsdist("store", "info", "run/store", "--documents", cwd=folder).out


def test_no_config_allows_them(folder: Path, swsdist: Command) -> None:
    for line, code in (("allow_commands: true\n", 2), ("storage: {allow_commands: true}\n", 3)):
        (folder / "config.yaml").write_text(CONFIG + line)
        swsdist("index", "config.yaml", cwd=folder, code=code)
    assert not (folder / "run" / "store" / "manifest.json").exists()


def test_check_reads_lists_and_tells_what_belongs_elsewhere(corpus: Path, tmp_path: Path, swsdist: Command) -> None:
    lists = others.nist_lists(corpus / "corpus", tmp_path / "nist", "kwseval")
    names = {"documents": "ecf.xml", "audio": "audio", "queries": "terms.xml", "references": "words.rttm"}
    sets = [f"--set=corpus.{key}={lists}/{name}" for key, name in names.items()]
    sets += [f"--set=corpus.spoken={corpus}/corpus/queries.csv", "--set=score.protocol=kwseval"]
    out = swsdist("check", "config.yaml", *sets, cwd=corpus).out
    assert "places in 3 recordings" in out
    assert "1 query is text only" in out
    wrong = swsdist("check", "config.yaml", f"--set=corpus.queries={lists}/ecf.xml", cwd=corpus, code=2).out
    assert "[wrong-kind]; remedy: An ECF (<ecf>) belongs to corpus.documents" in wrong
