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
    given = ecf(
        tmp_path / "ecf.xml", ("BN/a.sph", 1, 0, 10), ("b.x.wav", 1, 5, 2.5), ("b.x.wav", 1, 7, 3), ("/c.wav", 2, 0, 1)
    )
    table = read_documents(given)
    assert table.schema == PLACED
    rows = table.to_pylist()
    assert [row["doc_id"] for row in rows] == ["a", "b.x:5-7.5", "b.x:7-10", "c"]
    assert [row["recording"] for row in rows] == ["a", "b.x", "b.x", "c"]
    assert [row["path"] for row in rows] == [f"{tmp_path}/BN/a.sph", *[f"{tmp_path}/b.x.wav"] * 2, "/c.wav"]
    assert [(row["channel"], row["start"], row["end"]) for row in rows] == [
        (1, 0, 10),
        (1, 5, 7.5),
        (1, 7, 10),
        (2, 0, 1),
    ]


def test_copies_are_found_by_name(tmp_path: Path) -> None:
    given = ecf(tmp_path / "ecf.xml", ("BN/a.sph", 1, 0, 1), ("b.wav", 1, 0, 1), ("c.sph", 1, 0, 1), ("d.sph", 1, 0, 1))
    audio = tmp_path / "audio"
    for name in ("deep/a.flac", "b.wav", "b.mp3", "c.wav", "c.mp3"):
        (audio / name).parent.mkdir(parents=True, exist_ok=True)
        (audio / name).touch()
    # Of two copies none is taken, and what is not there is told by indexing.
    assert read_documents(given, audio_folder=str(audio))["path"].to_pylist() == [
        f"{audio}/deep/a.flac",
        f"{audio}/b.wav",
        f"{audio}/c.sph",
        f"{audio}/d.sph",
    ]


@pytest.mark.parametrize(
    ("excerpts", "message"),
    [
        ([("x/a.sph", 1, 0, 1), ("y/a.sph", 1, 0, 1)], r"'a'.*\[duplicate-name\]"),
        ([("a.sph", 1, 0, 1), ("a.sph", 1, 0, 1)], r"'a:0\-1'.*\[duplicate-name\]"),
        ([("touch me |", 1, 0, 1)], r"'touch me \|' is a command, and an ECF names files"),
        ([("a.sph", 1, 3, 0)], r"\[invalid-times\]"),
    ],
)
def test_excerpts_that_are_wrong(tmp_path: Path, excerpts: list[tuple[object, ...]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_documents(ecf(tmp_path / "ecf.xml", *excerpts))


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


def test_examples_that_do_not_fit(tmp_path: Path) -> None:
    listed, spoken = terms(tmp_path / "kw.xml", "one"), tmp_path / "spoken.csv"
    spoken.write_text("query_id,path\nk7,a.wav\n")
    with raises(families.UNKNOWN_NAME, query="k7"):
        read_queries(listed, CORPUS.empty_table(), spoken=str(spoken))
    spoken.write_text("query_id,path,term\nk1,a.wav,two\n")
    with raises(families.CONFLICTING_ROWS, example="two", listed="one"):
        read_queries(listed, CORPUS.empty_table(), spoken=str(spoken))


@pytest.mark.parametrize(
    ("name", "depends"), [("files.xml", True), ("files.ecf", True), ("list", True), ("docs.csv", False), ("no", False)]
)
def test_an_ecf_is_told_by_what_is_in_it(tmp_path: Path, name: str, depends: bool) -> None:
    """What is searched of it depends on the protocol, whatever it is called."""
    if name == "docs.csv":
        (tmp_path / name).write_text("doc_id,path\na,a.wav\n")
    elif name != "no":
        ecf(tmp_path / name, ("a.wav", 1, 0, 10))
    (tmp_path / "words").write_text("LEXEME a 1 0 1 word lex a <NA>\n")
    config = {"run": str(tmp_path / "run"), "corpus": {"documents": str(tmp_path / name), "queries": "q.csv"}}
    assert depends_on_score(config_from_dict(config)) == depends
    config["corpus"]["references"] = str(tmp_path / "words")
    assert depends_on_score(config_from_dict(config))
