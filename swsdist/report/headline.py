"""What a reader of a run wants first: six figures, and what is odd. The page opens with it, a command ends with it.

All else that a run's report shows is in `summary` and `page`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from swsdist.report.data import RejectedRow, ReportData, quantity_of
from swsdist.report.summary import (
    STYLES,
    SummaryRow,
    Tone,
    calibration_text,
    crowded,
    fixed,
    interval,
    reasons,
    short,
    span,
    summary_rows,
)

#: Things that are odd of which each has a line; how many more there are has another.
MOST_ISSUES = 3


class Rejection(NamedTuple):
    """Inputs of a kind that could not be used for the same reason: how many, the first with what was wrong with it, and
    what helps."""

    kind: str
    reason: str
    number: int
    first: str
    remedy: str | None


class Issue(NamedTuple):
    """Something that a reader should know before they trust a figure: failed, rejected or warning; and what helps."""

    kind: str
    text: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """All of it in one line."""
        return " ".join(f"{self.kind}: {'; '.join(filter(None, (self.text, self.remedy)))}".split())


def rejections(rows: Iterable[RejectedRow]) -> list[Rejection]:
    """Rejected inputs by kind and reason. Tasks that failed are none."""
    groups: dict[tuple[str, str], list[RejectedRow]] = {}
    for row in rows:
        if row.kind != "task":
            groups.setdefault((row.kind, row.reason), []).append(row)
    return [
        Rejection(*key, len(some), f"{some[0].path or some[0].id}: {some[0].message}", some[0].remedy)
        for key, some in sorted(groups.items())
    ]


def input_issues(rejected: Iterable[Rejection], warnings: Iterable[str]) -> list[Issue]:
    """What was left out, then what to doubt."""
    left_out = [
        Issue("rejected", f"{item.number} {item.kind}(s), {item.reason}; the first: {item.first}", item.remedy or "")
        for item in rejected
    ]
    return [*left_out, *(Issue("warning", warning) for warning in warnings)]


def issues(data: ReportData) -> list[Issue]:
    """All that is odd about a run, the worst first."""
    results = []
    if failed := sum(stage.failed for stage in data.stages):
        first = next((f"; the first: {row.id}: {row.message}" for row in data.rejected if row.kind == "task"), "")
        results.append(Issue("failed", f"{failed} tasks, not included in the figures{first}"))
    if data.measures is not None and reasons(data.measures.further) and (text := crowded(data)):
        results.append(Issue("warning", text))
    return [*results, *input_issues(rejections(data.rejected), data.warnings)]


def key_figures(data: ReportData) -> tuple[SummaryRow, ...]:
    """Six figures: how good the run is, what it cost and of how much; where nothing was scored, how much and the cost."""
    cost, counts = data.resources, data.counts
    if (results := data.measures) is None:
        return (
            SummaryRow("audio", f"{short(data.hours)} h"),
            SummaryRow("documents", str(counts.documents)),
            SummaryRow("queries", str(counts.queries), f"{counts.examples} examples, {short(cost.query_seconds)} s"),
            SummaryRow("detections", str(counts.detections)),
            SummaryRow("indexing", span(cost.index_cpu_s), f"of CPU, ISF {short(cost.isf)}"),
            SummaryRow("searching", span(cost.search_cpu_s), f"of CPU, SSF {short(cost.ssf)}"),
        )
    values = results.values()
    why = reasons(values)

    def figure(name: str, note: str, tone: Tone = "plain") -> SummaryRow:
        item = quantity_of(name)
        text = f"not defined where {why[item.name]}" if item.name in why else note
        return SummaryRow(item.name, fixed(values.get(name), item.decimals), text, tone)

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
        SummaryRow("SSF", short(cost.ssf), f"ISF {short(cost.isf)}, wall time {span(cost.wall_s)}"),
        SummaryRow(
            *("audio", f"{short(data.hours)} h"),
            f"{counts.queries} queries, {counts.documents} documents, {counts.detections} detections",
        ),
    )


def print_headline(data: ReportData, console: Console) -> None:
    """Print the rules, or why nothing was scored, and the figures: a line each."""
    first = next(row for row in summary_rows(data) if row.name in ("protocol", "measures"))
    rows = (first, *key_figures(data))
    names, values = (max(len(row[k]) for row in rows) for k in (0, 1))
    for row in rows:
        line = Text().append(f"{row.name:<{names}}  ", "bold")
        line.append(f"{row.value:<{values}}  ", STYLES[row.tone]).append(row.note, "dim").rstrip()
        console.print(line, soft_wrap=True)


def print_location(data: ReportData, console: Console) -> None:
    """Print the run's digest, and where its page lies: at the end of a line, so that it can be clicked or copied."""
    console.print(Text(f"result digest {data.digest[:16]}, report {data.page_path}"), soft_wrap=True)


def truncated(lines: Sequence[str], most: int, more: str) -> list[str]:
    """The first lines, and one that says how many more there are, and where."""
    left = len(lines) - most
    return list(lines) if left <= 0 else [*lines[:most], f"... and {left} more: {more}"]
