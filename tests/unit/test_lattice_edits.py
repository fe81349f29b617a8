"""The method lattice-edits: its kernel against every pair of paths, and its candidates in a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.config.search import Search
from swsdist.core.codes import methods as codes
from swsdist.kernels import lattice_edits as kernel
from swsdist.lattices.packed import Packed
from swsdist.methods.create import create
from swsdist.methods.lattice.query_lattices import QUERY_LATTICES, linear, packed_of, query_row
from swsdist.methods.method import SPANS
from swsdist.store.reading import Store
from tests.oracles.lattice_edits import Arcs, alignments
from tests.support.coded import raises
from tests.support.lattice_stores import chain, store_of


@st.composite
def arcs(draw: st.DrawFn, states: int) -> Arcs:
    leaving = []
    for state in range(states):
        targets = st.integers(state + 1, min(states - 1, state + 3)) if state < states - 1 else st.nothing()
        arc = st.tuples(targets, st.integers(0, 2), st.integers(0, 3000))
        leaving.append(draw(st.lists(arc, min_size=1, max_size=2)) if state < states - 1 else [])
    return Arcs(leaving)


def flat(lattice: Arcs) -> tuple[np.ndarray, ...]:
    """First arcs, sources, targets, labels and costs, of a state by label."""
    rows = [
        (s, t, label, cost)
        for s, some in enumerate(lattice.leaving)
        for t, label, cost in sorted(some, key=lambda a: a[1])
    ]
    source, target, label, cost = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return np.searchsorted(source, np.arange(len(lattice.leaving) + 1)).astype(np.int64), source, target, label, cost


@given(st.integers(2, 4).flatmap(arcs), st.integers(2, 5).flatmap(arcs), st.data())
def test_every_path_against_every_path(query: Arcs, document: Arcs, data: st.DataObject) -> None:
    states = len(document.leaving)
    begin = data.draw(st.lists(st.integers(0, 2000), min_size=states, max_size=states))
    edit = data.draw(st.sampled_from([0, 500, 4000]))
    cheaper = {(1, 1): 0, (2, 2): 0}
    if edit > 100 and data.draw(st.booleans()):
        cheaper[1, 2] = 100
    query_first, _, query_target, query_label, query_cost = flat(query)
    first, source, target, label, cost = flat(document)
    by_label = np.argsort(label, kind="stable").astype(np.int64)
    final = np.full(len(query.leaving), kernel.FAR)
    final[-1] = 0
    best = np.empty(states, np.int64)
    kernel.align(
        *(query_first, query_target, query_label, query_cost, final, first, source, target, label, cost),
        *(np.array(begin, np.int64), np.searchsorted(label[by_label], np.arange(4)).astype(np.int64), by_label, edit),
        np.array([(*pair, value) for pair, value in cheaper.items()], np.int64),
        *(
            np.empty((len(query.leaving), states), np.int64),
            np.empty(states, np.int64),
            np.empty(states, np.int64),
            best,
        ),
    )
    low = (1 << kernel.START_BITS) - 1
    ours = {
        state: (value >> kernel.LOW_BITS, value >> kernel.START_BITS & 1023, value & low)
        for state, value in enumerate(best.tolist())
        if value < kernel.FAR
    }
    assert ours == alignments(query, document, begin, edit, cheaper)


DOCS = {"one": chain("xxabcxx"), "two": chain("xabxcx"), "three": chain("xaxcx yabc"), "four": chain("zzzz")}


def queries(*rows: tuple[str, int, Packed]) -> pa.Table:
    return pa.Table.from_pylist([query_row(*row) for row in rows], QUERY_LATTICES)


def found_in(store: Store, method: object, table: pa.Table) -> list[dict[str, object]]:
    prepared = method.prepare(table, store)  # type: ignore[attr-defined]
    shards = tuple(shard.name for shard in store.manifest.shards)
    return [row for part in method.search(prepared, store, shards, 4).tables for row in part.to_pylist()]  # type: ignore[attr-defined]


def settings(**options: object) -> Search:
    return Search(method="lattice-edits", method_options=options, candidates={"least": 1, "per_second": 0.0})  # type: ignore[arg-type]


def test_costs_and_places(tmp_path: Path) -> None:
    store = store_of(tmp_path, DOCS)
    rows = found_in(store, create(settings()), queries(("q", 1, chain("abc"))))
    ours = {row["doc_id"]: (row["first"], row["last"], row["cost"] / row["scale"]) for row in rows}  # type: ignore[operator]
    assert ours["one"] == (200, 499, 0.0)
    assert ours["two"] == (100, 299, pytest.approx(4 / 3))  # a deletion, as cheap as the insertion of x
    assert ours["three"] == (700, 999, 0.0)
    assert ours["four"][2] == pytest.approx(4.0)  # three edits
    assert {row["scale"] for row in rows} == {3 * kernel.UNIT}


def test_any_shards_and_other_queries_beside(tmp_path: Path) -> None:
    alone = queries(("q", 1, chain("abc")))
    both = queries(("q", 1, chain("abc")), ("r", 1, chain("xc")))
    expected = found_in(store_of(tmp_path / "1", DOCS), create(settings()), alone)
    for cuts in (2, 3):
        store = store_of(tmp_path / str(cuts), DOCS, cuts)
        assert [row for row in found_in(store, create(settings()), both) if row["query_id"] == "q"] == expected


def test_long_documents_are_searched_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"long": chain("x" * 500 + "abc" + "x" * 500)}
    rows = found_in(store_of(tmp_path, long), create(settings(longest=2.0)), queries(("q", 1, chain("abc"))))
    assert [(row["first"], row["last"], row["cost"]) for row in rows] == [(50000, 50299, 0)]


def test_confusions(tmp_path: Path) -> None:
    (tmp_path / "confusions").write_text("# query document cost\nb x 0.5\n")
    store = store_of(tmp_path / "store", {"one": chain("zaxcz")})
    method = create(settings(confusions=str(tmp_path / "confusions")))
    (row,) = found_in(store, method, queries(("q", 1, chain("abc"))))
    assert row["cost"] / row["scale"] == pytest.approx(0.5 / 3)  # type: ignore[operator]
    (tmp_path / "confusions").write_text("b x\n")
    with raises(codes.CONFUSIONS_LINE, text="b x"):
        create(settings(confusions=str(tmp_path / "confusions")))


def test_rescoring_inside_spans(tmp_path: Path) -> None:
    store, method = store_of(tmp_path, DOCS), create(settings())
    spans = [("q", "three", 1, 0, 499), ("q", "three", 1, 600, 1100), ("q", "one", 1, 0, 99)]
    table = pa.Table.from_pylist([dict(zip(SPANS.names, span, strict=True)) for span in spans], SPANS)
    rows = method.rescore(method.prepare(queries(("q", 1, chain("abc"))), store), store, table).to_pylist()
    assert [(row["doc_id"], row["first"], row["last"]) for row in rows][:2] == [
        ("three", 100, 399),
        ("three", 700, 999),
    ]
    assert rows[0]["cost"] / rows[0]["scale"] == pytest.approx(4 / 3)


def test_matches_lie_in_their_spans(tmp_path: Path) -> None:
    """Also where deleting all labels is cheapest."""
    store, method = store_of(tmp_path, DOCS), create(settings())
    spans = [("q", doc, 1, first, first + length) for doc in DOCS for first in (0, 95, 205) for length in (4, 99, 150)]
    table = pa.Table.from_pylist([dict(zip(SPANS.names, span, strict=True)) for span in spans], SPANS)
    rows = method.rescore(method.prepare(queries(("q", 1, chain("abc"))), store), store, table).to_pylist()
    places = iter(spans)
    for row in rows:  # in the spans' order
        assert any(
            (doc, first <= row["first"] <= row["last"] <= last) == (row["doc_id"], True)
            for _, doc, _, first, last in places
        )
    assert len(rows) > len(spans) / 2


def test_written_alternatives_as_a_lattice() -> None:
    packed = linear([(("a", "b"), 3.0), (("c",), 1.0)])
    again = packed_of(query_row("q", 1, packed))
    assert again.texts == packed.texts
    assert again.chances.tolist() == packed.chances.tolist()
    paths = dict(zip([packed.texts[label] for label in packed.labels], packed.chances.tolist(), strict=True))
    assert paths == {"a": 0.75, "b": 1.0, "c": 0.25}
    assert packed.arcs[-1] == 0
