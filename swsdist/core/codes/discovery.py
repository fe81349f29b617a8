"""Codes of term discovery: files of classes, pairs, phones, words and folds; what a mode or measure needs."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, OddError, StoreError, UserError

# Files

WRONG_ROW = Code(
    "wrong-row",
    DataError,
    "a line has {fields} fields, not {expected}",
    "write {form}, separated by blanks, times in seconds",
)
EMPTY_STRETCH = Code(
    "empty-stretch",
    DataError,
    "the offset {offset} is not after the onset {onset}",
    "give the times of onset and offset in seconds, not a duration",
)
TIME_TOO_LATE = Code(
    "time-too-late",
    DataError,
    "the time {text} is beyond {most:.0f} s",
    "times are in seconds, from the beginning of the document",
)
OVERLAPPING_UNITS = Code(
    "overlapping-units",
    DataError,
    "{symbol!r} begins before the one before it in {document!r} ends",
    "give one tier of phones, and one of words; join or cut what overlaps",
)
NO_ROWS = Code("no-rows", DataError, "the file has no {what}", "write a line each: {form}")
NOT_UNITS = Code(
    "not-units",
    DataError,
    "{format} is no format of phones or words",
    "give CTM, TextGrid, ELAN, or lines {form}",
)
CLASS_WITHOUT_NAME = Code("class-without-name", DataError, "a class has no name", "write: Class NAME")
DUPLICATE_CLASS = Code(
    "duplicate-class", DataError, "a second class {name!r}", "join the two, or give one of them another name"
)
FRAGMENT_WITHOUT_CLASS = Code(
    "fragment-without-class",
    DataError,
    "a fragment stands before the first line `Class NAME`, or after an empty line that ends a class",
    "write `Class NAME` above it; for pairs or a parse use --pairs or --parse",
)
UNWRITABLE_CLASS = Code(
    "unwritable-class",
    UserError,
    "a class file cannot hold the name {name!r}",
    "use names without blanks and line ends",
)
COPIES_LEFT_OUT = Code(
    "copies-left-out",
    OddError,
    "{count} document{s} left out as copies: channels and recordings with the sound of another",
    "what recurs in them is counted in that one",
)
EXCERPT = Code(
    "excerpt",
    OddError,
    "{count} pair{s} of recordings with common sound: what is in both is counted twice",
    "leave an excerpt of another recording out",
)
FOUND_NOTHING = Code(
    "found-nothing", OddError, "{count} file without a fragment", "what depends on fragments is 0 or undefined"
)
DUPLICATE_TALKER = Code(
    "duplicate-talker", DataError, "a second talker of {document!r}", "give each document one talker"
)
OVERLAPPING_INTERVALS = Code(
    "overlapping-intervals",
    DataError,
    "two intervals of {document!r} overlap in one fold or split",
    "join them, or put them in different folds",
)

# What there must be

UNKNOWN_FRAGMENT_DOCUMENT = Code(
    "unknown-fragment-document",
    DataError,
    "mode {mode} needs phones and words of each document, and has none of {document!r}",
    "remove its fragments, or add its phones and words; mode seed counts them as empty",
)
FRAGMENTS_ELSEWHERE = Code(
    "fragments-elsewhere",
    OddError,
    "{count} fragment{s} of documents without phones",
    "they are counted as empty; compare the names of documents in both files",
)
NO_TALKER = Code(
    "no-talker",
    DataError,
    "no talker of the document {document!r}, which has phones",
    "add a line `{document} TALKER`",
)
MODE_NEEDS = Code("mode-needs", UserError, "mode {mode} needs {what}", "give {option}")
MODE_TAKES_CLASSES = Code(
    "mode-takes-classes", UserError, "mode {mode} scores classes, and neither pairs nor a parse", "use mode seed"
)
TOO_MANY_FOLDS = Code(
    "too-many-folds",
    UserError,
    "{folds} folds of {documents} documents with phones",
    "folds are cut at ends of documents: ask for {documents} or fewer",
)

# The chain discover

UNUSED_BY_DISCOVER = Code(
    "unused-by-discover",
    ConfigError,
    "the chain discover does not use {key}: it takes the distances of frames, no method of search",
    "remove it",
)
UNUSED_BY_NEIGHBOURS = Code(
    "unused-by-neighbours", ConfigError, "`by: {by}` has no use for {key}", "remove it, or choose another `by`"
)
LEVEL_TOO_HIGH = Code(
    "level-too-high",
    ConfigError,
    "no frames are farther apart than the level {level}: all would add to a match, silence too",
    "give less than {most:.4g}, the greatest distance",
)
UNMARKED_SPEECH = Code(
    "unmarked-speech",
    UserError,
    "frames of other programs do not tell where speech is",
    "add a track that is made of the recordings to features, such as mfcc",
)
NO_EXPORT_OF_CLASSES = Code(
    "no-export-of-classes",
    ConfigError,
    "{export} writes detections, and the chain discover has classes",
    "choose of {exports}; the class file and the queries are always written",
)


NO_NUMBERS = Code(
    "no-numbers", UserError, "no numbers given", "name a run folder, or give --indexing-cpu, --audio, ..."
)
NO_REPORT = Code("no-report", UserError, "no report.json", "name the folder of a finished run")
DAMAGED_ACCOUNTS = Code(
    "damaged-accounts",
    StoreError,
    "the accounts of the run are damaged ({error})",
    "remove the file: what earlier tasks cost is then not known, and nothing else changes",
)
DAMAGED_REPORT = Code(
    "damaged-report", StoreError, "report.json is damaged ({error})", "write it anew: `swsdist report {run!q}`"
)
UNDEFINED_DET_CURVE = Code(
    "undefined-det-curve", UserError, "no DET curve", "score a list with detections of terms that have references"
)
_NO_BANDS = "leave the bands out, or score more terms"
NO_SPREAD = Code("no-spread", UserError, "one term has no spread", _NO_BANDS)
UNDEFINED_SPREAD = Code(
    "undefined-spread",
    UserError,
    "the spread over terms is not defined where terms without references are in the mean",
    "leave -inc out",
)
NO_OTHER_TRIALS = Code(
    "no-other-trials",
    UserError,
    "{references} references in {trials} trials leave no non-target trials to pool",
    "leave -P out",
)
NO_CONVERTER = Code(
    "no-converter",
    UserError,
    "{ending} needs vl-convert, which is not installed",
    "pip install 'swsdist[figures]', or write {svg}, and convert it: rsvg-convert -f {format} -o {path!q} {svg!q}",
)
PICTURE_ENDING = Code(
    "picture-ending", UserError, "the name of a picture must end in {endings}", "name a file that ends in {endings}"
)
NOT_A_PLOT = Code(
    "not-a-plot", DataError, "not a plot that swsdist has drawn", "name an .svg of a run, a sweep or a command"
)
TABLE_ENDING = Code(
    "table-ending", UserError, "the name of a table must end in {endings}", "name a file that ends in {endings}"
)
NO_SUCH_COLUMN = Code("no-such-column", UserError, "no column {column!r}{meant}", "columns are {columns}")
NOT_A_TABLE = Code("not-a-table", DataError, "not a table ({error})", "name a CSV or Parquet file")

CLIPS_WITHOUT_RECORDINGS = Code(
    "clips-without-recordings",
    UserError,
    "the documents have no recordings, only features or transcripts",
    "add the column path to hear the hits, or remove clips from report.exports",
)
INVALID_TIER_NAME = Code(
    "invalid-tier-name",
    UserError,
    "no tier of {export} can have the name or text {query!r}: it is empty, or holds a control character",
    "rename the query or word, or leave {export} out",
)
INVALID_BASE = Code(
    "invalid-base",
    DataError,
    "tiers cannot be added to this file of ELAN: {error}",
    "open it in ELAN and save it again, or export without it",
)
CHANGED_RECORDING = Code(
    "changed-recording",
    UserError,
    "the recording has changed since it was indexed: {error}",
    "index again, or remove clips from report.exports",
)

UNUSABLE_RECORDING = Code(
    "unusable-recording",
    OddError,
    "{count} unusable recording{s}; a run rejects them",
    "correct or remove them",
)
UNUSABLE_EXAMPLE = Code(
    "unusable-example", OddError, "{count} unusable query example{s}; a run rejects them", "correct or remove them"
)
UNPLACED_WORDS = Code(
    "unplaced-words",
    OddError,
    "{count} word{s} of the alignment in no document, and not counted",
    "compare the names of the documents, and their times",
)
