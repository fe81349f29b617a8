"""Codes of methods: queries, search, backends, first passes."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import AudioError, ConfigError, DataError, StoreError, TermError, UserError

# Queries

TEXT_QUERY = Code(
    "text-query",
    AudioError,
    "the query is text, and the method {method} takes spoken queries",
    "give a recording of it (path, or corpus.spoken for a TLIST or KWLIST), or a place in a document (doc_id), or search "
    "with a method for text",
)
NO_SPEECH = Code(
    "no-speech",
    AudioError,
    "the query contains no speech, only silence, hum, noise, a tone or clicks",
    "record it again, name the place (start, end), or do not trim it (queries.trim: none, --no-trim)",
)
PHRASE_TOO_LONG = Code(
    "phrase-too-long",
    AudioError,
    "the recording lasts {seconds:.0f} s, one phrase of it {phrase:.0f} s, too long for a query",
    "mark a place: FILE:START-END (in a table: start, end); or do not trim it: queries.trim: none, --no-trim",
)
PLACE_TOO_SHORT = Code(
    "place-too-short", AudioError, "the place is shorter than one frame ({seconds:g} s)", "give a longer place"
)
TOO_FEW_KEPT = Code(
    "too-few-kept",
    AudioError,
    "search.drop leaves {kept} of the query's {frames} frames; at least {least} are searched",
    "give a query with more speech that the track knows as such, lower search.least_query_frames, or leave search.drop out",
)
TOO_LONG = Code("too-long", AudioError, "the query has {frames} frames; at most {longest} can be {use}", "{fix}")
POOLED_OUTSIDE = Code(
    "pooled-outside",
    ConfigError,
    "pooled statistics are of all queries of a run, and these are no queries of it",
    "set search.documents_by and search.queries_by to collection",
)

# Search

NOT_METHOD_STORE = Code(
    "not-method-store",
    UserError,
    "the method {method} reads a store of {expected}, and the store holds {kind}",
    "name another store, or another method (search.method)",
)
DTW_OPTIONS = Code(
    "dtw-options",
    ConfigError,
    "the method dtw has no {options} in search.method_options",
    "set its options in the section search",
)
UNUSED_SEARCH_KEY = Code(
    "unused-search-key",
    ConfigError,
    "the method {method} does not use {key}",
    "remove it, or search with a method that uses it (search.method)",
)
CONFUSIONS_LINE = Code(
    "confusions-line", DataError, "the line is not QUERY-LABEL DOCUMENT-LABEL COST: {text}", "give these three"
)
NEGATIVE_CONFUSION = Code(
    "negative-confusion", DataError, "the cost of a substitution is {cost:g}", "give a cost of 0 or more"
)
REPEATED_CONFUSION = Code(
    "repeated-confusion",
    DataError,
    "the substitution of {query} by {document} has a cost in an earlier line",
    "keep one of the lines",
)
NO_CONFUSION = Code(
    "no-confusion",
    DataError,
    "the file has no substitution",
    "write lines QUERY-LABEL DOCUMENT-LABEL COST, or leave out search.method_options.confusions",
)
CONFUSIONS_OF_OTHER_LABELS = Code(
    "confusions-of-other-labels",
    UserError,
    "no document has a label by which a line substitutes another; the first is {label}",
    "write the labels of the documents, in their case",
)
TOO_MANY_LABELS = Code(
    "too-many-labels",
    TermError,
    "a path of the query's lattice has {labels} labels; at most {most} can be aligned",
    "give a shorter query",
)
DOCUMENT_TOO_LONG = Code(
    "document-too-long",
    UserError,
    "a document of {frames} frames is too long for the recurrence {recurrence}",
    "cut it into documents of at most {longest} frames, or search with another recurrence (search.recurrence)",
)
UNKNOWN_SPEECH = Code(
    "unknown-speech",
    StoreError,
    "the store has no speech marks of document {doc_id}",
    "search all frames (search.skip_silence: false); features of other programs have no speech marks",
)
NO_SUCH_FRAME = Code(
    "no-such-frame",
    UserError,
    "the document has {frames} frames, none with the number {frame}",
    "give the end of a detection",
)
NO_PATH = Code(
    "no-path",
    UserError,
    "no path ends at frame {frame}",
    "give the end of a detection; a query of bounded slope needs half as many frames before it",
)

# Backends

GPU_MEMORY = Code(
    "gpu-memory",
    UserError,
    "the GPU memory for the search is too small{use}: {needed:.3g} GB are needed, {available:.3g} GB available",
    "raise it, search shorter queries or documents, or set search.backend to cpu",
)
ROW_RANGE_MEMORY = Code(
    "row-range-memory",
    UserError,
    "distances of {rows} query frames to a document of {frames} frames take {needed:.3g} GB; row_range holds {most:g} GB",
    "cut long recordings into documents of some minutes, or set row_range: false",
)
INEXACT_PRODUCT = Code(
    "inexact-product",
    UserError,
    "the float32 matrix product of {library} is not exact on integers below 2^24 on this machine",
    "switch off reduced precision, or set search.backend to int16",
)
NO_NUMBA_CUDA = Code(
    "no-numba-cuda",
    UserError,
    "the GPU search needs numba-cuda, which is not installed",
    "pip install 'swsdist[gpu]', or set search.backend to cpu",
)
NO_GPU = Code(
    "no-gpu",
    UserError,
    "this machine has no usable GPU",
    "set search.backend to cpu, or see the GPU line of `swsdist doctor`",
)

# First passes

OTHER_INDEX = Code(
    "other-index",
    StoreError,
    "the index of the first pass is of other documents",
    "check the store (`swsdist store check`), and index again",
)


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
