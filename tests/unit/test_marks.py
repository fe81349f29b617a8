"""Marks of speech in recordings of any length, and how they are kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_speech import AROUND, RATE, SPEECHLESS, noise, silence
from test_speech import same_noise as same_noise  # the fixtures
from test_speech import words as words

from swsdist.audio.speech import Listener, pack_marks, unpack_marks

HOP, LENGTH = 160, 400


def marks(
    *parts: np.ndarray, rate: int = RATE, block: int = 1 << 20, hop: int = HOP, length: int = LENGTH
) -> np.ndarray:
    """Of a recording that comes in blocks."""
    samples = np.concatenate(parts).astype(np.float32)
    listener = Listener(rate)
    for first in range(0, len(samples), block):
        listener.add(samples[first : first + block])
    return listener.marks(max(0, 1 + (len(samples) - length) // hop), hop, length)


@pytest.mark.parametrize("around", AROUND)
def test_words_are_marked_and_what_is_between_them_is_not(around: str, words: list[np.ndarray]) -> None:
    gap = AROUND[around](3.0)
    parts = [gap]
    inside = [np.zeros(len(gap), bool)]
    for word in words:
        parts += [word, gap]
        inside += [np.ones(len(word), bool), np.zeros(len(gap), bool)]
    found, true = marks(*parts), np.concatenate(inside)
    true = true[LENGTH // 2 :: HOP][: len(found)]
    # Clicks are as loud as words; what stands beside speech is kept with it.
    assert found[true].mean() >= 0.97
    assert found[~true].mean() <= 0.2


@pytest.mark.parametrize("sound", SPEECHLESS)
def test_nothing_is_marked_where_there_is_no_speech(sound: str) -> None:
    assert marks(SPEECHLESS[sound](4.0)).mean() == 0


def test_a_quiet_speaker_minutes_after_a_loud_one(words: list[np.ndarray]) -> None:
    loud = np.concatenate([part for word in words * 8 for part in (word, noise(1.0, -75))])
    quiet = 0.01 * np.concatenate([part for word in words * 8 for part in (word, silence(1.0))]) + noise(
        len(words) * 8 + sum(map(len, words)) * 8 / RATE, -90
    )
    found = marks(loud, noise(60, -90), quiet)
    for name, first, last in (("loud", 0, len(loud)), ("quiet", len(found) * HOP - len(quiet), len(found) * HOP)):
        part = found[first // HOP : last // HOP].mean()
        assert 0.2 < part < 0.9, name


@settings(deadline=None)
@given(st.integers(1, 40_000), st.sampled_from([8000, 11025, 16000]))
def test_blocks_change_nothing(block: int, rate: int) -> None:
    rng = np.random.default_rng(block)
    samples = rng.normal(size=30_000) * np.repeat(rng.random(30) ** 4, 1000)
    whole, pieces = (marks(samples, rate=rate, block=size, hop=100, length=250) for size in (1 << 20, block))
    assert np.array_equal(whole, pieces)


@pytest.mark.parametrize("rate", [11025, 16000])
def test_marks_do_not_drift(rate: int, words: list[np.ndarray]) -> None:
    """10 ms are no whole number of samples at 11025 Hz: after ten minutes frames would be a second off."""
    word = np.interp(np.arange(0, len(words[0]), RATE / rate), np.arange(len(words[0])), words[0])
    gap = RNG_NOISE[: 30 * rate]
    samples = np.concatenate([part for _ in range(20) for part in (gap, word)])
    hop = rate // 50
    found = marks(samples, rate=rate, hop=hop, length=2 * hop)
    last = np.flatnonzero(found)[-1] * hop
    assert abs(last - len(samples)) < 0.3 * rate


RNG_NOISE = np.random.default_rng(4).normal(scale=1e-4, size=30 * 16000)


@given(st.lists(st.booleans(), max_size=40))
def test_bits(values: list[bool]) -> None:
    assert unpack_marks(pack_marks(np.array(values, np.bool_)), len(values)).tolist() == values
    assert len(pack_marks(np.array(values, np.bool_))) == -(-len(values) // 8)
    for rate, samples in ((1999, 5000), (16000, 399)):  # what cannot be heard is speech
        assert marks(np.zeros(samples), rate=rate, hop=50, length=100).all()


@pytest.mark.parametrize(("seconds", "offset"), [(0.4, 0.0), (0.4, 0.01), (1.5, 0.0), (40.0, 0.0)])
def test_digital_silence_changes_no_other_mark(seconds: float, offset: float, words: list[np.ndarray]) -> None:
    """A seam, or a blanked name, in the middle of a word, in a room and in none."""
    for room in (noise(0.1, -70), silence(0.1)):
        parts = [part for word in words * 3 for part in (word, room)]
        word, where = parts[4], sum(map(len, parts[:4])) + len(parts[4]) // 2
        parts[4:5] = [word[: len(word) // 2], np.full(round(seconds * RATE), offset), word[len(word) // 2 :]]
        found = marks(*parts)
        begin, end = where // HOP, where // HOP + round(seconds * RATE) // HOP
        assert not found[begin + 1 : end - 2].any()
        without = marks(*parts[:5], *parts[6:])
        assert np.mean(np.delete(found, np.s_[begin:end])[: len(without)] == without) > 0.98
