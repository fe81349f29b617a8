"""Kaldi's lattices: archives of Lattice and CompactLattice, binary or text, plain or packed; and lists of places in them.

An archive is a key, a blank, and a lattice, again and again; each lattice is binary or text by itself. A line of a list
(`.scp`) is `KEY FILE:OFFSET` or `KEY FILE`; files are relative to its folder.

Times are in frames of the lattice, `Origin.frame` seconds each; of a lattice with subsampled frames that is the longer step.

Source: Kaldi's documentation of lattices and of its tables.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import groupby
from typing import NamedTuple

from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError, SwsdistError
from swsdist.io.compressed import lines, opened
from swsdist.io.filesystem import is_remote, locate
from swsdist.lattices.formats.kaldi_object import MAGIC, Raw, lattice_of, looks_like_line, of_bytes, of_text
from swsdist.lattices.formats.stream import Stream
from swsdist.lattices.lattice import Broken, Lattice, Lattices, Origin

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
            yield Broken(key, codes.LATTICE_FROM_COMMAND(where=where))
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
