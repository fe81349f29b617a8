"""Plans: the list of tasks of each step. The plans of a ledger define which tables of the folder are current.

A run has one plan, a sweep has many. A list of tasks that several plans share is written once.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StoreError
from swsdist.io.filesystem import demand_inside
from swsdist.io.filesystem import Folder, is_remote
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.records.lists import ReceiptList
from swsdist.pipeline.records.receipts import Names

NAME = "plan.json"
SCHEMA = "swsdist-plan/3"

_SCHEMA_NAME = b'"swsdist-plan/'

#: Files that mark a run folder without a plan: of interrupted runs, of systems before their fusion, of sweeps of lists, and of
#: a store at the place where a run expects it.
_MARKS = (
    "lock.json",
    "receipts/*.json*",
    "receipts/*.parquet",
    "accounts/*.jsonl",
    "systems/*/plan.json",
    "systems/*/lock.json",
    "systems/stores/*/manifest.json",
    "sweeps/*/sweep.json",
    "superb/threshold.json",
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
        raise codes.STORE_AS_RUN(where=run.path())
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
        raise codes.DAMAGED_PLAN(where=run.path(NAME), detail=error) from None
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
    return codes.OTHER_PLAN_VERSION(where=run.path())


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
