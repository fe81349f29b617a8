"""Detections as Audacity label tracks: a text file per document, a line `start<tab>end<tab>query score` per detection, or
`start<tab>end<tab>query` for one without score.

Times are in seconds with 6 decimals, as in Audacity; scores, for display only, have 6 digits. Import a track with File,
Import, Labels, beside the recording. (Audacity manual, Importing and Exporting Labels.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from swsdist.core.codes import io as codes
from swsdist.core.types import DETECTIONS

#: Greatest length of a file's name on all common file systems, bytes.
_LONGEST_NAME = 255


def label_file(doc_id: str, channel: int, export: str = "labels", ending: str = "txt") -> str:
    """Unique name of a document's file in an export, for example `talks/monday.1.txt`; as `file_of`."""
    return file_of(doc_id, f"{channel}.{ending}", export)


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
        raise codes.LABEL_FILE_NAME_TOO_LONG(name=name[:40], export=export)
    return name


def write_labels(batches: Iterable[pa.RecordBatch], folder: Path) -> list[str]:
    """Write a label file for each document that has detections.

    Args:
        batches: detections (schema DETECTIONS; the score may be null), in any order, which the lines of a file keep.
        folder: local folder without label files.

    Returns:
        the names of the files in the folder, sorted.

    Raises:
        UserError: a query id holds a tab or a line break, or a document's id is too long for a file's name.
    """
    names: set[str] = set()
    for batch in batches:
        lines: dict[str, list[str]] = {}
        columns = (
            batch.column(name).to_pylist() for name in ("query_id", "doc_id", "channel", "start", "end", "score")
        )
        for query, doc_id, channel, start, end, score in zip(*columns, strict=True):
            if re.search(r"[\t\r\n]", query):
                raise codes.INVALID_LABEL_QUERY(query=query)
            lines.setdefault(label_file(doc_id, channel), []).append(
                f"{start:.6f}\t{end:.6f}\t{query}{'' if score is None else f' {score:.6g}'}\n"
            )
        for name, text in lines.items():
            file = folder / name
            if name not in names:
                file.parent.mkdir(parents=True, exist_ok=True)
                names.add(name)
            with file.open("a", encoding="utf-8", newline="\n") as opened:
                opened.writelines(text)
    return sorted(names)


def read_labels(file: Path, doc_id: str, channel: int = 1) -> pa.Table:
    """Read the label file of one document back.

    Args:
        file: label file whose labels are `query score`.
        doc_id: the document's id.
        channel: its channel.

    Returns:
        table DETECTIONS in the order of the lines; columns absent from labels are null.

    Raises:
        DataError: a line has another form.
    """
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if not line or line.startswith("\\"):  # Audacity writes a label's frequency range on a separate line
            continue
        try:
            start, end, label = line.split("\t")
            query, score = label.rsplit(" ", 1)
            rows.append(
                {
                    "query_id": query,
                    "doc_id": doc_id,
                    "channel": channel,
                    "start": float(start),
                    "end": float(end),
                    "score": float(score),
                }
            )
        except ValueError as error:
            raise codes.NOT_A_DETECTION_LABEL(where=f"{file}, line {number}", line=line) from error
    return pa.Table.from_pylist(rows, DETECTIONS)
