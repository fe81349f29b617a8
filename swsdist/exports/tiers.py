"""Tiers of annotations, for ELAN and Praat: of each document a file.

Detections have a tier for each query, and an annotation's text is its score; shown are YES decisions, or else the best few of
each query. Times are whole ms, and an annotation lasts at least 1 ms. A tier holds no overlapping annotations, so what overlaps
an earlier one is in a further tier: `QUERY (2)`, `QUERY (3)`, ... A tier of a speaker is called `TIER@SPEAKER`.

An annotation may have texts below it (a gloss): in ELAN in child tiers, in Praat in tiers beside, at the same times. A
TextGrid, in UTF-8, lasts as long as its recording; where that is not known, until its last annotation ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pympi import TextGrid

from swsdist.core.codes import discovery as codes
from swsdist.core.errors import DataError
from swsdist.exports import elan
from swsdist.exports.interface import Material
from swsdist.exports.labels import label_file, shown
from swsdist.exports.layers import EPOCH, Annotated, Key, Row, layered
from swsdist.io.compressed import short

#: Neither XML nor a TextGrid's line can hold them.
FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff]")


class Labelled(NamedTuple):
    """A labelled place of a document: times in s; of equal places of a tier the one with the best score comes first.

    `below` are texts of tiers below, by their names; `speaker` is empty if nobody is known.
    """

    doc_id: str
    channel: int
    tier: str
    start: float
    end: float
    score: float
    text: str
    speaker: str = ""
    below: tuple[tuple[str, str], ...] = ()


#: Gives path (local or a url) and duration (s) of the known recordings among documents, by id and channel.
Recordings = Callable[[Sequence[str]], Mapping[tuple[str, int], tuple[str, float]]]


def write_eaf(material: Material, folder: Path) -> None:
    """Write `eaf/`; see `write_tiers`."""
    write_tiers("eaf", _labelled(material), material.recordings, folder)


def write_textgrid(material: Material, folder: Path) -> None:
    """Write `textgrid/`; see `write_tiers`."""
    write_tiers("textgrid", _labelled(material), material.recordings, folder)


def _labelled(material: Material) -> Iterator[Labelled]:
    names = ("doc_id", "channel", "query_id", "start", "end", "score")
    for batch in shown(material):
        columns = (batch.column(name).to_pylist() for name in names)
        for doc_id, channel, query, start, end, score in zip(*columns, strict=True):
            yield Labelled(doc_id, channel, query, start, end, score, f"{score:.6g}")


def write_tiers(
    export: str,
    places: Iterable[Labelled],
    recordings: Recordings,
    folder: Path,
    *,
    home: Path | None = None,
    base: Callable[[str], Path | None] = lambda path: None,
    refused: Callable[[DataError], None] | None = None,
    date: str = EPOCH,
) -> None:
    """Write the documents with annotations.

    Args:
        export: of `WRITERS`, below whose name in the folder the files are.
        places: in any order.
        recordings: of documents.
        folder: local folder.
        home: where the files will lie; None: nobody knows.
        base: gives the file of ELAN that the tiers of a recording are added to; None: they are alone.
        refused: takes the error of a base that nothing can be added to; the others are written. By default it is raised.
        date: when they were changed last, s, UTC.

    Raises:
        UserError: a text, the name of a tier (a query's id) or of a document's file is not possible.
        DataError: a base is no file of ELAN.
    """
    write, ending = WRITERS[export]
    by_document: dict[tuple[str, int], dict[Key, list[Row]]] = {}
    for doc_id, channel, tier, *times, score, text, speaker, below in places:
        for name in (tier, speaker, *(each.replace("\n", " ") for each in (text, *dict(below).values()))):
            if FORBIDDEN.search(name) or not tier:
                raise codes.INVALID_TIER_NAME(query=short(name), export=export)
        start, end = (round(1000 * time) for time in times)
        by_tier = by_document.setdefault((doc_id, channel), {})
        by_tier.setdefault((tier, speaker), []).append(Row(start, max(end, start + 1), score, text, below))
    recording_of = recordings(sorted({doc_id for doc_id, _ in by_document})) if by_document else {}
    for key, by_tier in sorted(by_document.items()):
        file = folder / export / label_file(*key, export, ending)
        file.parent.mkdir(parents=True, exist_ok=True)
        path, duration = recording_of.get(key, ("", 0.0))
        last = max(row.end for rows in by_tier.values() for row in rows)
        where = None if home is None else (home / file.relative_to(folder)).parent
        try:
            write(Annotated(file, by_tier, path, max(last, round(1000 * duration)), where, base(path), date))
        except DataError as error:
            if refused is None:
                raise
            refused(error)


def _write_textgrid(document: Annotated) -> None:
    grid = TextGrid(xmin=0.0, xmax=document.end / 1000)
    for tier in layered(document.rows):
        texts = {tier.name: [row.text for row in tier.rows]}
        for name in dict.fromkeys(name for row in tier.rows for name, _ in row.below):
            texts[name] = [dict(row.below).get(name, "") for row in tier.rows]
        for name, column in texts.items():
            written = grid.add_tier(
                (name + tier.suffix).replace('"', '""')
            )  # pympi doubles quotation marks in texts alone
            for row, text in zip(tier.rows, column, strict=True):
                if text or name == tier.name:
                    written.add_interval(row.start / 1000, row.end / 1000, text, check=False)
    grid.to_file(str(document.file))


#: What writes a file of each export, and its ending.
WRITERS: dict[str, tuple[Callable[[Annotated], None], str]] = {
    "eaf": (elan.write_elan, "eaf"),
    "textgrid": (_write_textgrid, "TextGrid"),
}
