"""PLP against HTK, and against the formulas.

`htk_plp.npz` holds 0.42 s of speech and what HCopy of HTK 3.4 makes of them: a part of `test.wav` and `test.wav.plp_htk.1` of
Kaldi's src/feat/test_data (the recording is free of copyright, says the README there; TARGETKIND PLP_D_A_0, 23 bands from 0 to
8000 Hz, USEPOWER, Hamming window of 25 ms every 10 ms, COMPRESSFACT 0.33, CEPLIFTER 22, 12 cepstra and C0, which stands last).
"""

import math
from pathlib import Path

import numpy as np

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.extractors import create
from swsdist.features.plp import Plp, levinson, to_cepstra, without_slow_changes
from tests.support.coded import raises

HTK = Path(__file__).with_name("htk_plp.npz")


def test_of_mel_bands_is_htk_s() -> None:
    with np.load(HTK) as file:
        samples, expected = file["samples"] / np.float32(32768), file["plp"]
    found = Plp(bands="mel", deltas=1, delta_width=5).extract(samples.astype(np.float32))
    assert len(found) == len(expected) == 40
    assert np.abs(found[:, 1:13] - expected[:, :12]).max() < 1e-5
    assert np.abs(found[:, 0] - expected[:, 12]).max() < 1e-5
    # At the ends of the excerpt HTK saw what comes before and after.
    assert np.abs(found[2:-2, 14:26] - expected[2:-2, 13:25]).max() < 1e-5
    assert np.abs(found[2:-2, 13] - expected[2:-2, 25]).max() < 1e-5


def by_the_paper(samples: np.ndarray, rate: int = 16000) -> list[float]:
    """One frame, number by number, in the order of Hermansky's section I; samples in the range of 16 bits."""
    count = len(samples)
    window = [0.54 - 0.46 * math.cos(2 * math.pi * n / (count - 1)) for n in range(count)]
    waves = [[np.exp(-2j * math.pi * k * n / 512) for n in range(count)] for k in range(257)]
    spectrum = [abs(sum(w * x * e for w, x, e in zip(window, samples, wave, strict=True))) ** 2 for wave in waves]

    def bark(frequency: float) -> float:
        omega = 2 * math.pi * frequency / (1200 * math.pi)
        return 6 * math.log(omega + math.sqrt(omega**2 + 1))

    def masking(x: float) -> float:
        if x < -1.3 or x > 2.5:
            return 0.0
        return 10 ** (2.5 * (x + 0.5)) if x <= -0.5 else 1.0 if x < 0.5 else 10 ** -(x - 0.5)

    bands = math.ceil(bark(rate / 2)) + 1
    loudness = []
    for band in range(bands):
        centre = band * bark(rate / 2) / (bands - 1)
        power = sum(value * masking(centre - bark(k * rate / 512)) for k, value in enumerate(spectrum))
        square = (600 * math.sinh(centre / 6) * 2 * math.pi) ** 2
        equal = (square + 56.8e6) * square**2 / ((square + 6.3e6) ** 2 * (square + 0.38e9))
        loudness.append((max(power, 1.0) * equal) ** 0.33)
    loudness[0], loudness[-1] = loudness[1], loudness[-2]
    # The inverse Fourier transform of the spectrum and its mirror image.
    both = loudness + loudness[-2:0:-1]
    autocorrelation = np.fft.ifft(both).real[:13]
    matrix = [[autocorrelation[abs(i - j)] for j in range(12)] for i in range(12)]
    prediction = np.linalg.solve(matrix, -autocorrelation[1:13])
    error = autocorrelation[0] + prediction @ autocorrelation[1:13]
    # Cepstra of the model's spectrum, by a long Fourier transform.
    model = error / np.abs(np.fft.fft([1.0, *prediction], 8192)) ** 2
    cepstra = np.fft.ifft(np.log(model)).real[:13]
    return [math.log(error)] + [(1 + 11 * math.sin(math.pi * n / 22)) * cepstra[n] for n in range(1, 13)]


def test_of_bark_bands_is_the_paper_s() -> None:
    with np.load(HTK) as file:
        samples = file["samples"]
    found = Plp(deltas=0).extract((samples / np.float32(32768)).astype(np.float32))
    for t in (0, 20):
        expected = by_the_paper(samples[160 * t : 160 * t + 400].astype(float))
        # The paper's constants of equal loudness are rounded otherwise in radians and in Hz: 1 part in 200.
        assert np.abs(found[t] - expected).max() < 0.01, t


def test_levinson_solves_the_equations() -> None:
    rng = np.random.default_rng(1)
    spectra = rng.uniform(0.1, 3.0, (5, 40))
    rows = np.fft.irfft(spectra)[:, :9]
    prediction, error = levinson(rows)
    for row, a, rest in zip(rows, prediction, error, strict=True):
        matrix = np.array([[row[abs(i - j)] for j in range(8)] for i in range(8)])
        np.testing.assert_allclose(matrix @ a, -row[1:], atol=1e-12)
        np.testing.assert_allclose(rest, row[0] + a @ row[1:], rtol=1e-10)
    whole = [np.fft.ifft(np.log(1 / np.abs(np.fft.fft([1.0, *a], 1 << 14)) ** 2)).real[1:9] for a in prediction]
    np.testing.assert_allclose(to_cepstra(prediction), whole, atol=1e-8)


def test_rasta_is_the_filter_and_takes_a_constant_out() -> None:
    rng = np.random.default_rng(2)
    logs = rng.normal(size=(400, 3)).cumsum(axis=0) * 0.1
    found = without_slow_changes(logs)
    padded = np.concatenate([np.repeat(logs[:1], 2000, axis=0), logs])
    expected = np.zeros_like(padded)
    for t in range(4, len(padded)):
        step = 0.2 * padded[t] + 0.1 * padded[t - 1] - 0.1 * padded[t - 3] - 0.2 * padded[t - 4]
        expected[t] = 0.94 * expected[t - 1] + step
    assert np.abs(found - expected[2000:]).max() < 0.01 * expected[2000:].std()
    assert np.abs(without_slow_changes(np.full((30, 2), 17.0))).max() < 1e-12
    np.testing.assert_allclose(without_slow_changes(logs + 5), found, atol=1e-10)


def test_options_that_do_not_go_together() -> None:
    for options, code, values in (
        ({"order": 21}, families.INVALID_VALUE, {"order": 21, "bands": 21}),
        ({"n_ceps": 14}, codes.TOO_MANY_CEPSTRA, {"key": "n_ceps", "count": 14, "most": 13}),
        ({"bands": "mel", "n_bands": 200}, families.INVALID_VALUE, {"band": 0, "bands": 200}),
        ({"win_length": 600}, codes.WINDOW_EXCEEDS_FFT, {"win_length": 600, "n_fft": 512}),
        ({"delta_width": 8}, codes.EVEN_DELTA_WIDTH, {"width": 8}),
    ):
        with raises(code, **values):
            create("plp", options)
