"""Counts of any number of detections in bounded memory, for the threshold of the maximum TWV.

Counts are collected up to `LIMIT` rows, then written to a temporary file, ascending by score. Sixteen such files are
merged into one, so there are few files, and each row is written a few times. A threshold is found in one pass over all
files. Sums are integers and rates are computed from them once, so the threshold is exactly that of the list in memory.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from swsdist.core.codes import score as codes
from swsdist.score.measures.curve import Block, Classes, best_point, curve_blocks
from swsdist.score.measures.twv import Counts, class_sums, total
from swsdist.score.parts.merging import Merged, Source, of_table

#: Maximum rows in memory before they are written to a file.
LIMIT = 1 << 19
#: Files of equal size that are merged, and rows that are read of each at a time.
_MANY, _PIECE = 16, 1 << 14

_KEY = ("score", "ntrue")
_SCHEMA = pa.schema(
    [pa.field("score", pa.float64())] + [pa.field(name, pa.int64()) for name in ("ntrue", "hits", "false_alarms")]
)


class SpilledCounts:
    """Counts for a threshold; a context manager that removes its files.

    Args:
        limit: rows in memory.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._held: list[Counts] = []
        self._rows = 0
        self._classes: dict[int, tuple[int, int, int]] = {}
        self._files: list[list[Path]] = []  # by level: sixteen files of a level are merged into one of the next
        self._stack = ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, counts: Counts) -> None:
        """Add the counts of a part."""
        self._held.append(counts)
        self._rows += len(counts.score)
        if self._rows >= self._limit:
            self._spill()

    def _spill(self) -> None:
        counts = total(self._held)
        self._held, self._rows = [], 0
        _add(self._classes, class_sums(counts))
        if self._folder is None:
            self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="swsdist-counts-")))
        self._put(0, [_table(counts)])

    def _put(self, level: int, blocks: Iterable[pa.Table]) -> None:
        assert self._folder is not None
        while len(self._files) <= level:
            self._files.append([])
        path = self._folder / f"{level}-{sum(map(len, self._files))}-{len(self._files[level])}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, _SCHEMA) as file:
            for block in blocks:
                file.write_table(block, max_chunksize=_PIECE)
        self._files[level].append(path)
        if len(self._files[level]) == _MANY:
            several, self._files[level] = self._files[level], []
            self._put(level + 1, Merged(_SCHEMA, _KEY, True, [_source(item) for item in several]).blocks())
            for entry in several:
                entry.unlink()

    def sources(self) -> list[Source]:
        """Sorted tables with all rows."""
        sources: list[Source] = [_source(path) for level in self._files for path in level]
        return [*sources, of_table(_table(total(self._held)))] if self._held else sources

    @property
    def classes(self) -> dict[int, tuple[int, int, int]]:
        """By Ntrue: queries, hits and false alarms of all their detections."""
        classes = dict(self._classes)
        for counts in self._held:
            _add(classes, class_sums(counts))
        return classes


def threshold_of(parts: Sequence[SpilledCounts], *, trials: int, beta: float) -> float:
    """The threshold of the maximum value of all parts together, for `score >= threshold` on this or another list.

    If rejecting everything is best, it is the next double above the highest score.

    Args:
        parts: counts, for example of several folds.
        trials: N of each query.
        beta: weight of false alarms.

    Raises:
        UserError: no query has a reference, there is no detection of one that has, or N = Ntrue.
    """
    sums: dict[int, tuple[int, int, int]] = {}
    for part in parts:
        for ntrue, added in part.classes.items():
            sums_before = sums.get(ntrue, (0, 0, 0))
            sums[ntrue] = sums_before[0] + added[0], sums_before[1] + added[1], sums_before[2] + added[2]
    columns = np.array([(ntrue, *sums[ntrue]) for ntrue in sorted(sums)], np.int64).reshape(-1, 4).T
    events = Merged(_SCHEMA, _KEY, True, [source for part in parts for source in part.sources()])
    best = best_point(curve_blocks(_blocks(events), Classes(*columns), trials=trials, beta=beta))
    if best.point.threshold is None:
        raise codes.NO_FITTABLE_DETECTION()
    return float(np.nextafter(best.point.threshold, math.inf)) if best.last else best.point.threshold


def _blocks(events: Merged) -> Iterator[Block]:
    for table in events.blocks():
        score, ntrue, hits, false_alarms = (table[name].to_numpy() for name in _SCHEMA.names)
        yield Block(ntrue, score, hits, false_alarms)


def _table(counts: Counts) -> pa.Table:
    order = np.lexsort((counts.ntrue, counts.score))
    columns = (counts.score, counts.ntrue, counts.hits, counts.false_alarms)
    return pa.table([pa.array(column[order]) for column in columns], schema=_SCHEMA)


def _source(path: Path) -> Source:
    def pieces() -> Iterator[pa.Table]:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])

    return pieces


def _add(sums: dict[int, tuple[int, int, int]], classes: Classes) -> None:
    for ntrue, terms, hits, false_alarms in zip(*(column.tolist() for column in classes), strict=True):
        sums_before = sums.get(ntrue, (0, 0, 0))
        sums[ntrue] = sums_before[0] + terms, sums_before[1] + hits, sums_before[2] + false_alarms
