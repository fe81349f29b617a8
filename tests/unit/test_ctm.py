"""CTM: what is read, what is refused and with which words, and that nothing gets lost on the way out and in."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.errors import DataError, SwsdistError
from swsdist.core.types import LEXEMES
from swsdist.io import fields
from swsdist.io.nist.ctm import ctm_batches, read_ctm, write_ctm
from tests.support.coded import raises

GOOD = """\
;; a comment
talk1 A 0.5 0.25 hello

talk1 1\t0.75 .5 world 0.98
talk1 B 3 0 uh NA fp
talk1 2 1e1 0.1 über 1.0 lex mary
talk2 1 0.00 0.10 ;;word 0.5 NA <NA>
"""


def test_words_as_they_stand_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    (tmp_path / "packed").write_bytes(gzip.compress(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()))
    assert read_ctm(str(tmp_path / "packed")) == table
    (tmp_path / "empty.ctm").touch()
    assert read_ctm(str(tmp_path / "empty.ctm")) == LEXEMES.empty_table()
    monkeypatch.setattr(fields, "ROWS", 3)
    assert [batch.num_rows for batch in ctm_batches(str(tmp_path / "words.ctm"))] == [3, 2]


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "words.ctm"
    for line in (
        *("talk 1 0.5 0.1", "talk 1 0.5 0.1 a 1 lex s x", "talk C3 0.5 0.1 a"),
        *("talk 1 nan 0.1 a", "talk 1 1_0 0.1 a", "talk 1 ٣ 0.1 a", "talk 1 0.5 1e999 a", "talk 1 1.7e308 1.7e308 a"),
        *("talk 1 -0.5 0.1 a", "talk 1 0.5 -0.1 a", "talk 1 0.5 0.1 a high"),
    ):
        path.write_text(f"talk 1 0.5 0.1 fine\n{line}\n", encoding="utf-8")
        with raises(families.MALFORMED_LINE, where=f"{path}, line 2"):
            read_ctm(str(path))
    for line in ("talk 1 * * <ALT_BEGIN>", "talk 1 * * <alt>"):
        path.write_text(f"talk 1 0.5 0.1 fine\n{line}\n", encoding="utf-8")
        with pytest.raises(DataError, match="alternation"):
            read_ctm(str(path))
    with raises(io_codes.NO_SUCH_FILE, what="file"):
        read_ctm(str(tmp_path / "none.ctm"))
    for code, content in (
        (io_codes.NOT_UTF8, "talk 1 0.5 0.1 über\n".encode("latin-1")),
        (io_codes.DAMAGED_ARCHIVE, gzip.compress(GOOD.encode())[:-9]),
    ):
        path.write_bytes(content)
        with raises(code):
            read_ctm(str(path))


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    good = {"doc_id": "t", "channel": 1, "start": 0.0, "duration": 1.0, "word": "w"}
    names = [{"doc_id": "a b"}, {"doc_id": ";;a"}, {"word": ""}, {"word": "a\nb"}, {"speaker": "NA"}]
    times = [{"duration": -1.0}, {"start": float("nan")}]
    for code, rows in ((families.UNWRITABLE_NAME, names), (families.INVALID_TIMES, times)):
        for row in rows:
            with raises(code):
                write_ctm(pa.Table.from_pylist([good | row], LEXEMES), tmp_path / "out.ctm")
    with pytest.raises(DataError, match="alternation"):
        write_ctm(pa.Table.from_pylist([good | {"word": "<ALT>"}], LEXEMES), tmp_path / "out.ctm")


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


NASTY = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=80).map(lambda tail: b"\x1f\x8b\x08\x00" + tail),
    st.lists(st.sampled_from([b"talk", b"A", b"0.5", b"-1", b"nan", b"<ALT>", b";;", b"\xff", b"\n", b"\r", b"9" * 400]))
    .map(b" ".join),
)  # fmt: skip


@settings(deadline=None)
@given(NASTY)
def test_nothing_but_our_errors(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path, error = tmp_path_factory.getbasetemp() / "nasty.ctm", None
    path.write_bytes(data)
    try:
        read_ctm(str(path))
    except SwsdistError as raised:
        error = raised
    assert error is None or (str(path) in str(error.where) and error.remedy)
