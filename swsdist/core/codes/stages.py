"""Codes of the stages that chains share, and of their inputs."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, IncompleteError, OddError, StoreError, UserError

# Stages

COHORT_EXAMPLE_IS_QUERY = Code(
    "cohort-example-is-query",
    OddError,
    "{count} cohort example{s} also a query of the run",
    "decisions then depend on other queries: leave them out where that is not allowed",
)

EXAMPLE_WITHOUT_SPEECH = Code(
    "example-without-speech",
    UserError,
    "the example is not a recording, so its speech cannot be measured",
    "leave the covariate speech out (calibrate.options)",
)

NOTHING_TO_FIT_ON = Code(
    "nothing-to-fit-on",
    ConfigError,
    "there is no true occurrence to fit the step {step} on",
    "give references, or a fitted file in calibrate.fit",
)

NO_FRAMES_TO_FIT_ON = Code(
    "no-frames-to-fit-on", DataError, "there are no frames to fit {transform} on", "check the documents: swsdist check"
)

NO_LABELLED_DOCUMENT = Code(
    "no-labelled-document",
    DataError,
    "no document to fit {transform} on has a label",
    "its names of documents must be those of the corpus",
)

NO_USABLE_DOCUMENT = Code(
    "no-usable-document", StoreError, "none of the {documents} documents could be used{track}", "{advice}"
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
NO_QUERIES = Code("no-queries", UserError, "there are no queries to search", "name a table or a folder of queries")

SHARDS_NOT_IMPORTED = Code(
    "shards-not-imported",
    IncompleteError,
    "{shards} shards are not done; the first: {error}",
    "mend the cause and import again: what was done is kept",
)

DUPLICATE_FRAMES_KEY = Code(
    "duplicate-frames-key",
    UserError,
    "the documents {first} and {second} both have frames of the key {key!r}",
    "rename one: the key of a channel is DOC_ID-CHANNEL",
)

RUN_WITHOUT_CALIBRATION = Code(
    "run-without-calibration", ConfigError, "the run has no fitted calibration", "name one with references, or a file"
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

TEXT_NEEDS_DOCUMENT_TRIALS = Code(
    "text-needs-document-trials",
    UserError,
    "a text says in which documents terms occur, and trials of protocol {protocol} are {trials}s",
    "set score.trials: document (or score.protocol: quesst), or give corpus.references with times",
)

TEXT_OF_UNKNOWN_DOCUMENT = Code(
    "text-of-unknown-document", OddError, "{count} of {of} lines of text about unknown documents", "check the spelling"
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

COLUMNS_NOT_POSTERIORS = Code(
    "columns-not-posteriors",
    ConfigError,
    "the distance {distance} takes posteriors, and its columns are {kinds}",
    "name another distance, or search posteriors (the transform gmm makes some), each track in a stream of its own",
)
SILENCE_UNKNOWN = Code(
    "silence-unknown",
    UserError,
    "all frames are precomputed, so silence in them is unknown",
    "search all of them (search.skip_silence: false), or add a track that is made of the recordings to "
    "features, such as mfcc",
)

QUERY_STORE_AS_INDEX = Code(
    "query-store-as-index",
    UserError,
    "this is a run's store of queries",
    "name another folder for the store of the documents",
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

OTHER_FEATURES_IN_STORE = Code(
    "other-features-in-store",
    UserError,
    "the store holds other features: {features}, as track {track}",
    "name another store in index.store, or remove this one; or set features to those it holds",
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

UNREADABLE_PART = Code(
    "unreadable-part",
    ConfigError,
    "the documents of this part cannot be read",
    "name a table with a column doc_id",
)

NO_LABELS = Code(
    "no-labels",
    ConfigError,
    "{transform} is fitted by labels, and the corpus has none",
    "name a CTM of phones there, or as the option `labels` (`swsdist phones` makes one by a phoneme "
    "recogniser), or a model that was fitted elsewhere",
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

SHORT_QUERY_EXAMPLE = Code(
    "short-query-example",
    OddError,
    "{count} query example{s} shorter than {shortest:g} s: many other sounds are similar",
    "give a longer word, or its phrase",
)

LONG_QUERY_EXAMPLE = Code(
    "long-query-example",
    OddError,
    "{count} query example{s} longer than all documents",
    "cut them to the word or phrase",
)

NO_CHANNEL_1 = Code(
    "no-channel-1",
    UserError,
    "no document is of channel 1, whose seconds alone are counted in scoring (as in STDEval); there is "
    "channel {channels} only",
    "list channel 1 of the recordings too, or make separate recordings of the channel that is searched "
    "(ffmpeg -i INPUT -af 'pan=mono|c0=c1' OUTPUT.flac), or search without references",
)

STEP_NEEDS_NO_SEGMENTS = Code(
    "step-needs-no-segments",
    ConfigError,
    "{step} uses all trials of a query, and segment trials are known only in scoring",
    "leave the step out (of llr the covariates best, gap, posterior-sum), or score by time",
)

STEP_NEEDS_WHOLE_RECORDINGS = Code(
    "step-needs-whole-recordings",
    UserError,
    "{step} uses all trials of a query, which are documents, and these documents are places in recordings",
    "leave the step out (of llr the covariates best, gap, posterior-sum), or make recordings of the places",
)

NO_SPEECH_FILE = Code("no-speech-file", UserError, "there is no such file", "name an RTTM, or a table of speech")

NO_STATISTICS_OF_FRAMES = Code(
    "no-statistics-of-frames",
    UserError,
    "frames of {source} are precomputed, so there are no statistics of the documents of the queries",
    "set corpus.queries_from.statistics: ours, or normalise the frames where they are made",
)

NO_QUERY_DOCUMENT_READ = Code(
    "no-query-document-read",
    DataError,
    "none of the documents of the queries can be read, so there are no statistics to normalise them by",
    "check them (swsdist check), or set corpus.queries_from.statistics: ours",
)

NO_USABLE_EXAMPLE = Code(
    "no-usable-example", DataError, "none of the {examples} query examples could be used", "the first: {path}: {error}"
)

MISSING_QUERY_STATISTICS = Code(
    "missing-query-statistics",
    DataError,
    "there are no means and variances of the corpus of the queries",
    "check the failures of query-statistics, or set corpus.queries_from.statistics: ours",
)
UNREAD_WITHOUT_DURATION = Code(
    "unread-without-duration",
    OddError,
    "{count} unreadable document{s} of unknown duration: trials count 0 s of them",
    "mend or drop them, or give their durations in the table of documents",
)
