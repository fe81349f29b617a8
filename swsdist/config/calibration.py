"""The section `calibrate` of a config, and the check that its steps fit together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, field_validator, model_validator

from swsdist.config.section import IsPath, Section
from swsdist.core.codes import config as codes
from swsdist.core.errors import ConfigError
from swsdist.core.text import suggestion
from swsdist.registry.entries import Score, StepEntry, misfit, statistics_wanted, unfitted
from swsdist.registry.registries import CALIBRATION

#: Steps that people call z-norm.
_Z_NORM = "; did you mean q-norm (z-norm per query), or zt-norm (with a cohort)?"


class Calibrate(Section):
    """Calibration of scores across queries, and the decision threshold."""

    steps: tuple[str, ...] = Field(
        ("q-norm",),
        description="steps, in order: "
        + ", ".join(f"{name} ({entry.says})" for name, entry in CALIBRATION.available.items()),
    )
    options: dict[str, dict[str, object]] = Field(
        default_factory=dict, description="options of steps, for example {kst: {alpha: 2}}"
    )
    alpha: PositiveFloat = Field(
        1.5, description="kst, sto: factor on the sum of probabilities, the expected occurrences"
    )
    threshold: Literal["own", "fitted"] = Field(
        "own",
        description="own: the last step's threshold, if it has one (llr, at-prior, kst, sto); fitted: a fitted threshold",
    )
    fit: Literal["none", "crossfit", "oracle"] | IsPath = Field(
        "crossfit",
        description="fit thresholds and fitted steps by: crossfit (cross-validation over queries), oracle (the scored data), "
        "a fitted file or a run folder, none",
    )
    folds: Annotated[int, Field(ge=2, le=1000)] = Field(5, description="query folds of crossfit")

    def entries(self) -> dict[str, StepEntry]:
        """The registry entry of each step.

        Raises:
            ConfigError: there is no such step.
        """
        return {name: CALIBRATION[name] for name in self.steps}

    @property
    def unfitted(self) -> tuple[str, ...]:
        """The steps before the first fitted one; they need no aligned lists."""
        return self.steps[: unfitted(self.steps, self.entries())]

    @property
    def fitted(self) -> tuple[str, ...]:
        """The other steps; the first of them is fitted."""
        return self.steps[len(self.unfitted) :]

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the candidate statistics that the steps need."""
        return statistics_wanted(self.steps, self.entries())

    @field_validator("steps")
    @classmethod
    def _steps_are_registered(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in CALIBRATION:
                z_norm = name.lower().replace("-", "").replace("_", "") == "znorm"
                hint = _Z_NORM if z_norm else suggestion(name, CALIBRATION)
                raise codes.NO_SUCH_STEP.invalid(step=name, meant=hint, steps=", ".join(CALIBRATION))
        return names

    @model_validator(mode="after")
    def _options_are_of_steps(self) -> Calibrate:
        if others := sorted(set(self.options) - set(self.steps)):
            raise codes.OPTIONS_WITHOUT_STEP.invalid(step=others[0])
        return self


def misfit_of(
    calibrate: Calibrate, score: Score, *, references: bool, joined: bool = False, where: str | None = None
) -> ConfigError | None:
    """The error in the steps of a run: they do not fit together, or a fitted step has nothing to be fitted on.

    Args:
        calibrate: the section.
        score: the kind of score that the search gives.
        references: whether there are references to fit on.
        joined: whether the lists are merged from several systems.
        where: of the error.
    """
    if reason := misfit(calibrate.steps, calibrate.entries(), score, joined=joined):
        return codes.STEPS_MISFIT(where=where, reason=reason)
    if not calibrate.fitted:
        return None
    first = calibrate.fitted[0]
    if calibrate.fit == "none":
        lacks, remedy = "calibrate.fit is none", "calibrate.fit: crossfit"
    elif calibrate.fit in ("crossfit", "oracle") and not references:
        lacks, remedy = "there are no references", "corpus.references, or calibrate.fit to a fitted file"
    else:
        return None
    return codes.STEP_NOT_FITTED(where=where, step=first, lacks=lacks, remedy=remedy)
