"""Reduce does what the oracle does, of one example and of the mean of several, and its bytes do not depend on how the
candidates were cut into files; of one example all ways are one.
"""

import hashlib
import json
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate.statistics import Tally, from_table, load_statistics, posterior_sums, to_table
from swsdist.calibrate.steps.interface import Options
from swsdist.calibrate.steps.norms import QNorm
from swsdist.config import config_from_dict
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import slot_of
from swsdist.core.types import CANDIDATES, DETECTIONS, QUERY_STATISTICS
from swsdist.io.filesystem import Folder
from swsdist.reduce import spans
from swsdist.reduce.examples import FINENESS, Bucket, Reduced, reduce_examples
from swsdist.reduce.spans import Best
from swsdist.store import parquet
from tests.oracles import examples as several
from tests.oracles import parts as parts_oracle
from tests.oracles import reduce as oracle
from tests.support.coded import raises

Row = dict[str, Any]
SHIFT, UNIT = 0.01, 2048
COSTS = (0, 1, 2, 3, 100, 4095, 2**31, 2**32 - 1)
KEYS = ("query_id", "example", "doc_id", "channel", "last")


def candidate(
    query: str, example: int, doc: str, end: int, frames: int, cost: int, length: int, channel: int = 1
) -> Row:
    names = ("slot", "query_id", "example", "doc_id", "channel", "first", "last", "cost", "scale")
    first = max(0, end + 1 - frames)
    values = (slot_of(query), query, example, doc, channel, first, end, cost, length * UNIT)
    return dict(zip(names, values, strict=True))


@st.composite
def lists(draw: st.DrawFn, examples: tuple[int, ...] = (1, 2, 7), costs: tuple[int, ...] = COSTS) -> list[Row]:
    """Candidates with many ties and overlaps; no two of one example end at the same frame of a document."""
    lengths = {(query, example): draw(st.integers(1, 6)) for query in ("q1", "q2", "ɔ") for example in examples}
    places = st.sampled_from([("a", 1), ("a", 2), ("b", 1), ("é", 1), ("aa", 2)])
    keys = st.tuples(st.sampled_from(sorted(lengths)), places, st.integers(0, 30))
    rows = []
    for (query, example), (doc, channel), end in draw(st.sets(keys, max_size=60)):
        frames, cost = draw(st.integers(1, 12)), draw(st.sampled_from(costs))
        rows.append(candidate(query, example, doc, end, frames, cost, lengths[query, example], channel))
    return rows


def table(rows: list[Row]) -> pa.Table:
    """One file's candidates, in the order in which search writes them."""
    return pa.Table.from_pylist(sorted(rows, key=lambda row: [row[key] for key in KEYS]), CANDIDATES)


def files_of(rows: list[Row], data: st.DataObject) -> list[pa.Table]:
    """A document lies whole in one file; files may be empty, and in any order."""
    place = {key: data.draw(st.integers(0, 4)) for key in sorted({(row["doc_id"], row["channel"]) for row in rows})}
    files = [table([row for row in rows if place[row["doc_id"], row["channel"]] == k]) for k in range(5)]
    return [files[k] for k in data.draw(st.permutations(range(5)))]


def reduce(files: list[pa.Table], overlap: float = 0.5, nbest: int = 1000, how: Any = None) -> Reduced:
    rules: Any = {"tick": SHIFT, "overlap": overlap, "nbest": nbest, "system": "s", "statistics": ["cost-sums"]}
    if how:
        return reduce_examples(how, lambda: files, **rules)
    bucket = Bucket(**rules)
    for file in files:
        bucket.add(file)
    return bucket.reduced()


OVERLAP = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])
either_way = pytest.mark.parametrize("how", [None, "mean"])


@either_way
@settings(max_examples=80)
@given(rows=lists(), overlap=OVERLAP, nbest=st.integers(1, 20))
def test_it_is_the_oracle(how: str | None, rows: list[Row], overlap: float, nbest: int) -> None:
    found = reduce([table(rows)], overlap, nbest, how)
    rules: Any = {"shift": SHIFT, "overlap": overlap, "nbest": nbest, "system": "s"}
    if how:
        detections, statistics = several.means(rows, **rules, fineness=FINENESS)
    else:
        detections, statistics = oracle.detections(rows, **rules), oracle.statistics(rows)
    assert found.detections.to_pylist() == detections
    assert found.statistics.to_pylist() == statistics


@either_way
@settings(max_examples=50)
@given(rows=lists(), data=st.data(), overlap=OVERLAP, nbest=st.integers(1, 8))
def test_any_split_by_document_gives_the_same_bytes(tmp_path_factory, how, rows, data, overlap, nbest) -> None:
    whole, cut = (reduce(files, overlap, nbest, how) for files in ([table(rows)], files_of(rows, data)))
    folder = Folder(str(tmp_path_factory.mktemp("tables")))
    pairs = (DETECTIONS, whole.detections, cut.detections), (QUERY_STATISTICS, whole.statistics, cut.statistics)
    for schema, *both in pairs:
        assert both[0].schema.equals(schema)
        one, other = (parquet.publish(folder, f"{k}.parquet", [t], schema).sha256 for k, t in enumerate(both))
        assert one == other


@settings(max_examples=80)
@given(rows=lists((4, 5, 6, 7, 12, 14)), data=st.data(), overlap=OVERLAP, nbest=st.integers(1, 20))
def test_scores_of_parts_are_the_oracle_however_documents_are_split(rows, data, overlap, nbest) -> None:
    rows = [{**row, "scale": (12 if row["example"] % 4 < 2 else 8) * UNIT} for row in rows]
    once, cut = (reduce(files, overlap, nbest, "parts") for files in ([table(rows)], files_of(rows, data)))
    rules: Any = {"shift": SHIFT, "overlap": overlap, "nbest": nbest, "system": "s", "fineness": FINENESS}
    detections, statistics = parts_oracle.best_of_parts(rows, **rules)
    assert once.detections.to_pylist() == detections
    assert once.statistics.to_pylist() == statistics
    assert cut.detections.equals(once.detections)
    assert cut.statistics.equals(once.statistics)


@either_way
def test_nothing(how: str | None) -> None:
    for files in ([], [CANDIDATES.empty_table()], [CANDIDATES.empty_table()] * 2):
        found = reduce(files, how=how)
        assert found.detections.schema.equals(DETECTIONS)
        assert found.statistics.schema.equals(QUERY_STATISTICS)
        assert found.detections.num_rows == found.statistics.num_rows == 0


def test_exactly_half_is_not_more_than_half() -> None:
    """Of the shorter: 10 frames; 8 of which 6 are inside; 10 of which 5 are inside."""
    rows = [candidate("q", 1, "d", *place, 10) for place in ((9, 10, 1), (11, 8, 2), (14, 10, 3))]
    for overlap, costs in ((0.0, [1]), (0.49, [1]), (0.5, [1, 3]), (1.0, [1, 2, 3])):
        assert reduce([table(rows)], overlap).detections["cost"].to_pylist() == costs


def test_ties_go_by_document_channel_time_and_example() -> None:
    places = [(2, "b", 1, 9, 7), (1, "b", 1, 9, 7), (1, "b", 1, 29, 7)]
    places += [(1, "a", 2, 9, 7), (1, "a", 1, 39, 7), (1, "c", 1, 9, 6)]
    rows = [candidate("q", example, doc, end, 5, cost, 10, channel) for example, doc, channel, end, cost in places]
    found = reduce([table(rows[k : k + 1]) for k in (5, 3, 4)] + [table(rows[:3])], 0.5).detections.to_pylist()
    wanted = [("c", 1, 0.1, 1), ("a", 1, 0.4, 1), ("a", 2, 0.1, 1), ("b", 1, 0.1, 1), ("b", 1, 0.3, 1)]
    assert [(r["doc_id"], r["channel"], r["end"], r["example"]) for r in found] == wanted
    assert [r["doc_id"] for r in reduce([table(rows)], 0.5, nbest=2).detections.to_pylist()] == ["c", "a"]


def sums(statistics: pa.Table) -> dict[tuple[str, int, int], tuple[int, ...]]:
    return dict(from_table(statistics)["cost-sums"].values)


def test_statistics_of_large_costs_are_exact() -> None:
    """Sums of squares near 2^80 each: no wider integer and no float would hold them; of either sign, and any scale."""
    costs = [(2**40 - k) * (-1) ** (k % 3 == 0) for k in range(1000)]
    rows = [candidate("q", 1, "d", k, 1, cost, 2**20 + k % 2) for k, cost in enumerate(costs)]
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
        exact: dict[str, Fraction] = {}
        for row in rows:
            exact[row["query_id"]] = exact.get(row["query_id"], Fraction(0)) + Fraction(-row["cost"], row["scale"])
        assert posterior_sums(whole) == {query: float(value) for query, value in exact.items()}


def test_no_statistics_are_made_that_nobody_wants() -> None:
    rows = [candidate("q", 1, "d", 10, 5, 3, 5)]
    found = Bucket(tick=SHIFT, overlap=0.5, nbest=5, system="s").all_of([table(rows)])
    assert found.detections.num_rows == 1
    assert found.statistics.num_rows == 0
    with raises(families.UNKNOWN_NAME, kind="statistic of candidates", name="cost-sum"):
        Bucket(tick=SHIFT, overlap=0.5, nbest=5, system="s", statistics=["cost-sum"])


def posteriors(rows: list[Row]) -> list[Row]:
    """The same spans with posteriors, some of them of another scale, some 0 and some 1."""
    of = {0: 0, 1: 2**40, 2: 2**39, 3: 1, 100: 2**38 + 7, 4095: 2**40 // 3, 2**31: 2**20, 2**32 - 1: 2**37}
    return [{**row, "cost": -of[row["cost"]] * k, "scale": 2**40 * k} for row in rows for k in [1 + row["last"] % 2]]


@settings(max_examples=80)
@given(rows=lists(), data=st.data(), overlap=OVERLAP, nbest=st.integers(1, 20))
def test_sums_of_posteriors_are_the_oracle_however_cut(rows, data, overlap, nbest) -> None:
    rows = posteriors(rows)
    files = files_of(rows, data)
    rules = {"overlap": overlap, "nbest": nbest, "system": "s"}
    found = Bucket(tick=SHIFT, merge="sum", statistics=["posterior-sums"], **rules).all_of(files)
    assert found.detections.to_pylist() == oracle.summed(rows, shift=SHIFT, **rules)
    scores = found.detections["score"].to_pylist()
    assert all(0 <= score <= 1 for score in scores)
    total = posterior_sums(from_table(found.statistics)["posterior-sums"]) if rows else {}
    assert set(total) == {row["query_id"] for row in rows}


def test_what_is_no_posterior_is_not_summed() -> None:
    for cost, scale in ((1, 5), (-6 * UNIT, 5)):
        rows = [candidate("q", 1, "d", 10, 5, cost, scale)]
        with pytest.raises(DataError, match="scores of candidates are not posteriors"):
            Bucket(tick=SHIFT, overlap=0.5, nbest=5, system="s", merge="sum").all_of([table(rows)])
        with pytest.raises(DataError, match="1 of 1 scores of candidates are not posteriors"):
            load_statistics(["posterior-sums"])["posterior-sums"].of(table(rows))


@either_way
@settings(max_examples=40)
@given(rows=lists(), nbest=st.integers(1, 8), least=st.integers(0, 9))
def test_when_the_best_are_chosen_does_not_matter(how: str | None, rows: list[Row], nbest: int, least: int) -> None:
    files = [table([row for row in rows if row["doc_id"] == doc]) for doc in ("a", "b", "é", "aa")]
    whole = reduce(files, 0.5, nbest, how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Best, "LEAST", least)
        patch.setattr(spans, "_PIECE", 3)
        again = reduce(files, 0.5, nbest, how)
    assert again.detections.equals(whole.detections)
    assert again.statistics.equals(whole.statistics)


def test_names_need_not_fit_into_one_array_of_arrow() -> None:
    """Chunks of a column are coded one by one: of more than 2 GB of strings Arrow makes no array."""
    parts = [table([candidate(f"q{k}", 1, f"d{k % 2}", 10, 5, k, 5)]) for k in range(4)]
    chunked = pa.concat_tables(parts)
    assert chunked["doc_id"].num_chunks == 4
    assert reduce([chunked]).detections.equals(reduce([chunked.combine_chunks()]).detections)


# Several examples


@settings(max_examples=50)
@given(rows=lists((3,)), overlap=OVERLAP, nbest=st.integers(1, 8))
def test_one_example_is_the_best_of_one(rows: list[Row], overlap: float, nbest: int) -> None:
    best = reduce([table(rows)], overlap, nbest)
    for how in ("best", "mean", "template"):
        found = reduce([table(rows)], overlap, nbest, how)
        assert found.detections.equals(best.detections)
        assert found.statistics.equals(best.statistics)


@settings(max_examples=50)
@given(rows=lists(), numbers=st.permutations([1, 2, 7]), overlap=OVERLAP)
def test_numbers_of_examples_do_not_matter(rows: list[Row], numbers: list[int], overlap: float) -> None:
    """But for which of equals is said to have found a place. Length goes with the example, as it does in a search."""
    other = dict(zip((1, 2, 7), numbers, strict=True))
    one = reduce([table(rows)], overlap, how="mean")
    two = reduce([table([{**row, "example": other[row["example"]]} for row in rows])], overlap, how="mean")
    assert one.detections.drop_columns(["cost", "example"]).equals(two.detections.drop_columns(["cost", "example"]))
    means = [[row for row in found.statistics.to_pylist() if row["example"] == 0] for found in (one, two)]
    assert means[0] == means[1]


@settings(max_examples=50)
@given(rows=lists((1,), COSTS[:6]), times=st.integers(2, 4), overlap=st.sampled_from([0.0, 0.5, 0.9]))
def test_the_same_example_several_times_finds_the_same_places(rows: list[Row], times: int, overlap: float) -> None:
    again = [{**row, "example": row["example"] + k} for row in rows for k in range(times)]
    columns = ["query_id", "doc_id", "channel", "start", "end", "cost", "frames", "example"]
    one = reduce([table(rows)], overlap, how="best").detections.select(columns).to_pylist()
    assert reduce([table(again)], overlap, how="mean").detections.select(columns).to_pylist() == one


def test_a_mean_in_full() -> None:
    """Example 1 has scores -1 and -3 (mean -2, deviation 1), example 2 -2 and -6 (-4, 2), example 3 -5 alone."""
    costs = (1, "d", 29, 10), (1, "e", 29, 30), (2, "d", 30, 20), (2, "d", 99, 60), (3, "e", 59, 50)
    rows = [candidate("q", example, doc, end, 10, cost * UNIT, 10) for example, doc, end, cost in costs]
    found = reduce([table(rows)], how="mean")
    names = ("doc_id", "end", "score", "cost", "example")
    shown = [tuple(row[name] for name in names) for row in found.detections.to_pylist()]
    assert shown == [
        ("d", 0.3, (1 + 1 + 0) / 3, 10 * UNIT, 1),  # example 3 found nothing there: its mean
        ("e", 0.6, 0.0, 50 * UNIT, 3),
        ("d", 1.0, -1 / 3, 60 * UNIT, 2),
        ("e", 0.3, -1 / 3, 30 * UNIT, 1),
    ]
    sums = (4, -(2 + 0 - 1 - 1) * FINENESS, (4 + 0 + 1 + 1) * FINENESS * FINENESS)
    tallies = from_table(found.statistics)
    assert {name: tally.values for name, tally in tallies.items()} == {"cost-sums": {("q", 0, 3 * FINENESS): sums}}
    normed = QNorm(Options()).apply(found.detections, None, tallies, None).tolist()
    assert normed == pytest.approx([2 / 1.5**0.5, 0.0, -1 / 1.5**0.5, -1 / 1.5**0.5], abs=1e-12)


def test_the_bytes_of_a_mean_are_held() -> None:
    """When this fails and you meant it, raise `version` of the stage `reduce`."""
    state, rows = 1, {}
    for _ in range(600):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64  # Knuth's MMIX generator
        draw = state >> 33
        key = f"q{draw % 3}", 1 + draw // 3 % 3, f"d{draw // 9 % 8}", draw // 72 % 400
        rows[key] = candidate(*key, 20 + draw % 17, 20_000 + draw % 9973, 30 + key[1])
    found = reduce([table(list(rows.values()))], nbest=50, how="mean")
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
