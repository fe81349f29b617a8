"""Search without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile

import swsdist
from swsdist.audio.streams import permitted
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError, DataError, UserError
from swsdist.core.types import DETECTIONS
from swsdist.pipeline.chain_run import StepSelection
from swsdist.searcher.queries import parse_query
from swsdist.store.reading import Store
from tests.support.coded import raises

RATE = 8000
OPTIONS = {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}


def index(run: Path, documents: Path, **more: Any) -> None:
    config = {"run": str(run), "corpus": {"documents": str(documents)}, "features": {"options": OPTIONS}}
    swsdist.run(config | {"executor": {"kind": "serial"}} | more, selection=StepSelection(until="index"))


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
    index(root / "run", root / "audio", index={"shards": 2})
    return root


@pytest.fixture(scope="module")
def store(place: Path) -> Store:
    return swsdist.open_store(str(place / "run" / "store"))


# -- what is typed ----------------------------------------------------------------------------------------------------


def test_parse(tmp_path: Path) -> None:
    for text, path, channel, start, end in (
        ("hello.wav", "hello.wav", None, None, None),
        ("talk.flac:12.3-13.1", "talk.flac", None, 12.3, 13.1),
        ("talk.flac:0-1", "talk.flac", None, 0.0, 1.0),
        ("talk.flac:12:03.5-12:04.2", "talk.flac", None, 723.5, 724.2),
        ("s3://b/talk.flac:1:02:03-1:02:04.25", "s3://b/talk.flac", None, 3723.0, 3724.25),
        ("talk.flac:59-1:00", "talk.flac", None, 59.0, 60.0),
        ("talk.flac:1:2:3:4-5", "talk.flac:1", None, 7384.0, 5.0),
        ("a:b.wav:1.-2.5", "a:b.wav", None, 1.0, 2.5),
        ("s3://bucket/talk.flac", "s3://bucket/talk.flac", None, None, None),
        ("talk.flac:-1-2", "talk.flac:-1-2", None, None, None),
        ("s3://bucket/talk.flac:1", "s3://bucket/talk.flac:1", None, None, None),
        ("talk.flac:100,0-100,8", "talk.flac", None, 100.0, 100.8),
        ("talk.flac:12,3-13.1", "talk.flac", None, 12.3, 13.1),
        ("talk.flac:1:02,500-1:03,250", "talk.flac", None, 62.5, 63.25),
        ("talk.flac:0,500-0,750", "talk.flac", None, 0.5, 0.75),
        ("talk.flac:1,250-1,5", "talk.flac", None, 1.25, 1.5),
        ("talk.flac#2", "talk.flac", 2, None, None),
        ("s3://bucket/talk.flac#2:1-2", "s3://bucket/talk.flac", 2, 1.0, 2.0),
        ("a#1#2:1-2", "a#1", 2, 1.0, 2.0),
        ("a#b.wav", "a#b.wav", None, None, None),
        ("#2", "#2", None, None, None),
    ):
        row = parse_query(text)
        found = tuple(row[key] for key in ("query_id", "path", "channel", "start", "end", "example", "speaker"))
        assert found == (text, path, channel, start, end, 1, None)
    (tmp_path / "talk:1-2").touch()  # a file whose name looks like a place
    assert parse_query(f"{tmp_path}/talk:1-2")["path"] == f"{tmp_path}/talk:1-2"
    for text, number in {"1,234-1,300": "1.234", "1-1,300": "1.300", "1.5-100,250": "100.250"}.items():
        with raises(families.AMBIGUOUS, where=text, decimal=number, thousands=number.replace(".", "")):
            parse_query(f"talk.flac:{text}")


def test_a_query_is_no_command(store: Store) -> None:
    """Neither typed nor in a table, even where the commands of a list may be run."""
    with permitted(True):
        for text in ("touch x; cat hello.wav |", "cat hello.wav |:0.1-0.2"):
            with raises(families.COMMAND_REFUSED, where=text):
                parse_query(text)
        with raises(families.COMMAND_REFUSED):
            swsdist.search(store, pd.DataFrame({"query_id": ["q"], "path": ["cat hello.wav |"]}))
    assert not Path("x").exists()


# -- what is found ----------------------------------------------------------------------------------------------------


def test_a_cut_is_found_where_it_was_cut_and_a_place_finds_itself(store: Store, place: Path) -> None:
    found = swsdist.search(store, str(place / "hello.wav"), trim=False)
    assert list(found.columns) == [name for name in DETECTIONS.names if name not in ("decision", "system")]
    first = found.iloc[0]
    assert first[["doc_id", "start", "end"]].tolist() == ["d2", *(pytest.approx(t, abs=0.05) for t in (1.0, 1.6))]
    assert (found["score"].diff().dropna() <= 0).all()
    text = f"{place / 'audio' / 'd2.wav'}:1.0-1.6"
    both = swsdist.search(store, [text, str(place / "hello.wav")], top=3, trim=False)
    assert both.groupby("query_id").size().to_dict() == {text: 3, str(place / "hello.wav"): 3}
    assert both[both["query_id"] == text].iloc[0][["doc_id", "start"]].tolist() == ["d2", 1.0]
    squared = swsdist.search(store, str(place / "hello.wav"), options={"distance": "cosine-squared"}, trim=False).iloc[
        0
    ]
    assert (squared["doc_id"], squared["cost"] != first["cost"]) == ("d2", True)


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


def test_what_are_no_samples(store: Store) -> None:
    no_samples: list[tuple[Any, Any]] = [
        (ZEROS, audio_codes.NOT_A_RECORDING),
        ((ZEROS.astype(np.int16), RATE), audio_codes.SAMPLES_NOT_FLOAT),
        ((np.stack([ZEROS, ZEROS]), RATE), audio_codes.SAMPLES_NOT_MONO),
        ((ZEROS[:0], RATE), audio_codes.SAMPLES_NOT_MONO),
        ((ZEROS + np.nan, RATE), audio_codes.NON_FINITE_SAMPLES),
        ((ZEROS + 3e4, RATE), audio_codes.SAMPLES_TOO_LARGE),
        *(((ZEROS, rate), audio_codes.BAD_SAMPLE_RATE) for rate in (0, 8000.5, float("nan"), "8000")),
        (5, audio_codes.NOT_A_RECORDING),
    ]
    for given, code in no_samples:
        for queries in (given, [given]):
            with pytest.raises(UserError) as caught:
                swsdist.search(store, queries)
            message = code.message.partition("{")[0] or code.message.rpartition("}")[2]
            assert message in caught.value.message
            assert caught.value.where == "array 1"
    with pytest.raises(DataError, match="the query contains no speech") as silent:
        swsdist.search(store, [(ZEROS, RATE)])
    assert silent.value.where == "array 1"


def test_what_cannot_be_searched(store: Store, place: Path) -> None:
    hello = str(place / "hello.wav")
    for queries in (f"{place}/gone.wav", [hello, f"{place}/gone.wav"]):
        with pytest.raises(DataError, match="there is no file"):
            swsdist.search(store, queries, trim=False)
    with pytest.raises(DataError, match=r"does not contain 1\.0 s to 9\.0 s"):
        swsdist.search(store, f"{hello}:1-9", trim=False)
    for options in ({"distanse": "cosine"}, {"distance": "hamming"}, {"lanes": 0}):
        with pytest.raises(ConfigError) as caught:
            swsdist.search(store, hello, options=options, trim=False)
        assert caught.value.where == f"search.{next(iter(options))}"
    with raises(families.MISSING_COLUMN, columns="name"):
        swsdist.search(store, pd.DataFrame({"name": ["x"]}), trim=False)


def test_a_run_is_searched_as_it_searched(place: Path, store: Store, tmp_path: Path) -> None:
    """Its folder stands for its store, with its options and its trimming; options that are given come first."""
    run, query = str(tmp_path / "run"), str(place / "hello.wav")
    index(tmp_path / "run", place / "audio", search={"distance": "cosine-squared"}, queries={"trim": "none"})
    squared = swsdist.search(store, query, options={"distance": "cosine-squared"}, trim=False)
    assert swsdist.search(run, query).equals(squared)
    plain = swsdist.search(store, query, trim=False)
    assert swsdist.search(run, query, options={"distance": "cosine"}).equals(plain)
    # The cut into shards does not matter.
    one = swsdist.search(f"{run}/store", query, top=50, trim=False)
    assert one.equals(swsdist.search(store, query, top=50, trim=False))


def test_a_channel_that_was_chosen_is_warned_of(store: Store, place: Path, tmp_path: Path) -> None:
    samples, rate = soundfile.read(place / "hello.wav")
    talk = tmp_path / "talk.wav"
    soundfile.write(talk, np.stack([samples, samples[::-1]], 1), rate)
    with pytest.warns(UserWarning, match=rf"channel 1 of the 2 channels of {talk} is searched; others: {talk}#2"):
        first = swsdist.search(store, str(talk), top=3, trim=False)
    named = swsdist.search(store, f"{talk}#1", top=3, trim=False)
    assert named.drop(columns="query_id").equals(first.drop(columns="query_id"))


def test_documents_of_the_store_are_queries(place: Path, tmp_path: Path) -> None:
    """By their names, and by those of the recordings that they are places in; times are the recording's."""
    talk, run = place / "audio" / "d2.wav", str(tmp_path / "run")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "wav.scp").write_text(f"talk {talk}\nother {place / 'audio' / 'd1.wav'}\n")
    (tmp_path / "data" / "segments").write_text("seg1 talk 0.5 2.0\nseg2 talk 2.0 3.0\nseg3 other 0.0 3.0\n")
    index(tmp_path / "run", tmp_path / "data")
    wanted = {"talk:1.0-1.6": "1.0-1.6", "seg1:1.0-1.6": "1.0-1.6", "seg2": "2.0-3.0", "talk#1:0-1": "0-1"}
    for name, where in wanted.items():
        found, same = (swsdist.search(run, one, top=3, trim=False) for one in (name, f"{talk}:{where}"))
        assert found.drop(columns="query_id").equals(same.drop(columns="query_id"))
    best = swsdist.search(run, "seg1:1.0-1.6", trim=False).iloc[0]
    assert best[["doc_id", "start"]].tolist() == ["talk", 1.0]
    with raises(families.UNKNOWN_NAME, doc_id="talk", channel=2):
        swsdist.search(run, "talk#2:0-1", trim=False)


# -- what cannot be ---------------------------------------------------------------------------------------------------
