"""Every registered step of calibration passes the suite for third parties, and the suite catches what is broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, Field

from examples import best_norm
from swsdist.calibrate.procedure import Procedure, make_steps
from swsdist.calibrate.steps.interface import Options, Step, scores_of
from swsdist.config import config_from_dict
from swsdist.core.codes import config as registry_codes
from swsdist.registry.entries import StepEntry
from swsdist.registry.registries import CALIBRATION
from swsdist.testing.conformance.calibration import check_step, kind_for, lists
from tests.support.coded import raises

pytestmark = pytest.mark.filterwarnings("ignore:.*negative-slope")


@pytest.mark.parametrize("name", list(CALIBRATION))
def test_registered(name: str) -> None:
    (step,) = make_steps([name], {})
    check_step(step, CALIBRATION[name])


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_the_example(part: float) -> None:
    check_step(best_norm.BestNorm(best_norm.BestNormOptions(part=part)), best_norm.STEP)


#: Of the query, and of the candidate: all but the posterior sum, which is of probabilities.
SIDES = ("duration", "examples", "entropy", "speech", "mean", "deviation", "best", "gap", "length-ratio")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kst", {"alpha": 0.25}),
        ("sto", {"alpha": 0.25}),
        ("m-norm", {"deviation": "worse"}),
        ("m-norm", {"deviation": "all"}),
        ("zt-norm", {"window": 30.0}),
        ("power", {"gamma": 0.5}),
        ("llr", {"weights": "trials", "prior": 0.5}),
        ("llr", {"curve": "rising"}),
        ("llr", {"covariates": SIDES}),
        ("llr", {"covariates": SIDES, "curve": "rising"}),
        ("at-prior", {"prior": 0.5}),
        ("at-prior", {"vocabulary": 120}),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_with_other_options(name: str, options: dict[str, object]) -> None:
    (step,) = make_steps([name], {name: options})
    check_step(step, CALIBRATION[name])


class HalvingOptions(Options):
    times: int = Field(1, ge=1)


class Halving(Step[HalvingOptions]):
    """The smallest step that is right: scores are halved a few times."""

    name = "halving"
    version = 1
    model = HalvingOptions

    def apply(self, table: Any, fitted: Any, statistics: Any, point: Any) -> Any:
        return scores_of(table) / 2**self.options.times


ENTRY = StepEntry(f"{__name__}:Halving", 1)


def test_the_smallest_one_passes() -> None:
    for times in (1, 4):
        check_step(Halving(HalvingOptions(times=times)), ENTRY)


def test_a_step_of_ones_own_is_named_by_the_config() -> None:
    CALIBRATION.add("halving", ENTRY)
    try:
        least = {"run": "r", "corpus": {"documents": "d.csv"}}
        values = {"steps": ["q-norm", "halving"], "options": {"halving": {"times": 2}}}
        config = config_from_dict({**least, "calibrate": values}, ".").calibrate
        assert config.unfitted == ("q-norm", "halving")
        steps = Procedure(make_steps(config.steps[1:], config.options, config.alpha))
        table = lists("cost").detections
        assert np.array_equal(steps.scores(table)["score"].to_numpy(), table["score"].to_numpy() / 4)
        with raises(registry_codes.UNKNOWN_ENTRY_OPTION, name="halving", options="times"):
            make_steps(["halving"], {"halving": {"alpha": 2}})
    finally:
        CALIBRATION.remove("halving")


class NoVersion(Halving):
    version = None  # type: ignore[assignment]


class TakesAnything(Halving):
    class Loose(BaseModel):
        times: int = 1

    model = Loose  # type: ignore[assignment]

    def __init__(self, options: Any) -> None:
        self.options = self.Loose(times=options.times)  # type: ignore[assignment]


class Fits(Halving):
    def fit(self, *arguments: Any) -> Any:
        return {"a": 1}


class Rounds(Halving):
    def apply(self, *args: Any) -> Any:
        return super().apply(*args).astype(np.float32)


class DropsMisses(Halving):
    def apply(self, *args: Any) -> Any:
        return np.nan_to_num(super().apply(*args))


class Explodes(Halving):
    def apply(self, *args: Any) -> Any:
        return super().apply(*args) / 0


class LooksAtOthers(Halving):
    def apply(self, *args: Any) -> Any:
        scores = super().apply(*args)
        return scores - np.nanmax(scores)


class LooksAtTheOrder(Halving):
    def apply(self, *args: Any) -> Any:
        scores = super().apply(*args)
        return scores + np.arange(len(scores))


class LooksAtTimes(Halving):
    def apply(self, table: Any, *args: Any) -> Any:
        late = table["start"].to_numpy() if "start" in table.column_names else 0.0
        return super().apply(table, *args) + np.nan_to_num(late)


class HasAThreshold(Halving):
    def threshold(self, point: Any) -> float:
        return 0.5


_calls = 0


class Wanders(Halving):
    def apply(self, *args: Any) -> Any:
        global _calls
        _calls += 1
        return super().apply(*args) + _calls


def broken() -> Iterator[tuple[type[Halving], StepEntry, str]]:
    yield NoVersion, ENTRY, "version is None, not an integer of at least 1"
    yield Halving, replace(ENTRY, version=2), "its version is 1, but its entry says 2"
    yield Halving, replace(ENTRY, takes="distance"), "there is no kind of score 'distance'"
    yield Halving, replace(ENTRY, gives="posterior"), "a score is not in"
    yield Halving, replace(ENTRY, depends_on=("own query", "references")), "depends_on names references"
    yield Halving, replace(ENTRY, statistics=("sums",)), "it wants the statistic 'sums'; there are cost-sums"
    yield Halving, replace(ENTRY, first=True), "it must come first, but wants no statistics"
    yield Halving, replace(ENTRY, columns=("voice",)), "it wants the column 'voice'"
    yield Halving, replace(ENTRY, own_threshold=True), "its own threshold is None"
    yield HasAThreshold, ENTRY, "does not say so"
    yield TakesAnything, ENTRY, "an unknown option is accepted"
    yield Fits, ENTRY, "does not say that it is fitted"
    yield Rounds, ENTRY, "does not give as many float64 scores"
    yield DropsMisses, ENTRY, "or a score to a miss"
    yield Explodes, ENTRY, "a score is infinite"
    yield LooksAtOthers, ENTRY, "depend on other queries' rows"
    yield LooksAtTheOrder, ENTRY, "depend on the order of rows"
    yield LooksAtTimes, ENTRY, "depend on columns that its entry does not name"
    yield Wanders, ENTRY, "other scores the second time"


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("kind", "entry", "complaint"), broken(), ids=lambda value: getattr(value, "__name__", ""))
def test_broken_ones_are_caught(kind: type[Halving], entry: StepEntry, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint) as caught:
        check_step(kind(HalvingOptions()), entry)
    assert str(caught.value).startswith("step 'halving': ")


def test_a_taken_name_is_caught() -> None:
    class Mine(Halving):
        name = "kst"

    with pytest.raises(AssertionError, match=r"the name is taken: swsdist\.calibrate\.steps\.by_term:Kst"):
        check_step(Mine(HalvingOptions()), ENTRY)


@pytest.mark.parametrize("name", list(CALIBRATION))
def test_the_suite_tries_what_a_step_takes(name: str) -> None:
    scores = lists(kind_for(CALIBRATION[name])).detections["score"].to_numpy()
    if kind_for(CALIBRATION[name]) == "posterior":
        assert (scores.min(), scores.max()) == (0.0, 1.0)
    assert len(set(scores.tolist())) > 100
