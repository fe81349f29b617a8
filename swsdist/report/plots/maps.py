"""Plots of a value over two keys: a map of coloured cells for grids, and a scatter of coloured points for draws at random, of
which no two share a cell. Pure functions that return SVG text.

The colours of a scatter are viridis, which the eye takes as even steps, and which colour-blind people and grey prints tell
apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from swsdist.core.arrays import Floats
from swsdist.report.plots import svg
from swsdist.report.plots.curves import spans_decades
from swsdist.report.plots.svg import Frame, shortened

_CELL_HEIGHT, _LEAST_WIDTH, _CELL_LETTERS = 26, 34, 60  # pixels, pixels, letters of a label
#: Most columns whose cells have room for their values.
_MOST_TOLD = 14

#: Red, green and blue from the worst value to the best, in even steps.
_RAMP = np.array([(253, 231, 37), (94, 201, 98), (33, 145, 140), (59, 82, 139), (68, 1, 84)], np.float64)
_WIDTH, _PLOT, _ROW, _ROW_LETTERS = 560, 274, 64, 30  # pixels, and letters of a row's label
#: Part of a row's height for spreading its points, so that they stay visible.
_SPREAD = 0.7


def heat_svg(
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    title: str,
    best: tuple[int, int] | None = None,
    less_is_better: bool = False,
    width: int = 640,
) -> str:
    """A cell for each row and column, darker for better values, empty for unknown ones.

    Args:
        values: float (R, C), NaN where not known.
        rows, columns: their labels.
        x_title, y_title: of the columns and rows.
        title: text alternative.
        best: row and column of a cell to frame.
        less_is_better: the least value is the darkest.
        width: in pixels.
    """
    grid = np.asarray(values, dtype=np.float64)
    low, high, shades = _quality(grid, less_is_better)
    left, top = max(20 + svg.longest(rows, _CELL_LETTERS), 16 + 7.4 * len(y_title)), 30
    cell = max(_LEAST_WIDTH if len(columns) <= _MOST_TOLD else 8.0, (width - left - 14) / max(1, len(columns)))
    right, bottom = left + cell * len(columns), top + _CELL_HEIGHT * len(rows)
    largest = max(abs(low), abs(high))
    decimals = max(0, 3 - math.floor(math.log10(largest))) if largest > 0 else 4
    parts = []
    for (i, j), value in np.ndenumerate(grid):
        x, y = left + cell * j, top + _CELL_HEIGHT * i
        box: dict[str, float | str] = {"stroke": svg.GRID, "x": x, "y": y, "width": cell, "height": _CELL_HEIGHT}
        if not np.isfinite(value):
            parts.append(svg.tag("rect", "grid", fill="none", **box))
            continue
        shade = f"{0.06 + 0.6 * shades[i, j]:.3f}"
        parts.append(svg.tag("rect", "cell", fill=svg.LINES[0][0], fill_opacity=shade, **box))
        if len(columns) <= _MOST_TOLD:
            parts.append(svg.text(x + cell / 2, y + 17, f"{value:.{decimals}f}", size=11))
    if best is not None:
        x, y = left + cell * best[1] + 1, top + _CELL_HEIGHT * best[0] + 1
        box = {"stroke": svg.INK, "x": x, "y": y, "width": cell - 2, "height": _CELL_HEIGHT - 2}
        parts.append(svg.tag("rect", "rule", fill="none", stroke_width=2, **box))
    for i, name in enumerate(rows):
        label = shortened(name, _CELL_LETTERS)
        parts.append(svg.text(left - 8, top + _CELL_HEIGHT * i + 17, label, anchor="end"))
    labels = [shortened(name, _CELL_LETTERS) for name in columns]
    upright = svg.longest(labels) + 4 > cell  # labels wider than their cells are vertical
    free = -1.0
    for j, name in enumerate(labels):
        x = left + cell * (j + 0.5)
        if not upright:
            parts.append(svg.text(x, bottom + 17, name))
        elif x - 6 > free:
            parts.append(svg.moved(x, bottom + 8, svg.text(0, 4, name, anchor="end"), " rotate(-90)"))
            free = x + 6
    below = bottom + (svg.longest(labels) if upright else 12)
    parts.append(svg.text((left + right) / 2, below + 28, x_title, size=13))
    parts.append(svg.text(left - 8, top - 12, y_title, anchor="end", size=13))
    return svg.plot(int(right + 14), int(below + 40), title, parts)


def scatter_svg(
    x: Sequence[float],
    y: Sequence[float] | Sequence[str],
    values: ArrayLike,
    *,
    x_title: str,
    y_title: str,
    value_title: str,
    title: str,
    best: int | None = None,
    less_is_better: bool = False,
) -> str:
    """A dot a point, the better the darker, the best on top; axes of numbers over two decades or more are logarithmic.

    Args:
        x: of N points.
        y: of N points; of text, each has a row, in which points are spread up and down.
        values: float (N,), finite.
        x_title, y_title, value_title: of the axes and the colours.
        title: text alternative.
        best: index of a point to ring.
        less_is_better: the least value is the darkest.
    """
    low, high, quality = _quality(np.asarray(values, dtype=np.float64), less_is_better)
    rows = list(dict.fromkeys(map(str, y))) if any(isinstance(item, str) for item in y) else []
    xs, x_log = _placed(x)
    if rows:
        left, height, limits = (
            max(20 + svg.longest(rows, _ROW_LETTERS), 16 + 7.4 * len(y_title)),
            _ROW * len(rows),
            (0.0, float(len(rows))),
        )
        spread = (np.arange(len(y)) * 0.6180339887498949) % 1 - 0.5
        ys, y_log = len(rows) - 0.5 - np.array([rows.index(str(item)) for item in y]) + _SPREAD * spread, False
    else:
        ys, y_log = _placed([float(item) for item in y])
        left, height, limits = 80, _PLOT, svg.range_of(ys, margin=0.03)
    frame = Frame(left, 30, _WIDTH - 90, 30 + height, *svg.range_of(xs, margin=0.03), *limits)
    parts = [*frame.x_axis(x_title, svg.ticks_of(frame.x0, frame.x1, x_log))]
    if not rows:
        parts += frame.y_axis(y_title, svg.ticks_of(frame.y0, frame.y1, y_log))
    else:
        for k, row in enumerate(rows):
            border, middle = frame.y([len(rows) - 1.0 - k, len(rows) - 0.5 - k]).tolist()
            parts.append(svg.tag("path", "grid", stroke=svg.GRID, d=f"M{frame.left:.1f} {border:.1f}H{frame.right:g}"))
            parts.append(svg.text(left - 8, middle + 4, shortened(row, _ROW_LETTERS), anchor="end"))
        parts += [svg.text(left - 8, 18, y_title, anchor="end", size=13), frame.border("axis")]
    for k in np.argsort(quality, kind="stable").tolist():
        cx, cy = frame.at(xs[k], ys[k])
        parts.append(
            svg.tag(
                "circle", "rule", fill=_colour(quality[k]), stroke=svg.INK, stroke_width="0.5", cx=cx, cy=cy, r="4.5"
            )
        )
    if best is not None:
        cx, cy = frame.at(xs[best], ys[best])
        parts.append(svg.tag("circle", "rule", fill="none", stroke=svg.INK, stroke_width=2, cx=cx, cy=cy, r=8))
    parts += _scale(frame, low, high, value_title, less_is_better)
    return svg.plot(_WIDTH, int(frame.bottom) + 52, title, parts)


def _quality(values: Floats, less_is_better: bool) -> tuple[float, float, Floats]:
    """The least and greatest of the known values, and each from 0, the worst, to 1."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    quality = (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
    return low, high, 1 - quality if less_is_better else quality


def _placed(values: Sequence[float]) -> tuple[Floats, bool]:
    """Values as they lie on their axis, and whether it is logarithmic."""
    results = np.asarray(values, dtype=np.float64)
    return (np.log10(results), True) if spans_decades(results) else (results, False)


def _colour(quality: float) -> str:
    place = quality * (len(_RAMP) - 1)
    red, green, blue = (round(float(np.interp(place, range(len(_RAMP)), item))) for item in _RAMP.T)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _scale(frame: Frame, low: float, high: float, title: str, less_is_better: bool) -> list[str]:
    """The colour scale, to the right of the axes."""
    steps, x = 32, frame.right + 20
    place = Frame(x, frame.top, x + 14, frame.bottom, 0.0, 1.0, *((low, high) if high > low else (low - 1, low + 1)))
    part, results = (frame.bottom - frame.top) / steps, []
    for k in range(steps):  # from below
        quality = (k + 0.5) / steps
        fill = _colour(1 - quality if less_is_better else quality)
        box = {"y": f"{frame.bottom - part * (k + 1):.2f}", "height": f"{part + 0.3:.2f}"}
        results.append(svg.tag("rect", "step", fill=fill, stroke="none", x=x, width=14, **box))
    free = frame.bottom + 99
    for value in svg.ticks_of(low, high, about=5)[0].tolist() if high > low else [low]:
        y = float(place.y(value))
        if y <= free - 15:
            results.append(svg.text(x + 19, y + 4, f"{value:.4g}", anchor="start", size=11))
            free = y
    results.append(svg.text(x + 7, frame.top - 12, shortened(title, 14), size=13))
    return results
