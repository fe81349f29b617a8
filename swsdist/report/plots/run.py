"""Plots of numbers against numbers as SVG text: lines, dots, bars, and plots side by side.

Pure functions, the same bytes for the same input; conventions as of `swsdist.report.plots.svg`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsdist.report.plots.svg import (
    _INK,
    _LINES,
    _dashes,
    _Frame,
    _path,
    _round_ticks,
    _svg,
    _text,
    _x_axis,
    _y_axis,
    shortened,
)

_WIDTH, _HEIGHT = 460, 340
_MOST_LETTERS = 46
_LEGEND_LINE = 20  # pixels


@dataclass(frozen=True)
class Series:
    """A line through points.

    Attributes:
        label: for the legend, which shows each once; empty: none.
        x, y: arrays of one length; a line is broken at NaN.
        kind: which colour and dashes.
        thin: drawn lightly, as one of many.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    kind: int = 0
    thin: bool = False


@dataclass(frozen=True)
class Axes:
    """Labels and ranges of the axes; by default the ranges of the data.

    With `x_log` the x axis is logarithmic: its values are above 0.
    """

    x_title: str
    y_title: str
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    x_log: bool = False

    def placed(self, x: ArrayLike) -> NDArray[np.float64]:
        """Values as they lie on the x axis."""
        results = np.asarray(x, dtype=np.float64)
        return np.log10(results) if self.x_log else results


def spans_decades(values: ArrayLike) -> bool:
    """Whether numbers need a logarithmic axis: all are above 0, and the greatest is at least 100 times the least."""
    results = np.asarray(values, dtype=np.float64)
    return bool(len(results) and results.min() > 0 and results.max() >= 100 * results.min())


def log_ticks(low: float, high: float) -> tuple[NDArray[np.float64], list[str]]:
    """Ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, of more than six decades the powers alone.

    Args:
        low, high: decimal logarithms of the ends.

    Returns:
        Decimal logarithms of the ticks, ascending, and their labels.
    """
    powers = range(math.floor(low), math.ceil(high) + 1)
    values = [m * 10.0**power for power in powers for m in ((1, 2, 5) if high - low <= 6 else (1,))]
    inside = [value for value in values if low - 1e-9 <= math.log10(value) <= high + 1e-9]
    return np.log10(np.array(inside, np.float64)), [f"{value:g}" for value in inside]


def ticks_of(low: float, high: float, log: bool) -> tuple[NDArray[np.float64], list[str]]:
    """Ticks of an axis from `low` to `high`, and their labels."""
    if log:
        return log_ticks(low, high)
    ticks = _round_ticks(low, high)
    return ticks, [f"{tick:.6g}" for tick in ticks]


def lines_svg(
    series: Sequence[Series], axes: Axes, *, marks: Iterable[tuple[float, float, int]] = (), title: str
) -> str:
    """Lines with optional marks; the legend is below the axes.

    Args:
        series: the lines, the last on top.
        axes: see `Axes`.
        marks: x, y and kind of points to mark.
        title: text alternative.
    """
    series = [replace(line, x=axes.placed(line.x)) for line in series]
    frame = _framed(
        np.concatenate([np.zeros(0), *(np.asarray(line.x, np.float64) for line in series)]),
        np.concatenate([np.zeros(0), *(np.asarray(line.y, np.float64) for line in series)]),
        axes,
    )
    parts = [*_axes(frame, axes)]
    legend: dict[str, str] = {}
    for line in series:
        stroke = _stroke(line.kind, 0.9 if line.thin else 2.0, 0.45 if line.thin else 1.0)
        for x, y in _runs(line, frame):
            parts.append(f'<path {stroke} stroke-linejoin="round" d="{_path(frame.x(x), frame.y(y))}"/>')
        if line.label:
            legend.setdefault(line.label, f'<path {_stroke(line.kind, 2.0, 1.0)} d="M0 0H22"/>')
    for x0, y0, kind in marks:
        place = f'cx="{float(frame.x(axes.placed(x0))):.1f}" cy="{float(frame.y(y0)):.1f}" r="4"'
        colour = _LINES[kind % len(_LINES)][0]
        parts.append(f'<circle class="area line{kind % len(_LINES)}" {place} fill="{colour}" stroke="{colour}"/>')
    rows = [(symbol, shortened(label, _MOST_LETTERS)) for label, symbol in legend.items()]
    below, height = _legend_below(frame, rows)
    return _svg(_WIDTH, _HEIGHT + height, title, [*parts, *below])


def dots_svg(x: ArrayLike, y: ArrayLike, axes: Axes, *, diagonal: bool = False, title: str) -> str:
    """One dot per point within the range.

    Args:
        x, y: arrays of one length.
        axes: see `Axes`.
        diagonal: draw the line of equality; not on a logarithmic axis.
        title: text alternative.
    """
    xs, ys = axes.placed(x), np.asarray(y, dtype=np.float64)
    frame = _framed(xs, ys, axes)
    parts = [*_axes(frame, axes)]
    if diagonal:
        low, high = max(frame.x0, frame.y0), min(frame.x1, frame.y1)
        points = np.array([low, high])
        parts.append(
            f'<path class="rule" fill="none" stroke="{_INK}" stroke-width="1" stroke-dasharray="4 3" '
            f'd="{_path(frame.x(points), frame.y(points))}"/>'
        )
    inside = (xs >= frame.x0) & (xs <= frame.x1) & (ys >= frame.y0) & (ys <= frame.y1)
    colour = _LINES[0][0]
    for a, b in zip(frame.x(xs[inside]).tolist(), frame.y(ys[inside]).tolist(), strict=True):
        style = f'class="dot line0" fill="{colour}" fill-opacity="0.55"'
        parts.append(f'<circle {style} cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>')
    return _svg(_WIDTH, _HEIGHT, title, parts)


def bars_svg(edges: ArrayLike, heights: ArrayLike, axes: Axes, *, title: str) -> str:
    """Bars from 0, with different colours above and below.

    Args:
        edges: (n + 1,), ascending.
        heights: (n,).
        axes: see `Axes`.
        title: text alternative.
    """
    borders, values = np.asarray(edges, dtype=np.float64), np.asarray(heights, dtype=np.float64)
    frame = _framed(borders, np.append(values, 0.0), axes)
    parts = [*_axes(frame, axes)]
    zero = float(frame.y(0.0))
    left, right, top = frame.x(borders[:-1]), frame.x(borders[1:]), frame.y(values)
    for a, b, y, value in zip(left.tolist(), right.tolist(), top.tolist(), values.tolist(), strict=True):
        if value == 0:
            continue
        kind = int(value < 0)
        gap = min(1.0, (b - a) / 5)
        box = f'x="{a + gap / 2:.2f}" y="{min(y, zero):.1f}" width="{b - a - gap:.2f}" height="{abs(y - zero):.1f}"'
        parts.append(f'<rect class="area line{kind}" fill="{_LINES[kind][0]}" stroke="none" {box}/>')
    parts.append(f'<path class="rule" fill="none" stroke="{_INK}" d="M{frame.left} {zero:.1f}H{frame.right}"/>')
    return _svg(_WIDTH, _HEIGHT, title, parts)


def side_by_side(plots: Sequence[str], *, title: str) -> str:
    """Plots of one size side by side, as one."""
    sizes = [re.search(r'width="(\d+)" height="(\d+)"', plot) for plot in plots]
    widths = [int(size[1]) for size in sizes if size]
    heights = [int(size[2]) for size in sizes if size]
    parts = []
    for k, plot in enumerate(plots):
        parts.append(plot.replace("<svg ", f'<svg x="{sum(widths[:k])}" y="0" ', 1).rstrip("\n"))
    return _svg(sum(widths), max(heights), title, parts)


def _framed(x: NDArray[np.float64], y: NDArray[np.float64], axes: Axes) -> _Frame:
    x_range = axes.x_range and (float(axes.placed(axes.x_range[0])), float(axes.placed(axes.x_range[1])))
    return _Frame(80, 14, _WIDTH - 14, _HEIGHT - 52, *_range(x, x_range, 0.0), *_range(y, axes.y_range, 0.06))


def _range(values: NDArray[np.float64], limits: tuple[float, float] | None, margin: float) -> tuple[float, float]:
    """The range given, or that of the data with a margin; never empty."""
    finite = values[np.isfinite(values)]
    if limits is not None:
        low, high = limits
    elif len(finite):
        low, high = float(finite.min()), float(finite.max())
        low, high = low - margin * (high - low), high + margin * (high - low)
    else:
        low, high = 0.0, 1.0
    if high - low < 1e-12:
        middle = max(abs(low), 1e-3) * 0.1
        low, high = low - middle, high + middle
    return low, high


def _axes(frame: _Frame, axes: Axes) -> Iterable[str]:
    yield from _x_axis(frame, *ticks_of(frame.x0, frame.x1, axes.x_log), axes.x_title)
    yield from _y_axis(frame, *ticks_of(frame.y0, frame.y1, False), axes.y_title)


def _stroke(kind: int, width: float, opacity: float) -> str:
    colour, dashes = _LINES[kind % len(_LINES)]
    faint = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
    css = f'class="line line{kind % len(_LINES)}"'
    return f'{css} fill="none" stroke="{colour}" stroke-width="{width:g}"{faint}{_dashes(dashes)}'


def _runs(series: Series, frame: _Frame) -> Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The known parts of a line within the range."""
    x, y = np.asarray(series.x, dtype=np.float64), np.asarray(series.y, dtype=np.float64)
    inside = np.isfinite(x) & np.isfinite(y) & (y >= frame.y0) & (y <= frame.y1) & (x >= frame.x0) & (x <= frame.x1)
    for run in np.split(np.arange(len(x)), np.flatnonzero(np.diff(inside)) + 1):
        if len(run) and inside[run[0]]:
            yield x[run], y[run]


def _legend_below(frame: _Frame, rows: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """Symbols and labels below the axes, wrapped; and their height."""
    parts, line, x = [], 0, frame.left
    for symbol, label in rows:
        width = 44 + 6.8 * len(label)
        if x > frame.left and x + width > frame.right:
            line, x = line + 1, frame.left
        y = _HEIGHT + 8 + _LEGEND_LINE * line
        parts.append(f'<g transform="translate({x:.1f} {y:.1f})">{symbol}</g>')
        parts.append(_text(x + 30, y + 4, label, anchor="start"))
        x += width
    return parts, _LEGEND_LINE * (line + 1) + 4 if rows else 0
