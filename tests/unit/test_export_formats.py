"""ELAN files, TextGrids, label tracks and lists for the NIST programs, opened with other readers than wrote them."""

import math
import random
import re
import xml.etree.ElementTree as ET
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from praatio import textgrid as praatio

from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.types import DETECTIONS
from swsdist.exports.interface import Material
from swsdist.exports.lists import label_file, write_labels
from swsdist.exports.tiers import write_eaf, write_textgrid
from swsdist.io.nist.systemlist import file_id, kwslist, stdlist
from tests.support.coded import raises

#: Query, document, channel, start, end, score, decision.
ROWS = [
    ('say "x"', "talks/a", 1, 1.0, 1.5, 2.5, True),
    ('say "x"', "talks/a", 1, 1.25, 1.75, 1.0, True),
    ('say "x"', "talks/a", 1, 1.5, 2.0, 0.123456789, True),
    ('say "x"', "talks/a", 1, 1.3, 1.4, -1.0, True),
    ('say "x" (2)', "talks/a", 1, 0.0, 0.0001, 4.0, True),
    ('say "x"', "talks/a", 1, 9.0, 9.5, 9.0, False),
    ("<&ä>", "b", 2, 3.0, 3.5, 1.0, None),
    ("<&ä>", "b", 2, 5.0, 5.5, 2.0, None),
    ("<&ä>", "b", 1, 5.0, 5.5, 0.5, None),
]
EXPECTED = {
    "talks/a": {
        'say "x"': [(1.0, 1.5, "2.5"), (1.5, 2.0, "0.123457")],
        'say "x" (3)': [(1.25, 1.75, "1")],
        'say "x" (4)': [(1.3, 1.4, "-1")],
        'say "x" (2)': [(0.0, 0.001, "4")],
    },
    "b.2": {"<&ä>": [(3.0, 3.5, "1"), (5.0, 5.5, "2")]},
}
RECORDINGS = {("talks/a", 1): ("/audio/a b.wav", 12.5), ("b", 2): ("s3://audio/b.flac", 0.0)}


def material(rows: Sequence[tuple[object, ...]] = ROWS, undecided: int = 2, known: bool = True) -> Material:
    columns = ("query_id", "doc_id", "channel", "start", "end", "score", "decision")
    full = [{**dict.fromkeys(DETECTIONS.names, 0), "system": "s", **dict(zip(columns, r, strict=True))} for r in rows]
    table = pa.Table.from_pylist(full, DETECTIONS)

    def recordings(names: Sequence[str]) -> Mapping[tuple[str, int], tuple[str, float]]:
        return {key: value for key, value in RECORDINGS.items() if known and key[0] in names}

    return Material(lambda: iter(table.to_batches(2)), ["q"], "s", undecided=undecided, recordings=recordings)


def eaf_of(file: Path) -> tuple[dict[str, list[tuple[float, float, str]]], list[dict[str, str]]]:
    """Tiers and linked media, by plain XML; the order of the elements, and ids, are those of the schema."""
    root = ElementTree.parse(file).getroot()
    assert root.tag == "ANNOTATION_DOCUMENT"
    assert list(dict.fromkeys(element.tag for element in root)) == ["HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+\d\d:\d\d", root.attrib["DATE"])
    slots = {slot.attrib["TIME_SLOT_ID"]: int(slot.attrib["TIME_VALUE"]) for slot in root.iter("TIME_SLOT")}
    types = {item.attrib["LINGUISTIC_TYPE_ID"] for item in root.iter("LINGUISTIC_TYPE")}
    tiers, ids = {}, []
    for tier in root.iter("TIER"):
        assert tier.attrib["LINGUISTIC_TYPE_REF"] in types
        spans = []
        for annotation in tier.iter("ALIGNABLE_ANNOTATION"):
            ids.append(annotation.attrib["ANNOTATION_ID"])
            start, end = (slots[annotation.attrib[f"TIME_SLOT_REF{k}"]] for k in (1, 2))
            spans.append((start / 1000, end / 1000, annotation.findtext("ANNOTATION_VALUE") or ""))
        tiers[tier.attrib["TIER_ID"]] = spans
    assert len(set(ids)) == len(ids)
    (last,) = (item.text for item in root.iter("PROPERTY") if item.attrib["NAME"] == "lastUsedAnnotationId")
    assert int(last or 0) >= max(int(key[1:]) for key in ids)
    return tiers, [item.attrib for item in root.iter("MEDIA_DESCRIPTOR")]


def grid_of(file: Path) -> tuple[dict[str, list[tuple[float, float, str]]], float]:
    """Tiers and length, by praatio, which refuses overlaps and gaps."""
    grid = praatio.openTextgrid(str(file), includeEmptyIntervals=False, reportingMode="error")
    tiers = {name: [tuple(entry) for entry in grid.getTier(name).entries] for name in grid.tierNames}
    return tiers, grid.maxTimestamp


def test_elan_and_praat_read_every_tier(tmp_path: Path) -> None:
    write_eaf(material(), tmp_path)
    files = {name: eaf_of(tmp_path / f"eaf/{name}.eaf") for name in EXPECTED}
    assert {name: tiers for name, (tiers, _) in files.items()} == EXPECTED
    assert len(list(tmp_path.rglob("*.eaf"))) == len(EXPECTED)
    assert [media for _, media in files.values()] == [
        [{"MEDIA_URL": "file:///audio/a b.wav", "RELATIVE_MEDIA_URL": "./a b.wav", "MIME_TYPE": "audio/x-wav"}],
        [{"MEDIA_URL": "s3://audio/b.flac", "MIME_TYPE": "audio/flac"}],
    ]
    write_eaf(material(known=False), tmp_path)
    assert eaf_of(tmp_path / "eaf/talks/a.eaf")[1] == []
    write_textgrid(material(), tmp_path)
    files = {name: grid_of(tmp_path / f"textgrid/{name}.TextGrid") for name in EXPECTED}
    # praatio leaves doubled quotation marks in names.
    plain = {name: {t.replace('""', '"'): spans for t, spans in tiers.items()} for name, (tiers, _) in files.items()}
    assert plain == EXPECTED
    assert [length for _, length in files.values()] == [12.5, 5.5]
    write_textgrid(material(known=False), tmp_path)
    assert grid_of(tmp_path / "textgrid/talks/a.TextGrid")[1] == 2.0


def row(query: str, doc_id: str, channel: int, start: float, score: float) -> dict:
    return {"query_id": query, "doc_id": doc_id, "channel": channel, "start": start, "end": start + 0.5, "score": score}


def test_labels_are_lines_of_a_file_of_their_document_and_name_no_tabs(tmp_path):
    rows = [
        row("two words", "talks/monday", 1, 12.25, -1 / 3),
        row("ŋ", "a", 1, 0.0, 1e20),
        row("q", "talks/monday", 2, 1.0, 0.0),
        row("q", "talks/monday", 1, 3.0, 2.5),
    ]
    table = pa.Table.from_pylist(rows, DETECTIONS)
    folder = tmp_path / "labels"
    write_labels(iter(table.to_batches(max_chunksize=1)), folder)
    assert (folder / "a.txt").read_text(encoding="utf-8") == "0.000000\t0.500000\tŋ 1e+20\n"
    text = (folder / "talks/monday.txt").read_text(encoding="utf-8")
    assert text == "12.250000\t12.750000\ttwo words -0.333333\n3.000000\t3.500000\tq 2.5\n"
    assert (folder / "talks/monday.2.txt").read_text(encoding="utf-8") == "1.000000\t1.500000\tq 0\n"
    with raises(families.UNWRITABLE_NAME):
        write_labels(pa.Table.from_pylist([row("a\tb", "d", 1, 0, 0)], DETECTIONS).to_batches(), tmp_path / "none")


def test_names_of_files_are_their_own_or_refused(tmp_path: Path) -> None:
    ids = ["a", "a.1", "a/b", "a%2Fb", "..", "%2E%2E", "../x", "/x", "a//b", "a\nb", "a\\b", "."]
    names = [label_file(doc_id, channel) for doc_id in ids for channel in (1, 11)]
    assert len(set(names)) == len(names)
    for name in names:
        assert not name.startswith("/")
        assert not {"", ".", ".."} & set(name.split("/"))
        assert name.isprintable()
    ids = {"a": "a", "x/y/a.flac": "a", "a.b": "a.b", "a.sph": "a", "a.wav": "a", "a.mp3": "a.mp3"}
    assert {doc_id: file_id(doc_id) for doc_id in ids} == ids
    for export in (write_eaf, write_textgrid):
        for query, document in (("", "d"), ("a\tb", "d"), ("a\nb", "d"), ("a\x00", "d"), ("q", "d" * 300)):
            with raises(families.UNWRITABLE_NAME):
                export(material([(query, document, 1, 0.0, 1.0, 1.0, True)]), tmp_path / "names")
        export(material([ROWS[5]]), tmp_path / "nothing")  # where nothing is detected
    assert list((tmp_path / "nothing").rglob("*")) == []


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


def test_the_form_that_the_programs_demand_and_what_they_would_not_find(tmp_path):
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
    out = tmp_path / "list.xml"
    for kinds, change, message in (
        (["stdlist"], {"doc_id": "talk (1)/a+b"}, "'('"),
        (["stdlist"], {"query_id": "c++"}, "'+'"),
        (WRITERS, {"query_id": "ŋ"}, "ASCII"),
        (WRITERS, {"query_id": "a\x01"}, "control character"),
        (WRITERS, {"doc_id": "a&b"}, "'&'"),
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
