"""The input of an export: the detections, and metadata of some formats.

An export is a function ``write(material, folder)``. It writes whole files below the folder, with the same names and bytes for
the same detections, and raises a `UserError` if its format cannot represent them; then the folder is discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

import pyarrow as pa


class BestHit(TypedDict):
    """A detection with its place in a recording (local or a url), times in s."""

    query_id: str
    doc_id: str
    channel: int
    start: float
    end: float
    path: str


class Material(NamedTuple):
    """The input of an export.

    Attributes:
        batches: gives DETECTIONS from the beginning each time, in their order.
        query_ids: of all searched queries, with or without detections.
        system: its name.
        best: best hits, best first; for exports that declare that they read them.
        undecided: number of best detections per query to show where there are no decisions.
        storage: options for the file system of recordings.
        recordings: gives path (local or a url) and duration (s) of the known ones among documents, by id and channel.
    """

    batches: Callable[[], Iterator[pa.RecordBatch]]
    query_ids: Sequence[str]
    system: str
    best: Sequence[BestHit] = ()
    undecided: int = 20
    storage: Mapping[str, object] = {}
    recordings: Callable[[Sequence[str]], Mapping[tuple[str, int], tuple[str, float]]] = lambda names: {}
