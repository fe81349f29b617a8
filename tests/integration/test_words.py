"""Lattices of a recogniser: a search finds what is said, whatever the cut and the executor; of recordings, texts, or both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.config import Config, config_from_dict
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import digests, load_chain_run
from swsdist.testing.conformance import check_chain
from tests.support.coded import raises
from tests.support.tables import read_rows, write_rows
from tools.english.words import small_corpus, small_recogniser


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = small_corpus(tmp_path_factory.mktemp("words"))
    few = read_rows(folder / "queries.csv")[:8:2]
    write_rows(folder / "few.csv", few)
    wanted = {row["query_id"] for row in few}
    write_rows(folder / "refs.csv", [row for row in read_rows(folder / "references.csv") if row["query_id"] in wanted])
    return folder


def config(folder: Path, run: Path | str, queries: str = "few.csv", **values: Any) -> Config:
    tables = {"documents": "documents.csv", "queries": queries, "references": "refs.csv"}
    given: dict[str, Any] = {
        "chain": "lattices",
        "run": str(run),
        "corpus": tables,
        "search": {"method": "lattice"},
        "calibrate": {"steps": ["kst"]},
        "options": {"source": "recogniser", "recogniser": {"options": small_recogniser(folder)}},
        "executor": {"kind": "serial"},
    }
    return config_from_dict({**given, **values}, folder)


def searched(given: Config) -> ChainRun:
    outcome = run_stages(given, StepSelection(until="reduce"), Progress())
    assert not outcome.failures
    return outcome.chain_run


def found(chain_run: ChainRun) -> set[tuple[str, str]]:
    """Query and document of each detection."""
    return {(row["query_id"], row["doc_id"]) for table in chain_run.read("detections") for row in table.to_pylist()}


def true(corpus: Path, queries: str) -> set[tuple[str, str]]:
    wanted = {row["query_id"] for row in read_rows(corpus / queries)}
    return {
        (row["query_id"], row["doc_id"]) for row in read_rows(corpus / "references.csv") if row["query_id"] in wanted
    }


def test_written_queries_are_found(corpus: Path, tmp_path: Path) -> None:
    """Nearly all: the recogniser knows the words, and there is no noise."""
    hits = found(searched(config(corpus, tmp_path, "terms.csv")))
    expected = true(corpus, "terms.csv")
    assert len(hits & expected) > 0.8 * len(expected) > 10


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of a run with one shard."""
    return digests(searched(config(corpus, tmp_path_factory.mktemp("undisturbed"), index={"shards": 1})))


@pytest.mark.ray
def test_the_executor_does_not_matter(corpus: Path, tmp_path: Path, cluster: Any, undisturbed: dict[str, str]) -> None:
    ray = dict(item.removeprefix("executor.").split("=", 1) for item in cluster.sets)
    given = config(corpus, tmp_path, index={"shards": 2}, executor={**ray, "workers": 2})
    assert digests(searched(given)) == undisturbed


@pytest.mark.slow
def test_spoken_and_written_queries_together(corpus: Path, tmp_path: Path) -> None:
    spoken = read_rows(corpus / "few.csv")
    names = dict.fromkeys(spoken[0], "")
    written = [{**names, "query_id": "W1", "example": "1", "text": "nowhere"}]
    silent = {**spoken[0], "query_id": "S1", "path": "silence.wav"}
    soundfile.write(corpus / "silence.wav", np.zeros(16000), 16000)
    write_rows(corpus / "mixed.csv", [{**row, "text": row.get("text", "")} for row in (*spoken, silent, *written)])
    chain_run = searched(config(corpus, tmp_path, "mixed.csv"))
    (rejected,) = chain_run.rejected().to_pylist()
    assert (rejected["kind"], rejected["id"], rejected["reason"]) == ("query", "S1", codes.NOTHING_RECOGNISED.name)
    words = {}
    for table in chain_run.read("groups"):
        words |= {row["query_id"]: " ".join(row["labels"]) for row in table.to_pylist()}
    assert words["W1"] == "nowhere"
    assert set(words) == {row["query_id"] for row in spoken} | {"W1"}
    assert sum(words[row["query_id"]] == row["term"] for row in spoken) >= len(spoken) / 2


def test_what_the_chain_does_not_take(corpus: Path, tmp_path: Path) -> None:
    with raises(codes.OPTION_OF_OTHER_SOURCE, where="features", source="recogniser"):
        searched(config(corpus, tmp_path, features=[{"name": "plp"}]))
    with raises(families.UNSUPPORTED, where="search.method", method="dtw", methods="lattice"):
        searched(config(corpus, tmp_path, search={}, calibrate={}))


@pytest.mark.slow
def test_the_chain_conforms(corpus: Path, undisturbed: dict[str, str]) -> None:
    """Its tables are also those of one shard."""
    tables = check_chain(lambda word: config(corpus, word, index={"shards": 2}))
    assert {"documents", "candidates", "detections", "scored", "measures"} <= set(tables)
    assert undisturbed.items() <= tables.items()
    assert load_chain_run(Folder(str(corpus / "conformance-1"))).chain.name == "lattices"
