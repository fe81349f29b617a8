"""Queries: trimmed to their speech, kept in a store, places in recordings, or spoken by a voice."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile
import soxr
from commands import in_this_process
from starlette.testclient import TestClient

import swsdist
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.reduce.spans import outside_places, source_places
from swsdist.searcher.searcher import Searcher
from swsdist.server.app import create_app
from swsdist.server.security import Guard
from swsdist.server.service import Service, Settings
from swsdist.stages.buckets import Measured
from swsdist.store.maintaining import check, compact, refit
from tests.support.coded import raises, says
from tests.support.tables import read_rows, write_rows

RNG = np.random.default_rng(3)
BEFORE, AFTER = 0.7, 0.5


@pytest.fixture
def asked(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def noise(seconds: float, rate: int) -> np.ndarray:
    return RNG.normal(scale=1e-3, size=round(seconds * rate))


@pytest.fixture
def recorded(asked: Any) -> list[dict[str, str]]:
    """The corpus's queries with faint noise around them; as rows."""
    rows = [row for row in read_rows(asked.corpus / "queries.csv") if row["example"] == "1"]
    for row in rows:
        samples, rate = soundfile.read(asked.corpus / row["path"])
        soundfile.write(
            asked.corpus / row["path"], np.concatenate([noise(BEFORE, rate), samples, noise(AFTER, rate)]), rate
        )
    return rows


def ask(asked: Any, rows: list[dict[str, Any]]) -> None:
    names = ("query_id", "example", "path", "start", "end")
    write_rows(asked.corpus / "queries.csv", [{name: row.get(name, "") for name in names} for row in rows])


@pytest.mark.slow
def test_a_report_says_what_was_cut(asked: Any, recorded: list[dict[str, str]]) -> None:
    seconds = {row["query_id"]: soundfile.info(asked.corpus / row["path"]).duration for row in recorded}
    ask(asked, recorded)
    asked.run()
    report = asked.report()
    assert report["counts"]["trimmed"] == len(recorded)
    queries = asked.store("run", "queries")
    kept = dict(zip(*(queries.documents()[name].to_pylist() for name in ("doc_id", "duration")), strict=True))
    for row in report["per_query"]:
        assert row["cut"] == pytest.approx(BEFORE + AFTER, abs=0.35)
        assert row["duration"] == pytest.approx(kept[row["query_id"]])
        assert row["duration"] + row["cut"] == pytest.approx(seconds[row["query_id"]], abs=0.002)
    # SSF is of the queries as they were given.
    cost = report["resources"]
    assert cost["query_seconds"] == pytest.approx(sum(seconds.values()), abs=0.01)
    assert cost["searched_query_seconds"] == pytest.approx(sum(kept.values()))
    assert report["ssf"] * cost["query_seconds"] * cost["audio_seconds"] == pytest.approx(cost["search_cpu_s"])
    page = (asked.folder / "run" / "report.html").read_text()
    assert f"{len(recorded)} trimmed to their speech" in page


def test_ends_that_were_given_stay(asked: Any, recorded: list[dict[str, str]]) -> None:
    one = recorded[0]
    whole = soundfile.info(asked.corpus / one["path"]).duration
    places = [("0.1", "0.9"), ("0.1", ""), ("", str(round(whole - 0.1, 3))), ("", "")]
    ask(asked, [{**one, "query_id": f"q{k}", "start": a, "end": b} for k, (a, b) in enumerate(places)])
    asked.run("corpus.references=null", "calibrate.fit=none")
    cut = {row["query_id"]: row["cut"] for row in asked.report()["per_query"]}
    assert cut["q0"] is None
    assert cut["q1"] == pytest.approx(AFTER, abs=0.2)
    assert cut["q2"] == pytest.approx(BEFORE, abs=0.2)
    assert cut["q3"] == pytest.approx(BEFORE + AFTER, abs=0.35)


@pytest.mark.until("queries")
def test_a_query_without_speech_is_rejected(asked: Any, recorded: list[dict[str, str]]) -> None:
    rate = soundfile.info(asked.corpus / recorded[0]["path"]).samplerate
    soundfile.write(asked.corpus / "queries" / "empty.wav", noise(1.0, rate), rate)
    ask(asked, [*recorded, {"query_id": "empty", "example": "1", "path": "queries/empty.wav"}])
    asked.run()
    (row,) = asked.rejected()
    assert (row["id"], row["reason"]) == ("empty", "no-speech")
    assert "queries.trim: none" in row["remedy"]
    asked.run("queries.trim=none")
    assert asked.rejected() == []


@pytest.mark.parametrize("kind", ["speech that goes on", "a word in a tape"])
@pytest.mark.until("queries")
def test_a_tape_is_no_query(asked: Any, recorded: list[dict[str, str]], kind: str) -> None:
    """It is rejected with what to do, where some phrase of it would be searched; as it is it may still be asked for."""
    word, rate = soundfile.read(asked.corpus / recorded[0]["path"])
    parts = [noise(20, rate), word, noise(20, rate)]
    if kind == "speech that goes on":  # no pauses, else there is one phrase a word
        speech = word[round(BEFORE * rate) : -round(AFTER * rate)]
        parts = [speech] * (round(35 * rate / len(speech)) + 1)
    soundfile.write(asked.corpus / "queries" / "tape.wav", np.concatenate(parts), rate)
    ask(asked, [*recorded, {"query_id": "tape", "example": "1", "path": "queries/tape.wav"}])
    asked.run()
    (row,) = asked.rejected()
    assert (row["id"], row["reason"]) == ("tape", "too-long")
    assert "mark a place: FILE:START-END" in row["remedy"]
    with raises(families.TOO_LONG):
        swsdist.search(str(asked.folder / "run" / "store"), str(asked.corpus / "queries" / "tape.wav"))


LONG = {"name": "mfcc", "track": "long", "options": {"n_mfcc": 7, "deltas": 0, "n_fft": 1024, "win_length": 800}}
BOTH = f"features={json.dumps([{'name': 'mfcc'}, LONG])}"
STREAMS = f"search.streams={json.dumps([{'track': 'long'}, {'track': 'mfcc', 'columns': [13, 26]}])}"


def ask_alone(asked: Any, rows: list[dict[str, str]]) -> None:
    """Let these be the queries; there are no references to them."""
    write_rows(asked.corpus / "queries.csv", rows)
    with (asked.corpus / "refs.csv").open("w") as file:
        file.write("query_id,doc_id,start,end\n")


def stores(asked: Any) -> tuple[Any, Any]:
    """Of the documents, and of the queries."""
    return asked.store(), asked.store(name="queries")


@pytest.mark.slow
def test_a_document_and_a_query_of_it_have_the_same_frames(asked: Any) -> None:
    place = {"doc_id": "d002", "start": "1.0", "end": "2.5"}
    whole = {"query_id": "whole", "example": "3", "path": "audio/d001.flac"}
    ask_alone(asked, [whole, {"query_id": "part", "example": "1", **place}])
    asked.run(BOTH, STREAMS, "queries.trim=none")
    documents, queries = stores(asked)
    assert list(check(queries)) == []
    assert (queries.manifest.kind, queries.manifest.tick) == (documents.manifest.kind, documents.manifest.tick)
    named = [[(t.name, t.recipe, t.columns, t.kind) for t in one.manifest.tracks] for one in (documents, queries)]
    assert named[0] == named[1]
    assert [name for name, *_ in named[0]] == ["mfcc", "long"]
    for track in ("mfcc", "long"):
        query, spoken = queries.features("whole", 3, track), documents.features("d001", 1, track)
        assert query.tobytes() == spoken.tobytes()
        # A place is computed with what is around it: its frames are those of the document.
        part = queries.features("part", 1, track)
        assert part.tobytes() == documents.features("d002", 1, track)[100 : 100 + len(part)].tobytes()
    rows = {row["doc_id"]: row for row in queries.documents().to_pylist()}
    assert (rows["whole"]["sha256"], rows["part"]["sha256"]) == (documents.documents()["sha256"][0].as_py(), "")
    assert rows["part"]["duration"] == 1.5
    seconds = {row["query_id"]: row["duration"] for row in asked.report()["per_query"]}
    assert seconds == {name: row["duration"] for name, row in rows.items()}


@pytest.mark.until("queries")
def test_the_store_holds_the_queries_of_the_last_plan(asked: Any) -> None:
    path = sorted(path.relative_to(asked.corpus) for path in (asked.corpus / "queries").iterdir())
    first = {"query_id": "one", "example": "1", "path": str(path[0])}
    ask_alone(asked, [first])
    asked.run()
    _, before = stores(asked)
    ask_alone(asked, [first, {"query_id": "two", "example": "1", "path": str(path[1])}])
    asked.run()
    _, after = stores(asked)
    assert after.documents()["doc_id"].to_pylist() == ["one", "two"]
    assert before.features("one").tobytes() == after.features("one").tobytes(), "an old state can still be read"
    assert after.manifest.fingerprint != before.manifest.fingerprint


@pytest.mark.until("queries")
def test_what_the_run_alone_writes_to(asked: Any) -> None:
    asked.run()
    _, queries = stores(asked)
    for change in (lambda: compact(queries.folder, 1.0), lambda: refit(queries.folder)):
        with raises(families.WRONG_KIND):
            change()
    with raises(families.WRONG_KIND, where="index.store"):
        asked.run(f"index.store={asked.folder / 'run' / 'queries'}", run="other")


@pytest.mark.until("queries")
def test_its_manifest_is_made_again_from_the_groups(asked: Any) -> None:
    asked.run()
    digest = asked.digest()
    folder = asked.folder / "run" / "queries"
    for damage in (
        lambda: (folder / "manifest.json").write_text("{"),
        lambda: (folder / "manifest.json").unlink(),
        lambda: [path.unlink() for path in folder.glob("documents-*")],
    ):
        damage()
        assert asked.run().outcome.tasks_done == 0
        assert list(check(stores(asked)[1])) == []
        assert asked.digest() == digest


@pytest.fixture
def cut_out(own_corpus: Any) -> Any:
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


def at_own(cut_out: Any, result: Any) -> int:
    """Detections that overlap with their query's own place by more than half."""
    found = 0
    for row in result.detections().to_dict("records"):
        own = cut_out.first[row["query_id"]]
        start, end = float(own["start"]), float(own["end"])
        common = min(end, row["end"]) - max(start, row["start"])
        found += row["doc_id"] == own["doc_id"] and common > min(end - start, row["end"] - row["start"]) / 2
    return found


@pytest.mark.slow
@pytest.mark.until("summarise")
def test_own_places(cut_out: Any) -> None:
    for table, option, left_out in (
        ("named", None, True),
        ("named", "keep", False),
        ("filed", None, False),
        ("filed", "leave-out", True),
    ):
        sets = [f"corpus.queries={cut_out.corpus}/{table}.csv", "calibrate.fit=none"]
        result = cut_out.run(*sets, *([f"corpus.own_places={option}"] if option else []))
        assert at_own(cut_out, result) == (0 if left_out else len(cut_out.first))
        chain_run = result.outcome.chain_run
        (measured,) = chain_run.results("measures", Measured)
        assert measured.point["true"] == cut_out.count - (len(cut_out.first) if left_out else 0)
        told = [one for one in chain_run.notices() if "cut from" in one]
        summary = [one for one in chain_run.chain.summary(chain_run) if "cut from" in one]
        assert (bool(told), bool(summary)) == (not left_out, left_out)


@pytest.mark.until("decide")
def test_of_trials_that_are_documents_none_is_left_out(cut_out: Any) -> None:
    sets = [f"corpus.queries={cut_out.corpus}/named.csv", "calibrate.fit=none", "score.trials=document"]
    assert at_own(cut_out, cut_out.run(*sets)) == len(cut_out.first)
    with raises(families.UNSUPPORTED):
        cut_out.run(*sets, "corpus.own_places=leave-out")


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


@pytest.fixture(scope="module")
def channels(new_scene: Any, small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The corpus, indexed, with a recording, long enough for a mean, through each of the channels; in the archive, and not."""
    folder = tmp_path_factory.mktemp("channels")
    shutil.copytree(small_corpus, folder / "corpus")
    scene = new_scene(folder, folder / "corpus", {}, {"report": {"exports": [], "clips": 0}})
    audio = scene.corpus / "audio"
    parts = [soundfile.read(path, dtype="float32")[0] for path in sorted(audio.iterdir())[:4]]
    tape = np.concatenate(parts)[: 20 * 16000]
    for name, (rate, coding, band) in CHANNELS.items():
        copy = passed(soxr.resample(tape, 16000, rate), rate, *band)
        for place in (audio, folder):
            soundfile.write(place / f"{name}.wav", 0.9 * copy, rate, subtype=coding)
    docs = scene.corpus / "docs.csv"
    write_rows(docs, [*read_rows(docs), *({"doc_id": name, "path": f"audio/{name}.wav"} for name in CHANNELS)])
    scene.run("corpus.references=null", until="index")
    return scene


def test_each_place_finds_itself_at_no_cost(channels: Any) -> None:
    """By `search`, and by a run whose queries name documents; also at the beginning of a recording."""
    rows = [
        {"query_id": f"{name}-{k}", "doc_id": name, "start": start, "end": end}
        for name in CHANNELS
        for k, (start, end) in enumerate(PLACES)
    ]
    for row in rows:
        query = f"{channels.corpus / 'audio' / row['doc_id']}.wav:{row['start']}-{row['end']}"
        best = swsdist.search(str(channels.folder / "run" / "store"), query, top=3).iloc[0]
        assert best.doc_id == row["doc_id"]
        assert best.cost <= NEXT_TO_NOTHING
        assert abs(best.start - row["start"]) <= 0.02
    places = f"corpus.queries={write_rows(channels.corpus / 'places.csv', rows)}"
    result = channels.run(places, "corpus.references=null", "corpus.own_places=keep", until="decide")
    best = result.detections().groupby("query_id").first()
    assert best["doc_id"].to_dict() == {row["query_id"]: row["doc_id"] for row in rows}
    assert best["cost"].max() <= NEXT_TO_NOTHING


def test_bandwidths_are_told_where_features_see_them(channels: Any) -> None:
    """Of documents when they are indexed, of a query when it is searched; not where features end below what all have."""
    wide = channels.run("corpus.references=null", until="index")
    (told,) = (one for one in wide.outcome.chain_run.notices() if "band" in one)
    assert says(told, chains_codes.NARROW_BAND)
    assert "(first: telephone: up to 4 kHz, others up to 8 kHz)" in told
    store = swsdist.open_store(str(channels.folder / "run" / "store"))
    hz = {row["doc_id"]: row["bandwidth"] for row in store.documents(columns=["doc_id", "bandwidth"]).to_pylist()}
    assert (hz["telephone"], hz["coarse"], hz["wide"]) == (4000.0, 6000.0, 8000.0)
    query = f"{channels.folder}/telephone.wav:0.5-1.1"
    with pytest.warns(UserWarning, match=r"documents have another band than .*telephone.wav:0.5-1.1: up to 4 kHz"):
        swsdist.search(store.folder.root, query, top=3)
    narrow = channels.run("corpus.references=null", "features.options.fmax=3700", until="index", run="narrow")
    assert not [one for one in narrow.outcome.chain_run.notices() if "band" in one]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        swsdist.search(str(channels.folder / "narrow" / "store"), query, top=3)


US, GB = "espeak-ng:en-us", "espeak-ng:en-gb"
speaks = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")


@pytest.fixture
def written(scene: Any) -> Any:
    """A corpus whose queries are written."""
    table = scene.folder / "written.csv"
    table.write_text("query_id,text\nq001,mother\nq002,a river\nq003,...\n")
    scene.base = {"corpus": {"documents": f"{scene.corpus}/docs.csv", "queries": str(table)}}
    return scene


@pytest.mark.until("search")
@speaks
def test_a_run_searches_what_voices_speak(written: Any) -> None:
    speak = f'queries.speak=["{US}", "{GB}"]'
    written.run(speak, "corpus.examples=all")
    spoken = written.folder / "run" / "spoken"
    assert len(sorted(spoken.glob("*.wav"))) == 4
    assert [(row["id"], row["part"]) for row in written.rejected()] == [("q003", 1), ("q003", 2)]
    assert any("[unspoken-queries]" in line for line in written.chain_runs["run"].notices())
    rows = written.chain_runs["run"].chain.inputs.corpus.queries.select(["query_id", "example", "path"]).to_pandas()
    rows[rows["path"].notna()].to_csv(written.folder / "recorded.csv", index=False)
    written.run(f"corpus.queries={written.folder}/recorded.csv", "corpus.examples=all", run="recorded")
    assert written.digest() == written.digest("recorded")
    before = written.receipts()
    written.run(speak, "corpus.examples=all")
    assert written.receipts() == before
    written.run(f"queries.speak=[{US}]", "corpus.examples=all")
    assert len(sorted(spoken.glob("*.wav"))) == 4
    assert len(written.receipts()) > len(before)


@pytest.mark.until("search")
@speaks
def test_a_store_is_searched_as_by_the_recording(written: Any, tmp_path: Path) -> None:
    written.run(f"queries.speak=[{US}]", "corpus.examples=all")
    store = str(written.folder / "run" / "store")
    found = swsdist.search(store, ["mother", "--help"], speak=[US], top=5)
    assert set(found["query_id"]) == {"mother", "--help"}
    with Searcher(store) as searcher:
        (row,) = searcher.spoken_rows("mother", [US], tmp_path)
        alike = searcher.search(row["path"], 5)
    columns = ["doc_id", "channel", "start", "end", "score"]
    assert found[found["query_id"] == "mother"][columns].values.tolist() == alike[columns].values.tolist()
    ended = in_this_process("search", store, "--text", "mother", "--speak", US, "--top", "5", "--json")
    assert [row["start"] for row in json.loads(ended.out)] == alike["start"].tolist()


@pytest.mark.until("search")
@speaks
def test_the_server_speaks_only_if_it_is_told_to(written: Any, tmp_path: Path) -> None:
    written.run(until="index")
    for voices, code in (((), 400), ((US, GB), 200)):
        service = Service(Settings(str(written.folder / "run"), tmp_path / "words", speak=voices))
        app = create_app(service, Guard(token="let me in", hosts=frozenset({"testserver"})))
        client = TestClient(app, headers={"X-Swsdist": "1"})
        client.get("/", params={"token": "let me in"})
        assert not client.get("/api/state").json()["words"]
        answer = client.post("/api/search", json={"text": "mother", "top": 3})
        assert answer.status_code == code, answer.text
        if voices:
            assert len(json.loads(answer.text.splitlines()[-1])["hits"]) == 3
            assert client.post("/api/search", json={"text": "привет"}).json()["code"] == "unreadable-script"
        service.close()
