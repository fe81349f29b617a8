"""Codes of term discovery: files of classes, pairs, phones, words and folds; what a mode or measure needs."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import ConfigError, DataError, OddError

# Files

WRONG_ROW = families.MALFORMED_LINE.saying(
    "a line has {fields} fields, not {expected}", "write {form}, separated by blanks, times in seconds"
)
NO_ROWS = families.EMPTY_INPUT.of(DataError).saying("the file has no {what}", "write a line each: {form}")
EXCERPT = Code(
    "excerpt",
    OddError,
    "{count} pair{s} of recordings with common sound: what is in both is counted twice",
    "leave an excerpt of another recording out",
)
FOUND_NOTHING = families.NO_HITS.saying(
    "{count} file without a fragment", "what depends on fragments is 0 or undefined"
)

# What there must be

FRAGMENTS_ELSEWHERE = Code(
    "fragments-elsewhere",
    OddError,
    "{count} fragment{s} of documents without phones",
    "they are counted as empty; compare the names of documents in both files",
)

# The chain discover

NO_EXPORT_OF_CLASSES = families.UNSUPPORTED.of(ConfigError).saying(
    "{export} writes detections, and the chain discover has classes",
    "choose of {exports}; the class file and the queries are always written",
)


_NO_BANDS = "leave the bands out, or score more terms"
NO_SPREAD = families.UNDEFINED.saying("one term has no spread", _NO_BANDS)
NOT_A_TABLE = families.MALFORMED_FILE.saying("not a table ({error})", "name a CSV or Parquet file")

INVALID_BASE = families.UNSUPPORTED.of(DataError).saying(
    "tiers cannot be added to this file of ELAN: {error}", "open it in ELAN and save it again, or export without it"
)

UNPLACED_WORDS = Code(
    "unplaced-words",
    OddError,
    "{count} word{s} of the alignment in no document, and not counted",
    "compare the names of the documents, and their times",
)
