"""`swsdist store forget`: documents leave stores, runs and a glossary, and a search of all files shows that they did.

- A **store** gets a state without them: shards that hold rows of theirs are rewritten from the stored frames or lattices, so
  that all others stay searchable without their sound; statistics, groups of voices and codebooks are made anew. Earlier states
  go.
- A **run** that searched such a store loses its tables, receipts, exports and reports, in which a hit may be of them, and what
  else names them; its plan says again that nothing is done, so that the next `swsdist run` makes all from what remains.
- A **glossary** loses what was judged and corrected in them, also in its history.

A call that was killed is repeated by the same command: old tables of documents, by which names are known, go last.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import pipeline as pipeline_codes
from swsdist.core.codes import storage as codes
from swsdist.core.text import suggestion
from swsdist.glossary.project import Project
from swsdist.io.filesystem import Folder, locate
from swsdist.lattices.collection import files_in, name_of
from swsdist.pipeline import lock
from swsdist.pipeline.ledger import NAME as PLAN
from swsdist.pipeline.ledger import Ledger, load_plans, remove, save_plans
from swsdist.pipeline.operation.cleaning import left_behind, readers_of, stems_of_state
from swsdist.store import manifest, parquet
from swsdist.store.maintaining import forget as without
from swsdist.store.reading import Store

#: Files of a run that are made of what it searched.
_MADE = re.compile(r"(.*/)?((tables|receipts|exports|calibration)/.*|report\.[a-z]+)")
#: Pinned models of a store that are made of stored frames, anew with the state.
_ANEW = ("statistics.", "voices.", "codebook.")


class Removed(NamedTuple):
    """What was removed from a folder: its path, a noun, a number."""

    where: str
    what: str
    number: int


class Outcome(NamedTuple):
    """The result of forgetting documents.

    Attributes:
        documents: their ids, with those of the places in a recording that was named.
        removed: with `dry`, what would be.
        models: files of models that were fitted with documents that are gone, and that stay.
        sounds: recordings that are still there, and annotations beside them: an index whose corpus has them takes them in
            again.
        read: number of files that were read afterwards.
        named: those that name the documents still.
        equal: stores and documents with a row of frames (at most 4096) that has the bytes of one of theirs: copies.
    """

    documents: list[str]
    removed: list[Removed]
    models: list[str]
    sounds: list[str]
    read: int
    named: list[str]
    equal: list[str]


def forget(
    places: Sequence[Folder], names: Sequence[str], project: Project | None = None, dry: bool = False
) -> Outcome:
    """Remove documents from everything.

    Args:
        places: stores and runs; with a store the run in whose folder it lies, with a run the stores that it wrote to.
        names: ids of documents, or of recordings that documents are places in.
        project: a glossary.
        dry: remove nothing.

    Raises:
        UserError: nothing has such a name; no document of a store remains, or its index is unfinished; or it is read.
        StoreError: a place is neither a store nor a run.
        LockedError: a process works in it.
    """
    roots = _roots(places)
    with ExitStack() as stack:
        stores = [place for root in roots for place in _below(root, manifest.NAME)]
        stores = [place for place in stores if not manifest.require(place).of_queries]
        for place in () if dry else dict.fromkeys([*roots, *stores]):
            stack.enter_context(lock.locked(place))
        for place in () if dry else stores:
            for reader in readers_of(place).living:
                raise codes.STORE_IS_READ(where=place.path(), pid=reader["pid"], host=reader["host"])
        files = [(root, name) for root in roots for name in root.listing()]
        others = {name for place in stores for name in Store(place).documents(columns=["doc_id"])["doc_id"].to_pylist()}
        doc_ids, known = _known(files, set(names))
        for name in names:
            if name not in known and (project is None or not any(project.forget([name], dry=True).values())):
                raise codes.UNKNOWN_DOCUMENT(where=roots[0].path(), document=name, close=suggestion(name, others))
        pattern = _pattern(doc_ids, others)
        touched = {folder.path(name) for folder, name in files if _holds(folder, name, pattern)}
        changed = [place for place in stores if any(path.startswith(f"{place.root}/") for path in touched)]
        for place in changed:  # before anything is removed
            if (progress := manifest.require(place).progress) is not None:
                raise codes.INTERRUPTED_INDEX(where=place.path(), progress=progress)
            if doc_ids.issuperset(Store(place).documents(columns=["doc_id"])["doc_id"].to_pylist()):
                raise codes.FORGETS_ALL(where=place.path())
        sounds = sorted({path for place in changed for path in _sounds(place, doc_ids)})
        frames = {digest for place in changed for _, digest in _rows(place, doc_ids, touched)} if not dry else set()
        removed: list[Removed] = []
        for run in (place for root in roots for place in _below(root, PLAN)):
            removed += _from_run(run, stores, changed, touched, dry)
        if project is not None:
            counts = project.forget(sorted(doc_ids), dry=dry)
            removed += [Removed(str(project.folder), what, count) for what, count in counts.items()]
        for place in changed:  # last: their tables say which documents there were
            removed += _from_store(place, doc_ids, touched, dry)
        models = [path for place in changed for path in _models(place)]
        outcome = Outcome(sorted(doc_ids), [item for item in removed if item.number], models, sounds, 0, [], [])
        if dry:
            return outcome
        folders = [*roots, *([] if project is None else [Folder(str(project.folder))])]
        left = [(folder, name) for folder in folders for name in folder.listing()]
        named = [folder.path(name) for folder, name in left if _holds(folder, name, pattern)]
        rows = ((place, *row) for place in (stores if frames else ()) for row in _rows(place))
        equal = {f"{place.root}: {doc_id}" for place, doc_id, digest in rows if digest in frames}
        return outcome._replace(read=len(left), named=named, equal=sorted(equal))


def _roots(places: Sequence[Folder]) -> list[Folder]:
    """Folders of runs and stores that are in no other of them."""
    found: dict[str, Folder] = {}
    for place in places:
        if place.exists(PLAN):
            steps = [step for plan in load_plans(place).values() for step in plan.steps.values()]
            written = [Folder(root, place.storage) for root in {step.place for step in steps} if root]
            some = [place, *(store for store in written if store.exists(manifest.NAME))]
        elif place.exists(manifest.NAME):
            run = Folder(place.root.rpartition("/")[0], place.storage)
            some = [run if run.exists(PLAN) else place]  # a run and all below
        else:
            raise pipeline_codes.NEITHER_RUN_NOR_STORE(where=place.path())
        found |= {folder.root: folder for folder in some}
    return [found[root] for root in sorted(found) if not any(root.startswith(f"{other}/") for other in found)]


def _below(root: Folder, mark: str) -> list[Folder]:
    """A folder and those below that hold a file of some name."""
    parts = [name.rpartition("/") for name in root.listing()]
    return [Folder(root.path(folder), root.storage) for folder, _, name in parts if name == mark]


def _known(files: Sequence[tuple[Folder, str]], names: set[str]) -> tuple[set[str], set[str]]:
    """Ids of documents with such a name, or of places in such a recording; and the names that any table has."""
    doc_ids, known, wanted = {*names}, set[str](), pa.array(sorted(names), pa.string())
    for folder, name in files:
        if not name.endswith(".parquet"):
            continue
        with parquet.reader(folder, name) as file:
            columns = {"doc_id", "recording", "id"} & set(file.schema_arrow.names)
            for k in range(file.num_row_groups if columns else 0):
                table = file.read_row_group(k, sorted(columns), use_threads=False)
                for column in columns:
                    chosen = table.filter(pc.is_in(table[column], wanted))
                    known.update(chosen[column].to_pylist())
                    doc_ids.update(
                        chosen["doc_id"].to_pylist() if column == "recording" and "doc_id" in columns else ()
                    )
    return doc_ids, known


def _pattern(names: set[str], others: Collection[str]) -> re.Pattern[bytes]:
    """Finds names in bytes, also as JSON, HTML and URLs write them, in group 1; not in longer words.

    Longer names of other documents are found first, without the group.
    """

    def ways(some: Collection[str]) -> bytes:
        written = {way for name in some for way in (name, html.escape(name), quote(name), json.dumps(name)[1:-1])}
        return b"|".join(re.escape(way.encode()) for way in sorted(written, key=len, reverse=True))

    longer = [other for other in others if other not in names and any(name in other for name in names)]
    return re.compile(rb"(?<!\w)(?:" + (ways(longer) + b"|" if longer else b"") + b"(" + ways(names) + rb"))(?!\w)")


def _holds(folder: Folder, name: str, pattern: re.Pattern[bytes]) -> bool:
    """Whether a file, or its name, holds a name."""
    texts = (text for some in ([name.encode()], _texts(folder, name)) for text in some)
    return any(match[1] is not None for text in texts for match in pattern.finditer(text))


def _texts(folder: Folder, name: str) -> Iterator[bytes]:
    """What a file says: the strings of a table, the rows of a database, the members of an archive, or its bytes."""
    if name.endswith(".parquet"):
        with parquet.reader(folder, name) as file:
            columns = [column.name for column in file.schema_arrow if "string" in str(column.type)]
            for k in range(file.num_row_groups if columns else 0):
                for column in file.read_row_group(k, columns, use_threads=False).columns:
                    for strings in (some for chunk in column.chunks for some in _strings(chunk)):
                        yield "\n".join(pc.drop_null(pc.unique(strings)).to_pylist()).encode()
        return
    if name.endswith(".sqlite") and (file := folder.local(name)) is not None:
        with closing(sqlite3.connect(file)) as connection:
            yield from (line.encode() for line in connection.iterdump())
        return
    data = folder.read_bytes(name)
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from (archive.read(member) for member in archive.namelist())
    yield data


def _strings(column: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        yield column
    elif pa.types.is_list(column.type):
        yield from _strings(column.flatten())
    elif pa.types.is_struct(column.type):
        for part in column.flatten():
            yield from _strings(part)


def _rows(
    store: Folder, doc_ids: set[str] | None = None, paths: Collection[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Document and SHA-256 of each row of frames; of some documents, in some files, or of all."""
    wanted = None if doc_ids is None else pa.array(sorted(doc_ids), pa.string())
    for name in store.listing("shards"):
        if paths is not None and store.path(name) not in paths:
            continue
        with parquet.reader(store, name) as file:
            for k in range(file.num_row_groups if "features" in file.schema_arrow.names else 0):
                table = file.read_row_group(k, ["doc_id", "features"], use_threads=False)
                if wanted is not None:
                    table = table.filter(pc.is_in(table["doc_id"], wanted))
                for doc_id, row in zip(table["doc_id"].to_pylist(), table["features"], strict=True):
                    yield doc_id, hashlib.sha256(row.as_buffer()).digest()


def _sounds(store: Folder, names: Collection[str]) -> Iterator[str]:
    """Recordings of live documents that are still there, and the annotations beside them."""
    table = Store(store).documents(columns=["doc_id", "recording"])
    chosen = pc.is_in(table["doc_id"], pa.array(sorted(names), pa.string()))
    recordings = pc.coalesce(table["recording"], table["doc_id"]).filter(chosen).unique().to_pylist()
    for recording in Store(store).recordings(recordings).values():
        folder, name = locate(recording.path, store.storage) if recording.path else (store, "")
        if name and folder.exists(name):
            yield recording.path
            annotations = files_in(recording.path.rpartition("/")[0], store.storage)
            if (beside := annotations.get(name_of(recording.path))) is not None:
                yield beside.path


def _models(store: Folder) -> list[str]:
    """Models that the store pins, and that need sound to be fitted anew."""
    models = manifest.require(store).models.items()
    return [store.path(file) for name, file in models if not name.startswith(_ANEW)]


def _from_run(
    run: Folder, stores: Sequence[Folder], changed: Sequence[Folder], touched: set[str], dry: bool
) -> Iterator[Removed]:
    """Remove what a run made of a store that changes, and what names documents; stores, config and plan stay."""
    inner = tuple(f"{store.root}/" for store in stores)
    names = [name for name in run.listing() if not run.path(name).startswith(inner)]
    holding, plans = {name for name in names if run.path(name) in touched}, load_plans(run)
    if not holding and not any(plan.in_state(place.root) for plan in plans.values() for place in changed):
        return
    gone = {name for name in names if _MADE.fullmatch(name) or name in holding} - {PLAN, lock.NAME, "config.yaml"}
    for name in names:
        folder, _, last = name.rpartition("/")
        if last == manifest.NAME and any(other.startswith(f"{folder}/") for other in holding):
            gone |= {other for other in names if other.startswith(f"{folder}/")}  # queries cut out of documents
        elif last == manifest.NAME:
            gone -= {other for other in names if other.startswith(f"{folder}/")}
    yield from (
        Removed(run.path(), part, n) for part, n in sorted(Counter(name.partition("/")[0] for name in gone).items())
    )
    if not dry:
        save_plans(run, {name: replace(plan, steps={}, state={}) for name, plan in plans.items()})
        _remove(run, gone)


def _from_store(store: Folder, doc_ids: set[str], touched: set[str], dry: bool) -> Iterator[Removed]:
    """Commit a state without documents, then remove all files of other states, and those that name them."""
    now, listing = manifest.require(store), store.listing()
    inner = tuple(name.removesuffix(manifest.NAME) for name in listing if name.endswith(f"/{manifest.NAME}"))
    names = [name for name in listing if not name.startswith(inner)]
    holding = {name for name in names if store.path(name) in touched}
    documents = Store(store).documents(columns=["doc_id", "frames"])
    live = documents.filter(pc.is_in(documents["doc_id"], pa.array(sorted(doc_ids), pa.string())))
    rewritten = [shard for shard in now.shards if any(file.name in holding for file in shard.files.values())]
    yield Removed(store.path(), "documents", live.num_rows)
    yield Removed(store.path(), "frames" if now.kind == "frames" else "ticks", pc.sum(live["frames"]).as_py() or 0)
    yield Removed(store.path(), "shards rewritten", len(rewritten))
    files = {file.name for shard in now.shards if shard not in rewritten for file in shard.files.values()}
    files |= {file for name, file in now.models.items() if not name.startswith(_ANEW)} | {manifest.NAME}
    stems = {name.partition(".")[0] for name in files}
    if not dry and (rewritten or holding & {manifest.NAME, *now.tables}):
        without(store, doc_ids, holding)
        now = manifest.require(store)
    if not dry or not rewritten:
        files |= {*now.tables, *(file.name for shard in now.shards for file in shard.files.values())}
        stems |= set(stems_of_state(now))
    gone = [
        name
        for name in names
        if name not in files
        and not name.startswith("receipts/")
        and (name in holding or (name.startswith(manifest.PARTS) and name.partition(".")[0] not in stems))
    ]
    yield Removed(store.path(), "files", len(gone))
    if not dry:
        Ledger(store).drop_makers(gone)
        _remove(store, gone)


def _remove(folder: Folder, names: Collection[str]) -> None:
    """Remove files, and what dead processes left; tables by which documents are known last."""
    last = {name for name in names if name.startswith("documents-")}
    remove(folder, set(names) - last)
    remove(folder, last)
    remove(folder, [item.name for item in left_behind(folder, 0.0) if item.name != lock.NAME])
