"""Detections as lists: a CSV table, STDLIST and KWSLIST of the NIST programs, and Audacity label tracks.

In STDLIST and KWSLIST undecided detections become NO.

A label track is a text file per document, with a line `start<tab>end<tab>query score` per detection, or
`start<tab>end<tab>query` for one without score: YES decisions, or else the best few of each query. Times are in seconds
with 6 decimals, as in Audacity; scores, for display only, have 6 digits. Import a track with File, Import, Labels,
beside the recording.

Source: Audacity manual, Importing and Exporting Labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.reader import write_clip
from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.errors import AudioError
from swsdist.core.types import DETECTIONS
from swsdist.exports.interface import Material, Rows
from swsdist.io.nist.systemlist import ListWriter
from swsdist.io.nist.systemlist import kwslist as kwslist_of
from swsdist.io.nist.systemlist import stdlist as stdlist_of
from swsdist.io.tables import write_csv


class CsvTable(Rows):
    """`detections.csv`."""

    file = "detections.csv"

    def head(self, material: Material) -> bytes:
        """The names of the columns."""
        return _csv([], header=True)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        """A line a detection."""
        for batch in batches:
            yield _csv([batch])


def _csv(batches: Iterable[pa.RecordBatch], header: bool = False) -> bytes:
    out = BytesIO()
    write_csv(batches, DETECTIONS, out, header)
    return out.getvalue()


class NistList(Rows):
    """A list of a NIST program, which cannot read some names (a file name that is a pattern, for example)."""

    def __init__(self, file: str, made: Callable[..., ListWriter]) -> None:
        self.file, self._made = file, made

    def head(self, material: Material) -> bytes:
        """The root element."""
        return self._made(system=material.system).head()

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """An element a query."""
        return self._made().rows(batches, set())

    def tail(self, queries: Sequence[str]) -> bytes:
        """An empty element for each query without detections."""
        return self._made().tail(queries)

    def check(self, documents: Iterable[pa.Array]) -> None:
        """Refuse two documents of one name."""
        self._made().check(documents)


table, stdlist, kwslist = CsvTable(), NistList("stdlist.xml", stdlist_of), NistList("kwslist.xml", kwslist_of)


#: Greatest length of a file's name on all common file systems, bytes.
_LONGEST_NAME = 255


def label_file(doc_id: str, channel: int, export: str = "labels", ending: str = "txt") -> str:
    """Unique name of a document's file in an export: `talks/monday.txt`, for channel 2 `talks/monday.2.txt`; as `file_of`.

    The first channel has its number where the document's name ends in one, which could be that of a channel.
    """
    numbered = channel > 1 or re.search(r"\.[0-9]+$", doc_id)
    return file_of(doc_id, f"{channel}.{ending}" if numbered else ending, export)


def file_of(doc_id: str, ending: str, export: str) -> str:
    """Name of a file that is called after a document, for example `talks/monday.srt`.

    Parts that a path inside of a folder cannot have (`..`, an empty part, a control character, a backslash), and `%`,
    are written as `%` and two hexadecimal digits.

    Raises:
        UserError: the document's id is too long for it.
    """
    parts = [re.sub(r"[%\\\x00-\x1f\x7f]", lambda match: f"%{ord(match[0]):02X}", part) for part in doc_id.split("/")]
    parts = ["%" if part == "" else part.replace(".", "%2E") if part in (".", "..") else part for part in parts]
    name = f"{'/'.join(parts)}.{ending}"
    if any(len(part.encode()) > _LONGEST_NAME for part in name.split("/")):
        raise families.UNWRITABLE_NAME(
            "no file can have the name {name}...",
            "give the document a shorter id, or leave {export} out of report.exports",
            name=name[:40],
            export=export,
        )
    return name


def write_labels(batches: Iterable[pa.RecordBatch], folder: Path) -> None:
    """Write a label file for each document that has detections.

    Args:
        batches: detections (schema DETECTIONS; the score may be null), in any order, which the lines of a file keep.
        folder: local folder, to be made.

    Raises:
        UserError: a query id holds a tab or a line break, or a document's id is too long for a file's name.
    """
    folder.mkdir()
    for batch in batches:
        lines: dict[str, list[str]] = {}
        columns = (
            batch.column(name).to_pylist() for name in ("query_id", "doc_id", "channel", "start", "end", "score")
        )
        for query, doc_id, channel, start, end, score in zip(*columns, strict=True):
            if re.search(r"[\t\r\n]", query):
                raise families.UNWRITABLE_NAME(
                    "query id {query!r} holds a tab or line break, which a label cannot hold",
                    "rename the query, or leave labels out of report.exports",
                    query=query,
                )
            lines.setdefault(label_file(doc_id, channel), []).append(
                f"{start:.6f}\t{end:.6f}\t{query}{'' if score is None else f' {score:.6g}'}\n"
            )
        for name, text in lines.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8", newline="\n") as opened:
                opened.writelines(text)


def write_tracks(material: Material, folder: Path) -> None:
    """Write `labels/`.

    Raises:
        UserError: a name is not valid in a label.
    """
    write_labels(shown(material), folder / "labels")


def shown(material: Material) -> Iterator[pa.RecordBatch]:
    """YES decisions and, of each query, the best `material.undecided` detections without decision; DETECTIONS."""
    least = _least(material) if material.undecided else {}
    count = 0
    for batch in material.batches():
        keep = pc.fill_null(batch.column("decision"), False).to_numpy(zero_copy_only=False).copy()
        for query, rows, scores in _undecided(batch):
            if query in least:
                score, place = least[query]
                keep[rows] = (scores > score) | ((scores == score) & (rows + count <= place))
        count += batch.num_rows
        yield batch.filter(pa.array(keep))


def _least(material: Material) -> dict[str, tuple[float, int]]:
    """By query: score and place in the list of the last of its best undecided detections; of equal scores the first count."""
    best: dict[str, tuple[Floats, Ints]] = {}
    count = 0
    for batch in material.batches():
        for query, rows, scores in _undecided(batch):
            if query in best:
                scores, rows = np.append(best[query][0], scores), np.append(best[query][1], rows + count)
            else:
                rows = rows + count
            if len(rows) > material.undecided:
                near = scores >= np.partition(scores, -material.undecided)[-material.undecided]
                scores, rows = scores[near], rows[near]
            order = np.lexsort((rows, -scores))[: material.undecided]
            best[query] = scores[order], rows[order]
        count += batch.num_rows
    return {query: (float(scores[-1]), int(rows[-1])) for query, (scores, rows) in best.items()}


def _undecided(batch: pa.RecordBatch) -> Iterator[tuple[str, Ints, Floats]]:
    """Of each query with undecided detections: their rows in the batch and their scores."""
    decision = batch.column("decision")
    if not decision.null_count:
        return
    rows = pc.indices_nonzero(pc.is_null(decision)).to_numpy().astype(np.int64)
    queries = batch.column("query_id").take(pa.array(rows)).dictionary_encode()
    codes, scores = queries.indices.to_numpy(), batch.column("score").to_numpy()[rows]
    order = np.argsort(codes, kind="stable")
    for code, some in enumerate(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)):
        yield queries.dictionary[code].as_py(), rows[some], scores[some]


#: Bytes of ids in a clip's name: file systems allow 255 in all.
_LONGEST = 160


def write_clips(material: Material, folder: Path) -> None:
    """Write `clips/`, the best first by name.

    A hit in a document without a recording (precomputed features) has no clip.

    Raises:
        UserError: a recording has changed since it was indexed, or no hit has one.
    """
    (folder / "clips").mkdir()
    if material.best and not any(hit["path"] for hit in material.best):
        raise families.MISSING_INPUT(
            "the documents have no recordings, only features or transcripts",
            "add the column path to hear the hits, or remove clips from report.exports",
            where="corpus.documents",
        )
    for k, hit in enumerate(material.best, 1):
        if not hit["path"]:
            continue
        out = folder / "clips" / clip_name(k, hit["query_id"], hit["doc_id"], hit["start"])
        try:
            write_clip(hit["path"], hit["start"], hit["end"], out, channel=hit["channel"], storage=material.storage)
        except AudioError as error:
            raise families.CHANGED_INPUT(
                "the recording has changed since it was indexed: {error}",
                "index again, or remove clips from report.exports",
                where=hit["path"],
                error=error.message,
            ) from None


def clip_name(number: int, query: str, doc_id: str, start: float) -> str:
    """Name of a hit's clip, for every file system: `001-q001-talk-12.30.wav`. The number makes it unique."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{query}-{doc_id}")
    short = safe.encode()[:_LONGEST].decode(errors="ignore")
    return f"{number:03d}-{short}-{start:.2f}.wav"
