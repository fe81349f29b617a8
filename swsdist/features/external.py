"""Frames of other programs, looked up by document and example (`features.interface.Precomputed`).

The options describe the frames, and each item is checked against them: dimension, finite numbers, sums of posteriors,
the shift that a file states, and the number of frames for the duration of the recording, if known.

**Tolerance of the duration.** It is a constant, 0.25 s by default and at least two shifts. Toolkits differ at the two
ends of a recording by at most some 0.2 s, whatever its length: Kaldi drops the last window (25 ms) or not, librosa pads
by half a window, a convolutional front end takes some 25 ms, a stack of frames up to its width, and decoders of MP3 pad
by up to 50 ms. A wrong shift, or the frames of another recording, are off by a part of the length: a shift of 12.5 ms
taken for 10 ms is off by 20 %, which passes 0.25 s after 1.25 s.

The place of the frames (`path`, `queries`, `form`) is not part of the extractor's identity; the identity of an item is
part of its document's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, PositiveInt, field_validator

from swsdist.config.section import IsPath
from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import DataError, StorageError, UserError
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.features.interface import Kind
from swsdist.io.failures import UNREADABLE
from swsdist.io.frames.archive import Form, find_items, read_item
from swsdist.io.frames.item import Item, RawFrames
from swsdist.registry.entries import Options

#: Tolerance of a frame's sum of probabilities, as in the distances between posteriors.
_SUM = 0.01
#: Relative tolerance of the shift in a file: HTK's is in units of 100 ns.
_SHIFT = 1e-4


class External(Options):
    """Frames of another program; the fields are the options."""

    path: IsPath = Field(description="frames of the documents: a file, or a folder of files of one format")
    queries: IsPath | None = Field(
        None, description="frames of the examples of queries; default: they are in `path` too"
    )
    form: Form = Field("auto", description="format: kaldi, htk, npy, npz, hdf5, parquet; auto: by the ending")
    shift: float | str = Field(description='s from one frame to the next, or a quotient of integers: "256/22050"')
    length: float | str | None = Field(None, description="s under a frame; default: the shift")
    dimension: PositiveInt = Field(description="numbers a frame")
    kind: Kind = Field("features", description="what they are: features, posteriors (each frame sums to 1), logits")
    what: str = Field("", description="what made them, in words; part of their identity")
    tolerance: Annotated[float, Field(gt=0)] = Field(
        0.25, description="s that frames and recording may differ in length; at least two shifts"
    )

    name: ClassVar[str] = "external"
    version: ClassVar[int] = 1
    places: ClassVar[tuple[str, ...]] = ("path", "queries", "form")

    @field_validator("shift", "length")
    @classmethod
    def _seconds(cls, value: float | str | None) -> float | str | None:
        try:
            if value is None or 0 < Fraction(str(value)) < 3600:
                return value
        except (ValueError, ZeroDivisionError):
            pass
        raise families.INVALID_VALUE.saying(
            "{value!r} is not a time in s", "write a number such as 0.01, or a quotient '256/22050'"
        ).invalid(value=value)

    @cached_property
    def _ticks(self) -> tuple[int, int, int]:
        """Ticks a second, ticks of a frame, ticks of a hop: shift and length are integers of ticks."""
        shift = Fraction(str(self.shift))
        length = shift if self.length is None else Fraction(str(self.length))
        rate = math.lcm(shift.denominator, length.denominator)
        return rate, int(length * rate), int(shift * rate)

    @property
    def sample_rate(self) -> int:
        """Ticks a second."""
        return self._ticks[0]

    @property
    def frame_length(self) -> int:
        """Ticks of a frame."""
        return self._ticks[1]

    @property
    def hop(self) -> int:
        """Ticks from one frame to the next."""
        return self._ticks[2]

    def describe(self) -> dict[str, object]:
        """All options with their values."""
        return self.model_dump(mode="json")

    def items(self, queries: bool, storage: Mapping[str, object]) -> Mapping[str, Item]:
        """Items by key: of the examples of `queries`, or of documents.

        Raises:
            UserError: the file or folder does not exist.
            DataError: it is damaged, or has a duplicate key.
            ConfigError: a library is not installed.
        """
        return find_items(self.place(queries), self.form, storage)

    def place(self, queries: bool) -> str:
        """Path of the frames of the examples of `queries`, or of the documents."""
        return self.queries if queries and self.queries is not None else self.path

    def read(
        self, item: Item, key: str, storage: Mapping[str, object], seconds: float | None = None
    ) -> Iterator[Singles]:
        """Checked frames of an item: blocks of float32 (frames, dimension).

        Raises:
            FramesError: the frames are damaged, contradict the options or the duration, or may not be read.
            UserError: the file disappeared after listing, or a library is not installed.
            StorageError: a server fails.
        """
        try:
            array, stated_shift = read_item(item, storage)
        except DataError as error:
            raise codes.DAMAGED_FRAMES(
                where=item.file, key=key, detail=error.message, fix=error.remedy or ""
            ) from error
        except UserError as error:
            # Other faults are not caused by the frames: the task is retried, or fails.
            forbidden = isinstance(error, StorageError) and error.code in UNREADABLE
            if not forbidden and not isinstance(error.__cause__, PermissionError):
                raise
            raise codes.UNREADABLE_FRAMES(
                where=item.file, key=key, detail=error.message, fix=error.remedy or ""
            ) from error
        frames = self._shaped(array, item, key)
        self._check_times(len(frames), stated_shift, seconds, item, key)
        for first in range(0, len(frames), BLOCK_FRAMES):
            with np.errstate(over="ignore"):  # infinities are rejected below
                block = np.ascontiguousarray(frames[first : first + BLOCK_FRAMES], np.float32)
            self._check_numbers(block, first, item, key)
            yield block

    def _shaped(self, array: RawFrames, item: Item, key: str) -> RawFrames:
        """Frames (frames, dimension) of real numbers; a flat array of binary Parquet is cut into frames."""
        if array.ndim == 1 and item.form == "parquet" and array.size % self.dimension == 0:
            array = array.reshape(-1, self.dimension)
        if array.dtype.kind not in "fiu":
            raise codes.FRAMES_NOT_REAL(where=item.file, key=key, dtype=str(array.dtype))
        if array.ndim != 2 or array.shape[1] != self.dimension:
            transposed = array.ndim == 2 and array.shape[0] == self.dimension
            raise (
                families.WRONG_DIMENSION.saying(
                    "the frames of {key!r} have the shape {shape}, not frames x {dimension}",
                    "transpose the array: a row is a frame",
                )
                if transposed
                else families.WRONG_DIMENSION.saying(
                    "the frames of {key!r} have the shape {shape}, not frames x {dimension}",
                    "correct features.options.dimension, or the frames",
                )
            )(
                where=item.file,
                key=key,
                shape=" x ".join(map(str, array.shape)) or "one number",
                dimension=self.dimension,
            )
        if len(array) == 0:
            raise families.NO_FRAMES(
                "the array of {key!r} has no frames", "remove the document", where=item.file, key=key
            )
        return array

    def _check_times(self, count: int, stated: float | None, seconds: float | None, item: Item, key: str) -> None:
        shift = self.hop / self.sample_rate
        if stated is not None and abs(stated - shift) > _SHIFT * shift:
            raise codes.WRONG_SHIFT(where=item.file, key=key, stated=stated, shift=shift)
        if seconds is None:
            return
        # Frames of overlapping windows end between the last shift and the last window.
        least = count * shift
        most = max(least, ((count - 1) * self.hop + self.frame_length) / self.sample_rate)
        allowed = max(self.tolerance, 2 * shift)
        if not least - allowed <= seconds <= most + allowed:
            raise codes.WRONG_DURATION(
                where=item.file, key=key, count=count, shift=shift, length=least, duration=seconds
            )

    def _check_numbers(self, block: Singles, first: int, item: Item, key: str) -> None:
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            frame = int(finite.argmin())
            value = float(block[frame][~np.isfinite(block[frame])][0])
            raise codes.NON_FINITE_FRAMES(where=item.file, key=key, frame=first + frame, value=value)
        if self.kind != "posteriors":
            return
        sums = block.sum(axis=1, dtype=np.float64)
        # The distances treat a frame of zeros as one without information.
        right = (block >= 0).all(axis=1) & ((np.abs(sums - 1) <= _SUM) | (sums == 0))
        if not right.all():
            frame = int(right.argmin())
            least = block[frame].min()
            problem = f"it contains {least:g}" if least < 0 else f"its sum is {sums[frame]:g}"
            raise codes.FRAMES_NOT_POSTERIORS(where=item.file, key=key, frame=first + frame, problem=problem)
