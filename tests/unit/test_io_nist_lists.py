"""The readers of NIST's lists: what is read, what is written back, and what is refused with file, line and remedy."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import DataError, UserError
from swsdist.io import compressed as packed
from swsdist.io.nist import systemlist
from swsdist.io.nist.ecf import read_ecf, write_ecf
from swsdist.io.nist.rttm import read_rttm, write_rttm
from swsdist.io.nist.systemlist import SystemList, read_systemlist
from swsdist.io.nist.termlist import read_termlist, write_termlist
from swsdist.io.notices import Notices
from tests.support.coded import raises, says

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
KWSLIST = """<kwslist kwlist_filename="k" language="x" system_id="s" min_score="0" max_score="1">
<detected_kwlist kwid="T1" search_time="1" oov_count="0">
<kw file="F1" channel="1" tbeg="0.25" dur="0.5" score="0.5" decision="YES"/>
</detected_kwlist>
</kwslist>
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
        with raises(io_codes.DAMAGED_ARCHIVE):
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
    with raises(families.MALFORMED_LINE, where="line 1", type="LEXEME", fields=6):
        read_rttm(path, fields=9)


BOMB = '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>\n'


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (read_ecf, ECF.replace('dur="3" ', ""), r"line 3.*'dur'.*\[malformed-xml\]"),
        (read_ecf, ECF.replace('dur="3"', 'dur="-3"'), r"line 3.*'\-3'.*\[malformed-line\]"),
        (read_ecf, ECF.replace('dur="3"', 'dur="nan"'), r"line 3.*'nan'.*\[malformed-line\]"),
        (read_ecf, ECF.replace('"A"', '"left"'), r"line 3.*'left'.*\[malformed-line\]"),
        (read_ecf, TLIST, r"line 2.*\[malformed-xml\]"),
        (read_ecf, "<ecf></ecf>", r"\[empty-input\]"),
        (read_ecf, ECF[:-8], r"\[malformed-xml\]"),
        (read_ecf, BOMB + ECF, r"line 1.*'lol'.*\[malformed-xml\]"),
        (read_termlist, BOMB + TLIST, r"\[malformed-xml\]"),
        (read_systemlist, BOMB + STDLIST, r"\[malformed-xml\]"),
        (read_termlist, TLIST.replace(' termid="T2"', ""), r"line 4.*\[malformed-xml\]"),
        (read_termlist, TLIST.replace("a&amp;b", " "), r"line 4.*'T2'.*\[malformed-xml\]"),
        (read_termlist, TLIST.replace("T2", "T1"), r"line 4.*'T1'.*\[duplicate-name\]"),
        (read_termlist, STDLIST, r"\[malformed-xml\]"),
        (read_systemlist, ECF, r"\[malformed-xml\]"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"nan"'), r"line 3.*'nan'.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"inf"'), r"line 3.*'inf'.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"1e999"'), r"line 3.*'1e999'.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('"-1.5"', '"1,5"'), r"line 3.*'1,5'.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('dur="0.5"', 'dur="-0.5"'), r"line 3.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace(' decision="NO"', ""), r"line 4.*'decision'.*\[malformed-xml\]"),
        (read_systemlist, STDLIST.replace('"NO"', '"MAYBE"'), r"\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('termid="T2"', 'termid="T1"'), r"\[duplicate-name\]"),
        (read_systemlist, STDLIST.replace('channel="2"', 'channel="x"'), r"line 4.*'x'.*\[malformed-line\]"),
        (read_systemlist, STDLIST[:-12], r"\[malformed-xml\]"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "0.5 so"), r"line 3.*'so'.*\[malformed-line\]"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "-1 0.25 so"), r"line 3.*'\-1'.*\[malformed-line\]"),
        (read_ecf, ECF.replace('dur="3"', 'dur="1e308"'), r"line 3.*'1e308'.*\[malformed-line\]"),
        (read_ecf, ECF.replace('dur="3"', 'dur="1_0"'), r"line 3.*'1_0'.*\[malformed-line\]"),
        (read_ecf, ECF.replace('dur="3"', 'dur="٣"'), r"line 3.*'٣'.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('tbeg="1"', 'tbeg="2e9"'), r"line 4.*'2e9'.*\[malformed-line\]"),
        (read_systemlist, KWSLIST.replace('min_score="0"', 'min_score="nan"'), r"'nan'.*\[malformed-line\]"),
        (read_systemlist, KWSLIST.replace('max_score="1"', 'max_score=""'), r"''.*\[malformed-line\]"),
        (read_systemlist, KWSLIST.replace('max_score="1"', 'max_score="INF"'), r"'INF'.*\[malformed-line\]"),
        (read_systemlist, KWSLIST.replace(' max_score="1"', ""), r"\[malformed-xml\]"),
        (read_systemlist, KWSLIST.replace(' min_score="0"', ""), r"\[malformed-xml\]"),
        (read_systemlist, KWSLIST.replace('max_score="1"', 'max_score="-1"'), r"\[invalid-value\]"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "1_0 0.25 so"), r"line 3.*'1_0'.*\[malformed-line\]"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "0.5 1e10 so"), r"line 3.*'1e10'.*\[malformed-line\]"),
        (read_rttm, "LEXEME F1 1 2e9 1 so lex a <NA>\n", r"line 1.*'2e9'.*\[malformed-line\]"),
        (read_rttm, RTTM.replace("0.5 0.25 so", "nan 0.25 so"), r"line 3.*'nan'.*\[malformed-line\]"),
        (read_rttm, "LEXEME F1 1 2\n", r"line 1.*\[malformed-line\]"),
        (read_rttm, RTTM.replace("F1 1 1 0.5", "F1 one 1 0.5"), r"line 4.*'one'.*\[malformed-line\]"),
    ],
)
def test_what_is_refused(write: Write, read: Callable[[str], object], text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as caught:
        read(write(text))
    assert caught.value.remedy


def test_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(STDLIST.replace("F1", "Fé").encode("latin-1"))
    with raises(families.MALFORMED_XML):
        read_systemlist(str(path))
    path.write_bytes(('<?xml version="1.0" encoding="ISO-8859-1"?>\n' + STDLIST.replace("F1", "Fé")).encode("latin-1"))
    assert rows(read_systemlist(str(path)))[0]["doc_id"] == "Fé"
    path.write_bytes(RTTM.replace("so", "sö").encode("latin-1"))
    with raises(io_codes.NOT_UTF8, where="line 3") as caught:
        read_rttm(str(path))
    assert "iconv" in str(caught.value.remedy)


def test_no_such_file(tmp_path: Path) -> None:
    for read in (read_ecf, read_termlist, read_systemlist, read_rttm):
        with raises(io_codes.NO_SUCH_FILE, what="file"):
            read(str(tmp_path / "gone"))
        with raises(families.WRONG_KIND):
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
    assert sorted(notice.count for notice in notices.entries.values()) == [1, 1]
    with raises(io_codes.REPEATED_QUERY_LIST):
        read_systemlist(write(text), notices=Notices(strict=True))
    odd = read_systemlist(write(STDLIST.replace('"NO"', '"no"')), notices=notices)
    assert odd.detections["decision"].to_pylist() == [True, False]
    assert says(str(notices), io_codes.DECISION_COUNTED_AS_NO)
    assert pa.types.is_dictionary(odd.detections["query_id"].type)


DOCTYPE = '<!DOCTYPE stdlist SYSTEM "stdlist.dtd">\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "latin-1"])
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (DOCTYPE + STDLIST.replace('file="F1"', 'file="F1&foo;"'), r"line 4.*'foo'.*\[malformed-xml\]"),
        (DOCTYPE + STDLIST.replace('file="F1"', "file='F1&foo;'"), r"line 4.*'foo'.*\[malformed-xml\]"),
        (DOCTYPE + STDLIST.replace('file="F1"', 'file="> &lt;&foo;"'), r"line 4.*'foo'.*\[malformed-xml\]"),
        (DOCTYPE + STDLIST.replace("</stdlist>", "&foo;</stdlist>"), r"line 8.*'foo'.*\[malformed-xml\]"),
        ("<!DOCTYPE s [%p;]>\n" + STDLIST.replace('"F1"', '"F1&foo;"'), r"line 4.*'foo'.*\[malformed-xml\]"),
        ("<!DOCTYPE s [%p;]>\n" + STDLIST.replace("<det", "&foo;<det", 1), r"line 3.*'foo'.*\[malformed-xml\]"),
        ('<!DOCTYPE s [%p;<!ENTITY foo "x">]>\n' + STDLIST.replace('"F1"', '"&foo;"'), r"'foo'.*\[malformed-xml\]"),
        ('<!DOCTYPE s [<!ENTITY % p "x">]>\n' + STDLIST, r"line 1.*'p'.*\[malformed-xml\]"),
        ('<!DOCTYPE s SYSTEM "x" [<!ATTLIST term file CDATA "&foo;">]>\n' + STDLIST, r"'file'.*\[malformed-xml\]"),
        (STDLIST.replace('file="F1"', 'file="F1&foo;"'), r"line 3.*\[malformed-xml\]"),
    ],
)
def test_no_entity_is_dropped(tmp_path: Path, text: str, complaint: str, encoding: str) -> None:
    path = tmp_path / "list.xml"
    head = f'<?xml version="1.0" encoding="{encoding.replace("latin-1", "ISO-8859-1")}"?>'  # on one line with the rest
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + head.replace("-be", "") + text).encode(encoding))
    with pytest.raises(DataError, match=complaint) as caught:
        read_systemlist(str(path))
    assert caught.value.remedy


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "head", [DOCTYPE, "<!DOCTYPE stdlist>", "<!DOCTYPE stdlist [<!ATTLIST term file CDATA #IMPLIED>]>"]
)
def test_a_doctype_without_entities(tmp_path: Path, head: str, encoding: str) -> None:
    path = tmp_path / "list.xml"
    path.write_bytes((head + STDLIST.replace('"F1"', "'> \"&amp;&#49;&#x31;&lt;&gt;&apos;&quot;'")).encode(encoding))
    assert rows(read_systemlist(str(path)))[0]["doc_id"] == '> "&11<>\'"'


@pytest.mark.parametrize("encoding", ["foo", "rot13", "shift_jis", "idna"])
def test_encodings_that_cannot_be_read(write: Write, encoding: str) -> None:
    with raises(families.MALFORMED_XML, where="line 1") as caught:
        read_systemlist(write(f'<?xml version="1.0" encoding="{encoding}"?>\n{STDLIST}'))
    assert "UTF-8" in str(caught.value.remedy)


READERS = (read_ecf, read_termlist, read_systemlist, read_rttm)


def test_pipes_and_devices_are_refused_unopened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: to open it would wait for ever
    for read in READERS:
        for path in (str(tmp_path / "pipe"), "/dev/zero", "/dev/null"):
            with raises(families.WRONG_KIND) as caught:
                read(path)
            assert "write it to a file first" in str(caught.value.remedy)


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for path, complaint in (
        (str(tmp_path / ("a" * 300)), r"\[name-too-long\]"),
        (str(tmp_path / "file" / "below"), r"\[missing-file\]"),
        (str(tmp_path / "a\0b"), r"\[unwritable-name\]"),
    ):
        with pytest.raises(UserError, match=complaint) as caught:
            read_ecf(path)
        assert caught.value.remedy

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")  # who is root may open everything, so it is played

    monkeypatch.setattr(packed, "open_path", refuse)
    with raises(storage_codes.PERMISSION_DENIED):
        read_ecf(str(tmp_path / "file"))


LONG = "x" * (3 << 20)


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (read_rttm, "\0" * (9 << 20), r"line 1.*\[malformed-file\]"),
        (read_rttm, f"LEXEME F1 1 0 1 so lex a <NA>\nLEXEME {LONG}", r"line 2.*\[malformed-file\]"),
        (read_rttm, f"LEXEME F1 {LONG[: 1 << 19]} 0 1 so\n", r"line 1.*\[malformed-line\]"),
        (read_rttm, f"LEXEME F1 1 {LONG[: 1 << 19]} 1 so\n", r"line 1.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('"F1"', f'"{LONG * 4}"'), r"\[malformed-xml\]"),
        (read_systemlist, STDLIST[:20] + LONG + LONG, r"\[malformed-xml\]"),
        (read_systemlist, f"<!-- {LONG}{LONG} -->" + STDLIST, r"\[malformed-xml\]"),
        (read_systemlist, "<!DOCTYPE s [" + "<!ELEMENT a ANY>" * (1 << 19), r"\[malformed-xml\]"),
        (read_systemlist, "<stdlist>" + "<a>" * 1000, r"\[malformed-xml\]"),
        (read_systemlist, STDLIST.replace('"YES"', f'"{LONG}"'), r"\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('dur="0.5"', f'dur="{LONG}"'), r"line 3.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('dur="0.5"', f'dur="1{"0" * 399}"'), r"line 3.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace('channel="2"', f'channel="{LONG}"'), r"line 4.*\[malformed-line\]"),
        (read_systemlist, STDLIST.replace("T2", LONG).replace("T1", LONG), r"\[duplicate-name\]"),
        (read_systemlist, STDLIST.replace("stdlist", LONG), r"\[malformed-xml\]"),
        (read_systemlist, DOCTYPE + STDLIST.replace("F1", f"&{LONG};"), r"\[malformed-xml\]"),
        (read_ecf, ECF.replace(" dur=", f" {LONG}="), r"'dur'.*\[malformed-xml\]"),
        (read_termlist, TLIST.replace("a&amp;b", LONG), r"line 4.*\[malformed-xml\]"),
        (read_termlist, TLIST.replace("T2", LONG).replace("T1", LONG), r"\[duplicate-name\]"),
    ],
)
def test_what_is_beyond_all_measure(write: Write, read: Callable[[str], object], text: str, complaint: str) -> None:
    """It is refused soon, and not shown in full."""
    with pytest.raises(DataError, match=complaint) as caught:
        read(write(text))
    assert len(str(caught.value)) < 1500


def test_a_long_list_on_one_line(write: Write) -> None:
    item = '<term file="F1" channel="1" tbeg="0.25" dur="0.5" score="1" decision="YES"/>'
    found = read_systemlist(write(STDLIST.replace("\n", " ").replace("<term ", item * 60_000 + "<term ", 1)))
    assert found.detections.num_rows == 60_002


def test_blanks_between_elements_do_not_add_up(write: Write) -> None:
    assert read_systemlist(write(STDLIST.replace("\n", "\n" + " " * (2 << 20)))).detections.num_rows == 2


def test_channels_that_are_not_written_as_numbers(write: Write) -> None:
    """Once a list, whatever the layout; the value is what it was."""
    plain = STDLIST.replace('channel="2"', 'channel="02"')
    for text in (plain, plain.replace("\n", " "), plain.replace('"02"', '"b"').replace('channel="1"', 'channel="A"')):
        notices = Notices()
        assert read_systemlist(write(text), notices=notices).detections["channel"].to_pylist() == [1, 2]
        assert [notice.count for notice in notices.entries.values()] == [1]
        assert says(str(notices), io_codes.UNUSUAL_CHANNEL)
    notices = Notices()
    assert read_ecf(write(ECF), notices=notices)["channel"].to_pylist() == [1, 1]
    assert "file: channel 'A'" in str(notices)
    line = "LEXEME F1 01 1 0.5 um fp anna 0.9\nNON-LEX F1 X 1 0.5 um fp anna 0.9\n"
    for text in (line, line.replace(" X ", " 2 "), line.replace(" 01 ", " a ")):
        assert read_rttm(write(text), notices=notices).lexemes["channel"].to_pylist() == [1]
    assert [notice.count for notice in notices.entries.values()] == [4]
    read_rttm(write(RTTM), notices=notices)
    read_systemlist(write(STDLIST), notices=notices)
    assert [notice.count for notice in notices.entries.values()] == [4]
    for read in (read_ecf, read_systemlist, read_rttm):
        with raises(io_codes.UNUSUAL_CHANNEL):
            read(write({read_ecf: ECF, read_systemlist: plain, read_rttm: line}[read]), notices=Notices(strict=True))


def test_limits_of_scores(write: Write) -> None:
    assert read_systemlist(write(KWSLIST)).attributes["max_score"] == "1"
    assert rows(read_systemlist(write(KWSLIST.replace('max_score="1"', 'max_score="0"'))))
    assert rows(read_systemlist(write(KWSLIST.replace(' min_score="0" max_score="1"', ""))))


def test_terms_that_the_programs_read_otherwise(write: Write) -> None:
    text = TLIST.replace('<term termid="T2"', '<term lang="x" termid="T2"').replace("a&amp;b", "caf&#233;")
    notices = Notices()
    assert read_termlist(write(text), notices=notices).terms["term"].to_pylist() == ["two words", "café"]
    assert [notice.count for notice in notices.entries.values()] == [1, 1]
    assert says(str(notices), io_codes.TERMID_NOT_FIRST)
    assert says(str(notices), io_codes.TERM_WITH_ENTITIES)
    plain = Notices()
    read_termlist(write(TLIST.replace("a&amp;b", "café").replace(">yes<", ">&lt;<")), notices=plain)
    assert not plain.entries
    keywords = text.replace("termlist", "kwlist").replace("term", "kw")
    one = Notices()
    read_termlist(write(keywords), notices=one)
    assert [notice.code for notice in one.entries.values()] == [io_codes.TERM_WITH_ENTITIES]
