"""What all plots are made of: elements of SVG, a frame with its axes, and legends. No plotting library
(docs/decisions/0033-libraries-measured.md).

Each plot is one `<svg>` element that is valid XML and stands alone as a file; the same input gives the same bytes. Colours are
plain attributes, so that any renderer draws them; every element has a class too, by which a page can restyle it (for a dark
screen, say).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import ArrayLike

from swsdist.core.arrays import Bools, Floats

#: Places of ticks on an axis, ascending, and their labels.
Ticks = tuple[Floats, Sequence[str]]

#: Colour and dashes of the first, second, ... line, distinguishable without colour.
LINES = (
    ("#1f5fa8", None),
    ("#b3541e", "7 3"),
    ("#2f7d4f", "2 3"),
    ("#7a4fa3", "9 3 2 3"),
    ("#4a4a4a", "15 4"),
    ("#b8860b", "4 6"),
    ("#b02a63", "9 3 2 3 2 3"),
    ("#0f8b8d", "1 5"),
)
INK, GRID, FAINT, PAPER = "#222222", "#dddddd", "#8a8a8a", "#ffffff"
#: Pixels of a letter of a label, about.
LETTER = 6.8

# Characters that XML 1.0 cannot hold, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def tag(name: str, css: str, **attributes: float | str | None) -> str:
    """An element with a class; `_` of attributes' names is a hyphen, floats are in tenths, None is left out."""
    given = ((key.replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    more = "".join(f' {key}="{value:.1f}"' if isinstance(value, float) else f' {key}="{value}"' for key, value in given)
    return f'<{name} class="{css}"{more}/>'


def line(kind: int, width: float | str = 2, **more: float | str | None) -> str:
    """A path with the colour and dashes of a kind."""
    colour, dashes = LINES[kind % len(LINES)]
    style = {"fill": "none", "stroke": colour, "stroke_width": width, "stroke_dasharray": dashes}
    return tag("path", f"line line{kind % len(LINES)}", **{**style, **more})


def area(name: str, kind: int, **more: float | str | None) -> str:
    """A filled element of a kind's colour."""
    return tag(name, f"area line{kind % len(LINES)}", **{"fill": LINES[kind % len(LINES)][0], **more})


def rule(d: str, **more: float | str | None) -> str:
    """A path in ink."""
    return tag("path", "rule", fill="none", stroke=INK, **more, d=d)


def moved(x: float, y: float, element: str, more: str = "") -> str:
    """An element whose origin lies at (x, y)."""
    return f'<g transform="translate({x:.1f} {y:.1f}){more}">{element}</g>'


def text(
    x: float, y: float, label: str, *, anchor: str = "middle", css: str = "text", fill: str = INK, size: int = 12
) -> str:
    """A label."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}"'
    return f'<text class="{css}" {place}>{escape(_legal(label))}</text>'


def plot(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A plot; `title` is its text alternative."""
    legal = _legal(title)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label={quoteattr(legal)} font-family="system-ui, Helvetica, Arial, sans-serif">'
    )
    return "\n".join([head, f"<title>{escape(legal)}</title>", *parts, "</svg>\n"])


def side_by_side(plots: Sequence[str], *, title: str) -> str:
    """Plots side by side, as one."""
    sizes = [re.search(r'width="(\d+)" height="(\d+)"', drawn) for drawn in plots]
    widths, heights = ([int(size[k]) for size in sizes if size] for k in (1, 2))
    parts = [
        drawn.replace("<svg ", f'<svg x="{sum(widths[:k])}" y="0" ', 1).rstrip("\n") for k, drawn in enumerate(plots)
    ]
    return plot(sum(widths), max(heights), title, parts)


def shortened(label: str, most: int) -> str:
    """A label of limited length; long ones lose their middle."""
    half = (most - 1) // 2
    return label if len(label) <= most else f"{label[:half]}…{label[-half:]}"


def longest(labels: Iterable[str], most: int = 1_000_000) -> float:
    """Pixels of the longest of some labels of limited length, about."""
    return LETTER * min(max(map(len, labels), default=0), most)


@dataclass(frozen=True)
class Frame:
    """The plot area in pixels and the data range that it shows."""

    left: float
    top: float
    right: float
    bottom: float
    x0: float
    x1: float
    y0: float = 0.0
    y1: float = 1.0

    def x(self, value: ArrayLike) -> Floats:
        """Pixels of values; those outside of the range lie on the border."""
        part = (np.asarray(value, dtype=np.float64) - self.x0) / (self.x1 - self.x0)
        return self.left + np.clip(part, 0, 1) * (self.right - self.left)

    def y(self, value: ArrayLike) -> Floats:
        """Pixels of values, upwards; those outside of the range lie on the border."""
        part = (np.asarray(value, dtype=np.float64) - self.y0) / (self.y1 - self.y0)
        return self.bottom - np.clip(part, 0, 1) * (self.bottom - self.top)

    def at(self, x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
        """The pixel of a point."""
        return float(self.x(x)), float(self.y(y))

    def path(self, x: ArrayLike, y: ArrayLike) -> str:
        """Path data through points, without those at the same pixel as the previous one."""
        points = np.round(np.column_stack([self.x(x), self.y(y)]), 1)
        keep = np.ones(len(points), dtype=bool)
        keep[1:] = (points[1:] != points[:-1]).any(axis=1)
        data = "L".join(f"{a:.10g} {b:.10g}" for a, b in points[keep].tolist())
        return f"M{data}" if data else ""

    def inside(self, x: Floats, y: Floats) -> Bools:
        """Which points are known and within the range."""
        return (x >= self.x0) & (x <= self.x1) & (y >= self.y0) & (y <= self.y1)

    def x_axis(self, title: str, ticks: Ticks | None = None) -> Iterable[str]:
        """Grid, labels and title; labels that overlap others are left out."""
        values, labels = ticks or ticks_of(self.x0, self.x1)
        places, taken = self.x(values).tolist(), list[tuple[float, float]]()
        # If labels do not fit, powers of ten have priority.
        for index in sorted(range(len(labels)), key=lambda i: labels[i].strip("0.") != "1"):
            x, half = places[index], 0.5 * LETTER * len(labels[index]) + 3
            yield tag("path", "grid", stroke=GRID, d=f"M{x:.1f} {self.top:g}V{self.bottom:g}")
            if all(x + half <= low or x - half >= high for low, high in taken):
                yield text(x, self.bottom + 17, labels[index])
                taken.append((x - half, x + half))
        yield text((self.left + self.right) / 2, self.bottom + 40, title, size=13)

    def y_axis(self, title: str, ticks: Ticks | None = None) -> Iterable[str]:
        """Grid, labels and title, like `x_axis`; and the line of both axes."""
        free = self.bottom + 99
        for value, label in zip(*(ticks or ticks_of(self.y0, self.y1)), strict=True):
            y = float(self.y(value))
            yield tag("path", "grid", stroke=GRID, d=f"M{self.left:g} {y:.1f}H{self.right:g}")
            if y <= free - 15:
                yield text(self.left - 7, y + 4, label, anchor="end")
                free = y
        yield moved(15, (self.top + self.bottom) / 2, text(0, 0, title, size=13), " rotate(-90)")
        yield self.border("axis")

    def border(self, css: str) -> str:
        """The line of both axes."""
        return tag(
            "path", css, fill="none", stroke=INK, d=f"M{self.left:g} {self.top:g}V{self.bottom:g}H{self.right:g}"
        )


def range_of(values: Floats, limits: tuple[float, float] | None = None, margin: float = 0.0) -> tuple[float, float]:
    """The range given, or that of the data with a margin; never empty."""
    finite = values[np.isfinite(values)]
    low, high = limits or ((float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0))
    if limits is None:
        low, high = low - margin * (high - low), high + margin * (high - low)
    if high - low < 1e-12:
        middle = max(abs(low), 1e-3) * 0.1
        low, high = low - middle, high + middle
    return low, high


def ticks_of(low: float, high: float, log: bool = False, about: int = 7) -> Ticks:
    """Ticks of an axis: about so many multiples of 1, 2 or 5 times a power of ten.

    Of a logarithmic axis, `low` and `high` are decimal logarithms, and ticks are 1, 2 and 5 times powers of ten, of more than
    six decades the powers alone.
    """
    if log:
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [m * 10.0**power for power in powers for m in ((1, 2, 5) if high - low <= 6 else (1,))]
        inside = [value for value in values if low - 1e-9 <= math.log10(value) <= high + 1e-9]
        return np.log10(np.array(inside, np.float64)), [f"{value:g}" for value in inside]
    raw = max(high - low, 1e-12) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * min((m for m in (1, 2, 5, 10) if m * power >= raw), default=10)
    # Adding 0.0 turns -0 into 0.
    steps = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1, dtype=np.float64)
    ticks = np.round(steps * step, 12) + 0.0
    return ticks, [f"{tick:.6g}" for tick in ticks]


def legend(x: float, y: float, rows: Sequence[tuple[str, str]]) -> Iterable[str]:
    """Rows of a symbol and a label, in a box whose upper right corner is (x, y)."""
    if not rows:
        return
    x0 = x - box_width(rows)
    size = f"{box_width(rows):.0f}", str(19 * len(rows) + 8)
    yield tag("rect", "paper", x=x0, y=y, width=size[0], height=size[1], rx=3, fill=PAPER, stroke=GRID)
    for number, (symbol, label) in enumerate(rows):
        row = y + 14 + 19 * number
        yield moved(x0 + 8, row, symbol)
        yield text(x0 + 38, row + 4, label, anchor="start")


def box_width(rows: Sequence[tuple[str, str]]) -> float:
    """Pixels of the box of a legend."""
    return 48 + longest(label for _, label in rows)


def legend_below(frame: Frame, y: float, rows: Iterable[tuple[str, str]]) -> tuple[list[str], int]:
    """Symbols and labels below `y`, wrapped; and their height."""
    parts, row, x = list[str](), 0, frame.left
    for symbol, label in rows:
        width = 44 + LETTER * len(label)
        if x > frame.left and x + width > frame.right:
            row, x = row + 1, frame.left
        parts += [moved(x, y + 20 * row, symbol), text(x + 30, y + 20 * row + 4, label, anchor="start")]
        x += width
    return parts, 20 * (row + 1) + 4 if parts else 0


def _legal(label: str) -> str:
    return _ILLEGAL.sub("\ufffd", label)
