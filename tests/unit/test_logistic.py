"""The logistic by hand and against its likelihood, its edges, its files; fusion."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate.procedure import Procedure, fit_models, fold_of, make_steps
from swsdist.calibrate.steps.logistic import Logistic, fit_logistic
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.types import TRIALS
from swsdist.kernels.regression import PRIOR_DEVIATION, Labelled, exponential, sigmoid
from tests.oracles.calibrate import deviation, penalised_loss
from tests.support.coded import raises


def labelled(*rows: tuple[float, int, int]) -> Labelled:
    """Of rows (score, hits, false alarms)."""
    scores, hits, false = zip(*rows, strict=True)
    counts = (np.array(values, np.int64) for values in ([0] * len(rows), hits, false))
    return Labelled(np.array(scores).reshape(-1, 1), *counts).coarse(52)


def table(*rows: tuple[str, float | None, bool]) -> pa.Table:
    """An aligned list of rows (query, score or None of a miss, whether there is a reference)."""
    return pa.Table.from_pylist(
        [
            {"query_id": q, "doc_id": "d", "channel": 1, "score": s, "ref_start": 1.0 if hit else None}
            for q, s, hit in rows
        ],
        TRIALS,
    )


@given(st.floats(-700, 700))
def test_exponential_is_within_two_units(x: float) -> None:
    assert float(exponential(x)) == pytest.approx(math.exp(x), rel=4.5e-16)
    assert sigmoid([0.0, 800.0, -800.0, 1e308]).tolist() == [0.5, 1.0, pytest.approx(0.0, abs=1e-300), 1.0]


def test_two_scores_have_their_own_rates() -> None:
    """A logistic goes through both: 1 of 4 right at score 0, 3 of 4 at score 2, so p = 1/4 and 3/4."""
    found = fit_logistic(labelled((0.0, 100, 300), (2.0, 300, 100)))
    assert found.probability([0.0, 2.0]) == pytest.approx([0.25, 0.75], abs=1e-5)
    assert found.slope == pytest.approx(math.log(9) / 2, rel=1e-4)


def test_an_effective_prior_moves_the_odds() -> None:
    """Weighted to a prior, the log-odds are the likelihood ratio's plus the prior's, whatever the numbers of trials."""
    prior = 0.01
    found = fit_logistic(labelled((0.0, 100, 3000), (2.0, 300, 1000)), prior=prior)
    llr = np.array([math.log((100 / 400) / (3000 / 4000)), math.log((300 / 400) / (1000 / 4000))])
    assert found.log_odds([0.0, 2.0]) == pytest.approx(llr + math.log(prior / (1 - prior)), abs=1e-3)


rows = st.lists(
    st.tuples(st.floats(-100, 100).map(lambda x: round(x, 3)), st.integers(0, 50), st.integers(0, 50)),
    min_size=2,
    max_size=12,
    unique_by=lambda row: row[0],
)


@settings(deadline=None, max_examples=200)
@given(rows)
@pytest.mark.filterwarnings("ignore:.*negative-slope")
def test_no_other_logistic_is_better(given_rows: list[tuple[float, int, int]]) -> None:
    """The loss is convex, so a point that is better than all about it, at any distance, is the best."""
    data = labelled(*given_rows)
    if not data.hits.sum() or not data.false_alarms.sum():
        with pytest.raises(UserError, match="contain no"):
            fit_logistic(data)
        return
    found = fit_logistic(data)
    used = [(s, h, f) for s, h, f in given_rows if h + f]
    spread = deviation(used)
    best = penalised_loss(found.slope, found.offset, used, spread, PRIOR_DEVIATION)
    middle = sum(s * (h + f) for s, h, f in used) / sum(h + f for _, h, f in used)
    for size in (1e-3, 0.1, 3.0):
        for turn in np.linspace(0, 2 * math.pi, 16, endpoint=False):
            slope = size * math.cos(turn) / (spread or 1.0)
            offset = size * math.sin(turn) - slope * middle
            other = penalised_loss(found.slope + slope, found.offset + offset, used, spread, PRIOR_DEVIATION)
            assert other >= best - 1e-9 * (1 + abs(best))
    # The offset is free, so the probabilities sum to the number of hits.
    assert (found.probability(data.columns[:, 0]) * (data.hits + data.false_alarms)).sum() == pytest.approx(
        data.hits.sum()
    )


@given(rows, st.randoms())
@pytest.mark.filterwarnings("ignore:.*negative-slope")
def test_the_order_and_the_cut_do_not_matter(given_rows: list[tuple[float, int, int]], random: Any) -> None:
    whole = labelled(*given_rows, (0.5, 1, 1))
    shuffled = [*given_rows, (0.5, 1, 1)]
    random.shuffle(shuffled)
    assert fit_logistic(labelled(*shuffled)) == fit_logistic(whole)


def test_edges_of_fitting() -> None:
    """Separable scores (likelihood alone would make the slope infinite), a single one, the wrong way round, one class."""
    found = fit_logistic(labelled((-1.0, 0, 50), (0.0, 0, 50), (1.0, 20, 0), (2.0, 20, 0)))
    low, high = found.probability([0.0, 1.0])
    assert 0 < low < 0.01 < 0.99 < high < 1
    assert math.isfinite(found.slope)
    with pytest.warns(UserWarning, match="slope 0:"):
        found = fit_logistic(labelled((0.3, 1, 3)))
    assert (found.slope, float(found.probability(17.0))) == (0.0, pytest.approx(0.25))
    with pytest.warns(UserWarning, match="higher scores are not more likely"):
        assert fit_logistic(labelled((0.0, 30, 10), (1.0, 10, 30))).slope < 0
    for rows, kind in (([(0.0, 5, 0), (1.0, 5, 0)], "false alarm"), ([(0.0, 0, 5)], "hit")):
        with raises(families.NOTHING_TO_FIT, missing=kind):
            fit_logistic(labelled(*rows))
    for prior in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(UserError, match="effective prior"):
            fit_logistic(labelled((0.0, 1, 1)), prior=prior)


def test_large_lists_of_far_scores() -> None:
    """A million trials of which few are right, scores in the thousands: it converges to the likelihood's maximum."""
    rng = np.random.default_rng(3)
    score = np.round(np.concatenate([rng.normal(1e4, 300, 20_000), rng.normal(1.1e4, 300, 200)]), 1)
    distinct, which = np.unique(score, return_inverse=True)
    false, hits = (np.bincount(some, minlength=len(distinct)) for some in (which[:20_000], which[20_000:]))
    data = Labelled(distinct.reshape(-1, 1), np.zeros(len(distinct), np.int64), hits, 50 * false)
    found = fit_logistic(data)
    # Two normal classes of one variance have exactly this log-odds ratio.
    assert found.slope == pytest.approx(1000 / 300**2, rel=0.1)
    total = (found.probability(distinct) * (data.hits + data.false_alarms)).sum()
    assert total == pytest.approx(200, rel=1e-9)


def test_labels_of_an_aligned_list() -> None:
    """Queries without true occurrences count too, and the misses are counted apart."""
    found = Labelled.of(
        table(("a", 1.0, True), ("a", None, True), ("b", 1.0, False), ("c", -0.0, False), ("a", 0.0, False))
    )
    assert found.columns.tolist() == [[0.0], [1.0]]
    assert (found.hits.tolist(), found.false_alarms.tolist(), found.missed) == ([0, 1], [2, 1], 1)


def several(*models: Logistic, **more: Any) -> Procedure:
    """The step logistic, fitted so for each fold."""
    fitted = tuple({"slope": model.slope, "offset": model.offset} for model in models)
    return Procedure(make_steps(["logistic"], {}), models=(fitted,), **more)


@pytest.mark.parametrize("prior", [None, 0.01])
def test_crossfit_learns_from_the_others(prior: float | None) -> None:
    counts = {0: ((10, 30), (30, 10)), 1: ((20, 30), (30, 20)), 2: ((1, 90), (90, 1))}
    rows: dict[int, list[tuple[str, float, bool]]] = {}
    for fold, pairs in counts.items():
        name = next(f"q{k}" for k in range(99) if fold_of(f"q{k}", 3) == fold)
        for score, (hits, false) in enumerate(pairs):
            rows.setdefault(fold, []).extend((name, float(score), k < hits) for k in range(hits + false))
    data = [Labelled.of(table(*rows[fold])) for fold in range(3)]
    whole = table(*(row for some in rows.values() for row in some))
    steps = Procedure(make_steps(["logistic"], {} if prior is None else {"logistic": {"prior": prior}}))
    found = fit_models(lambda: [whole], steps, folds=3, trained_on={"of": "this"})
    assert (found.fit, found.trained_on) == ("crossfit", {"of": "this", "queries": 3})
    expected = [fit_logistic(data[a] + data[b], prior=prior) for a, b in ((1, 2), (0, 2), (0, 1))]
    assert found.models == several(*expected).models
    oracle = fit_models(lambda: [whole], steps, folds=1, trained_on={})
    every = fit_logistic(data[0] + data[1] + data[2], prior=prior)
    assert (oracle.fit, oracle.models) == ("oracle", several(every).models)


def test_apply_puts_probabilities_in_place() -> None:
    names = [f"q{k}" for k in range(8)]
    models = [Logistic(1.0 + k, -0.5 * k) for k in range(5)]
    trials = table(*((name, 0.3, True) for name in names), ("q0", None, True))
    applied = several(*models).scores(trials)
    expected = [float(models[fold_of(name, 5)].probability(0.3)) for name in names]
    assert applied["score"].to_pylist() == [*expected, None]
    assert applied.drop_columns("score").equals(trials.drop_columns("score"))
    assert applied.schema.equals(TRIALS)
    assert several(*models).scores(TRIALS.empty_table()).schema.equals(TRIALS)
    assert several(models[3]).scores(trials)["score"][0].as_py() == float(models[3].probability(0.3))


def test_files_come_back() -> None:
    found = several(Logistic(1.0, -2.0), Logistic(3.0, -0.1), fit="crossfit", trained_on={"queries": 3})
    data = found.to_json()
    again = Procedure.from_run(data)
    assert (again.models, again.fit, again.trained_on) == (found.models, found.fit, found.trained_on)
    mean = several(Logistic(1.0, 0.0)).with_file(data, "there", thresholds=False)
    assert mean.models == several(Logistic(2.0, -1.05)).models
    assert (mean.fit, mean.trained_on) == ("file", {"queries": 3})


def test_a_prior_is_kept_and_none_leaves_files_as_they_were() -> None:
    for options in ({}, {"prior": 0.25}):
        written = json.loads(Procedure(make_steps(["logistic"], {"logistic": options})).to_json())
        assert written["steps"][0]["options"] == options
    with raises(families.INVALID_VALUE, where="calibrate.options.logistic.prior", step="logistic", options="prior"):
        make_steps(["logistic"], {"logistic": {"prior": 1.0}})


STEP = {"name": "logistic", "version": 1, "options": {}, "models": [{"slope": 1.0, "offset": 0.0}]}
GOOD = {"schema": "swsdist-steps/1", "fit": "oracle", "steps": [STEP], "thresholds": [], "trained_on": {}}


def test_wrong_files_are_refused() -> None:
    steps = Procedure(make_steps(["logistic"], {}))
    for change in (
        {"schema": "swsdist-calibration/1"},
        {"steps": []},
        {"steps": [{**STEP, "version": 2}]},
        *({"steps": [{**STEP, "models": models}]} for models in ([], [{"slope": 1.0}], 3)),
        *({"steps": [{**STEP, "models": [{"slope": slope, "offset": 0.0}]}]} for slope in (math.nan, "steep")),
    ):
        with raises(codes.NOT_FITTED_STEPS, where="wrong.json"):
            steps.with_file(json.dumps({**GOOD, **change}).encode(), "wrong.json", thresholds=False)
    good = steps.with_file(json.dumps(GOOD).encode(), "right.json", thresholds=False)
    assert good.models == several(Logistic(1.0, 0.0)).models
