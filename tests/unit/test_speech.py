"""Where the speech of a recording is: words of the made-up language, with what people record around them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import soundfile
import soxr

from swsdist.audio.speech import Place, find_speech, levels
from swsdist.testing.synthesis import make_corpus

RATE = 16000
RNG = np.random.default_rng(10)


@pytest.fixture(autouse=True)
def same_noise() -> None:
    """Whatever was tested before."""
    RNG.bit_generator.state = np.random.default_rng(10).bit_generator.state


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> list[np.ndarray]:
    """Words as people cut them, without what is around them."""
    folder = tmp_path_factory.mktemp("words")
    make_corpus(folder, documents=2, queries=6, voices=3)
    found = []
    for path in sorted((folder / "queries").iterdir()):
        samples, rate = soundfile.read(path, dtype="float32")
        assert rate == RATE
        found.append(samples / np.abs(samples).max() * 0.5)
    return found


def noise(seconds: float, level: float = -60.0) -> np.ndarray:
    """White, of a level in dB of full scale."""
    return RNG.normal(scale=10 ** (level / 20), size=round(seconds * RATE))


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE))


def hum(seconds: float) -> np.ndarray:
    """Mains: 50 Hz and overtones, louder than a weak sound of speech."""
    time = np.arange(round(seconds * RATE)) / RATE
    return sum(0.03 / k**2 * np.sin(2 * np.pi * 50 * k * time) for k in (1, 2, 3, 5)) + noise(seconds, -75)


def breath(seconds: float) -> np.ndarray:
    """Noise of a mouth, which swells and falls, in a quiet room."""
    size = round(0.25 * RATE)
    out = noise(seconds, -65)
    first = len(out) // 2 - size // 2
    out[first : first + size] += np.convolve(RNG.normal(size=size), np.ones(4) / 4, "same") * np.hanning(size) * 0.05
    return out


def clicks(seconds: float) -> np.ndarray:
    """A finger on a button, 20 ms each, as loud as the word."""
    out = noise(seconds, -65)
    for at in (0.3, 0.6):
        first = round(at * len(out))
        out[first : first + 320] += RNG.normal(scale=0.3, size=320) * np.exp(-np.arange(320) / 60)
    return out


def music(seconds: float) -> np.ndarray:
    """A chord from another room, 30 dB below the word."""
    time = np.arange(round(seconds * RATE)) / RATE
    return sum(0.004 * np.sin(2 * np.pi * f * time) for f in (262, 330, 392, 523)) + noise(seconds, -70)


AROUND: dict[str, Callable[[float], np.ndarray]] = {"faint noise": noise, "digital silence": silence, "hum": hum}
AROUND |= {"breath": breath, "clicks": clicks, "music": music}


def found(*parts: np.ndarray, rate: int = RATE) -> Place | None:
    return find_speech(np.concatenate(parts).astype(np.float32), rate)


@pytest.mark.parametrize("around", AROUND)
def test_what_is_around_a_word_is_cut_off(around: str, words: list[np.ndarray]) -> None:
    for word in words:
        before, after = AROUND[around](0.7), AROUND[around](0.6)
        place = found(before, word, after)
        assert place is not None
        true = np.array([len(before), len(before) + len(word)]) / RATE
        assert place.duration == pytest.approx((len(before) + len(word) + len(after)) / RATE)
        # Of the word's ends, weak sounds may be lost; of what is around it next to nothing is left.
        assert -0.06 <= place.start - true[0] <= 0.16
        assert -0.16 <= place.end - true[1] <= 0.06
        for gap, loud in (
            (0.0, word),
            (0.5, np.clip(word * 8, -1, 1)),
        ):  # a word alone stays whole; one that is clipped
            place = found(noise(gap), loud, noise(gap))
            assert place is not None
            assert abs(place.start - gap) <= 0.16
            assert abs(place.duration - place.end - gap) <= 0.16


@pytest.mark.parametrize("level", [-80, -50])
@pytest.mark.parametrize("rate", [8000, 11025, 16000, 44100])
def test_long_rests(rate: int, level: float, words: list[np.ndarray]) -> None:
    """A word of a second in 28 s of noise, inaudible or audible: the same place at all rates."""
    word = soxr.resample(words[0][: round(0.6 * RATE)], RATE, rate)
    rest = RNG.normal(scale=10 ** (level / 20), size=28 * rate + len(word))
    place = found(rest + np.concatenate([np.zeros(20 * rate), word, np.zeros(8 * rate)]), rate=rate)
    assert place is not None
    assert abs(place.start - 20) <= 0.03
    assert -0.16 <= place.end - 20.6 <= 0.06
    assert found(rest, rate=rate) is None


@pytest.mark.parametrize(("gap", "together"), [(0.2, True), (0.4, True), (1.2, False)])
def test_bursts_of_one_phrase_stay_together(gap: float, together: bool, words: list[np.ndarray]) -> None:
    first, second = words[0] * 0.5, words[1]
    place = found(noise(0.5), first, noise(gap), second, noise(0.5))
    assert place is not None
    borders = np.cumsum([0.5, len(first) / RATE, gap, len(second) / RATE])
    assert abs(place.start - (borders[0] if together else borders[2])) <= 0.16
    assert abs(place.end - borders[3]) <= 0.16


SPEECHLESS = {name: AROUND[name] for name in ("digital silence", "hum", "clicks", "breath")}
SPEECHLESS |= {"loud noise": partial(noise, level=-30), "faint noise": partial(noise, level=-90)}


def test_no_speech_and_too_short_to_tell() -> None:
    assert {name: found(sound(1.5)) for name, sound in SPEECHLESS.items()} == dict.fromkeys(SPEECHLESS)
    assert found(noise(0.02)) == Place(0.0, 0.02, 0.02)
    for rate in (1, 100, 1999):
        assert found(noise(1.0)[: 2 * rate], rate=rate) == Place(0.0, 2.0, 2.0)


@pytest.mark.parametrize("hz", [(440,), (1000,), (770, 1336), (350, 440)])
@pytest.mark.parametrize("level", [-80, -50])
@pytest.mark.parametrize("around", [0.0, 0.5])
def test_a_tone_is_no_speech(hz: tuple[int, ...], level: float, around: float) -> None:
    time = np.arange(round(0.6 * RATE)) / RATE
    tone = sum(0.2 * np.sin(2 * np.pi * f * time) for f in hz) + noise(0.6, level)
    assert found(noise(around, level), tone, noise(around, level)) is None


@pytest.mark.parametrize("offset", [-0.5, 0.1, 0.5])
@pytest.mark.parametrize("level", [0, -20, -35])
def test_an_offset_of_the_samples_changes_no_place(offset: float, level: float, words: list[np.ndarray]) -> None:
    for word in words:
        samples = np.concatenate([noise(0.7, -80), word * 10 ** (level / 20), noise(0.6, -80)])
        assert found(samples + offset) == found(samples)


def test_levels_are_those_of_the_definition() -> None:
    time = np.arange(RATE) / RATE
    tone = levels(np.sin(2 * np.pi * 1000 * time).astype(np.float32), RATE)
    assert len(tone.power) == 98
    assert np.abs(tone.power / 4 - -3.0).max() <= 0.5  # a sine of full scale
    assert np.abs(tone.hum).max() == 0
    assert tone.flatness.max() < -30 * 4
    low = levels(np.sin(2 * np.pi * 50 * time).astype(np.float32), RATE)
    assert low.hum.max() < -20 * 4
    flat = levels(noise(2.0, -20).astype(np.float32), RATE)
    assert flat.flatness.min() > -5 * 4
    # A quarter of a dB is what is looked at: what is smaller than that decides nothing.
    samples = noise(1.0, -20).astype(np.float32)
    again = levels((samples * np.float32(1 + 1e-6)).astype(np.float32), RATE)
    assert np.abs(again.power - levels(samples, RATE).power).max() <= 1
