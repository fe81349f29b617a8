"""The ledger knows from receipts what is done in a run folder and its stores, and from plans which of it is current.

A worker writes a receipt as a small file, last of all. The driver packs those that it knows into a table (Parquet, `RECEIPTS`)
while a stage goes on, and all of a stage into one when it has ended, so one read tells what is done, however many tasks there
are. A receipt stands if its outputs are there in their full size. Several plans may share a ledger: a task that several name is
done once.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from swsdist.core.path_safety import demand_inside
from swsdist.core.types import RECEIPTS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.records.listing import Listing
from swsdist.pipeline.records.lists import ReceiptList
from swsdist.pipeline.records.receipts import Digits, Receipts, Rows, names_of, outputs_of
from swsdist.pipeline.task import Failure, Receipt, Task
from swsdist.store import parquet

T = TypeVar("T")

_FOLDER = "receipts"

#: Receipts of a stage that lie about as single files before they are packed.
LOOSE = 2048
#: Times that a folder is listed anew since files of it were packed, or packs put together, meanwhile.
_AGAIN = 5


@dataclass
class StepOutcome:
    """A step that has come to its end in a plan.

    Attributes:
        receipts: of its tasks, in their order, round after round.
        failures: of its tasks.
        done: tasks that were done now.
        skipped: tasks that were done before.
        wall: seconds.
    """

    receipts: ReceiptList = field(default_factory=ReceiptList)
    failures: list[Failure] = field(default_factory=list)
    done: int = 0
    skipped: int = 0
    wall: float = 0.0

    @property
    def tasks(self) -> int:
        """How many were planned."""
        return len(self.receipts) + len(self.failures)


def receipt_name(stage: str, fingerprint: str) -> str:
    """Where a worker writes a task's receipt."""
    return f"{_FOLDER}/{stage}-{fingerprint}.json"


def pack_name(stage: str) -> str:
    """Where the receipts of a stage are packed when it has ended."""
    return f"{_FOLDER}/{stage}.parquet"


class _Known:
    """The receipts of a stage in a folder.

    Attributes:
        receipts: all.
        loose: names of single files.
        packs: names of packs.
    """

    def __init__(self, receipts: Receipts, loose: Iterable[str] = (), packs: Iterable[str] = ()) -> None:
        self.receipts = receipts
        self.loose = list(loose)
        self.packs = list(packs)
        self.unpacked = receipts.rows  # first row that is in no pack
        self._whole: NDArray[np.bool_] | None = None

    def whole(self, listing: Listing) -> NDArray[np.bool_]:
        """Of each row, whether all outputs are there in their full size; what is noted later is."""
        if self._whole is None:
            table = self.receipts.table()
            rows, outputs = outputs_of(table.select(["outputs"]))
            whole = listing.are_complete(outputs.field("name"), outputs.field("size").to_numpy(zero_copy_only=False))
            self._whole = np.ones(table.num_rows, bool)
            self._whole[rows[~whole]] = False
        return self._whole

    def stand(self, rows: Rows, listing: Listing) -> Rows:
        """Rows, with -1 where the outputs are not whole."""
        whole = self.whole(listing)
        old = (rows >= 0) & (rows < len(whole))
        rows[old] = np.where(whole[rows[old]], rows[old], -1)
        return rows


class Ledger:
    """The receipts of a run folder and of other folders that its tasks write to.

    Args:
        run: the run folder.
        counts: nothing but receipts is looked at, whether their outputs are there or not.

    Attributes:
        memo: whatever plans share while they are made, by a key of its own.
    """

    def __init__(self, run: Folder, counts: bool = False) -> None:
        self.run = run
        self._below = _FOLDER if counts else ""
        self.memo: dict[Hashable, Any] = {}
        self._listings: dict[str, Listing] = {}
        self._known: dict[tuple[str, str], _Known] = {}

    def folder(self, place: str = "") -> Folder:
        """The run folder, or another by its root."""
        return Folder(place, self.run.storage) if place else self.run

    def memoize(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gave for this key the first time."""
        if key not in self.memo:
            self.memo[key] = make()
        value: T = self.memo[key]
        return value

    def listing(self, place: str = "") -> Listing:
        """All files of a folder, or its receipts, listed once."""
        root = self.folder(place).root
        if root not in self._listings:
            files = self.folder(place).files(self._below)
            self._listings[root] = Listing((name, info.size) for name, info in files)
        return self._listings[root]

    def forget(self, place: str = "") -> None:
        """List a folder anew when next asked, and read its receipts anew."""
        root = self.folder(place).root
        self._listings.pop(root, None)
        for key in [key for key in self._known if key[0] == root]:
            del self._known[key]

    # -- receipts -------------------------------------------------------------------------------------------------

    def receipts(self, stage: str, place: str = "") -> Receipts:
        """All receipts of a stage, by fingerprint: of whatever plan, whether their outputs are there or not."""
        return self._of(stage, place).receipts

    def _of(self, stage: str, place: str) -> _Known:
        folder = self.folder(place)
        key = folder.root, stage
        for left in range(_AGAIN, 0, -1):
            if key in self._known:
                break
            try:
                self._known[key] = _read(folder, stage, self.listing(place))
            except FileNotFoundError:  # they were packed since they were listed
                if left == 1:
                    raise
                self.forget(place)
        return self._known[key]

    def rows(self, stage: str, place: str, names: Digits) -> Rows:
        """Rows of `receipts` of tasks that are done: the receipt and its outputs are there, in their full size; else -1."""
        known = self._of(stage, place)
        return known.stand(known.receipts.find(names), self.listing(place))

    def receipt(self, task: Task) -> Receipt | None:
        """The receipt of a task that is done."""
        (row,) = self.rows(task.stage, task.place, names_of([task.fingerprint]))
        return None if row < 0 else next(self.receipts(task.stage, task.place).at(np.array([row])))

    def note(self, task: Task, receipt: Receipt) -> None:
        """A task was done just now. Now and then those that lie about are packed."""
        known, listing = self._of(task.stage, task.place), self.listing(task.place)
        known.whole(listing)  # of what was there before this one
        known.receipts.add(receipt)
        for part in receipt.outputs:
            listing.add(part.name, part.size)
        name = receipt_name(task.stage, task.fingerprint)
        listing.add(name, 0)
        known.loose.append(name)
        if len(known.loose) >= LOOSE:
            self._pack_loose(task.stage, task.place)

    def _pack_loose(self, stage: str, place: str) -> None:
        """Put what is in no pack into one more."""
        known = self._of(stage, place)
        table = known.receipts.table()
        name = f"{_FOLDER}/{stage}.{uuid.uuid4().hex}.parquet"
        self._write(place, name, table.slice(known.unpacked))
        known.packs.append(name)
        known.unpacked = table.num_rows
        self._remove(place, known.loose)
        known.loose = []

    def pack(self, stage: str, place: str = "") -> None:
        """Put the receipts of a stage into one file, and remove the others."""
        known, name = self._of(stage, place), pack_name(stage)
        if not known.loose and set(known.packs) <= {name}:
            return
        table = known.receipts.table().take(pa.array(known.receipts.current_rows()))
        self._write(place, name, table)
        self._remove(place, [*known.loose, *(one for one in known.packs if one != name)])
        known.loose, known.packs, known.unpacked = [], [name], known.receipts.rows

    def _write(self, place: str, name: str, table: pa.Table) -> None:
        folder = self.folder(place)
        with folder.temporary(".parquet") as path:
            pq.write_table(table, path, compression="zstd", write_page_checksum=True)
            folder.publish(path, name)
        self.listing(place).add(name, 0)

    def _remove(self, place: str, names: list[str]) -> None:
        remove(self.folder(place), names)
        listing = self.listing(place)
        for name in names:
            listing.discard(name)

    def drop(self, stage: str, place: str = "") -> None:
        """Forget all receipts of a stage: its outputs are about to be replaced."""
        known = self._of(stage, place)
        self._remove(place, [*known.loose, *known.packs])
        self._known[self.folder(place).root, stage] = _Known(Receipts())

    def keep(self, named: Collection[str]) -> None:
        """Forget the receipts in the run folder of all tasks but these, and pack the others anew."""
        names = names_of(sorted(named))
        for stage in self._stages():
            known = self._of(stage, "")
            rows = known.receipts.find(names)
            rows = rows[rows >= 0]
            if len(rows) < len(known.receipts):
                self._write("", pack_name(stage), known.receipts.table().take(pa.array(np.sort(rows))))
                self._remove("", [*known.loose, *(one for one in known.packs if one != pack_name(stage))])
        self.forget()

    def outputs(self, tasks: Collection[str] | None = None) -> set[str]:
        """Names of what these tasks, or all, have made in the run folder, as its receipts tell, there or not."""
        names = None if tasks is None else names_of(sorted(tasks))
        found: set[str] = set()
        for stage in self._stages():
            receipts = self.receipts(stage)
            rows = receipts.current_rows() if names is None else receipts.find(names)
            table = receipts.table().select(["outputs"]).take(pa.array(rows[rows >= 0]))
            found.update(outputs_of(table)[1].field("name").to_pylist())
        return found

    def _stages(self) -> list[str]:
        """Those that have receipts in the run folder."""
        names = (_NAME.fullmatch(name) for name in self.listing().below(f"{_FOLDER}/"))
        return sorted({name["stage"] for name in names if name is not None})


def remove(folder: Folder, names: Iterable[str]) -> None:
    """Remove files, several at a time where that helps."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(folder.remove, names))


def _read(folder: Folder, stage: str, listing: Listing) -> _Known:
    """All receipts of a stage: packs, then single files, which are of later."""
    begin = f"{_FOLDER}/{stage}"
    packs = [name for name in listing.below(begin) if re.fullmatch(r"(\.[0-9a-f]{32})?\.parquet", name[len(begin) :])]
    loose = [name for name in listing.below(begin) if re.fullmatch(r"-.{32}\.json", name[len(begin) :])]
    packs.sort(key=lambda name: (name != pack_name(stage), name))
    receipts = Receipts(_tables(folder, packs))
    known = _Known(receipts, loose, packs)
    done = _done_at(receipts, loose, listing)
    with ThreadPoolExecutor(8) as pool:
        for name, text, before in zip(loose, pool.map(folder.read_bytes, loose), done, strict=True):
            # One that is cut off or of another version is passed over: its task is done again.
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                receipt = Receipt.from_json(text, folder.path(name))
                if receipt.started >= before:  # else a second attempt that was slower than the first: that one counts
                    receipts.add(receipt)
    return known


def _done_at(packed: Receipts, loose: list[str], listing: Listing) -> list[float]:
    """When the tasks of single receipts were done, as packed ones tell whose outputs are there; else the beginning of time."""
    names = names_of(name[-len(".json") - 32 : -len(".json")] for name in loose)
    rows = packed.find(names)
    found = np.full(len(rows), -np.inf)
    some = packed.table().take(pa.array(rows[rows >= 0]))
    found[rows >= 0] = np.where(_Known(Receipts([some])).whole(listing), some["finished"], -np.inf)
    return [float(one) for one in found]


#: A file of one receipt, or of many.
_NAME = re.compile(rf"{_FOLDER}/(?P<stage>[^/]+?)(-[0-9a-f]{{32}}\.json|(\.[0-9a-f]{{32}})?\.parquet)")

#: Names of files that `demand_inside` refuses.
_ODD = r"(^|/)\.{0,2}(/|$)|\x00"


def _tables(folder: Folder, packs: Iterable[str]) -> Iterator[pa.Table]:
    for name in packs:
        with folder.open(name) as _:  # missing: packed anew meanwhile
            pass
        table = parquet.read(folder, name)
        if "gpu_s" not in table.column_names:  # of a version that did not keep account of GPUs
            table = table.append_column("gpu_s", pa.repeat(pa.scalar(0.0), table.num_rows))
        table = table.select(RECEIPTS.names).cast(RECEIPTS)
        names = pc.struct_field(pc.list_flatten(table["outputs"]), "name")
        for odd in names.filter(pc.match_substring_regex(names, _ODD)).to_pylist():
            demand_inside(odd, folder.path(name), "outputs.name")
        yield table
