"""Find recordings in a store by content: those moved, renamed or copied since indexing.

Equal bytes with equal file ending, channel and speaker give equal frames. A document that keeps its name keeps its
place in its shard, and only its path changes; for one with a new name the frames are copied. Local files are compared
by SHA-256, and read only if their length occurs in the store; on S3 the ETag identifies content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.audio.commands import is_command
from swsdist.audio.formats import ffmpeg
from swsdist.audio.formats import views
from swsdist.audio.streams import sha256
from swsdist.core.errors import SwsdistError
from swsdist.features.interface import Extractor
from swsdist.features.sources import Source
from swsdist.io.filesystem import is_remote
from swsdist.stages.inputs.corpus_documents import CorpusDocuments, Key, StoreContents
from swsdist.stages.inputs.recordings import Row
from swsdist.store.reading import Store

#: Files read in parallel.
_READERS = 4

#: Matches an identity after the length of the file; in a group, what says how it is read.
AFTER_SIZE = f":.*?({ffmpeg.READER})?$"


class ContentMatches(NamedTuple):
    """Documents of a corpus whose frames a store has under another path or name.

    Attributes:
        moved: positions of documents with unchanged names.
        held: for other documents, by key and by extractor (fingerprint): place of their frames
            (`swsdist.store.stored_frames`).
    """

    moved: NDArray[np.int64]
    held: dict[Key, dict[str, dict[str, Any]]]


def match_content(
    corpus: CorpusDocuments,
    places: NDArray[np.int64],
    state: StoreContents,
    store: Store | None,
    sources: tuple[Source, ...],
) -> ContentMatches:
    """Match documents to the content of a store.

    Args:
        corpus: its documents.
        places: positions of documents not matched by path and time of change.
        state: of the store, with its tables.
        store: None if there is no store.
        sources: all extractors; precomputed frames are matched by their own content.
    """
    nothing = ContentMatches(np.empty(0, np.int64), {})
    all_stored = store is not None and all(source.tracks[0].name in state.tables for source in sources)
    if store is None or not all_stored or not len(places):
        return nothing
    if not all(isinstance(source.extractor, Extractor) for source in sources):
        return nothing
    identities = corpus.identities[sources[0].fingerprint]  # identities of recordings are the same for all extractors
    sizes = _sizes(state.tables[sources[0].tracks[0].name]["identity"])
    likely = pc.is_in(_sizes(identities.take(pa.array(places))), sizes)
    places = places[np.asarray(likely.to_numpy(zero_copy_only=False), bool)]
    if not len(places):
        return nothing
    result = _Contents(store)
    rows = [{**row, "place": place} for row, place in zip(corpus.rows(places), places.tolist(), strict=True)]
    rows = [row for row in rows if row.get("start") is None and not is_command(row["path"])]
    result.read(row["path"] for row in rows if not is_remote(row["path"]))
    olds = {
        source.fingerprint: _stored_by_content(store, source, state, identities.take(pa.array(places)))
        for source in sources
    }
    moved: list[int] = []
    stored: dict[Key, dict[str, dict[str, Any]]] = {}
    for row in rows:
        token = result.of(row, row["identities"][sources[0].fingerprint])
        if token is None:
            continue
        several = {recipe: old.get((*token, row["channel"], row["speaker"])) for recipe, old in olds.items()}
        if all(item is not None and row["doc_id"] in item for item in several.values()):
            moved.append(row["place"])
            continue
        for source in sources:
            item = several[source.fingerprint]
            if item:
                first = min(item)
                names = [track.name for track in source.tracks]
                stored.setdefault((row["doc_id"], row["channel"]), {})[source.fingerprint] = {
                    "state": store.manifest.fingerprint,
                    "shard": item[first],
                    "doc_id": first,
                    "tracks": names,
                    "sha256": None if is_remote(row["path"]) else token[0],
                }
    return ContentMatches(np.array(moved, np.int64), stored)


class _Contents:
    """Digests of the content of recordings."""

    def __init__(self, store: Store) -> None:
        self._storage = store.folder.storage
        self._digests: dict[str, str | None] = {}

    def read(self, paths: Iterator[str]) -> None:
        """Digest local files; unreadable ones get no digest, and the index reports why."""

        def content_of(path: str) -> str | None:
            try:
                return sha256(path, self._storage)
            except (SwsdistError, OSError):
                return None

        several = list(dict.fromkeys(paths))
        with ThreadPoolExecutor(_READERS) as pool:
            self._digests = dict(zip(several, pool.map(content_of, several), strict=True))

    def of(self, row: Row, identity: str) -> tuple[str, str] | None:
        """Digest of a document, and the file ending that may determine its format."""
        path = row["path"]
        digest = identity if is_remote(path) else self._digests.get(path)
        return None if digest is None else (digest, _ending(path))


def _stored_by_content(
    store: Store, source: Source, state: StoreContents, identities: pa.Array
) -> Mapping[tuple[str, str, int, str | None], dict[str, str]]:
    """By content, ending, channel and speaker: an extractor's documents whose files have equal length, with their
    shards.
    """
    columns = ["doc_id", "channel", "path", "identity", "sha256", "speaker", "shard"]
    table = store.documents(columns=columns, track=source.tracks[0].name)
    table = table.filter(pc.is_in(_sizes(table["identity"]), _sizes(identities)))
    there = [shard for shard, files in state.files.items() if all(track.name in files for track in source.tracks)]
    table = table.filter(pc.is_in(table["shard"], pa.array(there, pa.string())))
    result: dict[tuple[str, str, int, str | None], dict[str, str]] = {}
    for row in table.to_pylist():
        token = row["identity"] if is_remote(row["path"]) else row["sha256"]
        key = (token, _ending(row["path"]), row["channel"], row["speaker"])
        result.setdefault(key, {})[row["doc_id"]] = row["shard"]
    return result


def _sizes(identities: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Lengths of files, as text, and how they are read; for a command or other non-file, arbitrary text."""
    sizes = pc.replace_substring_regex(identities.cast(pa.large_string()), pattern=AFTER_SIZE, replacement=r"\1")
    return sizes.combine_chunks() if isinstance(sizes, pa.ChunkedArray) else sizes


def _ending(path: str) -> str:
    name = views.split(path)[0].rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""
