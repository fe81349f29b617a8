"""A lattice of Kaldi as its file has it, and the lattice that it is.

A CompactLattice has a word and the ids of its frames on each arc. A Lattice has an arc a frame (an id that is not 0) and each
word on the first of its arcs; chains of its arcs become one, as Kaldi's own conversion to CompactLattice does: through states
with one arc in, one arc out without a word, that are neither the start nor final.

States have no times. The time of a state is the number of frames read on the way to it, which is the same on all ways.

**As text**: a line an arc or a final state. The source of the first line is the start.

====================  ====================================  =============================
line                  CompactLattice                        Lattice
====================  ====================================  =============================
final, weight one     `state`                               the same
final                 `state graph,acoustic,ids`            `state graph,acoustic`
arc of weight one     `source target word`                  `source target id word`
arc                   `source target word g,a,ids`          `source target id word g,a`
====================  ====================================  =============================

Ids are joined by `_`; a Lattice's weight may end in a comma, too. Which of the two it is the lines say: a lattice is read as
that of which all are.

**As bytes**: an OpenFst vector FST of type lattice4, lattice8, compactlattice44 or compactlattice84. Header: magic number,
`vector` and the type of arcs, each after its length, version 2, flags (32 bits each), properties, start (-1: no states), number
of states and of arcs (64 bits each; Kaldi writes 0 arcs). Then the states: see `swsdist.kernels.lattices`. Little-endian.

Source: Kaldi's documentation of lattices.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import short
from swsdist.kernels.lattices import SHORT, WRONG, chained, grouped, state_times, walk
from swsdist.lattices.formats.parts import demand_costs, text_of
from swsdist.lattices.formats.stream import Stream
from swsdist.lattices.lattice import Floats, Ints, Lattice

#: Numbers of words for which a table is made.
_SMALL = 1 << 16


class Raw(NamedTuple):
    """A lattice as its file has it; costs and frames are of each arc or, of the finals, of each state.

    Attributes:
        start: state, -1 if there are no states.
        numbers: of the states in the file.
        source, target, word, frames: of each arc.
        graph, acoustic, final_graph, final_acoustic: costs.
        final_frames: read after the state.
        frame_by_frame: it is a Lattice, not a CompactLattice.
    """

    start: int
    numbers: Ints
    source: Ints
    target: Ints
    word: Ints
    frames: Ints
    graph: Floats
    acoustic: Floats
    final_graph: Floats
    final_acoustic: Floats
    final_frames: Ints
    frame_by_frame: bool


def lattice_of(raw: Raw, key: str, words: Mapping[int, str] | None, frame: float, where: str) -> Lattice:
    """The lattice.

    Args:
        raw: as in the file.
        key: of the lattice.
        words: texts of the words; None: their numbers.
        frame: seconds.
        where: place of the lattice.

    Raises:
        DataError: a cost is impossible, a word unknown, or a state has two times.
    """
    demand_costs(where, raw.graph, raw.acoustic, raw.final_graph, raw.final_acoustic)
    times, length = _times(raw, where)
    if raw.frame_by_frame:
        raw, times = _compact(raw, times)
    numbers, label = _labels(raw.word)
    return Lattice(
        key,
        frame,
        times,
        raw.source,
        raw.target,
        label,
        raw.graph,
        raw.acoustic,
        raw.final_graph,
        raw.final_acoustic,
        tuple(text_of(number, words, where) for number in numbers.tolist()),
        raw.start,
        length,
    )


def _labels(words: Ints) -> tuple[Ints, Ints]:
    """The numbers of words that occur, ascending, and 0; and the place of each word among them."""
    greatest = int(words.max(initial=0))
    if greatest > len(words) + _SMALL:
        numbers = np.union1d(words, 0)
        return numbers, np.searchsorted(numbers, words)
    present = np.zeros(greatest + 1, np.bool_)
    present[words] = present[0] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[words]


def _times(raw: Raw, where: str) -> tuple[Ints, int]:
    """Times of the states, and the length of the utterance."""
    states = len(raw.numbers)
    if not states:
        return np.empty(0, np.int64), 0
    times, wrong, second = state_times(raw.start, raw.target, raw.frames, *grouped(raw.source, states))
    if wrong >= 0:
        first = int(times[wrong])
        raise codes.STATE_AT_TWO_TIMES(where=where, state=int(raw.numbers[wrong]), first=first, second=second)
    ends = (times >= 0) & np.isfinite(raw.final_graph)
    length = max(int(times.max()), int((times + raw.final_frames)[ends].max(initial=0)))
    return np.maximum(times, 0), length


def _compact(raw: Raw, times: Ints) -> tuple[Raw, Ints]:
    """A Lattice with chains of arcs made one, and the times of its states."""
    states = len(raw.numbers)
    offsets, items = grouped(raw.source, states)
    inner = (np.bincount(raw.target, minlength=states) == 1) & (np.diff(offsets) == 1)
    inner &= np.isinf(raw.final_graph) | np.isinf(raw.final_acoustic)
    inner[raw.start :][:1] = False
    leaving = np.flatnonzero(inner)
    inner[leaving[raw.word[items[offsets[leaving]]] != 0]] = False
    arcs, target, graph, acoustic = chained(inner, raw.source, raw.target, raw.graph, raw.acoustic, offsets, items)
    number = np.cumsum(~inner) - 1
    kept = ~inner
    compact = raw._replace(
        start=int(number[raw.start]) if states else -1,
        numbers=raw.numbers[kept],
        source=number[raw.source[arcs]],
        target=number[target],
        word=raw.word[arcs],
        graph=graph,
        acoustic=acoustic,
        final_graph=raw.final_graph[kept],
        final_acoustic=raw.final_acoustic[kept],
    )
    return compact, times[kept]


_STATE, _BLANK = rb"([0-9]{1,9})", rb"[ \t]+"
_COST = rb"(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|-?Infinity|-?inf|-?nan|BadNumber)"
_IDS = rb"((?:[0-9]{1,9}(?:_[0-9]{1,9})*)?)"


def _line(labels: int, weight: bytes) -> re.Pattern[bytes]:
    arc = _BLANK.join([_STATE] * (1 + labels))
    return re.compile(
        rb"^[ \t]*" + _STATE + rb"(?:" + _BLANK + arc + rb")?(?:" + _BLANK + weight + rb")?[ \t\r]*$", re.M
    )


_COMPACT = _line(1, _COST + rb"," + _COST + rb"," + _IDS)
_LATTICE = _line(2, _COST + rb"," + _COST + rb",?")


_BEGINNING = re.compile(
    rb"[ \t]*[0-9]{1,9}(?:[ \t]+[0-9]{1,9}){0,3}(?:[ \t]+" + _COST + rb"," + _COST + rb"[,0-9_]*)?[ \t\r]*"
)


def looks_like_line(text: bytes) -> bool:
    """Whether a text, perhaps cut off, is a line of a lattice."""
    return bool(_BEGINNING.fullmatch(text))


def of_text(block: bytes, name: str, first: int) -> Raw:
    """The lattice of some lines.

    Args:
        block: lines, each with its end.
        name: of the file.
        first: number of the first line.

    Raises:
        DataError: a line is malformed, or a cost no number.
    """
    lines = block.count(b"\n")
    for pattern in (_COMPACT, _LATTICE):
        rows = pattern.findall(block)
        if len(rows) == lines:
            return _raw(rows, pattern is _LATTICE, name, first)
    each = block.splitlines()
    reach = [next(k for k, line in enumerate(each) if not pattern.match(line)) for pattern in (_COMPACT, _LATTICE)]
    raise codes.MALFORMED_LATTICE_LINE(
        where=f"{name}, line {first + max(reach)}", text=short(repr(each[max(reach)])[1:])
    )


def _raw(rows: list[tuple[bytes, ...]], frame_by_frame: bool, name: str, first: int) -> Raw:
    if not rows:
        ints, floats = np.empty(0, np.int64), np.empty(0)
        return Raw(-1, ints, ints, ints, ints, ints, floats, floats, floats, floats, ints, frame_by_frame)
    columns = list(zip(*rows, strict=True))
    source, target = _integers(columns[0]), _integers(columns[1])
    if frame_by_frame:
        ids, words, graph, acoustic = columns[2:]
        frames = (_integers(ids) > 0).astype(np.int64)
    else:
        words, graph, acoustic, ids = columns[2:]
        frames = np.array([text.count(b"_") + 1 if text else 0 for text in ids], np.int64)
    costs = [_costs(column, name, first) for column in (graph, acoustic)]
    final = target < 0
    arcs = ~final
    numbers = np.unique(np.concatenate([source, target[arcs]]))
    source = np.searchsorted(numbers, source)
    ends, repeated = np.unique(source[final], return_index=True)
    if len(ends) < np.count_nonzero(final):
        again = np.setdiff1d(np.arange(np.count_nonzero(final)), repeated)[0]
        line = np.flatnonzero(final)[again]
        raise codes.DAMAGED_LATTICE(
            where=f"{name}, line {first + line}", fault=f"a second line ends state {numbers[source[line]]}"
        )
    final_costs = [np.full(len(numbers), np.inf) for _ in costs]
    final_frames = np.zeros(len(numbers), np.int64)
    for ending, column in zip(final_costs, costs, strict=True):
        ending[source[final]] = column[final]
    final_frames[source[final]] = frames[final]
    return Raw(
        int(source[0]),
        numbers,
        source[arcs],
        np.searchsorted(numbers, target[arcs]),
        _integers(words)[arcs],
        frames[arcs],
        costs[0][arcs],
        costs[1][arcs],
        final_costs[0],
        final_costs[1],
        final_frames,
        frame_by_frame,
    )


def _integers(column: tuple[bytes, ...]) -> Ints:
    """Numbers; -1 where there is none."""
    return np.array([int(text) if text else -1 for text in column], np.int64)


def _costs(column: tuple[bytes, ...], name: str, first: int) -> Floats:
    """Costs; 0 where there is none."""
    try:
        return np.array([float(text) if text else 0.0 for text in column])
    except ValueError:
        line = column.index(b"BadNumber")
        raise codes.IMPOSSIBLE_COST(where=f"{name}, line {first + line}", value="BadNumber") from None


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


def of_bytes(stream: Stream, name: str) -> Raw:
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


def _header(stream: Stream, where: str) -> tuple[int, bool, int, int]:
    """Bytes of a float, whether weights have ids, start and number of states."""
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
    return *_TYPES[arcs], start, states


def _type(stream: Stream, where: str) -> bytes:
    (length,) = struct.unpack("<i", stream.take(4, where))
    if not 0 <= length <= _LONGEST_TYPE:
        raise codes.DAMAGED_LATTICE(where=where, fault=f"a name of {length} bytes")
    return stream.take(length, where)
