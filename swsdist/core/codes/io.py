"""Codes of files and their fields, and of formats that other programs write."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import DataError, OddError, TableError, UserError

DAMAGED_ARCHIVE = families.DAMAGED_FILE.of(DataError).saying(
    "the compressed file is damaged or cut off ({error})", "fetch it again"
)


NO_SUCH_FILE = families.MISSING_FILE.saying("there is no such {what}", "name a {what} that exists")


UTF16_TEXT = families.MALFORMED_FILE.of(TableError).saying(
    "the text is UTF-16, not UTF-8", "convert it: iconv -f UTF-16 -t UTF-8 {path} > OUTPUT"
)

NOT_UTF8 = families.MALFORMED_FILE.of(TableError).saying(
    "the text is not UTF-8: {text}", "convert it: iconv -f LATIN1 -t UTF-8 (or from its encoding)"
)


BAD_TIME = families.MALFORMED_LINE.saying("{name} is {text!r}", "give the {name} in seconds, from 0 to 1e9")


SIGNED_URL = Code(
    "signed-url",
    UserError,
    "the url is signed: any reader of the store or report could use it",
    "name s3://bucket/name alone, with keys in the environment (AWS_ACCESS_KEY_ID, ...)",
)


MALFORMED_SCP_LINE = families.MALFORMED_LINE.saying(
    "the line is not KEY FILE:OFFSET", "write for instance: doc1 /data/raw.ark:5"
)


DUPLICATE_MLF_NAME = families.DUPLICATE_NAME.saying(
    "the file has labels of {name!r} twice",
    "keep one of them, or rename the other; folders and endings of names do not count for documents",
)


CTM_ALTERNATION = Code(
    "ctm-alternation",
    DataError,
    "the CTM holds an alternation (several readings that count as right)",
    "keep one reading of each, and take out <ALT_BEGIN>, <ALT> and <ALT_END>",
)


WRONG_ROOT_ELEMENT = families.MALFORMED_XML.saying("the outermost element is <{element}>", "name {expected}")


REPEATED_QUERY_LIST = Code(
    "repeated-query-list",
    OddError,
    "{count} list{s} replaced by a later list of the same query",
    "put the detections into one list",
)


DECISION_COUNTED_AS_NO = Code(
    "decision-counted-as-no", OddError, "{count} decision{s} neither YES nor NO: counted as NO", "write YES or NO"
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


REPEATED_TERM = Code(
    "repeated-term", OddError, "{count} term{s} with the id of another term: the last counts", "drop or rename one"
)


UNUSUAL_CHANNEL = Code(
    "unusual-channel",
    OddError,
    "{count} list{s} with a channel as a letter or with a leading 0, here equal to its number; "
    "the NIST programs compare the text",
    "write 1, 2, ... in all lists",
)


NOT_PARQUET = families.MALFORMED_FILE.of(TableError).saying("the table is not Parquet ({error})", "write it again")


COLUMN_TYPE = families.BAD_CELL.saying("{column} is a column of {type}", "write it as {expected}")


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
