"""A sweep for people: curves, maps, the best points, and all of it on one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import jinja2
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.report.plots.heat import heat_svg
from swsdist.report.plots.run import Axes, Series, dots_svg, lines_svg
from swsdist.report.summary import NOTHING, fixed, gaps, reasons, short

#: Lines of a plot that can be told apart.
_MOST_LINES = 8
#: Cells of a map, and rows of the page's table.
_MOST_CELLS, _MOST_ROWS = 2000, 400
#: Best points that are shown apart.
_MOST_BEST = 10


@dataclass(frozen=True, eq=False)
class SweepData:
    """What a sweep shows.

    Attributes:
        name: of the sweep.
        table: a row a point, columns as docs/reference/tables.md has them.
        keys, measures: names of the columns of keys and of measures.
        objective: name of the measure that ranks.
        lowest: less of it is better.
        best: numbers of the points, the best first.
        tested: whether there are intervals and tests.
        level: of the intervals.
        about: pairs of what and which, shown at the top.
        notices: what a reader should know.
        more: captions and SVG of further figures.
        links: names of files beside the page, with what they are.
    """

    name: str
    table: pa.Table
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    objective: str
    lowest: bool
    best: tuple[int, ...]
    tested: bool
    level: float
    about: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()
    more: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


def plots(data: SweepData) -> dict[str, tuple[str, str]]:
    """Name -> caption and SVG: a curve for each key with numbers, a map for each two keys that vary.

    A curve has a line for each combination of the other keys, where these are few; else every point is a dot. A cell of a map
    is the best of the points that share its two values. Oracle KST is in neither.
    """
    rows = [row for row in data.table.to_pylist() if row[data.objective] is not None and not _is_reference(row)]
    varied = [key for key in data.keys if len({_told(row[key]) for row in rows}) > 1]
    found: dict[str, tuple[str, str]] = {}
    for key in varied:
        if _is_number(data.table, key):
            found[f"curve-{key}"] = _curve(data, rows, key, [other for other in varied if other != key])
    for one, other in combinations(varied, 2):
        drawn = _map(data, rows, one, other)
        if drawn is not None:
            found[f"map-{one}-{other}"] = drawn
    return found


def _is_reference(row: dict[str, object]) -> bool:
    return "oracle-kst" in str(row.get("calibrate.steps"))


def _is_number(table: pa.Table, key: str) -> bool:
    kind = table[key].type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _told(value: object) -> str:
    return NOTHING if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _curve(data: SweepData, rows: list[dict[str, object]], key: str, others: list[str]) -> tuple[str, str]:
    groups: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for row in rows:
        x, y = row[key], row[data.objective]
        if isinstance(x, int | float) and isinstance(y, int | float):
            groups.setdefault(tuple(_told(row[other]) for other in others), []).append((float(x), float(y)))
    axes, title = Axes(key, data.objective), f"{data.objective} against {key}"
    best = next((row for row in rows if row["point"] == data.best[0]), None) if data.best else None
    if len(groups) > _MOST_LINES or all(len(points) < 2 for points in groups.values()):
        points = np.array([point for some in groups.values() for point in some])
        return f"{title}; a dot a point.", dots_svg(points[:, 0], points[:, 1], axes, title=title)
    series, marks = [], []
    for kind, (name, some) in enumerate(groups.items()):
        ordered = np.array(sorted(some))
        series.append(Series(", ".join(name), ordered[:, 0], ordered[:, 1], kind=kind))
        if best is not None and name == tuple(_told(best[other]) for other in others):
            at = best[key], best[data.objective]
            if isinstance(at[0], int | float) and isinstance(at[1], int | float):
                marks.append((float(at[0]), float(at[1]), kind))
    lines = f", a line for each {' and '.join(others)}" if others else ""
    return f"{title}{lines}; the dot is the best point.", lines_svg(series, axes, marks=marks, title=title)


def _map(data: SweepData, rows: list[dict[str, object]], one: str, other: str) -> tuple[str, str] | None:
    down, across = (_ordered([row[key] for row in rows]) for key in (one, other))
    if len(down) > len(across):
        one, other, down, across = other, one, across, down
    if not 2 <= len(down) * len(across) <= _MOST_CELLS or len(down) * len(across) > 4 * len(rows):
        return None  # draws, not a grid
    grid: NDArray[np.float64] = np.full((len(down), len(across)), np.nan)
    place: dict[tuple[int, int], float] = {}
    frame = None
    for row in rows:
        at = down.index(_told(row[one])), across.index(_told(row[other]))
        value = row[data.objective]
        assert isinstance(value, int | float)
        known = place.get(at)
        if known is None or (value < known if data.lowest else value > known):
            place[at] = grid[at] = float(value)
        if data.best and row["point"] == data.best[0]:
            frame = at
    title = f"{data.objective} by {one} and {other}"
    drawn = heat_svg(
        grid,
        down,
        across,
        x_title=other,
        y_title=one,
        title=title,
        best=frame,
        less_is_better=data.lowest,
    )
    return f"{title}: the best of the points of each cell, the better the darker; framed: the best point.", drawn


def _ordered(values: Sequence[object]) -> list[str]:
    known = list(dict.fromkeys(values))
    if all(isinstance(value, int | float) for value in known):
        known.sort(key=lambda value: float(value))  # type: ignore[arg-type]
    return list(dict.fromkeys(_told(value) for value in known))


# -- tables -----------------------------------------------------------------------------------------------------------


def head(data: SweepData) -> list[str]:
    """Columns of the tables that people read."""
    interval = [f"{100 * data.level:g} % interval"] if data.tested else []
    tests = ["to the best", "p, Holm", "p, max T"] if data.tested else []
    others = [name for name in data.measures if name != data.objective][:6]
    return ["point", *data.keys, data.objective, *interval, *others, *tests]


def cells(data: SweepData, row: dict[str, object]) -> list[str]:
    """A point in these columns."""
    value = row[data.objective]
    found = [str(row["point"]), *(_told(row[key]) for key in data.keys)]
    if not isinstance(value, float):
        return [*found, *["failed" if row["failed"] else NOTHING] * (len(head(data)) - len(found))]
    found.append(fixed(value) + (" oracle" if row["oracle"] else ""))
    numbers = {name: number for name, number in row.items() if isinstance(number, float)}
    if data.tested:
        found.append(f"{fixed(numbers.get(f'{data.objective}_low'))} to {fixed(numbers.get(f'{data.objective}_high'))}")
    found += [short(numbers.get(name)) for name in data.measures if name != data.objective][:6]
    if data.tested:
        found += [
            fixed(numbers.get("difference")),
            short(numbers.get("p_holm"), 2),
            short(numbers.get("p_max_t"), 2),
        ]
    return found


def best_rows(data: SweepData) -> Iterator[list[str]]:
    """The best points, best first."""
    by_number = {row["point"]: row for row in data.table.to_pylist()}
    for number in data.best[:_MOST_BEST]:
        yield cells(data, by_number[number])


def gaps_of(data: SweepData) -> str:
    """Why measures have no value at some points; nothing where they all have."""
    told: dict[str, str] = {}
    for row in data.table.to_pylist():
        if not row["failed"]:
            told |= reasons({name: row.get(name) for name in data.measures})
    return gaps(told)


def text_lines(data: SweepData) -> list[str]:
    """The best points for a terminal."""
    rows = [head(data), *best_rows(data)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    note = gaps_of(data)
    return [*(f"{what}: {which}" for what, which in data.about), "", *lines, *([note] if note else [])]


def render_sweep(data: SweepData) -> str:
    """The page as HTML text, to be written as UTF-8: it stands alone and runs no script."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = data.table.to_pylist()
    text = environment.get_template("sweep.html.j2").render(
        data=data,
        version=version("swsdist"),
        head=head(data),
        words=1 + len(data.keys),
        best=list(best_rows(data)),
        rows=[cells(data, row) for row in rows[:_MOST_ROWS]],
        left_out=max(0, len(rows) - _MOST_ROWS),
        failed=[(row["point"], row["failed"]) for row in rows if row["failed"]],
        gaps=gaps_of(data),
        oracle=any(row["oracle"] for row in rows),
        figures=[*plots(data).values(), *data.more],
    )
    # A path may hold bytes that are not UTF-8 (lone surrogates in Python); the page must still be writable.
    return text.encode("utf-8", "replace").decode("utf-8")
