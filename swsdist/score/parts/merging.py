"""Sorted tables of many parts as one sorted stream, in the room of a few blocks of each.

A source is opened anew for each pass, so what is merged can be read more than once. Rows that share the first key column never
stand in two blocks: who reads a block has seen all of a score, or all of a query.
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
    """The tables of all parts as one.

    Args:
        schema, key, adds: of the part table.
        sources: one a part, in any order.
    """

    def __init__(self, schema: pa.Schema, key: Sequence[str], adds: bool, sources: Sequence[Source]) -> None:
        self.schema, self.key, self.adds, self._sources = schema, tuple(key), adds, tuple(sources)

    def blocks(self) -> Iterator[pa.Table]:
        """The merged rows, ascending by key, in blocks of bounded size; never an empty one."""
        streams = [_Stream(source, self.key[0]) for source in self._sources]
        while streams := [stream for stream in streams if stream.fill()]:
            # What is below the last row of every source that goes on is complete.
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
        """All of it in memory: for tables of a row a query or a class."""
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
    """What was read of a source and not yet given on."""

    def __init__(self, source: Source, column: str) -> None:
        self._pieces = source()
        self._column = column
        self._held: pa.Table | None = None
        self.more = True

    def fill(self) -> bool:
        """Whether there is anything left; reads on where nothing is held."""
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
        """Rows whose first key is below the bound, taken away; all where there is none."""
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
