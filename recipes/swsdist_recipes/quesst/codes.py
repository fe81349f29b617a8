"""Codes of QUESST's database and lists."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError, UserError

_DATABASE = "name the folder quesst14Database as its archive has it, with scoring, Audio, dev_queries and eval_queries"

NO_QUESST_DATABASE = Code(
    "no-quesst-database", UserError, "this is no database of QUESST 2014: there is no folder {folder} in it", _DATABASE
)
QUESST_FILE_MISSING = Code("quesst-file-missing", UserError, "there is no {file}", _DATABASE)
SEVERAL_QUESST_FILES = Code(
    "several-quesst-files", UserError, "several files end in {ending}: {names}", "move all but the evaluation's away"
)
QUESST_LANGUAGE_FIELDS = Code(
    "quesst-language-fields",
    DataError,
    "the line has {fields} fields, and a path and a language are needed",
    "write Database/Audio/NAME.wav LANGUAGE; no blanks in names",
)
DUPLICATE_QUESST_FILE = Code(
    "duplicate-quesst-file", DataError, "a second recording has the id {id}", "leave one of the lines out"
)
QUESST_RECORDING_MISSING = Code(
    "quesst-recording-missing",
    UserError,
    "there is no recording {path}",
    "unpack the archive again; a list's paths begin with a folder that does not count",
)
NOTHING_OF_LANGUAGE = Code(
    "nothing-of-language",
    DataError,
    "no line has the language {language}; there are {languages}",
    "use the evaluation's list",
)
NOT_IN_GROUND_TRUTH = Code(
    "not-in-ground-truth",
    DataError,
    "the ground truth does not list {count} of the searched ids, such as the {what} {first}",
    "use lists and ground truth of one distribution",
)
DUPLICATE_EXCERPT = Code(
    "duplicate-excerpt",
    DataError,
    "excerpts {first!r} and {second!r} are one document, {document!r}",
    "list each document once",
)
UNLISTED_DOCUMENT = Code("unlisted-document", DataError, "document {document!r} is not listed", "give its duration")
