"""Codes of files and their fields, and of formats that other programs write."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, OddError, TableError, UserError

DAMAGED_ARCHIVE = Code(
    "damaged-archive", DataError, "the compressed file is damaged or cut off ({error})", "fetch it again"
)

NO_TABLE_OF_GLOSSARY = Code(
    "no-table-of-glossary",
    TableError,
    "a glossary has no table with the columns {columns}",
    "a glossary is a table of queries and of references; name another file here",
)

NOT_A_REGULAR_FILE = Code(
    "not-a-regular-file",
    UserError,
    "this is a pipe or a device, not a file",
    "write it to a file first, and name that (it may be compressed)",
)

NO_SUCH_FILE = Code("no-such-file", UserError, "there is no such {what}", "name a {what} that exists")

NO_FILE_BUT_FOLDER = Code("no-file-but-folder", UserError, "this is a folder, not a file", "name a file")

INVALID_FILE_NAME = Code(
    "invalid-file-name", UserError, "this cannot be the name of a file ({error})", "correct the path"
)

NOT_A_TEXT_FILE = Code("not-a-text-file", DataError, "this is not a text file", "name a text file in UTF-8")

UTF16_TEXT = Code(
    "utf16-text", TableError, "the text is UTF-16, not UTF-8", "convert it: iconv -f UTF-16 -t UTF-8 {path} > OUTPUT"
)

NOT_UTF8 = Code(
    "not-utf8",
    TableError,
    "the text is not UTF-8: {text}",
    "convert it: iconv -f LATIN1 -t UTF-8 (or from its encoding)",
)

BAD_NUMBER = Code("bad-number", DataError, "{name} is {text!r}", "give the {name} as a finite decimal number")

BAD_TIME = Code("bad-time", DataError, "{name} is {text!r}", "give the {name} in seconds, from 0 to 1e9")

BAD_INTEGER = Code("bad-integer", DataError, "{name} is {text!r}", "give the {name} as a whole number from 0")

FILE_NOT_FOLDER = Code(
    "file-not-folder", UserError, "this is a file, and a folder is needed", "name another folder, or move the file away"
)

MALFORMED_S3_URL = Code("malformed-s3-url", UserError, "an S3 url begins with s3://", "{suggestion}, perhaps?")

UNSUPPORTED_URL = Code(
    "unsupported-url",
    UserError,
    "{scheme}:// urls cannot be read or written",
    "give a local path, or an s3://bucket/name url",
)

SIGNED_URL = Code(
    "signed-url",
    UserError,
    "the url is signed: any reader of the store or report could use it",
    "name s3://bucket/name alone, with keys in the environment (AWS_ACCESS_KEY_ID, ...)",
)

MISSING_FRAMES_LIBRARY = Code(
    "missing-frames-library", ConfigError, "the library {library} is not installed", "pip install 'swsdist[{extra}]'"
)

UNREADABLE_FILE = Code("unreadable-file", UserError, "the file may not be read", "check its permissions")

DAMAGED_FRAMES_FILE = Code(
    "damaged-frames-file", DataError, "{subject} damaged or cut off ({error})", "write it, or copy it, again"
)

DUPLICATE_FRAMES = Code(
    "duplicate-frames",
    DataError,
    "duplicate frames of {key!r}: {file} has some, too",
    "take one out, or name one of the files",
)

UNKNOWN_FRAMES_ENDING = Code(
    "unknown-frames-ending", UserError, "the file ends in none of {endings}", "say the format (form)"
)

NO_FILES_OF_FORMAT = Code(
    "no-files-of-format",
    UserError,
    "the format is {form}, and no file in this folder ends in {endings}",
    "{found}; say their format (form), or auto: by the ending",
)

NO_SINGLE_FORMAT = Code(
    "no-single-format", UserError, "there are {what} in this folder", "name a file, or the format; {endings}{found}"
)

NOT_A_MATRIX = Code(
    "not-a-matrix",
    DataError,
    "the archive holds {kind!r}, not a matrix (FM, DM, CM, CM2, CM3)",
    "write matrices, a row a frame, for example with copy-feats",
)

FRAMES_FROM_COMMAND = Code(
    "frames-from-command",
    DataError,
    "the frames of {key!r} come from a command, which is not run",
    "run it yourself, and name the archive that it writes (copy-feats ... ark,scp:x.ark,x.scp)",
)

MALFORMED_SCP_LINE = Code("malformed-scp-line", DataError, "the line is not KEY FILE:OFFSET", "correct the line")

NOT_HTK_VECTORS = Code(
    "not-htk-vectors",
    DataError,
    "the file holds {kind}, not vectors of numbers",
    "convert it with HCopy, for example with TARGETKIND = MFCC",
)

TOO_MANY_HTK_COLUMNS = Code(
    "too-many-htk-columns",
    DataError,
    "{columns} columns; a frame of HTK has at most {most}",
    "write fewer columns, or another format",
)

ROW_WITHOUT_ID = Code("row-without-id", TableError, "a row has no doc_id", "give it one")

NO_FRAMES_COLUMN = Code(
    "no-frames-column",
    TableError,
    "there is no column {column}; there are {columns}",
    "a row a document: doc_id, frames, maybe channel",
)

BAD_FRAMES_TYPE = Code(
    "bad-frames-type",
    TableError,
    "the column frames has the type {type}",
    "a list of lists of numbers, or binary: little-endian float32, frame after frame",
)

INVALID_LABEL_QUERY = Code(
    "invalid-label-query",
    UserError,
    "query id {query!r} holds a tab or line break, which a label cannot hold",
    "rename the query, or leave labels out of report.exports",
)

LABEL_FILE_NAME_TOO_LONG = Code(
    "label-file-name-too-long",
    UserError,
    "no file can have the name {name}...",
    "give the document a shorter id, or leave {export} out of report.exports",
)

INVALID_MLF_NAME = Code(
    "invalid-mlf-name", DataError, "{name!r}, or a label of it, cannot be written to an MLF", "rename it"
)

NOT_AN_MLF = Code("not-an-mlf", DataError, "the file does not begin with {first}", "name a master label file")

DUPLICATE_MLF_NAME = Code(
    "duplicate-mlf-name",
    DataError,
    "the file has labels of {name!r} twice",
    "keep one of them, or rename the other; folders and endings of names do not count for documents",
)

NOT_AN_MLF_LABEL = Code("not-an-mlf-label", DataError, "{line!r} is not a label", "write: start end label score")

CTM_ALTERNATION = Code(
    "ctm-alternation",
    DataError,
    "the CTM holds an alternation (several readings that count as right)",
    "keep one reading of each, and take out <ALT_BEGIN>, <ALT> and <ALT_END>",
)

CTM_FIELD_COUNT = Code("ctm-field-count", DataError, "the line has {fields} fields", "give 5 to 8: {names}")

INVALID_CTM_NAME = Code(
    "invalid-ctm-name", DataError, "{name} {value!r} cannot be written to a CTM: it {fault}", "rename it"
)

INVALID_CTM_TIME = Code("invalid-ctm-time", DataError, "{name} of {word!r} is {value}", "give seconds, from 0")

WRONG_ROOT_ELEMENT = Code("wrong-root-element", DataError, "the outermost element is <{element}>", "name {expected}")

EMPTY_ECF = Code("empty-ecf", DataError, "the ECF holds no excerpt", "an ECF lists what was searched: <excerpt .../>")

RTTM_FIELD_COUNT = Code(
    "rttm-field-count",
    DataError,
    "a {type} line has {fields} fields",
    "give {expected}: type file channel begin duration token sub-type speaker confidence",
)

INVALID_RTTM_NAME = Code(
    "invalid-rttm-name", DataError, "{name!r} cannot be written to an RTTM", "take out blanks and ;;"
)

NO_SPEAKER_RECORDS = Code(
    "no-speaker-records",
    DataError,
    "the RTTM has no SPEAKER records",
    "give an RTTM with SPEAKER records for the speech",
)

DETECTION_OUTSIDE_LIST = Code(
    "detection-outside-list", DataError, "a <{item}> is in no <{group}>", "put each detection in its query's <{group}>"
)

EMPTY_SYSTEM_LIST = Code("empty-system-list", DataError, "the system list is empty", "name a STDLIST or KWSLIST")

LONE_SCORE_LIMIT = Code("lone-score-limit", DataError, "the list has {limit} alone", "give both {limits}, or neither")

SCORE_LIMITS_EXCHANGED = Code(
    "score-limits-exchanged", DataError, "min_score {low} is above max_score {high}", "exchange them"
)

DUPLICATE_QUERY_LIST = Code(
    "duplicate-query-list", DataError, "a query has two lists", "put its detections into one list"
)

REPEATED_QUERY_LIST = Code(
    "repeated-query-list",
    OddError,
    "{count} list{s} replaced by a later list of the same query",
    "put the detections into one list",
)

BAD_DECISION = Code("bad-decision", DataError, "a decision is neither YES nor NO", "write YES or NO")

DECISION_COUNTED_AS_NO = Code(
    "decision-counted-as-no", OddError, "{count} decision{s} neither YES nor NO: counted as NO", "write YES or NO"
)

SCATTERED_DETECTIONS = Code(
    "scattered-detections",
    DataError,
    "the detections of query {query!r} are not consecutive",
    "sort the detections by query_id",
)

NON_FINITE_SCORE = Code(
    "non-finite-score",
    DataError,
    "query {query!r} has the score {score} in document {document!r}",
    "run the normalisation again; scores must be finite",
)

AMBIGUOUS_NIST_DOCUMENTS = Code(
    "ambiguous-nist-documents",
    UserError,
    "the NIST programs call both documents {first!r} and {second!r} {name!r}",
    "give them different last names, or leave {list} out of report.exports",
)

INVALID_NIST_NAME = Code(
    "invalid-nist-name",
    UserError,
    "the NIST program that reads a {list} cannot work with {kind} {name!r}: its id {fault}",
    "rename it, or leave {list} out of report.exports",
)

TERMID_NOT_FIRST = Code(
    "termid-not-first",
    OddError,
    "{count} term{s} with another attribute before termid: STDEval leaves them out silently",
    "write termid first",
)

TERM_WITH_ENTITIES = Code(
    "term-with-entities",
    OddError,
    "{count} term{s} with entities, which are decoded here; the NIST programs would look for `&amp;` as "
    "it is written, and not find it",
    "write the characters themselves where XML allows it",
)

TERM_WITH_TWO_VALUES = Code(
    "term-with-two-values", DataError, "term {term!r} has a second {what}", "keep one, or make it another term"
)

TERM_WITHOUT_TEXT = Code("term-without-text", DataError, "term {term!r} has no text", "give <{element}>")

DUPLICATE_TERM = Code("duplicate-term", DataError, "duplicate term {term!r}", "drop or rename one")

REPEATED_TERM = Code(
    "repeated-term", OddError, "{count} term{s} with the id of another term: the last counts", "drop or rename one"
)

EMPTY_TERM_LIST = Code(
    "empty-term-list", DataError, "the term list holds no term", "a term list names what was looked for"
)

TERM_WITHOUT_ID = Code("term-without-id", DataError, "<{element}> has no {attribute}", "give {attribute}=...")

MALFORMED_XML = Code(
    "malformed-xml",
    DataError,
    "the file is not well-formed XML ({error}, column {column})",
    "write well-formed XML there, or write the list again",
)

MISSING_ATTRIBUTE = Code(
    "missing-attribute",
    DataError,
    "<{element}> has no attribute {attribute!r}",
    "add {attribute}=...; its attributes are: {attributes}",
)

BAD_CHANNEL = Code("bad-channel", DataError, "channel is {text!r}", "give a channel as 1, 2, ... (or A, B, ...)")

UNUSUAL_CHANNEL = Code(
    "unusual-channel",
    OddError,
    "{count} list{s} with a channel as a letter or with a leading 0, here equal to its number; "
    "the NIST programs compare the text",
    "write 1, 2, ... in all lists",
)


QUESST_FIELD_COUNT = Code(
    "quesst-field-count",
    DataError,
    "the line has {fields} fields{separators}",
    "give nine, separated by one blank: LEXEME document 1 begin duration query-id lex speaker <NA>",
)


MIXED_SEPARATORS = Code(
    "mixed-separators",
    TableError,
    "semicolons and tabs separate the names of the columns",
    "separate the columns by one of them, or by commas",
)

NOT_PARQUET = Code("not-parquet", TableError, "the table is not Parquet ({error})", "write it again")

DUPLICATE_COLUMN = Code(
    "duplicate-column", TableError, "duplicate column {column!r} ({times} times)", "keep one of them"
)

MISSING_COLUMN = Code("missing-column", TableError, "there is no column {column!r}", "{advice}")

CELL_COUNT = Code(
    "cell-count",
    TableError,
    "the row has {cells} cells, the header {columns}",
    'quote a value that holds the separator: "a, b"',
)

MALFORMED_CSV = Code(
    "malformed-csv",
    TableError,
    "the table cannot be read as CSV ({error})",
    "look for a quote that is opened and not closed",
)

COLUMN_TYPE = Code("column-type", TableError, "{column} is a column of {type}", "write it as {expected}")

BAD_CELL = Code("bad-cell", TableError, "{column} is {value}", "give {expected}, or nothing")

END_NOT_AFTER_START = Code(
    "end-not-after-start",
    TableError,
    "end {end} is not after start {start}",
    "give start and end in seconds, both from the beginning of the recording",
)

DUPLICATE_ROW = Code("duplicate-row", TableError, "duplicate row: {key}, first in {first}", "drop or rename one")

UNKNOWN_TABLE_NAME = Code(
    "unknown-table-name", TableError, "there is no {what} {name}{others}", "{advice}; there are {known}"
)

UNKNOWN_XML_ENCODING = Code(
    "unknown-xml-encoding",
    DataError,
    "the encoding cannot be read ({error})",
    "write the list in UTF-8, and say so in its first line",
)
UNENDING_TAG = Code(
    "unending-tag", DataError, "no tag or comment ends within {size} MiB", "check that the file is a list"
)
DEEP_NESTING = Code("deep-nesting", DataError, "more than {most} nested elements", "check that the file is a list")
LONG_XML_TEXT = Code(
    "long-xml-text", DataError, "an element has more than {most} characters of text", "check that the file is a list"
)
DEFAULT_ATTRIBUTE = Code(
    "default-attribute",
    DataError,
    "the document type declares a default for attribute {name!r}",
    "write the attribute itself in each element",
)
DECLARED_ENTITY = Code(
    "declared-entity",
    DataError,
    "the document type declares an entity ({name!r})",
    "write the text itself; entities are not read, since they can be an attack",
)
UNDECLARED_ENTITY = Code("undeclared-entity", DataError, "entity {name!r} is not declared", "write the text itself")
UNREADABLE_TAG = Code(
    "unreadable-tag", DataError, "a tag cannot be separated from the text after it", "take out the <!DOCTYPE ...>"
)

END_WITHOUT_START = Code(
    "end-without-start",
    OddError,
    "{count} column 'end' without 'start', which is not read",
    "a place has both: add the start, or rename the column",
)
UNREAD_COLUMN = Code(
    "unread-column",
    OddError,
    "{count} column not read: {column!r}; there is no column {meant!r}",
    "rename it to {meant!r} if it is meant",
)
LINE_BREAK_IN_CELL = Code(
    "line-break-in-cell",
    TableError,
    "{column}{value} goes over several lines{also}",
    "look for a quote that is opened and not closed",
)
NUL_IN_CELL = Code("nul-in-cell", TableError, "{column}{value} holds a NUL{also}", "take it out")
EMPTY_TABLE_CELL = Code(
    "empty-table-cell", TableError, "{column}{value} is empty{also}", "give a {column}, or drop the row"
)
NON_FINITE_CELL = Code("non-finite-cell", TableError, "{column}{value} is not a finite number{also}", "give a number")
CELL_BELOW_ONE = Code("cell-below-one", TableError, "{column}{value} is less than 1{also}", "count from 1")
NEGATIVE_CELL = Code("negative-cell", TableError, "{column}{value} is negative{also}", "give seconds, from 0")
CELL_TOO_LARGE = Code(
    "cell-too-large", TableError, "{column}{value} is longer than any recording{also}", "give seconds, up to {most}"
)

BAD_ARGUMENT = Code("bad-argument", UserError, "{value} is not {expected}", "give a number, as {name}={example}")
