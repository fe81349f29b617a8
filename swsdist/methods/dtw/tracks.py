"""The tracks of a store that a search reads documents from."""

from __future__ import annotations

from swsdist.config.search import Search
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks


def tracks_read(store: Store, search: Search) -> Tracks:
    """Those that the streams and `drop` name; all if a stream names none, if one is not there, or if a first pass has files
    of all.
    """
    names = dict.fromkeys(stream.track for stream in search.streams)
    if names and search.drop is not None:
        names[search.drop.track] = None
    there = {track.name for track in store.manifest.tracks}
    every = not names or not names.keys() <= there or search.first_pass.name != "none"
    return Tracks(store, None if every else [name for name in names if name is not None])
