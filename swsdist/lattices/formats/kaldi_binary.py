"""A lattice of Kaldi in binary: an OpenFst vector FST of type lattice4, lattice8, compactlattice44 or compactlattice84.

Header: magic number, `vector` and the type of arcs, each after its length, version 2, flags (32 bits each), properties, start
(-1: no states), number of states and of arcs (64 bits each; Kaldi writes 0 arcs). Then the states: see
`swsdist.kernels.lattice_bytes`. Little-endian.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from swsdist.core.codes import lattices as codes
from swsdist.kernels.lattice_bytes import SHORT, WRONG, walk
from swsdist.lattices.formats.kaldi_object import Raw
from swsdist.lattices.formats.stream import Stream
from swsdist.lattices.lattice import Floats

#: With which a binary FST begins.
MAGIC = b"\xd6\xfd\xb2\x7e"

#: Bytes of a float, and whether weights have ids.
_TYPES = {
    b"lattice4": (4, False),
    b"lattice8": (8, False),
    b"compactlattice44": (4, True),
    b"compactlattice84": (8, True),
}
_LONGEST_TYPE = 64


class _Header(NamedTuple):
    size: int
    ids: bool
    start: int
    states: int


def parse(stream: Stream, name: str) -> Raw:
    """The lattice that begins here; the stream is then after it.

    Raises:
        DataError: it is none, damaged, or cut off.
    """
    where = f"{name}, byte {stream.place}"
    size, ids, start, states = _header(stream, where)
    none, bits = np.empty((4, 0), np.int64), np.empty((2, 0), np.uint64)
    while True:
        data = np.frombuffer(stream.data, np.uint8)
        end, count = walk(data, stream.at, states, size, ids, False, none, bits, none[0], bits)
        if end == WRONG:
            place = stream.place + count - stream.at
            raise codes.DAMAGED_LATTICE(where=f"{name}, byte {place}", fault="a number is out of range")
        if end != SHORT:
            break
        if not stream.more():
            raise codes.LATTICE_CUT_OFF(where=where)
    arcs, weights = np.empty((4, count), np.int64), np.empty((2, count), np.uint64)
    final_frames, final_weights = np.empty(states, np.int64), np.empty((2, states), np.uint64)
    walk(data, stream.at, states, size, ids, True, arcs, weights, final_frames, final_weights)
    stream.at = end
    source, target, word, frames = arcs
    graph, acoustic = _floats(weights, size)
    final_graph, final_acoustic = _floats(final_weights, size)
    return Raw(
        start,
        np.arange(states),
        source,
        target,
        word,
        frames,
        graph,
        acoustic,
        final_graph,
        final_acoustic,
        final_frames,
        not ids,
    )


def _floats(bits: np.ndarray[tuple[int, ...], np.dtype[np.uint64]], size: int) -> tuple[Floats, Floats]:
    with np.errstate(invalid="ignore"):  # not a number, which is refused later
        floats = (bits.astype(np.uint32).view(np.float32) if size == 4 else bits.view(np.float64)).astype(np.float64)
    return floats[0], floats[1]


def _header(stream: Stream, where: str) -> _Header:
    (magic,) = struct.unpack("4s", stream.take(4, where))
    if magic != MAGIC:
        raise codes.NO_LATTICE_HERE(where=where, fault="the bytes are not those of an FST")
    kind, arcs = _type(stream, where), _type(stream, where)
    version, flags, _, start, states, _ = struct.unpack("<iiQqqq", stream.take(40, where))
    if kind != b"vector" or arcs not in _TYPES:
        text = b" ".join((kind, arcs)).decode("ascii", "backslashreplace")
        raise codes.NO_LATTICE_HERE(where=where, fault=f"the FST is of type {text}")
    if version != 2 or flags & 3:
        raise codes.NO_LATTICE_HERE(where=where, fault=f"version {version} and flags {flags} instead of 2 and 0")
    if states < 0 or not (0 <= start < states or (states == 0 and start == -1)):
        raise codes.DAMAGED_LATTICE(where=where, fault=f"start {start} of {states} states")
    return _Header(*_TYPES[arcs], start, states)


def _type(stream: Stream, where: str) -> bytes:
    (length,) = struct.unpack("<i", stream.take(4, where))
    if not 0 <= length <= _LONGEST_TYPE:
        raise codes.DAMAGED_LATTICE(where=where, fault=f"a name of {length} bytes")
    return stream.take(length, where)
