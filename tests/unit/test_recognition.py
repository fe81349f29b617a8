"""Recognisers and synthesisers: what they hear and speak depends on their input alone."""

import importlib.util
import io
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from swsdist.audio import synthesis
from swsdist.audio.reader import read_blocks
from swsdist.audio.synthesis import LONGEST, demand_voice, speak
from swsdist.core.codes import Code, families, searcher
from swsdist.core.codes import audio as audio
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import SwsdistError, TermError
from swsdist.core.needs import LEAST
from swsdist.lattices import pocketsphinx, recognition
from swsdist.lattices.lattice import Lattice
from swsdist.lattices.pocketsphinx import RATE, Pocketsphinx
from swsdist.lattices.recognition import Recognition, Text, stretches
from tests.support.coded import raises
from tests.support.english.words import small_corpus, small_recogniser

needs_pocketsphinx = pytest.mark.skipif(
    importlib.util.find_spec("pocketsphinx") is None, reason="needs pocketsphinx: pip install -e '.[dev]'"
)

#: Files that a model's options need besides.
OTHERS = {"dictionary": "no.dict", "lm": "no.lm"}


def noise(seconds: float, quiet: tuple[tuple[float, float], ...] = ()) -> NDArray[np.float32]:
    """Noise that is a thousandth as loud in some places."""
    samples = np.random.default_rng(3).uniform(-0.1, 0.1, round(seconds * RATE)).astype(np.float32)
    for start, end in quiet:
        samples[round(start * RATE) : round(end * RATE)] /= 1000
    return samples


def blocks(samples: NDArray[np.float32], size: int) -> Iterator[NDArray[np.float32]]:
    for first in range(0, len(samples), size):
        yield samples[first : first + size]


def test_a_recording_is_cut_where_it_is_quiet() -> None:
    samples = noise(11.0, ((1.0, 1.4), (3.0, 3.4), (6.5, 6.9)))
    whole = list(stretches([samples], 4.0, RATE))
    cuts = np.cumsum([len(part) for part in whole]) / RATE
    assert len(whole) == 4
    assert abs(cuts[0] - 3.2) < 0.06  # not 1.2: it is in the first half
    assert abs(cuts[1] - 6.7) < 0.06
    assert cuts[2] - cuts[1] <= 4.0
    assert np.array_equal(np.concatenate(whole), samples)
    for size in (160, 1001, 50_000):
        parts = stretches(blocks(samples, size), 4.0, RATE)
        assert [part.tobytes() for part in parts] == [part.tobytes() for part in whole]
    # What is short is not cut.
    samples = noise(4.0)
    assert [len(part) for part in stretches(blocks(samples, 999), 4.0, RATE)] == [len(samples)]
    assert list(stretches([], 4.0, RATE)) == []


@needs_pocketsphinx
def test_what_cannot_be_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[dict[str, Any], Code[Any], str]] = [
        *(({"parameters": given}, families.INVALID_VALUE, "parameters") for given in ({"beem": 1e-20}, {"lw": "much"})),
        ({"parameters": {"ascale": 10.0}}, families.INVALID_VALUE, "parameters"),
        ({**OTHERS, "model": "s3://bucket/model"}, families.UNSUPPORTED, "model"),
        ({**OTHERS, "model": "no/model"}, families.MISSING_MODEL, "model"),
        ({"lm": "no.lm"}, families.MISSING_MODEL, "lm"),
        ({"dictionary": "no.dict"}, families.MISSING_MODEL, "dictionary"),
    ]
    for options, code, key in cases:
        with raises(code, where=f"options.recogniser.options.{key}"):
            Recognition(options=options).identities()
    for others, missing in (({"lm": "x"}, "dictionary"), ({}, "dictionary and lm")):
        with pytest.raises(ValidationError, match=codes.MODEL_ALONE.text(missing=missing)[0]):
            Pocketsphinx(model="spanish", **others)
    monkeypatch.setattr(recognition, "find_spec", lambda name: None)
    with raises(families.NOT_INSTALLED, where="options.recogniser", extra="pocketsphinx"):
        Recognition().identities()


@needs_pocketsphinx
def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "words.dict").write_text("actor no phones\n")
    (tmp_path / "lm").write_text("nothing\n")
    options = Recognition(options={"dictionary": str(tmp_path / "words.dict"), "lm": str(tmp_path / "lm")})
    assert options.identities() != Recognition().identities()
    with raises(families.UNUSABLE_MODEL):
        options.loaded(LEAST[0])


@needs_pocketsphinx
@settings(max_examples=20, deadline=None)
@given(lines=st.lists(st.sampled_from(("good G UH D", "bad G QQ D", "mute", "## comment", "")), unique=True))
def test_lines_that_pocketsphinx_would_ignore_are_refused(lines: list[str]) -> None:
    """The first line whose phones are none, or none of the model's."""
    unigrams = "\n".join(f"-1 {word} 0" for word in ("<s>", "</s>", "good", "fine"))
    with tempfile.TemporaryDirectory() as folder:
        dictionary, model = Path(folder, "words.dict"), Path(folder, "words.arpa")
        dictionary.write_text("\n".join([*lines, "fine F AY N", ""]))
        ignored = [k for k, line in enumerate(lines, 1) if line in ("bad G QQ D", "mute")]
        model.write_text(f"\\data\\\nngram 1=4\n\n\\1-grams:\n{unigrams}\n\n\\end\\\n")
        options = Recognition(options={"dictionary": str(dictionary), "lm": str(model)})
        with raises(families.MALFORMED_LINE, where=f"{dictionary}:{ignored[0]}") if ignored else nullcontext():
            options.loaded(LEAST[0])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus(tmp_path_factory.mktemp("english"))


@needs_pocketsphinx
def test_a_recognition_depends_on_its_recording_alone(corpus: Path) -> None:
    recogniser = Pocketsphinx.model_validate(small_recogniser(corpus))
    paths = sorted((corpus / "audio_queries").iterdir())[:4]

    def made(path: Path) -> tuple[bytes, tuple[str, ...], list[str]]:
        samples = list(read_blocks(str(path), rate=RATE))
        lattice = recogniser.lattice(path.stem, 1, samples)
        return lattice.graph.tobytes() + lattice.times.tobytes(), lattice.labels, recogniser.texts(samples)

    first = [made(path) for path in paths]
    pocketsphinx._decoder.cache_clear()
    recogniser = Pocketsphinx.model_validate(small_recogniser(corpus))
    assert [made(path) for path in paths[::-1]] == first[::-1]
    assert all(words for *_, words in first)


def connected(lattice: Lattice) -> float:
    """The likelihood of all paths: 1 where each state's chances sum to 1."""
    reached = np.zeros(lattice.states)
    reached[lattice.start] = 1.0
    pending, ready = np.bincount(lattice.target, minlength=lattice.states), [lattice.start]
    while ready:
        state = ready.pop()
        for arc in np.flatnonzero(lattice.source == state):
            target = int(lattice.target[arc])
            reached[target] += reached[state] * np.exp(-lattice.graph[arc])
            pending[target] -= 1
            if not pending[target]:
                ready.append(target)
    return float(reached[np.isfinite(lattice.final_graph)].sum())


@needs_pocketsphinx
def test_stretches_are_one_lattice(corpus: Path) -> None:
    options = small_recogniser(corpus)
    path = str(min((corpus / "audio").iterdir()))
    samples = np.concatenate(list(read_blocks(path, rate=RATE)))[: 6 * RATE]
    parts = list(stretches([samples], 2.5, RATE))
    assert len(parts) > 2
    recogniser = Pocketsphinx.model_validate({**options, "longest": 2.5})
    joined = recogniser.lattice("joined", 2, [samples])
    singles = [recogniser.lattice("single", 1, [part]) for part in parts]
    assert (joined.key, joined.channel, joined.length) == ("joined", 2, round(1000 * len(samples) / RATE))
    assert set(joined.labels) == {label for single in singles for label in single.labels}
    assert joined.states == sum(single.states - 2 for single in singles) + 2
    assert connected(joined) == pytest.approx(1.0, abs=1e-3)
    begin = 0
    for single, part in zip(singles, parts, strict=True):
        inside = single.times[1:-1] + round(1000 * begin / RATE)
        assert np.isin(inside, joined.times).all()
        begin += len(part)
    each = [text.labels for part in parts for text in recogniser.texts([part])]
    assert recogniser.texts([samples]) == [Text(tuple(label for labels in each for label in labels))]


@needs_pocketsphinx
def test_silence_has_no_words(corpus: Path) -> None:
    recogniser = Pocketsphinx.model_validate(small_recogniser(corpus))
    for samples in (np.zeros(RATE, np.float32), np.zeros(0, np.float32), noise(0.05)):
        lattice = recogniser.lattice("silence", 1, [samples])
        assert (lattice.labels, lattice.states) == (("",), 2)
        assert lattice.length == round(1000 * len(samples) / RATE)
        assert recogniser.texts([samples]) == []


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
