"""Steps by the logistic function and powers: `logistic`, `at-prior`, `power`, and `fusion`.

**logistic** converts scores to probabilities, ``p = sigmoid(slope * score + offset)``, fitted on labelled detections.
Labels come from an aligned list (schema TRIALS): a paired detection is a hit, an unpaired one a false alarm. Fitted on
all of them unweighted, p is the probability that a detection with that score is correct, as keyword specific thresholds
and posterior sums need it. With an effective prior, hits and false alarms are weighted to it, and p is the posterior at
that prior.

**at-prior** converts log-likelihood ratios to posteriors at a prior, with threshold 1/2.

    p = sigmoid(llr + ln P / (1 - P))

p is 1/2 where llr is ``-ln P / (1 - P)``, the Bayes threshold at the effective prior P (eq. 31). P is that of the
operating point, 1 / (1 + beta); or a number; or 1 / |V|, for queries drawn from a vocabulary of |V| words where errors
of both kinds cost alike.

**power** raises probabilities to a power, ``p^gamma``, which flattens or sharpens a query's list before its sum. Before
`sto` this is ``p^gamma / sum p^gamma``, the form that Mamou et al. 2013 normalise by. 0 stays 0.

**fusion** converts the scores of several systems to a log-likelihood ratio; see `swsdist.calibrate.fusion`. Its
threshold is the Bayes threshold of the operating point, ln(beta) (eq. 31, with the effective prior 1 / (1 + beta)).

Sources: Rodriguez-Fuentes and Penagarikano 2013, "MediaEval 2013 Spoken Web Search task: system performance measures",
eqs. 30, 31 and 36, section 4.2.3 (1 / |V|) and section 5 (prior-weighted linear calibration); Brummer and du Preez
2006, "Application-independent evaluation of speaker detection"; power: Mamou et al., "System combination and score
normalization for spoken term detection", ICASSP 2013.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from pydantic import Field, PositiveFloat, SerializerFunctionWrapHandler, model_serializer, model_validator

from swsdist.calibrate.fusion import Fusion, fit_fusion, label_rows
from swsdist.calibrate.steps.by_term import checked
from swsdist.calibrate.steps.interface import (
    Json,
    Options,
    Step,
    Tallies,
    TwvParameters,
    number_in,
    of_scores,
    scores_of,
)
from swsdist.core.arrays import Floats
from swsdist.core.codes import families, warning_text
from swsdist.core.codes import score as codes
from swsdist.core.errors import ConfigError
from swsdist.kernels.regression import (
    Fitted,
    Labelled,
    exponential,
    linear,
    log_odds,
    logarithm,
    maximise,
    prior_weights,
    sigmoid,
)
from swsdist.score.measures.protocol import prior_of_beta


@dataclass(frozen=True)
class Logistic:
    """``p = sigmoid(slope * score + offset)``."""

    slope: float
    offset: float

    def log_odds(self, scores: ArrayLike) -> Floats:
        """ln(p / (1 - p)); at an effective prior that is the log-likelihood ratio plus the prior's log-odds."""
        values = np.asarray(scores, dtype=np.float64)
        return linear(values.reshape(-1, 1), Fitted((self.slope,), self.offset)).reshape(values.shape)

    def probability(self, scores: ArrayLike) -> Floats:
        """p of scores of any shape."""
        return sigmoid(self.log_odds(scores))


def fit_logistic(labelled: Labelled, *, prior: float | None = None) -> Logistic:
    """The maximum-likelihood logistic, unique and finite by a weak prior on the slope (see `regression`).

    Warns if the slope is not positive: higher scores should be more likely hits.

    Args:
        labelled: the training data.
        prior: effective prior that hits are weighted to; None: unweighted.

    Raises:
        UserError: no hits or no false alarms; the prior is not between 0 and 1.
    """
    fitted = maximise(labelled.columns, *prior_weights(labelled.hits, labelled.false_alarms, prior))
    slope = fitted.slopes[0]
    if slope <= 0:
        warnings.warn(warning_text(codes.NEGATIVE_SLOPE, count=1, step="logistic", slope=slope), stacklevel=2)
    return Logistic(slope, fitted.offset)


class LogisticOptions(Options):
    """Options of the logistic."""

    prior: float | None = Field(
        None, gt=0, lt=1, description="effective prior of the fit; default: as the detections are"
    )

    @model_serializer(mode="wrap")
    def _only_what_is_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        # Models fitted before this option existed lack it, and are equal.
        return {name: value for name, value in dump(self).items() if value is not None}


class LogisticStep(Step[LogisticOptions]):
    """``p = sigmoid(slope * score + offset)``, fitted on hits and false alarms of aligned lists."""

    name = "logistic"
    version = 1
    model = LogisticOptions

    def gather(self, aligned: pa.Table, statistics: Tallies, point: TwvParameters | None) -> Labelled:
        """Hits and false alarms by score."""
        return Labelled.of(aligned)

    def fit(self, parts: Iterable[Labelled], point: TwvParameters | None) -> Json:
        """Maximum-likelihood slope and offset.

        Raises:
            UserError: there are no hits, or no false alarms.
        """
        model = fit_logistic(Labelled.total(parts), prior=self.options.prior)
        return {"slope": model.slope, "offset": model.offset}

    def average(self, models: Sequence[Json]) -> Json:
        """The mean of log-odds is the logistic of the mean slope and offset."""
        return {name: math.fsum(number_in(m, name) for m in models) / len(models) for name in ("slope", "offset")}

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Probabilities."""
        assert fitted is not None  # the procedure fits before applying
        return of_scores(table, Logistic(number_in(fitted, "slope"), number_in(fitted, "offset")).probability)


class AtPriorOptions(Options):
    """The prior."""

    prior: Literal["point"] | Annotated[float, Field(gt=0, lt=1)] = Field(
        "point", description="prior that a trial is a target; point: 1 / (1 + beta)"
    )
    vocabulary: Annotated[int, Field(ge=2)] | None = Field(
        None, description="instead: words that queries are drawn from, |V|; the prior is 1 / |V|"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> AtPriorOptions:
        if self.vocabulary is not None and self.prior != "point":
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying("prior and vocabulary both set the prior", "give prior or vocabulary")
                .invalid()
            )
        return self


class AtPrior(Step[AtPriorOptions]):
    """Applied to each score; the threshold is 1/2."""

    name = "at-prior"
    version = 1
    model = AtPriorOptions

    def threshold(self, point: TwvParameters) -> float:
        """1/2."""
        return 0.5

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Posteriors."""
        assert point is not None  # the entry demands it
        log_odds_of_prior = self._log_odds(point)
        return of_scores(table, lambda scores: sigmoid(scores + log_odds_of_prior))

    def _log_odds(self, point: TwvParameters) -> float:
        if self.options.vocabulary is not None:
            return -float(logarithm(self.options.vocabulary - 1))
        if self.options.prior == "point":
            return -point.bayes_threshold
        return log_odds(self.options.prior)


class PowerOptions(Options):
    """The exponent."""

    gamma: PositiveFloat = Field(1.0, description="exponent; below 1 it flattens, above 1 it sharpens")


class Power(Step[PowerOptions]):
    """Applied to each score."""

    name = "power"
    version = 1
    model = PowerOptions

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Probabilities.

        Raises:
            UserError: a score is not a probability.
        """
        scores = scores_of(table)
        missing = np.isnan(scores)
        probabilities = checked(np.where(missing, 0.0, scores))
        if self.options.gamma == 1.0:
            return scores
        some = probabilities > 0
        raised = np.zeros(len(probabilities))
        raised[some] = np.minimum(exponential(self.options.gamma * logarithm(probabilities[some])), 1.0)
        result: Floats = np.where(missing, np.nan, raised)
        return result


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

    def gather(self, aligned: pa.Table, statistics: Tallies, point: TwvParameters | None) -> Labelled:
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

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
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
