"""fusion: converts the scores of several systems to a log-likelihood ratio; see `swsdist.fusion.weights`.

Its threshold is the Bayes threshold of the operating point, ln(beta), with beta the weight of false alarms
(Rodriguez-Fuentes and Penagarikano 2013, eq. 31, with the effective prior 1 / (1 + beta)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pydantic import Field

from swsdist.calibrate.statistics import Tally
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters
from swsdist.fusion.weights import Fusion, fit_fusion, label_rows
from swsdist.kernels.regression import Labelled
from swsdist.score.measures.cnxe import prior_of_beta


class FusionOptions(Options):
    """Options of the step."""

    marks: bool = Field(False, description="also fit a weight for each system's having made no detection there")
    prior: float | None = Field(
        None, gt=0, lt=1, description="effective prior of the fit; default: the operating point's, 1 / (1 + beta)"
    )


class FusionStep(Step[FusionOptions]):
    """``llr = w_0 + sum w_k s_k``, fitted on hits and false alarms of aligned joined lists."""

    name = "fusion"
    version = 2
    model = FusionOptions

    def threshold(self, point: TwvParameters) -> float | None:
        """ln(beta)."""
        return point.bayes_threshold

    def gather(
        self, aligned: pa.Table, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Labelled:
        """Rows of scores with their labels."""
        return label_rows(aligned, marks=self.options.marks)

    def fit(self, parts: Iterable[Labelled], point: TwvParameters | None) -> Json:
        """Fit at the prior of the options, or of the operating point; without either, at that of the detections.

        Raises:
            UserError: there are no hits, or no false alarms.
        """
        prior = self.options.prior
        if prior is None and point is not None:
            prior = prior_of_beta(point.beta)
        return _described(fit_fusion(parts, trials=None if point is None else point.trials, prior=prior))

    def average(self, models: Sequence[Json]) -> Json:
        """The mean of log-likelihood ratios is the fusion of the mean weights.

        Raises:
            ValueError: the models are of different systems.
        """
        return _described(mean_of([_read(model) for model in models]))

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Log-likelihood ratios."""
        assert fitted is not None  # the procedure fits before applying
        return _read(fitted).scores(table)


def mean_of(fusions: Sequence[Fusion]) -> Fusion:
    """The fusion of the mean weights of folds.

    Raises:
        ValueError: they are of different systems.
    """
    if len({(item.systems, len(item.marks)) for item in fusions}) > 1:
        raise ValueError("the folds are of different systems")

    def mean(column: Iterable[float]) -> float:
        return math.fsum(column) / len(fusions)

    weights, marks = (
        tuple(mean(column) for column in zip(*several, strict=True))
        for several in ([item.weights for item in fusions], [item.marks for item in fusions])
    )
    return Fusion(fusions[0].systems, weights, mean(item.offset for item in fusions), marks)


def _described(fusion: Fusion) -> Json:
    weights = {name: {"weight": value} for name, value in zip(fusion.systems, fusion.weights, strict=True)}
    for name, value in zip(fusion.systems, fusion.marks, strict=False):
        weights[name]["none_there"] = value
    return {"offset": fusion.offset, "systems": weights}


def _read(model: Json) -> Fusion:
    """Read a fusion from JSON.

    Raises:
        ValueError, KeyError, TypeError: not a fusion.
    """
    offset, systems = model["offset"], model["systems"]
    if not isinstance(systems, Mapping) or not isinstance(offset, int | float) or not systems:
        raise ValueError("no weights of systems")
    names = tuple(systems)
    weights = tuple(float(systems[name]["weight"]) for name in names)
    marked = ["none_there" in systems[name] for name in names]
    marks = tuple(float(systems[name]["none_there"]) for name in names) if all(marked) else ()
    if not all(math.isfinite(value) for value in (offset, *weights, *marks)):
        raise ValueError("a weight is not finite")
    return Fusion(names, weights, float(offset), marks)


def fusions_in(values: Mapping[str, object]) -> list[Fusion]:
    """The fusions in a file of fitted steps (JSON values), one per fold; empty without such a step."""
    steps = values.get("steps")
    for step in steps if isinstance(steps, list) else []:
        if step["name"] == FusionStep.name:
            return [_read(model) for model in step["models"]]
    return []
