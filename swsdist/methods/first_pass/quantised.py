"""An index of product-quantised frames, whose distances are looked up in tables, for a search of all documents.

Frames are averaged in groups of `factor` and coded with 4 bits in each part of a stream (`codebook`); the index of a shard
has the codes of its documents as they are searched (`kernels.lookup`). A query looks its distances up, a path costs their sum,
and the chunks of 16 averages in which the cheapest paths end are proposed.

What a proposed window costs is no bound of its exact cost: a distance differs by what quantisation leaves (a third of the
variance of MFCC), by at most half a 255th of the tables' reach a part from rounding, and where it is farther than their
reach. `verify` measures what that loses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.core.threads import in_threads
from swsdist.kernels.lookup import CHUNK, DISTANCES, GROUP, INFINITE, ROWS, Scan, interleave, mark_gaps, scanner
from swsdist.methods.first_pass.codebook import Codebook, Tables, tables
from swsdist.methods.first_pass.interface import Budget, Material, Proposals, Windows, Work

#: A row per document, in the order of its shard: averaged frames, their codes as `kernels.lookup` has them, and of sampled
#: documents all features of all tracks, float32 (frames, dimension).
CODES = pa.schema(
    [
        pa.field("frames", pa.int64(), False),
        pa.field("codes", pa.large_binary(), False),
        pa.field("features", pa.large_binary()),
    ]
)

#: Averaged frames behind a document that no path crosses.
_GAP = 2


class Index(NamedTuple):
    """Codes of documents, one after the other.

    Attributes:
        codes: uint8 (groups, bytes, 32), flat.
        gap: uint8 (groups, 32), flat: 255 where no document is.
        starts: int64 (documents,), the group with which each begins.
    """

    codes: NDArray[np.uint8]
    gap: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.gap) // GROUP

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.codes.nbytes + self.gap.nbytes + self.starts.nbytes


@dataclass(frozen=True)
class Quantised:
    """Searches codes of averaged frames.

    Attributes:
        factor: frames per average.
        bytes: of a code, per stream of the distance.
        margin: frames on either side of a chunk.
        index: of the material's documents, if it exists.
    """

    factor: int
    bytes: int
    margin: int
    index: Index | None = None

    def propose(self, material: Material, budget: Budget) -> Proposals:
        """Propose the chunks in which the cheapest paths end."""
        book = material.codebook(self.factor, self.bytes)
        indexing, index = Work(), self.index
        if index is None:
            made = [build(material, self.factor, book)]
            index = index_of(made, -(-material.lengths // self.factor), len(book.columns) // 2, "")
            indexing = Work(distances=int(material.lengths.sum()) // self.factor)
        examples = material.examples(self.factor)
        looked = (tables(example.frames, material.distance, book, self.bytes) for example in examples)
        sizes = [len(example.frames) for example in examples]
        scanned = enumerate(_scanned(index, looked, sizes))
        rows = [self._windows(k, minima, index, material, budget) for k, minima in scanned]
        table = np.concatenate(rows) if rows else np.empty((0, 5), np.int64)
        windows = Windows(table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), *table[:, 2:].T)
        work = Work(lookups=sum(sizes) * index.groups * GROUP)
        return Proposals(budget.choose(windows, material), work, indexing=indexing)

    def _windows(
        self, example: int, minima: NDArray[np.uint16], index: Index, material: Material, budget: Budget
    ) -> NDArray[np.int64]:
        """Rows of `Windows`: chunks no dearer than those beside them in a document, and no more than are kept."""
        padded = np.pad(minima, 1, constant_values=INFINITE)
        before, after, heads = padded[:-2].copy(), padded[2:].copy(), index.starts * (GROUP // CHUNK)
        before[heads] = INFINITE
        after[heads[1:] - 1] = INFINITE
        chunks = np.flatnonzero((minima < before) & (minima <= after))
        if budget.over == "collection" and len(chunks) > (allowed := budget.count(material)):
            costs = minima[chunks]
            chunks = chunks[costs <= np.partition(costs, allowed - 1)[allowed - 1]]
        document = np.searchsorted(index.starts, chunks * CHUNK // GROUP, side="right") - 1
        first = (chunks * CHUNK - index.starts[document] * GROUP) * self.factor
        columns = (
            np.full(len(chunks), example),
            document,
            first - self.margin,
            first + CHUNK * self.factor + self.margin,
            minima[chunks],
        )
        return np.column_stack(columns).astype(np.int64)


def _scanned(index: Index, looked: Iterable[Tables], sizes: list[int]) -> Iterator[NDArray[np.uint16]]:
    """The least cost in each chunk, uint16 (chunks,), of each example; threads take documents."""
    threads, scan = numba.get_num_threads(), scanner()
    ideal = index.groups * np.arange(1, threads) // threads
    inner = index.starts[np.minimum(np.searchsorted(index.starts, ideal), len(index.starts) - 1)]
    ranges = list(pairwise(np.unique([0, *inner.tolist(), index.groups]).tolist()))
    for table, n in zip(looked, sizes, strict=True):
        minima = np.empty(index.groups * GROUP // CHUNK, np.uint16)
        for _ in in_threads(partial(_scan, scan, index, n, table, minima), ranges, threads):
            pass
        yield minima


def _scan(scan: Scan, index: Index, n: int, table: Tables, minima: NDArray[np.uint16], groups: tuple[int, int]) -> None:
    scan(
        index.codes,
        index.gap,
        *groups,
        n,
        table.entries,
        table.less,
        table.factors,
        table.streams,
        np.empty(2 * n, np.uint16),
        np.empty(ROWS, np.uint16),
        np.empty(DISTANCES, np.uint16),
        minima,
    )


def index_of(tables_of: list[pa.Table], lengths: NDArray[np.int64], size: int, where: str) -> Index:
    """Join the index of some shards.

    Args:
        tables_of: CODES of each shard.
        lengths: int64 (documents,), averaged frames.
        size: bytes of a code.
        where: their place, for errors.

    Raises:
        StoreError: they belong to other documents.
    """
    joined = pa.concat_tables(tables_of)
    blobs = [np.frombuffer(each.as_buffer(), np.uint8) for each in joined["codes"]]
    groups = -(-(lengths + _GAP) // GROUP)
    # Compiled code reads there without bounds checks.
    sizes = np.array([len(blob) for blob in blobs], np.int64)
    if not np.array_equal(joined["frames"].to_numpy(), lengths) or not np.array_equal(sizes, groups * GROUP * size):
        raise codes.OTHER_INDEX(where=where)
    starts = np.cumsum(groups) - groups
    gap = np.empty(int(groups.sum()) * GROUP, np.uint8)
    mark_gaps(starts, np.ascontiguousarray(lengths), gap)
    return Index(np.concatenate([np.empty(0, np.uint8), *blobs]), gap, starts)


def build(
    material: Material, factor: int, book: Codebook, features: Mapping[int, NDArray[np.float32]] | None = None
) -> pa.Table:
    """Code documents: CODES.

    Args:
        material: the documents to index.
        factor: frames per average.
        book: whose centroids stand for the frames.
        features: of sampled documents, by index; by default none.
    """
    lengths = -(-material.lengths // factor)
    size = len(book.columns) // 2 * GROUP
    blobs: list[bytes] = [b""] * len(lengths)
    for k, blocks in material.documents(factor, None):
        out = np.zeros(-(-(int(lengths[k]) + _GAP) // GROUP) * size, np.uint8)
        first = 0
        for block in blocks:
            interleave(book.codes(block), first, out)
            first += len(block)
        blobs[k] = out.tobytes()
    stored = [None if (frames := (features or {}).get(k)) is None else frames.tobytes() for k in range(len(lengths))]
    columns = [pa.array(lengths), pa.array(blobs, pa.large_binary()), pa.array(stored, pa.large_binary())]
    return pa.Table.from_arrays(columns, schema=CODES)
