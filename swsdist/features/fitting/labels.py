"""Frame labels from a CTM or a master label file of phones, words, or other classes.

A frame has the label of the segment that contains its middle; outside all segments it has none. Of overlapping
segments, the one that begins last wins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import features as codes
from swsdist.core.codes import io as io_codes
from swsdist.features.interface import Framed
from swsdist.io.failures import as_file_fault
from swsdist.io.local import retry_local
from swsdist.io.mlf import read_mlf
from swsdist.io.nist.ctm import read_ctm
from swsdist.io.remote.copies import local_file


class Segments(NamedTuple):
    """Segments of one document: float64 (segments,) each, s, sorted by start; and indices into `Labels.names`."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    labels: NDArray[np.int64]


class Labels(NamedTuple):
    """A file of labels.

    Attributes:
        names: all labels, sorted.
        segments: by the file's key of a document: name and channel, or the stem of a label file's name.
    """

    names: tuple[str, ...]
    segments: Mapping[tuple[str, int] | str, Segments]

    def has(self, doc_id: str, channel: int) -> bool:
        """Whether it has labels for a document."""
        return self._of(doc_id, channel) is not None

    def _of(self, doc_id: str, channel: int) -> Segments | None:
        for key in ((doc_id, channel), f"{doc_id}.{channel}", *((doc_id,) if channel == 1 else ())):
            if key in self.segments:
                return self.segments[key]
        return None

    def of_frames(self, doc_id: str, channel: int, frames: int, by: Framed) -> NDArray[np.int64]:
        """Labels of the first `frames` frames of a document: int64 (frames,), an index into `names`, or -1."""
        segments = self._of(doc_id, channel)
        if segments is None or not len(segments.starts):
            return np.full(frames, -1)
        middles = (np.arange(frames) * by.hop + by.frame_length / 2) / by.sample_rate
        place = np.searchsorted(segments.starts, middles, side="right") - 1
        inside = (place >= 0) & (middles < segments.ends[place])
        made: NDArray[np.int64] = np.where(inside, segments.labels[place], -1)
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
        raise codes.UNREADABLE_LABELS(where=where, detail=as_file_fault(error, where).message) from error
