"""Subtitles, WebVTT and SRT: cues with times. WebVTT may also give times inside of a cue.

    WEBVTT

    00:00:01.000 --> 00:00:03.500
    hello<00:00:01.400><c> big</c> world

- Every word of a cue lasts as long as the cue, for nothing says when in it the word is spoken: a hit is the span of
  its cues, and phrases match in the order of the words. With times inside of a WebVTT cue (karaoke, YouTube's
  captions) a word lasts from the time before it to the next.
- A line that the cue before shows too, without a gap between the two cues, is the same line, as in captions that roll
  up or mark word after word: it is read once, and without times of its own lasts until the last of these cues ends.
- Tags, and WebVTT's character references, are taken out; comments, styles and regions of WebVTT too.

Sources: W3C, WebVTT, sections 4 and 6; SRT has no standard: number, `00:00:01,000 --> 00:00:03,500`, text, empty line.
"""

from __future__ import annotations

import html
import re
from itertools import groupby
from typing import NamedTuple

from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import lines, short
from swsdist.lattices.lattice import Lattices, Origin, Word
from swsdist.lattices.words import key_of, transcribed, words_of

_CLOCK = r"(?:([0-9]{1,4}):)?([0-5][0-9]):([0-5][0-9])[.,]([0-9]{3})"
_ARROW = "-->"
_TIMES = re.compile(rf"[ \t]*{_CLOCK}[ \t]*{_ARROW}[ \t]*{_CLOCK}([ \t].*)?")
_STAMP = re.compile(rf"<{_CLOCK}>")
_TAG = re.compile(r"</?(?:[A-Za-z][^<>]*)?>|\{\\[^{}]*\}")
_ASIDE = re.compile(r"(NOTE|STYLE|REGION)([ \t]|$)")
_WEB = "WEBVTT"
_FIRST_OF_SRT = re.compile(rf"(\ufeff)?\s*[0-9]+[ \t]*\r?\n{_TIMES.pattern}")


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
    return transcribed(key_of(origin.path), lambda: _words(origin))


def is_webvtt(name: str, head: bytes) -> bool:
    """Whether it begins as WebVTT must."""
    return head.removeprefix(b"\xef\xbb\xbf").startswith(_WEB.encode())


def is_srt(name: str, head: bytes) -> bool:
    """Whether it begins with a number and a cue's times; or its name ends in .srt."""
    return name.lower().endswith((".srt", ".srt.gz")) or bool(_FIRST_OF_SRT.match(head.decode("utf-8", "replace")))


def _words(origin: Origin) -> list[Word]:
    rows = list(lines(origin.path, origin.storage))
    web = bool(rows) and rows[0][1].startswith(_WEB)
    if web:
        rows[0] = (rows[0][0], "")
    # A blank alone is a line of text in WebVTT, and ends a cue of SRT.
    blocks = [list(block) for full, block in groupby(rows, lambda row: bool(row[1] if web else row[1].strip())) if full]
    words: list[Word] = []
    shown: dict[str, _Shown] = {}
    shown_until = 0.0
    for k, block in enumerate(blocks):
        if web and not any(_ARROW in line for _, line in block) and (_is_header(k, block) or _ASIDE.match(block[0][1])):
            continue
        at = next((i for i, (_, line) in enumerate(block[:2]) if _ARROW in line), None)
        if at is None:
            raise codes.CUE_WITHOUT_TIMES(where=f"{origin.path}, line {block[0][0]}", line=short(block[0][1]))
        number, line = block[at]
        where = f"{origin.path}, line {number}"
        times = _TIMES.fullmatch(line)
        wrong = next((row for row in block[at + 1 :] if _ARROW in row[1]), None) if times else block[at]
        if times is None or wrong:
            number, line = wrong or block[at]
            raise codes.BAD_CUE_TIMES(where=f"{origin.path}, line {number}", line=short(line))
        start, end = _seconds(times.groups()[:4]), _seconds(times.groups()[4:8])
        goes_on = start <= shown_until
        now: dict[str, _Shown] = {}
        for spans in _spans([row[1] for row in block[at + 1 :]], start, end, web):
            plain = " ".join(" ".join(text for text, _, _ in spans).split())
            if goes_on and (old := shown.get(plain)):
                if not old.timed:
                    words[old.first : old.after] = [
                        word._replace(end=max(word.end, end)) for word in words[old.first : old.after]
                    ]
                now[plain] = old
            else:
                first = len(words)
                for text, begin, until in spans:
                    words += words_of(text, begin, until, where)
                timed = any(span[1:] != (start, end) for span in spans)
                now[plain] = _Shown(first, len(words), timed)
        shown, shown_until = now, end
    return words


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
