"""A corpus of arrays is one of files: the same run, and what is no recording is refused with its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile

import swsdist
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.corpora.documents import read_documents
from swsdist.testing.synthesis import make_corpus
from tests.support.coded import raises

RATE = 8000


def noise(seed: int, seconds: float = 1.0) -> tuple[Any, int]:
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * RATE)), RATE


def references(*queries: str) -> pd.DataFrame:
    """One of each, in document d."""
    return pd.DataFrame({"query_id": queries, "doc_id": "d", "start": 0.1, "end": 0.4})


def test_a_run_of_arrays(tmp_path: Path) -> None:
    """It finds what a run of the files finds."""
    make_corpus(tmp_path / "files", documents=3, queries=2, voices=2)
    tables = {name: pd.read_csv(tmp_path / "files" / f"{name}.csv") for name in ("docs", "queries", "refs")}

    for name in ("docs", "queries"):  # arrays have no speakers
        tables[name].drop(columns="speaker").to_csv(tmp_path / "files" / f"{name}.csv", index=False)

    def sounds(table: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _, row in tables[table].iterrows():
            found.setdefault(row.iloc[0], []).append(soundfile.read(tmp_path / "files" / row["path"]))
        return found

    queries = sounds("queries")
    assert max(map(len, queries.values())) > 1
    documents = {name: given for name, (given,) in sounds("docs").items()}
    given = documents, queries, tables["refs"]
    corpus = swsdist.save_corpus(tmp_path / "arrays", *given)
    files = {name: str(tmp_path / "files" / f"{table}.csv") for name, table in zip(corpus, tables, strict=True)}

    def hits(name: str, corpus: dict[str, str]) -> pd.DataFrame:
        config = {"run": str(tmp_path / name), "corpus": corpus, "executor": {"kind": "serial"}}
        return swsdist.run(config).detections()

    found = hits("of arrays", corpus)
    assert len(found) > 5
    assert found.equals(hits("of files", files))
    one = tables["refs"].assign(query_id="one")
    before = {path.name: path.read_bytes() for path in (tmp_path / "arrays").rglob("*.*")}
    assert swsdist.save_corpus(tmp_path / "arrays", documents, {"one": documents["d001"]}, one) == corpus
    after = {path.name: path.read_bytes() for path in (tmp_path / "arrays").rglob("*.*")}
    assert {name for name in before if before[name] != after[name]} == {"queries.csv", "references.csv", "q000000.wav"}


def test_examples_in_a_tuple(tmp_path: Path) -> None:
    corpus = swsdist.save_corpus(tmp_path, {"d": noise(0)}, {"q": (noise(1), noise(2))})
    assert pd.read_csv(corpus["queries"])["example"].tolist() == [1, 2]
    with raises(families.UNSUPPORTED):
        swsdist.save_corpus("s3://bucket/corpus", {"d": noise(0)})


def test_documents_alone(tmp_path: Path) -> None:
    corpus = swsdist.save_corpus(tmp_path, {"d": noise(0)})
    assert list(corpus) == ["documents"]
    assert read_documents(corpus["documents"])["duration"].to_pylist() == [1.0]


@pytest.mark.parametrize(
    ("given", "where", "complaint"),
    [
        ({"documents": {}}, "documents", r"\[empty-input\]"),
        ({"documents": {"d": noise(0)[0]}}, "documents['d']", r"\[invalid-value\]"),
        (
            {"documents": {"d": noise(0)}, "queries": {"q": [noise(0), (np.zeros(5, int), RATE)]}},
            "queries['q'], example 2",
            r"\[invalid-value\]",
        ),
        ({"documents": {"d": noise(0)}, "queries": {"q": []}}, "queries['q']", r"\[invalid-value\]"),
        ({"documents": {"d": noise(0)}, "queries": {"q": 5}}, "queries['q']", r"\[invalid-value\]"),
        ({"documents": {"d": ([0.0, [1.0, 2.0]], RATE)}}, "documents['d']", r"\[invalid-value\]"),
        ({"documents": {"d": noise(0)}, "references": {"query_id": ["q"]}}, "references", r"\[invalid-value\]"),
        (
            {"documents": {"d": noise(0)}, "references": pd.DataFrame({"query_id": ["q"], "start": [0.0]})},
            "references",
            r"\[missing-column\]",
        ),
        (
            {"documents": {"d": noise(0)}, "queries": {"q1": noise(1)}, "references": references("q1", "q2", "q3")},
            "references",
            r"'q2'.*\[unknown-name\]",
        ),
        (
            {"documents": {"d7": noise(0)}, "queries": {"q": noise(1)}, "references": references("q")},
            "references",
            r"'d'.*\[unknown-name\]",
        ),
    ],
)
def test_what_is_no_corpus(tmp_path: Path, given: dict[str, Any], where: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        swsdist.save_corpus(tmp_path / "new", **given)
    assert caught.value.where == where
    assert caught.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "what"), [("plan.json", "the folder of a run"), ("manifest.json", "a feature store"), (None, "a file")]
)
def test_no_corpus_is_written_into_what_is_no_folder_for_it(tmp_path: Path, name: str | None, what: str) -> None:
    place = tmp_path / "there"
    if name is None:
        place.write_text("")
    else:
        place.mkdir()
        (place / name).write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=f"this is {what}") as caught:
        swsdist.save_corpus(place, {"d": noise(0)}, {"q": noise(1)}, references("q"))
    assert "name another" in str(caught.value.remedy)
    assert sorted(tmp_path.rglob("*")) == before


def test_references_of_queries_that_come_from_elsewhere(tmp_path: Path) -> None:
    corpus = swsdist.save_corpus(tmp_path, {"d": noise(0)}, references=references("q"))
    assert list(corpus) == ["documents", "references"]
