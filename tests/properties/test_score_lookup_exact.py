"""The look-up of terms against the programs' rules, spelled out token by token; KWSEval's alignment against every matching."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.types import DETECTIONS, LEXEMES, REFERENCES, TERMS
from swsdist.score.align import align
from swsdist.score.trials import look_up
from tests.oracles.score import (
    Detection,
    Reference,
    Word,
    best_gain,
    kwseval_kernel,
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
def test_every_occurrence(
    conventions: Any, spoken: list[Any], texts: list[list[str]], gap: float, ordered: bool
) -> None:
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


times = st.integers(0, 24).map(lambda n: n / 4) | st.integers(0, 600).map(lambda n: n / 100)
spans = st.builds(
    lambda start, length: (start, round(start + length, 4)), times, st.sampled_from([0.01, 0.25, 0.86, 2.0])
)
scores = st.sampled_from([-3.0, 0.0, 0.5, 0.500001, 2.0])


@given(st.lists(st.tuples(spans, scores), max_size=5), st.lists(spans, max_size=4), st.sampled_from([0.0, 0.5, 3.0]))
@settings(max_examples=200)
def test_kwseval_takes_the_best_of_all_matchings(found: list[Any], true: list[Any], tolerance: float) -> None:
    key = {"query_id": "q", "doc_id": "d", "channel": 1}
    dets = [key | {"start": span[0], "end": span[1], "score": score} for span, score in found]
    refs = [key | {"start": span[0], "end": span[1]} for span in true]
    table = align(
        pa.Table.from_pylist(dets, DETECTIONS),
        pa.Table.from_pylist(refs, REFERENCES),
        tolerance=tolerance,
        low=None,
        high=None,
        conventions="kwseval",
    )
    low, high = (min((s for _, s in found), default=0.0), max((s for _, s in found), default=0.0))
    limits = {"tolerance": tolerance, "low": low, "high": high}
    gain = Fraction(0)
    for row in table.to_pylist():
        if row["start"] is not None and row["ref_start"] is not None:
            pair = Detection(row["start"], row["end"], row["score"]), Reference(row["ref_start"], row["ref_end"])
            value = kwseval_kernel(*pair, **limits)
            assert value is not None
            gain += Fraction(value) + 1
    plain = [Detection(*span, score) for span, score in found], [Reference(*span) for span in true]
    assert abs(gain - best_gain(*plain, **limits, weigh=kwseval_kernel)) < 1e-14
