"""q-norm against numpy and against exact fractions."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.calibrate.procedure import Procedure, make_steps
from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.norms import moments
from swsdist.core.types import DETECTIONS, QUERY_STATISTICS
from tests.oracles import reduce as oracle

UNIT = 2048
#: Of each query's examples: its frames, and the costs of its candidates.
EXAMPLES = st.lists(
    st.tuples(st.integers(1, 300), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20)), min_size=1, max_size=3
)


def candidates(query_id: str, examples: list[tuple[int, list[int]]]) -> list[dict[str, Any]]:
    return [
        {"query_id": query_id, "example": k, "scale": frames * UNIT, "cost": cost}
        for k, (frames, costs) in enumerate(examples)
        for cost in costs
    ]


def statistics(rows: list[dict[str, Any]]) -> pa.Table:
    made = oracle.statistics(rows)
    for row in made:
        row["value"] = Decimal(row["value"])
    return pa.Table.from_pylist(made, QUERY_STATISTICS)


def detections(rows: list[dict[str, Any]]) -> pa.Table:
    made = [
        dict.fromkeys(DETECTIONS.names)
        | {"query_id": row["query_id"], "doc_id": "d", "channel": 1, "start": 0.0, "end": 1.0}
        | {"score": -row["cost"] / row["scale"]}
        for row in rows
    ]
    return pa.Table.from_pylist(made, DETECTIONS)


def normalise(table: pa.Table, sums: pa.Table) -> pa.Table:
    return Procedure(make_steps(["q-norm"], {})).scores(table, from_table(sums))


@settings(max_examples=150)
@given(first=EXAMPLES, second=EXAMPLES)
@example(first=[(3, [1, 1, 1]), (21, [7, 7])], second=[(1, [0])])  # all scores equal, in other words
def test_moments_are_exact(first, second) -> None:
    rows = candidates("p", first) + candidates("q", second)
    assert moments(from_table(statistics(rows))["cost-sums"]) == oracle.moments(rows)


@given(examples=EXAMPLES)
def test_normalised_scores_are_numpys(examples) -> None:
    rows = candidates("q", examples)
    scores = np.array([-row["cost"] / row["scale"] for row in rows])
    found = normalise(detections(rows), statistics(rows))["score"].to_numpy()
    deviation = scores.std()
    if len(set(scores.tolist())) == 1:
        assert not found.any()
    elif deviation > 1e-3 * np.abs(scores).max():  # else numpy's own rounding would be what is tested
        assert np.allclose(found, (scores - scores.mean()) / deviation, rtol=0, atol=1e-12)


@settings(max_examples=50)
@given(examples=EXAMPLES, seed=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(examples, seed) -> None:
    rows = candidates("q", examples) + candidates("r", [(5, [1, 2, 3])])
    table = statistics(rows)
    order = list(range(table.num_rows))
    seed.shuffle(order)
    assert from_table(table.take(pa.array(order))) == from_table(table)


def test_all_else_stays_and_scores_that_do_not_vary_are_zero() -> None:
    rows = candidates("q", [(5, [1, 2, 3])]) + candidates("p", [(5, [9, 7])])
    for examples in ([(7, [1000])], [(7, [1000, 1000])], [(3, [1] * 5), (21, [7] * 3), (9, [3])]):
        rows += candidates(str(examples), examples)
    table = detections(rows)
    found = normalise(table, statistics(rows))
    assert found.schema.equals(DETECTIONS)
    assert found.drop_columns("score").equals(table.drop_columns("score"))
    assert found["score"].to_pylist()[3:] == pytest.approx([-1.0, 1.0, *[0.0] * 12], abs=1e-12)
    nothing = normalise(DETECTIONS.empty_table(), QUERY_STATISTICS.empty_table())
    assert nothing.schema.equals(DETECTIONS)
    assert nothing.num_rows == 0
