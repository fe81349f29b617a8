"""The XML of the NIST lists (ECF, TLIST, KWLIST, STDLIST, KWSLIST) as a stream of elements.

Files are untrusted: a document type declaration with entities is refused (entity bombs need them), external entities
are never fetched, and only the current element is held, whose size is bounded.

Expat silently drops references to entities that an external declaration might declare (XML 1.0, section 4.1, "WFC:
Entity Declared", allows it), so the text of the tags is searched for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from xml.parsers import expat

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as codes
from swsdist.core.errors import DataError
from swsdist.io.compressed import opened, short
from swsdist.io.fields import LATEST, number
from swsdist.io.notices import Notices

_BLOCK = 1 << 16
_MOST_UNREAD = 4 << 20  # bytes of a tag, comment or declaration
_LONGEST_TEXT = 1 << 20  # characters of an element
_DEEPEST = 100  # nested elements
_LONGEST_NUMBER = 400  # characters: the greatest double takes 309 before its point
_TAG = re.compile(r"""<[^<>"']*(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*>""")
_REFERENCE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);)([^;]*)")
_LETTERS = {letter: k for k, letter in enumerate("ABCDEFGH", 1)}


class Element(NamedTuple):
    """A start tag, or an end tag.

    Attributes:
        name: of the element.
        attributes: of a start tag, in their order; None marks an end tag.
        text: of an end tag, the element's text (without that of inner elements).
        line: from 1.
        decoded: of an end tag, whether its text held references (`&amp;`, `&#49;`).
    """

    name: str
    attributes: dict[str, str] | None
    text: str
    line: int
    decoded: bool = False


def elements(path: str, storage: Mapping[str, object] | None = None) -> Iterator[Element]:
    """Start and end tags in the order of the file.

    Raises:
        UserError: there is no such file.
        DataError: it is not well-formed XML, has an unknown encoding, declares entities or uses undeclared ones, or an
            element is too large.
    """
    reader = _Reader(path)
    with opened(path, storage) as stream:
        while True:
            block = stream.read(_BLOCK)
            yield from reader.read(block)
            if not block:
                return


class _Reader:
    """Callbacks of expat, for one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._elements: list[Element] = []
        self._texts: list[list[str]] = []  # of the open elements
        self._lengths: list[int] = []
        self._decoded: list[bool] = []
        self._unread = 0  # bytes since expat's last callback
        self._has_events = False
        self._has_doctype = False
        parser = self._parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.AttlistDeclHandler = self._attribute_declared
        parser.EntityDeclHandler = self._entity_declared
        parser.SkippedEntityHandler = self._skipped

    def read(self, block: bytes) -> list[Element]:
        """The elements that end in the next block; an empty one ends the file."""
        self._elements = []
        self._has_events = False
        try:
            self._parser.Parse(block, not block)
        except expat.ExpatError as error:
            raise families.MALFORMED_XML(
                "the file is not well-formed XML ({error}, column {column})",
                "write well-formed XML there, or write the list again",
                where=f"{self._path}, line {error.lineno}",
                error=expat.ErrorString(error.code),
                column=error.offset + 1,
            ) from error
        except (LookupError, ValueError) as error:
            raise self._fault(
                families.MALFORMED_XML.saying(
                    "the encoding cannot be read ({error})", "write the list in UTF-8, and say so in its first line"
                ),
                error=short(str(error)),
            ) from error
        self._unread = 0 if self._has_events else self._unread + len(block)
        if self._unread > _MOST_UNREAD:
            raise self._fault(
                families.MALFORMED_XML.saying(
                    "no tag or comment ends within {size} MiB", "check that the file is a list"
                ),
                size=_MOST_UNREAD >> 20,
            )
        return self._elements

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._has_events = True
        if len(self._texts) == _DEEPEST:
            raise self._fault(
                families.MALFORMED_XML.saying("more than {most} nested elements", "check that the file is a list"),
                most=_DEEPEST,
            )
        if self._has_doctype:
            self._check_tag()
        self._texts.append([])
        self._lengths.append(0)
        self._decoded.append(False)
        self._elements.append(Element(name, attributes, "", self._parser.CurrentLineNumber))

    def _end(self, name: str) -> None:
        self._has_events = True
        self._lengths.pop()
        text, decoded = "".join(self._texts.pop()), self._decoded.pop()
        self._elements.append(Element(name, None, text, self._parser.CurrentLineNumber, decoded))

    def _text(self, data: str) -> None:
        # Only inside of the outermost element. Expat calls once per line, and once per reference.
        self._has_events = True
        texts = self._texts[-1]
        if data.isspace() and (not texts or texts[-1].isspace()):
            return  # else the blanks between elements would accumulate in the enclosing element
        self._lengths[-1] += len(data)
        if self._lengths[-1] > _LONGEST_TEXT:
            raise self._fault(
                families.MALFORMED_XML.saying(
                    "an element has more than {most} characters of text", "check that the file is a list"
                ),
                most=_LONGEST_TEXT,
            )
        texts.append(data)
        if len(data) == 1 and not data.isspace() and self._raw(2).lstrip(b"\0").startswith(b"&"):
            self._decoded[-1] = True

    def _doctype(self, *_: object) -> None:
        self._has_doctype = True

    def _attribute_declared(self, element: str, name: str, kind: str, default: str | None, required: bool) -> None:
        if default is not None:
            raise self._fault(
                families.MALFORMED_XML.saying(
                    "the document type declares a default for attribute {name!r}",
                    "write the attribute itself in each element",
                ),
                name=short(name),
            )

    def _entity_declared(self, name: str, *_: object) -> None:
        raise self._fault(
            families.MALFORMED_XML.saying(
                "the document type declares an entity ({name!r})",
                "write the text itself; entities are not read, since they can be an attack",
            ),
            name=short(name),
        )

    def _skipped(self, name: str, *_: object) -> None:
        raise self._fault(
            families.MALFORMED_XML.saying("entity {name!r} is not declared", "write the text itself"), name=short(name)
        )

    def _check_tag(self) -> None:
        raw = self._raw()
        # Besides UTF-16, expat reads only encodings with one byte for `<` and `&`.
        if raw.startswith((b"<\0", b"\0<")):
            text = raw.decode("utf-16-le" if raw.startswith(b"<") else "utf-16-be", "replace")
        else:
            text = raw.decode("latin-1")
        tag = _TAG.match(text)
        if tag is None:
            raise self._fault(
                families.MALFORMED_XML.saying(
                    "a tag cannot be separated from the text after it", "take out the <!DOCTYPE ...>"
                )
            )
        if reference := _REFERENCE.search(tag[0]):
            self._skipped(reference[1])

    def _raw(self, most: int | None = None) -> bytes:
        """The file's bytes from the start of the current tag or text, as far as read."""
        context: bytes | None = self._parser.GetInputContext()
        return (context or b"")[:most]

    def _fault(self, code: Code[DataError], **values: object) -> DataError:
        return code(where=f"{self._path}, line {self._parser.CurrentLineNumber}", **values)


class Fields:
    """The attributes of an element, by name and type; every error names file, line and attribute."""

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
        """A required attribute.

        Raises:
            DataError: it is missing or empty.
        """
        value = self._values.get(name, "")
        if not value:
            attributes = short(", ".join(self._values), 200) or "none"
            raise families.MALFORMED_XML(
                "<{element}> has no attribute {attribute!r}",
                "add {attribute}=...; its attributes are: {attributes}",
                where=self.where,
                element=self._name,
                attribute=name,
                attributes=attributes,
            )
        return value

    def number(self, name: str) -> float:
        """A finite decimal number.

        Raises:
            DataError: it is missing, or has another form.
        """
        return decimal(self.text(name), name, self.where)

    def time(self, name: str) -> float:
        """Seconds (see `seconds`).

        Raises:
            DataError: it is missing, or has another form.
        """
        return seconds(self.text(name), name, self.where)

    def channel(self, name: str = "channel") -> int:
        """A channel (see `channel_number`)."""
        return channel_number(self.text(name), self.where)


def decimal(text: str, name: str, where: str) -> float:
    """Parse a finite decimal number, optionally surrounded by blanks.

    Raises:
        DataError: the text has another form.
    """
    text = text.strip(" \t\r\n")
    return number(text if len(text) <= _LONGEST_NUMBER else short(text), name, where)


def seconds(text: str, name: str, where: str) -> float:
    """Parse a time or duration: a decimal number from 0 to `LATEST`.

    Raises:
        DataError: the text has another form.
    """
    value = decimal(text, name, where)
    if not 0 <= value <= LATEST:
        raise codes.BAD_TIME(where=where, name=name, text=short(text))
    return value + 0.0


def channel_number(text: str, where: str) -> int:
    """Parse a channel: a non-negative integer, or a letter from A (1) to H (8).

    Raises:
        DataError: the text has another form.
    """
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    if text.upper() in _LETTERS:
        return _LETTERS[text.upper()]
    raise families.MALFORMED_LINE(
        "channel is {text!r}", "give a channel as 1, 2, ... (or A, B, ...)", where=where, text=short(text)
    )


def note_channels(texts: Iterable[str], path: str, notices: Notices | None) -> None:
    """Note, once per file, channels not in the form of their number (`A`, `01`).

    Args:
        texts: channels as written in a file, each valid for `channel_number`.
        path: the file.
        notices: collects them; may be None.
    """
    odd = next((text for text in texts if text != str(channel_number(text, path))), None)
    if notices is not None and odd is not None:
        notices.add(codes.UNUSUAL_CHANNEL, where=f"{path}: channel {odd!r}", count=1)
