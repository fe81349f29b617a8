"""Sequences over columns: lists of receipts, and files of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.types import OUTPUT
from swsdist.pipeline.receipts import Digits, Receipts, Rows, names_of, outputs_of
from swsdist.pipeline.task import Part, Receipt, TaskResult, result_as

T = TypeVar("T", bound=TaskResult)

#: Longest list of receipts that is cached as objects.
_CACHED = 1024
#: Names converted to strings at a time.
_PIECE = 1 << 16


class Parts(Sequence[Part]):
    """Files of a table: columns in memory, a sequence of `Part` by its interface.

    Args:
        columns: struct array of `swsdist.core.types.OUTPUT`, with names for `Context.place`.
    """

    def __init__(self, columns: pa.StructArray) -> None:
        self.columns = columns

    @property
    def names(self) -> pa.Array:
        """Names as strings."""
        return self.columns.field("name")

    def pieces(self) -> Iterator[list[str]]:
        """Names in batches."""
        for first in range(0, len(self), _PIECE):
            yield self.names.slice(first, _PIECE).to_pylist()

    def column(self, name: str) -> NDArray[np.int64]:
        """int64 (n,): `size`, `rows`, `first_slot` or `last_slot` of each file."""
        receipts: NDArray[np.int64] = self.columns.field(name).to_numpy(zero_copy_only=False)
        return receipts

    def meeting(self, slots: range) -> Parts:
        """Files that may have rows of these slots, in order."""
        return self.where((self.column("first_slot") <= slots[-1]) & (slots[0] <= self.column("last_slot")))

    def where(self, mask: NDArray[np.bool_]) -> Parts:
        """The files where the mask is true."""
        return Parts(self.columns.filter(pa.array(mask)))

    def by_name(self) -> Parts:
        """The files sorted by name."""
        return Parts(self.columns.take(pc.sort_indices(self.names)))

    def under(self, root: str) -> Parts:
        """The files with absolute paths below a folder as names."""
        arrays = [self.columns.field(name) for name in OUTPUT.names]
        arrays[OUTPUT.get_field_index("name")] = pc.binary_join_element_wise(root, self.names, "/")
        return Parts(pa.StructArray.from_arrays(arrays, fields=list(OUTPUT)))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Part]:
        for first in range(0, len(self), _CACHED):
            for values in self.columns.slice(first, _CACHED).to_pylist():
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


def joined_parts(several: Sequence[Parts]) -> Parts:
    """Concatenate."""
    return Parts(pa.concat_arrays([pa.array([], OUTPUT), *(item.columns for item in several)]))


class ReceiptList(Sequence[Receipt]):
    """An ordered list of receipts: rows of `Receipts`. It grows by `+=` and `extend`.

    Args:
        receipts: first receipts.
    """

    def __init__(self, receipts: Iterable[Receipt] = ()) -> None:
        self._of: list[tuple[Receipts, Rows]] = []
        self._cached: list[Receipt] | None = None
        self += receipts

    def extend(self, receipts: Receipts, rows: Rows) -> None:
        """Add rows of a collection."""
        self._cached = None
        if len(rows):
            self._of.append((receipts, rows))

    def __iadd__(self, receipts: Iterable[Receipt]) -> ReceiptList:
        if isinstance(receipts, ReceiptList):
            self._of += receipts._of
            self._cached = None
            return self
        added = Receipts()
        self.extend(added, np.array([added.add(receipt) for receipt in receipts], np.int64))
        return self

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self._of)

    def __iter__(self) -> Iterator[Receipt]:
        if self._cached is None and len(self) <= _CACHED:
            self._cached = [item for receipts, rows in self._of for item in receipts.at(rows)]
        if self._cached is not None:
            return iter(self._cached)
        return (item for receipts, rows in self._of for item in receipts.at(rows))

    @overload
    def __getitem__(self, place: int) -> Receipt: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Receipt]: ...
    def __getitem__(self, place: int | slice) -> Receipt | Sequence[Receipt]:
        if isinstance(place, slice):
            return list(self)[place]
        number = range(len(self))[place]
        for receipts, rows in self._of:
            if number < len(rows):
                return next(receipts.at(rows[number : number + 1]))
            number -= len(rows)
        raise IndexError(place)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of RECEIPTS."""
        tables = (receipts.table().select([name]).take(pa.array(rows)) for receipts, rows in self._of)
        columns = [table[name] for table in tables]
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks]) if columns else _nothing()

    @property
    def fingerprints(self) -> Digits:
        """Fingerprints of the tasks, in order."""
        pieces = [names_of(chunk.to_pylist()) for chunk in self.column("fingerprint").chunks]
        return np.concatenate([np.empty(0, "S32"), *pieces])

    def total(self, name: str) -> float:
        """The sum of a column of numbers."""
        return float(pc.sum(self.column(name)).as_py() or 0) if len(self) else 0.0

    def results(self, kind: type[T]) -> list[T]:
        """Results of the tasks that have one, as the stage's type."""
        texts = (text for chunk in self.column("told").chunks for text in chunk.to_pylist())
        return [result_as(kind, values) for text in texts if (values := json.loads(text))]

    def parts(self, table: str) -> Parts:
        """Output files of a table, receipt after receipt."""
        pieces = []
        for receipts, rows in self._of:
            outputs = outputs_of(receipts.table().select(["outputs"]).take(pa.array(rows)))[1]
            pieces.append(Parts(outputs.filter(pc.equal(outputs.field("table"), table))))
        return joined_parts(pieces)


def _nothing() -> pa.ChunkedArray:
    return pa.chunked_array([], pa.string())


class Listing:
    """Names and sizes.

    Args:
        files: name and size of each.
    """

    def __init__(self, files: Iterable[tuple[str, int]]) -> None:
        names: list[pa.Array] = [pa.array([], pa.large_string())]
        sizes: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        left = iter(files)
        while piece := list(islice(left, _PIECE)):
            names.append(pa.array([name for name, _ in piece], pa.large_string()))
            sizes.append(np.array([size for _, size in piece], np.int64))
        self._names = pa.concat_arrays(names)
        self._sizes = np.concatenate(sizes)
        self._size_by_name: dict[str, int] | None = None
        self._added: dict[str, int] = {}
        self._removed: set[str] = set()

    def size(self, name: str) -> int | None:
        """Bytes of a file; None: no such file."""
        if name in self._added:
            return self._added[name]
        if name in self._removed:
            return None
        if self._size_by_name is None:
            self._size_by_name = dict(zip(self._names.to_pylist(), self._sizes.tolist(), strict=True))
        return self._size_by_name.get(name)

    def __contains__(self, name: str) -> bool:
        return self.size(name) is not None

    def add(self, name: str, size: int) -> None:
        """Add a new file."""
        self._added[name] = size
        self._removed.discard(name)

    def discard(self, name: str) -> None:
        """Remove a file."""
        self._added.pop(name, None)
        self._removed.add(name)

    def below(self, prefix: str) -> Iterator[str]:
        """Names with a prefix."""
        matching = self._names.filter(pc.starts_with(self._names, prefix))
        yield from (name for name in matching.to_pylist() if name not in self._removed and name not in self._added)
        yield from (name for name in self._added if name.startswith(prefix))

    def are_complete(self, names: pa.Array, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool (n,): whether each file exists in its size."""
        complete = np.zeros(len(names), bool)
        if len(names) and len(self._names):
            at = pc.index_in(names.cast(pa.large_string()), value_set=self._names)
            place = pc.fill_null(at, -1).to_numpy(zero_copy_only=False)
            complete = (place >= 0) & (self._sizes[place] == sizes)
        if self._added or self._removed:
            for k, name in enumerate(names.to_pylist()):
                if name in self._added or name in self._removed:
                    complete[k] = self._added.get(name) == sizes[k]
        return complete
