"""llr: converts scores to log-likelihood ratios, by a linear function of the score and side information.

    llr = offset + a * score + sum b_j x_j

x_j are the covariates named by the options: properties of the query, of its search results, of the candidate.
Without covariates this is affine calibration. It is fitted by logistic regression on aligned lists, with hits and false alarms
weighted to the effective prior of the operating point, P = 1 / (1 + beta), and ln P / (1 - P) is subtracted again; so the
threshold is ln beta for any training data:

==========  =========================================================================================================
weights     a hit of query q weighs                               a false alarm
==========  =========================================================================================================
queries     P / (Q Ntrue(q)): each query alike, as in TWV         (1 - P) / (Q (T - Ntrue(q)))
trials      P / sum Ntrue: each trial alike, as in cross-entropy  (1 - P) / sum (T - Ntrue)
==========  =========================================================================================================

Missed occurrences and non-targets that are not in the list count in these sums: ratios are those of all
trials. Queries without a true occurrence are left out, as in TWV.

Most hits have poor scores, which dominate the fitted line; it may be wrong near the threshold. With `curve: rising` its
ratios are replaced by the best-fitting ones that rise with them (pool adjacent violators), with the same weights.

Sources: Brummer and du Preez 2006, "Application-independent evaluation of speaker detection" (prior-weighted logistic
regression, pool adjacent violators); Rodriguez-Fuentes and Penagarikano 2013, "MediaEval 2013 Spoken Web Search task: system
performance measures", eqs. 11 to 31 (TWV as a detection cost, and the threshold); side information as in Szöke et al. 2014,
"Calibration and fusion of query-by-example systems - BUT SWS 2013"; best and gap: Pham et al. 2014, "Discriminative score
normalization for keyword search decision".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from swsdist.calibrate.statistics import CostSums, ExampleEntropies, ExampleLengths, ExampleSpeech, Tally, ratios
from swsdist.calibrate.steps.by_term import UNIT as SUM_UNIT
from swsdist.calibrate.steps.by_term import checked, sums
from swsdist.calibrate.steps.interface import Json, Options, Step, Tallies, TwvParameters, number_in, scores_of
from swsdist.calibrate.steps.norms import moments
from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families, warning_text
from swsdist.core.codes import score as codes
from swsdist.core.errors import ConfigError
from swsdist.kernels.coding import coded
from swsdist.kernels.regression import Fitted, Labelled, linear, log_odds, logarithm, maximise, prior_weights, total
from swsdist.registry.entries import Score
from swsdist.score.measures.protocol import prior_of_beta

Covariate = Literal[
    "duration", "examples", "entropy", "speech", "mean", "deviation", "best", "gap", "posterior-sum", "length-ratio"
]

#: Statistics that each covariate needs.
_WANTS: dict[Covariate, str] = {
    "duration": ExampleLengths.name,
    "examples": ExampleLengths.name,
    "length-ratio": ExampleLengths.name,
    "entropy": ExampleEntropies.name,
    "speech": ExampleSpeech.name,
    "mean": CostSums.name,
    "deviation": CostSums.name,
}
#: Covariates computed from the rows of a query's list that are trials.
_OF_LIST: tuple[Covariate, ...] = ("best", "gap", "posterior-sum")
#: Rank of the score that the gap is measured to.
_RANK = 10
#: Lower bound of S(w), seconds and deviations, so that their logarithms are finite.
_LEAST = 1e-3


class LlrOptions(Options):
    """Covariates and weights of the llr."""

    covariates: tuple[Covariate, ...] = Field(
        (),
        description="besides the score: of the query duration (ln of s), examples (ln of their number), entropy (of its "
        "frames, nats), speech (part of its frames with a voice's spectrum); of all its candidates mean and deviation (ln); of "
        "its list best (score), gap (from it to the tenth), posterior-sum (ln); of the candidate length-ratio (ln, to the "
        "query's)",
    )
    curve: Literal["line", "rising"] = Field(
        "line", description="line: as it is; rising: bent to the rising curve that fits best (pool adjacent violators)"
    )
    prior: Literal["point"] | Annotated[float, Field(gt=0, lt=1)] = Field(
        "point", description="effective prior that hits are weighted to; point: 1 / (1 + beta)"
    )
    weights: Literal["queries", "trials"] = Field(
        "queries", description="each query counts alike, as in TWV, or each trial, as in cross-entropy"
    )

    @field_validator("covariates")
    @classmethod
    def _once(cls, names: tuple[Covariate, ...]) -> tuple[Covariate, ...]:
        if len(set(names)) < len(names):
            raise (
                families.DUPLICATE_NAME.of(ConfigError)
                .saying("duplicate covariate {name}", "name it once")
                .invalid(name=next(name for name in names if names.count(name) > 1))
            )
        return names


class Llr(Step[LlrOptions]):
    """Fitted on hits and false alarms of aligned lists; the threshold is that of eq. 31."""

    name = "llr"
    version = 2
    model = LlrOptions

    def wants(self) -> tuple[str, ...]:
        """Statistics of the covariates."""
        return tuple(dict.fromkeys(_WANTS[name] for name in self.options.covariates if name in _WANTS))

    def of_list(self) -> bool:
        """Whether a covariate (best, gap, posterior sum) depends on the list."""
        return any(name in _OF_LIST for name in self.options.covariates)

    def refuses(self, kind: Score) -> str | None:
        """Refuse scores without a posterior sum."""
        if "posterior-sum" in self.options.covariates and kind != "posterior":
            return "its covariate posterior-sum is a sum of probabilities: put logistic before it, or leave the covariate out"
        return None

    def threshold(self, point: TwvParameters) -> float:
        """ln(beta), minus the log-odds of the effective prior 1 / (1 + beta)."""
        return point.bayes_threshold

    def gather(self, aligned: pa.Table, statistics: Tallies, point: TwvParameters | None) -> Labelled:
        """Hits and false alarms by their columns and their query's Ntrue."""
        columns = self._columns(aligned, statistics)[pc.is_valid(aligned["score"]).to_numpy()]
        return Labelled.of(aligned, columns, by_occurrences=True)

    def fit(self, parts: Iterable[Labelled], point: TwvParameters | None) -> Json:
        """Maximum-likelihood offset and slopes, unique by a weak prior (see `kernels.regression`).

        Raises:
            UserError: there are no hits, or no false alarms.
        """
        assert point is not None  # the entry demands it
        prior = self._prior(point)
        rows, hits, false, single = _weighted(Labelled.total(parts), point.trials, prior, self.options.weights)
        fitted = maximise(rows, hits, false)
        if fitted.slopes[0] <= 0:
            warnings.warn(warning_text(codes.NEGATIVE_SLOPE, count=1, step="llr", slope=fitted.slopes[0]), stacklevel=2)
        odds = log_odds(prior)
        line = Fitted(fitted.slopes, fitted.offset - odds)
        model: dict[str, object] = {"offset": line.offset, **dict(zip(self._names, line.slopes, strict=True))}
        if self.options.curve == "line":
            return model
        return {**model, "curve": _rising(linear(rows, line), hits, false, single, odds)}

    def average(self, models: Sequence[Json]) -> Json:
        """The mean of the ratios; curves are kept side by side."""
        names = ("offset", *self._names)
        for model in models:
            self._checked(model)
        if all(model == models[0] for model in models):
            return models[0]
        if self.options.curve == "rising":
            return {"mean_of": [dict(model) for model in models]}
        return {name: math.fsum(number_in(model, name) for model in models) / len(models) for name in names}

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Log-likelihood ratios, natural."""
        assert fitted is not None  # the procedure fits before applying
        columns = self._columns(table, statistics)
        several = fitted.get("mean_of")
        models: list[Json] = several if isinstance(several, list) else [fitted]
        values = np.zeros(len(columns))
        for model in models:
            slopes, points = self._checked(model)
            ratio = linear(columns, slopes)
            values = values + (ratio if points is None else _on_curve(ratio, points))
        result: Floats = np.where(np.isnan(scores_of(table)), np.nan, values / len(models))
        return result

    def _checked(self, model: Json) -> tuple[Fitted, Floats | None]:
        """Line, and points of the curve, of a model; ValueError or KeyError if invalid."""
        line = Fitted(tuple(number_in(model, name) for name in self._names), number_in(model, "offset"))
        if self.options.curve == "line":
            return line, None
        points = np.array(model["curve"], np.float64)
        if points.ndim != 2 or points.shape[1] != 2 or not len(points) or not np.isfinite(points).all():
            raise ValueError("the curve is not pairs of numbers")
        return line, points

    @property
    def _names(self) -> tuple[str, ...]:
        return ("score", *self.options.covariates)

    def _prior(self, point: TwvParameters) -> float:
        return prior_of_beta(point.beta) if self.options.prior == "point" else self.options.prior

    def _columns(self, table: pa.Table, statistics: Tallies) -> Floats:
        """Score and covariates of each row, float64 (n, d); 0 in the rows without a score."""
        scores = scores_of(table)
        detected = ~np.isnan(scores)
        columns = np.zeros((len(scores), len(self._names)))
        if not detected.any():
            return columns
        detections = table.filter(pa.array(detected))
        columns[detected, 0] = scores[detected]
        for place, name in enumerate(self.options.covariates, 1):
            columns[detected, place] = _COVARIATES[name](detections, statistics or {})
        return columns


def _weighted(
    totals: Labelled, each: int, prior: float, weights: Literal["queries", "trials"]
) -> tuple[Floats, Floats, Floats, tuple[float, float]]:
    """Rows, the weights of their hits and false alarms, and the mean weight of a hit and of a false alarm.

    All trials together weigh as much as there are detections.
    """
    kept = totals.true > 0 if weights == "queries" else np.ones(len(totals.true), bool)
    hits, false = prior_weights(totals.hits[kept], totals.false_alarms[kept], None)
    trials = float(each)
    if weights == "queries":
        targets = totals.occurring * totals.true[kept].astype(np.float64)
        others = totals.occurring * (trials - totals.true[kept])
    else:
        targets = np.full(len(hits), float(totals.occurrences))
        others = np.full(len(hits), totals.queries * trials - totals.occurrences)
    number = float(totals.hits[kept].sum()), float(totals.false_alarms[kept].sum())
    scale = number[0] + number[1]
    hits, false = hits * (prior * scale / targets), false * ((1.0 - prior) * scale / others)
    return totals.columns[kept], hits, false, (total(hits) / number[0], total(false) / number[1])


def _rising(ratio: Floats, hits: Floats, false: Floats, mean: tuple[float, float], odds: float) -> list[list[float]]:
    """Points of the rising curve from ratios of the line to the best-fitting ones: pool adjacent violators.

    A hit below all others and a false alarm above them, of mean weight, keep its ends finite (Laplace's rule).

    Args:
        ratio: float64 (n,), of the line.
        hits, false: float64 (n,), weights; both sums positive.
        mean: weight of a hit, and of a false alarm.
        odds: ln of the odds that the weights are at.

    Returns:
        First and last ratio of the line of each block of equal ratios, and that ratio; ascending.
    """
    order = np.argsort(ratio, kind="stable")
    blocks: list[tuple[float, float, float, float]] = []
    rows = zip(*(values[order].tolist() for values in (ratio, hits, false)), strict=True)
    lowest, highest = float(ratio[order[0]]), float(ratio[order[-1]])
    for place, right, wrong in ((lowest, mean[0], 0.0), *rows, (highest, 0.0, mean[1])):
        first = place
        while blocks and (blocks[-1][1] == place or blocks[-1][2] * wrong >= right * blocks[-1][3]):
            first, _, before_right, before_wrong = blocks.pop()
            right, wrong = right + before_right, wrong + before_wrong
        blocks.append((first, place, right, wrong))
    points = []
    for first, last, right, wrong in blocks:
        value = float(logarithm(right) - logarithm(wrong)) - odds
        points += [[first, value], [last, value]]
    return points


def _on_curve(ratio: Floats, points: Floats) -> Floats:
    """Ratios of the line mapped by the piecewise linear curve; a millionth of the line is added, so that
    the order is kept where the curve is flat."""
    x, y = points.T
    at = np.searchsorted(x, ratio, "right").clip(1, len(x) - 1)
    left, right = x[at - 1], x[at]
    width = right - left
    part = np.where(width > 0, (ratio - left) / np.where(width > 0, width, 1.0), 0.0).clip(0.0, 1.0)
    result: Floats = y[at - 1] + (y[at] - y[at - 1]) * part + 1e-6 * ratio
    return result


# -- covariates: of the rows that have a score ----------------------------------------------------------------------

Column = Callable[[pa.Table, Mapping[str, Tally]], Floats]


def _by_query(table: pa.Table, values: Mapping[str, float]) -> Floats:
    names, code = coded(table["query_id"])
    return np.array([values[name] for name in names], np.float64)[code]


def _seconds(table: pa.Table, statistics: Mapping[str, Tally]) -> Floats:
    """Mean duration of the examples of each row's query."""
    microseconds = _by_query(table, ratios(statistics[ExampleLengths.name], "microseconds", "examples"))
    return np.maximum(microseconds / 1e6, _LEAST)


def _examples(table: pa.Table, statistics: Mapping[str, Tally]) -> Floats:
    lengths = statistics[ExampleLengths.name].by_query()
    return logarithm(_by_query(table, {query_id: float(len(rows)) for query_id, rows in lengths.items()}))


def _deviation(table: pa.Table, statistics: Mapping[str, Tally]) -> Floats:
    moments_of_queries = moments(statistics[CostSums.name])
    return logarithm(
        np.maximum(_by_query(table, {name: deviation for name, (_, deviation) in moments_of_queries.items()}), _LEAST)
    )


def _trials(table: pa.Table) -> tuple[Ints, Floats, Ints]:
    """Query and score of the rows that are trials (all without a column `trial`), and the query of each row."""
    _, code = coded(table["query_id"])
    scores = scores_of(table)
    if "trial" not in table.column_names:
        return code, scores, code
    trial_rows = table["trial"].to_numpy(zero_copy_only=False).astype(bool)
    return code[trial_rows], scores[trial_rows], code


def _ranked(table: pa.Table, rank: int) -> Floats:
    """The score of a rank (from 1) among its query's trials; the last if there are fewer."""
    code, scores, of = _trials(table)
    order = np.lexsort((-scores, code))
    first = np.searchsorted(code[order], np.arange(of.max() + 2))
    at = np.minimum(first[:-1] + rank - 1, first[1:] - 1)
    result: Floats = scores[order][at][of]
    return result


def _posterior_sum(table: pa.Table, statistics: Mapping[str, Tally]) -> Floats:
    code, scores, of = _trials(table)
    totals = np.array(sums(code, checked(scores)), dtype=object)
    return logarithm(np.maximum((totals / SUM_UNIT).astype(np.float64), _LEAST))[of]


def _length_ratio(table: pa.Table, statistics: Mapping[str, Tally]) -> Floats:
    length = np.maximum(table["end"].to_numpy() - table["start"].to_numpy(), _LEAST)
    return logarithm(length) - logarithm(_seconds(table, statistics))


_COVARIATES: dict[Covariate, Column] = {
    "duration": lambda table, given: logarithm(_seconds(table, given)),
    "examples": _examples,
    "entropy": lambda table, given: _by_query(table, ratios(given[ExampleEntropies.name], "entropy_sum", "frames")),
    "speech": lambda table, given: _by_query(table, ratios(given[ExampleSpeech.name], "voiced", "frames")),
    "mean": lambda table, given: _by_query(
        table, {name: mean for name, (mean, _) in moments(given[CostSums.name]).items()}
    ),
    "deviation": _deviation,
    "best": lambda table, _: _ranked(table, 1),
    "gap": lambda table, _: _ranked(table, 1) - _ranked(table, _RANK),
    "posterior-sum": _posterior_sum,
    "length-ratio": _length_ratio,
}
