"""The manifest: the only commit point of a feature store.

A store is a folder::

    manifest.json                names all that follows; what it does not name is not part of the store
    manifest-<fp>.json           the same, and stays: a search goes on with the state that it began with
    documents-<fp>.parquet       a row a document (swsdist.types.DOCUMENTS), in the order of shards and their rows
    statistics-<fp>.parquet      means and variances of speakers and of the collection, frozen when first indexed
    rejected-<fp>.parquet        documents that could not be used, why, and the identity they had then
    shards/part-<fp>.parquet     frames (swsdist.types.FRAMES)

A reader that has read the manifest sees one state of the store, whatever others write meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from swsdist.errors import StoreError
from swsdist.features.registry import recipe_fingerprint
from swsdist.features.statistics import Statistics
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.types import DOCUMENTS, REJECTED, STATISTICS

NAME = "manifest.json"
SCHEMA = "swsdist-store/1"

#: Rejected documents keep the identity of their file, so that they are not tried again until it changes.
REJECTED_DOCUMENTS = REJECTED.append(pa.field("identity", pa.string(), False))


@dataclass(frozen=True)
class Shard:
    """One Parquet file of frames."""

    name: str
    size: int
    sha256: str
    documents: int
    frames: int


@dataclass(frozen=True)
class Manifest:
    """One state of a store."""

    fingerprint: str
    extractor: dict[str, Any]
    dimension: int
    shift: float
    documents: str
    statistics: str
    rejected: str
    shards: tuple[Shard, ...]
    counts: dict[str, float]
    schema: str = SCHEMA
    extractor_fingerprint: str = field(default="")
    #: Shards are missing, since their tasks failed: the statistics are not frozen yet.
    provisional: bool = False

    def shard(self, name: str) -> Shard:
        """The shard of a name."""
        return next(shard for shard in self.shards if shard.name == name)


def state_name(fingerprint: str) -> str:
    """Where a state of the store stays, after later ones have taken its place."""
    return f"manifest-{fingerprint}.json"


def load(folder: Folder, name: str = NAME) -> Manifest | None:
    """The manifest, or None where there is no store yet.

    Args:
        folder: the store.
        name: the current state, or an earlier one (`state_name`).

    Raises:
        StoreError: it is damaged, or was written by a later version.
    """
    try:
        text = folder.read_bytes(name)
    except FileNotFoundError:
        return None
    where = folder.path(name)
    try:
        values = json.loads(text)
        if values["schema"] != SCHEMA:
            raise StoreError(
                f"the store has schema {values['schema']}, this version reads {SCHEMA}",
                where=where,
                remedy="use the version of swsdist that wrote it, or index again",
            )
        shards = tuple(Shard(**shard) for shard in values.pop("shards"))
        return Manifest(shards=shards, **values)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"the manifest is damaged ({error})", where=where, remedy="remove it and index again: no shard is lost"
        ) from None


def require(folder: Folder, name: str = NAME) -> Manifest:
    """The manifest of a store that must be there.

    Raises:
        StoreError: there is none.
    """
    manifest = load(folder, name)
    if manifest is None:
        raise StoreError(
            "there is no feature store here",
            where=folder.path(),
            remedy="make one with `swsdist index`; a store is a folder with a manifest.json",
        )
    return manifest


def commit(
    folder: Folder,
    extractor: dict[str, Any],
    dimension: int,
    shift: float,
    shards: Iterable[Shard],
    documents: pa.Table,
    rejected: pa.Table,
    frozen: pa.Table | None,
    provisional: bool = False,
) -> Manifest:
    """Make this the state of the store.

    Args:
        folder: the store.
        extractor: recipe of the extractor (`features.registry.recipe`).
        dimension, shift: of its frames; the shift in s.
        shards: those that hold a live document.
        documents: DOCUMENTS, the live ones, in the order of shards and rows.
        rejected: REJECTED_DOCUMENTS.
        frozen: STATISTICS of the state before, which stay as they are; None at first.
        provisional: documents are missing that are to come, so the statistics are taken anew at the next commit.
    """
    shards = tuple(shards)
    statistics = _statistics(documents, dimension, frozen)
    keys = [
        list(row)
        for row in zip(*(documents[n].to_pylist() for n in ("doc_id", "channel", "identity", "shard")), strict=True)
    ]
    scopes = [statistics[name].to_pylist() for name in ("scope", "name", "frames", "mean")]
    name = fingerprint(
        SCHEMA, extractor, [shard.name for shard in shards], sorted(keys), scopes, rejected.to_pylist(), provisional
    )
    manifest = Manifest(
        fingerprint=name,
        extractor=extractor,
        extractor_fingerprint=recipe_fingerprint(extractor),
        dimension=dimension,
        shift=shift,
        documents=f"documents-{name}.parquet",
        statistics=f"statistics-{name}.parquet",
        rejected=f"rejected-{name}.parquet",
        shards=shards,
        counts={
            "documents": documents.num_rows,
            "frames": sum(documents["frames"].to_pylist()),
            "seconds": round(sum(sorted(documents["duration"].to_pylist())), 6),
            "rejected": rejected.num_rows,
        },
        provisional=provisional,
    )
    parquet.publish(folder, manifest.documents, [documents], DOCUMENTS)
    parquet.publish(folder, manifest.statistics, [statistics], STATISTICS)
    parquet.publish(folder, manifest.rejected, [rejected], REJECTED_DOCUMENTS)
    values = {**asdict(manifest), "shards": [asdict(shard) for shard in shards]}
    text = json.dumps(values, indent=1, ensure_ascii=False).encode()
    folder.write_bytes(state_name(name), text)
    folder.write_bytes(NAME, text)
    return manifest


def _statistics(documents: pa.Table, dimension: int, frozen: pa.Table | None) -> pa.Table:
    """Statistics of speakers that are new, and of the collection if there is none yet; merged in order of keys."""
    known = {(row["scope"], row["name"]): row for row in frozen.to_pylist()} if frozen is not None else {}
    merged: dict[tuple[str, str], Statistics] = {}
    columns = ["speaker", "frames", "mean", "variance"]
    ordered = documents.sort_by([("doc_id", "ascending"), ("channel", "ascending")]).select(columns)
    for batch in ordered.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            one = Statistics.from_variance(row["frames"], row["mean"], row["variance"])
            scopes = [("collection", "")] + ([("speaker", row["speaker"])] if row["speaker"] else [])
            for scope in scopes:
                if scope not in known:
                    merged[scope] = merged.get(scope, Statistics.zero(dimension)) + one
    for (scope, name), value in merged.items():
        known[scope, name] = {
            "scope": scope,
            "name": name,
            "frames": value.frames,
            "mean": value.mean.tolist(),
            "variance": value.variance.tolist(),
        }
    return pa.Table.from_pylist([known[key] for key in sorted(known)], STATISTICS)
