"""Tables of results as files: CSV, LaTeX, Markdown or JSON, by the file's ending; and as text for a terminal.

A table consists of text, so that a number has the same digits in all formats. If it also holds plain values
(`Table.plain`), CSV and JSON use those, with all digits.

LaTeX needs the package booktabs, and longtable for a table of more than a page. Names are escaped; non-Latin letters
need XeLaTeX or LuaLaTeX and a suitable font.
"""

from __future__ import annotations

import csv
import json
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.fingerprint import plain
from swsdist.core.text import shown, suggestion

if TYPE_CHECKING:
    import pyarrow as pa

#: Endings of tables.
TABLES = (".csv", ".tex", ".md", ".json")

SCHEMA = "swsdist-tables/1"

#: An undefined value, as in `swsdist.report.summary`.
_NOTHING = "–"
#: Most letters per line of a text cell, and of a heading.
_LABEL, _HEADING = 30, 18
#: The last letter that pdfLaTeX knows without a package.
_LAST_LATIN = "\u017f"
#: Rows that fit on a page of a paper.
_PAGE = 45

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",
    "–": "--",
    "…": r"\dots{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}
#: The minus sign of a number, not a hyphen within a name, a date or a range.
_NEGATIVE = re.compile(r"(?<![\w.-])-(?=\.?\d|inf\b)")
#: A number that is nothing but a power of ten and its factor.
_POWER = re.compile(r"(-?)(\d+(?:\.\d+)?)e([+-]\d+)")
_MARKDOWN = re.compile(r"[\\|`*_<\[\]~]")


@dataclass(frozen=True)
class Table:
    """A table of text, with text columns aligned left and number columns right.

    Attributes:
        caption: without a full stop.
        columns: headings.
        rows: cells, as many as headings.
        note: sentences below it.
        texts: indices of the columns of text; the others hold numbers.
        plain: the same rows for programs, values by name; by default the cells.
        names: of the values of `plain`, for a table that may have no rows.
        helps: explanations of columns by heading, shown on pages.
        gap: why a cell may be a dash; added to the note if any is.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    texts: Collection[int] = (0,)
    plain: Sequence[Mapping[str, object]] = ()
    names: Sequence[str] = ()
    helps: Mapping[str, str] = field(default_factory=dict)
    gap: str = "there is nothing to compute it of"

    @property
    def footnote(self) -> str:
        """The text below the table: the note, and the meaning of dashes, if any."""
        dashes = any(cell == _NOTHING for row in self.rows for cell in row)
        return f"{self.note} {_NOTHING}: {self.gap}.".strip() if dashes and _NOTHING not in self.note else self.note


def padded(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def write_tables(tables: Sequence[Table], path: str | Path) -> list[Path]:
    """Write tables to a file; return the written paths.

    Args:
        tables: in their order. A CSV file holds one: several become several files, named by caption (`out.csv` becomes
            `out-queries.csv`, ...).
        path: local file; it ends in `.csv`, `.tex`, `.md` or `.json`.

    Raises:
        UserError: another ending.
    """
    out = Path(path)
    ending = out.suffix.lower()
    if ending == ".csv":
        return _write_csv(tables, out)
    makers: dict[str, Callable[[Sequence[Table]], str]] = {".tex": latex, ".md": markdown, ".json": to_json}
    if ending not in makers:
        *others, last = TABLES
        endings = f"{', '.join(others)} or {last}"
        raise families.UNKNOWN_NAME(
            "the name of a table must end in {endings}",
            "name a file that ends in {endings}",
            where=str(path),
            endings=endings,
        )
    out.write_text(makers[ending](tables), encoding="utf-8", errors="replace")
    return [out]


def table_of(rows: pa.Table, caption: str, decimals: int | None = None, names_first: bool = True) -> Table:
    """Rows as a table for people.

    Args:
        rows: any table of plain columns.
        caption: without a full stop.
        decimals: of fractional numbers; None: six significant digits.
        names_first: move columns of text before those of numbers.
    """
    import pyarrow as pa

    def is_number(name: str) -> bool:
        kind = rows.schema.field(name).type
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    texts = [name for name in rows.column_names if not is_number(name)]
    names = [*texts, *(name for name in rows.column_names if name not in texts)] if names_first else rows.column_names
    plain = rows.select(names).to_pylist()
    cells = [[_cell_of(row[name], decimals) for name in names] for row in plain]
    of_text = [k for k, name in enumerate(names) if name in texts]
    return Table(
        caption,
        [name.replace("_", " ") for name in names],
        cells,
        texts=of_text,
        plain=plain,
        names=names,
        gap="no value is given",
    )


def _cell_of(value: object, decimals: int | None) -> str:
    from swsdist.report.summary import fixed, short

    if isinstance(value, float) and decimals is not None:
        return fixed(value, decimals)
    return short(value, 6) if value is None or isinstance(value, float) else str(value)


def select_columns(rows: pa.Table, path: str, columns: Sequence[str], by: str | None, first: int | None) -> pa.Table:
    """Some columns and rows of a table.

    Args:
        rows: a table.
        path: of the file, for messages.
        columns: their names, in order, or `NAME=HEADING`; empty: all.
        by: column to sort by, ascending, or with `-` in front descending. Rows without a value are last.
        first: number of rows; None: all.

    Raises:
        UserError: no such column.
    """
    requested = [column.partition("=") for column in columns] or [(name, "", "") for name in rows.column_names]
    for name in [*(name for name, _, _ in requested), *([by.removeprefix("-")] if by else [])]:
        if name not in rows.column_names:
            raise families.UNKNOWN_NAME(
                "no column {column!r}{meant}",
                "columns are {columns}",
                where=path,
                column=name,
                meant=suggestion(name, rows.column_names),
                columns=", ".join(rows.column_names),
            )
    if by:
        rows = rows.sort_by([(by.removeprefix("-"), "descending" if by.startswith("-") else "ascending")])
    kept = rows.slice(0, first).select([name for name, _, _ in requested])
    return kept.rename_columns([heading or name for name, _, heading in requested])


def read_rows(path: str) -> pa.Table:
    """Read a CSV or Parquet file, local or `s3://`; columns of a CSV with only numbers become numbers.

    Raises:
        UserError: no such file.
        DataError: not a table, or not UTF-8.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from swsdist.io.compressed import demand_utf8, opened

    with opened(path) as stream:
        content = pa.py_buffer(stream.read())
    try:
        if content[:4].to_pybytes() == b"PAR1":
            results = pyarrow.parquet.read_table(pa.BufferReader(content))
            _demand_names(results.column_names, path)
            return pa.table([_readable(column) for column in results.columns], names=results.column_names)
        demand_utf8(content.to_pybytes(), path)
        parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
        named = pyarrow.csv.open_csv(pa.BufferReader(content), parse_options=parsing).schema.names
        texts = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(named, pa.string()), null_values=[""], strings_can_be_null=True
        )
        results = pyarrow.csv.read_csv(pa.BufferReader(content), parse_options=parsing, convert_options=texts)
    except (pa.ArrowException, OSError) as error:
        raise codes.NOT_A_TABLE(where=path, error=str(error).splitlines()[0]) from error
    _demand_names(results.column_names, path)
    return pa.table([_as_numbers(column) for column in results.columns], names=results.column_names)


def _demand_names(names: Sequence[str], path: str) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise codes.NOT_A_TABLE(where=path, error=f"two columns are called {twice[0]!r}")


def _readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of numbers or booleans as it is, of anything else as text."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _readable(column.cast(kind.value_type))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
        return column
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    try:
        result = column.cast(pa.string())
    except pa.ArrowNotImplementedError:
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.chunked_array([texts], pa.string())
    result.validate(full=True)
    return result


#: Text that is only a number: `007` is a name.
_NUMBER = r"^[+-]?(0|[1-9][0-9]{0,14})?(\.[0-9]*)?([eE][+-]?[0-9]+)?$|^[+-]?(nan|NaN|inf|Infinity)$"


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text as numbers, if the conversion is lossless."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.drop_null()
    if not len(text) or not pc.all(pc.match_substring_regex(text, _NUMBER)).as_py():
        return column
    for kind in (pa.int64(), pa.float64()):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


# -- text -------------------------------------------------------------------------------------------------------------


def text_lines(table: Table, width: int = 110) -> list[str]:
    """A table as lines of plain text of limited width, with caption above and note below.

    Nothing is truncated: long names are wrapped, and columns beyond the width follow below, with the first column repeated.

    Args:
        table: what to show.
        width: letters, at least 40.
    """
    room = max(width, 40)
    cells = [
        [_cell(table, k, text, k_row == 0, room) for k, text in enumerate(row)]
        for k_row, row in enumerate([table.columns, *table.rows])
    ]
    widths = [max(len(line) for row in cells for line in row[k]) for k in range(len(table.columns))]
    lines = textwrap.wrap(table.caption, room)
    for k, block in enumerate(_blocks(widths, room)):
        lines += [""] if k else []
        for row in cells:
            for part in range(max(len(row[column]) for column in block)):
                texts = [row[column][part] if part < len(row[column]) else "" for column in block]
                written = [
                    f"{text:{'<' if column in table.texts else '>'}{widths[column]}}"
                    for column, text in zip(block, texts, strict=True)
                ]
                lines.append("  ".join(written).rstrip())
    return lines + textwrap.wrap(table.footnote, room)


def _cell(table: Table, column: int, text: str, heading: bool, room: int) -> list[str]:
    """The lines of a cell."""
    if column in table.texts:
        first = min(_LABEL, max(len(row[0]) for row in [table.columns, *table.rows]))
        alone = column == 1 and 0 in table.texts and len(table.texts) == 2
        most = room - first - 2 if alone else min(_LABEL, room - _HEADING - 2)
    else:
        most = _HEADING if heading else room
    return textwrap.wrap(text, most) or [""]


def _blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns that fit beside each other, each block with the first."""
    blocks = [[0]]
    for column in range(1, len(widths)):
        if len(blocks[-1]) > 1 and sum(widths[k] + 2 for k in blocks[-1]) + widths[column] > room:
            blocks.append([0])
        blocks[-1].append(column)
    return blocks


# -- for papers -------------------------------------------------------------------------------------------------------


def latex(tables: Sequence[Table]) -> str:
    """Tables as LaTeX: a `table` with a tabular each, or a `longtable` if longer than a page."""
    long = any(len(table.rows) > _PAGE for table in tables)
    parts = [r"% needs \usepackage{booktabs}" + (r" and \usepackage{longtable}" if long else "")]
    texts = [
        cell
        for table in tables
        for row in ([table.caption, table.footnote], table.columns, *table.rows)
        for cell in row
    ]
    if strange := sorted(item for item in {*"".join(texts)} - {*_LATEX} if item > _LAST_LATIN and item.isprintable()):
        parts[0] += f"\n% needs XeLaTeX or LuaLaTeX, and a font with {' '.join(strange[:20])}"
    for table in tables:
        columns = "".join("l" if k in table.texts else "r" for k in range(len(table.columns)))
        head = _latex_row(table.columns)
        rows = [_latex_row(row) for row in table.rows]
        text = _escaped(f"{table.caption}. {table.footnote}".strip())
        caption = rf"\caption{{{text}}}\label{{tab:{_slug(table.caption)}}}"
        if len(rows) > _PAGE:
            lines = [rf"\begin{{longtable}}{{{columns}}}", rf"{caption} \\", r"\toprule", head, r"\midrule"]
            lines += [r"\endfirsthead", r"\toprule", head, r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot"]
            parts.append("\n".join([*lines, *rows, r"\end{longtable}"]))
        else:
            lines = [r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head]
            lines += [r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(map(_latex_cell, cells)) + r" \\"
    # After the end of a row, LaTeX would take these as its argument.
    return f"{{{row[0]}}}{row[1:]}" if row[0] in "[*" else row


def _latex_cell(text: str) -> str:
    if power := _POWER.fullmatch(text):
        sign, factor, exponent = power.groups()
        times = "" if factor == "1" else rf"{factor}\times "
        return f"${sign}{times}10^{{{int(exponent)}}}$"
    return _escaped(text)


def _slug(caption: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", caption.lower()).strip("-")


def _escaped(text: str) -> str:
    line = _NEGATIVE.sub("−", shown(text))
    # Two hyphens would become a dash.
    pairs = zip(line, f"{line[1:]} ", strict=False)
    return "".join("-{}" if letter == after == "-" else _LATEX.get(letter, letter) for letter, after in pairs)


def markdown(tables: Sequence[Table]) -> str:
    """Tables as Markdown for GitHub and Pandoc, with caption above and note below."""
    parts = []
    for table in tables:
        marks = ["---" if k in table.texts else "---:" for k in range(len(table.columns))]
        rows = [[_marked(cell) for cell in row] for row in (table.columns, *table.rows)]
        lines = [f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:])]
        parts.append(
            "\n".join(
                [f"**{_marked(table.caption)}**", "", *lines, *(["", _marked(table.footnote)] * bool(table.footnote))]
            )
        )
    return "\n\n".join(parts) + "\n"


def _marked(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", shown(text))


def html(table: Table) -> str:
    """A table as HTML for a notebook."""

    def row(kind: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{kind}>{escape(shown(cell))}</{kind}>' for cell in cells)}</tr>"

    rows = "".join(row("td", cells) for cells in table.rows)
    note = f"<p>{escape(table.footnote)}</p>" if table.footnote else ""
    return f"<table><caption>{escape(table.caption)}</caption>{row('th', table.columns)}{rows}</table>{note}"


# -- for programs -----------------------------------------------------------------------------------------------------


def to_json(tables: Sequence[Table]) -> str:
    """Tables as JSON: caption, note and rows of each."""
    results = [{"caption": table.caption, "note": table.footnote, "rows": _plain(table)} for table in tables]
    return json.dumps({"schema": SCHEMA, "tables": results}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(table: Table) -> list[dict[str, object]]:
    """Its rows for programs, with None for undefined values."""
    if table.plain:
        return [{name: plain(value) for name, value in row.items()} for row in table.plain]
    return [
        {name: None if cell == _NOTHING else cell for name, cell in zip(table.columns, row, strict=True)}
        for row in table.rows
    ]


def _write_csv(tables: Sequence[Table], out: Path) -> list[Path]:
    written: list[Path] = []
    for table in tables:
        name = _slug(table.caption)
        place = out if len(tables) == 1 else out.with_name(f"{out.stem}-{name}{out.suffix}")
        if place in written:
            place = out.with_name(f"{out.stem}-{name}-{len(written)}{out.suffix}")
        with place.open("w", encoding="utf-8", errors="replace", newline="") as stream:
            _csv_rows(_plain(table), table.names or table.columns, stream)
        written.append(place)
    return written


def _csv_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], stream: IO[str]) -> None:
    writer = csv.DictWriter(stream, list(rows[0]) if rows else list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
