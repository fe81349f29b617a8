"""Plots of comparisons as SVG text: a forest of intervals, and the differences of paired values one by one.

Pure functions, the same bytes for the same input; conventions as of `swsdist.report.plots.svg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from swsdist.report.plots.run import ticks_of
from swsdist.report.plots.svg import _GRID, _INK, _LINES, _Frame, _svg, _text, _x_axis, _y_axis, shortened

_ROW = 24  # pixels
_MOST_LETTERS = 34


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, a row of a forest. `kind` is 0 for a system, 1 for a difference."""

    label: str
    value: float
    low: float
    high: float
    kind: int = 0


def forest_svg(
    rows: Sequence[Estimate], *, title: str = "Values with intervals", axis: str = "value", width: int = 640
) -> str:
    """Values and their intervals, one per row, with a rule at 0.

    Args:
        rows: from top to bottom.
        title: text alternative.
        axis: label of the values.
        width: in pixels.
    """
    letters = min(max((len(row.label) for row in rows), default=0), _MOST_LETTERS)
    ends = [0.0, *(value for row in rows for value in (row.low, row.value, row.high))]
    low, high = min(ends), max(ends)
    margin = 0.05 * max(high - low, 1e-3)
    bottom = 12 + _ROW * max(len(rows), 1)
    frame = _Frame(20 + 6.8 * letters, 12, width - 16, bottom, low - margin, high + margin, 0.0, 1.0)
    parts = [*_x_axis(frame, *ticks_of(frame.x0, frame.x1, False), axis)]
    zero = float(frame.x(0.0))
    parts.append(f'<path class="rule" fill="none" stroke="{_INK}" d="M{zero:.1f} {frame.top}V{bottom}"/>')
    for index, row in enumerate(rows):
        y = frame.top + _ROW * (index + 0.5)
        colour, css = _LINES[row.kind][0], f"line{row.kind}"
        x0, x, x1 = (float(frame.x(value)) for value in (row.low, row.value, row.high))
        stroke = f'class="line {css}" fill="none" stroke="{colour}" stroke-width="2"'
        parts.append(f'<path {stroke} d="M{x0:.1f} {y:.1f}H{x1:.1f}M{x0:.1f} {y - 4:.1f}v8M{x1:.1f} {y - 4:.1f}v8"/>')
        parts.append(f'<circle class="area {css}" fill="{colour}" stroke="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        parts.append(_text(frame.left - 8, y + 4, shortened(row.label, _MOST_LETTERS), anchor="end"))
    return _svg(width, bottom + 52, title, parts)


def differences_svg(
    differences: ArrayLike,
    *,
    title: str = "Differences, from gain to loss",
    width: int = 640,
    height: int = 260,
    reach: tuple[float, float] | None = None,
) -> str:
    """Differences of paired values, a bar each, from the greatest gain to the greatest loss.

    More of them than pixels share bars, each as high as its farthest value.

    Args:
        differences: float (n,), first - second.
        title: text alternative.
        width, height: in pixels.
        reach: least and greatest value of the axis, for plots side by side; by default those of the differences.
    """
    values = np.sort(np.asarray(differences, dtype=np.float64))[::-1]
    ends = np.append(values, [] if reach is None else reach)
    low, high = float(ends.min(initial=0.0)), float(ends.max(initial=0.0))
    margin = 0.05 * max(high - low, 1e-3)
    frame = _Frame(66, 14, width - 14, height - 52, 0.0, float(max(len(values), 1)), low - margin, high + margin)
    parts = [
        *_x_axis(frame, *ticks_of(0, frame.x1, False), "from gain to loss"),
        *_y_axis(frame, *ticks_of(frame.y0, frame.y1, False), "difference"),
    ]
    bars = min(max(len(values), 1), int(frame.right - frame.left))
    zero = float(frame.y(0.0))
    for index, part in enumerate(np.array_split(values, bars) if len(values) else []):
        far = float(part[np.abs(part).argmax()])
        kind = int(far < 0)
        y, at = float(frame.y(far)), frame.left + (frame.right - frame.left) * index / bars
        size = f'x="{at:.1f}" y="{min(y, zero):.1f}" width="{(frame.right - frame.left) / bars:.2f}"'
        colour = _LINES[kind][0]
        parts.append(f'<rect class="area line{kind}" fill="{colour}" {size} height="{abs(zero - y):.1f}"/>')
    parts.append(f'<path class="axis" stroke="{_GRID}" d="M{frame.left} {zero:.1f}H{frame.right}"/>')
    return _svg(width, height, title, parts)
