"""Tables from CSV and Parquet: what is filled in, and what is refused with file, line and column."""

import gzip
import lzma
from csv import writer
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.errors import TableError
from swsdist.core.types import CORPUS, DETECTIONS, QUERIES, REFERENCES
from swsdist.evaluation.scoring_task import DETECTED, read_system, reader_of
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.io.tables import names_in, place, read_table, write_csv
from tests.support.coded import raises


def csv(tmp_path: Path, text: str | bytes, name: str = "table.csv") -> str:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(tmp_path / name)


def test_columns_are_dropped_ordered_and_filled(tmp_path):
    path = csv(
        tmp_path,
        "\ufeffpath,query_id,note,start,end\na.wav,007,x,1.5,2\n\n"
        'b.wav,007,"long, and\nover two lines",,\nc.wav,NA,,0,1e0\n',
    )
    table = read_table(path, QUERIES, key=("query_id", "example"))
    assert table.schema == QUERIES
    columns = table.select(["query_id", "example", "path", "channel", "start", "end", "speaker"])
    assert [tuple(row.values()) for row in columns.to_pylist()] == [
        ("007", 1, "a.wav", 1, 1.5, 2.0, None),
        ("007", 2, "b.wav", 1, None, None, None),
        ("NA", 1, "c.wav", 1, 0.0, 1.0, None),
    ]
    assert [place(path, row) for row in range(3)] == [f"{path}, line {line}" for line in (2, 4, 6)]
    # Empty cells, and integers of pandas; and a table without rows.
    table = read_table(csv(tmp_path, "doc_id,path,channel,duration\na,a.wav, 2.0 ,\nb,b.wav,,3\n"), CORPUS)
    assert (table["channel"].to_pylist(), table["duration"].to_pylist()) == ([2, 1], [None, 3.0])
    assert read_table(csv(tmp_path, "doc_id,path\n"), CORPUS, key=("doc_id", "channel")).num_rows == 0


def test_refused_documents_and_spans(tmp_path):
    for text, line, message in (
        ("docid,path\na,b\n", 1, "no column 'doc_id'"),
        ("doc_id;path\tx\na;b\tc\n", 1, "semicolons and tabs"),
        ("doc_id;path\na;b\nc;d;e\n", 3, "3 cells, the header 2"),
        ("doc_id;path;duration\na;b;1,5\nc;d;2.5\n", 2, "'1,5'"),
        ("doc_id;path;duration\na;b;1,500\nc;d;2\n", 2, "'1,500'"),
        ("", 1, "no column 'doc_id'"),
        ("doc_id,path,path\na,b,c\n", 1, "'path' (2 times)"),
        ("doc_id,path\na,b\n\nc\n", 4, "1 cells, the header 2"),
        (b"doc_id,path\na,b\n\xe9,d\n", 3, "not UTF-8"),
        ('doc_id,path\na,"b\nc,d\ne,f\n', 2, "over several lines"),
        ("doc_id,path\na,b\n,d\n", 3, "doc_id is empty"),
        ("doc_id,path,channel\na,b,1\nc,d,one\n", 3, "'one'"),
        ("doc_id,path,channel\na,b,1\nc,d,99999999999\n", 3, "'99999999999'"),
        ("doc_id,path,channel\na,b,0\n", 2, "less than 1"),
        ("doc_id,path,duration\na,b,1\nc,d,1\ne,f,1s\ng,h,2s\n", 4, "'1s'"),
        ("doc_id,path,duration\na,b,1\nc,d,-1\n", 3, "negative"),
        ("doc_id,path,duration\na,b,nan\n", 2, "nan"),
        ("doc_id,path,duration\na,b,1e300\n", 2, "duration"),  # beyond all recordings
        ("doc_id,path\na,b\nc,d\nc,d\na,x\n", 5, "doc_id 'a', channel 1, first in line 2"),
        ('doc_id,path,note\na,b,"x\ny"\na,d,\n', 4, "first in line 2"),
    ):
        path = csv(tmp_path, text)
        with pytest.raises(TableError) as caught:
            read_table(path, CORPUS, key=("doc_id", "channel"))
        assert caught.value.where == f"{path}, line {line}"
        assert message in caught.value.message
    with raises(families.MISSING_COLUMN, advice="did you mean 'PATH'? Rename it to 'path'"):
        read_table(csv(tmp_path, "doc_id,PATH\na,a.wav\n"), CORPUS)
    long = "x" * (1 << 20)  # is not shown in full
    for text in (f"doc_id,path,channel\na,b,{long}\n", f"doc_id,path\n{long},b\n{long},b\n", f"{long},{long}\n"):
        with pytest.raises(TableError) as caught:
            read_table(csv(tmp_path, text), CORPUS, key=("doc_id", "channel"))
        assert len(str(caught.value)) < 1500
    for start, end, message in (
        ("1", "1", "end 1.0 is not after start 1.0"),
        ("2", "1", "end 1.0 is not after start 2.0"),
        ("-1", "1", "negative"),
        ("", "1", "empty"),
        ("x", "1", "'x'"),
        ("1", "nan", "nan"),
    ):
        path = csv(tmp_path, f"query_id,doc_id,start,end\nq,a,0,1\nq,a,{start},{end}\n")
        with pytest.raises(TableError) as caught:
            read_table(path, REFERENCES)
        assert caught.value.where == f"{path}, line 3"
        assert message in caught.value.message
    with raises(families.INVALID_TIMES, end=0.0, start=0.0):  # without a start from zero
        read_table(csv(tmp_path, "query_id,path,start,end\nq,a,,0\n"), QUERIES)


LISTED = [
    ("q1", "d1", 1, 12.25, 12.75, 0.0625, True),
    ("q2", "d2", 1, 0.5, 1.0, -1.5, False),
    ("q2", "d3", 1, 3.0, 4.125, 2.0, None),
]


def test_lists_as_others_write_them_and_their_separators(tmp_path) -> None:
    """Commas, semicolons or tabs; points or commas; and how they say yes and no."""
    path, header = tmp_path / "list.csv", ["query_id", "doc_id", "channel", "start", "end", "score", "decision"]
    answers = [("true", "false"), ("YES", "NO"), ("yes", "no"), ("Yes", "No"), ("1", "0")]
    for separator, point, words in product(",;\t", ".,", answers):
        said = {True: words[0], False: words[1], None: ""}
        rows = [header]
        for *names, start, end, score, decision in LISTED:
            numbers = [str(value).replace(".", point) for value in (start, end, score)]
            rows.append([*map(str, names), *numbers, said[decision]])
        with path.open("w", newline="") as file:
            writer(file, delimiter=separator).writerows(rows)
        table = read_table(str(path), DETECTED)
        assert [tuple(row.values()) for row in table.to_pylist()] == LISTED
        assert (reader_of(str(path)), names_in(str(path))) == ("csv", header)
    assert read_system(str(path)).detections["score"].to_pylist() == [row[5] for row in LISTED]
    path = csv(tmp_path, "\ufeffsep=;\r\ndoc_id;path;duration\r\na;x;1,5\r\nb;y;-1\r\n")
    with raises(families.BAD_CELL, where="line 4"):
        read_table(path, CORPUS)
    for line, mark in (("SEP=;", ";"), ("sep=|", "|"), ("Sep=; ", ";"), ('"sep=\t"', "\t"), ("sep=\t \t", "\t")):
        path = csv(tmp_path, f"{line}\ndoc_id{mark}path\na,b{mark}x\n")
        assert read_table(path, CORPUS)["doc_id"].to_pylist() == ["a,b"]
        assert names_in(path) == ["doc_id", "path"]
    path = csv(tmp_path, 'sep=,\ndoc_id,path\n"a;b",x\n')
    assert read_table(path, CORPUS)["doc_id"].to_pylist() == ["a;b"]
    # 1,500 is 1.5 where another number of the file cannot be a thousand.
    text = "doc_id;path;duration\na;b;1,500\nc;d;0,250\n"
    assert read_table(csv(tmp_path, text), CORPUS)["duration"].to_pylist() == [1.5, 0.25]
    with raises(families.BAD_CELL, column="decision", value="'maybe'") as caught:
        read_table(csv(tmp_path, "query_id,doc_id,start,end,score,decision\nq,d,1,2,3,maybe\n"), DETECTED)
    assert caught.value.remedy == "give true or false, yes or no, or nothing"


def test_parquet_and_what_is_written_and_packed_read_back(tmp_path, s3):
    path = str(tmp_path / "table.parquet")
    names, paths = pa.array(["a", "b"]).dictionary_encode(), pa.array(["a.wav", "b.wav"], pa.large_string())
    given = pa.table({"doc_id": names, "path": paths, "channel": [1.0, 2.0], "extra": [1, 2]})
    pq.write_table(given, path)
    expected = {"doc_id": "b", "channel": 2, "path": "b.wav", "duration": None, "speaker": None}
    assert read_table(path, CORPUS).to_pylist()[1] == expected
    pq.write_table(given.set_column(2, "channel", [[1.0, 2.5]]), path)
    with raises(families.BAD_CELL, where=f"{path}, row 2"):
        read_table(path, CORPUS)
    Path(path).write_bytes(Path(path).read_bytes()[:-50])
    with raises(io_codes.NOT_PARQUET):
        read_table(path, CORPUS)
    with raises(io_codes.NO_SUCH_FILE, what="table"):
        read_table(str(tmp_path / "nothing.csv"), CORPUS)
    for path in ("/dev/zero", str(tmp_path)):
        with raises(families.WRONG_KIND):
            read_table(path, CORPUS)
    folder = Folder(f"s3://{s3.bucket}/tables", s3.storage)
    folder.write_bytes("docs.csv", b"doc_id,path\na,a.wav\nb,\n")
    with raises(families.BAD_CELL, where=f"{folder.root}/docs.csv, line 3"):
        read_table(folder.path("docs.csv"), CORPUS, storage=s3.storage)
    rows = [
        {"query_id": "q,1", "doc_id": 'a "b"', "channel": 1, "start": 0.1, "end": 0.30000000000000004, "score": -1e-20},
        {"query_id": "ŋ", "doc_id": "x/y", "channel": 2, "start": 0.0, "end": 1e7, "score": 1 / 3, "decision": True},
    ]
    table = pa.Table.from_pylist(rows, DETECTIONS)
    for given in (table, iter(table.to_batches(max_chunksize=1))):
        write_csv(given, DETECTIONS, tmp_path / "out.csv")
        assert read_table(str(tmp_path / "out.csv"), DETECTIONS).equals(table)
    text = b"doc_id,path,channel\na,a.wav,1\nb,b.wav,x\n"
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"doc_id": ["a"], "path": ["a.wav"]}), buffer)
    for pack in (gzip.compress, lzma.compress):
        assert read_table(csv(tmp_path, pack(text.replace(b"x", b"2"))), CORPUS)["channel"].to_pylist() == [1, 2]
        assert read_table(csv(tmp_path, pack(buffer.getvalue().to_pybytes())), CORPUS).num_rows == 1
        path = csv(tmp_path, pack(text))
        assert place(path, 1) == f"{path}, line 3"
        with raises(families.BAD_CELL, where="line 3", column="channel", value="'x'"):
            read_table(path, CORPUS)
        with raises(io_codes.DAMAGED_ARCHIVE):
            read_table(csv(tmp_path, pack(text * 50)[:-12]), CORPUS)


def test_columns_that_look_like_one_that_is_missing_and_an_end_without_a_start(tmp_path) -> None:
    for header, told in (
        ("query_id,path,Start,End", [("Start", "start"), ("End", "end")]),
        ("query_id,path,begin,stop,Speaker_ID", [("begin", "start"), ("stop", "end"), ("Speaker_ID", "speaker")]),
        ("query_id,path,speakr,terms", [("speakr", "speaker"), ("terms", "term")]),
        ("query_id,path,start,end,begin", []),  # nothing is missing that it could be
        ("query_id,path,note,source_utt,duration", []),
    ):
        notices, values = Notices(), ["a", "a", *map(str, range(1, len(header.split(",")) - 1))]
        path = csv(tmp_path, f"{header}\n{','.join(values)}\n")
        read_table(path, QUERIES, notices=notices)
        found = [(notice.code, dict(notice.values), notice.first) for notice in notices.entries.values()]
        lines = [{"column": name, "meant": meant} for name, meant in told]
        assert found == [(io_codes.UNREAD_COLUMN, line, f"{path}, line 1") for line in lines]
        if told:
            with raises(io_codes.UNREAD_COLUMN, meant=told[0][1]):
                read_table(path, QUERIES, notices=Notices(strict=True))
    path, notices = csv(tmp_path, "query_id,path,end\nq,a,0.5\n"), Notices()
    table = read_table(path, QUERIES, notices=notices)
    assert table["end"].to_pylist() == [None]
    (notice,) = notices.entries.values()
    assert "column 'end' without 'start'" in str(notice)
    both = read_table(csv(tmp_path, "query_id,path,start,end\nq,a,,0.5\n"), QUERIES)
    assert both["end"].to_pylist() == [0.5]
    # In Parquet too.
    parquet = str(tmp_path / "q.parquet")
    pq.write_table(pa.table({"query_id": ["q"], "path": ["a"], "end": [0.5], "Speaker": ["s"]}), parquet)
    notices = Notices()
    assert read_table(parquet, QUERIES, notices=notices)["end"].to_pylist() == [None]
    assert [notice.first for notice in notices.entries.values()] == [parquet, parquet]


def test_equal_rows_by_any_key(tmp_path: Path) -> None:
    """Also where parts of the key are missing."""
    both, term = ("doc_id", "channel"), ("speaker", "term")
    for text, names, key, shown in (
        ("doc_id,speaker\na,x\nb,x\na,y\n", (*both, "speaker"), both, "doc_id 'a', no channel"),
        ("doc_id,channel,speaker\na,,x\na,1,x\nb,,y\na,,y\n", (*both, "speaker"), both, "doc_id 'a', no channel"),
        ("doc_id,channel\na,1\nb,1\na,1\n", both, both, "doc_id 'a', channel 1"),
        ("speaker,term\n,x\na,x\n,x\n", term, term, "no speaker, term 'x'"),
    ):
        fields = pa.schema([(name, pa.int32() if name == "channel" else pa.string()) for name in names])
        where = f"table.csv, line {len(text.splitlines())}"
        with raises(families.DUPLICATE_NAME, where=where, key=shown, first="line 2"):
            read_table(csv(tmp_path, text), fields, key=key)
