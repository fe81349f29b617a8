"""Readers of a store: each run that reads a store leaves a small file in it, so that no file in use is removed.

A run, or a long reading command, writes `readers/<token>.json` to the store when it begins to read, updates it every few
seconds, and removes it at its end. A dead reader is ignored once its process is known to be gone (same host), or its file has
not changed for a while, whatever clocks show. In a store that is not writable, readers are unknown; superseded files are then
kept for an hour.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from swsdist.core.errors import SwsdistError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.lock import Lock, beating, lives, process
from swsdist.store.manifest import require
from swsdist.store.reading import Store

FOLDER = "readers"


class Reader:
    """A reader of a store, until `release`."""

    def __init__(self, store: Folder) -> None:
        self._store = store
        self._name = f"{FOLDER}/{uuid.uuid4().hex}.json"
        self._identity = Lock(store).identity()
        self.beat()

    def beat(self) -> None:
        """Write a heartbeat."""
        text = json.dumps({**self._identity, "t": time.time()}).encode()
        for _ in range(2):  # the last other reader may remove the folder meanwhile
            with suppress(SwsdistError, OSError):  # a read-only store has no list
                self._store.write_bytes(self._name, text)
                return

    def release(self) -> None:
        """Stop reading."""
        with suppress(SwsdistError, OSError):
            self._store.remove(self._name)
            place = self._store.local(FOLDER)
            if place is not None:
                place.rmdir()  # after the last reader


@contextmanager
def reading(store: Store) -> Iterator[Store]:
    """Mark a store as in use while it is read."""
    reader = Reader(store.folder)
    try:
        with beating(reader.beat):
            yield Store(store.folder, require(store.folder))
    finally:
        reader.release()


class Readers(NamedTuple):
    """Other readers of a store: `host` and `pid` of live ones, and the files of dead ones."""

    living: list[dict[str, Any]]
    dead: list[str]


def readers_of(store: Folder) -> Readers:
    """Find the other readers of a store; those of other hosts that seem dead are watched in parallel."""
    this_process = process(Lock(store).identity())
    names = sorted(store.listing(FOLDER))
    with ThreadPoolExecutor(min(32, max(1, len(names)))) as pool:
        seen = dict(zip(names, pool.map(lambda name: _read_file(store, name), names), strict=True))
    living = [reader for reader in seen.values() if reader and process(reader) != this_process]
    return Readers(living, [name for name, reader in seen.items() if reader is None])


def _read_file(store: Folder, name: str) -> dict[str, Any] | None:
    """A live reader by its file; empty if the file is gone; None if the reader is dead or ended meanwhile."""
    try:
        reader: dict[str, Any] = json.loads(store.read_bytes(name))
        return reader if lives(store, reader, name) else None
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        return None
