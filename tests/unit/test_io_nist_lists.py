"""The readers of NIST's lists: what is read, what is written back, and what is refused with file, line and remedy."""

from __future__ import annotations

import contextlib
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.errors import DataError, UserError
from swsdist.io import systemlist
from swsdist.io.ecf import read_ecf, write_ecf
from swsdist.io.notices import Notices
from swsdist.io.rttm import read_rttm, write_rttm
from swsdist.io.systemlist import SystemList, read_systemlist
from swsdist.io.termlist import read_termlist, write_termlist

Write = Callable[[str], str]

ECF = """<ecf source_signal_duration="10" version="v1">
<excerpt audio_filename="audio/F1.sph" channel="1" tbeg="0.5" dur="9.25" language="mboshi" source_type="cts"/>
<excerpt audio_filename="F2" channel="A" tbeg="0" dur="3" source_type="bnews"/>
</ecf>
"""
TLIST = """<?xml version="1.0" encoding="UTF-8"?>
<termlist ecf_filename="e" version="1" language="x">
<term termid="T1"><termtext> two  words </termtext><terminfo><attr><name>iv</name><value>yes</value></attr></terminfo></term>
<term termid="T2"><termtext>a&amp;b</termtext></term>
</termlist>
"""
STDLIST = """<stdlist termlist_filename="t" indexing_time="1" language="x" index_size="1" system_id="s">
<detected_termlist termid="T1" term_search_time="1.5" oov_term_count="0">
<term file="F1" channel="1" tbeg="0.25" dur="0.5" score="-1.5" decision="YES"/>
<term file="F2" channel="2" tbeg="1" dur="0" score="2e-05" decision="NO"/>
</detected_termlist>
<detected_termlist termid="T2" term_search_time="2" oov_term_count="0"/>
</stdlist>
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str) -> str:
        path = tmp_path / "file"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return put


def rows(found: SystemList) -> list[dict[str, object]]:
    return found.detections.to_pylist()


def test_ecf(write: Write, tmp_path: Path) -> None:
    excerpts = read_ecf(write(ECF))
    assert [tuple(row.values()) for row in excerpts.to_pylist()] == [
        ("audio/F1.sph", 1, 0.5, 9.25, "cts", "mboshi"),
        ("F2", 1, 0.0, 3.0, "bnews", None),
    ]
    for dialect in ("stdeval", "kwseval"):
        write_ecf(excerpts, tmp_path / "again.xml", dialect)  # type: ignore[arg-type]
        again = read_ecf(str(tmp_path / "again.xml"))
        assert again.drop_columns(["language"]) == excerpts.drop_columns(["language"])


def test_termlist(write: Write, tmp_path: Path) -> None:
    found = read_termlist(write(TLIST))
    assert found.terms.to_pylist() == [
        {"query_id": "T1", "term": "two words", "iv": "yes"},
        {"query_id": "T2", "term": "a&b", "iv": None},
    ]
    assert found.lowercase
    for dialect in ("tlist", "kwlist"):
        write_termlist(found.terms, tmp_path / "again.xml", dialect)  # type: ignore[arg-type]
        assert read_termlist(str(tmp_path / "again.xml")).terms == found.terms


def test_systemlist(write: Write) -> None:
    found = read_systemlist(write(STDLIST))
    assert found.queries == {"T1": "1.5", "T2": "2"}
    assert found.attributes["system_id"] == "s"
    assert [tuple(row.values()) for row in rows(found)] == [
        ("T1", "F1", 1, 0.25, 0.75, 0.5, -1.5, True),
        ("T1", "F2", 2, 1.0, 1.0, 0.0, 2e-05, False),
    ]


@pytest.mark.parametrize(
    "other",
    [
        STDLIST.replace("\n", " "),
        STDLIST.replace('"', "'"),
        STDLIST.replace("<term ", "<!-- <term file='X'/> --><term "),
        STDLIST.replace("\n", "\r\n"),
        STDLIST.replace("\n<term", "\n\t  <term"),
        STDLIST.replace('file="F1"', 'file="F&#49;"'),
        STDLIST.replace('<term file="F1" channel="1"', '<term channel="1" file="F1"'),
        STDLIST.replace("/>", " />"),
        STDLIST.replace("</detected_termlist>", "</detected_termlist>\n\n"),
        '<?xml version="1.0" encoding="UTF-8"?>\n' + STDLIST,
        '<!DOCTYPE stdlist SYSTEM "stdlist.dtd">\n' + STDLIST,
        STDLIST.replace('tbeg="1" ', 'tbeg="1.0" '),
    ],
)
def test_the_same_list_laid_out_otherwise(write: Write, other: str) -> None:
    expected = read_systemlist(write(STDLIST))
    found = read_systemlist(write(other))
    assert rows(found) == rows(expected)
    assert found.queries == expected.queries


def test_packed(tmp_path: Path) -> None:
    for pack, name in ((gzip.compress, "gz"), (lzma.compress, "xz")):
        (tmp_path / name).write_bytes(pack(STDLIST.encode()))
        assert read_systemlist(str(tmp_path / name)).detections.num_rows == 2
        (tmp_path / name).write_bytes(pack(STDLIST.encode() * 50)[:-12])
        with pytest.raises(DataError, match="damaged or cut off"):
            read_systemlist(str(tmp_path / name))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["T1", "T2", "Tä"]),
            st.lists(
                st.tuples(
                    st.sampled_from(["a", "dir/b.sph", "c d", "é"]),
                    st.integers(1, 3),
                    st.floats(0, 1e6),
                    st.floats(0, 100),
                    st.floats(-1e6, 1e6),
                    st.booleans(),
                ),
                max_size=4,
            ),
        ),
        max_size=5,
        unique_by=lambda group: group[0],
    ),
    st.sampled_from(["\n", "\n  ", "\r\n"]),
)
def test_columns_and_elements_agree(tmp_path_factory: pytest.TempPathFactory, groups: list, end: str) -> None:
    """The fast reader and the XML reader see the same list."""
    parts = ['<kwslist kwlist_filename="k" language="x" system_id="s">']
    for query, items in groups:
        parts.append(f'<detected_kwlist kwid="{query}" search_time="1" oov_count="0">')
        for file, channel, start, duration, score, decision in items:
            parts.append(
                f'<kw file="{file}" channel="{channel}" tbeg="{start!r}" dur="{duration!r}" score="{score!r}" '
                f'decision="{"YES" if decision else "NO"}"/>'
            )
        parts.append("</detected_kwlist>")
    path = tmp_path_factory.mktemp("lists") / "list.xml"
    path.write_text(end.join([*parts, "</kwslist>", ""]), encoding="utf-8", newline="")
    dialects = (systemlist.STDLIST, systemlist.KWSLIST)
    assert systemlist.read_lines(str(path), None, dialects) is not None
    fast = read_systemlist(str(path))
    slow = systemlist._read_elements(str(path), None)
    assert fast.detections["score"].to_pylist() == slow.columns[4].to_pylist()
    assert rows(fast) == rows(_assembled(slow, str(path)))


def _assembled(raw: systemlist.RawList, path: str) -> SystemList:
    owner, queries = systemlist._queries(raw, path, None)
    return SystemList(systemlist._table(raw, owner, path, None), queries, raw.attributes, raw.dialect)


RTTM = """;; a comment
SPEAKER F1 1 0.5 3.25 <NA> <NA> anna <NA>
LEXEME F1 1 0.5 0.25 so lex anna <NA>
LEXEME F1 1 1 0.5 um fp anna 0.9 ;; and more
NON-LEX F1 1 what ever <NA> laugh anna <NA>
"""


def test_rttm(write: Write, tmp_path: Path) -> None:
    plain = "\n".join(line.split(" ;;")[0] for line in RTTM.splitlines()[1:] if line) + "\n"
    for text in (RTTM, plain, plain.replace(" ", "\t"), plain.rstrip("\n")):
        found = read_rttm(write(text))
        assert [tuple(row.values()) for row in found.lexemes.to_pylist()] == [
            ("F1", 1, 0.5, 0.25, "so", "lex", "anna"),
            ("F1", 1, 1.0, 0.5, "um", "fp", "anna"),
        ]
        assert [tuple(row.values()) for row in found.speakers.to_pylist()] == [("F1", 1, 0.5, 3.25, "", "<NA>", "anna")]
    write_rttm(found.lexemes, tmp_path / "again", found.speakers)
    again = read_rttm(str(tmp_path / "again"))
    assert again.lexemes == found.lexemes
    assert again.speakers == found.speakers


def test_rttm_with_few_fields(write: Write) -> None:
    path = write("LEXEME F1 1 0.5 0.25 so\n")
    assert read_rttm(path).lexemes["speaker"].to_pylist() == [""]
    with pytest.raises(DataError, match=r"line 1: a LEXEME line has 6 fields"):
        read_rttm(path, fields=9)


BOMB = '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>\n'


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (read_ecf, ECF.replace('dur="3" ', ""), r"file, line 3: <excerpt> has no attribute 'dur'"),
        (read_ecf, ECF.replace('dur="3"', 'dur="-3"'), r"line 3: dur is -3.0"),
        (read_ecf, ECF.replace('dur="3"', 'dur="nan"'), r"line 3: dur is 'nan'"),
        (read_ecf, ECF.replace('"A"', '"left"'), r"line 3: channel is 'left'"),
        (read_ecf, TLIST, r"line 2: the outermost element is <termlist>"),
        (read_ecf, "<ecf></ecf>", "it holds no excerpt"),
        (read_ecf, ECF[:-8], r"file, line \d+: it is not well-formed XML"),
        (read_ecf, BOMB + ECF, r"line 1: it declares an entity \('lol'\)"),
        (read_termlist, BOMB + TLIST, "it declares an entity"),
        (read_systemlist, BOMB + STDLIST, "it declares an entity"),
        (read_termlist, TLIST.replace(' termid="T2"', ""), r"line 4: <term> has no termid"),
        (read_termlist, TLIST.replace("a&amp;b", " "), r"line 4: term 'T2' has no text"),
        (read_termlist, TLIST.replace("T2", "T1"), r"line 4: term 'T1' stands there twice"),
        (read_termlist, STDLIST, "the outermost element is <stdlist>"),
        (read_systemlist, ECF, "the outermost element is <ecf>"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"nan"'), r"line 3: score is 'nan'"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"inf"'), r"line 3: score is 'inf'"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"1e999"'), r"line 3: score is '1e999'"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"1,5"'), r"line 3: score is '1,5'"),
        (read_systemlist, STDLIST.replace('dur="0.5"', 'dur="-0.5"'), r"line 3: dur is -0.5"),
        (read_systemlist, STDLIST.replace(' decision="NO"', ""), r"line 4: <term> has no attribute 'decision'"),
        (read_systemlist, STDLIST.replace('"NO"', '"MAYBE"'), "a decision is neither YES nor NO"),
        (read_systemlist, STDLIST.replace('termid="T2"', 'termid="T1"'), "a query has two lists"),
        (read_systemlist, STDLIST.replace('channel="2"', 'channel="x"'), r"line 4: channel is 'x'"),
        (read_systemlist, STDLIST[:-12], "it is not well-formed XML"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "0.5 so"), r"file, line 3: duration is 'so'"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "-1 0.25 so"), r"line 3: begin is '-1'"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "nan 0.25 so"), r"line 3: begin is 'nan'"),
        (read_rttm, "LEXEME F1 1 2\n", r"line 1: a LEXEME line has 4 fields"),
        (read_rttm, RTTM.replace("F1 1 1 0.5", "F1 one 1 0.5"), r"line 4: channel is 'one'"),
    ],
)
def test_what_is_refused(write: Write, read: Callable[[str], object], text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as caught:
        read(write(text))
    assert caught.value.remedy


def test_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(STDLIST.replace("F1", "Fé").encode("latin-1"))
    with pytest.raises(DataError, match="not well-formed XML"):
        read_systemlist(str(path))
    path.write_bytes(('<?xml version="1.0" encoding="ISO-8859-1"?>\n' + STDLIST.replace("F1", "Fé")).encode("latin-1"))
    assert rows(read_systemlist(str(path)))[0]["doc_id"] == "Fé"
    path.write_bytes(RTTM.replace("so", "sö").encode("latin-1"))
    with pytest.raises(DataError, match=r"line 3: it is not UTF-8") as caught:
        read_rttm(str(path))
    assert "iconv" in str(caught.value.remedy)


def test_no_such_file(tmp_path: Path) -> None:
    for read in (read_ecf, read_termlist, read_systemlist, read_rttm):
        with pytest.raises(UserError, match="there is no such file"):
            read(str(tmp_path / "gone"))
        with pytest.raises(UserError, match="it is a folder"):
            read(str(tmp_path))


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"<stdlist a=", b"<ecf>", b"LEXEME F1 1 ", b"\x1f\x8b", b"\xfd7zXZ\x00"]),
)
def test_random_bytes_raise_nothing_else(tmp_path_factory: pytest.TempPathFactory, junk: bytes, head: bytes) -> None:
    path = tmp_path_factory.mktemp("junk") / "file"
    path.write_bytes(head + junk)
    for read in (read_ecf, read_termlist, read_systemlist, read_rttm):
        with contextlib.suppress(DataError, UserError):
            read(str(path))


def test_notices_count_and_strict_refuses(write: Write) -> None:
    text = STDLIST.replace('"NO"', '"no"').replace('termid="T2"', 'termid="T1"')
    notices = Notices()
    found = read_systemlist(write(text), notices=notices)
    assert found.detections.num_rows == 0  # the last list of T1 is empty
    assert sorted(notice.count for notice in notices.found.values()) == [1, 1]
    with pytest.raises(DataError, match="because of --strict"):
        read_systemlist(write(text), notices=Notices(strict=True))
    odd = read_systemlist(write(STDLIST.replace('"NO"', '"no"')), notices=notices)
    assert odd.detections["decision"].to_pylist() == [True, False]
    assert "2 decisions are neither YES nor NO" in str(notices)
    assert pa.types.is_dictionary(odd.detections["query_id"].type)
