"""HTK's parameter files, big-endian, one per document.

A header of 12 bytes: int32 number of frames, int32 frame shift in units of 100 ns, int16 bytes per frame, int16 kind.
The kind is a base (lowest 6 bits) and qualifiers. Compressed (`_C`): after the header two float32 vectors A and B, then
int16 y, and x = (y + B) / A; the header's count includes the 4 frames' worth of bytes for A and B. With a checksum
(`_K`) two more bytes follow, which are ignored. Waveforms, LPC reflection coefficients in 16 bits (IREFC), discrete
symbols and vectors with a codebook (`_V`) are refused.

Source: Young et al., The HTK Book (3.4), 5.10.1.

**Label files.** A line is a label, `start end label score`, times in 100 ns. A master label file (MLF) begins with `#!MLF!#`
and holds the labels of many files, each between its quoted name and a line with a dot. (Young et al., The HTK Book, 6.2.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import DataError
from swsdist.io.frames.item import Format, RawFrames, damage_errors, damaged, read_all

_HEADER = struct.Struct(">iihh")
_COMPRESSED, _CHECKSUM, _QUANTISED = 0o2000, 0o10000, 0o40000
#: Bases other than vectors of float32.
_NOT_VECTORS = {0: "a waveform", 5: "IREFC", 10: "discrete symbols"}


#: Most floats per frame: its bytes are an int16.
_FLOATS = 8191
#: Kinds: log mel energies, which phnrec also writes for posteriors; and any other.
FBANK, USER = 6, 9


class Header(NamedTuple):
    """Header of a file: frames, frame shift in s, bytes per frame, kind."""

    frames: int
    shift: float
    width: int
    kind: int


def header(path: str, data: bytes) -> Header:
    """The header of a file.

    Raises:
        DataError: the header is invalid, or the kind is not supported.
    """
    if len(data) < _HEADER.size:
        raise damaged(path, f"{len(data)} bytes, and the header alone has {_HEADER.size}")
    frames, period, width, kind = _HEADER.unpack_from(data)
    turned, _, bytes_, _ = struct.unpack_from("<iihh", data)
    if frames < 0 or width <= 0 or len(data) == _HEADER.size + turned * bytes_ != _HEADER.size + frames * width:
        raise damaged(path, f"{frames} frames of {width} bytes: it is not HTK, which is big-endian")
    base = _NOT_VECTORS.get(kind & 0o77)
    if base is not None or kind & _QUANTISED:
        raise families.WRONG_KIND.of(DataError)(
            "the file holds {kind}, not vectors of numbers",
            "convert it with HCopy, for example with TARGETKIND = MFCC",
            where=path,
            kind=base or "vectors with a codebook (_V)",
        )
    return Header(frames, period * 1e-7, width, kind)


def decoded(path: str, data: bytes) -> RawFrames:
    """Frames, float32 (frames, dimension).

    Raises:
        DataError: the file is not HTK, is cut off, or of an unsupported kind.
    """
    head = header(path, data)
    compressed = bool(head.kind & _COMPRESSED)
    size = 2 if compressed else 4
    if head.width % size:
        raise damaged(path, f"frames of {head.width} bytes are no numbers of {size}")
    expected = _HEADER.size + head.frames * head.width + (2 if head.kind & _CHECKSUM else 0)
    if len(data) != expected:
        raise damaged(path, f"{len(data)} bytes, and by its header {expected}")
    dimension = head.width // size
    if not compressed:
        frames: RawFrames = np.frombuffer(data, ">f4", head.frames * dimension, _HEADER.size)
        return frames.reshape(head.frames, dimension).astype(np.float32)
    count = head.frames - 4
    if count < 0:
        raise damaged(path, f"compressed, and {head.frames} frames with the 4 of A and B")
    factor, offset = np.frombuffer(data, ">f4", 2 * dimension, _HEADER.size).reshape(2, dimension)
    stored = np.frombuffer(data, ">i2", count * dimension, _HEADER.size + 8 * dimension).reshape(count, dimension)
    with np.errstate(divide="ignore", invalid="ignore"):  # the caller reports non-finite values with their key
        result: RawFrames = ((stored.astype(np.float64) + offset) / factor).astype(np.float32)
    return result


def write_parameters(frames: NDArray[np.floating], shift: float, out: Path, kind: int = USER) -> None:
    """Write frames, (frames, columns), as float32.

    Raises:
        DataError: the format does not allow as many columns.
    """
    if frames.shape[1] > _FLOATS:
        raise families.TOO_LARGE.of(DataError)(
            "{columns} columns; a frame of HTK has at most {most}",
            "write fewer columns, or another format",
            where=str(out),
            columns=frames.shape[1],
            most=_FLOATS,
        )
    header = _HEADER.pack(len(frames), round(shift * 1e7), 4 * frames.shape[1], kind)
    out.write_bytes(header + frames.astype(">f4").tobytes())


class _Htk:
    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path, self._storage = path, storage

    def read(self, at: str) -> RawFrames:
        with damage_errors(self._path):
            data = read_all(self._path, self._storage)
        self.shift = header(self._path, data).shift
        return decoded(self._path, data)

    def close(self) -> None:
        """Do nothing: no file is open."""


HTK = Format((".htk", ".fea", ".mfc", ".mfcc", ".plp", ".fbk", ".lpc", ".usr"), None, _Htk)


_TICK = 1e7  # a second

_FIRST = "#!MLF!#"


class TimedLabel(NamedTuple):
    """A line of a label file; times in seconds."""

    start: float
    end: float
    label: str
    score: float


def label_lines(labels: Iterable[TimedLabel]) -> list[str]:
    """The lines of a label file: times in 100 ns, scores with 6 decimals."""
    return [
        f"{round(label.start * _TICK)} {round(label.end * _TICK)} {label.label} {label.score:.6f}\n" for label in labels
    ]


def write_mlf(labels: Mapping[str, Sequence[TimedLabel]], out: Path) -> None:
    """Write a master label file.

    Args:
        labels: by the name in the file, for example `*/talk.rec`.
        out: local file to write.

    Raises:
        DataError: the format cannot represent a name or label.
    """
    lines = [f"{_FIRST}\n"]
    for name, items in labels.items():
        if '"' in name or not name.isprintable() or any(not item.label or " " in item.label for item in items):
            raise families.UNWRITABLE_NAME.of(DataError)(
                "{name!r}, or a label of it, cannot be written to an MLF", "rename it", where=str(out), name=name
            )
        lines += [f'"{name}"\n', *label_lines(items), ".\n"]
    out.write_text("".join(lines), encoding="utf-8")


def read_mlf(path: Path) -> dict[str, list[TimedLabel]]:
    """Read a master label file with lines `start end label [score]`; the score is 0 by default.

    Raises:
        DataError: a line has another form, or a name comes twice.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0].strip() != _FIRST:
        raise families.MALFORMED_FILE(
            "the file does not begin with {first}", "name a master label file", where=str(path), first=_FIRST
        )
    labels: dict[str, list[TimedLabel]] = {}
    name: str | None = None
    for number, line in enumerate(lines[1:], 2):
        if name is None and line.startswith('"') and line.rstrip().endswith('"'):
            name = line.strip()[1:-1]
            if name in labels:
                raise codes.DUPLICATE_MLF_NAME(where=f"{path}, line {number}", name=name)
            labels[name] = []
        elif name is not None and line.strip() == ".":
            name = None
        else:
            try:
                start, end, label, *score = line.split()
                if name is None or len(score) > 1:
                    raise ValueError(line)
                times = int(start) / _TICK, int(end) / _TICK
                labels[name].append(TimedLabel(*times, label, float(score[0]) if score else 0.0))
            except ValueError:
                raise families.MALFORMED_LINE(
                    "{line!r} is not a label", "write: start end label score", where=f"{path}, line {number}", line=line
                ) from None
    return labels
