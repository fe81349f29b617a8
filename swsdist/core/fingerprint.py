"""Names derived from content: fingerprints of work, and slots of partition keys.

A fingerprint names a piece of work, and so its outputs: the hash of everything that the outputs depend on. Equal
fingerprints mean equal bytes, so existing files need not be made again.

A table's partition key (a query, a document, a class) hashes to one of 4096 fixed slots. A bucket is a range of slots:
bucket k of B holds the slots with ``slot * B // 4096 == k``. So tables of runs with different numbers of buckets match
by slot, and a file sorted by slot can be read for any number of buckets.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def fingerprint(*parts: object) -> str:
    """32 hexadecimal digits of the SHA-256 of some JSON values; independent of the order of a mapping's keys."""
    return hashlib.sha256(_text(parts).encode()).hexdigest()[:32]


class Naming:
    """Fingerprints with common first parts: `Naming(a, b)(c)` is `fingerprint(a, b, c)`, and `a` and `b` are hashed
    once.

    Args:
        parts: at least one JSON value.
    """

    def __init__(self, *parts: object) -> None:
        self._begun = hashlib.sha256(_text(parts)[:-1].encode())

    def listing(self, pieces: Iterable[list[Any]]) -> Naming:
        """Append a part, a list of JSON values that is given in pieces."""
        more = self._copy()
        more._begun.update(b",")
        more._list(pieces)
        return more

    def listings(self, several: Iterable[Iterable[list[Any]]]) -> Naming:
        """Append a part, a list of lists given in pieces."""
        more, separator = self._copy(), b",["
        for pieces in several:
            more._begun.update(separator)
            more._list(pieces)
            separator = b","
        more._begun.update(b"]" if separator == b"," else b",[]")
        return more

    def _copy(self) -> Naming:
        more = copy(self)
        more._begun = self._begun.copy()
        return more

    def _list(self, pieces: Iterable[list[Any]]) -> None:
        separator = "["
        for piece in pieces:
            if piece:
                self._begun.update(f"{separator}{_text(tuple(piece))[1:-1]}".encode())
                separator = ","
        self._begun.update(b"]" if separator == "," else b"[]")

    def __call__(self, *parts: object) -> str:
        """The fingerprint with further parts."""
        begun = self._begun.copy()
        begun.update(f",{_text(parts)[1:]}".encode() if parts else b"]")
        return begun.hexdigest()[:32]


def _text(parts: tuple[object, ...]) -> str:
    return json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def stable_hash(text: str) -> int:
    """A 64-bit hash that is equal on every machine and in every process (blake2b)."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


#: Slots of any partition key; also the largest number of buckets.
SLOTS = 4096
ALL_SLOTS = range(SLOTS)


def slot_of(key: str) -> int:
    """The slot of a key, 0 to 4095: a stable hash (blake2b), the same on every machine."""
    return stable_hash(key) % SLOTS


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a key, 0 to `buckets` - 1."""
    return slot_of(key) * buckets // SLOTS


def slots_of(bucket: int, buckets: int) -> range:
    """The slots of a bucket.

    Args:
        bucket: 0 to `buckets` - 1.
        buckets: 1 to `SLOTS`.
    """
    return range(-(-bucket * SLOTS // buckets), -(-(bucket + 1) * SLOTS // buckets))


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def fields(value: DataclassInstance) -> dict[str, object]:
    """The fields of a dataclass by name, converted by `plain`."""
    return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def plain(value: object) -> object:
    """The value in JSON's types; non-finite numbers become None."""
    if hasattr(value, "tolist"):  # an array, or a number of numpy
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def unique(pairs: Iterable[tuple[K, V]], twice: Callable[[K], Exception] | None = None) -> dict[K, V]:
    """A dictionary of rows, or fields, that have a key of their own each.

    Args:
        pairs: keys and values.
        twice: makes the error of a key that is there already; by default a ValueError.

    Raises:
        Exception: a key is there already.
    """
    pairs = list(pairs)
    result = dict(pairs)
    if len(result) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"{key!r} is there twice") if twice is None else twice(key)
    return result


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text from outside.

    Raises:
        ValueError: it is no JSON, nested too deeply, an object has a key twice, or a text half of a surrogate pair.
    """
    try:
        value = json.loads(text, object_pairs_hook=unique)
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
