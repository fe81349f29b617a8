"""Merges sorted tables of many parts into one sorted stream, with a few blocks of each in memory.

A source is opened for each pass, so a merged table can be read more than once. Rows with the same first key column are never
in two blocks: a block has all rows of a score, or of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import score as codes

#: Opens one part's table and yields it in pieces, rows ascending by key.
Source = Callable[[], Iterator[pa.Table]]

#: Rows of a piece that are read at a time, of each source.
ROWS = 65_536


def of_table(table: pa.Table) -> Source:
    """A table in memory as a source."""

    def pieces() -> Iterator[pa.Table]:
        for first in range(0, table.num_rows, ROWS):
            yield table.slice(first, ROWS)

    return pieces


class Merged:
    """The merged tables of all parts.

    Args:
        schema, key, adds: of the part table.
        sources: one per part, in any order.
    """

    def __init__(self, schema: pa.Schema, key: Sequence[str], adds: bool, sources: Sequence[Source]) -> None:
        self.schema, self.key, self.adds, self._sources = schema, tuple(key), adds, tuple(sources)

    def blocks(self) -> Iterator[pa.Table]:
        """The merged rows, ascending by key, in blocks of bounded size; never an empty one."""
        streams = [_Stream(source, self.key[0]) for source in self._sources]
        while streams := [stream for stream in streams if stream.fill()]:
            # Rows below the last row of every unfinished source are complete.
            bounds = [stream.last for stream in streams if stream.more]
            bound = min(bounds) if bounds else None
            taken = [part for stream in streams if (part := stream.below(bound)).num_rows]
            if taken:
                yield self._combined(taken)
            elif bound is not None:
                for stream in streams:
                    if stream.more and stream.last == bound:
                        stream.extend()

    def table(self) -> pa.Table:
        """The merged table in memory, for tables with one row per query or class."""
        return pa.concat_tables([self.schema.empty_table(), *self.blocks()]).combine_chunks()

    def _combined(self, taken: list[pa.Table]) -> pa.Table:
        if len(taken) == 1:
            return taken[0]
        table = pa.concat_tables(taken)
        if self.adds:
            sums = [name for name in self.schema.names if name not in self.key]
            table = table.group_by(list(self.key), use_threads=False).aggregate([(name, "sum") for name in sums])
            table = table.select([*self.key, *(f"{name}_sum" for name in sums)]).rename_columns(self.schema.names)
        return table.sort_by([(name, "ascending") for name in self.key]).cast(self.schema)


class _Stream:
    """Rows of a source that were read but not yet merged."""

    def __init__(self, source: Source, column: str) -> None:
        self._pieces = source()
        self._column = column
        self._held: pa.Table | None = None
        self.more = True

    def fill(self) -> bool:
        """Whether rows are left; reads more if none are in memory."""
        while self.more and not (self._held is not None and self._held.num_rows):
            self.extend()
        return self._held is not None and self._held.num_rows > 0

    def extend(self) -> None:
        """Read another piece."""
        piece = next(self._pieces, None)
        if piece is None:
            self.more = False
        else:
            self._held = piece if self._held is None else pa.concat_tables([self._held, piece])

    @property
    def last(self) -> float | str:
        assert self._held is not None
        value: float | str = self._held[self._column][self._held.num_rows - 1].as_py()
        return value

    def below(self, bound: float | str | None) -> pa.Table:
        """Remove and return the rows whose first key is below the bound; all rows without a bound."""
        assert self._held is not None
        rows = self._held.num_rows
        if bound is not None:
            rows = int(pc.sum(pc.less(self._held[self._column], bound)).as_py() or 0)
        taken, self._held = self._held.slice(0, rows), self._held.slice(rows)
        return taken


def check_part(table: pa.Table, schema: pa.Schema, key: tuple[str, ...], name: str) -> pa.Table:
    """A part's table ordered by its key.

    Raises:
        TableError: another schema, or a key that is there twice.
    """
    if table.schema.names != schema.names:
        raise codes.PART_SCHEMA_MISMATCH(
            where=f"part table {name}", columns=", ".join(table.schema.names), expected=", ".join(schema.names)
        )
    table = table.cast(schema).sort_by([(column, "ascending") for column in key]).combine_chunks()
    if table.num_rows > 1:
        same = np.logical_and.reduce([pc.equal(table[c][1:], table[c][:-1]).to_numpy() for c in key])
        if same.any():
            row = table.select(list(key)).slice(int(np.flatnonzero(same)[0]), 1).to_pylist()[0]
            raise codes.DUPLICATE_PART_KEY(where=f"part table {name}: {row}")
    return table
