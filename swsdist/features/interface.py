"""Interfaces of feature extractors and of precomputed frames.

An extractor turns samples into frames. Frame t covers samples [t * hop, t * hop + frame_length). There are two kinds:

- **local**: a frame depends only on `context` frames on either side (MFCC). Long recordings are computed in blocks of a
  fixed length with that context.
- **whole-utterance**: `context` is None, and a frame may depend on all of the recording (a transformer). A recording of
  up to `whole_frames` frames is computed at once. A longer one is cut into chunks of `chunk_frames`, each beginning
  `overlap_frames` before the end of the previous chunk; the last chunk ends with the recording and may overlap more.
  Shared frames come from the earlier chunk, except for the last half of `overlap_frames`.

A frame depends only on the recording and the options, not on its shard, batch or machine.

Frames computed by other programs are `Precomputed`, and are looked up by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from swsdist.core.arrays import Singles
from swsdist.core.needs import LEAST, Needs
from swsdist.io.frames.item import Item

#: Frames shared by two chunks of a long recording, for a transform of complete recordings.
SHARED_FRAMES = 1_000

#: Kinds of frames: arbitrary numbers; probabilities that sum to 1; their logarithms, up to a constant per frame.
Kind = Literal["features", "posteriors", "logits"]

KINDS: tuple[Kind, ...] = ("features", "posteriors", "logits")

#: Types that a store keeps frames in.
Dtype = Literal["float32", "float16"]


class Framed(Protocol):
    """A source of frames. docs/how-to/add-a-feature-extractor.md lists optional attributes.

    Attributes:
        name: its name in configs.
        version: raised whenever the same options and input give other bytes.
        sample_rate: Hz; audio is resampled to it.
        frame_length, hop: samples of a frame, and from one frame to the next.
        dimension: numbers per frame.
    """

    name: str
    version: int
    sample_rate: int
    frame_length: int
    hop: int
    dimension: int

    def describe(self) -> dict[str, object]:
        """All options with their values, as plain JSON; the frames depend on these and the input only."""
        ...


@runtime_checkable
class Precomputed(Framed, Protocol):
    """Frames computed by another program, looked up by key; no audio is needed. The sample rate is a rate of ticks.

    The key of a document is its `doc_id`, or `DOC_ID-CHANNEL` if the corpus has several channels of it; the key of an
    example of a query is `QUERY_ID-EXAMPLE` (`document_key`, `example_key`).
    """

    def items(self, queries: bool, storage: Mapping[str, object]) -> Mapping[str, Item]:
        """Locations of the frames by key, of examples if `queries`, else of documents."""
        ...

    def read(
        self, item: Item, key: str, storage: Mapping[str, object], seconds: float | None = None
    ) -> Iterator[Singles]:
        """Read and check the frames of an item: float32 (frames, dimension) in blocks.

        Args:
            item: from `items`.
            key: its key, for errors.
            storage: options for s3fs.
            seconds: duration of the recording, if known.

        Raises:
            FramesError: they contradict the options or the duration.
        """
        ...


@runtime_checkable
class Extractor(Framed, Protocol):
    """Computes frames from samples.

    Attributes:
        context: frames on either side that a frame depends on; None: all of the recording.
    """

    context: int | None

    def extract(self, samples: Singles) -> Singles:
        """Frames of a stretch of samples: float32 (n,) to float32 (frame_count(self, n), dimension)."""
        ...


@runtime_checkable
class WholeUtterance(Protocol):
    """Attributes of a whole-utterance extractor.

    Attributes:
        whole_frames: the most frames of a recording that is computed at once, at least `chunk_frames`.
        chunk_frames: frames of a chunk of a longer recording.
        overlap_frames: the least overlap of two chunks, less than half of `chunk_frames`.
    """

    whole_frames: int
    chunk_frames: int
    overlap_frames: int


@runtime_checkable
class Layered(Protocol):
    """An extractor that processes the frames of another one (`inner`)."""

    name: str
    inner: Extractor

    def streamed(self, blocks: Iterable[Singles]) -> Iterator[Singles]:
        """Process the inner extractor's frames of a recording, given in blocks."""
        ...


@runtime_checkable
class Batched(Protocol):
    """An extractor that computes several stretches at once.

    Attributes:
        batch: the most stretches per call.
    """

    batch: int

    def extract_batch(self, stretches: list[Singles]) -> list[Singles]:
        """Frames of each stretch, with the same bytes as from `extract`, whatever the batch."""
        ...


@runtime_checkable
class Equipped(Protocol):
    """An extractor that uses granted resources."""

    def use(self, granted: Needs) -> None:
        """Use threads, memory and GPUs; the bytes do not depend on them."""
        ...


def frame_count(extractor: Framed, samples: int) -> int:
    """Number of complete frames in `samples` samples."""
    return max(0, 1 + (samples - extractor.frame_length) // extractor.hop)


def frame_shift(extractor: Framed) -> float:
    """Seconds from one frame to the next."""
    return extractor.hop / extractor.sample_rate


def frames_seconds(extractor: Framed, frames: int) -> float:
    """Seconds from the beginning of the first frame to the end of the last."""
    return ((frames - 1) * extractor.hop + extractor.frame_length) / extractor.sample_rate


def document_key(doc_id: str, channel: int, several: bool) -> str:
    """Key of a document's precomputed frames; `several`: the corpus has several channels of it."""
    return f"{doc_id}-{channel}" if several else doc_id


def example_key(query_id: str, example: int) -> str:
    """Key of the precomputed frames of an example of a query."""
    return f"{query_id}-{example}"


def surroundings(extractor: Extractor) -> int:
    """Frames of context on either side of a place in a recording."""
    if extractor.context is not None:
        return extractor.context
    transforms: int | None = getattr(extractor, "reach", 0)
    # A transform of complete recordings gets as many frames as two chunks of a long one share.
    around = SHARED_FRAMES if transforms is None else transforms
    return (extractor.overlap_frames if isinstance(extractor, WholeUtterance) else 0) + around


def kind_of(extractor: Framed) -> Kind:
    """Kind of an extractor's frames: its attribute `kind`, by default `features`."""
    kind: Kind = getattr(extractor, "kind", "features")
    return kind


def dtype_of(extractor: Framed) -> Dtype:
    """Type that a store keeps an extractor's frames in: its attribute `stored_as`, by default float32."""
    dtype: Dtype = getattr(extractor, "stored_as", "float32")
    return dtype


def columns_of(extractor: Framed) -> tuple[str, ...]:
    """Names of an extractor's dimensions: its attribute `columns`, by default c0, c1, ..."""
    named = getattr(extractor, "columns", None)
    return tuple(f"c{k}" for k in range(extractor.dimension)) if named is None else tuple(named)


def upper_edge_of(extractor: Framed) -> float:
    """Highest frequency that an extractor's frames depend on, Hz: its attribute `upper_edge`, by default half the rate."""
    edge: float | None = getattr(extractor, "upper_edge", None)
    return extractor.sample_rate / 2 if edge is None else edge


class Columns(NamedTuple):
    """A track of an extractor that yields several in one pass: the columns from `first` up to `stop`."""

    name: str
    first: int
    stop: int


def tracks_of(extractor: Framed) -> tuple[Columns, ...]:
    """Tracks of an extractor, in column order: its attribute `tracks`, pairs of a name and a dimension.

    The default is a single track with the extractor's name. The layers of a model, for example, are computed together
    and stored as separate tracks.
    """
    named: tuple[tuple[str, int], ...] = getattr(extractor, "tracks", ((extractor.name, extractor.dimension),))
    result, first = [], 0
    for name, dimension in named:
        result.append(Columns(name, first, first + dimension))
        first += dimension
    return tuple(result)


def places_of(source: object) -> tuple[str, ...]:
    """Options that only name places, and are not part of the identity: the attribute `places`, by default none."""
    places: tuple[str, ...] = getattr(source, "places", ())
    return places


def files_of(source: object) -> list[Path]:
    """Files that the frames of an extractor or transform depend on: its method `files`, by default none."""
    files = getattr(source, "files", None)
    return [Path(path) for path in files()] if files is not None else []


def libraries_of(extractor: Framed) -> tuple[str, ...]:
    """Third-party libraries, by pip name, whose version the frames depend on: the attribute `libraries`, by default
    none.

    A store records their versions.
    """
    named: tuple[str, ...] = getattr(extractor, "libraries", ())
    return tuple(named)


def needs_of(extractor: Framed) -> tuple[Needs, ...]:
    """Alternative resource needs, the best first: the attribute `needs`, by default one CPU and 1 GB."""
    needs: tuple[Needs, ...] = getattr(extractor, "needs", LEAST)
    return tuple(needs)


def for_speaker(extractor: Extractor, speaker: str | None) -> Extractor:
    """The extractor for a speaker's recordings: from its method `of_speaker`, by default the extractor itself."""
    made = getattr(extractor, "of_speaker", None)
    return extractor if made is None else made(speaker)


def for_recording(extractor: Extractor, samples: Singles) -> Extractor:
    """The extractor for a recording that is computed in chunks, given the samples of the first chunk.

    It comes from the method `of_recording`; by default it is the extractor itself.
    """
    made = getattr(extractor, "of_recording", None)
    return extractor if made is None else made(samples)


def use(extractor: Framed, granted: Needs) -> None:
    """Pass granted resources to an extractor that uses them."""
    if isinstance(extractor, Equipped):
        extractor.use(granted)


def one_thread() -> Any:
    """A context in which the BLAS uses one thread."""
    return _controller().limit(limits=1, user_api="blas")


def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    if not _known:
        _known.append(ThreadpoolController())
    return _known[0]


#: Libraries of this process; looking for them takes some milliseconds.
_known: list[Any] = []
