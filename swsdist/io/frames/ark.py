"""Kaldi's archives of matrices (`.ark`), and lists of places in them (`.scp`).

An archive is `KEY MATRIX KEY MATRIX ...`. A matrix is binary (`\\0B`, a type, sizes, numbers; also compressed) or
text (`[`, a line per frame, `]`). A line of a list is `KEY FILE:OFFSET` or `KEY FILE`, optionally with rows
`[FIRST:LAST]` (from 0, LAST included); files are relative to the list's folder. A line that is a command (`|`) is
refused.

An archive without a list is scanned by the headers of its matrices, so that planning does not read everything.

Source: Kaldi (matrix/kaldi-matrix.cc, matrix/compressed-matrix.h, util/kaldi-io.cc, by its documentation).
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

import numpy as np

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import DataError, StorageError
from swsdist.io import failures
from swsdist.io.filesystem import identify, is_remote, locate
from swsdist.io.frames.item import MISSING, UNREADABLE, Format, Item, RawFrames, damage_errors, damaged, open_file

_BROKEN = (ValueError, EOFError, struct.error)
#: Bytes per number, by type.
_PLAIN = {b"FM": 4, b"DM": 8}
_COMPRESSED = (b"CM", b"CM2", b"CM3")
_LONGEST_KEY = 4096
#: Bytes read without checking the file's size.
_UNASKED = 1 << 20
_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<offset>\d+))?(?:\[(?P<first>\d+):(?P<last>\d+)\])?")


class _Ark:
    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path = path
        with damage_errors(path):
            self._file = open_file(path, storage)

    def read(self, at: str) -> RawFrames:
        offset, _, rows = at.partition("[")
        self._file.seek(int(offset or 0))
        try:
            frames = _matrix(self._file, self._path)
        except (*_BROKEN, AssertionError, IndexError, TypeError, AttributeError, RuntimeError) as error:
            raise damaged(self._path, error or "it ends") from error
        if not rows:
            return frames
        first, last = map(int, rows.removesuffix("]").split(":"))
        if not first <= last < len(frames):
            raise damaged(self._path, f"{len(frames)} rows, and rows {first} to {last} are asked for")
        return frames[first : last + 1]

    def close(self) -> None:
        self._file.close()


class _Header(NamedTuple):
    """Header of a binary matrix; `least` and `span` are those of the numbers of a compressed matrix."""

    kind: bytes
    rows: int
    columns: int
    least: np.float32
    span: np.float32


def _header(file: BinaryIO, path: str) -> _Header | None:
    """The header of the matrix that begins here; None if it is text."""
    start = file.tell()
    head = file.read(2)
    if not head:
        raise EOFError(f"it ends before byte {start}")
    if head != b"\0B":
        file.seek(start)
        return None
    kind = _token(file)
    if kind not in _PLAIN and kind not in _COMPRESSED:
        raise families.WRONG_KIND.of(DataError)(
            "the archive holds {kind!r}, not a matrix (FM, DM, CM, CM2, CM3)",
            "write matrices, a row a frame, for example with copy-feats",
            where=path,
            kind=kind.decode("ascii", "replace"),
        )
    least, span = struct.unpack("<ff", _exactly(file, 8)) if kind in _COMPRESSED else (0.0, 0.0)
    rows, columns = struct.unpack("<ii", _exactly(file, 8)) if kind in _COMPRESSED else _sizes(file)
    if rows < 0 or columns < 0:
        raise ValueError(f"{rows} rows and {columns} columns")
    return _Header(kind, rows, columns, np.float32(least), np.float32(span))


def _sizes(file: BinaryIO) -> tuple[int, int]:
    """Rows and columns of a plain matrix, each preceded by its size in bytes."""
    rows, columns = struct.unpack("<xixi", _exactly(file, 10))
    return rows, columns


def _matrix(file: BinaryIO, path: str) -> RawFrames:
    """The matrix that begins here."""
    result = _header(file, path)
    if result is None:
        return _text(file)
    kind, rows, columns, least, span = result
    if kind in _COMPRESSED:
        return _unpacked(file, kind, least, span, rows, columns)
    numbers = np.frombuffer(_exactly(file, rows * columns * _PLAIN[kind]), f"<f{_PLAIN[kind]}")
    return numbers.reshape(rows, columns)


def _unpacked(file: BinaryIO, kind: bytes, least: np.float32, span: np.float32, rows: int, columns: int) -> RawFrames:
    """Unpack a compressed matrix after its header: float32 (rows, columns).

    CM2 and CM3 are rows of steps of the span. CM stores columns in sequence, a byte per row: up to 64 between the
    column's minimum and its first quartile, up to 192 to its third, and from there to its maximum.
    """
    if kind != b"CM":
        steps = {b"CM2": "<u2", b"CM3": "u1"}[kind]
        size = np.dtype(steps).itemsize
        numbers = np.frombuffer(_exactly(file, rows * columns * size), steps).astype(np.float32)
        return (least + numbers * (span / np.float32(256**size - 1))).reshape(rows, columns)
    marks = np.frombuffer(_exactly(file, 8 * columns), "<u2").reshape(columns, 4).astype(np.float32)
    p0, p25, p75, p100 = (least + span * (marks / np.float32(65535))).T[:, :, None]
    code = np.frombuffer(_exactly(file, rows * columns), "u1").reshape(columns, rows).astype(np.float32)
    low = p0 + (p25 - p0) * code * np.float32(1 / 64)
    middle = p25 + (p75 - p25) * (code - 64) * np.float32(1 / 128)
    high = p75 + (p100 - p75) * (code - 192) * np.float32(1 / 63)
    result: RawFrames = np.where(code <= 64, low, np.where(code <= 192, middle, high)).T
    return np.ascontiguousarray(result)


def _exactly(file: BinaryIO, size: int) -> bytes:
    if size > _UNASKED:  # reading allocates the memory first
        begin = file.tell()
        left = file.seek(0, io.SEEK_END) - begin
        file.seek(begin)
        if left < size:
            raise EOFError(f"it ends {size - left} bytes too early")
    result = file.read(size)
    if len(result) < size:
        raise EOFError(f"it ends {size - len(result)} bytes too early")
    return result


def _token(file: BinaryIO) -> bytes:
    """Bytes up to a blank."""
    result = b""
    while len(result) < _LONGEST_KEY:
        byte = file.read(1)
        if byte in (b" ", b""):
            return result
        result += byte
    raise ValueError("a name of more than 4096 bytes")


def _text(file: BinaryIO) -> RawFrames:
    """A matrix as text, up to its bracket."""
    rows: list[list[float]] = []
    begun = False
    for line in iter(file.readline, b""):
        if not begun:
            before, bracket, line = line.partition(b"[")
            if before.strip():
                raise ValueError("neither binary nor text begins here")
            begun = bool(bracket)
        inside, bracket, _ = line.partition(b"]")
        if inside.strip():
            rows.append([float(number) for number in inside.split()])
        if bracket:
            if len({len(row) for row in rows}) > 1:
                raise ValueError("its rows are of several lengths")
            return np.array(rows, np.float64)
    raise EOFError("there is no closing bracket")


def _skip(file: BinaryIO, path: str) -> None:
    """Pass over the matrix that begins here, by its header."""
    result = _header(file, path)
    if result is None:
        _text(file)
        return
    kind, numbers = result.kind, result.rows * result.columns
    # CM: four 16-bit percentiles per column, and a byte per number.
    size = _PLAIN[kind] if kind in _PLAIN else {b"CM": 1, b"CM2": 2, b"CM3": 1}[kind]
    file.seek(size * numbers + (8 * result.columns if kind == b"CM" else 0), 1)


def _find(path: str, identity: str, size: int, storage: Mapping[str, object]) -> Iterator[tuple[str, Item]]:
    yield from _listed(path, storage) if path.lower().endswith(".scp") else _scanned(path, identity, size, storage)


def _scanned(path: str, identity: str, size: int, storage: Mapping[str, object]) -> Iterator[tuple[str, Item]]:
    """Items of an archive, from the headers of its matrices."""
    places: list[tuple[str, int]] = []
    with damage_errors(path), open_file(path, storage) as file:
        while True:
            try:
                key = _token(file).decode().lstrip("\n")
                if not key:
                    break
                places.append((key, file.tell()))
                _skip(file, path)
            except _BROKEN as error:
                last = f"at {places[-1][0]!r}: " if places else ""
                raise damaged(path, f"{last}{error or 'it ends'}") from error
        if file.tell() > size:
            raise damaged(path, f"it ends within the frames of {places[-1][0]!r}")
    ends = [*(offset for _, offset in places[1:]), size]
    for (key, offset), end in zip(places, ends, strict=True):
        yield key, Item("kaldi", path, str(offset), f"{identity}@{offset}", end - offset)


def _listed(path: str, storage: Mapping[str, object]) -> Iterator[tuple[str, Item]]:
    """Items of a list."""
    folder, _ = locate(path, storage)
    identities: dict[str, str] = {}
    counts: dict[str, int] = {}
    result: list[tuple[str, str, str]] = []
    with damage_errors(path), open_file(path, storage) as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode().strip()
            except UnicodeDecodeError as error:
                raise codes.NOT_UTF8(where=f"{path}, line {number}", text=error) from error
            if not line:
                continue
            (key, rest), where = [*line.split(None, 1), ""][:2], f"{path}, line {number}"
            if rest.endswith("|") or rest.startswith("|"):
                raise families.COMMAND_REFUSED(
                    "the frames of {key!r} come from a command, which is not run",
                    "run it yourself, and name the archive that it writes (copy-feats ... ark,scp:x.ark,x.scp)",
                    where=where,
                    key=key,
                )
            place = _PLACE.fullmatch(rest)
            if place is None:
                raise codes.MALFORMED_SCP_LINE(where=where)
            name = place["file"]
            file_ = name if name.startswith("/") or is_remote(name) else folder.path(name)
            at = place["offset"] or "0"
            if place["first"] is not None:
                at += f"[{place['first']}:{place['last']}]"
            result.append((key, file_, at))
            counts[file_] = counts.get(file_, 0) + 1
    for file_ in counts:
        try:
            identities[file_] = identify(file_, storage)
        except (StorageError, OSError) as error:
            refused = failures.as_file_fault(error, file_).code in failures.UNREADABLE
            identities[file_] = UNREADABLE if refused else MISSING
    for key, file_, at in result:
        identity = identities[file_]
        size = 0 if identity == MISSING else int(identity.partition(":")[0]) // counts[file_]
        yield key, Item("kaldi", file_, at, identity if identity == MISSING else f"{identity}@{at}", size)


KALDI = Format((".scp", ".ark"), _find, _Ark)
