"""Reduce does what the oracle does, and its bytes do not depend on how the candidates were cut into files."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate.statistics import Tally, from_table, load_statistics, posterior_sums, to_table
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import slot_of
from swsdist.core.types import CANDIDATES, DETECTIONS, QUERY_STATISTICS
from swsdist.io.filesystem import Folder
from swsdist.reduce import spans
from swsdist.reduce.examples import Bucket, Reduced, reduce_examples
from swsdist.reduce.spans import Best
from swsdist.store import parquet
from tests.oracles import reduce as oracle
from tests.support.coded import raises

Row = dict[str, Any]
SHIFT, UNIT = 0.01, 2048


def candidate(query: str, example: int, doc: str, channel: int, end: int, frames: int, cost: int, length: int) -> Row:
    return {
        "slot": slot_of(query),
        "query_id": query,
        "example": example,
        "doc_id": doc,
        "channel": channel,
        "first": max(0, end + 1 - frames),
        "last": end,
        "cost": cost,
        "scale": length * UNIT,
    }


@st.composite
def lists(draw: st.DrawFn) -> list[Row]:
    """Candidates with many ties and overlaps; no two of one example end at the same frame of a document."""
    lengths = {(query, example): draw(st.integers(1, 6)) for query in ("q1", "q2", "ɔ") for example in (1, 2, 7)}
    keys = st.tuples(
        st.sampled_from(sorted(lengths)), st.sampled_from(["a", "b", "é", "aa"]), st.integers(1, 2), st.integers(0, 30)
    )
    rows = []
    for (query, example), doc, channel, end in draw(st.sets(keys, max_size=60)):
        frames, cost = draw(st.integers(1, 12)), draw(st.sampled_from([0, 1, 2, 3, 100, 4095, 2**31, 2**32 - 1]))
        rows.append(candidate(query, example, doc, channel, end, frames, cost, lengths[query, example]))
    return rows


def table(rows: list[Row]) -> pa.Table:
    """One file's candidates, in the order in which search writes them."""
    keys = ("query_id", "example", "doc_id", "channel", "last")
    return pa.Table.from_pylist(sorted(rows, key=lambda row: [row[key] for key in keys]), CANDIDATES)


def reduce(files: list[pa.Table], overlap: float = 0.5, nbest: int = 1000, system: str = "s") -> Reduced:
    rules = {"tick": SHIFT, "overlap": overlap, "nbest": nbest, "system": system}
    bucket = Bucket(**rules, statistics=["cost-sums"])
    for file in files:
        bucket.add(file)
    return bucket.reduced()


OVERLAP = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])


@settings(max_examples=80)
@given(rows=lists(), overlap=OVERLAP, nbest=st.integers(1, 20))
def test_reduce_is_the_oracle(rows: list[Row], overlap: float, nbest: int) -> None:
    found = reduce([table(rows)], overlap, nbest)
    expected = oracle.detections(rows, shift=SHIFT, overlap=overlap, nbest=nbest, system="s")
    assert found.detections.to_pylist() == expected
    assert found.statistics.to_pylist() == oracle.statistics(rows)


@settings(max_examples=50)
@given(rows=lists(), data=st.data(), overlap=OVERLAP, nbest=st.integers(1, 8))
def test_any_split_by_document_gives_the_same_bytes(tmp_path_factory, rows, data, overlap, nbest) -> None:
    """A document lies whole in one file; files may be any number, empty, and in any order."""
    documents = sorted({(row["doc_id"], row["channel"]) for row in rows})
    place = {key: data.draw(st.integers(0, 4)) for key in documents}
    files = [table([row for row in rows if place[row["doc_id"], row["channel"]] == k]) for k in range(5)]
    order = data.draw(st.permutations(range(5)))
    whole = reduce([table(rows)], overlap, nbest)
    cut = reduce([files[k] for k in order], overlap, nbest)
    folder = Folder(str(tmp_path_factory.mktemp("tables")))
    for schema, one, other in (
        (DETECTIONS, whole.detections, cut.detections),
        (QUERY_STATISTICS, whole.statistics, cut.statistics),
    ):
        assert one.schema.equals(schema)
        written = [
            parquet.publish(folder, f"{name}.parquet", [t], schema).sha256 for name, t in (("a", one), ("b", other))
        ]
        assert written[0] == written[1]


@settings(max_examples=60)
@given(rows=lists())
def test_examples_are_best_of(rows: list[Row]) -> None:
    """With every overlap forbidden, what stays at a place is the best score of any example."""
    found = reduce([table(rows)], 0.0).detections.to_pylist()
    for row in oracle.detections(rows, shift=SHIFT, overlap=1.0, nbest=10**6, system="s"):
        over = [
            kept
            for kept in found
            if [kept[k] for k in ("query_id", "doc_id", "channel")]
            == [row[k] for k in ("query_id", "doc_id", "channel")]
            and min(kept["end"], row["end"]) > max(kept["start"], row["start"])
        ]
        assert max(kept["score"] for kept in over) >= row["score"]


def test_nothing() -> None:
    for files in ([], [CANDIDATES.empty_table()], [CANDIDATES.empty_table()] * 2):
        found = reduce(files)
        assert found.detections.schema.equals(DETECTIONS)
        assert found.detections.num_rows == 0
        assert found.statistics.schema.equals(QUERY_STATISTICS)
        assert found.statistics.num_rows == 0


def test_a_detection_in_full() -> None:
    (row,) = reduce([table([candidate("q", 3, "d", 2, 129, 30, 4096, 25)])], system="mine").detections.to_pylist()
    assert row == {
        "query_id": "q",
        "doc_id": "d",
        "channel": 2,
        "start": 1.0,
        "end": 1.3,
        "score": -4096 / (25 * 2048),
        "decision": None,
        "cost": 4096,
        "frames": 30,
        "example": 3,
        "system": "mine",
    }


@pytest.mark.parametrize(("overlap", "ends"), [(0.0, [9]), (0.49, [9]), (0.5, [9, 14]), (1.0, [9, 11, 14])])
def test_overlap_of_the_shorter(overlap: float, ends: list[int]) -> None:
    """10 frames; 8 of which 6 are inside; 10 of which 5 are inside: exactly half is not more than half."""
    rows = [
        candidate("q", 1, "d", 1, 9, 10, 1, 10),
        candidate("q", 1, "d", 1, 11, 8, 2, 10),
        candidate("q", 1, "d", 1, 14, 10, 3, 10),
    ]
    found = reduce([table(rows)], overlap).detections
    assert [round(end / SHIFT) - 1 for end in found["end"].to_pylist()] == ends


def test_what_was_suppressed_suppresses_nothing() -> None:
    """Best first: the middle falls to the first, and so does not take the third with it."""
    rows = [candidate("q", 1, "d", 1, end, 10, cost, 10) for end, cost in ((9, 1), (13, 2), (17, 3))]
    assert reduce([table(rows)], 0.5).detections["cost"].to_pylist() == [1, 3]


def test_no_overlap_between_queries_documents_and_channels() -> None:
    rows = [candidate(query, 1, doc, channel, 9, 10, 1, 10) for query in "pq" for doc in "ab" for channel in (1, 2)]
    assert reduce([table(rows)], 0.0).detections.num_rows == 8


def test_ties_go_by_document_channel_time_and_example() -> None:
    rows = [
        candidate("q", 2, "b", 1, 9, 5, 7, 10),
        candidate("q", 1, "b", 1, 9, 5, 7, 10),
        candidate("q", 1, "b", 1, 29, 5, 7, 10),
        candidate("q", 1, "a", 2, 9, 5, 7, 10),
        candidate("q", 1, "a", 1, 39, 5, 7, 10),
        candidate("q", 1, "c", 1, 9, 5, 6, 10),
    ]
    found = reduce([table(rows[k : k + 1]) for k in (5, 3, 4)] + [table(rows[:3])], 0.5).detections.to_pylist()
    assert [(r["doc_id"], r["channel"], r["end"], r["example"]) for r in found] == [
        ("c", 1, 0.1, 1),
        ("a", 1, 0.4, 1),
        ("a", 2, 0.1, 1),
        ("b", 1, 0.1, 1),
        ("b", 1, 0.3, 1),
    ]
    assert [r["doc_id"] for r in reduce([table(rows)], 0.5, nbest=2).detections.to_pylist()] == ["c", "a"]


def sums(statistics: pa.Table) -> dict[tuple[str, int, int], tuple[int, ...]]:
    return dict(from_table(statistics)["cost-sums"].values)


def test_statistics_of_large_costs_are_exact() -> None:
    """Sums of squares near 2^80 each: no wider integer and no float would hold them; of either sign, and any scale."""
    costs = [(2**40 - k) * (-1) ** (k % 3 == 0) for k in range(1000)]
    rows = [candidate("q", 1, "d", 1, k, 1, cost, 2**20 + k % 2) for k, cost in enumerate(costs)]
    found = sums(reduce([table(rows)]).statistics)
    assert list(found) == [("q", 1, (2**20 + k) * UNIT) for k in range(2)]
    for k, values in enumerate(found.values()):
        assert values == (500, sum(costs[k::2]), sum(cost**2 for cost in costs[k::2]))
    assert found["q", 1, 2**20 * UNIT][2] > 2**88


@settings(max_examples=60)
@given(rows=lists(), cuts=st.integers(0, 59), wanted=st.sampled_from(["cost-sums", "posterior-sums"]))
def test_statistics_add(rows: list[Row], cuts: int, wanted: str) -> None:
    rows = [{**row, "cost": -row["cost"], "scale": 2**32 + row["cost"] % 2} for row in rows]
    (statistic,) = load_statistics([wanted]).values()
    parts = [statistic.of(table(some)) for some in (rows[:cuts], rows[cuts:])]
    whole = statistic.of(table(rows))
    assert parts[0] + parts[1] == parts[1] + parts[0] == whole == whole + Tally(statistic.quantities)
    assert statistic.of(table(rows).take(pa.array(range(len(rows))[::-1], pa.int64()))) == whole
    assert from_table(to_table({wanted: whole})).get(wanted, Tally(statistic.quantities)) == whole
    if wanted == "posterior-sums":
        exact = {
            q: sum(Fraction(-r["cost"], r["scale"]) for r in rows if r["query_id"] == q) for q, _, _ in whole.values
        }
        assert posterior_sums(whole) == {q: float(value) for q, value in exact.items()}


def test_no_statistics_are_made_that_nobody_wants() -> None:
    rows = [candidate("q", 1, "d", 1, 10, 5, 3, 5)]
    found = Bucket(tick=SHIFT, overlap=0.5, nbest=5, system="s").all_of([table(rows)])
    assert found.detections.num_rows == 1
    assert found.statistics.num_rows == 0
    with raises(
        families.UNKNOWN_NAME, kind="statistic of candidates", name="cost-sum", meant="; did you mean cost-sums?"
    ):
        Bucket(tick=SHIFT, overlap=0.5, nbest=5, system="s", statistics=["cost-sum"])


def posteriors(rows: list[Row]) -> list[Row]:
    """The same spans with posteriors, some of them of another scale, some 0 and some 1."""
    of = {0: 0, 1: 2**40, 2: 2**39, 3: 1, 100: 2**38 + 7, 4095: 2**40 // 3, 2**31: 2**20, 2**32 - 1: 2**37}
    scales = {True: (2**40, 1), False: (2**41, 2)}
    made_rows = []
    for row in rows:
        scale, times = scales[row["last"] % 2 == 0]
        made_rows.append({**row, "cost": -of[row["cost"]] * times, "scale": scale})
    return made_rows


@settings(max_examples=80)
@given(rows=lists(), data=st.data(), overlap=OVERLAP, nbest=st.integers(1, 20))
def test_sums_of_posteriors_are_the_oracle_however_cut(rows, data, overlap, nbest) -> None:
    rows = posteriors(rows)
    documents = sorted({(row["doc_id"], row["channel"]) for row in rows})
    place = {key: data.draw(st.integers(0, 2)) for key in documents}
    files = [table([row for row in rows if place[row["doc_id"], row["channel"]] == k]) for k in range(3)]
    rules = {"overlap": overlap, "nbest": nbest, "system": "s"}
    found = Bucket(tick=SHIFT, merge="sum", statistics=["posterior-sums"], **rules).all_of(files)
    assert found.detections.to_pylist() == oracle.summed(rows, shift=SHIFT, **rules)
    scores = found.detections["score"].to_pylist()
    assert all(0 <= score <= 1 for score in scores)
    total = posterior_sums(from_table(found.statistics)["posterior-sums"]) if rows else {}
    assert set(total) == {row["query_id"] for row in rows}


def test_what_is_no_posterior_is_not_summed() -> None:
    for cost, scale in ((1, 5), (-6 * UNIT, 5)):
        rows = [candidate("q", 1, "d", 1, 10, 5, cost, scale)]
        with pytest.raises(DataError, match="scores of candidates are not posteriors"):
            Bucket(tick=SHIFT, overlap=0.5, nbest=5, system="s", merge="sum").all_of([table(rows)])
        with pytest.raises(DataError, match="1 of 1 scores of candidates are not posteriors"):
            load_statistics(["posterior-sums"])["posterior-sums"].of(table(rows))


@settings(max_examples=40)
@given(rows=lists(), nbest=st.integers(1, 8), least=st.integers(0, 9))
def test_when_the_best_are_chosen_does_not_matter(rows: list[Row], nbest: int, least: int) -> None:
    files = [table([row for row in rows if row["doc_id"] == doc]) for doc in ("a", "b", "é", "aa")]
    whole = reduce(files, 0.5, nbest).detections
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Best, "LEAST", least)
        patch.setattr(spans, "_PIECE", 3)
        assert reduce(files, 0.5, nbest).detections.equals(whole)


def test_nor_does_it_for_means() -> None:
    """Where some queries have one example and some several, each file is added in two parts."""
    drawn = random.Random(1)
    files = [
        table(
            [
                candidate(query, example, f"d{k}-{d}", 1, drawn.randrange(10, 1000), 10, drawn.randrange(1, 10**6), 5)
                for query, example in (("a", 1), ("b", 1), ("b", 2))
                for d in range(6)
            ]
        )
        for k in range(4)
    ]
    rules: Any = {"tick": SHIFT, "overlap": 0.5, "nbest": 3, "system": "s", "statistics": ["cost-sums"]}
    whole = reduce_examples("mean", lambda: files, **rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Best, "LEAST", 0)
        again = reduce_examples("mean", lambda: files, **rules)
    assert again.detections.equals(whole.detections)
    assert again.statistics.equals(whole.statistics)


def test_names_need_not_fit_into_one_array_of_arrow() -> None:
    """Chunks of a column are coded one by one: of more than 2 GB of strings Arrow makes no array."""
    parts = [table([candidate(f"q{k}", 1, f"d{k % 2}", 1, 10, 5, k, 5)]) for k in range(4)]
    chunked = pa.concat_tables(parts)
    assert chunked["doc_id"].num_chunks == 4
    assert reduce([chunked]).detections.equals(reduce([chunked.combine_chunks()]).detections)


def test_statistics_are_over_what_came_in() -> None:
    """Before overlaps were removed and the best kept."""
    rows = [candidate("q", 1, "d", 1, k, 5, k + 1, 5) for k in range(10)]
    found = reduce([table(rows)], 0.0, nbest=1)
    assert found.detections.num_rows == 1
    assert sums(found.statistics) == {("q", 1, 5 * UNIT): (10, 55, 385)}
