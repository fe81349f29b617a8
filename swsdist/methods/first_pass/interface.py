"""What a first pass is: cheap, and allowed to miss; whatever it proposes is searched exactly.

A first pass looks at examples and documents in any way that is cheaper than the search, and names *windows*: stretches of end
frames where a path might end cheaply. `rescoring.visit` computes exact costs there. So a candidate is either found as the full
search finds it, every number the same, or not found; `recall.recall` says how many were.

Which windows are kept is a `Budget`, a count by seconds searched, as that of candidates. Over a document, a decision
depends on that document only. Over the whole collection the best windows of an example compete, wherever they are: fewer
windows find the same, but whoever decides must have seen all documents. Either way shards, lanes and order change nothing.

A window's cost is an integer that compares windows of one example; it says nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.distances.interface import Distance
from swsdist.methods.dtw.matches import Matches
from swsdist.methods.query.example import Example

Frames = NDArray[np.float32]

#: (index, consecutive blocks of prepared frames) of each document.
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
    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    cost: NDArray[np.int64]

    def take(self, rows: NDArray[np.bool_ | np.signedinteger]) -> Windows:
        """Some of them, by a mask or by indices."""
        return Windows(*(column[rows] for column in self))


def no_windows() -> Windows:
    """None at all."""
    index, frame = np.empty(0, np.int32), np.empty(0, np.int64)
    return Windows(index, index, frame, frame, frame)


class Work(NamedTuple):
    """What was computed; adds.

    Attributes:
        cells: query frames times document frames, distances and recurrence.
        distances: the same, distances only.
        postings: entries of an index that were looked at.
    """

    cells: int = 0
    distances: int = 0
    postings: int = 0

    def __add__(self, other: tuple[object, ...]) -> Work:
        return Work(*(int(a) + int(b) for a, b in zip(self, other, strict=True)))  # type: ignore[call-overload]


class Landmarks(NamedTuple):
    """Frames of the collection, prepared as queries and as documents; the same however the collection is cut."""

    query: Frames
    document: Frames


class Material(NamedTuple):
    """What is searched, and how.

    Attributes:
        examples: of a factor r: the examples with each r frames averaged, prepared as queries.
        documents: of r, and of a mask over the documents or None: those documents (all), each r frames averaged. Gives a
            new pass each time.
        lengths: int64 (documents,), frames of each, not averaged.
        most: int64 (documents,), candidates kept per example and document.
        seconds: from one frame to the next.
        collection: seconds of the whole collection, of which the documents may be a part.
        distance: that the frames are prepared for.
        window: frames on either side that a candidate must be the least of.
        landmarks: of r, and of a number: so many averaged frames of the whole collection, fewer where it has not so many.
    """

    examples: Callable[[int], list[Example]]
    documents: Callable[[int, NDArray[np.bool_] | None], Documents]
    lengths: NDArray[np.int64]
    most: NDArray[np.int64]
    seconds: float
    collection: float
    distance: Distance
    window: int
    landmarks: Callable[[int, int], Landmarks]


class Budget(NamedTuple):
    """How many windows of an example to keep: the larger of `least` and `per_second` times the seconds searched.

    Attributes:
        over: `document` (so many of each document) or `collection`.
    """

    least: int
    per_second: float
    over: str

    def most(self, material: Material, times: int = 1) -> NDArray[np.int64]:
        """Windows that a document may have, int64 (documents,); `times` as many as the budget says.

        Where the collection's best are kept, a document may have twice as many as it keeps candidates.
        """
        if self.over == "document":
            return self._count(material.lengths, material, times)
        return np.minimum(self.count(material, times), 2 * material.most)

    def count(self, material: Material, times: int = 1) -> int:
        """Windows of an example over the whole collection."""
        return int(self._count(material.lengths.sum(), material, times))

    def _count(self, frames: np.int64 | NDArray[np.int64], material: Material, times: int) -> NDArray[np.int64]:
        seconds = np.asarray(self.per_second * material.seconds * frames)
        return times * np.maximum(self.least, seconds.astype(np.int64))

    def choose(self, windows: Windows, material: Material, times: int = 1) -> Windows:
        """The best.

        Of a document's windows of equal cost the earlier; of the collection's all stay or go together, so that the order
        of documents is of no account.
        """
        if self.over == "document":
            group = windows.example.astype(np.int64) * len(material.lengths) + windows.document
            order = np.lexsort((windows.first, windows.cost, group))
            rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
            return windows.take(order[rank < self.most(material, times)[windows.document[order]]])
        allowed = self.count(material, times)
        order = np.argsort(windows.example, kind="stable")
        bounds = np.searchsorted(windows.example[order], np.arange(int(windows.example.max(initial=-1)) + 2))
        keep = np.ones(len(order), bool)
        for start, stop in pairwise(bounds.tolist()):
            if stop - start > allowed:
                rows = order[start:stop]
                keep[rows] = windows.cost[rows] <= np.partition(windows.cost[rows], allowed - 1)[allowed - 1]
        return windows.take(keep)


class Proposals(NamedTuple):
    """Windows, and what they cost.

    Attributes:
        windows: to be visited; where `found` is the answer already, none.
        work: that was done.
        found: candidates, of a pass that is not visited.
        factor: frames averaged in it.
        indexing: work that an index made before would have saved.
    """

    windows: Windows
    work: Work
    found: Matches | None = None
    factor: int = 1
    indexing: Work = Work()


class FirstPass(Protocol):
    """A first pass; made from its options, see `swsdist.registry.registries.FIRST_PASSES`."""

    def propose(self, material: Material, budget: Budget) -> Proposals:
        """Windows of all examples in all documents, in memory that does not grow with a document's length."""
        ...


def has_windows(windows: Windows, documents: int) -> NDArray[np.bool_]:
    """Which documents have windows: bool (documents,)."""
    mask = np.zeros(documents, bool)
    mask[windows.document] = True
    return mask
