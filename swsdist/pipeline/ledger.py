"""The ledger of a run folder and its stores: receipts, which record finished tasks, and plans, which list all tasks.

Receipts: a worker writes a receipt as a small file, after its outputs. The driver packs receipts into tables (Parquet,
`RECEIPTS`) while a stage runs, and into one table when the stage ends, so that one read finds all finished tasks. A
receipt is valid if its outputs exist in their full size.

Plans: the list of tasks of each step. A run has one plan, a sweep has many. Tasks that several plans share are done
once, and a list of tasks that they share is written once. The plans of a ledger define which tables of the folder are
current.
"""

from __future__ import annotations

import json
import posixpath
import re
import uuid
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdist.core.arrays import Bools
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StorageError, StoreError
from swsdist.core.types import RECEIPTS
from swsdist.io.filesystem import Folder, demand_inside, is_remote
from swsdist.pipeline.receipts import Digits, Listing, Names, ReceiptList, Receipts, Rows, names_of, outputs_of
from swsdist.pipeline.task import Failure, Receipt, Task
from swsdist.store import parquet

T = TypeVar("T")

_FOLDER = "receipts"

#: Single receipt files of a stage before they are packed.
LOOSE = 2048
#: Attempts to list a folder whose receipts another process packs meanwhile.
_ATTEMPTS = 5


@dataclass
class StepOutcome:
    """The outcome of a step in a plan.

    Attributes:
        receipts: receipts of its tasks, in order, round after round.
        failures: its failed tasks.
        done: number of tasks done in this run.
        skipped: number of tasks done earlier.
        wall: duration, s.
    """

    receipts: ReceiptList = field(default_factory=ReceiptList)
    failures: list[Failure] = field(default_factory=list)
    done: int = 0
    skipped: int = 0
    wall: float = 0.0

    @property
    def tasks(self) -> int:
        """Number of planned tasks."""
        return len(self.receipts) + len(self.failures)


def receipt_name(stage: str, fingerprint: str) -> str:
    """File name of a task's receipt."""
    return f"{_FOLDER}/{stage}-{fingerprint}.json"


def written_receipt(folder: Folder, task: Task) -> Receipt | None:
    """The receipt that a worker wrote of a task; None if there is none with all outputs in their full size."""
    try:
        receipt = Receipt.from_json(folder.read_bytes(receipt_name(task.stage, task.fingerprint)))
        has_outputs = all(folder.identity(part.name).startswith(f"{part.size}:") for part in receipt.outputs)
    except (FileNotFoundError, StorageError, ValueError, TypeError, KeyError):
        return None  # the task is done again
    return receipt if has_outputs else None


def pack_name(stage: str) -> str:
    """File name of the packed receipts of a finished stage."""
    return f"{_FOLDER}/{stage}.parquet"


class _StageReceipts:
    """The receipts of a stage in a folder.

    Attributes:
        receipts: all receipts.
        loose: names of single receipt files.
        packs: names of packed tables.
    """

    def __init__(self, receipts: Receipts, loose: Iterable[str] = (), packs: Iterable[str] = ()) -> None:
        self.receipts = receipts
        self.loose = list(loose)
        self.packs = list(packs)
        self.unpacked = receipts.rows  # first row that is not packed
        self._complete: Bools | None = None

    def complete(self, listing: Listing) -> Bools:
        """bool (n,): whether all outputs of each row exist in full size; rows added later are taken as complete."""
        if self._complete is None:
            table = self.receipts.table()
            rows, outputs = outputs_of(table.select(["outputs"]))
            complete = listing.are_complete(outputs.field("name"), outputs.field("size").to_numpy(zero_copy_only=False))
            self._complete = np.ones(table.num_rows, bool)
            self._complete[rows[~complete]] = False
        return self._complete

    def drop_incomplete(self, rows: Rows, listing: Listing) -> Rows:
        """The rows, with -1 where outputs are missing or truncated."""
        complete = self.complete(listing)
        old = (rows >= 0) & (rows < len(complete))
        rows[old] = np.where(complete[rows[old]], rows[old], -1)
        return rows


class Ledger:
    """The receipts of a run folder and of other folders that its tasks write to.

    Args:
        run: the run folder.
        receipts_only: list receipts only, without checking that outputs exist.

    Attributes:
        memo: values that plans share while they are made, by key.
    """

    def __init__(self, run: Folder, receipts_only: bool = False) -> None:
        self.run = run
        self._below = _FOLDER if receipts_only else ""
        self.memo: dict[Hashable, Any] = {}
        self._listings: dict[str, Listing] = {}
        self._by_stage: dict[tuple[str, str], _StageReceipts] = {}

    def folder(self, place: str = "") -> Folder:
        """A folder by its root; empty: the run folder."""
        return Folder(place, self.run.storage) if place else self.run

    def memoize(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make` for a key, computed once."""
        if key not in self.memo:
            self.memo[key] = make()
        value: T = self.memo[key]
        return value

    def listing(self, place: str = "") -> Listing:
        """The files of a folder (or its receipts only), listed once."""
        root = self.folder(place).root
        if root not in self._listings:
            files = self.folder(place).files(self._below)
            self._listings[root] = Listing((name, info.size) for name, info in files)
        return self._listings[root]

    def forget(self, place: str = "") -> None:
        """Drop what is records of a folder; it is listed and read anew when needed."""
        root = self.folder(place).root
        self._listings.pop(root, None)
        for key in [key for key in self._by_stage if key[0] == root]:
            del self._by_stage[key]

    # -- receipts -------------------------------------------------------------------------------------------------

    def receipts(self, stage: str, place: str = "") -> Receipts:
        """All receipts of a stage, by fingerprint: of all plans, whether their outputs exist or not."""
        return self._records(stage, place).receipts

    def _records(self, stage: str, place: str) -> _StageReceipts:
        folder = self.folder(place)
        key = folder.root, stage
        for left in range(_ATTEMPTS, 0, -1):
            if key in self._by_stage:
                break
            try:
                self._by_stage[key] = _read(folder, stage, self.listing(place))
            except FileNotFoundError:  # packed since the listing
                if left == 1:
                    raise
                self.forget(place)
        return self._by_stage[key]

    def rows(self, stage: str, place: str, names: Digits) -> Rows:
        """Row in `receipts` of each finished task; -1 without a receipt, or if an output is missing or truncated."""
        records = self._records(stage, place)
        return records.drop_incomplete(records.receipts.find(names), self.listing(place))

    def receipt(self, task: Task) -> Receipt | None:
        """The receipt of a task; None if it is not done."""
        (row,) = self.rows(task.stage, task.place, names_of([task.fingerprint]))
        return None if row < 0 else next(self.receipts(task.stage, task.place).at(np.array([row])))

    def note(self, task: Task, receipt: Receipt) -> None:
        """Add the receipt of a task that was just done; single receipt files are packed from time to time."""
        records, listing = self._records(task.stage, task.place), self.listing(task.place)
        records.complete(listing)  # before this receipt is added
        records.receipts.add(receipt)
        for part in receipt.outputs:
            listing.add(part.name, part.size)
        name = receipt_name(task.stage, task.fingerprint)
        listing.add(name, 0)
        records.loose.append(name)
        if len(records.loose) >= LOOSE:
            self._pack_loose(task.stage, task.place)

    def _pack_loose(self, stage: str, place: str) -> None:
        """Pack the single receipts into one more table."""
        records = self._records(stage, place)
        table = records.receipts.table()
        name = f"{_FOLDER}/{stage}.{uuid.uuid4().hex}.parquet"
        self._write(place, name, table.slice(records.unpacked))
        records.packs.append(name)
        records.unpacked = table.num_rows
        self._remove(place, records.loose)
        records.loose = []

    def pack(self, stage: str, place: str = "") -> None:
        """Pack all receipts of a stage into one table, and remove the other files."""
        records, name = self._records(stage, place), pack_name(stage)
        if not records.loose and set(records.packs) <= {name}:
            return
        table = records.receipts.table().take(pa.array(records.receipts.current_rows()))
        self._write(place, name, table)
        self._remove(place, [*records.loose, *(pack for pack in records.packs if pack != name)])
        records.loose, records.packs, records.unpacked = [], [name], records.receipts.rows

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

    def drop(self, stage: str, place: str, kept: Digits) -> None:
        """Remove the receipts of a stage, but for those of these tasks, before outputs are replaced."""
        records = self._records(stage, place)
        rows = records.receipts.find(kept)
        self._keep(stage, place, records, rows[rows >= 0])
        del self._by_stage[self.folder(place).root, stage]

    def retain(self, tasks: Collection[str]) -> None:
        """Remove the receipts in the run folder of all other tasks, and repack the rest."""
        names = names_of(sorted(tasks))
        for stage in self._stages():
            self.drop(stage, "", names)
        self.forget()

    def drop_makers(self, outputs: Collection[str]) -> None:
        """Remove the receipts in the run folder of tasks with any of these outputs, and repack the rest."""
        for stage in self._stages():
            records = self._records(stage, "")
            of, parts = outputs_of(records.receipts.table().select(["outputs"]))
            makers = of[pc.is_in(parts.field("name"), pa.array(sorted(outputs), pa.string())).to_numpy(False)]
            self._keep(stage, "", records, np.setdiff1d(records.receipts.current_rows(), makers))
        self.forget()

    def _keep(self, stage: str, place: str, records: _StageReceipts, rows: Rows) -> None:
        """Keep these receipts of a stage, unless these are all."""
        if len(rows) < len(records.receipts):
            self._write(place, pack_name(stage), records.receipts.table().take(pa.array(np.sort(rows))))
            self._remove(place, [*records.loose, *(pack for pack in records.packs if pack != pack_name(stage))])

    def outputs(self, tasks: Collection[str] | None = None) -> set[str]:
        """Names of the outputs of these tasks, or of all, in the run folder, by their receipts."""
        names = None if tasks is None else names_of(sorted(tasks))
        outputs: set[str] = set()
        for stage in self._stages():
            receipts = self.receipts(stage)
            rows = receipts.current_rows() if names is None else receipts.find(names)
            table = receipts.table().select(["outputs"]).take(pa.array(rows[rows >= 0]))
            outputs.update(outputs_of(table)[1].field("name").to_pylist())
        return outputs

    def _stages(self) -> list[str]:
        """Stages that have receipts in the run folder."""
        names = (_NAME.fullmatch(name) for name in self.listing().below(f"{_FOLDER}/"))
        return sorted({name["stage"] for name in names if name is not None})


def remove(folder: Folder, names: Iterable[str]) -> None:
    """Remove files in parallel."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(folder.remove, names))


def _read(folder: Folder, stage: str, listing: Listing) -> _StageReceipts:
    """All receipts of a stage: packed tables first, then the later single files."""
    begin = f"{_FOLDER}/{stage}"
    packs = [name for name in listing.below(begin) if re.fullmatch(r"(\.[0-9a-f]{32})?\.parquet", name[len(begin) :])]
    loose = [name for name in listing.below(begin) if re.fullmatch(r"-.{32}\.json", name[len(begin) :])]
    packs.sort(key=lambda name: (name != pack_name(stage), name))
    receipts = Receipts(_tables(folder, packs))
    records = _StageReceipts(receipts, loose, packs)
    done = _done_at(receipts, loose, listing)
    with ThreadPoolExecutor(8) as pool:
        for name, text, before in zip(loose, pool.map(folder.read_bytes, loose), done, strict=True):
            # A truncated receipt, or one of another version, is ignored: its task is done again.
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                receipt = Receipt.from_json(text, folder.path(name))
                if receipt.started >= before:  # a slower second attempt does not replace the first
                    receipts.add(receipt)
    return records


def _done_at(packed: Receipts, loose: list[str], listing: Listing) -> list[float]:
    """Finish times, from packed receipts with complete outputs, of the tasks that also have single receipts; else -inf."""
    names = names_of(name[-len(".json") - 32 : -len(".json")] for name in loose)
    rows = packed.find(names)
    times = np.full(len(rows), -np.inf)
    some = packed.table().take(pa.array(rows[rows >= 0]))
    times[rows >= 0] = np.where(_StageReceipts(Receipts([some])).complete(listing), some["finished"], -np.inf)
    return [float(item) for item in times]


#: Names of receipt files and packed tables.
_NAME = re.compile(rf"{_FOLDER}/(?P<stage>[^/]+?)(-[0-9a-f]{{32}}\.json|(\.[0-9a-f]{{32}})?\.parquet)")

#: File names that `demand_inside` refuses.
_ODD = r"(^|/)\.{0,2}(/|$)|\x00"


def _tables(folder: Folder, packs: Iterable[str]) -> Iterator[pa.Table]:
    for name in packs:
        with folder.open(name) as _:  # FileNotFoundError: repacked meanwhile
            pass
        table = parquet.read(folder, name)
        for name in {"gpu_s", "round"} - set(table.column_names):  # an earlier version did not have them
            table = table.append_column(name, pa.repeat(pa.scalar(0.0), table.num_rows))
        table = table.select(RECEIPTS.names).cast(RECEIPTS)
        names = pc.struct_field(pc.list_flatten(table["outputs"]), "name")
        for odd in names.filter(pc.match_substring_regex(names, _ODD)).to_pylist():
            demand_inside(odd, folder.path(name), "outputs.name")
        yield table


NAME = "plan.json"
SCHEMA = "swsdist-plan/3"

_SCHEMA_NAME = b'"swsdist-plan/'

#: Files that mark a run folder without a plan: of interrupted runs, of systems before their fusion, of sweeps of lists, of
#: programs that first write what their runs read, and of a store at the place where a run expects it.
_MARKS = (
    "lock.json",
    "receipts/*.json*",
    "receipts/*.parquet",
    "accounts/*.jsonl",
    "systems/*/plan.json",
    "systems/*/lock.json",
    "systems/stores/*/manifest.json",
    "sweeps/*/sweep.json",
    "*/inputs.json",
    "store/manifest.json",
    "store/lock.json",
)

#: Name of the only plan of a run.
ONLY = "run"


@dataclass(frozen=True)
class PlannedStep:
    """The tasks of a step.

    Attributes:
        stage: name of the stage.
        tasks: fingerprints of the finished tasks; while the step runs, of all planned so far.
        planned: number of tasks.
        place: root of the folder that they write to; empty: the run folder.
        ended: whether the step has ended.
        tables: names of its stage's tables, by label (`Chain.source`).
    """

    stage: str
    tasks: Names
    planned: int
    place: str = ""
    ended: bool = True
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Plan:
    """The plan of one config.

    Attributes:
        chain: name of its chain.
        config: config without secrets, plain values.
        order: names of all steps of the chain.
        steps: planned steps by name, in order.
        state: further values of the chain that identify the current tables, such as a store's state.
    """

    chain: str
    config: dict[str, Any]
    order: list[str] = field(default_factory=list)
    steps: dict[str, PlannedStep] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the last step of its chain is planned."""
        return bool(self.order) and self.order[-1] in self.steps

    def tables(self) -> tuple[Any, ...]:
        """Values that identify the plan's tables: plans with equal values have equal tables."""
        steps = {name: step.tasks for name, step in self.steps.items() if not self.in_state(step.place)}
        return self.chain, self.state, steps

    def has_tables_of(self, plan: Plan, complete: bool) -> bool:
        """Whether its tables are those of another plan, or, if that one is not complete, among them."""
        (*identity, there), (*wanted, steps) = self.tables(), plan.tables()
        return identity == wanted and (steps == there if complete else steps.items() <= there.items())

    def in_state(self, place: str) -> bool:
        """Whether `state` identifies the tables of a step's folder: that of a store, which may be shared or compacted."""
        return bool(place) and place in self.state.values()


def demand_run_folder(run: Folder) -> None:
    """Check that a folder may be used for a run: it does not exist, is empty, or holds a run.

    Folders without files and names that begin with a dot are ignored.

    Raises:
        UserError: the folder holds other files.
    """
    place = run.local()
    if run.exists(NAME):
        with run.open(NAME) as stream:
            if _SCHEMA_NAME in stream.read(200):
                return
    try:
        if place is None:
            files = list(run.listing())
            names = sorted({name.split("/")[0] for name in files})
        else:
            names = sorted(path.name for path in place.iterdir() if _holds_files(path))
            files = [path.relative_to(place).as_posix() for mark in _MARKS for path in place.glob(mark)]
    except (FileNotFoundError, NotADirectoryError):
        return  # a later write reports the error
    names = [name for name in names if not name.startswith(".")]
    is_store = "manifest.json" in names
    if not names or (not is_store and any(fnmatch(name, mark) for name in files for mark in _MARKS)):
        return
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    if is_store:
        raise families.WRONG_KIND(
            "this is a feature store, not the folder of a run",
            "name an empty or new folder, or that of a run: `run` in the file, or --run FOLDER; nothing was written",
            where=run.path(),
        )
    raise codes.FOREIGN_FOLDER(where=run.path(), names=listed)


def _holds_files(path: Path) -> bool:
    """Whether the path is a file, or a folder that has files or cannot be read; names that begin with a dot do not count."""
    if path.name.startswith(".") or path.is_symlink() or not path.is_dir():
        return not path.name.startswith(".")
    try:
        return any(_holds_files(path) for path in path.iterdir())
    except PermissionError:
        return True


def save_plans(run: Folder, plans: Mapping[str, Plan]) -> None:
    """Write all plans of a ledger. A list of tasks is one string: a million strings are slow to write and to read."""
    lists: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, plan in plans.items():
        steps = {}
        for step, planned in plan.steps.items():
            key = planned.tasks.digest()
            if key not in lists:
                lists[key] = planned.tasks.text()
            steps[step] = {**planned.__dict__, "tasks": key, "place": _relative(planned.place, run)}
        state = {key: _relative(value, run) for key, value in plan.state.items()}
        values[name] = {**plan.__dict__, "steps": steps, "state": state}
    encoder = json.JSONEncoder(indent=1, ensure_ascii=False)
    with run.temporary(".json") as path:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(encoder.iterencode({"schema": SCHEMA, "plans": values, "tasks": lists}))
        run.publish(path, NAME)


def load_plans(run: Folder) -> dict[str, Plan]:
    """The plans of a run folder, by name.

    Raises:
        StoreError: not a run folder, written by another version, or with names that no plan has.
    """
    try:
        values = json.loads(run.read_bytes(NAME))
    except FileNotFoundError:
        raise codes.NOT_A_RUN(where=run.path()) from None
    except (ValueError, RecursionError) as error:
        raise families.DAMAGED_FILE(
            "plan.json is damaged ({detail})",
            "run the config again: the plan is written anew, and computed results are kept",
            where=run.path(NAME),
            detail=error,
        ) from None
    try:
        if values["schema"] != SCHEMA:
            raise ValueError(values["schema"])
        lists, plans = {key: Names.of_text(text) for key, text in values["tasks"].items()}, {}
        for name, plan in values["plans"].items():
            steps = {
                step: PlannedStep(
                    **{**planned, "tasks": lists[planned["tasks"]], "place": _absolute(planned["place"], run)}
                )
                for step, planned in plan.pop("steps").items()
            }
            state = {key: _absolute(value, run) for key, value in plan.pop("state").items()}
            plans[name] = Plan(**plan, steps=steps, state=state)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise another_version(run) from None
    return plans


def another_version(run: Folder) -> StoreError:
    """The error for a plan that this version cannot have written."""
    return families.MISMATCH.of(StoreError)(
        "plan.json was written by another version of swsdist", "run the config again", where=run.path()
    )


def receipts_of(ledger: Ledger, planned: PlannedStep) -> ReceiptList:
    """Receipts of a step's finished tasks, in order."""
    rows = ledger.rows(planned.stage, planned.place, planned.tasks.array)
    receipts = ReceiptList()
    receipts.extend(ledger.receipts(planned.stage, planned.place), rows[rows >= 0])
    return receipts


def _relative(place: str, run: Folder) -> str:
    """Folders below the run folder are stored as relative paths, so that the run can be moved."""
    return f".{place[len(run.root) :]}" if place.startswith(f"{run.root}/") else place


def _absolute(place: str, run: Folder) -> str:
    if place.startswith("./"):
        return run.path(demand_inside(place[2:], run.path(NAME), "a place"))
    # An external store may have any path; a url is one of S3. A path with `..` must not seem to lie in the run folder.
    scheme, separator, path = place.partition("://") if is_remote(place) else ("", "", place)
    return f"{scheme}{separator}{posixpath.normpath(path)}" if ".." in path.split("/") else place
