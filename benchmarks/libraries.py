"""Libraries that could take the place of code of ours, each beside it: librosa, lxml, kaldi_native_io, sqlite3, matplotlib,
Vega-Lite by vl_convert, and listings of s3fs.

Decision 33 tells what was made of it. What is not installed has no value: `pip install lxml kaldi_native_io`. CPU seconds, the
least of five rounds in which all take turns.
"""

from __future__ import annotations

import importlib
import json
import sqlite3
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
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
from swsdist.io.nist.systemlist import KWSLIST, read_lines
from swsdist.io.nist.xml import elements
from swsdist.io.remote.objects import objects_below
from swsdist.pipeline.receipts import Listing, Receipts, encoded, names_of, outputs_of
from swsdist.pipeline.task import Cost, Part, Receipt

_TIMES = 5
_SECONDS = 600
_DETECTIONS, _MATRICES, _RECEIPTS, _NOTED, _LISTED = 200_000, 3000, 100_000, 10_000, 100_000


def measure(scratch: Path) -> list[Row]:
    """All rows."""
    return [*_frames(), *_lists(scratch), *_archives(scratch), *_receipts(), *_plots(), _listings()]


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


#: A plot of a line through 400 points as SVG; x is an array.
_DRAWN = {
    "own": """from swsdist.report.plots.curves import Axes, Series, lines_svg
def draw():
    return lines_svg([Series("a", x, x**2)], Axes("x", "y"), title="t")""",
    "matplotlib": """import io, matplotlib
from matplotlib.figure import Figure
matplotlib.rcParams.update({"svg.hashsalt": "0", "svg.fonttype": "none"})
def draw():
    figure, file = Figure(), io.StringIO()
    axes = figure.subplots()
    axes.plot(x, x**2, label="a")
    axes.set(xlabel="x", ylabel="y")
    axes.legend()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()""",
    "Vega-Lite": """import vl_convert
points = [{"x": float(a), "y": float(a * a), "of": "a"} for a in x]
def draw():
    channels = {k: {"field": k, "type": "quantitative"} for k in "xy"} | {"color": {"field": "of", "type": "nominal"}}
    mark = {"type": "line", "clip": True}
    return vl_convert.vegalite_to_svg({"data": {"values": points}, "mark": mark, "encoding": channels})""",
}
_DRAWING = """import json, time
import numpy as np
x, begin = np.linspace(0, 1, 400), time.process_time()
{}
first = draw(), time.process_time() - begin
second = draw(), time.process_time() - begin - first[1]
print(json.dumps([first[1], second[1], len(first[0]), first[0] == second[0]]))"""


def _plots() -> list[Row]:
    """A plot in a fresh process, with the libraries that it loads, and again."""
    say("libraries: plots")
    rows = []
    for name, code in _DRAWN.items():
        ended = subprocess.run(
            [sys.executable, "-c", _DRAWING.format(code)], capture_output=True, text=True, check=False
        )
        first, second, size, same = json.loads(ended.stdout) if ended.returncode == 0 else (None,) * 4
        rows += [
            Row(f"{name}: CPU of the first plot, with imports", first, "s"),
            Row(f"{name}: CPU of the next", second, "s"),
            Row(f"{name}: size", size and size / 1000, "kB"),
            Row(f"{name}: the next has the same bytes", None if same is None else float(same), ""),
        ]
    return rows


def _listings() -> Row:
    """A long listing whose pages take 50 ms each: page by page, as s3fs does, beside ours."""
    say("libraries: listings")
    names = sorted(f"run/receipts/{fingerprint(k)}" for k in range(_LISTED))

    def ask(**asked: str) -> dict[str, Any]:
        time.sleep(0.05)
        after = asked.get("ContinuationToken") or asked.get("StartAfter") or ""
        begin = max(bisect_right(names, after), bisect_left(names, asked["Prefix"]))
        end = bisect_left(names, asked["Prefix"] + "~")
        page = names[begin : min(end, begin + 1000)]
        if "Delimiter" in asked and asked["Prefix"] != "run/receipts/":
            return {"CommonPrefixes": [{"Prefix": "run/receipts/"}]}
        contents = [{"Key": name, "Size": 1, "ETag": "e"} for name in page]
        return {
            "Contents": contents,
            "IsTruncated": end > begin + 1000,
            "NextContinuationToken": page[-1] if page else "",
        }

    def one_by_one() -> int:
        token, count = "", 0
        while True:
            page = ask(Prefix="run/", **({"ContinuationToken": token} if token else {}))
            count += len(page["Contents"])
            if not page["IsTruncated"]:
                return count
            token = page["NextContinuationToken"]

    seconds = []
    for work in (one_by_one, lambda: sum(1 for _ in objects_below(ask, "run/"))):
        begin = time.monotonic()
        assert work() == _LISTED
        seconds.append(time.monotonic() - begin)
    say(f"page by page {seconds[0]:.2f} s, own {seconds[1]:.2f} s")
    return Row(f"{_LISTED} names: wall of pages one by one / of ours", seconds[0] / seconds[1], "times")


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
