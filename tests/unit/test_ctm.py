"""CTM: what is read, what is refused and with which words, and that nothing gets lost on the way out and in."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import io as io_codes
from swsdist.core.errors import DataError, SwsdistError
from swsdist.core.types import LEXEMES, TERMS
from swsdist.io import fields
from swsdist.io.nist.ctm import ctm_batches, read_ctm, write_ctm
from swsdist.score.trials import look_up
from tests.support.coded import raises

GOOD = """\
;; a comment
talk1 A 0.5 0.25 hello

talk1 1\t0.75 .5 world 0.98
talk1 B 3 0 uh NA fp
talk1 2 1e1 0.1 über 1.0 lex mary
talk2 1 0.00 0.10 ;;word 0.5 NA <NA>
"""


def test_words_as_they_stand_there(tmp_path: Path) -> None:
    (tmp_path / "words.ctm").write_text(GOOD, encoding="utf-8")
    table = read_ctm(str(tmp_path / "words.ctm"))
    assert table.schema == LEXEMES
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("talk1", 1, 0.5, 0.25, "hello", None, None),
        ("talk1", 1, 0.75, 0.5, "world", None, None),
        ("talk1", 2, 3.0, 0.0, "uh", "fp", None),
        ("talk1", 2, 10.0, 0.1, "über", "lex", "mary"),
        ("talk2", 1, 0.0, 0.1, ";;word", None, None),
    ]


def test_packed_and_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "words.ctm").write_text(GOOD, encoding="utf-8")
    (tmp_path / "packed").write_bytes(gzip.compress(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()))
    assert read_ctm(str(tmp_path / "packed")) == read_ctm(str(tmp_path / "words.ctm"))


def test_an_empty_file_has_no_words(tmp_path: Path) -> None:
    (tmp_path / "empty.ctm").touch()
    assert read_ctm(str(tmp_path / "empty.ctm")) == LEXEMES.empty_table()


@pytest.mark.parametrize(
    ("line", "message", "remedy"),
    [
        ("talk 1 0.5 0.1", r"\[malformed-line\]", "give 5 to 8: file channel begin"),
        ("talk 1 0.5 0.1 a 1 lex s x", r"\[malformed-line\]", "give 5 to 8"),
        ("talk C3 0.5 0.1 a", r"'C3'.*\[malformed-line\]", "give a channel as 1, 2"),
        ("talk 1 nan 0.1 a", r"'nan'.*\[malformed-line\]", "finite decimal"),
        ("talk 1 1_0 0.1 a", r"'1_0'.*\[malformed-line\]", "finite decimal"),
        ("talk 1 ٣ 0.1 a", r"'٣'.*\[malformed-line\]", "finite decimal"),
        ("talk 1 0.5 1e999 a", r"'1e999'.*\[malformed-line\]", "finite decimal"),
        ("talk 1 1.7e308 1.7e308 a", r"\[malformed-line\]", "in seconds"),
        ("talk 1 -0.5 0.1 a", r"\[malformed-line\]", "in seconds, from 0"),
        ("talk 1 0.5 -0.1 a", r"\[malformed-line\]", "in seconds, from 0"),
        ("talk 1 0.5 0.1 a high", r"'high'.*\[malformed-line\]", "finite decimal"),
        ("talk 1 * * <ALT_BEGIN>", "alternation", "keep one reading"),
        ("talk 1 * * <alt>", "alternation", "keep one reading"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str, remedy: str) -> None:
    (tmp_path / "words.ctm").write_text(f"talk 1 0.5 0.1 fine\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        read_ctm(str(tmp_path / "words.ctm"))
    assert caught.value.where == f"{tmp_path / 'words.ctm'}, line 2"
    assert remedy in str(caught.value.remedy)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    with raises(io_codes.NO_SUCH_FILE, what="file"):
        read_ctm(str(tmp_path / "none.ctm"))
    (tmp_path / "latin.ctm").write_bytes("talk 1 0.5 0.1 über\n".encode("latin-1"))
    with raises(io_codes.NOT_UTF8):
        read_ctm(str(tmp_path / "latin.ctm"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GOOD.encode())[:-9])
    with raises(io_codes.DAMAGED_ARCHIVE):
        read_ctm(str(tmp_path / "cut.gz"))


def test_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.ctm").write_text("".join(f"t 1 {k} 1 w\n" for k in range(7)))
    monkeypatch.setattr(fields, "ROWS", 3)
    assert [batch.num_rows for batch in ctm_batches(str(tmp_path / "words.ctm"))] == [3, 3, 1]


def test_terms_are_looked_up_in_it(tmp_path: Path) -> None:
    (tmp_path / "words.ctm").write_text(GOOD, encoding="utf-8")
    terms = pa.Table.from_pylist([{"query_id": "q", "term": "hello world"}], TERMS)
    found = look_up(terms, read_ctm(str(tmp_path / "words.ctm")), word_gap=0.5).references
    assert [(row["start"], row["end"]) for row in found.to_pylist()] == [(0.5, 1.25)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"doc_id": "a b"}, r"'a b'.*\[unwritable-name\]"),
        ({"doc_id": ";;a"}, r"\[unwritable-name\]"),
        ({"word": ""}, r"\[unwritable-name\]"),
        ({"word": "a\nb"}, r"\[unwritable-name\]"),
        ({"word": "<ALT>"}, "alternation"),
        ({"speaker": "NA"}, r"\[unwritable-name\]"),
        ({"duration": -1.0}, r"'w'.*\[invalid-times\]"),
        ({"start": float("nan")}, r"'w'.*\[invalid-times\]"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, row: dict, message: str) -> None:
    full = {"doc_id": "t", "channel": 1, "start": 0.0, "duration": 1.0, "word": "w", **row}
    with pytest.raises(DataError, match=message):
        write_ctm(pa.Table.from_pylist([full], LEXEMES), tmp_path / "out.ctm")


NAME = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\n\x00\ufeff"), min_size=1, max_size=8).filter(
    lambda text: not text.startswith(";;") and text.upper() not in ("NA", "<NA>", "<ALT_BEGIN>", "<ALT>", "<ALT_END>")
)
TIME = st.floats(0, 1e7, allow_subnormal=True)
ROW = st.fixed_dictionaries(
    {"doc_id": NAME, "channel": st.integers(0, 999), "start": TIME, "duration": TIME, "word": NAME},
    optional={"kind": NAME, "speaker": NAME},
)


@settings(deadline=None)
@given(st.lists(ROW, max_size=5))
def test_written_and_read_is_the_same(tmp_path_factory: pytest.TempPathFactory, rows: list[dict]) -> None:
    path = tmp_path_factory.getbasetemp() / "same.ctm"
    table = pa.Table.from_pylist(rows, LEXEMES)
    write_ctm(table, path)
    assert read_ctm(str(path)) == table


def error_of(call: Callable[[], object]) -> SwsdistError | None:
    """What it raises, if that is one of ours; any other exception comes through."""
    try:
        call()
    except SwsdistError as error:
        return error
    return None


NASTY = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=80).map(lambda tail: b"\x1f\x8b\x08\x00" + tail),
    st.lists(st.sampled_from([b"talk", b"A", b"0.5", b"-1", b"nan", b"<ALT>", b";;", b"\xff", b"\n", b"\r", b"9" * 400]))
    .map(b" ".join),
)  # fmt: skip


@settings(deadline=None)
@given(NASTY)
def test_nothing_but_our_errors(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "nasty.ctm"
    path.write_bytes(data)
    error = error_of(lambda: read_ctm(str(path)))
    assert error is None or (str(path) in str(error.where) and error.remedy)
