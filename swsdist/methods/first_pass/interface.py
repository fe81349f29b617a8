"""Interface of first passes: cheap approximate searches that propose windows for the exact search.

A first pass proposes *windows*: ranges of end frames where a path may end at low cost. `first_pass.search.visit`
computes exact costs there. A candidate is either identical to that of the full search, or missed; if the windows cover
everything, none is missed. (A mean over examples is of the candidates that were found.)

A `Budget` limits the number of windows in proportion to the seconds searched, like the number of candidates. Per
document, a decision depends on that document only. Over the collection, the best windows of an example compete wherever
they are; fewer windows then find as much, but all documents must be seen first. Neither depends on shards, lanes or
order. A window's cost is an integer that is only comparable between windows of one example.

**Buffers** of document stretches are laid out for the kernels of `kernels.windows`. A document comes as blocks of any
size. A stretch has at least `_BUFFER_FRAMES` frames, or the rest of the document; stretches overlap. So memory does
not grow with a document, and short documents share a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Ints, Singles
from swsdist.kernels import products, windows
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.query.example import Example
from swsdist.registry.entries import checked
from swsdist.registry.registries import FIRST_PASSES

if TYPE_CHECKING:
    from swsdist.methods.first_pass.codebook import Codebook


Frames = Singles

#: For each document: (index, consecutive blocks of prepared frames).
Documents = Iterable[tuple[int, Iterable[Frames]]]


class Windows(NamedTuple):
    """Stretches of end frames, first <= end < stop, in no particular order.

    Attributes:
        example, document: int32, indices.
        first, stop: int64, frames of the document.
        cost: int64, less is better; compares windows of one example.
    """

    example: NDArray[np.int32]
    document: NDArray[np.int32]
    first: Ints
    stop: Ints
    cost: Ints

    def take(self, rows: NDArray[np.bool_ | np.signedinteger]) -> Windows:
        """Select windows by a mask or by indices."""
        return Windows(*(column[rows] for column in self))


def no_windows() -> Windows:
    """No windows."""
    index, frame = np.empty(0, np.int32), np.empty(0, np.int64)
    return Windows(index, index, frame, frame, frame)


def joined_windows(parts: Sequence[Windows]) -> Windows:
    """The windows of all parts."""
    return Windows(*map(np.concatenate, zip(no_windows(), *parts, strict=True)))


class Work(NamedTuple):
    """Amount of work; addable.

    Attributes:
        cells: query frames times document frames, distances and recurrence.
        distances: the same, distances only.
        lookups: the same, distances looked up.
    """

    cells: int = 0
    distances: int = 0
    lookups: int = 0

    def __add__(self, other: tuple[object, ...]) -> Work:
        return Work(*(int(a) + int(b) for a, b in zip(self, other, strict=True)))  # type: ignore[call-overload]


class Material(NamedTuple):
    """Data and settings of a first pass.

    Attributes:
        examples: function of a factor r: the examples, averaged over r frames and prepared as queries.
        documents: function of r and a mask over the documents or None (all): those documents, averaged over r frames.
            Each call returns a new iterator.
        lengths: int64 (documents,), frames of each, not averaged.
        most: int64 (documents,), candidates kept per example and document.
        seconds: from one frame to the next.
        distance: the distance the frames are prepared for.
        window: frames on either side within which a candidate must have the least cost.
        sampled: bool (documents,), those that are searched exactly, whatever is proposed.
        sample: function that returns the sampled documents, not averaged.
        codebook: function of r and of the bytes of a code: centroids of averaged frames of the entire collection.
    """

    examples: Callable[[int], list[Example]]
    documents: Callable[[int, Bools | None], Documents]
    lengths: Ints
    most: Ints
    seconds: float
    distance: Distance
    window: int
    sampled: Bools
    sample: Callable[[], Documents]
    codebook: Callable[[int, int], Codebook]


class Budget(NamedTuple):
    """The number of windows to keep per example: the larger of `least` and `per_second` times the seconds searched.

    Attributes:
        over: `document` (a number per document) or `collection`.
    """

    least: int
    per_second: float
    over: str

    def most(self, material: Material) -> Ints:
        """The greatest number of windows per document, int64 (documents,), if the budget is over documents."""
        return self._count(material.lengths, material)

    def count(self, material: Material) -> int:
        """Number of windows per example over the entire collection."""
        return int(self._count(material.lengths.sum(), material))

    def _count(self, frames: np.int64 | Ints, material: Material) -> Ints:
        seconds = np.asarray(self.per_second * material.seconds * frames)
        return np.maximum(self.least, seconds.astype(np.int64))

    def choose(self, windows: Windows, material: Material) -> Windows:
        """Select the best windows.

        Within a document, the earlier of windows with equal cost wins; over the collection, ties are kept or dropped
        together, so the order of documents does not matter.
        """
        if self.over == "document":
            group = windows.example.astype(np.int64) * len(material.lengths) + windows.document
            order = np.lexsort((windows.first, windows.cost, group))
            rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
            return windows.take(order[rank < self.most(material)[windows.document[order]]])
        allowed = self.count(material)
        order = np.argsort(windows.example, kind="stable")
        bounds = np.searchsorted(windows.example[order], np.arange(int(windows.example.max(initial=-1)) + 2))
        keep = np.ones(len(order), bool)
        for start, stop in pairwise(bounds.tolist()):
            if stop - start > allowed:
                rows = order[start:stop]
                keep[rows] = windows.cost[rows] <= np.partition(windows.cost[rows], allowed - 1)[allowed - 1]
        return windows.take(keep)


class Proposals(NamedTuple):
    """Windows and the work of proposing them.

    Attributes:
        windows: windows to visit.
        work: work done.
        indexing: work that an existing index would have saved.
    """

    windows: Windows
    work: Work
    indexing: Work = Work()


class FirstPass(Protocol):
    """A first pass; for its options see `swsdist.registry.registries.FIRST_PASSES`."""

    def propose(self, material: Material, budget: Budget) -> Proposals:
        """Propose windows of all examples in all documents, in memory independent of a document's length."""
        ...


def has_windows(windows: Windows, documents: int) -> Bools:
    """Whether each document has windows: bool (documents,)."""
    mask = np.zeros(documents, bool)
    mask[windows.document] = True
    return mask


def create(name: str, **options: object) -> FirstPass:
    """The first pass of that name.

    Raises:
        ConfigError: the name or an option is unknown.
    """
    complete = checked(FIRST_PASSES, name, options)
    first_pass: FirstPass = FIRST_PASSES[name].load()(**complete)
    return first_pass


#: Least frames of a buffer, except the last.
_BUFFER_FRAMES = 1 << 17


class Stretch(NamedTuple):
    """Consecutive frames of a document, from frame `offset` on; `last` says that the document ends with them."""

    document: int
    offset: int
    frames: Frames
    last: bool


class LaneGroups(NamedTuple):
    """Frames in groups of sixteen.

    Attributes:
        source: int16 (groups, pairs, 16, 2), flat; the groups are a multiple of `products.STRIDE`.
        start: int64, the group with which each window begins.
    """

    source: NDArray[np.int16]
    start: Ints


class FrameBuffer(NamedTuple):
    """A buffer of stretches.

    Attributes:
        stretches: some, none of them empty.
        bases: the frame of `pairs` that each begins with.
        pairs: int32 (frames, pairs), their frames one after the other, two coordinates an element.
    """

    stretches: list[Stretch]
    bases: list[int]
    pairs: NDArray[np.int32]

    def lay(self, first: Ints, columns: Ints) -> LaneGroups:
        """Lay out windows, each in separate groups.

        Args:
            first: int64 (windows,), the first frame of each in the buffer.
            columns: int64 (windows,), number of frames of each.
        """
        groups = -(-columns // WIDTH)
        total = int(groups.sum())
        padded = -(-total // products.STRIDE) * products.STRIDE
        pairs = self.pairs.shape[1]
        out = products.aligned(padded * pairs * WIDTH, np.int32)
        windows.lay(self.pairs, first, groups, out.reshape(padded, pairs, WIDTH))
        return LaneGroups(out.view(np.int16), np.cumsum(groups) - groups)


def stretches(document: int, blocks: Iterable[Frames], overlap: int) -> Iterator[Stretch]:
    """Cut a document, float32 blocks (frames, columns), into stretches that overlap by `overlap` frames."""
    held: list[Frames] = []
    have = offset = 0
    for block in blocks:
        if have >= _BUFFER_FRAMES + overlap:
            frames = np.concatenate(held)
            yield Stretch(document, offset, frames, False)
            offset += have - overlap
            held, have = [frames[have - overlap :]], overlap
        held.append(block)
        have += len(block)
    if have:
        yield Stretch(document, offset, np.concatenate(held) if len(held) > 1 else held[0], True)


def buffered(stream: Iterable[Stretch], distance: Distance) -> Iterator[FrameBuffer]:
    """Collect stretches in buffers."""
    order = products.layout(distance).order
    held: list[Stretch] = []
    have = 0
    for item in stream:
        held.append(item)
        have += len(item.frames)
        if have >= _BUFFER_FRAMES:
            yield _held(held, order)
            held, have = [], 0
    if held:
        yield _held(held, order)


def _held(some: list[Stretch], order: Ints) -> FrameBuffer:
    frames = np.concatenate([item.frames for item in some]) if len(some) > 1 else some[0].frames
    bases = np.cumsum([0, *(len(item.frames) for item in some[:-1])]).tolist()
    packed = np.empty((len(frames), len(order)), np.int16)
    windows.pack(np.ascontiguousarray(frames), order, packed)
    return FrameBuffer(some, bases, packed.view(np.int32))
