"""Figures and tables of commands, of the kinds that the files' endings say."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import families
from swsdist.report.tables import read_rows, table_of, text_lines
from tests.support.coded import says

LISTS = ("--references", "corpus/refs.csv", "--seconds", "60", "--protocol", "sws2013")


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["tables"][0]["rows"]
    return found


def test_the_report_of_a_run(swsdist, place: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    pictures = ("--det", "det.pdf", "--histogram", "scores.png", "--timeline", "time.svg")
    files = (*pictures, "--table", "run.tex", "--per-query", "queries.json")
    arguments = [str(tmp_path / one) if "." in one else one for one in files]
    swsdist("report", place / "run", *arguments)
    assert (tmp_path / "det.pdf").read_bytes().startswith(b"%PDF-")
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert "s since the first task" in (tmp_path / "time.svg").read_text(encoding="utf-8")
    report = json.loads((place / "run/report.json").read_text(encoding="utf-8"))
    text = (tmp_path / "run.tex").read_text(encoding="utf-8")
    assert f"MTWV & {report['measures']['mtwv']:.4f} & " in text
    assert r"\caption{Processing resources.}" in text
    queries = rows(tmp_path / "queries.json")
    assert [row["query_id"] for row in queries] == [row["query_id"] for row in report["per_query"]]
    assert queries[0]["twv"] == report["per_query"][0]["twv"]
    swsdist("report", place / "run", "--table", tmp_path / "run.csv", "--det", tmp_path / "det.csv")
    with (tmp_path / "det.csv").open(newline="") as stream:
        points = list(csv.DictReader(stream))
    assert list(points[0]) == ["score", "pmiss", "pfa"]
    best = min(points, key=lambda row: abs(float(row["score"]) - report["measures"]["mtwv_threshold"]))
    assert float(best["pmiss"]) == report["measures"]["mtwv_pmiss"]
    with (tmp_path / "run-measures.csv").open(newline="") as stream:
        assert float(next(csv.DictReader(stream))["value"]) == report["measures"]["mtwv"]
    assert (tmp_path / "run-processing-resources.csv").is_file()


def test_a_plot_that_is_there(swsdist, place: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    swsdist("report", place / "run", "--det", tmp_path / "d.svg", "--histogram", tmp_path / "h.pdf")
    swsdist("paper", "figure", tmp_path / "d.svg", tmp_path / "d.pdf")
    swsdist("report", place / "run", "--det", tmp_path / "same.pdf")
    assert (tmp_path / "d.pdf").read_bytes() == (tmp_path / "same.pdf").read_bytes()


def test_a_table_that_is_there(swsdist, place: Path, tmp_path: Path) -> None:
    """Columns and rows as they were asked for, from CSV and Parquet alike."""
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
    rows = {line[:26].strip(): line for line in told.splitlines()}
    assert "not defined" not in rows["min Cnxe"]
    assert "not defined where a query has more false alarms than non-target trials" in rows["AUC"]
    assert "too few           3 of 3 queries have more detections than trials (16 each)" in rows["trials"]
    short = swsdist("report", tmp_path / "run")
    assert re.search(r"^min Cnxe +0\.", short.out, re.M)
    assert "warning: 3 of 3 queries have more detections than trials (16 each)" in short.err
    page = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert "– (AUC): not defined where a query has more false alarms" in page
    swsdist("report", tmp_path / "run", "--table", tmp_path / "t.md")
    assert "– (AUC): not defined where a query has more false alarms" in (tmp_path / "t.md").read_text(encoding="utf-8")
    listed = ("-s", "run/exports/detections.csv", "--all-measures", "-n", "0.3")
    told = swsdist("score", *LISTS, *listed, cwd=place).out
    assert "n/a (AUC): not defined where a query has more false alarms" in told


def test_columns_are_aligned_by_what_they_hold(swsdist, tmp_path: Path) -> None:
    """Text after numbers stays left, in every kind of table."""
    (tmp_path / "p.csv").write_text("point,distance,mtwv,verdict,ok\n1,cosine,0.25,fine,true\n12,l2,0.5,poor,false\n")
    swsdist("paper", "table", "p.csv", "p.tex", "--decimals", "3", cwd=tmp_path)
    swsdist("paper", "table", "p.csv", "p.md", "--decimals", "3", cwd=tmp_path)
    assert r"\begin{tabular}{rlrll}" in (tmp_path / "p.tex").read_text()
    assert "| ---: | --- | ---: | --- | --- |" in (tmp_path / "p.md").read_text()
    made = table_of(read_rows(str(tmp_path / "p.csv")), "Points", 3, names_first=False)
    assert text_lines(made)[1:] == [
        "point  distance   mtwv  verdict  ok",
        "    1  cosine    0.250  fine     true",
        "   12  l2        0.500  poor     false",
    ]


def test_cells_are_as_they_stand_in_the_file(swsdist, tmp_path: Path) -> None:
    """A name of digits keeps its zeros, and words for nothing are words; what is no UTF-8 is an error that names the line."""
    (tmp_path / "ids.csv").write_text("id,kind,x,n,big\n007,null,1e-3,3,12345678901234567890\n010,NA,,4,1\n")
    found = read_rows(str(tmp_path / "ids.csv"))
    assert found.to_pylist() == [
        {"id": "007", "kind": "null", "x": 0.001, "n": 3, "big": "12345678901234567890"},
        {"id": "010", "kind": "NA", "x": None, "n": 4, "big": "1"},
    ]
    (tmp_path / "bad.csv").write_bytes("a,b\nx,1\nBà,2\n".encode("latin-1"))
    told = swsdist("paper", "table", "bad.csv", "x.md", cwd=tmp_path, code=3).err
    assert "bad.csv, line 3" in told
    (tmp_path / "excel.csv").write_bytes("a,b\nx,1\n".encode("utf-16"))
    assert "-t UTF-8" in swsdist("paper", "table", "excel.csv", "x.md", cwd=tmp_path, code=3).err


def test_a_list(swsdist, place: Path, tmp_path: Path) -> None:
    listed = ("-s", "run/exports/detections.csv")
    files = ("--measures", tmp_path / "m.json", "--per-term", tmp_path / "t.md", "--alignment", tmp_path / "a.tex")
    told = json.loads(swsdist("score", *LISTS, *listed, "--json", *files, cwd=place).out)
    assert {row["measure"]: row["value"] for row in rows(tmp_path / "m.json")} == told["measures"]
    swsdist("score", *LISTS, *listed, "--measures", tmp_path / "m.md", cwd=place)
    shown = (tmp_path / "m.md").read_text(encoding="utf-8")
    said = swsdist("score", *LISTS, *listed, cwd=place).out
    line = next(one for one in said.splitlines() if one.startswith("MTWV"))
    for name, value in zip(("MTWV", "MTWV Pmiss", "MTWV Pfa", "MTWV threshold"), line.split()[1::2], strict=True):
        assert f"| {name} | {value} |" in shown
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    assert text.count("\n| q00") == 3
    assert f"| {told['terms'][0]['ntrue']} |" in text
    assert r"\begin{longtable}" in (tmp_path / "a.tex").read_text(encoding="utf-8")
    swsdist("score", *LISTS, *listed, "--per-term", tmp_path / "t.json", "--measures", tmp_path / "m.csv", cwd=place)
    assert rows(tmp_path / "t.json")[0]["twv"] == told["terms"][0]["twv"]


def test_resources(swsdist, place: Path, tmp_path: Path) -> None:
    told = json.loads(swsdist("resources", place / "run", "--json", "--table", tmp_path / "r.json").out)
    found = {row["figure"]: row["value"] for row in rows(tmp_path / "r.json")}
    assert (found["ISF"], found["SSF, hours"], found["PL"]) == (told["isf"], told["ssf_hours"], told["pl"])
    swsdist("resources", "--indexing-cpu", "9", "--audio", "90", "--table", tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "| ISF | CPU s per s of audio | 0.1 |" in text
    assert "| PL |" in text
    assert text.count("–") >= 5  # what is not known


def test_hits(swsdist, place: Path, tmp_path: Path) -> None:
    query = ("--query", "corpus/queries/q001_1.wav", "--top", "4")
    told = json.loads(swsdist("search", "run", *query, "--json", "--table", tmp_path / "h.json", cwd=place).out)
    found = rows(tmp_path / "h.json")
    assert [(row["doc_id"], row["score"], row["called"]) for row in found] == [
        (row["doc_id"], row["score"], row["called"]) for row in told
    ]
    assert [row["rank"] for row in found] == [1, 2, 3, 4]
    swsdist("search", "run", *query, "--table", tmp_path / "h.tex", cwd=place)
    text = (tmp_path / "h.tex").read_text(encoding="utf-8")
    assert r"corpus/queries/q001\_1.wav & " in text
    assert f"{told[0]['score']:.3f}" in text


def test_without_the_library_nothing_is_done(swsdist, place: Path, tmp_path: Path, monkeypatch) -> None:
    from swsdist.report import pictures

    monkeypatch.setattr(pictures.importlib.util, "find_spec", lambda name: None)
    for command in (("report", "run", "--det", "d.pdf"), ("compare", "run", "run", "--det", "d.png")):
        told = swsdist(*command, cwd=place, code=2).err
        assert says(told, families.NOT_INSTALLED)
        assert "pip install 'swsdist[figures]'" in told
