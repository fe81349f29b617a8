"""A sweep's file and its points: grids, lists, draws, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdist.chains.sweep.reading import (
    SweepPlace,
    draw_points,
    grid_points,
    list_points,
    read_sweep,
    refuse_unused_sets,
)
from swsdist.config import load_config
from swsdist.config.reading import Origin
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from tests.support.coded import raises

GRID = "config: a.yaml\npoints: {grid: {a: [1]}}\n"

#: The keys of points in a file whose third line has the key k.
HERE = SweepPlace({(): Origin("my.yaml", Path(), 1), ("points", "k"): Origin("my.yaml", Path(), 3)}, ("points",))


def test_a_grid_has_every_combination_the_last_key_the_fastest() -> None:
    found = list(grid_points({"a": [1, 2], "b": ["x", "y"]}, HERE))
    assert found == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"from": 1, "to": 3, "step": 0.5}, [1.0, 1.5, 2.0, 2.5, 3.0]),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, [0.1, 0.2, 0.3]),
        ({"from": 2, "to": 6, "step": 2}, [2, 4, 6]),
        ({"from": 0, "to": 1, "count": 3}, [0.0, 0.5, 1.0]),
        ({"from": 1, "to": 100, "count": 3, "scale": "log"}, [1.0, 10.0, 100.0]),
        ({"subsets": ["a", "b", "c"], "least": 2}, [["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]),
        ({"subsets": ["a", "b"], "most": 1}, [["a"], ["b"]]),
    ],
)
def test_values_of_a_key(values: object, expected: list[object]) -> None:
    found = [point["k"] for point in grid_points({"k": values}, HERE)]
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({}, "[empty-input]"),
        ({"k": []}, "[empty-input]"),
        ({"k": 3}, "3 is neither a list nor a range of values [invalid-value]"),
        ({"k": {"from": 1, "to": 3}}, "[conflicting-options]"),
        ({"k": {"from": 3, "to": 1, "step": 1}}, "no values from 3 to 1 by 1"),
        ({"k": {"from": 1, "to": 3, "step": 0}}, "no values from 1 to 3 by 0"),
        ({"k": {"from": 1, "to": "x", "step": 1}}, "to is x, not a finite number"),
        ({"k": {"from": 0, "to": 3, "count": 4, "scale": "log"}}, "[invalid-value]"),
        ({"k": {"from": 0, "to": 3, "cuont": 4}}, "did you mean count?"),
        ({"k": {"subsets": ["a"], "least": 2}}, "1 members have no subsets of 2 to 1 members"),
        ({"k": {"subsets": list(range(200))}}, "[too-large]"),
        ({"k": {"from": 0, "to": 1, "count": 400}, "l": {"from": 0, "to": 1, "count": 400}}, "160000 points"),
    ],
)
def test_grids_that_are_none(keys: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        list(grid_points(keys, HERE))
    assert complaint in str(caught.value)
    assert ("my.yaml:3, points.k" if "k" in keys and len(keys) == 1 else "my.yaml:1, points") in str(caught.value)


def test_further_draws_leave_the_first_as_they_are() -> None:
    keys = {
        "u": {"uniform": [1, 3]},
        "l": {"log-uniform": [0.01, 100]},
        "i": {"integer": [1, 3]},
        "c": {"choice": ["a", ["b", "c"]]},
    }
    few, many = list(draw_points(5, 7, keys, HERE)), list(draw_points(200, 7, keys, HERE))
    assert many[:5] == few
    assert list(draw_points(5, 8, keys, HERE)) != few
    assert [point["u"] for point in draw_points(5, 7, {"u": keys["u"]}, HERE)] == [point["u"] for point in few]
    assert all(1 <= point["u"] <= 3 and 0.01 <= point["l"] <= 100 for point in many)
    assert {point["i"] for point in many} == {1, 2, 3}
    assert {str(point["c"]) for point in many} == {"a", "['b', 'c']"}
    below = sum(point["l"] < 1 for point in many)  # half of them, on a scale of logarithms
    assert 70 < below < 130


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"unifrom": [1, 2]}, "did you mean uniform?"),
        ({"uniform": [2, 1]}, "uniform from 2 to 1 has no values"),
        ({"log-uniform": [0, 1]}, "log-uniform from 0 to 1 has no values"),
        ({"uniform": [1]}, "uniform are [1] [invalid-value]"),
        ({"integer": [1.5, 3]}, "integer are [1.5, 3] [invalid-value]"),
        ({"integer": [1.2, 1.8]}, "integer are [1.2, 1.8] [invalid-value]"),
        ([1, 2], "[1, 2] is not a distribution"),
    ],
)
def test_distributions_that_are_none(given: object, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        list(draw_points(3, 0, {"k": given}, HERE))
    assert complaint in str(caught.value)


def test_a_list_holds_mappings() -> None:
    assert list(list_points([{"a": 1}, {}], HERE)) == [{"a": 1}, {}]
    with raises(families.INVALID_VALUE, where="my.yaml:1, points[1]", value="3"):
        list(list_points([{}, 3], HERE))
    with raises(families.EMPTY_INPUT):
        list(list_points([], HERE))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "measure: [atwv]\n" + GRID,
            "sweep.yaml:1: measure: unknown key; did you mean measures? [unknown-key]",
        ),
        ("config: a.yaml\n", "points: missing key [missing-key]"),
        ("config: a.yaml\npoints: {}\n", "[empty-input]"),
        ("config: a.yaml\npoints: {gird: {a: [1]}}\n", "did you mean grid?"),
        ("points: {grid: {a: [1]}}\n", "sweep.yaml:1: a sweep needs either config or lists"),
        ("measures: [awtv]\n" + GRID, "unknown measure 'awtv'; did you mean atwv?"),
        ("measures: [mtwv]\n" + GRID, "the objective atwv is not among the measures"),
        ("objective: {measure: atwv, best: most}\n" + GRID, "'highest' or 'lowest'"),
        ("config: a.yaml\npoints: {random: {draws: 0, keys: {}}}\n", "greater than 0"),
        ("config: a.yaml\npoints: {random: {draws: 3, keys: {}}}\n", "[empty-input]"),
        ("config: [\n", "[invalid-yaml]"),
        ("- a\n", "[invalid-yaml]"),
        ("config: b.yaml\n" + GRID, "[invalid-yaml]"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_sweep(path)
    assert complaint in str(caught.value)
    assert "remedy: " in str(caught.value)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("set: {search.distance: cosine}", "sweep.yaml:2, set.search.distance: search.distance is set for all points"),
        ("measures: [mtwv, atvw]", "sweep.yaml:2, measures[1]: unknown measure 'atvw'; did you mean atwv?"),
        ("objective: mtvw", "sweep.yaml:2, objective: unknown measure 'mtvw'; did you mean mtwv?"),
        ("objective: mtwv\nmeasures: [auc]", "sweep.yaml:2, objective: the objective mtwv is not among"),
        ("measures: [auc]", "sweep.yaml:2, measures: the objective atwv is not among"),
        ("objective: cnxe_gamma", "sweep.yaml:2, objective: neither the highest nor the lowest cnxe_gamma is best"),
        ("lists: {tasks: {t: {systems: {x: y}}}}", "sweep.yaml:2, lists: a sweep needs either config or lists"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, line: str, place: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(f"config: a.yaml\n{line}\npoints:\n  grid:\n    search.distance: [cosine, kl]\n")
    with pytest.raises(ConfigError) as caught:
        read_sweep(path)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("points", "place"),
    [
        (
            "grid:\n    a: [1]\n    b: {from: 1}",
            "sweep.yaml:5, points.grid.b: a range needs `to` [missing-input]",
        ),
        ("grid:\n    a: [1]\n    b: {from: 1, to: 2, stpe: 3}", "sweep.yaml:5, points.grid.b: unknown key stpe"),
        ("list:\n  - {a: 1}\n  - 3", "sweep.yaml:5, points.list[1]: 3 is not a point"),
        ("list:\n  - {a: 1}\n  - {run: 3}", "sweep.yaml:5, point 2 (run: 3): run cannot differ"),
        (
            "random:\n    draws: 2\n    keys: {a: {unifrom: [1, 2]}}",
            "sweep.yaml:5, points.random.keys.a: unknown distribution",
        ),
        ("grid: {}", "sweep.yaml:3, points.grid: the grid is empty"),
    ],
)
def test_points_name_their_line(tmp_path: Path, points: str, place: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(f"config: a.yaml\npoints:\n  {points}\n")
    with pytest.raises(ConfigError) as caught:
        read_sweep(path)
    assert place in str(caught.value)


def test_what_every_point_sets_itself_cannot_be_set_for_all(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("config: a.yaml\npoints:\n  list:\n  - {features: [], a.b: 1}\n  - {features: []}\n")
    given = read_sweep(path)
    refuse_unused_sets(given, ["a.b=2", "a=3", "featuresque=1", "search.distance=cosine"], None)
    for one in ("features=x", "features.name=mfcc", "features.options.deltas=3"):
        with pytest.raises(ConfigError) as caught:
            refuse_unused_sets(given, ["a.b=2", one], None)
        assert f"--set {one}: {one.split('=')[0]} is set for all points and has no effect" in str(caught.value)
        assert "every point sets features itself, the first in " + f"{path}:4" in str(caught.value)
    path.write_text("config: a.yaml\npoints: {grid: {corpus: [b.yaml, c.yaml]}}\n")
    with raises(families.UNUSED_OPTION, where="--corpus d.yaml", key="corpus"):
        refuse_unused_sets(read_sweep(path), [], "d.yaml")


def test_a_draw_that_is_there_already_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("config: a.yaml\npoints: {random: {draws: 9, keys: {search.distance: {choice: [cosine, kl]}}}}\n")
    given = read_sweep(path)
    assert len(given.points) == 2
    assert given.repeated == 7
    assert given.file.config == str(tmp_path / "a.yaml")


def test_what_is_best() -> None:
    from swsdist.chains.sweep.reading import Objective

    assert [Objective(measure=name).sign for name in ("atwv", "mtwv", "auc", "cnxe_min", "eer")] == [1, 1, 1, -1, -1]
    assert Objective(measure="cnxe", best="highest").sign == 1


def test_the_ready_made_sweeps_can_be_read() -> None:
    folder = Path(__file__).parents[2] / "configs/sweeps"
    sweeps = {path.stem: read_sweep(path) for path in folder.glob("*.yaml")}
    sizes = {name: len(sweep.points) for name, sweep in sweeps.items()}
    # What the config's own run has searched is not searched again; all runs are in one folder.
    mboshi = load_config(folder.parent / "mboshi-dev.yaml")
    assert {Path(sweep.file.run).parent for sweep in sweeps.values()} == {Path(mboshi.run).parent}
    of_mboshi = [sweep for sweep in sweeps.values() if sweep.file.config == str(folder.parent / "mboshi-dev.yaml")]
    assert {sweep.file.run for sweep in of_mboshi} == {mboshi.run}
    assert sizes["kst_alpha"] == 42
    assert sizes["beta"] == 62
    assert sizes["features_by_distance"] == 9
