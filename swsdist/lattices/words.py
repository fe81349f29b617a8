"""Words of transcripts, for all formats: checks, names of recordings, tiers, and spelling.

- Text is kept as written, without surrounding blanks. A text with blanks inside is several words, one of a script
  without blanks is its characters: each lasts as long as the text does, in their order, because their own times are
  unknown. Blanks alone are no word.
- Words come in the order of the file. They may overlap, and may last no time.
- A word without confidence is certain.
- A word, cue or annotation that cannot be used is left out (`LeftOut`), and the rest is read. A transcript is broken
  where nothing is left, or its file's structure cannot be trusted.

Spelling: a recogniser and a person may write one word differently, so both are folded before comparison. Apostrophes at
the ends are removed with the punctuation; `exact` keeps them, for orthographies in which they are letters.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.core.text import kept
from swsdist.io.compressed import short
from swsdist.io.fields import LATEST
from swsdist.lattices.lattice import BREAK, Broken, Lattices, LeftOut, Word, transcript

#: `folded`: without case and punctuation at both ends; `exact`: as they are, for phones.
Spelling = Literal["folded", "exact"]

#: What casefolding leaves of the Turkish capital; the apostrophe that typographers write; and marks that nobody sees.
_ALIKE = {"i\u0307": "i", "\u2019": "'"} | dict.fromkeys(
    map(chr, (0xAD, 0x61C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF)), ""
)
_UNLIKE = re.compile("|".join(_ALIKE))
#: Signs that end a name, as in C++ and C#.
_OF_NAMES = "+#"


@lru_cache(1 << 17)  # words of lattices repeat
def spelled(text: str, spelling: Spelling, keep: str = "") -> str:
    """A word as it is compared; empty if nothing is left, as of a dash.

    Args:
        text: the word, without blanks.
        spelling: how it is compared.
        keep: punctuation that stays at its ends.
    """
    if spelling == "exact":
        return text
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFC", bare(_UNLIKE.sub(lambda match: _ALIKE[match[0]], text), keep))


def unmarked(word: str) -> str:
    """A folded word without accents, tone marks and other marks over and under letters, which are often not typed."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def bare(text: str, keep: str = "") -> str:
    """A word without punctuation at its ends, but for `keep` and signs that end a name; empty if nothing is left."""
    first, last = 0, len(text)
    while first < last and _is_punctuation(text[first], keep):
        first += 1
    while first < last and _is_punctuation(text[last - 1], keep):
        if text[last - 1] in _OF_NAMES and text[first:last].rstrip(_OF_NAMES)[-1:].isalnum():
            break
        last -= 1
    return text[first:last]


def _is_punctuation(character: str, keep: str) -> bool:
    return character not in keep and unicodedata.category(character)[0] in "PSZ"


#: Scripts that are written without blanks: Thai, Lao, Burmese, Khmer; kana; Han. A mark belongs to the character before it.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_IN_SCRIPT, _PIECES = re.compile(f"[{_UNSPACED}]"), re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")


def pieces(word: str) -> list[str]:
    """The characters of a word in a script without blanks, of which programs make different words; others are one piece."""
    result: list[str] = []
    for piece in _PIECES.findall(word):
        if result and unicodedata.category(piece[0])[0] == "M":
            result[-1] += piece
        else:
            result.append(piece)
    return result


#: Hyphens and apostrophes of a folded word.
_JOINTS = re.compile("['\u2010-]")


def parts(word: str) -> list[str]:
    """The parts of a folded word between hyphens and apostrophes: programs write it as one word, or apart."""
    if not _JOINTS.search(word):
        return [word]
    return [part for text in _JOINTS.split(word) if (part := spelled(text, "folded"))] or [word]


def written(words: Iterable[str]) -> str:
    """Words as a text, without blanks between pieces of scripts that have none, and their punctuation."""
    text = ""
    for word in words:
        kinds = {_kind(text[-1]), _kind(word[0])} if text else set()
        bare = not text or kinds in ({"script"}, {"script", "mark"})
        text += word if bare else f" {word}"
    return text


def _kind(character: str) -> str:
    if _IN_SCRIPT.match(character):
        return "script"
    wide = unicodedata.east_asian_width(character) in "WF" and unicodedata.category(character)[0] == "P"
    return "mark" if wide else ""


_PACKED = (".gz", ".xz")
#: Endings of recordings. Recognisers that add their ending to a recording's name write `talk.wav.json`.
MEDIA = frozenset(
    f".{ending}"
    for ending in (
        *("wav", "flac", "mp3", "ogg", "oga", "opus", "m4a", "aac", "sph", "aif", "aiff", "wma", "amr"),
        *("webm", "mp4", "mkv", "mov", "avi", "mpg", "mpeg"),
    )
)
#: Excess over 1 of a confidence that single precision or six printed digits explain.
_ROUNDING = 1e-5


class Annotation(NamedTuple):
    """A text of a tier as written, times in s, and its place for errors."""

    start: float
    end: float
    text: str
    where: str

    def checked(self) -> Annotation:
        """The annotation, checked.

        Raises:
            DataError: a time is no number from 0 to 1e9, or the end is before the start.
        """
        demand_span(self.text, self.start, self.end, self.where)
        return self


class Annotations(NamedTuple):
    """A tier of annotations.

    Attributes:
        name: as written; two may have the same.
        intervals: whether its annotations have times of their own that last; others are read only if named.
        rows: the annotations.
        speaker: whose speech it is of; empty: unknown.
    """

    name: str
    intervals: bool
    rows: Sequence[Annotation]
    speaker: str = ""


def chosen_of(tiers: Sequence[Annotations], chosen: Sequence[str], where: str) -> list[Annotations]:
    """The tiers that are read: the chosen, or if none are those with intervals.

    Raises:
        DataError: there is no tier of a chosen name.
    """
    names = [tier.name for tier in tiers]
    for name in chosen:
        if name not in names:
            choices = short(", ".join(map(repr, names)), 200) or "none"
            raise codes.NO_SUCH_TIER(where=where, tier=name, tiers=choices)
    return [tier for tier in tiers if (tier.name in chosen if chosen else tier.intervals)]


def key_of(path: str) -> str:
    """Name of a recording, from its path or its transcript's: `talk` of `x/talk.wav.json.gz`."""
    name = PurePosixPath(PurePosixPath(path.replace("\\", "/")).name)
    if not name.name:
        return path
    if name.suffix.lower() in _PACKED:
        name = name.with_suffix("")
    name = name if name.suffix.lower() in MEDIA else name.with_suffix("")
    return name.stem if name.suffix.lower() in MEDIA else name.name


def transcribed(
    key: str, words: Callable[[LeftOut], Sequence[Word]], channel: int = 1, left_out: LeftOut | None = None
) -> Lattices:
    """The transcript of some words; `Broken` if they cannot be read, or none of them can be used."""
    left_out = left_out or LeftOut()
    try:
        result = words(left_out)
        if left_out.errors and not result:
            raise left_out.errors[0]
        yield transcript(key, result, channel, left_out)
    except DataError as error:
        yield Broken(key, error)


def words_of(text: str, start: object, end: object, where: str, confidence: object = None) -> list[Word]:
    """The words of a text that lasts from start to end; of scripts without blanks, the characters.

    Args:
        text: none, one or more words.
        start, end: numbers, s.
        where: place for errors.
        confidence: 0 to 1; None: certain.

    Raises:
        DataError: a time is no number from 0 to 1e9, the end is before the start, the confidence is out of range, or no
            file keeps the text.
    """
    demand_kept(text, where)
    first, last = demand_span(text, start, end, where)
    sure = 1.0 if confidence is None else _number(confidence)
    if not 0 <= sure <= 1 + _ROUNDING:
        raise families.MALFORMED_LINE(
            "the confidence is {text!r}", "give a number from 0 to 1", where=where, text=short(str(confidence))
        )
    return [Word(piece, first, last, min(sure, 1.0)) for word in text.split() for piece in pieces(word)]


def demand_kept(text: str, where: str) -> None:
    """Refuse a text that no file keeps.

    Raises:
        DataError: it has a zero byte or half of a surrogate pair.
    """
    if not kept(text):
        raise families.MALFORMED_LINE(
            "the text '{text}' has a zero byte or half of a surrogate pair, which no file keeps",
            "write the file again, with whole characters",
            where=where,
            text=short(text),
        )


def demand_span(text: str, start: object, end: object, where: str) -> tuple[float, float]:
    """Start and end of a text.

    Raises:
        DataError: a time is no number from 0 to 1e9, or the end is before the start.
    """
    first, last = seconds_of(start, "start", where), seconds_of(end, "end", where)
    if last < first:
        raise codes.WORD_ENDS_BEFORE_START(where=where, text=short(text), start=first, end=last)
    return first, last


def seconds_of(value: object, name: str, where: str) -> float:
    """A time that a file gives as a number, s.

    Raises:
        DataError: it is no number from 0 to 1e9.
    """
    number = _number(value)
    if not 0 <= number <= LATEST:
        raise io_codes.BAD_TIME(where=where, name=name, text=short(str(value)))
    return number + 0.0


def words_of_tiers(tiers: Sequence[Annotations], chosen: Sequence[str], where: str) -> list[Word]:
    """The words of the chosen tiers, or of all that hold intervals: tier after tier, a `BREAK` between two.

    Raises:
        DataError: there is no tier of a chosen name.
    """
    words: list[Word] = []
    for tier in chosen_of(tiers, chosen, where):
        said = [word for row in tier.rows for word in words_of(row.text, row.start, row.end, row.where)]
        if words and said:
            words.append(Word(BREAK, words[-1].end, words[-1].end))
        words += said
    return words


def _number(value: object) -> float:
    """A number as a double; NaN of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
