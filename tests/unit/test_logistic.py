"""Steps of calibration against plain computations, their edges and their files."""

import json
import math
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from swsdist.calibrate import statistics as tallies
from swsdist.calibrate.likelihood import ENCODER, MFCC, Likelihood, Prior, prior_of, word_of
from swsdist.calibrate.procedure import Procedure, check_steps, fit_models, fold_of, make_steps
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.calibrate.steps.llr import _COVARIATES, Covariate
from swsdist.calibrate.steps.logistic import Logistic, fit_logistic
from swsdist.calibrate.steps.norms import ALL, COHORT, cohort_of, cohort_sums, cohort_table, deviation_of, mode_of
from swsdist.config.model import Calibrate
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.types import CANDIDATES, DETECTIONS, TRIALS
from swsdist.kernels.regression import PRIOR_DEVIATION, Labelled, exponential, logarithm, sigmoid
from swsdist.testing.conformance.calibration import lists, statistics_of
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


def test_edges_of_fitting_and_an_effective_prior() -> None:
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
    prior = 0.01
    found = fit_logistic(labelled((0.0, 100, 3000), (2.0, 300, 1000)), prior=prior)
    llr = np.array([math.log((100 / 400) / (3000 / 4000)), math.log((300 / 400) / (1000 / 4000))])
    assert found.log_odds([0.0, 2.0]) == pytest.approx(llr + math.log(prior / (1 - prior)), abs=1e-3)


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


def test_models_put_probabilities_in_place_and_files_keep_them() -> None:
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
    found = several(Logistic(1.0, -2.0), Logistic(3.0, -0.1), fit="crossfit", trained_on={"queries": 3})
    data = found.to_json()
    again = Procedure.from_run(data)
    assert (again.models, again.fit, again.trained_on) == (found.models, found.fit, found.trained_on)
    mean = several(Logistic(1.0, 0.0)).with_file(data, "there", thresholds=False)
    assert mean.models == several(Logistic(2.0, -1.05)).models
    assert (mean.fit, mean.trained_on) == ("file", {"queries": 3})
    for options in ({}, {"prior": 0.25}):
        written = json.loads(Procedure(make_steps(["logistic"], {"logistic": options})).to_json())
        assert written["steps"][0]["options"] == options
    with raises(families.INVALID_VALUE, where="calibrate.options.logistic.prior", step="logistic", options="prior"):
        make_steps(["logistic"], {"logistic": {"prior": 1.0}})
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


STEP = {"name": "logistic", "version": 1, "options": {}, "models": [{"slope": 1.0, "offset": 0.0}]}
GOOD = {"schema": "swsdist-steps/1", "fit": "oracle", "steps": [STEP], "thresholds": [], "trained_on": {}}


NOBODY = np.empty(0), np.empty(0, bool)
SCORES = np.linspace(6, -1, 400)


def drawn(prior: Prior, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a word's hits, best first, and which are true."""
    random = np.random.default_rng(seed)
    line = random.multivariate_normal(*prior)
    scores = np.sort(random.normal(0.6, 1.2, 1000))[::-1]
    return scores, random.random(1000) < 1 / (1 + np.exp(-line[0] - line[1] * scores))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [MFCC, ENCODER])
@pytest.mark.parametrize("judged", [0, 20])
def test_intervals_hold_as_often_as_they_say(judged: int, prior: Prior) -> None:
    expected, left, holds = [], [], []
    for seed in range(150):
        scores, truths = drawn(prior, seed)
        summary = Likelihood.fit(scores[:judged], truths[:judged], prior).summary(scores[judged:], 50)
        expected.append(summary.expected)
        left.append(truths[judged:].sum())
        holds.append(summary.low <= left[-1] <= summary.high)
    assert np.mean(holds) > 0.78
    # The mean of 150 words, whose numbers vary by some 4.
    assert abs(np.mean(expected) - np.mean(left)) < 4 * np.std(left) / np.sqrt(150)


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_prior_is_that_of_the_words_it_is_fitted_to(scale: float) -> None:
    """Scores of any unit: hits of words are as likely as by the prior that they are drawn from."""
    words = [drawn(MFCC, seed) for seed in range(200)]
    scores, truths = (np.concatenate(column) for column in zip(*words, strict=True))
    fitted = Prior.of_words(np.repeat(np.arange(200), 1000), scores * scale, truths)
    values = np.array([1.0, 3.0, 5.0, 7.0])
    found = Likelihood(*fitted, judged=0).likely(values * scale)
    assert found == pytest.approx(Likelihood(*MFCC, judged=0).likely(values), abs=0.06)


def test_judgements_move_what_is_likely_and_tell_when_it_is_no_use_to_go_on() -> None:
    before = Likelihood.fit(*NOBODY).likely(SCORES)
    assert (np.diff(before) < 0).all()  # a better score is likelier
    best = SCORES[:10]
    good, bad = (Likelihood.fit(best, np.full(10, truth)).likely(SCORES) for truth in (True, False))
    assert (good[:50] > before[:50]).all()
    assert (bad[:50] < before[:50]).all()
    summary = Likelihood.fit(np.linspace(6, 4, 40), np.zeros(40, bool)).summary(SCORES[-200:], 50)
    assert (summary.worth, summary.why) == (False, "nothing-likely")
    assert Likelihood.fit(*NOBODY).summary(SCORES, 50).why == "unjudged"
    assert Likelihood.fit(np.full(5, 5.0), np.ones(5, bool)).summary(SCORES, 50).worth
    nothing = Likelihood.fit(*NOBODY).summary(np.empty(0), 50)
    assert (nothing.expected, nothing.low, nothing.high, nothing.worth) == (0, 0, 0, True)
    words = ["likely", "likely", "possible", "possible", "unlikely", "unlikely", ""]
    assert [word_of(p) for p in (1.0, 0.5, 0.49, 0.1, 0.09, 0.0, None)] == words
    assert prior_of({"mfcc"}) is MFCC
    assert prior_of({"mfcc", "ssl"}) is ENCODER
    mfcc, encoder = (Likelihood.fit(*NOBODY, prior).likely(np.array([2.0, 6.0])) for prior in (MFCC, ENCODER))
    assert encoder[0] < mfcc[0]
    assert encoder[1] > mfcc[1]


POINT = TwvParameters(trials=200, beta=9.0)


def step(name: str, **options: Any) -> Any:
    (made,) = make_steps([name], {name: options})
    return made


def candidates(scores: Mapping[str, list[float]]) -> pa.Table:
    rows = [
        {"query_id": query, "example": 1, "cost": -round(score * 2**20), "scale": 2**20}
        for query, some in scores.items()
        for score in some
    ]
    rest = {"slot": 0, "doc_id": "d", "channel": 1, "first": 0, "last": 9}
    return pa.Table.from_pylist([{**rest, **row} for row in rows], CANDIDATES)


def detections(scores: Mapping[str, list[float]]) -> pa.Table:
    rest = {**dict.fromkeys(DETECTIONS.names), "doc_id": "d", "channel": 1, "start": 0.0, "end": 0.5}
    rows = [{**rest, "query_id": query, "score": score} for query, some in scores.items() for score in some]
    return pa.Table.from_pylist(rows, DETECTIONS)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1))
def test_the_logarithm_is_that_of_mathematics(values: list[float]) -> None:
    assert np.allclose(logarithm(values), [math.log(value) for value in values], rtol=4e-16, atol=2e-16)
    assert logarithm(1.0) == 0.0


def test_m_norm_and_zt_norm_by_hand() -> None:
    """The mode is where the scores crowd, whatever the tail does; the deviation is of those above it."""
    crowd, tail, best = [-0.5 + k / 4096 for k in range(-8, 9)], [-0.9 + k / 100 for k in range(6)], [-0.4, -0.3]
    statistics = {"score-histogram": tallies.ScoreHistogram().of(candidates({"q": [*crowd, *tail, *best]}))}
    bins, counts = tallies.histograms(statistics["score-histogram"])["q"]
    width = math.floor(np.std(np.repeat(bins, counts)) / 4)
    held = {centre: counts[abs(bins - centre) <= width].sum() for centre in range(-1024, 0)}
    centres = [centre for centre, count in held.items() if count == max(held.values())]
    mode = (centres[0] + centres[-1] + 1) / 2 / tallies.BINS
    assert mode_of(bins, counts) == mode
    assert abs(mode + 0.5) < 0.05
    middle = (np.repeat(bins, counts) + 0.5) / tallies.BINS
    for side, kept in (("better", middle >= mode), ("worse", middle <= mode), ("all", middle > -9)):
        expected = math.sqrt(np.mean((middle[kept] - mode) ** 2))
        assert deviation_of(bins, counts, mode, side) == pytest.approx(expected, rel=1e-12)  # type: ignore[arg-type]
    found = step("m-norm").apply(detections({"q": [-0.3, -0.5]}), None, statistics, None)
    above = math.sqrt(np.mean((middle[middle >= mode] - mode) ** 2))
    assert found == pytest.approx([(-0.3 - mode) / above, (-0.5 - mode) / above], rel=1e-12)
    # Of one candidate the mode is its bin.
    assert mode_of(np.array([7]), np.array([3])) == 7.5 / tallies.BINS
    assert deviation_of(np.array([7]), np.array([3]), 7.5 / tallies.BINS, "better") == 0.0
    heard = [("c1", "d", 0, 1.0), ("c1", "d", 3, 2.0), ("c2", "d", 1, 0.5), ("c1", "e", 0, 7.0)]
    cohort = cohort_sums(places(heard), None)
    assert cohort_of(cohort_table(cohort)) == cohort
    mine = {"q": [0.25, -0.5, 0.125, 0.75]}
    statistics = {"cost-sums": tallies.CostSums().of(candidates(mine)), COHORT: cohort}
    mean, deviation = z_of(mine)["q"]
    z = (np.array([0.75, 0.25, 0.125]) - mean) / deviation
    found = places([("q", "d", 0, 0.75), ("q", "e", 0, 0.25), ("q", "f", 0, 0.125)])
    # In d two queries of the cohort, in e one, in f none.
    expected = [(z[0] - 1.25) / 0.75, z[1] - 7.0, z[2]]
    assert step("zt-norm").apply(found, None, statistics, None) == pytest.approx(expected, rel=1e-9)
    cohort = cohort_sums(places([("c1", "d", 0.0, 1.0), ("c2", "d", 9.9, 3.0), ("c1", "d", 12.0, 5.0)]), 10.0)
    assert set(cohort.values) == {("d", 1, 0), ("d", 1, 1)}
    statistics = {"cost-sums": tallies.CostSums().of(candidates({"q": [0.0, 1.0]})), COHORT: cohort}
    found = places([("q", "d", 5.0, 1.0), ("q", "d", 19.0, 1.0)])
    scores = step("zt-norm", window=10.0).apply(found, None, statistics, None)
    assert scores == pytest.approx([(1.0 - 2.0) / 1.0, 1.0 - 5.0])
    # What all queries come to, less the query's own, is what the others come to.
    scores = {"a": [0.5, -0.5, 0.0], "b": [0.25, -0.75, 0.125], "c": [0.0, 1.0, -2.0]}
    rows = [(query, "def"[k], 0.0, score) for query, some in scores.items() for k, score in enumerate(some)]
    normed = [(q, d, t, (s - z_of(scores)[q][0]) / z_of(scores)[q][1]) for q, d, t, s in rows]
    sums = tallies.CostSums().of(candidates(scores))
    found = step("zt-norm").apply(places(rows), None, {"cost-sums": sums, ALL: cohort_sums(places(normed), None)}, None)
    for row, value in zip(rows, found, strict=True):
        query = row[0]
        others = cohort_sums(places([one for one in normed if one[0] != query]), None)
        alone = step("zt-norm").apply(places([row]), None, {"cost-sums": sums, COHORT: others}, None)
        assert value == alone[0]


def places(rows: list[tuple[str, str, float, float]]) -> pa.Table:
    """Detections: query, document, start, score."""
    rest = {**dict.fromkeys(DETECTIONS.names), "channel": 1}
    names = ("query_id", "doc_id", "start", "score")
    return pa.Table.from_pylist(
        [{**rest, **dict(zip(names, row, strict=True)), "end": row[2] + 0.5} for row in rows], DETECTIONS
    )


def z_of(scores: Mapping[str, list[float]]) -> dict[str, tuple[float, float]]:
    return {query: (float(np.mean(some)), float(np.std(some))) for query, some in scores.items()}


def aligned() -> pa.Table:
    """60 detections of four queries, of which one never occurs, and misses."""
    rng = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    rest = {**dict.fromkeys(TRIALS.names), "doc_id": "d", "channel": 1}
    for query, (hits, false, missed) in {"a": (6, 9, 2), "b": (3, 20, 0), "c": (0, 12, 4), "x": (0, 10, 0)}.items():
        for hit in [True] * hits + [False] * false:
            score = float(np.round(rng.normal(1.5 if hit else 0.0), 2))
            true = {"ref_start": 1.0, "ref_end": 1.4} if hit else {}
            length = float(np.round(rng.uniform(0.2, 0.9), 2))
            rows.append({**rest, "query_id": query, "start": 1.0, "end": 1.0 + length, "score": score, **true})
        rows += [{**rest, "query_id": query, "ref_start": 50.0 + k, "ref_end": 50.5 + k} for k in range(missed)]
    return pa.Table.from_pylist(rows, TRIALS)


TRUE = {"a": 8, "b": 3, "c": 4, "x": 0}


def by_hand(columns: np.ndarray, weights: str, prior: float, queries: int = 4) -> tuple[np.ndarray, float]:
    """Slopes and offset of a plain logistic regression with the weights of the page, prior taken off."""
    rows = [row for row in aligned().to_pylist() if row["score"] is not None]
    hit = np.array([row["ref_start"] is not None for row in rows])
    n = np.array([TRUE[row["query_id"]] for row in rows], float)
    if weights == "queries":
        weight = np.where(hit, prior / (3 * np.maximum(n, 1)), (1 - prior) / (3 * (POINT.trials - n))) * (n > 0)
    else:
        weight = np.where(hit, prior / 15, (1 - prior) / (queries * POINT.trials - 15))
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(columns, hit, sample_weight=weight * 1e4)
    return model.coef_[0], model.intercept_[0] - math.log(prior / (1 - prior))


@pytest.mark.parametrize("weights", ["queries", "trials"])
def test_llr_is_a_weighted_logistic_regression(weights: str) -> None:
    made = step("llr", weights=weights)
    fitted = made.fit([made.gather(aligned(), None, POINT)], POINT)
    table = aligned()
    scores = table["score"].drop_null().to_numpy()
    slopes, offset = by_hand(scores[:, None], weights, 1 / (1 + POINT.beta))
    assert (fitted["score"], fitted["offset"]) == pytest.approx((slopes[0], offset), rel=5e-3)  # but for the weak prior
    found = made.apply(table, fitted, None, POINT)
    assert np.allclose(found[~np.isnan(found)], fitted["offset"] + fitted["score"] * scores)
    assert np.isnan(found).sum() == 6
    assert made.threshold(POINT) == pytest.approx(math.log(POINT.beta))


def lengths() -> dict[str, tallies.Tally]:
    values = {"a": (2, 800_000), "b": (1, 300_000), "c": (3, 1_500_000), "x": (1, 600_000)}
    rows = {(q, k + 1, 1): (1, whole // count, 40) for q, (count, whole) in values.items() for k in range(count)}
    return {"example-lengths": tallies.Tally(tallies.ExampleLengths.quantities, rows)}


def test_side_information_enters_by_its_formula() -> None:
    covariates = ("duration", "examples", "length-ratio", "best", "gap")
    made = step("llr", covariates=covariates, weights="trials")
    assert made.wants() == ("example-lengths",)
    assert tuple(_COVARIATES) == get_args(Covariate)
    fitted = made.fit([made.gather(aligned(), lengths(), POINT)], POINT)
    mine = []
    seconds, examples = {"a": 0.4, "b": 0.3, "c": 0.5, "x": 0.6}, {"a": 2, "b": 1, "c": 3, "x": 1}
    rows = [row for row in aligned().to_pylist() if row["score"] is not None]
    for row in rows:
        query = row["query_id"]
        of = sorted((other["score"] for other in rows if other["query_id"] == query), reverse=True)
        ratio = (row["end"] - row["start"]) / seconds[query]
        columns = map(math.log, (seconds[query], examples[query], ratio))
        values = dict(zip(covariates, (*columns, of[0], of[0] - of[9]), strict=True))
        mine.append(
            fitted["offset"] + fitted["score"] * row["score"] + sum(fitted[name] * values[name] for name in covariates)
        )
    found = made.apply(aligned(), fitted, lengths(), POINT)
    assert np.allclose(found[~np.isnan(found)], mine)
    assert all(fitted[name] != 0 for name in ("score", *covariates))
    with raises(families.DUPLICATE_NAME, where="calibrate.options.llr.covariates", name="best"):
        step("llr", covariates=("best", "best"))


def test_the_rising_curve_is_isotonic_regression() -> None:
    made = step("llr", curve="rising", weights="trials")
    fitted = made.fit([made.gather(aligned(), None, POINT)], POINT)
    line = step("llr", weights="trials")
    straight = line.apply(aligned(), line.fit([line.gather(aligned(), None, POINT)], POINT), None, POINT)
    curved = made.apply(aligned(), fitted, None, POINT)
    there = ~np.isnan(straight)
    hit = aligned()["ref_start"].is_valid().to_numpy()[there]
    prior = 1 / (1 + POINT.beta)
    weight = np.where(hit, prior / 15, (1 - prior) / (4 * POINT.trials - 15))
    s = straight[there]
    plain = IsotonicRegression().fit_transform(
        np.concatenate([[s.min() - 1e-9], s, [s.max() + 1e-9]]),
        np.concatenate([[1.0], hit, [0.0]]),
        sample_weight=np.concatenate([[weight[hit].mean()], weight, [weight[~hit].mean()]]),
    )[1:-1]
    expected = np.log(plain / (1 - plain)) - math.log(prior / (1 - prior))
    assert np.allclose(curved[there] - 1e-6 * s, expected, atol=1e-9)
    # The order within a query stays, although the curve is flat in parts.
    assert np.array_equal(np.argsort(curved[there], kind="stable"), np.argsort(s, kind="stable"))
    assert made.average([fitted, fitted]) == fitted
    other = {**fitted, "offset": fitted["offset"] + 1.0}
    both = made.apply(aligned(), made.average([fitted, other]), None, POINT)
    mean = (curved + made.apply(aligned(), other, None, POINT)) / 2
    assert np.allclose(both[there], mean[there])


def test_at_prior_decides_as_the_bayes_threshold() -> None:
    """ln(beta) to the last digit, as of all that make ratios."""
    for beta in (1 / 3, 1.0, 20.0, 66.6, 999.9):
        point = TwvParameters(trials=5000, beta=beta)
        threshold = step("llr").threshold(point)
        assert threshold == step("fusion").threshold(point) == point.bayes_threshold
        assert threshold == pytest.approx(math.log(beta), rel=1e-15)
        table = detections({"q": [threshold, np.nextafter(threshold, 99) + 1e-9, np.nextafter(threshold, -99) - 1e-9]})
        posteriors = step("at-prior").apply(table, None, None, point)
        assert posteriors[0] == step("at-prior").threshold(point) == 0.5
        assert posteriors[2] < 0.5 < posteriors[1]
    odds, table = 1 / 119, detections({"q": [4.0]})
    found = step("at-prior", vocabulary=120).apply(table, None, None, POINT)
    assert found == pytest.approx([math.exp(4) * odds / (1 + math.exp(4) * odds)])
    assert step("at-prior", prior=1 / 120).apply(table, None, None, POINT) == pytest.approx(found)
    with raises(families.CONFLICTING_OPTIONS, where="calibrate.options.at-prior"):
        step("at-prior", vocabulary=120, prior=0.1)


def test_entropies_and_speech_of_examples_and_sums_of_posteriors() -> None:
    described = lists("cost").examples
    tally = tallies.ExampleEntropies().of(described)
    for row in described.rows():
        p = row["values"].astype(float)
        frames, total = tally.values[row["query_id"], row["example"], 1 << 32]
        assert (frames, total / 2**32) == (len(p), pytest.approx(-(p * np.log(p)).sum(), abs=1e-6))
    with raises(families.UNSUPPORTED, features="mfcc"):
        tallies.ExampleEntropies().of(described._replace(posteriors=(), features=("mfcc",)))
    speech = statistics_of(lists("cost"), ["example-speech"])["example-speech"]
    parts = {key: voiced / frames for key, (frames, voiced) in speech.values.items()}
    assert all(0.25 < part < 0.5 for part in parts.values()), parts  # 0.25 or 0.31 s of 1 s, and what rings on
    wrong = {"steps": ["q-norm", "llr"], "options": {"llr": {"covariates": ["posterior-sum"]}}}
    with raises(families.MISMATCH, step="llr", kind="any"):
        check_steps(Calibrate.model_validate(wrong), "cost")
    check_steps(Calibrate.model_validate({**wrong, "steps": ["q-norm", "logistic", "llr"]}), "cost")
    made = step("llr", covariates=("posterior-sum",))
    table = detections({"a": [0.5, 0.25], "b": [0.125]})
    fitted = {"offset": 0.0, "score": 0.0, "posterior-sum": 1.0}
    assert made.apply(table, fitted, None, POINT) == pytest.approx(np.log([0.75, 0.75, 0.125]))
