"""Codes of methods: queries, search, backends, first passes."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import AudioError, ConfigError, DataError, TermError, UserError

# Queries

TEXT_QUERY = Code(
    "text-query",
    AudioError,
    "the query is text, and the method {method} takes spoken queries",
    "give a recording of it (path, or corpus.spoken for a TLIST or KWLIST), or a place in a document (doc_id), or search "
    "with a method for text",
)
PLACE_TOO_SHORT = families.TOO_SHORT.saying(
    "the place is shorter than one frame ({seconds:g} s)", "give a longer place"
)
TOO_FEW_KEPT = Code(
    "too-few-kept",
    AudioError,
    "search.drop leaves {kept} of the query's {frames} frames; at least {least} are searched",
    "give a query with more speech that the track knows as such, lower search.least_query_frames, or leave search.drop out",
)

# Search

UNUSED_SEARCH_KEY = families.UNUSED_OPTION.saying(
    "the method {method} does not use {key}", "remove it, or search with a method that uses it (search.method)"
)
TOO_MANY_LABELS = Code(
    "too-many-labels",
    TermError,
    "a path of the query's lattice has {labels} labels; at most {most} can be aligned",
    "give a shorter query",
)
NO_SUCH_FRAME = families.UNKNOWN_NAME.saying(
    "the document has {frames} frames, none with the number {frame}", "give the end of a detection"
)

# Backends

GPU_MEMORY = Code(
    "gpu-memory",
    UserError,
    "the GPU memory for the search is too small{use}: {needed:.3g} GB are needed, {available:.3g} GB available",
    "raise it, search shorter queries or documents, or set search.backend to cpu",
)

# First passes


NEEDS_POSTERIORS = Code(
    "needs-posteriors",
    DataError,
    "the distance {name} takes posteriors, and frame {frame} is not one: {problem}",
    "give probabilities that sum to 1, with normalise: none; give each of several networks' columns their own stream",
)
STREAM_COLUMNS_OUTSIDE = families.UNKNOWN_NAME.of(ConfigError).saying(
    "the features have {dimension} columns, not {first} to {stop}",
    "set [first, stop] with 0 <= first < stop <= {dimension}",
)
QUERY_TOO_LONG = families.TOO_LARGE.saying(
    "a query of {frames} frames is too long for {use}", "cut it into queries of at most {longest} frames"
)
