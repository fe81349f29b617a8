"""Steps of calibration against plain computations: m-norm, zt-norm, power, llr, at-prior, and what they ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from swsdist.calibrate.procedure import Procedure, check_steps, fit_procedure, make_steps
from swsdist.calibrate.statistics import (
    BINS,
    CostSums,
    ExampleEntropies,
    ExampleLengths,
    ScoreHistogram,
    Tally,
    histograms,
)
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.calibrate.steps.llr import _COVARIATES, Covariate
from swsdist.calibrate.steps.norms import ALL, COHORT, cohort_of, cohort_sums, cohort_table, deviation_of, mode_of
from swsdist.config.model import Calibrate
from swsdist.core.codes import families
from swsdist.core.types import CANDIDATES, DETECTIONS, REFERENCES, TRIALS
from swsdist.kernels.regression import logarithm
from swsdist.score.trials import document_trials
from swsdist.testing.conformance.calibration import lists, statistics_of
from tests.support.coded import raises

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


def test_the_histogram_counts_every_candidate_once() -> None:
    scores = {"a": [0.5, 0.5 + 0.9 / BINS, 0.5 + 1 / BINS, -0.25, -0.25 - 0.5 / BINS], "b": [0.0]}
    whole = ScoreHistogram().of(candidates(scores))
    bins, counts = histograms(whole)["a"]
    assert dict(zip(bins.tolist(), counts.tolist(), strict=True)) == {-257: 1, -256: 1, 512: 2, 513: 1}
    rows = candidates(scores)
    assert ScoreHistogram().of(rows.slice(0, 2)) + ScoreHistogram().of(rows.slice(2)) == whole


def test_m_norm_by_hand() -> None:
    """The mode is where the scores crowd, whatever the tail does; the deviation is of those above it."""
    crowd, tail, best = [-0.5 + k / 4096 for k in range(-8, 9)], [-0.9 + k / 100 for k in range(6)], [-0.4, -0.3]
    statistics = {"score-histogram": ScoreHistogram().of(candidates({"q": [*crowd, *tail, *best]}))}
    bins, counts = histograms(statistics["score-histogram"])["q"]
    width = math.floor(np.std(np.repeat(bins, counts)) / 4)
    held = {centre: counts[abs(bins - centre) <= width].sum() for centre in range(-1024, 0)}
    centres = [centre for centre, count in held.items() if count == max(held.values())]
    mode = (centres[0] + centres[-1] + 1) / 2 / BINS
    assert mode_of(bins, counts) == mode
    assert abs(mode + 0.5) < 0.05
    middle = (np.repeat(bins, counts) + 0.5) / BINS
    for side, kept in (("better", middle >= mode), ("worse", middle <= mode), ("all", middle > -9)):
        expected = math.sqrt(np.mean((middle[kept] - mode) ** 2))
        assert deviation_of(bins, counts, mode, side) == pytest.approx(expected, rel=1e-12)  # type: ignore[arg-type]
    found = step("m-norm").apply(detections({"q": [-0.3, -0.5]}), None, statistics, None)
    above = math.sqrt(np.mean((middle[middle >= mode] - mode) ** 2))
    assert found == pytest.approx([(-0.3 - mode) / above, (-0.5 - mode) / above], rel=1e-12)
    # Of one candidate the mode is its bin.
    assert mode_of(np.array([7]), np.array([3])) == 7.5 / BINS
    assert deviation_of(np.array([7]), np.array([3]), 7.5 / BINS, "better") == 0.0


def places(rows: list[tuple[str, str, float, float]]) -> pa.Table:
    """Detections: query, document, start, score."""
    rest = {**dict.fromkeys(DETECTIONS.names), "channel": 1}
    names = ("query_id", "doc_id", "start", "score")
    return pa.Table.from_pylist(
        [{**rest, **dict(zip(names, row, strict=True)), "end": row[2] + 0.5} for row in rows], DETECTIONS
    )


def z_of(scores: Mapping[str, list[float]]) -> dict[str, tuple[float, float]]:
    return {query: (float(np.mean(some)), float(np.std(some))) for query, some in scores.items()}


def test_zt_norm_by_hand() -> None:
    """z by all candidates of the query, then t by the best z of each cohort query in the document, or in the stretch."""
    heard = [("c1", "d", 0, 1.0), ("c1", "d", 3, 2.0), ("c2", "d", 1, 0.5), ("c1", "e", 0, 7.0)]
    cohort = cohort_sums(places(heard), None)
    assert cohort_of(cohort_table(cohort)) == cohort
    mine = {"q": [0.25, -0.5, 0.125, 0.75]}
    statistics = {"cost-sums": CostSums().of(candidates(mine)), COHORT: cohort}
    mean, deviation = z_of(mine)["q"]
    z = (np.array([0.75, 0.25, 0.125]) - mean) / deviation
    found = places([("q", "d", 0, 0.75), ("q", "e", 0, 0.25), ("q", "f", 0, 0.125)])
    # In d two queries of the cohort, in e one, in f none.
    expected = [(z[0] - 1.25) / 0.75, z[1] - 7.0, z[2]]
    assert step("zt-norm").apply(found, None, statistics, None) == pytest.approx(expected, rel=1e-9)
    cohort = cohort_sums(places([("c1", "d", 0.0, 1.0), ("c2", "d", 9.9, 3.0), ("c1", "d", 12.0, 5.0)]), 10.0)
    assert set(cohort.values) == {("d", 1, 0), ("d", 1, 1)}
    statistics = {"cost-sums": CostSums().of(candidates({"q": [0.0, 1.0]})), COHORT: cohort}
    found = places([("q", "d", 5.0, 1.0), ("q", "d", 19.0, 1.0)])
    scores = step("zt-norm", window=10.0).apply(found, None, statistics, None)
    assert scores == pytest.approx([(1.0 - 2.0) / 1.0, 1.0 - 5.0])


def test_without_a_cohort_the_other_queries_judge() -> None:
    """What all queries come to, less the query's own, is what the others come to."""
    scores = {"a": [0.5, -0.5, 0.0], "b": [0.25, -0.75, 0.125], "c": [0.0, 1.0, -2.0]}
    rows = [(query, "def"[k], 0.0, score) for query, some in scores.items() for k, score in enumerate(some)]
    normed = [(q, d, t, (s - z_of(scores)[q][0]) / z_of(scores)[q][1]) for q, d, t, s in rows]
    sums = CostSums().of(candidates(scores))
    found = step("zt-norm").apply(places(rows), None, {"cost-sums": sums, ALL: cohort_sums(places(normed), None)}, None)
    for row, value in zip(rows, found, strict=True):
        query = row[0]
        others = cohort_sums(places([one for one in normed if one[0] != query]), None)
        alone = step("zt-norm").apply(places([row]), None, {"cost-sums": sums, COHORT: others}, None)
        assert value == alone[0]


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


def test_queries_of_which_nothing_is_listed_have_trials_too() -> None:
    """Where each trial counts alike: they were asked, and the list has no row of them."""
    made = Procedure((step("llr", weights="trials"),), POINT)
    asked = [*TRUE, *(f"silent-{k}" for k in range(12))]
    offsets = {}
    for names in ([], list(TRUE), asked):
        fitted = fit_procedure(
            lambda: [aligned()], made, folds=1, own_threshold=True, point=POINT, trained_on={}, query_ids=iter(names)
        )
        ((model,),) = fitted.models
        offsets[len(names)] = model["score"], model["offset"]
        assert fitted.trained_on["queries"] == 4
    assert offsets[0] == offsets[4]
    slopes, offset = by_hand(aligned()["score"].drop_null().to_numpy()[:, None], "trials", 1 / (1 + POINT.beta), 16)
    assert offsets[16] == pytest.approx((slopes[0], offset), rel=2e-2)  # but for the weak prior


def lengths() -> dict[str, Tally]:
    values = {"a": (2, 800_000), "b": (1, 300_000), "c": (3, 1_500_000), "x": (1, 600_000)}
    rows = {(q, k + 1, 1): (1, whole // count, 40) for q, (count, whole) in values.items() for k in range(count)}
    return {"example-lengths": Tally(ExampleLengths.quantities, rows)}


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


def test_of_document_trials_the_list_is_a_row_a_document() -> None:
    """best, gap and the posterior sum are of the same rows where they are fitted (a row a document) and applied (all rows)."""
    rng = np.random.default_rng(2)
    rows = [
        (query, f"d{document:02d}", float(k), float(rng.uniform(0.01, 0.9)))
        for query in "abcd"
        for document in range(12)
        for k in range(1 + (document + ord(query)) % 4)
    ]
    found = places(rows)
    true = [{"query_id": q, "doc_id": d, "channel": 1, "start": 0.0, "end": 0.5} for q, d, *_ in rows[::7]]
    trials = document_trials(found, pa.Table.from_pylist(true, REFERENCES))
    made = Procedure((step("llr", covariates=("best", "gap", "posterior-sum")),), POINT, by_document=True)
    assert [step("llr", covariates=(name,)).of_list() for name in ("best", "duration")] == [True, False]
    fitted = fit_procedure(lambda: [trials], made, folds=1, own_threshold=True, point=POINT, trained_on={})
    ((model,),) = fitted.models
    again = Procedure.from_run(fitted.to_json()).scores(found).to_pylist()
    best: dict[str, dict[str, float]] = {}
    for query, document, _, score in rows:
        mine = best.setdefault(query, {})
        mine[document] = max(mine.get(document, 0.0), score)
    for (query, *_, score), row in zip(rows, again, strict=True):
        scores = sorted(best[query].values(), reverse=True)
        columns = {
            "score": score,
            "best": scores[0],
            "gap": scores[0] - scores[9],
            "posterior-sum": math.log(sum(scores)),
        }
        assert row["score"] == pytest.approx(model["offset"] + sum(model[name] * columns[name] for name in columns))
    told = {(row["query_id"], row["doc_id"], row["start"]): row["score"] for row in again}
    for row in fitted.scores(trials).to_pylist():
        assert row["score"] is None or told[row["query_id"], row["doc_id"], row["start"]] == row["score"]
    with_all = replace(fitted, by_document=False).scores(found).to_pylist()
    assert [row["score"] for row in with_all] != [row["score"] for row in again]


def test_the_entropy_is_that_of_the_frames_and_speech_where_there_is_a_voice() -> None:
    described = lists("cost").examples
    tally = ExampleEntropies().of(described)
    for row in described.rows():
        p = row["values"].astype(float)
        frames, total = tally.values[row["query_id"], row["example"], 1 << 32]
        assert (frames, total / 2**32) == (len(p), pytest.approx(-(p * np.log(p)).sum(), abs=1e-6))
    with raises(families.UNSUPPORTED, features="mfcc"):
        ExampleEntropies().of(described._replace(posteriors=(), features=("mfcc",)))
    speech = statistics_of(lists("cost"), ["example-speech"])["example-speech"]
    parts = {key: voiced / frames for key, (frames, voiced) in speech.values.items()}
    assert all(0.25 < part < 0.5 for part in parts.values()), parts  # 0.25 or 0.31 s of 1 s, and what rings on


def test_a_posterior_sum_is_of_probabilities() -> None:
    wrong = {"steps": ["q-norm", "llr"], "options": {"llr": {"covariates": ["posterior-sum"]}}}
    with raises(families.MISMATCH, step="llr", kind="any"):
        check_steps(Calibrate.model_validate(wrong), "cost")
    check_steps(Calibrate.model_validate({**wrong, "steps": ["q-norm", "logistic", "llr"]}), "cost")
    made = step("llr", covariates=("posterior-sum",))
    table = detections({"a": [0.5, 0.25], "b": [0.125]})
    fitted = {"offset": 0.0, "score": 0.0, "posterior-sum": 1.0}
    assert made.apply(table, fitted, None, POINT) == pytest.approx(np.log([0.75, 0.75, 0.125]))
