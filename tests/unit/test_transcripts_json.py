"""JSON of recognisers: each layout is that of the program named beside it; the words are made up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.lattices.lattice import Broken, Lattice
from tests.support.transcripts import detected, error_in, read_as, words_in, words_of_lattice

WORDS = [("Hello,", 0.0, 0.5, 0.75), ("world.", 0.5, 1.25, 0.5)]


def of(word: str, start: Any, end: Any, **more: Any) -> dict[str, Any]:
    return {"word": word, "start": start, "end": end, **more}


#: openai/whisper, whisper/utils.py WriteJSON: the result of transcribe, on one line.
WHISPER = {
    "text": " Hello, world.",
    "segments": [
        {
            "id": 0,
            "seek": 0,
            "start": 0.0,
            "end": 1.25,
            "text": " Hello, world.",
            "tokens": [50364, 2425],
            "temperature": 0.0,
            "avg_logprob": float("nan"),
            "compression_ratio": 0.6,
            "no_speech_prob": 0.01,
            "words": [of(" Hello,", 0.0, 0.5, probability=0.75), of(" world.", 0.5, 1.25, probability=0.5)],
        }
    ],
    "language": "en",
}

#: m-bain/whisperX, whisperx/alignment.py align: segments and word_segments.
WHISPERX_WORDS = [
    of("Hello,", 0.0, 0.5, score=0.75),
    {"word": "22"},
    {"word": "23"},
    of("world.", 1.0, 1.25, score=0.5),
]
WHISPERX = {
    "segments": [{"text": " Hello, 22 23 world.", "start": 0.0, "end": 1.25, "words": WHISPERX_WORDS}],
    "word_segments": WHISPERX_WORDS,
    "language": "en",
}

#: SYSTRAN/faster-whisper, faster_whisper/transcribe.py: dataclasses Segment and Word.
FASTER = [
    {"id": 1, "seek": 0, "start": 0.0, "end": 1.25, "text": " Hello, world.", "words": WHISPER["segments"][0]["words"]}
]

#: alphacep/vosk-api, src/vosk_api.h and recognizer.cc.
VOSK = {
    "result": [of("Hello,", 0.0, 0.5, conf=0.75), of("world.", 0.5, 1.25, conf=0.5)],
    "text": "Hello, world.",
}


def vosk_stream() -> str:
    """Results in a row, as a program prints them that calls Result, PartialResult and FinalResult."""
    one = {"result": [of("Hello,", 0.0, 0.5, conf=0.75)], "text": "Hello,"}
    two = {"result": [of("world.", 0.5, 1.25, conf=0.5)], "text": "world."}
    documents = [{"partial": "hell"}, one, {"text": ""}, {"partial": "", "partial_result": []}, two, {"text": ""}]
    return "\n".join(json.dumps(document, indent=2) for document in documents) + "\n"


def written(folder: Path, content: object, name: str = "talk.wav.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(WHISPER, id="whisper"),
        pytest.param(FASTER, id="faster-whisper segments"),
        pytest.param(WHISPER["segments"][0]["words"], id="faster-whisper words"),
        pytest.param(
            {"text": "Hello, world.", "words": VOSK["result"], "segments": [{"text": "Hello, world."}]}, id="api"
        ),
        pytest.param(VOSK, id="vosk"),
        pytest.param([VOSK, {"text": ""}], id="vosk in an array"),
        pytest.param(vosk_stream(), id="vosk in a row"),
        pytest.param(
            {
                "schemaVersion": "2.0",
                "monologues": [
                    {
                        "speaker": {"id": "unknown", "name": None},
                        "start": 0.0,
                        "end": 1.25,
                        "terms": [
                            {"confidence": sure, "start": start, "end": end, "text": text, "type": "WORD"}
                            for text, start, end, sure in WORDS
                        ],
                    }
                ],
                "text": ["Hello, world."],
            },
            id="vosk-transcriber",
        ),
    ],
)
def test_words_as_they_are_written(tmp_path: Path, document: object) -> None:
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
    document = {
        "alternatives": [
            {"confidence": 174.6, "result": [of("nah", 3.93, 4.11)], "text": "nah"},
            {"confidence": 173.9, "result": [of("nine", 3.93, 4.17)], "text": "nine"},
        ]
    }
    assert words_in("json", written(tmp_path, document)) == [("nah", 3.93, 4.11, 1.0)]
    assert words_in("json", written(tmp_path, {"alternatives": [{"text": "", "confidence": 1.0}]})) == []


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
    assert (c.key, c.error.code, c.error.where) == (
        "c",
        codes.WORD_ENDS_BEFORE_START.name,
        f"{path}, line 4, word[0]",
    )
    assert isinstance(same, Broken)
    assert (same.key, same.error.code) == ("a", codes.RECORDINGS_OF_ONE_NAME.name)


def manifest(**more: object) -> dict[str, object]:
    return {"audio_filepath": "a.wav", "pred_text": "b", **more}


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (
            {"segments": [{"start": 0, "end": 1, "text": " Hello."}], "text": " Hello."},
            codes.NO_WORD_TIMES,
            "segments[0]",
        ),
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
        ({"result": [of("a", -0.5, 1)]}, io_codes.BAD_TIME, "result[0]"),
        ({"result": [of("a", float("nan"), 1)]}, io_codes.BAD_TIME, "result[0]"),
        ({"result": [of("a", 0, float("inf"))]}, io_codes.BAD_TIME, "result[0]"),
        ({"result": [of("a", 0, 10**400)]}, io_codes.BAD_TIME, "result[0]"),
        ({"result": [of("a", "0", 1)]}, io_codes.BAD_TIME, "result[0]"),
        ({"result": [of("a", False, 1)]}, io_codes.BAD_TIME, "result[0]"),
        ({"result": [of("a", 0, 1, conf=1.1)]}, families.MALFORMED_LINE, "result[0]"),
        ({"result": [of("a", 0, 1, conf=-0.1)]}, families.MALFORMED_LINE, "result[0]"),
        ({"result": [of("a", 0, 1, conf=float("nan"))]}, families.MALFORMED_LINE, "result[0]"),
        ({"result": [of("a", 0, 1, conf="high")]}, families.MALFORMED_LINE, "result[0]"),
        ({"result": [{"start": 0, "end": 1}]}, codes.UNKNOWN_JSON, "result[0]"),
        ({"result": ["a"]}, codes.UNKNOWN_JSON, "result[0]"),
        ({"result": {"language": "en"}}, codes.UNKNOWN_JSON, "result"),
        ({"segments": [[]]}, codes.UNKNOWN_JSON, "segments[0]"),
        ({"name": "package"}, codes.UNKNOWN_JSON, "line 1"),
        ([[{}]], codes.UNKNOWN_JSON, "[0]"),
        ("{}\n{}", codes.UNKNOWN_JSON, "line 1"),
        ('{"text": ""}\n{"text": "",}', codes.MALFORMED_JSON, "line 2"),
        ('{"text": ""}\n {"result": [', codes.MALFORMED_JSON, "line 2"),
        ('{"result": [' + "9" * 5000 + "]}", codes.MALFORMED_JSON, "line 1"),
        ("[" * 100_000, codes.MALFORMED_JSON, "line 1"),
        ("", codes.MALFORMED_JSON, "line 1"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, content: object, code: Code[Any], place: str) -> None:
    path = written(tmp_path, content)
    error = error_in("json", path).error
    assert error.code == code.name, error
    assert str(error.where).startswith(str(path))
    assert str(error.where).endswith(place)
    assert error.remedy


def test_a_part_that_json_ends_in_is_named_by_column(tmp_path: Path) -> None:
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


def test_rounded_certainty_is_certainty(tmp_path: Path) -> None:
    assert words_in("json", written(tmp_path, {"result": [of("a", 0, 1, conf=1.0000001)]})) == [("a", 0, 1, 1)]
