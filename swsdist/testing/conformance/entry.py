"""Common checks of plug-ins (entry, version, options), and checks of methods, backends and first passes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from swsdist.config.search import Search
from swsdist.core.arrays import Bools, Ints
from swsdist.core.fingerprint import SLOTS, fingerprint, slot_of
from swsdist.core.types import CANDIDATES
from swsdist.kernels.distances.interface import Part, Side, weighted_sum
from swsdist.kernels.distances.interface import create as create_distance
from swsdist.methods.dtw.search import Matches, search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.first_pass.interface import Budget, Material
from swsdist.methods.first_pass.interface import create as create_first_pass
from swsdist.methods.first_pass.search import run
from swsdist.methods.method import SPANS, Method, create
from swsdist.methods.query.example import Example
from swsdist.registry.entries import Configured, checked
from swsdist.registry.registries import BACKENDS, FIRST_PASSES, METHODS, RECURRENCES
from swsdist.registry.registry import Entry, Registry
from swsdist.store.reading import Store
from swsdist.testing import scenes

E = TypeVar("E", bound=Entry)


def require(holds: bool, what: str, complaint: str) -> None:
    """Raise unless a condition holds. Not an assert, so that suites work under `python -O`.

    Raises:
        AssertionError: the condition is false.
    """
    if not holds:
        raise AssertionError(f"{what}: {complaint}")


def check_entry(registry: Registry[E], name: str) -> tuple[E, str]:
    """The entry of a name, and its label for messages.

    Raises:
        AssertionError: version or options are invalid.
    """
    entry, what = registry[name], f"{registry.kind} {name!r}"
    is_integer = isinstance(entry.version, int) and not isinstance(entry.version, bool)
    require(is_integer and entry.version >= 1, what, f"version is {entry.version!r}, not an integer of at least 1")
    if isinstance(entry, Configured):
        _check_options(registry, name, entry, what)  # type: ignore[arg-type]
    return entry, what


def _check_options(registry: Registry[Configured], name: str, entry: Configured, what: str) -> None:
    defaults = checked(registry, name, {})
    require(set(defaults) == set(entry.takes()), what, "an option has no default")
    try:
        written = json.loads(json.dumps(defaults, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: its default options are not plain JSON ({error})") from None
    require(checked(registry, name, written) == defaults, what, "its own default options are changed by its model")


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


_DIMENSION = 4
_QUERIES, _DOCUMENTS = (1, 2, 17, 33, 300), (1, 2, 20, 900, 31)


def check_backend(name: str) -> None:
    """Check one registered backend: its results are those of `int16`.

    Checked for every recurrence, for one distance and a weighted sum, for any cuts and windows, any number of candidates,
    and ties of costs.

    Args:
        name: registered in `swsdist.registry.registries.BACKENDS`.

    Raises:
        AssertionError: a check fails; the message names it.
        UserError: it cannot be used on this machine.
    """
    _, what = check_entry(BACKENDS, name)
    cosine = create_distance("cosine", _DIMENSION)
    euclidean = create_distance("euclidean", _DIMENSION)
    several = weighted_sum([Part(cosine, 0, _DIMENSION, 1), Part(euclidean, 0, _DIMENSION, 3)], _DIMENSION)
    sides: dict[Side, tuple[int, ...]] = {"query": _QUERIES, "document": _DOCUMENTS}
    for recurrence in RECURRENCES:
        for distance, window, most, piece in ((cosine, 1, 1000, 1), (several, 3, 2, 10_000), (cosine, 40, 0, 50)):
            queries, documents = (
                [scenes.prepared(distance, scenes.features(n, n, _DIMENSION), side) for n in frames]
                for side, frames in sides.items()
            )
            documents.append(np.repeat(documents[1], 60, axis=0))
            examples = [Example(f"q{k}", 1, query) for k, query in enumerate(queries)]
            kept = np.full(len(documents), most, np.int64)
            settings = Settings(distance, window, 16, piece, recurrence)
            blocks = [(k, [item]) for k, item in enumerate(documents)]
            actual, expected = (
                search(examples, blocks, kept, settings._replace(backend=item)) for item in (name, "int16")
            )
            same = scenes.rows(actual) == scenes.rows(expected)
            require(
                same, what, f"it finds other candidates than int16 with the recurrence {recurrence}, pieces of {piece}"
            )


_FIRST_PASS_DIMENSION = 5


def check_first_pass(name: str, options: Mapping[str, object] | None = None) -> None:
    """Check one registered first pass.

    What it finds are candidates of the full search, every number the same, and with windows for everything all of them;
    the order of documents changes nothing; over a document, no document changes what is found in another.

    Args:
        name: registered in `swsdist.registry.registries.FIRST_PASSES`.
        options: some of its options.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(FIRST_PASSES, name)
    first_pass = create_first_pass(name, **(options or {}))
    order = [3, 0, 4, 1, 2]
    for over in ("collection", "document"):
        budget = Budget(2, 0.5, over)
        proposed = first_pass.propose(_material(range(5)), budget)
        require(min(*proposed.work, *proposed.indexing) >= 0, what, "its work is negative")
        candidates, work, _ = run(first_pass, _material(range(5)), budget)
        require(sum(work) > 0, what, "it says that nothing was computed")
        again, *_ = run(first_pass, _material(range(5)), budget)
        require(scenes.rows(again) == scenes.rows(candidates), what, "it finds something else the second time")
        moved, *_ = run(first_pass, _material(order), budget)
        rows = sorted((row[0], order[row[1]], *row[2:]) for row in scenes.rows(moved))
        require(
            rows == sorted(scenes.rows(candidates)),
            what,
            f"the order of documents changes what is found (over: {over})",
        )
        full, *_ = run(first_pass, _material(range(5)), Budget(100_000, 0.0, over))
        best = _full(_material(range(5)), _material(range(5)).most)
        require(
            scenes.rows(full) == scenes.rows(best),
            what,
            f"with windows for everything it misses candidates of the full search (over: {over})",
        )
        every = _full(_material(range(5)), np.full(5, 100_000))
        require(bool(present(every, candidates).all()), what, "it finds what is no candidate of the full search")
        if over == "document":
            parts = [
                (row[0], some[row[1]], *row[2:])
                for some in ([4, 1], [0, 2, 3])
                for row in scenes.rows(run(first_pass, _material(some), budget)[0])
            ]
            require(sorted(parts) == rows, what, "over a document, other documents change what is found in it")


def present(matches: Matches, full: Matches) -> Bools:
    """Of each candidate of the full search, whether it was found: the same example, document, end, frames and cost."""
    names = ("query", "document", "end_frame", "frames", "cost")
    keys, all_of_them = (
        np.ascontiguousarray(np.column_stack([getattr(item, name).astype(np.int64) for name in names]))
        for item in (matches, full)
    )
    kind = np.dtype((np.void, keys.dtype.itemsize * len(names)))
    hits: Bools = np.isin(all_of_them.view(kind).ravel(), keys.view(kind).ravel())
    return hits


def recall(matches: Matches, full: Matches, counted: Bools | None = None) -> float:
    """Share of the full search's candidates that were found; 1 if there are none.

    Args:
        matches: of a search that skipped something.
        full: of the full search, with the same examples, documents and settings.
        counted: bool, a mask over `full`: only these; all by default.
    """
    there = present(matches, full)
    expected = there if counted is None else there[counted]
    return float(expected.mean()) if len(expected) else 1.0


def _material(which: list[int] | range) -> Material:
    documents = [scenes.spoken(10 * k, 20 + 7 * k, _FIRST_PASS_DIMENSION) for k in range(5)]
    queries = [documents[k][12 : 36 + 6 * k] for k in range(3)] + [scenes.features(7, 1, _FIRST_PASS_DIMENSION)]
    return scenes.material(create_distance("cosine", _FIRST_PASS_DIMENSION), queries, [documents[k] for k in which])


def _full(material: Material, most: Ints) -> Matches:
    settings = Settings(material.distance, material.window, 16, 500)
    return search(material.examples(1), material.documents(1, None), most, settings)
