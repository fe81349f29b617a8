"""Search without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import soundfile

import swsdist
from swsdist.audio.streams import permitted
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError, DataError, UserError
from swsdist.core.types import DETECTIONS
from swsdist.searcher.queries import parse_query
from swsdist.searcher.searcher import Searcher
from swsdist.store.reading import Store
from tests.support.coded import raises

RATE = 8000
OPTIONS = {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Four documents of noise; `hello.wav` is a cut of d2, from 1.00 s to 1.60 s."""
    root = tmp_path_factory.mktemp("direct")
    rng = np.random.default_rng(5)
    (root / "audio").mkdir()
    for k in range(4):
        colour = np.cumsum(rng.normal(size=3 * RATE)) * 0.002  # each moment differs from all others
        soundfile.write(root / "audio" / f"d{k}.wav", (colour - colour.mean()).clip(-1, 1), RATE)
    samples, _ = soundfile.read(root / "audio" / "d2.wav")
    soundfile.write(root / "hello.wav", samples[RATE : round(1.6 * RATE)], RATE)
    config = {
        "run": str(root / "run"),
        "corpus": {"documents": str(root / "audio")},
        "features": {"options": OPTIONS},
        "index": {"shards": 2},
        "executor": {"kind": "serial"},
    }
    from swsdist.pipeline.chain_run import StepSelection

    swsdist.run(config, selection=StepSelection(until="index"))
    return root


@pytest.fixture(scope="module")
def store(place: Path) -> Store:
    return swsdist.open_store(str(place / "run" / "store"))


# -- what is typed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "start", "end"),
    [
        ("hello.wav", "hello.wav", None, None),
        ("talk.flac:12.3-13.1", "talk.flac", 12.3, 13.1),
        ("talk.flac:0-1", "talk.flac", 0.0, 1.0),
        ("talk.flac:12:03.5-12:04.2", "talk.flac", 723.5, 724.2),
        ("s3://b/talk.flac:1:02:03-1:02:04.25", "s3://b/talk.flac", 3723.0, 3724.25),
        ("talk.flac:59-1:00", "talk.flac", 59.0, 60.0),
        ("talk.flac:1:2:3:4-5", "talk.flac:1", 7384.0, 5.0),
        ("a:b.wav:1.-2.5", "a:b.wav", 1.0, 2.5),
        ("s3://bucket/talk.flac:1-2", "s3://bucket/talk.flac", 1.0, 2.0),
        ("s3://bucket/talk.flac", "s3://bucket/talk.flac", None, None),
        ("talk.flac:-1-2", "talk.flac:-1-2", None, None),
        ("s3://bucket/talk.flac:1", "s3://bucket/talk.flac:1", None, None),
        ("talk.flac:100,0-100,8", "talk.flac", 100.0, 100.8),
        ("talk.flac:12,3-13.1", "talk.flac", 12.3, 13.1),
        ("talk.flac:1:02,500-1:03,250", "talk.flac", 62.5, 63.25),
        ("talk.flac:0,500-0,750", "talk.flac", 0.5, 0.75),
        ("talk.flac:1,250-1,5", "talk.flac", 1.25, 1.5),
    ],
)
def test_parse(text: str, path: str, start: float | None, end: float | None) -> None:
    row = parse_query(text)
    assert (row["query_id"], row["path"], row["start"], row["end"]) == (text, path, start, end)
    assert (row["example"], row["channel"], row["speaker"]) == (1, None, None)


@pytest.mark.parametrize(
    ("text", "path", "channel", "start"),
    [
        ("talk.flac#2", "talk.flac", 2, None),
        ("talk.flac#2:12.3-13.1", "talk.flac", 2, 12.3),
        ("s3://bucket/talk.flac#2:1-2", "s3://bucket/talk.flac", 2, 1.0),
        ("a#1#2:1-2", "a#1", 2, 1.0),
        ("a#b.wav", "a#b.wav", None, None),
        ("#2", "#2", None, None),
    ],
)
def test_parse_a_channel(text: str, path: str, channel: int | None, start: float | None) -> None:
    row = parse_query(text)
    assert (row["query_id"], row["path"], row["channel"], row["start"]) == (text, path, channel, start)


@pytest.mark.parametrize("text", ["talk.flac:1,234-1,300", "talk.flac:1-1,300", "talk.flac:1.5-100,250"])
def test_a_comma_that_may_be_of_thousands(text: str) -> None:
    with raises(families.AMBIGUOUS) as caught:
        parse_query(text)
    assert caught.value.where == text
    value = caught.value.values
    assert (value["decimal"], value["thousands"]) in (("1.234", "1234"), ("1.300", "1300"), ("100.250", "100250"))


@pytest.mark.parametrize("text", ["touch x; cat hello.wav |", "cat hello.wav |:0.1-0.2"])
def test_a_query_is_no_command(store: Store, text: str) -> None:
    """Neither typed nor in a table, even where the commands of a list may be run."""
    with permitted(True):
        with raises(families.COMMAND_REFUSED) as caught:
            parse_query(text)
        assert caught.value.where == text
        with raises(families.COMMAND_REFUSED):
            swsdist.search(store, pd.DataFrame({"query_id": ["q"], "path": ["cat hello.wav |"]}))
    assert not Path("x").exists()


def test_a_file_whose_name_looks_like_a_place(tmp_path: Path) -> None:
    path = tmp_path / "talk:1-2"
    path.touch()
    assert parse_query(str(path))["path"] == str(path)


# -- what is found ----------------------------------------------------------------------------------------------------


def test_a_cut_is_found_where_it_was_cut(store: Store, place: Path) -> None:
    found = swsdist.search(store, str(place / "hello.wav"), trim=False)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == [name for name in DETECTIONS.names if name not in ("decision", "system")]
    first = found.iloc[0]
    assert first["doc_id"] == "d2"
    assert first["start"] == pytest.approx(1.0, abs=0.05)
    assert first["end"] == pytest.approx(1.6, abs=0.05)
    assert (found["score"].diff().dropna() <= 0).all()


def test_a_place_finds_itself(store: Store, place: Path) -> None:
    text = f"{place / 'audio' / 'd2.wav'}:1.0-1.6"
    found = swsdist.search(store, [text, str(place / "hello.wav")], top=3, trim=False)
    assert found.groupby("query_id").size().to_dict() == {text: 3, str(place / "hello.wav"): 3}
    assert found[found["query_id"] == text].iloc[0][["doc_id", "start"]].tolist() == ["d2", 1.0]


def test_samples_find_what_their_file_finds(store: Store, place: Path) -> None:
    """One pair, and several beside other queries; of any type of float."""
    samples, rate = soundfile.read(place / "hello.wav")
    same = swsdist.search(store, str(place / "hello.wav"), trim=False).drop(columns="query_id")
    for given in ((samples, rate), (samples.astype(np.float32), np.int64(rate)), (samples.tolist(), float(rate))):
        found = swsdist.search(store, given, trim=False)
        assert set(found["query_id"]) == {"array 1"}
        assert found.drop(columns="query_id").equals(same)
    both = swsdist.search(store, [str(place / "hello.wav"), (samples, rate)], top=2, trim=False)
    assert both["query_id"].tolist() == [str(place / "hello.wav")] * 2 + ["array 2"] * 2


ZEROS = np.zeros(RATE)


@pytest.mark.parametrize(
    ("given", "code", "values"),
    [
        (ZEROS, audio_codes.NOT_A_RECORDING, {"type": "ndarray"}),
        ((ZEROS.astype(np.int16), RATE), audio_codes.SAMPLES_NOT_FLOAT, {"dtype": "int16"}),
        ((np.stack([ZEROS, ZEROS]), RATE), audio_codes.SAMPLES_NOT_MONO, {"shape": (2, 8000)}),
        ((ZEROS[:0], RATE), audio_codes.SAMPLES_NOT_MONO, {"shape": (0,)}),
        ((ZEROS + np.nan, RATE), audio_codes.NON_FINITE_SAMPLES, {"index": 0}),
        ((ZEROS + 3e4, RATE), audio_codes.SAMPLES_TOO_LARGE, {"peak": 30000}),
        ((ZEROS, 0), audio_codes.BAD_SAMPLE_RATE, {"rate": 0}),
        ((ZEROS, 8000.5), audio_codes.BAD_SAMPLE_RATE, {"rate": 8000.5}),
        ((ZEROS, float("nan")), audio_codes.BAD_SAMPLE_RATE, {}),
        ((ZEROS, "8000"), audio_codes.BAD_SAMPLE_RATE, {"rate": "8000"}),
        (5, audio_codes.NOT_A_RECORDING, {"type": "int"}),
    ],
)
def test_what_are_no_samples(store: Store, given: Any, code: Any, values: Any) -> None:
    for queries in (given, [given]):
        with pytest.raises(UserError) as caught:
            swsdist.search(store, queries)
        message = code.message.partition("{")[0] or code.message.rpartition("}")[2]
        assert message in caught.value.message
        assert all(str(value) in caught.value.message for value in values.values())
        assert caught.value.where == "array 1"
        assert "(samples, 16000)" in str(caught.value.remedy)


def test_samples_without_speech(store: Store) -> None:
    """Of what somebody gave it is told which, and no file of ours."""
    with pytest.raises(DataError, match="the query contains no speech") as caught:
        swsdist.search(store, [(ZEROS, RATE)])
    assert caught.value.where == "array 1"


def test_a_run_is_searched_as_it_searched(place: Path, store: Store, tmp_path: Path) -> None:
    """Its folder stands for its store, with its options and its trimming; options that are given come first."""
    from swsdist.pipeline.chain_run import StepSelection

    config: dict[str, Any] = {
        "run": str(tmp_path / "run"),
        "corpus": {"documents": str(place / "audio")},
        "features": {"options": OPTIONS},
        "search": {"distance": "cosine-squared"},
        "queries": {"trim": "none"},
        "executor": {"kind": "serial"},
    }
    swsdist.run(config, selection=StepSelection(until="index"))
    query = str(place / "hello.wav")
    squared = swsdist.search(store, query, options={"distance": "cosine-squared"}, trim=False)
    assert swsdist.search(str(tmp_path / "run"), query).equals(squared)
    plain = swsdist.search(store, query, trim=False)
    assert swsdist.search(str(tmp_path / "run"), query, options={"distance": "cosine"}).equals(plain)


def test_a_channel_that_was_chosen_is_warned_of(store: Store, place: Path, tmp_path: Path) -> None:
    samples, rate = soundfile.read(place / "hello.wav")
    talk = tmp_path / "talk.wav"
    soundfile.write(talk, np.stack([samples, samples[::-1]], 1), rate)
    with pytest.warns(UserWarning, match=rf"channel 1 of the 2 channels of {talk} is searched; others: {talk}#2"):
        first = swsdist.search(store, str(talk), top=3, trim=False)
    named = swsdist.search(store, f"{talk}#1", top=3, trim=False)
    assert named.drop(columns="query_id").equals(first.drop(columns="query_id"))


def test_one_bad_query_among_several(store: Store, place: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        swsdist.search(store, [str(place / "hello.wav"), str(place / "gone.wav")], trim=False)


def test_documents_of_the_store_are_queries(place: Path, tmp_path: Path) -> None:
    """By their names, and by those of the recordings that they are places in; times are the recording's."""
    from swsdist.pipeline.chain_run import StepSelection

    talk = place / "audio" / "d2.wav"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "wav.scp").write_text(f"talk {talk}\nother {place / 'audio' / 'd1.wav'}\n")
    (tmp_path / "data" / "segments").write_text("seg1 talk 0.5 2.0\nseg2 talk 2.0 3.0\nseg3 other 0.0 3.0\n")
    config: dict[str, Any] = {
        "run": str(tmp_path / "run"),
        "corpus": {"documents": str(tmp_path / "data")},
        "features": {"options": OPTIONS},
        "executor": {"kind": "serial"},
    }
    swsdist.run(config, selection=StepSelection(until="index"))
    wanted = {
        "talk:1.0-1.6": f"{talk}:1.0-1.6",
        "seg1:1.0-1.6": f"{talk}:1.0-1.6",
        "seg2": f"{talk}:2.0-3.0",
        "talk#1:0-1": f"{talk}:0-1",
    }
    for name, file in wanted.items():
        found, same = (swsdist.search(str(tmp_path / "run"), one, top=3, trim=False) for one in (name, file))
        assert found.drop(columns="query_id").equals(same.drop(columns="query_id"))
    assert swsdist.search(str(tmp_path / "run"), "seg1:1.0-1.6", trim=False).iloc[0][["doc_id", "start"]].tolist() == [
        "talk",
        1.0,
    ]
    with raises(families.UNKNOWN_NAME, doc_id="talk", channel=2):
        swsdist.search(str(tmp_path / "run"), "talk#2:0-1", trim=False)


def test_a_table_of_queries(store: Store, place: Path) -> None:
    talk = str(place / "audio" / "d2.wav")
    table = pd.DataFrame(
        {"query_id": ["q", "q", "p"], "path": [talk] * 3, "start": [1.0, 2.0, 0.5], "end": [1.6, 2.5, 1.1]}
    )
    found = swsdist.search(store, table, top=4, trim=False)
    assert sorted(set(found["query_id"])) == ["p", "q"]
    assert {1, 2} >= set(found[found["query_id"] == "q"]["example"])
    same = Searcher(store, trim=False).search(pa.Table.from_pandas(table, preserve_index=False), 4)
    assert same.equals(found)


def test_the_cut_into_shards_does_not_matter(store: Store, place: Path, tmp_path: Path) -> None:
    from swsdist.pipeline.chain_run import StepSelection

    config: dict[str, Any] = {
        "run": str(tmp_path / "run"),
        "corpus": {"documents": str(place / "audio")},
        "features": {"options": OPTIONS},
        "executor": {"kind": "serial"},
    }
    swsdist.run(config, selection=StepSelection(until="index"))
    one = swsdist.search(str(tmp_path / "run" / "store"), str(place / "hello.wav"), top=50, trim=False)
    assert one.equals(swsdist.search(store, str(place / "hello.wav"), top=50, trim=False))


def test_options_count(store: Store, place: Path) -> None:
    plain = swsdist.search(store, str(place / "hello.wav"), top=1, trim=False)
    squared = swsdist.search(store, str(place / "hello.wav"), options={"distance": "cosine-squared"}, top=1, trim=False)
    assert squared.iloc[0]["doc_id"] == "d2"
    assert squared.iloc[0]["cost"] != plain.iloc[0]["cost"]


@pytest.mark.parametrize("how", ["best", "mean", "template"])
def test_several_examples(store: Store, place: Path, how: str) -> None:
    """The same moment cut three ways: all find it, and first. A path has the frames of the cut that found it."""
    places = [(1.0, 1.6), (1.02, 1.58), (0.98, 1.62)]
    path = str(place / "audio" / "d2.wav")
    rows = pd.DataFrame([{"query_id": "q", "path": path, "start": start, "end": end} for start, end in places])
    hits = swsdist.search(store, rows, options={"examples": how}, top=3, trim=False)
    assert len(hits) == 3
    assert hits["score"].is_monotonic_decreasing
    best = hits.iloc[0]
    assert best["doc_id"] == "d2"
    assert (best["start"], best["end"]) == (pytest.approx(1.0, abs=0.06), pytest.approx(1.6, abs=0.06))


# -- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"distanse": "cosine"}, "search.distanse"),
        ({"distance": "hamming"}, "search.distance"),
        ({"lanes": 0}, "search.lanes"),
    ],
)
def test_wrong_options(store: Store, place: Path, options: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        swsdist.search(store, str(place / "hello.wav"), options=options, trim=False)
    assert caught.value.where == where


def test_a_query_that_cannot_be_used(store: Store, place: Path) -> None:
    with pytest.raises(DataError, match="there is no file") as caught:
        swsdist.search(store, str(place / "gone.wav"), trim=False)
    assert str(place / "gone.wav") in str(caught.value)
    with pytest.raises(DataError, match=r"does not contain 1\.0 s to 9\.0 s"):
        swsdist.search(store, f"{place / 'hello.wav'}:1-9", trim=False)


def test_a_table_without_what_it_needs(store: Store) -> None:
    with raises(families.MISSING_COLUMN, columns="name") as caught:
        swsdist.search(store, pd.DataFrame({"name": ["x"]}), trim=False)
    assert "query_id and path" in str(caught.value)
