"""The curve of a query in a document, and the warping path of a detection: with the features that a search compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.config.search import Search
from swsdist.core.codes import methods as methods_codes
from swsdist.core.codes import searcher as codes
from swsdist.core.numbers import number
from swsdist.core.numbers import frames_to_seconds, seconds_to_frame
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.query_distances import local_distances
from swsdist.methods.curve import curve, path
from swsdist.methods.dtw.distance import unit_of
from swsdist.methods.dtw.shard import Documents, engine_settings
from swsdist.methods.query.dropping import kept, without_dropped
from swsdist.methods.query.extraction import prepared
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks


class Pair(NamedTuple):
    """A query and a document of a store, with features prepared as for a search.

    Attributes:
        query, document: float32 (frames that are compared, columns).
        query_places, document_places: int64, the frames of the recordings that these are.
        distance: of the search.
        recurrence: its name.
        options: of the recurrence.
        shift: s a frame.
        unit: the integer that represents a distance of 1.
        ranged: whether distances are mapped to their range in the document.
    """

    query: NDArray[np.float32]
    document: NDArray[np.float32]
    query_places: NDArray[np.int64]
    document_places: NDArray[np.int64]
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
            ConfigError: the method has no paths.
            StoreError: no such document.
            UserError: no frame of the document is compared.
        """
        if config.method != "dtw":
            raise codes.CURVE_METHOD(where="search.method", method=config.method)
        tracks = Tracks(store)
        placed = config.placed(tracks.places).model_copy(update={"least_query_frames": 1})
        dropping = config.dropping(tracks.places)
        places = np.arange(examples["frames"][0].as_py())
        if dropping is not None:
            features = np.frombuffer(examples["features"][0].as_py(), "<f4").reshape(-1, tracks.dimension)
            places, examples = places[kept(features, dropping)], without_dropped(examples, dropping, tracks.dimension)
        query = prepared(examples, tracks.statistics(), placed, tracks.dimension)[0].frames
        documents, index = _document(store, doc_id, channel, config)
        chosen = np.arange(documents.table.num_rows) == index
        blocks = [block for _, blocks in documents.stream(chosen=chosen) for block in blocks]
        if not blocks:
            raise codes.NOTHING_COMPARED(where=store.folder.path(), doc_id=doc_id)
        settings = engine_settings(config, documents.distance, store.manifest.shift)
        return cls(
            query,
            np.concatenate(blocks),
            places,
            documents.frames_of_the_recording(index),
            documents.distance,
            settings.recurrence,
            settings.options,
            store.manifest.shift,
            unit_of(config),
            settings.row_range,
        )

    def curve(self) -> pa.Table:
        """A row for each frame of the document that is compared: start and end of the path that ends with it (s), its score,
        cost and document frames; null where none ends.
        """
        results = curve(self.query, self.document, self.distance, self.recurrence, self.options, self.ranged)
        none, last = results.frames == 0, self.document_places
        first = last[np.maximum(np.arange(len(last)) - results.frames + 1, 0) * ~none]
        return pa.table(
            {
                "start": pa.array(frames_to_seconds(first, self.shift), mask=none),
                "end": pa.array(frames_to_seconds(last + 1, self.shift)),
                "score": pa.array(-results.cost / (len(self.query) * self.unit), mask=none),
                "cost": pa.array(results.cost, mask=none),
                "frames": pa.array(last - first + 1, mask=none),
            }
        )

    def path(self, end: float) -> pa.Table:
        """A row for each cell of the path that ends at a time (s): query_frame and frame, the times that they begin at
        (query_time, time; s) and their distance, 1 for the unit of the distance.

        Raises:
            UserError: no path ends there.
        """
        last = seconds_to_frame(number(end, "end", above=0), self.shift) - 1
        if last not in self.document_places:
            raise methods_codes.NO_SUCH_FRAME(frames=len(self.document_places), frame=last)
        end_frame = int(np.searchsorted(self.document_places, last))
        cells = path(self.query, self.document, end_frame, self.distance, self.recurrence, self.options, self.ranged)
        first = int(cells[0, 1])
        place = slice(first, int(cells[-1, 1]) + 1)
        table = local_distances(self.query, self.document, self.distance, place, self.ranged)
        query_frame, frame = self.query_places[cells[:, 0]], self.document_places[cells[:, 1]]
        return pa.table(
            {
                "query_frame": query_frame,
                "frame": frame,
                "query_time": frames_to_seconds(query_frame, self.shift),
                "time": frames_to_seconds(frame, self.shift),
                "distance": table[cells[:, 0], cells[:, 1] - first] / self.unit,
            }
        )


def _document(store: Store, doc_id: str, channel: int, config: Search) -> tuple[Documents, int]:
    """The documents of the shard of a document, and its index among them."""
    everywhere = store.documents(columns=["doc_id", "channel", "shard", "recording", "start"])
    shards = everywhere["shard"].filter(_is(everywhere, doc_id, channel)).to_pylist()
    places = everywhere.filter(pc.equal(everywhere["recording"], doc_id))
    if not shards and places.num_rows:
        several = ", ".join(f"{row['doc_id']} (from {row['start']:g} s)" for row in places.slice(0, 5).to_pylist())
        raise codes.NAME_OF_RECORDING(where=store.folder.path(), name=doc_id, count=places.num_rows, documents=several)
    if not shards:
        raise codes.NO_DOCUMENT_IN_STORE(where=store.folder.path(), doc_id=doc_id, channel=channel)
    documents = Documents.of(store, shards, config)
    return documents, int(np.flatnonzero(_is(documents.table, doc_id, channel).to_numpy())[0])


def _is(table: pa.Table, doc_id: str, channel: int) -> pa.ChunkedArray:
    return pc.and_(pc.equal(table["doc_id"], doc_id), pc.equal(table["channel"], channel))
