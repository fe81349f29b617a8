"""Checks search methods; see `swsdist.methods.method` for the requirements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from swsdist.config.search import Search
from swsdist.core.fingerprint import SLOTS, fingerprint, slot_of
from swsdist.core.types import CANDIDATES
from swsdist.methods.method import SPANS, Method, create
from swsdist.registry.registries import METHODS
from swsdist.store.reading import Store
from swsdist.testing.conformance.entry import check_entry, require

_KEY = ("query_id", "doc_id", "channel")


def check_method(search: Search, queries: pa.Table, store: Store) -> int:
    """Check the method of a section `search`.

    What it depends on and how it cuts the store are said the same way twice, and every shard is searched once. Candidates are
    of the queries and of live documents, sorted by slot, a table a bucket; as many as are said; the same twice and for any
    number of buckets. Inside a candidate's span, `rescore` finds a match at least as good.

    Args:
        search: as in a config.
        queries: a group's, as the method takes them (EXAMPLES, or what a queries stage of its own makes).
        store: in which some are found.

    Returns:
        Number of candidates; at least 1.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(METHODS, search.method)
    method, twin = create(search), create(search)
    require(isinstance(method, Method), what, "it lacks a part of `swsdist.methods.method.Method`")
    try:
        require(
            fingerprint(method.matters()) == fingerprint(twin.matters()),
            what,
            "`matters` says something else each time",
        )
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: `matters` is not plain JSON ({error})") from None
    units = list(method.plan(store))
    require(json.dumps(units) == json.dumps(list(twin.plan(store))), what, "its units differ from plan to plan")
    searched = sorted(shard for unit in units for shard in unit.shards)
    require(searched == sorted(shard.name for shard in store.manifest.shards), what, "a shard is not in just one unit")
    require(method.weight(1, 1, 10) > 0, what, "a query weighs nothing")
    method.warm()
    prepared, again = method.prepare(queries, store), twin.prepare(queries, store)
    query_ids = set(queries["query_id"].to_pylist())
    detections: list[dict[str, Any]] = []
    for unit in units:
        rows = _rows(method, prepared, store, unit.shards, 16, what)
        require(
            _rows(twin, again, store, unit.shards, 16, what) == rows, what, "it finds something else the second time"
        )
        for buckets in (1, SLOTS):
            others = _rows(twin, again, store, unit.shards, buckets, what)
            require(_sorted(others) == _sorted(rows), what, f"with {buckets} buckets it finds something else")
        live = {key for shard in unit.shards for key in store.live(shard)}
        for row in rows:
            _check_row(row, query_ids, live, what)
        detections += rows
    require(bool(detections), what, "it finds nothing in the store that it was given")
    _check_rescore(method, prepared, store, detections, what)
    return len(detections)


def _rows(
    method: Method, queries: Any, store: Store, shards: Sequence[str], buckets: int, what: str
) -> list[dict[str, Any]]:
    result = method.search(queries, store, tuple(shards), buckets)
    rows: list[dict[str, Any]] = []
    last = -1
    for table in result.tables:
        require(table.schema.equals(CANDIDATES), what, f"a table is not of CANDIDATES but {table.schema}")
        table_rows = table.to_pylist()
        of = {row["slot"] * buckets // SLOTS for row in table_rows}
        require(len(of) == 1 and min(of) > last, what, "tables are not a bucket each, in their order")
        slots = [row["slot"] for row in table_rows]
        require(slots == sorted(slots), what, "rows are not sorted by slot")
        (last,) = of
        rows += table_rows
    require(result.candidates == len(rows), what, f"it says {result.candidates} candidates and gives {len(rows)}")
    return rows


def _sorted(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in rows)


def _check_row(row: dict[str, Any], query_ids: set[str], live: set[tuple[str, int]], what: str) -> None:
    where = f"candidate {row}"
    require(row["query_id"] in query_ids, what, f"{where}: nobody asked for it")
    require((row["doc_id"], row["channel"]) in live, what, f"{where}: the unit has no such document")
    require(row["slot"] == slot_of(row["query_id"]), what, f"{where}: its slot is not its query's")
    require(0 <= row["first"] <= row["last"] and row["scale"] > 0, what, f"{where}: no span, or a scale of 0")


def _check_rescore(method: Method, queries: Any, store: Store, detections: list[dict[str, Any]], what: str) -> None:
    some = detections[:: max(1, len(detections) // 200)]
    spans = pa.Table.from_pylist([{name: row[name] for name in SPANS.names} for row in some], SPANS)
    best = method.rescore(queries, store, spans)
    require(best.schema.equals(CANDIDATES), what, "rescore does not give CANDIDATES")
    require(
        best.num_rows == len(some), what, f"rescore finds {best.num_rows} of {len(some)} places that it found itself"
    )
    for row, was in zip(best.to_pylist(), some, strict=True):
        same = all(row[name] == was[name] for name in _KEY)
        inside = was["first"] <= row["first"] and row["last"] <= was["last"]
        require(same and inside, what, f"rescore leaves the span of {was}: {row}")
        better = row["cost"] * was["scale"] <= was["cost"] * row["scale"]
        require(better, what, f"rescore finds less than was found there: {row} instead of {was}")
