"""Checks readers and writers of lists; see `swsdist.registry.entries` for their arguments."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pyarrow as pa

from swsdist.core.errors import DataError, UserError
from swsdist.evaluation.scoring_task import HEAD, KaldiOptions, ReadOptions, System, make_system, reader_of
from swsdist.evaluation.writing import ListContext
from swsdist.registry.registries import READERS, WRITERS
from swsdist.score.conventions import STDEVAL
from swsdist.testing.conformance.entry import check_entry, require
from swsdist.testing.conformance.export import HARD
from swsdist.testing.conformance.export import detections as scene

#: Columns of a system's detections, in their order.
COLUMNS = ("query_id", "doc_id", "channel", "start", "end", "duration", "score", "decision")

#: Contents that every reader must refuse.
BROKEN = (b"<stdlist", b"PAR1 and no more", b"one two 3 4 five\n", b"word\n", b"\x00\x01\x02", b"", b"\xff\xfe<\x00")


def check_reader(name: str, content: bytes) -> None:
    """Check one registered reader.

    Only this reader recognises its file, by the first bytes; packed or plain, and repeatedly, it returns the same
    detections in the columns of a list; broken files are refused as user errors, with the file's name.

    Args:
        name: registered in `swsdist.registry.registries.READERS`.
        content: of a valid file, with at least one detection.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    entry, what = check_entry(READERS, name)
    rest = [reader for reader in READERS if not READERS[reader].detector]
    require(
        bool(entry.detector) or name == rest[0], what, f"it does not tell its files; {rest[0]} reads what nothing tells"
    )
    detectors = [reader for reader in READERS if READERS[reader].recognises(content[:HEAD])]
    require(
        detectors == ([name] if entry.detector else []),
        what,
        f"its file is recognised by {' and '.join(detectors) or 'no reader'}",
    )
    require(not entry.recognises(b""), what, "it takes an empty file for its own")
    with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
        root = Path(place)
        plain, packed = root / "list", root / "packed"
        plain.write_bytes(content)
        packed.write_bytes(gzip.compress(content))
        require(reader_of(str(packed)) == name, what, "its file is not told when it is packed")
        system = read(name, plain)
        require(system.path == str(plain), what, f"the path of what it reads is {system.path}")
        table = system.detections
        require(tuple(table.column_names) == COLUMNS, what, f"its columns are {', '.join(table.column_names)}")
        require(table.num_rows > 0, what, "it reads no detection")
        for again in (plain, packed):
            require(rows(read(name, again)) == rows(system), what, f"it reads other detections of {again.name} again")
        for k, broken in enumerate(BROKEN):
            _refused(name, root / f"broken{k}", broken, what)


def check_writer(name: str, reader: str) -> None:
    """Check one registered writer.

    It writes only the given file, with the same bytes each time; a reader recognises it and returns the detections, their
    times and scores to a millionth, in any order; a name that the format cannot represent is refused as a user error.

    Args:
        name: registered in `swsdist.registry.registries.WRITERS`.
        reader: registered in `swsdist.registry.registries.READERS`, that reads what it writes.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(WRITERS, name)
    with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
        root = Path(place)
        out, system = root / "list", posteriors()
        content = written(name, system, out)
        require(written(name, system, root / "again") == content, what, "it writes other bytes the second time")
        require({path.name for path in root.iterdir()} == {"list", "again"}, what, "it writes beside its file")
        require(reader_of(str(out)) == reader, what, f"its file is recognised as {reader_of(str(out))}, not {reader}")
        require(_known(read(reader, out)) == _known(system), what, f"{reader} reads other detections of its file")
        for k, hard in enumerate(HARD):
            item = {**system.detections.slice(0, 1).to_pylist()[0], "query_id": hard, "doc_id": hard}
            odd = make_system(pa.Table.from_pylist([item]))
            try:
                written(name, odd, root / f"hard{k}")
            except (UserError, DataError):
                continue
            query, document = _known(read(reader, root / f"hard{k}"))[0][:2]
            same = query == hard and document in (hard, STDEVAL.system_document(hard))
            require(same, what, f"the name {hard[:20]!r} is neither written as it is nor refused")


def posteriors(least: int = 1) -> System:
    """Detections whose scores are posteriors, so many sixteenths and more, and whose times are hundredths of a second."""
    table = scene()
    scores = [min(k + least, 16) / 16 for k in range(table.num_rows)]
    return make_system(table.set_column(table.schema.get_field_index("score"), "score", pa.array(scores)))


def written(name: str, system: System, out: Path) -> bytes:
    """The content that a writer writes for a list."""
    WRITERS[name].load()(system.detections, out, ListContext(system, None, KaldiOptions()))
    return out.read_bytes()


def read(name: str, path: Path) -> System:
    """The list that a reader reads."""
    system: System = READERS[name].load()(str(path), ReadOptions(STDEVAL, None, None, KaldiOptions()))
    return system


def rows(system: System) -> list[tuple[object, ...]]:
    """The detections of a list, in their order."""
    return list(zip(*(column.to_pylist() for column in system.detections.columns), strict=True))


def _known(system: System) -> list[tuple[object, ...]]:
    """Columns of every format: all except the decision, which Kaldi's results lack."""
    columns = zip(*(system.detections[name].to_pylist() for name in COLUMNS[:-1]), strict=True)
    return sorted((*row[:3], *(round(value, 6) for value in row[3:])) for row in columns)


def _refused(name: str, path: Path, content: bytes, what: str) -> None:
    path.write_bytes(content)
    try:
        system = read(name, path)
    except (UserError, DataError) as error:
        require(path.name in str(error), what, f"the error of {content[:20]!r} does not name the file")
        return
    except Exception as error:
        raise AssertionError(f"{what}: {content[:20]!r} is not refused as the user's mistake: {error!r}") from error
    require(system.detections.num_rows == 0, what, f"it reads detections of {content[:20]!r}")
