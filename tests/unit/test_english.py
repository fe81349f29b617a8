"""The English corpus: it is the same bytes again, its times fit each other, and its terms are where the words are."""

import csv
import itertools
import wave
from collections import defaultdict
from pathlib import Path

import pytest

from swsdist.config import config_from_dict
from swsdist.corpora.documents import part_of, read_documents
from swsdist.io.nist.ctm import read_ctm
from swsdist.io.nist.termlist import read_termlist
from tests.support.english.corpus import digest, make
from tests.support.english.speech import RATE, lacking

HOURS = 0.02


#: A word or phone, start and end in ms.
Spans = dict[str, list[tuple[str, int, int]]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := lacking():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("english") / "corpus"
    make(folder, HOURS)
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def spans(path: Path) -> Spans:
    found: Spans = defaultdict(list)
    for row in read_ctm(str(path)).to_pylist():
        start, end = row["start"], row["start"] + row["duration"]
        found[row["doc_id"]].append((row["word"], round(1000 * start), round(1000 * end)))
    return found


def test_the_same_bytes_again(corpus: Path, tmp_path: Path) -> None:
    make(tmp_path / "again", HOURS)
    assert digest(tmp_path / "again") == digest(corpus)


def test_phones_tile_documents_and_words_are_made_of_phones(corpus: Path) -> None:
    words, phones = spans(corpus / "words.ctm"), spans(corpus / "phones.ctm")
    documents = rows(corpus / "documents.csv")
    assert [row["doc_id"] for row in documents] == list(words) == list(phones)
    for row in documents:
        with wave.open(str(corpus / row["path"])) as audio:
            assert (audio.getframerate(), audio.getsampwidth(), audio.getnchannels()) == (RATE, 2, 1)
            assert abs(audio.getnframes() / RATE - float(row["duration"])) < 0.001
        tiles, spoken = phones[row["doc_id"]], words[row["doc_id"]]
        assert tiles[0][1] == 0
        assert tiles[-1][2] == round(1000 * float(row["duration"]))
        assert all(before[2] == after[1] for before, after in itertools.pairwise(tiles))
        assert all(before[2] <= after[1] for before, after in itertools.pairwise(spoken))
        starts, ends = {tile[1] for tile in tiles}, {tile[2] for tile in tiles}
        assert all(start in starts and end in ends and start < end for _, start, end in spoken)
        silent = sum(end - start for name, start, end in tiles if name == "pau")
        assert sum(end - start for _, start, end in spoken) == tiles[-1][2] - silent


def test_references_are_all_places_of_the_terms(corpus: Path) -> None:
    expected = []
    for term in rows(corpus / "terms.csv"):
        text = term["text"].split()
        for name, spoken in spans(corpus / "words.ctm").items():
            for k in range(len(spoken) - len(text) + 1):
                place = spoken[k : k + len(text)]
                close = all(after[1] - before[2] <= 500 for before, after in itertools.pairwise(place))
                if [word for word, _, _ in place] == text and close:
                    expected.append((term["query_id"], name, place[0][1], place[-1][2]))
    given = [
        (row["query_id"], row["doc_id"], round(1000 * float(row["start"])), round(1000 * float(row["end"])))
        for row in rows(corpus / "references.csv")
    ]
    assert len(expected) > 20
    assert given == expected
    assert {row["query_id"] for row in rows(corpus / "terms.csv")} == {row[0] for row in given}


def test_the_house_reads_it(corpus: Path) -> None:
    config = config_from_dict({"run": "r", "corpus": str(corpus / "corpus.yaml")}, str(corpus))
    documents = read_documents(config.corpus.documents)
    parts = [part_of(documents, part) for part in (config.corpus.parts.development, config.corpus.parts.test) if part]
    assert [name for part in parts for name in part["doc_id"].to_pylist()] == documents["doc_id"].to_pylist()
    terms = read_termlist(str(config.corpus.queries)).terms.to_pylist()
    listed = [(row["query_id"], row["text"]) for row in rows(corpus / "terms.csv")]
    assert [(row["query_id"], row["term"]) for row in terms] == listed
