"""Codes of term discovery: files of classes, pairs, phones, words and folds; what a mode or measure needs."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, OddError, UserError

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
