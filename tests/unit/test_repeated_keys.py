"""No row vanishes in a dictionary: a second row with a key counts, or is refused or named, with its line."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist.config import load_config
from swsdist.core.errors import SwsdistError
from swsdist.core.fingerprint import parse_json
from swsdist.core.types import CORPUS, QUERIES
from swsdist.corpora.documents import read_documents
from swsdist.corpora.kaldi import read_text, read_utterances
from swsdist.corpora.nist import ecf_documents
from swsdist.corpora.queries import read_queries
from swsdist.corpora.references import read_references, read_verdicts
from swsdist.discovery.files import read_classes, read_talkers
from swsdist.evaluation.comparison import from_table
from swsdist.features.fitting.files import read_labels
from swsdist.io.frames.archive import find_items
from swsdist.io.nist.rttm import read_rttm
from swsdist.io.nist.systemlist import read_systemlist
from swsdist.io.nist.termlist import read_termlist
from swsdist.io.notices import Notices
from swsdist.lattices.decoding import read_bigrams
from swsdist.lattices.formats import confusion, elan, htk, recognisers
from swsdist.lattices.lattice import Broken, LeftOut, Origin
from swsdist.lattices.terms import read_dictionary, read_rules
from swsdist.methods.lattice.edits import _read_confusions

DOCUMENTS = pa.Table.from_pylist([{"doc_id": "d", "channel": 1, "path": "/d.wav"}], CORPUS)
ASKED = pa.Table.from_pylist([{"query_id": "q", "example": 1, "channel": 1, "path": "/q.wav"}], QUERIES)
NOTICES = Notices()
_LIST = '<stdlist termlist_filename="t" indexing_time="1" language="e" index_size="1" system_id="s">\n{}{}</stdlist>'
_TERM = '<detected_termlist termid="a" term_search_time="1" oov_term_count="0">\n</detected_termlist>\n'
_KW = "<kwlist>\n<kw kwid='a'><kwtext>{}</kwtext>{}</kw>\n{}</kwlist>"
_ARPA = "\\data\\\nngram 1={}\nngram 2={}\n\n\\1-grams:\n-1 a -1\n{}\n\\2-grams:\n-1 a a\n{}\n\\end\\\n"
_SLOT = "<TIME_SLOT TIME_SLOT_ID='t' TIME_VALUE='1'/>\n"
_EAF = f"<ANNOTATION_DOCUMENT><TIME_ORDER>\n{_SLOT}{{}}</TIME_ORDER>\n{{}}</ANNOTATION_DOCUMENT>"
_SLF = "VERSION=1.0\nN=2 L=1\nI=0 t=0\nI=1 t=1\nJ=0 S=0 E=1 W=a {}a=-1 l=-1\n{}"
_EXCERPT = '<excerpt audio_filename="a.wav" channel="1" tbeg="0" dur="1" source_type="x"/>\n'
_RECORDING = '{"id": "r", "sources": [{"type": "file", "source": "a.wav", "channels": [0]}], "duration": 1}\n'


def _queries(path: str) -> Any:
    return read_queries(path, DOCUMENTS, notices=NOTICES)


def _speakers(path: str) -> Any:
    return read_documents(path.replace("s.csv", "d.csv"), speakers=path)


def _elan(path: str) -> Any:
    return elan.annotated(Origin(path), LeftOut())


_TIERS = "<TIER TIER_ID='a'/>\n<TIER TIER_ID='a'/>"
_INFO = "\n".join(["<kwinfo>", *2 * ["<attr><name>n</name><value>v</value></attr>"], "</kwinfo>"])
_TWICE = "<kw kwid='a'><kwtext>y</kwtext></kw>\n"
_REFS = "query_id,doc_id,start,end"
_BINS = "times", "bins"
_ROW = "q,d,1,2\n"
#: Name of the file, its content with a second row of a key, the line of that, and what reads it.
CASES: dict[str, tuple[str, str, int | str, Callable[[str], Any]]] = {
    "documents": ("d.csv", "doc_id,path\na,x\na,y\n", 3, read_documents),
    "wav.scp": ("wav.scp", "a x.wav\na y.wav\n", 2, read_documents),
    "speakers": ("s.csv", "doc_id,speaker\nd,x\nd,y\n", 3, _speakers),
    "recordings": ("recordings.jsonl", 2 * _RECORDING, 2, read_documents),
    "supervised": ("recordings.jsonl", 2 * _RECORDING, 2, read_documents),
    "ecf": ("e.xml", f"<ecf>\n{2 * _EXCERPT}</ecf>", "excerpt 2", lambda path: ecf_documents(path, frozenset(["wav"]))),
    "queries": ("q.csv", "query_id,example,text\na,1,x\na,1,y\n", 3, _queries),
    "references": ("r.csv", f"{_REFS}\n{2 * _ROW}", 3, lambda path: read_references(path, DOCUMENTS, ASKED)),
    "verdicts": ("v.csv", f"{_REFS},verdict\nq,d,1,2,yes\nq,d,1,2,no\n", 3, read_verdicts),
    "per term": ("t.csv", "query_id,ntrue,ncorrect,nfalse_alarm\na,1,1,0\na,1,0,0\n", 3, partial(from_table, "s")),
    "stdlist": ("s.xml", _LIST.format(_TERM, _TERM), "xml: a", partial(read_systemlist, notices=NOTICES)),
    "kwlist": ("k.xml", _KW.format("x", "", _TWICE), 3, partial(read_termlist, notices=NOTICES)),
    "kwtext": ("k.xml", _KW.format("x", "\n<kwtext>y</kwtext>", ""), 3, read_termlist),
    "kwinfo": ("k.xml", _KW.format("x", _INFO, ""), 4, read_termlist),
    "segments": ("segments", "a r 0 1\na r 1 2\n", 2, lambda path: read_utterances(segments=path)),
    "reco2file": ("reco2file_and_channel", "a r 1\na s 1\n", 2, lambda path: read_utterances(recordings=path)),
    "utter_id": ("utter_id", "a 1\nb 1\n", 2, lambda path: read_utterances(utter_id=path)),
    "text": ("text", "a x\na y\n", 2, read_text),
    "rules": ("r.txt", "a x\na y\n", 2, lambda path: read_rules(path, None, "folded")),
    "confusions": ("c.txt", "a b 1\na b 2\n", 2, _read_confusions),
    "unigrams": ("m.arpa", _ARPA.format(2, 1, "-1 a -1\n", ""), 7, lambda path: read_bigrams(path, ["a"])),
    "bigrams": ("m.arpa", _ARPA.format(1, 2, "", "-1 a a\n"), 10, lambda path: read_bigrams(path, ["a"])),
    "mlf": ("l.mlf", '#!MLF!#\n"x.lab"\n0 1 a\n.\n"x.lab"\n0 1 b\n.\n', 5, lambda path: read_labels(path, "1")),
    "talkers": ("t.txt", "a x\na y\n", 2, read_talkers),
    "classes": ("c.txt", "Class a\nd 0 1\n\nClass a\nd 1 2\n\n", 4, lambda path: read_classes(path, {})),
    "times": ("c.times", "a 0 1\na 0 2\n", 2, lambda path: list(confusion.read(Origin(path.replace(*_BINS))))),
    "links": ("l.slf", _SLF.format("W=b ", ""), 5, lambda path: htk.parse(Origin(path))),
    "header": ("l.slf", _SLF.format("", "N=2\n"), 6, lambda path: htk.parse(Origin(path))),
    "json": ("t.json", '{"segments": [],\n"segments": []}', 1, lambda path: list(recognisers.read(Origin(path)))),
    "slots": ("e.eaf", _EAF.format(_SLOT, ""), 3, _elan),
    "tiers": ("e.eaf", _EAF.format("", _TIERS), 5, _elan),
    "config": ("c.yaml", "run: a\nrun: b\ncorpus: {documents: d}\n", 2, load_config),
}


@pytest.mark.parametrize("name", CASES)
def test_a_second_row_of_a_key_is_named(name: str, tmp_path: Path) -> None:
    file, content, line, read = CASES[name]
    path = tmp_path / file
    path.write_text(content)
    (tmp_path / "d.csv").write_text(content if file == "d.csv" else "doc_id,path\nd,d.wav\n")
    (tmp_path / "c.bins").write_text("a [ 1 1.0 ]\n")
    supervised = tmp_path / "supervisions.jsonl"
    supervised.write_text('{"id": "u", "recording_id": "r", "start": 0, "duration": 1, "channel": 0}\n')
    NOTICES.entries.clear()
    told: list[str] = []
    try:
        result = read(str(supervised) if name == "supervised" else str(path))
        told = [str(item.error) for item in result if isinstance(item, Broken)] if isinstance(result, list) else []
    except SwsdistError as error:
        told = [str(error)]
    told += map(str, NOTICES.entries.values())
    place = line if isinstance(line, str) else rf"(line |:){line}\b"
    assert any(re.search(place, text) for text in told), told


def test_rows_of_a_key_that_count(tmp_path: Path) -> None:
    """Pronunciations of a word are alternatives; words that are said at once are words."""
    path = tmp_path / "x"
    path.write_text("read R EH D\nread R IY D\n")
    assert len(read_dictionary(str(path), None, "folded")["read"]) == 2
    path.write_text(2 * "LEXEME d 1 1.0 0.5 a lex s 0.5\n")
    assert read_rttm(str(path)).lexemes.num_rows == 2
    # Labels of two folders, and two files of frames with one key, are of one name.
    path.with_suffix(".mlf").write_text('#!MLF!#\n"a/x.lab"\n0 1 a\n.\n"b/x.lab"\n0 1 b\n.\n')
    with pytest.raises(SwsdistError, match="x"):
        read_labels(str(path.with_suffix(".mlf")), "2")
    for name in "ab":
        (tmp_path / f"{name}.scp").write_text("x a.ark:0\n")
    with pytest.raises(SwsdistError, match="x"):
        find_items(str(tmp_path), "kaldi")


def test_json() -> None:
    for text in ('{"a": 1, "a": 2}', '[{"b": {"a": 1, "a": 1}}]', "[" * 100_000, '["\\ud800"]', '{"\\udc00": 1}'):
        with pytest.raises(ValueError):
            parse_json(text)
    assert parse_json(json.dumps({"a": {"a": 1}})) == {"a": {"a": 1}}
