"""Points over two quantities as SVG text, each with the colour of a third: for draws at random, of which no two share a cell.

Pure functions, the same bytes for the same input; conventions as of `swsdist.report.plots.svg`. The colours are viridis, which
the eye takes as even steps, and which colour-blind people and grey prints tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsdist.report.plots.run import spans_decades, ticks_of
from swsdist.report.plots.svg import _GRID, _INK, _Frame, _round_ticks, _svg, _text, _x_axis, _y_axis, shortened

Floats = NDArray[np.float64]

#: Red, green and blue from the worst value to the best, in even steps.
_RAMP = np.array([(253, 231, 37), (94, 201, 98), (33, 145, 140), (59, 82, 139), (68, 1, 84)], np.float64)
_WIDTH, _PLOT, _ROW = 560, 340, 64  # pixels
_MOST_LETTERS = 30
#: Part of a row's height for spreading its points, so that they stay visible.
_SPREAD = 0.7


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
    results = np.asarray(values, dtype=np.float64)
    low, high = (float(results.min()), float(results.max())) if len(results) else (0.0, 1.0)
    quality = (results - low) / (high - low) if high > low else np.full(len(results), 0.5)
    quality = 1 - quality if less_is_better else quality
    rows = list(dict.fromkeys(str(item) for item in y)) if any(isinstance(item, str) for item in y) else []
    height = _ROW * len(rows) if rows else _PLOT - 66
    letters = min(max((len(row) for row in rows), default=0), _MOST_LETTERS)
    left = max(20 + 6.8 * letters, 16 + 7.4 * len(y_title)) if rows else 80
    xs, x_log = _placed(x)
    if rows:
        places = np.array([rows.index(str(item)) for item in y], np.float64)
        spread = (np.arange(len(places)) * 0.6180339887498949) % 1 - 0.5
        ys, y_log = len(rows) - 0.5 - places + _SPREAD * spread, False
        limits = 0.0, float(len(rows))
    else:
        ys, y_log = _placed([float(item) for item in y])
        limits = _limits(ys)
    frame = _Frame(left, 30, _WIDTH - 90, 30 + height, *_limits(xs), *limits)
    parts = [*_x_axis(frame, *ticks_of(frame.x0, frame.x1, x_log), x_title)]
    if rows:
        for k, row in enumerate(rows):
            middle = float(frame.y(len(rows) - 0.5 - k))
            border = float(frame.y(len(rows) - 1.0 - k))
            parts.append(f'<path class="grid" stroke="{_GRID}" d="M{frame.left:.1f} {border:.1f}H{frame.right}"/>')
            parts.append(_text(left - 8, middle + 4, shortened(row, _MOST_LETTERS), anchor="end"))
        parts.append(_text(left - 8, 18, y_title, anchor="end", size=13))
        parts.append(
            f'<path class="axis" fill="none" stroke="{_INK}" d="M{left:.1f} 30V{frame.bottom}H{frame.right}"/>'
        )
    else:
        parts += _y_axis(frame, *ticks_of(frame.y0, frame.y1, y_log), y_title)
    for k in np.argsort(quality, kind="stable").tolist():
        place = f'cx="{float(frame.x(xs[k])):.1f}" cy="{float(frame.y(ys[k])):.1f}"'
        style = f'class="rule" fill="{_colour(float(quality[k]))}" stroke="{_INK}" stroke-width="0.5"'
        parts.append(f'<circle {style} {place} r="4.5"/>')
    if best is not None:
        place = f'cx="{float(frame.x(xs[best])):.1f}" cy="{float(frame.y(ys[best])):.1f}"'
        parts.append(f'<circle class="rule" fill="none" stroke="{_INK}" stroke-width="2" {place} r="8"/>')
    parts += _bar(frame, low, high, value_title, less_is_better)
    return _svg(_WIDTH, int(frame.bottom) + 52, title, parts)


def _placed(values: Sequence[float]) -> tuple[Floats, bool]:
    """Values as they lie on their axis, and whether it is logarithmic."""
    results = np.asarray(values, dtype=np.float64)
    return (np.log10(results), True) if spans_decades(results) else (results, False)


def _limits(values: Floats) -> tuple[float, float]:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    margin = 0.03 * (high - low) or 0.1 * max(abs(low), 1e-3)
    return low - margin, high + margin


def _colour(quality: float) -> str:
    place = quality * (len(_RAMP) - 1)
    red, green, blue = (round(float(np.interp(place, range(len(_RAMP)), item))) for item in _RAMP.T)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _bar(frame: _Frame, low: float, high: float, title: str, less_is_better: bool) -> list[str]:
    """The colour scale, to the right of the axes."""
    steps, x = 32, frame.right + 20
    part = (frame.bottom - frame.top) / steps
    results = []
    for k in range(steps):  # from below
        quality = (k + 0.5) / steps
        fill = _colour(1 - quality if less_is_better else quality)
        y = frame.bottom - part * (k + 1)
        results.append(f'<rect fill="{fill}" stroke="none" x="{x}" y="{y:.2f}" width="14" height="{part + 0.3:.2f}"/>')
    free = frame.bottom + 99
    for value in _round_ticks(low, high, 5).tolist() if high > low else [low]:
        y = frame.bottom - (frame.bottom - frame.top) * ((value - low) / (high - low) if high > low else 0.5)
        if y <= free - 15:
            results.append(_text(x + 19, y + 4, f"{value:.4g}", anchor="start", size=11))
            free = y
    results.append(_text(x + 7, frame.top - 12, shortened(title, 14), size=13))
    return results
