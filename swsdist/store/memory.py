"""Values computed from the shards of a store, kept in memory for later searches."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Memory:
    """Holds values that are expensive to compute, up to a total size.

    Values that do not fit are not held, and held values are never evicted: searches cycle through all shards, so the
    least recently used value is the next one needed.

    Args:
        most: bytes.
    """

    def __init__(self, most: int) -> None:
        self._held: dict[Hashable, Any] = {}
        #: Free bytes.
        self.room = most

    def get(self, key: Hashable) -> Any | None:
        """The held value, or None."""
        return self._held.get(key)

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Hold a value of `size` bytes if it fits."""
        if size <= self.room and key not in self._held:
            self._held[key] = value
            self.room -= size
