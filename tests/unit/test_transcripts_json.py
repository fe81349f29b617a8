"""JSON of recognisers: each layout is that of the program named beside it; the words are made up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.lattices.lattice import Broken, Lattice
from tests.support.transcripts import detected, error_in, read_as, words_in, words_of_lattice

WORDS = [("Hello,", 0.0, 0.5, 0.75), ("world.", 0.5, 1.25, 0.5)]


def of(word: str, start: Any, end: Any, **more: Any) -> dict[str, Any]:
    return {"word": word, "start": start, "end": end, **more}


_SAID = [of(" Hello,", 0.0, 0.5, probability=0.75), of(" world.", 0.5, 1.25, probability=0.5)]
_SEGMENT = {"id": 0, "seek": 0, "start": 0.0, "end": 1.25, "text": " Hello, world.", "words": _SAID}
WHISPER = {"text": " Hello, world.", "segments": [{**_SEGMENT, "avg_logprob": float("nan")}], "language": "en"}

WHISPERX_WORDS = [
    of("Hello,", 0.0, 0.5, score=0.75),
    {"word": "22"},
    {"word": "23"},
    of("world.", 1.0, 1.25, score=0.5),
]
WHISPERX = {"segments": [{"text": "", "start": 0.0, "end": 1.25, "words": WHISPERX_WORDS}], "language": "en"}

FASTER = [_SEGMENT]

_HELLO, _WORLD = of("Hello,", 0.0, 0.5, conf=0.75), of("world.", 0.5, 1.25, conf=0.5)
VOSK = {"result": [_HELLO, _WORLD], "text": "Hello, world."}
#: What vosk-transcriber writes.
MONOLOGUE = {"speaker": {"id": "unknown", "name": None}, "start": 0.0, "end": 1.25}
MONOLOGUE["terms"] = [
    {"confidence": sure, "start": start, "end": end, "text": text, "type": "WORD"} for text, start, end, sure in WORDS
]


def vosk_stream() -> str:
    """Results in a row, as a program prints them that calls Result, PartialResult and FinalResult."""
    one, two = {"result": [_HELLO], "text": "Hello,"}, {"result": [_WORLD], "text": "world."}
    documents = [{"partial": "hell"}, one, {"text": ""}, {"partial": "", "partial_result": []}, two, {"text": ""}]
    return "\n".join(json.dumps(document, indent=2) for document in documents) + "\n"


def written(folder: Path, content: object, name: str = "talk.wav.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_words_as_they_are_written(tmp_path: Path) -> None:
    for document in (
        *(WHISPER, FASTER, _SAID, VOSK, [VOSK, {"text": ""}], vosk_stream()),
        {"text": "Hello, world.", "words": VOSK["result"], "segments": [{"text": "Hello, world."}]},
        {"schemaVersion": "2.0", "monologues": [MONOLOGUE], "text": ["Hello, world."]},
    ):
        path = written(tmp_path, document)
        assert words_in("json", path) == WORDS
        assert detected(path.name, path.read_bytes()) == "json"
        (lattice,) = read_as("json", path)
        assert (lattice.key, lattice.channel, lattice.length) == ("talk", 1, 1250)  # type: ignore[union-attr]


def test_numbers_that_whisperx_does_not_align_last_from_word_to_word(tmp_path: Path) -> None:
    expected = [WORDS[0], ("22", 0.5, 1.0, 1.0), ("23", 0.5, 1.0, 1.0), ("world.", 1.0, 1.25, 0.5)]
    assert words_in("json", written(tmp_path, WHISPERX)) == expected
    assert words_in("json", written(tmp_path, {"word_segments": WHISPERX_WORDS})) == expected
    alone = {"segments": [{"start": 2.0, "end": 3.0, "text": "22", "words": [{"word": "22"}]}]}
    assert words_in("json", written(tmp_path, alone)) == [("22", 2.0, 3.0, 1.0)]
    ends = {
        "segments": [{"start": 0.0, "end": 3.0, "text": "", "words": [{"word": "1"}, of("a", 1, 2), {"word": "2"}]}]
    }
    assert words_in("json", written(tmp_path, ends)) == [("1", 0, 1, 1), ("a", 1, 2, 1), ("2", 2, 3, 1)]


def test_words_without_times_of_their_own_last_as_what_they_are_in(tmp_path: Path) -> None:
    """A segment that whisperX does not align, and a word whose end transformers does not know."""
    unaligned = {"segments": [{"text": " A river", "start": 2.0, "end": 4.0, "words": []}], "word_segments": []}
    assert words_in("json", written(tmp_path, unaligned)) == [("A", 2, 4, 1), ("river", 2, 4, 1)]
    chunks = [{"text": " A", "timestamp": [1.0, 2.0]}, {"text": " river", "timestamp": [2.0, None]}]
    found = words_in("json", written(tmp_path, {"text": " A river", "chunks": chunks}))
    assert [(word[0], word[1]) for word in found] == [("A", 1), ("river", 2)]
    assert found[1][2] >= 2


def test_of_vosks_alternatives_the_first(tmp_path: Path) -> None:
    first, second = ({"confidence": 174.6, "result": [of(word, 3.93, 4.11)], "text": word} for word in ("nah", "nine"))
    assert words_in("json", written(tmp_path, {"alternatives": [first, second]})) == [("nah", 3.93, 4.11, 1.0)]
    assert words_in("json", written(tmp_path, {"alternatives": [{"text": "", "confidence": 1.0}]})) == []
    assert words_in("json", written(tmp_path, {"result": [of("a", 0, 1, conf=1.0000001)]})) == [("a", 0, 1, 1)]


def test_nemo_a_recording_a_line_and_its_parts_together(tmp_path: Path) -> None:
    """NVIDIA/NeMo, nemo/collections/asr/parts/utils/transcribe_utils.py write_transcription."""

    def line(name: str, offset: float, words: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        text = " ".join(word["word"] for word in words)
        return {"audio_filepath": name, "offset": offset, "duration": 2.0, "pred_text": text, "word": words, **more}

    first = line("/data/a.wav", 0, [of("hello", 0.08, 0.4, start_offset=1, end_offset=5)], word_confidence=[0.5])
    again = line("/data/a.wav", 10.5, [of("again", 0.0, 0.4, start_offset=0, end_offset=5)])
    other = {**line("/data/b.flac", 0, []), "timestep": [], "char": []}
    lines = [first, other, again, line("/data/c.wav", 0, [of("x", 1.0, 0.5)]), line("/more/a.wav", 0, [])]
    path = written(tmp_path, "\n".join(map(json.dumps, lines)), "predictions.json")
    assert detected(path.name, path.read_bytes()) == "json"
    a, b, c, same = read_as("json", path)
    assert isinstance(a, Lattice)
    assert isinstance(b, Lattice)
    assert (a.key, words_of_lattice(a)) == ("a", [("hello", 0.08, 0.4, 0.5), ("again", 10.5, 10.9, 1.0)])
    assert (b.key, words_of_lattice(b)) == ("b", [])
    assert isinstance(c, Broken)
    assert (c.key, c.error.code) == ("c", codes.WORD_ENDS_BEFORE_START.name)
    assert c.error.where == f"{path}, line 4, word[0]"
    assert isinstance(same, Broken)
    assert (same.key, same.error.code) == ("a", codes.RECORDINGS_OF_ONE_NAME.name)


def manifest(**more: object) -> dict[str, object]:
    return {"audio_filepath": "a.wav", "pred_text": "b", **more}


#: Contents, their code and the end of the place that is told.
WRONG: list[tuple[object, Code[Any], str]] = [
    ({"segments": [{"start": 0, "end": 1, "text": " Hello."}], "text": " Hello."}, codes.NO_WORD_TIMES, "segments[0]"),
    ({"segments": [{"text": "Hello.", "words": []}]}, codes.NO_WORD_TIMES, "segments[0]"),
    ([{"id": 1, "text": " Hello.", "words": None}], codes.NO_WORD_TIMES, "[0]"),
    ({"text": "hello"}, codes.NO_WORD_TIMES, "line 1"),
    (manifest(), codes.NO_WORD_TIMES, "line 1"),
    ({"audio_filepath": "a.wav", "duration": 3}, codes.NO_WORD_TIMES, "line 1"),
    (manifest(word=[{"word": "b", "start_offset": 1, "end_offset": 2}]), families.MISSING_TIMES, "word[0]"),
    (manifest(word=[of("b", 0, 1)], word_confidence=[]), codes.UNKNOWN_JSON, "line 1"),
    (manifest(word=[of("b", 0, 1)], offset=-1), io_codes.BAD_TIME, "line 1"),
    (manifest(word=[of("b", -1, -1)]), io_codes.BAD_TIME, "word[0]"),
    ({"word_segments": [{"word": "22"}]}, families.MISSING_TIMES, "word_segments[0]"),
    ({"result": [of("a", 0, 1), of("b", 2, 1)]}, codes.WORD_ENDS_BEFORE_START, "result[1]"),
    *(({"result": [of("a", start, 1)]}, io_codes.BAD_TIME, "result[0]") for start in (-0.5, float("nan"), "0", False)),
    *(({"result": [of("a", 0, end)]}, io_codes.BAD_TIME, "result[0]") for end in (float("inf"), 10**400)),
    *(
        ({"result": [of("a", 0, 1, conf=sure)]}, families.MALFORMED_LINE, "result[0]")
        for sure in (1.1, -0.1, float("nan"), "high")
    ),
    ({"result": [{"start": 0, "end": 1}]}, codes.UNKNOWN_JSON, "result[0]"),
    ({"result": ["a"]}, codes.UNKNOWN_JSON, "result[0]"),
    ({"result": {"language": "en"}}, codes.UNKNOWN_JSON, "result"),
    ({"segments": [[]]}, codes.UNKNOWN_JSON, "segments[0]"),
    *((content, codes.UNKNOWN_JSON, "line 1") for content in ({"name": "package"}, "{}\n{}")),
    ([[{}]], codes.UNKNOWN_JSON, "[0]"),
    *((f'{{"text": ""}}\n{rest}', codes.MALFORMED_JSON, "line 2") for rest in ('{"text": "",}', ' {"result": [')),
    *((text, codes.MALFORMED_JSON, "line 1") for text in ('{"result": [' + "9" * 5000 + "]}", "[" * 100_000, "")),
]


def test_what_is_wrong_is_named_with_its_place(tmp_path: Path) -> None:
    wrong = []
    for content, code, place in WRONG:
        path = written(tmp_path, content)
        error = error_in("json", path).error
        where = str(error.where)
        if error.code != code.name or not (where.startswith(str(path)) and where.endswith(place)):
            wrong.append((str(content)[:99], error))
    assert wrong == []
    error = error_in("json", written(tmp_path, '{"text": ""}\n{"text": "",}')).error
    assert error.values["column"] == 13


def test_bytes(tmp_path: Path) -> None:
    """A byte order mark, packed files, and what is no UTF-8."""
    path = tmp_path / "x.json"
    text = json.dumps({**VOSK, "text": "ü"}, ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert words_in("json", path) == WORDS
    assert detected("x.json", path.read_bytes()) == "json"
    path.write_bytes(text.encode("latin-1"))
    assert error_in("json", path).error.code == io_codes.NOT_UTF8.name
    path.write_bytes(text.encode("utf-16"))
    assert error_in("json", path).error.code == io_codes.UTF16_TEXT.name
    packed = tmp_path / "x.mp3.json.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert (words_in("json", packed), read_as("json", packed)[0].key) == (WORDS, "x")
    packed.write_bytes(gzip.compress(text.encode())[:-9])
    assert error_in("json", packed).error.code == io_codes.DAMAGED_ARCHIVE.name
