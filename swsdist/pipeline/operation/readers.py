"""Who reads a store: a small file in it for each run that works, so that nothing which is read is removed.

A run, or a command that reads for long, writes `readers/<token>.json` to a store when it begins to read it, says every few
seconds that it lives, and removes the file at its end. A reader that died counts no more once it is known to be gone (same
host), or has given no sign of life for a while, whatever clocks say. Where nothing can be written, readers are not known; what
was superseded less than an hour ago is then kept by its age alone.
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
    """A run that reads a store, from now on until `release`."""

    def __init__(self, store: Folder) -> None:
        self._store = store
        self._name = f"{FOLDER}/{uuid.uuid4().hex}.json"
        self._mine = Lock(store).identity()
        self.beat()

    def beat(self) -> None:
        """Say that the reader lives."""
        text = json.dumps({**self._mine, "t": time.time()}).encode()
        for _ in range(2):  # another reader, who was the last, may remove the folder in between
            with suppress(SwsdistError, OSError):  # a store that is for reading only keeps no list
                self._store.write_bytes(self._name, text)
                return

    def release(self) -> None:
        """It reads no more."""
        with suppress(SwsdistError, OSError):
            self._store.remove(self._name)
            place = self._store.local(FOLDER)
            if place is not None:
                place.rmdir()  # if it was the last


@contextmanager
def reading(store: Store) -> Iterator[Store]:
    """Meanwhile this process reads a store: as it stands now that everybody knows."""
    reader = Reader(store.folder)
    try:
        with beating(reader.beat):
            yield Store(store.folder, require(store.folder))
    finally:
        reader.release()


class Readers(NamedTuple):
    """Who reads a store, this process apart: `host` and `pid` of each that lives; and the files of those that are gone."""

    living: list[dict[str, Any]]
    dead: list[str]


def readers_of(store: Folder) -> Readers:
    """Who reads a store; those of other hosts that seem dead are watched, all at once."""
    me = process(Lock(store).identity())
    names = sorted(store.listing(FOLDER))
    with ThreadPoolExecutor(min(32, max(1, len(names)))) as pool:
        seen = dict(zip(names, pool.map(lambda name: _look(store, name), names), strict=True))
    living = [reader for reader in seen.values() if reader and process(reader) != me]
    return Readers(living, [name for name, reader in seen.items() if reader is None])


def _look(store: Folder, name: str) -> dict[str, Any] | None:
    """A living reader by its file; nothing of it if that is gone, None if it is dead, or ended while it was watched."""
    try:
        reader: dict[str, Any] = json.loads(store.read_bytes(name))
        return reader if lives(store, reader, name) else None
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        return None
