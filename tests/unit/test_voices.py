"""Voices: groups of speech by nobody named; and scores normalised by speaker."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.calibrate.procedure import make_steps
from swsdist.calibrate.statistics import CostSums, SpeakerCostSums
from swsdist.core.types import DOCUMENTS
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.reduce.examples import WHO, Speakers
from swsdist.store.parquet import SpooledDocuments
from swsdist.store.voices import STRETCH, Stretching, fit_voices, grouped, pinned, stretches_of

#: Seconds a frame, so that 100 documents of 30 frames have enough hours for three voices.
TICK = 0.9
#: Mean and deviation of the frames of three voices.
VOICES = ((0.0, 1.0), (2.0, 1.0), (0.0, 3.0))


def frames_of(voice: int, count: int, seed: int) -> np.ndarray:
    mean, deviation = VOICES[voice]
    return np.random.default_rng(seed).normal(mean, deviation, (count, 4)).astype(np.float32)


def document(number: int, frames: np.ndarray, speaker: str | None = None) -> dict[str, Any]:
    whole = Statistics.of(frames) if len(frames) else Statistics.zero(frames.shape[1])
    cut = Stretching(frames.shape[1])
    for first in range(0, len(frames), 700):
        cut.add(frames[first : first + 700])
    row = {"doc_id": f"d{number}", "channel": 1, "path": "", "duration": 1.0, "frames": len(frames), "shard": "s"}
    row |= {"rows": 1, "identity": "", "sha256": str(number), "speaker": speaker, "stretches": cut.column}
    return row | {"mean": whole.mean.tolist(), "variance": whole.variance.tolist()}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, DOCUMENTS)


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return [document(k, frames_of(k % 3, 30, k)) for k in range(100)]


def test_documents_of_a_voice_have_its_number_whatever_their_order(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    found, file = pinned(Folder(str(tmp_path)), SpooledDocuments([table(rows)]), TICK, None)
    assert file is not None
    assert (tmp_path / file).is_file()
    of_voice = [{tuple(voices) for voices in found.to_pylist()[k::3]} for k in range(3)]
    assert [len(several) for several in of_voice] == [1, 1, 1]
    assert len(set.union(*of_voice)) == 3
    shuffled = np.random.default_rng(0).permutation(len(rows)).tolist()
    one, other = (fit_voices(SpooledDocuments([table(some)]), TICK) for some in (rows, [rows[k] for k in shuffled]))
    assert len(one) == len(other) == 3
    for a, b in zip(one, other, strict=True):
        assert a.frames == b.frames
        assert a.mean.tobytes() == b.mean.tobytes()
        assert a.variance.tobytes() == b.variance.tobytes()
    named = [{**row, "speaker": "eva"} for row in rows]
    assert pinned(Folder(str(tmp_path)), SpooledDocuments([table(named)]), TICK, None)[1] is None
    found, file = pinned(Folder(str(tmp_path)), SpooledDocuments([table([*named[:50], *rows[50:]])]), TICK, None)
    assert file is not None
    assert [voices is None for voices in found.to_pylist()] == [True] * 50 + [False] * 50
    # A shard of named ones beside another.
    found, _ = pinned(Folder(str(tmp_path)), SpooledDocuments([table(named), table(rows)]), TICK, file)
    assert [voices is None for voices in found.to_pylist()] == [True] * 100 + [False] * 100


def test_stretches_of_a_long_document_and_of_equal_ones(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """Two speakers in one recording: each stretch has the voice of who speaks; the rest belongs to the last."""
    both = np.concatenate([frames_of(0, 2 * STRETCH, 200), frames_of(1, STRETCH + 100, 201)])
    long = document(100, both)
    stretches, counts = stretches_of(table([long]))
    assert counts.tolist() == [3]
    assert stretches.frames.tolist() == [STRETCH, STRETCH, STRETCH + 100]
    expected = Statistics.of(both[2 * STRETCH :])
    assert stretches.mean[:, 2] == pytest.approx(expected.mean)
    assert stretches.variance[:, 2] == pytest.approx(expected.variance)
    _, file = pinned(Folder(str(tmp_path)), SpooledDocuments([table(rows)]), TICK, None)
    found, _ = pinned(Folder(str(tmp_path)), SpooledDocuments([table([*rows, long])]), TICK, file)
    voices = found.to_pylist()
    assert voices[100] == [voices[0][0], voices[0][0], voices[1][0]]
    one = document(0, np.ones((30, 4), np.float32))
    assert len(grouped(stretches_of(table([one, one]))[0], 8)) == 1
    empty = document(1, np.empty((0, 4), np.float32))
    found, _ = pinned(Folder(str(tmp_path)), SpooledDocuments([table([one, empty])]), TICK, None)
    assert found.to_pylist() == [[0], None]
    nothing, file = pinned(Folder(str(tmp_path)), SpooledDocuments([table([empty])]), TICK, None)
    assert (nothing, file) == (None, None)
    channels = [row | {"doc_id": "d", "channel": k + 1, "sha256": "s"} for k, row in enumerate(rows)]
    one, other = (fit_voices(SpooledDocuments([table(some)]), TICK) for some in (channels, channels[::-1]))
    assert [group.mean.tobytes() for group in one] == [group.mean.tobytes() for group in other]
    assert [len(fit_voices(SpooledDocuments([table(rows)]), tick)) for tick in (0.01, 0.3, 0.6)] == [1, 1, 2]


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


def test_who_speaks_by_names_voices_and_the_document_that_begins_last() -> None:
    named = [("a", 1, "eva"), ("a", 2, "ada"), ("b", 1, None), ("c", 1, "eva")]
    who = Speakers(documents(*((doc_id, c, None, None, 60.0, name, None) for doc_id, c, name in named)), 0.01)
    table = places(("c", 1, 0, 1), ("a", 2, 0, 1), ("b", 1, 0, 1), ("a", 1, 0, 1))
    assert who.of_detections(table, recordings=False)["speaker"].to_pylist() == [2, 1, 0, 2]
    empty = who.of_detections(table.slice(0, 0), recordings=False)
    assert empty.column_names == ["doc_id", "channel", "start", "end", "speaker"]
    # By the middle of what was found, in seconds and in frames.
    who = Speakers(documents(("a", 1, None, None, 60.0, "eva", None), ("b", 1, None, None, 200.0, None, [2, 0])), 0.01)
    turn = STRETCH * 0.01
    table = places(("a", 1, turn, turn + 1), ("b", 1, 0, 1), ("b", 1, turn - 0.6, turn + 0.5), ("b", 1, turn, turn + 9))
    assert who.of_detections(table, recordings=True)["speaker"].to_pylist() == [1, 4, 4, 2]
    frames = {"first": [0, STRETCH - 2, STRETCH - 1], "last": [9, STRETCH, STRETCH + 3]}
    found = pa.table({"doc_id": ["b"] * 3, "channel": [1] * 3, **frames})
    assert who.of_candidates(found)["speaker"].to_pylist() == [4, 4, 2]
    # While it lasts: then one that began before counts again.
    rows = [("a1", 0.0, 60.0, "eva"), ("a2", 12.0, 6.0, "ada"), ("a3", 14.0, 2.0, "eva"), ("a4", 70.0, 9.0, "ada")]
    who = Speakers(documents(*((doc_id, 1, "r", *span, name, None) for doc_id, *span, name in rows)), 0.01)
    middles = {1.0: 1, 12.5: 0, 15.0: 1, 17.0: 0, 18.5: 1, 59.0: 1, 70.5: 0}
    table = places(*(("r", 1, middle - 0.5, middle + 0.5) for middle in middles))
    assert who.of_detections(table, recordings=True)["speaker"].to_pylist() == list(middles.values())
    alone = places(("a2", 1, 0, 1), ("a3", 1, 1, 2))
    assert who.of_detections(alone, recordings=False)["speaker"].to_pylist() == [0, 1]
