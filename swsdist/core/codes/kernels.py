"""Codes of kernels: distances, recurrences, logistic regression."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, UserError

DIMENSION_TOO_LARGE = Code(
    "dimension-too-large",
    UserError,
    "{dimension} dimensions are too many for exact sums in the distance {name}",
    "split the features into streams, each with its own distance, or raise the floor where the distance has one",
)
NEEDS_POSTERIORS = Code(
    "needs-posteriors",
    DataError,
    "the distance {name} takes posteriors, and frame {frame} is not one: {problem}",
    "give probabilities that sum to 1, with normalise: none; give each of several networks' columns their own stream",
)
STREAM_COLUMNS_OUTSIDE = Code(
    "stream-columns-outside",
    ConfigError,
    "the features have {dimension} columns, not {first} to {stop}",
    "set [first, stop] with 0 <= first < stop <= {dimension}",
)
WEIGHTS_TOO_UNEQUAL = Code(
    "weights-too-unequal",
    ConfigError,
    "the sum {terms} does not fit 12 bits",
    "give the streams weights that differ less",
)
QUERY_TOO_LONG = Code(
    "query-too-long",
    UserError,
    "a query of {frames} frames is too long for {use}",
    "cut it into queries of at most {longest} frames",
)
QUERY_AND_BAND_TOO_LONG = Code(
    "query-and-band-too-long",
    UserError,
    "a query of {frames} frames and a band of {band} are too long for the recurrence segmental",
    "cut it into shorter queries: frames and band together are at most {longest}",
)
ONE_KIND_OF_TRIAL = Code(
    "one-kind-of-trial",
    UserError,
    "a logistic regression needs hits and false alarms; the labelled detections contain no {missing}",
    "fit to more queries (fewer folds), or give a fitted FILE",
)
BAD_EFFECTIVE_PRIOR = Code(
    "bad-effective-prior",
    UserError,
    "the effective prior {prior} is not between 0 and 1",
    "give a number between 0 and 1",
)
