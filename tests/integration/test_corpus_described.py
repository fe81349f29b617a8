"""A corpus described: its numbers are those that one counts by hand, whatever the corpus does not tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
from commands import Command, expecting, in_this_process

from swsdist.core.codes import discovery as report_codes
from swsdist.core.codes import families
from tests.support.coded import says
from tests.support.tables import read_rows

RATE = 16000


@pytest.fixture(scope="module")
def swsdist() -> Command:
    return expecting(in_this_process)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four recordings of two speakers: 3, 4, 5 and 6 s, each with a second of a loud hum; words, three queries, parts."""
    root = tmp_path_factory.mktemp("described")
    rng = np.random.default_rng(0)
    rows = ["doc_id,path,speaker"]
    for k, seconds in enumerate((3, 4, 5, 6)):
        samples = 0.001 * rng.normal(size=seconds * RATE)
        t = np.arange(RATE) / RATE
        harmonics = sum(np.sin(2 * np.pi * 120 * h * t) / h for h in range(1, 12))
        samples[RATE : 2 * RATE] += 0.1 * harmonics * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))
        sf.write(root / f"d{k}.wav", samples, RATE)
        rows.append(f"d{k},d{k}.wav,{'anna' if k < 3 else 'otto'}")
    (root / "docs.csv").write_text("\n".join(rows) + "\n")
    sf.write(root / "q.wav", 0.1 * rng.normal(size=RATE // 2), RATE)
    (root / "queries.csv").write_text(
        "query_id,example,path,doc_id,start,end,speaker,term\n"
        "a,1,q.wav,,,,anna,one\na,2,,d1,1.0,1.3,anna,one\nb,1,,d3,1.0,1.5,otto,two three\nc,1,q.wav,,,,otto,four\n"
    )
    (root / "refs.csv").write_text(
        "query_id,doc_id,start,end\na,d0,1.0,1.4\na,d2,1.0,1.2\na,d3,1.0,1.6\nb,d3,1.0,1.5\n"
    )
    (root / "words.ctm").write_text(
        "d0 1 1.0 0.4 One\nd0 1 1.4 0.2 two\nd2 1 1.0 0.2 one\nd3 1 1.0 0.6 one\nd3 1 1.6 0.3 three\nd3 1 2.0 0.1 two\n"
    )
    (root / "corpus.yaml").write_text(
        "documents: docs.csv\nqueries: queries.csv\nreferences: refs.csv\nprotocol: sws2013\n"
        "alignments: {words: words.ctm}\nparts: {train: [d0, d1], test: [d2, d3]}\n"
    )
    return root


def has(row: dict[str, object], names: str, *values: object) -> None:
    assert tuple(row[name] for name in names.split()) == values


def told(swsdist: Command, here: Path, *more: str) -> dict[str, list[dict[str, object]]]:
    found = json.loads(swsdist("corpus", "describe", *(more or ("corpus.yaml",)), "--json", cwd=here).out)
    return {table["caption"]: table["rows"] for table in found["tables"]}


def test_what_is_counted(swsdist: Command, here: Path) -> None:
    found = told(swsdist, here)
    train, test, whole = found["Corpus corpus"]
    counted = "name documents seconds speakers queries query_occurrences unknown_queries"
    has(train, counted, "train", 2, 7, 1, 1, 1, 0)
    has(test, f"{counted} words unknown_words", "test", 2, 11, 2, 2, 3, 1, 4, 1)  # three is not said in train
    has(whole, f"{counted} words vocabulary", "All", 4, 18, 2, 3, 4, 2, 6, 3)
    for row in found["Recordings"]:
        assert 0.9 <= row["speech"] <= 2.0
        # Peaks of 20 ms; the hum's power at its loudest is some 0.0078, the noise's 1e-6.
        assert row["snr"] == pytest.approx(10 * np.log10(0.0078 / 1e-6), abs=2)
    for row, speaker in zip(found["Speakers"], (("anna", 12, 3), ("otto", 6, 3)), strict=True):
        has(row, "name seconds words", *speaker)


def test_queries(swsdist: Command, here: Path) -> None:
    found = told(swsdist, here)
    (train,) = found["Queries, train"]
    # What a table of a part tells of occurrences is of this part.
    spoken = (pytest.approx((0.5 + 0.3) / 2), pytest.approx(0.4))
    has(train, "query_id examples occurrences own_speaker unknown seconds spoken", "a", 2, 1, 1, False, *spoken)
    a, b = found["Queries, test"]
    has(a, "occurrences own_speaker occurrences_train spoken", 2, 1, 1, pytest.approx((0.2 + 0.6) / 2))
    has(b, "occurrences unknown own_speaker", 1, True, 1)
    whole = told(swsdist, here, "corpus.yaml", "--set", "corpus.parts={}")
    has(whole["Queries"][0], "occurrences own_speaker spoken", 3, 2, pytest.approx((0.4 + 0.2 + 0.6) / 3))
    (silent,) = found["Queries that occur in no part"]
    has(silent, "query_id occurrences", "c", 0)
    lengths = {row["what"]: row for row in found["Lengths and occurrences"]}
    assert lengths["occurrences of a query"]["mean"] == pytest.approx(4 / 3)
    assert [lengths[f"{what} of a query"]["greatest"] for what in ("letters", "words")] == [8, 2]


def test_a_corpus_that_tells_little(swsdist: Command, here: Path, tmp_path: Path) -> None:
    (tmp_path / "little.yaml").write_text(f"documents: {here}\n")
    found = told(swsdist, tmp_path, "little.yaml")
    assert set(found) == {"Corpus little", "Recordings"}
    (whole,) = found["Corpus little"]
    assert whole["documents"] == 5
    assert whole["speakers"] is whole["words"] is whole["queries"] is whole["unknown_words"] is None


def test_without_references_and_with_a_broken_recording(swsdist: Command, here: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.wav").write_bytes(b"nothing")
    (tmp_path / "docs.csv").write_text(f"doc_id,path\nd0,{here}/d0.wav\nx,broken.wav\n")
    (tmp_path / "queries.csv").write_text(f"query_id,path\nq,{here}/q.wav\n")
    (tmp_path / "c.yaml").write_text("documents: docs.csv\nqueries: queries.csv\n")
    ended = swsdist("corpus", "describe", "c.yaml", "--table", "c.md", cwd=tmp_path)
    assert says(ended.err, families.UNUSABLE_INPUT)
    assert "broken.wav" in ended.err
    swsdist("corpus", "describe", "c.yaml", "--strict", cwd=tmp_path, code=4)


def test_places_in_recordings(swsdist: Command, here: Path, tmp_path: Path) -> None:
    """Segments of a Kaldi data folder: a recording has several speakers, and a word or query belongs to one of them."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "wav.scp").write_text(f"r1 {here}/d3.wav\nr2 {here}/d0.wav\n")
    (data / "segments").write_text("r1-a r1 0 2\nr1-b r1 2.5 6\nr2-a r2 1 3\n")
    (data / "utt2spk").write_text("r1-a anna\nr1-b bert\nr2-a anna\n")
    (tmp_path / "queries.csv").write_text(f"query_id,path,term,speaker\nq,{here}/q.wav,one,bert\n")
    (tmp_path / "refs.csv").write_text("query_id,doc_id,start,end\nq,r1,1.0,1.5\nq,r1,3.0,3.5\nq,r2,1.0,1.3\n")
    (tmp_path / "words.ctm").write_text("r1 1 1.0 0.5 one\nr1 1 2.2 0.1 lost\nr1 1 3.0 0.5 one\nr2 1 1.0 0.3 one\n")
    (tmp_path / "c.yaml").write_text(
        "documents: data\nqueries: queries.csv\nreferences: refs.csv\nalignments: {words: words.ctm}\n"
        "parts: {train: [r2-a], test: [r1]}\n"
    )
    found = told(swsdist, tmp_path, "c.yaml")
    first, second = found["Recordings"]
    has(first, "name documents speakers words seconds", "r1", 2, 2, 2, pytest.approx(5.5))
    has(second, "seconds words part", 2, 1, "train")
    for row, speaker in zip(found["Speakers"], (("anna", 4, 2), ("bert", 3.5, 1)), strict=True):
        has(row, "name seconds words", *speaker)
    (train,), (test,) = found["Queries, train"], found["Queries, test"]
    assert (train["occurrences"], test["occurrences"], test["own_speaker"]) == (1, 2, 1)
    said = swsdist("corpus", "describe", "c.yaml", "--no-audio", cwd=tmp_path).err
    assert says(said, report_codes.UNPLACED_WORDS)


def test_several_beside_each_other(swsdist: Command, here: Path, tmp_path: Path) -> None:
    (tmp_path / "little.yaml").write_text(f"documents: {here}/docs.csv\n")
    both = (here / "corpus.yaml", tmp_path / "little.yaml")
    swsdist("corpus", "describe", *both, "--no-audio", "--table", tmp_path / "t.json")
    found = {table["caption"]: table["rows"] for table in json.loads((tmp_path / "t.json").read_text())["tables"]}
    assert {"Corpora", "corpus: Recordings", "little: Recordings"} <= set(found)
    for row, corpus in zip(found["Corpora"], (("corpus", 3, 4), ("little", None, 4)), strict=True):
        has(row, "corpus queries documents", *corpus)
    swsdist("corpus", "describe", here / "corpus.yaml", here / "corpus.yaml", code=2)
    swsdist("corpus", "describe", "corpus.yaml", "--table", f"{tmp_path}/of.csv", cwd=here)
    assert [row["name"] for row in read_rows(tmp_path / "of-recordings.csv")] == ["d0", "d1", "d2", "d3"]
