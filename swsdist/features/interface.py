"""What an extractor is.

It turns samples into frames. Frame t covers samples [t * hop, t * hop + frame_length). There are two sorts:

- **local** ones: a frame depends on `context` frames to either side of it and nothing else (MFCC). A long recording is
  computed in blocks of a fixed length with that context.
- **whole-utterance** ones: `context` is None, a frame may depend on all of the recording (a transformer). Up to `whole_frames`
  frames a recording is computed at once. A longer one is cut into chunks of `chunk_frames`, each beginning `overlap_frames`
  before the end of the one before; the last one ends with the recording and may share more. What two chunks share is the
  earlier one's, but for the last half of `overlap_frames`.

Either way a frame follows from the recording and the options alone, whatever shares a shard, a batch or a machine with it.

Frames that somebody else made are not extracted: they are `Precomputed`, and found by a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swsdist.core.needs import LEAST, Needs
from swsdist.io.frames.item import Item

#: Frames that two chunks of a long recording share, for a transform that looks at the whole.
SHARED_FRAMES = 1_000

#: What the numbers of a frame are: anything; probabilities that sum to 1; or their logarithms, up to a constant a frame.
Kind = Literal["features", "posteriors", "logits"]

KINDS: tuple[Kind, ...] = ("features", "posteriors", "logits")


class Framed(Protocol):
    """What gives frames. What is below `describe` in docs/how-to/add-a-feature-extractor.md is optional.

    Attributes:
        name: its name in configs.
        version: raised whenever the same options and the same input give other bytes.
        sample_rate: Hz; audio is resampled to it.
        frame_length, hop: samples under a frame, and from one frame to the next.
        dimension: numbers a frame.
    """

    name: str
    version: int
    sample_rate: int
    frame_length: int
    hop: int
    dimension: int

    def describe(self) -> dict[str, object]:
        """All options with their values, as plain JSON: what the frames depend on besides their input."""
        ...


@runtime_checkable
class Precomputed(Framed, Protocol):
    """Frames that are there already, by key: it computes nothing, and needs no audio. Its sample rate is a rate of ticks.

    The key of a document is its `doc_id`, or `DOC_ID-CHANNEL` where the corpus has several channels of it; that of an example
    of a query is `QUERY_ID-EXAMPLE` (`document_key`, `example_key`).
    """

    def items(self, queries: bool, storage: Mapping[str, object]) -> Mapping[str, Item]:
        """Where the frames of each key are; of examples of `queries`, or of documents."""
        ...

    def read(
        self, item: Item, key: str, storage: Mapping[str, object], seconds: float | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Frames of an item, checked: float32 (frames, dimension), some at a time.

        Args:
            item: as `items` told.
            key: its key, for errors.
            storage: options for s3fs.
            seconds: how long the recording is, where that is known.

        Raises:
            FramesError: they are not what the options say, or do not fit the duration.
        """
        ...


@runtime_checkable
class Extractor(Framed, Protocol):
    """Samples in, frames out.

    Attributes:
        context: frames on either side that a frame's value depends on; None: all of the recording.
    """

    context: int | None

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Frames of a stretch of samples: float32 (n,) to float32 (frame_count(self, n), dimension)."""
        ...


@runtime_checkable
class WholeUtterance(Protocol):
    """What a whole-utterance extractor says besides.

    Attributes:
        whole_frames: frames up to which a recording is computed at once, at least `chunk_frames`.
        chunk_frames: frames of a chunk of a longer one.
        overlap_frames: frames that two chunks share at least, fewer than half of `chunk_frames`.
    """

    whole_frames: int
    chunk_frames: int
    overlap_frames: int


@runtime_checkable
class Layered(Protocol):
    """An extractor that is another one (`inner`), and what is done to its frames."""

    inner: Extractor

    def streamed(self, blocks: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
        """Its frames of a recording, from those of the other one in blocks."""
        ...


@runtime_checkable
class Batched(Protocol):
    """An extractor that computes several stretches at once.

    Attributes:
        batch: most stretches a call.
    """

    batch: int

    def extract_batch(self, stretches: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Frames of each stretch, the same bytes as `extract` gives of it, whatever shares the call."""
        ...


@runtime_checkable
class Equipped(Protocol):
    """An extractor that wants to know what it was given."""

    def use(self, granted: Needs) -> None:
        """Take so many threads, so much memory, so many GPUs; the bytes do not depend on it."""
        ...


def frame_count(extractor: Framed, samples: int) -> int:
    """Frames that lie whole inside `samples` samples."""
    return max(0, 1 + (samples - extractor.frame_length) // extractor.hop)


def frame_shift(extractor: Framed) -> float:
    """Seconds from one frame to the next."""
    return extractor.hop / extractor.sample_rate


def frames_seconds(extractor: Framed, frames: int) -> float:
    """Seconds from the begin of the first of so many frames to the end of the last."""
    return ((frames - 1) * extractor.hop + extractor.frame_length) / extractor.sample_rate


def document_key(doc_id: str, channel: int, several: bool) -> str:
    """What given frames of a document are called; `several`: the corpus has more than one channel of it."""
    return f"{doc_id}-{channel}" if several else doc_id


def example_key(query_id: str, example: int) -> str:
    """What given frames of an example of a query are called."""
    return f"{query_id}-{example}"


def surroundings(extractor: Extractor) -> int:
    """Frames to either side that a place cut out of a recording is computed with."""
    if extractor.context is not None:
        return extractor.context
    transforms: int | None = getattr(extractor, "reach", 0)
    # Of a transform that looks at the whole recording, as many as two chunks of a long one share.
    around = SHARED_FRAMES if transforms is None else transforms
    return (extractor.overlap_frames if isinstance(extractor, WholeUtterance) else 0) + around


def kind_of(extractor: Framed) -> Kind:
    """What the numbers of its frames are: its attribute `kind`, by default `features`."""
    kind: Kind = getattr(extractor, "kind", "features")
    return kind


def columns_of(extractor: Framed) -> tuple[str, ...]:
    """The names of its dimensions: its attribute `columns`, by default c0, c1, ..."""
    named = getattr(extractor, "columns", None)
    return tuple(f"c{k}" for k in range(extractor.dimension)) if named is None else tuple(named)


class Columns(NamedTuple):
    """A track of an extractor that yields several in one pass: some of its columns, from `first` up to `stop`."""

    name: str
    first: int
    stop: int


def tracks_of(extractor: Framed) -> tuple[Columns, ...]:
    """The tracks that its columns hold, side by side: its attribute `tracks`, pairs of a name and a dimension.

    By default one, of its own name. The layers of a model, for example, are computed together and kept apart.
    """
    named: tuple[tuple[str, int], ...] = getattr(extractor, "tracks", ((extractor.name, extractor.dimension),))
    found, first = [], 0
    for name, dimension in named:
        found.append(Columns(name, first, first + dimension))
        first += dimension
    return tuple(found)


def places_of(source: object) -> tuple[str, ...]:
    """Options that say where something lies, and are no part of an identity: its attribute `places`, by default none."""
    places: tuple[str, ...] = getattr(source, "places", ())
    return places


def files_of(source: object) -> list[Path]:
    """Files that the frames of an extractor or transform depend on: what its method `files` names, by default none."""
    files = getattr(source, "files", None)
    return [Path(path) for path in files()] if files is not None else []


def libraries_of(extractor: Framed) -> tuple[str, ...]:
    """Libraries whose version its frames depend on, as pip names them, besides our own: its attribute `libraries`, by default
    none. A store names their versions."""
    named: tuple[str, ...] = getattr(extractor, "libraries", ())
    return tuple(named)


def needs_of(extractor: Framed) -> tuple[Needs, ...]:
    """Alternatives of what it needs, the best first: its attribute `needs`, by default one CPU and 1 GB."""
    needs: tuple[Needs, ...] = getattr(extractor, "needs", LEAST)
    return tuple(needs)


def for_speaker(extractor: Extractor, speaker: str | None) -> Extractor:
    """The extractor of a speaker's recordings: what its method `of_speaker` gives, by default the same for all."""
    made = getattr(extractor, "of_speaker", None)
    return extractor if made is None else made(speaker)


def for_recording(extractor: Extractor, samples: NDArray[np.float32]) -> Extractor:
    """The extractor of a recording that is computed in chunks, by the samples of the first: what its method `of_recording`
    gives, by default the same for all."""
    made = getattr(extractor, "of_recording", None)
    return extractor if made is None else made(samples)


def use(extractor: Framed, granted: Needs) -> None:
    """Tell an extractor what it was given, if it wants to know."""
    if isinstance(extractor, Equipped):
        extractor.use(granted)
