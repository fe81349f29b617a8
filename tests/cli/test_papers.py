"""Figures and tables of commands, of the kinds that the files' endings say."""

import csv
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import untold

from swsdist.report.tables import read_rows

LISTS = ("--references", "corpus/refs.csv", "--seconds", "60", "--protocol", "sws2013")


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["tables"][0]["rows"]
    return found


def test_the_report_of_a_run(swsdist, place: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    pictures = "--det det.pdf --histogram scores.png --timeline time.svg --table run.tex --per-query queries.json"
    swsdist("report", place / "run", *shlex.split(pictures), cwd=tmp_path)
    assert (tmp_path / "det.pdf").read_bytes().startswith(b"%PDF-")
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert "s since the first task" in (tmp_path / "time.svg").read_text(encoding="utf-8")
    report = json.loads((place / "run/report.json").read_text(encoding="utf-8"))
    assert f"MTWV & {report['measures']['mtwv']:.4f} & " in (tmp_path / "run.tex").read_text(encoding="utf-8")
    queries = [(row["query_id"], row["twv"]) for row in rows(tmp_path / "queries.json")]
    assert queries == [(row["query_id"], row["twv"]) for row in report["per_query"]]
    swsdist("report", place / "run", "--table", tmp_path / "run.csv", "--det", tmp_path / "det.csv")
    with (tmp_path / "det.csv").open(newline="") as stream:
        points = list(csv.DictReader(stream))
    assert list(points[0]) == ["score", "pmiss", "pfa"]
    best = min(points, key=lambda row: abs(float(row["score"]) - report["measures"]["mtwv_threshold"]))
    assert float(best["pmiss"]) == report["measures"]["mtwv_pmiss"]
    with (tmp_path / "run-measures.csv").open(newline="") as stream:
        assert float(next(csv.DictReader(stream))["value"]) == report["measures"]["mtwv"]
    assert (tmp_path / "run-processing-resources.csv").is_file()
    for command in (("report", place / "run", "--det", "d.svg"), ("paper", "figure", "d.svg", "d.pdf")):
        swsdist(*command, cwd=tmp_path)
    assert (tmp_path / "d.pdf").read_bytes() == (tmp_path / "det.pdf").read_bytes()


def test_a_table_that_is_there(swsdist, place: Path, tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.read_csv(place / "run/exports/detections.csv")
    frame.to_parquet(tmp_path / "d.parquet")
    asked = ("--columns", "score,query_id=query,start", "--sort", "-score", "--first", "3", "--decimals", "2")
    for source, out in ((place / "run/exports/detections.csv", "a.tex"), (tmp_path / "d.parquet", "b.tex")):
        swsdist("paper", "table", source, tmp_path / out, *asked, "--caption", "The best")
    text = (tmp_path / "a.tex").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.tex").read_text(encoding="utf-8")
    assert r"\caption{The best.}" in text
    assert r"score & query & start \\" in text
    best = frame.sort_values("score", ascending=False).head(3)
    lines = [line for line in text.splitlines() if line.endswith(r"\\")][1:]
    assert [float(line.split(" & ")[0]) for line in lines] == best["score"].round(2).tolist()
    swsdist("paper", "table", tmp_path / "d.parquet", tmp_path / "all.json")
    assert len(rows(tmp_path / "all.json")) == len(frame)
    assert rows(tmp_path / "all.json")[0]["score"] == frame["score"][0]


def test_what_is_not_defined_says_why(swsdist, place: Path, tmp_path: Path) -> None:
    """More detections than trials: in the final table, on the page, in a table for a paper, and of a list."""
    shutil.copytree(place / "run", tmp_path / "run")
    few = ("--set", f"run={tmp_path}/run", "--set", "score.trials_per_second=0.3")
    told = swsdist("score", "config.yaml", *few, "--all", cwd=place).out
    why = "not defined where a query has more false alarms"
    rows = {line[:26].strip(): line for line in told.splitlines()}
    assert "not defined" not in rows["min Cnxe"]
    assert why in rows["AUC"]
    too_few = "3 of 3 queries have more detections than trials (16 each)"
    assert too_few in rows["trials"]
    assert f"warning: {too_few}" in swsdist("report", tmp_path / "run", "--table", tmp_path / "t.md").err
    listed = ("-s", "run/exports/detections.csv", "--all-measures", "-n", "0.3")
    assert f"n/a (AUC): {why}" in swsdist("score", *LISTS, *listed, cwd=place).out
    for file in ("run/report.html", "t.md"):
        assert f"– (AUC): {why}" in (tmp_path / file).read_text(encoding="utf-8")


def test_cells_are_as_they_stand_in_the_file(swsdist, tmp_path: Path) -> None:
    """A name of digits keeps its zeros, and words for nothing are words; what is no UTF-8 is an error that names the line."""
    (tmp_path / "ids.csv").write_text("id,kind,x,n,big\n007,null,1e-3,3,12345678901234567890\n010,NA,,4,1\n")
    assert read_rows(str(tmp_path / "ids.csv")).to_pylist() == [
        {"id": "007", "kind": "null", "x": 0.001, "n": 3, "big": "12345678901234567890"},
        {"id": "010", "kind": "NA", "x": None, "n": 4, "big": "1"},
    ]
    swsdist("paper", "table", "ids.csv", "p.md", cwd=tmp_path)
    assert "| --- | --- | ---: | ---: | --- |" in (tmp_path / "p.md").read_text()
    (tmp_path / "bad.csv").write_bytes("a,b\nx,1\nBà,2\n".encode("latin-1"))
    (tmp_path / "excel.csv").write_bytes("a,b\nx,1\n".encode("utf-16"))
    cases = {"paper table bad.csv x.md": "bad.csv, line 3", "paper table excel.csv x.md": "-t UTF-8"}
    assert untold(swsdist, cases, tmp_path, code=3) == {}


def test_a_list(swsdist, place: Path, tmp_path: Path) -> None:
    score = ("score", *LISTS, "-s", "run/exports/detections.csv")
    files = ("--measures", tmp_path / "m.json", "--per-term", tmp_path / "t.json", "--alignment", tmp_path / "a.tex")
    told = json.loads(swsdist(*score, "--json", *files, cwd=place).out)
    assert {row["measure"]: row["value"] for row in rows(tmp_path / "m.json")} == told["measures"]
    assert [row["twv"] for row in rows(tmp_path / "t.json")] == [row["twv"] for row in told["terms"]]
    assert r"\begin{longtable}" in (tmp_path / "a.tex").read_text(encoding="utf-8")
    swsdist(*score, "--measures", tmp_path / "m.md", "--per-term", tmp_path / "t.md", cwd=place)
    assert f"| MTWV | {told['measures']['mtwv']:.4f} |" in (tmp_path / "m.md").read_text(encoding="utf-8")
    assert (tmp_path / "t.md").read_text(encoding="utf-8").count("\n| q00") == 3
