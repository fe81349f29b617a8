"""Distances of one query to consecutive frames of documents, outside the inner loop of the search."""

from __future__ import annotations

from typing import Generic

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels import products
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.products import Element
from swsdist.kernels.row_range import row_range
from swsdist.kernels.scales import MAX_DISTANCE
from swsdist.kernels.vectors import WIDTH


class Room(Generic[Element]):
    """A reusable array that grows on demand, because allocating memory costs more than using it."""

    def __init__(self, dtype: type[Element]) -> None:
        self._held: NDArray[Element] = np.empty(0, dtype)

    def __call__(self, elements: int) -> NDArray[Element]:
        """An uninitialised array of this size; invalidates the previous one."""
        if self._held.size < elements:
            self._held = products.aligned(elements, self._held.dtype)
        return self._held[:elements]


class QueryDistances:
    """Distances of a query's prepared frames to consecutive frames of documents, in groups of sixteen.

    Attributes:
        frames: of the query.
        height: rows of the distances: its frames, and some padding.
    """

    def __init__(
        self, query: NDArray[np.float32], distance: Distance, room: Room[np.int16], row_range: bool = False
    ) -> None:
        self._room = room
        self.frames = len(query)
        self._large, self._small = products.tiles(self.frames)
        self.height = products.rows_of(self._large, self._small)
        self._layout = products.layout(distance)
        self._query = products.paired(query, self._layout.order, self.height).reshape(-1)
        self._distance = distance
        self._maps = distance.maps(row_range)
        self._sums = np.empty(products.SUMS, np.int32)

    def __call__(self, source: NDArray[np.int16]) -> NDArray[np.int16]:
        """Distances, int16 (groups, `height`, 16), flat, with room after them; valid until the buffer is reused.

        Args:
            source: int16 (groups, pairs, 16, 2), flat; the groups are a multiple of `products.STRIDE`.
        """
        groups = len(source) // (2 * WIDTH * self._layout.pairs)
        size = groups * self.height * WIDTH
        buffer = self._room(len(self._distance.streams) * size)
        distances: list[NDArray[np.int16]] = []
        for from_dot, (first, pairs, _) in zip(self._maps, self._layout.shape.tolist(), strict=True):
            out = buffer[len(distances) * size : (len(distances) + 1) * size]
            fill = products.fill(from_dot, "int16")
            query = (self._query, 0, self._large, self._small)
            fill(source, 0, groups, self._layout.pairs, first, pairs, *query, out, self._sums)
            distances.append(out)
        if len(distances) == 1:
            return distances[0]
        total = np.full(distances[0].shape, 1 << self._distance.shift >> 1, np.int32)
        for stream, out in zip(self._distance.streams, distances, strict=True):
            total += stream.weight * out.astype(np.int32)
        distances[0][:] = np.minimum(total >> self._distance.shift, MAX_DISTANCE)
        return distances[0]


def local_distances(
    query: NDArray[np.float32],
    document: NDArray[np.float32],
    distance: Distance,
    place: slice = slice(None),
    ranged: bool = False,
) -> NDArray[np.int16]:
    """Distances between prepared frames, int16 (query frames, document frames), as in the search.

    Args:
        query, document: float32 (frames, columns), prepared.
        distance: between frames.
        place: the document frames to return; all by default.
        ranged: map the distances of a query frame to their range in the complete document (`search.row_range`).
    """
    document = document if ranged else document[place]
    layout = products.layout(distance)
    n, length = len(query), len(document)
    groups = -(-length // (WIDTH * products.STRIDE)) * products.STRIDE
    # Sixteen consecutive frames take the place of one frame of sixteen documents.
    by_frame = products.paired(document, layout.order, groups * WIDTH).reshape(groups, WIDTH, layout.pairs, 2)
    query_distances = QueryDistances(query, distance, Room(np.int16), ranged)
    distances = query_distances(np.ascontiguousarray(by_frame.transpose(0, 2, 1, 3)).reshape(-1))
    in_order = (
        distances.reshape(groups, query_distances.height, WIDTH).transpose(1, 0, 2).reshape(query_distances.height, -1)
    )
    table = in_order[:n, :length]
    return np.ascontiguousarray(row_range(table)[:, place] if ranged else table)
