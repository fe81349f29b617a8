"""Read several tracks of a store as a single one: columns side by side, each document cut to its shortest track."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import pack_marks, unpack_marks
from swsdist.core.types import DOCUMENTS
from swsdist.features.statistics import Statistics
from swsdist.store.reading import Block, Store

#: Key of speech marks, and the join key of tracks.
_MARKED = _JOINED = ("doc_id", "channel", "frames")


class Tracks:
    """The part of a store that a search reads.

    Excludes documents that any of the tracks lacks (not computed yet).

    Args:
        store: the store.
        names: of tracks, from left to right; by default all, in the store's order.

    Attributes:
        dimension: numbers per frame, over all tracks.
        places: by track name: its first column, and the column after its last.
    """

    def __init__(self, store: Store, names: Sequence[str] | None = None) -> None:
        chosen = store.manifest.tracks if names is None else [store.manifest.track(name) for name in names]
        self.store = store
        self._names = [track.name for track in chosen]
        self.places: dict[str, tuple[int, int]] = {}
        self.dimension = 0
        for track in chosen:
            self.places[track.name] = self.dimension, self.dimension + track.dimension
            self.dimension += track.dimension
        self.recipes = [[track.name, track.fingerprint] for track in chosen]

    def documents(
        self, shard: str | None = None, columns: list[str] | None = None, codes: Sequence[str] = ()
    ) -> pa.Table:
        """Live documents of one or all shards, as in the first track: DOCUMENTS.

        `frames` is that of the shortest track; `mean` and `variance` cover all columns; `speech` comes from any track
        that has it. Columns named in `codes` may be codes of their strings.
        """
        table = self._joint(shard, columns, codes)
        audible = self.store.manifest.counts.get("heard_seconds")
        if not audible or "speech" not in table.column_names or table["speech"].null_count == 0:
            return table
        marked_rows = table if columns is None else self._joint(shard, [*_MARKED, "speech"])
        marked = pa.array(_with_marks(marked_rows, self._others(shard)), pa.large_binary())
        index = table.schema.get_field_index("speech")
        return table.set_column(index, table.schema.field(index), marked)

    def _others(self, shard: str | None) -> Iterator[pa.Table]:
        """Frames and speech of the documents of each track with speech marks."""
        for track in self.store.manifest.tracks:
            table = self.store.documents(shard, [*_MARKED, "speech"], track.name)
            yield table.filter(pc.is_valid(table["speech"]))

    def _joint(self, shard: str | None, columns: list[str] | None, codes: Sequence[str] = ()) -> pa.Table:
        first, *more = self._names
        if not more:
            return self.store.documents(shard, columns, first, codes=codes)
        read = [name for name in DOCUMENTS.names if columns is None or name in {*columns, *_JOINED}]
        wide = [name for name in ("mean", "variance") if name in read]
        tables = (self.store.documents(shard, [*_JOINED, *wide], name).to_pylist() for name in more)
        others = [{(row["doc_id"], row["channel"]): row for row in rows} for rows in tables]
        joint: list[dict[str, Any]] = []
        for row in self.store.documents(shard, read, first).to_pylist():
            rows = [row, *(rows[key] for rows in others if (key := (row["doc_id"], row["channel"])) in rows)]
            if len(rows) < len(self._names):
                continue
            frames = min(row["frames"] for row in rows)
            joined = {name: [value for row in rows for value in row[name]] for name in wide}
            joint.append({**row, **joined, "frames": frames})
        table = pa.Table.from_pylist(joint, pa.schema([DOCUMENTS.field(name) for name in read]))
        return table if columns is None else table.select(columns)

    def statistics(self, speakers: Sequence[str] | None = None) -> dict[tuple[str, str], Statistics]:
        """Pinned statistics of all columns by scope, as in `Store.statistics`; ("pooled", "") together with queries."""
        parts = [self.store.statistics(name, speakers) for name in self._names]
        scopes = [scope for scope in parts[0] if all(scope in part for part in parts[1:])]
        results = {scope: Statistics.side_by_side([part[scope] for part in parts]) for scope in scopes}
        if self.store.queries is not None:
            every = Tracks(self.store).places
            columns = np.concatenate([np.arange(*every[name]) for name in self._names])
            results["pooled", ""] = results["collection", ""].pooled(self.store.queries.of_columns(columns))
        return results

    def blocks(self, shard: str, live: set[tuple[str, int]] | None = None, threads: int = 1) -> Iterator[Block]:
        """Frames of the documents in a shard, side by side; `threads` read ahead."""
        if len(self._names) == 1:
            return self.store.blocks(shard, live, self._names[0], threads)
        return self.store.joined(shard, self._names, live, threads)


def _with_marks(documents: pa.Table, others: Iterable[pa.Table]) -> list[bytes | None]:
    """The marks of each document, from the first table that has them. Where tracks differ in length (shifts are equal),
    the last mark is repeated.
    """
    rows = documents.select([*_MARKED, "speech"]).to_pylist()
    result: dict[tuple[str, int], tuple[bytes, int]] = {}
    for other in others:
        for row in other.to_pylist():
            result.setdefault((row["doc_id"], row["channel"]), (row["speech"], row["frames"]))
    marks: list[bytes | None] = []
    for row in rows:
        speech, frames = row["speech"], row["frames"]
        if speech is None and (marks_and_frames := result.get((row["doc_id"], row["channel"]))) is not None:
            audible = unpack_marks(*marks_and_frames)
            speech = pack_marks(np.pad(audible, (0, max(0, frames - len(audible))), "edge")[:frames])
        marks.append(speech)
    return marks
