"""JSON of recognisers that write words with times: a document, or several in a row or an array, each of these:

- Whisper (openai/whisper, `--word_timestamps True --output_format json`), faster-whisper (`dataclasses.asdict` of its
  segments or words) and OpenAI's service: `segments[].words[]` or `words[]` of `word`, `start`, `end`, `probability`
- WhisperX (m-bain/whisperX, `align`): the same with `score`, or `word_segments[]` alone. It leaves the times of words
  out that it cannot align (numbers): such a word lasts from the end of the word before, or the segment's start, to
  the start of the next word with times, or the segment's end: the time that holds it.
- Vosk (alphacep/vosk-api, src/vosk_api.h): `result[]` of `word`, `start`, `end`, `conf`. Of `alternatives[]` the
  first, as certain: their confidences are likelihoods without a scale. Of `partial` results nothing, for the results
  after them hold the same words. vosk-transcriber: `monologues[].terms[]`.
- NeMo (NVIDIA/NeMo, examples/asr/transcribe_speech.py with `timestamps=true`): a line a recording, or a part of one
  from `offset` (s): `audio_filepath`, `word[]` of `word`, `start`, `end`, and maybe `word_confidence[]`. The parts of
  a recording are one lattice.

Confidences are those of words; of segments they are not used. All but NeMo's documents in a file are one lattice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError, TableError
from swsdist.core.plain import unique
from swsdist.io.compressed import demand_utf8, read_all, short
from swsdist.lattices.lattice import Broken, Lattices, Origin, Word, transcript
from swsdist.lattices.words import key_of, seconds_of, transcribed, words_of

_OPENING = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*(\[[ \t\r\n]*)*(\{[ \t\r\n]*[\"}]|\[\])")
_BLANK = re.compile(r"[ \t\r\n]*")
_CONFIDENCES = ("probability", "score", "conf", "confidence")


def read(origin: Origin) -> Lattices:
    """The transcripts of a file; see the module.

    Raises:
        UserError: there is no such file.
    """
    words: list[Word] = []
    recordings: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    plain = False
    try:
        for where, document in _documents(origin):
            if isinstance(document, dict) and isinstance(path := document.get("audio_filepath"), str):
                recordings.setdefault(path, []).append((where, document))
            else:
                words += _words(document, where)
                plain = True
    except (DataError, TableError) as error:
        yield Broken(key_of(origin.path), error)
        return
    if plain:
        yield transcript(key_of(origin.path), words)
    paths: dict[str, str] = {}
    for path, parts in recordings.items():
        key = key_of(path)
        if (first := paths.setdefault(key, path)) != path:
            yield Broken(key, codes.RECORDINGS_OF_ONE_NAME(where=parts[0][0], first=first, second=path, key=key))
        else:
            yield from transcribed(key, partial(_recording, parts))


def detect(name: str, head: bytes) -> bool:
    """Whether it begins as a JSON object, or an array of such; or is empty, and named as JSON."""
    return bool(_OPENING.match(head)) or (not head and name.lower().endswith((".json", ".jsonl")))


def _documents(origin: Origin) -> Iterator[tuple[str, Any]]:
    """The values of a file, one after the other, each with its place."""
    content = read_all(origin.path, storage=origin.storage)
    demand_utf8(content, origin.path)
    text = content.decode("utf-8-sig")
    decoder = json.JSONDecoder(object_pairs_hook=unique)
    place, line = _next(text, 0), 1
    line += text.count("\n", 0, place)
    while place < len(text) or not text.strip():
        where = f"{origin.path}, line {line}"
        try:
            value, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            where = f"{origin.path}, line {error.lineno}"
            raise codes.MALFORMED_JSON(where=where, column=error.colno, error=error.msg) from None
        except (ValueError, RecursionError) as error:  # a key twice; a number of thousands of digits; nested too deeply
            raise codes.MALFORMED_JSON(where=where, column=1, error=short(str(error))) from None
        yield where, value
        after = _next(text, end)
        line += text.count("\n", place, after)
        place = after


def _next(text: str, place: int) -> int:
    blank = _BLANK.match(text, place)
    return blank.end() if blank else place


def _words(document: Any, where: str) -> list[Word]:
    """The words of a document, or of a part of it."""
    if isinstance(document, list):
        if all(isinstance(item, dict) and "word" in item for item in document):
            return _timed(document, where)
        return [word for k, item in enumerate(document) for word in _words_of_part(item, f"{where}, [{k}]")]
    return _words_of_part(document, where)


def _words_of_part(part: Any, where: str, outer: bool = True) -> list[Word]:
    """The words of an object; an outer one may have segments or alternatives."""
    if not isinstance(part, dict):
        raise codes.UNKNOWN_JSON(where=where, item=_what(part))
    if outer and isinstance(alternatives := part.get("alternatives"), list) and alternatives:
        return _words_of_part(alternatives[0], f"{where}, alternatives[0]", False)
    if "partial" in part:
        return []
    for name in ("words", "result", "terms"):
        if part.get(name):
            return _timed(part[name], f"{where}, {name}", part.get("start"), part.get("end"))
    for name in ("segments", "monologues") if outer else ():
        if isinstance(inner := part.get(name), list) and inner:
            return [
                word for k, item in enumerate(inner) for word in _words_of_part(item, f"{where}, {name}[{k}]", False)
            ]
    if part.get("word_segments"):
        return _timed(part["word_segments"], f"{where}, word_segments")
    text = part.get("text", "" if part.keys() & {"words", "segments", "word_segments", "monologues"} else None)
    if isinstance(text, list) and not text:
        return []
    if not isinstance(text, str):
        raise codes.UNKNOWN_JSON(where=where, item=_what(part))
    if text.strip():
        raise codes.NO_WORD_TIMES(where=where, text=short(text.strip()))
    return []


def _timed(entries: Any, where: str, start: object = None, end: object = None) -> list[Word]:
    """The words of a list. Missing times are those that the neighbours leave, in what lasts from start to end."""
    if not isinstance(entries, list):
        raise codes.UNKNOWN_JSON(where=where, item=_what(entries))
    places = [f"{where}[{k}]" for k in range(len(entries))]
    for entry, place in zip(entries, places, strict=True):
        if not isinstance(entry, dict) or not isinstance(_text(entry), str):
            raise codes.UNKNOWN_JSON(where=place, item=_what(entry))
    starts = [_given(entry, "start", place) for entry, place in zip(entries, places, strict=True)]
    ends = [_given(entry, "end", place) for entry, place in zip(entries, places, strict=True)]
    # A segment's times may be NaN where no word needs them.
    known = {"start": start, "end": end} if None in (*starts, *ends) else {}
    after = [_given(known, "end", where)]
    for first, last in zip(reversed(starts), reversed(ends), strict=True):
        nearest = first if first is not None else last
        after.append(after[-1] if nearest is None else nearest)
    before = _given(known, "start", where)
    words = []
    for k, (entry, place) in enumerate(zip(entries, places, strict=True)):
        first, last = starts[k], ends[k]
        if first is None or last is None:
            low = first if first is not None else before
            high = last if last is not None else after[len(entries) - 1 - k]
            if low is None or high is None:
                raise codes.WORD_WITHOUT_TIMES(where=place, text=short(_text(entry)))
            first, last = min(low, high), max(low, high)
        confidence = next((entry[name] for name in _CONFIDENCES if entry.get(name) is not None), None)
        words += words_of(_text(entry), first, last, place, confidence)
        before = next((time for time in (ends[k], starts[k]) if time is not None), before)
    return words


def _recording(parts: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Word]:
    return [word for where, document in parts for word in _nemo(where, document)]


def _nemo(where: str, document: Mapping[str, Any]) -> list[Word]:
    texts = [text for name, text in document.items() if name.startswith("pred_text") and isinstance(text, str)]
    if "word" not in document:
        if not texts or any(text.strip() for text in texts):
            raise codes.NO_WORD_TIMES(where=where, text=short((texts or [document["audio_filepath"]])[0]))
        return []
    entries, confidences = document["word"], document.get("word_confidence")
    if isinstance(entries, list) and isinstance(confidences, list):
        if len(confidences) != len(entries):
            raise codes.UNKNOWN_JSON(where=where, item=f"{len(confidences)} word_confidence for {len(entries)} words")
        entries = [
            {**entry, "confidence": sure} if isinstance(entry, dict) else entry
            for entry, sure in zip(entries, confidences, strict=True)
        ]
    offset = seconds_of(document.get("offset") or 0.0, "offset", where)
    return [
        word._replace(start=word.start + offset, end=word.end + offset) for word in _timed(entries, f"{where}, word")
    ]


def _text(entry: Mapping[str, Any]) -> Any:
    return entry.get("word", entry.get("text"))


def _given(entry: Mapping[str, Any], name: str, where: str) -> float | None:
    value = entry.get(name)
    return None if value is None else seconds_of(value, name, where)


def _what(value: Any) -> str:
    """A value's kind, for messages."""
    if isinstance(value, dict):
        return f"an object of {short(', '.join(value)) or 'nothing'}"
    return "an array" if isinstance(value, list) else "a text" if isinstance(value, str) else short(str(value))
