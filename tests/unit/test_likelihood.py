"""How likely hits are: right on average for words that are like those of the prior, and moved by judgements."""

from __future__ import annotations

import numpy as np
import pytest

from swsdist.calibrate.likelihood import ENCODER, MFCC, Likelihood, Prior, prior_of, word_of

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


def test_an_encoders_scores_have_a_steeper_line() -> None:
    assert prior_of({"mfcc"}) is MFCC
    assert prior_of({"mfcc", "ssl"}) is ENCODER
    mfcc, encoder = (Likelihood.fit(*NOBODY, prior).likely(np.array([2.0, 6.0])) for prior in (MFCC, ENCODER))
    assert encoder[0] < mfcc[0]
    assert encoder[1] > mfcc[1]


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_prior_is_that_of_the_words_it_is_fitted_to(scale: float) -> None:
    """Scores of any unit: hits of words are as likely as by the prior that they are drawn from."""
    words = [drawn(MFCC, seed) for seed in range(200)]
    scores, truths = (np.concatenate(column) for column in zip(*words, strict=True))
    fitted = Prior.of_words(np.repeat(np.arange(200), 1000), scores * scale, truths)
    values = np.array([1.0, 3.0, 5.0, 7.0])
    found = Likelihood(*fitted, judged=0).likely(values * scale)
    assert found == pytest.approx(Likelihood(*MFCC, judged=0).likely(values), abs=0.06)


def test_words_for_hits() -> None:
    words = ["likely", "likely", "possible", "possible", "unlikely", "unlikely", ""]
    assert [word_of(p) for p in (1.0, 0.5, 0.49, 0.1, 0.09, 0.0, None)] == words


def test_judgements_move_what_is_likely() -> None:
    before = Likelihood.fit(*NOBODY).likely(SCORES)
    assert (np.diff(before) < 0).all()  # a better score is likelier
    best = SCORES[:10]
    good, bad = (Likelihood.fit(best, np.full(10, truth)).likely(SCORES) for truth in (True, False))
    assert (good[:50] > before[:50]).all()
    assert (bad[:50] < before[:50]).all()


def test_when_it_is_no_use_to_go_on() -> None:
    summary = Likelihood.fit(np.linspace(6, 4, 40), np.zeros(40, bool)).summary(SCORES[-200:], 50)
    assert (summary.worth, summary.why) == (False, "nothing-likely")
    assert Likelihood.fit(*NOBODY).summary(SCORES, 50).why == "unjudged"
    assert Likelihood.fit(np.full(5, 5.0), np.ones(5, bool)).summary(SCORES, 50).worth
    nothing = Likelihood.fit(*NOBODY).summary(np.empty(0), 50)
    assert (nothing.expected, nothing.low, nothing.high, nothing.worth) == (0, 0, 0, True)
