"""ELAN files and TextGrids of detections, opened with other readers than wrote them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from praatio import textgrid as praatio

from swsdist.core.codes import families
from swsdist.core.types import DETECTIONS
from swsdist.exports.interface import Material
from swsdist.exports.tiers import write_eaf, write_textgrid
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
    full = [
        {**dict.fromkeys(DETECTIONS.names, 0), "system": "s", **dict(zip(columns, row, strict=True))} for row in rows
    ]
    table = pa.Table.from_pylist(full, DETECTIONS)

    def recordings(names: Sequence[str]) -> Mapping[tuple[str, int], tuple[str, float]]:
        return {key: value for key, value in RECORDINGS.items() if known and key[0] in names}

    return Material(lambda: iter(table.to_batches(2)), ["q"], "s", undecided=undecided, recordings=recordings)


def eaf_of(file: Path) -> tuple[dict[str, list[tuple[float, float, str]]], list[dict[str, str]]]:
    """Tiers and linked media, by plain XML; the order of the elements, and ids, are those of the schema."""
    root = ElementTree.parse(file).getroot()
    assert root.tag == "ANNOTATION_DOCUMENT"
    order = [element.tag for element in root]
    assert [tag for k, tag in enumerate(order) if tag not in order[:k]] == [
        "HEADER",
        "TIME_ORDER",
        "TIER",
        "LINGUISTIC_TYPE",
    ]
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


def test_elan_reads_every_tier(tmp_path: Path) -> None:
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


def test_praat_reads_every_tier(tmp_path: Path) -> None:
    write_textgrid(material(), tmp_path)
    files = {name: grid_of(tmp_path / f"textgrid/{name}.TextGrid") for name in EXPECTED}
    # praatio leaves doubled quotation marks in names.
    plain = {
        name: {tier.replace('""', '"'): spans for tier, spans in tiers.items()} for name, (tiers, _) in files.items()
    }
    assert plain == EXPECTED
    assert [length for _, length in files.values()] == [12.5, 5.5]
    write_textgrid(material(known=False), tmp_path)
    assert grid_of(tmp_path / "textgrid/talks/a.TextGrid")[1] == 2.0


def test_names_that_no_tier_or_file_can_have(tmp_path: Path) -> None:
    for export in (write_eaf, write_textgrid):
        for query, document in (("", "d"), ("a\tb", "d"), ("a\nb", "d"), ("a\x00", "d"), ("q", "d" * 300)):
            with raises(families.UNWRITABLE_NAME):
                export(material([(query, document, 1, 0.0, 1.0, 1.0, True)]), tmp_path / "names")
        export(material([ROWS[5]]), tmp_path / "nothing")  # where nothing is detected
    assert list((tmp_path / "nothing").rglob("*")) == []
