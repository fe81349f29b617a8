"""Read user tables, CSV or Parquet, into our schemas (`swsdist.core.types`), checking them completely.

Either may be packed by gzip or xz. CSV is UTF-8 (a byte order mark is ignored) with a header, RFC 4180. Columns are
separated by commas, or, as the header shows, by semicolons or tabs; numbers may have decimal commas, if all of them do;
and `yes` and `no` mean `true` and `false`, as do 1 and 0. A first line `sep=;`, as spreadsheets write it, names the
separator. Parquet is recognised by its first bytes; text may be of any type of strings, bytes in UTF-8, whole numbers
or decimals, and numbers any type of numbers, or text. Columns outside the schema are dropped. A glossary's project is
read as the view of it that has the schema's columns. A column of the schema may be absent, or a cell of it empty, if it
is nullable (then it is null), or if it is `channel` (then it is 1); `example` may be absent (then the rows of a
`query_id` count 1, 2, ... in their order).

Rows are checked against the schema: numbers are finite, `channel` and `example` at least 1, times not negative, `start`
before `end`, ids not empty, keys unique. Every error names file, line and column; lines count from 1 as in an editor,
header included, and rows of Parquet from 1.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as codes
from swsdist.core.errors import TableError
from swsdist.core.types import JUDGEMENTS, QUERIES, REFERENCES
from swsdist.io.compressed import demand_utf8, opened, short
from swsdist.io.fields import LATEST
from swsdist.io.notices import Notices, sample
from swsdist.io.project_file import project_file, read_view

_COUNTED_FROM_ONE = ("channel", "example")
_NOT_NEGATIVE = ("start", "duration", "tbeg", "dur")
_SECONDS = ("start", "end", "duration", "tbeg", "dur")


#: Names of speakers, in any case, that stand for nobody.
NOBODY = ("", "nan", "none", "null", "n/a", "na", "<na>", "?", "-", "unk", "unknown")


def read_table(
    path: str,
    schema: pa.Schema,
    *,
    key: Sequence[str] = (),
    storage: Mapping[str, object] | None = None,
    notices: Notices | None = None,
) -> pa.Table:
    """A user's table in one of our schemas, rows in their order.

    Args:
        path: CSV or Parquet, plain or packed, local or `s3://`.
        schema: columns to read, and their types.
        key: columns whose combination must be unique.
        storage: options for s3fs.
        notices: collects unread columns that resemble an absent column of the schema; and each `end` without `start`,
            which is ignored.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or a value is impossible; with the line.
        DataError: it is packed and damaged; or there is a notice, and notices are errors.
    """
    source = _Source.read(path, storage)
    raw = source.columns(schema)
    absent = [field.name for field in schema if field.name not in raw.column_names]
    if "start" in absent and "end" in raw.column_names:
        raw = raw.drop_columns(["end"])
        if notices is not None:
            notices.add(codes.END_WITHOUT_START, where=source.first, count=1)
    for name, meant in _alike(source.names(), absent, schema) if notices is not None and absent else ():
        assert notices is not None
        notices.add(codes.UNREAD_COLUMN, where=source.first, column=short(name), meant=meant, count=1)
    raw = _with_points(raw, schema)
    columns = [_column(source, raw, field) for field in schema]
    table = pa.table(columns, schema=schema)
    if "speaker" in schema.names:
        table = without_nobody(table)
    _check_spans(source, table)
    if key:
        _check_unique(source, table, key)
    return table


def rows_of(
    path: str, schema: pa.Schema, storage: Mapping[str, object] | None = None
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """The rows of CSV with their places, as text with points for decimal commas: whoever reads them checks each.

    Args:
        path, schema, storage: as for `read_table`; a column that is absent is None.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or the file is not CSV.
    """
    source = _Source.read(path, storage)
    raw = _with_points(source.columns(schema), schema)
    empty = dict.fromkeys(schema.names)
    try:
        for (line, _), row in zip(islice(source._records(), 1, None), raw.to_pylist(), strict=False):
            yield f"{path}, line {line}", empty | row
    except csv.Error as error:
        raise source._malformed(source.names(), str(error)) from error


def without_nobody(table: pa.Table) -> pa.Table:
    """The same table with its column `speaker` as text without blanks around names; unknown speakers (`NOBODY`), who are not
    the same person, are null.
    """
    names = pc.utf8_trim_whitespace(table["speaker"].cast(pa.string()))
    unknown = pc.is_in(pc.utf8_lower(names), pa.array(NOBODY, pa.string()))
    named = pc.if_else(unknown, None, names)
    return table.set_column(table.schema.get_field_index("speaker"), pa.field("speaker", pa.string()), named)


def place(path: str, row: int, storage: Mapping[str, object] | None = None) -> str:
    """Place of a table's row in its file, for messages: `PATH, line 7`, or `PATH, row 6` in Parquet.

    Args:
        path: the table's file.
        row: index, from 0.
        storage: options for s3fs.
    """
    return _Source.read(path, storage).place(row)


def names_in(path: str, storage: Mapping[str, object] | None = None) -> list[str]:
    """All columns of a table, in their order.

    Args:
        path, storage: as for `read_table`.

    Raises:
        UserError, TableError: as for `read_table`.
    """
    return _Source.read(path, storage).names()


def write_csv(
    table: pa.Table | Iterable[pa.RecordBatch], schema: pa.Schema, out: Path | BinaryIO, header: bool = True
) -> None:
    """Write a table, or a stream of its batches, as CSV that `read_table` reads back to the same values."""
    with pa.csv.CSVWriter(out, schema, write_options=pa.csv.WriteOptions(include_header=header)) as writer:
        for batch in table.to_batches() if isinstance(table, pa.Table) else table:
            writer.write_batch(batch)


@dataclass(frozen=True)
class _Source:
    """The bytes of a table's file, unpacked."""

    path: str
    data: bytes

    @classmethod
    def read(cls, path: str, storage: Mapping[str, object] | None) -> _Source:
        if (project := project_file(path)) is not None:
            return _Project(str(project), b"")
        with opened(path, storage, what="table") as stream:
            return cls(path, stream.read())

    @property
    def is_parquet(self) -> bool:
        return self.data.startswith(b"PAR1")

    @cached_property
    def _declared(self) -> str | None:
        """Separator that a first line `sep=` names."""
        line = re.match(rb'(?i)(?:\xef\xbb\xbf)?"?sep=([,;|:\t])"?[ \t]*\r?\n', self.data)
        return None if line is None else line[1].decode()

    @cached_property
    def separator(self) -> str:
        """Separator of CSV columns: that of a line `sep=`; or a comma, unless the header contains semicolons or tabs.

        Raises:
            TableError: it has both.
        """
        if self._declared is not None:
            return self._declared
        try:
            result = [mark for mark in ",;\t" if len(next(self._records(mark), (1, []))[1]) > 1]
        except (UnicodeDecodeError, csv.Error):
            return ","
        if result == [";", "\t"]:
            raise families.MALFORMED_FILE.of(TableError)(
                "semicolons and tabs separate the names of the columns",
                "separate the columns by one of them, or by commas",
                where=f"{self.path}, line 1",
            )
        return result[0] if result else ","

    def columns(self, schema: pa.Schema) -> pa.Table:
        """The columns of the file that the schema names; those of CSV are strings, null where empty."""
        header = self.names()
        names = self._required(schema, header)
        if self.is_parquet:
            try:
                return self._parquet.read(columns=names)
            except (pa.ArrowException, OSError) as error:
                raise codes.NOT_PARQUET(where=self.path, error=error) from error
        try:
            return pa.csv.read_csv(
                pa.BufferReader(self.data),
                read_options=pa.csv.ReadOptions(skip_rows=self._declared is not None),
                parse_options=pa.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=names,
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._malformed(header, str(error)) from error

    def place(self, row: int) -> str:
        if self.is_parquet:
            return f"{self.path}, row {row + 1}"
        try:
            for index, (line, _) in enumerate(self._records()):
                if index == row + 1:  # the first record is the header
                    return f"{self.path}, line {line}"
        except csv.Error:  # an earlier value is too long for Python's reader, so lines cannot be counted
            return f"{self.path}, row {row + 1}"
        raise IndexError(row)

    def _records(self, separator: str | None = None) -> Iterator[tuple[int, list[str]]]:
        """The records of CSV, each with its first line; empty lines are skipped, as in pyarrow."""
        text = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=self.separator if separator is None else separator)
        begin = 1
        for record in reader:
            if record and (begin > 1 or self._declared is None):
                yield begin, record
            begin = reader.line_num + 1

    @property
    def first(self) -> str:
        """Place of the column names, for messages."""
        return self.path if self.is_parquet else f"{self.path}, line {1 if self._declared is None else 2}"

    @cached_property
    def _parquet(self) -> pa.parquet.ParquetFile:
        try:
            return pa.parquet.ParquetFile(pa.BufferReader(self.data))
        except (pa.ArrowException, OSError) as error:
            raise codes.NOT_PARQUET(where=self.path, error=error) from error

    def names(self) -> list[str]:
        """All columns of the file.

        Raises:
            TableError: it is damaged, or two have one name.
        """
        try:
            header = self._parquet.schema_arrow.names if self.is_parquet else next(self._records(), (1, []))[1]
        except (UnicodeDecodeError, csv.Error) as error:
            raise self._malformed([], str(error)) from error
        for name, times in Counter(header).items():
            if times > 1:
                raise families.DUPLICATE_NAME.of(TableError)(
                    "duplicate column {column!r} ({times} times)",
                    "keep one of them",
                    where=self.first,
                    column=short(name),
                    times=times,
                )
        return list(header)

    def _required(self, schema: pa.Schema, result: Sequence[str]) -> list[str]:
        for field in schema:
            if field.name in result or field.nullable or field.name in _COUNTED_FROM_ONE:
                continue
            folded = {name.lower(): name for name in result}
            close = difflib.get_close_matches(field.name, folded, n=1)
            found = short(", ".join(result), 1000) or "none"
            if any(re.search("[;\t]", name) for name in result):
                marks = "commas, semicolons or tabs"
                remedy = f"name the columns in the first line, all separated alike, by {marks}; found: {found}"
            elif close:
                remedy = f"did you mean {folded[close[0]]!r}? Rename it to {field.name!r}"
            else:
                remedy = f"add it to the names of columns; found: {found}"
            raise families.MISSING_COLUMN(
                "there is no column {column!r}", "{advice}", where=self.first, column=field.name, advice=remedy
            )
        return [name for name in schema.names if name in result]

    def _malformed(self, header: Sequence[str], message: str) -> TableError:
        """Find the line that pyarrow could not read.

        Raises:
            TableError: it is not UTF-8.
        """
        demand_utf8(self.data, self.path)
        begin = 1
        try:
            for begin, record in self._records():
                if len(record) != len(header):
                    return families.BAD_CELL(
                        "the row has {cells} cells, the header {columns}",
                        'quote a value that holds the separator: "a, b"',
                        where=f"{self.path}, line {begin}",
                        cells=len(record),
                        columns=len(header),
                    )
        except csv.Error as error:
            message = str(error)
        return families.MALFORMED_FILE.of(TableError)(
            "the table cannot be read as CSV ({error})",
            "look for a quote that is opened and not closed",
            where=f"{self.path}, line {begin}",
            error=message,
        )


class _Project(_Source):
    """The views of a glossary's project."""

    def columns(self, schema: pa.Schema) -> pa.Table:
        if "doc_id" not in schema.names or "query_id" not in schema.names:
            raise families.UNSUPPORTED.of(TableError)(
                "a glossary has no table with the columns {columns}",
                "a glossary is a table of queries and of references; name another file here",
                where=self.path,
                columns=", ".join(schema.names),
            )
        view = "judgements" if "verdict" in schema.names else "queries" if "example" in schema.names else "references"
        rows = read_view(Path(self.path), view)
        names = [field.name for field in _VIEWS[view] if field.name in schema.names]
        kinds = pa.schema([_VIEWS[view].field(name).with_nullable(True) for name in names])
        return pa.Table.from_pylist([{name: row[name] for name in names} for row in rows], kinds)

    def place(self, row: int) -> str:
        return f"{self.path}, place {row + 1}"

    @property
    def first(self) -> str:
        return self.path

    def names(self) -> list[str]:
        return list(QUERIES.names)


_VIEWS = {"judgements": JUDGEMENTS, "queries": QUERIES, "references": REFERENCES}


#: Other programs' names of our columns.
_OTHERS = {
    "start": {"begin", "beg", "tbeg", "onset", "starttime", "startsec", "from", "xmin"},
    "end": {"stop", "tend", "offset", "endtime", "endsec", "to", "xmax"},
    "duration": {"dur", "length", "seconds"},
    "speaker": {"spk", "spkid", "speakerid", "talker", "speakername"},
    "channel": {"chan", "ch", "track"},
    "example": {"exampleid", "instance", "repetition"},
    "path": {"file", "filename", "wav", "audio", "audiopath", "audiofilename"},
    "doc_id": {"doc", "document", "documentid", "utt", "uttid", "utterance", "recording", "recordingid"},
    "term": {"text", "word", "words", "phrase", "kw", "keyword", "transcript"},
}


def _alike(names: Sequence[str], absent: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Unread columns of a file, each with an absent column of the schema that it may stand for."""
    for name in names:
        if name in schema.names:
            continue
        plain = re.sub(r"[^a-z0-9]", "", name.lower())
        for meant in absent:
            plain_meant = meant.replace("_", "")
            close = difflib.SequenceMatcher(None, plain, plain_meant).ratio() >= 0.85
            if plain == plain_meant or plain in _OTHERS.get(meant, ()) or close:
                yield name, meant
                break


def _column(source: _Source, raw: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """One column in its type, each value checked independently."""
    if field.name not in raw.column_names:
        return pa.chunked_array([_default(raw, field)])
    column = _plain(source, raw.column(field.name), field)
    checks: list[tuple[Code[TableError], pa.ChunkedArray]] = []
    if pa.types.is_string(field.type):
        values = column
        checks.append(
            (
                families.BAD_CELL.saying(
                    "{column}{value} goes over several lines{also}", "look for a quote that is opened and not closed"
                ),
                pc.match_substring_regex(values, "[\n\r]"),
            )
        )
        checks.append(
            (
                families.BAD_CELL.saying("{column}{value} holds a NUL{also}", "take it out"),
                pc.match_substring(values, "\0"),
            )
        )
    else:
        values = _numbers(source, column, field)
    if not field.nullable:
        if field.name == "channel":
            values = pc.fill_null(values, 1)
        empty = pc.is_null(values)
        if pa.types.is_string(field.type):
            empty = pc.or_(empty, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(values), ""), False))
        checks.append(
            (families.BAD_CELL.saying("{column}{value} is empty{also}", "give a {column}, or drop the row"), empty)
        )
    if pa.types.is_floating(field.type):
        checks.append(
            (
                families.BAD_CELL.saying("{column}{value} is not a finite number{also}", "give a number"),
                pc.invert(pc.is_finite(values)),
            )
        )
    if field.name in _COUNTED_FROM_ONE:
        checks.append(
            (families.BAD_CELL.saying("{column}{value} is less than 1{also}", "count from 1"), pc.less(values, 1))
        )
    if field.name in _NOT_NEGATIVE:
        checks.append(
            (families.BAD_CELL.saying("{column}{value} is negative{also}", "give seconds, from 0"), pc.less(values, 0))
        )
    if field.name in _SECONDS:
        values = pc.add(values, 0.0)  # no -0.0
        checks.append(
            (
                families.BAD_CELL.saying(
                    "{column}{value} is longer than any recording{also}", "give seconds, up to {most}"
                ),
                pc.greater(values, LATEST),
            )
        )
    for code, mask in checks:
        _check_rows(source, values, field.name, code, mask)
    return values


#: A number with a decimal comma; and a number whose comma may separate thousands.
_COMMA, _THOUSANDS = r"^\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*$", r"^\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*$"


def _with_points(raw: pa.Table, schema: pa.Schema) -> pa.Table:
    """Replace decimal commas by points, if no number of the table has a point, and one has a comma not followed by
    three digits; other commas stay, and are refused later.
    """
    texts = [name for name in raw.column_names if pa.types.is_string(raw.schema.field(name).type)]
    names = [name for name in texts if pa.types.is_floating(schema.field(name).type)]
    sure = False
    for name in names:
        if pc.any(pc.match_substring(raw[name], ".")).as_py():
            return raw
        commas = raw[name].filter(pc.fill_null(pc.match_substring_regex(raw[name], _COMMA), False))
        sure = sure or pc.all(pc.match_substring_regex(commas, _THOUSANDS)).as_py() is False
    for name in names if sure else ():
        commas = pc.match_substring_regex(raw[name], _COMMA)
        column = pc.if_else(commas, pc.replace_substring(raw[name], ",", "."), raw[name])
        raw = raw.set_column(raw.schema.get_field_index(name), name, column)
    return raw


def _default(raw: pa.Table, field: pa.Field) -> pa.Array:
    if field.nullable:
        return pa.nulls(raw.num_rows, field.type)
    if field.name == "channel":
        return pa.array(np.ones(raw.num_rows, np.int32))
    seen: Counter[str] = Counter()
    examples = []
    for query in raw.column("query_id").to_pylist():
        seen[query] += 1
        examples.append(seen[query])
    return pa.array(examples, field.type)


_TEXTS = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
)
#: Text of a number: Arrow takes hexadecimal integers, too.
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _plain(source: _Source, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column as text, for a field of numbers as numbers, too.

    Raises:
        TableError: it is of a type that is neither, or text that is not UTF-8.
    """
    kind, is_text = column.type, pa.types.is_string(field.type)
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_null(kind):
        return column.cast(field.type)
    if any(known(kind) for known in _TEXTS):
        return _converted(source, column, field, _utf8, "text in UTF-8")
    if pa.types.is_floating(kind) and is_text:  # as pandas writes numbers beside empty cells
        numbers = pc.if_else(pc.is_nan(column.cast(pa.float64())), None, column.cast(pa.float64()))
        return _converted(source, numbers, field, lambda some: some.cast(pa.int64()).cast(pa.string()), "text")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.string()) if is_text else column
    if pa.types.is_boolean(kind) and pa.types.is_boolean(field.type):
        return column
    expected = "text" if is_text else "true and false" if pa.types.is_boolean(field.type) else "numbers"
    raise codes.COLUMN_TYPE(where=source.path, column=field.name, type=kind, expected=expected)


def _utf8(column: pa.ChunkedArray) -> pa.ChunkedArray:
    result = column.cast(pa.string())
    result.validate(full=True)
    return result


def _numbers(source: _Source, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    required = "a whole number" if pa.types.is_integer(field.type) else "a number"
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        if pa.types.is_boolean(field.type):
            column = _yes_and_no(column)
    if pa.types.is_boolean(field.type):
        required = "true or false, yes or no"
    return _converted(source, column, field, lambda some: _cast(some, field.type), required)


def _converted(
    source: _Source,
    column: pa.ChunkedArray,
    field: pa.Field,
    convert: Callable[[pa.ChunkedArray], pa.ChunkedArray],
    required: str,
) -> pa.ChunkedArray:
    """A column, converted.

    Raises:
        TableError: a value cannot be; with the first such row.
    """
    try:
        return convert(column)
    except pa.ArrowInvalid:
        low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(column.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    bad = column.slice(low, 1)
    value = (bad.cast(pa.binary()) if convert is _utf8 else bad)[0].as_py()
    if "," in str(value) and pa.types.is_floating(field.type):
        required = "decimal points, or commas in all numbers of the table, and not before three digits in each"
    raise families.BAD_CELL(
        "{column} is {value}",
        "give {expected}, or nothing",
        where=source.place(low),
        column=field.name,
        value=_shown(value),
        expected=required,
    )


def _yes_and_no(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """`yes` and `no`, in any case, as booleans that Arrow accepts."""
    for word, value in (("^yes$", "true"), ("^no$", "false")):
        column = pc.if_else(pc.match_substring_regex(column, word, ignore_case=True), value, column)
    return column


def _shown(value: object) -> str:
    return repr(short(value) if isinstance(value, str) else value)


def _cast(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The values in a type of numbers, or as booleans.

    Raises:
        ArrowInvalid: a value is none.
    """
    if pa.types.is_string(values.type) and pa.types.is_integer(kind):
        if pc.any(pc.invert(pc.match_substring_regex(values, _NUMBER))).as_py():
            raise pa.ArrowInvalid("no number")
    elif pa.types.is_boolean(kind) and not pa.types.is_string(values.type) and not pa.types.is_boolean(values.type):
        values = values.cast(pa.float64()).cast(pa.int64())
        if not pc.all(pc.is_in(values.drop_null(), value_set=pa.array([0, 1]))).as_py():
            raise pa.ArrowInvalid("neither 0 nor 1")
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        if not pa.types.is_integer(kind):
            raise
        return values.cast(pa.float64()).cast(kind)  # pandas writes integers beside empty cells as `1.0`


def _check_spans(source: _Source, table: pa.Table) -> None:
    if not {"start", "end"} <= set(table.column_names):
        return
    start, end = table.column("start"), table.column("end")
    begin = pc.fill_null(start, 0.0)
    row = pc.index(pc.fill_null(pc.less_equal(end, begin), False), True).as_py()
    if row >= 0:
        raise families.INVALID_TIMES.of(TableError)(
            "end {end} is not after start {start}",
            "give start and end in seconds, both from the beginning of the recording",
            where=source.place(row),
            end=end[row].as_py(),
            start=begin[row].as_py(),
        )


def _check_unique(source: _Source, table: pa.Table, key: Sequence[str]) -> None:
    numbered = table.select(list(key)).append_column("row", pa.array(np.arange(table.num_rows)))
    groups = numbered.group_by(list(key)).aggregate([("row", "count"), ("row", "min")])
    groups = groups.filter(pc.greater(groups.column("row_count"), 1))
    if groups.num_rows == 0:
        return
    group = groups.sort_by("row_min").slice(0, 1).to_pylist()[0]
    same = numbered
    for name in key:
        values = same.column(name)
        same = same.filter(pc.is_null(values) if group[name] is None else pc.equal(values, group[name]))
    first, second = same.column("row")[0].as_py(), same.column("row")[1].as_py()
    shown = ", ".join(f"no {name}" if group[name] is None else f"{name} {_shown(group[name])}" for name in key)
    earlier = source.place(first).removeprefix(f"{source.path}, ")
    raise families.DUPLICATE_NAME.of(TableError)(
        "duplicate row: {key}, first in {first}",
        "drop or rename one",
        where=source.place(second),
        key=shown,
        first=earlier,
    )


def _check_rows(
    source: _Source, values: pa.ChunkedArray, column: str, code: Code[TableError], mask: pa.ChunkedArray
) -> None:
    """Raise the error of a code where a mask is true, with the first row and the number of others."""
    rows = np.flatnonzero(pc.fill_null(mask, False).to_numpy()).tolist()
    if rows:
        value = values[rows[0]].as_py()
        shown = "" if value in (None, "") else f" {_shown(value)}"
        more = ", ".join(source.place(row).removeprefix(f"{source.path}, ") for row in rows[1:3])
        also = f"; so in {len(rows) - 1} other rows ({more}{', ...' if len(rows) > 3 else ''})" if more else ""
        raise code(where=source.place(rows[0]), column=column, value=shown, also=also, most=f"{LATEST:.0f}")


#: Rows shown in a message.
_SHOWN = 3


def unknown_names(
    what: str,
    names: Sequence[str],
    rows: Sequence[int],
    path: str,
    there: Iterable[object],
    storage: Mapping[str, object] | None,
    remedy: str,
) -> TableError:
    """The error for rows of a table with unknown names.

    Args:
        what: kind of name, for example `query`.
        names: as shown in messages, one per row.
        rows: from 0; at least one.
        path: of the table.
        there: the existing names.
        storage: options for s3fs.
        remedy: advice.
    """
    others = ""
    if len(rows) > 1:
        lines = (place(path, row, storage).removeprefix(f"{path}, ") for row in rows[:_SHOWN])
        shown = ", ".join(f"{name} ({line})" for name, line in zip(names, lines, strict=False))
        others = f", nor what {len(rows) - 1} other rows name: {shown}{', ...' if len(rows) > _SHOWN else ''}"
    return families.UNKNOWN_NAME.of(TableError)(
        "there is no {what} {name}{others}",
        "{advice}; there are {known}",
        where=place(path, rows[0], storage),
        what=what,
        name=names[0],
        others=others,
        advice=remedy,
        known=sample(there),
    )
