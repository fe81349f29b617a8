"""`report.html`: one self-contained page without network requests, readable without scripts, printable.

Text in the page is untrusted (ids, terms, paths, messages): jinja2 escapes all of it; only the plots are inserted
unescaped. A content security policy in the page forbids everything that it does not need. Scripts only sort and filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from shlex import quote
from typing import Any

from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.registry.entries import Quantity
from swsdist.report.costs import Factors, factors
from swsdist.report.data import (
    FusionReport,
    Gain,
    Hit,
    Measures,
    ReportData,
    Resources,
    quantity_of,
    read_report_json,
    thin_det,
)
from swsdist.report.plots.curves import Line, Mark, det_svg, histogram_svg
from swsdist.report.plots.timeline import timeline_svg
from swsdist.report.summary import (
    MOST_ISSUES,
    NOTHING,
    UNKNOWN_COSTS,
    calibration_text,
    fixed,
    gpu_figures,
    integer,
    issues,
    key_figures,
    rendered,
    short,
    span,
    summary_rows,
    too_few_trials,
    undefined_note,
    undefined_reasons,
)
from swsdist.report.tables import Table

#: The inputs of the figures, and their names in `report.json` under `resources`.
_OF_RUN = {
    "index_cpu_s": "index_cpu_s",
    "search_cpu_s": "search_cpu_s",
    "audio_s": "audio_seconds",
    "query_s": "query_seconds",
    "index_peaks_gb": "pmu_index_gb",
    "search_peaks_gb": "pmu_search_gb",
    "weight": "pl_lambda",
}
_OF_GPUS = ("index_gpu_s", "search_gpu_s", "gpu_index_gb", "gpu_search_gb")


def from_numbers(
    run: str | None = None,
    *,
    index_cpu_s: float | None = None,
    search_cpu_s: float | None = None,
    audio_s: float | None = None,
    query_s: float | None = None,
    index_peaks_gb: Sequence[float] = (),
    search_peaks_gb: Sequence[float] = (),
    weight: float | None = None,
) -> Factors:
    """The figures of a run, where given numbers replace the run's.

    Args:
        run: folder of a run with a report; None: only the numbers.
        index_cpu_s, search_cpu_s: CPU s.
        audio_s, query_s: s.
        index_peaks_gb, search_peaks_gb: highest memory of each node, GB.
        weight: lambda of PL, 0.1 by default.

    Raises:
        UserError: the run has no report, nothing is given, or a number is impossible.
    """
    numbers: dict[str, Any] = {
        "index_cpu_s": index_cpu_s,
        "search_cpu_s": search_cpu_s,
        "audio_s": audio_s,
        "query_s": query_s,
        "index_peaks_gb": list(index_peaks_gb) or None,
        "search_peaks_gb": list(search_peaks_gb) or None,
        "weight": weight,
    }
    if run is None and all(value is None for name, value in numbers.items() if name != "weight"):
        raise families.EMPTY_INPUT("no numbers given", "name a run folder, or give --indexing-cpu, --audio, ...")
    run_values, gpu = ({}, {}) if run is None else _run_inputs(run)
    values = run_values | {name: value for name, value in numbers.items() if value is not None}
    return replace(factors(**{name: value for name, value in values.items() if value is not None}), **gpu)


def _run_inputs(run: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs of a run's figures, and its use of GPUs."""
    results = read_report_json(Folder(run))["resources"]
    run_values = {name: results[key] for name, key in _OF_RUN.items()}
    for name in ("index_peaks_gb", "search_peaks_gb"):
        run_values[name] = None if run_values[name] is None else [run_values[name]]
    return run_values, {name: results.get(name) for name in _OF_GPUS}  # a run of an earlier version has none


def resource_table(results: Factors | Resources) -> Table:
    """The figures as a table with meanings."""
    rows = _rows(results)
    return Table(
        "Processing resources",
        ("figure", "", "value"),
        [(name, note if value is not None else _unknown_cost(name), text) for name, note, text, value in rows],
        f"{NOTHING}: not known." if any(value is None for *_, value in rows) else "",
        texts=(0, 1),
        plain=[{"figure": name, "meaning": note, "value": value} for name, note, _, value in rows],
    )


def resource_lines(results: Factors) -> list[str]:
    """The figures as lines of text: name, value, meaning or reason for its absence."""
    return [
        f"{name:<10}  {text:>10}  {note if value is not None else _unknown_cost(name)}"
        for name, note, text, value in _rows(results)
    ]


def _unknown_cost(name: str) -> str:
    return f"not known: {UNKNOWN_COSTS[name.partition(',')[0]]}"


def _rows(results: Factors | Resources) -> list[tuple[str, str, str, float | None]]:
    """Name, meaning, value as text, and value of each figure."""
    weight = short(results.pl_lambda)
    return [
        ("ISF", "CPU s per s of audio", short(results.isf), results.isf),
        ("SSF", "CPU s per query s and audio s", short(results.ssf), results.ssf),
        ("SSF, hours", "the same with all times in hours: 3600 x SSF", short(results.ssf_hours), results.ssf_hours),
        ("PMU index", "GB, highest over nodes", fixed(results.pmu_index_gb, 3), results.pmu_index_gb),
        ("PMU search", "GB, highest over nodes", fixed(results.pmu_search_gb, 3), results.pmu_search_gb),
        ("PL", f"lambda {weight}, with SSF", short(results.pl), results.pl),
        ("PL, hours", f"lambda {weight}, with SSF in hours", short(results.pl_hours), results.pl_hours),
        *gpu_figures(results),
    ]


#: Most rows of the per-query table, and of the table of rejected inputs, for a browser.
MOST_QUERIES = 5000
MOST_REJECTED = 1000


#: Explanations of columns of the per-query table.
_HELPS = {
    "s": "seconds of its examples",
    "cut": "seconds trimmed off around their speech",
    "true": "true occurrences",
    "FA": "false alarms",
    "TWV": "of the decisions",
    "best TWV": "at the query's best threshold",
}


def render_page(data: ReportData) -> str:
    """The page as HTML text, to be written as UTF-8.

    Long tables are truncated (`MOST_QUERIES`, `MOST_REJECTED`), with a note on the rest.
    """
    return rendered(
        "report",
        data=data,
        figures=key_figures(data),
        issues=issues(data),
        most_issues=MOST_ISSUES,
        rows=summary_rows(data),
        calibration=calibration_text(data.measures) if data.measures else "",
        det=det_plot(data),
        histogram=histogram_plot(data),
        queries=_queries(data, MOST_QUERIES),
        hits=data.hits,
        by_query=_hits_by_query(data.hits),
        not_shown=_not_shown(data),
        costs=_costs(data),
        phases=_phases(data),
        stages=_stages(data),
        nodes=_nodes(data),
        hardware=_hardware(data),
        timeline=timeline_plot(data),
        rejected=_rejected(data),
        rules=_rules(data),
        measures=measures_table(data.measures) if data.measures else None,
        versions=_table_of("Versions", data.versions),
        fusion=_fusion(data.fusion) if data.fusion else None,
    )


def det_plot(data: ReportData) -> str | None:
    """The DET curve of a run as SVG, with MTWV and ATWV marked; None without a curve."""
    if data.det is None or not len(data.det):
        return None
    marks = []
    if (results := data.measures) is not None:
        name = "ATWV (oracle)" if results.calibration == "oracle" else "ATWV"
        for label, value, pfa, pmiss in (
            ("MTWV", results.mtwv, results.mtwv_pfa, results.mtwv_pmiss),
            (name, results.atwv, results.atwv_pfa, results.atwv_pmiss),
        ):
            if pfa is not None and pmiss is not None:
                marks.append(Mark(f"{label} {fixed(value)}", pfa, pmiss))
    curve = thin_det(data.det)
    line = Line(data.system, curve.pfa, curve.pmiss, tuple(marks))
    return det_svg([line], beta=None if data.protocol is None else data.protocol.beta)


def histogram_plot(data: ReportData) -> str | None:
    """Histograms of target and non-target scores as SVG, with thresholds marked; None without scores."""
    if data.scores is None:
        return None
    marks: list[tuple[str, float]] = []
    if (results := data.measures) is not None:
        if results.mtwv_threshold is not None:
            marks.append((f"MTWV threshold {short(results.mtwv_threshold)}", results.mtwv_threshold))
        # Thresholds of many folds would be indistinguishable.
        if len(results.atwv_thresholds) == 1 and results.atwv_thresholds[0] is not None:
            marks.append((f"ATWV threshold {short(results.atwv_thresholds[0])}", results.atwv_thresholds[0]))
    return histogram_svg(data.scores, marks, height=520)


def timeline_plot(data: ReportData) -> str | None:
    """The tasks of the workers over time, and the memory of the nodes, as SVG; None if no task was done."""
    return None if data.accounts is None else timeline_svg(data.accounts.timeline())


def _hits_by_query(hits: Sequence[Hit]) -> list[tuple[str, list[Hit]]]:
    """Hits of each query, the query of the best hit first."""
    results: dict[str, list[Hit]] = {}
    for hit in hits:
        results.setdefault(hit.query_id, []).append(hit)
    return list(results.items())


def _not_shown(data: ReportData) -> str:
    """A note on queries without a hit on the page. First hits precede second ones, so a second hit means that all are shown."""
    shown = len({hit.query_id for hit in data.hits})
    left = data.counts.queries - shown
    if left <= 0 or not data.hits:
        return ""
    if len(data.hits) > shown or len(data.hits) == data.counts.detections:
        return f"{left} of {data.counts.queries} queries have no detections."
    return (
        f"{left} of {data.counts.queries} queries are not shown (report.clips: {len(data.hits)}). "
        f"Show more: swsdist report {quote(data.folder)} --set report.clips={data.counts.queries}"
    )


def _table_of(caption: str, pairs: Mapping[str, str]) -> Table:
    return Table(caption, ("what", "value"), list(pairs.items()), texts=(0, 1))


def paper_tables(data: ReportData) -> list[Table]:
    """The tables of a run for a paper: measures, if scored, and processing resources."""
    tables = []
    if (results := data.measures) is not None:
        table = measures_table(results)
        note_text = " ".join(filter(None, (table.note, too_few_trials(data))))
        about = f"{data.name}: {data.system}. ATWV: {calibration_text(results)}. {note_text}".rstrip()
        tables.append(replace(table, note=about))
    return [*tables, resource_table(data.resources)]


def query_table(data: ReportData) -> Table:
    """One row per query, as on the page, for all queries."""
    return replace(_queries(data, len(data.queries)), note="", plain=[asdict(row) for row in data.queries])


def _queries(data: ReportData, most: int) -> Table:
    terms = any(q.term for q in data.queries)
    scored = data.measures is not None
    trimmed = any(q.cut for q in data.queries)
    columns = ["query", *(["term"] if terms else []), "s", *(["cut"] if trimmed else []), "detections"]
    columns += ["true", "hits", "FA", "misses", "Pmiss", "Pfa", "TWV", "best TWV"] if scored else []
    rows = []
    for q in data.queries[:most]:
        row = [q.query_id, *([q.term or ""] if terms else []), fixed(q.duration, 2)]
        row += [*([fixed(q.cut, 2)] if trimmed else []), integer(q.detections)]
        if scored:
            row += [*map(integer, (q.ntrue, q.ncorr, q.nfa, q.nmiss)), fixed(q.pmiss, 3), fixed(q.pfa, 6)]
            row += [fixed(q.twv), fixed(q.best_twv)]
        rows.append(row)
    note = _truncation_note(len(data.queries), most, "per_query of report.json")
    if any(NOTHING in row for row in rows):
        note = f"{note} {NOTHING}: no true occurrence, no example with sound, or no decision.".strip()
    return Table("Queries", columns, rows, note, texts=(0, 1) if terms else (0,), helps=_HELPS)


def _truncation_note(rows: int, most: int, place: str) -> str:
    return f"The first {most} of {rows} rows are shown; all are in {place}." if rows > most else ""


def _costs(data: ReportData) -> Table:
    cost = data.resources
    return _table_of(
        "Processing resources",
        {
            "ISF (CPU s of indexing / audio s)": short(cost.isf),
            "SSF (CPU s of searching / (query s x audio s))": short(cost.ssf),
            "SSF in hours (3600 x SSF)": short(cost.ssf_hours),
            "CPU s of searching per query and hour of audio": short(cost.query_cost),
            "PMU while indexing, GB": fixed(cost.pmu_index_gb, 3),
            "PMU while searching, GB": fixed(cost.pmu_search_gb, 3),
            f"PL (lambda {short(cost.pl_lambda)}, SSF in seconds)": short(cost.pl),
            f"PL (lambda {short(cost.pl_lambda)}, SSF in hours)": short(cost.pl_hours),
            "CPU, indexing": span(cost.index_cpu_s),
            "CPU, searching": span(cost.search_cpu_s),
            "CPU, scoring": span(cost.score_cpu_s),
            "CPU, warm-up (not in the figures above)": span(cost.warm_up_cpu_s),
            "CPU, repeated after losses (not in the figures above)": span(cost.repeated_cpu_s),
            **{f"{name} ({note})": text for name, note, text, _ in gpu_figures(cost)},
            "audio": f"{short(data.hours)} h",
            "query examples, given": span(cost.query_seconds),
            "query examples, searched": span(cost.searched_query_seconds),
        },
    )


def _fusion(results: FusionReport) -> Table:
    names = (
        "weight",
        "detected",
        "detected by it alone",
        "MTWV",
        "AUC",
        "min Cnxe",
        "gain of MTWV",
        "gain of min Cnxe",
        "p",
    )
    marked = any(system.mark is not None for system in results.systems)
    rows = []
    for system in results.systems:
        gain = system.gain or Gain()
        weight = fixed(system.weight, 3)
        if marked and system.mark is not None:
            weight += f" ({system.mark:+.3f} where not detected)"
        rows.append(
            [
                system.system,
                weight,
                *(f"{100 * part:.1f} %" for part in (system.given, system.alone)),
                *map(fixed, (system.mtwv, system.auc, system.cnxe_min)),
                _gain_text(gain.mtwv, gain.mtwv_low, gain.mtwv_high),
                _gain_text(gain.cnxe_min, gain.cnxe_min_low, gain.cnxe_min_high),
                short(gain.cnxe_min_p),
            ]
        )
    offset = (
        "nothing was fitted: unweighted mean of the scores"
        if results.offset is None
        else f"offset {results.offset:+.3f}"
    )
    note = (
        f"{results.joined} places detected by any system ({results.overlapping} more overlapped a better place of the same "
        f"query); {offset}. Missing scores: {results.missing}. Gains: fusion "
        "minus system, with 95 % intervals over queries; p: paired test by resampling queries."
    )
    if results.between_queries:
        note += f" {results.outdone} detections overlapped a better one of another query, so decisions depend on other queries."
    if any(NOTHING in row for row in rows):
        note += f" {NOTHING}: not fitted, or not scored for the trials of the fusion."
    return Table("Systems", ("system", *names), rows, note)


def _gain_text(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return NOTHING
    return f"{value:+.4f} ({low:+.4f} to {high:+.4f})"


def _phases(data: ReportData) -> Table:
    cost = data.resources
    pairs = {name: span(value) for name, value in cost.phase_wall_s.items()}
    if cost.executor_start_s is not None:
        pairs["start of the workers"] = span(cost.executor_start_s)
    if cost.executor_stop_s is not None:
        pairs["shutdown of the workers"] = span(cost.executor_stop_s)
    return _table_of("Wall time", {**pairs, "total": span(cost.wall_s)})


def _stages(data: ReportData) -> Table:
    names = ["tasks", "done", "skipped", "failed", "CPU s", "wall s", "GB written", "peak GB"]
    names += ["GPU s", "GPU GB"] if (has_gpu := any(s.gpu_s for s in data.stages)) else []
    rows = [
        [
            s.stage,
            *map(integer, (s.tasks, s.done, s.skipped, s.failed)),
            *(fixed(s.cpu_s, 2), fixed(s.wall_s, 2), fixed(s.bytes / 1e9, 4), fixed(s.peak_gb, 3)),
            *([fixed(s.gpu_s, 2), fixed(s.gpu_gb, 3)] if has_gpu else []),
        ]
        for s in data.stages
    ]
    return Table("Stages", ("stage", *names), rows)


def _nodes(data: ReportData) -> Table:
    names = ["tasks", "CPU s", "peak GB, indexing", "peak GB, searching"]
    names += ["GPU s", "GPU GB, indexing", "GPU GB, searching"] if (has_gpu := any(n.gpu_s for n in data.nodes)) else []
    rows = [
        [
            *(n.host, integer(n.tasks), fixed(n.cpu_s, 2), fixed(n.peak_index_gb, 3), fixed(n.peak_search_gb, 3)),
            *([fixed(n.gpu_s, 2), fixed(n.gpu_index_gb, 3), fixed(n.gpu_search_gb, 3)] if has_gpu else []),
        ]
        for n in data.nodes
    ]
    return Table("Nodes", ("host", *names), rows)


def _hardware(data: ReportData) -> Table:
    gpu = any(h.gpu for h in data.hardware)
    columns = ["nodes", "computer", "CPU", "cores", "GHz", "RAM GB", "operating system", *(["GPU"] if gpu else [])]
    rows = [
        [
            *(integer(h.nodes), h.brand, h.cpu, integer(h.cores), fixed(h.clock_ghz, 2), fixed(h.ram_gb, 1), h.os),
            *([h.gpu or NOTHING] if gpu else []),
        ]
        for h in data.hardware
    ]
    return Table("Hardware", columns, rows, texts=(1, 2, 6, 7))


def _rejected(data: ReportData) -> Table:
    names = ("kind", "id", "part", "file", "reason", "problem", "remedy")
    rows = [
        [r.kind, r.id, "" if r.part is None else str(r.part), r.path or "", r.reason, r.message, r.remedy or ""]
        for r in data.rejected[:MOST_REJECTED]
    ]
    reasons: Iterable[tuple[str, int]] = Counter(f"{r.kind}, {r.reason}" for r in data.rejected).most_common(8)
    note = "; ".join(f"{reason}: {count}" for reason, count in reasons)
    cut = _truncation_note(data.counts.rejected, MOST_REJECTED, "rejected.parquet of the run folder")
    texts = [k for k, name in enumerate(names) if name != "part"]
    return Table("Rejected inputs", names, rows, " ".join(filter(None, (note and note + ".", cut))), texts=texts)


def _rules(data: ReportData) -> Table | None:
    if (rules := data.protocol) is None:
        return None
    pairs = {
        "protocol": rules.name,
        "conventions": rules.conventions,
        "beta": short(rules.beta, 6),
        **({} if rules.tolerance is None else {"tolerance": f"{short(rules.tolerance)} s"}),
        "trials are": f"{rules.trials_are}s" if rules.trials_are != "time" else "time",
        "trials a second": short(rules.trials_per_second),
        "trials N": str(rules.trials),
        "audio T, channel 1 of each recording": f"{short(rules.seconds, 6)} s",
    }
    return _table_of("Protocol", pairs)


def measures_table(results: Measures) -> Table:
    """One row per measure."""
    thresholds = sorted(t for t in results.atwv_thresholds if t is not None)
    limits = " to ".join(dict.fromkeys(short(t) for t in (thresholds[0], thresholds[-1]))) if thresholds else NOTHING
    rows = [
        [item.name, fixed(value, item.decimals), short(threshold), fixed(pmiss), fixed(pfa, 6)]
        for item, value, threshold, pmiss, pfa in _measure_values(results)
    ]
    rows[1][2] = limits
    for row in rows[2:]:  # most measures have no threshold and no rates
        limit, pmiss, pfa = row[2:]
        row[2:4] = ["" if cell == NOTHING else cell for cell in (limit, pmiss)]
        row[4] = "" if pmiss == pfa == NOTHING else pfa
    names = ("measure", "value", "threshold", "pmiss", "pfa")
    plain = [dict(zip(names, (item.name, *values), strict=True)) for item, *values in _measure_values(results)]
    headings = ("measure", "value", "threshold", "Pmiss", "Pfa")
    return Table("Measures", headings, rows, undefined_note(undefined_reasons(results.values())), plain=plain)


def _measure_values(results: Measures) -> list[tuple[Quantity, float | None, float | None, float | None, float | None]]:
    """Metadata, value, threshold, Pmiss and Pfa of each measure; no threshold if there are several."""
    limits = set(results.atwv_thresholds)
    limit = next(iter(limits)) if len(limits) == 1 else None
    actual = quantity_of("atwv")
    if results.calibration == "oracle":
        actual = replace(actual, label=f"{actual.name} (oracle)")
    return [
        (quantity_of("mtwv"), results.mtwv, results.mtwv_threshold, results.mtwv_pmiss, results.mtwv_pfa),
        (actual, results.atwv, limit, results.atwv_pmiss, results.atwv_pfa),
        *results.rows(),
    ]
