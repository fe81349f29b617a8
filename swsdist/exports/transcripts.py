"""Transcripts of recordings for people and other programs: subtitles, annotations, CTM, JSON and text.

- **Cues.** Subtitles and the segments of JSON are cues. One ends before a pause of 0.7 s, after a word with the mark of a
  sentence's end, before a word that begins before the last one ends (somebody else speaks), and where it would have more
  than 84 characters or last more than 7 s. Words of the same start and end stay together. A cue of more than 42 characters
  has two lines. Wide characters count twice. Lines of a text are as long as sentences.
- **Times.** Whole ms. A cue, or an annotation of ELAN or Praat, lasts 1 ms at least; a cue ends 1 ms before one that would
  follow it at once, else readers take equal lines for captions that roll up. WebVTT has the times of words in its cues.
- **Channels.** Two channels are two speakers: tiers of one file in ELAN and Praat, `talk.srt` and `talk.2.srt` elsewhere.
- **Confidences** are in CTM and JSON.

What is written is read back by `swsdist.lattices.formats`, but for angle brackets and braces in SRT, where they would be tags,
and punctuation at the ends of words in CTM.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import NamedTuple
from unicodedata import east_asian_width

from swsdist.exports.lists import file_of
from swsdist.exports.tiers import FORBIDDEN, WRITERS, Annotated, Key, Row
from swsdist.io.nist.ctm import ctm_line
from swsdist.lattices.lattice import Word
from swsdist.lattices.words import bare, pieces, written

#: Endings of the files of each format.
FORMATS = {
    "srt": "srt",
    "vtt": "vtt",
    "textgrid": "TextGrid",
    "eaf": "eaf",
    "ctm": "ctm",
    "json": "json",
    "txt": "txt",
}
#: Name of the CTM of all recordings.
CTM = "words.ctm"

_PAUSE, _LONGEST = 0.7, 7.0
_LINE = 42
_SENTENCE_END = re.compile(r"[.?!…。？！]['\"’”»)\]]*$")
#: What a file cannot hold as text: Praat and XML, and in a CTM a byte order mark.
_UNWRITABLE = re.compile(rf"{FORBIDDEN.pattern}|\ufeff")
_WITHOUT_TAGS = str.maketrans("<>{}", "‹›()")


class Transcript(NamedTuple):
    """Words of a recording.

    Attributes:
        name: of the recording.
        path: of its file, local or a url; empty if unknown.
        seconds: its duration.
        channels: words by channel, by their starts.
        language: of its words; None: unknown, or several.
    """

    name: str
    path: str
    seconds: float
    channels: Mapping[int, Sequence[Word]]
    language: str | None = None


class _Cue(NamedTuple):
    """Start and end, ms; words, and the first of the second line, 0: there is none."""

    start: int
    end: int
    words: list[Word]
    second: int

    @property
    def text(self) -> str:
        return _text(self.words)


def write(transcript: Transcript, formats: Sequence[str], folder: Path, taken: set[str]) -> list[str]:
    """Write the files of a recording, and add its lines to the CTM of all.

    Args:
        transcript: of the recording.
        formats: of `FORMATS`.
        folder: to write to.
        taken: names of files without endings that other recordings have; those of this one are added.

    Returns:
        names of the files, without the CTM.

    Raises:
        UserError: the recording's name is too long for a file.
    """
    channels = {channel: _clean(words) for channel, words in transcript.channels.items()}
    stems: dict[int, str] = {}
    for channel in channels:
        stem = transcript.name if channel == 1 else f"{transcript.name}.{channel}"
        while stem in taken:
            stem += f".{channel}"
        taken.add(stem)
        stems[channel] = stem
    names: list[str] = []

    def place(stem: str, form: str) -> Path:
        names.append(file_of(stem, FORMATS[form], "transcripts"))
        path = folder / names[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    for form in formats:
        if form == "ctm":
            with (folder / CTM).open("a", encoding="utf-8", newline="\n") as file:
                file.writelines(_ctm_lines(transcript.name, channels))
        elif form in WRITERS:
            write_file, _ = WRITERS[form]
            write_file(_annotated(transcript, channels, place(next(iter(stems.values())), form)))
        else:
            for channel, words in channels.items():
                text = _WRITERS[form](list(_cues(words)), transcript.language)
                place(stems[channel], form).write_text(text, encoding="utf-8", newline="\n")
    return names


def _clean(words: Sequence[Word]) -> list[Word]:
    """Words as they are read back: without blanks, in pieces, and without what no file can hold."""
    parts = ((word, _UNWRITABLE.sub(" ", word.text).split()) for word in words)
    return [word._replace(text=piece) for word, texts in parts for text in texts for piece in pieces(text)]


def _cues(words: Sequence[Word]) -> Iterator[_Cue]:
    """The cues of some words; see the module."""
    cues: list[list[Word]] = []
    for _, group in groupby(words, key=lambda word: word[1:3]):
        unit = list(group)
        if not cues or _ends(cues[-1], unit):
            cues.append([])
        cues[-1] += unit
    starts = [_ms(cue[0].start) for cue in cues]
    for cue, start, following in zip(cues, starts, [*starts[1:], -1], strict=False):
        end = max(_ms(cue[-1].end), start + 1)
        sums = [*accumulate((_width(word.text) + 1 for word in cue), initial=0)]
        breaks = range(len(cue)) if _width(_text(cue)) > _LINE else range(1)
        second = min(breaks, key=lambda k: max(sums[k], sums[-1] - sums[k]))
        yield _Cue(start, end - (end == following > _ms(cue[-1].start) + 1), cue, second)


def _ends(cue: Sequence[Word], unit: Sequence[Word]) -> bool:
    """Whether a cue ends before a unit of words."""
    return _is_said(cue, unit) or _width(_text([*cue, *unit])) > 2 * _LINE or unit[0].end - cue[0].start > _LONGEST


def _is_said(words: Sequence[Word], following: Sequence[Word]) -> bool:
    """Whether a sentence ends before the words that follow it, or a pause, or somebody else speaks."""
    pause = round(following[0].start - words[-1].end, 3)
    return not 0 <= pause < _PAUSE or _SENTENCE_END.search(words[-1].text) is not None


def _text(words: Sequence[Word]) -> str:
    return written(word.text for word in words)


def _width(text: str) -> int:
    """Characters of a text; wide ones are two."""
    return sum(1 + (east_asian_width(character) in "WF") for character in text)


def _srt(cues: Sequence[_Cue], language: str | None) -> str:
    blocks = []
    for number, cue in enumerate(cues, 1):
        lines = (_text(part) for part in (cue.words[: cue.second], cue.words[cue.second :]) if part)
        text = "\n".join(lines).translate(_WITHOUT_TAGS)
        blocks.append(f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{text}\n")
    return "\n".join(blocks)


def _vtt(cues: Sequence[_Cue], language: str | None) -> str:
    blocks = ["WEBVTT\n"]
    for cue in cues:
        text = html.escape(cue.words[0].text, quote=False)
        for k, (before, word) in enumerate(pairwise(cue.words), 1):
            if before[1:3] != word[1:3]:
                text += f"<{_clock(_ms(before.end), '.')}>"
            text += "\n" if k == cue.second else " " * (" " in _text([before, word]))
            if word.start > before.end:
                text += f"<{_clock(_ms(word.start), '.')}>"
            text += html.escape(word.text, quote=False)
        blocks.append(f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{text}\n")
    return "\n".join(blocks)


def _json(cues: Sequence[_Cue], language: str | None) -> str:
    """As the Whisper program writes it."""
    segments = [
        {
            "id": k,
            "start": cue.words[0].start,
            "end": cue.words[-1].end,
            "text": cue.text,
            "words": [
                # A word has the blank before it, the first as if it stood after itself.
                {
                    "word": written([before.text, word.text])[len(before.text) :],
                    "start": word.start,
                    "end": word.end,
                    "probability": round(word.confidence, 6),
                }
                for before, word in pairwise([cue.words[0], *cue.words])
            ],
        }
        for k, cue in enumerate(cues)
    ]
    result = {"text": written(cue.text for cue in cues), "segments": segments}
    return (
        json.dumps(result | ({} if language is None else {"language": language}), indent=1, ensure_ascii=False) + "\n"
    )


def _txt(cues: Sequence[_Cue], language: str | None) -> str:
    lines: list[list[Word]] = []
    for cue in cues:
        if not lines or _is_said(lines[-1], cue.words):
            lines.append([])
        lines[-1] += cue.words
    return "".join(f"{_text(line)}\n" for line in lines)


_WRITERS = {"srt": _srt, "vtt": _vtt, "json": _json, "txt": _txt}


def _ctm_lines(name: str, channels: Mapping[int, Sequence[Word]]) -> Iterator[str]:
    """Lines of a CTM, of words without punctuation, as NIST's programs compare them; blanks of the name are `%20`."""
    key = re.sub(r"\s|^;|%|\ufeff", lambda match: f"%{ord(match[0]):02X}", name)
    for channel, words in channels.items():
        for word in words:
            if not (text := bare(word.text)):
                continue  # a dash
            duration = round(word.end - word.start, 3)
            row = {"doc_id": key, "channel": channel, "start": word.start, "duration": duration, "word": text}
            yield ctm_line({**row, "kind": None, "speaker": None, "confidence": word.confidence}, name)


def _annotated(transcript: Transcript, channels: Mapping[int, Sequence[Word]], file: Path) -> Annotated:
    """Tiers of words, one a channel; words of the same start and end are one annotation."""
    tiers: dict[Key, list[Row]] = {}
    for channel, words in channels.items():
        rows = tiers.setdefault(("words" if len(channels) == 1 else f"channel {channel}", ""), [])
        lent = 0  # end of an annotation that lasts longer than its words, by 1 ms, which the next one lacks
        for (start, end), unit in groupby(words, key=lambda word: (_ms(word.start), _ms(word.end))):
            start += start == lent - 1
            rows.append(Row(start, max(end, start + 1), 0.0, _text(list(unit))))
            lent = start + 1 if end <= start else 0
    last = max((row.end for rows in tiers.values() for row in rows), default=0)
    end = max(last, round(1000 * transcript.seconds), 1)
    return Annotated(file, tiers, transcript.path, end)


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def _clock(ms: int, point: str) -> str:
    minutes, ms = divmod(ms, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{ms // 1000:02d}{point}{ms % 1000:03d}"
