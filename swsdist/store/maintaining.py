"""Check and compact a store, fit its statistics anew, and make it forget documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Ints
from swsdist.core.codes import families
from swsdist.core.codes import storage as codes
from swsdist.core.errors import DataError, StoreError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import DOCUMENTS, FRAMES
from swsdist.features.fitting.interface import load_model
from swsdist.io.filesystem import Folder
from swsdist.lattices.lattice import BREAK
from swsdist.store import parquet
from swsdist.store.lattice_shards import faults, postings_of, read_lattices, read_words, without
from swsdist.store.manifest import File, Manifest, NewTrack, Shard, Track, commit, relocated_paths
from swsdist.store.reading import Store
from swsdist.store.statistics import cut
from swsdist.store.writing import ShardWriter, shard_name

_KEY = ("doc_id", "channel")


def check(store: Store) -> Iterator[str]:
    """Read everything and yield each defect as a line; nothing if the store is intact.

    Checks that tables are readable and agree with the manifest; that each shard has the manifest's size and SHA-256;
    and that the rows of live documents are consecutive, hold the number of frames in the documents table, and contain
    only finite numbers; or that each has a lattice of its length, whose arcs lead on within it, with probabilities.
    """
    manifest = store.manifest
    broken = {name: problem for name in manifest.tables if (problem := _unreadable(store.folder, name)) is not None}
    yield from (f"{store.folder.path(name)}: {problem}" for name, problem in broken.items())
    for track in manifest.tracks:
        if track.documents not in broken:  # its shards can only be checked against an intact table
            yield from _check_track(store, track)


def _check_track(store: Store, track: Track) -> Iterator[str]:
    manifest = store.manifest
    where = store.folder.path(track.documents)
    placed = store.documents(columns=["shard"], track=track.name)["shard"]
    if track == manifest.tracks[0] and len(placed) != manifest.counts["documents"]:
        yield f"{where}: {len(placed)} documents, the manifest tells {manifest.counts['documents']}"
    for name in sorted({*placed.unique().to_pylist()} - {shard.name for shard in manifest.shards}):
        yield f"{where}: it places documents in {name}, which the manifest does not name"
    for shard in manifest.shards:
        file = shard.files.get(track.name)
        if file is None:
            yield f"{store.folder.path(shard.name)}: it has no file of the track {track.name}"
            continue
        where = store.folder.path(file.name)
        try:
            problems = [f"{where}: {problem}" for problem in _check_bytes(store.folder, file)]
            yield from problems
            if manifest.kind == "frames":
                yield from (f"{where}: {problem}" for problem in _check_rows(store, shard, track.name))
            else:
                yield from (f"{where}: {problem}" for problem in _check_lattices(store, shard, not problems))
        except StoreError as error:
            yield f"{where}: {error.message}"
        except (pa.ArrowException, OSError, ValueError) as error:
            yield f"{where}: it cannot be read ({error})"


def _unreadable(folder: Folder, name: str) -> str | None:
    """Why a table, or a pinned model, cannot be read, or None."""
    try:
        if name.endswith(".npz"):
            load_model(folder, name)
            return None
        for _ in parquet.rows(folder, name):
            pass
    except DataError as error:
        return error.message
    except (pa.ArrowException, OSError) as error:
        return f"it cannot be read ({error})"
    return None


def _check_bytes(folder: Folder, expected: File) -> Iterator[str]:
    try:
        with folder.open(expected.name) as file:
            running = hashlib.sha256()
            while block := file.read(1 << 20):
                running.update(block)
            digest, size = running.hexdigest(), file.tell()
    except FileNotFoundError:
        raise codes.MISSING_STORE_FILE() from None
    if size != expected.size:
        yield f"it has {size} bytes, the manifest tells {expected.size}"
    elif digest != expected.sha256:
        yield "its bytes are not those that were written (SHA-256 differs)"


def _check_rows(store: Store, shard: Shard, track: str) -> Iterator[str]:
    table = store.documents(shard.name, ["doc_id", "channel", "frames"], track)
    keys = zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True)
    left = dict(zip(keys, table["frames"].to_pylist(), strict=True))
    open_key: tuple[str, int] | None = None
    ended: set[tuple[str, int]] = set()
    next_frame = 0
    for block in store.blocks(shard.name, set(left), track):
        key = (block.doc_id, block.channel)
        if key != open_key:
            if key in ended:
                yield f"document {key}: its rows do not stand together"
            open_key, next_frame = key, 0
            ended.add(key)
        if block.first_frame != next_frame:
            yield f"document {key}: frame {next_frame} is missing"
        if not np.isfinite(block.features).all():
            yield f"document {key}: a feature is not finite"
        next_frame = block.first_frame + len(block.features)
        left[key] -= len(block.features)
    for key, missing in sorted(left.items()):
        if missing != 0:
            yield f"document {key}: {missing} frames are missing"


def _check_lattices(store: Store, shard: Shard, intact: bool) -> Iterator[str]:
    """Of a shard of lattices: its postings' bytes, and, where its own are intact, what is in it."""
    yield from (f"postings: {problem}" for problem in _check_bytes(store.folder, shard.files["postings"]))
    if not intact:
        return
    table = store.documents(shard.name, ["doc_id", "channel", "frames"])
    keys = list(zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True))
    left = dict(zip(keys, table["frames"].to_pylist(), strict=True))
    breaking = postings_of(store.folder, shard.files, {BREAK}).numbers.get(BREAK, 0)
    for _, lattices in read_lattices(store.folder, shard.files):
        yield from faults(lattices, breaking)
        for key, ticks in zip(zip(lattices.doc_ids, lattices.channels, strict=True), lattices.ticks, strict=True):
            if (expected := left.pop(key, ticks)) != ticks:
                yield f"document {key}: it has {ticks} ticks, the documents table tells {expected}"
    yield from (f"document {key}: its lattice is missing" for key in sorted(left))
    with parquet.reader(store.folder, shard.files["lattices"].name) as file:
        if "words" not in file.schema_arrow.names:  # an earlier version wrote it
            return
    for key, words in read_words(store, ((*key, shard.name) for key in keys)).items():
        if not all(0 <= word.start <= word.end and 0 <= word.confidence <= 1 for word in words):
            yield f"document {key}: a word has impossible times or confidence"


class Compacted(NamedTuple):
    """Numbers of shards and bytes before and after."""

    shards_before: int
    shards: int
    bytes_before: int
    bytes: int


def compact(folder: Folder, hours: float) -> Compacted:
    """Write the live documents to new shards of about `hours` hours each, and commit them; old shards remain.

    Results do not change; searches are repeated, since shards have new names. Pinned models stay, and a state that
    waits for failed tasks keeps waiting. `swsdist clean` removes the old state once nothing uses it.
    """
    store = _maintained(folder)
    manifest = store.manifest
    rows = store.documents(columns=[*_KEY, "identity", "sha256", "duration", "frames", "shard"]).combine_chunks()
    order = pc.sort_indices(rows, [(name, "ascending") for name in _KEY]).to_numpy()
    shards: list[Shard] = []
    numbers = np.empty(len(order), np.int64)
    for number, chosen in enumerate(cut(rows["duration"].take(order).to_pylist(), hours * 3600)):
        # In reading order, so the name determines the bytes, and the documents table the order of rows.
        members = np.sort(order[chosen.start : chosen.stop])
        numbers[members] = number
        shards.append(_gathered(store, sorted(rows.take(members).to_pylist(), key=lambda row: str(row["shard"]))))
    _committed(store, shards, rows, numbers, store.rejected(), anew=False)
    size = sum(shard.size for shard in shards)
    return Compacted(len(manifest.shards), len(shards), sum(shard.size for shard in manifest.shards), size)


def _gathered(store: Store, rows: Sequence[dict[str, Any]]) -> Shard:
    """A new shard with the frames of documents: rows with _KEY, identity, sha256, frames and shard, by shard."""
    by_shard: dict[str, set[tuple[str, int]]] = {}
    for row in rows:
        by_shard.setdefault(row["shard"], set()).add((row["doc_id"], row["channel"]))
    keys = [[row["doc_id"], row["channel"], row["identity"], row["sha256"]] for row in rows]
    files: dict[str, File] = {}
    tracks = store.manifest.tracks
    for k, track in enumerate(tracks):
        # Tracks of one pass share a recipe, so names distinguish all but the first.
        again = track.fingerprint in {other.fingerprint for other in tracks[:k]}
        name = shard_name(fingerprint("compact", 1, track.fingerprint, keys, *([track.name] if again else [])))
        files[track.name] = File(*_rewritten(store, track, name, by_shard))
    return Shard(files[tracks[0].name].name, files, len(rows), sum(row["frames"] for row in rows))


def _rewritten(store: Store, track: Track, name: str, by_shard: dict[str, set[tuple[str, int]]]) -> parquet.Output:
    """Write the frames of documents of several shards to one file."""
    with store.folder.temporary(".parquet") as path:
        with parquet.writer(path, FRAMES) as file:
            writer = ShardWriter(file, track.dtype)
            for source, live in by_shard.items():
                for block in store.blocks(source, live, track.name):
                    writer.append(block.doc_id, block.channel, block.first_frame, block.features)
            writer.flush()
        output = parquet.describe(path, name)
        store.folder.publish(path, name)
    return output


def _committed(
    store: Store, shards: list[Shard], rows: pa.Table, numbers: Ints, rejected: pa.Table, anew: bool
) -> Manifest:
    """Commit documents of the store in other shards.

    Args:
        store: the current state.
        shards: the new shards.
        rows: documents, by `_KEY`.
        numbers: index in `shards` of each document's shard; -1 for none.
        rejected: REJECTED_DOCUMENTS.
        anew: recompute the statistics.
    """
    folder, manifest = store.folder, store.manifest
    names = pa.array([shard.name for shard in shards])
    tracks = []
    for track in manifest.tracks:
        documents = store.documents(track=track.name).combine_chunks()
        at = pc.index_in(_keys(documents), value_set=_keys(rows)).fill_null(-1).to_numpy()
        number = np.where(at >= 0, numbers[at], -1)
        order = np.argsort(number, kind="stable")
        order = order[number[order] >= 0]
        placed = names.take(number[order])
        documents = documents.take(order).set_column(documents.column_names.index("shard"), "shard", placed)
        paths = relocated_paths(store.folder, store.manifest.recordings, documents["path"], documents["path"])
        documents = documents.set_column(documents.column_names.index("path"), "path", paths)
        documents = documents.select(DOCUMENTS.names).cast(DOCUMENTS)
        frozen = None if anew else parquet.read(folder, manifest.models[f"statistics.{track.name}"])
        tracks.append(NewTrack(track.name, track.recipe, track.dimension, documents, frozen, track.columns, track.kind))
    others = {name: file for name, file in manifest.models.items() if not name.startswith("statistics.")}
    if anew:  # models fitted on documents are fitted again on demand
        others = {name: file for name, file in others.items() if not name.startswith("codebook.")}
    return commit(
        folder,
        tracks,
        manifest.tick,
        shards,
        rejected,
        provisional=manifest.provisional,
        models=others,
        # What made a store of lattices is no longer all that is in it.
        source=None if manifest.kind != "frames" else manifest.source,
        kind=manifest.kind,
        libraries=manifest.libraries,
    )


class Refitted(NamedTuple):
    """Result of refitting the statistics: recordings that had disappeared, documents now used, and models that stay."""

    gone: int
    documents: int
    stay: tuple[str, ...]


def refit(folder: Folder) -> Refitted:
    """Recompute the normalising statistics from the current documents, and pin them.

    Searches that use them are repeated, and results change.
    """
    store = _maintained(folder)
    documents, shards = store.documents(columns=[*_KEY, "shard"]), list(store.manifest.shards)
    numbers = pc.index_in(documents["shard"], value_set=pa.array([shard.name for shard in shards])).fill_null(-1)
    _committed(store, shards, documents, numbers.to_numpy(), store.rejected(), anew=True)
    return Refitted(int(store.manifest.counts["statistics_gone"]), documents.num_rows, store.manifest.fitted)


def forget(folder: Folder, doc_ids: Set[str], touched: Set[str]) -> None:
    """Commit a state without some documents. Statistics, voices and codebooks are fitted anew to the others.

    Args:
        folder: a store of frames or of lattices.
        doc_ids: of the documents; others remain.
        touched: names of shard files that hold data of these documents, live or not: these shards are rewritten.

    Raises:
        UserError: it holds queries, or its index is unfinished.
    """
    store = _maintained(folder, ("frames", "lattices"))
    documents = store.documents(columns=[*_KEY, "identity", "sha256", "frames", "shard"]).combine_chunks()
    rows = documents.filter(pc.invert(pc.is_in(documents["doc_id"], pa.array(sorted(doc_ids), pa.string()))))
    shards: list[Shard] = []
    numbers = np.empty(rows.num_rows, np.int64)
    for shard in store.manifest.shards:
        mask = pc.equal(rows["shard"], shard.name)
        if not (members := rows.filter(mask)).num_rows:
            continue
        numbers[mask.to_numpy()] = len(shards)
        if not any(file.name in touched for file in shard.files.values()):
            shards.append(shard)
        elif store.manifest.kind == "frames":
            shards.append(_gathered(store, members.to_pylist()))
        else:
            shards.append(without(folder, shard, doc_ids, members))
    rejected = store.rejected()
    rejected = rejected.filter(pc.invert(pc.is_in(rejected["id"], pa.array(sorted(doc_ids), pa.string()))))
    _committed(store, shards, rows, numbers, rejected, anew=True)


def _keys(documents: pa.Table) -> pa.Array:
    """Keys of documents, one string each."""
    channels = documents["channel"].cast(pa.string())
    return pc.binary_join_element_wise(documents["doc_id"], channels, "\0").combine_chunks()


def _maintained(folder: Folder, kinds: Sequence[str] = ("frames",)) -> Store:
    """A store that may be written to.

    Raises:
        StoreError: it holds no frames, or nothing of these kinds.
        UserError: it holds queries, whose group states searches read; or its index is unfinished.
    """
    store = Store(folder)
    if store.manifest.kind not in kinds:
        raise codes.NO_FRAMES_IN_STORE(where=folder.path(), kind=store.manifest.kind)
    if store.manifest.of_queries:
        raise families.WRONG_KIND(
            "this is a run's store of queries, which only the run writes to",
            "name the store of the documents; the store of queries is removed with its run",
            where=folder.path(),
        )
    if store.manifest.unfinished is not None:
        raise codes.INTERRUPTED_INDEX(where=folder.path(), progress=store.manifest.progress)
    return store
