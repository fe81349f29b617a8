"""swsdist.metrics: plain functions that give what a list scored by hand, and by the command, has."""

import math
import re
import tempfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist import metrics
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import SwsdistError, UserError
from swsdist.evaluation import evaluate, make_system, make_task, more_values, values
from swsdist.report.evaluation import write_det
from tests.support.coded import raises

TRUE = {"query_id": ["a", "a", "b"], "doc_id": ["x", "y", "x"], "start": [10.0, 20.0, 30.0], "end": [10.5, 20.5, 30.5]}
FOUND = {
    "query_id": ["a", "a", "b", "b"],
    "doc_id": ["x", "y", "x", "y"],
    "start": [10.1, 50.0, 30.0, 40.0],
    "end": [10.6, 50.5, 30.5, 40.5],
    "score": [2.0, 1.0, 0.5, -1.0],
    "decision": [True, True, True, False],
}
BETA = (1 / 0.00015 - 1) / 100  # of sws2013: prior 0.00015, a miss costs 100 times as much as a false alarm


def test_values_by_hand() -> None:
    assert metrics.atwv(TRUE, FOUND, 1000.0) == pytest.approx(1 - (0.25 + BETA * (1 / 998) / 2), abs=1e-12)
    # From 0.5 on all is as decided; from 2 on b is missed: 1 - 3 / 4.
    assert metrics.mtwv(TRUE, FOUND, 1000.0) == metrics.atwv(TRUE, FOUND, 1000.0)
    assert metrics.otwv(TRUE, FOUND, 1000.0) == metrics.stwv(TRUE, FOUND, 1000.0) == 0.75
    assert metrics.mean_average_precision(TRUE, FOUND, 1000.0) == (0.5 + 1) / 2
    assert metrics.cnxe(TRUE, FOUND, 1000.0) >= metrics.min_cnxe(TRUE, FOUND, 1000.0) > 0
    undecided = {key: value for key, value in FOUND.items() if key != "decision"}
    assert metrics.atwv(TRUE, undecided, 1000.0) is None
    for form in (pd.DataFrame, pa.table, lambda rows: {key: np.array(v) for key, v in rows.items()}):
        assert metrics.mtwv(form(TRUE), form(undecided), 1000.0) == metrics.mtwv(TRUE, FOUND, 1000.0)
    with pytest.warns(UserWarning, match=r"of the list `queries`, .*\[unlisted\]"):
        found = metrics.mtwv(TRUE, FOUND, 1000.0, queries=["a"])
    assert found == metrics.mtwv(*({k: v[:2] for k, v in table.items()} for table in (TRUE, FOUND)), 1000.0)


def test_they_are_the_numbers_of_a_scored_list() -> None:
    ids = ["a", "b", "c"]
    task = make_task(TRUE, total_seconds=500.0, protocol="kwseval", terms={"query_id": ids, "term": ids}, documents=2)
    result = evaluate(task, make_system(FOUND))
    wanted = {**values(result), **more_values(result)}
    asked = {"protocol": "kwseval", "queries": ids, "documents": 2}
    assert metrics.values(TRUE, FOUND, 500.0, **asked) == wanted
    functions = {"mean_average_precision": "map", "min_cnxe": "cnxe_min"}
    for name in ("mtwv", "atwv", "otwv", "stwv", "cnxe", "min_cnxe", "eer", "mean_average_precision"):
        assert getattr(metrics, name)(TRUE, FOUND, 500.0, **asked) == wanted[functions.get(name, name)], name
    assert metrics.value("pair_auc", TRUE, FOUND, 500.0, **asked) == wanted["pair_auc"]


@pytest.mark.parametrize("protocol", ["sws2013", "kwseval"])
@given(scores=st.lists(st.sampled_from([-1.0, 0.25, 0.5, 0.9]), min_size=4, max_size=4), many=st.integers(0, 4))
def test_a_point_is_what_its_threshold_accepts(protocol: str, scores: list[float], many: int) -> None:
    """Each threshold is there once; what accepts nothing has an infinite one, in the data frame and in the file."""
    found = {key: values[:many] for key, values in {**FOUND, "score": scores}.items() if key != "decision"}
    curve = metrics.det(TRUE, found, 1000.0, protocol=protocol)
    assert curve["threshold"].is_unique
    assert curve["threshold"].is_monotonic_increasing
    for point in curve.itertuples():
        decided = {**found, "decision": [score >= point.threshold for score in found["score"]]}
        terms = metrics.terms(TRUE, decided, 1000.0, protocol=protocol)
        assert (point.pmiss, point.pfa) == pytest.approx((terms["pmiss"].mean(), terms["pfa"].mean()), abs=1e-12)
    if protocol == "sws2013":
        assert curve["threshold"].iloc[-1] == math.inf
    with tempfile.TemporaryDirectory() as folder:
        result = evaluate(make_task(TRUE, total_seconds=1000.0, protocol=protocol), make_system(found))
        write_det(result, f"{folder}/det.csv")
        written = pd.read_csv(f"{folder}/det.csv")
    assert written["score"].is_unique
    assert written["score"].iloc[-1] == curve["threshold"].iloc[-1]


def test_what_is_refused() -> None:
    with raises(families.UNKNOWN_NAME, name="SWS2031", meant="; did you mean sws2013?"):
        metrics.mtwv(TRUE, FOUND, 1000.0, protocol="SWS2031")
    with raises(codes.ABSENT_COLUMN, column="score"):
        metrics.mtwv(TRUE, TRUE, 1000.0)
    with raises(families.UNKNOWN_NAME, key="mtvw", meant="; did you mean mtwv?"):
        metrics.value("mtvw", TRUE, FOUND, 1000.0)
    for key, name in (("MTWV", "mtwv"), ("mincnxe", "cnxe_min"), ("min Cnxe", "cnxe_min")):
        with raises(families.UNKNOWN_NAME, key=key, meant=f"; did you mean {name}?"):
            metrics.value(key, TRUE, FOUND, 1000.0)
    nothing = {key: value[:0] for key, value in TRUE.items()}
    with pytest.raises(UserError), pytest.warns(UserWarning, match=r"\[no-referenced-terms\]"):
        metrics.det(nothing, FOUND, 1000.0, queries=["a", "b"])


def test_messages_are_of_what_the_caller_has() -> None:
    """Neither a term list nor --force; and a text is no list of its letters."""
    others = {**TRUE, "query_id": ["c", "c", "d"]}
    for true, asked, code in (
        ({key: value[:0] for key, value in TRUE.items()}, {}, "missing-input"),
        (TRUE, {"queries": ["c"]}, "unlisted"),
        (others, {}, "unlisted"),
        (others, {"protocol": "kwseval"}, "unknown-name"),
        ({**TRUE, "doc_id": ["p", "p", "q"]}, {}, "unreferenced-documents"),
        ({**TRUE, "end": [5000.0] * 3}, {}, "time-unit-mismatch"),
    ):
        with pytest.raises(SwsdistError) as caught:
            metrics.mtwv(true, FOUND, 10000.0, **asked)  # type: ignore[arg-type]
        assert caught.value.code == code
        assert not re.search("term list|--", str(caught.value))
    for queries in ("q001", 5, ["a", "b", "a"]):
        with pytest.raises(UserError, match=r"remedy: give their ids, each once: queries=\[") as told:
            metrics.mtwv(TRUE, FOUND, 1000.0, queries=queries)
        assert told.value.where == "queries"
