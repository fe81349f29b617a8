"""speaker-norm against a plain computation, and who speaks in documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from swsdist.calibrate.procedure import make_steps
from swsdist.calibrate.statistics import CostSums, SpeakerCostSums
from swsdist.reduce.examples import WHO, Speakers
from swsdist.store.voices import STRETCH

SCALE = 1 << 20


def documents(*rows: tuple[str, int, str | None, float | None, float, str | None, list[int] | None]) -> pa.Table:
    return pa.table(dict(zip(WHO, zip(*rows, strict=True), strict=True)))


def places(*rows: tuple[str, int, float, float]) -> pa.Table:
    return pa.table(dict(zip(("doc_id", "channel", "start", "end"), zip(*rows, strict=True), strict=True)))


def candidates(scores: list[float], speakers: list[int]) -> pa.Table:
    rows = len(scores)
    columns = {"query_id": ["q"] * rows, "example": [1] * rows, "scale": [SCALE] * rows, "speaker": speakers}
    return pa.table({**columns, "cost": [-round(score * SCALE) for score in scores]})


@pytest.mark.parametrize("relevance", [0.5, 16.0, 1e6])
def test_moments_are_the_speaker_s_and_a_part_of_the_whole(relevance: float) -> None:
    rng = np.random.default_rng(0)
    speakers = np.repeat([0, 1, 2], [40, 7, 1])
    scores = np.round(rng.normal(size=48) * (1 + speakers) + 3 * speakers, 3)
    table = candidates(scores.tolist(), speakers.tolist())
    (step,) = make_steps(["speaker-norm"], {"speaker-norm": {"relevance": relevance}})
    known = {"cost-sums": CostSums().of(table), "speaker-cost-sums": SpeakerCostSums().of(table)}
    found = step.apply(table.append_column("score", pa.array(scores)), None, known, None)
    for speaker in range(3):
        own = scores[speakers == speaker]
        mean = (own.sum() + relevance * scores.mean()) / (len(own) + relevance)
        square = ((own**2).sum() + relevance * (scores**2).mean()) / (len(own) + relevance)
        expected = (own - mean) / np.sqrt(square - mean**2)
        assert found[speakers == speaker] == pytest.approx(expected, abs=1e-5)


def test_who_speaks() -> None:
    named = [("a", 1, "eva"), ("a", 2, "ada"), ("b", 1, None), ("c", 1, "eva")]
    who = Speakers(
        documents(*((doc_id, channel, None, None, 60.0, name, None) for doc_id, channel, name in named)), 0.01
    )
    table = places(("c", 1, 0, 1), ("a", 2, 0, 1), ("b", 1, 0, 1), ("a", 1, 0, 1))
    assert who.of_detections(table, recordings=False)["speaker"].to_pylist() == [2, 1, 0, 2]
    empty = who.of_detections(table.slice(0, 0), recordings=False)
    assert empty.column_names == ["doc_id", "channel", "start", "end", "speaker"]


def test_voices_of_a_long_document_follow_the_names() -> None:
    """By the middle of what was found, in seconds and in frames."""
    who = Speakers(documents(("a", 1, None, None, 60.0, "eva", None), ("b", 1, None, None, 200.0, None, [2, 0])), 0.01)
    turn = STRETCH * 0.01
    table = places(
        ("a", 1, turn, turn + 1), ("b", 1, 0, 1), ("b", 1, turn - 0.6, turn + 0.5), ("b", 1, turn, turn + 90)
    )
    assert who.of_detections(table, recordings=True)["speaker"].to_pylist() == [1, 4, 4, 2]
    frames = {"first": [0, STRETCH - 2, STRETCH - 1], "last": [9, STRETCH, STRETCH + 3]}
    found = pa.table({"doc_id": ["b"] * 3, "channel": [1] * 3, **frames})
    assert who.of_candidates(found)["speaker"].to_pylist() == [4, 4, 2]


def test_in_recordings_the_document_that_begins_last_counts() -> None:
    """While it lasts: then one that began before counts again."""
    rows = [("a1", 0.0, 60.0, "eva"), ("a2", 12.0, 6.0, "ada"), ("a3", 14.0, 2.0, "eva"), ("a4", 70.0, 9.0, "ada")]
    who = Speakers(documents(*((doc_id, 1, "r", *span, name, None) for doc_id, *span, name in rows)), 0.01)
    middles = {1.0: 1, 12.5: 0, 15.0: 1, 17.0: 0, 18.5: 1, 59.0: 1, 70.5: 0}
    table = places(*(("r", 1, middle - 0.5, middle + 0.5) for middle in middles))
    assert who.of_detections(table, recordings=True)["speaker"].to_pylist() == list(middles.values())
    alone = places(("a2", 1, 0, 1), ("a3", 1, 1, 2))
    assert who.of_detections(alone, recordings=False)["speaker"].to_pylist() == [0, 1]
