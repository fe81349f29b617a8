"""Interface of search methods, which find candidates of a group of queries in a store.

::

    units = method.plan(store)                      the units of work: shards that are searched together
    queries = method.prepare(table, store)          a group's queries, ready for any number of units
    result = method.search(queries, store, shards)  candidates, a table a bucket
    table = method.rescore(queries, store, spans)   the best match inside each span

A method receives only queries of its kind: a spoken one never receives text. A candidate has a cost and a scale, and
its score is ``-cost / scale``; the kind of score (`cost`, `posterior`, `llr`) decides which calibration steps may
follow.

A method is registered in `swsdist.registry.registries.METHODS` by a factory that takes the config's section `search`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.fingerprint import SLOTS
from swsdist.core.types import CANDIDATES, columns
from swsdist.registry.registries import METHODS
from swsdist.store.reading import Store, Tracks

#: Spans to rescore: the best match of a query in the ticks first..last (inclusive) of a document.
SPANS = columns("query_id string, doc_id string, channel int32, first int64, last int64")


class Unit(NamedTuple):
    """A part of a store that a task searches.

    Attributes:
        shards: names.
        matters: JSON values, everything in the store that its candidates depend on.
        documents: number of documents.
        frames: number of frames, or another measure of the work.
    """

    shards: tuple[str, ...]
    matters: Any
    documents: int
    frames: int


class Result(NamedTuple):
    """Candidates of a search, and its cost.

    Attributes:
        tables: CANDIDATES, a table per non-empty bucket, in the order of slots.
        candidates: number of candidates.
        cells: query frames x document frames that were searched.
        fill: share of the lanes that held document frames, 0 to 1; None if no lanes were used.
        saturated: frames of both sides that were clipped to the distance's range.
    """

    tables: Iterator[pa.Table]
    candidates: int
    cells: int = 0
    fill: float | None = None
    saturated: int = 0


def by_bucket(rows: list[dict[str, Any]], buckets: int) -> Iterator[pa.Table]:
    """Split rows of CANDIDATES into `Result.tables`, for a method with few of them."""
    of = [row["slot"] * buckets // SLOTS for row in rows]
    for bucket in sorted(set(of)):
        members = [row for row, at in zip(rows, of, strict=True) if at == bucket]
        yield pa.Table.from_pylist(
            sorted(members, key=lambda row: [row[name] for name in CANDIDATES.names]), CANDIDATES
        )


@runtime_checkable
class Method(Protocol):
    """The search method of a config.

    Its entry lists its kinds of queries, store and score (`swsdist.registry.entries.MethodEntry`).
    """

    def matters(self) -> Any:
        """All options that candidates depend on, with versions, as JSON values."""
        ...

    def plan(self, store: Store) -> Iterator[Unit]:
        """Units of a search of the store; they do not affect the candidates."""
        ...

    def weight(self, queries: int, examples: int, frames: int) -> int:
        """Relative work of a group with these numbers of queries, examples, and frames of all examples; by default the
        frames.
        """
        return frames

    def warm(self) -> None:
        """Load the libraries and kernels of a search; nothing by default."""
        return

    def prepare(self, queries: pa.Table, store: Store) -> Any:
        """Prepare a group's queries for searches.

        Raises:
            DataError: the queries do not fit the store.
        """
        ...

    def search(self, queries: Any, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """Find all candidates of the queries in some shards.

        Args:
            queries: from `prepare`.
            store: of the queries.
            shards: of a unit of `plan`.
            buckets: number of buckets of slots, each a row group.
        """
        ...

    def rescore(self, queries: Any, store: Store, spans: pa.Table) -> pa.Table:
        """Find the best match of each query inside a span of ticks, whether or not it would be a candidate.

        Args:
            spans: SPANS.

        Returns:
            CANDIDATES, one for each span that can hold a match, in the order of the spans.
        """
        ...


def tracks_read(store: Store, search: Search) -> Tracks:
    """The tracks that streams and `drop` name, in the store's order.

    All tracks with a first pass, or if a track is missing or not named.
    """
    names = dict.fromkeys(stream.track for stream in search.streams)
    if names and search.drop is not None and search.drop.track is not None:
        names[search.drop.track] = None
    stored = [track.name for track in store.manifest.tracks]
    every = not names or not names.keys() <= set(stored) or search.first_pass.name != "none"
    return Tracks(store, None if every else [name for name in stored if name in names])


def create(search: Search) -> Method:
    """The method that a config names.

    Raises:
        ConfigError: it cannot be loaded, or an option is not valid.
    """
    method: Method = METHODS[search.method].load()(search)
    return method


def demand_readable(search: Search, store: Store) -> None:
    """Refuse a store that the method of a config does not read.

    Raises:
        UserError: the method does not read the store.
    """
    reads, kind = METHODS[search.method].reads, store.manifest.kind
    if kind != reads:
        raise families.WRONG_KIND(
            "the method {method} reads a store of {expected}, and the store holds {kind}",
            "name another store, or another method (search.method)",
            where=store.folder.path(),
            method=search.method,
            expected=reads,
            kind=kind,
        )


def identity(search: Search) -> list[object]:
    """Name and version of the method, and all that its candidates depend on, for fingerprints."""
    return [*METHODS.identity(search.method), create(search).matters()]
