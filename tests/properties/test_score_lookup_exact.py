"""The look-up of terms against the programs' rules, spelled out token by token."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.types import LEXEMES, TERMS
from swsdist.score.trials import look_up
from tests.oracles.score import (
    Word,
    kwseval_occurrences,
    stdeval_occurrences,
)

words = st.tuples(
    st.integers(0, 40).map(lambda n: n / 4),
    st.sampled_from([0.1, 0.25, 0.26004, 0.5]),
    st.sampled_from(["na", "Na", "be", "BE", "um"]),
    st.sampled_from(["lex", "fp", "frag", "FP"]),
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["d", "e"]),
)
terms = st.lists(
    st.lists(st.sampled_from(["na", "be", "um", "NA", "zz"]), min_size=1, max_size=4), min_size=1, max_size=4
)


@pytest.mark.parametrize("conventions", ["stdeval", "kwseval"])
@given(
    spoken=st.lists(words, max_size=25), texts=terms, gap=st.sampled_from([0.0, 0.25, 0.5, 3.0]), ordered=st.booleans()
)
@settings(max_examples=250)
def test_every_occurrence(conventions, spoken, texts, gap, ordered) -> None:
    spoken = sorted(spoken) if ordered else spoken
    rows = [(doc, 1, start, length, word, kind, who) for start, length, word, kind, who, doc in spoken]
    lexemes = pa.Table.from_pylist([dict(zip(LEXEMES.names, row, strict=True)) for row in rows], LEXEMES)
    listed = pa.table([[f"T{k}" for k in range(len(texts))], [" ".join(text) for text in texts]], schema=TERMS)
    found = look_up(listed, lexemes, word_gap=gap, conventions=conventions).references.to_pylist()

    chains: dict[tuple[str, str], list[Word]] = {}
    for start, length, word, kind, who, doc in spoken:
        chains.setdefault((doc, who), []).append(Word(start, float(f"{start + length:.4f}"), word, kind))
    find = stdeval_occurrences if conventions == "stdeval" else kwseval_occurrences
    lowered = [[word.lower() for word in text] for text in texts]
    expected = []
    for k, text in enumerate(lowered):
        # In sorted order of ids, STDEval gives the later ids of a text its occurrences once more each time.
        times = 1 + lowered[:k].count(text) if conventions == "stdeval" else 1
        for (doc, _), chain in chains.items():
            expected += [(f"T{k}", doc, chain[a].start, chain[b].end) for a, b in find(text, chain, gap)] * times
    assert sorted((row["query_id"], row["doc_id"], row["start"], row["end"]) for row in found) == sorted(expected)
