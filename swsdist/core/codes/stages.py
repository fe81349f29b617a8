"""Codes of the stages that chains share, and of their inputs."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import OddError, StoreError

# Stages

COHORT_EXAMPLE_IS_QUERY = Code(
    "cohort-example-is-query",
    OddError,
    "{count} cohort example{s} also a query of the run",
    "decisions then depend on other queries: leave them out where that is not allowed",
)


NO_USABLE_DOCUMENT = families.EMPTY_INPUT.of(StoreError).saying(
    "none of the {documents} documents could be used{track}", "{advice}"
)

MOST_ARE_GONE = Code(
    "most-are-gone",
    OddError,
    "{count} of the {of} documents that the store has are gone from the corpus",
    "see that the whole archive is there, and that it is the one of this store",
)

DUPLICATE_RECORDING = Code(
    "duplicate-recording",
    OddError,
    "{count} recording{s} with the bytes of another",
    "each is indexed; drop them if that is not meant",
)

UNSPOKEN_QUERIES = Code(
    "unspoken-queries",
    OddError,
    "{count} example{s} of queries cannot be spoken: {reason}",
    "choose another voice (queries.speak), or give recordings",
)


CALIBRATION_OF_OTHER_SCORES = Code(
    "calibration-of-other-scores",
    OddError,
    "{count} calibration fitted on other scores",
    "its decisions mean little here; name a calibration of the same system",
)

CALIBRATION_ON_TEST_DATA = Code(
    "calibration-on-test-data",
    OddError,
    "{count} calibration fitted on the documents that it is applied to",
    "the decisions are optimistic: fit it on other documents, or by crossfit (calibrate.fit)",
)

OCCURRENCE_NOT_SEARCHED = Code(
    "occurrence-not-searched",
    OddError,
    "{count} of {of} occurrences left out: in recordings that are not searched",
    "check the names and channels of the documents",
)


TEXT_OF_UNKNOWN_DOCUMENT = Code(
    "text-of-unknown-document",
    OddError,
    "{count} of {of} lines of text about unknown documents",
    "write ids of the table of documents",
)

DOCUMENT_WITHOUT_TEXT = Code(
    "document-without-text",
    OddError,
    "{count} document{s} without text: no query counts as said there",
    "add what is said there; a line may have no words",
)

QUERY_WITHOUT_TERM = Code(
    "query-without-term",
    OddError,
    "{count} query id{s} without a term: no reference can be looked up",
    "give their text (column term)",
)

REFERENCE_IN_NO_DOCUMENT = Code(
    "reference-in-no-document",
    OddError,
    "{count} of {of} references in no document of the recording: {then}",
    "times are the recording's; leave out what is not searched",
)


LOST_MODEL = Code(
    "lost-model",
    OddError,
    "{count} pinned model{s} gone from the store, and fitted again: results may differ",
    "restore the file to keep earlier results",
)
LOST_TABLE = Code(
    "lost-table",
    OddError,
    "{count} table{s} gone from the store: all documents are indexed again",
    "restore the file to keep them",
)


ORACLE_FEATURES = Code(
    "oracle-features",
    OddError,
    "{count} searched document{s} among those that {transform} of {track} was fitted on, {training}: "
    "ORACLE features, so results are optimistic",
    "search other documents by its model (option `model`)",
)

SUPERVISED_FEATURES = Code(
    "supervised-features",
    OddError,
    "{count} supervised transform of {track}: {transform} is {training}, so the run is not zero resource",
)


TRUNCATED_RECORDING_INDEXED = Code(
    "truncated-recording-indexed",
    OddError,
    "{count} recording{s} cut off: the readable part is indexed",
    "copy them again from their source; convert what plays longer elsewhere: ffmpeg -i INPUT OUTPUT.flac",
)

WRONG_HEADER_DURATION = Code(
    "wrong-header-duration",
    OddError,
    "{count} header{s} with another duration than the audio",
    "nothing has to be done: a header may count pictures, or estimate; trials are counted from the audio",
)

CONTRADICTED_DURATION = Code(
    "contradicted-duration",
    OddError,
    "{count} of {of} durations in the table of documents contradicted by the audio",
    "correct or drop the column: it cuts the work into shards; trials are counted from the audio",
)

REFERENCE_AFTER_END = Code(
    "reference-after-end", OddError, "{count} of {of} references end after their recording", "{advice}"
)

QUERY_SPEAKER_UNKNOWN = Code(
    "query-speaker-unknown",
    OddError,
    "{count} speaker{s} of queries without a document",
    "if they are the same people, use the same name: a query is normalised by its speaker's documents",
)

QUERY_SOURCE_EXCLUDED = Code(
    "query-source-excluded",
    OddError,
    "{count} place{s} that queries were cut from excluded from detections and references",
    "corpus.own_places: keep counts them; references.csv of the run has the references without them",
)

QUERY_FINDS_ITSELF = Code(
    "query-finds-itself",
    OddError,
    "{count} query example{s} cut from a recording that is searched: each finds itself",
    "corpus.own_places: leave-out takes these places out of detections and references",
)


LONG_QUERY_EXAMPLE = Code(
    "long-query-example",
    OddError,
    "{count} query example{s} longer than all documents",
    "cut them to the word or phrase",
)


UNREAD_WITHOUT_DURATION = Code(
    "unread-without-duration",
    OddError,
    "{count} unreadable document{s} of unknown duration: trials count 0 s of them",
    "mend or drop them, or give their durations in the table of documents",
)
