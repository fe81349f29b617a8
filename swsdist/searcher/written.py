"""Written queries of a search without a run: texts, and tables of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from swsdist.calibrate.statistics import Tally
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import TermError
from swsdist.core.text import kept
from swsdist.core.types import QUERIES
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.methods.query.extraction import Cut
from swsdist.searcher.query_input import Skip, is_table, skipping, table_rows
from swsdist.store.lattice_shards import labels_of
from swsdist.store.reading import Store


def written_rows(queries: object, store: Store, say: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Rows of QUERIES, one a text: texts, tables (.csv, .parquet) of them, or rows that this made."""
    several = isinstance(queries, Iterable) and not isinstance(queries, str) and not hasattr(queries, "columns")
    items: Iterable[Any] = queries if several else [queries]  # type: ignore[assignment]
    rows: dict[tuple[str, int], dict[str, Any]] = {}

    def add(row: dict[str, Any]) -> None:
        query_id, example = key = row["query_id"], row["example"]
        if rows.setdefault(key, row)["term"] != row["term"]:
            raise codes.DUPLICATE_QUERY_EXAMPLE(where="queries", count=2, example=example, query_id=query_id)

    for item in items:
        if isinstance(item, dict):
            add(item)
        elif not isinstance(item, str):
            raise codes.NOT_A_TEXT(where="queries", kind=type(item).__name__)
        elif is_table(item):
            for row in table_rows(item, store, say):
                add(row)
        else:
            row = dict.fromkeys(QUERIES.names) | {"query_id": item, "example": 1, "channel": 1}
            add(row | {"term": item, "typed": item})
    return list(rows.values())


class WrittenQueries:
    """Reads texts into sequences of labels of a store.

    Args:
        store: of lattices.
        terms: how texts become labels.
    """

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store, self._terms = store, terms
        self._texts: dict[str, list[str]] = {}

    def rows(
        self,
        queries: object,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of QUERIES; see `written_rows`."""
        return written_rows(queries, self._store, say)

    def examples(
        self,
        queries: object,
        on_cut: Callable[[Cut], None] | None = None,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
    ) -> tuple[pa.Table, dict[str, Tally]]:
        """WRITTEN; no step wants to know of texts."""
        result: list[dict[str, Any]] = []
        for row in self.rows(queries, skip, say):
            with skipping(skip, row["query_id"]):
                if not row["term"]:
                    raise codes.QUERY_WITHOUT_TEXT(where=row["query_id"])
                if not kept(row["query_id"] + row["term"]):
                    raise codes.QUERY_TEXT_NOT_UTF8(where=row["query_id"])
                result += self._reader.rows(row)
                self._texts.setdefault(row["query_id"], []).append(row["term"])
        return pa.Table.from_pylist(cheapest(result), WRITTEN), {}

    def warnings(self, examples: pa.Table) -> Iterator[str]:
        """None: nothing is odd about a text."""
        return iter(())

    def why_nothing(self, query_ids: Sequence[str]) -> str:
        """Words that no document holds, and similar ones that some do."""
        reasons = []
        for query_id in query_ids:
            try:
                items = (item for text in self._texts[query_id] for item in self._reader.alternatives(text))
                labels = {label for item in items for label in item.labels}
            except TermError:
                continue
            for label in sorted(labels - self._labels):
                if not (self._terms.patterns and ("?" in label or "*" in label)):
                    near = self._reader.similar(label)
                    reasons.append(f"no document holds {label}" + (f" (but {', '.join(near)})" if near else ""))
        return f"; {'; '.join(reasons)}" if reasons else ""

    @cached_property
    def _reader(self) -> TermReader:
        recipe = Recipe.model_validate(self._store.manifest.track().recipe["options"])
        known = self._labels if self._terms.units != "phones" else None
        return TermReader(self._terms, recipe, self._store.folder.storage, known)

    @cached_property
    def _labels(self) -> frozenset[str]:
        return labels_of(self._store.folder, self._store.manifest.shards)
