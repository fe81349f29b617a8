"""report.json, report.html and the tables of a made-up run: its figures, what is odd, its costs."""

import dataclasses
import html
import io
import json
import math
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

from swsdist.core.codes import families
from swsdist.report import data, summary
from swsdist.report.costs import factors, peak_memory, processing_load, query_seconds
from swsdist.report.page import render_page
from tests.support.coded import raises

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
SOUND = "data:audio/wav;base64,UklGRgAAAABXQVZF"


def a_query(number: int) -> data.QueryRow:
    terms = ("abve mo", "ekwaya", "mwana", "ndzoo", "bisi")
    found = {"ntrue": 4, "ncorr": 3, "nfa": number, "nmiss": 1, "pmiss": 0.25, "pfa": number / 7556}
    values = {"twv": 0.75 - 66.66 * number / 7556, "best_twv": 0.8}
    return data.QueryRow(
        query_id=f"q{number:03d}", term=terms[number % 5], duration=0.5, detections=1000 + number, **found, **values
    )


def a_run(size: int = 60) -> data.ReportData:
    generator = np.random.default_rng(2013)
    target, nontarget = generator.normal(3.4, 1.4, 400), generator.normal(0.3, 1.1, 40_000)
    threshold = np.sort(np.concatenate([target, nontarget]))
    pmiss = 0.06 + 0.94 * np.searchsorted(np.sort(target), threshold) / 400
    pfa = (40_000 - np.searchsorted(np.sort(nontarget), threshold)) / (60 * 7560)
    best, edges = int(np.argmin(pmiss + 66.66 * pfa)), np.linspace(threshold[0], threshold[-1], 61)
    at = [(float(1 - pmiss[k] - 66.66 * pfa[k]), float(pmiss[k]), float(pfa[k])) for k in (best, best + 60)]
    cpu = {"index_cpu_s": 55.2, "search_cpu_s": 301.7, "score_cpu_s": 1.9, "warm_up_cpu_s": 6.3, "repeated_cpu_s": 4.4}
    seconds = {"query_seconds": 38.7, "searched_query_seconds": 35.1, "audio_seconds": 7560.4, "wall_s": 213.4}
    rules = {"tolerance": 0.5, "trials_per_second": 1.0, "trials": 7560, "seconds": 7560.4, "conventions": "stdeval"}
    stage = {"failed": 0, "cpu_s": 55.2, "wall_s": 31, "bytes": 10**8, "peak_gb": 0.2}
    node = {"tasks": 13, "cpu_s": 190.1, "peak_index_gb": 0.312}
    type_ = {"cpu": "Example CPU @ 2.50GHz", "cores": 16, "clock_ghz": 2.5, "ram_gb": 67.4, "os": "Linux 6.1"}
    cut_off = {"path": "audio/broken_01.flac", "message": "the file ends after 1.2 of 4.0 s", "remedy": "copy it again"}
    heard = {"term": "ndzoo", "verdict": "hit", "audio": SOUND, "query_audio": SOUND}
    return data.ReportData(
        name="mboshi-dev",
        folder="/data/runs/mboshi-dev",
        system="mfcc-cosine",
        created="2025-01-31T12:34:56Z",
        digest="3b7c" * 16,
        config_yaml="run: runs/mboshi-dev\ncorpus:\n  documents: docs.csv  # <all of them>\n",
        versions={"python": "3.11.9", "swsdist": "0.1.0", "numpy": "2.2.1"},
        resources=data.Resources(**cpu, **seconds, pmu_index_gb=0.312, pmu_search_gb=0.655, phase_wall_s={"index": 31}),
        counts=data.Counts(documents=1204, queries=size, examples=size, detections=61_240, references=412, rejected=3),
        protocol=data.Protocol(name="sws2013", beta=66.66, **rules),
        measures=data.Measures(
            **dict(zip(("mtwv", "mtwv_pmiss", "mtwv_pfa"), at[0], strict=True)),
            **dict(zip(("atwv", "atwv_pmiss", "atwv_pfa"), at[1], strict=True)),
            mtwv_threshold=float(threshold[best]),
            atwv_thresholds=(3.11, 3.24, 3.02, 3.4, 3.3),
            calibration="crossfit",
        ),
        stages=tuple(data.StageRow(stage=name, tasks=7, done=7, skipped=0, **stage) for name in ("index", "search")),
        hardware=(data.NodeType(nodes=2, brand="Example Server 9", **type_),),
        nodes=tuple(data.NodeRow(host=f"node-{k}", peak_search_gb=peak, **node) for k, peak in ((1, 0.655), (2, 0.61))),
        rejected=(
            data.RejectedRow(kind="document", id="broken_01", part=1, reason="truncated", **cut_off),
            data.RejectedRow(kind="query", id="q999", part=2, reason="missing", message="no such file"),
            data.RejectedRow(kind="document", id="empty", part=1, reason="empty", message="no samples"),
        ),
        queries=tuple(map(a_query, range(size))),
        det=data.DetCurve(pmiss, pfa, threshold),
        scores=data.ScoreHistogram(edges, np.histogram(target, edges)[0], np.histogram(nontarget, edges)[0]),
        hits=(
            data.Hit(query_id="q003", doc_id="abiayi_2015-09-08", start=1.23, end=1.81, score=7.42, **heard),
            data.Hit(query_id="q011", doc_id="kouarata_42", start=0.2, end=0.9, score=6.9, verdict="false alarm"),
        ),
    )


def an_unscored_run() -> data.ReportData:
    run = a_run(5)
    queries = tuple(data.QueryRow(query_id=q.query_id, detections=q.detections) for q in run.queries)
    hits = tuple(dataclasses.replace(hit, verdict="unknown") for hit in run.hits)
    counts = dataclasses.replace(run.counts, references=None)
    nothing = {"measures": None, "det": None, "scores": None, "unscored": "no references were given"}
    return dataclasses.replace(run, queries=queries, hits=hits, counts=counts, **nothing)


def an_oracle_run() -> data.ReportData:
    run = a_run(5)
    assert run.measures is not None
    oracle = dataclasses.replace(run.measures, calibration="oracle", atwv_thresholds=(3.1,), further={"cnxe": 0.83})
    return dataclasses.replace(run, measures=oracle)


def a_hostile_run() -> data.ReportData:
    run = a_run(5)
    of_hit = dict.fromkeys(("query_id", "doc_id", "term", "audio", "query_audio"), HOSTILE)
    others = dict.fromkeys(("name", "folder", "system", "digest", "unscored"), HOSTILE)
    return dataclasses.replace(
        run,
        **others,
        config_yaml=HOSTILE + "\udcff",
        versions={HOSTILE: HOSTILE},
        queries=(dataclasses.replace(run.queries[0], query_id=HOSTILE, term=HOSTILE),),
        rejected=(data.RejectedRow(kind="document", id=HOSTILE, path=HOSTILE, reason=HOSTILE, message=HOSTILE),),
        hits=(dataclasses.replace(run.hits[0], **of_hit),),
        nodes=(dataclasses.replace(run.nodes[0], host=HOSTILE),),
        stages=(dataclasses.replace(run.stages[0], stage=HOSTILE),),
        hardware=(dataclasses.replace(run.hardware[0], brand=HOSTILE, gpu=HOSTILE),),
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


@every_run
def test_json_fits_its_schema_and_the_page_asks_nothing_of_the_network(make: Callable[[], data.ReportData]) -> None:
    report = json.loads(json.dumps(data.write_report_json(make()), allow_nan=False))
    again = data.ReportJson.model_validate(report).model_dump(mode="json", by_alias=True)
    assert again == report
    text = render_page(make())
    elements = Elements(text)
    assert elements.open == []
    assert not {"link", "img", "iframe", "base"} & {tag for tag, _ in elements.found}
    for tag, attributes in elements.found:
        for name in ("src", "href"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:audio/")) or value in ("", HOSTILE), f"<{tag} {name}={value}>"
    assert "default-src 'none'" in text


def test_json_has_the_headlines_on_top() -> None:
    run = a_run()
    assert run.measures is not None
    odd = dataclasses.replace(run.measures, mtwv_threshold=float("inf"), atwv_thresholds=(float("-inf"), 1.0))
    report = data.write_report_json(dataclasses.replace(run, measures=odd))
    assert report["schema"] == "swsdist-report/1"
    assert report["measures"]["mtwv"] == run.measures.mtwv
    assert (report["measures"]["mtwv_threshold"], report["measures"]["atwv_thresholds"]) == (None, [None, 1.0])
    assert report["isf"] == pytest.approx(55.2 / 7560.4)
    assert report["ssf_hours"] == pytest.approx(3600 * report["ssf"])
    assert report["pl"] == pytest.approx(0.1 * report["isf"] * 0.312 + 0.9 * report["ssf"] * 0.655)
    assert (report["queries"], report["rejected"], report["repeated_cpu"]) == (60, 3, 4.4)
    assert report["hours"] == pytest.approx(2.1, abs=0.01)
    assert [row["query_id"] for row in report["per_query"][:2]] == ["q000", "q001"]
    assert "UklGR" not in json.dumps(report)
    assert report["det"]["points"] == 40_400
    assert len(report["det"]["pfa"]) == len(report["det"]["pmiss"]) == len(report["det"]["threshold"]) < 4000
    with pytest.raises(ValueError, match="swsdist-report/1"):
        data.ReportJson.model_validate({**report, "schema": "swsdist-report/2"})


def test_page_escapes_whatever_others_wrote() -> None:
    text = render_page(a_hostile_run())
    assert "<script>alert" not in text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in text
    elements = Elements(text)
    assert [tag for tag, _ in elements.found].count("script") == 1
    assert not any("onerror" in attributes for _, attributes in elements.found)
    text.encode("utf-8")


def in_browser(text: str, script: str, folder: Path) -> list[Any]:
    """What a script returns, run at the end of a page in headless Chromium: a list."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on PATH, so the page's scripts cannot be run")
    probe = f"<script>document.body.dataset.result = JSON.stringify((() => {{ {script} }})());</script></body>"
    (folder / "page.html").write_text(text.replace("</body>", probe), encoding="utf-8")
    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    flags += ["--disable-component-update", f"--user-data-dir={folder / 'profile'}", "--window-size=1200,900"]
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
def test_headers_sort_the_box_filters_and_hostile_ids_do_not_run(tmp_path: Path) -> None:
    run = a_run(8)
    values = (0.5, None, -2.25, 0.031, 10.0, None, -0.1, 9.5)
    queries = tuple(dataclasses.replace(q, twv=v) for q, v in zip(run.queries, values, strict=True))
    script = (
        CLICK
        + """
        click(10); const up = column(10), sorted = table.tHead.rows[0].cells[10].getAttribute("aria-sort");
        click(10); const down = column(10);
        click(0); click(0);
        const names = column(0), last = table.tHead.rows[0].cells[10].getAttribute("aria-sort");
        const find = document.getElementById("find");
        const type = (text) => { find.value = text; find.dispatchEvent(new Event("input")); return column(0); };
        return [up, down, names, sorted, last, type("EKWAYA"), type("q00").length, type("q007")];"""
    )
    found = in_browser(render_page(dataclasses.replace(run, queries=queries)), script, tmp_path)
    ascending = ["-2.2500", "-0.1000", "0.0310", "0.5000", "9.5000", "10.0000"]
    assert found[:2] == [[*ascending, "–", "–"], [*ascending[::-1], "–", "–"]]
    assert found[2:5] == [[f"q{n:03d}" for n in range(7, -1, -1)], "ascending", None]
    assert found[5:] == [["q006", "q001"], 8, ["q007"]]
    script = "return [String(document.images.length), document.querySelector('h1').textContent];"
    assert in_browser(render_page(a_hostile_run()), script, tmp_path) == ["0", HOSTILE]


def a_whole_run() -> data.ReportData:
    run = a_run(8)
    assert run.measures is not None
    further = {"stwv": 0.94, "cnxe": 0.72, "cnxe_min": 0.55}
    return dataclasses.replace(
        run, mtwv_interval=(0.31, 0.42), measures=dataclasses.replace(run.measures, further=further)
    )


def an_odd_run() -> data.ReportData:
    """Three kinds of rejected inputs, and four warnings."""
    return dataclasses.replace(a_whole_run(), warnings=tuple(f"oddity {number}" for number in range(4)))


def a_quiet_run() -> data.ReportData:
    return dataclasses.replace(a_whole_run(), rejected=())


OPENINGS = {"scored": a_whole_run, "odd": an_odd_run, "quiet": a_quiet_run, "unscored": an_unscored_run}
every_opening = pytest.mark.parametrize("make", OPENINGS.values(), ids=OPENINGS.keys())


def headline(run: data.ReportData, terminal: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80, color_system=None)
    summary.print_headline(run, console)
    summary.print_location(run, console)
    return out.getvalue().splitlines()


def test_six_figures_and_rejected_inputs_by_kind_and_reason() -> None:
    run = a_whole_run()
    assert run.measures is not None
    rows = summary.key_figures(run)
    quality = [("MTWV", f"{run.measures.mtwv:.4f}"), ("ATWV", f"{run.measures.atwv:.4f}"), ("STWV", "0.9400")]
    cost = [("min Cnxe", "0.5500"), ("SSF", "0.001031"), ("audio", "2.1 h")]
    assert [(row.name, row.value) for row in rows] == [*quality, *cost]
    assert rows[0].note.startswith("0.3100 to 0.4200 (95 %); Pmiss ")
    assert rows[5].note == "8 queries, 1204 documents, 61240 detections"
    assert "(95 %)" not in summary.key_figures(dataclasses.replace(run, mtwv_interval=None))[0].note
    amounts = [("audio", "2.1 h"), ("documents", "1204"), ("queries", "5"), ("detections", "61240")]
    times = [("indexing", "55.2 s"), ("searching", "5 min 02 s")]
    assert [(row.name, row.value) for row in summary.key_figures(an_unscored_run())] == [*amounts, *times]
    oracle = summary.key_figures(an_oracle_run())[1]
    assert (oracle.name, oracle.tone) == ("ATWV (oracle)", "warning")
    more = data.RejectedRow(kind="document", id="b2", path="b2.flac", reason="truncated", message="the file ends")
    task = data.RejectedRow(kind="task", id="shard 1", reason="bug", message="it failed")
    found = summary.rejections((*a_run(1).rejected, more, task))
    assert [tuple(one) for one in found] == [
        ("document", "empty", 1, "empty: no samples", None),
        ("document", "truncated", 2, "audio/broken_01.flac: the file ends after 1.2 of 4.0 s", "copy it again"),
        ("query", "missing", 1, "q999: no such file", None),
    ]


def test_what_is_odd_begins_with_what_is_worst() -> None:
    run = an_odd_run()
    task = data.RejectedRow(kind="task", id="shard 1", reason="bug", message="no\nmemory")
    stages = (dataclasses.replace(run.stages[0], failed=2),)
    lines = [o.line for o in summary.issues(dataclasses.replace(run, stages=stages, rejected=(*run.rejected, task)))]
    assert lines[0] == "failed: 2 tasks, not included in the figures; the first: shard 1: no memory"
    assert lines[2].startswith("rejected: 1 document(s), truncated; the first: audio/broken_01.flac: ")
    assert lines[4:] == [f"warning: oddity {number}" for number in range(4)]
    assert summary.truncated(lines, 3, "x")[3:] == ["... and 5 more: x"]
    assert summary.truncated(["a", "b", "c"], 3, "x") == ["a", "b", "c"]
    quiet = a_quiet_run()
    assert summary.issues(quiet) == []
    assert quiet.protocol is not None
    crowded = dataclasses.replace(quiet, protocol=dataclasses.replace(quiet.protocol, trials=10))
    assert any(one.line.startswith("warning: 8 of 8 queries") for one in summary.issues(crowded))


@every_opening
def test_a_dozen_lines_and_a_page_begin_with_the_figures(make: Callable[[], data.ReportData]) -> None:
    run = make()
    figures = summary.key_figures(run)
    for terminal in (True, False):
        lines = headline(run, terminal)
        shown = summary.truncated([one.line for one in summary.issues(run)], 3, "swsdist report RUN --all")
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


def test_thinning_keeps_the_ends_and_the_shape() -> None:
    pfa = np.linspace(0.0, 0.5, 200_001)
    pmiss = (1 - pfa) ** 3
    curve = data.DetCurve(pmiss, pfa, np.arange(len(pfa), dtype=np.float64))
    thin = data.thin_det(curve)
    assert len(thin) < 4000
    assert (thin.threshold[0], thin.threshold[-1]) == (0, 200_000)
    # What is left are points of the curve, and a line through them passes close to those that went.
    np.testing.assert_array_equal(thin.pmiss, pmiss[thin.threshold.astype(int)])
    assert np.abs(np.interp(pfa, thin.pfa, thin.pmiss) - pmiss).max() < 0.002
    for points in range(3):
        values = np.linspace(0, 1, points)
        assert data.thin_det(data.DetCurve(values, values, values)).pfa.tolist() == values.tolist()


HOUR = 3600.0


def test_figures_of_cost() -> None:
    """14 hours on 16 cores for 300 hours of audio; 48 CPU hours for 900 s of queries: 0.64, where the source prints 0.8."""
    given = {"index_cpu_s": 224 * HOUR, "search_cpu_s": 48 * HOUR, "query_s": 900, "audio_s": 300 * HOUR}
    found = factors(**given, index_peaks_gb=[1.0, 4.0], search_peaks_gb=[2.0])
    assert found.isf == pytest.approx(0.7467, abs=5e-5)
    assert found.ssf_hours == pytest.approx(0.64, rel=1e-12)
    assert (found.pmu_index_gb, found.pmu_search_gb) == (4.0, 2.0)
    assert found.pl_hours == pytest.approx(0.1 * 224 / 300 * 4 + 0.9 * 0.64 * 2)
    assert found.pl == pytest.approx(0.1 * 224 / 300 * 4 + 0.9 * 0.64 / 3600 * 2)
    assert processing_load(0.5, 0.2, 2.0, 4.0, 1.0) == pytest.approx(1.0)
    assert processing_load(0.5, 0.2, None, 4.0, 0.1) is None
    assert query_seconds({"a": [0.5, 0.25], "b": [1.0], "c": []}) == 1.75
    assert (query_seconds({}), peak_memory([])) == (0.0, None)
    found = factors(search_cpu_s=10, query_s=5, audio_s=100)
    assert found.ssf == pytest.approx(0.02)
    assert (found.isf, found.pmu_index_gb, found.pl) == (None, None, None)
    nothing = factors(index_cpu_s=1, search_cpu_s=1, query_s=0, audio_s=0)
    assert (nothing.isf, nothing.ssf, nothing.ssf_hours) == (None, None, None)
    for name, given, named in (
        ("index_cpu_s", -1.0, "CPU time of indexing"),
        ("audio_s", math.inf, "duration of the audio"),
        ("query_s", math.nan, "duration of the queries"),
        ("search_peaks_gb", [1.0, -2.0], "peak memory"),
    ):
        with raises(families.INVALID_VALUE, quantity=named):
            factors(**{name: given})  # type: ignore[arg-type]
    for weight in (-0.1, 1.1, math.nan):
        with raises(families.INVALID_VALUE):
            processing_load(0.5, 0.2, 2.0, 4.0, weight)
