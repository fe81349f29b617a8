"""The synthetic corpus: the same seed gives the same bytes, and what the tables say is what can be heard."""

from __future__ import annotations

import csv
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.features.librosa import library
from swsdist.testing.synthesis import make_corpus
from swsdist.testing.synthesis.signal import (
    CONSONANTS,
    RATE,
    STEP,
    VOWELS,
    Voice,
    draw_voice,
    draw_words,
    speak,
    synthesise,
)
from tests.support.coded import raises

SMALL = {"documents": 8, "queries": 3, "voices": 3}


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def power(sound: np.ndarray, start: float, end: float) -> float:
    return float(np.mean(sound[round(start * RATE) : round(end * RATE)] ** 2))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder, seed=3, **SMALL)
    return folder


@pytest.fixture(scope="module")
def voice() -> Voice:
    return draw_voice(np.random.default_rng(1), 0)


def say(voice: Voice, word: str) -> np.ndarray:
    rng = np.random.default_rng(5)
    return synthesise(rng, voice, speak(rng, voice, [word], margin=0.0, pauses=set()).tracks)


def features(path: Path) -> np.ndarray:
    """13 MFCC with first and second differences: (frames, 39)."""
    sound, _ = soundfile.read(path, dtype="float32")
    cepstra = library().feature.mfcc(
        y=sound, sr=RATE, n_mfcc=13, n_fft=512, win_length=400, hop_length=160, center=False
    )
    slopes = library().feature.delta(cepstra, width=5, mode="nearest")
    return np.vstack([cepstra, slopes, library().feature.delta(slopes, width=5, mode="nearest")]).T


def share(sound: np.ndarray, low: float, high: float) -> float:
    """Part of the power that lies between two frequencies."""
    spectrum = np.abs(np.fft.rfft(sound)) ** 2
    frequency = np.fft.rfftfreq(sound.size, 1 / RATE)
    return float(spectrum[(frequency >= low) & (frequency < high)].sum() / spectrum.sum())


def test_same_seed_same_bytes_in_another_process(corpus: Path, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from swsdist.testing.synthesis import make_corpus;"
        f"make_corpus(Path({str(tmp_path)!r}), seed=3, documents=8, queries=3, voices=3)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert digests(tmp_path) == digests(corpus)


def test_another_seed_another_corpus(corpus: Path, tmp_path: Path) -> None:
    make_corpus(tmp_path, seed=4, **SMALL)
    ours, theirs = digests(corpus), digests(tmp_path)
    assert not {theirs[name] for name in theirs} & {ours[name] for name in ours}


def test_tables_have_their_columns_and_name_every_file(corpus: Path) -> None:
    docs, queries = table(corpus / "docs.csv"), table(corpus / "queries.csv")
    assert list(docs[0]) == ["doc_id", "path", "duration", "speaker"]
    assert list(queries[0]) == ["query_id", "term", "example", "path", "duration", "speaker"]
    assert list(table(corpus / "refs.csv")[0]) == ["query_id", "doc_id", "channel", "start", "end"]
    assert len(docs) == len({row["doc_id"] for row in docs}) == 8
    tables = {"docs.csv", "queries.csv", "refs.csv"}
    assert {row["path"] for row in docs + queries} == set(digests(corpus)) - tables


def test_sound_is_as_the_tables_say(corpus: Path) -> None:
    for row in table(corpus / "docs.csv") + table(corpus / "queries.csv"):
        info = soundfile.info(corpus / row["path"])
        assert (info.samplerate, info.channels, info.subtype) == (RATE, 1, "PCM_16")
        assert info.frames == round(float(row["duration"]) * RATE)
        sound, _ = soundfile.read(corpus / row["path"])
        assert 0.85 < np.abs(sound).max() < 0.95


def test_each_query_has_two_or_three_examples_by_different_voices(corpus: Path) -> None:
    rows = table(corpus / "queries.csv")
    for query in ("q001", "q002", "q003"):
        of_query = [row for row in rows if row["query_id"] == query]
        assert [row["example"] for row in of_query] == [str(1 + place) for place in range(len(of_query))]
        assert len({row["speaker"] for row in of_query}) == len(of_query)
        assert len(of_query) in (2, 3)
        assert len({row["term"] for row in of_query}) == 1
        assert all(0.2 < float(row["duration"]) < 2.0 for row in of_query)


def test_references_lie_in_their_documents_where_somebody_speaks(corpus: Path) -> None:
    docs = {row["doc_id"]: row for row in table(corpus / "docs.csv")}
    refs = table(corpus / "refs.csv")
    assert {row["query_id"] for row in refs} == {"q001", "q002", "q003"}
    for row in refs:
        start, end = float(row["start"]), float(row["end"])
        assert 0 <= start < end <= float(docs[row["doc_id"]]["duration"])
        assert 0.2 < end - start < 2.0
        sound, _ = soundfile.read(corpus / docs[row["doc_id"]]["path"])
        # Before the first word are at least 0.1 s of pause.
        assert power(sound, start, end) > 10 * power(sound, 0.0, 0.08)


@pytest.mark.slow
def test_true_occurrences_stand_out_but_not_perfectly(tmp_path: Path) -> None:
    """The task is one worth demonstrating: MFCC, cosine and subsequence DTW solve it well, and not without errors."""
    make_corpus(tmp_path)
    docs = {row["doc_id"]: features(tmp_path / row["path"]) for row in table(tmp_path / "docs.csv")}
    everything = np.vstack(list(docs.values()))
    mean, deviation = everything.mean(0), everything.std(0)
    true = {(row["query_id"], row["doc_id"]) for row in table(tmp_path / "refs.csv")}
    hits, others = [], []
    for row in table(tmp_path / "queries.csv"):
        if row["example"] != "1":
            continue
        query = (features(tmp_path / row["path"]) - mean) / deviation
        for doc_id, frames in docs.items():
            document = (frames - frames.mean(0)) / frames.std(0)
            costs = library().sequence.dtw(query.T, document.T, metric="cosine", subseq=True, backtrack=False)
            score = -costs[-1].min() / len(query)
            (hits if (row["query_id"], doc_id) in true else others).append(score)
    above = np.mean(np.array(hits)[:, None] > np.array(others))
    assert 0.85 < above < 0.97


def test_nothing_sounds_outside_the_words(voice: Voice) -> None:
    rng = np.random.default_rng(2)
    words = draw_words(rng, 9, (1, 2, 3))
    speech = speak(rng, voice, words, margin=0.2, pauses={3})
    loud = np.max([speech.tracks.voicing, speech.tracks.breath, speech.tracks.noise], axis=0)
    inside = np.zeros(loud.size, dtype=bool)
    for first, last in speech.words:
        assert loud[first:last].max() > 0.1
        inside[first - 3 : last + 3] = True  # smoothing reaches 15 ms further
    assert loud[~inside].max() == 0.0
    assert len(speech.words) == len(words)
    assert all(a[1] <= b[0] for a, b in zip(speech.words, speech.words[1:], strict=False))
    pause = (speech.words[4][0] - speech.words[3][1]) * STEP
    assert 0.17 < pause < 0.51


def test_the_voice_has_its_pitch(voice: Voice) -> None:
    rng = np.random.default_rng(5)
    tracks = speak(rng, voice, ["alala"], margin=0.0, pauses=set()).tracks
    sound = synthesise(rng, voice, tracks)
    middle = sound[sound.size // 2 - 1024 : sound.size // 2 + 1024].astype(np.float64)
    correlation = np.correlate(middle, middle, mode="full")[middle.size - 1 :]
    lags = np.arange(RATE // 300, RATE // 70)
    heard = RATE / lags[np.argmax(correlation[lags])]
    assert heard == pytest.approx(tracks.pitch[tracks.pitch.size // 2], rel=0.1)


def test_places_are_those_of_the_words(voice: Voice) -> None:
    words = ["mamama", "sasisu", "nalo", "sesoʃa", "lilu"]
    speech = speak(np.random.default_rng(4), voice, words, margin=0.1, pauses={1})
    for word, (first, last) in zip(words, speech.words, strict=True):
        noisy = np.count_nonzero(speech.tracks.noise[first + 3 : last - 3])
        assert noisy == 0 if not set(word) & set("sʃ") else noisy > 10


def test_sounds_have_their_spectra(voice: Voice) -> None:
    assert share(say(voice, "sisisi"), 4500, 8000) > 10 * share(say(voice, "mamama"), 4500, 8000)
    # The second formant tells front from back, the first one open from close.
    assert share(say(voice, "ii"), 1900, 2700) > 10 * share(say(voice, "uu"), 1900, 2700)
    assert share(say(voice, "aa"), 600, 1000) > 4 * share(say(voice, "ii"), 600, 1000)


def test_every_phone_can_be_said_by_every_kind_of_voice() -> None:
    for index in range(2):
        speaker = draw_voice(np.random.default_rng([9, index]), index)
        for consonant in CONSONANTS:
            for vowel in VOWELS:
                assert np.isfinite(say(speaker, consonant + vowel)).all()


def test_the_same_word_is_never_said_twice_alike(voice: Voice) -> None:
    rng = np.random.default_rng(8)
    lengths = {speak(rng, voice, ["katolu"], margin=0.02, pauses=set()).tracks.pitch.size for _ in range(8)}
    assert len(lengths) > 3


def test_no_word_contains_a_term() -> None:
    rng = np.random.default_rng(0)
    terms = ["ba", "tu"]
    words = draw_words(rng, 300, (1, 2, 3), avoid=terms)
    assert len(set(words)) == 300
    assert not any(term in word for word in words for term in terms)


def test_more_queries_than_fit_into_the_sentences(tmp_path: Path) -> None:
    make_corpus(tmp_path, documents=2, queries=40, voices=2)
    assert len({row["query_id"] for row in table(tmp_path / "refs.csv")}) == 40


@pytest.mark.parametrize(("name", "value"), [("seed", -1), ("documents", 1), ("queries", 0), ("voices", 1)])
def test_too_little_is_refused(tmp_path: Path, name: str, value: int) -> None:
    with raises(families.INVALID_VALUE) as caught:
        make_corpus(tmp_path / "corpus", **{name: value})
    assert caught.value.remedy is not None
    assert not (tmp_path / "corpus").exists()
