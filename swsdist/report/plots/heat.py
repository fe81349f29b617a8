"""Values over two keys as SVG text: a map of coloured cells.

Pure functions, the same bytes for the same input; conventions as of `swsdist.report.plots.svg`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from swsdist.report.plots.svg import _GRID, _INK, _LINES, _svg, _text, shortened

_CELL_HEIGHT, _LEAST_WIDTH = 26, 34  # pixels
_LETTER = 6.8  # pixels of a letter of a label
_MOST_LETTERS = 60
#: Most cells with room for their values.
_MOST_TOLD = 14


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
    finite = grid[np.isfinite(grid)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    letters = min(max((len(name) for name in rows), default=0), _MOST_LETTERS)
    left, top = max(20 + _LETTER * letters, 16 + 7.4 * len(y_title)), 30
    cell = max(_LEAST_WIDTH if len(columns) <= _MOST_TOLD else 8.0, (width - left - 14) / max(1, len(columns)))
    right, bottom = left + cell * len(columns), top + _CELL_HEIGHT * len(rows)
    parts = []
    colour = _LINES[0][0]
    largest = max(abs(low), abs(high))
    decimals = max(0, 3 - math.floor(math.log10(largest))) if largest > 0 else 4
    for i in range(len(rows)):
        for j in range(len(columns)):
            value = float(grid[i, j])
            x, y = left + cell * j, top + _CELL_HEIGHT * i
            box = f'x="{x:.1f}" y="{y}" width="{cell:.1f}" height="{_CELL_HEIGHT}"'
            if not np.isfinite(value):
                parts.append(f'<rect class="grid" fill="none" stroke="{_GRID}" {box}/>')
                continue
            part = (value - low) / (high - low) if high > low else 0.5
            shade = 0.06 + 0.6 * (1 - part if less_is_better else part)
            parts.append(f'<rect class="cell" fill="{colour}" fill-opacity="{shade:.3f}" stroke="{_GRID}" {box}/>')
            if len(columns) <= _MOST_TOLD:
                parts.append(_text(x + cell / 2, y + 17, f"{value:.{decimals}f}", size=11))
    if best is not None:
        x, y = left + cell * best[1], top + _CELL_HEIGHT * best[0]
        box = f'x="{x + 1:.1f}" y="{y + 1}" width="{cell - 2:.1f}" height="{_CELL_HEIGHT - 2}"'
        parts.append(f'<rect class="rule" fill="none" stroke="{_INK}" stroke-width="2" {box}/>')
    for i, name in enumerate(rows):
        parts.append(_text(left - 8, top + _CELL_HEIGHT * i + 17, shortened(name, _MOST_LETTERS), anchor="end"))
    text = [shortened(name, _MOST_LETTERS) for name in columns]
    widest = _LETTER * max((len(name) for name in text), default=0)
    upright = widest + 4 > cell  # labels wider than their cells are vertical
    free = -1.0
    for j, name in enumerate(text):
        x = left + cell * (j + 0.5)
        if not upright:
            parts.append(_text(x, bottom + 17, name))
        elif x - 6 > free:
            label = _text(0, 4, name, anchor="end")
            parts.append(f'<g transform="translate({x:.1f} {bottom + 8}) rotate(-90)">{label}</g>')
            free = x + 6
    below = bottom + (widest if upright else 12)
    parts.append(_text((left + right) / 2, below + 28, x_title, size=13))
    parts.append(_text(left - 8, top - 12, y_title, anchor="end", size=13))
    return _svg(int(right + 14), int(below + 40), title, parts)
