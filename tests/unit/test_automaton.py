"""Terms as one automaton over the labels of a shard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.config.search import LatticeOptions
from swsdist.core.codes import families
from swsdist.kernels.lattice_search import BITS
from swsdist.lattices.lattice import BREAK
from swsdist.methods.lattice import automaton as module
from swsdist.methods.lattice.automaton import Automaton, Written, automaton, possible, written_of
from swsdist.methods.lattice.places import Prepared
from swsdist.methods.lattice.search import search_shard
from tests.support.coded import raises
from tests.support.lattice_stores import chain, store_of

LETTERS = {letter: k for k, letter in enumerate("abcd", 1)}
NUMBERS = {"cab": 4, "ab": 1, "b[": 2, BREAK: 3, "c": 5, "ca": 6}


def ends(machine: Automaton, labels: list[int]) -> dict[int, float]:
    """Terms that end with a sequence of labels, by their weights."""
    node = 0
    for label in labels:
        node = int(machine.child[node, machine.columns[label]]) if node >= 0 else -1
    if node < 0:
        return {}
    some = slice(*machine.accepts[node : node + 2])
    return dict(zip(machine.terms[some].tolist(), machine.weights[some].tolist(), strict=True))


def made(*written: Written) -> Automaton:
    return automaton(possible(written, NUMBERS), NUMBERS, len(NUMBERS) + 1)


def choices(label: str, patterns: bool = True) -> list[object]:
    return [some for _, (some,) in possible([Written(0, (label,), 1.0, patterns)], NUMBERS)]


def test_labels_of_a_shard() -> None:
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


def test_terms_share_nodes() -> None:
    machine = made(
        Written(0, ("ab", "c"), 1.0, False),
        Written(1, ("ab",), 1.0, False),
        Written(2, ("ab", "?"), 0.5, True),
        Written(2, ("ab", "c"), 0.25, False),
        Written(3, ("zz", "ab"), 1.0, False),
    )
    assert ends(machine, [1]) == {1: 1.0}
    assert ends(machine, [1, 5]) == {0: 1.0, 2: 0.5}  # of a term's sequences the likeliest
    assert ends(machine, [1, 2]) == {2: 0.5}
    assert ends(machine, [1, 3]) == ends(machine, [5]) == ends(machine, [1, 5, 5]) == {}
    assert machine.columns[0] == 0
    assert (machine.child[:, 0] == -1).all()


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
    (shard,) = store.manifest.shards
    sequences = possible([*written_of(rows, {key: k for k, key in enumerate(words)})], LETTERS)
    results, parts = [], []
    for largest in (1 << 20, 60, 36):
        monkeypatch.setattr(module, "_LARGEST", largest)
        module._machine.cache_clear()
        table = search_shard(Prepared(list(words), rows), store, shard.name, LatticeOptions())
        results.append(sorted(map(str, table.to_pylist())))
        parts.append(len(list(module.automata(sequences, LETTERS, 5))))
    assert results[0] == results[1] == results[2]
    assert (parts[0], len(results[0])) == (1, 20)
    assert 1 < parts[1] < parts[2]


def test_too_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 10)
    with raises(families.TOO_LARGE, where="queries", count=2):
        made(Written(0, ("ab", "?", "?"), 1.0, True), Written(1, ("c", "ca"), 1.0, False))
