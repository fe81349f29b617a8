"""A corpus of arrays is one of files: the same run, and what is no recording is refused with its name."""

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


def test_examples_in_a_tuple_documents_alone_and_references_of_other_queries(tmp_path: Path) -> None:
    corpus = swsdist.save_corpus(tmp_path / "tuple", {"d": noise(0)}, {"q": (noise(1), noise(2))})
    assert pd.read_csv(corpus["queries"])["example"].tolist() == [1, 2]
    with raises(families.UNSUPPORTED):
        swsdist.save_corpus("s3://bucket/corpus", {"d": noise(0)})
    corpus = swsdist.save_corpus(tmp_path / "alone", {"d": noise(0)})
    assert list(corpus) == ["documents"]
    assert read_documents(corpus["documents"])["duration"].to_pylist() == [1.0]
    corpus = swsdist.save_corpus(tmp_path / "elsewhere", {"d": noise(0)}, references=references("q"))
    assert list(corpus) == ["documents", "references"]


def test_what_is_no_corpus(tmp_path: Path) -> None:
    d, q, invalid = {"d": noise(0)}, {"q": noise(1)}, families.INVALID_VALUE
    lacking = pd.DataFrame({"query_id": ["q"], "start": [0.0]})
    cases: list[tuple[tuple[Any, ...], str, Any]] = [
        (({},), "documents", families.EMPTY_INPUT),
        (({"d": noise(0)[0]},), "documents['d']", invalid),
        ((d, {"q": [noise(0), (np.zeros(5, int), RATE)]}), "queries['q'], example 2", invalid),
        ((d, {"q": []}), "queries['q']", invalid),
        ((d, {"q": 5}), "queries['q']", invalid),
        (({"d": ([0.0, [1.0, 2.0]], RATE)},), "documents['d']", invalid),
        ((d, {}, {"query_id": ["q"]}), "references", invalid),
        ((d, {}, lacking), "references", families.MISSING_COLUMN),
        ((d, {"q1": noise(1)}, references("q1", "q2", "q3")), "references", families.UNKNOWN_NAME),
        (({"d7": noise(0)}, q, references("q")), "references", families.UNKNOWN_NAME),
    ]
    for given, where, code in cases:
        with raises(code, where=where):
            swsdist.save_corpus(tmp_path / "new", *given)
    assert list(tmp_path.iterdir()) == []
    for name in ("plan.json", "manifest.json", None):  # a run, a store, a file
        place = tmp_path / f"{name}"
        if name is None:
            place.write_text("")
        else:
            place.mkdir()
            (place / name).write_text("{}")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(UserError):
            swsdist.save_corpus(place, d, q, references("q"))
        assert sorted(tmp_path.rglob("*")) == before
