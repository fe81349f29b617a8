"""Samples in memory, checked and written as a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import wavfile

from swsdist.core.codes import audio as codes

#: Larger samples are a mistake in scale.
_LARGEST_SAMPLE = 10.0


def is_recording(value: object) -> bool:
    """Whether a value is a single pair of samples and rate, as opposed to a collection of recordings."""
    return hasattr(value, "ndim") or (
        isinstance(value, tuple) and len(value) == 2 and not isinstance(value[0], str | Path | tuple | dict)
    )


def check_samples(recording: object, where: str) -> tuple[NDArray[np.floating], int]:
    """Check a pair of samples and rate.

    Args:
        recording: (samples, rate): floats of shape (n,), full scale 1; Hz.
        where: name of the recording, for messages.

    Returns:
        Samples and rate.

    Raises:
        UserError: the pair is invalid.
    """
    if not isinstance(recording, tuple) or len(recording) != 2:
        raise codes.NOT_A_RECORDING(where=where, type=type(recording).__name__)
    try:
        samples, rate = np.asarray(recording[0]), np.asarray(recording[1])
    except ValueError as error:  # lists of several lengths
        raise codes.RAGGED_SAMPLES(where=where, error=error) from error
    if rate.ndim or rate.dtype.kind not in "iuf" or not rate >= 1 or rate % 1:
        raise codes.BAD_SAMPLE_RATE(where=where, rate=recording[1])
    if samples.dtype.kind != "f":
        raise codes.SAMPLES_NOT_FLOAT(where=where, dtype=str(samples.dtype))
    if samples.ndim != 1 or not samples.size:
        raise codes.SAMPLES_NOT_MONO(where=where, shape=samples.shape)
    finite = np.isfinite(samples)
    if not finite.all():
        index = int(np.argmin(finite))
        raise codes.NON_FINITE_SAMPLES(where=where, index=index, value=float(samples[index]))
    if (peak := float(np.abs(samples).max())) > _LARGEST_SAMPLE:
        raise codes.SAMPLES_TOO_LARGE(where=where, peak=peak)
    return samples, int(rate)


def write_samples(path: Path, samples: NDArray[np.floating], rate: int) -> None:
    """Write checked samples as a WAV file of float32; equal samples give equal bytes."""
    wavfile.write(path, rate, samples.astype(np.float32))  # libsndfile would add the time
