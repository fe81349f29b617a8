"""A comparison of systems as one self-contained page: no request to anywhere, no script, printable.

The page holds names that others chose: jinja2 escapes all of them, only the plots go in as they are, and a content
security policy in the page forbids whatever it does not need.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import jinja2
import numpy as np
from numpy.typing import NDArray

from swsdist.report.comparison import breakdown_tables, measure_tables
from swsdist.report.plots.comparison import Estimate, differences_svg, forest_svg
from swsdist.score.compare.results import ComparisonData, Measured

#: Plots of single queries that are still of use on one page.
_MOST_PLOTS = 6


def render_comparison(data: ComparisonData) -> str:
    """The page as HTML text, to be written as UTF-8."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("comparison.html.j2").render(
        data=data,
        title=" · ".join(data.systems),
        version=version("swsdist"),
        blocks=[
            {"measure": block.measure, "plots": _plots(block, data.units), "tables": measure_tables(data, block)}
            for block in data.blocks
        ],
        breakdowns=breakdown_tables(data),
    )
    # A path may hold bytes that are not UTF-8 (lone surrogates in Python); the page must still be writable.
    return text.encode("utf-8", "replace").decode("utf-8")


def _plots(block: Measured, units: str) -> list[tuple[str, str]]:
    """Captions and plots: all intervals, and each of the first pairs query by query."""
    found = block.comparison
    rows = [Estimate(row.system, row.mean, row.interval.low, row.interval.high) for row in found.systems]
    rows += [
        Estimate(f"{row.first} - {row.second}", row.difference, row.interval.low, row.interval.high, 1)
        for row in found.pairs
    ]
    plots: list[tuple[str, str]] = [(f"{block.measure} and its differences, intervals over {units}", forest_svg(rows))]
    place: dict[str, NDArray[np.float64]] = dict(zip(found.paired.systems, found.paired.values, strict=True))
    for row in found.pairs[:_MOST_PLOTS]:
        caption = f"{row.first} - {row.second}, {units} from gain to loss"
        plots.append((caption, differences_svg(place[row.first] - place[row.second], title=caption)))
    return plots
