"""The synthetic corpus: the same seed gives the same bytes, and what the tables say is what can be heard."""

import csv
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.testing.synthesis import make_corpus
from swsdist.testing.synthesis.signal import RATE
from tests.support.coded import raises

SMALL = {"documents": 8, "queries": 3, "voices": 3}


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder, seed=3, **SMALL)
    return folder


def test_same_seed_same_bytes_in_another_process_and_another_seed_others(corpus: Path, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from swsdist.testing.synthesis import make_corpus;"
        f"make_corpus(Path({str(tmp_path / 'same')!r}), seed=3, documents=8, queries=3, voices=3)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert digests(tmp_path / "same") == digests(corpus)
    make_corpus(tmp_path / "other", seed=4, **SMALL)
    assert not set(digests(tmp_path / "other").values()) & set(digests(corpus).values())


def test_tables_name_every_file_and_too_little_is_refused(corpus: Path, tmp_path: Path) -> None:
    docs, queries = table(corpus / "docs.csv"), table(corpus / "queries.csv")
    assert list(docs[0]) == ["doc_id", "path", "duration", "speaker"]
    assert list(queries[0]) == ["query_id", "term", "example", "path", "duration", "speaker"]
    assert list(table(corpus / "refs.csv")[0]) == ["query_id", "doc_id", "channel", "start", "end"]
    assert len(docs) == len({row["doc_id"] for row in docs}) == 8
    assert {row["path"] for row in docs + queries} == set(digests(corpus)) - {"docs.csv", "queries.csv", "refs.csv"}
    for row in docs + queries:
        sound, rate = soundfile.read(corpus / row["path"])
        assert (rate, sound.shape) == (RATE, (round(float(row["duration"]) * RATE),))
        assert 0.85 < np.abs(sound).max() < 0.95
    for name, value in {"seed": -1, "documents": 1, "queries": 0, "voices": 1}.items():
        with raises(families.INVALID_VALUE):
            make_corpus(tmp_path / "corpus", **{name: value})
    assert not (tmp_path / "corpus").exists()
    make_corpus(tmp_path, documents=2, queries=40, voices=2)  # more than fit into the sentences
    assert len({row["query_id"] for row in table(tmp_path / "refs.csv")}) == 40
