"""`swsdist clean`: what may go from a run folder or a store, why, and how many bytes it holds.

What goes: temporary files that nobody has written to for a while; locks, requests and marks of processes that are gone; of a
run that has come to its end, tables and receipts that none of its plans names; of a store, files that neither its manifest nor
a state that the run beside it searched names.

What stays, whatever else: all of a folder in which a process works; all states of a store that somebody reads
(`swsdist.pipeline.operation.readers`), or whose manifest changed a short while ago; tables of a run that has not come to its
end, which goes on with them; what tasks have made in a store and no state of it has named yet (shards of an index that was cut
off, totals and models of a fit), until the run in whose folder the store lies has ended without them; accounts, events, reports
and exports.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StoreError
from swsdist.io.failures import TEMPORARY
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.operation import cancelling
from swsdist.pipeline.operation.readers import readers_of
from swsdist.pipeline.plan import NAME as PLAN
from swsdist.pipeline.plan import Plan, load_plans
from swsdist.store import manifest

#: A table of a task, or its receipt: the folder, and the fingerprint.
_OF_TASK = re.compile(r"(?:tables/[^/]+/|receipts/[^/]+?-)(?P<task>[0-9a-f]{32})(?![0-9a-f])[^/]*")

_STATE = re.compile(r"[0-9a-f]{32}")


class Found(NamedTuple):
    """A file that may go: its folder, name and bytes, and why it may."""

    folder: Folder
    name: str
    size: int
    why: str


class Kept(NamedTuple):
    """A folder of which something stays that is not needed, and why."""

    folder: Folder
    why: str


def clean(folder: Folder, hours: float, dry: bool) -> tuple[list[Found], list[Kept]]:
    """Remove from a run folder, with the stores in it, or from a store, what may go.

    Args:
        folder: of a run or a store.
        hours: that a temporary file, or an earlier state of a store, stays.
        dry: remove nothing.

    Returns:
        What may go, or went, and what stays although nothing needs it.

    Raises:
        StoreError: it is neither.
        LockedError: a process works in it.
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
    marks = [mark for place in [folder, *others] for mark in _left_behind(place, hours)]  # a dead one's lock, too
    if dry:
        found, kept = _no_more_needed(folder, places, plans, hours)
        return marks + found, kept
    with ExitStack() as held:  # from before anything is looked at until it is removed, nobody begins to work here
        mine = held.enter_context(lock.locked(folder))
        for place in others:
            held.enter_context(lock.locked(place, dead=mine.replaced))
        plans = load_plans(folder) if plans else plans
        found, kept = _no_more_needed(folder, places, plans, hours)
        for place in [folder, *others]:
            _remove(place, [mark for mark in marks + found if mark.folder == place], plans if place == folder else {})
    return marks + found, kept


def _no_more_needed(
    folder: Folder, places: list[Folder], plans: dict[str, Plan], hours: float
) -> tuple[list[Found], list[Kept]]:
    """What a run and its stores hold and nothing needs, and what stays although nothing needs it."""
    kept: list[Kept] = []
    found = list(_of_run(folder, plans, kept)) if plans else []
    for place in places:
        reading = readers_of(place)
        for name in reading.dead:
            with suppress(FileNotFoundError):  # it ended just now
                found.append(Found(place, name, place.info(name).size, "of a reader that is gone"))
        run = folder if plans else Folder(place.root.rpartition("/")[0], place.storage)
        found += _of_store(place, run, plans or _beside(run), hours, reading.living, kept)
    return found, kept


def _stores_in(run: Folder, plans: dict[str, Plan]) -> list[str]:
    """Roots of the stores that plans wrote to, in the run folder."""
    roots = {step.place for plan in plans.values() for step in plan.steps.values() if step.place}
    return [
        root
        for root in sorted(roots)
        if root.startswith(f"{run.root}/") and Folder(root, run.storage).exists(manifest.NAME)
    ]


def _beside(run: Folder) -> dict[str, Plan]:
    """The plans of the run that a store lies in, if it does."""
    try:
        return load_plans(run)
    except StoreError:
        return {}


def _left_behind(folder: Folder, hours: float) -> Iterator[Found]:
    """Temporary files, and the marks of processes that are gone."""
    temporary = folder.local(TEMPORARY)
    for file in sorted(temporary.iterdir()) if temporary is not None and temporary.is_dir() else ():
        status = file.stat()
        if file.is_file() and time.time() - status.st_mtime > hours * 3600:
            yield Found(folder, f"{TEMPORARY}/{file.name}", status.st_size, "temporary, of a process that was killed")
    for name in (lock.NAME, cancelling.NAME):
        if folder.exists(name):  # no living process holds the folder
            yield Found(folder, name, folder.info(name).size, "of a process that is gone")


def _have_ended(plans: dict[str, Plan]) -> bool:
    """Whether there are plans, and all have come to their ends."""
    return bool(plans) and all(
        plan.order and plan.order[-1] in plan.steps and plan.steps[plan.order[-1]].ended for plan in plans.values()
    )


def _named(plans: dict[str, Plan]) -> set[str]:
    """Tasks that plans name."""
    return {task for plan in plans.values() for step in plan.steps.values() for task in step.tasks}


def _of_run(run: Folder, plans: dict[str, Plan], kept: list[Kept]) -> Iterator[Found]:
    """Tables and receipts that no plan names."""
    if not _have_ended(plans):
        kept.append(Kept(run, "the run is incomplete: nothing is removed of it; finish it with `swsdist run CONFIG`"))
        return
    named = _named(plans)
    for part in ("tables", "receipts"):
        for name, info in run.listing(part).items():
            match = _OF_TASK.fullmatch(name)
            if match is not None and match["task"] not in named:
                yield Found(run, name, info.size, "no plan names it")


def _of_store(
    store: Folder, run: Folder, plans: dict[str, Plan], hours: float, reading: list[dict[str, Any]], kept: list[Kept]
) -> Iterator[Found]:
    """Files of earlier states that nobody reads; `plans` are of the run in whose folder the store lies."""
    now = manifest.require(store)
    if now.of_queries:
        return  # searches read the states of its groups
    states = {value for plan in plans.values() for value in plan.state.values() if _STATE.fullmatch(value)}
    if now.unfinished is not None and now.unfinished.before is not None:
        states.add(now.unfinished.before)  # its index goes on from that one
    earlier = (manifest.load(store, manifest.state_name(state)) for state in states)  # digests of the run are of these
    used = {name for item in (now, *earlier) if item is not None for name in _stems(item)}
    listing = store.listing()
    rest = [
        Found(store, name, info.size, "of an earlier state of the store")
        for name, info in listing.items()
        if name.partition(".")[0] not in used and name.startswith(manifest.PARTS)
    ]
    made = Ledger(store).outputs() if rest else set()
    states_there = (manifest.load(store, name) for name in listing if made and name.startswith("manifest-"))
    named = {name for item in states_there if item is not None for name in _stems(item)}
    waiting = {item.name for item in rest if item.name in made and item.name.partition(".")[0] not in named}
    if waiting and _have_ended(plans):  # what its plans name is in use, postings say; others' work is of later
        own = Ledger(store).outputs(_named(plans)) & waiting
        rest = [item for item in rest if item.name not in own]
        ended = run.modified(PLAN)
        waiting = {item.name for item in rest if item.name in waiting and store.modified(item.name) > ended}
    stays = [item for item in rest if item.name in waiting]
    rest = [item for item in rest if item.name not in waiting]
    if stays:
        why = f"{len(stays)} files that no state of it names stay: a run that was cut off made them, and may go on with them"
        kept.append(Kept(store, why))
    if rest and reading:
        who = ", ".join(sorted({f"process {item['pid']} on {item['host']}" for item in reading}))
        kept.append(Kept(store, f"{len(rest)} files of earlier states stay: {who} reads the store"))
    elif rest and time.time() - store.modified(manifest.NAME) < hours * 3600:
        kept.append(Kept(store, f"{len(rest)} files of earlier states stay: it changed less than {hours:g} h ago"))
    else:
        yield from rest


def _stems(state: manifest.Manifest) -> Iterator[str]:
    """Names of a state's files without their endings: tables that tell how a shard was made begin as its own does."""
    shards = (file.name for shard in state.shards for file in shard.files.values())
    for name in (manifest.state_name(state.fingerprint), *state.tables, *shards):
        yield name.partition(".")[0]


def _remove(folder: Folder, found: list[Found], plans: dict[str, Plan]) -> None:
    """Receipts first: a table without one is made again, a receipt without its table is none. States last."""
    gone = [item.name for item in found if item.name != lock.NAME]  # that is ours now
    for name in sorted(gone, key=lambda name: (not name.startswith("receipts/"), name.startswith("manifest-"))):
        folder.remove(name)
    if _have_ended(plans):
        Ledger(folder).retain(_named(plans))
