"""A benchmark as a page with figures, and as text: scaling with intervals, ISF, SSF, query cost, PMU, PL, and forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median

from swsdist.bench.results import FIGURES, Estimate, Ratio, Results, Scaling, strong_scaling, weak_scaling
from swsdist.report.pictures import write_picture
from swsdist.report.plots.curves import Axes, Series, lines_svg
from swsdist.report.summary import NOTHING, rendered, short
from swsdist.report.tables import Table
from swsdist.report.tables import text_lines as table_lines

_NAMES = {
    "wall_s": "whole run, s",
    "efficiency": "efficiency",
    "index_search_wall_s": "index and search alone, s",
    "index_wall_s": "index, s",
    "search_wall_s": "search, s",
    "isf": "ISF",
    "ssf": "SSF, 1/s",
    "query_cost": "query cost, s/h",
    "pmu_index_gb": "PMU index, GB",
    "pmu_search_gb": "PMU search, GB",
    "pl": "PL",
}
#: Styles of lines, and that of the ideal line.
_KINDS, _IDEAL = (0, 1, 2, 3, 5, 6, 7), 4
_GROUPS = {
    "Whole run": FIGURES[:2],
    "Index and search alone": FIGURES[2:5],
    "Factors": FIGURES[5:8] + FIGURES[10:],
    "Peak memory": FIGURES[8:10],
}


def bench_tables(results: Results) -> list[Table]:
    """Figures of each point; strong and weak scaling; forecasts beside measurements."""
    whole, *rest = (_points(results, caption, figures) for caption, figures in _GROUPS.items())
    scaling, walls = [], results.values("wall_s")
    head = ["workers", "times", "speedup", "speedup per worker"]
    for name, some in (
        ("Strong scaling: the same data", strong_scaling(walls)),
        ("Weak scaling: data as workers", weak_scaling(walls)),
        ("Strong scaling of index and search alone", strong_scaling(results.values("index_search_wall_s"))),
    ):
        if some:
            lines = [
                [str(item.workers), str(item.times), _interval(item.speedup), _interval(item.per_worker)]
                for item in some
            ]
            scaling.append(Table(name, head, lines))
    tables = [whole, _steps(results), *scaling, *rest]
    checked = _forecasts(results)
    if checked:
        columns = ["workers", "times", "measured, s", "forecast, s", "forecast / measured"]
        tables.append(Table("Forecasts from the first point, beside measurements", columns, checked))
    return tables


def _points(results: Results, caption: str, figures: Sequence[str]) -> Table:
    by_figure = {figure: results.estimates(figure) for figure in figures}
    points = sorted({key for results in by_figure.values() for key in results}, key=lambda key: (key[1], key[0]))
    rows = [[str(w), str(x), *(_interval(by_figure[figure].get((w, x))) for figure in figures)] for w, x in points]
    return Table(caption, ["workers", "times", *(_NAMES[figure] for figure in figures)], rows)


def _steps(results: Results) -> Table:
    """Wall seconds of each step at each point: medians."""
    points = sorted(results.values("wall_s"), key=lambda key: (key[1], key[0]))
    several = [[one for one in results.measured if (one.point.workers, one.point.times) == key] for key in points]
    names = dict.fromkeys(name for one in results.measured for name in one.steps)
    rows = [[name, *(short(median(one.steps.get(name, 0.0) for one in some)) for some in several)] for name in names]
    head = ["step", *(f"{w} worker{'' if w == 1 else 's'}, {x} times" for w, x in points)]
    return Table("Whole run by step, s", head, rows, texts=(0,))


def _forecasts(results: Results) -> list[list[str]]:
    rows = []
    walls = results.values("wall_s")
    for (w, x), foreseen in sorted(results.forecasts().items(), key=lambda item: (item[0][1], item[0][0])):
        measured, predicted = median(walls[w, x]), median(foreseen)
        rows.append(
            [str(w), str(x), short(measured), short(predicted), short(predicted / measured, 3) if measured else NOTHING]
        )
    return rows


def _interval(value: Estimate | Ratio | None) -> str:
    if value is None:
        return NOTHING
    if value.low is None or value.high is None:
        return short(value.value)
    return f"{short(value.value)} [{short(value.low, 3)}, {short(value.high, 3)}]"


def bench_figures(results: Results) -> list[tuple[str, str, str]]:
    """Name, caption and SVG of each figure."""
    walls = results.values("wall_s")
    some = strong_scaling(walls)
    notes = []
    if some:
        text = ", with 95 % intervals" if any(item.speedup.low is not None for item in some) else ""
        notes.append(
            (
                "strong-scaling",
                f"Strong scaling: how many times faster a whole run on the same data is{text}; "
                "ideal: as many times as there are workers.",
                _curves(some, {item.workers: min(w for w, x in walls if x == item.times) for item in some}),
            )
        )
    others = weak_scaling(walls)
    if others:
        x = [min(walls)[0], *(other.workers for other in others)]
        lines = [Series("speedup per worker", x, [1.0, *(other.per_worker.value for other in others)])]
        axes = Axes("workers, and times the data", "speedup per worker", None, (0, 1.1))
        svg = lines_svg(lines, axes, title="Weak scaling")
        notes.append(("weak-scaling", "Weak scaling: as many times the data as workers.", svg))
    sizes = sorted({x for _, x in walls})
    if len(sizes) > 1:
        estimates = results.estimates("wall_s")
        lines = [
            Series(
                f"{w} worker{'' if w == 1 else 's'}",
                [x for v, x in estimates if v == w],
                [item.value for (v, _), item in estimates.items() if v == w],
                kind,
            )
            for kind, w in enumerate(sorted({w for w, _ in walls}))
        ]
        axes = Axes("times the data", "whole run, s", None, None)
        svg = lines_svg(lines, axes, title="Wall against data")
        notes.append(("wall", "Wall of the whole run against the data.", svg))
    return notes


def _curves(some: list[Scaling], least: Mapping[int, int]) -> str:
    series = []
    for times, k in zip(sorted({item.times for item in some}), cycle(_KINDS), strict=False):
        selected = [item for item in some if item.times == times]
        base = least[selected[0].workers]
        x = [base, *(item.workers for item in selected)]
        series.append(Series(f"{times} times the data", x, [1.0, *(item.speedup.value for item in selected)], k))
        for edge in ("low", "high"):
            limits = [(item.workers, limit) for item in selected if (limit := getattr(item.speedup, edge)) is not None]
            if limits:
                series.append(Series("", [base, *(w for w, _ in limits)], [1.0, *(y for _, y in limits)], k, thin=True))
    low, high = min(least.values()), max(item.workers for item in some)
    series.append(Series("ideal", [low, high], [1.0, high / low], _IDEAL))
    return lines_svg(series, Axes("workers", "speedup"), title="Strong scaling")


def text_lines(results: Results) -> list[str]:
    """The tables for a terminal."""
    lines = [line for table in bench_tables(results) for line in (*table_lines(table), "")]
    return [*lines, *(f"warning: {notice}" for notice in notices(results))]


def notices(results: Results) -> list[str]:
    """Notices for readers."""
    notes = []
    runs = [len(values) for values in results.values("wall_s").values()]
    if runs and max(runs) == 1:
        notes.append("each point was measured once, so there are no intervals, and noise is unknown")
    elif 1 in runs:
        notes.append(f"{runs.count(1)} of {len(runs)} points were measured once, and have no interval")
    if len(results.hardware) > 1:
        notes.append(f"points were measured on different hardware: {'; '.join(sorted(results.hardware))}")
    loads = [item.load for item in results.measured]
    cores = [sum(kind["cores"] * kind["nodes"] for kind in item.hardware) for item in results.measured]
    busy = sum(load > cores[k] / 2 for k, load in enumerate(loads))
    if busy:
        notes.append(f"other programs used half of the CPUs or more at the start of {busy} of {len(loads)} runs")
    return notes


def write_page(results: Results, folder: Path) -> None:
    """Write `bench.html`, self-contained and without scripts, and each figure as a file, beside `bench.json`."""
    figures = bench_figures(results)
    for name, _, svg in figures:
        write_picture(svg, str(folder / f"{name}.svg"))
    text = rendered(
        "bench",
        tables=bench_tables(results),
        figures=[(caption, svg) for _, caption, svg in figures],
        notices=notices(results),
        hardware=sorted(results.hardware),
        config=results.config,
        repeats=max((item.point.repeat + 1 for item in results.measured), default=0),
    )
    (folder / "bench.html").write_text(text, "utf-8")
