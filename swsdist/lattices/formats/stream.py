"""A file read in blocks, of which those that are needed stay in memory."""

from __future__ import annotations

from typing import BinaryIO

from swsdist.core.codes import lattices as codes

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
