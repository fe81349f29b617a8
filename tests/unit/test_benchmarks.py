"""The benchmarks' own logic, that each one's --help works; and the English corpus that some are of."""

import csv
import itertools
import json
import re
import runpy
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.corpora.documents import part_of, read_documents
from swsdist.io.nist.ctm import read_ctm
from swsdist.io.nist.termlist import read_termlist
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


def _corpus(folder: Path):
    from benchmarks.corpora import Corpus

    (folder / "audio").mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    rows = []
    for k, (rate, samples) in enumerate([(16_000, 4000), (8000, 1000)]):
        soundfile.write(folder / "audio" / f"{k}.wav", rng.integers(-999, 999, samples, np.int16), rate)
        rows.append({"doc_id": f"d{k}", "path": f"audio/{k}.wav", "speaker": "s"})
    with (folder / "docs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return Corpus("two", folder / "docs.csv", folder / "queries.csv", None)


def test_corpora_made_of_another(tmp_path):
    from benchmarks.corpora import one_recording, repeated

    rows = repeated(_corpus(tmp_path), 3, tmp_path / "made").rows()
    assert [row["doc_id"] for row in rows] == ["d0~0", "d1~0", "d0~1", "d1~1", "d0~2", "d1~2"]
    assert {row["path"] for row in rows} == {str(tmp_path / "audio/0.wav"), str(tmp_path / "audio/1.wav")}
    (row,) = one_recording(_corpus(tmp_path), 1.0, tmp_path / "whole").rows()
    samples, rate = soundfile.read(row["path"], dtype="int16")
    first, _ = soundfile.read(tmp_path / "audio/0.wav", dtype="int16")
    assert (rate, len(samples), row["duration"]) == (16_000, 16_000, "1.000")
    # 4000 samples of the first and 2000 (resampled) of the second, and again from the first.
    np.testing.assert_array_equal(samples[:4000], first)
    np.testing.assert_array_equal(samples[6000:10_000], first)


def test_auc_counts_ties_half_and_work_is_halved():
    from benchmarks.engine import _blocks, _cut
    from benchmarks.quality import auc
    from benchmarks.ray_cost import halved
    from swsdist.pipeline.task import Task

    low, first = -np.inf, np.array([True, False, False])
    assert [auc(np.array(scores), first) for scores in ([3.0, 2, 1], [1.0, 2, 3], [low, low, 1])] == [1.0, 0.0, 0.25]
    tasks = [Task("search", str(k), "", work, {}) for k, work in enumerate([1.0, 9.0, 5.0, 5.0, 2.0])]
    one, other = halved(tasks)
    assert sorted(task.fingerprint for task in (*one, *other)) == ["0", "1", "2", "3", "4"]
    assert {sum(task.work for task in one), sum(task.work for task in other)} == {11.0}
    documents = [np.arange(2.0 * n, dtype=np.float32).reshape(n, 2) for n in (10, 70, 64)]
    np.testing.assert_array_equal(_cut(documents, 30), documents[1][20:50])
    blocks = _blocks(documents[1], 32)
    assert [block.shape for block in blocks] == [(2, 32), (2, 32), (2, 6)]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1).T, documents[1])


def test_the_figures_of_the_readme_are_those_of_the_full_tables() -> None:
    """MTWV of each system, with the first example of each query and with all."""
    page = (ROOT / "docs/how-to/run-the-papers-systems.md").read_text().splitlines()
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| \[([\w-]+)\]\(configs/.*\| ([\d.]+) \| ([\d.]+) \|$", readme, re.M)
    assert len(rows) >= 3
    for name, *figures in rows:
        full = [line for line in page if line.startswith(f"| {name} |")]
        assert all(any(f"| {figure} (" in line for line in full) for figure in figures), name


def test_halves_of_the_documents_have_their_references(tmp_path: Path) -> None:
    from benchmarks.corpora import Corpus, read
    from benchmarks.systems import halves

    (tmp_path / "docs.csv").write_text("doc_id,path\n" + "".join(f"d{k},d{k}.wav\n" for k in range(40)))
    rows = "".join(f"q,d{k},0,1\n" for k in range(0, 40, 2))
    (tmp_path / "refs.csv").write_text("query_id,doc_id,start,end\n" + rows)
    corpus = Corpus("made up", tmp_path / "docs.csv", tmp_path / "queries.csv", tmp_path / "refs.csv")
    seen: list[set[str]] = []
    for sets in halves(corpus, tmp_path / "runs").values():
        found = dict(one.removeprefix("corpus.").split("=") for one in sets)
        documents = {row["doc_id"]: row["path"] for row in read(Path(found["documents"]))}
        referred = {row["doc_id"] for row in read(Path(found["references"]))}
        assert 10 <= len(documents) <= 30
        assert all(path.startswith(str(tmp_path)) for path in documents.values())
        assert referred == {name for name in documents if int(name[1:]) % 2 == 0}
        seen.append(set(documents))
    assert not seen[0] & seen[1]
    assert len(seen[0] | seen[1]) == 40


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


def test_the_house_reads_it(corpus: Path) -> None:
    config = config_from_dict({"run": "r", "corpus": str(corpus / "corpus.yaml")}, str(corpus))
    documents = read_documents(config.corpus.documents)
    parts = [part_of(documents, part) for part in (config.corpus.parts.development, config.corpus.parts.test) if part]
    assert [name for part in parts for name in part["doc_id"].to_pylist()] == documents["doc_id"].to_pylist()
    terms = read_termlist(str(config.corpus.queries)).terms.to_pylist()
    listed = [(row["query_id"], row["text"]) for row in rows(corpus / "terms.csv")]
    assert [(row["query_id"], row["term"]) for row in terms] == listed
