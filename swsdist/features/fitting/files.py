"""Files of fitting: documents, totals, and labels of frames.

Documents and totals are rows of NumPy arrays, read without pickle.

Labels are read from a CTM or a master label file of phones, words, or other classes. A frame has the label of the
segment that contains its middle, and none outside all segments. Of overlapping segments, the one that begins last wins.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.features.fitting.interface import Document, Totals, added
from swsdist.features.interface import Framed
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import local_file
from swsdist.io.frames.htk import read_mlf
from swsdist.io.frames.numpy_files import bounded_arrays, write_array
from swsdist.io.local import retry_local
from swsdist.io.nist.ctm import read_ctm

#: Bytes of a whole number of any size, of those that are added up: 2^511 is more than any sum of frames.
_BYTES = 64


def write_document(file: BinaryIO, document: Document) -> None:
    """Append a document."""
    speaker = document.speaker
    bandwidth = np.nan if document.bandwidth is None else document.bandwidth
    placed = document.positions is not None
    head = [len(document.blocks), document.labels is not None, speaker is not None, bandwidth, placed]
    write_array(file, np.array(head, np.float64))
    for block in document.blocks:
        write_array(file, np.ascontiguousarray(block, "<f4"))
    if document.labels is not None:
        write_array(file, document.labels.astype("<i8"))
    if document.positions is not None:
        write_array(file, document.positions.astype("<i8"))
    if speaker is not None:
        write_array(file, np.frombuffer(speaker.encode(), np.uint8))


def read_documents(file: BinaryIO) -> Iterator[Document]:
    """Documents that were appended, one after the other."""
    data, at = file.read(), 0

    def array() -> NDArray[Any]:
        nonlocal at
        end = at + 10 + int.from_bytes(data[at + 8 : at + 10], "little")
        shape, dtype = _header(data[at:end])
        at = end + math.prod(shape) * dtype.itemsize
        return np.frombuffer(data, dtype, math.prod(shape), end).reshape(shape)

    while at < len(data):
        blocks, labelled, named, bandwidth, placed = array().tolist()
        frames = [array() for _ in range(int(blocks))]
        labels = array() if labelled else None
        positions = array() if placed else None
        speaker = array().tobytes().decode() if named else None
        yield Document(frames, speaker, labels, None if math.isnan(bandwidth) else bandwidth, positions)


@lru_cache(4096)
def _header(text: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array by its header, in row-major order; NumPy reads one in longer than a short document takes."""
    stream = io.BytesIO(text)
    np.lib.format.read_magic(stream)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    return shape, dtype


def write_totals(file: BinaryIO, totals: Totals) -> None:
    """Write totals; integers of any size as their bytes."""
    np.savez(file, allow_pickle=False, **{name: _packed(array) for name, array in totals.items()})


def read_totals(file: BinaryIO) -> Totals:
    """Read totals that `write_totals` wrote."""
    return {name: _unpacked(array) for name, array in bounded_arrays(file).items()}


def summed(several: Iterable[Totals]) -> Totals:
    """The sum of all."""
    return reduce(added, several, {})


def _packed(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != object:
        return array.astype("<i8")
    stream = b"".join(int(value).to_bytes(_BYTES, "little", signed=True) for value in array.tolist())
    return np.frombuffer(stream, np.uint8).reshape(len(array), _BYTES)


def _unpacked(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.uint8:
        return array
    return np.array([int.from_bytes(row.tobytes(), "little", signed=True) for row in array], object)


class Segments(NamedTuple):
    """Segments of one document: float64 (segments,) each, s, sorted by start; and indices into `Labels.names`."""

    starts: Floats
    ends: Floats
    labels: Ints


class Labels(NamedTuple):
    """A file of labels.

    Attributes:
        names: all labels, sorted.
        segments: by the file's key of a document: name and channel, or the stem of a label file's name.
    """

    names: tuple[str, ...]
    segments: Mapping[tuple[str, int] | str, Segments]

    def has(self, doc_id: str, channel: int) -> bool:
        """Whether there are labels for a document."""
        return self._of(doc_id, channel) is not None

    def _of(self, doc_id: str, channel: int) -> Segments | None:
        for key in ((doc_id, channel), f"{doc_id}.{channel}", *((doc_id,) if channel == 1 else ())):
            if key in self.segments:
                return self.segments[key]
        return None

    def of_frames(self, doc_id: str, channel: int, frames: int, by: Framed) -> Ints:
        """Labels of the first `frames` frames of a document: int64 (frames,), an index into `names`, or -1."""
        segments = self._of(doc_id, channel)
        if segments is None or not len(segments.starts):
            return np.full(frames, -1)
        middles = (np.arange(frames) * by.hop + by.frame_length / 2) / by.sample_rate
        place = np.searchsorted(segments.starts, middles, side="right") - 1
        inside = (place >= 0) & (middles < segments.ends[place])
        made: Ints = np.where(inside, segments.labels[place], -1)
        return made


def read_labels(path: str, identity: str) -> Labels:
    """Read a CTM, or a master label file (`.mlf`).

    Args:
        path: a file, or an `s3://` url.
        identity: of its content: a process reads it once.

    Raises:
        DataError: it is damaged, or has another format.
    """
    return _read(path, identity)


@lru_cache(maxsize=4)
def _sha256(path: str, size: int, mtime_ns: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@lru_cache(maxsize=4)
def _read(path: str, identity: str) -> Labels:
    file = local_file(path)
    rows: dict[tuple[str, int] | str, list[tuple[float, float, str]]] = {}
    if path.lower().endswith(".mlf"):
        for name, lines in read_mlf(file).items():
            stem = PurePosixPath(name).stem
            if stem in rows:
                raise io_codes.DUPLICATE_MLF_NAME(where=path, name=stem)
            rows[stem] = [(line.start, line.end, line.label) for line in lines]
    else:
        for row in read_ctm(str(file)).to_pylist():
            span = row["start"], row["start"] + row["duration"], row["word"]
            rows.setdefault((row["doc_id"], row["channel"]), []).append(span)
    names = tuple(sorted({label for spans in rows.values() for _, _, label in spans}))
    number = {name: k for k, name in enumerate(names)}
    segments: dict[tuple[str, int] | str, Segments] = {}
    for key, spans in rows.items():
        spans.sort()
        starts, ends, labels = ([span[k] for span in spans] for k in range(3))
        indices = np.array([number[str(label)] for label in labels], np.int64)
        segments[key] = Segments(np.array(starts, np.float64), np.array(ends, np.float64), indices)
    return Labels(names, segments)


def identity_of(path: str) -> str:
    """SHA-256 of a file of labels.

    Raises:
        ConfigError: it does not exist.
    """
    try:
        file = local_file(path)
        status = retry_local(file.stat)
        return _sha256(str(file), status.st_size, status.st_mtime_ns)
    except OSError as error:
        where = f"features.transforms: labels: {path}"
        raise families.UNREADABLE_FILE(
            "the labels cannot be read: {detail}",
            "name a CTM or a master label file, here or as corpus.alignments.phones",
            where=where,
            detail=as_file_fault(error, where).message,
        ) from error
