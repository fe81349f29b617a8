"""Kaldi's lattices: archives of Lattice and CompactLattice, binary or text, plain or packed; and lists of places.

An archive is a key, a blank, and a lattice, repeated; each lattice is binary or text by itself. A line of a list
(`.scp`) is `KEY FILE:OFFSET` or `KEY FILE`; files are relative to its folder.

Times are in frames of the lattice, `Origin.frame` seconds each; of a lattice with subsampled frames that is the longer
step. States have no times in the file. The time of a state is the number of frames read on the way to it, which is the
same on all ways.

A CompactLattice has a word and the ids of its frames on each arc. A Lattice has an arc a frame (an id that is not 0)
and each word on the first of its arcs; chains of its arcs become one, as in Kaldi's own conversion to CompactLattice:
through states with one arc in, one arc out without a word, that are neither the start nor final.

**As text**: a line an arc or a final state. The source of the first line is the start.

====================  ====================================  =============================
line                  CompactLattice                        Lattice
====================  ====================================  =============================
final, weight one     `state`                               the same
final                 `state graph,acoustic,ids`            `state graph,acoustic`
arc of weight one     `source target word`                  `source target id word`
arc                   `source target word g,a,ids`          `source target id word g,a`
====================  ====================================  =============================

Ids are joined by `_`; a Lattice's weight may end in a comma, too. A lattice is read as the type that all of its lines
have.

**As bytes**: an OpenFst vector FST of type lattice4, lattice8, compactlattice44 or compactlattice84. Header: magic
number, `vector` and the type of arcs, each after its length, version 2, flags (32 bits each), properties, start (-1: no
states), number of states and of arcs (64 bits each; Kaldi writes 0 arcs). Then the states: see
`swsdist.kernels.lattices`. Little-endian.

Source: Kaldi's documentation of lattices and of its tables.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Mapping
from itertools import groupby
from typing import BinaryIO, NamedTuple

import numpy as np

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError, SwsdistError
from swsdist.io.compressed import lines, opened, short
from swsdist.io.filesystem import is_remote, locate
from swsdist.kernels.lattices import SHORT, WRONG, chained, grouped, state_times, walk
from swsdist.lattices.lattice import Broken, Lattice, Lattices, Origin, demand_costs, text_of

#: Bytes of a block of an archive.
BLOCK = 1 << 22


class Stream:
    """The bytes of a file from where it stands.

    Attributes:
        data: bytes in memory.
        at: place of the next among them.
    """

    def __init__(self, file: BinaryIO, block: int = BLOCK) -> None:
        self._file = file
        self._block = block
        self._before = 0
        self.data = bytearray()
        self.at = 0

    @property
    def place(self) -> int:
        """Bytes before the next, from where the stream began."""
        return self._before + self.at

    def more(self) -> bool:
        """Read on, at least as much as is kept; what is before `at` is forgotten.

        Returns:
            Whether there was more.
        """
        block = self._file.read(max(self._block, len(self.data) - self.at))
        self._before += self.at
        self.data = self.data[self.at :] + block  # a new object: arrays may look at the old
        self.at = 0
        return bool(block)

    def has(self, count: int) -> bool:
        """Whether that many bytes follow; they are then in memory."""
        while len(self.data) - self.at < count:
            if not self.more():
                return False
        return True

    def take(self, count: int, where: str) -> bytes:
        """The next bytes.

        Raises:
            DataError: there are fewer.
        """
        if not self.has(count):
            raise codes.LATTICE_CUT_OFF(where=where)
        self.at += count
        return bytes(self.data[self.at - count : self.at])


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
        raise families.DAMAGED_LATTICE(
            "paths reach state {state} at frames {first} and {second}",
            "paths to a state must have as many frames; write the lattice again without removing ids",
            where=where,
            state=int(raw.numbers[wrong]),
            first=first,
            second=second,
        )
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
    raise families.DAMAGED_LATTICE(
        "this is no line of a lattice: {text}",
        (
            "a line is an arc (source, target, word, graph,acoustic,ids; or source, target, id, "
            "word, graph,acoustic) or a final state (state, graph,acoustic), and an empty line ends "
            "the lattice"
        ),
        where=f"{name}, line {first + max(reach)}",
        text=short(repr(each[max(reach)])[1:]),
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


_LIST = ".scp"
_BINARY_HEAD = re.compile(rb"(?:\s*\S+ )?" + re.escape(MAGIC))
_TEXT_HEAD = re.compile(rb"\s*\S+([ \t]*)\r?\n([^\n]*)")
_KEY = re.compile(rb"\s*(\S{1,4096})(?=\s)")
_LONGEST_KEY = 4096
_END_OF_LATTICE = re.compile(rb"\n[ \t\r]*\n")
#: Bytes of a block at a place of a list.
_LISTED_BLOCK = 1 << 16


class _Place(NamedTuple):
    key: str
    path: str
    offset: int


def detect(name: str, head: bytes) -> bool:
    """Whether it is an archive of lattices, or a list of places in one."""
    if name.lower().endswith(_LIST) or _BINARY_HEAD.match(head):
        return True
    match = _TEXT_HEAD.match(head)
    if match is None:
        return False
    if match[1] and not match[2].strip():  # an empty lattice: Kaldi writes the key, a blank, and an empty line
        return True
    return looks_like_line(match[2])


def read(origin: Origin) -> Lattices:
    """The lattices of an archive or of a list, or the lattice at `FILE:OFFSET`, whose key that is.

    Raises:
        UserError: there is no such file.
    """
    path, offset = _split(origin.path)
    if offset is not None:
        return _placed([_Place(origin.path, path, offset)], origin)
    return _listed(origin) if path.lower().endswith(_LIST) else _archived(origin)


def _split(text: str) -> tuple[str, int | None]:
    """File and offset."""
    file, colon, offset = text.rpartition(":")
    return (file, int(offset)) if colon and offset.isdecimal() and offset.isascii() else (text, None)


def _archived(origin: Origin) -> Lattices:
    try:
        with opened(origin.path, origin.storage) as file:
            yield from _Reader(Stream(file), origin.path, origin).objects()
    except DataError as error:  # packed and damaged
        yield Broken(origin.path, error)


def _listed(origin: Origin) -> Lattices:
    places: list[_Place] = []
    folder, _ = locate(origin.path, origin.storage)
    for number, line in lines(origin.path, origin.storage):
        if not line.strip():
            continue
        where = f"{origin.path}, line {number}"
        key, _, rest = line.strip().replace("\t", " ").partition(" ")
        rest = rest.strip()
        if not rest:
            yield Broken(key, io_codes.MALFORMED_SCP_LINE(where=where))
        elif rest.startswith("|") or rest.endswith("|"):
            yield Broken(
                key,
                families.COMMAND_REFUSED(
                    "the lattice comes from a command, which is not run",
                    "run it yourself, and name the archive that it writes (lattice-copy ... ark,scp:x.ark,x.scp)",
                    where=where,
                ),
            )
        else:
            file, offset = _split(rest)
            path = file if file.startswith("/") or is_remote(file) else folder.path(file)
            places.append(_Place(key, path, offset or 0))
    yield from _placed(places, origin)


def _placed(places: list[_Place], origin: Origin) -> Lattices:
    """The lattices at some places; a file is opened once for places that follow each other."""
    for path, group in groupby(places, lambda place: place.path):
        left = deque(group)
        try:
            with opened(path, origin.storage) as file:
                while left:
                    key, _, offset = left[0]
                    file.seek(offset)
                    result = _Reader(Stream(file, _LISTED_BLOCK), f"{path}:{offset}", origin).object(key)
                    left.popleft()
                    yield result
        except SwsdistError as error:
            for place in left:
                yield Broken(place.key, error)


class _Reader:
    """Reads objects one after the other.

    Args:
        stream: at a key, or at an object.
        name: of the file, for messages.
        origin: what else is known.
    """

    def __init__(self, stream: Stream, name: str, origin: Origin) -> None:
        self._stream = stream
        self._name = name
        self._origin = origin
        self._line = 1
        self._lost = False

    def objects(self) -> Lattices:
        """Keys and lattices up to the end, or until it is not known where the next begins."""
        while not self._lost:
            try:
                key = self._key()
            except DataError as error:
                yield Broken(self._name, error)
                return
            if key is None:
                return
            yield self.object(key)

    def object(self, key: str) -> Lattice | Broken:
        """The lattice that begins here."""
        try:
            raw, where = self._raw()
            return lattice_of(raw, key, self._origin.words, self._origin.frame, where)
        except DataError as error:
            return Broken(key, error)

    def _key(self) -> str | None:
        """The next key; None: the file ends."""
        stream = self._stream
        match = _KEY.match(stream.data, stream.at)
        while match is None and len(stream.data) - stream.at <= _LONGEST_KEY and stream.more():
            match = _KEY.match(stream.data, stream.at)
        where = f"{self._name}, byte {stream.place}"
        if match is None:
            if not stream.data[stream.at :].strip() and not stream.more():
                return None
            raise codes.NO_LATTICE_HERE(where=where, fault="a key and a blank are missing")
        try:
            key = match[1].decode()
        except UnicodeDecodeError:
            raise codes.NO_LATTICE_HERE(where=where, fault="the key is not UTF-8") from None
        self._line += match[0].count(b"\n")
        stream.at = match.end()
        return key

    def _raw(self) -> tuple[Raw, str]:
        """The object that begins here, after blanks, and its place."""
        stream = self._stream
        self._lost = True
        while stream.has(1) and stream.data[stream.at] in b" \t\r":
            stream.at += 1
        where = f"{self._name}, byte {stream.place}"
        if not stream.has(1):
            raise codes.LATTICE_CUT_OFF(where=where)
        if stream.data[stream.at] == MAGIC[0]:
            raw = of_bytes(stream, self._name)
            self._lost = False
            return raw, where
        if stream.data[stream.at] != ord("\n"):
            raise codes.NO_LATTICE_HERE(where=where, fault="neither an FST nor a line end follows the key")
        where = f"{self._name}, line {self._line}"
        while (end := _END_OF_LATTICE.search(stream.data, stream.at)) is None:
            if not stream.more():
                raise codes.LATTICE_CUT_OFF(where=where)
        block = bytes(stream.data[stream.at + 1 : end.start() + 1])
        first = self._line + 1
        self._line = first + block.count(b"\n") + 1
        stream.at = end.end()
        self._lost = False
        return of_text(block, self._name, first), where
