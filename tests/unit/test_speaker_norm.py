"""speaker-norm against a plain computation, and who speaks in documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from swsdist.calibrate.procedure import make_steps
from swsdist.calibrate.statistics import CostSums, SpeakerCostSums
from swsdist.core.codes import chains as codes
from swsdist.reduce.speakers import Speakers
from tests.support.coded import raises

SCALE = 1 << 20


def documents(*rows: tuple[str, int, str | None, str | None]) -> pa.Table:
    return pa.table(dict(zip(("doc_id", "channel", "recording", "speaker"), zip(*rows, strict=True), strict=True)))


def candidates(scores: list[float], speakers: list[int]) -> pa.Table:
    rows = len(scores)
    cost = [-round(score * SCALE) for score in scores]
    columns = {
        "query_id": ["q"] * rows,
        "example": [1] * rows,
        "cost": cost,
        "scale": [SCALE] * rows,
        "speaker": speakers,
    }
    return pa.table(columns)


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


def test_of_one_speaker_it_is_q_norm() -> None:
    scores = np.array([0.5, 1.25, -3.0, 2.0])
    table = candidates(scores.tolist(), [0] * 4)
    known = {"cost-sums": CostSums().of(table), "speaker-cost-sums": SpeakerCostSums().of(table)}
    listed = table.append_column("score", pa.array(scores))
    one, other = (make_steps([name], {})[0].apply(listed, None, known, None) for name in ("speaker-norm", "q-norm"))
    assert one == pytest.approx(other, abs=1e-12)


def test_who_speaks() -> None:
    who = Speakers(documents(("a", 1, None, "eva"), ("a", 2, None, "ada"), ("b", 1, None, None), ("c", 1, None, "eva")))
    table = pa.table({"doc_id": ["c", "a", "b", "a"], "channel": pa.array([1, 2, 1, 1], pa.int32())})
    assert who.added(table)["speaker"].to_pylist() == [2, 1, 0, 2]
    assert who.added(table.slice(0, 0)).column_names == ["doc_id", "channel", "speaker"]


def test_in_recordings() -> None:
    who = Speakers(
        documents(("a1", 1, "r", "eva"), ("a2", 1, "r", "eva"), ("b1", 1, "s", "eva"), ("b2", 1, "s", "ada"))
    )
    table = pa.table({"doc_id": ["r"], "channel": [1]})
    assert who.added(table, recordings=True)["speaker"].to_pylist() == [1]
    with raises(codes.SEVERAL_SPEAKERS, count=2) as caught:
        who.added(pa.table({"doc_id": ["s"], "channel": [1]}), recordings=True)
    assert caught.value.where == "s, channel 1"
