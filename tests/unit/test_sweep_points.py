"""Sweeps: their file and points, what is ranked and tested, and plots, pages and tables of them."""

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from swsdist.calibrate.rescoring import ALPHAS, Rescoring, Study, StudyEntry, study
from swsdist.chains.sweep import reading
from swsdist.chains.sweep.chain import PointResult
from swsdist.chains.sweep.planning import SweepPoint, scored_by
from swsdist.chains.sweep.reading import Tests as Settings
from swsdist.chains.sweep.sweep import RankedPoints, rank_points
from swsdist.config import config_from_dict, load_config
from swsdist.config.reading import Origin
from swsdist.core.codes import families
from swsdist.core.codes import score as calibrate_codes
from swsdist.core.codes import score as score_codes
from swsdist.core.errors import ConfigError
from swsdist.core.types import TRIALS
from swsdist.evaluation.scoring_task import named_paths
from swsdist.report.data import ScoreHistogram
from swsdist.report.plots.curves import Axes, Line, Mark, Series, bars_svg, det_svg, dots_svg, histogram_svg, lines_svg
from swsdist.report.plots.svg import side_by_side
from swsdist.report.study import captioned_figures, study_json, study_tables
from swsdist.report.study import text_lines as lines_of_study
from swsdist.report.sweep import Ranking, SweepData, best_rows, plots, render_sweep, text_lines
from swsdist.report.tables import Table, latex, markdown
from swsdist.score.compare.paired import holm, paired_t, sign_flips, wilcoxon
from tests.support.coded import raises

GRID = "config: a.yaml\npoints: {grid: {a: [1]}}\n"

#: The keys of points in a file whose third line has the key k.
HERE = reading.SweepPlace(
    {(): Origin("my.yaml", Path(), 1), ("points", "k"): Origin("my.yaml", Path(), 3)}, ("points",)
)


def test_values_and_draws_of_a_key() -> None:
    for values, expected in (
        ({"from": 1, "to": 3, "step": 0.5}, [1.0, 1.5, 2.0, 2.5, 3.0]),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, [0.1, 0.2, 0.3]),
        ({"from": 2, "to": 6, "step": 2}, [2, 4, 6]),
        ({"from": 0, "to": 1, "count": 3}, [0.0, 0.5, 1.0]),
        ({"from": 1, "to": 100, "count": 3, "scale": "log"}, [1.0, 10.0, 100.0]),
        ({"subsets": ["a", "b", "c"], "least": 2}, [["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]),
        ({"subsets": ["a", "b"], "most": 1}, [["a"], ["b"]]),
    ):
        found = [point["k"] for point in reading.grid_points({"k": values}, HERE)]
        assert (found, list(map(type, found))) == (expected, list(map(type, expected)))
    found = list(reading.grid_points({"a": [1, 2], "b": ["x", "y"]}, HERE))
    assert found == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    keys = {"u": {"uniform": [1, 3]}, "l": {"log-uniform": [0.01, 100]}, "i": {"integer": [1, 3]}}
    keys["c"] = {"choice": ["a", ["b", "c"]]}
    few, many = list(reading.draw_points(5, 7, keys, HERE)), list(reading.draw_points(200, 7, keys, HERE))
    assert many[:5] == few
    assert list(reading.draw_points(5, 8, keys, HERE)) != few
    assert [point["u"] for point in reading.draw_points(5, 7, {"u": keys["u"]}, HERE)] == [point["u"] for point in few]
    assert all(1 <= point["u"] <= 3 and 0.01 <= point["l"] <= 100 for point in many)
    assert {point["i"] for point in many} == {1, 2, 3}
    assert {str(point["c"]) for point in many} == {"a", "['b', 'c']"}
    below = sum(point["l"] < 1 for point in many)  # half of them, on a scale of logarithms
    assert 70 < below < 130


def codes_of(make: Callable[[Any], Any], cases: Iterable[tuple[Any, str, str]]) -> list[object]:
    """Those of cases (input, code, a part of the place and key) that are refused otherwise, and how."""
    wrong: list[object] = []
    for case, code, place in cases:
        with pytest.raises(ConfigError) as caught:
            make(case)
        error = caught.value
        if error.code != code or place not in str(error) or not error.remedy:
            wrong.append((case, str(error), error.remedy))
    return wrong


def test_grids_lists_and_draws_that_are_none() -> None:
    at_k, at_points = "my.yaml:3, points.k", "my.yaml:1, points"
    wide = {"from": 0, "to": 1, "count": 400}
    grids = [
        ({}, "empty-input", at_points),
        ({"k": []}, "empty-input", at_k),
        ({"k": 3}, "invalid-value", at_k),
        ({"k": {"from": 1, "to": 3}}, "conflicting-options", at_k),
        ({"k": {"from": 3, "to": 1, "step": 1}}, "invalid-value", at_k),
        ({"k": {"from": 1, "to": 3, "step": 0}}, "invalid-value", at_k),
        ({"k": {"from": 1, "to": "x", "step": 1}}, "invalid-value", at_k),
        ({"k": {"from": 0, "to": 3, "count": 4, "scale": "log"}}, "invalid-value", at_k),
        ({"k": {"from": 0, "to": 3, "cuont": 4}}, "unknown-key", at_k),
        ({"k": {"subsets": ["a"], "least": 2}}, "invalid-value", at_k),
        ({"k": {"subsets": list(range(200))}}, "too-large", at_k),
        ({"k": wide, "l": wide}, "too-large", at_points),
    ]
    assert codes_of(lambda keys: list(reading.grid_points(keys, HERE)), grids) == []
    draws = [
        ({"unifrom": [1, 2]}, "unknown-name", at_k),
        *(({"uniform": [2, 1]}, "invalid-value", at_k), ({"log-uniform": [0, 1]}, "invalid-value", at_k)),
        *(({kind: values}, "invalid-value", at_k) for kind, values in (("uniform", [1]), ("integer", [1.5, 3]))),
        ({"integer": [1.2, 1.8]}, "invalid-value", at_k),
        ([1, 2], "invalid-value", at_k),
    ]
    assert codes_of(lambda given: list(reading.draw_points(3, 0, {"k": given}, HERE)), draws) == []
    lists = [([{}, 3], "invalid-value", "my.yaml:1, points[1]"), ([], "empty-input", "")]
    assert codes_of(lambda given: list(reading.list_points(given, HERE)), lists) == []
    assert list(reading.list_points([{"a": 1}, {}], HERE)) == [{"a": 1}, {}]


_CONFIG = "config: a.yaml\n"
_REST = "points:\n  grid:\n    search.distance: [cosine, kl]\n"
#: Files, their codes and places.
WRONG_FILES = [
    ("measure: [atwv]\n" + GRID, "unknown-key", "sweep.yaml:1: measure: "),
    (_CONFIG, "missing-key", "sweep.yaml:1: points: "),
    (_CONFIG + "points: {}\n", "empty-input", ""),
    (_CONFIG + "points: {gird: {a: [1]}}\n", "unknown-key", "sweep.yaml:2: points.gird: "),
    ("points: {grid: {a: [1]}}\n", "conflicting-options", "sweep.yaml:1"),
    ("measures: [awtv]\n" + GRID, "unknown-name", ""),
    ("measures: [mtwv]\n" + GRID, "unknown-name", ""),
    ("objective: {measure: atwv, best: most}\n" + GRID, "invalid-value", "sweep.yaml:1: objective."),
    (_CONFIG + "points: {random: {draws: 0, keys: {}}}\n", "invalid-value", ""),
    (_CONFIG + "points: {random: {draws: 3, keys: {}}}\n", "empty-input", ""),
    *((text, "invalid-yaml", "") for text in ("config: [\n", "- a\n", "config: b.yaml\n" + GRID)),
]
#: Second lines, their codes and keys.
WRONG_LINES = [
    ("set: {search.distance: cosine}", "unused-option", "set.search.distance"),
    ("measures: [mtwv, atvw]", "unknown-name", "measures[1]"),
    ("objective: mtvw", "unknown-name", "objective"),
    ("objective: mtwv\nmeasures: [auc]", "unknown-name", "objective"),
    ("measures: [auc]", "unknown-name", "measures"),
    ("objective: cnxe_gamma", "unsupported", "objective"),
    ("lists: {tasks: {t: {systems: {x: y}}}}", "conflicting-options", "lists"),
]
WRONG_POINTS = [
    ("grid:\n    a: [1]\n    b: {from: 1}", "missing-input", "5, points.grid.b"),
    ("grid:\n    a: [1]\n    b: {from: 1, to: 2, stpe: 3}", "unknown-key", "5, points.grid.b"),
    ("list:\n  - {a: 1}\n  - 3", "invalid-value", "5, points.list[1]"),
    ("list:\n  - {a: 1}\n  - {run: 3}", "conflicting-options", "5, point 2 (run: 3)"),
    ("random:\n    draws: 2\n    keys: {a: {unifrom: [1, 2]}}", "unknown-name", "5, points.random.keys.a"),
    ("grid: {}", "empty-input", "3, points.grid"),
]


def test_files_that_are_wrong_and_what_every_point_sets_itself(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"

    def read(text: str) -> None:
        path.write_text(text)
        reading.read_sweep(path)

    lines = [(f"{_CONFIG}{line}\n{_REST}", code, f"sweep.yaml:2, {key}") for line, code, key in WRONG_LINES]
    points = [(f"{_CONFIG}points:\n  {some}\n", code, f"sweep.yaml:{place}") for some, code, place in WRONG_POINTS]
    assert codes_of(read, WRONG_FILES + lines + points) == []
    path = tmp_path / "sweep.yaml"
    path.write_text("config: a.yaml\npoints:\n  list:\n  - {features: [], a.b: 1}\n  - {features: []}\n")
    given = reading.read_sweep(path)
    reading.refuse_unused_sets(given, ["a.b=2", "a=3", "featuresque=1", "search.distance=cosine"], None)
    for one in ("features=x", "features.name=mfcc", "features.options.deltas=3"):
        with raises(families.UNUSED_OPTION, where=f"--set {one}"):
            reading.refuse_unused_sets(given, ["a.b=2", one], None)
    path.write_text("config: a.yaml\npoints: {grid: {corpus: [b.yaml, c.yaml]}}\n")
    with raises(families.UNUSED_OPTION, where="--corpus d.yaml", key="corpus"):
        reading.refuse_unused_sets(reading.read_sweep(path), [], "d.yaml")
    path.write_text("config: a.yaml\npoints: {random: {draws: 9, keys: {search.distance: {choice: [cosine, kl]}}}}\n")
    given = reading.read_sweep(path)
    assert (len(given.points), given.repeated, given.file.config) == (2, 7, str(tmp_path / "a.yaml"))
    signs = [reading.Objective(measure=name).sign for name in ("atwv", "mtwv", "auc", "cnxe_min", "eer")]
    assert signs == [1, 1, 1, -1, -1]
    assert reading.Objective(measure="cnxe", best="highest").sign == 1


def test_the_ready_made_sweeps_can_be_read() -> None:
    folder = Path(__file__).parents[2] / "configs/sweeps"
    sweeps = {path.stem: reading.read_sweep(path) for path in folder.glob("*.yaml")}
    # What the config's own run has searched is not searched again; all runs are in one folder.
    mboshi = load_config(folder.parent / "mboshi-dev.yaml")
    assert {Path(sweep.file.run).parent for sweep in sweeps.values()} == {Path(mboshi.run).parent}
    of_mboshi = [sweep for sweep in sweeps.values() if sweep.file.config == str(folder.parent / "mboshi-dev.yaml")]
    assert {sweep.file.run for sweep in of_mboshi} == {mboshi.run}
    sizes = {"kst_alpha": 42, "beta": 62, "features_by_distance": 9}
    assert {name: len(sweeps[name].points) for name in sizes} == sizes


TESTS = Settings(resamples=200, permutations=200)


def result(number: int, values: dict[str, float], oracle: bool = False, **scored_by: str) -> PointResult:
    point = SweepPoint(
        number, {"k": number}, f"point-{number}", "crossfit", oracle, None, scored_by, "protocol stdeval: beta 1"
    )
    return PointResult(point, {"atwv": sum(values.values()) / len(values)}, values)


def some(seed: int, names: str, level: float) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {f"{names}{k}": level + 0.1 * float(rng.random()) for k in range(12)}


def judge(*results: PointResult) -> RankedPoints:
    return rank_points(results, ["atwv"], reading.Objective(), TESTS)


def test_p_is_of_sign_flips_of_the_mean_and_points_of_other_references_change_nothing() -> None:
    """As in a comparison of systems, and Holm's of all that stand beside the best."""
    points = [result(k, some(k, "q", level)) for k, level in ((1, 0.1), (2, 0.17), (3, 0.2))]
    rows = judge(*points).table.to_pylist()
    best = [*points[2].values.values()]
    pairs = [(np.array([*point.values.values()]), np.array(best)) for point in points[:2]]
    p = [flip.p for flip in sign_flips(pairs, draws=TESTS.permutations, seed=TESTS.seed)]
    assert [row["p_sign_flip"] for row in rows] == [*p, None]
    assert [row["p_holm"] for row in rows] == holm([*p, None])
    assert rows[1]["p_wilcoxon"] != rows[1]["p_sign_flip"]
    first = [result(k, some(k, "q", k / 10), references="a.csv") for k in (1, 2)]
    second = [result(k, some(k, "r", k / 10), references="b.csv") for k in (3, 4, 5)]
    found = judge(first[0], *second, first[1])
    assert [one.scored_by for one in found.rankings] == ["references: a.csv", "references: b.csv"]
    assert [one.best for one in found.rankings] == [(2, 1), (5, 4, 3)]
    assert found.best == (2, 5)
    rows = {row["point"]: row for row in found.table.to_pylist()}
    for alone in (judge(*first), judge(*second)):
        for row in alone.table.to_pylist():
            names = ("atwv_low", "atwv_high", "p_wilcoxon", "p_holm", "p_max_t", "difference", "rank")
            assert [rows[row["point"]][name] for name in names] == [row[name] for name in names]
    for row in rows.values():  # the mean lies in its interval, which no query that is missing has pulled down
        assert row["atwv_low"] <= row["atwv"] <= row["atwv_high"]
    assert rows[5]["p_max_t"] is None
    assert rows[2]["difference"] == 0.0


def test_an_oracle_ranks_beside_none_but_oracles_and_what_follows_from_another_key_is_not_told() -> None:
    found = judge(
        result(1, some(1, "q", 0.1), beta="1"),
        result(2, some(2, "q", 0.9), oracle=True, beta="1"),
        result(3, some(3, "q", 0.8), oracle=True, beta="2"),
    )
    assert [one.best for one in found.rankings] == [(1,), (3,)]
    assert [row["rank"] for row in found.table.to_pylist()] == [1, None, 1]
    found = judge(*(result(k, some(k, "q", 0.5), beta=f"{k % 2}", cost=f"{k % 2}", tolerance="1") for k in range(1, 5)))
    assert [one.scored_by for one in found.rankings] == ["beta: 1", "beta: 0"]


@pytest.mark.parametrize("values", [{}, {"q1": 0.5}])
def test_a_way_of_scoring_without_values_of_queries_is_untested(values: dict[str, float]) -> None:
    whole = PointResult(result(1, {"q": 0.5}, beta="1").point, {"atwv": 0.5}, values)
    found = judge(whole, result(2, some(2, "q", 0.4), beta="2"))
    assert [one.tested for one in found.rankings] == [bool(values), True]
    assert (found.table.to_pylist()[0]["atwv_low"] is None) == (not values)


def test_what_normalises_queries_is_nothing_that_is_scored_by() -> None:
    corpus = {"documents": "d.csv", "queries": "q.csv", "references": "r.csv", "queries_from": {"documents": "e.csv"}}
    alike = ("statistics=ours", "hours=0.1", "same_speakers=true", "speakers=speakers.csv", "prefer=[wav, flac]")
    keys = {**{f"queries_from.{key}": True for key in alike}, "speakers=speakers.csv": True}
    for key, same in (keys | {"queries_from.documents=elsewhere.csv": False, "references=others.csv": False}).items():
        sets = ([], [f"corpus.{key}"])
        first, second = (config_from_dict({"corpus": corpus, "run": "run"}, ".", each) for each in sets)
        assert first.corpus != second.corpus
        assert (scored_by(first) == scored_by(second)) is same, key


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


def test_a_grid_has_curves_and_a_map_and_the_page_stands_alone() -> None:
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


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_name_is_one_cell(one: str, other: str) -> None:
    """Whatever a name holds, LaTeX and Markdown see one row of two cells, and no command of the name's own."""
    table = Table("t", ("a", "b"), [(one, other)])
    text = latex([table])
    row = text.split("\\midrule\n")[1].split("\n\\bottomrule")[0]
    assert "\n" not in row
    # Without what stands for a letter, nothing that LaTeX obeys is left but the end of the cell and of the row.
    bare = re.sub(
        r"\\(text[a-z]+|dots)\{\}|\{\\char34\}|\$(\\[a-z]+|-)\$|\\[&%$#_{}]|-\{\}", "", row.removesuffix(r" \\")
    )
    bare = re.sub(r"^\{([\[*])\}", r"\1", bare)
    assert bare.count("&") == 1
    assert not set(bare) & set('\\{}$%#_~^<>|`"')
    lines = markdown([table]).splitlines()
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[4])) == 3


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


def test_axes_of_det_are_probits_and_any_text_is_valid() -> None:
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
    histogram = ScoreHistogram(np.array([0.0, 1.0]), np.array([1]), np.array([5]))
    for svg in (
        det_svg([Line(HOSTILE, [0.1], [0.1], (Mark(HOSTILE, 0.1, 0.1),))], title=HOSTILE),
        histogram_svg(histogram, [(HOSTILE, 0.5)], title=HOSTILE),
    ):
        root = ElementTree.fromstring(svg.encode("utf-8"))
        assert root.get("aria-label", "").startswith("<script>&\"'")
        assert "<script" not in svg


TRIALS_N, BETA = 3600, 66.66


def aligned(seed: int, queries: int = 30) -> pa.Table:
    """Probabilities of terms of all frequencies, right as often as they say, and a missed occurrence each."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(queries):
        base = {"query_id": f"kw{k:02d}", "doc_id": "d", "channel": 1}
        rows.append({**base, "ref_start": 0.0})
        for p in rng.beta(0.2, 0.8, int(rng.integers(1, 60))).tolist():
            rows.append({**base, "start": 1.0, "score": p, "ref_start": 1.0 if rng.random() < p else None})
    return pa.Table.from_pylist(rows, TRIALS)


def entry(name: str, seed: int) -> StudyEntry:
    scored = Rescoring.of_list(aligned(seed), tolerance=None, conventions="stdeval")
    return StudyEntry(name, "task", scored, TRIALS_N, BETA)


@pytest.fixture(scope="module")
def three() -> Study:
    return study([entry(f"system {k}", k) for k in range(3)])


def test_the_best_alpha_is_that_of_the_mean_and_breakdowns_add_up(three: Study) -> None:
    for method in ("kst", "sto"):
        mean = np.mean([one.curves[method] for one in three.systems], axis=0)
        assert three.mean[method] == pytest.approx(mean, abs=1e-15)
        assert three.best[method] == three.alphas[np.flatnonzero(mean >= mean.max() - 1e-12)[0]]
        assert three.atwv[method] == pytest.approx(mean.max(), abs=1e-12)
    pairs = [[one.atwv[method] for one in three.systems] for method in ("kst", "sto")]
    assert three.over_systems.t == paired_t(*pairs)
    assert three.over_systems.wilcoxon == wilcoxon(*pairs)
    by_sum, by_ntrue, single = three.by_sum, three.by_ntrue, three.systems[0]
    assert math.fsum(by_sum.total) == pytest.approx(three.atwv["kst"] - three.atwv["sto"], abs=1e-12)
    assert by_sum.terms.sum() == pytest.approx(30)
    assert math.fsum(by_ntrue.total) == pytest.approx(single.atwv["kst"] - single.atwv["oracle-kst"], abs=1e-12)
    assert by_ntrue.terms.tolist() == [float((single.entry.sweep.ntrue == n).sum()) for n in by_ntrue.edges[:-1]]
    for found in (by_sum, by_ntrue):
        assert (found.per_term * found.terms).tolist() == pytest.approx(found.total.tolist(), abs=1e-15)
        assert np.diff(found.edges).tolist() == [1.0] * len(found.total)


def test_one_system_has_no_test_over_systems_and_a_given_alpha_is_taken() -> None:
    found = study([entry("one", 0)], alphas=[1.0, 2.0], alpha=1.5)
    assert (found.best, found.chosen) == ({"kst": 1.5, "sto": 1.5}, True)
    assert not any(found.over_systems)
    assert json.loads(study_json(found))["over_systems"] == dict.fromkeys(found.over_systems._fields)
    assert not [line for line in lines_of_study(found) if "end of what was tried" in line]
    assert any("end of what was tried" in one for one in lines_of_study(study([entry("one", 0)], alphas=[40.0, 50.0])))
    with raises(families.EMPTY_INPUT):
        study([])
    with raises(calibrate_codes.DUPLICATE_SYSTEM_NAME, name="one"):
        study([entry("one", 0), entry("one", 1)])
    with raises(score_codes.VALUE_NOT_POSITIVE, name="alpha"):
        study([entry("one", 0)], alphas=[0.0, 1.0])
    with raises(calibrate_codes.DUPLICATE_SYSTEM_NAME, name="list"):
        named_paths(("a/list.xml", "b/list.xml"))
    assert ALPHAS.tolist() == [round(1 + k / 10, 1) for k in range(21)]  # those of the source


def test_the_page_of_the_sweep_shows_it_and_escapes(three: Study) -> None:
    single = three.systems[0]
    hostile = replace(single, entry=replace(single.entry, name="<script>&\"'"))
    shown = replace(three, systems=(hostile, *three.systems[1:]))
    points = pa.table({"point": [1], "atwv": [0.5], "failed": [None], "oracle": [False]})
    given = ("a sweep", points, (), ("atwv",), "atwv", False, (Ranking("", (1,), False),), 0.95)
    page = render_sweep(SweepData(*given, more=tuple(captioned_figures(shown)), tables=tuple(study_tables(shown))))
    assert "<script>&" not in page
    assert "&lt;script&gt;&amp;" in page
    assert not re.findall(r"(?:src|href)=", page)
    assert re.findall(r"<figcaption>Figure (\d)\.", page) == list("2345678")
    assert all(f'<td class="n">{row[3]}</td>' in page for row in study_tables(shown)[0].rows)


def test_plots_of_nothing_and_of_one_value_are_drawn() -> None:
    axes = Axes("x", "y")
    for svg in (
        lines_svg([], axes, title="t"),
        lines_svg([Series("a", [1.0], [2.0])], axes, marks=[(1.0, 2.0, 1)], title="t"),
        lines_svg([Series("a", [1.0, 2.0, 3.0], [2.0, math.nan, 2.0])], axes, title="<&>"),
        dots_svg([], [], axes, diagonal=True, title="t"),
        dots_svg([0.0, 0.0], [0.0, 0.0], axes, title="t"),
        bars_svg([0.0, 1.0], [0.0], axes, title="t"),
    ):
        assert ElementTree.fromstring(svg).tag == NS + "svg"
        assert "nan" not in svg
        assert ElementTree.fromstring(side_by_side([svg, svg], title="two")).get("width") == "920"
    # Bars reach what they say: two of one sign, the second twice the first, and one of the other.
    boxes = list(ElementTree.fromstring(bars_svg([0, 1, 2, 3], [1.0, 2.0, -1.0], axes, title="t")).iter(NS + "rect"))
    assert [float(box.get("height") or 0) / float(boxes[0].get("height") or 0) for box in boxes] == pytest.approx(
        [1, 2, 1], abs=0.01
    )
    assert [box.get("class") for box in boxes] == ["area line0", "area line0", "area line1"]
