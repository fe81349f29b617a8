"""The tracks of a store that a search reads documents from."""

from __future__ import annotations

from swsdist.config.search import Search
from swsdist.store.reading import Store, Tracks


def tracks_read(store: Store, search: Search) -> Tracks:
    """Those that streams and `drop` name, in the store's order; all with a first pass, or if one is absent or not named."""
    names = dict.fromkeys(stream.track for stream in search.streams)
    if names and search.drop is not None and search.drop.track is not None:
        names[search.drop.track] = None
    stored = [track.name for track in store.manifest.tracks]
    every = not names or not names.keys() <= set(stored) or search.first_pass.name != "none"
    return Tracks(store, None if every else [name for name in stored if name in names])
