"""Label tracks: written and read back, one file a document, wherever its id points to."""

from __future__ import annotations

import pyarrow as pa
import pytest

from swsdist.core.codes import io as io_codes
from swsdist.core.errors import DataError
from swsdist.core.types import DETECTIONS
from swsdist.io.labels import label_file, read_labels, write_labels
from tests.support.coded import raises


def row(query: str, doc_id: str, channel: int, start: float, score: float) -> dict:
    return {"query_id": query, "doc_id": doc_id, "channel": channel, "start": start, "end": start + 0.5, "score": score}


def test_written_labels_read_back(tmp_path):
    rows = [
        row("two words", "talks/monday", 1, 12.25, -1 / 3),
        row("ŋ", "a", 1, 0.0, 1e20),
        row("q", "talks/monday", 2, 1.0, 0.0),
        row("q", "talks/monday", 1, 3.0, 2.5),
    ]
    table = pa.Table.from_pylist(rows, DETECTIONS)
    names = write_labels(iter(table.to_batches(max_chunksize=1)), tmp_path)
    assert names == ["a.1.txt", "talks/monday.1.txt", "talks/monday.2.txt"]
    assert (tmp_path / "a.1.txt").read_text(encoding="utf-8") == "0.000000\t0.500000\tŋ 1e+20\n"
    text = (tmp_path / "talks/monday.1.txt").read_text(encoding="utf-8")
    assert text == "12.250000\t12.750000\ttwo words -0.333333\n3.000000\t3.500000\tq 2.5\n"
    assert read_labels(tmp_path / "talks/monday.1.txt", "talks/monday").equals(
        pa.Table.from_pylist([{**rows[0], "score": -0.333333}, rows[3]], DETECTIONS)
    )
    assert read_labels(tmp_path / "talks/monday.2.txt", "talks/monday", 2).to_pylist()[0]["channel"] == 2


def test_file_names():
    ids = ["a", "a.1", "a/b", "a%2Fb", "..", "%2E%2E", "../x", "/x", "a//b", "a\nb", "a\\b", "."]
    names = [label_file(doc_id, channel) for doc_id in ids for channel in (1, 11)]
    assert len(set(names)) == len(names)
    for name in names:
        assert not name.startswith("/")
        assert not {"", ".", ".."} & set(name.split("/"))
        assert name.isprintable()


def test_audacitys_frequency_lines_are_passed_over(tmp_path):
    (tmp_path / "a.txt").write_text("0.5\t1.0\tq 0.25\n\\\t100.0\t200.0\n")
    assert read_labels(tmp_path / "a.txt", "a")["score"].to_pylist() == [0.25]


def test_what_is_no_label(tmp_path):
    for text in ("0.5\t1.0\n", "0.5\t1.0\tq\n", "0.5\tx\tq 1\n"):
        (tmp_path / "a.txt").write_text("0.0\t1.0\tq 1\n" + text)
        with pytest.raises(DataError) as caught:
            read_labels(tmp_path / "a.txt", "a")
        assert caught.value.where == f"{tmp_path}/a.txt, line 2"
    with raises(io_codes.INVALID_LABEL_QUERY):
        write_labels(pa.Table.from_pylist([row("a\tb", "d", 1, 0, 0)], DETECTIONS).to_batches(), tmp_path)
