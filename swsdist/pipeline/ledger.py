"""The ledger knows from receipts what is done in a run folder and its stores, and from plans which of it is current.

A worker writes a receipt as a small file, last of all. When a stage has ended, the driver packs its receipts into one file, a
line each, so one read tells what is done, however many tasks there are. A receipt stands if its outputs are there in their full
size. Several plans may share a ledger: a task that several name is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from swsdist.io.filesystem import Folder, Info
from swsdist.pipeline.task import Failure, Receipt, Task

T = TypeVar("T")

_FOLDER = "receipts"


@dataclass
class Ended:
    """A step that has come to its end in a plan.

    Attributes:
        receipts: of its tasks, in their order, round after round.
        failures: of its tasks.
        done: tasks that were done now.
        skipped: tasks that were done before.
        wall: seconds.
    """

    receipts: list[Receipt] = field(default_factory=list)
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
    """Where the receipts of a stage are packed."""
    return f"{_FOLDER}/{stage}.jsonl"


class Ledger:
    """The receipts of a run folder and of other folders that its tasks write to.

    Args:
        run: the run folder.

    Attributes:
        memo: whatever plans share while they are made, by a key of its own.
    """

    def __init__(self, run: Folder) -> None:
        self.run = run
        self.memo: dict[Hashable, Any] = {}
        self._listings: dict[str, dict[str, Info]] = {}
        self._receipts: dict[tuple[str, str], dict[str, Receipt]] = {}

    def folder(self, place: str = "") -> Folder:
        """The run folder, or another by its root."""
        return Folder(place, self.run.storage) if place else self.run

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gave for this key the first time."""
        if key not in self.memo:
            self.memo[key] = make()
        value: T = self.memo[key]
        return value

    def listing(self, place: str = "") -> dict[str, Info]:
        """All files of a folder, listed once."""
        root = self.folder(place).root
        if root not in self._listings:
            self._listings[root] = self.folder(place).listing()
        return self._listings[root]

    def forget(self, place: str = "") -> None:
        """List a folder anew when next asked, and read its receipts anew."""
        root = self.folder(place).root
        self._listings.pop(root, None)
        for key in [key for key in self._receipts if key[0] == root]:
            del self._receipts[key]

    # -- receipts -------------------------------------------------------------------------------------------------

    def receipts(self, stage: str, place: str = "") -> dict[str, Receipt]:
        """All receipts of a stage, by fingerprint: of whatever plan, whether their outputs are there or not."""
        folder = self.folder(place)
        key = folder.root, stage
        if key not in self._receipts:
            try:
                self._receipts[key] = self._read(folder, stage, self.listing(place))
            except FileNotFoundError:  # they were packed since they were listed
                self.forget(place)
                self._receipts[key] = self._read(folder, stage, self.listing(place))
        return self._receipts[key]

    def _read(self, folder: Folder, stage: str, listing: Mapping[str, Info]) -> dict[str, Receipt]:
        found: dict[str, Receipt] = {}
        if pack_name(stage) in listing:
            for line in folder.read_bytes(pack_name(stage)).decode().split("\n"):
                _keep(found, line)
        loose = [name for name in listing if _is_receipt(name, stage)]
        with ThreadPoolExecutor(8) as pool:
            for text in pool.map(folder.read_bytes, loose):
                _keep(found, text)
        return found

    def receipt(self, task: Task) -> Receipt | None:
        """The receipt of a task that is done: it is there, and so are its outputs, in their full size."""
        receipt = self.receipts(task.stage, task.place).get(task.fingerprint)
        if receipt is None:
            return None
        listing = self.listing(task.place)
        whole = all(part.name in listing and listing[part.name].size == part.size for part in receipt.outputs)
        return receipt if whole else None

    def note(self, task: Task, receipt: Receipt) -> None:
        """A task was done just now."""
        self.receipts(task.stage, task.place)[task.fingerprint] = receipt
        listing = self.listing(task.place)
        for part in receipt.outputs:
            listing[part.name] = Info(part.size, "")
        name = receipt_name(task.stage, task.fingerprint)
        listing[name] = Info(0, "")

    def pack(self, stage: str, place: str = "") -> None:
        """Put the receipts of a stage into one file, and remove the single ones."""
        folder, listing = self.folder(place), self.listing(place)
        loose = [name for name in listing if _is_receipt(name, stage)]
        if not loose:
            return
        receipts = self.receipts(stage, place)
        lines = "\n".join(receipts[fingerprint].to_json() for fingerprint in sorted(receipts))
        folder.write_bytes(pack_name(stage), lines.encode())
        listing[pack_name(stage)] = Info(0, "")
        remove(folder, loose)
        for name in loose:
            del listing[name]

    def drop(self, stage: str, place: str = "") -> None:
        """Forget all receipts of a stage: its outputs are about to be replaced."""
        folder, listing = self.folder(place), self.listing(place)
        names = [name for name in listing if name == pack_name(stage) or _is_receipt(name, stage)]
        remove(folder, names)
        for name in names:
            del listing[name]
        self._receipts[folder.root, stage] = {}

    def keep(self, named: Collection[str]) -> None:
        """Forget the receipts in the run folder of all tasks but these, and pack the others anew."""
        stages = {name.removeprefix(f"{_FOLDER}/").removesuffix(".jsonl") for name in self.listing() if _is_pack(name)}
        for stage in sorted(stages):
            receipts = self.receipts(stage)
            stay = sorted(set(receipts) & set(named))
            if len(stay) < len(receipts):
                lines = "\n".join(receipts[fingerprint].to_json() for fingerprint in stay)
                self.run.write_bytes(pack_name(stage), lines.encode())
        self.forget()


def remove(folder: Folder, names: Iterable[str]) -> None:
    """Remove files, several at a time where that helps."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(folder.remove, names))


def _is_pack(name: str) -> bool:
    return name.startswith(f"{_FOLDER}/") and name.endswith(".jsonl")


def _is_receipt(name: str, stage: str) -> bool:
    """Whether a name is that of a single receipt of a stage; stages' names may begin alike."""
    start, end = f"{_FOLDER}/{stage}-", ".json"
    return name.startswith(start) and name.endswith(end) and len(name) == len(start) + 32 + len(end)


def _keep(found: dict[str, Receipt], text: str | bytes) -> None:
    """Add a receipt; one that is cut off or of another version is passed over: its task is done again."""
    if text:
        with suppress(ValueError, TypeError, KeyError):
            receipt = Receipt.from_json(text)
            found[receipt.fingerprint] = receipt
