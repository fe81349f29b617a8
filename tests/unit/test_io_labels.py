"""Label tracks: one file a document, wherever its id points to."""

from __future__ import annotations

import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.types import DETECTIONS
from swsdist.exports.lists import label_file, write_labels
from tests.support.coded import raises


def row(query: str, doc_id: str, channel: int, start: float, score: float) -> dict:
    return {"query_id": query, "doc_id": doc_id, "channel": channel, "start": start, "end": start + 0.5, "score": score}


def test_labels_are_lines_of_a_file_of_their_document(tmp_path):
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


def test_file_names():
    ids = ["a", "a.1", "a/b", "a%2Fb", "..", "%2E%2E", "../x", "/x", "a//b", "a\nb", "a\\b", "."]
    names = [label_file(doc_id, channel) for doc_id in ids for channel in (1, 11)]
    assert len(set(names)) == len(names)
    for name in names:
        assert not name.startswith("/")
        assert not {"", ".", ".."} & set(name.split("/"))
        assert name.isprintable()


def test_what_is_no_label(tmp_path):
    with raises(families.UNWRITABLE_NAME):
        write_labels(pa.Table.from_pylist([row("a\tb", "d", 1, 0, 0)], DETECTIONS).to_batches(), tmp_path / "labels")
