"""Plots of numbers against numbers: DET curves, histograms of scores, lines, dots, bars, and forests of intervals.

Pure functions that return SVG text. Probabilities from 0 to 1 come in, percent is drawn. A DET curve has probit axes, Pfa to
the right and Pmiss upwards, with the ticks of NIST's DETware (Martin et al. 1997, "The DET curve in assessment of detection
task performance"). Points outside the axes (0 and 1 lie at infinity) are drawn on their border.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from swsdist.core.arrays import Floats
from swsdist.report.data import ScoreHistogram
from swsdist.report.plots import svg
from swsdist.report.plots.svg import Frame, Ticks, shortened
from swsdist.score.measures.det import ppndf

#: Ticks of a DET axis, percent.
_LOW = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
TICKS = np.array((*_LOW, 40, 60, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99))

# Pixels of plots without a width, and most letters of a label of their legend.
_WIDTH, _HEIGHT, _MOST_LETTERS = 460, 340, 46
# Pixels of a row of a forest, and most letters of its label.
_ROW, _ROW_LETTERS = 24, 34


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

    def placed(self, x: ArrayLike) -> Floats:
        """Values as they lie on the x axis."""
        results = np.asarray(x, dtype=np.float64)
        return np.log10(results) if self.x_log else results

    def frame(self, x: Floats, y: Floats) -> Frame:
        """The plot area of data that lie so."""
        ends = None if self.x_range is None else tuple(self.placed(self.x_range).tolist())
        return Frame(80, 14, _WIDTH - 14, _HEIGHT - 52, *svg.range_of(x, ends), *svg.range_of(y, self.y_range, 0.06))

    def drawn(self, frame: Frame) -> list[str]:
        """Both axes."""
        x_ticks = svg.ticks_of(frame.x0, frame.x1, self.x_log)
        return [*frame.x_axis(self.x_title, x_ticks), *frame.y_axis(self.y_title)]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, a row of a forest. `kind` is 0 for a system, 1 for a difference."""

    label: str
    value: float
    low: float
    high: float
    kind: Literal[0, 1] = 0


def spans_decades(values: ArrayLike) -> bool:
    """Whether numbers need a logarithmic axis: all are above 0, and the greatest is at least 100 times the least."""
    results = np.asarray(values, dtype=np.float64)
    return bool(len(results) and results.min() > 0 and results.max() >= 100 * results.min())


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
    shown: list[Line | Mark] = [*lines, *(mark for curve in lines for mark in curve.marks)]
    x_ticks = _det_ticks([item.pfa for item in shown], 0.01, 1.0)
    y_ticks = _det_ticks([item.pmiss for item in shown], 20.0, 90.0)
    ends = (float(ticks[0][end]) for ticks in (x_ticks, y_ticks) for end in (0, -1))
    frame = Frame(66, 14, width - 14, height - 52, *ends)
    parts = [
        *frame.x_axis("false alarm probability (%)", x_ticks),
        *frame.y_axis("miss probability (%)", y_ticks),
        *(_iso_twv(frame, beta) if beta is not None else ()),
    ]
    rows: list[tuple[str, str]] = []
    for index, curve in enumerate(lines):
        colour = svg.LINES[index % len(svg.LINES)][0]
        parts.append(svg.line(index, stroke_linejoin="round", d=frame.path(_probit(curve.pfa), _probit(curve.pmiss))))
        rows.append((svg.line(index, d="M0 0H22"), curve.label))
        for sign in (-1, 1) if curve.band is not None else ():
            edge = (
                _probit(np.asarray(rate, dtype=np.float64) + sign * np.asarray(half, dtype=np.float64))
                for rate, half in zip((curve.pfa, curve.pmiss), curve.band or (), strict=True)
            )
            parts.append(svg.line(index, "0.8", stroke_dasharray="2 2", d=frame.path(*edge)))
        for number, mark in enumerate(curve.marks):
            # With one line, shapes distinguish marks; with several, they distinguish lines, and only the first mark is open.
            is_open = number == 0 or not legend_width
            css = f"{'mark' if is_open else 'area'} line{index % len(svg.LINES)}"
            shape = _marker(index if legend_width else number, css, colour, svg.PAPER if is_open else colour)
            # Around the other mark, where both are in one place.
            larger = " scale(1.5)" if is_open and legend_width else ""
            parts.append(svg.moved(*frame.at(_probit(mark.pfa), _probit(mark.pmiss)), shape, larger))
            rows.append((svg.moved(11, 0, shape), mark.label))
    if not legend_width:
        return svg.plot(width, height, title, [*parts, *svg.legend(frame.right - 8, frame.top + 8, rows)])
    rows = [(symbol, shortened(label, int((legend_width - 60) / svg.LETTER))) for symbol, label in rows]
    below = max(height, int(frame.top) + 19 * len(rows) + 16)
    return svg.plot(
        width + legend_width, below, title, [*parts, *svg.legend(width + svg.box_width(rows), frame.top, rows)]
    )


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
    classes = (("target", np.asarray(histogram.target)), ("non-target", np.asarray(histogram.nontarget)))
    shares = [100 * counts / max(int(counts.sum()), 1) for _, counts in classes]
    rules = [(label, score) for label, score in marks if edges[0] <= score <= edges[-1]]
    bottom, legend_height = height - 50, 19 * (len(classes) + len(rules)) + 24
    # The legend stands above the bars.
    top = (
        max(1e-9, *(float(share.max(initial=0)) for share in shares))
        * (bottom - 14)
        / max(bottom - 14 - legend_height, 1)
    )
    frame = Frame(56, 14, width - 14, bottom, float(edges[0]), float(edges[-1]), 0.0, top)
    parts, rows = [*frame.x_axis("score"), *frame.y_axis("% of class")], list[tuple[str, str]]()
    for index, ((label, counts), share) in enumerate(zip(classes, shares, strict=True)):
        colour, dashes = svg.LINES[index]
        style = {"stroke": colour, "fill_opacity": "0.18", "stroke_width": "1.5", "stroke_dasharray": dashes}
        steps = frame.path(np.repeat(edges, 2), np.concatenate([[0], np.repeat(share, 2), [0]]))
        parts.append(svg.area("path", index, **style, d=f"{steps}Z"))
        symbol = svg.area("rect", index, **style, x=0, y=-6, width=22, height=11)
        rows.append((symbol, f"{label} ({int(counts.sum())})"))
    for number, (label, score) in enumerate(rules):
        dashes = (None, "6 3", "2 2")[number % 3]
        x = float(frame.x(score))
        parts.append(svg.rule(f"M{x:.1f} {frame.top:g}V{frame.bottom:g}", stroke_width="1.2", stroke_dasharray=dashes))
        rows.append((svg.rule("M11 -6V6", stroke_width="1.2", stroke_dasharray=dashes), label))
    return svg.plot(width, height, title, [*parts, *svg.legend(frame.right - 8, frame.top + 8, rows)])


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
    points = [(axes.placed(item.x), np.asarray(item.y, dtype=np.float64)) for item in series]
    frame = axes.frame(*(np.concatenate([np.zeros(0), *(point[k] for point in points)]) for k in (0, 1)))
    parts, labels = axes.drawn(frame), dict[str, str]()
    for item, (x, y) in zip(series, points, strict=True):
        inside = frame.inside(x, y)
        for run in np.split(np.arange(len(x)), np.flatnonzero(np.diff(inside)) + 1):
            if len(run) and inside[run[0]]:
                width, opacity = ("0.9", "0.45") if item.thin else ("2", None)
                data = frame.path(x[run], y[run])
                parts.append(svg.line(item.kind, width, stroke_opacity=opacity, stroke_linejoin="round", d=data))
        if item.label:
            labels.setdefault(item.label, svg.line(item.kind, d="M0 0H22"))
    for x0, y0, kind in marks:
        cx, cy = frame.at(float(axes.placed(x0)), y0)
        parts.append(svg.area("circle", kind, stroke=svg.LINES[kind % len(svg.LINES)][0], cx=cx, cy=cy, r=4))
    rows = [(symbol, shortened(label, _MOST_LETTERS)) for label, symbol in labels.items()]
    below, height = svg.legend_below(frame, _HEIGHT + 8, rows)
    return svg.plot(_WIDTH, _HEIGHT + height, title, [*parts, *below])


def dots_svg(x: ArrayLike, y: ArrayLike, axes: Axes, *, diagonal: bool = False, title: str) -> str:
    """One dot per point within the range.

    Args:
        x, y: arrays of one length.
        axes: see `Axes`.
        diagonal: draw the line of equality; not on a logarithmic axis.
        title: text alternative.
    """
    xs, ys = axes.placed(x), np.asarray(y, dtype=np.float64)
    frame = axes.frame(xs, ys)
    parts = axes.drawn(frame)
    if diagonal:
        ends = [max(frame.x0, frame.y0), min(frame.x1, frame.y1)]
        parts.append(svg.rule(frame.path(ends, ends), stroke_width=1, stroke_dasharray="4 3"))
    inside = frame.inside(xs, ys)
    for a, b in zip(frame.x(xs[inside]).tolist(), frame.y(ys[inside]).tolist(), strict=True):
        parts.append(svg.tag("circle", "dot line0", fill=svg.LINES[0][0], fill_opacity="0.55", cx=a, cy=b, r="2.5"))
    return svg.plot(_WIDTH, _HEIGHT, title, parts)


def bars_svg(edges: ArrayLike, heights: ArrayLike, axes: Axes, *, title: str) -> str:
    """Bars from 0, with different colours above and below.

    Args:
        edges: (n + 1,), ascending.
        heights: (n,).
        axes: see `Axes`.
        title: text alternative.
    """
    borders, values = np.asarray(edges, dtype=np.float64), np.asarray(heights, dtype=np.float64)
    frame = axes.frame(borders, np.append(values, 0.0))
    return svg.plot(_WIDTH, _HEIGHT, title, [*axes.drawn(frame), *_bars(frame, borders, values, 1.0)])


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
    count = max(len(values), 1)
    limits = svg.range_of(np.concatenate([values, [0.0], reach or ()]), margin=0.05)
    frame = Frame(66, 14, width - 14, height - 52, 0.0, float(count), *limits)
    bars = min(count, int(frame.right - frame.left))
    shared = np.array_split(values if len(values) else np.zeros(1), bars)
    heights = np.array([part[np.abs(part).argmax()] for part in shared])
    parts = [*frame.x_axis("from gain to loss"), *frame.y_axis("difference")]
    return svg.plot(width, height, title, [*parts, *_bars(frame, np.linspace(0, count, bars + 1), heights, 0.0)])


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
    ends = np.array([0.0, *(value for row in rows for value in (row.low, row.value, row.high))])
    left, bottom = 20 + svg.longest((row.label for row in rows), _ROW_LETTERS), 12 + _ROW * max(len(rows), 1)
    frame = Frame(left, 12, width - 16, bottom, *svg.range_of(ends, margin=0.05))
    parts = [*frame.x_axis(axis), svg.rule(f"M{float(frame.x(0.0)):.1f} {frame.top:g}V{bottom}")]
    for index, row in enumerate(rows):
        y = frame.top + _ROW * (index + 0.5)
        x0, x, x1 = frame.x([row.low, row.value, row.high]).tolist()
        ends_of = f"M{x0:.1f} {y:.1f}H{x1:.1f}M{x0:.1f} {y - 4:.1f}v8M{x1:.1f} {y - 4:.1f}v8"
        parts.append(
            svg.tag(
                "path", f"line line{row.kind}", fill="none", stroke=svg.LINES[row.kind][0], stroke_width=2, d=ends_of
            )
        )
        parts.append(svg.area("circle", row.kind, stroke=svg.LINES[row.kind][0], cx=x, cy=y, r=4))
        parts.append(svg.text(frame.left - 8, y + 4, shortened(row.label, _ROW_LETTERS), anchor="end"))
    return svg.plot(width, bottom + 52, title, parts)


def _bars(frame: Frame, edges: Floats, heights: Floats, gap: float) -> Iterable[str]:
    """Bars from 0, at most `gap` pixels apart."""
    zero = float(frame.y(0.0))
    for a, b, y, value in zip(frame.x(edges[:-1]), frame.x(edges[1:]), frame.y(heights), heights, strict=True):
        between = min(gap, (b - a) / 5)
        place = {"x": f"{a + between / 2:.2f}", "width": f"{b - a - between:.2f}"}
        yield svg.area("rect", int(value < 0), **place, y=float(min(y, zero)), height=float(abs(y - zero)))
    yield svg.rule(f"M{frame.left:g} {zero:.1f}H{frame.right:g}")


def _probit(p: ArrayLike) -> Floats:
    return ppndf(np.asarray(p, dtype=np.float64), least=1e-7)


def _det_ticks(rates: Sequence[ArrayLike], low: float, high: float) -> Ticks:
    """Ticks that span the rates strictly between 0 and 1, and at least `low` to `high` percent."""
    p = np.concatenate([np.zeros(0), *(np.ravel(np.asarray(rate, dtype=np.float64)) for rate in rates)])
    percent = 100 * p[(p > 0) & (p < 1)]
    first = np.searchsorted(TICKS, min(percent.min(initial=low), low) * (1 + 1e-9), side="right") - 1
    last = np.searchsorted(TICKS, max(percent.max(initial=high), high) * (1 - 1e-9))
    ticks = TICKS[max(int(first), 0) : int(last) + 1]
    return _probit(ticks / 100), [f"{tick:.10g}" for tick in ticks]


def _iso_twv(frame: Frame, beta: float) -> Iterable[str]:
    from scipy.special import ndtr  # workers load this module with its chain, and draw nothing

    z = np.linspace(frame.x0, frame.x1, 241)
    pfa = np.asarray(ndtr(z), dtype=np.float64)
    for value in (0.0, 0.2, 0.4, 0.6, 0.8):
        pmiss = 1 - value - beta * pfa
        y = _probit(pmiss)
        inside = (pmiss > 0) & frame.inside(z, y)
        if inside.sum() < 2:
            continue
        data, dots = frame.path(z[inside], y[inside]), "1 3"
        yield svg.tag("path", "iso", fill="none", stroke=svg.FAINT, stroke_width="0.8", stroke_dasharray=dots, d=data)
        x0, y0 = frame.at(z[inside][0], y[inside][0])
        below = 12 if y0 < frame.top + 16 else -4
        yield svg.text(x0 + 5, y0 + below, f"TWV {value:g}", anchor="start", css="iso", fill=svg.FAINT, size=10)


def _marker(number: int, css: str, stroke: str, fill: str) -> str:
    """A shape around the origin: circle, square, triangle, diamond, ..."""
    shapes = (
        "M5 0A5 5 0 0 1 -5 0A5 5 0 0 1 5 0Z",
        "M-4.5 -4.5H4.5V4.5H-4.5Z",
        "M0 -6L5.5 4H-5.5Z",
        "M0 -6.5L6.5 0L0 6.5L-6.5 0Z",
        "M0 6L5.5 -4H-5.5Z",
        "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
        "M0 -6L5.7 -1.9L3.5 4.9H-3.5L-5.7 -1.9Z",
        "M-6 0L-3 -5.2H3L6 0L3 5.2H-3Z",
    )
    return svg.tag("path", css, stroke=stroke, stroke_width=2, fill=fill, d=shapes[number % len(shapes)])
