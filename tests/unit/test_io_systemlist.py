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
    for query in [name for name in ("q3", "q1", "q2") for _ in range(count)]:
        start = round(draw.uniform(0, 40000), draw.choice([2, 3, 6]))
        score = draw.choice([draw.gauss(0, 1), draw.gauss(0, 1) * 1e-9, draw.gauss(0, 1) * 1e19, 5e-324, 0.0])
        row = {"query_id": query, "doc_id": draw.choice(["a", "talks/b.wav", "c.sph"]), "channel": draw.choice([1, 2])}
        row |= {"start": start, "end": round(start + draw.uniform(0.1, 2), 6), "score": score}
        rows.append(row | {"decision": draw.choice([True, False, None])})
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


ROW = {"query_id": "q", "doc_id": "a", "channel": 1, "start": 0.1, "end": 0.4, "score": 1.0}


def test_the_form_that_the_programs_demand(tmp_path):
    out = tmp_path / "list.xml"
    assert 'tbeg="0.1" dur="0.3" score="1.0" decision="NO"' in written("kwslist", [ROW], out)  # durations without noise
    given = {"termlist": "terms.xml", "language": "mboshi", "indexing_seconds": 1e-7, "index_bytes": 10**12}
    text = written("stdlist", detections(3), out, **given, search_seconds=2.5)
    assert text.splitlines()[:2] == [
        '<stdlist termlist_filename="terms.xml" indexing_time="0.0000001" language="mboshi" '
        'index_size="1000000000000" system_id="swsdist">',
        '<detected_termlist termid="q3" term_search_time="2.5" oov_term_count="0">',
    ]
    assert all(re.fullmatch(r'</?\w+( \w+="[^"<>]*")*/?>', line) for line in text.splitlines())
    assert "e+" not in text
    lines = written("kwslist", detections(1), out, kwlist="k.xml", language="l").splitlines()
    assert lines[0] == '<kwslist kwlist_filename="k.xml" language="l" system_id="swsdist">'
    assert lines[1] == '<detected_kwlist kwid="q3" search_time="0.0" oov_count="0">'
    text = written("kwslist", [], out, ["<a&b>"], system='my "best" <one>')
    root = ET.fromstring(text)
    assert (root.get("system_id"), root[0].get("kwid"), "'" in text) == ('my "best" <one>', "<a&b>", False)


def test_file_ids():
    ids = {"a": "a", "x/y/a.flac": "a", "a.b": "a.b", "a.sph": "a", "a.wav": "a", "a.mp3": "a.mp3"}
    assert {doc_id: file_id(doc_id) for doc_id in ids} == ids


def test_what_would_not_be_found(tmp_path):
    out = tmp_path / "list.xml"
    for kinds, change, message in (
        (["stdlist"], {"doc_id": "talk (1)/a+b"}, "'('"),
        (["stdlist"], {"query_id": "c++"}, "'+'"),
        (WRITERS, {"query_id": "ŋ"}, "ASCII"),
        (WRITERS, {"query_id": "a\x01"}, "control character"),
        (WRITERS, {"doc_id": "a&b"}, "'&'"),
        (WRITERS, {"doc_id": "a b"}, "' '"),
        (WRITERS, {"doc_id": "other/a"}, "'a' and 'other/a'"),
    ):
        for kind in kinds:
            with pytest.raises(UserError, match=re.escape(message)):
                written(kind, [ROW, {**ROW, **change}], out)
    # KWSEval has no metacharacters.
    assert 'file="a+b"' in written("kwslist", [{**ROW, "query_id": "c++", "doc_id": "a+b"}], out)
    for kind in WRITERS:
        with raises(families.MALFORMED_FILE):
            written(kind, [ROW, {**ROW, "query_id": "p"}, ROW], out)
        for score in (math.nan, math.inf):
            with raises(families.INVALID_VALUE):
                written(kind, [{**ROW, "score": score}], out)
