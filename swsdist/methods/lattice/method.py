"""The method lattice: every place of a written term in a store of lattices, with its posterior."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from swsdist.config.search import LatticeOptions, Search
from swsdist.core.types import CANDIDATES
from swsdist.methods.lattice.places import Prepared, by_buckets, demand_unset, shard_units
from swsdist.methods.method import Result, Unit
from swsdist.registry.entries import checked
from swsdist.registry.registries import METHODS
from swsdist.store.reading import Store


class LatticeSearch:
    """The method of a config's section `search`.

    Raises:
        ConfigError: an option is invalid, or a key is set that this method does not use.
    """

    def __init__(self, settings: Search) -> None:
        where = "search.method_options"
        self._options = LatticeOptions.model_validate(checked(METHODS, "lattice", settings.method_options, where))
        demand_unset(settings)

    def matters(self) -> Any:
        """The options."""
        return self._options.model_dump(mode="json")

    def plan(self, store: Store) -> Iterator[Unit]:
        """One unit per shard."""
        return shard_units(store)

    def weight(self, queries: int, examples: int, frames: int) -> int:
        """Number of queries."""
        return queries

    def warm(self) -> None:
        """Load the compiled kernels."""
        from swsdist.methods.lattice import search  # noqa: F401

    def prepare(self, queries: pa.Table, store: Store) -> Prepared:
        """Rows of WRITTEN."""
        return Prepared(sorted(set(queries["query_id"].to_pylist())), queries.to_pylist())

    def search(self, queries: Prepared, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """All places in some shards."""
        from swsdist.methods.lattice.search import search_shard  # loads numba, which planning avoids

        tables = [search_shard(queries, store, shard, self._options) for shard in shards]
        table = pa.concat_tables([CANDIDATES.empty_table(), *tables])
        ticks = sum(store.manifest.shard(shard).frames for shard in shards)
        return Result(by_buckets(table, buckets), table.num_rows, len(queries.query_ids) * ticks)

    def rescore(self, queries: Prepared, store: Store, spans: pa.Table) -> pa.Table:
        """The likeliest place inside each span."""
        from swsdist.methods.lattice.search import search_shard

        keys = set(zip(spans["doc_id"].to_pylist(), spans["channel"].to_pylist(), strict=True))
        places: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
        for shard in store.manifest.shards:
            if keys & store.live(shard.name):
                for row in search_shard(queries, store, shard.name, self._options, keys).to_pylist():
                    places.setdefault((row["query_id"], row["doc_id"], row["channel"]), []).append(row)
        result = []
        for span in spans.to_pylist():
            rows = places.get((span["query_id"], span["doc_id"], span["channel"]), [])
            inside = [row for row in rows if span["first"] <= row["first"] and row["last"] <= span["last"]]
            result += sorted(inside, key=lambda row: (row["cost"], row["first"], row["last"]))[:1]
        return pa.Table.from_pylist(result, CANDIDATES)
