"""Every registered step of calibration passes the suite for third parties, and the suite catches what is broken."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
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


def test_a_step_of_ones_own_is_named_by_the_config(added: Any) -> None:
    added(CALIBRATION, "halving", ENTRY)
    values = {"steps": ["q-norm", "halving"], "options": {"halving": {"times": 2}}}
    config = config_from_dict({"run": "r", "corpus": {"documents": "d.csv"}, "calibrate": values}, ".").calibrate
    assert config.unfitted == ("q-norm", "halving")
    steps = Procedure(make_steps(config.steps[1:], config.options, config.alpha))
    table = lists("cost").detections
    assert np.array_equal(steps.scores(table)["score"].to_numpy(), table["score"].to_numpy() / 4)
    with raises(registry_codes.UNKNOWN_ENTRY_OPTION, name="halving", options="times"):
        make_steps(["halving"], {"halving": {"alpha": 2}})


class Loose(BaseModel):
    times: int = 1


def _loosely(self: Any, options: Any) -> None:
    self.options = Loose(times=options.times)


def _gives(change: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    return {"apply": lambda self, *arguments: change(Halving.apply(self, *arguments))}


def _looks_at_times(self: Halving, table: Any, *others: Any) -> Any:
    late = table["start"].to_numpy() if "start" in table.column_names else 0.0
    return Halving.apply(self, table, *others) + np.nan_to_num(late)


_calls = count(1)

#: What is wrong with a step, or with its entry, by what the suite says of it.
BROKEN: dict[str, tuple[dict[str, Any], StepEntry]] = {
    "version is None, not an integer of at least 1": ({"version": None}, ENTRY),
    "its version is 1, but its entry says 2": ({}, replace(ENTRY, version=2)),
    "there is no kind of score 'distance'": ({}, replace(ENTRY, takes="distance")),
    "a score is not in": ({}, replace(ENTRY, gives="posterior")),
    "depends_on names references": ({}, replace(ENTRY, depends_on=("own query", "references"))),
    "it wants the statistic 'sums'; there are cost-sums": ({}, replace(ENTRY, statistics=("sums",))),
    "it must come first, but wants no statistics": ({}, replace(ENTRY, first=True)),
    "it wants the column 'voice'": ({}, replace(ENTRY, columns=("voice",))),
    "its own threshold is None": ({}, replace(ENTRY, own_threshold=True)),
    "does not say so": ({"threshold": lambda self, point: 0.5}, ENTRY),
    "an unknown option is accepted": ({"model": Loose, "__init__": _loosely}, ENTRY),
    "does not say that it is fitted": ({"fit": lambda self, *arguments: {"a": 1}}, ENTRY),
    "does not give as many float64 scores": (_gives(lambda scores: scores.astype(np.float32)), ENTRY),
    "or a score to a miss": (_gives(np.nan_to_num), ENTRY),
    "a score is infinite": (_gives(lambda scores: scores / 0), ENTRY),
    "depend on other queries' rows": (_gives(lambda scores: scores - np.nanmax(scores)), ENTRY),
    "depend on the order of rows": (_gives(lambda scores: scores + np.arange(len(scores))), ENTRY),
    "depend on columns that its entry does not name": ({"apply": _looks_at_times}, ENTRY),
    "other scores the second time": (_gives(lambda scores: scores + next(_calls)), ENTRY),
    r"the name is taken: swsdist\.calibrate\.steps\.by_term:Kst": ({"name": "kst"}, ENTRY),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("complaint", BROKEN)
def test_broken_ones_are_caught(complaint: str) -> None:
    members, entry = BROKEN[complaint]
    step = type("Broken", (Halving,), members)(HalvingOptions())
    with pytest.raises(AssertionError, match=complaint) as caught:
        check_step(step, entry)
    assert str(caught.value).startswith(f"step '{step.name}': ")


@pytest.mark.parametrize("name", list(CALIBRATION))
def test_the_suite_tries_what_a_step_takes(name: str) -> None:
    scores = lists(kind_for(CALIBRATION[name])).detections["score"].to_numpy()
    if kind_for(CALIBRATION[name]) == "posterior":
        assert (scores.min(), scores.max()) == (0.0, 1.0)
    assert len(set(scores.tolist())) > 100
