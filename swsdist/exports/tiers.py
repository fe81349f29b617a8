"""Tiers of annotations, for ELAN (EAF 2.8) and Praat (TextGrids in UTF-8): of each document a file.

Detections have a tier for each query, and an annotation's text is its score; shown are YES decisions, or else the best few of
each query. Times are whole ms, and an annotation lasts at least 1 ms. A tier holds no overlapping annotations, so what overlaps
an earlier one is in a further tier: `QUERY (2)`, `QUERY (3)`, ...

ELAN looks for the recording at its path; one on S3 is linked by its url, and ELAN asks for a copy. A TextGrid lasts as long as
its recording; where that is not known, until its last annotation ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from pympi import Eaf, TextGrid

from swsdist.core.codes import report as codes
from swsdist.exports.interface import Material
from swsdist.exports.labels import label_file, shown
from swsdist.io.filesystem import is_remote

#: Neither XML nor a TextGrid's line can hold them.
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")

#: Not that of writing: equal detections give equal bytes.
_DATE = "1970-01-01T00:00:00+00:00"
#: As ELAN calls types; of others it looks into the file.
_TYPES = {".wav": "audio/x-wav", ".mp4": "video/mp4", ".mpg": "video/mpeg", ".mpeg": "video/mpeg"}

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


def write_eaf(material: Material, folder: Path) -> None:
    """Write `eaf/`; see `write_tiers`."""
    write_tiers("eaf", _labelled(material), material.recordings, folder)


def write_textgrid(material: Material, folder: Path) -> None:
    """Write `textgrid/`; see `write_tiers`."""
    write_tiers("textgrid", _labelled(material), material.recordings, folder)


def _labelled(material: Material) -> Iterator[Labelled]:
    names = ("doc_id", "channel", "query_id", "start", "end", "score")
    for batch in shown(material):
        for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            yield Labelled._make((*row, f"{row[-1]:.6g}"))


def write_tiers(export: str, places: Iterable[Labelled], recordings: Recordings, folder: Path) -> None:
    """Write the documents with annotations.

    Args:
        export: of `WRITERS`, below whose name in the folder the files are.
        places: in any order.
        recordings: of documents.
        folder: local folder.

    Raises:
        UserError: the name of a tier (a query's id) or of a document's file is not possible.
    """
    write, ending = WRITERS[export]
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
        write(Annotated(file, layered(by_tier), path, max(last, round(1000 * duration))))


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


def _write_eaf(document: Annotated) -> None:
    eaf = Eaf(author="swsdist")
    eaf.adocument["DATE"] = _DATE
    eaf.header = {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}
    eaf.remove_tier("default")
    if document.path:
        path = document.path
        kind = _TYPES.get(Path(path).suffix.lower(), "unknown")
        eaf.add_linked_file(path if is_remote(path) else Path(path).absolute().as_uri(), mimetype=kind)
    for tier, rows in document.tiers.items():
        eaf.add_tier(tier)
        for start, end, text in rows:
            eaf.add_annotation(tier, start, end, text)
    eaf.properties = [("lastUsedAnnotationId", eaf.maxaid)]
    eaf.to_file(str(document.file))


def _write_textgrid(document: Annotated) -> None:
    grid = TextGrid(xmin=0.0, xmax=document.end / 1000)
    for name, rows in document.tiers.items():
        tier = grid.add_tier(name.replace('"', '""'))  # pympi doubles quotation marks in texts alone
        for start, end, text in rows:
            tier.add_interval(start / 1000, end / 1000, text, check=False)
    grid.to_file(str(document.file))


#: What writes a file of each export, and its ending.
WRITERS: dict[str, tuple[Callable[[Annotated], None], str]] = {
    "eaf": (_write_eaf, "eaf"),
    "textgrid": (_write_textgrid, "TextGrid"),
}
