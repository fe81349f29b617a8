"""Praat: the intervals of a TextGrid, tier by tier; text, short or binary.

- An interval of several words: each lasts as long as the interval (`swsdist.lattices.words`). An empty one holds no
  word.
- Without chosen tiers all of intervals. Points of a chosen tier last no time.
- Text is UTF-8, or UTF-16 with its mark, as Praat writes it.

Of a text file, numbers, texts in quotation marks and flags (`<exists>`) count, in their order; the words between them
(`xmin =`, `intervals [1]:`) say nothing, and from `!` to the end of its line there is a comment. An interval without two times
is left out, and read on after its text. Tiers and items are those that are there: a number of them that differs (`size =`) is
named. pympi reads the binary form.

Source: Praat manual, TextGrid file formats.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from pympi import TextGrid

from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.io.compressed import demand_utf8, read_all, short
from swsdist.io.fields import LATEST
from swsdist.lattices.lattice import Lattices, LeftOut, Origin, Word
from swsdist.lattices.words import Annotation, Annotations, key_of, transcribed, words_of_tiers

_BINARY = b"ooBinaryFile"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_TOKEN = re.compile(
    r'"(?P<text>(?:[^"]|"")*)"|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)(?![^\s"])'
    r"|(?P<flag><[a-z]+>)|![^\n]*|[^\s\"]+|\""
)
#: Tiers of several speakers, as the Montreal Forced Aligner calls them.
_OF_SPEAKER = re.compile(r"\s*(.*\S)\s+-\s+(?:words|phones)\s*")
#: Of 0 that arithmetic has moved, s.
_ROUNDING = 1e-6
#: Times of an item of each class of tiers.
_TIMES = {"IntervalTier": 2, "TextTier": 1}


class _Token(NamedTuple):
    """A number, a text or a flag, and its line."""

    value: float | str
    line: int


def read(origin: Origin) -> Lattices:
    """The transcript of a TextGrid; see the module.

    Raises:
        UserError: there is no such file.
    """
    return transcribed(key_of(origin.path), partial(words, origin))


def words(origin: Origin, left_out: LeftOut) -> list[Word]:
    """The words of the tiers.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read, or has no tier of a chosen name.
    """
    return words_of_tiers(annotated(origin, left_out), origin.tiers, origin.path)


def detect(name: str, head: bytes) -> bool:
    """Whether it begins as a TextGrid."""
    if head.startswith(_BINARY):
        return head[len(_BINARY) :].startswith(b"\x08TextGrid")
    text = head.decode("utf-16" if head.startswith(_UTF16) else "utf-8-sig", "replace")
    texts = [token["text"] for token in _TOKEN.finditer(text[:1000]) if token["text"] is not None]
    return texts[:2] in (["ooTextFile", "TextGrid"], ["ooTextFile short", "TextGrid"])


def annotated(origin: Origin, left_out: LeftOut) -> list[Annotations]:
    """The annotations as written, tier by tier.

    Raises:
        UserError: there is no such file.
        DataError: it cannot be read.
    """
    content = read_all(origin.path, storage=origin.storage)
    try:
        if content.startswith(_BINARY):
            tiers = _binary(content, origin.path, left_out)
        else:
            tiers = list(_tiers(_Tokens(_text(content, origin.path)), origin.path, left_out))
        named = [_OF_SPEAKER.fullmatch(tier.name) for tier in tiers]
        return [tier._replace(speaker=name[1]) if name else tier for tier, name in zip(tiers, named, strict=True)]
    except _Unexpected as error:
        raise _unreadable(f"{origin.path}, line {error.line}" if error.line else origin.path, error) from None


class _Unexpected(Exception):
    """Something else than expected; `line` 0: the file ends."""

    def __init__(self, expected: str, token: _Token | None) -> None:
        self.line = token.line if token else 0
        super().__init__(f"{short(repr(token.value))} instead of {expected}" if token else f"{expected} is missing")


class _Tokens:
    """Tokens, of which the next two can be looked at; `line` of the last one taken."""

    def __init__(self, text: str) -> None:
        self._left = list(_tokens(text))[::-1]
        self.line = 0

    def __iter__(self) -> Iterator[_Token]:
        return self

    def __next__(self) -> _Token:
        if not self._left:
            raise StopIteration
        token = self._left.pop()
        self.line = token.line
        return token

    @property
    def at_tier(self) -> bool:
        """Whether a tier begins here: with its class, and its name."""
        values = [token.value for token in self._left[:-3:-1]]
        return len(values) > 1 and values[0] in _TIMES and isinstance(values[1], str)

    @property
    def at_end(self) -> bool:
        """Whether none is left."""
        return not self._left


def _tokens(text: str) -> Iterator[_Token]:
    """What counts of a text."""
    line, at = 1, 0
    for token in _TOKEN.finditer(text):
        line, at = line + text.count("\n", at, token.start()), token.start()
        if token["text"] is not None:
            yield _Token(token["text"].replace('""', '"'), line)
        elif token["number"]:
            value = float(token["number"])
            yield _Token(0.0 if -_ROUNDING < value < 0 else value, line)
        elif token["flag"]:
            yield _Token(token["flag"], line)
        elif token[0] == '"':
            raise _Unexpected("a text with a closing quotation mark", _Token(token[0], line))


def _tiers(tokens: _Tokens, path: str, left_out: LeftOut) -> Iterator[Annotations]:
    """The tiers of a text."""
    for expected in ("the file type", "the object class"):
        _text_of(tokens, expected)
    for expected in ("the start", "the end"):
        _number_of(tokens, expected)
    _text_of(tokens, "<exists>")
    k, tiers = 0, _number_of(tokens, "the number of tiers")
    place = f"{path}, line {tokens.line}"
    while not tokens.at_end:
        k += 1
        form = _text_of(tokens, "the class of a tier")
        if form not in _TIMES:
            raise _Unexpected("IntervalTier or TextTier", _Token(form, 0))
        name = _text_of(tokens, "the name of a tier")
        for expected in ("the start of a tier", "the end of a tier"):
            _number_of(tokens, expected)
        rows: list[Annotation] = []
        n, count = 0, _number_of(tokens, "the number of items of a tier")
        of_tier = f"{path}, line {tokens.line}, tier {k}"
        while not (tokens.at_end or tokens.at_tier):
            times: list[_Token] = []
            token = None
            while not tokens.at_tier and (token := next(tokens, None)) is not None and isinstance(token.value, float):
                times.append(token)
                token = None
            n += max(1, -(-len(times) // _TIMES[form]))  # more times than one has: those before have no text
            where = f"{path}, line {(token or times[-1]).line}, tier {k}, item {n}"
            if token is None or len(times) > _TIMES[form]:
                with left_out:
                    raise codes.INCOMPLETE_ITEM(where=where, what="text")
            if token is not None:
                with left_out:
                    if len(times) < _TIMES[form]:
                        raise codes.INCOMPLETE_ITEM(where=where, what="time")
                    start, end = (float(time.value) for time in (times[-_TIMES[form]], times[-1]))
                    rows.append(Annotation(start, end, str(token.value), where).checked())
        if n != count:
            with left_out:
                raise codes.OTHER_COUNT(where=of_tier, what="items", count=count, found=n)
        yield Annotations(name, form == "IntervalTier", rows)
    if k != tiers:
        with left_out:
            raise codes.OTHER_COUNT(where=place, what="tiers", count=tiers, found=k)


def _text_of(tokens: Iterator[_Token], expected: str) -> str:
    token = next(tokens, None)
    if token is None or not isinstance(token.value, str):
        raise _Unexpected(expected, token)
    return token.value


def _number_of(tokens: Iterator[_Token], expected: str) -> int:
    """The next, which must be a number, as a whole one."""
    token = next(tokens, None)
    if token is None or not isinstance(token.value, float):
        raise _Unexpected(expected, token)
    return int(min(token.value, LATEST))


def _binary(content: bytes, path: str, left_out: LeftOut) -> list[Annotations]:
    """The tiers of the binary form."""
    grid = TextGrid(xmax=0)
    try:
        grid.from_file(io.BytesIO(content), "utf-8")
    except Exception as error:
        raise _unreadable(path, error) from error
    tiers = []
    for k, tier in enumerate(grid.tiers, 1):
        rows: list[Annotation] = []
        for n, (start, *_, end, text) in enumerate(((i[0], *i) for i in tier.intervals), 1):
            with left_out:
                rows.append(Annotation(start, end, text, f"{path}, tier {k}, item {n}").checked())
        tiers.append(Annotations(tier.name, tier.tier_type == "IntervalTier", rows))
    return tiers


def _text(content: bytes, path: str) -> str:
    if content.startswith(_UTF16):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise _unreadable(path, error) from error
    demand_utf8(content, path)
    return content.decode("utf-8-sig")


def _unreadable(where: str, error: Exception) -> DataError:
    return codes.UNREADABLE_ANNOTATIONS(where=where, program="Praat", error=short(str(error) or repr(error)))
