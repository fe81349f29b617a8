"""Plots and words of a comparison."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from swsdist.report.comparison import Table, p_value, text_lines
from swsdist.report.plots.comparison import Estimate, differences_svg, forest_svg, shortened

SVG = "{http://www.w3.org/2000/svg}"


def test_a_forest_has_a_row_an_estimate() -> None:
    rows = [Estimate("one <&>", 0.5, 0.4, 0.7), Estimate("a" * 99, -0.1, -0.3, 0.1, 1)]
    plot = ElementTree.fromstring(forest_svg(rows, title="a & b"))
    points = plot.findall(f"{SVG}circle")
    assert [point.get("class") for point in points] == ["area line0", "area line1"]
    assert float(points[0].get("cx", "")) > float(points[1].get("cx", ""))
    assert "one <&>" in [text.text for text in plot.iter(f"{SVG}text")]
    assert forest_svg(rows) == forest_svg(rows)
    ElementTree.fromstring(forest_svg([]))


def test_differences_stand_on_both_sides_of_zero() -> None:
    plot = ElementTree.fromstring(differences_svg([0.5, -0.25, 0.0]))
    bars = plot.findall(f"{SVG}rect")
    assert [bar.get("class") for bar in bars] == ["area line0", "area line0", "area line1"]
    heights = [float(bar.get("height", "")) for bar in bars]
    assert heights[0] == pytest.approx(2 * heights[2], abs=0.2)
    assert heights[1] == 0
    ElementTree.fromstring(differences_svg([]))


def test_more_queries_than_pixels_share_bars() -> None:
    values = np.random.default_rng(1).normal(size=5000)
    plot = ElementTree.fromstring(differences_svg(values))
    assert len(plot.findall(f"{SVG}rect")) == 560


def test_words() -> None:
    lines = text_lines(Table("caption", ("name", "value"), (("a", "1"), ("long name", "-12")), "note"))
    assert lines == ["caption", "name       value", "a              1", "long name    -12", "note"]
    assert [p_value(p) for p in (None, 0.5, 0.00123456, 1.234e-7)] == ["–", "0.5000", "0.0012", "1.23e-07"]
    assert shortened("a" * 40) == "a" * 16 + "…" + "a" * 16
