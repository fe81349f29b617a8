"""Interface of transforms, extractors followed by transforms, and the transforms that need no model.

Most transforms map each frame alone, so a frame does not depend on blocks, chunks, batches or its place in a recording.
A transform that needs surrounding frames states their number (`context`), and receives them wherever a recording is cut
(`Transformed.streamed`). A transform that needs the complete recording states None; long recordings are then cut into
chunks. If the store keeps float16, the last step rounds the frames to it.

Transforms that are fitted to the corpus before the first document is indexed are subclasses of `FittedTransform`. They
declare their options, how to load their model file (`read`), the number of columns they take (`takes`), their output
(`shape`, `apply`), and how the model is fitted (`matters`, and `rounds` of `features.fitting.interface`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, final, runtime_checkable

import numpy as np
from pydantic import Field, PrivateAttr, model_validator

from swsdist.config.section import IsPath
from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError, DataError
from swsdist.features.fitting.interface import Model, read_model
from swsdist.features.interface import (
    SHARED_FRAMES,
    Dtype,
    Extractor,
    Framed,
    Kind,
    Precomputed,
    columns_of,
    files_of,
    kind_of,
    tracks_of,
)
from swsdist.io.filesystem import local_file
from swsdist.io.frames.item import Item
from swsdist.registry.entries import Options

#: Frames of a chunk of a long recording, if a transform needs complete recordings.
_CHUNK = 30_000


class Shape(NamedTuple):
    """Column names and kind of frames."""

    columns: tuple[str, ...]
    kind: Kind


@runtime_checkable
class Transform(Protocol):
    """Maps frames to as many frames.

    Optional members are a method `files`, paths that the result depends on, and an attribute `context`, frames on
    either side that a frame depends on: by default 0, and None for all of the recording. At the ends of the input, only
    the available frames are used.

    Attributes:
        name: its name in configs.
        version: raised whenever the same frames and options give other bytes.
    """

    name: str
    version: int

    def becomes(self, input_shape: Shape) -> Shape:
        """Output shape for an input shape.

        Raises:
            ConfigError: it does not accept such frames.
        """
        ...

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, input columns) to float32 (frames, output columns).

        The bytes of a frame depend only on the frames of its context, within the input.

        Raises:
            DataError: the numbers are invalid for the transform.
        """
        ...

    def describe(self) -> dict[str, object]:
        """All options with their values, as plain JSON."""
        ...


class TransformOptions(Options):
    """Base class of transforms whose fields are their options."""

    def describe(self) -> dict[str, object]:
        """All options with their values."""
        return self.model_dump(mode="json")


def context_of(transform: Transform) -> int | None:
    """Frames on either side that a frame depends on; None: all of the recording."""
    context: int | None = getattr(transform, "context", 0)
    return context


def transformed(
    inner: Extractor | Precomputed, transforms: Sequence[Transform], dtype: Dtype = "float32"
) -> Extractor | Precomputed:
    """Apply transforms to the frames of an extractor, or to precomputed frames, and round what they give to `dtype`.

    Raises:
        ConfigError: a transform does not accept its input, or the extractor yields several tracks.
    """
    return (
        TransformedPrecomputed(inner, transforms, dtype)
        if isinstance(inner, Precomputed)
        else TransformedExtractor(inner, transforms, dtype)
    )


class Transformed:
    """A source of frames followed by transforms: the common part of extractors and precomputed frames.

    Attributes:
        stored_as: type that a store keeps the frames in (`features.interface.dtype_of`).
        reach: frames on either side that the transforms need, in addition to the extractor's; None: all.

    Args:
        inner: source of one track, or without transforms of any number.
        transforms: in order of application.
        dtype: with float16 the last step rounds each number to half precision; frames stay float32 arrays.

    Raises:
        ConfigError: a transform does not accept its input, or the extractor yields several tracks.
    """

    def __init__(self, inner: Framed, transforms: Sequence[Transform], dtype: Dtype = "float32") -> None:
        if transforms and len(tracks_of(inner)) > 1:
            raise families.UNSUPPORTED.of(ConfigError)(
                "{name} yields several tracks, and transforms take one",
                "remove the transforms",
                where="features.transforms",
                name=inner.name,
            )
        self.inner: Framed = inner
        self.transforms = tuple(transforms)
        self.stored_as = dtype
        shape = Shape(columns_of(inner), kind_of(inner))
        for transform in transforms:
            shape = transform.becomes(shape)
            if len(set(shape.columns)) < len(shape.columns):
                raise families.DUPLICATE_NAME.of(ConfigError)(
                    "transform {name} gives two columns the same name",
                    "correct the transform: names of columns must differ",
                    where="features.transforms",
                    name=transform.name,
                )
        self.columns, self.kind = shape
        contexts = [item for item in map(context_of, transforms) if item is not None]
        self.reach = sum(contexts) if len(contexts) == len(transforms) else None
        self.name, self.version, self.dimension = inner.name, inner.version, len(shape.columns)
        self.sample_rate, self.frame_length, self.hop = inner.sample_rate, inner.frame_length, inner.hop
        if not transforms:
            self.tracks = tuple((track.name, track.stop - track.first) for track in tracks_of(inner))

    def streamed(self, blocks: Iterable[Singles]) -> Iterator[Singles]:
        """Transform a recording's frames, block by block; output blocks may have other sizes.

        Frames have the same bytes however the recording is cut, because context crosses block boundaries.

        Args:
            blocks: float32 (frames, columns), consecutive, from the first frame of the recording to the last.
        """
        made = iter(blocks)
        for transform in self.transforms:
            context = context_of(transform)
            if context is None:
                made = _in_chunks(transform, made)
            else:
                made = _surrounded(transform, context, made) if context else map(transform.apply, made)
        return made if self.stored_as == "float32" else map(self._rounded, made)

    def _rounded(self, frames: Singles) -> Singles:
        """Frames as a store gives them back: rounded to half precision, ties to even.

        Raises:
            AudioError: a number is beyond the range of half precision.
        """
        with np.errstate(over="ignore"):
            rounded = frames.astype(np.float16).astype(np.float32)
        if (beyond := np.isinf(rounded) & np.isfinite(frames)).any():
            raise codes.BEYOND_HALF_PRECISION(name=self.name, value=float(frames[beyond][0]))
        return rounded

    def describe(self) -> dict[str, object]:
        """Options of the extractor, without those of the transforms."""
        return self.inner.describe()

    def of_speaker(self, speaker: str | None) -> Self:
        """The transforms behind the extractor of a speaker (`features.interface.for_speaker`)."""
        made = getattr(self.inner, "of_speaker", None)
        return self if made is None else type(self)(made(speaker), self.transforms, self.stored_as)

    def files(self) -> list[Path]:
        """Files of the extractor and the transforms."""
        return [path for transform in (self.inner, *self.transforms) for path in files_of(transform)]


def _surrounded(transform: Transform, context: int, blocks: Iterator[Singles]) -> Iterator[Singles]:
    """Apply a transform with this context on either side to blocks."""
    buffered: Singles | None = None
    before = 0  # frames at the head of the buffer that were already yielded
    for block in blocks:
        buffered = block if buffered is None else np.concatenate([buffered, block])
        ready = len(buffered) - context
        if ready > before:
            yield transform.apply(buffered)[before:ready]
            before = min(ready, context)
            buffered = buffered[ready - before :]
    if buffered is not None and len(buffered) > before:
        yield transform.apply(buffered)[before:]


def _in_chunks(transform: Transform, blocks: Iterator[Singles]) -> Iterator[Singles]:
    """Apply a transform that needs all of a recording, in overlapping chunks; the last chunk has up to two chunks'
    frames.
    """
    buffered: Singles | None = None
    before = 0
    for block in blocks:
        buffered = block if buffered is None else np.concatenate([buffered, block])
        while len(buffered) >= 2 * _CHUNK:
            yield transform.apply(buffered[:_CHUNK])[before : _CHUNK - SHARED_FRAMES // 2]
            before, buffered = SHARED_FRAMES - SHARED_FRAMES // 2, buffered[_CHUNK - SHARED_FRAMES :]
    if buffered is not None and len(buffered) > before:
        yield transform.apply(buffered)[before:]


class TransformedExtractor(Transformed):
    """An extractor with transforms (`features.interface.Extractor`); for arguments and errors see `Transformed`."""

    inner: Extractor

    def __init__(self, inner: Extractor, transforms: Sequence[Transform], dtype: Dtype = "float32") -> None:
        super().__init__(inner, transforms, dtype)
        self.context = None if inner.context is None or self.reach is None else inner.context + self.reach
        # Optional attributes exist only if the extractor has them.
        for optional in ("whole_frames", "chunk_frames", "overlap_frames", "needs", "use", "libraries"):
            if hasattr(inner, optional):
                setattr(self, optional, getattr(inner, optional))

    def extract(self, samples: Singles) -> Singles:
        """Transformed frames of a stretch of samples: float32 (n,) to float32 (frames, dimension).

        Recordings use `streamed`.
        """
        frames = self.inner.extract(samples)
        for transform in self.transforms:
            frames = transform.apply(frames)
        return frames if self.stored_as == "float32" else self._rounded(frames)


class TransformedPrecomputed(Transformed):
    """Precomputed frames with transforms (`features.interface.Precomputed`); for arguments and errors see
    `Transformed`.
    """

    inner: Precomputed

    def items(self, queries: bool, storage: Mapping[str, object]) -> Mapping[str, Item]:
        """Locations of the frames, before transformation."""
        return self.inner.items(queries, storage)

    def read(
        self, item: Item, key: str, storage: Mapping[str, object], seconds: float | None = None
    ) -> Iterator[Singles]:
        """Transformed frames of an item."""
        return self.streamed(self.inner.read(item, key, storage, seconds))


Loaded = TypeVar("Loaded")

#: The most hours of documents used for fitting.
Hours = Annotated[float, Field(gt=0, le=100)]


class FittedTransform(TransformOptions, Generic[Loaded]):
    """A transform with a model; `Loaded` is the loaded form of the model."""

    name: ClassVar[str]
    version: ClassVar[int]

    hours: Hours = 0.5
    model: IsPath | None = None

    @model_validator(mode="after")
    def _no_labels_of_a_model(self) -> Self:
        if self.model is not None and getattr(self, "labels", None) is not None:
            raise families.UNUSED_OPTION.saying(
                "labels have no effect on a fitted model", "remove labels, or model"
            ).invalid()
        return self

    @abstractmethod
    def read(self, model: Model) -> Loaded:
        """Load the content of the model.

        Raises:
            ConfigError: it is another model, or a damaged one.
        """

    @abstractmethod
    def takes(self, loaded: Loaded) -> int:
        """Number of columns that frames must have."""

    @abstractmethod
    def shape(self, input_shape: Shape, loaded: Loaded | None) -> Shape:
        """Output shape for an input shape with the right number of columns; depends on the model, if there is one.

        Raises:
            ConfigError: the options do not fit the frames.
        """

    @abstractmethod
    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, input columns) to float32 (frames, output columns) by the model `loaded`."""

    @abstractmethod
    def matters(self) -> dict[str, object]:
        """Options that the model depends on, including `hours`, as plain JSON."""

    @property
    def where(self) -> str:
        """The place of the model in a config, for messages."""
        return model_place(self.name, self.model)

    @cached_property
    def loaded(self) -> Loaded:
        """The loaded model; it is read once.

        Raises:
            ConfigError: it is not fitted, or the file is not such a model.
        """
        if self.model is None:
            raise codes.MODEL_NOT_FITTED(where=self.where, name=f"the transform {self.name}", otherwise="")
        return read_model(self.model, self.where, self.read)

    @final
    def becomes(self, input_shape: Shape) -> Shape:
        """Output shape for an input shape; before fitting, as far as it is known.

        Raises:
            ConfigError: it does not accept the frames, or the file is not such a model.
        """
        loaded = None if self.model is None else self.loaded
        if loaded is not None:
            check_columns(input_shape, self.takes(loaded), self.where)
        return self.shape(input_shape, loaded)

    def with_model(self, path: str) -> dict[str, object]:
        """The options with the path of the fitted model, without the labels it was fitted on."""
        labels: dict[str, object] = {"labels": None} if "labels" in type(self).model_fields else {}
        return {**self.describe(), **labels, "model": path}

    def files(self) -> list[Path]:
        """The model file."""
        return [] if self.model is None else [local_file(self.model)]


def model_place(name: str, model: str | None) -> str:
    """The place of a transform's model in a config, with the file if there is one."""
    return f"features.transforms: {name}, model{'' if model is None else f': {model}'}"


def check_columns(shape: Shape, columns: int, where: str) -> None:
    """Check that frames have the number of columns that a model takes.

    Raises:
        ConfigError: the numbers differ.
    """
    if columns != len(shape.columns):
        raise families.MISMATCH.of(ConfigError)(
            "the model takes {expected} columns, the features have {columns}",
            "name the model of these features",
            where=where,
            expected=columns,
            columns=len(shape.columns),
        )


class Columns(TransformOptions):
    """Columns of the frames, in the order that is given; numbers count from 0."""

    keep: Annotated[tuple[Annotated[int, Field(ge=0, strict=True)] | str, ...], Field(min_length=1)]

    name: ClassVar[str] = "columns"
    version: ClassVar[int] = 1

    _places: list[int] = PrivateAttr(default_factory=list)

    def becomes(self, shape: Shape) -> Shape:
        """Shape of the output: features, since some columns of a posterior do not sum to 1.

        Raises:
            ConfigError: a column occurs twice, or is not among those of the frames.
        """
        places = [shape.columns.index(name) if name in shape.columns else name for name in self.keep]
        for place in places:
            if isinstance(place, str) or place >= len(shape.columns):
                raise families.UNKNOWN_NAME.of(ConfigError)(
                    "the features have no column {column!r}",
                    "name one of: {columns}, or 0 to {last}",
                    where="features.transforms: columns, keep",
                    column=place,
                    columns=", ".join(shape.columns),
                    last=len(shape.columns) - 1,
                )
        if len(set(places)) < len(places):
            raise families.DUPLICATE_NAME.of(ConfigError)(
                "a column occurs twice", "name each column once", where="features.transforms: columns, keep"
            )
        self._places[:] = [place for place in places if isinstance(place, int)]
        return Shape(tuple(shape.columns[place] for place in self._places), "features")

    def apply(self, frames: Singles) -> Singles:
        """Float32 (frames, columns given) to float32 (frames, columns kept)."""
        return np.ascontiguousarray(frames[:, self._places])


class Log(TransformOptions):
    """The natural logarithm of each number plus a floor."""

    floor: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-10

    name: ClassVar[str] = "log"
    version: ClassVar[int] = 1

    def becomes(self, input_shape: Shape) -> Shape:
        """Logits of posteriors; of anything else features."""
        return input_shape._replace(kind="logits" if input_shape.kind == "posteriors" else "features")

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, columns).

        Raises:
            DataError: a number is below 0.
        """
        if len(frames) and float(frames.min()) < 0:
            raise families.UNDEFINED.of(DataError)(
                "the logarithm of {value:g} is not defined",
                "remove the transform",
                where="features.transforms: log",
                value=float(frames.min()),
            )
        logarithms: Singles = np.log(frames.astype(np.float64) + self.floor).astype(np.float32)
        return logarithms


class Splice(TransformOptions):
    """Each frame with its neighbours, as additional columns."""

    frames: Annotated[int, Field(ge=1, le=50)] = 4

    name: ClassVar[str] = "splice"
    version: ClassVar[int] = 1

    @property
    def context(self) -> int:
        """Frames to either side."""
        return self.frames

    def becomes(self, input_shape: Shape) -> Shape:
        """Features: the columns of the earliest frame, called `NAME-4`, up to those of the last, `NAME+4`."""
        shifts = range(-self.frames, self.frames + 1)
        return Shape(tuple(f"{name}{shift:+d}" for shift in shifts for name in input_shape.columns), "features")

    def apply(self, frames: Singles) -> Singles:
        """Float32 (frames, columns) to float32 (frames, columns x (2 x frames + 1))."""
        return spliced(frames, self.frames)


def spliced(frames: Singles, context: int, chosen: Ints | None = None) -> Singles:
    """Frames with those around them, all or some: float32 (frames, columns x (2 x context + 1)).

    Args:
        frames: float32 (frames, columns) of a document.
        context: frames to either side.
        chosen: int64 numbers of frames; None: all.
    """
    if not len(frames):
        return np.empty((0, frames.shape[1] * (2 * context + 1)), np.float32)
    middle = np.arange(len(frames)) if chosen is None else chosen
    places = middle[:, None] + np.arange(-context, context + 1)
    return np.ascontiguousarray(frames[places.clip(0, len(frames) - 1)].reshape(len(middle), -1), np.float32)
