"""A query that is a place in a recording is normalised by its recording's statistics, as the documents are."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

import swsdist
from swsdist.core.codes import pipeline as chains_codes
from swsdist.pipeline.chain_run import StepSelection
from tests.support.coded import says

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
def scene(own_corpus: Any) -> Any:
    """The corpus, and one recording, long enough for a mean, through each of the channels; in the archive, and not."""
    audio: Path = own_corpus.corpus / "audio"
    parts = [soundfile.read(path, dtype="float32")[0] for path in sorted(audio.iterdir())[:4]]
    tape = np.concatenate(parts)[: 20 * 16000]
    for name, (rate, coding, band) in CHANNELS.items():
        copy = passed(soxr.resample(tape, 16000, rate), rate, *band)
        for folder in (audio, own_corpus.folder):
            soundfile.write(folder / f"{name}.wav", 0.9 * copy, rate, subtype=coding)
    with (own_corpus.corpus / "docs.csv").open("a", newline="") as file:
        fields = (own_corpus.corpus / "docs.csv").read_text().splitlines()[0].split(",")
        writer = csv.DictWriter(file, fields, restval="")
        writer.writerows({"doc_id": name, "path": f"audio/{name}.wav"} for name in CHANNELS)
    return own_corpus


def test_each_place_finds_itself_at_no_cost(scene: Any) -> None:
    """By `search`, and by a run whose queries name documents; also at the beginning of a recording."""
    scene.run("corpus.references=null", selection=StepSelection(until="index"))
    store = str(scene.folder / "run" / "store")
    for name in CHANNELS:
        for start, end in PLACES:
            query = f"{scene.corpus / 'audio' / name}.wav:{start}-{end}"
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
    with (scene.corpus / "queries.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["query_id", "doc_id", "start", "end"])
        writer.writeheader()
        writer.writerows(rows)
    result = scene.run("corpus.references=null", "report.exports=[]", "corpus.own_places=keep")
    best = result.detections().groupby("query_id").first()
    assert best["doc_id"].to_dict() == {row["query_id"]: row["doc_id"] for row in rows}
    assert best["cost"].max() <= NEXT_TO_NOTHING


def test_a_recording_that_is_not_indexed(scene: Any) -> None:
    """Its statistics are those of the minutes around the place: of twenty seconds the same as of all of it."""
    scene.run("corpus.references=null", selection=StepSelection(until="index"))
    store = str(scene.folder / "run" / "store")
    for name in CHANNELS:
        query = f"{scene.folder / name}.wav:0.5-1.1"
        best = swsdist.search(store, query, top=3).iloc[0]
        assert best.doc_id == name
        assert best.cost <= NEXT_TO_NOTHING


def test_bandwidths_are_told_where_features_see_them(scene: Any) -> None:
    """Of documents when they are indexed, of a query when it is searched; not where features end below what all have."""
    wide = scene.run("corpus.references=null", selection=StepSelection(until="index"))
    (told,) = (one for one in wide.outcome.chain_run.notices() if "band" in one)
    assert says(told, chains_codes.NARROW_BAND)
    assert "(first: telephone: up to 4 kHz, others up to 8 kHz)" in told
    store = swsdist.open_store(str(scene.folder / "run" / "store"))
    hz = {row["doc_id"]: row["bandwidth"] for row in store.documents(columns=["doc_id", "bandwidth"]).to_pylist()}
    assert (hz["telephone"], hz["coarse"], hz["wide"]) == (4000.0, 6000.0, 8000.0)
    query = f"{scene.folder}/telephone.wav:0.5-1.1"
    with pytest.warns(UserWarning, match=r"documents have another band than .*telephone.wav:0.5-1.1: up to 4 kHz"):
        swsdist.search(store, query, top=3)
    narrow = scene.run(
        "corpus.references=null", "features.options.fmax=3700", selection=StepSelection(until="index"), run="narrow"
    )
    assert not [one for one in narrow.outcome.chain_run.notices() if "band" in one]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        swsdist.search(str(scene.folder / "narrow" / "store"), query, top=3)
