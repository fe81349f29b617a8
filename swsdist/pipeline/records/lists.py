"""Light sequences over columns: the receipts that a step has come to, and files of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.types import OUTPUT
from swsdist.pipeline.records.receipts import Digits, Receipts, Rows, names_of, outputs_of
from swsdist.pipeline.task import Part, Receipt, TaskResult, result_as

T = TypeVar("T", bound=TaskResult)

#: Receipts of a list that are kept as objects once they were made.
_KEPT = 1024
#: Names that are made into strings at a time.
_PIECE = 1 << 16


class Parts(Sequence[Part]):
    """Files of a table, in columns; as a sequence, of `Part`.

    Args:
        columns: a struct array, `swsdist.core.types.OUTPUT`; its names as `Context.place` takes them.
    """

    def __init__(self, columns: pa.StructArray) -> None:
        self.columns = columns

    @property
    def names(self) -> pa.Array:
        """Names, strings."""
        return self.columns.field("name")

    def pieces(self) -> Iterator[list[str]]:
        """Names, some at a time."""
        for first in range(0, len(self), _PIECE):
            yield self.names.slice(first, _PIECE).to_pylist()

    def column(self, name: str) -> NDArray[np.int64]:
        """`size`, `rows`, `first_slot` or `last_slot` of each."""
        found: NDArray[np.int64] = self.columns.field(name).to_numpy(zero_copy_only=False)
        return found

    def meeting(self, slots: range) -> Parts:
        """Those that may hold rows of these slots; in their order."""
        return self.where((self.column("first_slot") <= slots[-1]) & (slots[0] <= self.column("last_slot")))

    def where(self, mask: NDArray[np.bool_]) -> Parts:
        """Some of them."""
        return Parts(self.columns.filter(pa.array(mask)))

    def by_name(self) -> Parts:
        """In the order of their names."""
        return Parts(self.columns.take(pc.sort_indices(self.names)))

    def under(self, root: str) -> Parts:
        """The same with whole paths as names, below a folder."""
        arrays = [self.columns.field(name) for name in OUTPUT.names]
        arrays[OUTPUT.get_field_index("name")] = pc.binary_join_element_wise(root, self.names, "/")
        return Parts(pa.StructArray.from_arrays(arrays, fields=list(OUTPUT)))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Part]:
        for first in range(0, len(self), _KEPT):
            for values in self.columns.slice(first, _KEPT).to_pylist():
                slots = values.pop("first_slot"), values.pop("last_slot")
                yield Part(**values, slots=slots)

    @overload
    def __getitem__(self, place: int) -> Part: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Part]: ...
    def __getitem__(self, place: int | slice) -> Part | Sequence[Part]:
        if isinstance(place, slice):
            return list(self)[place]
        return next(iter(Parts(self.columns.slice(range(len(self))[place], 1))))


def together(several: Sequence[Parts]) -> Parts:
    """All files of several."""
    return Parts(pa.concat_arrays([pa.array([], OUTPUT), *(item.columns for item in several)]))


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
        self.extend(own, np.array([own.add(receipt) for receipt in receipts], np.int64))
        return self

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self._of)

    def __iter__(self) -> Iterator[Receipt]:
        if self._kept is None and len(self) <= _KEPT:
            self._kept = [item for found, rows in self._of for item in found.at(rows)]
        if self._kept is not None:
            return iter(self._kept)
        return (item for found, rows in self._of for item in found.at(rows))

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

    def results(self, kind: type[T]) -> list[T]:
        """What the tasks told, as values of their stage's type."""
        return [result_as(kind, json.loads(text)) for chunk in self.column("told").chunks for text in chunk.to_pylist()]

    def parts(self, table: str) -> Parts:
        """The outputs that are files of a table, receipt after receipt."""
        pieces = []
        for found, rows in self._of:
            some = outputs_of(found.table().select(["outputs"]).take(pa.array(rows)))[1]
            pieces.append(Parts(some.filter(pc.equal(some.field("table"), table))))
        return together(pieces)


def _nothing() -> pa.ChunkedArray:
    return pa.chunked_array([], pa.string())
