"""report.json, report.html and the final table of a made-up run."""

from __future__ import annotations

import dataclasses
import html
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from swsdist.report import page
from swsdist.report.data import (
    PL_CONVENTION,
    Counts,
    DetCurve,
    Hit,
    Measures,
    NodeRow,
    NodeType,
    Protocol,
    QueryRow,
    RejectedRow,
    ReportData,
    ReportJson,
    Resources,
    ScoreHistogram,
    StageRow,
    write_report_json,
)
from swsdist.report.page import det_plot, histogram_plot, render_page
from swsdist.report.summary import fixed, print_summary, short, span, summary_lines, thresholds
from tools.pages.report_json import page as reference_page

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
SOUND = "data:audio/wav;base64,UklGRgAAAABXQVZF"
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "report-json.md"


def a_query(number: int, generator: np.random.Generator) -> QueryRow:
    ntrue = int(generator.integers(1, 12))
    ncorr, nfa = int(generator.integers(0, ntrue + 1)), int(generator.integers(0, 40))
    pmiss, pfa = (ntrue - ncorr) / ntrue, nfa / (7560 - ntrue)
    twv = 1 - pmiss - 66.66 * pfa
    return QueryRow(
        query_id=f"q{number:03d}",
        term=("abve mo", "ekwaya", "mwana", "ndzoo", "bisi")[number % 5],
        duration=round(float(generator.uniform(0.3, 1.5)), 3),
        detections=1000 + int(generator.integers(0, 50)),
        ntrue=ntrue,
        ncorr=ncorr,
        nfa=nfa,
        nmiss=ntrue - ncorr,
        pmiss=pmiss,
        pfa=pfa,
        twv=twv,
        best_twv=max(twv, 0.0) + 0.05,
    )


def a_run(queries: int = 60) -> ReportData:
    generator = np.random.default_rng(2013)
    target, nontarget = generator.normal(3.4, 1.4, 400), generator.normal(0.3, 1.1, 40_000)
    threshold = np.sort(np.concatenate([target, nontarget]))
    pmiss = 0.06 + 0.94 * np.searchsorted(np.sort(target), threshold) / 400
    pfa = (40_000 - np.searchsorted(np.sort(nontarget), threshold)) / (60 * 7560)
    best = int(np.argmin(pmiss + 66.66 * pfa))
    actual = best + 60
    edges = np.linspace(min(target.min(), nontarget.min()), max(target.max(), nontarget.max()), 61)
    return ReportData(
        name="mboshi-dev",
        folder="/data/runs/mboshi-dev",
        system="mfcc-cosine",
        created="2025-01-31T12:34:56Z",
        digest="3b7c" * 16,
        config_yaml="run: runs/mboshi-dev\ncorpus:\n  documents: docs.csv  # <all of them>\n",
        versions={"python": "3.11.9", "swsdist": "0.1.0", "numpy": "2.2.1", "numba": "0.61.0", "ray": "2.44.0"},
        resources=Resources(
            index_cpu_s=55.2,
            search_cpu_s=301.7,
            score_cpu_s=1.9,
            warm_up_cpu_s=6.3,
            repeated_cpu_s=4.4,
            query_seconds=38.7,
            searched_query_seconds=35.1,
            audio_seconds=7560.4,
            pmu_index_gb=0.312,
            pmu_search_gb=0.655,
            wall_s=213.4,
            phase_wall_s={"index": 31.0, "search": 158.2, "reduce": 4.1, "calibrate": 1.0, "score": 3.1},
            executor_start_s=6.1,
            executor_stop_s=2.2,
        ),
        counts=Counts(documents=1204, queries=queries, examples=queries, detections=61_240, references=412, rejected=3),
        protocol=Protocol(
            name="sws2013",
            beta=66.66,
            tolerance=0.5,
            trials_per_second=1.0,
            trials=7560,
            seconds=7560.4,
            conventions="stdeval",
        ),
        measures=Measures(
            mtwv=float(1 - pmiss[best] - 66.66 * pfa[best]),
            mtwv_threshold=float(threshold[best]),
            mtwv_pmiss=float(pmiss[best]),
            mtwv_pfa=float(pfa[best]),
            atwv=float(1 - pmiss[actual] - 66.66 * pfa[actual]),
            atwv_pmiss=float(pmiss[actual]),
            atwv_pfa=float(pfa[actual]),
            atwv_thresholds=(3.11, 3.24, 3.02, 3.4, 3.3),
            calibration="crossfit",
        ),
        stages=(
            StageRow(
                stage="index", tasks=7, done=7, skipped=0, failed=0, cpu_s=55.2, wall_s=31, bytes=10**8, peak_gb=0.2
            ),
            StageRow(
                stage="search", tasks=14, done=9, skipped=5, failed=0, cpu_s=301, wall_s=158, bytes=10**7, peak_gb=0.4
            ),
        ),
        hardware=(
            NodeType(
                nodes=2,
                brand="Example Server 9",
                cpu="Example CPU @ 2.50GHz",
                cores=16,
                clock_ghz=2.5,
                ram_gb=67.4,
                os="Linux 6.1",
            ),
        ),
        nodes=(
            NodeRow(host="node-1", tasks=13, cpu_s=190.1, peak_index_gb=0.312, peak_search_gb=0.655),
            NodeRow(host="node-2", tasks=10, cpu_s=166.8, peak_index_gb=None, peak_search_gb=0.61),
        ),
        rejected=(
            RejectedRow(
                kind="document",
                id="broken_01",
                part=1,
                path="audio/broken_01.flac",
                reason="truncated",
                message="the file ends after 1.2 of 4.0 s",
                remedy="copy it again",
            ),
            RejectedRow(kind="query", id="q999", part=2, reason="missing", message="no such file"),
            RejectedRow(kind="document", id="empty", part=1, reason="empty", message="no samples"),
        ),
        queries=tuple(a_query(number, generator) for number in range(queries)),
        det=DetCurve(pmiss, pfa, threshold),
        scores=ScoreHistogram(edges, np.histogram(target, edges)[0], np.histogram(nontarget, edges)[0]),
        hits=(
            Hit(
                query_id="q003",
                term="ndzoo",
                doc_id="abiayi_2015-09-08-11-33-57_samsung-SM-T530_mdw_elicit_Dico18_46",
                start=1.23,
                end=1.81,
                score=7.42,
                verdict="hit",
                audio=SOUND,
                query_audio=SOUND,
            ),
            Hit(query_id="q011", doc_id="kouarata_42", start=0.2, end=0.9, score=6.9, verdict="false alarm"),
        ),
    )


def an_unscored_run() -> ReportData:
    run = a_run(5)
    queries = tuple(QueryRow(query_id=q.query_id, detections=q.detections) for q in run.queries)
    hits = tuple(dataclasses.replace(hit, verdict="unknown") for hit in run.hits)
    return dataclasses.replace(
        run,
        measures=None,
        det=None,
        scores=None,
        queries=queries,
        hits=hits,
        unscored="no references were given",
        counts=dataclasses.replace(run.counts, references=None),
    )


def an_oracle_run() -> ReportData:
    run = a_run(5)
    assert run.measures is not None
    oracle = dataclasses.replace(run.measures, calibration="oracle", atwv_thresholds=(3.1,), further={"cnxe": 0.83})
    return dataclasses.replace(run, measures=oracle)


def a_hostile_run() -> ReportData:
    run = a_run(5)
    return dataclasses.replace(
        run,
        name=HOSTILE,
        folder=HOSTILE,
        system=HOSTILE,
        digest=HOSTILE,
        config_yaml=HOSTILE + "\udcff",
        versions={HOSTILE: HOSTILE},
        queries=(dataclasses.replace(run.queries[0], query_id=HOSTILE, term=HOSTILE),),
        rejected=(RejectedRow(kind="document", id=HOSTILE, path=HOSTILE, reason=HOSTILE, message=HOSTILE),),
        hits=(
            dataclasses.replace(
                run.hits[0], query_id=HOSTILE, doc_id=HOSTILE, term=HOSTILE, audio=HOSTILE, query_audio=HOSTILE
            ),
        ),
        nodes=(dataclasses.replace(run.nodes[0], host=HOSTILE),),
        stages=(dataclasses.replace(run.stages[0], stage=HOSTILE),),
        hardware=(dataclasses.replace(run.hardware[0], brand=HOSTILE, gpu=HOSTILE),),
        unscored=HOSTILE,
    )


RUNS = {"scored": a_run, "unscored": an_unscored_run, "oracle": an_oracle_run, "hostile": a_hostile_run}
every_run = pytest.mark.parametrize("make", RUNS.values(), ids=RUNS.keys())


class Elements(HTMLParser):
    """Collects elements with their attributes, and complains of any that is never closed."""

    VOID = {"meta", "input", "br", "img", "link"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing, at {self.getpos()}"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


# report.json


@every_run
def test_json_fits_its_schema_and_holds_nothing_else(make: Callable[[], ReportData]) -> None:
    report = json.loads(json.dumps(write_report_json(make()), allow_nan=False))
    again = ReportJson.model_validate(report).model_dump(mode="json", by_alias=True)
    assert again == report


def test_json_has_the_headlines_on_top() -> None:
    run = a_run()
    report = write_report_json(run)
    assert run.measures is not None
    assert report["schema"] == "swsdist-report/1"
    assert report["measures"]["mtwv"] == run.measures.mtwv
    assert report["measures"]["calibration"] == "crossfit"
    assert report["isf"] == pytest.approx(55.2 / 7560.4)
    assert report["ssf_hours"] == pytest.approx(3600 * report["ssf"])
    assert report["pl"] == pytest.approx(0.1 * report["isf"] * 0.312 + 0.9 * report["ssf"] * 0.655)
    assert report["pl_convention"] == PL_CONVENTION
    assert (report["queries"], report["rejected"], report["repeated_cpu"]) == (60, 3, 4.4)
    assert report["hours"] == pytest.approx(2.1, abs=0.01)
    assert [row["query_id"] for row in report["per_query"][:2]] == ["q000", "q001"]
    assert "UklGR" not in json.dumps(report)


def test_json_thins_the_curve_and_says_how_long_it_was() -> None:
    report = write_report_json(a_run())
    assert report["det"]["points"] == 40_400
    assert len(report["det"]["pfa"]) == len(report["det"]["pmiss"]) == len(report["det"]["threshold"]) < 4000


def test_json_has_null_for_infinite_values() -> None:
    run = a_run()
    assert run.measures is not None
    odd = dataclasses.replace(run.measures, mtwv_threshold=float("inf"), atwv_thresholds=(float("-inf"), 1.0))
    report = write_report_json(dataclasses.replace(run, measures=odd))
    assert report["measures"]["mtwv_threshold"] is None
    assert report["measures"]["atwv_thresholds"] == [None, 1.0]
    ReportJson.model_validate(report)


def test_a_wrong_version_does_not_fit() -> None:
    with pytest.raises(ValueError, match="swsdist-report/1"):
        ReportJson.model_validate({**write_report_json(a_run()), "schema": "swsdist-report/2"})


def test_the_reference_page_says_what_the_code_says() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference_page(), "write it anew: python -m tools.pages"


# report.html


@every_run
def test_page_is_whole_and_asks_nothing_of_the_network(make: Callable[[], ReportData]) -> None:
    text = render_page(make())
    elements = Elements(text)
    assert elements.open == []
    assert not {"link", "img", "iframe", "base"} & {tag for tag, _ in elements.found}
    for tag, attributes in elements.found:
        for name in ("src", "href"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:audio/")) or value in ("", HOSTILE), f"<{tag} {name}={value}>"
    assert "default-src 'none'" in text


def test_page_escapes_whatever_others_wrote() -> None:
    text = render_page(a_hostile_run())
    assert "<script>alert" not in text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in text
    elements = Elements(text)
    assert [tag for tag, _ in elements.found].count("script") == 1
    assert not any("onerror" in attributes for _, attributes in elements.found)
    text.encode("utf-8")


def test_page_shows_measures_plots_and_hits() -> None:
    run = a_run()
    text = render_page(run)
    assert run.measures is not None
    for wanted in (
        fixed(run.measures.mtwv),
        fixed(run.measures.atwv),
        "thresholds by 5-fold cross-validation over queries",
        "broken_01",
        SOUND,
    ):
        assert wanted in text
    assert text.count("<svg") == 2
    assert text.count("<audio") == 2
    assert "&lt;all of them&gt;" in text


def test_page_without_references_says_why_it_is_not_scored() -> None:
    text = render_page(an_unscored_run())
    assert "no references were given" in text
    assert "<svg" not in text
    assert "Best hits" in text
    assert "MTWV" not in text
    assert "q004" in text


def test_page_of_a_run_that_found_nothing() -> None:
    run = an_unscored_run()
    nothing = dataclasses.replace(
        run, queries=(), hits=(), stages=(), nodes=(), hardware=(), rejected=(), protocol=None, versions={}
    )
    assert Elements(render_page(nothing)).open == []


def test_long_tables_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_QUERIES", 10)
    monkeypatch.setattr(page, "MOST_REJECTED", 2)
    text = render_page(a_run())
    assert "The first 10 of 60 rows are shown; all are in per_query of report.json." in text
    assert "The first 2 of 3 rows are shown; all are in rejected.parquet of the run folder." in text
    assert ">q009<" in text
    assert ">q010<" not in text


def test_plots_of_a_run() -> None:
    run = a_run()
    assert run.measures is not None
    assert f"MTWV {fixed(run.measures.mtwv)}" in (det_plot(run) or "")
    assert "MTWV threshold" in (histogram_plot(run) or "")
    assert det_plot(an_unscored_run()) is None
    assert histogram_plot(an_unscored_run()) is None


# The scripts of the page, in a browser.


def in_browser(text: str, script: str, folder: Path) -> list[Any]:
    """What a script returns, run at the end of a page in headless Chromium: a list."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on PATH, so the page's scripts cannot be run")
    probe = f"<script>document.body.dataset.result = JSON.stringify((() => {{ {script} }})());</script></body>"
    (folder / "page.html").write_text(text.replace("</body>", probe), encoding="utf-8")
    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    flags += [
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1200,900",
    ]
    page_url = (folder / "page.html").as_uri()
    done = subprocess.run(
        [browser, "--headless", *flags, "--dump-dom", page_url], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'data-result="([^"]*)"', done.stdout)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    result = json.loads(html.unescape(found[1]))
    assert isinstance(result, list)
    return result


CLICK = """
const table = document.querySelector("#queries ~ .scroll table");
const column = (n) => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[n].textContent);
const click = (n) => table.tHead.rows[0].cells[n].firstElementChild.click();
"""


@pytest.mark.slow
def test_no_table_of_measures_is_cut_off_at_1200_pixels(tmp_path: Path) -> None:
    """Wider ones scroll in their box, so the page itself is no wider than the window."""
    script = """
    document.body.style.maxWidth = "none"; document.documentElement.style.width = "1200px";
    document.body.style.width = "1100px";
    const boxes = [...document.querySelectorAll(".scroll")];
    const measures = boxes.find((box) => box.getAttribute("aria-label") === "Measures");
    const cell = (n) => measures.querySelector(`tbody tr:nth-child(2) td:nth-child(${n})`);
    cell(1).textContent = "occurrence_weighted_value";
    cell(3).textContent = "13.193 to 13.462";
    return [measures.scrollWidth - measures.clientWidth, boxes.every((box) => box.clientWidth <= 1100)];"""
    over, inside = in_browser(render_page(a_run(8)), script, tmp_path)
    assert over <= 0
    assert inside


@pytest.mark.slow
def test_a_click_on_a_header_sorts_and_another_one_turns_the_order(tmp_path: Path) -> None:
    run = a_run(8)
    values = (0.5, None, -2.25, 0.031, 10.0, None, -0.1, 9.5)
    queries = tuple(dataclasses.replace(q, twv=v) for q, v in zip(run.queries, values, strict=True))
    script = (
        CLICK
        + """
        click(10); const up = column(10), sorted = table.tHead.rows[0].cells[10].getAttribute("aria-sort");
        click(10); const down = column(10);
        click(0); click(0);
        return [up, down, column(0), sorted, table.tHead.rows[0].cells[10].getAttribute("aria-sort")];"""
    )
    up, down, names, first, last = in_browser(render_page(dataclasses.replace(run, queries=queries)), script, tmp_path)
    ascending = ["-2.2500", "-0.1000", "0.0310", "0.5000", "9.5000", "10.0000"]
    assert up == [*ascending, "–", "–"]
    assert down == [*ascending[::-1], "–", "–"]
    assert names == [f"q{n:03d}" for n in range(7, -1, -1)]
    assert (first, last) == ("ascending", None)


@pytest.mark.slow
def test_the_search_box_filters_by_query_and_term(tmp_path: Path) -> None:
    script = (
        CLICK
        + """
        const find = document.getElementById("find");
        const type = (text) => { find.value = text; find.dispatchEvent(new Event("input")); return column(0); };
        return [type("EKWAYA"), type("q00"), type("").length, document.querySelectorAll("script").length];"""
    )
    terms, ids, everything, _ = in_browser(render_page(a_run(20)), script, tmp_path)
    assert terms == ["q001", "q006", "q011", "q016"]
    assert ids == [f"q{n:03d}" for n in range(10)]
    assert everything == 20


@pytest.mark.slow
def test_hostile_ids_do_not_run_in_a_browser(tmp_path: Path) -> None:
    script = "return [String(document.images.length), document.querySelector('h1').textContent];"
    images, title = in_browser(render_page(a_hostile_run()), script, tmp_path)
    assert (images, title) == ("0", HOSTILE)


# The final table


def printed(run: ReportData, terminal: bool) -> str:
    out = io.StringIO()
    print_summary(run, Console(file=out, force_terminal=terminal, width=160, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_summary_has_every_figure(terminal: bool) -> None:
    run = a_run()
    text = printed(run, terminal)
    assert run.measures is not None
    for wanted in (
        *("MTWV", fixed(run.measures.mtwv), short(run.measures.mtwv_threshold), "ATWV", fixed(run.measures.atwv)),
        *(
            "5 thresholds, 3.02 to 3.4",
            "5-fold cross-validation",
            "sws2013",
            "ISF",
            "0.007301",
            "SSF",
            "PMU index",
            "0.312 GB",
        ),
        *("PMU search", "0.655 GB", "PL", "wall time", "3 min 33 s", "2.1 h", "queries", "60", "rejected", "3"),
        "/data/runs/mboshi-dev/report.html",
    ):
        assert wanted in text


def test_plain_summary_is_aligned_and_free_of_escapes() -> None:
    text = printed(a_run(), terminal=False)
    assert text.splitlines() == summary_lines(a_run())
    assert "\x1b" not in text
    begins = {line.index("0.") for line in text.splitlines() if line.startswith(("MTWV", "ATWV", "ISF", "PMU"))}
    assert len(begins) == 1


def test_oracle_is_named_in_every_output() -> None:
    run = an_oracle_run()
    assert "ATWV (oracle)" in printed(run, terminal=True)
    assert "ATWV (oracle)" in printed(run, terminal=False)
    assert "ATWV (oracle)" in (det_plot(run) or "")
    assert "Oracle calibration." in render_page(run)
    assert write_report_json(run)["measures"]["calibration"] == "oracle"
    assert "oracle" not in "".join(summary_lines(a_run())).lower()


def test_summary_of_an_unscored_run_says_why() -> None:
    text = printed(an_unscored_run(), terminal=False)
    assert "not scored" in text
    assert "no references were given" in text
    assert "MTWV" not in text


def test_failed_tasks_are_in_the_summary() -> None:
    run = a_run()
    failed = dataclasses.replace(run, stages=(dataclasses.replace(run.stages[0], failed=2),))
    assert "failed tasks" not in "".join(summary_lines(run))
    assert any(line.split()[:3] == ["failed", "tasks", "2"] for line in summary_lines(failed))


def test_ids_that_look_like_markup_are_printed_as_they_are() -> None:
    run = dataclasses.replace(a_run(), name="[bold]x[/bold]", folder="/runs/[red]y")
    for terminal in (True, False):
        assert "/runs/[red]y/report.html" in printed(run, terminal)
    assert "[bold]x[/bold]" in printed(run, terminal=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (3599.7, "1 h 00 min"), (18_240, "5 h 04 min")],
)
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.000231, "0.000231"), (12.345, "12.35"), (48213.4, "48213"), (1.2e-7, "1.2e-07"), (None, "–")]
)
def test_short(value: float | None, text: str) -> None:
    assert short(value) == text


def test_thresholds() -> None:
    assert thresholds(()) == "no threshold"
    assert thresholds((None,)) == "no threshold"
    assert thresholds((1.5, 1.5)) == "threshold 1.5"
    assert thresholds((1.5, None, 0.5)) == "2 thresholds, 0.5 to 1.5"
