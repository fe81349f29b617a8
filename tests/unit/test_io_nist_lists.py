"""The readers of NIST's lists and of CTM: what is read, written back, and refused with file, line and remedy."""

import gzip
import lzma
import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import DataError, SwsdistError, UserError
from swsdist.core.types import LEXEMES
from swsdist.corpora.kaldi import read_utterances
from swsdist.evaluation.kaldi_results import read_results
from swsdist.io import compressed as packed
from swsdist.io import fields
from swsdist.io.nist import systemlist
from swsdist.io.nist.ctm import ctm_batches, read_ctm, write_ctm
from swsdist.io.nist.ecf import read_ecf, write_ecf
from swsdist.io.nist.rttm import read_rttm, write_rttm
from swsdist.io.nist.systemlist import SystemList, read_systemlist
from swsdist.io.nist.termlist import read_termlist, write_termlist
from swsdist.io.notices import Notices
from tests.support.coded import raises, says

Write = Callable[[str], str]
READERS = (read_ecf, read_termlist, read_systemlist, read_rttm)

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


def test_ecf_termlist_and_systemlist(write: Write, tmp_path: Path) -> None:
    excerpts = read_ecf(write(ECF))
    assert [tuple(row.values()) for row in excerpts.to_pylist()] == [
        ("audio/F1.sph", 1, 0.5, 9.25, "cts", "mboshi"),
        ("F2", 1, 0.0, 3.0, "bnews", None),
    ]
    for dialect in ("stdeval", "kwseval"):
        write_ecf(excerpts, tmp_path / "again.xml", dialect)  # type: ignore[arg-type]
        again = read_ecf(str(tmp_path / "again.xml"))
        assert again.drop_columns(["language"]) == excerpts.drop_columns(["language"])
    found = read_termlist(write(TLIST))
    assert found.terms.to_pylist() == [
        {"query_id": "T1", "term": "two words", "iv": "yes"},
        {"query_id": "T2", "term": "a&b", "iv": None},
    ]
    assert found.lowercase
    for dialect in ("tlist", "kwlist"):
        write_termlist(found.terms, tmp_path / "again.xml", dialect)  # type: ignore[arg-type]
        assert read_termlist(str(tmp_path / "again.xml")).terms == found.terms
    found = read_systemlist(write(STDLIST))
    assert found.queries == {"T1": "1.5", "T2": "2"}
    assert found.attributes["system_id"] == "s"
    assert [tuple(row.values()) for row in rows(found)] == [
        ("T1", "F1", 1, 0.25, 0.75, 0.5, -1.5, True),
        ("T1", "F2", 2, 1.0, 1.0, 0.0, 2e-05, False),
    ]


def test_the_same_list_laid_out_otherwise(write: Write, tmp_path: Path) -> None:
    expected = read_systemlist(write(STDLIST))
    for other in (
        STDLIST.replace("\n", " "),
        STDLIST.replace('"', "'"),
        STDLIST.replace("<term ", "<!-- <term file='X'/> --><term "),
        STDLIST.replace("\n<term", "\n\t  <term"),
        STDLIST.replace('file="F1"', 'file="F&#49;"'),
        STDLIST.replace('<term file="F1" channel="1"', '<term channel="1" file="F1"'),
        STDLIST.replace("</detected_termlist>", "</detected_termlist>\n\n"),
        '<?xml version="1.0" encoding="UTF-8"?>\n' + STDLIST,
        '<!DOCTYPE stdlist SYSTEM "stdlist.dtd">\n' + STDLIST,
    ):
        found = read_systemlist(write(other))
        assert (rows(found), found.queries) == (rows(expected), expected.queries)
    for pack, name in ((gzip.compress, "gz"), (lzma.compress, "xz")):
        (tmp_path / name).write_bytes(pack(STDLIST.encode()))
        assert rows(read_systemlist(str(tmp_path / name))) == rows(expected)
        (tmp_path / name).write_bytes(pack(STDLIST.encode() * 50)[:-12])
        with raises(io_codes.DAMAGED_ARCHIVE):
            read_systemlist(str(tmp_path / name))


FILE = st.sampled_from(["a", "dir/b.sph", "c d", "é"])
ITEM = st.tuples(FILE, st.integers(1, 3), st.floats(0, 1e6), st.floats(0, 100), st.floats(-1e6, 1e6), st.booleans())
GROUP = st.tuples(st.sampled_from(["T1", "T2", "Tä"]), st.lists(ITEM, max_size=4))


@settings(max_examples=60, deadline=None)
@given(st.lists(GROUP, max_size=5, unique_by=lambda group: group[0]), st.sampled_from(["\n", "\n  ", "\r\n"]))
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
    assert systemlist.read_lines(str(path), None, (systemlist.STDLIST, systemlist.KWSLIST)) is not None
    fast, slow = read_systemlist(str(path)), systemlist._read_elements(str(path), None)
    assert fast.detections["score"].to_pylist() == slow.columns[4].to_pylist()
    owner, queries = systemlist._queries(slow, str(path), None)
    table = systemlist._table(slow, owner, str(path), None)
    assert rows(fast) == rows(SystemList(table, queries, slow.attributes, slow.dialect))


RTTM = """;; a comment
SPEAKER F1 1 0.5 3.25 <NA> <NA> anna <NA>
LEXEME F1 1 0.5 0.25 so lex anna <NA>
LEXEME F1 1 1 0.5 um fp anna 0.9 ;; and more
NON-LEX F1 1 what ever <NA> laugh anna <NA>
"""


def test_rttm_of_all_or_few_fields(write: Write, tmp_path: Path) -> None:
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
    path = write("LEXEME F1 1 0.5 0.25 so\n")
    assert read_rttm(path).lexemes["speaker"].to_pylist() == [""]
    with raises(families.MALFORMED_LINE, where="line 1", type="LEXEME", fields=6):
        read_rttm(path, fields=9)


BOMB = '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>\n'


def refused(code: Code[DataError], line: int | None, read: Callable[[str], object], path: str) -> DataError:
    with raises(code) as caught:
        read(path)
    assert line is None or re.search(rf"line {line}\b", str(caught.value.where)), str(caught.value)
    return caught.value


def test_what_is_refused_and_other_encodings(write: Write, tmp_path: Path) -> None:
    line, xml = families.MALFORMED_LINE, families.MALFORMED_XML

    def ecf(duration: str) -> str:
        return ECF.replace('dur="3"', f'dur="{duration}"')

    def scored(score: str) -> str:
        return STDLIST.replace('"-1.5"', f'"{score}"')

    def limits(text: str) -> str:
        return KWSLIST.replace('min_score="0" max_score="1"', text)

    def lexeme(text: str) -> str:
        return RTTM.replace("0.5 0.25 so", f"{text} so")

    for read, code, number, texts in (
        (read_ecf, line, 3, [ecf(text) for text in ("-3", "nan", "1e308", "1_0", "٣")]),
        (read_ecf, line, 3, [ECF.replace('"A"', '"left"')]),
        (read_ecf, xml, 3, [ECF.replace('dur="3" ', "")]),
        (read_ecf, families.EMPTY_INPUT, None, ["<ecf></ecf>"]),
        (read_ecf, xml, 1, [BOMB + ECF]),
        (read_termlist, xml, None, [BOMB + TLIST, STDLIST]),
        (read_termlist, xml, 4, [TLIST.replace(' termid="T2"', ""), TLIST.replace("a&amp;b", " ")]),
        (read_termlist, families.DUPLICATE_NAME, 4, [TLIST.replace("T2", "T1")]),
        (read_systemlist, xml, None, [BOMB + STDLIST, ECF, STDLIST[:-12]]),
        (read_systemlist, xml, None, [limits('min_score="0"'), limits('max_score="1"')]),
        (read_systemlist, xml, 4, [STDLIST.replace(' decision="NO"', "")]),
        (read_systemlist, line, 3, [scored(text) for text in ("nan", "inf", "1e999", "1,5")]),
        (read_systemlist, line, 3, [STDLIST.replace('dur="0.5"', 'dur="-0.5"')]),
        (read_systemlist, line, 4, [STDLIST.replace('channel="2"', 'channel="x"')]),
        (read_systemlist, line, None, [STDLIST.replace('"NO"', '"MAYBE"')]),
        (read_systemlist, line, None, [limits('min_score="nan" max_score="1"'), limits('min_score="0" max_score=""')]),
        (read_systemlist, line, None, [limits('min_score="0" max_score="INF"')]),
        (read_systemlist, families.INVALID_VALUE, None, [limits('min_score="0" max_score="-1"')]),
        (read_systemlist, families.DUPLICATE_NAME, None, [STDLIST.replace('termid="T2"', 'termid="T1"')]),
        (read_rttm, line, 3, [lexeme(text) for text in ("0.5", "-1 0.25", "1_0 0.25", "0.5 1e10", "nan 0.25")]),
        (read_rttm, line, 1, ["LEXEME F1 1 2e9 1 so lex a <NA>\n", "LEXEME F1 1 2\n"]),
    ):
        for text in texts:
            refused(code, number, read, write(text))
    # At their limits scores are fine.
    assert rows(read_systemlist(write(limits('min_score="0" max_score="0"'))))
    assert rows(read_systemlist(write(limits(""))))
    path = tmp_path / "file"
    path.write_bytes(STDLIST.replace("F1", "Fé").encode("latin-1"))
    with raises(families.MALFORMED_XML):
        read_systemlist(str(path))
    path.write_bytes(('<?xml version="1.0" encoding="ISO-8859-1"?>\n' + STDLIST.replace("F1", "Fé")).encode("latin-1"))
    assert rows(read_systemlist(str(path)))[0]["doc_id"] == "Fé"
    path.write_bytes(RTTM.replace("so", "sö").encode("latin-1"))
    with raises(io_codes.NOT_UTF8, where="line 3"):
        read_rttm(str(path))
    for encoding in ("foo", "rot13", "shift_jis", "idna"):
        path.write_text(f'<?xml version="1.0" encoding="{encoding}"?>\n{STDLIST}')
        with raises(families.MALFORMED_XML, where="line 1"):
            read_systemlist(str(path))


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from([b"talk", b"1", b"A", b"0.5", b"-1", b"nan", b"<ALT>", b";;", b"\xff", b"\n", b"9" * 400]))
    .map(b" ".join),
    st.sampled_from([b"", b"<stdlist a=", b"<ecf>", b"LEXEME F1 1 ", b"KW utt1 0 ", b"\x1f\x8b", b"\xfd7zXZ\x00"]),
)  # fmt: skip
def test_random_bytes_raise_nothing_else(tmp_path_factory: pytest.TempPathFactory, junk: bytes, head: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "junk"
    path.write_bytes(head + junk)
    folders = [lambda path, key=key: read_utterances(**{key: path}) for key in ("segments", "recordings", "utter_id")]
    for read in (*READERS, read_ctm, read_results, *folders):
        try:
            read(str(path))
        except SwsdistError as error:
            found = error.where or ""
        else:
            found = str(path)
        assert str(path) in found


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


def test_no_entity_is_dropped_and_a_doctype_may_have_none(tmp_path: Path) -> None:
    path, within, foo = tmp_path / "list.xml", "<!DOCTYPE s [%p;]>\n", STDLIST.replace('file="F1"', 'file="F1&foo;"')
    for text, line in (
        (DOCTYPE + foo, 4),
        (DOCTYPE + STDLIST.replace('file="F1"', 'file="> &lt;&foo;"'), 4),
        (DOCTYPE + STDLIST.replace("</stdlist>", "&foo;</stdlist>"), 8),
        (within + foo, 4),
        (within + STDLIST.replace("<det", "&foo;<det", 1), 3),
        ('<!DOCTYPE s [%p;<!ENTITY foo "x">]>\n' + STDLIST.replace('"F1"', '"&foo;"'), None),
        ('<!DOCTYPE s [<!ENTITY % p "x">]>\n' + STDLIST, 1),
        ('<!DOCTYPE s SYSTEM "x" [<!ATTLIST term file CDATA "&foo;">]>\n' + STDLIST, None),
        (foo, 3),
    ):
        for encoding in ("utf-8", "utf-16", "utf-16-be", "latin-1"):
            name = encoding.replace("latin-1", "ISO-8859-1").removesuffix("-be")
            head = f'<?xml version="1.0" encoding="{name}"?>'  # on one line with the rest
            path.write_bytes((("\ufeff" if encoding == "utf-16-be" else "") + head + text).encode(encoding))
            refused(families.MALFORMED_XML, line, read_systemlist, str(path))
    path, text = tmp_path / "list.xml", STDLIST.replace('"F1"', "'> \"&amp;&#49;&#x31;&lt;&gt;&apos;&quot;'")
    for head in (DOCTYPE, "<!DOCTYPE stdlist>", "<!DOCTYPE stdlist [<!ATTLIST term file CDATA #IMPLIED>]>"):
        for encoding in ("utf-8", "utf-16"):
            path.write_bytes((head + text).encode(encoding))
            assert rows(read_systemlist(str(path)))[0]["doc_id"] == '> "&11<>\'"'


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: to open it would wait for ever
    (tmp_path / "file").write_text("")
    for read in READERS:
        with raises(io_codes.NO_SUCH_FILE, what="file"):
            read(str(tmp_path / "gone"))
        for path in (str(tmp_path), str(tmp_path / "pipe"), "/dev/zero", "/dev/null"):
            with raises(families.WRONG_KIND):
                read(path)
    for path, code in (
        (str(tmp_path / ("a" * 300)), "name-too-long"),
        (str(tmp_path / "file" / "below"), "missing-file"),
        (str(tmp_path / "a\0b"), "unwritable-name"),
    ):
        with pytest.raises(UserError) as caught:
            read_ecf(path)
        assert caught.value.code == code

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")  # who is root may open everything, so it is played

    monkeypatch.setattr(packed, "open_path", refuse)
    with raises(storage_codes.PERMISSION_DENIED):
        read_ecf(str(tmp_path / "file"))


def test_what_is_beyond_all_measure(write: Write) -> None:
    """It is refused soon, and not shown in full."""
    line, xml = families.MALFORMED_LINE, families.MALFORMED_XML
    file, twice = families.MALFORMED_FILE, families.DUPLICATE_NAME
    long, short = "x" * (3 << 20), "x" * (1 << 19)
    for read, code, number, text in (
        (read_rttm, file, 1, "\0" * (9 << 20)),
        (read_rttm, file, 2, f"LEXEME F1 1 0 1 so lex a <NA>\nLEXEME {long}"),
        (read_rttm, line, 1, f"LEXEME F1 {short} 0 1 so\n"),
        (read_systemlist, xml, None, STDLIST.replace('"F1"', f'"{long * 4}"')),
        (read_systemlist, xml, None, f"<!-- {long}{long} -->" + STDLIST),
        (read_systemlist, xml, None, "<!DOCTYPE s [" + "<!ELEMENT a ANY>" * (1 << 19)),
        (read_systemlist, xml, None, "<stdlist>" + "<a>" * 1000),
        (read_systemlist, line, None, STDLIST.replace('"YES"', f'"{long}"')),
        (read_systemlist, line, 3, STDLIST.replace('dur="0.5"', f'dur="{long}"')),
        (read_systemlist, line, 3, STDLIST.replace('dur="0.5"', f'dur="1{"0" * 399}"')),
        (read_systemlist, xml, None, DOCTYPE + STDLIST.replace("F1", f"&{long};")),
        (read_ecf, xml, None, ECF.replace(" dur=", f" {long}=")),
        (read_termlist, twice, None, TLIST.replace("T2", long).replace("T1", long)),
    ):
        assert len(str(refused(code, number, read, write(text)))) < 1500
    # A long list on one line is read, and blanks between elements do not add up.
    item = '<term file="F1" channel="1" tbeg="0.25" dur="0.5" score="1" decision="YES"/>'
    found = read_systemlist(write(STDLIST.replace("\n", " ").replace("<term ", item * 60_000 + "<term ", 1)))
    assert found.detections.num_rows == 60_002
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


def test_terms_that_the_programs_read_otherwise(write: Write) -> None:
    text = TLIST.replace('<term termid="T2"', '<term lang="x" termid="T2"').replace("a&amp;b", "caf&#233;")
    plain = TLIST.replace("a&amp;b", "café").replace(">yes<", ">&lt;<")
    first, entities = io_codes.TERMID_NOT_FIRST, io_codes.TERM_WITH_ENTITIES
    for one, codes in (
        (text, {first, entities}),
        (plain, set()),
        (text.replace("termlist", "kwlist").replace("term", "kw"), {entities}),
    ):
        notices = Notices()
        found = read_termlist(write(one), notices=notices)
        assert {(notice.code, notice.count) for notice in notices.entries.values()} == {(code, 1) for code in codes}
        assert one != text or found.terms["term"].to_pylist() == ["two words", "café"]


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


def test_what_is_wrong_is_named_and_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
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
    good = {"doc_id": "t", "channel": 1, "start": 0.0, "duration": 1.0, "word": "w"}
    names = [{"doc_id": "a b"}, {"doc_id": ";;a"}, {"word": ""}, {"word": "a\nb"}, {"speaker": "NA"}]
    times = [{"duration": -1.0}, {"start": float("nan")}]
    for code, rows in ((families.UNWRITABLE_NAME, names), (families.INVALID_TIMES, times)):
        for row in rows:
            with raises(code):
                write_ctm(pa.Table.from_pylist([good | row], LEXEMES), tmp_path / "out.ctm")
    with pytest.raises(DataError, match="alternation"):
        write_ctm(pa.Table.from_pylist([good | {"word": "<ALT>"}], LEXEMES), tmp_path / "out.ctm")


FIELD = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\n\x00\ufeff"), min_size=1, max_size=8).filter(
    lambda text: not text.startswith(";;") and text.upper() not in ("NA", "<NA>", "<ALT_BEGIN>", "<ALT>", "<ALT_END>")
)
SECONDS = st.floats(0, 1e7, allow_subnormal=True)
ROW = st.fixed_dictionaries(
    {"doc_id": FIELD, "channel": st.integers(0, 999), "start": SECONDS, "duration": SECONDS, "word": FIELD},
    optional={"kind": FIELD, "speaker": FIELD},
)


@settings(deadline=None)
@given(st.lists(ROW, max_size=5))
def test_written_and_read_is_the_same(tmp_path_factory: pytest.TempPathFactory, rows: list[dict]) -> None:
    path = tmp_path_factory.getbasetemp() / "same.ctm"
    table = pa.Table.from_pylist(rows, LEXEMES)
    write_ctm(table, path)
    assert read_ctm(str(path)) == table
