"""Plots as SVG text: pure functions, the same bytes for the same input, no plotting library.

Each returns one `<svg>` element that is valid XML and stands alone as a file. Colours are plain attributes, so that any
renderer draws them; every element has a class too, by which a page can restyle it (for a dark screen, say).

Conventions: probabilities from 0 to 1 come in, percent is drawn. A DET curve has probit axes, Pfa to the right and
Pmiss upwards, with the ticks of NIST's DETware (Martin et al. 1997, "The DET curve in assessment of detection task
performance"). Points outside the axes (0 and 1 lie at infinity) are drawn on their border.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsdist.report.data import ScoreHistogram
from swsdist.score.measures.det import ppndf

#: Colour and dashes of the first, second, ... line, distinguishable without colour.
_LINES = (
    ("#1f5fa8", ""),
    ("#b3541e", "7 3"),
    ("#2f7d4f", "2 3"),
    ("#7a4fa3", "9 3 2 3"),
    ("#4a4a4a", "15 4"),
    ("#b8860b", "4 6"),
    ("#b02a63", "9 3 2 3 2 3"),
    ("#0f8b8d", "1 5"),
)
_INK, _GRID, _FAINT, _PAPER = "#222222", "#dddddd", "#8a8a8a", "#ffffff"

#: Ticks of a DET axis, percent.
_LOW = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
TICKS = np.array((*_LOW, 40, 60, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99))

# Characters that XML 1.0 cannot hold, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Mark:
    """A point on a DET plot."""

    label: str
    pfa: float
    pmiss: float


@dataclass(frozen=True)
class Line:
    """A DET curve with its marked points; `pfa` and `pmiss` are arrays of one length.

    `band` holds what to add to and take from (pfa, pmiss) for the edges of a confidence band, arrays of that length.
    """

    label: str
    pfa: ArrayLike
    pmiss: ArrayLike
    marks: tuple[Mark, ...] = ()
    band: tuple[ArrayLike, ArrayLike] | None = None


@dataclass(frozen=True)
class _Frame:
    """The plot area in pixels and the data range that it shows."""

    left: float
    top: float
    right: float
    bottom: float
    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: ArrayLike) -> NDArray[np.float64]:
        part = (np.asarray(value, dtype=np.float64) - self.x0) / (self.x1 - self.x0)
        return self.left + np.clip(part, 0, 1) * (self.right - self.left)

    def y(self, value: ArrayLike) -> NDArray[np.float64]:
        part = (np.asarray(value, dtype=np.float64) - self.y0) / (self.y1 - self.y0)
        return self.bottom - np.clip(part, 0, 1) * (self.bottom - self.top)


def det_svg(
    lines: Sequence[Line],
    *,
    beta: float | None = None,
    title: str = "DET curve",
    width: int = 640,
    height: int = 520,
    legend_width: int = 0,
) -> str:
    """DET curves of one or more systems on probit axes.

    Args:
        lines: the curves; points need not be sorted, they are joined in the order given.
        beta: where given, faint lines join the points of equal TWV = 1 - (Pmiss + beta Pfa).
        title: text alternative.
        width, height: in pixels.
        legend_width: pixels to the right of that for the legend, and each line's marks have a shape of their own; 0: it
            stands in the corner of the curves.
    """
    pfa, pmiss = (
        np.concatenate(
            [np.zeros(0)]
            + [np.asarray(getattr(line, name), dtype=np.float64) for line in lines]
            + [np.array([getattr(mark, name) for mark in line.marks], dtype=np.float64) for line in lines]
        )
        for name in ("pfa", "pmiss")
    )
    x_ticks, y_ticks = _det_ticks(pfa, 0.01, 1.0), _det_ticks(pmiss, 20.0, 90.0)
    frame = _Frame(
        66, 14, width - 14, height - 52, *(float(_probit(t / 100)) for t in (*x_ticks[[0, -1]], *y_ticks[[0, -1]]))
    )
    parts = [
        *_x_axis(frame, _probit(x_ticks / 100), [f"{t:.10g}" for t in x_ticks], "false alarm probability (%)"),
        *_y_axis(frame, _probit(y_ticks / 100), [f"{t:.10g}" for t in y_ticks], "miss probability (%)"),
    ]
    if beta is not None:
        parts += _iso_twv(frame, beta)
    legend: list[tuple[str, str]] = []
    for index, line in enumerate(lines):
        colour, dashes = _LINES[index % len(_LINES)]
        css = f"line line{index % len(_LINES)}"
        x, y = frame.x(_probit(line.pfa)), frame.y(_probit(line.pmiss))
        stroke = f'class="{css}" fill="none" stroke="{colour}" stroke-width="2"' + _dashes(dashes)
        parts.append(f'<path {stroke} stroke-linejoin="round" d="{_path(x, y)}"/>')
        legend.append((f'<path {stroke} d="M0 0H22"/>', line.label))
        for sign in (-1, 1) if line.band is not None else ():
            pfa, pmiss = (
                np.asarray(rate, dtype=np.float64) + sign * np.asarray(half, dtype=np.float64)
                for rate, half in zip((line.pfa, line.pmiss), line.band or (), strict=True)
            )
            thin = f'class="{css}" fill="none" stroke="{colour}" stroke-width="0.8" stroke-dasharray="2 2"'
            parts.append(f'<path {thin} d="{_path(frame.x(_probit(pfa)), frame.y(_probit(pmiss)))}"/>')
        for number, mark in enumerate(line.marks):
            x, y = frame.x(_probit(mark.pfa)), frame.y(_probit(mark.pmiss))
            # With one line, shapes distinguish marks; with several, they distinguish lines, and only the first mark is open.
            is_open = number == 0 or not legend_width
            css, fill = f"{'mark' if is_open else 'area'} line{index % len(_LINES)}", _PAPER if is_open else colour
            style = f'class="{css}" stroke="{colour}" stroke-width="2" fill="{fill}"'
            shape = _marker(index if legend_width else number, style)
            # Around the other mark, where both are in one place.
            larger = " scale(1.5)" if is_open and legend_width else ""
            parts.append(f'<g transform="translate({float(x):.1f} {float(y):.1f}){larger}">{shape}</g>')
            legend.append((f'<g transform="translate(11 0)">{shape}</g>', mark.label))
    if not legend_width:
        return _svg(width, height, title, [*parts, *_legend(frame.right - 8, frame.top + 8, legend)])
    shown = [(symbol, shortened(label, int((legend_width - 60) / 6.8))) for symbol, label in legend]
    below = max(height, int(frame.top) + 19 * len(shown) + 16)
    return _svg(width + legend_width, below, title, [*parts, *_legend(width + _legend_width(shown), frame.top, shown)])


def shortened(label: str, most: int) -> str:
    """A label of limited length; long ones lose their middle."""
    half = (most - 1) // 2
    return label if len(label) <= most else f"{label[:half]}…{label[-half:]}"


def histogram_svg(
    histogram: ScoreHistogram,
    marks: Iterable[tuple[str, float]] = (),
    *,
    title: str = "Scores of target and non-target detections",
    width: int = 640,
    height: int = 320,
) -> str:
    """Score histograms of both classes, each in percent of its own class, as their sizes differ by orders.

    Args:
        histogram: counts on common edges.
        marks: labels and scores of vertical lines, thresholds for example; those outside the edges are left out.
        title: text alternative.
        width, height: in pixels.
    """
    edges = np.asarray(histogram.edges, dtype=np.float64)
    classes = (
        ("target", _LINES[0][0], 0, np.asarray(histogram.target)),
        ("non-target", _LINES[1][0], 1, np.asarray(histogram.nontarget)),
    )
    shares = [100 * counts / max(int(counts.sum()), 1) for _, _, _, counts in classes]
    rules = [(label, score) for label, score in marks if edges[0] <= score <= edges[-1]]
    bottom, legend_height = height - 50, 19 * (len(classes) + len(rules)) + 24
    # Room above the highest bar for the legend.
    highest = max(float(max(share.max(initial=0) for share in shares)), 1e-9)
    top = highest * (bottom - 14) / max(bottom - 14 - legend_height, 1)
    frame = _Frame(56, 14, width - 14, bottom, float(edges[0]), float(edges[-1]), 0.0, top)
    x_ticks, y_ticks = _round_ticks(frame.x0, frame.x1), _round_ticks(0, top)
    parts = [
        *_x_axis(frame, x_ticks, [f"{t:.6g}" for t in x_ticks], "score"),
        *_y_axis(frame, y_ticks, [f"{t:.6g}" for t in y_ticks], "% of class"),
    ]
    legend: list[tuple[str, str]] = []
    for (label, colour, index, counts), share in zip(classes, shares, strict=True):
        x = frame.x(np.repeat(edges, 2))
        y = frame.y(np.concatenate([[0], np.repeat(share, 2), [0]]))
        style = (
            f'class="area line{index}" stroke="{colour}" fill="{colour}" fill-opacity="0.18" stroke-width="1.5"'
            f"{_dashes(_LINES[index][1])}"
        )
        parts.append(f'<path {style} d="{_path(x, y)}Z"/>')
        legend.append((f'<rect {style} x="0" y="-6" width="22" height="11"/>', f"{label} ({int(counts.sum())})"))
    for number, (label, score) in enumerate(rules):
        dashes = ("", "6 3", "2 2")[number % 3]
        style = f'class="rule" fill="none" stroke="{_INK}" stroke-width="1.2"{_dashes(dashes)}'
        parts.append(f'<path {style} d="M{float(frame.x(score)):.1f} {frame.top}V{frame.bottom}"/>')
        legend.append((f'<path {style} d="M11 -6V6"/>', label))
    return _svg(width, height, title, [*parts, *_legend(frame.right - 8, frame.top + 8, legend)])


def _probit(p: ArrayLike) -> NDArray[np.float64]:
    return ppndf(np.asarray(p, dtype=np.float64), least=1e-7)


def _det_ticks(p: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Ticks in percent that span the values strictly between 0 and 1, and at least `low` to `high`."""
    percent = 100 * p[(p > 0) & (p < 1)]
    first = np.searchsorted(TICKS, min(percent.min(initial=low), low) * (1 + 1e-9), side="right") - 1
    last = np.searchsorted(TICKS, max(percent.max(initial=high), high) * (1 - 1e-9))
    return TICKS[max(int(first), 0) : int(last) + 1]


def _round_ticks(low: float, high: float, about: int = 7) -> NDArray[np.float64]:
    """Multiples of 1, 2 or 5 times a power of ten within a range, about the given number."""
    raw = max(high - low, 1e-12) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * min((m for m in (1, 2, 5, 10) if m * power >= raw), default=10)
    # Adding 0.0 turns -0 into 0.
    steps = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1, dtype=np.float64)
    return np.round(steps * step, 12) + 0.0


def _path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Path data, without points at the same pixel as the previous one."""
    points = np.round(np.column_stack([x, y]), 1)
    keep = np.ones(len(points), dtype=bool)
    keep[1:] = (points[1:] != points[:-1]).any(axis=1)
    text = "L".join(f"{a:.10g} {b:.10g}" for a, b in points[keep].tolist())
    return f"M{text}" if text else ""


def _iso_twv(frame: _Frame, beta: float) -> Iterable[str]:
    from scipy.special import ndtr  # workers load this module with its chain, and draw nothing

    z = np.linspace(frame.x0, frame.x1, 241)
    pfa = np.asarray(ndtr(z), dtype=np.float64)
    for value in (0.0, 0.2, 0.4, 0.6, 0.8):
        pmiss = 1 - value - beta * pfa
        y = _probit(pmiss)
        inside = (pmiss > 0) & (y >= frame.y0) & (y <= frame.y1)
        if inside.sum() < 2:
            continue
        xs, ys = frame.x(z[inside]), frame.y(y[inside])
        style = f'class="iso" fill="none" stroke="{_FAINT}" stroke-width="0.8" stroke-dasharray="1 3"'
        yield f'<path {style} d="{_path(xs, ys)}"/>'
        below = 12 if ys[0] < frame.top + 16 else -4
        place = float(xs[0]) + 5, float(ys[0]) + below
        yield _text(*place, f"TWV {value:g}", anchor="start", css="iso", fill=_FAINT, size=10)


def _x_axis(frame: _Frame, values: NDArray[np.float64], labels: Sequence[str], title: str) -> Iterable[str]:
    places = frame.x(values).tolist()
    taken: list[tuple[float, float]] = []
    # If labels do not fit, powers of ten have priority.
    for index in sorted(range(len(labels)), key=lambda i: labels[i].strip("0.") != "1"):
        x, half = places[index], 3.4 * len(labels[index]) + 3
        yield f'<path class="grid" stroke="{_GRID}" d="M{x:.1f} {frame.top}V{frame.bottom}"/>'
        if all(x + half <= low or x - half >= high for low, high in taken):
            yield _text(x, frame.bottom + 17, labels[index])
            taken.append((x - half, x + half))
    yield _text((frame.left + frame.right) / 2, frame.bottom + 40, title, size=13)


def _y_axis(frame: _Frame, values: NDArray[np.float64], labels: Sequence[str], title: str) -> Iterable[str]:
    free = frame.bottom + 99
    for y, label in zip(frame.y(values).tolist(), labels, strict=True):
        yield f'<path class="grid" stroke="{_GRID}" d="M{frame.left} {y:.1f}H{frame.right}"/>'
        if y <= free - 15:
            yield _text(frame.left - 7, y + 4, label, anchor="end")
            free = y
    y = (frame.top + frame.bottom) / 2
    yield f'<g transform="translate(15 {y:.1f}) rotate(-90)">{_text(0, 0, title, size=13)}</g>'
    yield (
        f'<path class="axis" fill="none" stroke="{_INK}" d="M{frame.left} {frame.top}V{frame.bottom}H{frame.right}"/>'
    )


def _legend(x: float, y: float, rows: Sequence[tuple[str, str]]) -> Iterable[str]:
    """Rows of a symbol and a label, in a box whose upper right corner is (x, y)."""
    if not rows:
        return
    width = _legend_width(rows)
    x0 = x - width
    size = f'width="{width:.0f}" height="{19 * len(rows) + 8}"'
    yield f'<rect class="paper" x="{x0:.1f}" y="{y}" {size} rx="3" fill="{_PAPER}" stroke="{_GRID}"/>'
    for number, (symbol, label) in enumerate(rows):
        row = y + 14 + 19 * number
        yield f'<g transform="translate({x0 + 8:.1f} {row:.1f})">{symbol}</g>'
        yield _text(x0 + 38, row + 4, label, anchor="start")


def _legend_width(rows: Sequence[tuple[str, str]]) -> float:
    return 48 + 6.8 * max((len(label) for _, label in rows), default=0)


def _marker(number: int, style: str) -> str:
    """A shape around the origin: circle, square, triangle, diamond, ..."""
    shapes = (
        f'<circle {style} r="5"/>',
        f'<rect {style} x="-4.5" y="-4.5" width="9" height="9"/>',
        f'<path {style} d="M0 -6L5.5 4H-5.5Z"/>',
        f'<path {style} d="M0 -6.5L6.5 0L0 6.5L-6.5 0Z"/>',
        f'<path {style} d="M0 6L5.5 -4H-5.5Z"/>',
        f'<path {style} d="M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z"/>',
        f'<path {style} d="M0 -6L5.7 -1.9L3.5 4.9H-3.5L-5.7 -1.9Z"/>',
        f'<path {style} d="M-6 0L-3 -5.2H3L6 0L3 5.2H-3Z"/>',
    )
    return shapes[number % len(shapes)]


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)


def _dashes(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _text(
    x: float, y: float, text: str, *, anchor: str = "middle", css: str = "text", fill: str = _INK, size: int = 12
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}"'
    return f'<text class="{css}" {place}>{escape(_legal(text))}</text>'


def _svg(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    legal = _legal(title)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label={quoteattr(legal)} font-family="system-ui, Helvetica, Arial, sans-serif">'
    )
    return "\n".join([head, f"<title>{escape(legal)}</title>", *parts, "</svg>\n"])
