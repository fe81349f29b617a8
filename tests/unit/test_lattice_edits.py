"""The method lattice-edits: its kernel against every pair of paths, and its candidates in a store."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.config.search import Keep, Search
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.kernels import lattice_edits as kernel
from swsdist.lattices.packed import Packed
from swsdist.methods.lattice.places import MOST_LABELS, QUERY_LATTICES, linear, packed_of, query_row
from swsdist.methods.method import SPANS, create
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


def aligned(
    query: Arcs, document: Arcs, begin: list[int], edit: int, cheaper: dict[tuple[int, int], int]
) -> dict[int, tuple[int, int, int]]:
    """As `alignments`, by the kernel."""
    query_first, _, query_target, query_label, query_cost = flat(query)
    first, source, target, label, cost = flat(document)
    by_label = np.argsort(label, kind="stable").astype(np.int64)
    final = np.full(len(query.leaving), kernel.FAR)
    final[-1] = 0
    best = kernel.align(
        *(query_first, query_target, query_label, query_cost, final, first, source, target, label, cost),
        *(np.array(begin, np.int64), np.searchsorted(label[by_label], np.arange(4)).astype(np.int64), by_label, edit),
        np.array([(*pair, value) for pair, value in cheaper.items()], np.int64),
    )
    low = (1 << kernel.START_BITS) - 1
    return {
        state: (value >> kernel.LOW_BITS, value >> kernel.START_BITS & MOST_LABELS, value & low)
        for state, value in enumerate(best.tolist())
        if value < kernel.FAR
    }


class Case(NamedTuple):
    """What `aligned` takes."""

    query: Arcs
    document: Arcs
    begin: list[int]
    edit: int
    cheaper: dict[tuple[int, int], int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    query, document = draw(st.integers(2, 4).flatmap(arcs)), draw(st.integers(2, 5).flatmap(arcs))
    states = len(document.leaving)
    begin = draw(st.lists(st.integers(0, 2000), min_size=states, max_size=states))
    edit = draw(st.sampled_from([0, 500, 4000]))
    cheaper = {(1, 1): 0, (2, 2): 0} | ({(1, 2): 100} if edit > 100 and draw(st.booleans()) else {})
    return Case(query, document, begin, edit, cheaper)


@given(cases())
def test_every_path_against_every_path(case: Case) -> None:
    assert MOST_LABELS.bit_length() == kernel.LOW_BITS - kernel.START_BITS
    assert aligned(*case) == alignments(*case)


def with_silence(lattice: Arcs) -> Arcs:
    """It, between two arcs without a label."""
    inner = [[(target + 1, label, cost) for target, label, cost in some] for some in lattice.leaving]
    return Arcs([[(1, 0, 0)], *inner[:-1], [(len(inner) + 1, 0, 0)], []])


@given(cases(), st.integers(0, 3000), st.integers(0, 2000))
def test_silence_at_the_edges_changes_nothing(case: Case, cost: int, begin: int) -> None:
    ours = aligned(*case)
    first, *others = case.query.leaving
    silent = Arcs([[*first, (len(others), 0, cost)], *others])
    assert aligned(*case._replace(query=silent)) == ours
    assert aligned(*case._replace(query=with_silence(case.query))) == ours
    longer = case._replace(document=with_silence(case.document), begin=[begin, *case.begin, begin])
    assert aligned(*longer) == {end + 1: (*some, start + 1) for end, (*some, start) in ours.items()}


@given(cases())
def test_matches_begin_and_end_with_labels(case: Case) -> None:
    labels = [(s, t) for s, some in enumerate(case.document.leaving) for t, label, _ in some if label]
    for end, (_, count, start) in aligned(*case).items():
        assert count > 0
        assert start < end
        assert start in {source for source, _ in labels}
        assert end in {target for _, target in labels}


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
    assert ours["four"] == (0, 99, pytest.approx(4.0))  # three edits, at least one of them a substitution
    assert {row["scale"] for row in rows} == {3 * kernel.UNIT}


def test_any_shards_and_other_queries_beside(tmp_path: Path) -> None:
    alone = queries(("q", 1, chain("abc")))
    both = queries(("q", 1, chain("abc")), ("r", 1, chain("xc")))
    expected = found_in(store_of(tmp_path / "1", DOCS), create(settings()), alone)
    for cuts in (2, 3):
        store = store_of(tmp_path / str(cuts), DOCS, cuts)
        assert [row for row in found_in(store, create(settings()), both) if row["query_id"] == "q"] == expected


def test_long_documents_are_searched_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches of a whole document, and as far apart."""
    labels = "".join(np.random.default_rng(0).choice(list("abcx"), 300))
    store = store_of(tmp_path, {"long": chain(labels)})
    given = settings(longest=1.0, apart=0.35).model_copy(update={"candidates": Keep(least=40)})
    whole, table = create(given), queries(("q", 1, chain("abc")), ("r", 1, chain("c a")))
    expected = found_in(store, whole, table)
    assert len(expected) == 80
    for one, other in combinations([row for row in expected if row["query_id"] == "q"], 2):
        assert abs(one["last"] - other["last"]) >= 350  # type: ignore[operator]
    for piece in (1, 7, 64):
        monkeypatch.setattr(kernel, "PIECE", piece)
        assert found_in(store, whole, table) == expected


def test_confusions(tmp_path: Path) -> None:
    path = tmp_path / "confusions"
    path.write_text("# query document cost\nb x 0.5\n")
    store = store_of(tmp_path / "store", {"one": chain("zaxcz")})
    (row,) = found_in(store, create(settings(confusions=str(path))), queries(("q", 1, chain("abc"))))
    assert row["cost"] / row["scale"] == pytest.approx(0.5 / 3)  # type: ignore[operator]
    for line, code, values in (
        ("b x", families.MALFORMED_LINE, {"text": "b x"}),
        ("b x -1", families.INVALID_VALUE, {"cost": -1}),
        ("a x 2", families.DUPLICATE_NAME, {"query": "a", "document": "x"}),
    ):
        path.write_text(f"a x 1\n{line}\n")
        with raises(code, where="confusions:2", **values):
            create(settings(confusions=str(path)))
    # Of labels that no document has: one line with a document's label is enough; a file without a line is refused too.
    path.write_text("a X 1.0\nb z 1.0\n")
    assert len(list(create(settings(confusions=str(path))).plan(store))) == 1
    path.write_text("a X 1.0\nb q 1.0\n")
    with raises(families.MISMATCH, where=str(path), label="X"):
        list(create(settings(confusions=str(path))).plan(store))
    path.write_text("")
    with raises(families.EMPTY_INPUT, where=str(path)):
        create(settings(confusions=str(path)))


def test_a_query_of_too_many_labels() -> None:
    """Not silence: that is no label."""
    query_row("q", 1, chain("a b" * 500 + "a" * 23))
    with raises(codes.TOO_MANY_LABELS, where="q", labels=1024, most=1023):
        query_row("q", 1, chain("a b" * 500 + "a" * 24))


def test_rescoring_inside_spans(tmp_path: Path) -> None:
    """One in each span that holds a whole label, whatever it is."""
    store, method = store_of(tmp_path, DOCS), create(settings())

    def rescored(spans: list[tuple[object, ...]]) -> list[dict[str, Any]]:
        table = pa.Table.from_pylist([dict(zip(SPANS.names, span, strict=True)) for span in spans], SPANS)
        return method.rescore(method.prepare(queries(("q", 1, chain("abc"))), store), store, table).to_pylist()

    rows = rescored([("q", "three", 1, 0, 499), ("q", "three", 1, 600, 1100), ("q", "one", 1, 0, 99)])
    places = [(row["doc_id"], row["first"], row["last"]) for row in rows]
    assert places[:2] == [("three", 100, 399), ("three", 700, 999)]
    assert rows[0]["cost"] / rows[0]["scale"] == pytest.approx(4 / 3)
    spans = [("q", doc, 1, first, first + length) for doc in DOCS for first in (0, 95, 205) for length in (4, 99, 150)]
    holding = [
        (doc, first, last)
        for _, doc, _, first, last in spans
        if any(DOCS[doc].labels[k] and first <= 100 * k and 100 * k + 99 <= last for k in range(len(DOCS[doc].labels)))
    ]
    assert len(holding) > 10
    for (doc, first, last), row in zip(holding, rescored(spans), strict=True):
        assert row["doc_id"] == doc
        assert first <= row["first"] < row["last"] <= last


def test_written_alternatives_as_a_lattice() -> None:
    packed = linear([(("a", "b"), 3.0), (("c",), 1.0)])
    again = packed_of(query_row("q", 1, packed))
    assert again.texts == packed.texts
    assert again.chances.tolist() == packed.chances.tolist()
    paths = dict(zip([packed.texts[label] for label in packed.labels], packed.chances.tolist(), strict=True))
    assert paths == {"a": 0.75, "b": 1.0, "c": 0.25}
    assert packed.arcs[-1] == 0
