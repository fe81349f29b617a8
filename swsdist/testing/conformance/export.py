"""Checks exports, readers and writers of lists; see `swsdist.exports.interface` for the requirements."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import soundfile

from swsdist.core.errors import DataError, UserError
from swsdist.core.types import DETECTIONS
from swsdist.evaluation.scoring_task import HEAD, KaldiOptions, ReadOptions, System, make_system, reader_of
from swsdist.evaluation.writing import ListContext
from swsdist.exports.interface import BestHit, Material
from swsdist.registry.registries import EXPORTS, READERS, WRITERS
from swsdist.score.conventions import STDEVAL
from swsdist.testing import scenes
from swsdist.testing.conformance.entry import check_entry, require

#: Names that some formats cannot represent.
HARD = ("two words", "a/b", 'comma,quote"', "ümlaut", "<&>", "tab\there", "star*[a]", "x" * 300)


def check_export(name: str) -> None:
    """Check one registered export.

    It writes below its folder and nowhere else, whole files with the same names and bytes for the same detections however they
    come in batches; an empty list is written or refused; a name that its form cannot hold is refused as the user's mistake.

    Args:
        name: registered in `swsdist.registry.registries.EXPORTS`.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(EXPORTS, name)
    with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
        root = Path(place)
        table, best = detections(), hits(root)
        files = written(name, material(table, best), root / "first")
        require(bool(files), what, "it writes nothing")
        require(all(files.values()), what, "it writes an empty file")
        hidden = [file for file in files if Path(file).name.startswith(".") or file.endswith((".tmp", ".partial"))]
        require(not hidden, what, f"it leaves {', '.join(hidden)}")
        require(
            files == written(name, material(table, best), root / "again"), what, "it writes other bytes the second time"
        )
        cut = written(name, material(table, best, rows=1), root / "cut")
        require(files == cut, what, "what it writes depends on how detections come in batches")
        _try(name, material(table.slice(0, 0), best[:0]), root / "empty", what, "an empty list")
        for k, hard in enumerate(HARD):
            item = table.slice(0, 1).to_pylist()[0] | {"query_id": hard, "doc_id": hard}
            odd = material(pa.Table.from_pylist([item], DETECTIONS), [{**best[0], "query_id": hard, "doc_id": hard}])
            _try(name, odd, root / f"hard{k}", what, f"the name {hard[:20]!r}")
        outside = {path.name for path in root.iterdir()} - {"sound.wav", "first", "again", "cut", "empty"}
        require(all(item.startswith("hard") for item in outside), what, "it writes outside of its folder")


def detections() -> pa.Table:
    """Twelve decided detections of three queries in four documents: DETECTIONS."""
    drawn = scenes.table(3, 12, 3, 1000).tolist()
    rows = [
        {
            "query_id": f"q{k % 3}",
            "doc_id": f"d{k % 4}",
            "channel": 1,
            "start": first / 100,
            "end": first / 100 + 0.5,
            "score": (score - 500) / 64,
            "decision": yes > 500,
            "cost": yes,
            "frames": 50,
            "example": 1,
            "system": "scene",
        }
        for k, (first, score, yes) in enumerate(drawn)
    ]
    rows.sort(key=lambda row: (row["query_id"], -float(str(row["score"]))))
    names = set(DETECTIONS.names)
    return pa.Table.from_pylist([{key: row[key] for key in row if key in names} for row in rows], DETECTIONS)


def hits(root: Path) -> list[BestHit]:
    """Three hits in a recording of integers that is written to a folder."""
    path = root / "sound.wav"
    soundfile.write(path, scenes.table(5, 8000, 1, 8001)[:, 0].astype(np.int16) - 4000, 8000, subtype="PCM_16")
    return [
        BestHit(query_id=f"q{k}", doc_id="d1", channel=1, start=k / 4, end=k / 4 + 0.25, path=str(path))
        for k in range(3)
    ]


def material(table: pa.Table, best: list[BestHit], rows: int = 1000) -> Material:
    """What an export is given of a table, in batches of so many rows."""
    query_ids = sorted({*table["query_id"].to_pylist(), "unfound"})
    return Material(lambda: iter(table.to_batches(max_chunksize=rows)), query_ids, "scene", best)


def written(name: str, material_of: Material, folder: Path) -> dict[str, bytes]:
    """Names and contents of the files that an export writes to a new folder."""
    folder.mkdir()
    EXPORTS[name].load()(material_of, folder)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _try(name: str, material_of: Material, folder: Path, what: str, of: str) -> None:
    try:
        written(name, material_of, folder)
    except UserError:
        return
    except Exception as error:
        raise AssertionError(f"{what}: {of} is neither written nor refused as the user's mistake: {error!r}") from error


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
        content = list_written(name, system, out)
        require(list_written(name, system, root / "again") == content, what, "it writes other bytes the second time")
        require({path.name for path in root.iterdir()} == {"list", "again"}, what, "it writes beside its file")
        require(reader_of(str(out)) == reader, what, f"its file is recognised as {reader_of(str(out))}, not {reader}")
        require(_known(read(reader, out)) == _known(system), what, f"{reader} reads other detections of its file")
        for k, hard in enumerate(HARD):
            item = {**system.detections.slice(0, 1).to_pylist()[0], "query_id": hard, "doc_id": hard}
            odd = make_system(pa.Table.from_pylist([item]))
            try:
                list_written(name, odd, root / f"hard{k}")
            except (UserError, DataError):
                continue
            query, document = _known(read(reader, root / f"hard{k}"))[0][:2]
            same = query == hard and document in (hard, STDEVAL.system_document(hard))
            require(same, what, f"the name {hard[:20]!r} is neither written as it is nor refused")


def posteriors(least: int = 1) -> System:
    """Detections whose scores are posteriors, so many sixteenths and more, and whose times are hundredths of a second."""
    table = detections()
    scores = [min(k + least, 16) / 16 for k in range(table.num_rows)]
    return make_system(table.set_column(table.schema.get_field_index("score"), "score", pa.array(scores)))


def list_written(name: str, system: System, out: Path) -> bytes:
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
