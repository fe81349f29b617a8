"""What an export is given: the detections, and what some forms say besides.

An export is a function ``write(material, folder)``. It writes whole files below the folder, with the same names and bytes for
the same detections, and raises a `UserError` where its form cannot say what they are; nothing of the folder is then used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

import pyarrow as pa


class BestHit(TypedDict):
    """A detection to listen to: where it is in which recording (local or a url), times in s."""

    query_id: str
    doc_id: str
    channel: int
    start: float
    end: float
    path: str


class Material(NamedTuple):
    """What is written.

    Attributes:
        batches: gives DETECTIONS from the beginning each time, in their order.
        query_ids: of all queries that were searched, found or not.
        system: its name.
        best: best hits, best first; of exports that say they read them.
        undecided: how many of the best detections of a query are shown to people where nothing was decided.
        storage: options for the file system of recordings.
    """

    batches: Callable[[], Iterator[pa.RecordBatch]]
    query_ids: Sequence[str]
    system: str
    best: Sequence[BestHit] = ()
    undecided: int = 20
    storage: Mapping[str, object] = {}
