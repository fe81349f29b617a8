"""Split lines of text at blanks and tabs, and parse plain ASCII decimals in them.

Python's `split`, `float` and `int` accept more than the formats allow (every Unicode blank and digit, `1_000`, `nan`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING

from swsdist.core.codes import families
from swsdist.core.codes import io as codes

if TYPE_CHECKING:
    import pyarrow as pa

#: Seconds; 30 years. Later times are mistakes, and would lose precision.
LATEST = 1e9
#: Rows per batch.
ROWS = 1 << 16

_FIELD = re.compile(r"[^ \t]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[0-9]{1,9}")
#: Characters that would end a field or line in a written file; a leading byte order mark would be lost.
_BREAKS = re.compile(r"[ \t\r\n\x00]|^\ufeff")


def split(line: str) -> list[str]:
    """The fields of a line."""
    return _FIELD.findall(line)


def number(text: str, name: str, where: str) -> float:
    """Parse a finite decimal number.

    Raises:
        DataError: the text has another form.
    """
    value = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise families.MALFORMED_LINE(
            "{name} is {text!r}", "give the {name} as a finite decimal number", where=where, name=name, text=text
        )
    return value


def time(text: str, name: str, where: str) -> float:
    """Parse a number of seconds from 0 to `LATEST`.

    Raises:
        DataError: the text has another form.
    """
    value = number(text, name, where)
    if not 0 <= value <= LATEST:
        raise codes.BAD_TIME(where=where, name=name, text=text)
    return value + 0.0


def integer(text: str, name: str, where: str) -> int:
    """Parse a non-negative integer of at most 9 digits.

    Raises:
        DataError: the text has another form.
    """
    if not _INTEGER.fullmatch(text):
        raise families.MALFORMED_LINE(
            "{name} is {text!r}", "give the {name} as a whole number from 0", where=where, name=name, text=text
        )
    return int(text)


def fits(text: str) -> bool:
    """Whether a text can be written as one field."""
    return bool(text) and not _BREAKS.search(text)


def decimal(value: float) -> str:
    """The shortest decimal that reads back as the same double, never with an exponent."""
    text = repr(float(value))
    return format(Decimal(text), "f") if "e" in text else text


def decimals(values: pa.Array) -> pa.Array:
    """`decimal` of finite numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.cast(pa.string())
    if pc.any(whole := pc.less(pc.find_substring(texts, "."), 0)).as_py():
        texts = pc.if_else(whole, pc.binary_join_element_wise(texts, "0", "."), texts)
    if pc.any(powers := pc.greater(pc.find_substring(texts, "e"), 0)).as_py():
        plain = map(decimal, values.filter(powers).to_pylist())
        texts = pc.replace_with_mask(texts, powers, pa.array(plain, pa.string()))
    return texts


def batches(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Stream rows in batches of `ROWS`."""
    import pyarrow as pa

    left = iter(rows)
    while some := list(islice(left, ROWS)):
        columns = [pa.array(column, field.type) for column, field in zip(zip(*some, strict=True), schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
