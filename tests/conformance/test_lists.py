"""Every registered reader and writer of lists passes its suite; what is wrong is caught, and a stranger's is read."""

from pathlib import Path
from typing import Any

import pytest

from swsdist.core.errors import ConfigError
from swsdist.evaluation.reading import read_rows
from swsdist.evaluation.scoring_task import ReadOptions, System, read_system
from swsdist.evaluation.writing import ListContext
from swsdist.registry.entries import ReaderEntry, WriterEntry
from swsdist.registry.registries import READERS, WRITERS
from swsdist.testing.conformance import check_reader, check_writer
from swsdist.testing.conformance.export import list_written, posteriors, rows

#: The reader of what a writer writes.
READ_BY = {"stdlist": "nist", "kwslist": "nist", "csv": "csv", "parquet": "parquet", "kaldi": "kaldi"}

MINE = b"#mine\nquery_id,doc_id,start,end,score\nq,d,1,2,0.5\n"


@pytest.mark.parametrize(("writer", "reader"), list(READ_BY.items()))
def test_reader(tmp_path: Path, writer: str, reader: str) -> None:
    check_reader(reader, list_written(writer, posteriors(), tmp_path / "list"))


@pytest.mark.parametrize("name", list(WRITERS))
def test_writer(name: str) -> None:
    check_writer(name, READ_BY[name])


def test_reader_of_a_table_with_nists_names() -> None:
    check_reader("nist-table", b"kwid,file,tbeg,dur,score\nq,a/d.wav,1,0.5,0.25\n")


def test_every_reader_is_checked() -> None:
    assert set(READERS) == {*READ_BY.values(), "nist-table"}


# -- a stranger's, and what is wrong ----------------------------------------------------------------------------------


def tells_mine(head: bytes) -> bool:
    return head.startswith(b"#mine")


def tells_all(head: bytes) -> bool:
    return True


def read_mine(path: str, asked: ReadOptions) -> System:
    """A table below a line of one's own."""
    from swsdist.io.compressed import opened

    with opened(path, asked.storage) as stream:
        stream.readline()
        below = Path(path + ".csv")
        below.write_bytes(stream.read())
    return _named(read_rows(str(below), asked), path)


def _named(system: System, path: str) -> System:
    return System(system.detections, system.attributes, system.search_times, path)


def reads_all(path: str, asked: ReadOptions) -> System:
    return _named(posteriors(), path)


def forgets(detections: object, out: Path, about: ListContext) -> None:
    WRITERS["csv"].load()(about.system.detections.slice(1), out, about)


def test_another_packages_reader_is_asked_before_csv(tmp_path: Path, added: Any) -> None:
    (tmp_path / "list").write_bytes(MINE)
    with pytest.raises(ConfigError, match=r"unknown reader of lists 'mine'"):
        read_system(str(tmp_path / "list"), reader="mine")
    name = added(READERS, "mine", ReaderEntry(f"{__name__}:read_mine", 1, f"{__name__}:tells_mine"))
    assert rows(read_system(str(tmp_path / "list"))) == [("q", "d", 1, 1.0, 2.0, 1.0, 0.5, None)]
    check_reader(name, MINE)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (ReaderEntry(f"{__name__}:read_mine", 1), "it does not tell its files; csv reads"),
        (ReaderEntry(f"{__name__}:read_mine", 0, f"{__name__}:tells_mine"), "version is 0"),
        (ReaderEntry(f"{__name__}:read_mine", 1, f"{__name__}:tells_all"), "it takes an empty file for its own"),
        (ReaderEntry(f"{__name__}:reads_all", 1, f"{__name__}:tells_mine"), "it reads detections of"),
    ],
)
def test_a_wrong_reader_is_caught(added: Any, entry: ReaderEntry, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_reader(added(READERS, "wrong", entry), MINE)


def test_a_wrong_writer_is_caught(added: Any) -> None:
    added(WRITERS, "wrong", WriterEntry(f"{__name__}:forgets", 1))
    with pytest.raises(AssertionError, match="csv reads other detections of its file"):
        check_writer("wrong", "csv")
