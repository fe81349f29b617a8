"""The input of an export: the detections, and metadata of some formats.

An export is a function ``write(material, folder)``. It writes whole files below the folder, with the same names and bytes for
the same detections, and raises a `UserError` if its format cannot represent them; then the folder is discarded. One task of a
run writes them. A file that is as long as the list is better a `Rows`: a task a part of the list writes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

import pyarrow as pa
import pyarrow.compute as pc


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


class Rows(ABC):
    """An export that is one file: a head, the rows of each part of the list, and a tail. It is called like every export.

    Attributes:
        file: its name.
    """

    file: str

    def head(self, material: Material) -> bytes:
        """What stands before the rows."""
        return b""

    @abstractmethod
    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """A part, in pieces: DETECTIONS of queries that are in no other part.

        Raises:
            UserError: the format cannot represent them.
        """

    def tail(self, queries: Sequence[str]) -> bytes:
        """What stands behind the rows, given the queries without detections; errors as of `rows`."""
        return b""

    def check(self, documents: Iterable[pa.Array]) -> None:
        """Refuse what can be seen in no single part, given the distinct ids of the documents of each; errors as of `rows`."""
        return

    def __call__(self, material: Material, folder: Path) -> None:
        """Write a whole list as one part."""
        found: set[str] = set()

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in material.batches():
                found.update(pc.unique(batch.column("query_id")).to_pylist())
                yield batch

        with (folder / self.file).open("wb") as out:
            out.write(self.head(material))
            out.writelines(self.rows(batches()))
            out.write(self.tail([query for query in material.query_ids if query not in found]))
