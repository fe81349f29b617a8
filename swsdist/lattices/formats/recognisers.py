"""JSON of recognisers that write words with times: a document, or several in a row or an array, each of these:

- Whisper (openai/whisper, `--word_timestamps True --output_format json`), faster-whisper (`dataclasses.asdict` of its
  segments or words) and OpenAI's service: `segments[].words[]` or `words[]` of `word`, `start`, `end`, `probability`
- WhisperX (m-bain/whisperX, `align`): the same with `score`, or `word_segments[]` alone. It leaves the times of words
  out that it cannot align (numbers): such a word lasts from the end of the word before, or the segment's start, to
  the start of the next word with times, or the segment's end: the time that holds it. The words of a segment of which
  it aligned nothing last as long as the segment.
- Vosk (alphacep/vosk-api, src/vosk_api.h): `result[]` of `word`, `start`, `end`, `conf`. Of `alternatives[]` the
  first, as certain: their confidences are likelihoods without a scale. Of `partial` results nothing, for the results
  after them hold the same words. vosk-transcriber: `monologues[].terms[]`.
- NeMo (NVIDIA/NeMo, examples/asr/transcribe_speech.py with `timestamps=true`): a line a recording, or a part of one
  from `offset` (s): `audio_filepath`, `word[]` of `word`, `start`, `end`, and maybe `word_confidence[]`. The parts of
  a recording are one lattice.

- transformers (huggingface/transformers, pipeline `automatic-speech-recognition`): `chunks[]` of `text` and `timestamp`,
  start and end; an end that is null is the start of the next.
- whisper.cpp (ggml-org/whisper.cpp, `--output-json`): `transcription[]` of `text` and `offsets`, `from` and `to` in ms.
  The words of a segment last as long as it does: `--max-len 1 --split-on-word` makes a segment of each word.

Confidences are those of words; of segments they are not used. All but NeMo's documents in a file are one lattice. What
cannot be used is left out: a word, a segment, or a document that ends its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import unique
from swsdist.io.compressed import demand_utf8, read_all, short
from swsdist.lattices.lattice import Broken, Lattices, LeftOut, Origin, Word
from swsdist.lattices.words import demand_kept, key_of, seconds_of, transcribed, words_of

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
    left_out = LeftOut()
    try:
        for where, document in _documents(origin, left_out):
            if isinstance(document, dict) and isinstance(path := document.get("audio_filepath"), str):
                with left_out:
                    demand_kept(path, where)
                    recordings.setdefault(path, []).append((where, document))
            else:
                with left_out:
                    words += _words(document, where, left_out)
    except DataError as error:
        yield Broken(key_of(origin.path), error)
        return
    if words or not recordings:
        yield from transcribed(key_of(origin.path), lambda _: words, left_out=left_out)
        left_out = LeftOut()
    paths: dict[str, str] = {}
    for path, parts in recordings.items():
        key = key_of(path)
        if (first := paths.setdefault(key, path)) != path:
            yield Broken(key, codes.RECORDINGS_OF_ONE_NAME(where=parts[0][0], first=first, second=path, key=key))
        else:
            yield from transcribed(key, partial(_recording, parts), left_out=left_out)
            left_out = LeftOut()


def detect(name: str, head: bytes) -> bool:
    """Whether it begins as a JSON object, or an array of such; or is empty, and named as JSON."""
    return bool(_OPENING.match(head)) or (not head and name.lower().endswith((".json", ".jsonl")))


def _documents(origin: Origin, left_out: LeftOut) -> Iterator[tuple[str, Any]]:
    """The values of a file, one after the other, each with its place; after a damaged object the next that begins a line."""
    content = read_all(origin.path, storage=origin.storage)
    demand_utf8(content, origin.path)
    text = content.decode("utf-8-sig")
    decoder = json.JSONDecoder(object_pairs_hook=unique)
    place, line = _next(text, 0), 1
    line += text.count("\n", 0, place)
    while place < len(text) or not text.strip():
        after = text.find("\n{", place) + 1 if text.startswith("{", place) else 0
        with left_out:
            where = f"{origin.path}, line {line}"
            try:
                value, end = decoder.raw_decode(text, place)
            except json.JSONDecodeError as error:
                where = f"{origin.path}, line {error.lineno}"
                raise codes.MALFORMED_JSON(where=where, column=error.colno, error=error.msg) from None
            except (
                ValueError,
                RecursionError,
            ) as error:  # a key twice; a number of thousands of digits; nested too deeply
                raise codes.MALFORMED_JSON(where=where, column=1, error=short(str(error))) from None
            yield where, value
            after = _next(text, end)
        if not after:
            return
        line += text.count("\n", place, after)
        place = after


def _next(text: str, place: int) -> int:
    blank = _BLANK.match(text, place)
    return blank.end() if blank else place


def _words(document: Any, where: str, left_out: LeftOut) -> list[Word]:
    """The words of a document, or of a part of it."""
    if isinstance(document, list):
        if any(isinstance(item, dict) and "word" in item for item in document):
            return _timed(document, where, left_out)
        return _words_of_parts(document, f"{where}, ", left_out)
    return _words_of_part(document, where, left_out)


def _words_of_parts(parts: list[Any], where: str, left_out: LeftOut, outer: bool = True) -> list[Word]:
    """The words of objects. Where some have words, one without lasts as a whole: it was not aligned."""
    aligned = any(isinstance(part, dict) and part.get("words") for part in parts)
    words: list[Word] = []
    for k, part in enumerate(parts):
        with left_out:
            words += _words_of_part(part, f"{where}[{k}]", left_out, outer, aligned)
    return words


def _words_of_part(part: Any, where: str, left_out: LeftOut, outer: bool = True, aligned: bool = False) -> list[Word]:
    """The words of an object; an outer one may have segments or alternatives."""
    if not isinstance(part, dict):
        raise codes.UNKNOWN_JSON(where=where, item=_what(part))
    if outer and isinstance(alternatives := part.get("alternatives"), list) and alternatives:
        return _words_of_part(alternatives[0], f"{where}, alternatives[0]", left_out, False)
    if "partial" in part:
        return []
    if isinstance(segments := part.get("transcription"), list):
        return _timed(segments, f"{where}, transcription", left_out)
    for name in ("words", "chunks", "result", "terms", "word_segments"):
        if part.get(name) and (name != "word_segments" or not part.get("segments")):
            return _timed(part[name], f"{where}, {name}", left_out, part.get("start"), part.get("end"))
    for name in ("segments", "monologues") if outer else ():
        if isinstance(inner := part.get(name), list) and inner:
            return _words_of_parts(inner, f"{where}, {name}", left_out, False)
    lists = {"words", "segments", "word_segments", "monologues", "chunks"}
    text = part.get("text", "" if part.keys() & lists else None)
    if isinstance(text, list) and not text:
        return []
    if not isinstance(text, str):
        raise codes.UNKNOWN_JSON(where=where, item=_what(part))
    start, end = part.get("start"), part.get("end")
    if (aligned or isinstance(part.get("words"), list)) and None not in (start, end):
        return words_of(text, start, end, where)
    if text.strip():
        raise codes.NO_WORD_TIMES(where=where, text=short(text.strip()))
    return []


def _timed(entries: Any, where: str, left_out: LeftOut, start: object = None, end: object = None) -> list[Word]:
    """The words of a list. Missing times are those that the neighbours leave, in what lasts from start to end."""
    if not isinstance(entries, list):
        raise codes.UNKNOWN_JSON(where=where, item=_what(entries))
    timed: list[tuple[str, dict[str, Any], float | None, float | None]] = []
    for k, entry in enumerate(entries):
        place = f"{where}[{k}]"
        with left_out:
            if not isinstance(entry, dict) or not isinstance(_text(entry), str):
                raise codes.UNKNOWN_JSON(where=place, item=_what(entry))
            timed.append((place, entry, *_times(entry, place)))
    after = [_seconds(end)]
    for _, _, first, last in reversed(timed):
        nearest = first if first is not None else last
        after.append(after[-1] if nearest is None else nearest)
    before = _seconds(start)
    words: list[Word] = []
    for k, (place, entry, first, last) in enumerate(timed):
        low = first if first is not None else before
        high = last if last is not None else after[len(timed) - 1 - k]
        before = next((time for time in (last, first) if time is not None), before)
        with left_out:
            times = [time for time in (low, high) if time is not None]
            if not times:
                raise families.MISSING_TIMES(
                    "{text!r} has no times, and neither have its neighbours or its segment",
                    "give start and end in seconds (NeMo: timestamps=True)",
                    where=place,
                    text=short(_text(entry)),
                )
            low, high = times[0], times[-1]
            if first is None or last is None:
                low, high = min(times), max(times)
            confidence = next((entry[name] for name in _CONFIDENCES if entry.get(name) is not None), None)
            words += words_of(_text(entry), low, high, place, confidence)
    return words


def _recording(parts: Iterable[tuple[str, Mapping[str, Any]]], left_out: LeftOut) -> list[Word]:
    words: list[Word] = []
    for where, document in parts:
        with left_out:
            words += _nemo(where, document, left_out)
    return words


def _nemo(where: str, document: Mapping[str, Any], left_out: LeftOut) -> list[Word]:
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
        word._replace(start=word.start + offset, end=word.end + offset)
        for word in _timed(entries, f"{where}, word", left_out)
    ]


def _text(entry: Mapping[str, Any]) -> Any:
    return entry.get("word", entry.get("text"))


def _times(entry: Mapping[str, Any], where: str) -> tuple[float | None, float | None]:
    """Start and end, s; None: not given."""
    start, end, unit = entry.get("start"), entry.get("end"), 1.0
    if isinstance(pair := entry.get("timestamp"), list) and len(pair) == 2:
        start, end = pair
    elif isinstance(offsets := entry.get("offsets"), dict):
        start, end, unit = offsets.get("from"), offsets.get("to"), 0.001
    return (
        None if start is None else seconds_of(start, "start", where) * unit,
        None if end is None else seconds_of(end, "end", where) * unit,
    )


def _seconds(value: object) -> float | None:
    """A time, if it is one: that of a segment may be NaN where no word needs it."""
    try:
        return seconds_of(value, "time", "")
    except DataError:
        return None


def _what(value: Any) -> str:
    """A value's kind, for messages."""
    if isinstance(value, dict):
        return f"an object of {short(', '.join(value)) or 'nothing'}"
    return "an array" if isinstance(value, list) else "a text" if isinstance(value, str) else short(str(value))
