"""Removable files of a run folder or store (`swsdist clean`), readers of a store, and cancelling.

Removed are: old temporary files; locks, requests and reader files of dead processes; tables and receipts of a finished
run that none of its plans names; files of a store that neither its manifest nor a state searched by the run beside it
names.

Always kept are: a folder in which a process works; all states of a store with readers, or whose manifest changed
recently; tables of an unfinished run, which it needs to go on; outputs of tasks in a store that no state names yet
(shards of an interrupted index, sums and models of a fit), until the run in whose folder the store lies has ended
without them; accounts, events, reports and exports.

Readers: a run, or a long reading command, writes `readers/<token>.json` to the store when it begins to read, updates it
every few seconds, and removes it at its end, so that no file in use is removed. A dead reader is ignored once its
process is known to be gone (same host), or its file has not changed for a while, whatever clocks show. In a store that
is not writable, readers are unknown; superseded files are then kept for an hour.

Cancelling: a request file in the run folder, which can be written from any host; the driver checks for it every few
seconds. The request names the lock of one driver, so a stale request cannot cancel a later run.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StoreError, SwsdistError
from swsdist.io.failures import TEMPORARY
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.pipeline.ledger import NAME as PLAN
from swsdist.pipeline.ledger import Ledger, Plan, load_plans
from swsdist.pipeline.lock import Lock, beating, lives, process
from swsdist.pipeline.operation import progress
from swsdist.store import manifest
from swsdist.store.manifest import require
from swsdist.store.reading import Store

FOLDER = "readers"


class Reader:
    """A reader of a store, until `release`."""

    def __init__(self, store: Folder) -> None:
        self._store = store
        self._name = f"{FOLDER}/{uuid.uuid4().hex}.json"
        self._identity = Lock(store).identity()
        self.beat()

    def beat(self) -> None:
        """Write a heartbeat."""
        text = json.dumps({**self._identity, "t": time.time()}).encode()
        for _ in range(2):  # the last other reader may remove the folder meanwhile
            with suppress(SwsdistError, OSError):  # a read-only store has no list
                self._store.write_bytes(self._name, text)
                return

    def release(self) -> None:
        """Stop reading."""
        with suppress(SwsdistError, OSError):
            self._store.remove(self._name)
            place = self._store.local(FOLDER)
            if place is not None:
                place.rmdir()  # after the last reader


@contextmanager
def reading(store: Store) -> Iterator[Store]:
    """Mark a store as in use while it is read."""
    reader = Reader(store.folder)
    try:
        with beating(reader.beat):
            yield Store(store.folder, require(store.folder))
    finally:
        reader.release()


class Readers(NamedTuple):
    """Other readers of a store: `host` and `pid` of live ones, and the files of dead ones."""

    living: list[dict[str, Any]]
    dead: list[str]


def readers_of(store: Folder) -> Readers:
    """Find the other readers of a store; those of other hosts that seem dead are watched in parallel."""
    this_process = process(Lock(store).identity())
    names = sorted(store.listing(FOLDER))
    with ThreadPoolExecutor(min(32, max(1, len(names)))) as pool:
        seen = dict(zip(names, pool.map(lambda name: _read_file(store, name), names), strict=True))
    living = [reader for reader in seen.values() if reader and process(reader) != this_process]
    return Readers(living, [name for name, reader in seen.items() if reader is None])


def _read_file(store: Folder, name: str) -> dict[str, Any] | None:
    """A live reader by its file; empty if the file is gone; None if the reader is dead or ended meanwhile."""
    try:
        reader: dict[str, Any] = json.loads(store.read_bytes(name))
        return reader if lives(store, reader, name) else None
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        return None


NAME = "cancel.json"


def request(run: Folder) -> str:
    """Ask the driver of a run to stop; returns the token of its lock.

    Raises:
        StoreError: not a run folder.
        UserError: no process works there.
    """
    load_plans(run)
    holder = lock.read(run)
    if holder is None:
        raise families.NOT_RUNNING(
            "no process works here",
            "see `swsdist status` for the state of the run; there is nothing to cancel",
            where=run.path(),
        )
    if not lock.lives(run, holder):
        raise families.NOT_RUNNING(
            "process {pid} on {host} is dead",
            "see `swsdist status` for the state of the run; there is nothing to cancel",
            where=run.path(),
            pid=holder["pid"],
            host=holder["host"],
        )
    cancellation = {"token": holder["token"], "t": time.time(), "host": socket.gethostname(), "pid": os.getpid()}
    run.write_bytes(NAME, json.dumps(cancellation).encode())
    return str(holder["token"])


def requested(run: Folder, token: str) -> str | None:
    """Host that requested the cancellation of the driver with this lock; None: no request."""
    try:
        cancellation = json.loads(run.read_bytes(NAME))
        return str(cancellation["host"]) if cancellation["token"] == token else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def wait(run: Folder, token: str, seconds: float) -> str:
    """Wait until the driver with this lock has ended; returns its final state.

    Raises:
        IncompleteError: it still runs after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        holder = lock.read(run)
        if holder is None or holder["token"] != token or not lock.lives(run, holder):
            driver_status = progress.read(run)
            return driver_status.state if driver_status is not None and driver_status.token == token else "ended"
        if time.monotonic() > deadline:
            raise codes.STILL_RUNNING(where=run.path(), pid=holder["pid"], host=holder["host"])
        time.sleep(0.5)


#: File name of a task's table or receipt.
_OF_TASK = re.compile(r"(?:tables/[^/]+/|receipts/[^/]+?-)(?P<task>[0-9a-f]{32})(?![0-9a-f])[^/]*")

_STATE = re.compile(r"[0-9a-f]{32}")


class Removable(NamedTuple):
    """A file that can be removed: folder, name, bytes and reason."""

    folder: Folder
    name: str
    size: int
    why: str


class Retained(NamedTuple):
    """A folder that keeps files that are not needed, and the reason."""

    folder: Folder
    why: str


def clean(folder: Folder, hours: float, dry: bool) -> tuple[list[Removable], list[Retained]]:
    """Remove files that are not needed from a run folder with its stores, or from a store.

    Args:
        folder: folder of a run or a store.
        hours: least age of temporary files and of earlier states of a store.
        dry: remove nothing.

    Returns:
        The removed files (with `dry`: those that would be), and the folders that keep files that are not needed.

    Raises:
        StoreError: neither a run folder nor a store.
        LockedError: a process works in the folder.
    """
    plans = load_plans(folder) if folder.exists(PLAN) else {}
    if not plans and not folder.exists(manifest.NAME):
        raise codes.NEITHER_RUN_NOR_STORE(where=folder.path())
    places = [folder] if folder.exists(manifest.NAME) else []
    places += [Folder(root, folder.storage) for root in _stores_in(folder, plans)]
    others = [place for place in places if place != folder]
    for place in [folder, *others]:
        holder = lock.read(place)
        if holder is not None and lock.lives(place, holder):
            raise codes.FOLDER_IN_USE(
                where=place.path(), pid=holder["pid"], host=holder["host"], seconds=lock.STALE_AFTER
            )
    # Including locks of dead processes.
    marks = [mark for place in [folder, *others] for mark in left_behind(place, hours)]
    if dry:
        removable, retained = _no_more_needed(folder, places, plans, hours)
        return marks + removable, retained
    with ExitStack() as stack:  # locked from the listing to the removal
        run_lock = stack.enter_context(lock.locked(folder))
        for place in others:
            stack.enter_context(lock.locked(place, dead=run_lock.replaced))
        plans = load_plans(folder) if plans else plans
        removable, retained = _no_more_needed(folder, places, plans, hours)
        for place in [folder, *others]:
            gone = [mark for mark in marks + removable if mark.folder == place]
            _remove(place, gone, plans if place == folder else {})
    return marks + removable, retained


def _no_more_needed(
    folder: Folder, places: list[Folder], plans: dict[str, Plan], hours: float
) -> tuple[list[Removable], list[Retained]]:
    """Files of a run and its stores that are not needed, and folders that keep some of them."""
    retained: list[Retained] = []
    removable = list(_of_run(folder, plans, retained)) if plans else []
    for place in places:
        reading = readers_of(place)
        for name in reading.dead:
            with suppress(FileNotFoundError):  # the reader just ended
                removable.append(Removable(place, name, place.info(name).size, "of a dead reader"))
        run = folder if plans else Folder(place.root.rpartition("/")[0], place.storage)
        removable += _of_store(place, run, plans or _beside(run), hours, reading.living, retained)
    return removable, retained


def _stores_in(run: Folder, plans: dict[str, Plan]) -> list[str]:
    """Roots of the stores in the run folder that plans wrote to."""
    roots = {step.place for plan in plans.values() for step in plan.steps.values() if step.place}
    return [
        root
        for root in sorted(roots)
        if root.startswith(f"{run.root}/") and Folder(root, run.storage).exists(manifest.NAME)
    ]


def _beside(run: Folder) -> dict[str, Plan]:
    """Plans of the run whose folder holds a store; empty: none."""
    try:
        return load_plans(run)
    except StoreError:
        return {}


def left_behind(folder: Folder, hours: float) -> Iterator[Removable]:
    """Temporary files of that age, and locks and requests of dead processes."""
    temporary = folder.local(TEMPORARY)
    for file in sorted(temporary.iterdir()) if temporary is not None and temporary.is_dir() else ():
        status = file.stat()
        if file.is_file() and time.time() - status.st_mtime > hours * 3600:
            yield Removable(folder, f"{TEMPORARY}/{file.name}", status.st_size, "temporary file of a killed process")
    for name in (lock.NAME, NAME):
        if folder.exists(name):  # no live process holds the lock
            yield Removable(folder, name, folder.info(name).size, "of a dead process")


def _have_ended(plans: dict[str, Plan]) -> bool:
    """Whether there are plans, and all have ended."""
    return bool(plans) and all(
        plan.order and plan.order[-1] in plan.steps and plan.steps[plan.order[-1]].ended for plan in plans.values()
    )


def _named(plans: dict[str, Plan]) -> set[str]:
    """Fingerprints of the tasks of plans."""
    return {task for plan in plans.values() for step in plan.steps.values() for task in step.tasks}


def _of_run(run: Folder, plans: dict[str, Plan], retained: list[Retained]) -> Iterator[Removable]:
    """Tables and receipts of tasks that no plan names."""
    if not _have_ended(plans):
        retained.append(Retained(run, "run incomplete: nothing removed; finish it with `swsdist run CONFIG`"))
        return
    named = _named(plans)
    for part in ("tables", "receipts"):
        for name, info in run.listing(part).items():
            match = _OF_TASK.fullmatch(name)
            if match is not None and match["task"] not in named:
                yield Removable(run, name, info.size, "no plan names it")


def _of_store(
    store: Folder,
    run: Folder,
    plans: dict[str, Plan],
    hours: float,
    reading: list[dict[str, Any]],
    retained: list[Retained],
) -> Iterator[Removable]:
    """Files of earlier states without readers; `plans` are those of the run in whose folder the store lies."""
    now = manifest.require(store)
    if now.of_queries:
        return  # searches read the states of its groups
    used = _stems_in_use(store, now, plans)
    listing = store.listing()
    rest = [
        Removable(store, name, info.size, "of an earlier state of the store")
        for name, info in listing.items()
        if name.partition(".")[0] not in used and name.startswith(manifest.PARTS)
    ]
    states = [name for name in listing if name.startswith("manifest-")]
    rest, interrupted = _without_work(store, rest, states, run, plans) if rest else (rest, 0)
    if interrupted:
        why = f"{interrupted} files of an interrupted run kept: no state of the store names them yet"
        retained.append(Retained(store, why))
    if rest and reading:
        who = ", ".join(sorted({f"process {item['pid']} on {item['host']}" for item in reading}))
        retained.append(Retained(store, f"{len(rest)} files of earlier states kept: {who} reads the store"))
    elif rest and time.time() - store.modified(manifest.NAME) < hours * 3600:
        retained.append(
            Retained(store, f"{len(rest)} files of earlier states kept: the store changed less than {hours:g} h ago")
        )
    else:
        yield from rest


def _stems_in_use(store: Folder, now: manifest.Manifest, plans: dict[str, Plan]) -> set[str]:
    """File names without extensions of the state, of that which indexing continues from, and of those of a run's digests."""
    names = {value for plan in plans.values() for value in plan.state.values() if _STATE.fullmatch(value)}
    if now.unfinished is not None and now.unfinished.before is not None:
        names.add(now.unfinished.before)
    return {*stems_of_state(now), *_stems_of(store, map(manifest.state_name, names))}


def _without_work(
    store: Folder, rest: list[Removable], states: list[str], run: Folder, plans: dict[str, Plan]
) -> tuple[list[Removable], int]:
    """Files without those that tasks wrote and no state names yet; and how many an interrupted run left."""
    ledger = Ledger(store)
    outputs = ledger.outputs()
    named = _stems_of(store, states) if outputs else set()
    pending = {item.name for item in rest if item.name in outputs and item.name.partition(".")[0] not in named}
    if pending and _have_ended(plans):
        # Files that its plans name, such as postings, are in use; work of other runs may be newer.
        of_plans = ledger.outputs(_named(plans)) & pending
        rest = [item for item in rest if item.name not in of_plans]
        ended = run.modified(PLAN)
        pending = {item.name for item in rest if item.name in pending and store.modified(item.name) > ended}
    return [item for item in rest if item.name not in pending], len(pending)


def _stems_of(store: Folder, names: Iterable[str]) -> set[str]:
    """`stems_of_state` of states, as far as they exist."""
    states = (manifest.load(store, name) for name in names)
    return {stem for state in states if state is not None for stem in stems_of_state(state)}


def stems_of_state(state: manifest.Manifest) -> Iterator[str]:
    """File names of a state without extensions; tables about a shard share its stem."""
    shards = (file.name for shard in state.shards for file in shard.files.values())
    for name in (manifest.state_name(state.fingerprint), *state.tables, *shards):
        yield name.partition(".")[0]


def _remove(folder: Folder, removable: list[Removable], plans: dict[str, Plan]) -> None:
    """Remove files, receipts first (a receipt without its table would be invalid), states last."""
    gone = [item.name for item in removable if item.name != lock.NAME]  # held by this process
    for name in sorted(gone, key=lambda name: (not name.startswith("receipts/"), name.startswith("manifest-"))):
        folder.remove(name)
    if _have_ended(plans):
        Ledger(folder).retain(_named(plans))
