"""`swsdist discover`: of a config, a folder, a table; its page and exports; classes as queries. And `score-discovery`."""

import json
import re
from pathlib import Path

import pytest
from commands import Command, hits, untold

import swsdist as package
from swsdist.core.codes import cli as cli_codes
from swsdist.core.codes import discovery as codes
from tests.support.coded import raises

SERIAL = ("--set", "executor.kind=serial")
CONFIG = """\
run: found
chain: discover
corpus:
  documents: corpus/docs.csv
executor:
  kind: serial
report:
  exports: [csv, eaf, textgrid]
  clips: 12
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, corpus: Path, swsdist: Command) -> tuple[Path, str]:
    """The folder after `swsdist discover words.yaml`, and what it said; to be read only."""
    root = tmp_path_factory.mktemp("discover")
    (root / "corpus").symlink_to(corpus / "corpus")
    (root / "words.yaml").write_text(CONFIG)
    return root, swsdist("discover", "words.yaml", cwd=root).out


def test_the_summary_agrees_with_the_files(found: tuple[Path, str]) -> None:
    root, said = found
    counts = json.loads((root / "found/classes.json").read_text())
    assert f"{counts['classes']} word candidates, {counts['members']} occurrences" in said
    assert counts["classes"] == len(counts["words"]) > 3
    _, _, table = said.partition("\ncandidate ")
    shown = [line.split()[:3] for line in table.splitlines()[1:-1]]
    words = counts["words"][:10]
    assert shown == [[str(word[key]) for key in ("class", "occurrences", "speakers")] for word in words]
    exports = {path.name for path in (root / "found/exports").iterdir()}
    assert exports == {"classes.csv", "parse.csv", "words.csv", "classes.txt", "queries.csv", "eaf", "textgrid"}
    page = (root / "found/classes.html").read_text(encoding="utf-8")
    assert page.count("<audio") == page.count('class="sound"') == 12
    assert "Content-Security-Policy" in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)


def test_a_class_is_a_query(found: tuple[Path, str], tmp_path: Path, swsdist: Command) -> None:
    """Searched by its members, it finds them; a run leaves them out and finds others."""
    root, _ = found
    header, *rows = (root / "found/exports/queries.csv").read_text().replace('"', "").splitlines()
    name = rows[0].split(",")[0]
    some = [row for row in rows if row.split(",")[0] == name]
    for file, lines in (("query", some), ("queries", rows[: len(some) + 2])):
        (tmp_path / f"{file}.csv").write_text("\n".join([header, *lines]) + "\n")
    ask = ("search", "found/store", "--query", tmp_path / "query.csv", "--top", len(some), "--csv")
    told = swsdist(*ask, cwd=root)
    (warning,) = (line for line in told.err.splitlines() if "the query itself" in line)
    assert re.search(rf"hits \d+(, \d+)+ of {name} are the query itself", warning)
    members = {(doc, float(start)) for _, _, doc, _, start, _ in (row.split(",") for row in some)}
    places = [(row["doc_id"], float(row["start"])) for row in hits(told)]
    near = [one for one in members if any(doc == one[0] and abs(start - one[1]) < 0.3 for doc, start in places)]
    assert len(near) >= len(members) - 1
    sets = (
        f"corpus.queries={tmp_path}/queries.csv corpus.examples=all chain=search index.store=found/store report.clips=0"
    )
    given = [f"--set={one}" for one in (*sets.split(), "report.exports=[csv]")]
    swsdist("run", "words.yaml", "--run", str(tmp_path / "run"), *given, cwd=root)
    assert len((tmp_path / "run/exports/detections.csv").read_text().splitlines()) > 10


def test_of_a_folder_and_of_a_table(corpus: Path, tmp_path: Path, swsdist: Command) -> None:
    rows = [row.replace("audio/", f"{corpus}/corpus/audio/") for row in (corpus / "corpus/docs.csv").open()]
    (tmp_path / "docs.csv").write_text("".join(rows[:4]))
    said = swsdist("discover", "docs.csv", *SERIAL, cwd=tmp_path).out
    assert f"page: {tmp_path}/docs-classes/classes.html" in said
    assert f"{len({row.split(',')[-1] for row in rows[1:4]})} speakers" in said
    (tmp_path / "audio").mkdir()
    for name in ("d001.flac", "d002.flac"):
        (tmp_path / "audio" / name).write_bytes((corpus / "corpus/audio" / name).read_bytes())
    swsdist("discover", "audio", *SERIAL, "--set", "report.clips=0", cwd=tmp_path)
    assert "<audio" not in (tmp_path / "audio-classes/classes.html").read_text()


def test_in_python(found: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    root, _ = found
    monkeypatch.chdir(root)
    result = package.discover("words.yaml")
    counts = json.loads((root / "found/classes.json").read_text())
    assert len(result.classes()) == counts["members"]
    assert len(result.parse()) == counts["tokens"]
    assert result.detections().empty
    with raises(cli_codes.OTHER_CHAIN):
        package.discover("words.yaml", sets=["chain=search"])


def test_what_is_refused(found: tuple[Path, str], swsdist: Command) -> None:
    cases = {
        "discover words.yaml --set chain=search": "chain search .. swsdist run words.yaml",
        "discover words.yaml --set report.exports=[stdlist]": f"[{codes.NO_EXPORT_OF_CLASSES.name}]",
        "report found --det det.svg": "",
    }
    assert untold(swsdist, cases, found[0]) == {}


@pytest.mark.slow
def test_places_in_recordings_have_the_times_of_these(corpus: Path, tmp_path: Path, swsdist: Command) -> None:
    """Of Kaldi's segments; names that a class file cannot hold are changed."""
    data = tmp_path / "data"
    data.mkdir()
    audio = corpus / "corpus/audio"
    (data / "wav.scp").write_text(f"d002 {audio}/d002.flac\n")
    (data / "segments").write_text("first d002 0.0 2.0\nsecond d002 2.0 4.0\n")
    swsdist("discover", "data", *SERIAL, cwd=tmp_path)
    rows = (tmp_path / "data-classes/exports/parse.csv").read_text().splitlines()[1:]
    assert {row.split(",")[1] for row in rows} == {'"d002"'}
    assert max(float(row.split(",")[4]) for row in rows) > 2.5
    table = tmp_path / "docs.csv"
    table.write_text(f"doc_id,path\ntwo words,{audio}/d001.flac\nanother one,{audio}/d003.flac\n")
    ended = swsdist("discover", "docs.csv", *SERIAL, cwd=tmp_path)
    assert "exported" not in ended.err
    exports = {path.name for path in (tmp_path / "docs-classes/exports").iterdir()}
    assert exports == {"classes.csv", "parse.csv", "words.csv", "queries.csv", "classes.txt", "classes-names.csv"}


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    texts = {
        "classes": "Class 1\nd 0 0.3\nd 0.4 0.7\n\n",
        "phones": "d 0 0.1 a\nd 0.1 0.2 b\nd 0.2 0.3 c\nd 0.4 0.5 a\nd 0.5 0.6 b\nd 0.6 0.7 c\n",
        "words": "d 0 0.3 abc\nd 0.4 0.7 abc\n",
        "elsewhere": "Class 1\nnowhere 0 0.3\n",
        "parse": "d 0.1 0.2\n",
        "one": "Class 1\nd 0 0.3\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_json_is_what_python_returns(evaluation: Path, swsdist: Command) -> None:
    options = ("--phones", "phones", "--words", "words", "--folds", "1", "--json")
    printed = json.loads(swsdist("score-discovery", "classes", *options, cwd=evaluation).out)
    paths = {name: str(evaluation / name) for name in ("phones", "words")}
    scores = package.score_discovery(evaluation / "classes", **paths, folds=1)
    assert printed == scores
    assert (scores["mode"], scores["warnings"]) == ("seed", [])
    (warning,) = package.score_discovery(evaluation / "elsewhere", phones=paths["phones"])["warnings"]
    assert "elsewhere" in warning


def test_the_table_names_the_mode(evaluation: Path, swsdist: Command) -> None:
    """What is undefined is no number; a mode wants its files."""

    def rows(typed: str) -> list[list[str]]:
        out = swsdist("score-discovery", *typed.split(), "--phones", "phones", cwd=evaluation).out
        return [line.split() for line in out.splitlines()]

    for mode in ("seed", "tdev2"):
        first, *others = rows(f"classes --words words --mode {mode}")
        assert first[:2] == ["mode", f"{mode},"]
        assert [row[2:] for row in others if "token" in row] == [["1.0000"] * 3]
    assert not [row for row in rows("parse --words words --parse") if "ned" in row]
    assert [row for row in rows("one") if "ned" in row] == [["all", "ned", "-"]]
    cases = {"score-discovery classes --phones phones --mode tdev2": "[missing-input]"}
    assert untold(swsdist, cases, evaluation) == {}
