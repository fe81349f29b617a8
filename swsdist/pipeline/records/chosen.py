"""Light sequences over columns: the receipts that a step has come to, and files of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.pipeline.records.receipts import Digits, Receipts, Rows, names_of, outputs_of
from swsdist.pipeline.task import Part, Receipt, Told

T = TypeVar("T", bound=Told)

#: Receipts of a list that are kept as objects once they were made.
_KEPT = 1024


class Parts(Sequence[Part]):
    """Files of a table, in columns; as a sequence, of `Part`.

    Args:
        table: of which stage's table they are files.
        columns: a struct array with the fields of `RECEIPTS.outputs`.
        root: of the folder that they lie in, where names are to be whole paths.
    """

    def __init__(self, columns: pa.StructArray, root: str = "") -> None:
        self._columns = columns
        self._root = root

    @property
    def names(self) -> pa.Array:
        """Names, as `Context.place` takes them: strings."""
        names = self._columns.field("name")
        return pc.binary_join_element_wise(self._root, names, "/") if self._root else names

    def column(self, name: str) -> NDArray[np.int64]:
        """`size`, `rows`, `first_slot` or `last_slot` of each."""
        found: NDArray[np.int64] = self._columns.field(name).to_numpy(zero_copy_only=False)
        return found

    def meeting(self, slots: range) -> Parts:
        """Those that may hold rows of these slots; in their order."""
        mask = (self.column("first_slot") <= slots[-1]) & (slots[0] <= self.column("last_slot"))
        return self.where(mask)

    def where(self, mask: NDArray[np.bool_]) -> Parts:
        """Some of them."""
        return Parts(self._columns.filter(pa.array(mask)), self._root)

    def by_name(self) -> Parts:
        """In the order of their names."""
        order = pc.sort_indices(self._columns.field("name"))
        return Parts(self._columns.take(order), self._root)

    def under(self, root: str) -> Parts:
        """The same with whole paths as names."""
        return Parts(self._columns, root)

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[Part]:
        for first in range(0, len(self), _KEPT):
            for values in self._columns.slice(first, _KEPT).to_pylist():
                slots = values.pop("first_slot"), values.pop("last_slot")
                if self._root:
                    values["name"] = f"{self._root}/{values['name']}"
                yield Part(**values, slots=slots)

    @overload
    def __getitem__(self, place: int) -> Part: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Part]: ...
    def __getitem__(self, place: int | slice) -> Part | Sequence[Part]:
        if isinstance(place, slice):
            return list(self)[place]
        return next(iter(Parts(self._columns.slice(range(len(self))[place], 1), self._root)))


class ReceiptList(Sequence[Receipt]):
    """Receipts in an order: rows of collections. It grows by `+=` and `extend`.

    Args:
        receipts: to begin with.
    """

    def __init__(self, receipts: Iterable[Receipt] = ()) -> None:
        self._of: list[tuple[Receipts, Rows]] = []
        self._kept: list[Receipt] | None = None
        self += receipts

    def extend(self, found: Receipts, rows: Rows) -> None:
        """Add rows of a collection."""
        self._kept = None
        if len(rows):
            self._of.append((found, rows))

    def __iadd__(self, receipts: Iterable[Receipt]) -> ReceiptList:
        if isinstance(receipts, ReceiptList):
            self._of += receipts._of
            self._kept = None
            return self
        own = Receipts()
        self.extend(own, np.array([own.add(one) for one in receipts], np.int64))
        return self

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self._of)

    def __iter__(self) -> Iterator[Receipt]:
        if self._kept is None and len(self) <= _KEPT:
            self._kept = [one for found, rows in self._of for one in found.at(rows)]
        if self._kept is not None:
            return iter(self._kept)
        return (one for found, rows in self._of for one in found.at(rows))

    @overload
    def __getitem__(self, place: int) -> Receipt: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Receipt]: ...
    def __getitem__(self, place: int | slice) -> Receipt | Sequence[Receipt]:
        if isinstance(place, slice):
            return list(self)[place]
        number = range(len(self))[place]
        for found, rows in self._of:
            if number < len(rows):
                return next(found.at(rows[number : number + 1]))
            number -= len(rows)
        raise IndexError(place)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of RECEIPTS."""
        tables = (found.table().select([name]).take(pa.array(rows)) for found, rows in self._of)
        columns = [table[name] for table in tables]
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks]) if columns else _nothing()

    @property
    def fingerprints(self) -> Digits:
        """Of the tasks, in their order."""
        pieces = [names_of(chunk.to_pylist()) for chunk in self.column("fingerprint").chunks]
        return np.concatenate([np.empty(0, "S32"), *pieces])

    def total(self, name: str) -> float:
        """The sum of a column of numbers."""
        return float(pc.sum(self.column(name)).as_py() or 0) if len(self) else 0.0

    def tells(self, kind: type[T]) -> list[T]:
        """What the tasks told, as values of their stage's type."""
        return [kind(**json.loads(text)) for chunk in self.column("told").chunks for text in chunk.to_pylist()]

    def parts(self, table: str, root: str = "") -> Parts:
        """The outputs that are files of a table, receipt after receipt; `root` goes before their names."""
        pieces: list[Any] = []
        for found, rows in self._of:
            some = outputs_of(found.table().select(["outputs"]).take(pa.array(rows)))[1]
            pieces.append(some.filter(pc.equal(some.field("table"), table)))
        return Parts(pa.concat_arrays(pieces) if pieces else outputs_of(Receipts().table())[1], root)


def _nothing() -> pa.ChunkedArray:
    return pa.chunked_array([], pa.string())
