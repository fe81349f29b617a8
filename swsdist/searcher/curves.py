"""The curve of a query in a document, and the warping path of a detection: with the features that a search compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.config.search import Search
from swsdist.core.codes import searcher as codes
from swsdist.core.numbers import number
from swsdist.core.times import frames_to_seconds, seconds_to_frame
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.query_distances import local_distances
from swsdist.methods.curve import curve, path
from swsdist.methods.dtw.distance import unit_of
from swsdist.methods.dtw.shard import Documents, engine_settings
from swsdist.methods.query.extraction import prepared
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks


class Pair(NamedTuple):
    """A query and a document of a store, with features prepared as for a search.

    Attributes:
        query, document: float32 (frames, columns).
        distance: of the search.
        recurrence: its name.
        options: of the recurrence.
        shift: s a frame.
        unit: the integer that represents a distance of 1.
        ranged: whether distances are mapped to their range in the document.
    """

    query: NDArray[np.float32]
    document: NDArray[np.float32]
    distance: Distance
    recurrence: str
    options: Mapping[str, object]
    shift: float
    unit: int
    ranged: bool

    @classmethod
    def of(cls, store: Store, examples: pa.Table, doc_id: str, channel: int, config: Search) -> Pair:
        """A pair.

        Args:
            store: with the document.
            examples: EXAMPLES; the first is used.
            doc_id, channel: of the document.
            config: the search settings.

        Raises:
            ConfigError: the search skips frames of the document, or the method has no paths.
            StoreError: no such document.
        """
        if config.method != "dtw":
            raise codes.CURVE_METHOD(where="search.method", method=config.method)
        if config.skip_silence:
            raise codes.CURVE_WITHOUT_SILENCE(where="search.skip_silence")
        tracks = Tracks(store)
        placed = config.placed(tracks.places).model_copy(update={"least_query_frames": 1})
        query = prepared(examples, tracks.statistics(), placed, tracks.dimension)[0].frames
        distance, document = _document(store, doc_id, channel, config)
        settings = engine_settings(config, distance, store.manifest.shift)
        of_paths = settings.recurrence, settings.options
        return cls(query, document, distance, *of_paths, store.manifest.shift, unit_of(config), settings.row_range)

    def curve(self) -> pa.Table:
        """A row for each frame of the document: start and end of the path that ends with it (s), its score, cost and document
        frames; null where none ends.
        """
        results = curve(self.query, self.document, self.distance, self.recurrence, self.options, self.ranged)
        none, last = results.frames == 0, np.arange(len(results.cost))
        return pa.table(
            {
                "start": pa.array(frames_to_seconds(last - results.frames + 1, self.shift), mask=none),
                "end": pa.array(frames_to_seconds(last + 1, self.shift)),
                "score": pa.array(-results.cost / (len(self.query) * self.unit), mask=none),
                "cost": pa.array(results.cost, mask=none),
                "frames": pa.array(results.frames, mask=none),
            }
        )

    def path(self, end: float) -> pa.Table:
        """A row for each cell of the path that ends at a time (s): query_frame and frame, the times that they begin at
        (query_time, time; s) and their distance, 1 for the unit of the distance.

        Raises:
            UserError: no path ends there.
        """
        last = seconds_to_frame(number(end, "end", above=0), self.shift) - 1
        cells = path(self.query, self.document, last, self.distance, self.recurrence, self.options, self.ranged)
        first = int(cells[0, 1])
        place = slice(first, int(cells[-1, 1]) + 1)
        table = local_distances(self.query, self.document, self.distance, place, self.ranged)
        return pa.table(
            {
                "query_frame": cells[:, 0],
                "frame": cells[:, 1],
                "query_time": frames_to_seconds(cells[:, 0], self.shift),
                "time": frames_to_seconds(cells[:, 1], self.shift),
                "distance": table[cells[:, 0], cells[:, 1] - first] / self.unit,
            }
        )


def _document(store: Store, doc_id: str, channel: int, config: Search) -> tuple[Distance, NDArray[np.float32]]:
    """The distance of a config, and a document's frames prepared for it."""
    everywhere = store.documents(columns=["doc_id", "channel", "shard", "recording", "start"])
    shards = everywhere["shard"].filter(_is(everywhere, doc_id, channel)).to_pylist()
    places = everywhere.filter(pc.equal(everywhere["recording"], doc_id))
    if not shards and places.num_rows:
        several = ", ".join(f"{row['doc_id']} (from {row['start']:g} s)" for row in places.slice(0, 5).to_pylist())
        raise codes.NAME_OF_RECORDING(where=store.folder.path(), name=doc_id, count=places.num_rows, documents=several)
    if not shards:
        raise codes.NO_DOCUMENT_IN_STORE(where=store.folder.path(), doc_id=doc_id, channel=channel)
    documents = Documents.of(store, shards, config)
    chosen = _is(documents.table, doc_id, channel).to_numpy()
    blocks = [block for _, blocks in documents.stream(chosen=chosen) for block in blocks]
    return documents.distance, np.concatenate(blocks)


def _is(table: pa.Table, doc_id: str, channel: int) -> pa.ChunkedArray:
    return pc.and_(pc.equal(table["doc_id"], doc_id), pc.equal(table["channel"], channel))
