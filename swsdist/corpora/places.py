"""Places of a corpus's documents in recordings: a document may be a recording, or a place in a recording.

References, detections and queries name recordings, and times in them. A document that is a recording is a place of the
same name that begins at 0 and has no end.
"""

from __future__ import annotations

import math
import posixpath
from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Bools
from swsdist.io.filesystem import is_remote

#: Tolerance at the ends of a document, s: times are rounded, and frames extend slightly further.
SLACK = 0.05


def absolute(path: str, folder: str) -> str:
    """The path of a recording as a list names it; relative ones start from a folder, local or remote."""
    if is_remote(path) or path.startswith("/"):
        return path
    scheme, slashes, root = folder.rpartition("//") if is_remote(folder) else ("", "", folder)
    return scheme + slashes + posixpath.normpath(f"{root}/{path}")


class Place(NamedTuple):
    """A document: its name, and its stretch from `start` to `end` (s) of a recording."""

    doc_id: str
    start: float
    end: float


class Places:
    """Documents by recording and channel.

    Args:
        documents: table CORPUS or PLACED.
    """

    def __init__(self, documents: pa.Table) -> None:
        self.by_recording: dict[tuple[str, int], list[Place]] = {}
        self.documents: dict[tuple[str, int], tuple[str, Place]] = {}
        placed = is_placed(documents)
        names = ["doc_id", "channel", *(("recording", "start", "end") if placed else ())]
        for row in documents.select(names).to_pylist():
            recording = row.get("recording", row["doc_id"])
            place = Place(row["doc_id"], row.get("start", 0.0), row.get("end", math.inf))
            self.by_recording.setdefault((recording, row["channel"]), []).append(place)
            self.documents[row["doc_id"], row["channel"]] = recording, place
        #: The latest end of all documents that begin no later than each document.
        self._latest: dict[tuple[str, int], list[float]] = {}
        for key, places in self.by_recording.items():
            places.sort(key=lambda place: (place.start, place.end, place.doc_id))
            self._latest[key] = list(accumulate((place.end for place in places), max))

    def containing(self, recording: str, channel: int, start: float, end: float) -> list[Place]:
        """The documents that contain a stretch of a recording."""
        key = recording, channel
        places, latest = self.by_recording.get(key, []), self._latest.get(key, [])
        last = bisect_right(places, start + SLACK, key=lambda place: place.start)
        first = last
        while first and end <= latest[first - 1] + SLACK:
            first -= 1
        return [place for place in places[first:last] if end <= place.end + SLACK]


def is_placed(documents: pa.Table) -> bool:
    """Whether documents are places in recordings."""
    return "recording" in documents.column_names


def searched_stretches(documents: pa.Table) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """By recording and channel: the searched stretches (s), ascending; overlapping or touching ones are merged.

    Args:
        documents: table PLACED.
    """
    result: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for key, places in Places(documents).by_recording.items():
        stretches: list[tuple[float, float]] = []
        for place in places:
            if stretches and place.start <= stretches[-1][1]:
                stretches[-1] = stretches[-1][0], max(stretches[-1][1], place.end)
            else:
                stretches.append((place.start, place.end))
        result[key] = stretches
    return result


def in_documents(table: pa.Table, places: Places) -> Bools:
    """Which rows (doc_id, a recording, channel, start, end) are in a document, bool (rows,)."""
    columns = (table[name].to_pylist() for name in ("doc_id", "channel", "start", "end"))
    return np.array([bool(places.containing(*row)) for row in zip(*columns, strict=True)], bool)


def by_document(table: pa.Table, places: Places) -> pa.Table:
    """Convert rows by recording to rows by document: each is repeated for every document that contains it, or dropped.

    Args:
        table: doc_id (a recording), channel, start, end (s), and other columns, which stay.
        places: the documents.
    """
    rows: list[int] = []
    names: list[str] = []
    columns = (table[name].to_pylist() for name in ("doc_id", "channel", "start", "end"))
    for row, (recording, channel, start, end) in enumerate(zip(*columns, strict=True)):
        result = [place.doc_id for place in places.containing(recording, channel, start, end)]
        rows += [row] * len(result)
        names += result
    index = table.schema.get_field_index("doc_id")
    taken = table.take(pa.array(rows, pa.int64()))
    return taken.set_column(index, table.schema.field(index).with_type(pa.string()), pa.array(names, pa.string()))


def stored(documents: pa.Table) -> pa.Table:
    """The documents of a store as `Places` takes them.

    Args:
        documents: doc_id, channel, duration, recording and start of DOCUMENTS.
    """
    start = documents["start"].fill_null(0.0)
    columns = {
        "doc_id": documents["doc_id"],
        "channel": documents["channel"],
        "recording": pc.coalesce(documents["recording"], documents["doc_id"]),
        "start": start,
        "end": pc.round(pc.add(start, documents["duration"]), 6),
    }
    return pa.table(columns)


def stretches(documents: pa.Table) -> pa.Table:
    """The searched stretches of each recording: doc_id, channel, start, duration (s), by recording and time.

    Args:
        documents: as for `stored`.
    """
    rows = [
        (recording, channel, start, round(end - start, 6))
        for (recording, channel), spans in searched_stretches(stored(documents)).items()
        for start, end in spans
    ]
    names = ("doc_id", "channel", "start", "duration")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    kinds = (pa.string(), pa.int32(), pa.float64(), pa.float64())
    return pa.table({name: pa.array(column, kind) for name, column, kind in zip(names, columns, kinds, strict=True)})
