"""MFCC against librosa, the definition, to 1e-4; and in blocks against the whole.

librosa is told all that its defaults would otherwise decide: n_fft, win_length, hop_length, window, center=False and no top_db,
and is given float64 samples, so that its own rounding does not count.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.ndimage import correlate1d
from scipy.signal import get_window

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features import blocks as cutting
from swsdist.features.blocks import BLOCK_FRAMES, in_blocks
from swsdist.features.interface import frame_count
from swsdist.features.librosa import library
from swsdist.features.mfcc import Mfcc, _delta_weights, mel_frequencies, triangles, with_deltas
from tests.support.coded import raises

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
TOLERANCE = 1e-4

OPTIONS = {
    "default": {},
    "no deltas": {"deltas": 0},
    "slopes, narrow": {"deltas": 1, "delta_width": 3},
    "curvatures, wide": {"deltas": 2, "delta_width": 15},
    "hamming": {"window": "hamming"},
    "window fills the transform": {"win_length": 512},
    "window of odd length": {"win_length": 399, "n_fft": 512},
    "transform of no power of two": {"n_fft": 400, "win_length": 400},
    "odd transform": {"n_fft": 405, "win_length": 405},
    "transform of a prime": {"n_fft": 2 * 211, "win_length": 401},
    "band": {"fmin": 64.0, "fmax": 7000.0, "n_mels": 30, "n_mfcc": 20},
    "all mels": {"n_mels": 23, "n_mfcc": 23, "hop_length": 80},
    "telephone": {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80, "fmax": 3800.0},
}


OF_LIBROSA = ("n_fft", "hop_length", "win_length", "window", "n_mels", "fmin", "fmax")


def by_librosa(mfcc: Mfcc, samples: np.ndarray) -> np.ndarray:
    """What librosa makes of it, (frames, dimension)."""
    power = library().feature.melspectrogram(
        y=samples.astype(np.float64),
        sr=mfcc.sample_rate,
        center=False,
        power=2.0,
        dtype=np.float64,
        **{name: getattr(mfcc, name) for name in OF_LIBROSA},
    )
    decibels = library().power_to_db(power, ref=1.0, amin=1e-10, top_db=None)
    static = library().feature.mfcc(S=decibels, n_mfcc=mfcc.n_mfcc, dct_type=2, norm="ortho")
    deltas = [
        library().feature.delta(static, width=mfcc.delta_width, order=order, mode="nearest")
        for order in range(1, mfcc.deltas + 1)
    ]
    return np.concatenate([static, *deltas]).T


def signal(kind: str, samples: int, rate: int = 16000) -> np.ndarray:
    rng = np.random.default_rng(1)
    time = np.arange(samples) / rate
    made = {
        "noise": lambda: rng.normal(scale=0.1, size=samples),
        "silence": lambda: np.zeros(samples),
        "sine": lambda: 0.5 * np.sin(2 * np.pi * 440 * time),
        "full scale": lambda: np.sign(np.sin(2 * np.pi * 100 * time)),
        "one click": lambda: np.where(np.arange(samples) == samples // 2, 1.0, 0.0),
        "faint": lambda: rng.normal(scale=2**-15, size=samples),
        "constant": lambda: np.full(samples, 0.25),
    }
    return made[kind]().astype(np.float32)


def check(mfcc: Mfcc, samples: np.ndarray) -> None:
    expected = by_librosa(mfcc, samples)
    found = mfcc.extract(samples)
    assert found.dtype == np.float32
    assert found.shape == expected.shape == (frame_count(mfcc, len(samples)), mfcc.dimension)
    assert np.abs(found - expected).max() <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", ["noise", "silence", "sine", "full scale", "one click", "faint", "constant"])
def test_equals_librosa(options: dict, kind: str) -> None:
    check(Mfcc(**options), signal(kind, 12_345))


def test_few_frames_and_the_seams_of_the_transform() -> None:
    mfcc = Mfcc()
    for frames in (1, 2, 4, 5, 9, 10, 511, 512, 513):
        check(mfcc, signal("noise", mfcc.frame_length + (frames - 1) * mfcc.hop))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_equals_librosa_on_recordings(options: dict) -> None:
    audio = SHARED / "data" / "mboshi" / "tiny" / "audio"
    if not audio.is_dir():
        pytest.skip("shared/data/mboshi/tiny is not beside this checkout")
    for path in sorted(audio.glob("*.flac"))[:3]:
        samples, rate = soundfile.read(path, dtype="float32")
        assert rate == 16000
        check(Mfcc(**options), samples)


@pytest.mark.parametrize("options", [{}, {"n_fft": 405, "win_length": 405}], ids=str)
def test_a_frame_depends_on_its_samples_alone(options: dict) -> None:
    """Whatever lane it is computed in, and whatever is beside it."""
    mfcc, samples = Mfcc(deltas=0, **options), signal("noise", 12_345)
    whole = mfcc.extract(samples)
    for first in (1, 7, 16, 40):
        begin, beyond = first * mfcc.hop, first + -(-mfcc.frame_length // mfcc.hop)
        loud = np.concatenate([np.float32(1e4) * samples[:begin], samples[begin:]])
        assert mfcc.extract(samples[begin:]).tobytes() == whole[first:].tobytes()
        assert mfcc.extract(loud)[beyond:].tobytes() == whole[beyond:].tobytes()


def test_samples_that_are_not_finite() -> None:
    for value in (np.nan, np.inf, -np.inf):
        samples = signal("noise", 12_345)
        samples[6000] = value
        frames = Mfcc(deltas=0).extract(samples)
        covered = [160 * t + 56 <= 6000 < 160 * t + 456 for t in range(len(frames))]
        assert np.isfinite(frames).all(axis=1).tolist() == [not each for each in covered]


def test_windows_are_those_of_scipy() -> None:
    for window, length in product(("hann", "hamming"), (2, 399, 400)):
        made = Mfcc(window=window, win_length=length)._window
        assert np.abs(made - get_window(window, length, fftbins=True)).max() < 1e-15


def test_filters_are_those_of_librosa() -> None:
    for rate, n_fft, bands, fmin, fmax in (
        *((16000, 512, 40, 0, 8000), (8000, 256, 30, 64, 3800)),
        *((16000, 405, 23, 0, 900), (44100, 2048, 128, 20, 16000)),
    ):
        edges = mel_frequencies(bands + 2, fmin, fmax)
        assert np.allclose(edges, library().mel_frequencies(bands + 2, fmin=fmin, fmax=fmax), rtol=1e-14, atol=0)
        filters = library().filters.mel(sr=rate, n_fft=n_fft, n_mels=bands, fmin=fmin, fmax=fmax, dtype=np.float64)
        assert np.allclose(triangles(edges, np.fft.rfftfreq(n_fft, 1 / rate)), filters, rtol=1e-12, atol=1e-15)


def test_differences_are_those_of_scipy() -> None:
    for width, frames in product((3, 9, 31), (1, 2, 7, 100)):
        static = np.random.default_rng(0).normal(scale=10, size=(frames, 13))
        wanted = [correlate1d(static, _delta_weights(width, order), axis=0, mode="nearest") for order in (1, 2)]
        expected = np.concatenate([static, *wanted], 1).astype(np.float32)
        assert with_deltas(static, 2, width).tobytes() == expected.tobytes()


def test_options_that_cannot_be() -> None:
    for options in (
        *({"win_length": 600}, {"n_mfcc": 41}, {"delta_width": 8}, {"delta_width": 1}, {"deltas": 3}, {"deltas": -1}),
        *({"n_mffc": 13}, {"window": "kaiser"}, {"hop_length": 0}),
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            Mfcc(**options)


class Sums:
    """An extractor whose frames are exact: small integers, summed over the frame and over `context` frames around it."""

    name, version, sample_rate, dimension = "sums", 1, 100, 2

    def __init__(self, frame_length: int, hop: int, context: int) -> None:
        self.frame_length, self.hop, self.context = frame_length, hop, context

    def extract(self, samples: np.ndarray) -> np.ndarray:
        count = frame_count(self, len(samples))
        starts = np.arange(count) * self.hop
        sums = np.array([samples[s : s + self.frame_length].sum() for s in starts], np.float32)
        around = np.pad(sums, self.context, mode="edge") if count else sums
        wide = [around[t : t + 2 * self.context + 1].sum() for t in range(count)]
        return np.stack([sums, np.array(wide, np.float32)], axis=1).reshape(count, 2)

    def describe(self) -> dict:
        return {"frame_length": self.frame_length, "hop": self.hop, "context": self.context}


def chunks(samples: np.ndarray, lengths: list[int]) -> list[np.ndarray]:
    """Cut into pieces of these lengths, over and over."""
    cut, k, position = [], 0, 0
    while position < len(samples):
        length = lengths[k % len(lengths)]
        cut.append(samples[position : position + length])
        position, k = position + length, k + 1
    return cut


@settings(max_examples=200)
@given(
    block=st.integers(1, 7),
    blocks=st.integers(0, 4),
    more=st.integers(-3, 3),
    spare=st.integers(0, 4),
    frame_length=st.integers(1, 5),
    hop=st.integers(1, 6),
    context=st.integers(0, 9),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
@example(block=4, blocks=2, more=0, spare=0, frame_length=3, hop=1, context=9, lengths=[1])
@example(block=1, blocks=1, more=0, spare=1, frame_length=1, hop=2, context=0, lengths=[1])  # a hop longer than a frame
@example(block=1, blocks=4, more=0, spare=0, frame_length=1, hop=6, context=2, lengths=[7])
def test_blocks_are_the_whole(block, blocks, more, spare, frame_length, hop, context, lengths) -> None:
    """Whatever the length of blocks, recording, context and chunks: exactly, since all sums are integers."""
    extractor = Sums(frame_length, hop, context)
    frames = max(1, block * blocks + more)
    samples = (np.arange(frame_length + (frames - 1) * hop + spare) * 7919 % 101).astype(np.float32)
    whole = extractor.extract(samples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "BLOCK_FRAMES", block)
        found = list(in_blocks(extractor, chunks(samples, lengths)))
    assert [len(part) for part in found[:-1]] == [block] * (len(found) - 1)
    assert 1 <= len(found[-1]) <= block
    assert np.array_equal(np.concatenate(found), whole)


@pytest.mark.parametrize("more", [-1, 0, 1, 4, 5])
@pytest.mark.parametrize("blocks", [1, 2])
def test_mfcc_in_blocks(blocks: int, more: int) -> None:
    """The same bytes for any chunks, and as those of the whole."""
    mfcc = Mfcc(sample_rate=8000, n_fft=64, win_length=50, hop_length=20, n_mels=13)
    frames = blocks * BLOCK_FRAMES + more
    samples = signal("noise", mfcc.frame_length + (frames - 1) * mfcc.hop + 3)
    one = np.concatenate(list(in_blocks(mfcc, [samples])))
    assert one.shape == (frames, mfcc.dimension)
    for lengths in ([1000], [50_000, 1, 333], [len(samples) - 1, 1]):
        other = np.concatenate(list(in_blocks(mfcc, chunks(samples, lengths))))
        assert other.tobytes() == one.tobytes()
    assert one.tobytes() == mfcc.extract(samples).tobytes()


def test_blocks_of_too_little() -> None:
    assert Mfcc().extract(np.zeros(511, np.float32)).shape == (0, 39)
    with raises(families.TOO_SHORT, seconds=0.032):
        list(in_blocks(Mfcc(), [np.zeros(100, np.float32), np.zeros(411, np.float32)]))
    with raises(families.TOO_SHORT):
        list(in_blocks(Mfcc(), []))


def test_a_feature_that_is_not_finite_is_refused() -> None:
    class Broken(Sums):
        def extract(self, samples: np.ndarray) -> np.ndarray:
            return super().extract(samples) / np.float32(0)

    with np.errstate(all="ignore"), raises(codes.NON_FINITE_FEATURES):
        list(in_blocks(Broken(2, 1, 0), [np.ones(9, np.float32)]))
