"""Several examples of a query: the mean is the oracle's, however cut and numbered; of one example all ways are one."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.interface import Options
from swsdist.calibrate.steps.norms import QNorm
from swsdist.config import config_from_dict
from swsdist.core.codes import config as config_codes
from swsdist.core.fingerprint import slot_of
from swsdist.core.types import CANDIDATES, DETECTIONS, QUERY_STATISTICS
from swsdist.io.filesystem import Folder
from swsdist.reduce.examples import FINENESS, Bucket, Reduced, reduce_examples
from swsdist.store import parquet
from tests.oracles import examples as oracle
from tests.support.coded import raises

Row = dict[str, Any]
SHIFT, UNIT = 0.01, 2048
COSTS = (0, 1, 2, 3, 100, 4095, 2**31, 2**32 - 1)
KEYS = ("query_id", "example", "doc_id", "channel", "last")


def candidate(query: str, example: int, doc: str, end: int, frames: int, cost: int, length: int = 10) -> Row:
    names = ("slot", "query_id", "example", "doc_id", "channel", "first", "last", "cost", "scale")
    first = max(0, end + 1 - frames)
    return dict(zip(names, (slot_of(query), query, example, doc, 1, first, end, cost, length * UNIT), strict=True))


@st.composite
def lists(draw: st.DrawFn, examples: tuple[int, ...] = (1, 2, 7), costs: tuple[int, ...] = COSTS) -> list[Row]:
    """Candidates with many ties and overlaps; no two of one example end at the same frame of a document."""
    lengths = {(query, example): draw(st.integers(1, 6)) for query in ("q1", "q2", "ɔ") for example in examples}
    keys = st.tuples(st.sampled_from(sorted(lengths)), st.sampled_from(["a", "b", "é"]), st.integers(0, 30))
    rows = []
    for (query, example), doc, end in draw(st.sets(keys, max_size=60)):
        frames, cost = draw(st.integers(1, 12)), draw(st.sampled_from(costs))
        rows.append(candidate(query, example, doc, end, frames, cost, lengths[query, example]))
    return rows


def table(rows: list[Row]) -> pa.Table:
    """One file's candidates, in the order in which search writes them."""
    return pa.Table.from_pylist(sorted(rows, key=lambda row: [row[key] for key in KEYS]), CANDIDATES)


def reduce(
    files: list[pa.Table], how: Literal["best", "mean", "template"] = "mean", overlap: float = 0.5, nbest: int = 1000
) -> Reduced:
    rules = {"tick": SHIFT, "overlap": overlap, "nbest": nbest, "system": "s"}
    return reduce_examples(how, lambda: files, **rules, statistics=["cost-sums"])


OVERLAP = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])


@given(rows=lists(), overlap=OVERLAP, nbest=st.integers(1, 20))
def test_the_mean_is_the_oracle(rows: list[Row], overlap: float, nbest: int) -> None:
    found = reduce([table(rows)], "mean", overlap, nbest)
    rules = {"shift": SHIFT, "overlap": overlap, "nbest": nbest, "system": "s", "fineness": FINENESS}
    detections, statistics = oracle.means(rows, **rules)
    assert found.detections.to_pylist() == detections
    assert found.statistics.to_pylist() == statistics


@settings(max_examples=50)
@given(rows=lists(), data=st.data(), overlap=OVERLAP, nbest=st.integers(1, 8))
def test_any_split_by_document_gives_the_same_bytes(tmp_path_factory, rows, data, overlap, nbest) -> None:
    place = {doc: data.draw(st.integers(0, 3)) for doc in sorted({row["doc_id"] for row in rows})}
    files = [table([row for row in rows if place[row["doc_id"]] == k]) for k in range(4)]
    order = data.draw(st.permutations(range(4)))
    whole = reduce([table(rows)], "mean", overlap, nbest)
    cut = reduce([files[k] for k in order], "mean", overlap, nbest)
    folder = Folder(str(tmp_path_factory.mktemp("tables")))
    pairs = (DETECTIONS, whole.detections, cut.detections), (QUERY_STATISTICS, whole.statistics, cut.statistics)
    for schema, *both in pairs:
        one, other = (parquet.publish(folder, f"{k}.parquet", [t], schema).sha256 for k, t in enumerate(both))
        assert one == other


@settings(max_examples=50)
@given(rows=lists((3,)), overlap=OVERLAP, nbest=st.integers(1, 8))
def test_one_example_is_the_best_of_one(rows: list[Row], overlap: float, nbest: int) -> None:
    rules = {"tick": SHIFT, "overlap": overlap, "nbest": nbest, "system": "s"}
    best = Bucket(**rules, statistics=["cost-sums"]).all_of([table(rows)])
    for how in ("best", "mean", "template"):
        found = reduce([table(rows)], how, overlap, nbest)
        assert found.detections.equals(best.detections)
        assert found.statistics.equals(best.statistics)


@settings(max_examples=50)
@given(rows=lists(), numbers=st.permutations([1, 2, 7]), overlap=OVERLAP)
def test_numbers_of_examples_do_not_matter(rows: list[Row], numbers: list[int], overlap: float) -> None:
    """But for which of equals is said to have found a place. Length goes with the example, as it does in a search."""
    other = dict(zip((1, 2, 7), numbers, strict=True))
    one = reduce([table(rows)], "mean", overlap)
    two = reduce([table([{**row, "example": other[row["example"]]} for row in rows])], "mean", overlap)
    assert one.detections.drop_columns(["cost", "example"]).equals(two.detections.drop_columns(["cost", "example"]))
    means = [[row for row in found.statistics.to_pylist() if row["example"] == 0] for found in (one, two)]
    assert means[0] == means[1]


@settings(max_examples=50)
@given(rows=lists((1,), COSTS[:6]), times=st.integers(2, 4), overlap=st.sampled_from([0.0, 0.5, 0.9]))
def test_the_same_example_several_times_finds_the_same_places(rows: list[Row], times: int, overlap: float) -> None:
    again = [{**row, "example": row["example"] + k} for row in rows for k in range(times)]
    columns = ["query_id", "doc_id", "channel", "start", "end", "cost", "frames", "example"]
    one = reduce([table(rows)], "best", overlap).detections.select(columns).to_pylist()
    assert reduce([table(again)], "mean", overlap).detections.select(columns).to_pylist() == one


def test_a_mean_in_full() -> None:
    """Example 1 has scores -1 and -3 (mean -2, deviation 1), example 2 -2 and -6 (-4, 2), example 3 -5 alone."""
    unit = 1 << 11
    rows = [
        candidate("q", 1, "d", 29, 10, 10 * unit),
        candidate("q", 1, "e", 29, 10, 30 * unit),
        candidate("q", 2, "d", 30, 10, 20 * unit),
        candidate("q", 2, "d", 99, 10, 60 * unit),
        candidate("q", 3, "e", 59, 10, 50 * unit),
    ]
    found = reduce([table(rows)])
    names = ("doc_id", "end", "score", "cost", "example")
    shown = [tuple(row[name] for name in names) for row in found.detections.to_pylist()]
    assert shown == [
        ("d", 0.3, (1 + 1 + 0) / 3, 10 * unit, 1),  # example 3 found nothing there: its mean
        ("e", 0.6, 0.0, 50 * unit, 3),
        ("d", 1.0, -1 / 3, 60 * unit, 2),
        ("e", 0.3, -1 / 3, 30 * unit, 1),
    ]
    sums = (4, -(2 + 0 - 1 - 1) * FINENESS, (4 + 0 + 1 + 1) * FINENESS * FINENESS)
    tallies = from_table(found.statistics)
    assert {name: tally.values for name, tally in tallies.items()} == {"cost-sums": {("q", 0, 3 * FINENESS): sums}}
    normed = QNorm(Options()).apply(found.detections, None, tallies, None).tolist()
    assert normed == pytest.approx([2 / 1.5**0.5, 0.0, -1 / 1.5**0.5, -1 / 1.5**0.5], abs=1e-12)


def test_of_an_example_the_best_at_a_place_counts() -> None:
    rows = [candidate("q", 1, "d", end, 10, cost) for end, cost in ((9, 0), (11, 5), (50, 10))]
    rows += [candidate("q", 2, "d", end, 10, cost) for end, cost in ((8, 4), (10, 2), (90, 9))]
    found = reduce([table(rows)]).detections.to_pylist()
    assert [(row["cost"], row["example"]) for row in found[:1]] == [(0, 1)]
    assert len(found) == 3
    first, second = (-5 / -(50**0.5 / 3**0.5), -3 / -(26**0.5 / 3**0.5))
    assert found[0]["score"] == pytest.approx((first + second) / 2, abs=1e-6)


def test_nothing() -> None:
    for files in ([], [CANDIDATES.empty_table()] * 2):
        found = reduce(files)
        assert found.detections.schema.equals(DETECTIONS)
        assert found.statistics.schema.equals(QUERY_STATISTICS)
        assert found.detections.num_rows == found.statistics.num_rows == 0


def test_the_bytes_of_a_mean_are_held() -> None:
    """When this fails and you meant it, raise `version` of the stage `reduce`."""
    state, rows = 1, {}
    for _ in range(600):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64  # Knuth's MMIX generator
        draw = state >> 33
        key = f"q{draw % 3}", 1 + draw // 3 % 3, f"d{draw // 9 % 8}", draw // 72 % 400
        rows[key] = candidate(*key, 20 + draw % 17, 20_000 + draw % 9973, 30 + key[1])
    found = reduce([table(list(rows.values()))], nbest=50)
    names = ("query_id", "example", "query_frames", "candidates", "cost_sum", "cost_square_sum")
    statistics = [
        dict(zip(names, (query, example, scale // UNIT, count, *map(str, sums)), strict=True))
        for (query, example, scale), (count, *sums) in sorted(from_table(found.statistics)["cost-sums"].values.items())
    ]
    text = json.dumps([found.detections.to_pylist(), statistics])
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "08e0c330876464afb1ac0acee9424f2de4199e91a54b56921227c3240e55a25c"
    )


def test_configs() -> None:
    least = {"run": "r", "corpus": {"documents": "d.csv", "examples": "all"}}
    for how in ("best", "mean", "template"):
        config = config_from_dict({**least, "search": {"examples": how}}, ".")
        # The search of examples is the same for their best and their mean; their template is searched anew.
        assert config.search.matters().get("examples") == ("template" if how == "template" else None)
        # All three are taken where there is one example.
        config_from_dict({**least, "corpus": {"documents": "d.csv"}, "search": {"examples": how}}, ".")
    with raises(config_codes.EXAMPLES_CONFLICT, examples="mean", needs="reduce.overlap below 1"):
        config_from_dict({**least, "search": {"examples": "mean"}, "reduce": {"overlap": 1}}, ".")
    with raises(config_codes.EXAMPLES_CONFLICT, examples="mean", needs="calibrate.steps: [q-norm, ...]"):
        config_from_dict({**least, "search": {"examples": "mean"}, "calibrate": {"steps": []}}, ".")
