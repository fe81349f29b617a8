"""The English corpus: it is the same bytes again, its times fit each other, and its terms are where the words are."""

from __future__ import annotations

import csv
import importlib.util
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
from tests.support.english.errors import word_errors
from tests.support.english.grammar import sentences, vocabulary
from tests.support.english.speech import RATE, lacking, words_of
from tests.support.english.terms import choose_terms, phrase_counts

HOURS = 0.02

needs_pocketsphinx = pytest.mark.skipif(
    importlib.util.find_spec("pocketsphinx") is None, reason="needs pocketsphinx: pip install -e '.[dev]'"
)

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


def test_sentences_and_terms_of_an_hour() -> None:
    """Terms are mostly rare, mostly one word, ten that no recogniser knows."""
    texts = list(itertools.islice(sentences(1), 864))
    assert len(set(texts)) == len(texts)
    assert texts[:20] != list(itertools.islice(sentences(2), 20))
    documents = [words_of(text) for text in texts]
    terms, counts = choose_terms(documents, 1), phrase_counts(documents)
    assert terms == choose_terms(documents, 1)
    assert len(terms) == len(set(terms)) == 120
    assert sum(1 <= counts[term] <= 5 for term in terms) >= 90
    assert len(set(terms) & set(vocabulary()["unknown"])) == 10


def test_word_errors() -> None:
    for reference, hypothesis, errors in (
        ("a b c", "a b c", 0),
        ("a b c", "", 3),
        ("a b c", "a x c", 1),
        ("a b c d", "b c d e", 2),
        ("a b", "b a", 2),
        ("the cat sat on the mat", "a cat sat the mat mat", 3),
    ):
        assert word_errors(reference.split(), hypothesis.split()) == errors
        assert word_errors(hypothesis.split(), reference.split()) == errors


@needs_pocketsphinx
def test_the_recogniser_knows_all_words_but_the_unknown() -> None:
    from tests.support.english.recognition import word_decoder

    decoder = word_decoder()
    model = decoder.get_lm()
    nothing = model.prob(["skelvorn"])
    for kind, phrases in vocabulary().items():
        words = {word for phrase in phrases for word in phrase.split()}
        known = {word for word in words if decoder.lookup_word(word) and model.prob([word]) > nothing}
        assert known == (set() if kind == "unknown" else words), kind


@pytest.mark.slow
@needs_pocketsphinx
def test_recognition_does_not_depend_on_order_and_jobs(corpus: Path, tmp_path: Path) -> None:
    from tests.support.english import recognition

    names = [row["doc_id"] for row in rows(corpus / "documents.csv")][:2]
    made = []
    for chosen, jobs in ((names, 1), (names[::-1], 2)):
        folder = tmp_path / f"lattices{jobs}"
        documents = list(recognition.recognise(corpus, chosen, folder, recognition.phone_decoder, jobs))
        assert [document.name for document in documents] == chosen
        assert all(document.words for document in documents)
        recognition.write_transcripts(sorted(documents), folder / "words.ctm")
        made.append(digest(folder))
        assert {row["doc_id"] for row in read_ctm(str(folder / "words.ctm")).to_pylist()} == set(names)
    assert made[0] == made[1]
