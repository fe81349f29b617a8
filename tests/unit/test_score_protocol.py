"""Protocols, measures and tests against one: papers' numbers, worked ones, and what has no value."""

import math
import pickle
import re
import tempfile
from itertools import product

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
from swsdist.core.types import TRIALS
from swsdist.evaluation import evaluate, make_system, make_task, more_values, values
from swsdist.report.evaluation import write_det
from swsdist.score.compare.paired import decided_at, max_t
from swsdist.score.measures.curve import Counts, total
from swsdist.score.measures.det import det, ppndf
from swsdist.score.measures.protocol import PROTOCOLS, beta, number_of_trials, protocol
from swsdist.score.measures.retrieval import RETRIEVAL, means, per_query
from swsdist.score.measures.twv import atwv, mtwv, per_term, twv_curve
from swsdist.score.trials import document_trials
from tests.oracles.thresholds import fit_threshold
from tests.support.coded import raises

#: Documents and queries, in the order of the tables.
SETS = ("dev-dev", "dev-eval", "eval-dev", "eval-eval")


def test_operating_points_from_the_data_and_trials_as_c_rounds_them() -> None:
    assert beta(protocol("nist-std06"), 1e5, 3) == pytest.approx(999.9, abs=1e-9)
    assert beta(protocol("sws2013"), 1e5, 3) == pytest.approx(66.66, abs=1e-2)
    spans = dict.fromkeys(("kwseval", "nist-std06", "openkws13", "stdeval", "sws2013"), (0.5, 0.5))
    spans |= {"quesst": (math.inf, 0.5), "sws2011": (20.0, 20.0), "sws2012": (0.5, 1.0)}
    spans |= dict.fromkeys((f"sws2012-indian-{sets}" for sets in SETS), (20.0, 20.0))
    spans |= dict.fromkeys((f"sws2012-african-{sets}" for sets in SETS), (0.5, 1.0))
    assert {name: (p.tolerance, p.word_gap) for name, p in PROTOCOLS.items()} == spans
    rules, known = protocol("sws2013", tolerance=0.0, trials_per_second=2.0), PROTOCOLS["sws2013"]
    assert (rules.tolerance, rules.trials_per_second) == (0.0, 2.0)
    assert (rules.beta, rules.word_gap) == (known.beta, known.word_gap)
    wrong = [("beta", 0.0), ("beta", math.nan), ("tolerance", -0.1), ("tolerance", math.inf), ("trials_per_second", 0)]
    for name, value in wrong:
        with raises(families.INVALID_VALUE, part=name):
            protocol("sws2013", **{name: value})
    with raises(families.UNKNOWN_NAME, name="sws2031"):
        protocol("sws2031")
    rules = protocol("sws2012")
    assert beta(rules, 1000.5, 50) == (1000.5 - 50) / 50
    assert beta(protocol("sws2012", trials_per_second=2), 1000, 50) == 39
    assert beta(protocol("sws2012", beta=15.32), 1000, 50) == 15.32
    for total_true in (0, 1000, 1001):
        with raises(families.UNDEFINED):
            beta(rules, 1000.0, total_true)
    rules = protocol("sws2013")
    trials = {100.5: 100, 101.5: 102, 99.49999: 99, 0.50001: 1, 1e6 + 0.5: 1_000_000}
    assert {seconds: number_of_trials(rules, seconds) for seconds in trials} == trials
    assert number_of_trials(protocol("sws2013", trials_per_second=3.7), 1000) == 3700
    assert number_of_trials(protocol("kwseval", trials_per_second=2.0), 1000) == 500
    for seconds in (0.0, 0.5, -3.0, math.nan, math.inf):
        with raises(families.INVALID_VALUE):
            number_of_trials(rules, seconds)
    rules = protocol("sws2012", as_run=True)
    assert (rules.tolerance, rules.word_gap) == (1.0, 0.5)
    rules = protocol("sws2012-african-dev-dev", as_run=True)
    assert (rules.tolerance, rules.word_gap, rules.beta) == (1.0, 0.5, 15.32)
    with raises(families.UNSUPPORTED):
        protocol("sws2012-indian-dev-dev", as_run=True)
    with raises(families.UNSUPPORTED):
        protocol("sws2013", as_run=True)
    assert protocol("stdeval", cost=1, value=100, prior=0.00015).beta == protocol("sws2013").beta
    assert protocol("sws2012", cost=21.03).beta == 21.03
    assert protocol("sws2013").prior == pytest.approx(0.00015, rel=1e-12)
    assert protocol("quesst").beta == pytest.approx((1 - 0.0741289) / 0.0741289)
    with raises(families.CONFLICTING_OPTIONS):
        protocol("sws2013", beta=3, prior=0.5)


@pytest.mark.parametrize(
    ("data", "k"), [("indian", (13.065, 14.49, 12.32, 21.59)), ("african", (15.32, 6.36, 11.96, 19.96))]
)
def test_the_values_of_k_of_sws2012(data: str, k: tuple[float, ...]) -> None:
    """Tables 2 and 3 of Anguera 2012; they go to the program as -k, with -K 1 -p 0.5."""
    named = [protocol(f"sws2012-{data}-{sets}") for sets in SETS]
    assert [rules.beta for rules in named] == pytest.approx(k, rel=1e-12)
    assert [(rules.cost, rules.value, rules.prior) for rules in named] == [(one, 1.0, 0.5) for one in k]
    given = [protocol("sws2012", cost=one, value=1, prior=0.5).beta for one in k]
    assert [rules.beta for rules in named] == given


Rows = list[tuple[str, float | None, bool | None, bool]]


def trials(rows: Rows) -> pa.Table:
    """Rows (query_id, score, decision, is it true)."""
    return pa.Table.from_pylist(
        [
            {"query_id": query, "doc_id": "d", "channel": 1, "score": score, "decision": decision}
            | {"start": None if score is None else 1.0, "ref_start": 1.0 if true else None}
            for query, score, decision, true in rows
        ],
        TRIALS,
    )


# a: 2 true, one found at 0.9, one missed; b: 1 true, found at 0.5 under a false alarm; c: none true.
LIST: Rows = [
    ("a", 0.9, True, True),
    ("a", None, None, True),
    ("a", 0.5, True, False),
    ("b", 0.5, False, True),
    ("b", 0.7, True, False),
    ("c", 0.95, True, False),
]


def test_the_lowest_threshold_of_equal_maxima_and_a_system_that_detects_nothing() -> None:
    rows: Rows = [("a", 0.9, True, True), ("a", 0.8, True, False), ("a", 0.7, True, True), ("a", None, None, True)]
    # beta / (N - 3) = 1 / 3: what the false alarm costs, the second hit brings.
    counts = Counts.of(trials(rows))
    best = mtwv(twv_curve(counts, trials=13, beta=10 / 3))
    assert (best.twv, best.threshold) == (pytest.approx(1 / 3), 0.7)
    assert fit_threshold(counts, trials=13, beta=10 / 3) == 0.7
    assert per_term(trials(rows), trials=13, beta=10 / 3)["best_threshold"].to_pylist() == [0.7]
    rows: Rows = [("a", 0.9, True, False), ("a", 0.8, True, True), ("b", None, None, True)]
    counts = Counts.of(trials(rows))
    assert mtwv(twv_curve(counts, trials=10, beta=100.0)) == (0.0, 1.0, 0.0, 0.9)
    fitted = fit_threshold(counts, trials=10, beta=100.0)
    assert 0.9 < fitted < 0.9 + 1e-12
    assert per_term(trials(rows), trials=10, beta=100.0)["best_threshold"].to_pylist() == [None, None]
    nothing = trials([("a", None, None, True), ("b", None, None, True)])
    counts = Counts.of(nothing)
    curve = twv_curve(counts, trials=10, beta=2.0)
    assert math.isnan(curve.threshold[0])
    assert mtwv(curve) == (0.0, 1.0, 0.0, None)
    assert atwv(counts, trials=10, beta=2.0) == (0.0, 1.0, 0.0, None)
    assert det(curve).pmiss.tolist() == [1.0]
    assert per_term(nothing, trials=10, beta=2.0)["twv"].to_pylist() == [0.0, 0.0]
    with pytest.raises(UserError, match="no query with references has a detection"):
        fit_threshold(counts, trials=10, beta=2.0)
    for rows in ([], [("a", 0.5, True, False)]):
        table = trials(rows)
        counts = Counts.of(table)
        assert counts == Counts.zero()
        assert len(per_term(table, trials=10, beta=2.0)) == len(rows)
        for measure in (twv_curve, atwv):
            with raises(codes.NO_REFERENCES):
                measure(counts, trials=10, beta=2.0)
    for measure in (twv_curve, atwv, fit_threshold):
        with raises(families.UNDEFINED, trials=2):
            measure(Counts.of(trials(LIST)), trials=2, beta=2.0)
    with raises(families.UNDEFINED, trials=2):
        per_term(trials(LIST), trials=2, beta=2.0)
    crowded = Counts.of(trials([*LIST, ("b", None, None, True), ("a", None, None, True)]))
    with pytest.warns(UserWarning, match=r"\[negative-false-alarm-rates\]"):
        assert (twv_curve(crowded, trials=1, beta=2.0).pfa <= 0).all()


def test_what_is_undecided_has_no_actual_value() -> None:
    table = trials([*LIST, ("a", 0.1, None, False)])
    with raises(codes.UNDECIDED_DETECTIONS, count=1):
        atwv(Counts.of(table), trials=12, beta=2.0)
    rows = per_term(table, trials=12, beta=2.0).to_pylist()
    assert [row["twv"] is None for row in rows] == [True, False, True]
    assert rows[0]["best_threshold"] == 0.9
    table = trials([*RANKED, ("a", 0.1, None, False)])
    a, b = per_query(table).to_pylist()
    assert (a["accepted"], a["precision"], a["f"]) == (None, None, None)
    assert b["precision"] == 0.5
    assert means(per_query(table))["mean_precision"] is None
    assert means(per_query(table))["auc"] is None
    assert means(per_query(decided_at(table, 0.5)))["mean_precision"] is not None
    # Of a query without references it does not matter.
    assert means(per_query(trials([*RANKED, ("c", 0.1, None, False)])))["mean_precision"] == 0.5


def test_counts_are_values_and_det_keeps_the_ends() -> None:
    counts = Counts.of(trials(LIST))
    assert counts + Counts.zero() == counts == Counts.zero() + counts == pickle.loads(pickle.dumps(counts))
    assert counts != Counts.zero()
    assert counts != 3
    assert total([]) == Counts.zero()
    doubled = total([counts, counts])
    assert (doubled.terms == 2 * counts.terms).all()
    assert (doubled.hits == 2 * counts.hits).all()
    assert Counts.of(trials([*LIST, ("c", 0.1, None, False)])) == counts, "undecided without references do not matter"
    zero = Counts.of(trials([("a", -0.0, True, True), ("b", 0.0, True, True)])).score
    assert (zero.tolist(), math.copysign(1, zero[0])) == ([0.0], 1)
    rows: Rows = [("a", score / 1000, True, score % 3 == 0) for score in range(1000)]
    curve = twv_curve(Counts.of(trials(rows)), trials=100_000, beta=66.66)
    drawn = det(curve, step=0.1)
    assert len(drawn.x) < len(curve.twv) / 2
    for ends, of in ((drawn.threshold, curve.threshold), (drawn.pmiss, curve.pmiss), (drawn.pfa, curve.pfa)):
        assert (ends[0], ends[-1]) == (of[0], of[-1])
    assert (abs(drawn.x) <= 4.76).all()
    assert ppndf([0.5, 0.975, 0.0, 1.0]) == pytest.approx([0.0, 1.959963984540054, -4.753424308822899, 4.7534243088])
    # No point left out lies farther from a kept one than the square's diagonal.
    x, y = ppndf(curve.pfa), ppndf(curve.pmiss)
    apart = ((x[:, None] - drawn.x) ** 2 + (y[:, None] - drawn.y) ** 2).min(axis=1)
    assert apart.max() <= 2 * 0.1**2


# b: hits at ranks 1 and 3 of 4, one missed; a: a hit and a false alarm tie at rank 1; c: none true.
RANKED: Rows = [
    ("b", 0.9, True, True),
    ("b", 0.8, True, False),
    ("b", 0.7, False, True),
    ("b", 0.6, False, False),
    ("b", None, None, True),
    ("a", 0.5, True, False),
    ("a", 0.5, True, True),
    ("c", 0.99, True, False),
]


def test_per_query_by_hand() -> None:
    table = per_query(trials(RANKED), n=2, trials=6)
    assert table.schema == RETRIEVAL
    a, b = table.to_pylist()
    assert (a["query_id"], a["ntrue"], a["accepted"], a["precision"], a["recall"]) == ("a", 1, 2, 0.5, 1.0)
    assert a["f"] == pytest.approx(2 / 3)
    assert (b["accepted"], b["precision"], b["recall"], b["f"]) == (2, 0.5, 1 / 3, 0.4)
    assert (a["p_at_n"], b["p_at_n"]) == (0.5, 0.5)
    assert (a["p_at_ntrue"], b["p_at_ntrue"]) == (0.5, pytest.approx(2 / 3))
    # Of a the hit is first or second, each as often.
    assert (a["average_precision"], b["average_precision"]) == (pytest.approx(3 / 4), pytest.approx((1 + 2 / 3) / 3))
    # a: 5 non-targets, of which one ties and four are below; b: 3: the hits beat 3 and 2, the missed one ties with one.
    assert (a["auc"], b["auc"]) == (pytest.approx(4.5 / 5), pytest.approx((3 + 2 + 0.5) / 9))
    found = means(table)
    assert (found["mean_precision"], found["mean_recall"]) == (0.5, pytest.approx(2 / 3))
    assert found["map"] == pytest.approx((3 / 4 + 5 / 9) / 2)
    assert found["auc"] == pytest.approx((0.9 + 5.5 / 9) / 2)
    # More false alarms than trials leave no area; a short list leaves ranks empty.
    crowded = per_query(trials(RANKED), trials=4)
    assert (crowded["auc"].to_pylist(), means(crowded)["auc"]) == ([pytest.approx(2.5 / 3), None], None)
    assert per_query(trials([("a", 0.5, True, True)]), n=10)["p_at_n"].to_pylist() == [0.1]
    with raises(families.INVALID_VALUE, rank=0):
        per_query(trials(RANKED), n=0)
    # A threshold in place of the decisions.
    a, b = per_query(decided_at(trials(RANKED), 0.7)).to_pylist()
    assert (a["accepted"], a["precision"], a["recall"], a["f"]) == (0, 0.0, 0.0, 0.0)
    assert (b["accepted"], b["precision"], b["recall"]) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))
    for rows in ([], [("a", 0.5, True, False)]):
        assert per_query(trials(rows), trials=3).num_rows == 0
        assert means(per_query(trials(rows))) == {}


_COLUMNS = {"query_id": ["q", "q", "q", "p"], "doc_id": ["d", "d", "e", "d"], "channel": pa.array([1] * 4, pa.int32())}
SPANS = pa.table({**_COLUMNS, "start": [5.0, 1.0, 2.0, 3.0], "end": [6.0, 2.0, 3.0, 4.0]})


def test_document_trials_at_their_edges() -> None:
    detections = SPANS.slice(0, 2).append_column("score", pa.array([0.5, 0.5]))
    decided = detections.append_column("decision", pa.array([True, False]))
    row = document_trials(decided, SPANS.slice(0, 0)).to_pylist()
    assert (len(row), row[0]["decision"], row[0]["start"]) == (1, True, 5.0)
    assert document_trials(detections, SPANS.slice(0, 0))["start"].to_pylist() == [1.0]
    nothing = SPANS.slice(0, 0).append_column("score", pa.array([], pa.float64()))
    assert document_trials(nothing, SPANS.slice(0, 0)).equals(TRIALS.empty_table())
    assert document_trials(nothing, SPANS)["query_id"].to_pylist() == ["p", "q", "q"]
    for score in (math.nan, math.inf, None):
        with raises(codes.NOT_FINITE_NUMBER):
            document_trials(SPANS.append_column("score", pa.array([0.5, 0.75, score, 0.5])), SPANS)
    with raises(codes.ABSENT_COLUMN, column="score"):
        document_trials(SPANS, SPANS)


def exactly(values: np.ndarray, against: np.ndarray) -> np.ndarray:
    """Step-down maxT by its definition, over every choice of signs."""
    differences = values - against
    size = np.sqrt((differences**2).sum(axis=1))
    signs = np.array(list(product([1.0, -1.0], repeat=values.shape[1])))
    statistics = np.abs(signs @ (differences / size[:, None]).T)
    observed = np.abs(differences.sum(axis=1)) / size
    order = np.argsort(-observed)
    found, worst = np.zeros(len(values)), 0.0
    for rank, k in enumerate(order):
        greatest = statistics[:, order[rank:]].max(axis=1)
        worst = max(worst, float((greatest >= observed[k] - 1e-9).mean()))
        found[k] = worst
    return found


def test_random_signs_come_near_all_signs_and_no_difference_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    against = rng.normal(size=9)
    values = against + rng.normal(size=(5, 9)) * 0.6 + np.array([0.0, 0.1, 0.4, 0.8, -0.6])[:, None]
    found = max_t(values, against, permutations=40_000, seed=1)
    assert found == pytest.approx(exactly(values, against), abs=0.012)
    against = np.arange(6.0)
    found = max_t(np.stack([against, against + 1e-14, against - 5 + 0.01 * against]), against, permutations=999)
    assert found[:2].tolist() == [1.0, 1.0]
    assert found[2] < 0.1
    assert max_t(np.zeros((0, 3)), np.zeros(3)).tolist() == []
    with raises(families.UNDEFINED, queries=0):
        max_t(np.zeros((2, 0)), np.zeros(0))
    with raises(families.UNDEFINED, permutations=0):
        max_t(np.zeros((2, 2)), np.zeros(2), permutations=0)
    rng = np.random.default_rng(0)
    against, values = rng.normal(size=20), rng.normal(size=(7, 20))
    whole = max_t(values, against, permutations=501, seed=9)
    monkeypatch.setattr("swsdist.score.compare.paired._CELLS", 70)
    assert max_t(values, against, permutations=501, seed=9).tolist() == whole.tolist()
    assert whole.min() >= 1 / 502


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


def test_values_of_the_functions_are_those_of_a_scored_list() -> None:
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


def test_what_is_refused_in_words_of_the_caller() -> None:
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
    # Neither a term list nor --force; and a text is no list of its letters.
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
