"""The XML of the NIST lists (ECF, TLIST, KWLIST, STDLIST, KWSLIST) as a stream of elements.

Files are untrusted: a document type declaration that declares entities is refused (they are what an entity bomb is made
of), external ones are never fetched, and nothing is held but the element at hand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from xml.parsers import expat

from swsdist.errors import DataError
from swsdist.io.packed import opened

_BLOCK = 1 << 16
_DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_LETTERS = {letter: number for number, letter in enumerate("ABCDEFGH", 1)}


class Element(NamedTuple):
    """A start tag, or an end tag.

    Attributes:
        name: of the element.
        attributes: of a start tag, in their order; None marks an end tag.
        text: of an end tag, what stood between (without what elements inside held).
        line: from 1.
    """

    name: str
    attributes: dict[str, str] | None
    text: str
    line: int


def elements(path: str, storage: Mapping[str, Any] | None = None) -> Iterator[Element]:
    """Start and end tags in the order of the file.

    Raises:
        UserError: there is no such file.
        DataError: it is not well-formed XML, is in an encoding that is not known, or declares entities.
    """
    found: list[Element] = []
    texts: list[list[str]] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        texts.append([])
        found.append(Element(name, attributes, "", parser.CurrentLineNumber))

    def end(name: str) -> None:
        found.append(Element(name, None, "".join(texts.pop()), parser.CurrentLineNumber))

    def text(data: str) -> None:
        if texts:
            texts[-1].append(data)

    def declared(name: str, *_: Any) -> None:
        raise DataError(
            f"it declares an entity ({name!r})",
            where=f"{path}, line {parser.CurrentLineNumber}",
            remedy="write the text itself; lists with entities of their own are not read, they may be meant to do harm",
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = declared
    with opened(path, storage) as stream:
        while True:
            block = stream.read(_BLOCK)
            try:
                parser.Parse(block, not block)
            except expat.ExpatError as error:
                raise DataError(
                    f"it is not well-formed XML ({expat.ErrorString(error.code)}, column {error.offset + 1})",
                    where=f"{path}, line {error.lineno}",
                    remedy="correct it there, or write the list again",
                ) from error
            yield from found
            found.clear()
            if not block:
                return


class Fields:
    """The attributes of an element, each asked for by name and type; every complaint names file, line and attribute."""

    def __init__(self, path: str, element: Element) -> None:
        self._path = path
        self._name = element.name
        self._line = element.line
        self._values = element.attributes or {}

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self._path}, line {self._line}"

    def text(self, name: str) -> str:
        """An attribute that must be there.

        Raises:
            DataError: it is missing or empty.
        """
        value = self._values.get(name, "")
        if not value:
            known = ", ".join(self._values) or "none"
            raise DataError(
                f"<{self._name}> has no attribute {name!r}",
                where=self.where,
                remedy=f"add {name}=...; its attributes are: {known}",
            )
        return value

    def number(self, name: str) -> float:
        """A finite decimal number.

        Raises:
            DataError: it is missing, or something else.
        """
        text = self.text(name)
        value = float(text) if _DECIMAL.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise DataError(f"{name} is {text!r}", where=self.where, remedy=f"give {name} as a finite decimal number")
        return value

    def time(self, name: str) -> float:
        """A finite number of seconds, not negative.

        Raises:
            DataError: it is missing, negative or no number.
        """
        value = self.number(name)
        if value < 0:
            raise DataError(f"{name} is {value}", where=self.where, remedy=f"{name} is in seconds and not negative")
        return value

    def channel(self, name: str = "channel") -> int:
        """A channel (see `channel_number`)."""
        return channel_number(self.text(name), self.where)


def channel_number(text: str, where: str) -> int:
    """A channel as a number: whole and not negative, or a letter from A (1) to H (8).

    Raises:
        DataError: it is something else.
    """
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    if text.upper() in _LETTERS:
        return _LETTERS[text.upper()]
    raise DataError(f"channel is {text!r}", where=where, remedy="give a channel as 1, 2, ... (or A, B, ...)")
