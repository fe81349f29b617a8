"""Part tables merge as streams; what comes of them is what plain definitions give."""

import json
from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa
import pytest

from swsdist.config.loader import section_values
from swsdist.config.model import Score
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import DETECTIONS, REFERENCES
from swsdist.evaluation.scoring_task import named_paths
from swsdist.io.nist.rttm import read_speech
from swsdist.registry.registries import PROTOCOLS as NAMES
from swsdist.score import events as merging
from swsdist.score.events import Merged, check_part, curve_of, measure_parts, merge_tables, of_table, values
from swsdist.score.measures.curve import Counts, Curve, Ranking, best_point, concatenate
from swsdist.score.measures.det import det, det_of
from swsdist.score.measures.protocol import PROTOCOLS, OperatingPoint, operating_point, protocol, protocol_of
from swsdist.score.measures.retrieval import equal_error_of, figure_of_merit
from swsdist.score.measures.twv import twv_curve
from swsdist.score.trials import TrialRules, check_needs, in_every_document, make_trials, segments_for
from swsdist.testing.conformance.measures import example, example_point
from tests.support.coded import raises

SCHEMA = pa.schema([("score", pa.float64()), ("ntrue", pa.int64()), ("hits", pa.int64())])


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_streams_merge_as_one_table_would(rows: int, monkeypatch) -> None:
    monkeypatch.setattr(merging, "ROWS", rows)
    draw = np.random.default_rng(rows)
    tables = []
    for size in (0, 1, 40, 90):
        keys = np.unique(np.stack([draw.integers(0, 20, size), draw.integers(1, 6, size)]), axis=1)
        tables.append(pa.table([keys[0] / 2.0, keys[1], draw.integers(0, 9, keys.shape[1])], schema=SCHEMA))
    merged = Merged(SCHEMA, ("score", "ntrue"), True, [of_table(table) for table in tables])
    blocks = list(merged.blocks())
    expected: dict[tuple[float, int], int] = {}
    for row in pa.concat_tables(tables).to_pylist():
        expected[row["score"], row["ntrue"]] = expected.get((row["score"], row["ntrue"]), 0) + row["hits"]
    found = [tuple(row.values()) for row in merged.table().to_pylist()]
    assert found == [(*key, value) for key, value in sorted(expected.items())]
    assert pa.concat_tables(blocks).num_rows == len(expected)
    # No score stands in two blocks.
    assert all(a["score"][-1].as_py() < b["score"][0].as_py() for a, b in pairwise(blocks))
    assert rows > 2 or len(blocks) > 3


def test_what_is_no_part_table_and_what_trials_lack_is_told() -> None:
    twice = pa.table([[1.0, 1.0], [2, 2], [0, 1]], schema=SCHEMA)
    with raises(families.DUPLICATE_NAME, where="events"):
        check_part(twice, SCHEMA, ("score", "ntrue"), "events")
    with raises(families.EXTENSION, columns="score, hits"):
        check_part(twice.select(["score", "hits"]), SCHEMA, ("score", "ntrue"), "events")
    rules = protocol("openkws13", trials="segment")
    with raises(codes.MISSING_SEGMENTS):
        check_needs(rules, {"speech": False, "documents": True}, "score.protocol")
    with raises(codes.MISSING_SEGMENTS):
        segments_for(rules, LONG, None)
    with raises(codes.MISSING_SEGMENTS):
        make_trials(FOUND, TRUE, TrialRules.of(rules))
    with raises(codes.UNKNOWN_DOCUMENT_COUNT, protocol="quesst"):
        check_needs(protocol("quesst"), {}, "score.protocol")
    check_needs(protocol("sws2013"), {}, "score.protocol")


def test_curves_in_pieces_and_areas_over_pairs() -> None:
    point = example_point()
    whole = twv_curve(Counts.of(example()), trials=point.trials, beta=point.beta)
    pieces = concatenate(curve_of(merge_tables([measure_parts(example(), point)]), point))
    assert all(np.array_equal(getattr(pieces, name), getattr(whole, name)) for name in ("pmiss", "twv"))
    columns = (whole.threshold, whole.pmiss, whole.pfa, whole.twv)
    cut = [Curve(*(column[a:b] for column in columns)) for a, b in ((0, 1), (1, 9), (9, 99))]
    assert best_point(cut) == best_point([whole])
    assert equal_error_of(cut) == equal_error_of([whole])
    for step in (0.01, 0.5, 9.0):
        one, other = det(whole, step=step), det_of(cut, step=step)
        assert np.array_equal(one.threshold, other.threshold)
        assert np.array_equal(one.pfa, other.pfa)
    point = example_point()
    pairs: dict[tuple[str, str], tuple[float, bool]] = {}
    for row in example().to_pylist():
        key, own = (row["query_id"], row["doc_id"]), -np.inf if row["score"] is None else row["score"]
        score, true = pairs.get(key, (-np.inf, False))
        pairs[key] = (max(score, own), true or row["ref_start"] is not None)

    def area(own: list[tuple[float, bool]]) -> list[float]:
        won = [(a > b) + (a == b) / 2 for a, true in own if true for b, other in own if not other]
        return [float(np.mean(won))] if won else []

    referenced = sorted({q for (q, _), (_, true) in pairs.items() if true})
    lists = [[pairs.get((q, f"d{d}"), (-np.inf, False)) for d in range(9)] for q in referenced]
    parts = merge_tables([measure_parts(example(), point, ["pair-areas"])], ["pair-areas"])
    found = values(parts, point, ["pair-areas"])
    assert found["pair_auc"] == pytest.approx(np.mean([one for own in lists for one in area(own)]), abs=1e-12)
    assert found["pooled_pair_auc"] == pytest.approx(area([pair for own in lists for pair in own])[0], abs=1e-12)


def _list(scored: list[tuple[float, bool]], missed: int) -> pa.Table:
    base = {"query_id": "q", "doc_id": "d", "channel": 1}
    true = {"ref_start": 0.0, "ref_end": 1.0}
    rows = [
        base | {"start": float(k), "end": k + 1.0, "score": score} | (true if hit else {})
        for k, (score, hit) in enumerate(scored)
    ]
    return pa.Table.from_pylist(rows + [base | true] * missed, example().schema)


@pytest.mark.parametrize("seconds", [120.0, 360.0, 900.0, 1000.0, 3600.0])
def test_the_figure_of_merit_is_a_mean_over_orders(seconds: float) -> None:
    scored = [(3.0, True), (2.0, False), (2.0, True), (2.0, False), (1.0, True), (0.5, False)]
    figures = []
    for order in permutations(scored):
        if any(a < b for (a, _), (b, _) in pairwise(order)):
            continue
        hits = np.cumsum([true for _, true in order])
        rates = [hits[k] / 5 for k, (_, true) in enumerate(order) if not true] + [hits[-1] / 5] * 20
        # The rate before the i-th false alarm holds from i - 1 to i.
        held = [max(0.0, min(1.0, seconds / 360 - i)) for i in range(len(rates))]
        figures.append(sum(a * b for a, b in zip(rates, held, strict=True)) / (seconds / 360))
    found = figure_of_merit(Ranking.of(_list(scored, 2)), seconds)["fom"].to_pylist()
    assert found == [pytest.approx(np.mean(figures), abs=1e-12)]


def test_an_operating_point_is_settled_once_by_the_protocol_of_a_config() -> None:
    point = operating_point(protocol("sws2012"), seconds=100.0, true=4, queries=3, documents=7)
    assert (point.trials, point.beta, point.cost, point.value) == (100, 24.0, 24.0, 1.0)
    assert OperatingPoint(**json.loads(json.dumps(point.as_json()))) == point
    assert operating_point(protocol("kwseval", trials_per_second=2.0), seconds=100.0, true=0, queries=0).trials == 50
    assert operating_point(protocol("quesst"), seconds=100.0, true=4, queries=3, documents=7).trials == 7
    segments = protocol("openkws13", trials="segment")
    assert operating_point(segments, seconds=100.0, true=4, queries=3, segments=21).trials == 21
    with raises(families.MISSING_INPUT, where="protocol openkws13", protocol="openkws13"):
        operating_point(segments, seconds=100.0, true=4, queries=3)
    assert list(NAMES) == list(PROTOCOLS)
    assert protocol_of(Score(protocol="openkws13", trials="segment")).trials == "segment"
    with raises(families.UNSUPPORTED):
        protocol_of(Score(trials="segment"))
    found = section_values(["search.first_pass.name=coarse", "candidates.least=5", "search.streams=[]"], "search")
    assert found == {"first_pass": {"name": "coarse"}, "candidates": {"least": 5}, "streams": []}
    with raises(families.INVALID_VALUE, assignment="search.lanes"):
        section_values(["search.lanes"], "search")
    names = {"v1.2": "runs/v1.2/", "b": "x/c.csv", "d": "d.csv.gz"}
    assert named_paths(["runs/v1.2/", "b=x/c.csv", "d.csv.gz"]) == names


FOUND = pa.Table.from_pylist(
    [
        {
            "query_id": "a",
            "doc_id": doc_id,
            "channel": 1,
            "start": start,
            "end": start + 1,
            "score": score,
            "decision": True,
        }
        for doc_id, start, score in (("x", 1.0, 3.0), ("x", 7.0, 2.0), ("y", 2.0, 1.0))
    ],
    DETECTIONS,
)
TRUE = pa.Table.from_pylist(
    [{"query_id": "a", "doc_id": "x", "channel": 1, "start": 7.0, "end": 8.0}]
    + [{"query_id": "b", "doc_id": d, "channel": 1, "start": 1.0, "end": 2.0} for d in "xyz"],
    REFERENCES,
)
LONG = pa.table({"doc_id": ["x", "y", "z"], "channel": pa.array([1, 1, 1], pa.int32()), "duration": [10.0, 10.0, 10.0]})
SAID = pa.table({"doc_id": ["x", "x"], "channel": pa.array([1, 1], pa.int32()), "start": [0.5, 6.0], "end": [4.0, 9.0]})


def test_trials_of_every_kind_and_stretches_of_speech(tmp_path) -> None:
    time = TrialRules.of(protocol("sws2013"), 1.0, 3.0)
    assert (time.needs_limits, TrialRules(**json.loads(json.dumps(time.as_json())))) == (True, time)
    assert make_trials(FOUND, TRUE, time).num_rows == 6
    documents = TrialRules.of(protocol("quesst"))
    found = make_trials(FOUND, TRUE, documents).to_pylist()
    assert [(r["query_id"], r["doc_id"], r["score"]) for r in found][:2] == [("a", "x", 3.0), ("a", "y", 1.0)]
    rules = protocol("openkws13", trials="segment")
    cut = segments_for(rules, LONG, SAID)
    assert cut is not None
    assert [(r["doc_id"], r["start"], r["end"], r["speech"]) for r in cut.to_pylist()] == [
        ("x", 0.0, 0.5, False),
        ("x", 0.5, 4.0, True),
        ("x", 4.0, 6.0, False),
        ("x", 6.0, 9.0, True),
        ("x", 9.0, 10.0, False),
        ("y", 0.0, 10.0, False),
        ("z", 0.0, 10.0, False),
    ]
    trials = make_trials(FOUND, TRUE, TrialRules.of(rules), cut).to_pylist()
    assert [(r["query_id"], r["score"], r["ref_start"]) for r in trials] == [
        ("a", 3.0, None),
        ("a", 2.0, 6.0),
        ("a", 1.0, None),
        ("b", None, 0.5),
    ]
    assert segments_for(protocol("sws2013"), LONG, None) is None
    assert in_every_document(TRUE, 3) == ["b"]
    (tmp_path / "a.rttm").write_text(
        "SPEAKER x 1 0.5 3.5 <NA> <NA> s <NA>\nLEXEME x 1 0.5 0.2 word lex s <NA>\nSPEAKER x 1 6.0 3.0 <NA> <NA> s <NA>\n"
    )
    (tmp_path / "a.csv").write_text("doc_id,start,end\nx,0.5,4.0\nx,6.0,9.0\n")
    for name in ("a.rttm", "a.csv"):
        assert read_speech(str(tmp_path / name)).to_pylist() == SAID.to_pylist()
    (tmp_path / "b.rttm").write_text("LEXEME x 1 0.5 0.2 word lex s <NA>\n")
    with raises(families.EMPTY_INPUT, where="b.rttm"):
        read_speech(str(tmp_path / "b.rttm"))
