"""Speakers of documents, as numbers: those that are named, and the voices of the others (`swsdist.store.voices`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.kernels.coding import coded_documents
from swsdist.store.voices import STRETCH

#: The columns of DOCUMENTS that are needed.
WHO = ("doc_id", "channel", "recording", "start", "duration", "speaker", "voices")

#: Bits of a time in a key, in units of 1 ms: up to two years.
_BITS = 36

#: A name and a channel.
Place = tuple[str, int]


class Turns(NamedTuple):
    """Who begins to speak when: place and time (`place << _BITS | ms`), ascending; and the speaker's number."""

    places: dict[Place, int]
    starts: NDArray[np.int64]
    speakers: NDArray[np.int64]

    @classmethod
    def of(cls, turns: Iterator[tuple[Place, float, int]]) -> Turns:
        """Turns in any order: place, second, speaker."""
        places: dict[Place, int] = {}
        of, seconds, speakers = zip(
            *((places.setdefault(place, len(places)), second, speaker) for place, second, speaker in turns), strict=True
        )
        starts, numbers = _at(np.array(of, np.int64), np.array(seconds)), np.array(speakers, np.int64)
        order = np.lexsort((numbers, starts))
        return cls(places, starts[order], numbers[order])


class Speakers:
    """Speakers of documents, and of recordings with several documents.

    A speaker's number is the place of the name among all, sorted; voices follow. Documents without name and voices have one
    speaker, whose name is empty. Where documents of a recording overlap, the one that begins last counts.

    Args:
        documents: columns WHO of DOCUMENTS.
        tick: seconds from one frame to the next.
    """

    def __init__(self, documents: pa.Table, tick: float) -> None:
        self._documents, self._tick = documents, tick

    def of_candidates(self, table: pa.Table) -> pa.Table:
        """The same table with a column `speaker`, int64: who speaks in the middle.

        Args:
            table: columns doc_id and channel, and first and last (frames).
        """
        return self._added(table, pc.add(table["first"], table["last"]), self._tick / 2, self._in_documents)

    def of_detections(self, table: pa.Table, *, recordings: bool) -> pa.Table:
        """The same table with a column `speaker`, int64: who speaks in the middle.

        Args:
            table: columns doc_id and channel, and start and end (s).
            recordings: doc_id names the recording of documents that are segments.
        """
        turns = self._in_recordings if recordings else self._in_documents
        return self._added(table, pc.add(table["start"], table["end"]), 0.5, turns)

    @staticmethod
    def _added(table: pa.Table, twice: pa.ChunkedArray, unit: float, turns: Turns) -> pa.Table:
        if not table.num_rows:
            return table.append_column("speaker", pa.array([], pa.int64()))
        documents, row = coded_documents(table)
        places = np.array([turns.places[document] for document in documents], np.int64)
        middle = _at(places[row], twice.to_numpy() * unit)
        turn = np.searchsorted(turns.starts, middle, side="right") - 1
        return table.append_column("speaker", pa.array(turns.speakers[turn]))

    @cached_property
    def _in_documents(self) -> Turns:
        return Turns.of(((doc_id, channel), second, who) for doc_id, channel, _, _, _, second, who in self._turns())

    @cached_property
    def _in_recordings(self) -> Turns:
        spans: dict[Place, list[tuple[float, float, int]]] = {}
        for doc_id, channel, recording, start, end, second, speaker in self._turns():
            offset = start or 0.0
            spans.setdefault((recording or doc_id, channel), []).append((offset + second, offset + end, speaker))
        return Turns.of((place, second, speaker) for place, each in spans.items() for second, speaker in _latest(each))

    def _turns(self) -> Iterator[tuple[str, int, str | None, float | None, float, float, int]]:
        """Document, channel, recording, start; from and to which second of the document, and the speaker's number."""
        columns = {name: self._documents[name].to_pylist() for name in WHO}
        names = sorted({name or "" for name in columns["speaker"]})
        number = {name: k for k, name in enumerate(names)}
        stretch = STRETCH * self._tick
        for *document, duration, name, voices in zip(*columns.values(), strict=True):
            if name or not voices:
                yield *document, duration, 0.0, number[name or ""]
                continue
            for k, voice in enumerate(voices):
                end = duration if k + 1 == len(voices) else (k + 1) * stretch
                yield *document, end, k * stretch, len(names) + voice


def _latest(spans: list[tuple[float, float, int]]) -> Iterator[tuple[float, int]]:
    """Who speaks from which second on, of spans (from, to, speaker): of several at a time the one that begins last."""
    waiting = sorted(spans, reverse=True)
    current: list[tuple[float, float, int]] = []
    for second in sorted({edge for start, end, _ in spans for edge in (start, end)}):
        while waiting and waiting[-1][0] <= second:
            current.append(waiting.pop())
        # A span that began earlier and ends earlier lies below others, and is dropped when it comes up.
        while current and current[-1][1] <= second:
            current.pop()
        if current:
            yield second, current[-1][2]


def _at(place: NDArray[np.int64], second: NDArray[np.floating]) -> NDArray[np.int64]:
    """Keys of places and times in them."""
    return np.asarray((place << _BITS) + np.rint(second * 1000).astype(np.int64))
