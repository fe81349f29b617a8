"""A sweep's file, its points, and which of them are ranked and tested against each other."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.chains.sweep.chain import PointResult
from swsdist.chains.sweep.planning import SweepPoint, scored_by
from swsdist.chains.sweep.reading import (
    Objective,
    SweepPlace,
    draw_points,
    grid_points,
    list_points,
    read_sweep,
    refuse_unused_sets,
)
from swsdist.chains.sweep.reading import Tests as Settings
from swsdist.chains.sweep.sweep import RankedPoints, rank_points
from swsdist.config import config_from_dict, load_config
from swsdist.config.reading import Origin
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.score.compare.paired import holm, sign_flips
from tests.support.coded import raises

GRID = "config: a.yaml\npoints: {grid: {a: [1]}}\n"

#: The keys of points in a file whose third line has the key k.
HERE = SweepPlace({(): Origin("my.yaml", Path(), 1), ("points", "k"): Origin("my.yaml", Path(), 3)}, ("points",))


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
        found = [point["k"] for point in grid_points({"k": values}, HERE)]
        assert (found, list(map(type, found))) == (expected, list(map(type, expected)))
    found = list(grid_points({"a": [1, 2], "b": ["x", "y"]}, HERE))
    assert found == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    keys = {"u": {"uniform": [1, 3]}, "l": {"log-uniform": [0.01, 100]}, "i": {"integer": [1, 3]}}
    keys["c"] = {"choice": ["a", ["b", "c"]]}
    few, many = list(draw_points(5, 7, keys, HERE)), list(draw_points(200, 7, keys, HERE))
    assert many[:5] == few
    assert list(draw_points(5, 8, keys, HERE)) != few
    assert [point["u"] for point in draw_points(5, 7, {"u": keys["u"]}, HERE)] == [point["u"] for point in few]
    assert all(1 <= point["u"] <= 3 and 0.01 <= point["l"] <= 100 for point in many)
    assert {point["i"] for point in many} == {1, 2, 3}
    assert {str(point["c"]) for point in many} == {"a", "['b', 'c']"}
    below = sum(point["l"] < 1 for point in many)  # half of them, on a scale of logarithms
    assert 70 < below < 130


def codes_of(make: Callable[[Any], Any], cases: Iterable[tuple[Any, str, str]]) -> list[object]:
    """Those of cases (input, code, a part of the place) that are refused otherwise, and how."""
    wrong: list[object] = []
    for given, code, place in cases:
        with pytest.raises(ConfigError) as caught:
            make(given)
        error = caught.value
        if error.code != code or place not in str(error.where) or not error.remedy:
            wrong.append((given, str(error), error.remedy))
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
    assert codes_of(lambda keys: list(grid_points(keys, HERE)), grids) == []
    draws = [
        ({"unifrom": [1, 2]}, "unknown-name", at_k),
        *(({"uniform": [2, 1]}, "invalid-value", at_k), ({"log-uniform": [0, 1]}, "invalid-value", at_k)),
        *(({kind: values}, "invalid-value", at_k) for kind, values in (("uniform", [1]), ("integer", [1.5, 3]))),
        ({"integer": [1.2, 1.8]}, "invalid-value", at_k),
        ([1, 2], "invalid-value", at_k),
    ]
    assert codes_of(lambda given: list(draw_points(3, 0, {"k": given}, HERE)), draws) == []
    lists = [([{}, 3], "invalid-value", "my.yaml:1, points[1]"), ([], "empty-input", "")]
    assert codes_of(lambda given: list(list_points(given, HERE)), lists) == []
    assert list(list_points([{"a": 1}, {}], HERE)) == [{"a": 1}, {}]


_CONFIG = "config: a.yaml\n"
_REST = "points:\n  grid:\n    search.distance: [cosine, kl]\n"
#: Files, their codes and places.
WRONG_FILES = [
    ("measure: [atwv]\n" + GRID, "unknown-key", "sweep.yaml:1"),
    (_CONFIG, "missing-key", "sweep.yaml:1"),
    (_CONFIG + "points: {}\n", "empty-input", ""),
    (_CONFIG + "points: {gird: {a: [1]}}\n", "unknown-key", ""),
    ("points: {grid: {a: [1]}}\n", "conflicting-options", "sweep.yaml:1"),
    ("measures: [awtv]\n" + GRID, "unknown-name", ""),
    ("measures: [mtwv]\n" + GRID, "unknown-name", ""),
    ("objective: {measure: atwv, best: most}\n" + GRID, "invalid-value", ""),
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


def test_files_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"

    def read(text: str) -> None:
        path.write_text(text)
        read_sweep(path)

    lines = [(f"{_CONFIG}{line}\n{_REST}", code, f"sweep.yaml:2, {key}") for line, code, key in WRONG_LINES]
    points = [(f"{_CONFIG}points:\n  {some}\n", code, f"sweep.yaml:{place}") for some, code, place in WRONG_POINTS]
    assert codes_of(read, WRONG_FILES + lines + points) == []


def test_what_every_point_sets_itself_cannot_be_set_for_all(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("config: a.yaml\npoints:\n  list:\n  - {features: [], a.b: 1}\n  - {features: []}\n")
    given = read_sweep(path)
    refuse_unused_sets(given, ["a.b=2", "a=3", "featuresque=1", "search.distance=cosine"], None)
    for one in ("features=x", "features.name=mfcc", "features.options.deltas=3"):
        with raises(families.UNUSED_OPTION, where=f"--set {one}"):
            refuse_unused_sets(given, ["a.b=2", one], None)
    path.write_text("config: a.yaml\npoints: {grid: {corpus: [b.yaml, c.yaml]}}\n")
    with raises(families.UNUSED_OPTION, where="--corpus d.yaml", key="corpus"):
        refuse_unused_sets(read_sweep(path), [], "d.yaml")
    path.write_text("config: a.yaml\npoints: {random: {draws: 9, keys: {search.distance: {choice: [cosine, kl]}}}}\n")
    given = read_sweep(path)
    assert (len(given.points), given.repeated, given.file.config) == (2, 7, str(tmp_path / "a.yaml"))
    signs = [Objective(measure=name).sign for name in ("atwv", "mtwv", "auc", "cnxe_min", "eer")]
    assert signs == [1, 1, 1, -1, -1]
    assert Objective(measure="cnxe", best="highest").sign == 1


def test_the_ready_made_sweeps_can_be_read() -> None:
    folder = Path(__file__).parents[2] / "configs/sweeps"
    sweeps = {path.stem: read_sweep(path) for path in folder.glob("*.yaml")}
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
    return rank_points(results, ["atwv"], Objective(), TESTS)


def test_p_is_of_sign_flips_of_the_mean() -> None:
    """As in a comparison of systems, and Holm's of all that stand beside the best."""
    points = [result(k, some(k, "q", level)) for k, level in ((1, 0.1), (2, 0.17), (3, 0.2))]
    rows = judge(*points).table.to_pylist()
    best = [*points[2].values.values()]
    pairs = [(np.array([*point.values.values()]), np.array(best)) for point in points[:2]]
    p = [flip.p for flip in sign_flips(pairs, draws=TESTS.permutations, seed=TESTS.seed)]
    assert [row["p_sign_flip"] for row in rows] == [*p, None]
    assert [row["p_holm"] for row in rows] == holm([*p, None])
    assert rows[1]["p_wilcoxon"] != rows[1]["p_sign_flip"]


def test_points_of_other_references_change_nothing_of_the_others() -> None:
    """Their queries are others, so there are no pairs: intervals and tests are those of each way of scoring alone."""
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
