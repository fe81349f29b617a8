"""Queries of one corpus in the documents of another: other rates and channels, speakers of the same names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import soxr

import swsdist
from swsdist.config.search import Search
from swsdist.core.types import EXAMPLES
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.methods.query.extraction import prepared
from swsdist.pipeline.chain_run import StepSelection
from swsdist.stages import queries as query_statistics
from swsdist.stages.inputs.corpus import renormalise
from swsdist.store.reading import Store
from tests.support.tables import read_rows, write_rows

#: Of the documents that the field recordings are made of; the archive has them all.
FIELD = ("d001", "d002", "d003", "d004")


@pytest.fixture(scope="module")
def field(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another corpus: some of the documents at 8 kHz, through a dull channel, at half the level, on the second of two channels.

    Its queries are places in its documents, and its speakers are called as those of the archive.
    """
    folder = tmp_path_factory.mktemp("field")
    (folder / "audio").mkdir()
    documents = read_rows(small_corpus / "docs.csv")
    rows = []
    for row in documents:
        if row["doc_id"] in FIELD:
            sound, rate = soundfile.read(small_corpus / row["path"])
            dull = np.convolve(soxr.resample(sound, rate, 8000), [0.2, 0.15, 0.1, 0.05], "same")
            both = np.stack([np.zeros_like(dull), dull], axis=1)
            soundfile.write(folder / "audio" / f"{row['doc_id']}.wav", both, 8000)
            rows.append({"doc_id": row["doc_id"], "channel": 2, "path": f"audio/{row['doc_id']}.wav"})
    write_rows(folder / "docs.csv", rows)
    write_rows(
        folder / "speakers.csv",
        [{"doc_id": r["doc_id"], "speaker": r["speaker"]} for r in documents if r["doc_id"] in FIELD],
    )
    terms = {row["query_id"]: row["term"] for row in read_rows(small_corpus / "queries.csv")}
    examples, seen = [], set()
    for row in read_rows(small_corpus / "refs.csv"):
        if row["doc_id"] in FIELD and row["query_id"] not in seen:
            seen.add(row["query_id"])
            examples.append(
                {name: row[name] for name in ("query_id", "doc_id", "start", "end")} | {"term": terms[row["query_id"]]}
            )
    write_rows(folder / "queries.csv", examples)
    (folder / "field.yaml").write_text(
        "documents: docs.csv\nqueries: queries.csv\nspeakers: speakers.csv\nprotocol: sws2012\n"
    )
    return folder


@pytest.fixture
def across(small_corpus: Path, field: Path, tmp_path: Path) -> Any:
    """Runs the archive's documents with the field's queries; keywords are keys of the section corpus."""
    known = {row["query_id"] for row in read_rows(field / "queries.csv")}
    references = [row for row in read_rows(small_corpus / "refs.csv") if row["query_id"] in known]
    write_rows(tmp_path / "refs.csv", references)

    def run(run: str, *sets: str, selection: StepSelection | None = None, **corpus: Any) -> Any:
        path = tmp_path / f"{run}.yaml"
        whole = {
            "documents": str(small_corpus / "docs.csv"),
            "queries_from": str(field / "field.yaml"),
            "references": "refs.csv",
            **corpus,
        }
        path.write_text(json.dumps({"run": run, "corpus": whole, "executor": {"kind": "serial"}}))
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
    renamed = [
        {**row, "path": str(small_corpus / row["path"]), "speaker": f"x-{row['speaker']}"}
        for row in read_rows(small_corpus / "docs.csv")
    ]
    write_rows(across.folder / "renamed.csv", renamed)
    searched = StepSelection(until="search")
    for how in ("theirs", "ours"):
        across(how, f"corpus.queries_from.statistics={how}", selection=searched)
        across(f"{how}-2", f"corpus.queries_from.statistics={how}", selection=searched, documents="renamed.csv")
        assert candidates(across, how) == candidates(across, f"{how}-2")
    across("same", "corpus.queries_from.statistics=ours", "corpus.queries_from.same_speakers=true")
    assert candidates(across, "same") != candidates(across, "ours")
    across("collection", "search.queries_by=collection")
    assert candidates(across, "collection") != candidates(across, "theirs")


@pytest.mark.slow
def test_statistics_are_those_of_a_store_of_that_corpus(
    across: Any, field: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []
    for run, seconds in (("one", 300.0), ("many", 0.1)):
        monkeypatch.setattr(query_statistics, "_TASK_SECONDS", seconds)
        ended = across(run).outcome.chain_run.outcomes["query-statistics"]
        assert ended.tasks == (2 if run == "one" else 5)
        (file,) = (across.folder / run / "tables" / "query_statistics").glob("*.parquet")
        tables.append(pq.read_table(file).to_pylist())
    assert tables[0] == tables[1]
    assert candidates(across, "one") == candidates(across, "many")
    swsdist.run(
        {"run": str(across.folder / "field"), "corpus": str(field / "field.yaml"), "executor": {"kind": "serial"}},
        selection=StepSelection(until="index"),
    )
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
