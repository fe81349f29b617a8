"""Subtitles, WebVTT and SRT: cues with times. WebVTT may also give times inside of a cue.

    WEBVTT

    00:00:01.000 --> 00:00:03.500
    hello<00:00:01.400><c> big</c> world

- Every word of a cue lasts as long as the cue, for nothing says when in it the word is spoken: a hit is the span of
  its cues, and phrases match in the order of the words. With times inside of a WebVTT cue (karaoke, YouTube's
  captions) a word lasts from the time before it to the next.
- Cues are in the order of their starts.
- In captions that roll up, the last lines of a cue are the first of the next, without a gap between the two cues: these
  lines are read once, and without times of their own last until the last of these cues ends. So are those of captions
  that mark word after word: the same lines, marked otherwise. A whole cue that comes again unchanged is the same only
  if at least half of the other cues go on so; else somebody says it again.
- Tags, and WebVTT's character references, are taken out; comments, styles and regions of WebVTT too.
- A cue that cannot be used is left out.

Sources: W3C, WebVTT, sections 4 and 6; SRT has no standard: number, `00:00:01,000 --> 00:00:03,500`, text, empty line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from swsdist.core.codes import families
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


class _Line(NamedTuple):
    """A line of a cue: its texts with start and end, without tags; all of them in one; and as written."""

    spans: list[tuple[str, float, float]]
    plain: str
    written: str


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
    lines_of_cues = [_lines(cue, web) for cue in cues]
    words: list[Word] = []
    shown: list[range] = []  # places of the words of each line; of one with times of its own none
    for cue, of_cue, same in zip(cues, lines_of_cues, _same_lines(cues, lines_of_cues), strict=True):
        shown = shown[len(shown) - same :]
        for k in chain.from_iterable(shown):
            words[k] = words[k]._replace(end=max(words[k].end, cue.end))
        for line in of_cue[same:]:
            first = len(words)
            for text, begin, until in line.spans:
                with left_out:
                    words += words_of(text, begin, until, cue.where)
            timed = any(span[1:] != (cue.start, cue.end) for span in line.spans)
            shown.append(range(first, first if timed else len(words)))
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
                raise families.MALFORMED_LINE(
                    "{line!r} begins no cue: neither it nor the next line has times",
                    (
                        "write START --> END above a cue's text (00:00:01.500 --> 00:00:02.000), and no blank "
                        "line in the text"
                    ),
                    where=f"{path}, line {block[0][0]}",
                    line=short(block[0][1]),
                )
        for at, after in pairwise([*arrows, len(block)]):
            number, line = block[at]
            where = f"{path}, line {number}"
            text = [line for _, line in block[at + 1 : after]]
            if after < len(block) and text and text[-1].strip().isdecimal():
                text.pop()  # the number of a cue before which no line is empty
            with left_out:
                if (times := _TIMES.fullmatch(line)) is None:
                    raise families.MALFORMED_LINE(
                        "{line!r} does not have a cue's times",
                        "write them as 00:00:01.500 --> 00:00:02.000, above the cue's text",
                        where=where,
                        line=short(line),
                    )
                start, end = _seconds(times.groups()[:4]), _seconds(times.groups()[4:8])
                demand_span(" ".join(text), start, end, where)
                yield _Cue(start, end, text, where)


def _same_lines(cues: list[_Cue], lines_of_cues: list[list[_Line]]) -> list[int]:
    """How many of each cue's first lines are the last ones of the cue before it; see the module."""
    same, again = [0][: len(cues)], list[bool]()
    for (old, new), (before, after) in zip(pairwise(cues), pairwise(lines_of_cues), strict=True):
        most = min(len(before), len(after)) if new.start <= old.end else 0
        plain = [line.plain for line in before], [line.plain for line in after]
        same.append(next((k for k in range(most, 0, -1) if plain[0][-k:] == plain[1][:k]), 0))
        again.append(same[-1] > 0 and [line.written for line in before] == [line.written for line in after])
    others = [count > 0 for count, repeated in zip(same[1:], again, strict=True) if not repeated]
    if not any(others) or 2 * sum(others) < len(others):
        same[1:] = [0 if repeated else count for count, repeated in zip(same[1:], again, strict=True)]
    return same


def _is_header(k: int, block: list[tuple[int, str]]) -> bool:
    """Whether a block is what is left of WebVTT's first: lines directly below its name."""
    return k == 0 and block[0][0] == 2


def _lines(cue: _Cue, web: bool) -> list[_Line]:
    """The lines of a cue that hold text; their texts are those between times inside of the cue."""
    pieces, times = ["\n".join(cue.text)], [cue.start]
    if web:
        stamps = list(_STAMP.finditer(pieces[0]))
        borders = [0, *(border for stamp in stamps for border in stamp.span()), len(pieces[0])]
        pieces = [pieces[0][a:b] for a, b in zip(borders[::2], borders[1::2], strict=True)]
        times += [_seconds(stamp.groups()) for stamp in stamps]
    spans: list[list[tuple[str, float, float]]] = [[]]
    for piece, first, last in zip(pieces, times, [*times[1:], cue.end], strict=True):
        for k, part in enumerate(piece.split("\n")):
            if k:
                spans.append([])
            bare = _TAG.sub("", part)
            spans[-1].append((html.unescape(bare) if web else bare, first, last))
    plain = [" ".join(" ".join(part for part, _, _ in line).split()) for line in spans]
    written = [" ".join(line.split()) for line in cue.text or [""]]
    return [_Line(*line) for line in zip(spans, plain, written, strict=True) if line[1]]


def _seconds(clock: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, thousandths = (int(part or 0) for part in clock)
    return (hours * 3600 + minutes * 60 + seconds) + thousandths / 1000
