"""Fingerprints of MFCC: one bit per coefficient and frame, from a mask that detects falling slopes.

Tejedor et al. 2016, "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and 2014 evaluations", section
"MFCC fingerprint-based QbE STD system", eq. 2 (after Neves, Veiga, Sa and Perdigao 2009). S(i, j) is coefficient i of
frame j::

    phi = S(i, j) - S(i, j + 1) + S(i - 1, j) - S(i - 1, j + 1)
    F(i, j) = 1 where phi > 0, else 0

The paper does not define the edges. Here i begins with the second coefficient, so that i - 1 exists: 39 coefficients
yield 38 bits. The last frame of a recording is repeated, so its phi is 0 and so are its bits.

The coefficients are those of `swsdist.features.mfcc`, with its options, under a window of 20 ms as in the paper: twelve
and C0, with their first and second differences. They are compared as float32, so equal frames have no bits.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from swsdist.core.codes import features as codes
from swsdist.features.mfcc import Mfcc


class MfccFingerprint(Mfcc):
    """Fingerprints of MFCC; its fields are its options, those of `Mfcc`."""

    win_length: PositiveInt = Field(320, description="samples under the window: 20 ms at 16 kHz")

    name: ClassVar[str] = "mfcc-fingerprint"
    version: ClassVar[int] = 2
    chooses: ClassVar[bool] = False

    @model_validator(mode="after")
    def _two_coefficients(self) -> MfccFingerprint:
        if self.dimension == 0:
            raise codes.SINGLE_COEFFICIENT.invalid()
        return self

    @property
    def context(self) -> int:
        """Frames on either side for the differences, and the next frame."""
        return super().context + 1

    @property
    def dimension(self) -> int:
        """Bits per frame: one fewer than coefficients."""
        return super().dimension - 1

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Fingerprints of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension) of zeros and ones: of the second coefficient, the third, and so on.
        """
        coefficients = super().extract(samples)
        return fingerprints(coefficients) if len(coefficients) else np.empty((0, self.dimension), np.float32)


def fingerprints(coefficients: NDArray[np.float32]) -> NDArray[np.float32]:
    """Eq. 2, for all frames of a recording.

    Args:
        coefficients: float32 (frames, n), n at least 2.

    Returns:
        float32 (frames, n - 1), zeros and ones.
    """
    values = coefficients.astype(np.float64)
    following = np.concatenate([values[1:], values[-1:]])
    fall = values - following
    bits: NDArray[np.float32] = (fall[:, 1:] + fall[:, :-1] > 0).astype(np.float32)
    return bits
