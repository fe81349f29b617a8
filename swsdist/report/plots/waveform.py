"""A waveform as SVG text: a bar for each stretch of samples, from minimum to maximum, with marked bars.

The same bytes for the same samples. Loudness is relative to the clip's peak, so that faint recordings are visible too.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from swsdist.report.plots.svg import _FAINT, _LINES

_ACCENT = _LINES[0][0]
_BARS = 150
_PITCH, _HEIGHT = 4, 56
#: Peak below which a clip is drawn as silence, with full scale 1.
_SILENT = 1e-3


def waveform_svg(samples: NDArray[np.float32], mark: tuple[float, float]) -> str:
    """A clip with a marked stretch.

    Args:
        samples: (samples,), full scale ±1.
        mark: first and last point of the stretch, each a part of the clip, 0 to 1.
    """
    edges = np.linspace(0, len(samples), _BARS + 1).astype(np.int64)[:-1]
    low, high = np.minimum.reduceat(samples, edges), np.maximum.reduceat(samples, edges)
    peak = max(float(np.abs(samples).max()), _SILENT)
    middle = _HEIGHT / 2
    reach = middle - 3
    first, last = math.floor(mark[0] * _BARS), math.ceil(mark[1] * _BARS)
    around: list[str] = []
    inside: list[str] = []
    for k, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        top, bottom = middle - most / peak * reach, middle - least / peak * reach
        bar = f"M{k * _PITCH + _PITCH // 2} {min(top, middle - 0.7):.1f}V{max(bottom, middle + 0.7):.1f}"
        (inside if first <= k < last else around).append(bar)
    width = _BARS * _PITCH
    all_marked = last - first == _BARS  # everything is marked
    place = f'x="{first * _PITCH}" y="0" width="{(last - first) * _PITCH}" height="{_HEIGHT}"'
    strokes = 'stroke-width="2.2" stroke-linecap="round" fill="none"'
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="wave" viewBox="0 0 {width} {_HEIGHT}" ',
            'preserveAspectRatio="none" role="img"><title>waveform, the matched stretch marked</title>',
            "" if all_marked else f'<rect class="mark" {place} rx="3" fill="{_ACCENT}" fill-opacity="0.12"/>',
            f'<path class="around" {strokes} stroke="{_FAINT}" d="{"".join(around)}"/>',
            f'<path class="inside" {strokes} stroke="{_ACCENT}" d="{"".join(inside)}"/>',
            "</svg>",
        )
    )
