"""Codes of corpora: their documents, queries and references, as tables and as lists of other programs."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError, OddError, TableError, UserError

# Corpora in memory

# Documents

# Data sets of Hugging Face

# Kaldi

# Kinds of files

# Lhotse

# Lists of NIST

# Queries

NO_DOCUMENTS_GIVEN = Code("no-documents-given", UserError, "no documents are given", "give at least one recording")

ARRAYS_TO_REMOTE_FOLDER = Code(
    "arrays-to-remote-folder", UserError, "arrays are written to a folder of this machine", "name a local folder"
)

CORPUS_FOLDER_IS_A_FILE = Code(
    "corpus-folder-is-a-file", UserError, "this is a file, and a folder is needed", "name another path"
)

CORPUS_IN_A_RUN = Code(
    "corpus-in-a-run",
    UserError,
    "this is {what}: a corpus cannot be written there",
    "name another folder; nothing was written",
)

REFERENCES_NOT_A_TABLE = Code(
    "references-not-a-table",
    UserError,
    "the references are a {type}, not a table",
    "give a data frame or an arrow table",
)

MISSING_REFERENCE_COLUMNS = Code(
    "missing-reference-columns",
    UserError,
    "the references have no column {columns}",
    "give query_id, doc_id, start and end, in s",
)

REFERENCE_TO_UNKNOWN_NAME = Code(
    "reference-to-unknown-name",
    UserError,
    "{column} {name!r} is not among the {kind}{meant}",
    "give the recording in {kind}, or leave these references out; nothing was written",
)

NOT_AN_EXAMPLE = Code(
    "not-an-example", UserError, "no query example: {what}", "give (samples, rate), or a list of several"
)

UNUSED_AUDIO_FOLDER = Code(
    "unused-audio-folder",
    UserError,
    "corpus.audio is for lists of Kaldi or lhotse and for an ECF, and the documents are none",
    "leave corpus.audio out",
)

UNKNOWN_PART_DOCUMENT = Code(
    "unknown-part-document",
    UserError,
    "no document {documents} in the corpus",
    "check the spelling, or take them out of the part; there are {known}",
)

EXAMPLES_NOT_SEARCHED = Code(
    "examples-not-searched",
    OddError,
    "{count} text{s} of queries not searched: only the first example of a query is",
    "search all: corpus.examples: all; or give them query_ids of their own",
)

EMPTY_TABLE = Code("empty-table", UserError, "the table has no {what}", "add rows below the header")

UNREADABLE_RECORDING_LINK = Code(
    "unreadable-recording-link",
    OddError,
    "{count} recording{s} left out: unreadable, or a broken link",
    "check the links and permissions, or remove them",
)

UNREADABLE_FOLDER = Code(
    "unreadable-folder", OddError, "{count} folder{s} left out: they cannot be read", "check their permissions"
)

FILE_NAME_NOT_UTF8 = Code(
    "file-name-not-utf8",
    OddError,
    "{count} file{s} left out: the name is not UTF-8",
    "rename them (convmv -f latin1 -t utf8)",
)

NO_AUDIO_IN_FOLDER = Code(
    "no-audio-in-folder",
    UserError,
    "there is no audio in this folder",
    "these endings are read: {endings}; a table's name ends in .csv or .parquet",
)

IGNORED_FILES = Code(
    "ignored-files",
    OddError,
    "{count} file{s} ignored by name: {kinds}",
    "a recording among them needs the ending of its format (.wav, .mp3, ...)",
)

WORSE_FORMAT_LEFT_OUT = Code(
    "worse-format-left-out",
    OddError,
    "{count} recording{s} left out: there is a better format",
    "corpus.prefer says so",
)

NO_SINGLE_AUDIO_COLUMN = Code(
    "no-single-audio-column",
    UserError,
    "the data set has {count} columns of the type Audio: {columns}",
    "keep one of them, or cast it: Dataset.cast_column(name, Audio())",
)

ROW_WITHOUT_AUDIO = Code("row-without-audio", DataError, "the row has no sound", "leave the row out (Dataset.filter)")

DUPLICATE_DATASET_ROW = Code(
    "duplicate-dataset-row", DataError, "duplicate row {row!r}", "add a column id with unique names"
)

EMPTY_DATASET = Code("empty-dataset", UserError, "the data set has no rows", "name a data set with rows")

UNREADABLE_DATASET = Code(
    "unreadable-dataset", DataError, "the data set cannot be read ({error})", "save it again (save_to_disk)"
)

BAD_AUDIO_COLUMN = Code(
    "bad-audio-column",
    DataError,
    "the column {column} is {type}, not bytes and path",
    "save the data set again (save_to_disk)",
)

COMPRESSED_DATASET = Code(
    "compressed-dataset", DataError, "the columns of the data set are compressed", "save it again (save_to_disk)"
)

NOT_A_JSON_OBJECT = Code("not-a-json-object", DataError, "this is not a JSON object", "write the file again")

EMPTY_WAV_SCP = Code("empty-wav-scp", UserError, "the wav.scp has no recordings", "a line is: recording path")

ENTRY_WITHOUT_PATH = Code("entry-without-path", DataError, "the recording has no path", "give: recording path")

DUPLICATE_ENTRY = Code("duplicate-entry", DataError, "duplicate entry {name!r}", "keep one of the lines")

UNSUPPORTED_WAV_SCP_ENTRY = Code(
    "unsupported-wav-scp-entry",
    DataError,
    "the entry {entry!r} {fault}, which is not read as a recording",
    "give a path, a place in an archive (wav.ark:1234), or a command that ends in |",
)

SEGMENT_OF_UNKNOWN_RECORDING = Code(
    "segment-of-unknown-recording",
    DataError,
    "no recording {recording!r} in {scp}",
    "add it to wav.scp, or drop the segment",
)

EMPTY_SEGMENTS = Code(
    "empty-segments", UserError, "the file has no segments", "a line is: utterance recording start end"
)

LINE_ABOUT_UNKNOWN_NAME = Code(
    "line-about-unknown-name",
    OddError,
    "{count} line{s} about {what} that do not exist",
    "check the spelling, or repair the folder (utils/fix_data_dir.sh)",
)

UNKNOWN_UTTERANCE_NUMBER = Code(
    "unknown-utterance-number",
    DataError,
    "utterance {utterance!r} is not in utter_id",
    "give the utter_id of this index",
)

UNKNOWN_UTTERANCE = Code(
    "unknown-utterance", DataError, "utterance {utterance!r} is not in segments", "give the segments of this index"
)

UNMAPPED_RECORDING = Code(
    "unmapped-recording",
    DataError,
    "recording {recording!r} is not in the map of recordings",
    "add it, or leave it out",
)

NO_UTTERANCE_AT_PLACE = Code(
    "no-utterance-at-place",
    UserError,
    "no utterance holds {start} to {end} s of document {document!r}, channel {channel}",
    "give the segments, utter_id and map of recordings of the searched index",
)

KALDI_FIELD_COUNT = Code("kaldi-field-count", DataError, "the line has {fields} fields", "give: {names}")

SEGMENT_END_BEFORE_START = Code(
    "segment-end-before-start",
    DataError,
    "the segment goes from {start} to {end} s",
    "give start and end in s, end the later",
)

IMPOSSIBLE_VERDICT = Code("impossible-verdict", TableError, "{verdict!r} is no verdict", "write yes, no or unsure")

JUDGEMENTS_LEFT_OUT = Code(
    "judgements-left-out",
    OddError,
    "judgements left out of scoring: {count}; {why}",
    "nothing, if that is meant; else choose examples for the words, or name the documents that were judged",
)

COMMAND_WITHOUT_NAME = Code(
    "command-without-name",
    DataError,
    "the entry of {name!r} is a command, which does not give the document's name",
    "give reco2file_and_channel, or a map of two columns: recording name",
)

DUPLICATE_UTTERANCE_NUMBER = Code(
    "duplicate-utterance-number",
    DataError,
    "{first!r} and {second!r} both have the number {number}",
    "give each utterance its own number",
)

WRONG_KIND_OF_FILE = Code(
    "wrong-kind-of-file", UserError, "corpus.{key} names {kind}", "{hint}corpus.{key} reads: {reads}"
)

NO_SUCH_TABLE_OR_FOLDER = Code(
    "no-such-table-or-folder", UserError, "there is no such table or folder", "name a table or folder that exists"
)

EMPTY_MANIFEST = Code("empty-manifest", UserError, "the manifest has no {what}", "name a manifest of {what}")

QUERY_OF_SEVERAL_CHANNELS = Code(
    "query-of-several-channels", DataError, "the query has several channels", "keep the channel that the query is on"
)

SUPERVISION_WITHOUT_ALIGNMENT = Code(
    "supervision-without-alignment",
    DataError,
    "the supervision has no word alignment, so the times of its words are unknown",
    "align it (lhotse workflows align-with-torchaudio), or give references as a table",
)

MALFORMED_ALIGNED_WORD = Code(
    "malformed-aligned-word", DataError, "a word of the alignment is {word!r}", "give [word, start, duration, score]"
)

UNKNOWN_MANIFEST_RECORDING = Code(
    "unknown-manifest-recording", DataError, "no recording {recording!r} in {manifest}", "add it, or drop the line"
)

UNSUPPORTED_CUT = Code(
    "unsupported-cut",
    DataError,
    "the cut {fault}: it is not a place in a recording",
    "save its sound (CutSet.save_audios) and name the manifest that this writes",
)

NO_SUCH_MANIFEST_CHANNEL = Code(
    "no-such-manifest-channel", DataError, "no channel {channel} in {recording!r}", "channels count from 0"
)

UNSUPPORTED_MANIFEST_RECORDING = Code(
    "unsupported-manifest-recording",
    DataError,
    "the recording {recording!r} {fault}",
    "save its sound to one file (CutSet.save_audios), and name the manifest that this writes",
)

NO_RECORDINGS_MANIFEST = Code(
    "no-recordings-manifest",
    UserError,
    "supervisions do not say where the sound is",
    "put the manifest of the recordings beside it, as dev_recordings.jsonl.gz beside "
    "dev_supervisions.jsonl.gz, or name cuts",
)

MALFORMED_MANIFEST_LINE = Code(
    "malformed-manifest-line", DataError, "the line is not JSON ({error})", "make the manifest again"
)

BAD_MANIFEST_TEXT = Code("bad-manifest-text", DataError, "{key} is {value!r}", "give its {key}")

BAD_MANIFEST_TIME = Code("bad-manifest-time", DataError, "{key} is {value!r}", "give the {key} in s")

BAD_MANIFEST_CHANNEL = Code(
    "bad-manifest-channel", DataError, "channel is {value!r}", "give a number from 0 on, or a list of such"
)

AMBIGUOUS_RECORDINGS = Code(
    "ambiguous-recordings",
    DataError,
    "{first!r} and {second!r} would both be the recording {recording!r}",
    "rename one: the scorers take them for one file",
)

EMPTY_EXCERPT = Code("empty-excerpt", DataError, "the excerpt lasts 0 s", "drop it")

REPEATED_EXCERPT = Code("repeated-excerpt", DataError, "duplicate excerpt {excerpt!r}", "drop one of them")

EXAMPLE_OF_UNKNOWN_TERM = Code(
    "example-of-unknown-term", TableError, "no term {query!r} in {list}", "query_id is the id of a term there"
)

CONFLICTING_TERM_TEXT = Code(
    "conflicting-term-text",
    TableError,
    "the term is {example!r}, and {listed!r} in {list}",
    "write {listed!r}, or drop the column term",
)

UNUSED_SPOKEN_EXAMPLES = Code(
    "unused-spoken-examples",
    UserError,
    "corpus.spoken is for a TLIST or KWLIST, and the queries are none",
    "leave corpus.spoken out, or name a term list in corpus.queries",
)

PATH_AND_DOCUMENT = Code(
    "path-and-document", TableError, "query {query!r} has both path and doc_id", "give path or doc_id"
)
EMPTY_QUERY = Code(
    "empty-query", TableError, "query {query!r} has neither path nor doc_id nor text", "give path, doc_id or text"
)
TEXT_AND_TERM = Code(
    "text-and-term",
    TableError,
    "query {query!r} has the text {text!r} and the term {term!r}",
    "give one of the columns, or the same in both",
)
TEXT_QUERY_AMONG_SPOKEN = Code(
    "text-query-among-spoken",
    TableError,
    "query {query!r} has neither path nor doc_id, and others have one",
    "give path or doc_id; or, of a written query, a column text",
)
RECORDINGS_WITHOUT_PATH = Code(
    "recordings-without-path",
    OddError,
    "no column path: all {count} queries are searched as text, though there are columns of recordings ({columns})",
    "add the column path; if the queries are written, drop these columns",
)
QUERY_WITHOUT_CHANNEL = Code(
    "query-without-channel", TableError, "document {document!r} has channels {channels}", "give the query's channel"
)
NO_SUCH_QUERY_CHANNEL = Code(
    "no-such-query-channel",
    TableError,
    "document {document!r} has no channel {channel}",
    "its channels are: {channels}",
)
REFERENCE_OUTSIDE_DOCUMENT = Code(
    "reference-outside-document",
    TableError,
    "{span} s is not in document {document!r}, which is {place}",
    "times are the recording's: add the document's start",
)
