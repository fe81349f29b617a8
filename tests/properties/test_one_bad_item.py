"""One bad item costs itself: readers of transcripts and lattices give the good ones, and name the bad one with its place.
What is scored is refused instead.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from swsdist.core.errors import DataError
from swsdist.core.types import REFERENCES
from swsdist.evaluation.scoring_task import read_system
from swsdist.io.nist.ctm import read_ctm
from swsdist.io.nist.ecf import read_ecf
from swsdist.io.nist.rttm import read_rttm
from swsdist.io.notices import Notices
from swsdist.io.tables import read_table
from swsdist.lattices.lattice import Broken, Lattice
from swsdist.registry.registries import LATTICE_FORMATS
from tests.support.lattices import COMPACT_TEXT
from tests.support.transcripts import detected, read_as, words_of_lattice

GOOD = ("one", "two", "three", "four")


class Layout(NamedTuple):
    """How a format writes items: one of a word and second, a file of items, and bad items."""

    form: str
    item: Callable[[str, int], Any]
    file: Callable[[list[Any]], str]
    bad: tuple[Any, ...]


def entry(word: str, at: int, **more: Any) -> dict[str, Any]:
    return {"word": word, "start": at, "end": at + 1, **more}


NAN, INF = float("nan"), float("inf")
#: Fields of a word that cannot be used.
WRONG: tuple[dict[str, Any], ...] = (
    *({"end": 0.5}, {"start": -1.0}, {"start": NAN}, {"end": INF}, {"start": 2e9, "end": 3e9}, {"start": "x"}),
    *({"conf": NAN}, {"conf": INF}, {"conf": 1.5}, {"conf": -1}, {"conf": "high"}, {"word": None}, {"word": 5}),
    *({"word": "a\ud800"}, {"word": "\udc00b", "end": 0.5}, {"word": "\0"}, {"conf": "\ud800"}),
)
BAD_WORDS = (*({**entry("bad", 1), **wrong} for wrong in WRONG), {"start": 1, "end": 2}, "bad", None, [], {})


def cue(word: str, at: int, dot: str = ",") -> str:
    return f"00:00:{at:02d}{dot}000 --> 00:00:{at + 1:02d}{dot}000\n{word}"


BAD_CUES = (
    *("00:00:02,000 --> 00:00:01,000\nbad", "-00:00:02,000 --> 00:00:03,000\nbad", "00:00:02 --> 00:00:03\nbad"),
    *("nan --> 00:00:03,000\nbad", "00:99:02,000 --> 01:00:03,000\nbad", "bad text", "-->\nbad"),
)
BAD_WEB_CUES = tuple(text.replace(",", ".") for text in BAD_CUES)


def interval(word: str, at: int) -> str:
    return f'xmin = {at}\nxmax = {at + 1}\ntext = "{word}"'


BAD_INTERVALS = (
    *('xmin = 2\nxmax = 1\ntext = "bad"', 'xmin = -2\nxmax = 1\ntext = "bad"', 'xmin = nan\nxmax = 1\ntext = "bad"'),
    *('xmin = 1\nxmax = 1e400\ntext = "bad"', 'xmin = 1\nxmax = 2e9\ntext = "bad"', 'xmin = 1\ntext = "bad"'),
    *('xmin = --undefined--\nxmax = 1\ntext = "bad"', 'text = "bad"'),
)
HEAD = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n'


def grid(items: list[str]) -> str:
    rows = "\n".join(f"intervals [{k}]:\n{item}" for k, item in enumerate(items, 1))
    return (
        f'{HEAD}xmin = 0\nxmax = 9\ntiers? <exists>\nsize = 1\nitem []:\nitem [1]:\nclass = "IntervalTier"\n'
        f'name = "words"\nxmin = 0\nxmax = 9\nintervals: size = {len(items)}\n{rows}\n'
    )


def free_grid(items: list[str]) -> str:
    rows = "\n".join(f"{' '.join(item.replace('xmin =', '').replace('xmax =', '').split())} ! item" for item in items)
    rows = rows.replace("text = ", "")
    head = '"ooTextFile"\n! comment of four words\n"TextGrid"\n0 9 <exists> 1 tier'
    return f'{head}\n"IntervalTier" "words" 0 9 {len(items)}\n{rows}\n'


def annotation(word: str, at: int) -> tuple[str, str, str]:
    return word, str(1000 * at), str(1000 * (at + 1))


def eaf(items: list[tuple[str, str | None, str | None]]) -> str:
    slots, rows = "", ""
    for k, (word, *times) in enumerate(items):
        for end, time in enumerate(times):
            if time is not None:
                slots += f'<TIME_SLOT TIME_SLOT_ID="t{k}.{end}" TIME_VALUE="{time}"/>\n'
        rows += (
            f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{k}" TIME_SLOT_REF1="t{k}.0" TIME_SLOT_REF2="t{k}.1">'
            f"<ANNOTATION_VALUE>{word}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>\n"
        )
    return f'<ANNOTATION_DOCUMENT>\n<TIME_ORDER>{slots}</TIME_ORDER>\n<TIER TIER_ID="t">{rows}</TIER></ANNOTATION_DOCUMENT>\n'


def segment(word: str, at: int) -> dict[str, Any]:
    return {"start": at, "end": at + 1, "text": f" {word}", "words": [entry(word, at)]}


def nemo(word: str, at: int, /, **wrong: Any) -> str:
    return JSON({"audio_filepath": "a.wav", "offset": at, "pred_text": word, "word": [entry(word, 0)], **wrong})


def chunk(text: str, times: list[Any]) -> dict[str, Any]:
    return {"text": f" {text}", "timestamp": times}


def cpp(text: str, begin: int, end: int) -> dict[str, Any]:
    return {"offsets": {"from": 1000 * begin, "to": 1000 * end}, "text": f" {text}"}


def within(**around: Any) -> Callable[[list[Any]], str]:
    """JSON of items in one place of something."""
    return lambda items: JSON({name: items if value is ITEMS else value for name, value in around.items()})


LINES, JSON, ITEMS = "\n".join, json.dumps, object()
BAD_CTM = (
    *("talk 1 1 -1 bad", "talk 1 -1 1 bad", "talk 1 nan 1 bad", "talk 1 1 inf bad", "talk 1 2e9 1 bad"),
    *("talk 1 1 1", "talk 1 1 1 bad nan", "talk 1 1 1 bad 1.5", "talk ? 1 1 bad", "talk"),
    *("talk1 1 1 bad", "talc 1 nan 1 bad", "talc 1 1 1 bad 1.5", "1 1 1 bad 0.5 lex", "\ufffdalk 1 1", "talk1"),
)
BAD_ROWS = ("2,1,bad,", "-1,1,bad,", "nan,1,bad,", "1,inf,bad,", ",1,bad,", "x,2,bad,", '1,"2,000",bad,', "1,2e9,bad,")
BAD_TIMES = ("2000", "1000"), ("-1", "1"), ("nan", "1"), ("1", "inf"), ("1", "2e12"), (None, "1"), (None, None)
BAD_SEGMENTS = (
    *({"start": 1, "end": 2, "text": text, "words": []} for text in ("\ud800", "a\0")),
    *({"text": "bad", "words": []}, {"text": "bad", "words": [{"word": "bad"}]}, "bad", None, {"bad": 1}),
)
WRONG_NEMO: tuple[dict[str, Any], ...] = (
    *({"offset": -1}, {"word": [{"word": "bad"}]}, {"word": 5}, {"audio_filepath": "\ud800.wav"}),
    *({"word": [entry("\ud800", 0)]}, {"word_confidence": []}),
)
BAD_NEMO = (*(nemo("bad", 1, **wrong) for wrong in WRONG_NEMO), nemo("bad", 1)[:-9], "{}")
BAD_CHUNKS = (
    *(chunk("bad", times) for times in ([2, 1], [-1, 1], [NAN, 1], [1, INF], ["x", 1])),
    chunk("\ud800", [1, 2]),
)
BAD_CPP = (cpp("bad", 9, 1), cpp("bad", -9, 1), cpp("\ud800", 1, 9), {})
LAYOUTS = {
    "ctm": Layout("ctm", lambda word, at: f"talk 1 {at} 1 {word} 0.5", LINES, BAD_CTM),
    "srt": Layout("srt", cue, "\n\n".join, BAD_CUES),
    "srt with numbers": Layout(
        "srt", cue, lambda items: LINES(f"{k}\n{item}\n" for k, item in enumerate(items, 1)), BAD_CUES[:-2]
    ),
    "webvtt": Layout(
        "webvtt", lambda word, at: cue(word, at, "."), lambda items: "\n\n".join(["WEBVTT", *items]), BAD_WEB_CUES
    ),
    "table": Layout(
        "table",
        lambda word, at: f"{at},{at + 1},{word},",
        lambda items: LINES(["start,end,text,tier", *items]),
        BAD_ROWS,
    ),
    "textgrid": Layout("textgrid", interval, grid, (*BAD_INTERVALS, "xmin = 1\nxmax = 2")),
    "textgrid, free": Layout("textgrid", interval, free_grid, BAD_INTERVALS),
    "elan": Layout("elan", annotation, eaf, tuple(("bad", *times) for times in BAD_TIMES)),
    "whisper": Layout(
        "json",
        lambda word, at: entry(word, at, probability=0.5),
        lambda words: JSON({"segments": [{"start": 0, "end": 9, "text": "", "words": words}]}),
        BAD_WORDS,
    ),
    "words": Layout("json", entry, JSON, BAD_WORDS[:-4]),
    "vosk": Layout("json", entry, within(result=ITEMS, text=""), BAD_WORDS),
    "whisperx and faster-whisper": Layout("json", segment, within(segments=ITEMS), BAD_SEGMENTS),
    "lines": Layout(
        "json", lambda word, at: JSON(segment(word, at)), LINES, ('{"text": "bad", "wor', '{"text": "bad"}', "{}")
    ),
    "nemo": Layout("json", nemo, LINES, BAD_NEMO),
    "transformers": Layout(
        "json", lambda word, at: chunk(word, [at, at + 1]), within(text="", chunks=ITEMS), BAD_CHUNKS
    ),
    "whisper.cpp": Layout(
        "json",
        lambda word, at: cpp(word, at, at + 1),
        within(result={"language": "en"}, transcription=ITEMS),
        BAD_CPP,
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_words_cues_and_annotations(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    path = tmp_path / "talk.x"
    for bad in layout.bad:
        for place in range(len(GOOD) + 1):
            items = [layout.item(word, k) for k, word in enumerate(GOOD)]
            items.insert(place, bad)
            path.write_text(layout.file(items))
            what = f"{bad!r} at {place}"
            named = {"srt": "talk.srt", "table": "talk.csv"}.get(layout.form, "talk.x")
            assert detected(named, path.read_bytes()) == layout.form, what
            (item,) = read_as(layout.form, path)
            assert isinstance(item, Lattice), (what, item)
            assert [word.text for word in words_of_lattice(item)] == [*GOOD], what
            assert item.left_out is not None, what
            assert item.left_out.count == 1, (what, [str(error) for error in item.left_out.errors])
            (error,) = item.left_out.errors
            f"{error.message} {error.remedy}".encode()
            assert f"{path}, line " in str(error.where), (what, error)
            assert error.remedy, what


@pytest.mark.parametrize("write", [grid, free_grid])
def test_numbers_of_items_and_tiers(tmp_path: Path, write: Callable[[list[str]], str]) -> None:
    """What is there is read, whatever number of it a TextGrid says; an item without text ends with its tier, too."""
    path = tmp_path / "talk.TextGrid"
    text = write([interval(word, k) for k, word in enumerate(GOOD)])
    tier = text[text.index('class = "I' if write is grid else '"IntervalTier"') :]
    two = text.replace("size = 1", "size = 2").replace("1 tier", "2 tiers")
    wrong = [re.sub(r"(size = |0 9 )4\b", rf"\g<1>{count}", text) for count in (0, 1, 3, 5, 10**9)]
    wrong += [text.replace("size = 1", f"size = {count}").replace("1 tier", f"{count} tier") for count in (0, 2, 9)]
    wrong += [two + tier.replace('"four"', ""), two.replace('"four"', "") + tier, text + tier]
    for k, content in enumerate(wrong):
        path.write_text(content)
        (item,) = read_as("textgrid", path)
        assert isinstance(item, Lattice), (content, item)
        tiers = 1 if k < 8 else 2
        words = [word.text for word in words_of_lattice(item) if word.text in GOOD]
        assert len(words) == 4 * tiers - (k in (8, 9)), content
        assert item.left_out is not None
        assert item.left_out.count == 1, (content, item.left_out.errors)
        assert f"{path}, line " in str(item.left_out.errors[0].where)


#: Lattices of an archive, and its bad ones.
ARCHIVES = {
    "kaldi": ("{key} \n" + COMPACT_TEXT + "\n", ("bad \n0 1\n0 x\n\n", "bad \n0 1 3 nan,0,1\n1\n\n")),
    "confusion": (
        "{key} [ 5 1 ]\n",
        ("bad [ 5 2 ]\n", "bad [ 5\n", "bad [ 5 x ]\n", "bad 5 1\n", "bad [ 5 1 ] [ 6 1 ]\n", "bad [ 5 nan ]\n"),
    ),
}


@pytest.mark.parametrize("form", ARCHIVES)
def test_lattices_of_an_archive(tmp_path: Path, form: str) -> None:
    good, bad_ones = ARCHIVES[form]
    path = tmp_path / "x.txt"
    (tmp_path / "x.times").write_text("".join(f"{key} 0 9\n" for key in (*GOOD, "bad")))
    for bad in bad_ones:
        for place in range(1, len(GOOD) + 1):
            items = [good.format(key=key) for key in GOOD]
            items.insert(place, bad)
            path.write_text("".join(items))
            found = {item.key: item for item in read_as(form, path)}
            assert [key for key, item in found.items() if isinstance(item, Lattice)] == [*GOOD], bad
            broken = found["bad"]
            assert isinstance(broken, Broken)
            assert str(path) in str(broken.error.where) or "x.times" in str(broken.error.where)


_STD = '<term file="F1" channel="1" tbeg="{0}" dur="1" score="1" decision="YES"/>'
_KWS = _STD.replace("<term", "<kw")
_ECF = '<excerpt audio_filename="F{0}" channel="1" tbeg="{0}" dur="1" source_type="cts"/>'
_WRONG = {"{0}": ("-1", "nan", "2e9"), 'dur="1"': ('dur="-1"',), 'score="1"': ('score="inf"',), ' file="F1"': ("",)}
_STD_HEAD = """<stdlist termlist_filename="t" indexing_time="1" language="x" index_size="1" system_id="s">
<detected_termlist termid="T1" term_search_time="1" oov_term_count="0">"""
_KWS_HEAD = """<kwslist kwlist_filename="k" language="x" system_id="s">
<detected_kwlist kwid="T1" search_time="1" oov_count="0">"""


class Scored(NamedTuple):
    """A list or a reference: how it is read, its head and tail, a row with the place of its start, and bad rows."""

    read: Callable[[str], Any]
    head: str
    tail: str
    row: str
    bad: list[str]


def _listed(read: Callable[[str], Any], head: str, tail: str, row: str) -> Scored:
    pairs = [(old, new) for old, several in _WRONG.items() for new in several if old in row]
    return Scored(read, head, tail, row, [row.replace(old, new).format(1) for old, new in pairs])


def _system(path: str, conventions: Any = "stdeval") -> Any:
    return read_system(path, conventions=conventions, notices=Notices()).detections


SCORED = {
    "stdlist": _listed(_system, _STD_HEAD, "</detected_termlist></stdlist>", _STD),
    "kwslist": _listed(lambda path: _system(path, "kwseval"), _KWS_HEAD, "</detected_kwlist></kwslist>", _KWS),
    "ecf": _listed(read_ecf, '<ecf source_signal_duration="10" version="v1">', "</ecf>", _ECF),
    "rttm": Scored(
        lambda path: read_rttm(path, notices=Notices())[0],
        "",
        "",
        "LEXEME F1 1 {0} 0.5 word lex s 0.5",
        [*(f"LEXEME F1 1 {wrong} w lex s 0.5" for wrong in ("-1 0.5", "nan 0.5", "1 -1")), "LEXEME F1"],
    ),
    "ctm": Scored(
        *(read_ctm, "", "", "F1 1 {0} 0.5 word"),
        [*(f"F1 1 {wrong} word" for wrong in ("-1 0.5", "nan 0.5", "1 -1", "1 inf")), "F1 1 1"],
    ),
    "detections": Scored(
        *(lambda path: read_system(path).detections, "query_id,doc_id,start,end,score", "", "q,F1,{0},9,1"),
        ["q,F1,-1,9,1", "q,F1,nan,9,1", "q,F1,5,4,1", "q,F1,5,9,inf", "q,F1,5,9,", ",F1,5,9,1", "q,F1,5", "q,F1,x,9,1"],
    ),
    "references": Scored(
        *(lambda path: read_table(path, REFERENCES), "query_id,doc_id,start,end", "", "q,F1,{0},9"),
        ["q,F1,-1,9", "q,F1,nan,9", "q,F1,5,4", "q,F1,5,inf", "q,,5,9", "q,F1,5", "q,F1,,9"],
    ),
}


@pytest.mark.parametrize("name", SCORED)
def test_a_wrong_row_of_what_is_scored_is_an_error(tmp_path: Path, name: str) -> None:
    """A row less would be another score."""
    kind, path = SCORED[name], tmp_path / "x.csv"
    good = [kind.row.format(k) for k in range(4)]

    def write(rows: list[str]) -> None:
        path.write_text("\n".join(filter(None, [kind.head, *rows, kind.tail])))

    write(good)
    assert kind.read(str(path)).num_rows == 4
    for bad in kind.bad:
        for place in range(5):
            write([*good[:place], bad, *good[place:]])
            with pytest.raises(DataError) as caught:
                kind.read(str(path))
            line = next(k for k, text in enumerate(path.read_text().splitlines(), 1) if text == bad)
            told = f"{caught.value.where} {caught.value.message}"
            assert str(path) in str(caught.value.where), (bad, told)
            assert re.search(rf"(line |row |:){line}\b", told), (bad, told)


def test_each_format_is_tried() -> None:
    alone = {"pocketsphinx", "htk"}  # a lattice a file: it is the item
    assert {layout.form for layout in LAYOUTS.values()} | {*ARCHIVES} | alone == {*LATTICE_FORMATS}
