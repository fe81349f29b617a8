"""Codes of a search without a run: queries as they are typed, a run's settings, calibrations, curves."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.codes.pipeline import BANDS
from swsdist.core.errors import (
    AudioError,
    ConfigError,
    OddError,
    StoreError,
    TermError,
    UserError,
)

QUERY_NAME_NOT_UTF8 = Code(
    "query-name-not-utf8",
    UserError,
    "the name of the query is not UTF-8",
    "rename the file: convmv -f latin1 -t utf8 --notest FILE",
)
QUERY_TEXT_NOT_UTF8 = Code(
    "query-text-not-utf8",
    TermError,
    "the text is not UTF-8, or has a zero byte",
    "type it in a terminal that writes UTF-8",
)
SPEAK_WITHOUT_FRAMES = Code(
    "speak-without-frames",
    UserError,
    "the store has words and no frames, in which a spoken text could be searched",
    "search it without --speak, or index the recordings: swsdist index FOLDER",
)
QUERY_IS_FOLDER = Code(
    "query-is-folder",
    UserError,
    "the query is a folder, not a recording",
    "give its files (ls {folder!q}/*.wav | swsdist search STORE --query -), or run a config with corpus.queries",
)
INCOMPLETE_PLACE = Code(
    "incomplete-place",
    UserError,
    "neither a file nor a place with start and end",
    "write FILE:START-END, in seconds or as a player shows them: talk.flac:12.3-13.1, talk.flac:1:02:03-1:02:04",
)
AMBIGUOUS_COMMA = Code(
    "ambiguous-comma",
    UserError,
    "{text} may be {decimal} s or {thousands} s",
    "write times with a point, and without separators of thousands: {decimal}",
)
QUERY_IS_COMMAND = Code(
    "query-is-command",
    UserError,
    "the query is a command; commands are run only from a Kaldi wav.scp",
    "write its output to a file, and give the file",
)
DUPLICATE_QUERY_EXAMPLE = Code(
    "duplicate-query-example",
    UserError,
    "{count} examples of query {query_id!r} have the number {example}",
    "give them different numbers (column example), or the queries different ids",
)
QUERY_TABLE_COLUMNS = Code(
    "query-table-columns",
    UserError,
    "the table of queries has the columns {columns}",
    "give at least the columns query_id and path",
)
NO_SUCH_DOCUMENT_CHANNEL = Code(
    "no-such-document-channel",
    UserError,
    "document {doc_id!r} has no channel {channel}",
    "name one of its channels: {channels}",
)
NO_SUCH_EXAMPLE = Code(
    "no-such-example",
    AudioError,
    "there is no file {name}, and no document of this name in the store",
    "check the path; a word that is typed: --text {name!q}; `swsdist store info --documents` lists the documents",
)
NOT_A_QUERY = Code("not-a-query", UserError, "a value of type {kind} is not a query", "give text")
PLACE_WITHOUT_SPEECH = Code(
    "place-without-speech",
    AudioError,
    "no speech in this place: only silence, hum, noise, a tone or clicks",
    "mark another place, or search without trimming (--no-trim; in Python trim=False)",
)
PRECOMPUTED_FRAMES = Code(
    "precomputed-frames",
    UserError,
    "features of this store were precomputed and cannot be made from a recording",
    "give frames of the query: a file .npy or HTK, maybe with a place (hello.npy:0.2-0.9)",
)
PRECOMPUTED_TRACKS = Code(
    "precomputed-tracks",
    UserError,
    "features in one of the {tracks} tracks of this store were precomputed and cannot be made from a recording",
    "run a config whose features.options.queries names the frames of the queries (swsdist help use-your-own-features)",
)

FUSION_WITHOUT_STORE = Code(
    "fusion-without-store",
    UserError,
    "a run of the chain {chain} has no store",
    "name the run of one of its systems, such as those below systems/ in it",
)
SEARCH_OF_DECODED = Code(
    "search-of-decoded",
    UserError,
    "the queries of this run are lattices, which only a run makes",
    "add queries to its corpus.queries, and run its config again: documents are not decoded again",
)
SEVERAL_STORES = Code(
    "several-stores", UserError, "the run has {plans} plans, of {count} stores", "name a store: {stores}"
)
QUERY_KIND = Code(
    "query-kind",
    UserError,
    "the method {method} does not compare frames: there is no curve of it",
    "name a store of frames",
)
NOT_A_TEXT = Code("not-a-text", UserError, "a written query is a text, not {kind}", "give texts")
QUERY_WITHOUT_TEXT = Code(
    "query-without-text",
    TermError,
    "the query has no text, and the method takes written queries",
    "give its text (columns text or term), or search with a method for spoken queries",
)
CLOSED_SEARCHER = Code(
    "closed-searcher",
    UserError,
    "this searcher is closed",
    "make another, or search before `close` and within the `with`",
)
STEP_NEEDS_RUN = Code(
    "step-needs-run",
    ConfigError,
    "step {step} needs {input}, which only a run has",
    "leave it out, or run a config: `swsdist run`",
)
LOST_ACTORS = Code(
    "lost-actors", UserError, "actors of the searcher are lost ({error})", "check the nodes, and make another searcher"
)
NO_LIKELIHOOD = Code(
    "no-likelihood",
    ConfigError,
    "the run does not say how likely hits are: it has too few with references, or other scores than {scores}",
    "name a run of 5 queries with references and 20 correct hits at least, with the same first steps of calibration",
)

CURVE_METHOD = Code(
    "curve-method", ConfigError, "the method {method} has no curves and paths; dtw has", "leave search.method out"
)
NOTHING_COMPARED = Code(
    "nothing-compared",
    UserError,
    "no frame of the document {doc_id} is searched",
    "leave search.skip_silence and search.drop out",
)
NAME_OF_RECORDING = Code(
    "name-of-recording",
    StoreError,
    "{name!r} is a recording with {count} document{s}, not a document",
    "name a document, and count times from its start: {documents}",
)
NO_DOCUMENT_IN_STORE = Code(
    "no-document-in-store",
    StoreError,
    "no document {doc_id!r}, channel {channel}, in the store",
    "`swsdist store info --documents` lists the documents",
)

INCOMPLETE_STORE = Code(
    "incomplete-store",
    OddError,
    "{progress}, and only those are searched",
    "finish the store with `swsdist index CONFIG`",
)
SETTINGS_DIFFER = Code(
    "settings-differ",
    OddError,
    "the {count} plans of the run have different search settings, so the defaults are used",
    "--set search.KEY=VALUE changes them",
)
STEPS_DIFFER = Code(
    "steps-differ",
    OddError,
    "the {count} plans of the run have different steps of calibration, so the default is used",
    "in Python, `Searcher(RUN, calibrate=...)` takes others",
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
SHORT_QUERY = Code(
    "short-query", OddError, "query {query_id} lasts only {seconds} s, and will match much else", "give a phrase"
)
OTHER_BAND = Code(
    "other-band",
    OddError,
    "{count} of {of} documents have another band than {query}",
    BANDS,
)
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
