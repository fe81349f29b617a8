"""A glossary where tables of queries and references are read: `run`, `check`, `score`, `calibrate`, `describe`."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import Command
from lists_of_others import rows

from swsdist.glossary.project import Project
from swsdist.glossary.words import Place


def place_of(row: dict[str, str]) -> Place:
    return Place(row["doc_id"], int(row.get("channel") or 1), float(row["start"]), float(row["end"]))


@pytest.fixture(scope="module")
def judged(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that knows all references, and says `no` to the best five other detections of each query."""
    folder = tmp_path_factory.mktemp("judged")
    names = ("corpus/queries.csv", "corpus/refs.csv", "run/exports/detections.csv")
    examples, references, detections = (rows(place / name) for name in names)
    with Project.open(folder / "words") as project:
        for query in sorted({row["query_id"] for row in examples}):
            word = project.add_entry(person="Ann", form=query).entry_id
            for path in (row["path"] for row in examples if row["query_id"] == query):
                sound = project.add_sound((place / "corpus" / path).read_bytes(), name=path, person="Ann")
                project.judge(word, Place(None, 1, 0, sound.duration, sound.sound), "yes", person="Ann")
            of_query = ([row for row in some if row["query_id"] == query] for some in (references, detections))
            true, found = (list(map(place_of, some)) for some in of_query)
            for reference in true:
                project.judge(word, reference, "yes", person="Ann", example=False)
            false = [at for at in found if not any(overlap(at, reference) for reference in true)]
            for at in false[:5]:
                project.judge(word, at, "no", person="Bob")
    return folder / "words"


def own_config(place: Path, folder: Path, queries: str = "", references: str = "") -> None:
    text = (place / "config.yaml").read_text().replace("documents: corpus", f"documents: {place}/corpus")
    for old, new in (("corpus/queries.csv", queries), ("corpus/refs.csv", references)):
        text = text.replace(old, new) if new else text
    (folder / "config.yaml").write_text(text)


def overlap(one: Place, other: Place) -> bool:
    return one.doc_id == other.doc_id and one.start < other.end and other.start < one.end


def trials(run: Path) -> list[dict[str, object]]:
    """The trials; those of fitting and of scoring are the same but for the scores."""
    files = sorted((run / "tables" / "trials").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    key = ("query_id", "doc_id", "channel", "start", "end", "ref_start")
    return [*{tuple(row[name] for name in key): row for row in rows}.values()]


def test_a_run_is_scored_by_what_was_judged(place: Path, judged: Path, tmp_path: Path, swsdist: Command) -> None:
    """All hits of the run by tables, and of its false alarms those where somebody has judged."""
    own_config(place, tmp_path)
    sets = [f"--set=corpus.{key}={judged}" for key in ("queries", "references")]
    assert "true occurrences of 3 queries" in swsdist("check", "config.yaml", *sets, cwd=tmp_path).out
    said = swsdist("run", "config.yaml", *sets, cwd=tmp_path)
    whole, found = trials(place / "run"), trials(tmp_path / "run")
    hits = [[row for row in rows if row["ref_start"] is not None] for rows in (whole, found)]
    alarms = [[row for row in rows if row["ref_start"] is None] for rows in (whole, found)]
    assert len(hits[0]) == len(hits[1]) > 3
    assert len(alarms[0]) > len(alarms[1]) >= 15
    with Project.open(judged) as project:
        known = {entry.form: [token.place for token in project.tokens(entry.entry_id)] for entry in project.entries()}
    for row in alarms[1]:
        at = Place(row["doc_id"], row["channel"], row["start"], row["end"])
        assert any(overlap(at, other) for other in known[row["query_id"]]), row
    warnings = json.loads((tmp_path / "run" / "report.json").read_text())["warnings"]
    (warning,) = [line for line in warnings if "judged" in line]
    count, of = map(int, re.match(r"(\d+) detections of (\d+) overlap no place that was judged", warning).groups())
    assert of - count == sum(row["score"] is not None for row in found)
    assert count > of / 2
    assert "[unjudged-detections]" in said.err + said.out


@pytest.mark.slow
def test_judging_more_aligns_again(place: Path, judged: Path, tmp_path: Path, swsdist: Command) -> None:
    """What was judged is an input of the run: later judgements are new ones, and the search is kept."""
    shutil.copytree(judged, tmp_path / "words")
    own_config(place, tmp_path, "words", "words")
    swsdist("run", "config.yaml", cwd=tmp_path)
    before = trials(tmp_path / "run")
    with Project.open(tmp_path / "words") as project:
        word = project.entries("q001")[0].entry_id
        for token in project.tokens(word):
            if token.verdict == "no":
                project.change_token(token.token_id, person="Ann", verdict="unsure")
        assert project.entry(word).no == 0
    swsdist("run", "config.yaml", cwd=tmp_path)
    latest = max((tmp_path / "run" / "tables" / "trials").glob("*.parquet"), key=lambda file: file.stat().st_mtime)
    assert "q001" in {row["query_id"] for row in before if row["ref_start"] is None}
    assert "q001" not in {row["query_id"] for row in pq.read_table(latest).to_pylist() if row["ref_start"] is None}


LIST = ("--system", "run/exports/detections.csv", "--seconds", "100", "--protocol", "sws2013", "--force")


def test_a_list_is_scored_by_what_was_judged(place: Path, judged: Path, tmp_path: Path, swsdist: Command) -> None:
    by_table = swsdist("score", *LIST, "--references", "corpus/refs.csv", cwd=place)
    by_glossary = swsdist("score", *LIST, "--references", judged, cwd=place)
    whole, some = (
        int(re.search(r"terms 3, references 6, detections (\d+): 5 correct", one.out)[1])
        for one in (by_table, by_glossary)
    )
    assert whole > some >= 15 + 6
    assert f"note: {whole - some} detections of {whole} overlap no place" in by_glossary.err
    assert "unjudged" not in by_table.err
    swsdist("score", *LIST, "--strict", "--references", judged / "project.sqlite", cwd=place)
    out = tmp_path / "calibrated.csv"
    said = swsdist("calibrate", *LIST, "--method", "logistic", "--out", out, "--references", judged, cwd=place)
    assert "[unjudged-detections]" in said.err
    assert len(rows(out)) == len(rows(place / "run" / "exports" / "detections.csv"))


def test_a_table_with_verdicts(place: Path, tmp_path: Path, swsdist: Command) -> None:
    names = ("query_id", "doc_id", "start", "end")
    lines = [",".join([*(row[name] for name in names), "yes"]) for row in rows(place / "corpus" / "refs.csv")]
    table = tmp_path / "judged.csv"
    table.write_text("\n".join(["query_id,doc_id,start,end,verdict", *lines]))
    ended = swsdist("score", *LIST, "--references", table, cwd=place)
    assert "[unjudged-detections]" in ended.err
    assert "references 6," in ended.out
    table.write_text(table.read_text() + "\nq001,d001,5,6,maybe")
    ended = swsdist("score", *LIST, "--references", table, cwd=place, code=3)
    assert f"judged.csv, line {len(lines) + 2}" in ended.err
    assert "[bad-cell]" in ended.err


def test_words_and_documents_that_a_run_lacks(place: Path, judged: Path, tmp_path: Path, swsdist: Command) -> None:
    """A glossary holds more than a corpus: the rest is counted, and left out."""
    shutil.copytree(judged, tmp_path / "words")
    with Project.open(tmp_path / "words") as project:
        word = project.add_entry(person="Ann", form="no example", note="two\nlines").entry_id
        project.judge(word, Place("d001", 1, 0.1, 0.5), "yes", person="Ann", example=False, note="two\nlines")
        project.judge(project.entries("q001")[0].entry_id, Place("elsewhere", 1, 1, 2), "no", person="Ann")
    own_config(place, tmp_path, "words/project.sqlite", "words")
    out = swsdist("check", "config.yaml", cwd=tmp_path).out
    assert out.count("judgements left out of scoring: 1") == 2
    out = swsdist("check", "config.yaml", f"--set=corpus.documents={tmp_path}/words", cwd=tmp_path, code=2).out
    assert "[unsupported]" in out
