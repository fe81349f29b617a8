"""Receipts and open tasks by the million: receipts as columns, and tasks in a file.

Receipts are a table in memory and on disk, indexed by fingerprint; `Receipt` objects are made on access. Receipts that
are added one by one wait in a short list, which is merged into the table from time to time. Row numbers do not change,
so a list of receipts is an array of rows (`ReceiptList`).

Open tasks wait in a file: a million take about 20 MB of memory, whatever their payload. Each task is a pickled record
in an anonymous temporary file of this process, which nobody else can write to. The common part of a stage's tasks
(`Task.common`) is stored once.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import tempfile
from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from itertools import islice, pairwise
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Ints
from swsdist.core.types import OUTPUT, RECEIPTS
from swsdist.pipeline.task import Cost, Part, Receipt, Task, TaskResult, result_as

T = TypeVar("T")
R = TypeVar("R", bound=TaskResult)

_COST = tuple(field.name for field in fields(Cost))

#: Receipts in the list before they are merged into the table.
_FRESH = 4096
#: Rows converted to objects at a time.
_DECODED = 1024

#: Digits of a fingerprint.
_DIGITS = 32
#: Fingerprints compared at a time.
_COMPARED = 1 << 16

#: Fingerprints: 32 hexadecimal digits each.
Digits = NDArray[np.bytes_]
Rows = Ints


def names_of(fingerprints: Iterable[str]) -> Digits:
    """Fingerprints as an array of bytes."""
    return np.array([fingerprint.encode() for fingerprint in fingerprints], "S32")


def first_of_each(names: Digits) -> Rows:
    """Ascending indices of the first occurrence of each fingerprint."""
    order = np.argsort(names, kind="stable")
    first = np.ones(len(names), bool)
    for begin in range(1, len(names), _COMPARED):  # a single comparison would need two more copies
        some = names[order[begin - 1 : begin + _COMPARED]]
        first[order[begin : begin + _COMPARED]] = some[1:] != some[:-1]
    return np.flatnonzero(first)


class Indexed(Sequence[T]):
    """A sequence whose items are made on access."""

    @abstractmethod
    def _item(self, place: int) -> T:
        """The item at an index from 0."""

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return list(self)[place] if isinstance(place, slice) else self._item(range(len(self))[place])


class Names(Indexed[str]):
    """An ordered list of fingerprints, 32 bytes each.

    Args:
        names: fingerprints, or an array of them.
    """

    def __init__(self, names: Iterable[str] | Digits = ()) -> None:
        self.array = names if isinstance(names, np.ndarray) else names_of(names)

    @classmethod
    def of_text(cls, text: str) -> Names:
        """Parse the output of `text`.

        Raises:
            ValueError: the text has another format.
        """
        letters = np.frombuffer(text.encode("ascii"), np.uint8).reshape(-1, _DIGITS + 1)
        if (letters[:, _DIGITS] != ord(" ")).any():
            raise ValueError(text[:99])
        return cls(np.ascontiguousarray(letters[:, :_DIGITS]).view(f"S{_DIGITS}").reshape(-1))

    def text(self) -> str:
        """All fingerprints in one string, each followed by a space."""
        letters = np.full((len(self.array), _DIGITS + 1), ord(" "), np.uint8)
        letters[:, :_DIGITS] = self._letters().reshape(-1, _DIGITS)
        return letters.tobytes().decode("ascii")

    def digest(self) -> str:
        """16 hexadecimal digits that identify the list."""
        return hashlib.sha256(self._letters().data).hexdigest()[:16]

    def _letters(self) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self.array, f"S{_DIGITS}").view(np.uint8)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self.array), _DECODED):
            yield from self.array[first : first + _DECODED].astype("U32").tolist()

    def _item(self, place: int) -> str:
        return str(self.array[place].decode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and np.array_equal(self.array, other.array)

    __hash__ = None  # type: ignore[assignment]


class Receipts(Mapping[str, Receipt]):
    """The receipts of a stage by fingerprint; a later receipt replaces an earlier one.

    Args:
        tables: RECEIPTS, earliest first.
    """

    def __init__(self, tables: Iterable[pa.Table] = ()) -> None:
        self._tables: list[pa.Table] = []
        self._count = 0  # rows of the tables
        self._sorted: list[tuple[Digits, Rows]] = []  # sorted distinct fingerprints and their rows; oldest first
        self._fresh: list[Receipt] = []
        self._fresh_rows: dict[str, int] = {}
        for table in tables:
            self.extend(table)

    @property
    def rows(self) -> int:
        """Number of rows, including replaced receipts."""
        return self._count + len(self._fresh)

    def add(self, receipt: Receipt) -> int:
        """Add a receipt; returns its row."""
        row = self._fresh_rows[receipt.fingerprint] = self.rows
        self._fresh.append(receipt)
        if len(self._fresh) >= _FRESH:
            self._merge()
        return row

    def extend(self, table: pa.Table) -> None:
        """Add a table of receipts."""
        self._merge()
        if table.num_rows == 0:
            return
        names = _bytes(table["fingerprint"])
        order = np.argsort(names, kind="stable")
        self._tables.append(table)
        self._sorted.append(_last(names[order], order + self._count))
        self._count += table.num_rows
        # Arrays of similar size are merged: few arrays remain, and each row is sorted only a few times.
        while len(self._sorted) > 1 and len(self._sorted[-2][0]) < 2 * len(self._sorted[-1][0]):
            (left, first), (right, second) = self._sorted[-2:]
            both, places = np.concatenate([left, right]), np.concatenate([first, second])
            order = np.argsort(both, kind="stable")
            self._sorted[-2:] = [_last(both[order], places[order])]

    def _merge(self) -> None:
        if self._fresh:
            fresh, self._fresh, self._fresh_rows = self._fresh, [], {}
            self.extend(encoded(fresh))

    def find(self, names: Digits) -> Rows:
        """Rows of fingerprints; -1: no receipt."""
        self._merge()
        rows_found = np.full(len(names), -1, np.int64)
        for sorted_names, rows in self._sorted:
            at = np.minimum(np.searchsorted(sorted_names, names), len(sorted_names) - 1)
            matches = sorted_names[at] == names
            rows_found[matches] = rows[at[matches]]
        return rows_found

    def table(self) -> pa.Table:
        """All rows, RECEIPTS, including replaced receipts."""
        self._merge()
        if len(self._tables) > 1:
            self._tables = [pa.concat_tables(self._tables)]
        return self._tables[0] if self._tables else RECEIPTS.empty_table()

    def current_rows(self) -> Rows:
        """Rows that were not replaced, by fingerprint."""
        self._merge()
        if not self._sorted:
            return np.empty(0, np.int64)
        names, rows = (np.concatenate(some) for some in zip(*self._sorted, strict=True))
        order = np.argsort(names, kind="stable")
        return _last(names[order], rows[order])[1]

    def at(self, rows: Rows) -> Iterator[Receipt]:
        """The receipts of rows, decoded in batches."""
        for first in range(0, len(rows), _DECODED):
            some = rows[first : first + _DECODED]
            if some.min() >= self._count:  # not merged yet
                yield from (self._fresh[row - self._count] for row in some)
            else:
                yield from decoded(self.table().take(pa.array(some)))

    def __getitem__(self, fingerprint: str) -> Receipt:
        if fingerprint in self._fresh_rows:
            return self._fresh[self._fresh_rows[fingerprint] - self._count]
        row = self.find(names_of([fingerprint]))
        if row[0] < 0:
            raise KeyError(fingerprint)
        return next(self.at(row))

    def __iter__(self) -> Iterator[str]:
        names = self.table()["fingerprint"].take(pa.array(self.current_rows()))
        return iter(names.to_pylist())

    def __len__(self) -> int:
        return len(self.current_rows())


def encoded(receipts: Sequence[Receipt]) -> pa.Table:
    """Encode receipts as RECEIPTS."""
    rows = [
        {
            **vars(receipt),
            **vars(receipt.cost),
            "work": float(receipt.work),
            "outputs": [_columns(part) for part in receipt.outputs],
            "told": json.dumps(receipt.result, ensure_ascii=False),
            "rejected": json.dumps(receipt.rejected, ensure_ascii=False),
        }
        for receipt in receipts
    ]
    return pa.Table.from_pylist(rows, RECEIPTS)


def decoded(table: pa.Table) -> Iterator[Receipt]:
    """Decode RECEIPTS."""
    for row in table.to_pylist():
        cost = Cost(**{name: row.pop(name) for name in _COST})
        outputs = tuple(_part(values) for values in row.pop("outputs"))
        result, rejected = json.loads(row.pop("told")), json.loads(row.pop("rejected"))
        yield Receipt(**row, outputs=outputs, result=result, rejected=rejected, cost=cost)


def outputs_of(table: pa.Table) -> tuple[Rows, pa.StructArray]:
    """Flatten the outputs of RECEIPTS.

    Returns:
        The table row of each output, and the outputs.
    """
    rows, parts, start = [np.empty(0, np.int64)], [pa.array([], OUTPUT)], 0
    for chunk in table["outputs"].chunks:
        counts = pc.list_value_length(chunk).to_numpy(zero_copy_only=False)
        rows.append(np.repeat(np.arange(start, start + len(chunk)), counts))
        parts.append(chunk.flatten())
        start += len(chunk)
    return np.concatenate(rows), pa.concat_arrays(parts)


def _columns(part: Part) -> dict[str, Any]:
    values = part._asdict()
    first, last = values.pop("slots")
    return {**values, "first_slot": first, "last_slot": last}


def _part(values: dict[str, Any]) -> Part:
    first, last = values.pop("first_slot"), values.pop("last_slot")
    return Part(**values, slots=(first, last))


def _bytes(fingerprints: pa.ChunkedArray) -> Digits:
    if not fingerprints.num_chunks:
        return np.empty(0, "S32")
    return np.concatenate([names_of(chunk.to_pylist()) for chunk in _pieces(fingerprints)])


def _pieces(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """A column in pieces whose Python objects fit in memory."""
    for chunk in column.chunks:
        borders = [*range(0, len(chunk), 1 << 16), len(chunk)]
        yield from (chunk.slice(first, last - first) for first, last in pairwise(borders))


def _last(names: Digits, rows: Rows) -> tuple[Digits, Rows]:
    """The last of equal, adjacent names."""
    keep = np.append(names[1:] != names[:-1], True)[: len(names)]
    return names[keep], rows[keep]


#: Bytes of records in memory before a file is used.
_IN_MEMORY = 1 << 20


class PolicyTask(Protocol):
    """The attributes of a task that a queue and the policy use."""

    @property
    def fingerprint(self) -> str:
        """Name of the task."""
        ...

    @property
    def work(self) -> float:
        """Size of the task."""
        ...


P = TypeVar("P", bound=PolicyTask)


class Spool(Indexed[Task]):
    """Tasks in the order of insertion."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (open as long as the object)
        self._offsets = array("q")
        self._works = array("d")
        self._end = 0
        self._common: list[Any] = []

    def put(self, task: Task) -> None:
        """Add a task."""
        if not self._common or self._common[-1] is not task.common:
            self._common.append(task.common)
        data = pickle.dumps({**vars(task), "common": len(self._common) - 1}, pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        self._file.write(data)
        self._offsets.append(self._end)
        self._works.append(task.work)
        self._end += len(data)

    def take(self, places: Ints) -> Spool:
        """The tasks at some indices, in that order."""
        chosen = copy(self)
        chosen._offsets = array("q", [self._offsets[place] for place in places])
        chosen._works = array("d", [self._works[place] for place in places])
        return chosen

    @property
    def works(self) -> Sequence[float]:
        """Work of each task."""
        return self._works

    @property
    def work(self) -> float:
        """Work of all tasks."""
        return float(np.sum(np.frombuffer(self._works, np.float64))) if self._works else 0.0

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Task]:
        return (self[place] for place in range(len(self)))

    def _item(self, place: int) -> Task:
        self._file.seek(self._offsets[place])
        values = pickle.load(self._file)
        return Task(**{**values, "common": self._common[values["common"]]})


def together(several: Sequence[Spool]) -> Spool:
    """Concatenate."""
    if len(several) == 1:
        return several[0]
    spool = Spool()
    for item in several:
        for task in item:
            spool.put(task)
    return spool


class Queue(Generic[P]):
    """A queue of tasks, largest first; returned tasks go to the front or the back.

    Args:
        tasks: all tasks.
    """

    def __init__(self, tasks: Sequence[P] = ()) -> None:
        self._tasks = tasks
        works = tasks.works if isinstance(tasks, Spool) else [task.work for task in tasks]
        self._order = iter(np.argsort(-np.array(works, np.float64), kind="stable"))
        self._left = len(tasks)  # of the order
        self._front: deque[P] = deque()
        self._back: deque[P] = deque()

    def popleft(self) -> P:
        """Remove and return the next task.

        Raises:
            IndexError: the queue is empty.
        """
        if self._front:
            return self._front.popleft()
        if self._left:
            self._left -= 1
            return self._tasks[int(next(self._order))]
        return self._back.popleft()

    def extend(self, tasks: Iterable[P]) -> None:
        """Add several to the back."""
        self._back.extend(tasks)

    def extendleft(self, tasks: Iterable[P]) -> None:
        """Add several to the front, each before the previous one."""
        self._front.extendleft(tasks)

    def clear(self) -> None:
        """Remove all tasks."""
        self._front.clear()
        self._back.clear()
        self._left = 0

    def __len__(self) -> int:
        return len(self._front) + self._left + len(self._back)

    def __iter__(self) -> Iterator[P]:
        """Remove and yield all tasks."""
        while len(self):
            yield self.popleft()


#: Longest list of receipts that is cached as objects.
_CACHED = 1024
#: Names converted to strings at a time.
_PIECE = 1 << 16


class Parts(Indexed[Part]):
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

    def column(self, name: str) -> Ints:
        """int64 (n,): `size`, `rows`, `first_slot` or `last_slot` of each file."""
        receipts: Ints = self.columns.field(name).to_numpy(zero_copy_only=False)
        return receipts

    def meeting(self, slots: range) -> Parts:
        """Files that may have rows of these slots, in order."""
        return self.where((self.column("first_slot") <= slots[-1]) & (slots[0] <= self.column("last_slot")))

    def where(self, mask: Bools) -> Parts:
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
            yield from map(_part, self.columns.slice(first, _CACHED).to_pylist())

    def _item(self, place: int) -> Part:
        return _part(self.columns[place].as_py())


def joined_parts(several: Sequence[Parts]) -> Parts:
    """Concatenate."""
    return Parts(pa.concat_arrays([pa.array([], OUTPUT), *(item.columns for item in several)]))


class ReceiptList(Indexed[Receipt]):
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

    def _item(self, place: int) -> Receipt:
        for receipts, rows in self._of:
            if place < len(rows):
                return next(receipts.at(rows[place : place + 1]))
            place -= len(rows)
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

    def results(self, kind: type[R]) -> list[R]:
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
        sizes: list[Ints] = [np.empty(0, np.int64)]
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

    def are_complete(self, names: pa.Array, sizes: Ints) -> Bools:
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
