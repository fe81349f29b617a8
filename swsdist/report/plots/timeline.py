"""Plots over time as SVG text: the tasks of a run with the memory of its nodes, and the waveform of a clip."""

from __future__ import annotations

import math

import numpy as np

from swsdist.core.arrays import Singles
from swsdist.report.costs import GB, Timeline
from swsdist.report.plots import svg
from swsdist.report.plots.svg import Frame, shortened

_LEFT, _ROW, _MEMORY = 150, 14, 190
#: Most nodes with a line of memory each; for more, only the maximum.
_LINES_SHOWN = 8

# Of a waveform: bars, pixels from one to the next, and their height.
_BARS, _PITCH, _HEIGHT = 150, 4, 56
#: Peak below which a clip is drawn as silence, with full scale 1.
_SILENT = 1e-3


def timeline_svg(timeline: Timeline, *, width: int = 900) -> str | None:
    """The tasks of each worker, and below the memory of each node; None without tasks.

    Args:
        timeline: of the run's accounts.
        width: in pixels.
    """
    rows = [process for process in timeline.processes if process.bars]
    if not rows:
        return None
    every = sorted((bar for row in rows for bar in row.bars), key=lambda bar: bar.start)
    begin = every[0].start
    end = max(max(bar.end for bar in every), begin + 1e-3)
    unit, name = next(((u, n) for u, n in ((3600.0, "h"), (60.0, "min")) if end - begin > 3 * u), (1.0, "s"))
    title, most = f"{name} since the first task", (end - begin) / unit
    stages = list(dict.fromkeys(bar.stage for bar in every))
    labels = [(_task(k, x=0, y=-6, width=22, height=11), stage) for k, stage in enumerate(stages)]
    right = width - int(svg.box_width(labels)) - 24
    bottom = 14.0 + max(_ROW * len(rows), 60)
    frame = Frame(_LEFT, 14, right, bottom, 0.0, most)
    parts = [*frame.x_axis(title)]
    for number, item in enumerate(rows):
        y = frame.top + _ROW * number
        if len(rows) <= 48:
            label = shortened(f"{item.host} {item.pid}", 22)
            parts.append(svg.text(_LEFT - 7, y + _ROW - 4, label, anchor="end", size=10))
        for bar in item.bars:
            x0, x1 = frame.x([(bar.start - begin) / unit, (bar.end - begin) / unit]).tolist()
            box = {"x": x0, "y": y + 2, "width": max(x1 - x0, 0.3), "height": _ROW - 4}
            parts.append(_task(stages.index(bar.stage), **box))
    if timeline.left_out:
        note = f"and {timeline.left_out} processes more"
        parts.append(svg.text(_LEFT - 7, bottom + 17, note, anchor="end", size=10))
    parts += svg.legend(width - 8, frame.top, labels)
    height, legend_bottom = int(bottom) + 60, 14 + 19 * len(labels) + 20
    memory = [(host, points) for host, points in timeline.memory.items() if any(begin <= t <= end for t, _ in points)]
    memory.sort(key=lambda item: -max(value for _, value in item[1]))
    if memory:
        shown = memory[:_LINES_SHOWN]
        highest = max(value for _, points in shown for _, value in points) / GB
        frame = Frame(_LEFT, height, right, height + _MEMORY, 0.0, most, 0.0, max(highest * 1.05, 1e-3))
        parts += [*frame.x_axis(title), *frame.y_axis("memory of a node, GB", svg.ticks_of(0.0, frame.y1, about=5))]
        labels = []
        for number, (host, points) in enumerate(shown):
            inside = np.array([point for point in points if begin - 1 <= point[0] <= end + 1]).reshape(-1, 2)
            parts.append(svg.line(number, "1.5", d=frame.path((inside[:, 0] - begin) / unit, inside[:, 1] / GB)))
            labels.append((svg.line(number, "1.5", d="M0 0H22"), shortened(host, 24)))
        if len(memory) > len(shown):
            labels.append(("", f"{len(memory) - len(shown)} more, lower"))
        beside = max(height, legend_bottom)
        parts += svg.legend(max(width - 8, right + svg.box_width(labels)), beside, labels)
        height, legend_bottom = height + _MEMORY + 60, beside + 19 * len(labels) + 20
    return svg.plot(width, max(height, legend_bottom), "Tasks by worker, and memory by node, over time", parts)


def _task(number: int, **box: float) -> str:
    """The box of a task; of more stages than colours, the later ones have an edge."""
    edge: dict[str, float | str] = {"stroke": svg.INK, "stroke_width": 1} if number >= len(svg.LINES) else {}
    return svg.area("rect", number, **edge, **box)


def waveform_svg(samples: Singles, mark: tuple[float, float]) -> str:
    """A clip with a marked stretch: a bar for each part of the samples, from minimum to maximum.

    Loudness is relative to the clip's peak, so that faint recordings are visible too.

    Args:
        samples: (samples,), full scale ±1.
        mark: first and last point of the stretch, each a part of the clip, 0 to 1.
    """
    edges = np.linspace(0, len(samples), _BARS + 1).astype(np.int64)[:-1]
    scale = (_HEIGHT / 2 - 3) / max(float(np.abs(samples).max()), _SILENT)
    top = np.minimum(-np.maximum.reduceat(samples, edges) * scale, -0.7) + _HEIGHT / 2
    bottom = np.maximum(-np.minimum.reduceat(samples, edges) * scale, 0.7) + _HEIGHT / 2
    first, last = math.floor(mark[0] * _BARS), math.ceil(mark[1] * _BARS)
    bars = [f"M{k * _PITCH + _PITCH // 2} {a:.1f}V{b:.1f}" for k, (a, b) in enumerate(zip(top, bottom, strict=True))]
    all_marked = last - first == _BARS
    place = f'x="{first * _PITCH}" y="0" width="{(last - first) * _PITCH}" height="{_HEIGHT}"'
    strokes = 'stroke-width="2.2" stroke-linecap="round" fill="none"'
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="wave" viewBox="0 0 {_BARS * _PITCH} {_HEIGHT}" ',
            'preserveAspectRatio="none" role="img"><title>waveform, the matched stretch marked</title>',
            "" if all_marked else f'<rect class="mark" {place} rx="3" fill="{svg.LINES[0][0]}" fill-opacity="0.12"/>',
            f'<path class="around" {strokes} stroke="{svg.FAINT}" d="{"".join([*bars[:first], *bars[last:]])}"/>',
            f'<path class="inside" {strokes} stroke="{svg.LINES[0][0]}" d="{"".join(bars[first:last])}"/>',
            "</svg>",
        )
    )
