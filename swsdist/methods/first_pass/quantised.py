"""An index over quantised frames: posting lists of codewords, with votes on diagonals.

Frames are averaged in groups of `factor`, and each average is quantised to its nearest codeword. The index of a shard
is a table
with a row per average: codeword, document, frame, in this order. A query frame looks up its nearest codewords, the
share
`reach` of the codebook; each posting votes for a beginning of the query that many frames earlier, with more weight for
a nearer
codeword. The search on averaged frames verifies the places with most votes, as in `averaged`, and the best are
proposed.

Codewords are frames of the collection itself (`Material.landmarks`), chosen by the names of their documents, so they do
not depend
on how the collection is cut. Distances are those of the search, in integers, so the index has the same bytes
everywhere.

The postings of a query frame grow with the collection, in proportion to `reach`. With `slower`, reach falls with the
square root
of the hours (its value applies to one hour): postings then grow with the root, and matches that are not very near get
lost.
Building the index takes one distance of each averaged frame to each codeword.

The votes on diagonals are those of Shazam's fingerprints (Wang 2003) and of RAILS (Jansen and Van Durme 2012, "Indexing
raw acoustic features for scalable zero resource search"), which looks frames up by the signs of random projections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels import postings
from swsdist.kernels.query_distances import QueryDistances, Room
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.first_pass.averaged import around
from swsdist.methods.first_pass.buffering import buffered, stretches
from swsdist.methods.first_pass.interface import Budget, Landmarks, Material, Proposals, Windows, Work, has_windows
from swsdist.methods.first_pass.rescoring import visit
from swsdist.methods.query.example import Example

#: A row per indexed frame, sorted by the columns in order.
POSTINGS = pa.schema(
    [
        pa.field("codeword", pa.int32(), False),
        pa.field("document", pa.int32(), False),
        pa.field("frame", pa.int32(), False),
    ]
)

#: Positions of beginnings are int32.
MOST_PLACES = (1 << 31) - 1

#: Weight of a vote for the nearest codeword; the farthest one looked up has weight 1.
_WEIGHT = 64
#: Beginnings on either side that a peak represents.
_APART = 4


@dataclass(frozen=True)
class Quantised:
    """Looks queries up in posting lists.

    Attributes:
        factor: frames per average.
        codewords: of the codebook.
        reach: share of the codewords that a query frame looks up, at one hour.
        slower: whether reach falls with the square root of the hours.
        widen: number of windows verified, as a multiple of the budget.
        margin: frames on either side of an averaged end frame.
        index: of `build`, if it exists.
    """

    factor: int
    codewords: int
    reach: float
    slower: bool
    widen: int
    margin: int
    index: pa.Table | None = None

    def propose(self, material: Material, budget: Budget) -> Proposals:
        """Propose windows with a query's frames in order."""
        landmarks = material.landmarks(self.factor, self.codewords)
        lengths = -(-material.lengths // self.factor)
        indexing = Work()
        table = self.index
        if table is None:
            table = build(material, self.factor, landmarks)
            indexing = Work(distances=int(lengths.sum()) * len(landmarks.query))
        examples = material.examples(self.factor)
        windows, looked = self._voted(examples, material, landmarks, table, lengths, budget)
        near = max(1, round(material.window / self.factor))
        documents = material.documents(self.factor, has_windows(windows, len(lengths)))
        most = budget.most(material)
        verified = visit(examples, documents, lengths, windows, most, material.distance, near)
        chosen = budget.choose(around(verified.matches, self.factor, self.margin), material)
        return Proposals(chosen, Work(postings=looked) + verified.work, indexing=indexing)

    def _voted(
        self,
        examples: list[Example],
        material: Material,
        landmarks: Landmarks,
        table: pa.Table,
        lengths: NDArray[np.int64],
        budget: Budget,
    ) -> tuple[Windows, int]:
        """Windows on averaged frames around the beginnings with most votes, and the number of postings read."""
        longest = max((len(example.frames) for example in examples), default=0)
        # Documents follow one another, with room before each for beginnings before its start, so that votes and peaks
        # of
        # two documents never overlap, whatever their order.
        before = longest + 2 * postings.SLACK + _APART
        if (total := int(lengths.sum() + before * len(lengths))) > MOST_PLACES:
            raise codes.INDEX_TOO_LARGE(where="search.first_pass", longest=MOST_PLACES, frames=total)
        start = np.cumsum(lengths + before) - lengths
        places = _places(table, lengths, start)
        starts = np.searchsorted(table["codeword"].to_numpy(), np.arange(len(landmarks.query) + 1)).astype(np.int64)
        hours = material.collection / 3600
        share = self.reach / (max(hours, 1e-9) ** 0.5 if self.slower else 1.0)
        probes = int(min(max(1, round(share * len(landmarks.query))), len(landmarks.query)))
        (stretch,) = buffered(stretches(0, [landmarks.document], 0), material.distance)
        laid = stretch.lay(np.array([0], np.int64), np.array([len(landmarks.document)], np.int64))
        room = np.empty((total // 5 + 1, 2), np.int64)
        room_of_distances = Room(np.int16)
        rows: list[NDArray[np.int64]] = []
        looked = 0
        for k, example in enumerate(examples):
            query_distances = QueryDistances(example.frames, material.distance, room_of_distances)
            n = len(example.frames)
            distances = query_distances(laid.source).reshape(-1, query_distances.height, WIDTH)[
                : -(-len(landmarks.document) // WIDTH)
            ]
            distances = distances.swapaxes(0, 1).reshape(query_distances.height, -1)[:n, : len(landmarks.document)]
            nearest = np.argsort(distances, axis=1, kind="stable")[:, :probes].astype(np.int32)
            there = np.take_along_axis(distances, nearest, axis=1).astype(np.int32)
            far = there[:, -1:]
            weights = 1 + (_WEIGHT - 1) * (far - there) // np.maximum(far - there[:, :1], 1)
            votes = np.zeros(total, np.int32)
            looked += postings.vote(nearest, np.ascontiguousarray(weights, np.int32), starts, places, votes)
            peaks = room[: postings.peaks(votes, _APART, room)]
            document = np.searchsorted(start - longest - postings.SLACK, peaks[:, 0], side="right") - 1
            begin = peaks[:, 0] - start[document]
            inside = (begin + n // 2 >= -postings.SLACK) & (begin + n // 2 < lengths[document])
            peaks, document, begin = peaks[inside], document[inside], begin[inside]
            some = budget.choose(
                Windows(
                    np.full(len(peaks), k, np.int32),
                    document.astype(np.int32),
                    begin + n // 2,
                    np.maximum(begin + n + n // 2 + 1, 1),
                    -peaks[:, 1],
                ),
                material,
                self.widen,
            )
            rows.append(np.column_stack(tuple(some)).astype(np.int64))
        table_of = np.concatenate(rows) if rows else np.empty((0, 5), np.int64)
        return Windows(table_of[:, 0].astype(np.int32), table_of[:, 1].astype(np.int32), *table_of[:, 2:].T), looked


def _places(table: pa.Table, lengths: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.int32]:
    """Positions of the postings, int32, with documents one after the other; compiled code writes there without bounds
    checks.

    Raises:
        StoreError: a posting is outside all documents, so the index, which a store may keep, belongs to other
            documents.
    """
    document, frame = table["document"].to_numpy(), table["frame"].to_numpy()
    in_range = bool(((document >= 0) & (document < len(lengths))).all())
    if not in_range or not ((frame >= 0) & (frame < lengths[document])).all():
        raise codes.OTHER_INDEX(where="search.first_pass")
    places: NDArray[np.int32] = (start[document] + frame).astype(np.int32)
    return places


def build(material: Material, factor: int, landmarks: Landmarks) -> pa.Table:
    """Build the index of documents: POSTINGS.

    Args:
        material: the documents to index.
        factor: frames per average.
        landmarks: the codewords.
    """
    query_distances = QueryDistances(landmarks.query, material.distance, Room(np.int16))
    columns: list[tuple[NDArray[np.int32], ...]] = []
    stream = (part for index, blocks in material.documents(factor, None) for part in stretches(index, blocks, 0))
    for held in buffered(stream, material.distance):
        codewords = np.empty(len(held.pairs), np.int32)
        for first in range(0, len(codewords), _FRAMES):
            some = codewords[first : first + _FRAMES]
            laid = held.lay(np.array([first], np.int64), np.array([len(some)], np.int64))
            padded = np.empty(-(-len(some) // WIDTH) * WIDTH, np.int32)
            postings.nearest(query_distances(laid.source), query_distances.height, query_distances.frames, padded)
            some[:] = padded[: len(some)]
        document = np.concatenate(
            [np.full(len(stretch.frames), stretch.document, np.int32) for stretch in held.stretches]
        )
        frame = np.concatenate(
            [stretch.offset + np.arange(len(stretch.frames), dtype=np.int32) for stretch in held.stretches]
        )
        columns.append((codewords, document, frame.astype(np.int32)))
    code, document, frame = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    order = np.lexsort((frame, document, code))
    return pa.Table.from_arrays([pa.array(column[order]) for column in (code, document, frame)], schema=POSTINGS)


#: Frames whose distances to the codewords are held at once.
_FRAMES = 1024
