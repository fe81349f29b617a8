"""Who reads a store: a small file in it for each run that works, so that nothing which is read is removed.

A run writes `readers/<token>.json` to a store when it begins to read it, says every few seconds that it lives, and removes the
file at its end. A reader that died counts no more once it is known to be gone (same host), or has given no sign of life for a
while, whatever clocks say. Where nothing can
be written, readers are not known; what was superseded less than an hour ago is then kept by its age alone.
"""

from __future__ import annotations

import json
import time
import uuid
from contextlib import suppress
from typing import Any

from swsdist.errors import StorageError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.lock import Lock, lives, process

FOLDER = "readers"


class Reader:
    """A run that reads a store, from now on until `release`."""

    def __init__(self, store: Folder) -> None:
        self._store = store
        self._name = f"{FOLDER}/{uuid.uuid4().hex}.json"
        self._mine = Lock(store).identity()
        self.beat()

    def beat(self) -> None:
        """Say that the reader lives."""
        with suppress(StorageError, OSError):  # a store that is for reading only keeps no list
            self._store.write_bytes(self._name, json.dumps({**self._mine, "t": time.time()}).encode())

    def release(self) -> None:
        """It reads no more."""
        with suppress(StorageError, OSError):
            self._store.remove(self._name)
            place = self._store.local(FOLDER)
            if place is not None:
                place.rmdir()  # if it was the last


def living(store: Folder) -> list[dict[str, Any]]:
    """Who reads a store: `host` and `pid` of each; this process does not count."""
    me = process(Lock(store).identity())
    return [reader for reader, lives_ in _look(store).values() if lives_ and reader and process(reader) != me]


def dead(store: Folder) -> list[str]:
    """Files of readers that are gone."""
    return [name for name, (_, lives_) in _look(store).items() if not lives_]


def _look(store: Folder) -> dict[str, tuple[dict[str, Any], bool]]:
    """By the name of each file its reader (nothing where it is damaged), and whether that lives."""
    found: dict[str, tuple[dict[str, Any], bool]] = {}
    for name in store.listing(FOLDER):
        try:
            reader = json.loads(store.read_bytes(name))
            found[name] = reader, lives(store, reader, name)
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError):
            found[name] = {}, False
    return found
