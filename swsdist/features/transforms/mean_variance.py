"""Normalisation of a recording's columns with the corpus as a prior: mean and variance, and feature warping.

A word cut out of a recording is too short to be normalised alone: subtracting its mean would remove the word itself,
and any vowel has the highest ranks in it. Mean and deviation of the corpus, fitted to documents (`features.fitting`),
stand in for what is missing.

Mean and variance (`MeanVariance`): the corpus's count as n = `corpus_frames` frames in addition to a recording's own m
frames. The mean is (m own + n corpus) / (m + n), and the second moment is averaged in the same way. The transform needs
the complete recording; one of ten minutes or more is computed in chunks of five minutes that share ten seconds, with
one mean per chunk (the last is up to ten minutes long).

Feature warping (`Warp`): each number becomes the normal deviate of its rank within its column in a sliding window of W
frames (3 s). The number with rank R from below becomes the m for which (R - 1/2) / W is the normal distribution's share
below m. Equal numbers share their mean rank. Slow additive or multiplicative changes of a column, from a channel or
loudness, do not change ranks. Where frames are missing, at the ends of a recording and around a short query, the window
is filled with a normal distribution of the corpus's mean and deviation. With n frames present::

    p = (frames below x + half of those equal to x + (W - n) Phi((x - mean) / deviation)) / W,  y = Phi^-1(p)

A full window is warped by its ranks alone, and a single frame by the corpus alone, which normalises mean and deviation.
Ranks are integers, so a frame does not depend on its block.

Sources: Viikki and Laurila (1998), "Cepstral domain segmental feature vector normalization for noise robust speech
recognition"; the estimate with prior frames: Gauvain and Lee (1994), "Maximum a posteriori estimation for multivariate
Gaussian mixture observations of Markov chains"; warping: Pelecanos and Sridharan (2001), "Feature warping for robust
speaker verification".
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.features.fitting.interface import Model, Rounds
from swsdist.features.fitting.moments import OfMean, moments_of
from swsdist.features.transforms.interface import FittedTransform, Hours, Shape

#: Least variance of a recording, relative to the corpus's variance.
_LEAST = 1e-3


class _Corpus(NamedTuple):
    mean: Floats
    deviation: Floats


class _OfMoments(FittedTransform[_Corpus]):
    """A transform by the mean and deviation of the corpus's frames; its columns stay."""

    #: Name of the model.
    moments: ClassVar[str]

    def read(self, model: Model) -> _Corpus:
        """Mean and deviation of the corpus's frames."""
        return _Corpus(*moments_of(model, self.moments))

    def takes(self, loaded: _Corpus) -> int:
        """Number of columns of the mean."""
        return len(loaded.mean)

    def shape(self, input_shape: Shape, loaded: _Corpus | None) -> Shape:
        """Features of the same names."""
        return Shape(input_shape.columns, "features")

    def rounds(self) -> Rounds:
        """The rounds that fit mean and deviation."""
        return OfMean(lambda mean, deviation: Model(self.moments, 1, {"mean": mean, "deviation": deviation}))

    def matters(self) -> dict[str, object]:
        """Options that the mean depends on."""
        return {"hours": self.hours}


class MeanVariance(_OfMoments):
    """Columns minus their mean, divided by their deviation."""

    variance: bool = True
    corpus_frames: Annotated[int, Field(ge=0)] = 50

    name: ClassVar[str] = "mean-variance"
    version: ClassVar[int] = 1
    moments: ClassVar[str] = "moments"
    context: ClassVar[int | None] = None

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, columns) of a complete recording."""
        mean, deviation = self.loaded
        values, prior = (frames.astype(np.float64) - mean) / deviation, self.corpus_frames
        count = max(1, len(values) + prior)
        mean_shift = values.sum(axis=0) / count
        normalised: Floats = values - mean_shift
        if self.variance:
            # In deviations of the corpus, the corpus has mean 0 and second moment 1.
            second = ((values**2).sum(axis=0) + prior) / count
            normalised /= np.sqrt(np.maximum(second - mean_shift**2, _LEAST))
        return normalised.astype(np.float32)


class Warp(_OfMoments):
    """Ranks in a sliding window, as normal deviates."""

    frames: Annotated[int, Field(ge=3, le=10_001)] = 301
    hours: Hours = 0.25

    name: ClassVar[str] = "warp"
    version: ClassVar[int] = 1
    moments: ClassVar[str] = "warp"

    @field_validator("frames")
    @classmethod
    def _odd(cls, frames: int) -> int:
        if frames % 2 == 0:
            raise families.INVALID_VALUE.saying(
                "{frames} frames is not odd", "use a frame and equally many on either side"
            ).invalid(frames=frames)
        return frames

    @property
    def context(self) -> int:
        """Frames on either side of the ranked frame."""
        return self.frames // 2

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, columns); frames outside the input are treated as missing."""
        from scipy.special import ndtr, ndtri

        corpus, count = self.loaded, len(frames)
        # Frames below minus frames above; each pair is compared once.
        more = np.zeros(frames.shape, np.int16)
        for k in range(1, min(self.context, count - 1) + 1):
            earlier, later = frames[:-k], frames[k:]
            order = (later > earlier).view(np.int8) - (later < earlier).view(np.int8)
            more[k:] += order
            more[:-k] -= order
        place = np.arange(count)[:, None]
        present = np.minimum(place, self.context) + np.minimum(count - 1 - place, self.context) + 1
        below = ndtr((frames.astype(np.float64) - corpus.mean) / corpus.deviation)
        share = ((present + more) / 2 + (self.frames - present) * below) / self.frames
        warped: Singles = ndtri(share).astype(np.float32)
        return warped
