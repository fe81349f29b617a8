"""Readers of CTM, subtitles, ELAN, Praat and recognisers' JSON: each word with its times, and what is wrong with its place."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.lattices.lattice import BREAK, Broken, Lattice, Origin
from swsdist.lattices.words import key_of
from swsdist.registry.registries import LATTICE_FORMATS
from tests.support.coded import raises
from tests.support.transcripts import detected, error_in, read_as, words_in, words_of_lattice


def test_names_of_recordings_and_columns_of_tables() -> None:
    keys = {"s3://b/talks/interview.wav.json": "interview", "x/day.one.vtt.gz": "day.one"}
    keys |= {"talk.MP3.srt": "talk", "talk.flac": "talk", "talk": "talk", ".json": ".json", "": ""}
    assert {path: key_of(path) for path in keys} == keys
    for name, head, form in (
        ("talk.csv", b"\xef\xbb\xbfspeaker;start;end;text\r\n", "table"),
        ("talk.tsv.gz", b'sep=\t\n"start"\t"end"\t"text"\n', "table"),
        ("talk.txt", b"start,end,text\n", None),
        ("talk.csv", b"query_id,doc_id,start,end,text\n", None),
        ("talk.csv", b"start,end,word\n", None),
    ):
        assert detected(name, head) == form, (name, head)


#: NIST SCTK, ctm; `NA`, type and speaker as NVIDIA/NeMo's forced aligner writes them (make_ctm_files.py).
CTM = """\
;; comment
talk1 A 0.50 0.25 hello 0.5
talk1 A 0.75 0.50 world
talk1 B 3.00 0.00 uh 1.0 fp
talk2 1 0.00 0.08 yes NA lex NA
"""


def test_a_recording_and_channel_of_a_ctm_is_a_lattice_and_wrong_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "words.ctm"
    path.write_text(CTM)
    lattices = read_as("ctm", path)
    assert all(isinstance(lattice, Lattice) for lattice in lattices)
    assert [(lattice.key, lattice.channel, words_of_lattice(lattice)) for lattice in lattices] == [  # type: ignore[union-attr, arg-type]
        ("talk1", 1, [("hello", 0.5, 0.75, 0.5), ("world", 0.75, 1.25, 1.0)]),
        ("talk1", 2, [("uh", 3.0, 3.0, 1.0)]),
        ("talk2", 1, [("yes", 0.0, 0.08, 1.0)]),
    ]
    assert detected("words", path.read_bytes()) == "ctm"
    path = tmp_path / "words.ctm"
    for content, key, code, whole in (
        (CTM.replace("talk1 A 0.75 0.50 world", "talk1 A * * <ALT_BEGIN>"), "talk1", io_codes.CTM_ALTERNATION, 2),
        ("a 1 0 1 x\nb 1 0 1 x\na A 2 1 x\n", "a", codes.SCATTERED_CTM, 2),
        (b"a 1 0 1 x\nb 1 0 1 \xff\n", "words", io_codes.NOT_UTF8, 0),
    ):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        items = read_as("ctm", path)
        broken = [item for item in items if isinstance(item, Broken)]
        assert [(item.key, item.error.code) for item in broken] == [(key, code.name)]
        assert len(items) == 1 + whole
    path = tmp_path / "words.ctm"
    text = CTM.replace("talk1 A 0.75 0.50 world\n", "")
    for line, code in (
        ("talk1 A 0.75 -1 world", io_codes.BAD_TIME),
        ("talk1 A nan 1 world", families.MALFORMED_LINE),
        ("talk1 A 0.75 1 world 1.5", families.MALFORMED_LINE),
        ("talk1 ? 0.75 1 world", families.MALFORMED_LINE),
    ):
        for first in (False, True):
            path.write_text(text.replace(";; comment", line) if first else text.replace("0.5\n", f"0.5\n{line}\n"))
            one, *others = read_as("ctm", path)
            assert isinstance(one, Lattice)
            assert (one.key, one.channel, words_of_lattice(one)) == ("talk1", 1, [("hello", 0.5, 0.75, 0.5)])
            assert one.left_out is not None
            (error,) = one.left_out.errors
            assert (error.code, error.where) == (code.name, f"{path}, line {1 if first else 3}")
            assert [(item.key, getattr(item, "channel", 0)) for item in others] == [("talk1", 2), ("talk2", 1)]
            assert detected("words", path.read_bytes()) == "ctm"


WEBVTT = (
    "WEBVTT - title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE what follows\nis not shown\n\n"
    "1\n00:01.000 --> 00:02.500 align:start\n<v Ann>Hello, <i>big</i> &amp; wide\nworld.\n\n"
    "1:00:00.000 --> 1:00:01.000\nagain\n"
)

SRT = (
    "1\n00:00:01,000 --> 00:00:02,500\nHello, <i>big</i> {\\an8}& wide\nworld.\n\n"
    "2\n01:00:00,000 --> 01:00:01,000\nagain\n"
)


@pytest.mark.parametrize(("form", "text"), [("webvtt", WEBVTT), ("srt", SRT)])
def test_a_cues_words_last_as_long_as_the_cue(tmp_path: Path, form: str, text: str) -> None:
    path = tmp_path / f"talk.{form}"
    expected = [
        *((word, 1.0, 2.5, 1.0) for word in ("Hello,", "big", "&", "wide", "world.")),
        ("again", 3600.0, 3601.0, 1.0),
    ]
    for content in (text.encode(), b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()):
        path.write_bytes(content)
        assert words_in(form, path) == expected
        assert detected("talk", content) == form


def test_times_and_lines_of_cues_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    """As YouTube writes them: lines roll up, and each cue repeats the line before."""
    path = tmp_path / "talk.vtt"
    path.write_text(
        "WEBVTT\nKind: captions\nLanguage: en\n\n"
        "00:00:01.000 --> 00:00:03.000 align:start position:0%\n \nso<00:00:01.500><c> what</c><00:00:02.000><c> now</c>\n\n"
        "00:00:03.000 --> 00:00:03.010 align:start position:0%\nso what now\n \n\n"
        "00:00:03.010 --> 00:00:05.000 align:start position:0%\nso what now\nand<00:00:04.000><c> then</c>\n\n"
        "00:00:07.000 --> 00:00:08.000\nand then\n"
    )
    said = [("so", 1.0, 1.5), ("what", 1.5, 2.0), ("now", 2.0, 3.0), ("and", 3.01, 4.0), ("then", 4.0, 5.0)]
    again = [("and", 7.0, 8.0), ("then", 7.0, 8.0)]
    assert words_in("webvtt", path) == [(*word, 1.0) for word in said + again]
    # As openai/whisper writes it with --highlight_words True.
    path = tmp_path / "talk.srt"
    path.write_text(
        "1\n00:00:00,000 --> 00:00:00,500\n<u>no</u> way\n\n2\n00:00:00,500 --> 00:00:01,000\nno <u>way</u>\n\n"
        "3\n00:00:02,000 --> 00:00:03,000\nno way\n\n4\n00:00:04,000 --> 00:00:05,000\nI <3 > <b>so</b> {x}\n"
    )
    said = {0.0: ["no", "way"], 2.0: ["no", "way"], 4.0: ["I", "<3", ">", "so", "{x}"]}
    assert words_in("srt", path) == [(word, at, at + 1, 1.0) for at, words in said.items() for word in words]
    path = tmp_path / "talk.srt"
    wrong = families.MALFORMED_LINE
    for cues, code, line in (
        ("1\n00:00:01,000 --> 00:00:02\na\n", wrong, 2),
        ("1\n00:00:01,000 --> 00:70:02,000\na\n", wrong, 2),
        ("1\n00:00:01,000 --> 00:00:02,000\na\n2\n00:00:03,000 --> 00:00:4\nb\n", wrong, 5),
        ("1\n00:00:01,000 --> 00:00:02,000\na\n\nb\n", wrong, 5),
        ("1\n00:00:02,000 --> 00:00:01,000\na\n", codes.WORD_ENDS_BEFORE_START, 2),
    ):
        path.write_text(cues)
        error = error_in("srt", path).error
        assert (error.code, error.where) == (code.name, f"{path}, line {line}")


CUES: list[tuple[list[tuple[int, int, str]], list[tuple[int, int]]]] = [
    ([(600, 602, "thank you"), (60, 62, "thank you")], [(60, 62), (600, 602)]),  # out of order
    ([(0, 10, "yes"), (8, 9, "yes")], [(0, 10), (8, 9)]),  # two people
    ([(0, 1, "yes"), (1, 2, "yes"), (2, 3, "yes")], [(0, 1), (1, 2), (2, 3)]),  # repeated answers
    ([(0, 1, "yes"), (1, 2, "yes\nno"), (2, 3, "no")], [(0, 2)]),  # rolls up
    ([(0, 1, "yes"), (1, 2, "yes"), (2, 3, "yes\nno"), (3, 4, "no")], [(0, 3)]),  # held, then rolls up
    # dialogue: neither a shared line elsewhere in a cue, nor cues that once roll up, make one of two answers
    ([(0, 1, "yes\nno"), (1, 2, "yes\nso"), (8, 9, "ok"), (9, 10, "ok")], [(0, 1), (1, 2), (8, 9), (9, 10)]),
    ([(0, 1, "no\nyes"), (1, 2, "yes\nno"), (3, 4, "a"), (5, 6, "ok"), (6, 7, "ok")], [(0, 2), (5, 6), (6, 7)]),
    ([(0, 1, "yes\nyes"), (1, 2, "yes\na")], [(0, 1), (0, 2)]),
    ([(0, 1, "<u>yes</u> a"), (1, 2, "yes <u>a</u>"), (8, 9, "yes"), (9, 10, "yes")], [(0, 2), (8, 10)]),
]


def test_cues_of_the_same_text(tmp_path: Path) -> None:
    path = tmp_path / "talk.srt"
    clock = "00:{:02d}:{:02d},000"
    for cues, spans in CUES:
        rows = [f"{clock.format(*divmod(a, 60))} --> {clock.format(*divmod(b, 60))}\n{text}\n" for a, b, text in cues]
        path.write_text("\n".join(rows))
        found = [word[1:3] for word in words_in("srt", path) if word.text in ("thank", "yes", "ok")]
        assert found == spans, cues


def eaf(slots: str, tiers: str) -> str:
    """An ELAN file in the layout of EAFv3.0.xsd; slots: `ts1=0 ts2= ...`, the times in ms."""
    times = [slot.split("=") for slot in slots.split()]
    order = "".join(
        f'<TIME_SLOT TIME_SLOT_ID="{name}"' + (f' TIME_VALUE="{time}"/>' if time else "/>") for name, time in times
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<ANNOTATION_DOCUMENT AUTHOR="" DATE="2020-01-01T00:00:00+00:00" '
        'FORMAT="3.0" VERSION="3.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
        f'<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>\n<TIME_ORDER>{order}</TIME_ORDER>\n{tiers}\n'
        '<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t" TIME_ALIGNABLE="true"/></ANNOTATION_DOCUMENT>\n'
    )


def tier(name: str, *annotations: str, parent: str = "") -> str:
    """A tier; an annotation: `a1 ts1 ts2 text`, or `a2 a1 - text` for a reference to a1."""
    rows = []
    for annotation in annotations:
        key, first, last, *words = annotation.split(" ")
        value = f"<ANNOTATION_VALUE>{' '.join(words)}</ANNOTATION_VALUE>"
        rows.append(
            f'<REF_ANNOTATION ANNOTATION_ID="{key}" ANNOTATION_REF="{first}">{value}</REF_ANNOTATION>'
            if last == "-"
            else f'<ALIGNABLE_ANNOTATION ANNOTATION_ID="{key}" TIME_SLOT_REF1="{first}" TIME_SLOT_REF2="{last}">{value}'
            "</ALIGNABLE_ANNOTATION>"
        )
    above = f' PARENT_REF="{parent}"' if parent else ""
    inner = "".join(f"<ANNOTATION>{row}</ANNOTATION>" for row in rows)
    return f'<TIER TIER_ID="{name}" LINGUISTIC_TYPE_REF="t"{above}>{inner}</TIER>\n'


SLOTS = "ts1=0 ts2= ts3=1500 ts4=1000 ts5=2000"
TIERS = (
    tier("Ann", "a3 ts3 ts5 later", "a1 ts1 ts3 hello wide", "a2 ts5 ts5 ")
    + tier("words", "a4 ts1 ts2 hello", "a5 ts2 ts3 wide", parent="Ann")
    + tier("gloss", "a6 a5 - WIDE", "a7 a4 - HELLO", parent="words")
    + tier("Bob &lt;&quot;", "a8 ts4 ts5 yes")
)


def test_elan_tier_after_tier_in_the_time_of_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "talk.eaf"
    path.write_text(eaf(SLOTS, TIERS))
    ann = [("hello", 0.0, 1.5, 1.0), ("wide", 0.0, 1.5, 1.0), ("later", 1.5, 2.0, 1.0)]
    words = [("hello", 0.0, 1.5, 1.0), ("wide", 0.0, 1.5, 1.0)]
    bob = [("yes", 1.0, 2.0, 1.0)]
    assert words_in("elan", path) == [*ann, (BREAK, 2.0, 2.0, 1.0), *words, (BREAK, 1.5, 1.5, 1.0), *bob]
    assert words_in("elan", path, ('Bob <"',)) == bob
    assert words_in("elan", path, ("gloss",)) == [("WIDE", 0.0, 1.5, 1.0), ("HELLO", 0.0, 1.5, 1.0)]
    assert error_in("elan", path, ("Ann", "Eve")).error.values["tier"] == "Eve"
    assert detected("talk", path.read_bytes()) == "elan"
    one = tier("a", "a1 ts1 ts2 x")
    times = [(eaf("ts1=0", tier("a", "a1 ts1 ts9 x")), families.MISSING_TIMES)]
    times += [(eaf("ts1=0 ts2=", one), families.MISSING_TIMES), (eaf("ts1=9 ts2=5", one), codes.WORD_ENDS_BEFORE_START)]
    times += [(eaf("ts1=-9 ts2=5", one), io_codes.BAD_TIME), (eaf("ts1=9 ts2=x", one), io_codes.BAD_TIME)]
    others = [
        (eaf("ts1=0 ts1=9", ""), codes.UNREADABLE_ANNOTATIONS),
        (eaf("ts1= ts2=", tier("a", "a1 ts1 ts2 x", "a2 ts2 ts1 x")), families.MISSING_TIMES),
        (eaf("", tier("a", "a1 a2 - x", "a2 a1 - x", parent="a")), families.MISSING_TIMES),
        (eaf("ts1=9", tier("a", "a1 ts1 ts1 x")).replace("TIME_SLOT_ID", "ID"), families.MISSING_TIMES),
        (eaf("", "")[:230], families.MALFORMED_XML),
        ("<html/>", io_codes.WRONG_ROOT_ELEMENT),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', families.MALFORMED_XML),
    ]
    demand_broken("elan", tmp_path / "talk.eaf", times + others)
    path = tmp_path / "talk.eaf"
    text = eaf("ts1=1000 ts2=2000", tier("a", "a1 ts1 ts2 river"))
    film = '<MEDIA_DESCRIPTOR MEDIA_URL="file:///a/film.mp4" MIME_TYPE="video/mp4" TIME_ORIGIN="500"/>'
    talk = '<MEDIA_DESCRIPTOR MEDIA_URL="" MIME_TYPE="" RELATIVE_MEDIA_URL="./talk.wav" TIME_ORIGIN="3000"/>'
    for media, start in ((film, 1.5), (film + talk, 4.0), (talk.replace(' TIME_ORIGIN="3000"', ""), 1.0)):
        path.write_text(text.replace('"milliseconds"/>', f'"milliseconds">{media}</HEADER>'))
        assert words_in("elan", path) == [("river", start, start + 1, 1.0)]
    path.write_text(text.replace('"milliseconds"/>', f'"milliseconds">{talk.replace("3000", "3 s")}</HEADER>'))
    error = error_in("elan", path).error
    assert error.code == codes.UNREADABLE_ANNOTATIONS.name
    assert "TIME_ORIGIN" in error.message
    # of several of its name, the one that is there; and where both are, the one that a corpus takes
    both = '<MEDIA_DESCRIPTOR MEDIA_URL="file:///a/talk.mp4" TIME_ORIGIN="500"/>' + talk
    path.write_text(text.replace('"milliseconds"/>', f'"milliseconds">{both}</HEADER>'))
    for name, start in (("", 1.5), ("talk.wav", 4.0), ("talk.mp4", 4.0)):
        (tmp_path / name).write_bytes(b"") if name else None
        assert words_in("elan", path)[0].start == start
    (tmp_path / "talk.wav").unlink()
    assert words_in("elan", path)[0].start == 1.5
    path = tmp_path / "talk.eaf"
    media = '<MEDIA_DESCRIPTOR MEDIA_URL="talk.wav" TIME_ORIGIN="1000"/>'  # always ms
    text = eaf("ts1=0 ts2=30", tier("a", "a1 ts1 ts2 x")).replace("/>\n<TIME_ORDER", f">{media}</HEADER>\n<TIME_ORDER")
    for units, seconds in (("milliseconds", 0.03), ("PAL-frames", 1.2), ("NTSC-frames", 1.001)):
        path.write_text(text.replace("milliseconds", units))
        assert words_in("elan", path) == [("x", 1.0, 1 + seconds, 1.0)]
    path.write_text(text.replace("milliseconds", "fields"))
    assert "TIME_UNITS" in error_in("elan", path).error.message
    path.write_text(eaf("ts1=1000.4 ts2=2000.6", tier("a", "a1 ts1 ts2 x")))
    assert words_in("elan", path) == [("x", 1.0, 2.001, 1.0)]


def demand_broken(form: str, path: Path, cases: list[tuple[str, Code[Any]]]) -> None:
    """Each content gives an error of its code, at the file."""
    wrong = []
    for content, code in cases:
        path.write_text(content)
        broken = error_in(form, path)
        if (broken.key, broken.error.code) != ("talk", code.name) or str(path) not in str(broken.error.where):
            wrong.append((content, code.name, broken.error))
    assert wrong == []


def intervals(*spans: tuple[str, str, str]) -> str:
    rows = (
        f'        intervals [{k}]:\n            xmin = {start}\n            xmax = {end}\n            text = "{text}"\n'
        for k, (start, end, text) in enumerate(spans, 1)
    )
    return f"        intervals: size = {len(spans)}\n{''.join(rows)}"


_TIER = '    item [{}]:\n        class = "{}"\n        name = "{}"\n        xmin = 0\n        xmax = 2.5\n'
_ANN = intervals(("-1.5e-17", "1.25", 'say ""hello"" 1e-3'), ("1.25", "2", ""), ("2", "25e-1", "später"))
_HEAD = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n'
_POINT = '        points: size = 1\n        points [1]:\n            number = 1.5\n            mark = "bang"\n'
#: Praat manual, TextGrid file formats.
TEXTGRID = (
    f"{_HEAD}xmin = 0\nxmax = 2.5\ntiers? <exists>\nsize = 3\nitem []:\n"
    f"{_TIER.format(1, 'IntervalTier', 'Ann')}{_ANN}{_TIER.format(2, 'TextTier', 'events')}{_POINT}"
    f"{_TIER.format(3, 'IntervalTier', 'Bob')}{intervals(('0', '2.5', 'yes'))}"
)

_LINES = ["0", "2.5", "<exists>", "1", '"IntervalTier"', '"Ann"', "0", "2.5", "2"]
_LINES += ["0", "1.25", '"say ""hello"" 1e-3"', "2", "25e-1", '"später"', ""]
SHORT = _HEAD + "\n".join(_LINES)

ANN = [*((word, 0.0, 1.25, 1.0) for word in ("say", '"hello"', "1e-3")), ("später", 2.0, 2.5, 1.0)]


def test_praat_tier_after_tier_in_all_forms(tmp_path: Path) -> None:
    path = tmp_path / "talk.TextGrid"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_bytes(TEXTGRID.encode(encoding))
        assert words_in("textgrid", path) == [*ANN, (BREAK, 2.5, 2.5, 1.0), ("yes", 0.0, 2.5, 1.0)]
        assert words_in("textgrid", path, ("events",)) == [("bang", 1.5, 1.5, 1.0)]
        assert detected("talk", path.read_bytes()) == "textgrid"
    assert error_in("textgrid", path, ("Eve",)).error.code == codes.NO_SUCH_TIER.name
    end = TEXTGRID.replace("xmin = 1.25", "xmin = 9").replace('text = ""', 'text = "x"')
    unreadable = (TEXTGRID.replace('"yes"', '"yes'), "", "ooBinaryFile\x08TextGrid\x00\x00")
    cases = [(content, codes.UNREADABLE_ANNOTATIONS) for content in unreadable]
    cases += [(TEXTGRID.replace("xmax = 1.25", "xmax = -1.25"), io_codes.BAD_TIME), (end, codes.WORD_ENDS_BEFORE_START)]
    cases += [(TEXTGRID.replace("size = 3", "size = 9"), codes.OTHER_COUNT), (TEXTGRID[:400], codes.INCOMPLETE_ITEM)]
    demand_broken("textgrid", tmp_path / "talk.TextGrid", cases)
    from praatio import textgrid  # another program's reader
    from pympi import TextGrid

    path = tmp_path / "short.TextGrid"
    path.write_text(SHORT, encoding="utf-8")
    assert words_in("textgrid", path) == ANN
    assert detected("short", path.read_bytes()) == "textgrid"
    intervals = textgrid.openTextgrid(str(path), includeEmptyIntervals=False).getTier("Ann").entries
    assert [(round(item.start, 6), round(item.end, 6), item.label) for item in intervals] == [
        (0.0, 1.25, 'say "hello" 1e-3'),
        (2.0, 2.5, "später"),
    ]
    path.write_text(SHORT.replace("25e-1", "2.5"), encoding="utf-8")
    TextGrid(str(path)).to_file(str(tmp_path / "binary.TextGrid"), mode="binary")
    assert words_in("textgrid", tmp_path / "binary.TextGrid") == ANN
    assert detected("binary", (tmp_path / "binary.TextGrid").read_bytes()) == "textgrid"


GOOD = {
    "ctm": CTM,
    "webvtt": WEBVTT,
    "srt": SRT,
    "elan": eaf(SLOTS, TIERS),
    "textgrid": TEXTGRID,
    "json": '[{"result": [{"word": "a", "start": 0.5, "end": 1.25, "conf": 0.5}], "text": "a"},\n{"text": ""}]',
}


@pytest.mark.parametrize("form", GOOD)
def test_packed_files_read_alike_and_a_missing_one_is_the_users_mistake(tmp_path: Path, form: str) -> None:
    plain, packed = tmp_path / "talk.x", tmp_path / "talk.x.gz"
    plain.write_text(GOOD[form], encoding="utf-8")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    both = [[(item.key, words_of_lattice(item)) for item in read_as(form, path)] for path in (plain, packed)]  # type: ignore[arg-type]
    assert both[0] == both[1]
    assert any(words for _, words in both[0])
    with raises(io_codes.NO_SUCH_FILE):
        list(LATTICE_FORMATS[form].load()(Origin(str(tmp_path / "none"))))


@pytest.mark.parametrize("form", GOOD)
def test_damage_gives_errors_with_codes_alone(tmp_path: Path, form: str) -> None:
    """Bytes changed, cut out, doubled or cut off at random: lattices, or why not; never another exception."""
    drawn = random.Random(7)
    path = tmp_path / "talk.x"
    broken = 0
    for _ in range(150):
        content = bytearray(GOOD[form].encode())
        for _ in range(drawn.randint(1, 4)):
            place = drawn.randrange(len(content))
            byte = drawn.choice([0, 10, 34, 45, 48, 60, 62, 101, 123, 125, 200, 255])
            before, after = content[:place], content[place:]
            cut, doubled = after[drawn.randint(1, 30) :], before[-drawn.randint(1, 40) :]
            changes = [before + bytes([byte]) + after[1:], before + cut, before + doubled + after, before]
            content = changes[drawn.randrange(4)] or bytearray(b"x")
        path.write_bytes(bytes(content))
        detected("talk.x", bytes(content))
        for item in read_as(form, path):
            if isinstance(item, Broken):
                broken += 1
                assert item.key
                assert item.error.code
                assert str(path) in str(item.error.where)
                assert item.error.remedy
            else:
                words_of_lattice(item)
    assert broken > 20


WORDS = [("Hello,", 0.0, 0.5, 0.75), ("world.", 0.5, 1.25, 0.5)]


def of(word: str, start: Any, end: Any, **more: Any) -> dict[str, Any]:
    return {"word": word, "start": start, "end": end, **more}


_SAID = [of(" Hello,", 0.0, 0.5, probability=0.75), of(" world.", 0.5, 1.25, probability=0.5)]
_SEGMENT = {"id": 0, "seek": 0, "start": 0.0, "end": 1.25, "text": " Hello, world.", "words": _SAID}
WHISPER = {"text": " Hello, world.", "segments": [{**_SEGMENT, "avg_logprob": float("nan")}], "language": "en"}

X_WORDS = [of("Hello,", 0.0, 0.5, score=0.75), {"word": "22"}, {"word": "23"}, of("world.", 1.0, 1.25, score=0.5)]
WHISPERX = {"segments": [{"text": "", "start": 0.0, "end": 1.25, "words": X_WORDS}], "language": "en"}

FASTER = [_SEGMENT]

_HELLO, _WORLD = of("Hello,", 0.0, 0.5, conf=0.75), of("world.", 0.5, 1.25, conf=0.5)
VOSK = {"result": [_HELLO, _WORLD], "text": "Hello, world."}
#: What vosk-transcriber writes.
MONOLOGUE = {"speaker": {"id": "unknown", "name": None}, "start": 0.0, "end": 1.25}
MONOLOGUE["terms"] = [
    {"confidence": sure, "start": start, "end": end, "text": text, "type": "WORD"} for text, start, end, sure in WORDS
]


def vosk_stream() -> str:
    """Results in a row, as a program prints them that calls Result, PartialResult and FinalResult."""
    one, two = {"result": [_HELLO], "text": "Hello,"}, {"result": [_WORLD], "text": "world."}
    documents = [{"partial": "hell"}, one, {"text": ""}, {"partial": "", "partial_result": []}, two, {"text": ""}]
    return "\n".join(json.dumps(document, indent=2) for document in documents) + "\n"


def written(folder: Path, content: object, name: str = "talk.wav.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_json_words_with_and_without_times_of_their_own(tmp_path: Path) -> None:
    for document in (
        *(WHISPER, FASTER, _SAID, VOSK, [VOSK, {"text": ""}], vosk_stream()),
        {"text": "Hello, world.", "words": VOSK["result"], "segments": [{"text": "Hello, world."}]},
        {"schemaVersion": "2.0", "monologues": [MONOLOGUE], "text": ["Hello, world."]},
    ):
        path = written(tmp_path, document)
        assert words_in("json", path) == WORDS
        assert detected(path.name, path.read_bytes()) == "json"
        (lattice,) = read_as("json", path)
        assert (lattice.key, lattice.channel, lattice.length) == ("talk", 1, 1250)  # type: ignore[union-attr]
    expected = [WORDS[0], ("22", 0.5, 1.0, 1.0), ("23", 0.5, 1.0, 1.0), ("world.", 1.0, 1.25, 0.5)]
    assert words_in("json", written(tmp_path, WHISPERX)) == expected
    assert words_in("json", written(tmp_path, {"word_segments": X_WORDS})) == expected
    alone = {"segments": [{"start": 2.0, "end": 3.0, "text": "22", "words": [{"word": "22"}]}]}
    assert words_in("json", written(tmp_path, alone)) == [("22", 2.0, 3.0, 1.0)]
    at = {"segments": [{"start": 0.0, "end": 3.0, "text": "", "words": [{"word": "1"}, of("a", 1, 2), {"word": "2"}]}]}
    assert words_in("json", written(tmp_path, at)) == [("1", 0, 1, 1), ("a", 1, 2, 1), ("2", 2, 3, 1)]
    # A segment that whisperX does not align, and a word whose end transformers does not know.
    unaligned = {"segments": [{"text": " A river", "start": 2.0, "end": 4.0, "words": []}], "word_segments": []}
    assert words_in("json", written(tmp_path, unaligned)) == [("A", 2, 4, 1), ("river", 2, 4, 1)]
    chunks = [{"text": " A", "timestamp": [1.0, 2.0]}, {"text": " river", "timestamp": [2.0, None]}]
    found = words_in("json", written(tmp_path, {"text": " A river", "chunks": chunks}))
    assert [(word[0], word[1]) for word in found] == [("A", 1), ("river", 2)]
    assert found[1][2] >= 2
    first, second = ({"confidence": 174.6, "result": [of(word, 3.93, 4.11)], "text": word} for word in ("nah", "nine"))
    assert words_in("json", written(tmp_path, {"alternatives": [first, second]})) == [("nah", 3.93, 4.11, 1.0)]
    assert words_in("json", written(tmp_path, {"alternatives": [{"text": "", "confidence": 1.0}]})) == []
    assert words_in("json", written(tmp_path, {"result": [of("a", 0, 1, conf=1.0000001)]})) == [("a", 0, 1, 1)]


def test_nemo_a_recording_a_line_and_its_parts_together(tmp_path: Path) -> None:
    """NVIDIA/NeMo, nemo/collections/asr/parts/utils/transcribe_utils.py write_transcription."""

    def line(name: str, offset: float, words: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        text = " ".join(word["word"] for word in words)
        return {"audio_filepath": name, "offset": offset, "duration": 2.0, "pred_text": text, "word": words, **more}

    first = line("/data/a.wav", 0, [of("hello", 0.08, 0.4, start_offset=1, end_offset=5)], word_confidence=[0.5])
    again = line("/data/a.wav", 10.5, [of("again", 0.0, 0.4, start_offset=0, end_offset=5)])
    other = {**line("/data/b.flac", 0, []), "timestep": [], "char": []}
    lines = [first, other, again, line("/data/c.wav", 0, [of("x", 1.0, 0.5)]), line("/more/a.wav", 0, [])]
    path = written(tmp_path, "\n".join(map(json.dumps, lines)), "predictions.json")
    assert detected(path.name, path.read_bytes()) == "json"
    a, b, c, same = read_as("json", path)
    assert isinstance(a, Lattice)
    assert isinstance(b, Lattice)
    assert (a.key, words_of_lattice(a)) == ("a", [("hello", 0.08, 0.4, 0.5), ("again", 10.5, 10.9, 1.0)])
    assert (b.key, words_of_lattice(b)) == ("b", [])
    assert isinstance(c, Broken)
    assert (c.key, c.error.code) == ("c", codes.WORD_ENDS_BEFORE_START.name)
    assert c.error.where == f"{path}, line 4, word[0]"
    assert isinstance(same, Broken)
    assert (same.key, same.error.code) == ("a", codes.RECORDINGS_OF_ONE_NAME.name)


def manifest(**more: object) -> dict[str, object]:
    return {"audio_filepath": "a.wav", "pred_text": "b", **more}


#: Contents, their code and the end of the place that is told.
WRONG: list[tuple[object, Code[Any], str]] = [
    ({"segments": [{"start": 0, "end": 1, "text": " Hello."}], "text": " Hello."}, codes.NO_WORD_TIMES, "segments[0]"),
    ({"segments": [{"text": "Hello.", "words": []}]}, codes.NO_WORD_TIMES, "segments[0]"),
    ({"text": "hello"}, codes.NO_WORD_TIMES, "line 1"),
    (manifest(), codes.NO_WORD_TIMES, "line 1"),
    (manifest(word=[{"word": "b", "start_offset": 1, "end_offset": 2}]), families.MISSING_TIMES, "word[0]"),
    (manifest(word=[of("b", 0, 1)], word_confidence=[]), codes.UNKNOWN_JSON, "line 1"),
    (manifest(word=[of("b", 0, 1)], offset=-1), io_codes.BAD_TIME, "line 1"),
    ({"word_segments": [{"word": "22"}]}, families.MISSING_TIMES, "word_segments[0]"),
    ({"result": [of("a", 0, 1), of("b", 2, 1)]}, codes.WORD_ENDS_BEFORE_START, "result[1]"),
    *(({"result": [of("a", start, 1)]}, io_codes.BAD_TIME, "result[0]") for start in (-0.5, float("nan"), "0", False)),
    *(({"result": [of("a", 0, end)]}, io_codes.BAD_TIME, "result[0]") for end in (float("inf"), 10**400)),
    *(({"result": [of("a", 0, 1, conf=sure)]}, families.MALFORMED_LINE, "result[0]") for sure in (1.1, -0.1, "high")),
    ({"result": [{"start": 0, "end": 1}]}, codes.UNKNOWN_JSON, "result[0]"),
    ({"result": {"language": "en"}}, codes.UNKNOWN_JSON, "result"),
    *((content, codes.UNKNOWN_JSON, "line 1") for content in ({"name": "package"}, "{}\n{}")),
    ([[{}]], codes.UNKNOWN_JSON, "[0]"),
    *((f'{{"text": ""}}\n{rest}', codes.MALFORMED_JSON, "line 2") for rest in ('{"text": "",}', ' {"result": [')),
    *((text, codes.MALFORMED_JSON, "line 1") for text in ('{"result": [' + "9" * 5000 + "]}", "[" * 100_000, "")),
]


def test_what_is_wrong_is_named_with_its_place(tmp_path: Path) -> None:
    wrong = []
    for content, code, place in WRONG:
        path = written(tmp_path, content)
        error = error_in("json", path).error
        where = str(error.where)
        if error.code != code.name or not (where.startswith(str(path)) and where.endswith(place)):
            wrong.append((str(content)[:99], error))
    assert wrong == []
    error = error_in("json", written(tmp_path, '{"text": ""}\n{"text": "",}')).error
    assert error.values["column"] == 13


def test_json_with_a_byte_order_mark_and_what_is_no_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    text = json.dumps({**VOSK, "text": "ü"}, ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert words_in("json", path) == WORDS
    assert detected("x.json", path.read_bytes()) == "json"
    for encoding, code in (("latin-1", io_codes.NOT_UTF8), ("utf-16", io_codes.UTF16_TEXT)):
        path.write_bytes(text.encode(encoding))
        assert error_in("json", path).error.code == code.name
