"""The section `calibrate` of a config: steps of calibration by name, and whether they fit together."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, field_validator, model_validator

from swsdist.config.section import IsPath, Section
from swsdist.registry.calibration_entries import Score, StepEntry, misfit, statistics_wanted, unfitted
from swsdist.registry.registries import CALIBRATION

#: What `znorm` may mean.
_Z_NORM = "q-norm, which is the field's z-norm, or zt-norm, which goes on by a cohort"


class Calibrate(Section):
    """Scores of different queries made comparable, and the threshold that decides."""

    steps: tuple[str, ...] = Field(
        ("q-norm",),
        description="what is done to scores, in this order: "
        + ", ".join(f"{name} ({entry.says})" for name, entry in CALIBRATION.own.items()),
    )
    options: dict[str, dict[str, object]] = Field(
        default_factory=dict, description="options of steps, for example {kst: {alpha: 2}}"
    )
    alpha: PositiveFloat = Field(
        1.5, description="kst, sto: a query is taken to occur alpha times its sum of probabilities"
    )
    threshold: Literal["own", "fitted"] = Field(
        "own",
        description="decide by the last step's own threshold if it has one (llr, at-prior, kst, sto), or by one that is fitted",
    )
    fit: Literal["none", "crossfit", "oracle"] | IsPath = Field(
        "crossfit",
        description="threshold, logistic from: crossfit (other folds of queries), oracle (all that is scored), a file or a "
        "run's folder, none",
    )
    folds: Annotated[int, Field(ge=2)] = Field(5, description="folds of queries, by stable hash, for crossfit")

    def entries(self) -> dict[str, StepEntry]:
        """What is known of each step.

        Raises:
            ConfigError: there is no such step.
        """
        return {name: CALIBRATION[name] for name in self.steps}

    @property
    def unfitted(self) -> tuple[str, ...]:
        """The steps before the first that is fitted: they need no aligned lists."""
        return self.steps[: unfitted(self.steps, self.entries())]

    @property
    def fitted(self) -> tuple[str, ...]:
        """The others: the first of them is fitted."""
        return self.steps[len(self.unfitted) :]

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics of candidates that the steps want."""
        return statistics_wanted(self.steps, self.entries())

    @field_validator("steps")
    @classmethod
    def _steps_are_registered(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in CALIBRATION:
                close = get_close_matches(name, list(CALIBRATION), 1)
                meant = _Z_NORM if name.lower().replace("-", "").replace("_", "") == "znorm" else "".join(close)
                hint = f" (did you mean {meant}?)" if meant else ""
                raise ValueError(f"there is no step {name}{hint}; there are {', '.join(CALIBRATION)}")
        return names

    @model_validator(mode="after")
    def _options_are_of_steps(self) -> Calibrate:
        if others := sorted(set(self.options) - set(self.steps)):
            raise ValueError(f"options are given for {others[0]}, which is not among the steps")
        return self


def misfit_of(calibrate: Calibrate, score: Score, *, references: bool, joined: bool = False) -> str | None:
    """What is wrong with the steps of a run; None if nothing is.

    Args:
        calibrate: the section.
        score: the kind of score that the search gives.
        references: whether there are true occurrences to fit on.
        joined: whether the lists are those of several systems.
    """
    complaint = misfit(calibrate.steps, calibrate.entries(), score, joined=joined)
    if complaint or not calibrate.fitted:
        return complaint
    first = calibrate.fitted[0]
    if calibrate.fit == "none":
        return f"{first} is fitted, but calibrate.fit is none"
    if calibrate.fit in ("crossfit", "oracle") and not references:
        return f"{first} is fitted, which needs corpus.references, or a fitted file in calibrate.fit"
    return None
