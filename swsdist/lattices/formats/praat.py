"""Praat: the intervals of a TextGrid, tier by tier; text, short or binary.

- An interval of several words: each lasts as long as the interval (`swsdist.lattices.words`). An empty one holds no
  word.
- Without chosen tiers all of intervals. Points of a chosen tier last no time.
- Text is UTF-8, or UTF-16 with its mark, as Praat writes it.

pympi reads the file. It misreads numbers with a sign or an exponent (1.5e-17 as 17), which Praat writes, so they are
written out for it first.

Source: Praat manual, TextGrid file formats.
"""

from __future__ import annotations

import io
import re

from pympi import TextGrid

from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.io.compressed import demand_utf8, read_all, short
from swsdist.io.fields import decimal, number
from swsdist.lattices.lattice import Lattices, Origin, Word
from swsdist.lattices.words import Annotation, Annotations, key_of, transcribed, words_of_tiers

_BINARY = b"ooBinaryFile"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_TOKEN = re.compile(r'"(?:[^"]|"")*"|[^"\s]+')
_ODD_NUMBER = re.compile(r"-[0-9.]+|[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}")
#: Of 0 that arithmetic has moved, s.
_ROUNDING = 1e-6


def read(origin: Origin) -> Lattices:
    """The transcript of a TextGrid; see the module.

    Raises:
        UserError: there is no such file.
    """
    return transcribed(key_of(origin.path), lambda: words(origin))


def words(origin: Origin) -> list[Word]:
    """The words of the tiers.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read, or has no tier of a chosen name.
    """
    return words_of_tiers([tier.tier() for tier in annotated(origin)], origin.tiers, origin.path)


def detect(name: str, head: bytes) -> bool:
    """Whether it begins as a TextGrid."""
    text = head.decode("utf-16" if head.startswith(_UTF16) else "utf-8-sig", "replace")
    return head.startswith(_BINARY + b"\x08TextGrid") or (
        text.startswith('File type = "ooTextFile') and '"TextGrid"' in text[:200]
    )


def annotated(origin: Origin) -> list[Annotations]:
    """The annotations as written, tier by tier.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read.
    """
    path = origin.path
    content = read_all(path, storage=origin.storage)
    grid = TextGrid(xmax=0)
    if not content.startswith(_BINARY):
        content = _TOKEN.sub(lambda token: _written_out(token[0], path), _text(content, path)).encode()
    try:
        grid.from_file(io.BytesIO(content), "utf-8")
    except Exception as error:
        where = f"{path}, tier {len(grid.tiers)}, interval {len(grid.tiers[-1].intervals) + 1}" if grid.tiers else path
        raise _unreadable(where, error) from error
    tiers = []
    for k, tier in enumerate(grid.tiers, 1):
        rows = [
            Annotation(start, end, text, f"{path}, tier {k}, interval {n}")
            for n, (start, *_, end, text) in enumerate(((i[0], *i) for i in tier.intervals), 1)
        ]
        tiers.append(Annotations(tier.name, tier.tier_type == "IntervalTier", rows))
    return tiers


def _text(content: bytes, path: str) -> str:
    if content.startswith(_UTF16):
        try:
            text = content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise _unreadable(path, error) from error
    else:
        demand_utf8(content, path)
        text = content.decode("utf-8-sig")
    if text.count('"') % 2:  # pympi would look for the missing one for hours
        raise _unreadable(path, ValueError("a text has no closing quotation mark"))
    return text


def _written_out(token: str, path: str) -> str:
    """A number without sign and exponent; another token unchanged."""
    if not _ODD_NUMBER.fullmatch(token):
        return token
    value = number(token, "time", path)
    if value < -_ROUNDING:
        raise io_codes.BAD_TIME(where=path, name="time", text=token)
    return decimal(max(value, 0.0))


def _unreadable(where: str, error: Exception) -> DataError:
    return codes.UNREADABLE_ANNOTATIONS(where=where, program="Praat", error=short(repr(error)))
