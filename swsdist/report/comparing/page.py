"""A comparison of systems as one self-contained page: no network requests, no script, printable.

Names in the page are untrusted: jinja2 escapes all of them; only the plots are inserted unescaped. A content
security policy in the page forbids everything that it does not need.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from swsdist.report.comparing.tables import (
    about_tables,
    breakdown_tables,
    entropy_tables,
    measure_tables,
    pair_name,
    stars,
)
from swsdist.report.plots.curves import Estimate, Line, Mark, det_svg, differences_svg, forest_svg
from swsdist.report.plots.svg import side_by_side
from swsdist.report.summary import fixed, rendered
from swsdist.score.compare.paired import PairRow
from swsdist.score.compare.results import ComparisonData, DetLine, Measured

#: Most pairs with a plot each: all pairs of six systems.
MOST_PAIRS = 15
#: Most systems with operating points in the legend of the DET curves.
_MOST_MARKED = 8
#: Pixels of the legend of the DET curves, of a plot of the page's width, and of a plot beside others.
_LEGEND, _WIDE, _NARROW = 300, 900, 560


def render_comparison(data: ComparisonData) -> str:
    """The page as HTML text, to be written as UTF-8."""
    lines = {line.name for line in data.lines}
    return rendered(
        "comparison",
        data=data,
        title=" · ".join(data.systems),
        about=about_tables(data),
        det=det_plot(data),
        without=[item.name for item in data.about if item.name not in lines],
        blocks=[
            {
                "measure": block.measure,
                "forest": _forest(block, data.units, _WIDE),
                "plots": _plots(block, data.units),
                "left_out": _left_out(block),
                "tables": measure_tables(data, block),
            }
            for block in data.blocks
        ],
        entropies=entropy_tables(data),
        breakdowns=breakdown_tables(data),
    )


def det_plot(data: ComparisonData) -> str | None:
    """The DET curves of all systems in one picture, with a legend; None without curves."""
    if not data.lines:
        return None
    marked = len(data.lines) <= _MOST_MARKED
    lines = [Line(line.name, line.pfa, line.pmiss, _marks(line) if marked else ()) for line in data.lines]
    points = [item.point for item in data.about if item.point is not None]
    return det_svg(lines, beta=points[0].beta if points else None, title="DET curves", legend_width=_LEGEND)


def _marks(line: DetLine) -> tuple[Mark, ...]:
    points = (("ATWV", line.actual), ("MTWV", line.maximum))
    return tuple(Mark(f"{name} {fixed(at.twv)}", at.pfa, at.pmiss) for name, at in points if at is not None)


def forest_plots(data: ComparisonData) -> str:
    """Values and differences with intervals as one picture, the measures side by side."""
    plots = [_forest(block, data.units, _NARROW)[1] for block in data.blocks]
    names = ", ".join(block.measure for block in data.blocks)
    return side_by_side(plots, title=f"{names}: values and differences with intervals")


def _forest(block: Measured, units: str, width: int) -> tuple[str, str]:
    """Caption and plot of all values and differences with their intervals."""
    results = block.comparison
    rows = [Estimate(row.system, row.mean, row.interval.low, row.interval.high) for row in results.systems]
    rows += [
        Estimate(
            f"{pair_name(row)} {stars(row.sign_flip_holm)}".strip(),
            row.difference,
            row.interval.low,
            row.interval.high,
            1,
        )
        for row in results.pairs
    ]
    caption = f"{block.measure} and its differences, intervals over {units}; stars as of the table of differences"
    return caption, forest_svg(rows, title=block.measure, axis=block.measure, width=width)


def _shown(block: Measured) -> list[PairRow]:
    """The pairs with a plot: all, or if too many, those of the first system."""
    pairs = list(block.comparison.pairs)
    return pairs if len(pairs) <= MOST_PAIRS else [row for row in pairs if row.first == pairs[0].first][:MOST_PAIRS]


def _left_out(block: Measured) -> str:
    """A note on pairs without a plot."""
    shown, pairs = _shown(block), block.comparison.pairs
    if len(shown) == len(pairs):
        return ""
    return (
        f"Drawn are {len(shown)} of {len(pairs)} pairs, those of {pairs[0].first}; all are in the tables. Name the system "
        "that matters most first."
    )


def _plots(block: Measured, units: str) -> list[tuple[str, str]]:
    """Captions and plots of differences by query, on one scale."""
    results = block.comparison
    place: Mapping[str, NDArray[np.float64]] = dict(zip(results.paired.systems, results.paired.values, strict=True))
    shown = [(row, place[row.first] - place[row.second]) for row in _shown(block)]
    reach = (min((float(d.min()) for _, d in shown), default=0.0), max((float(d.max()) for _, d in shown), default=0.0))
    plots = []
    for row, values in shown:
        caption = (
            f"{pair_name(row)}, {units} from gain to loss: {row.wins} better, {row.losses} worse, {row.ties} the same"
        )
        plots.append((caption, differences_svg(values, title=caption, width=340, height=200, reach=reach)))
    return plots
