"""Codes of a search without a run: queries as they are typed, a run's settings, calibrations, curves."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.codes.pipeline import BANDS
from swsdist.core.errors import (
    OddError,
    TermError,
    UserError,
)

QUERY_TEXT_NOT_UTF8 = Code(
    "query-text-not-utf8",
    TermError,
    "the text is not UTF-8, or has a zero byte",
    "type it in a terminal that writes UTF-8",
)
DUPLICATE_QUERY_EXAMPLE = families.DUPLICATE_NAME.of(UserError).saying(
    "{count} examples of query {query_id!r} have the number {example}",
    "give them different numbers (column example), or the queries different ids",
)

QUERY_WITHOUT_TEXT = Code(
    "query-without-text",
    TermError,
    "the query has no text, and the method takes written queries",
    "give its text (columns text or term), or search with a method for spoken queries",
)
CLOSED_SEARCHER = families.CLOSED.saying(
    "this searcher is closed", "make another, or search before `close` and within the `with`"
)


INCOMPLETE_STORE = Code(
    "incomplete-store",
    OddError,
    "{progress}, and only those are searched",
    "finish the store with `swsdist index CONFIG`",
)
STEPS_LEFT_OUT = Code(
    "steps-left-out",
    OddError,
    "the run's steps {steps} need its references, its other queries or its number of trials, so scores are {scores}",
    "`swsdist run` gives scores after all steps",
)
OTHER_CALIBRATION = Code("other-calibration", OddError, "{path} has other scores: {differences}")
UNSEARCHED_QUERY = Code(
    "unsearched-query",
    OddError,
    "the query {query_id} has {frames} frames, fewer than search.least_query_frames, {least}: it is not searched",
    "give a longer query, or lower search.least_query_frames",
)
OTHER_BAND = families.OTHER_BAND.saying("{count} of {of} documents have another band than {query}", BANDS)
CHOSEN_CHANNEL = Code(
    "chosen-channel",
    OddError,
    "only channel {channel} of the {count} channels of {query} is searched{why}",
    "others: {others}",
)


# Samples in memory


# Speech synthesis


# Commands


# Files


# Formats


# Truncation and damage


# ffmpeg


# Channels and places
