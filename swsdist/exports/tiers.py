"""Tiers of annotations, for ELAN and Praat: of each document a file.

Detections have a tier for each query, and an annotation's text is its score; shown are YES decisions, or else the best few of
each query. Times are whole ms, and an annotation lasts at least 1 ms. A tier holds no overlapping annotations, so what overlaps
an earlier one is in a further tier: `QUERY (2)`, `QUERY (3)`, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from swsdist.core.codes import report as codes
from swsdist.exports.interface import Material
from swsdist.exports.labels import shown
from swsdist.io.labels import label_file

#: Neither XML nor a TextGrid's line can hold them.
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")

#: Start and end, ms, and text.
Annotation = tuple[int, int, str]


class Labelled(NamedTuple):
    """A labelled place of a document: times in s; of equal places of a tier the one with the best score comes first."""

    doc_id: str
    channel: int
    tier: str
    start: float
    end: float
    score: float
    text: str


#: Gives path (local or a url) and duration (s) of the known recordings among documents, by id and channel.
Recordings = Callable[[Sequence[str]], Mapping[tuple[str, int], tuple[str, float]]]


class Annotated(NamedTuple):
    """A document with annotations.

    Attributes:
        file: of the export; its folder exists.
        tiers: annotations by the tier's name, in order of time; none overlap.
        path: of its recording, local or a url; empty if it is not known.
        end: of its recording, at least of the last annotation, ms.
    """

    file: Path
    tiers: dict[str, list[Annotation]]
    path: str
    end: int


def annotated(material: Material, folder: Path, export: str, ending: str) -> Iterator[Annotated]:
    """The documents with detections, as `tiered`."""
    return tiered(_labelled(material), material.recordings, folder, export, ending)


def _labelled(material: Material) -> Iterator[Labelled]:
    names = ("doc_id", "channel", "query_id", "start", "end", "score")
    for batch in shown(material):
        for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            yield Labelled._make((*row, f"{row[-1]:.6g}"))


def tiered(
    places: Iterable[Labelled], recordings: Recordings, folder: Path, export: str, ending: str
) -> Iterator[Annotated]:
    """The documents with annotations, by id and channel; their files are below `folder/export`.

    Args:
        places: in any order.
        recordings: of documents.
        folder: local folder.
        export: name of the export.
        ending: of its files.

    Raises:
        UserError: the name of a tier (a query's id) or of a document's file is not possible.
    """
    by_document: dict[tuple[str, int], dict[str, list[tuple[int, int, float, str]]]] = {}
    for doc_id, channel, tier, *times, score, text in places:
        if not tier or FORBIDDEN.search(tier):
            raise codes.INVALID_TIER_NAME(query=tier, export=export)
        start, end = (round(1000 * time) for time in times)
        by_tier = by_document.setdefault((doc_id, channel), {})
        by_tier.setdefault(tier, []).append((start, max(end, start + 1), score, text))
    recording_of = recordings(sorted({doc_id for doc_id, _ in by_document})) if by_document else {}
    for key, by_tier in sorted(by_document.items()):
        file = folder / export / label_file(*key, export, ending)
        file.parent.mkdir(parents=True, exist_ok=True)
        path, duration = recording_of.get(key, ("", 0.0))
        last = max(row[1] for rows in by_tier.values() for row in rows)
        yield Annotated(file, layered(by_tier), path, max(last, round(1000 * duration)))


def layered(by_tier: Mapping[str, Sequence[tuple[int, int, float, str]]]) -> dict[str, list[Annotation]]:
    """Tiers of annotations that do not overlap, of some that may: start and end (ms), score, text."""
    tiers: dict[str, list[Annotation]] = {}
    for tier, rows in sorted(by_tier.items()):
        layers: list[list[Annotation]] = []
        for start, end, _, text in sorted(rows, key=lambda row: (*row[:2], -row[2], row[3])):
            layer = next((layer for layer in layers if layer[-1][1] <= start), None)
            if layer is None:
                layers.append(layer := [])
            layer.append((start, end, text))
        further = (name for k in count(2) if (name := f"{tier} ({k})") not in by_tier)
        for k, layer in enumerate(layers):
            tiers[next(further) if k else tier] = layer
    return tiers
