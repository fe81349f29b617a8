"""Voices: groups of speech by nobody named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.core.types import DOCUMENTS
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
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


def test_documents_of_a_voice_have_its_number(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    found, file = pinned(Folder(str(tmp_path)), SpooledDocuments([table(rows)]), TICK, None)
    assert file is not None
    assert (tmp_path / file).is_file()
    of_voice = [{tuple(voices) for voices in found.to_pylist()[k::3]} for k in range(3)]
    assert [len(several) for several in of_voice] == [1, 1, 1]
    assert len(set.union(*of_voice)) == 3


def test_the_order_of_documents_changes_nothing(rows: list[dict[str, Any]]) -> None:
    shuffled = np.random.default_rng(0).permutation(len(rows)).tolist()
    one, other = (fit_voices(SpooledDocuments([table(some)]), TICK) for some in (rows, [rows[k] for k in shuffled]))
    assert len(one) == len(other) == 3
    for a, b in zip(one, other, strict=True):
        assert a.frames == b.frames
        assert a.mean.tobytes() == b.mean.tobytes()
        assert a.variance.tobytes() == b.variance.tobytes()


def test_named_documents_have_no_voice(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    named = [{**row, "speaker": "eva"} for row in rows]
    assert pinned(Folder(str(tmp_path)), SpooledDocuments([table(named)]), TICK, None)[1] is None
    found, file = pinned(Folder(str(tmp_path)), SpooledDocuments([table([*named[:50], *rows[50:]])]), TICK, None)
    assert file is not None
    assert [voices is None for voices in found.to_pylist()] == [True] * 50 + [False] * 50
    # A shard of named ones beside another.
    found, _ = pinned(Folder(str(tmp_path)), SpooledDocuments([table(named), table(rows)]), TICK, file)
    assert [voices is None for voices in found.to_pylist()] == [True] * 100 + [False] * 100


def test_stretches_of_a_long_document(rows: list[dict[str, Any]], tmp_path: Path) -> None:
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


def test_channels_of_a_recording_come_in_any_order_and_hours_decide_how_many(rows: list[dict[str, Any]]) -> None:
    channels = [row | {"doc_id": "d", "channel": k + 1, "sha256": "s"} for k, row in enumerate(rows)]
    one, other = (fit_voices(SpooledDocuments([table(some)]), TICK) for some in (channels, channels[::-1]))
    assert [group.mean.tobytes() for group in one] == [group.mean.tobytes() for group in other]
    assert [len(fit_voices(SpooledDocuments([table(rows)]), tick)) for tick in (0.01, 0.3, 0.6)] == [1, 1, 2]


def test_equal_documents_are_one_voice_and_empty_ones_have_none(tmp_path: Path) -> None:
    one = document(0, np.ones((30, 4), np.float32))
    assert len(grouped(stretches_of(table([one, one]))[0], 8)) == 1
    empty = document(1, np.empty((0, 4), np.float32))
    found, _ = pinned(Folder(str(tmp_path)), SpooledDocuments([table([one, empty])]), TICK, None)
    assert found.to_pylist() == [[0], None]
    nothing, file = pinned(Folder(str(tmp_path)), SpooledDocuments([table([empty])]), TICK, None)
    assert (nothing, file) == (None, None)
