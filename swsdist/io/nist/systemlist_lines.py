"""Fast reader of system lists in the usual layout: an element per line, attributes in one order.

Such a line, split at its double quotes, is a row of a table: names of attributes in the even columns, values in the odd
ones. pyarrow's CSV reader does that some ten times as fast as an XML parser yields elements. At any deviation (a
comment, an entity, a single quote, two elements per line, a missing attribute, an invalid number) `read_lines` gives
up, and the file is then read as XML from its start: so only one place finds and reports errors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from swsdist.io.compressed import LONGEST_LINE, opened
from swsdist.io.fields import LATEST
from swsdist.io.nist.systemlist_dialect import Dialect, RawList

_BLOCK = 4 << 20
_HEAD = re.compile(
    rb'\s*(?:<\?xml version="1\.[01]"(?: encoding="(?:UTF-8|utf-8)")?\s*\?>\s*)?<(\w+)((?: \w+="[^"<&\']*")*)>[ \r]*\n'
)
_ATTRIBUTE = re.compile(r' (\w+)="([^"<&\']*)"')
_VALUES = ("file", "channel", "tbeg", "dur", "score", "decision")
_NAME = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    "file": _NAME,
    "channel": _NAME,
    "decision": _NAME,
    "tbeg": pa.float64(),
    "dur": pa.float64(),
    "score": pa.float64(),
}


class _OtherLayout(Exception):
    """The file has another layout."""


def read_lines(path: str, storage: Mapping[str, object] | None, dialects: Sequence[Dialect]) -> RawList | None:
    """The list, or None if it has another layout, or is no list.

    Raises:
        UserError: there is no such file.
        DataError: it is packed and damaged.
    """
    with opened(path, storage) as stream:
        try:
            return _Reader(stream, dialects).read()
        except _OtherLayout:
            return None


class _Reader:
    def __init__(self, stream: BinaryIO, dialects: Sequence[Dialect]) -> None:
        self._stream = stream
        block = stream.read(_BLOCK)
        head = _HEAD.match(block)
        by_root = {dialect.root.encode(): dialect for dialect in dialects}
        if head is None or head[1] not in by_root:
            raise _OtherLayout
        self._dialect = by_root[head[1]]
        self._attributes = self._pairs(head[2])
        self._rest = block[head.end() :]
        names = "|".join(re.escape(name) for name in (self._dialect.group, self._dialect.root))
        self._tag = re.compile(rf'[ \t]*<(/?)({names})((?: \w+="[^"<&\']*")*) ?(/?)>[ \t]*\r?')
        self._lists: list[dict[str, str]] = []
        self._first: list[int] = []
        self._rows = 0
        self._state = "between"  # between lists, in a list, or at the end
        self._order: list[str] | None = None
        self._parts: list[pa.Table] = []

    @staticmethod
    def _pairs(text: bytes) -> dict[str, str]:
        try:
            pairs = _ATTRIBUTE.findall(text.decode())
        except UnicodeDecodeError:
            raise _OtherLayout from None
        if len(dict(pairs)) != len(pairs):
            raise _OtherLayout
        return dict(pairs)

    def read(self) -> RawList:
        while True:
            block = self._stream.read(_BLOCK)
            data = self._rest + block
            cut = data.rfind(b"\n") + 1 if block else len(data)
            self._rest = data[cut:]
            if len(self._rest) >= LONGEST_LINE:
                raise _OtherLayout
            self._part(data[:cut])
            if not block:
                break
        if self._state != "end" or self._rest.strip():
            raise _OtherLayout
        columns = (
            pa.concat_tables(self._parts) if self._parts else pa.table({n: pa.array([], _TYPES[n]) for n in _VALUES})
        )
        return RawList(
            self._dialect,
            self._attributes,
            self._lists,
            [*self._first, self._rows],
            [columns.column(name) for name in _VALUES],
        )

    def _part(self, data: bytes) -> None:
        """Read whole lines."""
        if not data.strip():
            return
        if b"&" in data or b"'" in data or b"<!" in data or b"<?" in data or b"\0" in data or b"]]>" in data:
            raise _OtherLayout
        tags: list[tuple[int, str]] = []

        def other(row: pa.csv.InvalidRow) -> str:
            tags.append((row.number, row.text))
            return "skip"

        if self._order is None:
            self._order = self._attribute_order(data)
        names = self._columns()
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
                pa.csv.ParseOptions(
                    delimiter='"', quote_char=False, invalid_row_handler=other, ignore_empty_lines=False
                ),
                pa.csv.ConvertOptions(
                    column_types={name: _TYPES.get(name, _NAME) for name in names},
                    null_values=[],
                    strings_can_be_null=False,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:
            if names != ["tag"]:
                raise _OtherLayout from None
            raise
        self._check_tags(table, names)
        _check_values(table)
        at = 0
        for k, (number, text) in enumerate(tags):
            rows = number - 1 - k  # rows of detections before this line; lines count from 1
            self._detections(rows - at)
            at = rows
            self._element(text)
        self._detections(table.num_rows - at)
        if table.num_rows:
            self._parts.append(table.select(_VALUES))

    def _attribute_order(self, data: bytes) -> list[str]:
        match = re.search(rf'(?m)^[ \t]*<{self._dialect.item}((?: \w+="[^"\n]*")+) ?/>[ \t]*\r?$'.encode(), data)
        order = (
            [name for name, _ in _ATTRIBUTE.findall(match[1].decode("utf-8", "replace"))] if match else list(_VALUES)
        )
        if sorted(order) != sorted(_VALUES):
            raise _OtherLayout
        return order

    def _columns(self) -> list[str]:
        assert self._order is not None
        between = [x for k, name in enumerate(self._order) for x in (f"before {k}", name)]
        return [*between, "after"]

    def _check_tags(self, table: pa.Table, names: list[str]) -> None:
        """Check that the text around the values is that of such lines."""
        assert self._order is not None
        first, *others = self._order
        around = [f"<{self._dialect.item} {first}=", *(f" {name}=" for name in others), "/>"]
        for name, required in zip(names[::2], around, strict=True):
            texts = _distinct(table, name)
            if required is around[0]:
                texts = [text.lstrip(" \t") for text in texts]
            elif required is around[-1]:
                texts = [text.strip(" \t\r") for text in texts]
            if any(text != required for text in texts):
                raise _OtherLayout

    def _detections(self, count: int) -> None:
        if count < 0 or (count and self._state != "in"):
            raise _OtherLayout
        self._rows += count

    def _element(self, text: str) -> None:
        if not text.strip():
            return
        tag = self._tag.fullmatch(text)
        if tag is None:
            raise _OtherLayout
        closing, name, pairs, empty = tag.groups()
        attributes = dict(_ATTRIBUTE.findall(pairs))
        moves = {("between", "", self._dialect.group): "in", ("in", "/", self._dialect.group): "between"}
        moves["between", "/", self._dialect.root] = "end"
        state = moves.get((self._state, closing, name))
        if state is None or (closing and (pairs or empty)) or len(attributes) != pairs.count("="):
            raise _OtherLayout
        if state == "in":
            if not attributes.get(self._dialect.query):
                raise _OtherLayout
            self._lists.append(attributes)
            self._first.append(self._rows)
            state = "between" if empty else "in"
        self._state = state


def _check_values(table: pa.Table) -> None:
    """Check that numbers are finite, and texts no tags."""
    for name in ("tbeg", "dur", "score") if table.num_rows else ():
        limits = pc.min_max(table.column(name)).as_py()
        low, high = (0.0, LATEST) if name != "score" else (-sys.float_info.max, sys.float_info.max)
        if not low <= limits["min"] <= limits["max"] <= high or pc.any(pc.is_nan(table.column(name))).as_py():
            raise _OtherLayout
    for name in ("file", "channel", "decision"):
        if any(not text or "<" in text for text in _distinct(table, name)):
            raise _OtherLayout
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in _distinct(table, "channel")):
        raise _OtherLayout


def _distinct(table: pa.Table, name: str) -> list[str]:
    """The texts of a column, each once."""
    texts: list[str] = table.column(name).combine_chunks().dictionary.to_pylist()
    return texts
