"""Codes of corpora: their documents, queries and references, as tables and as lists of other programs."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import DataError, OddError

# Corpora in memory

# Documents

# Data sets of Hugging Face

# Kaldi

# Kinds of files

# Lhotse

# Lists of NIST

# Queries


EXAMPLES_NOT_SEARCHED = Code(
    "examples-not-searched",
    OddError,
    "{count} text{s} of queries not searched: only the first example of a query is",
    "search all: corpus.examples: all; or give them query_ids of their own",
)


UNREADABLE_FOLDER = families.LEFT_OUT.saying(
    "{count} folder{s} left out: they cannot be read", "check their permissions"
)

FILE_NAME_NOT_UTF8 = families.LEFT_OUT.saying(
    "{count} file{s} left out: the name is not UTF-8", "rename them (convmv -f latin1 -t utf8)"
)


IGNORED_FILES = Code(
    "ignored-files",
    OddError,
    "{count} file{s} ignored by name: {kinds}",
    "a recording among them needs the ending of its format (.wav, .mp3, ...)",
)


UNREADABLE_DATASET = families.UNREADABLE_FILE.of(DataError).saying(
    "the data set cannot be read ({error})", "save it again (save_to_disk)"
)

BAD_AUDIO_COLUMN = families.BAD_CELL.of(DataError).saying(
    "the column {column} is {type}, not bytes and path", "save the data set again (save_to_disk)"
)


NOT_A_JSON_OBJECT = families.MALFORMED_LINE.saying("this is not a JSON object", "write the file again")


DUPLICATE_ENTRY = families.DUPLICATE_NAME.saying("duplicate entry {name!r}", "keep one of the lines")


LINE_ABOUT_UNKNOWN_NAME = Code(
    "line-about-unknown-name",
    OddError,
    "{count} line{s} about {what} that do not exist",
    "check the spelling, or repair the folder (utils/fix_data_dir.sh)",
)


EMPTY_MANIFEST = families.EMPTY_INPUT.saying("the manifest has no {what}", "name a manifest of {what}")


RECORDINGS_WITHOUT_PATH = Code(
    "recordings-without-path",
    OddError,
    "no column path: all {count} queries are searched as text, though there are columns of recordings ({columns})",
    "add the column path; if the queries are written, drop these columns",
)
