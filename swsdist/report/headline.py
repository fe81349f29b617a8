"""The headline of a run: six figures, and issues. The page begins with it, and commands end with it.

The rest of a run's report is in `summary` and `page`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from swsdist.report.data import RejectedRow, ReportData, Resources, quantity_of
from swsdist.report.summary import (
    STYLES,
    SummaryRow,
    Tone,
    calibration_text,
    fixed,
    interval,
    short,
    span,
    summary_rows,
    too_few_trials,
    undefined_reasons,
    wall_name,
)

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
