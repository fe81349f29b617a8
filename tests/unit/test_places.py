"""Documents that are places in recordings: detections become the recording's, and what lies in two is found once."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.types import DETECTIONS, DOCUMENTS
from swsdist.corpora.documents import part_of, read_documents
from swsdist.corpora.places import Places, by_document, searched_stretches, stored, stretches
from swsdist.reduce.spans import in_recordings

#: doc_id, recording, start (s), duration (s): three places of r1, one of r2, and a recording of its own.
LAID = [("a", "r1", 0.0, 5.0), ("b", "r1", 4.005, 5.0), ("c", "r1", 20.0, 3.0), ("d", "r2", 1.0, 1.0)]
LAID += [("e", None, None, 9.0)]  # type: ignore[list-item]


def documents(laid: list[tuple[Any, ...]] = LAID) -> pa.Table:
    names = ("doc_id", "recording", "start", "duration")
    rows = [{**dict(zip(names, row, strict=True)), "channel": 1} for row in laid]
    fields = [DOCUMENTS.field(name) for name in ("doc_id", "channel", "recording", "start", "duration")]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def detections(*rows: tuple[str, str, float, float, float]) -> pa.Table:
    """query_id, doc_id, start, end, score."""
    names = ("query_id", "doc_id", "start", "end", "score")
    fixed = {"channel": 1, "example": 1, "frames": 1, "cost": 1}
    return pa.Table.from_pylist([{**dict(zip(names, row, strict=True)), **fixed} for row in rows], DETECTIONS)


def shown(table: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["query_id"], row["doc_id"], row["start"], row["end"], row["score"]) for row in table.to_pylist()]


def test_times_and_names_are_the_recordings() -> None:
    placed = [("q", "a", 0.1, 0.3, 2.0), ("q", "c", 0.1, 0.3, 3.0), ("q", "e", 0.1, 0.3, 2.5), ("p", "d", 0, 1, 1)]
    assert shown(in_recordings(detections(*placed), documents(), 0.5)) == [
        ("p", "r2", 1.0, 2.0, 1.0),
        ("q", "r1", 20.1, 20.3, 3.0),
        ("q", "e", 0.1, 0.3, 2.5),
        ("q", "r1", 0.1, 0.3, 2.0),
    ]
    # The better of two at one place stays.
    given = [
        ("q", "a", 4.2, 4.6, 2.0),
        ("q", "b", 0.2, 0.6, 2.1),
        ("q", "b", 0.41, 0.8, 1.0),
        ("p", "b", 0.2, 0.6, 0.1),
    ]
    assert shown(in_recordings(detections(*given), documents(), 0.5)) == [
        ("p", "r1", 4.205, 4.605, 0.1),
        ("q", "r1", 4.205, 4.605, 2.1),
        ("q", "r1", 4.415, 4.805, 1.0),
    ]
    plain = documents([("e", None, None, 9.0)])
    alone = detections(("q", "e", 0.1, 0.3, 2.5))
    assert in_recordings(alone, plain, 0.5) is alone
    assert in_recordings(DETECTIONS.empty_table(), documents(), 0.5).num_rows == 0


spans = st.tuples(st.sampled_from("abc"), st.integers(0, 400), st.integers(1, 60), st.integers(0, 9))


@settings(max_examples=60, deadline=None)
@given(st.lists(spans, max_size=25, unique=True), st.sampled_from([0.0, 0.5, 1.0]))
def test_it_is_greedy_suppression_in_the_recording(rows: list[tuple[str, int, int, int]], overlap: float) -> None:
    starts = {"a": 0.0, "b": 1.5, "c": 2.25}
    laid = documents([(name, "r", start, 5.0) for name, start in starts.items()])
    given = [("q", name, at / 100, (at + length) / 100, score / 2) for name, at, length, score in rows]
    placed = sorted(
        ((round(start + starts[name], 6), round(end + starts[name], 6), score) for _, name, start, end, score in given),
        key=lambda row: (-row[2], row[0], row[1]),
    )
    kept: list[tuple[float, float, float]] = []
    for start, end, score in placed:
        common = [round(min(end, b) - max(start, a), 6) for a, b, _ in kept]
        least = [round(min(end - start, b - a), 6) for a, b, _ in kept]
        if not any(both > overlap * short for both, short in zip(common, least, strict=True)):
            kept.append((start, end, score))
    found = in_recordings(detections(*given), laid, overlap)
    assert [(start, end, score) for _, _, start, end, score in shown(found)] == kept


def test_which_documents_hold_a_place() -> None:
    places = Places(stored(documents()))
    assert [one.doc_id for one in places.containing("r1", 1, 4.1, 4.9)] == ["a", "b"]
    assert [one.doc_id for one in places.containing("r1", 1, 3.0, 4.9)] == ["a"]
    assert places.containing("r1", 1, 10.0, 11.0) == places.containing("r1", 2, 0.0, 1.0) == []
    assert [one.doc_id for one in places.containing("e", 1, 1.0, 2.0)] == ["e"]
    table = detections(("q", "r1", 4.1, 4.9, 1.0), ("q", "r1", 10.0, 11.0, 1.0), ("q", "e", 1.0, 2.0, 1.0))
    assert by_document(table, places)["doc_id"].to_pylist() == ["a", "b", "e"]
    assert searched_stretches(stored(documents()))["r1", 1] == [(0.0, 9.005), (20.0, 23.0)]
    assert [tuple(row.values()) for row in stretches(documents()).to_pylist()] == [
        ("r1", 1, 0.0, 9.005),
        ("r1", 1, 20.0, 3.0),
        ("r2", 1, 1.0, 1.0),
        ("e", 1, 0.0, 9.0),
    ]


places_of_one = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(places_of_one, st.integers(0, 100), st.integers(1, 30))
def test_holding_is_what_its_words_say(spans: list[tuple[int, int]], start: int, length: int) -> None:
    laid = [(f"d{k}", "r", float(begin), float(duration)) for k, (begin, duration) in enumerate(spans)]
    found = {
        one.doc_id for one in Places(stored(documents(laid))).containing("r", 1, float(start), float(start + length))
    }
    assert found == {name for name, _, begin, long in laid if begin <= start and start + length <= begin + long}


def test_speakers_and_parts_may_name_recordings(tmp_path: Path) -> None:
    (tmp_path / "wav.scp").write_text("r1 a.wav\nr2 b.wav\n")
    (tmp_path / "segments").write_text("u1 r1 0 1\nu2 r1 1 2\nu3 r2 0 1\n")
    (tmp_path / "speakers.csv").write_text("doc_id,speaker\nr1,anna\nu2,bert\n")
    table = read_documents(str(tmp_path), speakers=str(tmp_path / "speakers.csv"))
    assert table["speaker"].to_pylist() == ["anna", "bert", None]
    assert part_of(table, ["r1"])["doc_id"].to_pylist() == ["u1", "u2"]
    assert part_of(table, ["u2", "r2"])["doc_id"].to_pylist() == ["u2", "u3"]
