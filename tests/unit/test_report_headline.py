"""What a run's page opens with, and what a command prints at its end: six figures, what is odd, where the rest is."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from test_report_outputs import Elements, a_run, an_oracle_run, an_unscored_run, in_browser

from swsdist.report.data import RejectedRow, ReportData
from swsdist.report.page import render_page
from swsdist.report.summary import issues, key_figures, print_headline, print_location, rejections, truncated


def a_whole_run() -> ReportData:
    run = a_run(8)
    assert run.measures is not None
    further = {"stwv": 0.94, "cnxe": 0.72, "cnxe_min": 0.55}
    return dataclasses.replace(
        run, mtwv_interval=(0.31, 0.42), measures=dataclasses.replace(run.measures, further=further)
    )


def an_odd_run() -> ReportData:
    """Three kinds of rejected inputs, and four warnings."""
    return dataclasses.replace(a_whole_run(), warnings=tuple(f"oddity {number}" for number in range(4)))


def a_quiet_run() -> ReportData:
    return dataclasses.replace(a_whole_run(), rejected=())


RUNS = {"scored": a_whole_run, "odd": an_odd_run, "quiet": a_quiet_run, "unscored": an_unscored_run}
every_run = pytest.mark.parametrize("make", RUNS.values(), ids=RUNS.keys())


def printed(run: ReportData, terminal: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80, color_system=None)
    print_headline(run, console)
    print_location(run, console)
    return out.getvalue().splitlines()


def test_six_figures() -> None:
    run = a_whole_run()
    assert run.measures is not None
    rows = key_figures(run)
    quality = [("MTWV", f"{run.measures.mtwv:.4f}"), ("ATWV", f"{run.measures.atwv:.4f}"), ("STWV", "0.9400")]
    cost = [("min Cnxe", "0.5500"), ("SSF", "0.001031"), ("audio", "2.1 h")]
    assert [(row.name, row.value) for row in rows] == [*quality, *cost]
    assert rows[0].note.startswith("0.3100 to 0.4200 (95 %); Pmiss ")
    assert rows[5].note == "8 queries, 1204 documents, 61240 detections"
    assert "(95 %)" not in key_figures(dataclasses.replace(run, mtwv_interval=None))[0].note
    amounts = [("audio", "2.1 h"), ("documents", "1204"), ("queries", "5"), ("detections", "61240")]
    times = [("indexing", "55.2 s"), ("searching", "5 min 02 s")]
    assert [(row.name, row.value) for row in key_figures(an_unscored_run())] == [*amounts, *times]
    oracle = key_figures(an_oracle_run())[1]
    assert (oracle.name, oracle.tone) == ("ATWV (oracle)", "warning")


def test_a_figure_without_a_value_says_why() -> None:
    run = a_whole_run()
    assert run.measures is not None
    nothing = dataclasses.replace(run.measures, mtwv=None, atwv=None, further={"stwv": None, "cnxe_min": None})
    rows = key_figures(dataclasses.replace(run, measures=nothing))[:4]
    assert {row.value for row in rows} == {"–"}
    assert all(row.note.startswith("not defined where ") for row in rows)


def test_rejected_inputs_are_counted_by_kind_and_reason() -> None:
    more = RejectedRow(kind="document", id="b2", path="b2.flac", reason="truncated", message="the file ends")
    task = RejectedRow(kind="task", id="shard 1", reason="bug", message="it failed")
    found = rejections((*a_run(1).rejected, more, task))
    assert [tuple(one) for one in found] == [
        ("document", "empty", 1, "empty: no samples", None),
        ("document", "truncated", 2, "audio/broken_01.flac: the file ends after 1.2 of 4.0 s", "copy it again"),
        ("query", "missing", 1, "q999: no such file", None),
    ]


def test_what_is_odd_begins_with_what_is_worst() -> None:
    run = an_odd_run()
    task = RejectedRow(kind="task", id="shard 1", reason="bug", message="no\nmemory")
    stages = (dataclasses.replace(run.stages[0], failed=2),)
    lines = [one.line for one in issues(dataclasses.replace(run, stages=stages, rejected=(*run.rejected, task)))]
    assert lines[0] == "failed: 2 tasks, not included in the figures; the first: shard 1: no memory"
    assert lines[2].startswith("rejected: 1 document(s), truncated; the first: audio/broken_01.flac: ")
    assert lines[4:] == [f"warning: oddity {number}" for number in range(4)]
    assert truncated(lines, 3, "x")[3:] == ["... and 5 more: x"]
    assert truncated(["a", "b", "c"], 3, "x") == ["a", "b", "c"]
    quiet = a_quiet_run()
    assert issues(quiet) == []
    assert quiet.protocol is not None
    crowded = dataclasses.replace(quiet, protocol=dataclasses.replace(quiet.protocol, trials=10))
    assert any(one.line.startswith("warning: 8 of 8 queries") for one in issues(crowded))


@every_run
def test_a_dozen_lines_and_a_page_begin_with_the_figures(make: Callable[[], ReportData]) -> None:
    run = make()
    figures = key_figures(run)
    for terminal in (True, False):
        lines = printed(run, terminal)
        shown = truncated([one.line for one in issues(run)], 3, "swsdist report RUN --all")
        assert len(lines) + len(shown) <= 12
        assert lines[0].split()[:1] == ["measures" if run.measures is None else "protocol"]
        assert [line.split("  ")[0] for line in lines[1:7]] == [row.name for row in figures]
        assert lines[-1] == "result digest 3b7c3b7c3b7c3b7c, report /data/runs/mboshi-dev/report.html"
    text = render_page(run)
    assert Elements(text).open == []
    block = text[text.index('<dl class="figures"') : text.index('id="issues"')]
    assert re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", block) == [(row.name, row.value) for row in figures]
    sections = ["issues", "det", "hits", "summary", "measures", "queries", "resources", "rejected", "config"]
    if run.measures is None:
        sections = ["issues", "hits", "next", "queries", "summary", "resources", "rejected", "config"]
    elif make is not a_quiet_run:
        assert re.findall(r'<h2 id="(\w+)">', text) == sections
    assert re.findall(r'<a href="#(\w+)">', text) == re.findall(r'<h2 id="(\w+)">', text)


def sections(text: str) -> list[str]:
    return re.findall(r'<h2 id="(\w+)">', text)


def test_the_page_shows_three_oddities_and_folds_the_others() -> None:
    text = render_page(an_odd_run())
    block = text[text.index('id="issues"') : text.index('id="det"')]
    shown, _, folded = block.partition("<details><summary>4 more</summary>")
    assert shown.count("<li>") == 3
    assert "copy it again" in shown
    assert [f"oddity {number}" in folded for number in range(4)] == [True] * 4
    quiet = render_page(a_quiet_run())
    assert "no warnings, no rejected inputs, no failed tasks" in quiet
    assert "<li>" not in quiet[quiet.index('id="issues"') : quiet.index('id="det"')]


@pytest.mark.slow
@pytest.mark.parametrize("make", [an_odd_run, a_quiet_run])
def test_the_first_screen_has_figures_oddities_curve_and_hits(make: Callable[[], ReportData], tmp_path: Path) -> None:
    """Of 1200 by 900 pixels: six figures side by side, no one cut, and a player; nothing is wider than the page."""
    script = """
    const box = (name) => document.querySelector(name).getBoundingClientRect();
    const figures = [...document.querySelectorAll(".figure")].map((one) => one.getBoundingClientRect().top);
    const cut = [...document.querySelectorAll(".figure dd")].filter((one) => one.scrollWidth > one.clientWidth);
    const tops = [figures[0], box("#issues").top, box("#det").top, box("svg").top, box("td audio").bottom];
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    return [new Set(figures).size, figures.length, cut.length, tops, box("#hits").top, wide];"""
    rows, count, broken, tops, hits, wide = in_browser(render_page(make()), script, tmp_path)
    assert (rows, count, broken, wide) == (1, 6, 0, 0)
    assert tops == sorted(tops)
    assert tops[-1] < 900
    assert hits == tops[2], "the curve and the hits stand side by side"
