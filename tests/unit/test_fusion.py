"""Lists of several systems become one, missing scores by hand, and the weights of a fusion."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate import fusion
from swsdist.calibrate.procedure import Procedure, by_fold, fit_procedure, fold_of, make_steps
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.calibrate.steps.logistic import fit_logistic, fusions_in
from swsdist.core.codes import families
from swsdist.core.codes import fuse as fusion_codes
from swsdist.core.codes import score as calibrate_codes
from swsdist.core.errors import UserError
from swsdist.core.types import JOINED, JOINED_TRIALS
from swsdist.kernels.regression import Labelled
from tests.oracles.joining import joined as oracle
from tests.support.coded import raises

NAN = math.nan


def joined(rows: list[tuple[float, ...]], systems: str = "abc") -> pa.Table:
    """A joined list of such scores, one detection a second."""
    size = len(rows)
    columns = {"query_id": ["q"] * size, "doc_id": ["d"] * size, "channel": pa.array([1] * size, pa.int32())}
    times = {"start": [float(k) for k in range(size)], "end": [k + 0.5 for k in range(size)], "score": [0.0] * size}
    scores = np.array(rows, np.float64).reshape(size, -1)
    return fusion.with_parts(pa.table(columns | times), list(systems[: scores.shape[1]]), scores, ~np.isnan(scores))


def replaced(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def scores_of(table: pa.Table) -> list[list[float]]:
    """Of each row, in the order of time."""
    return fusion.parts_of(table.sort_by("start"))[1].tolist()


def listed(*scores: float, query: str = "q") -> pa.Table:
    """A system's detections of a query."""
    rows = len(scores)
    return pa.table({"query_id": [query] * rows, "doc_id": ["d"] * rows, "score": list(scores)})


NOTHING = fusion.standardise_lists({}, standardise=False)[1]


def test_missing_scores_and_scores_made_comparable_by_query() -> None:
    found = fusion.impute_scores(joined([(1.0, NAN, 4.0), (NAN, 7.0, NAN), (1.0, 2.0, 3.0)]), "average", NOTHING)
    assert scores_of(found.table) == [[1.0, 2.5, 4.0], [7.0, 7.0, 7.0], [1.0, 2.0, 3.0]]
    assert found.table.sort_by("start")["score"].to_pylist() == [2.5, 7.0, 2.0]
    assert (found.average, found.least) == (3, 0)
    assert fusion.parts_of(found.table.sort_by("start"))[2].tolist()[1] == [False, True, False]
    assert found.table["score"].to_pylist() == [7.0, 2.5, 2.0]  # in total order
    lists = {"a": listed(-1.0, 2.0), "b": listed(-2.0)}
    _, known = fusion.standardise_lists(lists, standardise=False)
    found = fusion.impute_scores(joined([(1.0, NAN, 4.0), (NAN, 7.0, NAN)]), "least", known)
    # Of c nothing is known: there the average of those that were given.
    assert scores_of(found.table) == [[1.0, -2.0, 4.0], [-1.0, 7.0, 7.0]]
    assert (found.average, found.least) == (1, 2)
    table = joined([(1.0, NAN), (2.0, NAN)])
    place = {name: table[name].slice(0, 1) for name in ("query_id", "doc_id", "channel", "start", "end")}
    names, scores, given = fusion.parts_of(
        fusion.with_rescored(table, pa.table({**place, "system": ["b"], "score": [-3.0]}))
    )
    assert names == ("a", "b")
    np.testing.assert_array_equal(scores, [[1.0, -3.0], [2.0, NAN]])
    assert given.tolist() == [[True, False], [True, False]]
    table, one = listed(2.0, 4.0, 6.0), listed(2.0, query="alone")
    lists, known = fusion.standardise_lists({"a": pa.concat_tables([table, one])}, standardise=True)
    deviation = math.sqrt(8 / 3)
    assert lists["a"]["score"].to_pylist() == [-2.0 / deviation, 0.0, 2.0 / deviation, 0.0]
    rows = {row["query_id"]: row for row in known.to_pylist()}
    assert rows["q"] == {"system": "a", "query_id": "q", "mean": 4.0, "deviation": deviation, "least": -2.0 / deviation}
    assert rows["alone"]["deviation"] == 1.0
    as_they_are, known = fusion.standardise_lists({"a": table}, standardise=False)
    assert as_they_are["a"].equals(table)
    assert known["least"].to_pylist() == [2.0]


def labelled(seed: int, rows: int = 3000, systems: int = 2) -> pa.Table:
    """An aligned joined list of systems with independent errors, each half as informative as the one before; 10 queries."""
    rng = np.random.default_rng(seed)
    hit = rng.random(rows) < 0.3
    scores = np.round(rng.normal(np.outer(hit, 2.0 ** (1 - np.arange(systems))), 1.0), 2)
    table = joined([tuple(row) for row in scores])
    table = replaced(table, "query_id", pa.array([f"q{k % 10}" for k in range(rows)]))
    reference = pa.array(np.where(hit, 1.0, NAN), mask=~hit)
    table = table.append_column("ref_start", reference).append_column("ref_end", reference)
    return table.select(JOINED_TRIALS.names).cast(JOINED_TRIALS)


def test_systems_weigh_what_they_know_and_marks_tell_what_was_not_found() -> None:
    """Normal scores of unit variance, means 2 and 1 apart: the log-odds ratio is 2 s1 + s2 and a constant."""
    table = labelled(1)
    rows = fusion.label_rows(table, marks=False)
    found = fusion.fit_fusion([rows])
    assert found.weights == (pytest.approx(2.0, abs=0.2), pytest.approx(1.0, abs=0.15))
    order = np.random.default_rng(2).permutation(table.num_rows)
    halves = [fusion.label_rows(table.take(pa.array(part)), marks=False) for part in (order[:1000], order[1000:])]
    assert fusion.fit_fusion(halves[::-1]) == found
    table = labelled(3, systems=1)
    once = fusion.fit_fusion([fusion.label_rows(table, marks=False)])
    _, scores, given = fusion.parts_of(table)
    one = fit_logistic(Labelled.of(replaced(table, "score", pa.array(scores[:, 0]))))
    assert (once.weights, once.offset) == ((one.slope,), one.offset)
    # The same system twice shares its weight.
    twice = fusion.with_parts(table.select(JOINED.names[:6]), ["a", "b"], scores[:, [0, 0]], given[:, [0, 0]])
    found = fusion.fit_fusion([fusion.label_rows(replaced(table, "parts", twice["parts"]), marks=False)])
    assert found.weights[0] == pytest.approx(found.weights[1])
    assert sum(found.weights) == pytest.approx(once.weights[0], rel=1e-4)
    table, rng = labelled(11), np.random.default_rng(11)
    hit = table["ref_start"].is_valid().to_numpy()
    names, scores, given = fusion.parts_of(table)
    given[:, 1] = hit | (rng.random(len(hit)) < 0.3)
    parts = fusion.with_parts(table.select(JOINED.names[:6]), list(names), np.zeros_like(scores), given)["parts"]
    found = fusion.fit_fusion([fusion.label_rows(replaced(table, "parts", parts), marks=True)])
    assert found.weights == (0.0, 0.0)
    assert found.marks[1] < -3


def test_the_prior_of_the_operating_point_makes_a_likelihood_ratio_over_all_trials() -> None:
    """Among 1000 trials of each query, of which few were listed, a detection is a stronger sign than its list alone says."""
    table = labelled(7)
    rows = fusion.label_rows(table, marks=False)
    point = TwvParameters(trials=3000, beta=30.0)
    (step,) = make_steps(["fusion"], {})
    model = step.fit([step.gather(table, None, point)], point)
    assert model is not None
    llr = step.apply(table, model, None, point)
    hit = table["ref_start"].is_valid().to_numpy()
    trials = 3000 * 10 - int(hit.sum())
    target, other = np.exp(-llr[hit]).sum() / hit.sum(), np.exp(llr[~hit]).sum() / trials
    # Of a likelihood ratio: E[1/lr | target] is the part of non-targets that was listed, E[lr | non-target] all targets' part.
    assert target == pytest.approx((~hit).sum() / trials, rel=0.35)
    assert other == pytest.approx(1.0, rel=0.35)
    assert step.threshold(point) == pytest.approx(math.log(30))
    assert fusion.fit_fusion([rows], trials=10, prior=0.1) == fusion.fit_fusion(
        [rows], prior=0.1
    )  # more listed than trials


def test_folds_are_fitted_on_the_others_and_saved() -> None:
    table, point = labelled(13), TwvParameters(3000, 30.0)
    procedure = Procedure(make_steps(["fusion"], {}), point)
    how = {"folds": 3, "own_threshold": True, "point": point, "trained_on": {"list": "x"}}
    found = fit_procedure(lambda: [table], procedure, **how)
    models = fusions_in(json.loads(found.to_json()))
    assert (len(models), models[0].systems) == (3, ("a", "b"))
    assert found.thresholds == (pytest.approx(math.log(30)),)
    assert Procedure.from_run(found.to_json()).scores(table).equals(found.scores(table))
    # Nothing of a query reaches its own score: with other labels it has the same.
    mine = pc.equal(table["query_id"], "q3")
    wrong = pc.if_else(mine, pc.if_else(pc.is_valid(table["ref_start"]), None, 1.0), table["ref_start"])
    other = replaced(table, "ref_start", wrong.cast(pa.float64()))
    relabelled = fit_procedure(lambda: [other], procedure, **how)
    assert relabelled.models != found.models
    assert relabelled.scores(other).filter(mine)["score"].equals(found.scores(table).filter(mine)["score"])
    (one,) = procedure.with_file(found.to_json(), "saved.json", thresholds=False).models[0]
    assert one["offset"] == pytest.approx(np.mean([model.offset for model in models]))
    with raises(calibrate_codes.NOT_FITTED_STEPS):
        procedure.with_file(b'{"schema": "swsdist-steps/1", "steps": []}', "saved.json", thresholds=False)
    # Each fold counts the queries that were asked.
    asked = [*table["query_id"].unique().to_pylist(), *(f"silent-{k}" for k in range(30))]
    found = fit_procedure(lambda: [table], procedure, query_ids=asked, **how)
    for fold, model in enumerate(fusions_in(json.loads(found.to_json()))):
        others = pa.concat_tables([rows for k, rows in by_fold(table, 3) if k != fold])
        many = sum(fold_of(query, 3) != fold for query in asked)
        assert model == fusion.fit_fusion(
            [replace(fusion.label_rows(others, marks=False), queries=many)], trials=3000, prior=1 / 31
        )


def test_what_cannot_be_fused_is_told() -> None:
    table = labelled(17)
    (step,) = make_steps(["fusion"], {})
    model = step.fit([step.gather(table, None, None)], None)
    other = joined([(1.0, 2.0)], "xy")
    with raises(fusion_codes.FUSION_OF_OTHER_SYSTEMS, fitted="a, b", systems="x, y"):
        step.apply(other, model, None, None)
    with raises(families.BAD_CELL):
        step.apply(joined([(1.0, NAN)]), model, None, None)
    with raises(fusion_codes.MIXED_SYSTEMS):
        fusion.label_rows(table, marks=False) + replace(fusion.label_rows(table, marks=False), systems=("x", "y"))
    with pytest.raises(UserError, match="no hit"):
        fusion.fit_fusion([fusion.label_rows(table.filter(table["ref_start"].is_null()), marks=False)])
    rows = [table.slice(0, 2), labelled(3, systems=1).slice(0, 2)]
    with raises(families.MISMATCH):
        fusion.parts_of(pa.concat_tables(rows))


def test_an_aligned_list_gets_its_parts_and_one_list_is_its_union() -> None:
    table = fusion.impute_scores(joined([(1.0, 2.0), (3.0, 4.0)]), "average", NOTHING).table
    trials = table.select(["query_id", "doc_id", "channel", "start", "end", "score", "decision"])
    for name in ("ref_start", "ref_end"):
        trials = trials.append_column(name, pa.nulls(2, pa.float64()))
    miss = {"query_id": "q", "doc_id": "d", "channel": 1, "ref_start": 9.0, "ref_end": 9.5}
    trials = pa.concat_tables([trials, pa.Table.from_pylist([miss], trials.schema)])
    found = fusion.with_parts_of(trials, table.take(pa.array([1, 0])))
    assert found.schema == JOINED_TRIALS
    scores = [None if row is None else [part["score"] for part in row] for row in found["parts"].to_pylist()]
    assert scores == [[3.0, 4.0], [1.0, 2.0], None]
    table = joined([(3.0,), (1.0,), (2.0,)], "a")
    one = fusion.join_lists({"a": replaced(table, "score", pa.array(fusion.parts_of(table)[1][:, 0]))})
    assert fusion.impute_scores(one, "average", NOTHING).table["score"].to_pylist() == [3.0, 2.0, 1.0]


Row = tuple[str, str, float, float, float]


def listed_rows(*rows: Row) -> pa.Table:
    """query, document, start, end, score."""
    names = ("query_id", "doc_id", "start", "end", "score")
    columns: dict[str, Any] = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    columns["channel"] = pa.array([1] * len(rows), pa.int32())
    kinds = {name: pa.string() if name.endswith("_id") else pa.float64() for name in names}
    return pa.table({name: pa.array(values, kinds.get(name, pa.int32())) for name, values in columns.items()})


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """Place, score, and what each system gave, by name."""
    names, scores, given = fusion.parts_of(table)
    rows = table.select(["query_id", "doc_id", "start", "end", "score"]).to_pylist()
    return [
        (*row.values(), {name: float(score) for name, score, there in zip(names, of, have, strict=True) if there})
        for row, of, have in zip(rows, scores, given, strict=True)
    ]


def test_the_best_of_each_system_belongs_to_its_own_place_and_overlaps_go() -> None:
    one = listed_rows(("q", "d", 1.0, 2.0, 3.0), ("q", "d", 5.0, 6.0, 1.0))
    two = listed_rows(("q", "d", 1.2, 2.2, 2.0), ("q", "d", 0.9, 1.6, 2.5), ("q", "d", 5.5, 6.5, 1.5))
    found = plain(fusion.join_lists({"one": one, "two": two}))
    assert found == [
        ("q", "d", 1.0, 2.0, 3.0, {"one": 3.0, "two": 2.5}),
        ("q", "d", 1.2, 2.2, 2.0, {"two": 2.0}),
        # Half of the shorter is not more than half.
        ("q", "d", 5.5, 6.5, 1.5, {"two": 1.5}),
        ("q", "d", 5.0, 6.0, 1.0, {"one": 1.0}),
    ]
    one, two = listed_rows(("q", "d", 5.0, 6.0, 1.0)), listed_rows(("q", "d", 5.5, 6.5, 1.5))
    ((*_, parts),) = plain(fusion.join_lists({"one": one, "two": two}, meet="middle"))
    assert parts == {"one": 1.0, "two": 1.5}
    apart = listed_rows(("q", "d", 5.500001, 6.6, 1.5))
    assert fusion.join_lists({"one": one, "two": apart}, meet="middle").num_rows == 2
    one = listed_rows(("q", "d", 1.0, 2.0, 3.0))
    elsewhere = one.set_column(one.schema.get_field_index("channel"), "channel", pa.array([2], pa.int32()))
    for other in (listed_rows(("r", "d", 1.0, 2.0, 3.0)), listed_rows(("q", "e", 1.0, 2.0, 3.0)), elsewhere):
        assert fusion.join_lists({"one": one, "two": other}).num_rows == 2
    assert fusion.join_lists({"one": listed_rows(), "two": listed_rows()}).schema == JOINED
    ((*_, parts),) = plain(fusion.join_lists({"one": listed_rows(), "two": one}))
    assert parts == {"two": 3.0}
    with raises(families.EMPTY_INPUT):
        fusion.join_lists({})
    rows = [("q", "d", 1.0, 2.0, 3.0), ("q", "d", 1.2, 2.2, 2.0), ("r", "d", 1.1, 2.1, 2.5), ("r", "e", 1.1, 2.1, 9.0)]
    kept = fusion.without_overlaps(fusion.join_lists({"one": listed_rows(*rows)}), 0.5)
    assert [(row[0], row[1], row[4]) for row in plain(kept)] == [("q", "d", 3.0), ("r", "e", 9.0), ("r", "d", 2.5)]
    between = fusion.without_overlaps(kept, 0.5, between_queries=True)
    assert [(row[0], row[1], row[4]) for row in plain(between)] == [("q", "d", 3.0), ("r", "e", 9.0)]
    assert fusion.best_of_overlaps(JOINED.empty_table(), 0.5).shape == (0,)
    # Equal scores go to the first query by name.
    table = fusion.join_lists({"one": listed_rows(("r", "d", 1.0, 2.0, 3.0), ("q", "d", 1.0, 2.0, 3.0))})
    for order in ([0, 1], [1, 0]):
        rows = table.take(pa.array(order))
        assert fusion.without_overlaps(rows, 0.5, between_queries=True)["query_id"].to_pylist() == ["q"]


_times = st.integers(0, 12)
_rows = st.lists(st.tuples(st.sampled_from("qr"), st.sampled_from("de"), _times, st.integers(0, 4), st.integers(-2, 2)))


def _table(rows: list[tuple[str, str, int, int, int]]) -> pa.Table:
    return listed_rows(*((q, d, start / 10, (start + long) / 10, float(score)) for q, d, start, long, score in rows))


@settings(deadline=None)
@given(
    st.lists(_rows, min_size=1, max_size=4),
    st.sampled_from(["overlap", "middle"]),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.permutations("abcd"),
)
def test_as_defined_whatever_the_order_of_systems(lists: Any, meet: Any, overlap: float, names: Any) -> None:
    def of(table: pa.Table, query: str) -> pa.Table:
        return table.filter(pa.array([q == query for q in table["query_id"].to_pylist()], pa.bool_()))

    how: dict[str, Any] = {"meet": meet, "overlap": overlap}
    tables = {name: _table(rows) for name, rows in zip("abcd", lists, strict=False)}
    found = fusion.join_lists(tables, **how)
    assert plain(found) == oracle({name: table.to_pylist() for name, table in tables.items()}, **how)
    assert fusion.join_lists({name: tables[name] for name in names if name in tables}, **how).equals(found)
    rows = sum(table.num_rows for table in tables.values())
    assert sum(len(row[-1]) for row in plain(found)) == rows  # every detection belongs to one place
    for query in "qr":  # any cut by query gives the same
        cut = {name: of(table, query) for name, table in tables.items()}
        assert plain(fusion.join_lists(cut, **how)) == plain(of(found, query))
