"""Plots and words of a comparison."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from swsdist.report.comparing import p_value, paper_table
from swsdist.report.plots.curves import Estimate, Line, Mark, det_svg, differences_svg, forest_svg
from swsdist.report.plots.svg import shortened
from swsdist.report.tables import Table, text_lines
from swsdist.score.compare.paired import Settings, compare_paired, conditions
from swsdist.score.compare.results import ComparisonData, Measured

SVG = "{http://www.w3.org/2000/svg}"


def test_a_forest_has_a_row_an_estimate() -> None:
    rows = [Estimate("one <&>", 0.5, 0.4, 0.7), Estimate("a" * 99, -0.1, -0.3, 0.1, 1)]
    plot = ElementTree.fromstring(forest_svg(rows, title="a & b"))
    points = plot.findall(f"{SVG}circle")
    assert [point.get("class") for point in points] == ["area line0", "area line1"]
    assert float(points[0].get("cx", "")) > float(points[1].get("cx", ""))
    assert "one <&>" in [text.text for text in plot.iter(f"{SVG}text")]
    ElementTree.fromstring(forest_svg([]))


def test_differences_stand_on_both_sides_of_zero() -> None:
    def heights(*given: object, **how: object) -> list[float]:
        bars = ElementTree.fromstring(differences_svg(*given, **how)).findall(f"{SVG}rect")
        return [float(bar.get("height", "")) for bar in bars]

    first, none, last = heights([0.5, -0.25, 0.0])
    assert (first, none) == (pytest.approx(2 * last, abs=0.2), 0)
    assert not any(heights([]))
    assert len(heights(np.random.default_rng(1).normal(size=5000))) == 560  # pixels, which more queries share
    alone, beside = (heights([0.1, -0.1], reach=reach)[0] for reach in (None, (-1.0, 1.0)))
    assert alone == pytest.approx(10 * beside, rel=0.1)


def test_words() -> None:
    assert [p_value(p) for p in (None, 0.5, 0.00123456, 1.234e-7)] == ["–", "0.5000", "0.0012", "1.23e-07"]
    assert shortened("a" * 40, 34) == "a" * 16 + "…" + "a" * 16


@pytest.mark.parametrize("width", [40, 80, 110])
def test_a_table_fits_the_screen_and_loses_nothing(width: int) -> None:
    long = "a/path/of/a/system/that/somebody/gave/a/very/long/name - another"
    columns = ["pair", *(f"column number {k} of this" for k in range(9))]
    table = Table(
        "caption " * 20, columns, [[long, *(f"{k}.12345" for k in range(9))]] * 2, "a note of many words " * 9
    )
    lines = text_lines(table, width)
    assert max(map(len, lines)) <= width
    text = "".join("".join(lines).split())
    for k in range(9):
        assert text.count(f"{k}.12345") == 2
    # The label stands beside each block of columns, on as many lines as it takes.
    words = "".join(line[: min(30, width - 20)].strip() for line in lines)
    assert long.replace(" ", "") in words.replace(" ", "")


def test_a_legend_beside_the_curves_covers_none() -> None:
    lines = [
        Line(f"system {k}", [0.001, 0.01, 0.1], [0.9, 0.5, 0.1], (Mark("ATWV", 0.01, 0.5), Mark("MTWV", 0.1, 0.1)))
        for k in range(9)
    ]
    plot = ElementTree.fromstring(det_svg(lines, legend_width=300))
    assert plot.get("width") == "940"
    box = plot.find(f"{SVG}rect[@class='paper']")
    assert float(box.get("x", "")) >= 640
    assert float(box.get("y", "")) + float(box.get("height", "")) <= float(plot.get("height", ""))
    paths = [path for path in plot.findall(f"{SVG}path") if "line line" in path.get("class", "")]
    styles = [path.get("stroke-dasharray") for path in paths]
    assert len(styles) == 9
    assert len({*styles[:8]}) == 8  # told apart without colour
    shapes = [group[0] for group in plot.findall(f"{SVG}g")[1:] if len(group) and group[0].get("fill") != "none"]
    drawn = [shape.get("d") or shape.tag + str(sorted(shape.attrib)) for shape in shapes[:16:2]]
    assert len({*drawn}) == 8


def test_a_paper_marks_what_is_worse_than_the_best() -> None:
    for better in ("one", "two"):
        values = {name: {f"q{k}": 0.5 + k / 100 + (name == better) / 10 for k in range(20)} for name in ("one", "two")}
        comparison = compare_paired(conditions(values), Settings(resamples=50))
        data = ComparisonData(("one", "two"), (Measured("ATWV", comparison),), (), Settings(resamples=50))
        table = paper_table({row.system: {"atwv": row.mean} for row in comparison.systems}, ["atwv"], data)
        assert [row[1].endswith("***") for row in table.rows] == [row[0] != better for row in table.rows]
