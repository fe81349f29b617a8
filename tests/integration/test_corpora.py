"""Corpora as others keep them: Kaldi's data folders, NIST's lists, and queries of one corpus in the documents of another."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import lists_of_others as others
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import soxr

import swsdist
from swsdist.audio import streams
from swsdist.chains.check import check
from swsdist.config import config_from_dict
from swsdist.config.search import Search
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.core.types import EXAMPLES
from swsdist.evaluation.evaluate import evaluate, values
from swsdist.evaluation.reading import read_task
from swsdist.evaluation.scoring_task import read_system
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.methods.query.extraction import prepared
from swsdist.pipeline.chain_run import StepSelection, prepare_chain_run
from swsdist.pipeline.ledger import ONLY, Ledger
from swsdist.pipeline.status import digests
from swsdist.stages import queries as query_statistics
from swsdist.stages.inputs.corpus import renormalise
from swsdist.store.reading import Store
from tests.support.coded import raises, says
from tests.support.tables import read_rows, write_rows

INDEX = StepSelection(until="index")
#: Columns of a detection that do not name its place.
SCORED = ["query_id", "channel", "score", "decision", "cost", "frames", "example"]


def kaldi(scene: Any, **corpus: Any) -> dict[str, Any]:
    """A config of the data folder in the scene's folder."""
    return {
        "run": str(scene.folder / "kaldi-run"),
        "corpus": {"documents": str(scene.folder / "data"), "queries": str(scene.corpus / "queries.csv"), **corpus},
        "executor": {"kind": "serial"},
        "report": {"clips": 0, "exports": ["csv"]},
    }


def in_order(result: swsdist.RunResult) -> list[dict[str, Any]]:
    frame = result.detections().sort_values(["query_id", "cost", "frames"], ignore_index=True)
    return frame.to_dict("records")


def test_segments_are_searched_as_files_and_told_in_the_recording(finished: Any) -> None:
    found = others.data_folder(finished.corpus, finished.folder / "data")
    others.references(finished.corpus, found, finished.folder / "refs.csv")
    plain = finished.run()
    whole = ["report.clips=5", "report.exports=[clips]"]
    result = swsdist.run(kaldi(finished, references=str(finished.folder / "refs.csv")), sets=whole)
    assert [result.measures()[name] == plain.measures()[name] for name in ("mtwv", "atwv")] == [True, True]
    for mine, theirs in zip(in_order(result), in_order(plain), strict=True):
        place = found[theirs["doc_id"]]
        assert mine["doc_id"] == place.recording
        assert mine["start"] == round(theirs["start"] + place.start, 6)
        assert mine["end"] == round(theirs["end"] + place.start, 6)
        assert {name: mine[name] for name in SCORED} == {name: theirs[name] for name in SCORED}
    point = result.report.protocol
    assert point.seconds == pytest.approx(sum(one.end - one.start for one in found.values()), abs=1e-6)
    # Exports, clips and the page name the recording, and cut from it.
    assert any((Path(result.folder) / "exports" / "clips").iterdir())
    assert {hit.doc_id for hit in result.report.hits} <= {"rec1", "rec2", "rec3"}
    assert all(hit.audio for hit in result.report.hits)
    # And so does a search of the store.
    store, query = f"{result.folder}/store", str(finished.corpus / "queries" / "q001_1.wav")
    top, best = (swsdist.search(one, query, top=1).iloc[0] for one in (store, f"{plain.folder}/store"))
    assert (top["doc_id"], top["score"]) == (found[best["doc_id"]].recording, best["score"])
    assert top["start"] == pytest.approx(best["start"] + found[best["doc_id"]].start)
    again = swsdist.run(kaldi(finished, references=str(finished.folder / "refs.csv")), sets=whole)
    assert again.outcome.tasks_done == 0


def test_what_lies_in_two_segments_is_found_once(scene: Any) -> None:
    others.data_folder(scene.corpus, scene.folder / "data")
    lengths = dict(line.split() for line in (scene.folder / "data/reco2dur").read_text().splitlines())
    (scene.folder / "data/utt2spk").unlink()
    whole = "".join(f"{name}-whole {name} 0 {length}\n" for name, length in lengths.items())
    (scene.folder / "data/segments").write_text(whole)
    once = swsdist.run(kaldi(scene), sets=["reduce.nbest.least=20", f"run={scene.folder}/once"])
    (scene.folder / "data/segments").write_text(whole + whole.replace("-whole", "-again"))
    twice = swsdist.run(kaldi(scene), sets=["reduce.nbest.least=40", f"run={scene.folder}/twice"])
    key = ("query_id", "doc_id", "start", "end")
    places = [[tuple(row[name] for name in key) for row in in_order(result)] for result in (once, twice)]
    assert set(places[0]) <= set(places[1])
    assert len(set(places[1])) == len(places[1])
    assert twice.outcome.chain_run.chain.inputs.seconds == once.outcome.chain_run.chain.inputs.seconds


def test_segments_beyond_their_recording_are_rejected_with_their_line(scene: Any) -> None:
    others.data_folder(scene.corpus, scene.folder / "data")
    segments = scene.folder / "data" / "segments"
    end = float(dict(line.split() for line in (scene.folder / "data/reco2dur").read_text().splitlines())["rec1"])
    more = f"late rec1 {end - 1} {end + 0.6}\nafter rec1 {end + 1} {end + 2}\nnearly rec1 {end - 1} {end + 0.4}\n"
    segments.write_text(segments.read_text() + more)
    config = kaldi(scene)
    made = config_from_dict(config)
    chain_run = prepare_chain_run(ONLY, made, Ledger(Folder(made.run)), StepSelection())
    assert any(says(finding.text, chains_codes.SEGMENT_OUTSIDE_RECORDING) for finding in check(chain_run.chain.inputs))
    result = swsdist.run(config, selection=INDEX)
    rejected = {row["id"]: row for row in result.outcome.chain_run.rejected().to_pylist()}
    assert set(rejected) == {"late", "after"}
    assert rejected["late"]["reason"] == audio_codes.SEGMENT_OUTSIDE.name
    assert f"{segments}, line 9" in rejected["late"]["message"]
    assert f"{segments}, line 10" in rejected["after"]["message"]
    store = swsdist.open_store(f"{result.folder}/store")
    durations = {row["doc_id"]: row["duration"] for row in store.documents().to_pylist()}
    assert durations["nearly"] == pytest.approx(1.0)
    # What was moved is another document, and nothing else is done again.
    moved = segments.read_text().replace(f"after rec1 {end + 1} {end + 2}", f"after rec1 {end - 2} {end - 1}")
    segments.write_text(moved)
    second = swsdist.run(config, selection=INDEX)
    assert len(second.outcome.chain_run.outcomes["index"].receipts) == 1
    assert {row["id"] for row in second.outcome.chain_run.rejected().to_pylist()} == {"late"}


@pytest.fixture
def piped(scene: Any) -> Any:
    command = f"echo {{0}} >> {scene.folder}/trace; cat audio/{{0}}.wav |"
    others.data_folder(scene.corpus, scene.folder / "data", command)
    return scene


def test_commands_are_run_only_where_that_is_allowed(piped: Any) -> None:
    with raises(audio_codes.COMMAND_NOT_ALLOWED, where="wav.scp, line 1"):
        swsdist.run(kaldi(piped))
    assert not (piped.folder / "trace").exists()
    result = swsdist.run(kaldi(piped), allow_commands=True)
    assert not result.rejected()
    assert sorted((piped.folder / "trace").read_text().split()) == ["rec1", "rec2", "rec3"], "once for all segments"
    others.data_folder(piped.corpus, piped.folder / "files" / "data")
    same = {**kaldi(piped), "run": str(piped.folder / "files-run")}
    same["corpus"]["documents"] = str(piped.folder / "files" / "data")
    assert swsdist.digest(swsdist.run(same).folder)["all"] == swsdist.digest(result.folder)["all"]
    # What is done needs no permission; what is new does.
    assert swsdist.run(kaldi(piped)).outcome.tasks_done == 0
    assert swsdist.digest(result.folder)


def test_a_program_that_is_not_here_yet(piped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its documents are rejected as long as it is not; a worker that lacks it, and the driver has it, ends the run."""
    allowed = {"allow_commands": True, "selection": INDEX}
    whole = digests(swsdist.run(kaldi(piped), **allowed).outcome.chain_run)["features"]
    scp = piped.folder / "data" / "wav.scp"
    scp.write_text(scp.read_text().replace("cat audio/rec2.wav", "decode-tape audio/rec2.wav"))
    config = {**kaldi(piped), "run": str(piped.folder / "later"), "force": True}
    result = swsdist.run(config, **allowed)
    ((kind, reason, count, first, _),) = result.rejected()
    assert (kind, reason, count) == ("document", "command-failed", 3)
    assert "decode-tape: command not found" in first
    assert swsdist.run(config, **allowed).outcome.tasks_done == 0
    program = piped.folder / "bin" / "decode-tape"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncat "$1"\n')
    program.chmod(0o755)
    with monkeypatch.context() as patch:  # the driver looks for it, and what runs it has another PATH
        patch.setattr(streams.shutil, "which", lambda name: "/bin/bash" if name == "bash" else name)
        with raises(families.NOT_INSTALLED):
            swsdist.run(config, **allowed)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    result = swsdist.run(config, **allowed)
    assert not result.rejected()
    assert digests(result.outcome.chain_run)["features"] == whole


@pytest.mark.ray
def test_permission_travels_with_the_tasks(piped: Any, cluster: Any) -> None:
    search = StepSelection(until="search")
    serial = swsdist.run(kaldi(piped), allow_commands=True, selection=search)
    sets = [*cluster.sets, f"run={piped.folder}/ray", "index.shards=3"]
    result = swsdist.run(kaldi(piped), allow_commands=True, sets=sets, selection=search)
    assert not result.rejected()
    assert digests(result.outcome.chain_run) == digests(serial.outcome.chain_run)


def test_a_run_is_scored_as_its_list_is(scene: Any) -> None:
    lists = others.nist_lists(scene.corpus, scene.folder / "nist", "kwseval")
    names = {"documents": "ecf.xml", "audio": "audio", "queries": "terms.xml", "references": "words.rttm"}
    corpus = {key: str(lists / name) for key, name in names.items()}
    corpus |= {"spoken": str(scene.corpus / "queries.csv"), "protocol": "kwseval"}
    result = swsdist.run({**kaldi(scene), "corpus": corpus, "report": {"clips": 0, "exports": ["kwslist"]}})
    rejected = result.outcome.chain_run.rejected().to_pylist()
    assert [(row["id"], row["reason"]) for row in rejected] == [("q900", "text-query")]
    ecf, terms, rttm = (corpus[key] for key in ("documents", "queries", "references"))
    task = read_task(ecf=ecf, terms=terms, rttm=rttm, protocol="kwseval")
    list_path = f"{result.folder}/exports/kwslist.xml"
    scored = evaluate(task, read_system(list_path, conventions=task.conventions, notices=task.notices))
    expected, mine = values(scored), result.measures()
    assert expected["mtwv"] > 0
    for name in ("mtwv", "mtwv_pmiss", "mtwv_pfa", "atwv", "atwv_pmiss", "atwv_pfa"):
        assert mine[name] == expected[name], name
    assert result.report.protocol.trials == task.trials
    assert result.report.protocol.seconds == task.seconds
    # One term, which is said and was not searched, is missed; none is silently dropped.
    assert {row.query_id: row.ntrue for row in result.report.queries}["q900"] == 1


#: Of the documents that the field recordings are made of; the archive has them all.
FIELD = ("d001", "d002", "d003", "d004")


@pytest.fixture(scope="module")
def field(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another corpus: some of the documents at 8 kHz, through a dull channel, at half the level, on the second of two channels.

    Its queries are places in its documents, and its speakers are called as those of the archive.
    """
    folder = tmp_path_factory.mktemp("field")
    (folder / "audio").mkdir()
    documents = [row for row in read_rows(small_corpus / "docs.csv") if row["doc_id"] in FIELD]
    rows = []
    for row in documents:
        sound, rate = soundfile.read(small_corpus / row["path"])
        dull = np.convolve(soxr.resample(sound, rate, 8000), [0.2, 0.15, 0.1, 0.05], "same")
        soundfile.write(folder / f"audio/{row['doc_id']}.wav", np.stack([np.zeros_like(dull), dull], axis=1), 8000)
        rows.append({"doc_id": row["doc_id"], "channel": 2, "path": f"audio/{row['doc_id']}.wav"})
    write_rows(folder / "docs.csv", rows)
    write_rows(folder / "speakers.csv", ({name: row[name] for name in ("doc_id", "speaker")} for row in documents))
    terms = {row["query_id"]: row["term"] for row in read_rows(small_corpus / "queries.csv")}
    examples: dict[str, dict[str, str]] = {}
    for row in read_rows(small_corpus / "refs.csv"):
        if row["doc_id"] in FIELD:
            place = {name: row[name] for name in ("query_id", "doc_id", "start", "end")}
            examples.setdefault(row["query_id"], {**place, "term": terms[row["query_id"]]})
    write_rows(folder / "queries.csv", examples.values())
    (folder / "field.yaml").write_text(
        "documents: docs.csv\nqueries: queries.csv\nspeakers: speakers.csv\nprotocol: sws2012\n"
    )
    return folder


@pytest.fixture
def across(small_corpus: Path, field: Path, tmp_path: Path) -> Any:
    """Runs the archive's documents with the field's queries; keywords are keys of the section corpus."""
    known = {row["query_id"] for row in read_rows(field / "queries.csv")}
    references = read_rows(small_corpus / "refs.csv")
    write_rows(tmp_path / "refs.csv", (row for row in references if row["query_id"] in known))

    def run(run: str, *sets: str, selection: StepSelection | None = None, **corpus: Any) -> Any:
        path = tmp_path / f"{run}.yaml"
        whole = {"documents": str(small_corpus / "docs.csv"), "queries_from": str(field / "field.yaml")}
        given = {"run": run, "corpus": {**whole, "references": "refs.csv", **corpus}, "executor": {"kind": "serial"}}
        path.write_text(json.dumps(given))
        return swsdist.run(path, sets=sets, selection=selection)

    run.folder = tmp_path  # type: ignore[attr-defined]
    return run


def candidates(across: Any, run: str) -> str:
    return swsdist.digest(str(across.folder / run))["candidates"]


@pytest.mark.slow
def test_queries_of_another_rate_and_channel(across: Any, field: Path) -> None:
    """They are found, by the statistics of their own corpus better than by those of the archive; the report says whose."""
    theirs = across("theirs")
    assert theirs.report.queries_from.documents == str(field / "docs.csv")
    assert (theirs.report.queries_from.statistics, theirs.report.queries_from.taken_from) == ("theirs", 4)
    assert theirs.report.protocol.name == "sws2013"  # what the field's corpus says of its own scoring is not ours
    ours = across("ours", "corpus.queries_from.statistics=ours")
    assert "query-statistics" not in ours.outcome.chain_run.outcomes
    assert ours.report.queries_from.taken_from == 0
    assert theirs.report.measures.mtwv > ours.report.measures.mtwv > 0
    assert not theirs.outcome.failures


@pytest.mark.slow
def test_speakers_of_one_name_are_two_people(across: Any, small_corpus: Path) -> None:
    """Who is called what in the archive is of no account; unless they are said to be the same."""
    rows = read_rows(small_corpus / "docs.csv")
    other = ({"path": str(small_corpus / row["path"]), "speaker": f"x-{row['speaker']}"} for row in rows)
    write_rows(across.folder / "renamed.csv", (row | changed for row, changed in zip(rows, other, strict=True)))
    searched = StepSelection(until="search")
    for how in ("theirs", "ours"):
        across(how, f"corpus.queries_from.statistics={how}", selection=searched)
        across(f"{how}-2", f"corpus.queries_from.statistics={how}", selection=searched, documents="renamed.csv")
        assert candidates(across, how) == candidates(across, f"{how}-2")
    same = ("corpus.queries_from.statistics=ours", "corpus.queries_from.same_speakers=true")
    across("same", *same, selection=searched)
    assert candidates(across, "same") != candidates(across, "ours")
    across("collection", "search.queries_by=collection", selection=searched)
    assert candidates(across, "collection") != candidates(across, "theirs")


@pytest.mark.slow
def test_statistics_are_those_of_a_store_of_that_corpus(
    across: Any, field: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, searched = [], StepSelection(until="search")
    for run, seconds in (("one", 300.0), ("many", 0.1)):
        monkeypatch.setattr(query_statistics, "_TASK_SECONDS", seconds)
        ended = across(run, selection=searched).outcome.chain_run.outcomes["query-statistics"]
        assert ended.tasks == (2 if run == "one" else 5)
        (file,) = (across.folder / run / "tables" / "query_statistics").glob("*.parquet")
        tables.append(pq.read_table(file).to_pylist())
    assert tables[0] == tables[1]
    assert candidates(across, "one") == candidates(across, "many")
    values = {"run": str(across.folder / "field"), "corpus": str(field / "field.yaml")}
    swsdist.run({**values, "executor": {"kind": "serial"}}, selection=INDEX)
    store = Store(Folder(str(across.folder / "field" / "store"))).statistics()
    known = {(row["scope"], row["name"]): row for row in tables[0]}
    assert {name.removesuffix(" (of the queries)") for _, name in known} <= {name for _, name in store}
    for (scope, name), row in known.items():
        wanted = store[scope, name.removesuffix(" (of the queries)")]
        assert row["frames"] == wanted.frames
        assert row["mean"] == pytest.approx(wanted.mean.tolist(), abs=1e-6)
        assert row["variance"] == pytest.approx(wanted.variance.tolist(), rel=1e-6)


def test_hours_bound_what_is_taken(across: Any) -> None:
    few = across("few", "corpus.queries_from.hours=0.0001", "search.queries_by=collection")
    assert few.report.queries_from.taken_from == 1


def test_moved_is_normalised_by_theirs() -> None:
    rng = np.random.default_rng(1)
    frames = rng.normal(size=(9, 5)).astype(np.float32)
    theirs, ours = (Statistics.of(rng.normal(k, 1 + k, size=(50, 5)).astype(np.float32)) for k in (1, 2))
    row = {"query_id": "q", "example": 1, "duration": 0.1, "frames": 9, "speaker": "s", "features": frames.tobytes()}
    table = pa.Table.from_pylist([row], EXAMPLES)
    of_theirs = {("collection", ""): ours, ("speaker", "s"): theirs}
    search = Search()
    found = renormalise(table, of_theirs, ours, search)
    assert found["speaker"].to_pylist() == [None]
    (wanted,) = prepared(table, of_theirs, search, 5)
    (made,) = prepared(found, {("collection", ""): ours}, search, 5)
    assert np.abs(made.frames.astype(int) - wanted.frames.astype(int)).max() <= 1
    # Nothing is taken out of posteriors, so they stay.
    plain = renormalise(table, of_theirs, ours, Search(normalise="none"))
    assert plain["features"].to_pylist() == table["features"].to_pylist()
