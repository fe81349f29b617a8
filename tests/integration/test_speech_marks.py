"""The store says where there is speech, and a search that skips the rest gives the recording's times."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.audio.speech import unpack_marks
from swsdist.config import config_from_dict
from swsdist.core.codes import config as codes
from tests.support.coded import raises
from tests.support.tables import read_rows

ROOM = 2.0  # s between two words of a document


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """Documents are words with room between them; queries are three of the words."""
    scene = own_corpus
    rng = np.random.default_rng(8)
    rows = [row for row in read_rows(scene.corpus / "queries.csv") if row["example"] == "1"]
    words = {row["query_id"]: soundfile.read(scene.corpus / row["path"])[0] for row in rows}
    rate = soundfile.info(scene.corpus / rows[0]["path"]).samplerate
    documents, references = [], []
    for k in range(4):
        parts, at = [rng.normal(scale=1e-4, size=round(ROOM * rate))], ROOM
        for query_id in rng.permutation(sorted(words)):
            word = words[query_id]
            references.append((query_id, f"d{k}", 1, round(at, 3), round(at + len(word) / rate, 3)))
            parts += [word, rng.normal(scale=1e-4, size=round(ROOM * rate))]
            at += len(word) / rate + ROOM
        path = scene.corpus / f"d{k}.wav"
        soundfile.write(path, np.concatenate(parts), rate)
        documents.append((f"d{k}", path.name, round(at, 4)))
    for name, header, table in (
        ("docs", ("doc_id", "path", "duration"), documents),
        ("refs", ("query_id", "doc_id", "channel", "start", "end"), references),
    ):
        with (scene.corpus / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *table])
    with (scene.corpus / "queries.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("query_id", "path"), *((row["query_id"], row["path"]) for row in rows)])
    return scene


def hits(result: Any) -> dict[tuple[str, str], tuple[float, float, int]]:
    """The best detection of each query in each document."""
    found: dict[tuple[str, str], tuple[float, float, int]] = {}
    for row in result.detections().sort_values("score", ascending=False).to_dict("records"):
        found.setdefault((row["query_id"], row["doc_id"]), (row["start"], row["end"], row["cost"]))
    return found


@pytest.mark.slow
def test_what_is_found_without_the_silence_is_found_at_the_same_place(scene: Any) -> None:
    everything = scene.run("index.shards=1")
    spoken = scene.run("index.shards=3", "search.skip_silence=true", run="spoken")
    assert spoken.report.counts.speech == everything.report.counts.speech
    assert 0.1 < spoken.report.counts.speech < 0.6
    store = scene.store("spoken")
    documents = store.documents()
    # As many cells as there are frames of speech.
    marked = sum(unpack_marks(row["speech"], row["frames"]).sum() for row in documents.to_pylist())
    cells = [
        sum(receipt.cost.cells for receipt in result.outcome.chain_run.outcomes["search"].receipts)
        for result in (spoken, everything)
    ]
    assert cells[0] * sum(documents["frames"].to_pylist()) == cells[1] * marked
    references = read_rows(scene.corpus / "refs.csv")
    of_all, of_spoken = hits(everything), hits(spoken)
    assert len(references) == len(of_spoken) > 10
    for row in references:
        key, true = (row["query_id"], row["doc_id"]), (float(row["start"]), float(row["end"]))
        for start, end, _ in (of_all[key], of_spoken[key]):
            assert start < true[1]
            assert true[0] < end
        # The word itself lies whole in speech, so the best path through it is the same.
        assert of_spoken[key] == of_all[key]


@pytest.mark.until("queries")
def test_a_second_track_and_a_query_have_no_marks(scene: Any) -> None:
    scene.run("features=[{name: mfcc}, {name: mfcc, track: fewer, options: {n_mfcc: 7}}]", "search.distance=cosine")
    store = scene.store()
    assert [store.documents(track=track.name)["speech"].null_count for track in store.manifest.tracks] == [0, 4]
    assert scene.store("run", "queries").manifest.counts.get("heard_seconds", 0) == 0


@pytest.mark.parametrize("first_pass", ["coarse", "quantised"])
def test_a_first_pass_reads_all_frames(first_pass: str) -> None:
    with raises(codes.FIRST_PASS_CONFLICT, setting="skip_silence: true"):
        config_from_dict(
            {
                "run": "r",
                "corpus": {"documents": "d.csv", "queries": "q.csv"},
                "search": {"skip_silence": True, "first_pass": {"name": first_pass}},
            }
        )
