"""Term lists of the NIST programs: TLIST (`termlist`, STDEval 0.7) and KWLIST (`kwlist`, KWSEval), recognised by
content.

Both map ids to the text of terms. Both may have attributes of a term (KWLIST in `kwinfo`: name and value, TLIST in
`terminfo`); they become columns, for breakdowns. The programs treat the same list differently:

- STDEval silently skips a term whose first attribute is not `termid`; here it is read, and noted.
- Neither decodes XML entities, so `a&amp;b` never matches the word `a&b`; here they are decoded, and noted.
- For a duplicate id STDEval keeps the last term, KWSEval stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import DataError
from swsdist.core.types import TERMS
from swsdist.io.compressed import short
from swsdist.io.nist.xml import Element, elements
from swsdist.io.notices import Notices


class _Dialect(NamedTuple):
    root: str
    term: str
    id: str
    text: str
    info: str


_TLIST = _Dialect("termlist", "term", "termid", "termtext", "terminfo")
_KWLIST = _Dialect("kwlist", "kw", "kwid", "kwtext", "kwinfo")


class TermList(NamedTuple):
    """A term list.

    Attributes:
        terms: table TERMS and a string column for each attribute name, rows in the order of the file.
        attributes: of the outermost element (language, version, ecf_filename, ...).
        lowercase: whether comparison of words ignores case (KWLIST: compareNormalize; TLIST: always).
    """

    terms: pa.Table
    attributes: dict[str, str]
    lowercase: bool


def read_termlist(
    path: str, storage: Mapping[str, object] | None = None, *, notices: Notices | None = None, duplicates: bool = True
) -> TermList:
    """Read a TLIST or KWLIST.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.
        notices: collects duplicate ids (None: they are an error), and terms that the programs read differently.
        duplicates: keep the last of two terms with one id (STDEval); False: refuse them (KWSEval).

    Raises:
        UserError: there is no such file.
        DataError: it is no term list, or a term lacks its id or text.
    """
    stream = elements(path, storage)
    outermost = next(stream)  # XML without an element is refused
    dialect, root = _dialect(outermost, f"{path}, line {outermost.line}"), outermost.attributes or {}
    rows: dict[str, dict[str, str]] = {}
    for row, where in _terms(stream, dialect, path, notices):
        if row["query_id"] in rows:
            if notices is None or not duplicates:
                raise families.DUPLICATE_NAME(
                    "duplicate term {term!r}", "drop or rename one", where=where, term=short(row["query_id"])
                )
            notices.add(codes.REPEATED_TERM, where=f"{where}: {short(row['query_id'])}", count=1)
            del rows[row["query_id"]]
        rows[row["query_id"]] = row
    if not rows:
        raise families.EMPTY_INPUT.of(DataError)(
            "the term list holds no term", "a term list names what was looked for", where=path
        )
    extra = dict.fromkeys(name for row in rows.values() for name in row if name not in TERMS.names)
    schema = pa.schema([*TERMS, *(pa.field(name, pa.string()) for name in extra)])
    lowercase = dialect is _TLIST or root.get("compareNormalize", "") == "lowercase"
    return TermList(pa.Table.from_pylist(list(rows.values()), schema), root, lowercase)


def _terms(
    stream: Iterator[Element], dialect: _Dialect, path: str, notices: Notices | None
) -> Iterator[tuple[dict[str, str], str]]:
    """The id, text and attributes of each term, and the place of its end."""
    row: dict[str, str] = {}
    name = ""
    for element in stream:
        where = f"{path}, line {element.line}"
        if element.attributes is not None and element.name == dialect.term:
            row = {"query_id": _id(element, dialect, where)}
            if notices is not None and dialect is _TLIST and next(iter(element.attributes)) != dialect.id:
                notices.add(codes.TERMID_NOT_FIRST, where=f"{where}: {short(row['query_id'])}", count=1)
        if element.attributes is not None:
            continue
        is_attribute = element.name == "value" and name not in ("", *TERMS.names)
        key = "term" if element.name == dialect.text else name if is_attribute else ""
        if key in row:
            what = f"value of {short(name)}" if is_attribute else f"<{element.name}>"
            raise families.DUPLICATE_NAME(
                "term {term!r} has a second {what}",
                "keep one, or make it another term",
                where=where,
                term=short(row["query_id"]),
                what=what,
            )
        if key:
            row[key] = element.text.strip() if is_attribute else " ".join(element.text.split())
        if key == "term" and notices is not None and element.decoded:
            notices.add(codes.TERM_WITH_ENTITIES, where=f"{where}: {short(row['term'])}", count=1)
        if element.name == "name":
            name = element.text.strip()
        if element.name == dialect.term:
            if not row.get("term"):
                raise families.MALFORMED_XML(
                    "term {term!r} has no text",
                    "give <{element}>",
                    where=where,
                    term=short(row["query_id"]),
                    element=dialect.text,
                )
            yield row, where


def write_termlist(
    terms: pa.Table,
    out: Path,
    dialect: Literal["tlist", "kwlist"] = "tlist",
    *,
    ecf: str = "ecf.xml",
    language: str = "unknown",
) -> None:
    """Write a TLIST or KWLIST.

    Args:
        terms: table TERMS; further columns become attributes of the terms.
        out: local file to write.
        dialect: of the list.
        ecf: name of the corresponding ECF.
        language: of the terms.
    """
    names = _TLIST if dialect == "tlist" else _KWLIST
    head = {"ecf_filename": ecf, "language": language, "version": "1"}
    if names is _KWLIST:
        head |= {"encoding": "UTF-8", "compareNormalize": "lowercase"}
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write(f"<{names.root}{''.join(f' {key}={quoteattr(value)}' for key, value in head.items())}>\n")
        for row in terms.to_pylist():
            query_id, term = row.pop("query_id"), row.pop("term")
            info = "".join(
                f"<attr><name>{escape(key)}</name><value>{escape(value)}</value></attr>"
                for key, value in row.items()
                if value is not None
            )
            body = f"<{names.info}>{info}</{names.info}>" if info else ""
            file.write(f"<{names.term} {names.id}={quoteattr(query_id)}>")
            file.write(f"<{names.text}>{escape(term)}</{names.text}>{body}</{names.term}>\n")
        file.write(f"</{names.root}>\n")


def _dialect(element: Element, where: str) -> _Dialect:
    for dialect in (_TLIST, _KWLIST):
        if element.name == dialect.root:
            return dialect
    raise codes.WRONG_ROOT_ELEMENT(
        where=where, element=short(element.name), expected="a TLIST (<termlist>) or KWLIST (<kwlist>)"
    )


def _id(element: Element, dialect: _Dialect, where: str) -> str:
    value = (element.attributes or {}).get(dialect.id, "")
    if not value:
        raise families.MALFORMED_XML(
            "<{element}> has no {attribute}",
            "give {attribute}=...",
            where=where,
            element=dialect.term,
            attribute=dialect.id,
        )
    return value
