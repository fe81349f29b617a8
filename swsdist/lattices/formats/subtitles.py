"""Subtitles, WebVTT and SRT: cues with times. WebVTT may also give times inside of a cue.

    WEBVTT

    00:00:01.000 --> 00:00:03.500
    hello<00:00:01.400><c> big</c> world

- Every word of a cue lasts as long as the cue, for nothing says when in it the word is spoken: a hit is the span of
  its cues, and phrases match in the order of the words. With times inside of a WebVTT cue (karaoke, YouTube's
  captions) a word lasts from the time before it to the next.
- Cues are in the order of their starts.
- In captions that roll up or mark word after word, a line that the cue before shows too, without a gap between the two
  cues, is the same line: it is read once, and without times of its own lasts until the last of these cues ends. Captions
  are such if anywhere two cues so share a line of several, or one that is marked otherwise.
- Tags, and WebVTT's character references, are taken out; comments, styles and regions of WebVTT too.
- A cue that cannot be used is left out.

Sources: W3C, WebVTT, sections 4 and 6; SRT has no standard: number, `00:00:01,000 --> 00:00:03,500`, text, empty line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby, pairwise
from typing import NamedTuple

from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import lines, short
from swsdist.lattices.lattice import Lattices, LeftOut, Origin, Word
from swsdist.lattices.words import demand_span, key_of, transcribed, words_of

_CLOCK = r"(?:([0-9]{1,4}):)?([0-5][0-9]):([0-5][0-9])[.,]([0-9]{3})"
_ARROW = "-->"
_TIMES = re.compile(rf"[ \t]*{_CLOCK}[ \t]*{_ARROW}[ \t]*{_CLOCK}([ \t].*)?")
_STAMP = re.compile(rf"<{_CLOCK}>")
_TAG = re.compile(r"</?(?:[A-Za-z][^<>]*)?>|\{\\[^{}]*\}")
_ASIDE = re.compile(r"(NOTE|STYLE|REGION)([ \t]|$)")
_WEB = "WEBVTT"
_FIRST_OF_SRT = re.compile(rf"(\ufeff)?\s*[0-9]+[ \t]*\r?\n{_TIMES.pattern}")


class _Cue(NamedTuple):
    """Times (s), lines of text, and place for errors."""

    start: float
    end: float
    text: list[str]
    where: str


class _Shown(NamedTuple):
    """A line of a cue: its words' places, and whether it has times of its own."""

    first: int
    after: int
    timed: bool


def read(origin: Origin) -> Lattices:
    """The transcript of a file of subtitles; see the module.

    Raises:
        UserError: there is no such file.
    """
    return transcribed(key_of(origin.path), partial(_words, origin))


def is_webvtt(name: str, head: bytes) -> bool:
    """Whether it begins as WebVTT must."""
    return head.removeprefix(b"\xef\xbb\xbf").startswith(_WEB.encode())


def is_srt(name: str, head: bytes) -> bool:
    """Whether it begins with a number and a cue's times; or its name ends in .srt."""
    return name.lower().endswith((".srt", ".srt.gz")) or bool(_FIRST_OF_SRT.match(head.decode("utf-8", "replace")))


def _words(origin: Origin, left_out: LeftOut) -> list[Word]:
    rows = list(lines(origin.path, origin.storage))
    web = bool(rows) and rows[0][1].startswith(_WEB)
    if web:
        rows[0] = (rows[0][0], "")
    cues = sorted(_cues(rows, web, origin.path, left_out), key=lambda cue: cue.start)
    goes_on = _goes_on(cues)
    words: list[Word] = []
    shown: dict[str, _Shown] = {}
    shown_until = 0.0
    for start, end, text, where in cues:
        now: dict[str, _Shown] = {}
        for spans in _spans(text, start, end, web):
            plain = " ".join(" ".join(text for text, _, _ in spans).split())
            if goes_on and start <= shown_until and (old := shown.get(plain)):
                if not old.timed:
                    words[old.first : old.after] = [
                        word._replace(end=max(word.end, end)) for word in words[old.first : old.after]
                    ]
                now[plain] = old
            else:
                first = len(words)
                for text_of_span, begin, until in spans:
                    with left_out:
                        words += words_of(text_of_span, begin, until, where)
                timed = any(span[1:] != (start, end) for span in spans)
                now[plain] = _Shown(first, len(words), timed)
        shown, shown_until = now, end
    return words


def _cues(rows: list[tuple[int, str]], web: bool, path: str, left_out: LeftOut) -> Iterator[_Cue]:
    # A blank alone is a line of text in WebVTT, and ends a cue of SRT.
    blocks = [list(block) for full, block in groupby(rows, lambda row: bool(row[1] if web else row[1].strip())) if full]
    for k, block in enumerate(blocks):
        arrows = [at for at, (_, line) in enumerate(block) if _ARROW in line]
        if web and not arrows and (_is_header(k, block) or _ASIDE.match(block[0][1])):
            continue
        if not arrows or (arrows[0] > 1 and not (web and _is_header(k, block))):
            with left_out:
                raise codes.CUE_WITHOUT_TIMES(where=f"{path}, line {block[0][0]}", line=short(block[0][1]))
        for at, after in pairwise([*arrows, len(block)]):
            number, line = block[at]
            where = f"{path}, line {number}"
            text = [line for _, line in block[at + 1 : after]]
            if after < len(block) and text and text[-1].strip().isdecimal():
                text.pop()  # the number of a cue before which no line is empty
            with left_out:
                if (times := _TIMES.fullmatch(line)) is None:
                    raise codes.BAD_CUE_TIMES(where=where, line=short(line))
                start, end = _seconds(times.groups()[:4]), _seconds(times.groups()[4:8])
                demand_span(" ".join(text), start, end, where)
                yield _Cue(start, end, text, where)


def _goes_on(cues: list[_Cue]) -> bool:
    """Whether captions roll up, or mark word after word."""
    for old, new in pairwise(cues):
        if new.start <= old.end:
            before, after = ({_plain(line): line for line in cue.text if _plain(line)} for cue in (old, new))
            same = before.keys() & after.keys()
            if same and (len(before) > 1 or len(after) > 1 or any(before[line] != after[line] for line in same)):
                return True
    return False


def _plain(line: str) -> str:
    """A line without tags and times."""
    return " ".join(_TAG.sub("", _STAMP.sub("", line)).split())


def _is_header(k: int, block: list[tuple[int, str]]) -> bool:
    """Whether a block is what is left of WebVTT's first: lines directly below its name."""
    return k == 0 and block[0][0] == 2


def _spans(text: list[str], start: float, end: float, web: bool) -> list[list[tuple[str, float, float]]]:
    """The lines of a cue, without tags: of each the texts between times inside of it, with start and end."""
    pieces, times = ["\n".join(text)], [start]
    if web:
        stamps = list(_STAMP.finditer(pieces[0]))
        borders = [0, *(border for stamp in stamps for border in stamp.span()), len(pieces[0])]
        pieces = [pieces[0][a:b] for a, b in zip(borders[::2], borders[1::2], strict=True)]
        times += [_seconds(stamp.groups()) for stamp in stamps]
    spans: list[list[tuple[str, float, float]]] = [[]]
    for piece, first, last in zip(pieces, times, [*times[1:], end], strict=True):
        for k, part in enumerate(piece.split("\n")):
            if k:
                spans.append([])
            plain = _TAG.sub("", part)
            spans[-1].append((html.unescape(plain) if web else plain, first, last))
    return [line for line in spans if any(part.strip() for part, _, _ in line)]


def _seconds(clock: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, thousandths = (int(part or 0) for part in clock)
    return (hours * 3600 + minutes * 60 + seconds) + thousandths / 1000
