"""Values computed from the shards of a store, kept in memory for later searches."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Memory:
    """Values that are dear to make, of at most so many bytes together.

    What does not fit is not held, and nothing that is held goes for it: a search meets all shards in turn, so what was used
    longest ago is what is wanted next.

    Args:
        most: bytes.
    """

    def __init__(self, most: int) -> None:
        self._held: dict[Hashable, Any] = {}
        #: Bytes that are free.
        self.room = most

    def get(self, key: Hashable) -> Any | None:
        """What is held, or None."""
        return self._held.get(key)

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Hold a value of so many bytes, if there is room for it."""
        if size <= self.room and key not in self._held:
            self._held[key] = value
            self.room -= size
