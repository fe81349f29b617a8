"""Names that follow from content.

A fingerprint names a piece of work, and so its outputs: the hash of all that the outputs depend on. Equal fingerprints mean
equal bytes, so a file that is there already need not be made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from copy import copy


def fingerprint(*parts: object) -> str:
    """32 hexadecimal digits of the SHA-256 of some JSON values; the order of a mapping's keys does not matter."""
    return hashlib.sha256(_text(parts).encode()).hexdigest()[:32]


class Naming:
    """Fingerprints of parts that begin alike: `Naming(a, b)(c)` is `fingerprint(a, b, c)`, and `a` and `b` are read once.

    Args:
        parts: at least one JSON value.
    """

    def __init__(self, *parts: object) -> None:
        self._begun = hashlib.sha256(_text(parts)[:-1].encode())

    def listing(self, pieces: Iterable[list[str]]) -> Naming:
        """The same with one more part, a list of strings that comes in pieces."""
        more = copy(self)
        more._begun = self._begun.copy()
        separator = ",["
        for piece in pieces:
            if piece:
                more._begun.update(f"{separator}{_text(tuple(piece))[1:-1]}".encode())
                separator = ","
        more._begun.update(b"]" if separator == "," else b",[]")
        return more

    def __call__(self, *parts: object) -> str:
        """The fingerprint, with some more parts."""
        begun = self._begun.copy()
        begun.update(f",{_text(parts)[1:]}".encode() if parts else b"]")
        return begun.hexdigest()[:32]


def _text(parts: tuple[object, ...]) -> str:
    return json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def stable_hash(text: str) -> int:
    """A 64-bit number that is the same on every machine and in every process (blake2b)."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
