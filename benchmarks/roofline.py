"""What the search could at most do on this core, and what it does, by the dimension of the frames.

A cell costs D multiply-adds and one step of the recurrence. So two roofs: multiply-adds, the most that our product did on
frames of up to 512 dimensions, where next to nothing else is done, falling with 1/D; and the first-level cache, measured by a
loop that loads and stores as many bytes as the recurrence does (per cell three states, one of them written, and a distance:
14 bytes), the same for every D. Below: our product alone, the BLAS's product alone, the recurrence alone, the whole search.

`--plot FILE` draws it, both axes logarithmic.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.engine import _documents, _prepared, _recurrence, _search
from benchmarks.rows import Row, say, show
from swsdist.kernels import products
from swsdist.kernels.distances.interface import create
from swsdist.kernels.vectors import WIDTH, load, store
from swsdist.report.pictures import write_picture
from swsdist.report.plots.curves import Axes, Series, lines_svg

_DIMENSIONS = (13, 20, 39, 64, 96, 138, 200)
_ROUNDS = 5
_BYTES_OF_A_CELL = 14
_UNIT = "Mcell/CPU s"


def measure(scratch: Path) -> list[Row]:
    """One core."""
    features = _documents(scratch)
    rows = []
    with threadpool_limits(limits=1):
        multiply_adds = max(_product(dimension) * dimension for dimension in (*_DIMENSIONS, 256, 384, 512))
        cache = _first_level() / _BYTES_OF_A_CELL
        rows += [
            Row("multiply-adds", multiply_adds / 1e3, "G/CPU s"),
            Row("first-level cache", cache * _BYTES_OF_A_CELL / 1e3, "GB/CPU s"),
            Row("roof of the first-level cache", cache, _UNIT),
            Row("recurrence alone", statistics.median(_recurrence() for _ in range(_ROUNDS)), _UNIT),
        ]
        for dimension in _DIMENSIONS:
            say(f"roofline: D={dimension}")
            documents, queries = _prepared(features, dimension)
            cells = sum(map(len, queries)) * sum(map(len, documents))
            _search(queries[:1], documents[:1])
            whole = statistics.median(cells / _seconds(_search, queries, documents) / 1e6 for _ in range(_ROUNDS))
            rows += [
                Row(f"roof of multiply-adds, D={dimension}", multiply_adds / dimension, _UNIT),
                Row(f"our product alone, D={dimension}", _product(dimension), _UNIT),
                Row(f"the BLAS's product alone, D={dimension}", _blas(dimension), _UNIT),
                Row(f"whole search, D={dimension}", whole, _UNIT),
            ]
    return rows


def drawn(rows: list[Row]) -> str:
    """The picture."""
    found = {row.name: row.value or np.nan for row in rows}
    x = np.array(_DIMENSIONS)
    lines = (
        ("roof: multiply-adds", "roof of multiply-adds", 0),
        ("our product alone", "our product alone", 1),
        ("the BLAS's product alone", "the BLAS's product alone", 2),
        ("whole search", "whole search", 3),
    )
    series = [
        Series(
            label, np.log10(x), np.log10([found[f"{name}, D={d}"] for d in _DIMENSIONS]), kind, label.startswith("roof")
        )
        for label, name, kind in lines
    ]
    flat = [
        Series(label, np.log10(x), np.full(len(x), np.log10(found[name])), kind, label.startswith("roof"))
        for label, name, kind in (
            ("roof: first-level cache", "roof of the first-level cache", 0),
            ("recurrence alone", "recurrence alone", 4),
        )
    ]
    axes = Axes("log10 of the dimension D", "log10 of Mcell / CPU s", y_range=(0.9, 4.6))
    return lines_svg([*flat, *series], axes, title="Roofline of the search on one core")


def _seconds(work: Any, *arguments: Any) -> float:
    clock = time.process_time()
    work(*arguments)
    return time.process_time() - clock


def _product(dimension: int) -> float:
    """Mcell/CPU s of our product and map: 60 query frames, 16 document frames, best of some rounds."""
    n, frames = 60, 16
    distance = create("cosine", dimension)
    layout = products.layout(distance)
    large, small = products.tiles(n)
    rng = np.random.default_rng(0)
    documents = products.aligned(frames * layout.pairs * 2 * WIDTH, np.int16)
    documents[:] = rng.integers(-40, 40, documents.size)
    query = rng.integers(-40, 40, n * layout.pairs * 2).astype(np.int16)
    out = products.aligned(frames * n * WIDTH, np.int16)
    room = products.aligned(products.SUMS, np.int32)
    fill = products.fill(distance.streams[0].from_dot, "int16")
    arguments = (documents, 0, frames, layout.pairs, 0, layout.pairs, query, 0, large, small, out, room)
    times = max(20, 40_000 // dimension)

    def several() -> None:
        for _ in range(times):
            fill(*arguments)

    several()
    return n * frames * WIDTH * times / min(_seconds(several) for _ in range(_ROUNDS)) / 1e6


def _blas(dimension: int) -> float:
    """The same by numpy's float32 product, 60 query frames, the fastest of some widths."""
    rng = np.random.default_rng(0)
    left = rng.normal(size=(60, dimension)).astype(np.float32)
    best = 0.0
    for width in (256, 512, 1024, 2048):
        right = rng.normal(size=(dimension, width)).astype(np.float32)
        out = np.empty((60, width), np.float32)
        times = max(20, 10_000_000 // (dimension * width))

        def several(right: Any = right, out: Any = out, times: int = times) -> None:
            for _ in range(times):
                np.matmul(left, right, out=out)

        several()
        best = max(best, 60 * width * times / min(_seconds(several) for _ in range(_ROUNDS)) / 1e6)
    return best


@numba.njit
def _load_and_store(left: Any, right: Any, out: Any, times: int) -> None:
    for _ in range(times):
        for k in range(0, out.size, WIDTH):
            store(out, k, load(left, k) + load(right, k))


def _first_level() -> float:
    """MB/CPU s through the first-level cache: two loads and a store of 4 kB arrays."""
    left, right, out = (products.aligned(1024, np.int32) for _ in range(3))
    left[:] = right[:] = 1
    _load_and_store(left, right, out, 1)
    times = 200_000
    return 3 * 4096 * times / min(_seconds(_load_and_store, left, right, out, times) for _ in range(_ROUNDS)) / 1e6


def _with_picture() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw them: .svg, .pdf or .png")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        rows = measure(Path(scratch))
    show(rows, arguments.json)
    if arguments.plot is not None:
        write_picture(drawn(rows), arguments.plot)


if __name__ == "__main__":
    sys.exit(_with_picture())
