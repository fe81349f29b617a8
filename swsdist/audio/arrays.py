"""Samples in memory, checked and written as a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import wavfile

from swsdist.core.errors import UserError

#: Samples of full scale 1 are not greater than this by mistake.
_LOUDEST = 10.0


def is_sound(given: object) -> bool:
    """Whether it is one pair of samples and rate, and no several of them."""
    return hasattr(given, "ndim") or (
        isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], str | Path | tuple | dict)
    )


def demand_samples(given: object, where: str) -> tuple[NDArray[np.floating], int]:
    """Samples and their rate in Hz, checked.

    Args:
        given: (samples, rate): floats of shape (n,), full scale 1; in Hz.
        where: what they are, for messages.

    Raises:
        UserError: they are no samples with a rate.
    """
    remedy = "give a pair of float samples of shape (n,), full scale 1, and their rate in Hz: (samples, 16000)"
    if not isinstance(given, tuple) or len(given) != 2:
        raise UserError(f"{type(given).__name__} is no recording", where=where, remedy=remedy)
    try:
        samples, rate = np.asarray(given[0]), np.asarray(given[1])
    except ValueError as error:  # lists of several lengths
        raise UserError(f"these are no samples ({error})", where=where, remedy=remedy) from error
    wrong = None
    if rate.ndim or rate.dtype.kind not in "iuf" or not rate >= 1 or rate % 1:
        wrong = f"{given[1]!r} is no sampling rate"
    elif samples.dtype.kind != "f":
        wrong = f"the samples are {samples.dtype}"
        remedy += "; 16-bit integers are divided by 32768"
    elif samples.ndim != 1 or not samples.size:
        wrong = f"the samples have the shape {samples.shape}"
        remedy += "; of several channels, one"
    elif not np.isfinite(samples).all():
        wrong = f"sample {int(np.argmin(np.isfinite(samples)))} is {samples[np.argmin(np.isfinite(samples))]}"
    elif (peak := float(np.abs(samples).max())) > _LOUDEST:
        wrong = f"a sample is {peak:g}, and full scale is 1"
    if wrong is not None:
        raise UserError(wrong, where=where, remedy=remedy)
    return samples, int(rate)


def write_samples(path: Path, samples: NDArray[np.floating], rate: int) -> None:
    """Write samples that were checked as a WAV file of float32; the same samples give the same bytes."""
    wavfile.write(path, rate, samples.astype(np.float32))  # libsndfile would write the time as well
