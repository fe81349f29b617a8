"""All figures of a run as rows for a terminal, a log file and the page; and its headline of six figures and issues.

`summary_rows` makes the rows; the rest is their layout. The page begins with the headline, and commands end with it.
Formats of numbers, shared by the table and the pages, and rendering of pages are here too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from swsdist.core.text import counted
from swsdist.report.costs import Factors
from swsdist.report.data import (
    Calibration,
    Counts,
    LeftOutRow,
    Measures,
    RejectedRow,
    ReportData,
    Resources,
    quantity_of,
)

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


#: An undefined value.
NOTHING = "–"

Tone = Literal["main", "plain", "warning"]

#: Style of a figure on a terminal, by its tone.
STYLES: dict[Tone, str] = {"main": "bold green", "plain": "", "warning": "bold yellow"}

#: Why a cost is not known.
UNKNOWN_COSTS = {
    "ISF": "needs the CPU s of indexing (unknown for a compacted store) and s of audio",
    "SSF": "needs the CPU s of searching, s of queries and s of audio",
    "query cost": "needs the CPU s of searching, queries and s of audio",
    "PMU index": "needs the peak memory of indexing",
    "PMU search": "needs the peak memory of searching",
    "PL": "needs ISF, SSF and both PMU",
    "GPU memory": "not reported by NVIDIA's library",
}

CALIBRATIONS: dict[Calibration, str] = {
    "none": "not calibrated",
    "crossfit": "thresholds by {folds}cross-validation over queries",
    "oracle": "ORACLE: fitted on the scored queries, so optimistic",
    "file": "fitted on other data",
    "own": "threshold of the last calibration step, nothing fitted",
}


def calibration_text(measures: Measures) -> str:
    """How the decisions were made, in words."""
    folds = len(measures.atwv_thresholds)
    return CALIBRATIONS[measures.calibration].format(folds=f"{folds}-fold " if folds > 1 else "")


def gpu_figures(cost: Factors | Resources) -> list[tuple[str, str, str, float | None]]:
    """Name, meaning, value as text, and value of GPU figures; empty without GPUs."""
    if not (cost.index_gpu_s or cost.search_gpu_s):
        return []
    busy, used = "s that tasks held a GPU, not in the factors", "GB in use, highest over nodes, not in the factors"
    return [
        ("GPU index", busy, short(cost.index_gpu_s), cost.index_gpu_s),
        ("GPU search", busy, short(cost.search_gpu_s), cost.search_gpu_s),
        ("GPU memory, index", used, fixed(cost.gpu_index_gb, 3), cost.gpu_index_gb),
        ("GPU memory, search", used, fixed(cost.gpu_search_gb, 3), cost.gpu_search_gb),
    ]


class SummaryRow(NamedTuple):
    """One figure: name, value as text, explanation, and tone."""

    name: str
    value: str
    note: str = ""
    tone: Tone = "plain"


def integer(value: int | None) -> str:
    """A count as text."""
    return NOTHING if value is None else str(value)


def fixed(value: float | None, digits: int = 4) -> str:
    """A value with a number of decimals; a dash if undefined."""
    return NOTHING if value is None or math.isnan(value) else f"{value:.{digits}f}"


def short(value: float | None, digits: int = 4) -> str:
    """A value with a number of significant digits, whole if large: 0.000231, 12.35, 48213, 1.2e-07."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e15 else f"{value:.{digits}g}"


def span(seconds: float | None) -> str:
    """A duration in at most two units: 8.2 s, 3 min 12 s, 5 h 04 min."""
    if seconds is None or math.isnan(seconds):
        return NOTHING
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def clock(seconds: float) -> str:
    """A place in a recording as a player shows it: m:ss.ss, and h:mm:ss.ss from an hour on."""
    hundredths = round(seconds * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest // 100:02d}.{rest % 100:02d}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


def _path(text: str) -> Markup:
    """A name with line breaks allowed after slashes."""
    from markupsafe import Markup, escape

    return Markup("/<wbr>").join(escape(part) for part in text.split("/"))


@functools.cache
def _template(name: str) -> jinja2.Template:
    import jinja2  # not where a summary alone is wanted

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clock=clock, counted=counted, fixed=fixed, short=short, span=span, path=_path)
    environment.tests["text"] = lambda value: isinstance(value, str)
    return environment.get_template(f"{name}.html.j2")


def rendered(name: str, **values: object) -> str:
    """A page as HTML text, to be written as UTF-8: values are escaped, and a missing value is an error.

    Args:
        name: of its template.
        values: of the template, besides `version`, that of swsdist.
    """
    text = _template(name).render(version=version("swsdist"), **values)
    # A path may hold bytes that are not UTF-8 (lone surrogates in Python); the page must still be writable.
    return text.encode("utf-8", "replace").decode("utf-8")


def undefined_reasons(measures: Mapping[str, float | None]) -> dict[str, str]:
    """Why measures, and rates of defined measures, are undefined, by label.

    Args:
        measures: values by key.
    """
    from swsdist.score.events import why_undefined  # loads what measures are made of

    text = why_undefined(measures)
    results = {}
    for key, why in text.items():
        quantity = quantity_of(key)
        rate = quantity.best and quantity.of in measures and quantity.of not in text  # a threshold may be infinite
        if rate or not quantity.of:
            results[quantity.name] = why
    return results


def undefined_note(why: Mapping[str, str]) -> str:
    """A note on undefined values in a table.

    Args:
        why: reasons by name of the value; names with the same reason are joined.
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in why.items():
        by_reason.setdefault(reason, []).append(name)
    return " ".join(
        f"{NOTHING} ({', '.join(names)}): not defined where {reason}." for reason, names in by_reason.items()
    )


def wall_name(data: ReportData) -> str:
    """The name of the wall time, which is of the last call, while other costs are of all calls."""
    return "wall time of the last call" if any(stage.skipped for stage in data.stages) else "wall time"


def too_few_trials(data: ReportData) -> str:
    """The number of queries with more detections than trials; empty without any."""
    if data.protocol is None or data.measures is None:
        return ""
    trials = data.protocol.trials
    many = [query for query in data.queries if query.detections > trials]
    if not many:
        return ""
    return (
        f"{len(many)} of {len(data.queries)} queries have more detections than trials ({trials} each): keep fewer detections "
        "(reduce.nbest), or count more trials per second (score.trials_per_second)."
    )


def rejects_all(pmiss: float | None, pfa: float | None) -> str:
    """The threshold that rejects everything, in words; empty for another. STDEval prints the highest score for it."""
    return "above all scores" if (pmiss, pfa) == (1, 0) else ""


def thresholds(values: tuple[float | None, ...]) -> str:
    """One threshold, or the range over folds."""
    quantity = [value for value in values if value is not None and not math.isnan(value)]
    if not quantity:
        return "no threshold"
    low, high = min(quantity), max(quantity)
    if low == high:
        return f"threshold {short(low)}"
    return f"{len(quantity)} thresholds, {short(low)} to {short(high)}"


def summary_rows(data: ReportData) -> tuple[SummaryRow, ...]:
    """The figures of a run, in order."""
    cost = data.resources
    rows: list[SummaryRow] = []
    if data.protocol is not None and data.measures is not None:
        rules = data.protocol
        limit = (
            f"trials are {rules.trials_are}s" if rules.tolerance is None else f"tolerance {short(rules.tolerance)} s"
        )
        rows.append(
            SummaryRow("protocol", rules.name, f"beta {short(rules.beta)}, {limit}, {rules.trials} trials a query")
        )
    if data.measures is None:  # without scoring, sizes come first
        rows += _count_rows(data)
        rows.append(SummaryRow("measures", "not scored", data.unscored or "the run has no measures"))
    else:
        rows += _measure_rows(data)
    alone = data.looked_at == ("own query",)
    rows.append(
        SummaryRow("decisions", "independent" if alone else "dependent", f"depend on {', '.join(data.looked_at)}")
    )
    rows += [
        _cost("ISF", cost.isf, short(cost.isf), "CPU s per s of audio"),
        _cost("SSF", cost.ssf, short(cost.ssf), f"CPU s per query s and audio s; in hours {short(cost.ssf_hours)}"),
        _cost("query cost", cost.query_cost, short(cost.query_cost), "CPU s of searching per query and hour of audio"),
        _cost("PMU index", cost.pmu_index_gb, f"{fixed(cost.pmu_index_gb, 3)} GB", "peak memory, highest over nodes"),
        _cost(
            "PMU search", cost.pmu_search_gb, f"{fixed(cost.pmu_search_gb, 3)} GB", "peak memory, highest over nodes"
        ),
        _cost(
            *("PL", cost.pl, short(cost.pl)),
            f"lambda {short(cost.pl_lambda)}, SSF in s; in hours {short(cost.pl_hours)}",
        ),
        *(SummaryRow(name, text, note) for name, note, text, _ in gpu_figures(cost)),
        SummaryRow(wall_name(data), span(cost.wall_s), _workers(data)),
    ]
    if data.measures is not None:
        rows += _count_rows(data)
    failed = sum(stage.failed for stage in data.stages)
    if failed:
        rows.append(SummaryRow("failed tasks", str(failed), "not included in the figures above", "warning"))
    if cost.repeated_cpu_s:
        rows.append(SummaryRow("repeated CPU", span(cost.repeated_cpu_s), "attempts that were lost and repeated"))
    rows.append(
        SummaryRow(
            "result digest",
            data.digest[:16],
            "of the scored list and the measures; `swsdist digest` covers every table",
        )
    )
    rows.append(SummaryRow("report", data.page_path))
    return tuple(rows)


def _cost(name: str, value: float | None, text: str, note: str) -> SummaryRow:
    """A cost, or the reason for its absence."""
    return (
        SummaryRow(name, text, note)
        if value is not None
        else SummaryRow(name, NOTHING, f"not known: {UNKNOWN_COSTS[name]}")
    )


def _count_rows(data: ReportData) -> list[SummaryRow]:
    cost, counts = data.resources, data.counts
    return [
        SummaryRow("audio", f"{short(data.hours)} h", f"{counts.documents} documents{_speech(counts.speech)}"),
        *heard_rows(counts.languages, counts.left_out),
        SummaryRow(
            "queries", str(counts.queries), f"{counts.examples} examples, {short(cost.query_seconds)} s{_trimmed(data)}"
        ),
        *_other_corpus(data),
        SummaryRow("detections", str(counts.detections), _references(counts.references)),
        *_first_pass(counts),
        SummaryRow(
            "rejected",
            str(counts.rejected),
            "see rejected.parquet" if counts.rejected else "",
            "warning" if counts.rejected else "plain",
        ),
    ]


def heard_rows(languages: Mapping[str, int], left_out: Iterable[LeftOutRow]) -> Iterator[SummaryRow]:
    """Documents by language, and what was left out of their words, by reason; nothing where neither is known."""
    if languages:
        yield SummaryRow("languages", ", ".join(f"{name} {count}" for name, count in languages.items()))
    if rows := list(left_out):
        reasons = (f"{row.reason} {row.items}" + (f" ({span(row.seconds)})" if row.seconds else "") for row in rows)
        yield SummaryRow("left out, doubted", str(sum(row.items for row in rows)), ", ".join(reasons))


def _first_pass(counts: Counts) -> list[SummaryRow]:
    """What a first pass found of the exact search's best hits, if that was asked for."""
    if not counts.best:
        return []
    return [SummaryRow("first pass", f"{counts.best_found} of {counts.best}", "best hits of the exact search found")]


def _other_corpus(data: ReportData) -> list[SummaryRow]:
    """The source of queries from another corpus, and their normalisation."""
    source = data.queries_from
    if source is None:
        return []
    how = {
        "theirs": f"normalised by {source.taken_from} documents of it",
        "ours": "normalised by the searched documents",
        "none": "not normalised",
    }[source.statistics]
    return [SummaryRow("queries from", source.documents, f"another corpus; {how}")]


def _speech(part: float | None) -> str:
    return "" if part is None else f", {100 * part:.0f} % speech"


def _trimmed(data: ReportData) -> str:
    """The amount of trimming of queries."""
    if not data.counts.trimmed:
        return ""
    seconds = sum(query.cut or 0.0 for query in data.queries)
    return f"; {data.counts.trimmed} trimmed to their speech, by {short(seconds)} s"


def interval(data: ReportData) -> str:
    """The interval of MTWV, as the beginning of a note; empty if undefined."""
    return "" if data.mtwv_interval is None else "{:.4f} to {:.4f} (95 %); ".format(*data.mtwv_interval)


def _measure_rows(data: ReportData) -> list[SummaryRow]:
    results = data.measures
    assert results is not None
    why = undefined_reasons(results.further)

    def rates(pmiss: float | None, pfa: float | None) -> str:
        return f"Pmiss {fixed(pmiss)}, Pfa {fixed(pfa, 6)}"

    best = rejects_all(results.mtwv_pmiss, results.mtwv_pfa) or short(results.mtwv_threshold)
    limit = f"threshold {best}, {rates(results.mtwv_pmiss, results.mtwv_pfa)}"
    actual = f"{thresholds(results.atwv_thresholds)}, {rates(results.atwv_pmiss, results.atwv_pfa)}"
    how = calibration_text(results)
    oracle = results.calibration == "oracle"
    return [
        SummaryRow(
            "MTWV", fixed(results.mtwv), f"{interval(data)}{limit}" if results.mtwv is not None else "no curve", "main"
        ),
        SummaryRow(
            "ATWV (oracle)" if oracle else "ATWV",
            fixed(results.atwv),
            f"{actual}; {how}" if results.atwv is not None else f"no decisions; {how}",
            "warning" if oracle else "main",
        ),
        *(
            SummaryRow(
                item.name,
                fixed(value, item.decimals),
                f"not defined where {why[item.name]}" if item.name in why else "",
            )
            for item, value, *_ in results.rows()
        ),
        *([SummaryRow("trials", "too few", text, "warning")] if (text := too_few_trials(data)) else []),
    ]


def _workers(data: ReportData) -> str:
    start, stop = data.resources.executor_start_s, data.resources.executor_stop_s
    return "" if start is None else f"of which start of the workers {span(start)}, shutdown {span(stop)}"


def _references(count: int | None) -> str:
    return "no references" if count is None else f"{count} true occurrences"


def summary_lines(data: ReportData) -> list[str]:
    """The table as aligned lines of plain text, for logs and pipes."""
    rows = summary_rows(data)
    names = max(len(row.name) for row in rows)
    # A path is long and has no note: it must not widen the column.
    values = max(len(row.value) for row in rows if row.note)
    return [f"{row.name:<{names}}  {row.value:<{values}}  {row.note}".rstrip() for row in rows]


def print_summary(data: ReportData, console: Console) -> None:
    """Print all figures: ruled and coloured on a terminal, `summary_lines` elsewhere."""
    if not console.is_terminal:
        for line in summary_lines(data):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(title=Text(f"{data.name}: {data.system}"), title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right")
    table.add_column(style="dim")
    *rows, report = summary_rows(data)
    for row in rows:
        # Text, not str: an id may look like rich's markup.
        table.add_row(row.name, Text(row.value, style=STYLES[row.tone]), Text(row.note))
    console.print(table)
    # Below the table, unwrapped, so it can be clicked or copied.
    console.print(Text(f"{report.name}: {report.value}"), soft_wrap=True)


#: Issues shown in full; the number of others has one line.
MOST_ISSUES = 3


class Rejection(NamedTuple):
    """Inputs of one kind that were rejected for the same reason: their number, the first with its message, and a remedy."""

    kind: str
    reason: str
    number: int
    first: str
    remedy: str | None


class Issue(NamedTuple):
    """An issue that may affect the figures (failed, rejected or warning), with its remedy."""

    kind: str
    text: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """The issue in one line."""
        return " ".join(f"{self.kind}: {'; '.join(filter(None, (self.text, self.remedy)))}".split())


def rejections(rows: Iterable[RejectedRow]) -> list[Rejection]:
    """Rejected inputs by kind and reason, without failed tasks."""
    groups: dict[tuple[str, str], list[RejectedRow]] = {}
    for row in rows:
        if row.kind != "task":
            groups.setdefault((row.kind, row.reason), []).append(row)
    return [
        Rejection(*key, len(some), f"{some[0].path or some[0].id}: {some[0].message}", some[0].remedy)
        for key, some in sorted(groups.items())
    ]


def input_issues(rejected: Iterable[Rejection], warnings: Iterable[str]) -> list[Issue]:
    """Issues of rejected inputs, then of warnings."""
    left_out = [
        Issue("rejected", f"{item.number} {item.kind}(s), {item.reason}; the first: {item.first}", item.remedy or "")
        for item in rejected
    ]
    return [*left_out, *(Issue("warning", warning) for warning in warnings)]


def issues(data: ReportData) -> list[Issue]:
    """All issues of a run, the worst first."""
    results = []
    if failed := sum(stage.failed for stage in data.stages):
        first = next((f"; the first: {row.id}: {row.message}" for row in data.rejected if row.kind == "task"), "")
        results.append(Issue("failed", f"{failed} tasks, not included in the figures{first}"))
    if text := too_few_trials(data):
        results.append(Issue("warning", text))
    return [*results, *input_issues(rejections(data.rejected), data.warnings)]


def _search_speed(cost: Resources) -> tuple[str, str]:
    """SSF; of written queries, which have no duration, the cost of a query."""
    if cost.ssf is not None or cost.query_cost is None:
        return "SSF", short(cost.ssf)
    return "query cost", f"{short(cost.query_cost)} CPU s per hour of audio"


def key_figures(data: ReportData) -> tuple[SummaryRow, ...]:
    """Six figures: quality, costs and sizes; without scoring, sizes and costs."""
    cost, counts = data.resources, data.counts
    if (results := data.measures) is None:
        return (
            SummaryRow("audio", f"{short(data.hours)} h"),
            SummaryRow("documents", str(counts.documents)),
            SummaryRow("queries", str(counts.queries), f"{counts.examples} examples, {short(cost.query_seconds)} s"),
            SummaryRow("detections", str(counts.detections)),
            SummaryRow("indexing", span(cost.index_cpu_s), f"of CPU, ISF {short(cost.isf)}"),
            SummaryRow("searching", span(cost.search_cpu_s), f"of CPU, {' '.join(_search_speed(cost))}"),
        )
    values = results.values()
    why = undefined_reasons(values)

    def figure(name: str, note: str, tone: Tone = "plain") -> SummaryRow:
        quantity = quantity_of(name)
        text = f"not defined where {why[quantity.name]}" if quantity.name in why else note
        return SummaryRow(quantity.name, fixed(values.get(name), quantity.decimals), text, tone)

    at_most = f"{interval(data)}Pmiss {fixed(results.mtwv_pmiss)}, Pfa {fixed(results.mtwv_pfa, 6)}"
    decided = f"Pmiss {fixed(results.atwv_pmiss)}, Pfa {fixed(results.atwv_pfa, 6)}; {calibration_text(results)}"
    actual = figure("atwv", decided, "main")
    if results.calibration == "oracle":
        actual = actual._replace(name="ATWV (oracle)", tone="warning")
    return (
        figure("mtwv", at_most, "main"),
        actual,
        figure("stwv", "recall of the whole list"),
        figure("cnxe_min", f"{quantity_of('cnxe').name} {fixed(values.get('cnxe'))}"),
        SummaryRow(*_search_speed(cost), f"ISF {short(cost.isf)}, {wall_name(data)} {span(cost.wall_s)}"),
        SummaryRow(
            *("audio", f"{short(data.hours)} h"),
            f"{counts.queries} queries, {counts.documents} documents, {counts.detections} detections",
        ),
    )


def print_headline(data: ReportData, console: Console) -> None:
    """Print the protocol, or the reason for no scoring, and the figures, one per line."""
    first = next(row for row in summary_rows(data) if row.name in ("protocol", "measures"))
    rows = (first, *key_figures(data))
    names, values = (max(len(row[k]) for row in rows) for k in (0, 1))
    for row in rows:
        line = Text().append(f"{row.name:<{names}}  ", "bold")
        line.append(f"{row.value:<{values}}  ", STYLES[row.tone]).append(row.note, "dim").rstrip()
        console.print(line, soft_wrap=True)


def print_location(data: ReportData, console: Console) -> None:
    """Print the result digest and the path of the page, last in the line, so that it can be clicked or copied."""
    console.print(Text(f"result digest {data.digest[:16]}, report {data.page_path}"), soft_wrap=True)


def truncated(lines: Sequence[str], most: int, more: str) -> list[str]:
    """The first lines, and one line with the number and place of the others."""
    left = len(lines) - most
    return list(lines) if left <= 0 else [*lines[:most], f"... and {left} more: {more}"]
