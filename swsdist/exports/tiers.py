"""Detections as tiers of annotations, for ELAN and Praat: of each document a file, of each query a tier.

Shown are YES decisions, or else the best few of each query. An annotation's text is its score; times are whole ms, and an
annotation lasts at least 1 ms. A tier holds no overlapping annotations, so what overlaps an earlier detection of its query is
in a further tier: `QUERY (2)`, `QUERY (3)`, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from swsdist.core.codes import report as codes
from swsdist.exports.interface import Material
from swsdist.exports.labels import shown
from swsdist.io.labels import label_file

#: Neither XML nor a TextGrid's line can hold them.
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")

#: Start and end, ms, and text.
Annotation = tuple[int, int, str]


class Annotated(NamedTuple):
    """A document with detections.

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
    """The documents with detections, by id and channel; their files are below `folder/export`.

    Args:
        material: the detections.
        folder: local folder.
        export: name of the export.
        ending: of its files.

    Raises:
        UserError: a query's id cannot name a tier, or a document's a file.
    """
    hits: dict[tuple[str, int], dict[str, list[tuple[int, int, float]]]] = {}
    names = ("doc_id", "channel", "query_id", "start", "end", "score")
    for batch in shown(material):
        for doc_id, channel, query, *times, score in zip(*(batch.column(n).to_pylist() for n in names), strict=True):
            if not query or _FORBIDDEN.search(query):
                raise codes.INVALID_TIER_NAME(query=query, export=export)
            start, end = (round(1000 * time) for time in times)
            hits.setdefault((doc_id, channel), {}).setdefault(query, []).append((start, max(end, start + 1), score))
    known = material.recordings(sorted({doc_id for doc_id, _ in hits})) if hits else {}
    for key, by_query in sorted(hits.items()):
        file = folder / export / label_file(*key, export, ending)
        file.parent.mkdir(parents=True, exist_ok=True)
        path, duration = known.get(key, ("", 0.0))
        last = max(end for rows in by_query.values() for _, end, _ in rows)
        yield Annotated(file, _tiers(by_query), path, max(last, round(1000 * duration)))


def _tiers(by_query: dict[str, list[tuple[int, int, float]]]) -> dict[str, list[Annotation]]:
    tiers: dict[str, list[Annotation]] = {}
    for query, rows in sorted(by_query.items()):
        layers: list[list[Annotation]] = []
        for start, end, score in sorted(rows, key=lambda row: (*row[:2], -row[2])):
            layer = next((layer for layer in layers if layer[-1][1] <= start), None)
            if layer is None:
                layers.append(layer := [])
            layer.append((start, end, f"{score:.6g}"))
        further = (name for k in count(2) if (name := f"{query} ({k})") not in by_query)
        for k, layer in enumerate(layers):
            tiers[next(further) if k else query] = layer
    return tiers
