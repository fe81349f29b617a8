"""Queries: how they are grouped, and their features from files and from places in recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.config.search import Search
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import methods as methods_codes
from swsdist.core.errors import UserError
from swsdist.core.types import EXAMPLES, QUERIES
from swsdist.features.interface import frame_count
from swsdist.features.mfcc import Mfcc
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.kernels.distances.interface import create
from swsdist.kernels.recurrences import interface as recurrences
from swsdist.methods.query import extraction as queries
from swsdist.methods.query.extraction import GROUP_LEAST, GROUP_MOST, example_frames, extract, groups, prepared
from swsdist.methods.query.template import template
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECURRENCES
from tests.support.coded import raises

RATE = 8000
EXTRACTOR = Mfcc(sample_rate=RATE, n_fft=256, win_length=200, hop_length=80)
SAMPLES = np.random.default_rng(3).normal(scale=0.1, size=4 * RATE).astype(np.float32)
SPEECH = EXTRACTOR.extract(SAMPLES)


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("audio") / "talk.wav"
    soundfile.write(path, SAMPLES, RATE, subtype="FLOAT")
    return str(path)


def query(path: str, start: float | None = None, end: float | None = None, **more: Any) -> dict[str, Any]:
    known = {"query_id": "q", "example": 1, "channel": 1, "path": path, "start": start, "end": end}
    return {**dict.fromkeys(QUERIES.names), **known, **more}


def frames_of(path: str, start: float | None = None, end: float | None = None) -> np.ndarray:
    return example_frames(query(path, start, end), EXTRACTOR, Folder(str(Path(path).parent)))


@settings(max_examples=50, deadline=None)
@given(count=st.integers(0, 1500), seed=st.integers(0, 99))
def test_groups_hold_every_query_once(count: int, seed: int) -> None:
    ids = [f"{seed}-{k}" for k in range(count)]
    found = groups(ids[::-1] + ids[:5])
    assert [query_id for group in found for query_id in group] == sorted(ids)
    assert all(GROUP_LEAST <= len(group) <= GROUP_MOST for group in found[:-1])
    assert all(0 < len(group) <= GROUP_MOST for group in found)


def test_a_new_query_changes_few_groups() -> None:
    ids = [f"q{k:05d}" for k in range(5000)]
    before = {tuple(group) for group in groups(ids)}
    after = {tuple(group) for group in groups([*ids, "q02500x"])}
    assert len(before) > 10
    assert len(after - before) <= 3


def test_a_place_has_the_frames_of_running_speech(recording: str) -> None:
    """Deltas at its edges look into the speech around it, not at repeated edges; the place begins at its own sample."""
    assert frames_of(recording).tobytes() == SPEECH.tobytes()
    for start, end in [(0.0, 0.5), (0.01, 0.3), (1.0, 1.5), (2.34, 2.91), (3.5, 4.0), (1.23, None)]:
        found = frames_of(recording, start, end)
        first = round(start / 0.01)
        stop = len(SPEECH) if end is None else first + frame_count(EXTRACTOR, round((end - start) * RATE))
        assert found.shape == (stop - first, EXTRACTOR.dimension)
        assert np.abs(found - SPEECH[first:stop]).max() < 1e-3
    found, begin = frames_of(recording, 1.0035, 1.5), round(1.0035 * RATE)
    expected = EXTRACTOR.extract(SAMPLES[begin - 4 * 80 :])[4 : 4 + len(found)]
    assert np.abs(found - expected).max() < 1e-3
    outside = audio_codes.PLACE_OUTSIDE
    for start, end, code in (
        (1.0, 1.02, methods_codes.PLACE_TOO_SHORT),
        *((3.9, 4.5, outside), (5.0, 6.0, outside), (2.0, 1.0, outside)),
    ):
        with raises(code, where=recording):
            frames_of(recording, start, end)


def test_extract_goes_on_after_a_bad_one(recording: str, tmp_path: Path) -> None:
    rows = [
        query(recording, 1.0, 2.0, query_id="a", speaker="s"),
        query(str(tmp_path / "gone.wav"), query_id="b"),
        query(recording, 1.0, 1.01, query_id="c", example=2),
        query(recording, query_id="d", channel=2),
        query(recording, query_id="e"),
    ]
    found = extract(rows, EXTRACTOR, Folder(str(tmp_path)), trim=False)
    assert found.examples.schema.equals(EXAMPLES)
    assert found.examples["query_id"].to_pylist() == ["a", "e"]
    assert found.examples["duration"].to_pylist() == pytest.approx([1.0, 4.0], abs=0.01)
    assert found.seconds == pytest.approx(5.0, abs=0.02)
    refused = [(row["kind"], row["id"], row["part"], row["reason"]) for row in found.rejected.to_pylist()]
    assert refused == [
        ("query", "b", 1, "missing-recording"),
        ("query", "c", 2, methods_codes.PLACE_TOO_SHORT.name),
        ("query", "d", 1, "no-such-channel"),
    ]


def test_what_is_averaged_has_a_longest(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a query with several examples; one alone is not averaged, and is searched in its whole length."""
    monkeypatch.setattr(queries, "LONGEST_AVERAGED", 150)
    names = (("a", 1, 1), ("a", 2, 2), ("b", 1, 2))
    rows = [query(recording, 0.0, end, query_id=name, example=k) for name, k, end in names]
    found = extract(rows, EXTRACTOR, Folder("/"), Search(examples="template"))
    kept = zip(found.examples["query_id"].to_pylist(), found.examples["example"].to_pylist(), strict=True)
    assert list(kept) == [("a", 1), ("b", 1)]
    (refused,) = found.rejected.to_pylist()
    assert (refused["id"], refused["part"], refused["reason"]) == ("a", 2, "too-long")
    assert extract(rows, EXTRACTOR, Folder("/")).rejected.num_rows == 0


@pytest.mark.parametrize(
    "settings",
    [*({"recurrence": name} for name in ("averages", "non-segmental")), {"recurrence": "segmental", "band": 30}],
)
def test_a_recurrence_has_its_longest_query(
    recording: str, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """One that is longer is rejected and the others are extracted, whatever the recurrence holds of them."""
    most, name = 150 + settings.get("band", 0), settings["recurrence"]
    monkeypatch.setitem(RECURRENCES._entries, name, replace(RECURRENCES[name], longest_query=most))
    names = (("fits", 0.0, 1.5), ("longer", 0.0, 2.0))
    frames = [len(frames_of(recording, *place)) for _, *place in names]
    assert frames[0] <= 150 < frames[1]
    rows = [query(recording, start, end, query_id=name) for name, start, end in names]
    for search in (Search(**settings), Search(**settings, examples="template")):
        found = extract(rows, EXTRACTOR, Folder("/"), search)
        assert found.examples["query_id"].to_pylist() == ["fits"]
        (refused,) = found.rejected.to_pylist()
        assert (refused["id"], refused["part"], refused["reason"]) == ("longer", 1, "too-long")
    assert extract(rows, EXTRACTOR, Folder("/"), Search()).rejected.num_rows == 0


def test_what_planning_takes_is_what_the_recurrence_holds() -> None:
    for name, options in [*((name, {}) for name in RECURRENCES), *(("segmental", {"band": k}) for k in (1, 999))]:
        most = RECURRENCES[name].longest(checked(RECURRENCES, name, options))
        packing = recurrences.create(name, options).packing
        packing(most)
        with pytest.raises(UserError, match="too long"):
            packing(most + 1)
    assert Search(recurrence="segmental").recurrence_settings() == {"band": 10}
    assert RECURRENCES["segmental"].longest({"band": 10}) == 2**18 - 10
    assert RECURRENCES["segmental"].longest({"band": 2**19}) == 0


def test_a_template_of_each_query(recording: str) -> None:
    """Each example is normalised by its own speaker; the template has the least number, and the distance's fixed point."""
    places = (("b", 3, 1.0, "known"), ("b", 2, 1.3, "unknown"), ("a", 5, 2.0, "known"))
    rows = [query(recording, s, s + 0.4, query_id=name, example=k, speaker=who) for name, k, s, who in places]
    table = extract(rows, EXTRACTOR, Folder("/")).examples
    one, two = Statistics.of(SPEECH), Statistics.of(SPEECH[:20] * 2)
    statistics = {("collection", ""): one, ("speaker", "known"): two}
    found = prepared(table, statistics, Search(examples="template"), EXTRACTOR.dimension)
    assert [(each.query_id, each.example) for each in found] == [("b", 2), ("a", 5)]
    distance = create("cosine", EXTRACTOR.dimension)
    normalised = []
    for (_, _, start, _), by in zip(places, (two, one, two), strict=True):
        offset, scale = by.offset_and_scale("mean-variance")
        normalised.append((frames_of(recording, start, start + 0.4) - offset) / scale)
    assert np.array_equal(found[0].frames, template(normalised[:2], distance))
    alone = prepared(table.slice(2), statistics, Search(), EXTRACTOR.dimension)
    assert np.array_equal(found[1].frames, alone[0].frames)
    # By the collection: also one whose speaker is known.
    by_collection = prepared(table, statistics, Search(queries_by="collection"), EXTRACTOR.dimension)
    scaling = one.offset_and_scale("mean-variance")
    for (_, _, start, _), each in zip(places, by_collection, strict=True):
        expected = distance.prepare(frames_of(recording, start, start + 0.4), *scaling, "query").frames
        assert np.array_equal(each.frames, expected)
