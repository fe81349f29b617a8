"""Plots: well-formed, complete, and right where it can be told from the text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
from scipy.special import ndtri

from swsdist.report.data import ScoreHistogram
from swsdist.report.plots.curves import Line, Mark, det_svg, histogram_svg

NS = "{http://www.w3.org/2000/svg}"
PFA = np.geomspace(1e-6, 0.1, 400)
CURVE = Line("mfcc", PFA, 1 - PFA**0.2, (Mark("MTWV 0.107", 1e-3, 0.75), Mark("ATWV 0.095", 2e-3, 0.7)))
HOSTILE = "<script>&\"'\x00\x1b\ud800]]>"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(NS + "text")]


def ticks(svg: str, axis: str) -> dict[float, float]:
    """Percent to pixel of the labelled ticks of the x or the y axis."""
    found = {}
    for element in ElementTree.fromstring(svg).iter(NS + "text"):
        is_x = element.get("text-anchor") == "middle"
        if re.fullmatch(r"[\d.]+", element.text or "") and is_x == (axis == "x"):
            found[float(element.text or "")] = float(element.get(axis) or "nan")
    return found


def test_det_axes_are_probits_labelled_in_percent_and_all_is_named() -> None:
    svg = det_svg([CURVE], beta=66.66)
    assert {"mfcc", "MTWV 0.107", "ATWV 0.095", "miss probability (%)", "TWV 0.2"} <= set(texts(svg))
    found = ticks(svg, "x")
    assert {0.001, 0.01, 0.1, 1.0, 10.0} <= found.keys()
    percent = np.array(sorted(found))
    pixels = np.array([found[p] for p in percent])
    # Pixels are a straight line over probits.
    slope, offset = np.polyfit(ndtri(percent / 100), pixels, 1)
    np.testing.assert_allclose(pixels, slope * ndtri(percent / 100) + offset, atol=0.2)
    assert slope > 0
    assert svg == det_svg([CURVE], beta=66.66)


def test_marks_lie_where_their_rates_say_and_ends_on_the_border() -> None:
    svg = det_svg([Line("one", [0.01], [0.5], (Mark("here", 0.01, 0.4),))])
    assert f'<g transform="translate({ticks(svg, "x")[1.0]:.1f} {ticks(svg, "y")[40.0] - 4:.1f})">' in svg
    svg = det_svg([Line("all", [0.0, 0.01, 1.0], [1.0, 0.5, 0.0])], width=640, height=520)
    (path,) = re.findall(r'class="line line0"[^>]* d="(M[^"]*L[^"]*)"', svg)
    assert (path.startswith("M66 14L"), path.endswith("L626 468")) == (True, True)


def test_det_of_many_systems_of_none_and_of_many_points_on_one_pixel() -> None:
    svg = det_svg([Line(f"system {n}", PFA, PFA[::-1]) for n in range(6)])
    assert [t for t in texts(svg) if t.startswith("system")] == [f"system {n}" for n in range(6)]
    ElementTree.fromstring(det_svg([]))
    assert len(det_svg([Line("long", np.full(100_000, 0.01), np.full(100_000, 0.5))])) < 10_000


def test_histogram_shows_the_share_of_each_class() -> None:
    counts = np.array([30, 10, 0, 0])
    svg = histogram_svg(
        ScoreHistogram(np.linspace(-1, 3, 5), counts, counts[::-1] * 1000), [("near", 1.5), ("far", 9.0)]
    )
    assert {"target (40)", "non-target (40000)", "near"} <= set(texts(svg))
    assert "far" not in texts(svg)  # it does not reach so far
    # Each class is drawn in percent of itself: both are as high.
    tops = [min(float(y) for y in re.findall(r" ([\d.]+)[LZ]", d)) for d in re.findall(r' d="(M[^"]*Z)"', svg)]
    assert tops[0] == tops[1]
    svg = histogram_svg(ScoreHistogram(np.array([0.0, 1.0]), np.array([0]), np.array([5])), [])
    assert "target (0)" in texts(svg)


def test_any_text_gives_valid_xml() -> None:
    histogram = ScoreHistogram(np.array([0.0, 1.0]), np.array([1]), np.array([5]))
    for svg in (
        det_svg([Line(HOSTILE, [0.1], [0.1], (Mark(HOSTILE, 0.1, 0.1),))], title=HOSTILE),
        histogram_svg(histogram, [(HOSTILE, 0.5)], title=HOSTILE),
    ):
        root = ElementTree.fromstring(svg.encode("utf-8"))
        assert root.get("aria-label", "").startswith("<script>&\"'")
        assert "<script" not in svg
