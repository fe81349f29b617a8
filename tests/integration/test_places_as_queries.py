"""Queries that are places in recordings: found at no cost, normalised by their recording, and their own places no hits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile
import soxr

import swsdist
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.pipeline.chain_run import StepSelection
from swsdist.reduce.spans import outside_places, source_places
from swsdist.stages.buckets import Measured
from tests.support.coded import raises, says
from tests.support.tables import read_rows, write_rows


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """Queries are the first true occurrence of each, by the name of its document."""
    references = read_rows(own_corpus.corpus / "refs.csv")
    first = {row["query_id"]: row for row in reversed(references)}
    for name, key, ends in (("named", "doc_id", "{}"), ("filed", "path", "audio/{}.flac")):
        places = [
            {"query_id": query, key: ends.format(row["doc_id"]), "start": row["start"], "end": row["end"]}
            for query, row in first.items()
        ]
        write_rows(own_corpus.corpus / f"{name}.csv", places)
    own_corpus.first = first
    own_corpus.count = len(references)
    return own_corpus


def at_own(scene: Any, result: Any) -> int:
    """Detections that overlap with their query's own place by more than half."""
    found = 0
    for row in result.detections().to_dict("records"):
        own = scene.first[row["query_id"]]
        start, end = float(own["start"]), float(own["end"])
        common = min(end, row["end"]) - max(start, row["start"])
        found += row["doc_id"] == own["doc_id"] and common > min(end - start, row["end"] - row["start"]) / 2
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "option", "left_out"),
    [("named", None, True), ("named", "keep", False), ("filed", None, False), ("filed", "leave-out", True)],
)
def test_own_places(scene: Any, table: str, option: str | None, left_out: bool) -> None:
    sets = [f"corpus.queries={scene.corpus}/{table}.csv", "calibrate.fit=none", "report.exports=[csv]"]
    result = scene.run(*sets, *([f"corpus.own_places={option}"] if option else []), run=f"{table}-{option}")
    assert at_own(scene, result) == (0 if left_out else len(scene.first))
    (measured,) = result.outcome.chain_run.results("measures", Measured)
    true = measured.point["true"]
    assert true == scene.count - (len(scene.first) if left_out else 0)
    told = [one for one in result.outcome.chain_run.notices() if "cut from" in one]
    summary = [one for one in result.outcome.chain_run.chain.summary(result.outcome.chain_run) if "cut from" in one]
    assert (bool(told), bool(summary)) == (not left_out, left_out)


def test_of_trials_that_are_documents_none_is_left_out(scene: Any) -> None:
    sets = [
        f"corpus.queries={scene.corpus}/named.csv",
        "calibrate.fit=none",
        "report.exports=[]",
        "score.trials=document",
    ]
    assert at_own(scene, scene.run(*sets)) == len(scene.first)
    with raises(families.UNSUPPORTED):
        scene.run(*sets, "corpus.own_places=leave-out")


def test_a_place_is_left_out_on_all_channels() -> None:
    documents = pa.table({"doc_id": ["tape", "tape"], "channel": [1, 2], "path": ["tape.wav"] * 2})
    query = {"query_id": "q", "doc_id": "tape", "path": None, "channel": 2, "start": 3.0, "end": 4.0}
    places = source_places([query], documents, by_path=False)
    assert places == {("q", "tape"): [(3.0, 4.0)]}
    found = pa.table(
        {"query_id": ["q", "q", "q", "p"], "doc_id": ["tape"] * 4, "channel": [1, 2, 2, 2]}
        | {"start": [3.1, 2.9, 3.6, 3.0], "end": [4.1, 3.9, 4.6, 4.0]}
    )
    assert outside_places(found, places)["start"].to_pylist() == [3.6, 3.0]


#: Copies of a recording: rate, coding, and what of its band is left.
CHANNELS = {
    "telephone": (8000, "ULAW", (300, 3400)),
    "coarse": (11025, "PCM_U8", (0, 5000)),
    "wide": (16000, "PCM_16", (0, 8000)),
}


PLACES = ((0.5, 1.1), (1.3, 2.0))


#: Of a cost: what resampling from another sample on changes. A frame that is unlike all is thousands.
NEXT_TO_NOTHING = 64


def passed(samples: np.ndarray, rate: int, low: int, high: int) -> np.ndarray:
    lines = np.fft.rfft(samples)
    frequencies = np.fft.rfftfreq(len(samples), 1 / rate)
    lines[(frequencies < low) | (frequencies > high)] = 0
    return np.asarray(np.fft.irfft(lines, len(samples)))


@pytest.fixture
def scene_of_marked_places(own_corpus: Any) -> Any:
    """The corpus, and one recording, long enough for a mean, through each of the channels; in the archive, and not."""
    audio: Path = own_corpus.corpus / "audio"
    parts = [soundfile.read(path, dtype="float32")[0] for path in sorted(audio.iterdir())[:4]]
    tape = np.concatenate(parts)[: 20 * 16000]
    for name, (rate, coding, band) in CHANNELS.items():
        copy = passed(soxr.resample(tape, 16000, rate), rate, *band)
        for folder in (audio, own_corpus.folder):
            soundfile.write(folder / f"{name}.wav", 0.9 * copy, rate, subtype=coding)
    docs = own_corpus.corpus / "docs.csv"
    write_rows(docs, [*read_rows(docs), *({"doc_id": name, "path": f"audio/{name}.wav"} for name in CHANNELS)])
    return own_corpus


def test_each_place_finds_itself_at_no_cost(scene_of_marked_places: Any) -> None:
    """By `search`, and by a run whose queries name documents; also at the beginning of a recording."""
    scene_of_marked_places.run("corpus.references=null", selection=StepSelection(until="index"))
    store = str(scene_of_marked_places.folder / "run" / "store")
    for name in CHANNELS:
        for start, end in PLACES:
            query = f"{scene_of_marked_places.corpus / 'audio' / name}.wav:{start}-{end}"
            found = swsdist.search(store, query, top=3)
            best = found.iloc[0]
            assert best.doc_id == name
            assert best.cost <= NEXT_TO_NOTHING
            assert abs(best.start - start) <= 0.02
    rows = [
        {"query_id": f"{name}-{k}", "doc_id": name, "start": start, "end": end}
        for name in CHANNELS
        for k, (start, end) in enumerate(PLACES)
    ]
    write_rows(scene_of_marked_places.corpus / "queries.csv", rows)
    result = scene_of_marked_places.run("corpus.references=null", "report.exports=[]", "corpus.own_places=keep")
    best = result.detections().groupby("query_id").first()
    assert best["doc_id"].to_dict() == {row["query_id"]: row["doc_id"] for row in rows}
    assert best["cost"].max() <= NEXT_TO_NOTHING


def test_a_recording_that_is_not_indexed(scene_of_marked_places: Any) -> None:
    """Its statistics are those of the minutes around the place: of twenty seconds the same as of all of it."""
    scene_of_marked_places.run("corpus.references=null", selection=StepSelection(until="index"))
    store = str(scene_of_marked_places.folder / "run" / "store")
    for name in CHANNELS:
        query = f"{scene_of_marked_places.folder / name}.wav:0.5-1.1"
        best = swsdist.search(store, query, top=3).iloc[0]
        assert best.doc_id == name
        assert best.cost <= NEXT_TO_NOTHING


def test_bandwidths_are_told_where_features_see_them(scene_of_marked_places: Any) -> None:
    """Of documents when they are indexed, of a query when it is searched; not where features end below what all have."""
    wide = scene_of_marked_places.run("corpus.references=null", selection=StepSelection(until="index"))
    (told,) = (one for one in wide.outcome.chain_run.notices() if "band" in one)
    assert says(told, chains_codes.NARROW_BAND)
    assert "(first: telephone: up to 4 kHz, others up to 8 kHz)" in told
    store = swsdist.open_store(str(scene_of_marked_places.folder / "run" / "store"))
    hz = {row["doc_id"]: row["bandwidth"] for row in store.documents(columns=["doc_id", "bandwidth"]).to_pylist()}
    assert (hz["telephone"], hz["coarse"], hz["wide"]) == (4000.0, 6000.0, 8000.0)
    query = f"{scene_of_marked_places.folder}/telephone.wav:0.5-1.1"
    with pytest.warns(UserWarning, match=r"documents have another band than .*telephone.wav:0.5-1.1: up to 4 kHz"):
        swsdist.search(store, query, top=3)
    narrow = scene_of_marked_places.run(
        "corpus.references=null", "features.options.fmax=3700", selection=StepSelection(until="index"), run="narrow"
    )
    assert not [one for one in narrow.outcome.chain_run.notices() if "band" in one]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        swsdist.search(str(scene_of_marked_places.folder / "narrow" / "store"), query, top=3)
