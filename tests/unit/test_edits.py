"""Edit distances against their definition; the method lattice-edits; terms as one automaton."""

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.config.search import Keep, LatticeOptions, Search
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.kernels import lattice_edits as kernel
from swsdist.kernels.edits import ALONE, STRETCH, UNLIKE, cheapest_pairs, edits_to_all
from swsdist.kernels.lattice_search import BITS
from swsdist.lattices.lattice import BREAK
from swsdist.lattices.packed import Packed
from swsdist.methods.lattice import automaton as module
from swsdist.methods.lattice.automaton import Automaton, Written, automaton, possible, written_of
from swsdist.methods.lattice.places import MOST_LABELS, QUERY_LATTICES, Prepared, linear, packed_of, query_row
from swsdist.methods.lattice.search import search_shard
from swsdist.methods.method import SPANS, create
from swsdist.store.reading import Store
from tests.oracles.edits import edits
from tests.oracles.lattice_edits import Arcs, alignments
from tests.support.coded import raises
from tests.support.lattice_stores import chain, store_of

SEQUENCES = st.lists(st.integers(0, 2), max_size=6)


@given(SEQUENCES, st.lists(SEQUENCES, max_size=5))
def test_edits(pattern: list[int], others: list[list[int]]) -> None:
    flat = np.array([symbol for other in others for symbol in other], np.int32)
    starts = np.cumsum([0, *map(len, others)]).astype(np.int64)
    ours = edits_to_all(np.array(pattern, np.int32), flat, starts)
    assert ours.tolist() == [edits(pattern, other) for other in others]


@given(st.lists(st.integers(0, 2), max_size=4), st.lists(st.integers(0, 2), max_size=4))
def test_pairs_are_those_of_least_cost(pattern: list[int], other: list[int]) -> None:
    def cost(ours: Sequence[int], theirs: Sequence[int]) -> int:
        both = list(zip(ours, theirs, strict=True))
        alone = len(pattern) + len(other) - 2 * len(both)
        edges = [(-1, -1), *both, (len(pattern), len(other))]
        stretches = sum((k - i > 1) + (m - j > 1) for (i, j), (k, m) in pairwise(edges))
        return UNLIKE * sum(pattern[i] != other[j] for i, j in both) + ALONE * alone + STRETCH * stretches

    def some(items: list[int], count: int) -> Iterable[tuple[int, ...]]:
        return combinations(range(len(items)), count)

    pairs = cheapest_pairs(np.array(pattern, np.int32), np.array(other, np.int32)).tolist()
    least = min(cost(*both) for n in range(5) for both in product(some(pattern, n), some(other, n)))
    assert cost([k for k, place in enumerate(pairs) if place >= 0], [place for place in pairs if place >= 0]) == least


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
    rows = [(s, t, b, c) for s, some in enumerate(lattice.leaving) for t, b, c in sorted(some, key=lambda a: a[1])]
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


DOCS = {"one": chain("xxabcxx"), "two": chain("xabxcx"), "three": chain("xaxcx yabc"), "four": chain("zzzz")}


def queries(*rows: tuple[str, int, Packed]) -> pa.Table:
    return pa.Table.from_pylist([query_row(*row) for row in rows], QUERY_LATTICES)


def found_in(store: Store, method: object, table: pa.Table) -> list[dict[str, object]]:
    prepared = method.prepare(table, store)  # type: ignore[attr-defined]
    shards = tuple(shard.name for shard in store.manifest.shards)
    return [row for part in method.search(prepared, store, shards, 4).tables for row in part.to_pylist()]  # type: ignore[attr-defined]


def settings(**options: object) -> Search:
    return Search(method="lattice-edits", method_options=options, candidates={"least": 1, "per_second": 0.0})  # type: ignore[arg-type]


def test_costs_and_places_in_any_shards(tmp_path: Path) -> None:
    store = store_of(tmp_path, DOCS)
    rows = found_in(store, create(settings()), queries(("q", 1, chain("abc"))))
    ours = {row["doc_id"]: (row["first"], row["last"], row["cost"] / row["scale"]) for row in rows}  # type: ignore[operator]
    assert ours["one"] == (200, 499, 0.0)
    assert ours["two"] == (100, 299, pytest.approx(4 / 3))  # a deletion, as cheap as the insertion of x
    assert ours["three"] == (700, 999, 0.0)
    assert ours["four"] == (0, 99, pytest.approx(4.0))  # three edits, at least one of them a substitution
    assert {row["scale"] for row in rows} == {3 * kernel.UNIT}
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


def test_a_query_of_too_many_labels_or_of_alternatives() -> None:
    """Not silence: that is no label."""
    query_row("q", 1, chain("a b" * 500 + "a" * 23))
    with raises(codes.TOO_MANY_LABELS, where="q", labels=1024, most=1023):
        query_row("q", 1, chain("a b" * 500 + "a" * 24))
    packed = linear([(("a", "b"), 3.0), (("c",), 1.0)])
    again = packed_of(query_row("q", 1, packed))
    assert again.texts == packed.texts
    assert again.chances.tolist() == packed.chances.tolist()
    paths = dict(zip([packed.texts[label] for label in packed.labels], packed.chances.tolist(), strict=True))
    assert paths == {"a": 0.75, "b": 1.0, "c": 0.25}
    assert packed.arcs[-1] == 0


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


NUMBERS = {"cab": 4, "ab": 1, "b[": 2, BREAK: 3, "c": 5, "ca": 6}


def made(*written: Written) -> Automaton:
    return automaton(possible(written, NUMBERS), NUMBERS, len(NUMBERS) + 1)


def choices(label: str, patterns: bool = True) -> list[object]:
    return [some for _, (some,) in possible([Written(0, (label,), 1.0, patterns)], NUMBERS)]


def test_labels_of_a_shard_and_too_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {label: choices(label) for label in ("ab", "zz", "?", "c*", "?b", "*b", "b[*", "*", "?*", BREAK)} == {
        "ab": [frozenset({1})],
        "zz": [],
        "?": [None],
        "c*": [frozenset({4, 5, 6})],
        "?b": [frozenset({1})],
        "*b": [frozenset({1, 4})],
        "b[*": [frozenset({2})],  # brackets stand for themselves
        "*": [frozenset({1, 2, 4, 5, 6})],
        "?*": [frozenset({1, 2, 4, 5, 6})],
        BREAK: [],
    }
    assert choices("?", patterns=False) == choices(BREAK, patterns=False) == []
    monkeypatch.setattr(module, "_LARGEST", 10)
    with raises(families.TOO_LARGE, where="queries", count=2):
        made(Written(0, ("ab", "?", "?"), 1.0, True), Written(1, ("c", "ca"), 1.0, False))


@given(st.lists(st.lists(st.sampled_from([*NUMBERS, "?", "c*"]), min_size=1, max_size=3), min_size=1, max_size=4))
def test_masks_have_the_columns_with_a_next_node(sequences: list[list[str]]) -> None:
    machine = made(*(Written(k, tuple(item), 1.0, True) for k, item in enumerate(sequences)))
    for node, row in enumerate(machine.child):
        for column in np.flatnonzero(row >= 0):
            assert machine.mask[node] >> np.uint64(column % BITS) & np.uint64(1)


def test_long_lists_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A term's alternatives stay together, and what is found does not depend on the parts."""
    store = store_of(tmp_path, {"one": chain("abcabd", 0.5), "two": chain("dacab", 0.5)})
    words = {"x": ["ab", "b"], "y": ["ca"], "z": ["abc", "d"], "w": ["a"], "v": ["cab", "ab"]}
    rows = [
        {"query_id": query_id, "labels": list(text), "cost": float(k), "patterns": False}
        for query_id, texts in words.items()
        for k, text in enumerate(texts)
    ]
    (shard,), letters = store.manifest.shards, {letter: k for k, letter in enumerate("abcd", 1)}
    sequences = possible([*written_of(rows, {key: k for k, key in enumerate(words)})], letters)
    results, parts = [], []
    for largest in (1 << 20, 60, 36):
        monkeypatch.setattr(module, "_LARGEST", largest)
        module._machine.cache_clear()
        table = search_shard(Prepared(list(words), rows), store, shard.name, LatticeOptions())
        results.append(sorted(map(str, table.to_pylist())))
        parts.append(len(list(module.automata(sequences, letters, 5))))
    assert results[0] == results[1] == results[2]
    assert (parts[0], len(results[0])) == (1, 20)
    assert 1 < parts[1] < parts[2]
