"""The timeline of a run as SVG text: tasks of each worker, and below the memory of each node."""

from __future__ import annotations

import numpy as np

from swsdist.accounts.costs import GB, Timeline
from swsdist.report.plots.svg import (
    _INK,
    _LINES,
    _dashes,
    _Frame,
    _legend,
    _legend_width,
    _path,
    _round_ticks,
    _svg,
    _text,
    _x_axis,
    _y_axis,
    shortened,
)

_LEFT, _ROW, _MEMORY = 150, 14, 190
#: Most nodes with a line of memory each; for more, only the maximum.
_LINES_SHOWN = 8


def timeline_svg(timeline: Timeline, *, width: int = 900) -> str | None:
    """The picture; None without tasks.

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
    stages = list(dict.fromkeys(bar.stage for bar in every))
    legend = [(f'<rect {_style(k)} x="0" y="-6" width="22" height="11"/>', stage) for k, stage in enumerate(stages)]
    right = width - int(_legend_width(legend)) - 24
    top, bottom = 14.0, 14.0 + max(_ROW * len(rows), 60)
    frame = _Frame(_LEFT, top, right, bottom, 0.0, (end - begin) / unit, 0.0, 1.0)
    ticks = _round_ticks(0.0, frame.x1)
    parts = [*_x_axis(frame, ticks, [f"{t:.6g}" for t in ticks], f"{name} since the first task")]
    for number, item in enumerate(rows):
        y = top + _ROW * number
        if len(rows) <= 48:
            label = shortened(f"{item.host} {item.pid}", 22)
            parts.append(_text(_LEFT - 7, y + _ROW - 4, label, anchor="end", size=10))
        for bar in item.bars:
            x0, x1 = (float(frame.x((moment - begin) / unit)) for moment in (bar.start, bar.end))
            box = f'x="{x0:.1f}" y="{y + 2:.1f}" width="{max(x1 - x0, 0.3):.1f}" height="{_ROW - 4}"'
            parts.append(f"<rect {_style(stages.index(bar.stage))} {box}/>")
    if timeline.left_out:
        note = f"and {timeline.left_out} processes more"
        parts.append(_text(_LEFT - 7, bottom + 17, note, anchor="end", size=10))
    parts += _legend(width - 8, top, legend)
    height, legend_bottom = int(bottom) + 60, 14 + 19 * len(legend) + 20
    memory = [(host, points) for host, points in timeline.memory.items() if any(begin <= t <= end for t, _ in points)]
    memory.sort(key=lambda item: -max(value for _, value in item[1]))
    if memory:
        more, text = _memory(memory, begin, end, unit, name, right, height)
        parts += [*more, *_legend(max(width - 8, right + _legend_width(text)), max(height, legend_bottom), text)]
        height, legend_bottom = height + _MEMORY + 60, max(height, legend_bottom) + 19 * len(text) + 20
    return _svg(width, max(height, legend_bottom), "Tasks by worker, and memory by node, over time", parts)


def _memory(
    memory: list[tuple[str, list[tuple[float, int]]]],
    begin: float,
    end: float,
    unit: float,
    name: str,
    right: int,
    top: int,
) -> tuple[list[str], list[tuple[str, str]]]:
    """The plot, and its legend."""
    shown = memory[:_LINES_SHOWN]
    most = max(value for _, points in shown for _, value in points) / GB
    frame = _Frame(_LEFT, top, right, top + _MEMORY, 0.0, (end - begin) / unit, 0.0, max(most * 1.05, 1e-3))
    x_ticks, y_ticks = _round_ticks(0.0, frame.x1), _round_ticks(0.0, frame.y1, 5)
    parts = [
        *_x_axis(frame, x_ticks, [f"{t:.6g}" for t in x_ticks], f"{name} since the first task"),
        *_y_axis(frame, y_ticks, [f"{t:.4g}" for t in y_ticks], "memory of a node, GB"),
    ]
    legend = []
    for number, (host, points) in enumerate(shown):
        colour, dashes = _LINES[number % len(_LINES)]
        stroke = f'class="line line{number % len(_LINES)}" fill="none" stroke="{colour}" stroke-width="1.5"'
        stroke += _dashes(dashes)
        inside = [(t, value) for t, value in points if begin - 1 <= t <= end + 1]
        x, y = (np.array(column, np.float64) for column in zip(*inside, strict=True)) if inside else (np.zeros(0),) * 2
        parts.append(f'<path {stroke} d="{_path(frame.x((x - begin) / unit), frame.y(y / GB))}"/>')
        legend.append((f'<path {stroke} d="M0 0H22"/>', shortened(host, 24)))
    if len(memory) > len(shown):
        legend.append(("", f"{len(memory) - len(shown)} more, lower"))
    return parts, legend


def _style(number: int) -> str:
    colour, _ = _LINES[number % len(_LINES)]
    # More stages than colours: the later ones have an edge.
    edge = f' stroke="{_INK}" stroke-width="1"' if number >= len(_LINES) else ""
    return f'class="area line{number % len(_LINES)}" fill="{colour}"{edge}'
