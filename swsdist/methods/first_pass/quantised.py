"""First pass over an index of product-quantised frames, whose distances are looked up in tables.

Frames are averaged in groups of `factor` and coded with 4 bits in each part of a stream (`codebook`); the index of a
shard has the codes of its documents as they are searched (`kernels.lookup`). A query looks its distances up, a path
costs their sum, and the chunks of 8 averages in which the cheapest paths end are proposed, except those within the
window of a cheaper one. Nothing else is left out before the budget: a word that is said twice in a second is proposed
twice.

A proposed window's cost is no bound of its exact cost: a distance differs by the error of quantisation (a third of the
variance of MFCC), by at most half a 255th of the tables' range per part from rounding, and by more if it is beyond
that range. `first_pass.verify` measures the loss.
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

from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families
from swsdist.core.errors import StoreError
from swsdist.core.threads import in_threads
from swsdist.core.types import columns
from swsdist.kernels.lookup import CHUNK, DISTANCES, GROUP, ROWS, Scan, interleave, mark_gaps, scanner
from swsdist.kernels.suppression import separated
from swsdist.methods.first_pass.codebook import Codebook, Tables, tables
from swsdist.methods.first_pass.interface import Budget, Material, Proposals, Windows, Work, joined_windows

#: A row per document, in the order of its shard: averaged frames, their codes as `kernels.lookup` has them, and of sampled
#: documents all features of all tracks, float32 (frames, dimension).
CODES = columns("frames int64, codes large_binary, features large_binary?")

#: Averaged frames behind a document that no path crosses.
_GAP = 2


class Index(NamedTuple):
    """Codes of documents, one after the other.

    Attributes:
        codes: uint8 (groups, bytes, 32), flat.
        gap: uint8 (groups, 32), flat: 255 outside of documents.
        starts: int64 (documents,), the group with which each begins.
    """

    codes: NDArray[np.uint8]
    gap: NDArray[np.uint8]
    starts: Ints

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
    """First pass that searches codes of averaged frames.

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
        chosen = [
            budget.choose(self._windows(k, sizes[k], minima, index, material, budget), material)
            for k, minima in enumerate(_scanned(index, looked, sizes))
        ]
        work = Work(lookups=sum(sizes) * index.groups * GROUP)
        return Proposals(joined_windows(chosen), work, indexing=indexing)

    def _windows(
        self, example: int, n: int, minima: NDArray[np.uint16], index: Index, material: Material, budget: Budget
    ) -> Windows:
        """Windows around chunks in which a path of an example of n averages may end, without those in a better one's window."""
        width, apart = CHUNK * self.factor, self.margin // (CHUNK * self.factor) + 1
        chunks = np.arange(len(minima))
        if budget.over == "collection":
            # No window takes up more than 2 apart - 1 chunks, so these leave as many windows as are kept.
            enough = budget.count(material) * (2 * apart - 1)
            if len(chunks) > enough:
                chunks = np.flatnonzero(minima <= np.partition(minima, enough - 1)[enough - 1])
        document = np.searchsorted(index.starts, chunks * CHUNK // GROUP, side="right") - 1
        first = chunks * width - index.starts[document] * GROUP * self.factor
        length = material.lengths[document]
        possible = (first < length) & (2 * np.minimum(first + width, length) > (n - 1) * self.factor)
        chunks, document, first = chunks[possible], document[possible], first[possible]
        order = np.argsort(minima[chunks], kind="stable")
        keep = np.empty(len(chunks), bool)
        separated(np.array([0, len(chunks)]), (chunks + document * apart)[order], apart, keep)
        rows = np.sort(order[keep])
        first = first[rows]
        return Windows(
            np.full(len(rows), example, np.int32),
            document[rows].astype(np.int32),
            first - self.margin,
            first + width + self.margin,
            minima[chunks[rows]].astype(np.int64),
        )


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


def index_of(tables_of: list[pa.Table], lengths: Ints, size: int, where: str) -> Index:
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
        raise families.MISMATCH.of(StoreError)(
            "the index of the first pass is of other documents",
            "check the store (`swsdist store check`), and index again",
            where=where,
        )
    starts = np.cumsum(groups) - groups
    gap = np.empty(int(groups.sum()) * GROUP, np.uint8)
    mark_gaps(starts, np.ascontiguousarray(lengths), gap)
    return Index(np.concatenate([np.empty(0, np.uint8), *blobs]), gap, starts)


def build(material: Material, factor: int, book: Codebook, features: Mapping[int, Singles] | None = None) -> pa.Table:
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
