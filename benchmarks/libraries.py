"""Libraries that could take the place of code of ours, each beside it in one process: librosa, lxml, kaldi_native_io, sqlite3.

Decision 33 tells what was made of it. What is not installed has no value: `pip install lxml kaldi_native_io`. CPU seconds, the
least of five rounds in which all take turns.
"""

from __future__ import annotations

import importlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row, at_most, main, say
from swsdist.core.fingerprint import fingerprint
from swsdist.features.blocks import in_blocks
from swsdist.features.interface import one_thread
from swsdist.features.librosa import library
from swsdist.features.mfcc import Mfcc
from swsdist.io.frames.ark import KALDI
from swsdist.io.nist.systemlist_dialect import KWSLIST
from swsdist.io.nist.systemlist_lines import read_lines
from swsdist.io.nist.xml import elements
from swsdist.pipeline.receipts import Listing, Receipts, encoded, names_of, outputs_of
from swsdist.pipeline.task import Cost, Part, Receipt

_TIMES = 5
_SECONDS = 600
_DETECTIONS, _MATRICES, _RECEIPTS, _NOTED = 200_000, 3000, 100_000, 10_000


def measure(scratch: Path) -> list[Row]:
    """All rows."""
    return [*_frames(), *_lists(scratch), *_archives(scratch), *_receipts()]


def _frames() -> list[Row]:
    """MFCC of noise, as blocks of a decoder's size."""
    say("libraries: frames")
    librosa = library()
    sound, extractor = np.random.default_rng(0).normal(scale=0.1, size=_SECONDS * 16000).astype(np.float32), Mfcc()

    def by_librosa() -> Any:
        options = {"n_fft": 512, "win_length": 400, "hop_length": 160, "center": False, "n_mels": 40}
        power = librosa.feature.melspectrogram(y=sound, sr=16000, **options)
        static = librosa.feature.mfcc(S=librosa.power_to_db(power, top_db=None), n_mfcc=13)
        return np.concatenate(
            [static, *(librosa.feature.delta(static, order=order, mode="nearest") for order in (1, 2))]
        )

    def by_ours() -> Any:
        return np.concatenate(list(in_blocks(extractor, (sound[k : k + 65536] for k in range(0, len(sound), 65536)))))

    assert np.allclose(by_librosa().T, by_ours(), atol=0.01)
    with one_thread():
        least = _least({"own": by_ours, "librosa": by_librosa})
    return [Row("MFCC: CPU of ours / of librosa", _ratio(least, "own", "librosa"), "times", at_most(0.5))]


def _lists(scratch: Path) -> list[Row]:
    """A KWSLIST, an element a line."""
    say("libraries: lists")
    path = str(scratch / "kwslist.xml")
    lines = (
        f'<kw file="doc{k % 999:04d}" channel="1" tbeg="{k % 3600}.25" dur="0.5" score="0.{k % 97:02d}" decision="NO"/>\n'
        for k in range(_DETECTIONS)
    )
    head = '<kwslist system_id="x">\n<detected_kwlist kwid="K1" search_time="1" oov_count="0">\n'
    Path(path).write_text(head + "".join(lines) + "</detected_kwlist>\n</kwslist>\n")
    ways: dict[str, Callable[[], object]] = {
        "own": lambda: sum(element.name == "kw" for element in elements(path) if element.attributes is not None),
        "columns": lambda: read_lines(path, None, (KWSLIST,)),
    }
    etree = _installed("lxml.etree")
    if etree is not None:
        ways["lxml"] = lambda: sum(name == "kw" for name, _, _ in _by_lxml(etree, path))
    least = _least(ways)
    wrong = None
    if etree is not None:
        placed = [line for name, _, line in _by_lxml(etree, path) if name == "kw"]
        wrong = sum(line != k for k, line in enumerate(placed, 3))
    return [
        Row("elements of a list: CPU of lxml.iterparse / of expat", _ratio(least, "lxml", "own"), "times"),
        Row("a list: CPU of lxml.iterparse / of columns", _ratio(least, "lxml", "columns"), "times"),
        Row(f"lxml.iterparse: elements of {_DETECTIONS} whose line is wrong", wrong, ""),
    ]


def _by_lxml(etree: ModuleType, path: str) -> Iterator[tuple[str, dict[str, str], int]]:
    """Start tags: name, attributes, line. What was read is forgotten."""
    safe = {"resolve_entities": False, "no_network": True, "load_dtd": False}
    for event, element in etree.iterparse(path, events=("start", "end"), **safe):
        if event == "start":
            yield element.tag, dict(element.attrib), element.sourceline
        else:
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]


def _archives(scratch: Path) -> list[Row]:
    """Archives of 300 x 39 numbers, plain and compressed, read from begin to end."""
    kaldi = _installed("kaldi_native_io")
    names = {kind: f"{kind} archive: CPU of kaldi_native_io / ours" for kind in ("plain", "compressed")}
    if kaldi is None:
        return [Row(name, None, "times") for name in names.values()]
    say("libraries: archives")
    frames = np.random.default_rng(0).normal(size=(300, 39)).astype(np.float32)
    rows = []
    for kind, name in names.items():
        path = str(scratch / f"{kind}.ark")
        writer = kaldi.FloatMatrixWriter if kind == "plain" else kaldi.CompressedMatrixWriter
        more = () if kind == "plain" else (kaldi.CompressionMethod.kSpeechFeature,)
        with writer(f"ark:{path}") as out:
            for k in range(_MATRICES):
                out.write(f"utt{k}", frames, *more)
        least = _least({"own": lambda path=path: _by_ours(path), "kaldi": lambda path=path: _by_kaldi(kaldi, path)})
        rows.append(Row(name, _ratio(least, "kaldi", "own"), "times"))
    return rows


def _by_ours(path: str) -> float:
    total, file = 0.0, KALDI.open(path, {})
    for _, item in KALDI.find(path, "", Path(path).stat().st_size, {}):
        total += float(file.read(item.at)[0, 0])
    file.close()
    return total


def _by_kaldi(kaldi: ModuleType, path: str) -> float:
    with kaldi.SequentialFloatMatrixReader(f"ark:{path}") as reader:
        return sum(float(frames[0, 0]) for _, frames in reader)


def _receipts() -> list[Row]:
    """The receipts of a finished stage, of which a driver asks which tasks are done and whether their outputs are there."""
    say("libraries: receipts")
    table = encoded([_receipt(k) for k in range(_RECEIPTS)])
    names = [fingerprint(k) for k in range(_RECEIPTS)]
    listing = Listing((f"tables/{name}.parquet", 9) for name in names)
    fresh = [_receipt(k) for k in range(_RECEIPTS, _RECEIPTS + _NOTED)]
    least = _least(
        {
            "own": lambda: _in_columns(table, names, listing),
            "sqlite": lambda: _in_sqlite(table, names),
            "noted": lambda: _noted(fresh),
            "noted in sqlite": lambda: _noted_in_sqlite(fresh),
        }
    )
    return [
        Row(f"{_RECEIPTS} receipts found: CPU of sqlite3 / of columns", _ratio(least, "sqlite", "own"), "times"),
        Row(
            f"{_NOTED} receipts noted: CPU of sqlite3 / of columns", _ratio(least, "noted in sqlite", "noted"), "times"
        ),
    ]


def _receipt(number: int) -> Receipt:
    name = fingerprint(number)
    part = Part("candidates", f"tables/{name}.parquet", 9, name * 2, 10, (0, 2047))
    cost = Cost(1.5, 0.1, 1.7, 300_000_000, 10_000, 9, 1_000_000)
    return Receipt("search", 1, name, "a task", 1.0, (part,), {"candidates": 10}, [], cost, "host", 1, 1.7e9, 1.7e9 + 2)


def _in_columns(table: pa.Table, names: list[str], listing: Listing) -> int:
    found = Receipts([table])
    rows = found.find(names_of(names))
    owners, outputs = outputs_of(table.select(["outputs"]))
    whole = listing.are_complete(outputs.field("name"), outputs.field("size").to_numpy())
    done = np.ones(len(rows), bool)
    done[owners[~whole]] = False
    return int((done[rows] & (rows >= 0)).sum())


_TABLES = """CREATE TABLE receipt (fingerprint TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID;
CREATE TABLE output (fingerprint TEXT, name TEXT, size INT);
CREATE TABLE file (name TEXT PRIMARY KEY, size INT) WITHOUT ROWID;
CREATE TABLE asked (place INTEGER PRIMARY KEY, fingerprint TEXT);"""
_ADD = "INSERT OR REPLACE INTO receipt VALUES (?, ?)"
_DONE = """SELECT count(*) FROM asked JOIN receipt USING (fingerprint) WHERE NOT EXISTS (SELECT 1 FROM output LEFT JOIN file
ON file.name = output.name AND file.size = output.size WHERE output.fingerprint = asked.fingerprint AND file.name IS NULL)"""


def _in_sqlite(table: pa.Table, names: list[str]) -> int:
    """An index is made of the packed receipts, and asked; it holds less of each than the columns do."""
    database = sqlite3.connect(":memory:")
    database.executescript(_TABLES)
    owners, outputs = outputs_of(table.select(["outputs"]))
    keys = table["fingerprint"].to_pylist()
    database.executemany(_ADD, zip(keys, table["told"].to_pylist(), strict=True))
    files = outputs.field("name").to_pylist(), outputs.field("size").to_pylist()
    database.executemany("INSERT INTO output VALUES (?, ?, ?)", zip((keys[k] for k in owners), *files, strict=True))
    database.execute("CREATE INDEX of_task ON output (fingerprint)")
    database.executemany("INSERT INTO file VALUES (?, ?)", ((f"tables/{name}.parquet", 9) for name in names))
    database.executemany("INSERT INTO asked VALUES (?, ?)", enumerate(names))
    return int(database.execute(_DONE).fetchone()[0])


def _noted(fresh: list[Receipt]) -> int:
    found = Receipts()
    for one in fresh:
        found.add(one)
    return found.table().num_rows


def _noted_in_sqlite(fresh: list[Receipt]) -> int:
    database = sqlite3.connect(":memory:")
    database.executescript(_TABLES)
    for one in fresh:
        database.execute(_ADD, (one.fingerprint, json.dumps(one.result)))
        for part in one.outputs:
            database.execute("INSERT INTO output VALUES (?, ?, ?)", (one.fingerprint, part.name, part.size))
    return int(database.execute("SELECT count(*) FROM receipt").fetchone()[0])


def _installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _least(ways: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """CPU seconds of each."""
    found = dict.fromkeys(ways, float("inf"))
    for _ in range(_TIMES):
        for name, work in ways.items():
            begin = time.process_time()
            work()
            found[name] = min(found[name], time.process_time() - begin)
    say(", ".join(f"{name} {seconds:.3f} s" for name, seconds in found.items()))
    return found


def _ratio(least: Mapping[str, float], one: str, other: str) -> float | None:
    return least[one] / least[other] if one in least else None


if __name__ == "__main__":
    main(measure, __doc__)
