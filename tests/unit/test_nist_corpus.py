"""NIST's lists as a corpus: excerpts are documents, terms are queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdist.config import config_from_dict
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.types import CORPUS, PLACED, QUERIES
from swsdist.corpora.documents import read_documents
from swsdist.corpora.queries import read_queries
from swsdist.stages.inputs.corpus import depends_on_score
from tests.support.coded import raises

EXCERPT = '<excerpt audio_filename="{}" channel="{}" tbeg="{}" dur="{}" source_type="bnews"/>'


def ecf(path: Path, *excerpts: tuple[object, ...]) -> str:
    path.write_text(f"<ecf>{''.join(EXCERPT.format(*one) for one in excerpts)}</ecf>")
    return str(path)


def terms(path: Path, *texts: str) -> str:
    body = "".join(f'<kw kwid="k{k}"><kwtext>{text}</kwtext></kw>' for k, text in enumerate(texts, 1))
    path.write_text(f"<kwlist>{body}</kwlist>")
    return str(path)


def test_excerpts_are_places_in_recordings(tmp_path: Path) -> None:
    excerpts = (("BN/a.sph", 1, 0, 10), ("b.x.wav", 1, 5, 2.5), ("b.x.wav", 1, 7, 3), ("/c.wav", 2, 0, 1))
    table = read_documents(ecf(tmp_path / "ecf.xml", *excerpts))
    assert table.schema == PLACED
    keys = ("doc_id", "recording", "path", "channel", "start", "end")
    assert [tuple(row[key] for key in keys) for row in table.to_pylist()] == [
        ("a", "a", f"{tmp_path}/BN/a.sph", 1, 0, 10),
        ("b.x:5-7.5", "b.x", f"{tmp_path}/b.x.wav", 1, 5, 7.5),
        ("b.x:7-10", "b.x", f"{tmp_path}/b.x.wav", 1, 7, 10),
        ("c", "c", "/c.wav", 2, 0, 1),
    ]
    for wrong, code in (
        ([("x/a.sph", 1, 0, 1), ("y/a.sph", 1, 0, 1)], "duplicate-name"),
        ([("a.sph", 1, 0, 1), ("a.sph", 1, 0, 1)], "duplicate-name"),
        ([("touch me |", 1, 0, 1)], "command-refused"),
        ([("a.sph", 1, 3, 0)], "invalid-times"),
    ):
        with pytest.raises(DataError) as caught:
            read_documents(ecf(tmp_path / "ecf.xml", *wrong))
        assert caught.value.code == code


def test_copies_are_found_by_name(tmp_path: Path) -> None:
    names = ("BN/a.sph", "b.wav", "c.sph", "d.sph")
    given, audio = ecf(tmp_path / "ecf.xml", *((name, 1, 0, 1) for name in names)), tmp_path / "audio"
    for name in ("deep/a.flac", "b.wav", "b.mp3", "c.wav", "c.mp3"):
        (audio / name).parent.mkdir(parents=True, exist_ok=True)
        (audio / name).touch()
    # Of two copies none is taken, and what is not there is told by indexing.
    found = read_documents(given, audio_folder=str(audio))["path"].to_pylist()
    assert found == [f"{audio}/{name}" for name in ("deep/a.flac", "b.wav", "c.sph", "d.sph")]


def test_terms_and_their_examples(tmp_path: Path) -> None:
    listed, spoken = terms(tmp_path / "kw.xml", "one two", "three", "four"), tmp_path / "spoken.csv"
    spoken.write_text("query_id,path,term\nk2,b.wav,\nk2,c.wav,Three\nk1,a.wav,one  two\n")
    table = read_queries(listed, CORPUS.empty_table(), "all", spoken=str(spoken))
    assert table.schema == QUERIES
    assert [(row["query_id"], row["example"], row["path"], row["term"]) for row in table.to_pylist()] == [
        ("k1", 1, f"{tmp_path}/a.wav", "one two"),
        ("k2", 1, f"{tmp_path}/b.wav", "three"),
        ("k2", 2, f"{tmp_path}/c.wav", "three"),
        ("k3", 1, None, "four"),
    ]
    assert read_queries(listed, CORPUS.empty_table(), spoken=str(spoken)).num_rows == 3
    assert read_queries(listed, CORPUS.empty_table())["path"].to_pylist() == [None] * 3
    listed = terms(tmp_path / "kw.xml", "one")
    spoken.write_text("query_id,path\nk7,a.wav\n")
    with raises(families.UNKNOWN_NAME, query="k7"):
        read_queries(listed, CORPUS.empty_table(), spoken=str(spoken))
    spoken.write_text("query_id,path,term\nk1,a.wav,two\n")
    with raises(families.CONFLICTING_ROWS, example="two", listed="one"):
        read_queries(listed, CORPUS.empty_table(), spoken=str(spoken))


def test_an_ecf_is_told_by_what_is_in_it(tmp_path: Path) -> None:
    """What is searched of it depends on the protocol, whatever it is called."""
    (tmp_path / "docs.csv").write_text("doc_id,path\na,a.wav\n")
    (tmp_path / "words").write_text("LEXEME a 1 0 1 word lex a <NA>\n")
    for name, depends in {"files.xml": True, "files.ecf": True, "list": True, "docs.csv": False, "no": False}.items():
        if depends:
            ecf(tmp_path / name, ("a.wav", 1, 0, 10))
        corpus = {"documents": str(tmp_path / name), "queries": "q.csv"}
        assert depends_on_score(config_from_dict({"run": "run", "corpus": corpus})) == depends
        with_words = {**corpus, "references": str(tmp_path / "words")}
        assert depends_on_score(config_from_dict({"run": "run", "corpus": with_words}))
