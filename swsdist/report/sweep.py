"""A sweep for people: curves, maps, the best points, and a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from swsdist.core.arrays import Floats
from swsdist.report.plots.curves import Axes, Series, dots_svg, lines_svg, spans_decades
from swsdist.report.plots.maps import heat_svg, scatter_svg
from swsdist.report.summary import NOTHING, fixed, rendered, short, undefined_note, undefined_reasons
from swsdist.report.tables import Table, padded

#: Most distinguishable lines of a plot.
_MOST_LINES = 8
#: Cells of a map, and rows of the page's table.
_MOST_CELLS, _MOST_ROWS = 2000, 400
#: Most points of a scatter plot; and least part of a map's cells with points.
_MOST_DOTS, _LEAST_FILLED = 3000, 0.75
#: Most maps of the same two keys, one per scoring setup.
_MOST_MAPS = 4
#: Most best points, and most rankings, to show.
_MOST_BEST, _MOST_RANKINGS = 10, 40


#: A row of the table.
Row = dict[str, object]


@dataclass(frozen=True)
class Ranking:
    """The ranking of points of one scoring setup.

    Attributes:
        scored_by: differences of the setup from others, in one line; empty for a single ranking.
        best: numbers of the points, best first, without failed points, and without oracles unless all are.
        tested: whether there are intervals and tests, which need an objective that is a mean over queries.
    """

    scored_by: str
    best: tuple[int, ...]
    tested: bool


@dataclass(frozen=True, eq=False)
class SweepData:
    """The data of a sweep's page.

    Attributes:
        name: of the sweep.
        table: one row per point, with the columns of docs/reference/tables.md.
        keys, measures: names of the columns of keys and of measures.
        objective: name of the measure that ranks.
        lowest: whether less is better.
        rankings: one per scoring setup.
        level: of the intervals.
        about: names and values, shown at the top.
        notices: for readers.
        more: captions and SVG of further figures.
        tables: further tables.
        links: names of files beside the page, with descriptions.
    """

    name: str
    table: pa.Table
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    objective: str
    lowest: bool
    rankings: tuple[Ranking, ...]
    level: float
    about: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()
    more: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    links: tuple[tuple[str, str], ...] = ()

    @property
    def tested(self) -> bool:
        """Whether any points have intervals and tests."""
        return any(ranking.tested for ranking in self.rankings)

    @property
    def winner(self) -> int | None:
        """The best point; None with several scoring setups."""
        (first, *others) = self.rankings
        return first.best[0] if first.best and not others else None


def plots(data: SweepData) -> dict[str, tuple[str, str]]:
    """Name -> caption and SVG: a curve for each key with numbers, a map for each two keys that vary; of draws, a scatter.

    A curve has a line for each combination of the other keys, where these are few; else every point is a dot. A cell of a map
    is the best of the points that share its two values; with several scoring setups, there is a map for each of
    the first few. Oracle KST is in neither.
    """
    rows = [row for row in data.table.to_pylist() if row[data.objective] is not None and not _is_reference(row)]
    varied = [key for key in data.keys if len({_cell_text(row[key]) for row in rows}) > 1]
    results: dict[str, tuple[str, str]] = {}
    for key in varied:
        if _is_number(data.table, key):
            results[f"curve-{key}"] = _curve(data, rows, key, [other for other in varied if other != key])
    for item, other in combinations(varied, 2):
        several = _rows_by_setup(data, rows, item, other)
        for number, (text, some) in enumerate(several.items(), 1):
            kind, drawn = "map", _map(data, some, item, other)
            if drawn is None:
                kind, drawn = "scatter", _scatter(data, some, item, other)
            if drawn is not None:
                name = f"{kind}-{item}-{other}" + (f"-{number}" if len(several) > 1 else "")
                results[name] = (drawn[0].removesuffix(".") + (f"; scored by {text}." if text else "."), drawn[1])
    return results


def _rows_by_setup(data: SweepData, rows: list[Row], down: str, across: str) -> dict[str, list[Row]]:
    """The points of a map; of several maps, one per scoring setup, if a cell would mix setups."""
    cells: dict[tuple[str, str], set[object]] = {}
    for row in rows:
        cells.setdefault((_cell_text(row[down]), _cell_text(row[across])), set()).add(row["scored_by"])
    if all(len(setups) == 1 for setups in cells.values()):
        return {"": rows}
    setups = list(dict.fromkeys(str(row["scored_by"]) for row in rows))
    return {text: [row for row in rows if row["scored_by"] == text] for text in setups[:_MOST_MAPS]}


def _is_reference(row: Row) -> bool:
    return "oracle-kst" in str(row.get("calibrate.steps"))


def _is_number(table: pa.Table, key: str) -> bool:
    kind = table[key].type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _cell_text(value: object) -> str:
    return NOTHING if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _curve(data: SweepData, rows: list[Row], key: str, others: list[str]) -> tuple[str, str]:
    groups: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for row in rows:
        x, y = row[key], row[data.objective]
        if isinstance(x, int | float) and isinstance(y, int | float):
            groups.setdefault(tuple(_cell_text(row[other]) for other in others), []).append((float(x), float(y)))
    every = [x for some in groups.values() for x, _ in some]
    axes, title = Axes(key, data.objective, x_log=spans_decades(every)), f"{data.objective} against {key}"
    best = next((row for row in rows if row["point"] == data.winner), None)
    if len(groups) > _MOST_LINES or all(len(points) < 2 for points in groups.values()):
        points = np.array([point for some in groups.values() for point in some])
        return f"{title}; a dot a point.", dots_svg(points[:, 0], points[:, 1], axes, title=title)
    series, marks = [], []
    for kind, (name, some) in enumerate(groups.items()):
        ordered = np.array(sorted(some))
        series.append(Series(", ".join(name), ordered[:, 0], ordered[:, 1], kind=kind))
        if best is not None and name == tuple(_cell_text(best[other]) for other in others):
            at = best[key], best[data.objective]
            if isinstance(at[0], int | float) and isinstance(at[1], int | float):
                marks.append((float(at[0]), float(at[1]), kind))
    lines = f", a line for each {' and '.join(others)}" if others else ""
    dot = "; the dot is the best point" if marks else ""
    return f"{title}{lines}{dot}.", lines_svg(series, axes, marks=marks, title=title)


def _map(data: SweepData, rows: list[Row], row_key: str, column_key: str) -> tuple[str, str] | None:
    down, across = (_ordered([row[key] for row in rows]) for key in (row_key, column_key))
    if len(down) > len(across):
        row_key, column_key, down, across = column_key, row_key, across, down
    filled = len({(_cell_text(row[row_key]), _cell_text(row[column_key])) for row in rows})
    numbers = _is_number(data.table, row_key) or _is_number(data.table, column_key)
    least = _LEAST_FILLED if numbers else 0.25
    if not 2 <= len(down) * len(across) <= _MOST_CELLS or filled < least * len(down) * len(across):
        return None  # draws, not a grid
    grid: Floats = np.full((len(down), len(across)), np.nan)
    place: dict[tuple[int, int], float] = {}
    frame = None
    for row in rows:
        at = down.index(_cell_text(row[row_key])), across.index(_cell_text(row[column_key]))
        value = row[data.objective]
        assert isinstance(value, int | float)
        values_known = place.get(at)
        if values_known is None or (value < values_known if data.lowest else value > values_known):
            place[at] = grid[at] = float(value)
        if row["point"] == data.winner:
            frame = at
    title = f"{data.objective} by {row_key} and {column_key}"
    drawn = heat_svg(
        grid,
        down,
        across,
        x_title=column_key,
        y_title=row_key,
        title=title,
        best=frame,
        less_is_better=data.lowest,
    )
    framed = "; framed: the best point" if frame is not None else ""
    return f"{title}: the best of the points of each cell, the better the darker{framed}.", drawn


def _scatter(data: SweepData, rows: list[Row], x: str, y: str) -> tuple[str, str] | None:
    if not _is_number(data.table, x):
        x, y = y, x
    used = [row for row in rows if row[x] is not None and row[y] is not None]
    across = [value for value in (row[x] for row in used) if isinstance(value, int | float)]
    up = [float(value) if isinstance(value, int | float) else _cell_text(value) for value in (row[y] for row in used)]
    texts = {value for value in up if isinstance(value, str)}
    if not _is_number(data.table, x) or not 2 <= len(used) <= _MOST_DOTS or len(texts) > _MOST_LINES:
        return None
    values = [float(str(row[data.objective])) for row in used]
    title = f"{data.objective} by {x} and {y}"
    best = next((k for k, row in enumerate(used) if row["point"] == data.winner), None)
    drawn = scatter_svg(
        across,
        [str(value) for value in up] if texts else [float(value) for value in up],
        values,
        x_title=x,
        y_title=y,
        value_title=data.objective,
        title=title,
        best=best,
        less_is_better=data.lowest,
    )
    spread = ", spread up and down in their rows" if texts else ""
    ring = "; ringed: the best point" if best is not None else ""
    return f"{title}: the points{spread}, the better the darker{ring}.", drawn


def _ordered(values: Sequence[object]) -> list[str]:
    values_known = list(dict.fromkeys(values))
    if all(isinstance(value, int | float) for value in values_known):
        values_known.sort(key=lambda value: float(value))  # type: ignore[arg-type]
    return list(dict.fromkeys(_cell_text(value) for value in values_known))


# -- tables -----------------------------------------------------------------------------------------------------------


def head(data: SweepData) -> list[str]:
    """Columns of the tables that people read."""
    ranked = ["scored by", "rank"] if len(data.rankings) > 1 else []
    interval = [f"{100 * data.level:g} % interval"] if data.tested else []
    tests = ["to the best" + (" of its setup" if ranked else ""), "p, Holm", "p, max T"] if data.tested else []
    others = [name for name in data.measures if name != data.objective][:6]
    return ["point", *data.keys, *ranked, data.objective, *interval, *others, *tests]


def cells(data: SweepData, row: Row) -> list[str]:
    """A point in these columns."""
    value = row[data.objective]
    results = [str(row["point"]), *(_cell_text(row[key]) for key in data.keys)]
    if len(data.rankings) > 1:
        results += [_cell_text(row["scored_by"]), _cell_text(row["rank"])]
    if not isinstance(value, float):
        return [*results, *["failed" if row["failed"] else NOTHING] * (len(head(data)) - len(results))]
    results.append(fixed(value) + (" oracle" if row["oracle"] else ""))
    numbers = {name: number for name, number in row.items() if isinstance(number, float)}
    if data.tested:
        results.append(
            f"{fixed(numbers.get(f'{data.objective}_low'))} to {fixed(numbers.get(f'{data.objective}_high'))}"
        )
    results += [short(numbers.get(name)) for name in data.measures if name != data.objective][:6]
    if data.tested:
        results += [
            fixed(numbers.get("difference")),
            short(numbers.get("p_holm"), 2),
            short(numbers.get("p_max_t"), 2),
        ]
    return results


def best_rows(data: SweepData) -> Iterator[list[str]]:
    """The best points, best first, ranking by ranking; rankings of a single point are omitted."""
    by_number = {row["point"]: row for row in data.table.to_pylist()}
    rankings = [ranking for ranking in data.rankings if len(ranking.best) > 1 or len(data.rankings) == 1]
    most = max(1, _MOST_BEST // max(1, len(rankings)))
    for ranking in rankings[:_MOST_RANKINGS]:
        for number in ranking.best[:most]:
            yield cells(data, by_number[number])


def _rankings_note(data: SweepData) -> str:
    """A note on the table of the best points for several rankings."""
    several = sum(len(ranking.best) > 1 for ranking in data.rankings)
    if len(data.rankings) == 1:
        return ""
    if several > _MOST_RANKINGS:
        return f"{several - _MOST_RANKINGS} more scoring setups are in points.csv (columns scored_by and rank)."
    return "" if several else "No two points have the same scoring setup, so there is no ranking."


def gaps_of(data: SweepData) -> str:
    """Why measures are undefined at some points; empty if all are defined."""
    text: dict[str, str] = {}
    for row in data.table.to_pylist():
        if not row["failed"]:
            text |= undefined_reasons({name: row.get(name) for name in data.measures})
    return undefined_note(text)


def text_lines(data: SweepData) -> list[str]:
    """The best points for a terminal."""
    rows = [head(data), *best_rows(data)]
    more = _rankings_note(data)
    points = data.table.num_rows
    if not more and len(rows) - 1 < points:
        more = f"{len(rows) - 1} best of {points} points; all are in points.csv."
    lines = padded(rows)
    return [
        *(f"{what}: {which}" for what, which in data.about),
        "",
        *(lines if len(rows) > 1 else []),
        *filter(None, [more, gaps_of(data)]),
    ]


def render_sweep(data: SweepData) -> str:
    """The page as HTML text, to be written as UTF-8: self-contained, without scripts."""
    rows = data.table.to_pylist()
    return rendered(
        "sweep",
        data=data,
        head=head(data),
        words=1 + len(data.keys) + (len(data.rankings) > 1),
        best=list(best_rows(data)),
        rankings_note=_rankings_note(data),
        rows=[cells(data, row) for row in rows[:_MOST_ROWS]],
        left_out=max(0, len(rows) - _MOST_ROWS),
        failed=[(row["point"], row["failed"]) for row in rows if row["failed"]],
        gaps=gaps_of(data),
        oracle=any(row["oracle"] for row in rows),
        figures=[*plots(data).values(), *data.more],
    )
