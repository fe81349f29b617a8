"""HTK's parameter files, and its label files.

A parameter file is big endian: int32 frames, int32 period (100 ns), int16 bytes a frame, int16 kind, then float32 frame by
frame. Labels are `start end label score` a line, times in 100 ns. A master label file (MLF) begins with `#!MLF!#` and holds
those of many files, each behind its name in quotes and before a line with a dot. (Young et al., The HTK Book, 5.10 and 6.2.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.errors import DataError

_HEADER = struct.Struct(">iihh")
_TICK = 1e7  # a second
_FLOATS = 8191  # a frame: its bytes are an int16

#: Kinds of parameters: log mel energies, which phnrec also says of posteriors, and anything.
FBANK, USER = 6, 9

_FIRST = "#!MLF!#"


class Parameters(NamedTuple):
    """What a parameter file holds.

    Attributes:
        frames: float32 (frames, columns).
        shift: seconds from one frame to the next.
        kind: HTK's number of what they are.
    """

    frames: NDArray[np.float32]
    shift: float
    kind: int


class TimedLabel(NamedTuple):
    """A line of a label file; times in seconds."""

    start: float
    end: float
    label: str
    score: float


def write_parameters(frames: NDArray[np.floating], shift: float, out: Path, kind: int = USER) -> None:
    """Write frames, (frames, columns), as float32.

    Raises:
        DataError: there are more columns than the format has room for.
    """
    if frames.shape[1] > _FLOATS:
        raise DataError(
            f"{frames.shape[1]} columns, a frame of HTK's has at most {_FLOATS}",
            where=str(out),
            remedy="write fewer columns, or another format",
        )
    header = _HEADER.pack(len(frames), round(shift * _TICK), 4 * frames.shape[1], kind)
    out.write_bytes(header + frames.astype(">f4").tobytes())


def read_parameters(path: Path) -> Parameters:
    """Read frames of float32.

    Raises:
        DataError: it is not such a file, or it is compressed.
    """
    data = path.read_bytes()
    if len(data) < _HEADER.size:
        raise DataError("it is not a parameter file of HTK", where=str(path), remedy="name another file")
    count, period, size, kind = _HEADER.unpack(data[: _HEADER.size])
    if count < 0 or size < 1 or size % 4 or len(data) != _HEADER.size + count * size:
        raise DataError(
            f"it says {count} frames of {size} bytes, and has {len(data) - _HEADER.size} bytes",
            where=str(path),
            remedy="write it as float32, neither compressed nor with a checksum",
        )
    frames = np.frombuffer(data, ">f4", offset=_HEADER.size).reshape(count, size // 4)
    return Parameters(frames.astype(np.float32), period / _TICK, kind)


def label_lines(labels: Iterable[TimedLabel]) -> list[str]:
    """The lines of a label file: times in 100 ns, scores with 6 decimals."""
    return [f"{round(one.start * _TICK)} {round(one.end * _TICK)} {one.label} {one.score:.6f}\n" for one in labels]


def write_mlf(labels: Mapping[str, Sequence[TimedLabel]], out: Path) -> None:
    """Write a master label file.

    Args:
        labels: by the name that stands there, for example `*/talk.rec`.
        out: local file to write.

    Raises:
        DataError: a name or label cannot stand in it.
    """
    lines = [f"{_FIRST}\n"]
    for name, found in labels.items():
        if '"' in name or not name.isprintable() or any(not one.label or " " in one.label for one in found):
            raise DataError(f"{name!r} or a label of it cannot stand in an MLF", where=str(out), remedy="rename it")
        lines += [f'"{name}"\n', *label_lines(found), ".\n"]
    out.write_text("".join(lines), encoding="utf-8")


def read_mlf(path: Path) -> dict[str, list[TimedLabel]]:
    """Read a master label file whose lines are `start end label [score]`; without a score it is 0.

    Raises:
        DataError: a line is something else.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0].strip() != _FIRST:
        raise DataError(f"it does not begin with {_FIRST}", where=str(path), remedy="name a master label file")
    labels: dict[str, list[TimedLabel]] = {}
    name: str | None = None
    for number, line in enumerate(lines[1:], 2):
        if name is None and line.startswith('"') and line.rstrip().endswith('"'):
            name = line.strip()[1:-1]
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
                raise DataError(
                    f"{line!r} is not a label", where=f"{path}, line {number}", remedy="write: start end label score"
                ) from None
    return labels
