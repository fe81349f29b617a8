"""Protocols, trials and beta against the papers' numbers and C's rounding."""

import math

import pytest

from swsdist.core.codes import families
from swsdist.score.measures.protocol import PROTOCOLS, beta, number_of_trials, protocol
from tests.support.coded import raises

#: Documents and queries, in the order of the tables.
SETS = ("dev-dev", "dev-eval", "eval-dev", "eval-eval")


def test_operating_points() -> None:
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


def test_beta_from_the_data() -> None:
    rules = protocol("sws2012")
    assert beta(rules, 1000.5, 50) == (1000.5 - 50) / 50
    assert beta(protocol("sws2012", trials_per_second=2), 1000, 50) == 39
    assert beta(protocol("sws2012", beta=15.32), 1000, 50) == 15.32
    for total_true in (0, 1000, 1001):
        with raises(families.UNDEFINED):
            beta(rules, 1000.0, total_true)


def test_trials_round_as_c_does() -> None:
    rules = protocol("sws2013")
    trials = {100.5: 100, 101.5: 102, 99.49999: 99, 0.50001: 1, 1e6 + 0.5: 1_000_000}
    assert {seconds: number_of_trials(rules, seconds) for seconds in trials} == trials
    assert number_of_trials(protocol("sws2013", trials_per_second=3.7), 1000) == 3700
    assert number_of_trials(protocol("kwseval", trials_per_second=2.0), 1000) == 500
    for seconds in (0.0, 0.5, -3.0, math.nan, math.inf):
        with raises(families.INVALID_VALUE):
            number_of_trials(rules, seconds)


def test_costs_and_prior_make_beta() -> None:
    assert protocol("stdeval", cost=1, value=100, prior=0.00015).beta == protocol("sws2013").beta
    assert protocol("sws2012", cost=21.03).beta == 21.03
    assert protocol("sws2013").prior == pytest.approx(0.00015, rel=1e-12)
    assert protocol("quesst").beta == pytest.approx((1 - 0.0741289) / 0.0741289)
    with raises(families.CONFLICTING_OPTIONS):
        protocol("sws2013", beta=3, prior=0.5)


def test_sws2012_as_it_was_run() -> None:
    rules = protocol("sws2012", as_run=True)
    assert (rules.tolerance, rules.word_gap) == (1.0, 0.5)
    rules = protocol("sws2012-african-dev-dev", as_run=True)
    assert (rules.tolerance, rules.word_gap, rules.beta) == (1.0, 0.5, 15.32)
    with raises(families.UNSUPPORTED):
        protocol("sws2012-indian-dev-dev", as_run=True)
    with raises(families.UNSUPPORTED):
        protocol("sws2013", as_run=True)
