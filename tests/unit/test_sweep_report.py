"""A sweep's plots and page: what is drawn of which points, and that names of others do no harm."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from swsdist.report.plots.curves import spans_decades
from swsdist.report.plots.maps import heat_svg
from swsdist.report.plots.svg import ticks_of
from swsdist.report.sweep import Ranking, SweepData, best_rows, plots, render_sweep, text_lines

NS = "{http://www.w3.org/2000/svg}"


def data(rows: list[dict[str, Any]], keys: tuple[str, ...], **values: Any) -> SweepData:
    every = [
        {"point": k + 1, "fit": "crossfit", "oracle": False, "failed": None, "scored_by": None, "rank": None, **row}
        for k, row in enumerate(rows)
    ]
    rated = sorted((row for row in every if row["auc"] is not None), key=lambda row: -row["auc"])
    ways = list(dict.fromkeys(row["scored_by"] for row in every))
    best = [(way, tuple(row["point"] for row in rated if row["scored_by"] == way)) for way in ways]
    given = {
        "lowest": False,
        "rankings": tuple(Ranking(way or "", numbers, False) for way, numbers in best),
        "level": 0.95,
        **values,
    }
    return SweepData("<b>mine</b>", pa.Table.from_pylist(every), keys, ("auc",), "auc", **given)


def grid() -> list[dict[str, Any]]:
    return [{"a": a, "b": b, "auc": a / 10 + (b == "y") / 100} for a in (1.0, 2.0, 3.0) for b in ("x", "y")]


def test_a_grid_has_curves_and_a_map() -> None:
    found = plots(data(grid(), ("a", "b")))
    assert list(found) == ["curve-a", "map-a-b"]
    curve = ElementTree.fromstring(found["curve-a"][1])
    lines = [path for path in curve.iter(f"{NS}path") if (path.get("class") or "").startswith("line line")]
    assert len([path for path in lines if "M0 0H22" not in (path.get("d") or "")]) == 2  # one of x, one of y
    assert len(list(curve.iter(f"{NS}circle"))) == 1
    cells = [box for box in ElementTree.fromstring(found["map-a-b"][1]).iter(f"{NS}rect") if box.get("class") == "cell"]
    assert len(cells) == 6
    shades = [float(box.get("fill-opacity") or 0) for box in cells]
    assert max(shades) == pytest.approx(0.66)
    assert min(shades) == pytest.approx(0.06)


def draws() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    columns = rng.uniform(0.5, 3, 60).tolist(), (10 ** rng.uniform(0, 3, 60)).tolist(), rng.random(60).tolist()
    return [{"a": a, "b": b, "c": "xy"[k % 2], "auc": auc} for k, (a, b, auc) in enumerate(zip(*columns, strict=True))]


def test_a_draw_is_a_dot_of_a_scatter_with_the_colour_of_its_measure() -> None:
    """Each draw would have a cell of a map to itself."""
    rows = draws()
    found = plots(data(rows, ("a", "b", "c")))
    assert list(found) == ["curve-a", "curve-b", "scatter-a-b", "scatter-a-c", "scatter-b-c"]
    for name in ("scatter-a-b", "scatter-b-c"):
        picture = ElementTree.fromstring(found[name][1])
        dots = [dot for dot in picture.iter(f"{NS}circle") if dot.get("fill") != "none"]
        assert len(dots) == 60
        assert (dots[0].get("fill"), dots[-1].get("fill")) == ("#fde725", "#440154")  # the best on top, and darkest
        (ring,) = (dot for dot in picture.iter(f"{NS}circle") if dot.get("fill") == "none")
        assert (ring.get("cx"), ring.get("cy")) == (dots[-1].get("cx"), dots[-1].get("cy"))


def test_an_axis_over_decades_is_logarithmic() -> None:
    rows = [{"a": float(x), "b": float(y), "auc": 0.1 * x} for x, y in ((1, 1), (2, 10), (3, 100), (4, 1000))]
    picture = ElementTree.fromstring(plots(data(rows, ("a", "b")))["scatter-a-b"][1])
    places = sorted({float(dot.get("cy") or 0) for dot in picture.iter(f"{NS}circle")})
    assert np.diff(places) == pytest.approx(np.diff(places)[0], abs=0.2)
    assert {"1", "10", "100", "1000"} <= {text.text for text in picture.iter(f"{NS}text")}
    places, labels = ticks_of(0, 2, log=True)
    assert labels == ["1", "2", "5", "10", "20", "50", "100"]
    assert 10.0**places == pytest.approx([1, 2, 5, 10, 20, 50, 100])
    assert ticks_of(-8, 0, log=True)[1] == [f"{10.0**k:g}" for k in range(-8, 1)]
    assert [spans_decades(values) for values in ([1, 100], [1, 99], [0, 100], [])] == [True, False, False, False]


def test_what_is_not_varied_or_not_there_is_not_drawn() -> None:
    rows = [{**row, "b": "x"} for row in grid()]
    assert list(plots(data(rows, ("a", "b")))) == ["curve-a"]
    assert plots(data([{"a": 1.0, "auc": None}], ("a",))) == {}
    one = {"calibrate.steps": "[q-norm, logistic, oracle-kst]", "a": 9.0, "auc": 0.9, "oracle": True}
    drawn = plots(data([{**row, "calibrate.steps": "[kst]"} for row in grid()] + [one], ("a", "calibrate.steps")))
    assert list(drawn) == ["curve-a"]


def test_a_map_of_less_is_better_and_of_what_is_not_known() -> None:
    values = [[0.1, 0.2, np.nan], [0.4, 0.3, 0.2]]
    titles = {"x_title": "a", "y_title": "b", "title": "t"}
    drawn = heat_svg(values, ["r", "<s>"], ["x", "y", "z"], **titles, less_is_better=True)
    cells = list(ElementTree.fromstring(drawn).iter(f"{NS}rect"))
    assert [box.get("class") for box in cells] == ["cell", "cell", "grid", "cell", "cell", "cell"]
    assert float(cells[0].get("fill-opacity") or 0) > float(cells[3].get("fill-opacity") or 0)
    assert "nan" not in drawn
    alike = ElementTree.fromstring(heat_svg([[1.0, 1.0, 1.0]], ["r"], ["10", "20", "30"], **titles))
    assert not list(alike.iter(f"{NS}g"))  # short labels lie below their cells
    assert len({text.get("y") for text in alike.iter(f"{NS}text") if text.text in ("10", "20", "30")}) == 1


@pytest.mark.parametrize("count", [3, 40])
def test_labels_of_a_map_are_whole_and_lie_in_it(count: int) -> None:
    """Those that do not fit below their cells stand on end."""
    rows = ["[q-norm, logistic, oracle-kst, power]", "[m-norm, logistic]"]
    columns = [f"[q-norm, logistic, oracle-kst, {k:02d}]" for k in range(count)]
    drawn = heat_svg(np.zeros((2, count)), rows, columns, x_title="across", y_title="down", title="t")
    plot = ElementTree.fromstring(drawn)
    upright = [(g, text) for g in plot.iter(f"{NS}g") for text in g.iter(f"{NS}text")]
    assert {text.text for text in plot.iter(f"{NS}text")} >= {*rows, "across", "down"}
    assert [text.text for _, text in upright] == columns[
        :: 1 if count == 3 else 2
    ]  # of many, as many as there is room for
    title = next(text for text in plot.iter(f"{NS}text") if text.text == "across")
    for g, text in upright:
        x, y = map(float, re.findall(r"[\d.]+", g.get("transform") or "")[:2])
        assert 0 < x < float(plot.get("width") or 0)
        assert y + 6.8 * len(text.text or "") < float(title.get("y") or 0) - 10 < float(plot.get("height") or 0)


def test_the_page_stands_alone_and_escapes() -> None:
    rows = [*grid(), {"a": 4.0, "b": "<script>", "auc": None, "failed": "no <file> there"}]
    given = data(rows, ("a", "b"), notices=("odd & told",))
    page = render_sweep(given)
    assert "<script>" not in page
    wanted = ("&lt;b&gt;mine&lt;/b&gt;", "no &lt;file&gt; there", "odd &amp; told", "no intervals and no tests")
    assert [one for one in wanted if one not in page] == []
    assert not re.findall(r"(?:src|href)=", page)
    assert "Oracle." not in page
    assert "<strong>Oracle.</strong>" in render_sweep(data([{**row, "oracle": True} for row in grid()], ("a", "b")))
    assert len(list(best_rows(given))) == 6
    assert any(line.startswith("6 ") for line in text_lines(given))
    many = [{"search.band": k, "auc": k / 100} for k in range(15)]
    assert text_lines(data(many, ("search.band",)))[-1] == "10 best of 15 points; all are in points.csv."
    assert "best of" not in "".join(text_lines(data(many[:10], ("search.band",))))


def ways() -> list[dict[str, Any]]:
    return [{**row, "scored_by": f"score.beta: {beta}", "rank": 1} for row in grid() for beta in (1, 9)]


def test_what_is_scored_differently_is_not_ranked_together() -> None:
    given = data(ways(), ("a", "b"))
    assert given.winner is None
    shown = list(best_rows(given))
    assert [row[3] for row in shown] == ["score.beta: 1"] * 5 + ["score.beta: 9"] * 5
    page, lines = render_sweep(given), text_lines(given)
    assert "among points with the same scoring setup" in page
    assert any(re.search(r"scored by +rank", line) for line in lines)
    drawn = plots(given)
    # A cell of one map would have the best of values that are not comparable.
    assert list(drawn) == ["curve-a", "map-a-b-1", "map-a-b-2"]
    assert drawn["map-a-b-2"][0].endswith("scored by score.beta: 9.")
    assert "the dot is the best" not in drawn["curve-a"][0]
    rows = [{"a": float(k), "auc": 0.1 * k, "scored_by": f"score.beta: {k}"} for k in range(5)]
    alone = data(rows, ("a",))
    assert list(best_rows(alone)) == []
    assert "so there is no ranking" in text_lines(alone)[-1]
