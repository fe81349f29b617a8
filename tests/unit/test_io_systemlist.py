"""The lists for the NIST programs: read back by an XML parser they are the table, and their form is what they demand."""

from __future__ import annotations

import math
import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pytest

from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.types import DETECTIONS
from swsdist.io.nist.systemlist import file_id, kwslist, stdlist
from tests.support.coded import raises

WRITERS = {"stdlist": (stdlist, "termid"), "kwslist": (kwslist, "kwid")}


def detections(count: int = 300) -> list[dict]:
    draw = random.Random(7)
    rows = []
    for query in ("q3", "q1", "q2"):
        for _ in range(count):
            start = round(draw.uniform(0, 40000), draw.choice([2, 3, 6]))
            score = draw.choice([draw.gauss(0, 1), draw.gauss(0, 1) * 1e-9, draw.gauss(0, 1) * 1e19, 5e-324, 0.0])
            rows.append(
                {
                    "query_id": query,
                    "doc_id": draw.choice(["a", "talks/b.wav", "c.sph"]),
                    "channel": draw.choice([1, 2]),
                    "start": start,
                    "end": round(start + draw.uniform(0.1, 2), 6),
                    "score": score,
                    "decision": draw.choice([True, False, None]),
                }
            )
    return rows


def written(kind: str, rows: list[dict], out: Path, queries=(), chunk: int = 100, **options) -> str:
    batches = pa.Table.from_pylist(rows, DETECTIONS).to_batches(max_chunksize=chunk)
    WRITERS[kind][0](str(out), **options).write(iter(batches), queries, out)
    return out.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", WRITERS)
def test_the_list_is_the_table(tmp_path, kind):
    rows = detections()
    root = ET.fromstring(written(kind, rows, tmp_path / "list.xml", ["q1", "q2", "q3", "none"]))
    assert root.tag == kind
    id_name = WRITERS[kind][1]
    assert [group.get(id_name) for group in root] == ["q3", "q1", "q2", "none"]
    assert len(root[-1]) == 0
    found = [(group.get(id_name), item.attrib) for group in root for item in group]
    assert len(found) == len(rows)
    for row, (query, item) in zip(rows, found, strict=True):
        assert query == row["query_id"]
        assert list(item) == ["file", "channel", "tbeg", "dur", "score", "decision"]
        assert item["file"] == file_id(row["doc_id"])
        assert int(item["channel"]) == row["channel"]
        assert item["decision"] == ("YES" if row["decision"] else "NO")
        for number in (item["tbeg"], item["dur"], item["score"]):
            assert re.fullmatch(r"-?\d+(\.\d+)?", number)
        assert float(item["score"]) == row["score"]
        assert float(item["tbeg"]) == row["start"]
        # What the programs make of it: the end to one unit in the last place, the middle within 1e-11 s.
        assert abs(float(item["tbeg"]) + float(item["dur"]) - row["end"]) <= math.ulp(row["end"])
        assert abs(float(item["tbeg"]) + float(item["dur"]) / 2 - (row["start"] + row["end"]) / 2) < 1e-11


def test_durations_have_no_noise(tmp_path):
    row = {"query_id": "q", "doc_id": "d", "channel": 1, "start": 0.1, "end": 0.4, "score": 1.0}
    assert 'tbeg="0.1" dur="0.3" score="1.0" decision="NO"' in written("kwslist", [row], tmp_path / "list.xml")


def test_the_form_that_stdeval_demands(tmp_path):
    text = written(
        "stdlist",
        detections(3),
        tmp_path / "list.xml",
        termlist="terms.xml",
        language="mboshi",
        indexing_seconds=1e-7,
        index_bytes=10**12,
        search_seconds=2.5,
    )
    lines = text.splitlines()
    assert lines[0] == (
        '<stdlist termlist_filename="terms.xml" indexing_time="0.0000001" language="mboshi" '
        'index_size="1000000000000" system_id="swsdist">'
    )
    assert lines[1] == '<detected_termlist termid="q3" term_search_time="2.5" oov_term_count="0">'
    assert all(re.fullmatch(r'</?\w+( \w+="[^"<>]*")*/?>', line) for line in lines)
    assert "e+" not in text


def test_the_form_that_kwseval_demands(tmp_path):
    lines = written("kwslist", detections(1), tmp_path / "list.xml", kwlist="k.xml", language="l").splitlines()
    assert lines[0] == '<kwslist kwlist_filename="k.xml" language="l" system_id="swsdist">'
    assert lines[1] == '<detected_kwlist kwid="q3" search_time="0.0" oov_count="0">'


def test_attributes_are_escaped(tmp_path):
    text = written("kwslist", [], tmp_path / "list.xml", ["<a&b>"], system='my "best" <one>')
    root = ET.fromstring(text)
    assert root.get("system_id") == 'my "best" <one>'
    assert root[0].get("kwid") == "<a&b>"
    assert "'" not in text


@pytest.mark.parametrize(
    ("doc_id", "expected"),
    [("a", "a"), ("x/y/a.flac", "a"), ("a.b", "a.b"), ("a.sph", "a"), ("a.wav", "a"), ("a.mp3", "a.mp3")],
)
def test_file_ids(doc_id, expected):
    assert file_id(doc_id) == expected


@pytest.mark.parametrize(
    ("kinds", "change", "message"),
    [
        (["stdlist"], {"doc_id": "talk (1)/a+b"}, "holds '('"),
        (["stdlist"], {"query_id": "c++"}, "holds '+'"),
        (["stdlist", "kwslist"], {"query_id": "ŋ"}, "not ASCII"),
        (["stdlist", "kwslist"], {"query_id": "a\x01"}, "control character"),
        (["stdlist", "kwslist"], {"doc_id": "a&b"}, "holds '&'"),
        (["stdlist", "kwslist"], {"doc_id": "a b"}, "holds ' '"),
        (["stdlist", "kwslist"], {"doc_id": "other/a"}, "call both documents 'a' and 'other/a'"),
    ],
)
def test_names_that_would_not_be_found(tmp_path, kinds, change, message):
    row = {"query_id": "q", "doc_id": "a", "channel": 1, "start": 0.0, "end": 1.0, "score": 0.0}
    for kind in kinds:
        with pytest.raises(UserError) as caught:
            written(kind, [row, {**row, **change}], tmp_path / "list.xml")
        assert message in caught.value.message
        assert kind in caught.value.remedy


def test_kwseval_has_no_metacharacters(tmp_path):
    row = {"query_id": "c++", "doc_id": "a+b", "channel": 1, "start": 0.0, "end": 1.0, "score": 0.0}
    assert 'file="a+b"' in written("kwslist", [row], tmp_path / "list.xml")


@pytest.mark.parametrize("kind", WRITERS)
def test_broken_detections(tmp_path, kind):
    row = {"query_id": "q", "doc_id": "a", "channel": 1, "start": 0.0, "end": 1.0, "score": 0.0}
    with raises(families.MALFORMED_FILE):
        written(kind, [row, {**row, "query_id": "p"}, row], tmp_path / "list.xml")
    for score in (math.nan, math.inf):
        with raises(families.INVALID_VALUE):
            written(kind, [{**row, "score": score}], tmp_path / "list.xml")
