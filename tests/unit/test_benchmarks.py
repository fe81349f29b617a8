"""The benchmarks' own logic, that each one's --help works; and the English corpus that some are of."""

import csv
import itertools
import json
import re
import runpy
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from swsdist.io.nist.ctm import read_ctm
from tools.english.corpus import digest, make
from tools.english.speech import lacking

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(
    path.stem
    for path in (ROOT / "benchmarks").glob("*.py")
    if path.stem not in ("__init__", "__main__", "rows", "corpora", "harder_set", "perturbations", "word_encoder")
)


def test_a_goal_is_decided_on_the_value_as_measured_and_rows_come_back_from_json(tmp_path):
    from benchmarks.rows import Goal, Row, at_least, at_most, read_json, table, write_json

    rows = [Row("", value, "", at_most(1.15)) for value in (1.15, 1.1500001)]
    rows += [Row("", value, "", at_least(0.107)) for value in (0.107, 0.10699, None)] + [Row("", 3.0, "s")]
    assert [row.reached for row in rows] == [True, False, True, False, None, None]
    assert Row("", float("nan"), "", at_least(0.0)).reached is False
    assert table(rows).splitlines()[-1] == "2 of 5 goals reached, 1 not measured"
    write_json(tmp_path / "rows.json", rows)
    assert read_json(tmp_path / "rows.json") == rows
    written = json.loads((tmp_path / "rows.json").read_text())
    assert written[1] == {"name": "", "value": 1.1500001, "unit": "", "goal": "<= 1.15", "reached": False}
    with pytest.raises(ValueError, match="'<'"):
        Goal.parse("< 3")


def test_each_has_help_and_all_of_them_are_run(monkeypatch, capsys):
    from benchmarks import __main__ as every

    for name in NAMES:
        monkeypatch.setattr(sys, "argv", [name, "--help"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        assert ended.value.code == 0
        assert "--json FILE" in capsys.readouterr().out
    assert sorted(every.NAMES) == NAMES
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--list"])
    assert every.main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(every.NAMES)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "memorie"])
    with pytest.raises(SystemExit) as ended:
        every.main()
    assert ended.value.code == 2


def test_the_figures_of_the_readme_are_those_of_the_full_tables() -> None:
    """MTWV of each system, with the first example of each query and with all."""
    page = (ROOT / "docs/how-to/run-the-papers-systems.md").read_text().splitlines()
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| \[([\w-]+)\]\(configs/.*\| ([\d.]+) \| ([\d.]+) \|$", readme, re.M)
    assert len(rows) >= 3
    for name, *figures in rows:
        full = [line for line in page if line.startswith(f"| {name} |")]
        assert all(any(f"| {figure} (" in line for line in full) for figure in figures), name


HOURS = 0.02


#: A word or phone, start and end in ms.
Spans = dict[str, list[tuple[str, int, int]]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := lacking():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("english") / "corpus"
    make(folder, HOURS)
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def spans(path: Path) -> Spans:
    found: Spans = defaultdict(list)
    for row in read_ctm(str(path)).to_pylist():
        start, end = row["start"], row["start"] + row["duration"]
        found[row["doc_id"]].append((row["word"], round(1000 * start), round(1000 * end)))
    return found


def test_the_same_bytes_again(corpus: Path, tmp_path: Path) -> None:
    make(tmp_path / "again", HOURS)
    assert digest(tmp_path / "again") == digest(corpus)


def test_references_are_all_places_of_the_terms(corpus: Path) -> None:
    expected = []
    for term in rows(corpus / "terms.csv"):
        text = term["text"].split()
        for name, spoken in spans(corpus / "words.ctm").items():
            for k in range(len(spoken) - len(text) + 1):
                place = spoken[k : k + len(text)]
                close = all(after[1] - before[2] <= 500 for before, after in itertools.pairwise(place))
                if [word for word, _, _ in place] == text and close:
                    expected.append((term["query_id"], name, place[0][1], place[-1][2]))
    given = [
        (row["query_id"], row["doc_id"], round(1000 * float(row["start"])), round(1000 * float(row["end"])))
        for row in rows(corpus / "references.csv")
    ]
    assert len(expected) > 20
    assert given == expected
    assert {row["query_id"] for row in rows(corpus / "terms.csv")} == {row[0] for row in given}
