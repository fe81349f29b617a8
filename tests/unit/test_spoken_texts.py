"""Texts that a synthesiser speaks: any text is spoken or refused, and none is an option or a command."""

from __future__ import annotations

import io
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from swsdist.audio import synthesis
from swsdist.audio.synthesis import LONGEST, demand_voice, speak
from swsdist.core.codes import Code, families, searcher
from swsdist.core.codes import audio as audio
from swsdist.core.errors import SwsdistError, TermError
from tests.support.coded import raises

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
VOICE = "espeak-ng:en-us"


@needs_espeak
@given(st.sampled_from(["", "-", "--", "-f/", "-w ", "[[", "<", "|", "$("]), st.text(max_size=LONGEST + 20))
def test_any_text_is_spoken_or_refused(start: str, text: str) -> None:
    ran: list[list[str]] = []
    run = subprocess.run

    def noted(arguments: list[str], **keywords: object) -> object:
        ran.append(arguments)
        return run(arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthesis.subprocess, "run", noted)
        with suppress(TermError):
            assert soundfile.info(io.BytesIO(speak(start + text, VOICE))).frames > 0
    ours = {"--stdin", "-z", "-q", "-x", "-b", "1", "-v", "-w", "en-us", "--voices", "--voices=variant"}
    rest = {word for arguments in ran for word in arguments[1:]} - ours
    assert all(Path(word).name == "word.wav" and Path(word).is_absolute() for word in rest)


@needs_espeak
def test_refused_and_read() -> None:
    voices = ("espeak:en-us", "en-us", "espeak-ng:en-uss", "espeak-ng:", "espeak-ng:en-us+nobody", "espeak-ng:--help")
    cases: list[tuple[str, str, Code[SwsdistError]]] = [
        *(("hello", voice, families.UNKNOWN_NAME) for voice in (*voices, "espeak-ng:../../etc/passwd")),
        *((text, VOICE, audio.UNREADABLE_SCRIPT) for text in ("привет", "good こんにちは")),
        *((text, VOICE, audio.SOUNDLESS_TEXT) for text in ("...", "")),
        ("a" * (LONGEST + 1), VOICE, audio.SPOKEN_TEXT_TOO_LONG),
        ("\ud800", VOICE, searcher.QUERY_TEXT_NOT_UTF8),
    ]
    for text, voice, code in cases:
        with raises(code):
            speak(text, voice)
    of_others = [("привет", "espeak-ng:ru"), ("안녕하세요", "espeak-ng:ko+f3"), ("СССР", "espeak-ng:ru")]
    of_ours = [("élève", VOICE), ("BBC", VOICE), ("hello", f"{VOICE}+f3"), ("hello", "espeak-ng:gmw/en-US")]
    for text, voice in of_others + of_ours:
        assert soundfile.info(io.BytesIO(speak(text, voice))).duration > 0.2, text
    assert speak("[[h@l'oU]]", VOICE) == speak("hello", VOICE) == speak(" hello\n", VOICE)


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
def test_flite() -> None:
    assert soundfile.info(io.BytesIO(speak("--help", "flite:slt"))).duration > 0.2
    with raises(audio.UNREADABLE_SCRIPT):
        speak("élève", "flite:slt")


def test_a_program_that_is_not_there_fails_or_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "TIMEOUT", 1.0)
    monkeypatch.setenv("PATH", str(tmp_path))
    synthesis._voices.cache_clear()
    with raises(families.NOT_INSTALLED, program="flite"):
        demand_voice("flite:slt")
    program = tmp_path / "flite"
    for body, ending in (("echo no >&2; exit 3", "exit status 3"), ("exec /bin/sleep 60", "more than 1 s")):
        program.write_text(f'#!/bin/sh\nif [ "$1" = -lv ]; then echo "Voices available: slt "; exit; fi\n{body}\n')
        program.chmod(0o755)
        with raises(audio.SYNTHESISER_FAILED, ending=ending):
            speak("hello", "flite:slt")
    synthesis._voices.cache_clear()
