"""First pass in windows of the query's size, by the least distance of each document frame to any frame of the query.

A window of N frames, the query's length, slides over a document with 50 % overlap, and its estimated cost is the sum of
the least values of the columns of the distance matrix (eq. 3)::

    estimate(n) = sum of min over i of d(i, t), n <= t < n + N

Of a document the max(100, its seconds) windows of least estimate are searched exactly. All distances are computed, so
only the recurrence is saved: at 39 dimensions about half of the work.

Differences from the paper:

- Its sum runs to n + N inclusive, one frame more than the window has; here it has N.
- A last window is added where the document's end is not reached otherwise.
- End frames go from N / 2 before the window's end to N / 2 after it, and in the first window from the document's
  beginning, because a path takes from half to twice the query's frames.
- The estimate can be computed from averages of `factor` frames, which costs factor^2 times less (1 is the paper's).

Source: Tejedor et al. 2016, "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and 2014 evaluations",
section "MFCC fingerprint-based QbE STD system".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdist.core.arrays import Ints
from swsdist.kernels.products import QueryDistances, Room
from swsdist.kernels.vectors import WIDTH
from swsdist.kernels.windows import column_minima, least_sums
from swsdist.methods.first_pass.interface import Budget, Material, Proposals, Windows, Work, buffered, stretches


@dataclass(frozen=True)
class Coarse:
    """Slides windows over the least distances.

    Attributes:
        factor: frames that are averaged first.
    """

    factor: int

    def propose(self, material: Material, budget: Budget) -> Proposals:
        """The windows of least estimate."""
        examples = material.examples(self.factor)
        room = Room(np.int16)
        query_distances = [QueryDistances(example.frames, material.distance, room) for example in examples]
        sizes = np.array([query_distance.frames for query_distance in query_distances], np.int64)
        longest = int(sizes.max(initial=1))
        lengths = -(-material.lengths // self.factor)
        # Of a document its best windows, or of all the best; then a document may have any number.
        every = budget.over == "collection"
        most = lengths + 2 if every else budget.most(material)
        limits = _Limits(len(examples), budget.count(material) if every else None)
        rows: list[Ints] = []
        seen = np.zeros(len(lengths), np.int64)  # frames of a document whose windows were taken
        work = 0
        documents = material.documents(self.factor, None)
        parts = (part for index, blocks in documents for part in stretches(index, blocks, longest))
        for stretch in buffered(parts, material.distance):
            laid = stretch.lay(np.array([0], np.int64), np.array([len(stretch.pairs)], np.int64))
            work += int(sizes.sum()) * len(stretch.pairs)
            document = np.array([part.document for part in stretch.stretches], np.int64)
            table = np.array(
                [
                    (base - part.offset, lengths[part.document], seen[part.document], part.offset + len(part.frames))
                    for part, base in zip(stretch.stretches, stretch.bases, strict=True)
                ],
                np.int64,
            )
            seen[document] = table[:, 3]
            minima = np.empty(-(-len(stretch.pairs) // WIDTH) * WIDTH, np.int16)
            allowed = np.minimum(most[document], [len(part.frames) + 2 for part in stretch.stretches])
            matches = np.empty((int(allowed.sum()), 3), np.int64)
            for k, item in enumerate(query_distances):
                column_minima(item(laid.source), item.height, item.frames, minima)
                count = least_sums(minima, table, item.frames, allowed, limits.now[k], matches)
                new = matches[:count]
                limits.add(k, new[:, 2])
                rows.append(np.column_stack([np.full(count, k), document[new[:, 0]], new[:, 1:]]))
        table = np.concatenate(rows) if rows else np.empty((0, 4), np.int64)
        size, first = sizes[table[:, 0]], table[:, 2]
        windows = Windows(
            table[:, 0].astype(np.int32),
            table[:, 1].astype(np.int32),
            np.where(first == 0, 0, (first + size // 2) * self.factor),
            (first + size + size // 2 + 1) * self.factor,
            table[:, 3],
        )
        return Proposals(budget.choose(windows, material), Work(distances=work))


class _Limits:
    """The largest cost that can still be among an example's `count` best; it falls as better candidates arrive.

    Attributes:
        now: the current limit of each example.
    """

    def __init__(self, examples: int, count: int | None) -> None:
        self.now = [int(np.iinfo(np.int64).max)] * examples
        self._best = [np.empty(0, np.int64)] * examples
        self._count = count

    def add(self, example: int, costs: Ints) -> None:
        """Update the limit with costs; without a count the limit is constant."""
        if self._count is None or len(costs) == 0:
            return
        best = np.append(self._best[example], costs)
        if len(best) >= self._count:
            best = np.partition(best, self._count - 1)[: self._count]
            self.now[example] = int(best[-1])
        self._best[example] = best
