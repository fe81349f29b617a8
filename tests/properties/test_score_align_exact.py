"""The fast alignment against every matching, and its indifference to rows and parts; the look-up by the programs' rules."""

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.types import DETECTIONS, LEXEMES, REFERENCES, TERMS
from swsdist.score.align import align, score_limits
from swsdist.score.trials import look_up
from tests.oracles import score as oracle
from tests.oracles.score import Detection, Reference, Word, best_gain, kernel, kwseval_kernel, matchings

# A coarse grid of times and few scores: overlaps, borders, duplicates and ties are the rule.
times = st.integers(0, 24).map(lambda n: n / 4) | st.integers(0, 600).map(lambda n: n / 100)
durations = st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.86, 2.0])
scores = st.sampled_from([-3.0, -0.0, 0.0, 0.5, 0.5001, 2.0])
tolerances = st.sampled_from([0.0, 0.25, 0.5, 3.0])
keys = st.tuples(st.sampled_from("pq"), st.sampled_from("de"), st.integers(1, 2))
spans = st.builds(lambda start, length: (start, round(start + length, 4)), times, durations)
found_rows = st.tuples(spans, scores, st.sampled_from([True, False, None]))


def of_keys(rows: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(("query_id", "doc_id", "channel"), key, strict=True)) for key, *_ in rows]


def detections(rows: list[tuple[Any, Any]]) -> pa.Table:
    values = [{"start": span[0], "end": span[1], "score": score, "decision": d} for _, (span, score, d) in rows]
    return pa.Table.from_pylist([key | row for key, row in zip(of_keys(rows), values, strict=True)], DETECTIONS)


def references(rows: list[tuple[Any, Any]]) -> pa.Table:
    values = [{"start": start, "end": end} for _, (start, end) in rows]
    return pa.Table.from_pylist([key | row for key, row in zip(of_keys(rows), values, strict=True)], REFERENCES)


ONE = ("q", "d", 1)


@pytest.mark.parametrize("conventions", ["stdeval", "kwseval"])
@given(st.lists(found_rows, max_size=5), st.lists(spans, max_size=4), tolerances)
@settings(max_examples=300)
def test_the_best_of_all_matchings(conventions, found, true, tolerance) -> None:
    low, high = score_limits([score for _, score, _ in found])
    limits = {"tolerance": tolerance, "low": low, "high": high}
    weigh = {"stdeval": kernel, "kwseval": kwseval_kernel}[conventions]
    given_limits = limits if conventions == "stdeval" else {"tolerance": tolerance, "low": None, "high": None}
    pair = detections([(ONE, row) for row in found]), references([(ONE, row) for row in true])
    rows = align(*pair, **given_limits, conventions=conventions).to_pylist()
    pairs = [row for row in rows if row["start"] is not None and row["ref_start"] is not None]
    gain = Fraction(0)
    for row in pairs:
        detection = Detection(row["start"], row["end"], row["score"])
        value = weigh(detection, Reference(row["ref_start"], row["ref_end"]), **limits)
        assert value is not None
        gain += Fraction(value) + 1
    plain = [Detection(*span, score) for span, score, _ in found], [Reference(*span) for span in true]
    assert abs(gain - best_gain(*plain, **limits, weigh=weigh)) < 1e-14
    assert len(pairs) == max(len(chosen) for _, chosen in matchings(*plain, **limits, weigh=weigh))
    # Every row of either side is there once.
    assert sorted(r["start"] for r in rows if r["start"] is not None) == sorted(span[0] for span, _, _ in found)
    assert sorted(r["ref_start"] for r in rows if r["ref_start"] is not None) == sorted(span[0] for span in true)


@given(
    st.lists(st.tuples(keys, found_rows), max_size=25),
    st.lists(st.tuples(keys, spans), max_size=15),
    tolerances,
    st.randoms(use_true_random=False),
)
@settings(max_examples=150)
def test_order_and_parts_do_not_show(found: list[Any], true: list[Any], tolerance: float, random: Any) -> None:
    low, high = score_limits([score for _, (_, score, _) in found])
    limits = {"tolerance": tolerance, "low": low, "high": high}
    whole = align(detections(found), references(true), **limits)
    order = [
        (*[row[name] for name in ("query_id", "doc_id", "channel")], next(t for t in times if t is not None))
        for row in whole.to_pylist()
        for times in [(row["start"], row["ref_start"])]
    ]
    assert order == sorted(order)

    shuffled = random.sample(found, len(found)), random.sample(true, len(true))
    assert align(detections(shuffled[0]), references(shuffled[1]), **limits).equals(whole)

    def part(key: Any) -> pa.Table:
        mine = ([row for row in rows if row[0] == key] for rows in (found, true))
        return align(*(make(rows) for make, rows in zip((detections, references), mine, strict=True)), **limits)

    parts = [part(key) for key in sorted({key for key, _ in [*found, *true]})]
    assert not parts or pa.concat_tables(parts).combine_chunks().equals(whole.combine_chunks())


# The look-up of terms, token by token

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
    find = getattr(oracle, f"{conventions}_occurrences")
    lowered = [[word.lower() for word in text] for text in texts]
    expected = []
    for k, text in enumerate(lowered):
        # In sorted order of ids, STDEval gives the later ids of a text its occurrences once more each time.
        times = 1 + lowered[:k].count(text) if conventions == "stdeval" else 1
        for (doc, _), chain in chains.items():
            expected += [(f"T{k}", doc, chain[a].start, chain[b].end) for a, b in find(text, chain, gap)] * times
    assert sorted((row["query_id"], row["doc_id"], row["start"], row["end"]) for row in found) == sorted(expected)
