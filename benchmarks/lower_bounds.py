"""Whether lower bounds can spare work and leave every candidate as it is: experiments on Mboshi dev.

Each figure gives the bound more than it could have: the cost of the worst candidate that is kept of a query and
document, which a search learns only at its end, is known from the start. What is left to do then is counted. Every 4th
query, 60 documents each; docs/decisions/0008-exact-lower-bounds.md says what follows.

- Perfect knowledge of every path's rest: cells that lie on a path of at most that cost. No method that goes by cells can
  do with less.
- Rest at least 0, and at least the sum of each further row's least distance in the document: cells that cannot be given up.
- The same by vectors of sixteen frames, as the kernels compute them: one live cell keeps the vector.
- End frames whose sum of row minima, over the frames a path can have come through, is at most that cost; and the cells
  their paths could lie in. The minima need all distances.
- Blocks of 2, 3 and 4 frames by their mean and radius (triangle inequality of the chord): end frames that the exact
  search on these bounds does not exclude. Only these would spare distances.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import mboshi
from benchmarks.first_passes import Scene
from benchmarks.rows import Row, at_most, main, say

_INFINITY = 1 << 40
_DOCUMENTS, _EVERY = 60, 4


@numba.njit(nogil=True)
def _forward(d: Any) -> Any:
    """Least cost of a path that ends in each cell."""
    n, frames = d.shape
    s = np.full((n, frames), _INFINITY)
    for i in range(n):
        for t in range(frames):
            best = _INFINITY
            if i == 0:
                best = 0
            else:
                if t >= 1:
                    best = min(best, s[i - 1, t - 1])
                if t >= 2:
                    best = min(best, s[i - 1, t - 2])
                if i == 1:
                    best = min(best, d[0, t])
                elif t >= 1:
                    best = min(best, s[i - 2, t - 1] + d[i - 1, t])
            s[i, t] = best + d[i, t]
    return s


@numba.njit(nogil=True)
def _rest(d: Any) -> Any:
    """Least cost of what follows each cell on a path."""
    n, frames = d.shape
    r = np.full((n, frames), _INFINITY)
    r[n - 1] = 0
    for i in range(n - 2, -1, -1):
        for t in range(frames - 1):
            best = r[i + 1, t + 1] + d[i + 1, t + 1]
            if t + 2 < frames:
                best = min(best, r[i + 1, t + 2] + d[i + 1, t + 2])
            if i + 2 < n:
                best = min(best, r[i + 2, t + 1] + d[i + 1, t + 1] + d[i + 2, t + 1])
            r[i, t] = best
    return r


@numba.njit(nogil=True)
def _reached(d: Any, limit: int) -> Any:
    """End frames that row minima do not exclude, and the cells of paths to them."""
    n, frames = d.shape
    ends = np.zeros(frames, np.bool_)
    cells = np.zeros((n, frames), np.bool_)
    for t in range(frames):
        total = 0
        for i in range(n):
            rest = n - 1 - i
            least = 4096
            for u in range(max(0, t - 2 * rest), t - (rest + 1) // 2 + 1):
                least = min(least, d[i, u])
            total += least
        if total <= limit:
            ends[t] = True
            for i in range(n):
                rest = n - 1 - i
                cells[i, max(0, t - 2 * rest) : max(0, t - (rest + 1) // 2 + 1)] = True
    return ends, cells


def _block_bounds(query: NDArray[np.float64], document: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Lower bounds of the distances of unit frames, frame by frame, from blocks of frames."""
    count = len(document) // size
    blocks = document[: count * size].reshape(count, size, -1)
    middle = blocks.mean(axis=1)
    radius = np.linalg.norm(blocks - middle[:, None], axis=2).max(axis=1)
    square = (query**2).sum(axis=1)[:, None] + (middle**2).sum(axis=1) - 2 * query @ middle.T
    chord = np.maximum(0, np.sqrt(np.maximum(square, 0)) - radius)
    # Less one: the fixed point rounds.
    return np.repeat(np.maximum(np.floor(1024 * chord**2).astype(np.int64) - 1, 0), size, axis=1)


def _unit(frames: NDArray[np.float32]) -> NDArray[np.float64]:
    values = frames.astype(np.float64)
    found: NDArray[np.float64] = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    return found


def measure(scratch: Path) -> list[Row]:
    """Parts of all cells, or of all end frames."""
    if mboshi() is None:
        return [Row("lower bounds: cells (Mboshi dev is not beside the checkout)", None, "%", at_most(100 / 3))]
    scene = Scene(scratch)
    material = scene.material
    documents = {k: np.concatenate(list(blocks)) for k, blocks in material.documents(1, None)}
    worst = np.full((len(scene.examples), len(documents)), -1, np.int64)
    np.maximum.at(worst, (scene.full.query, scene.full.document), scene.full.cost)
    chosen = np.random.default_rng(1)
    names = ("path", "zero", "zero by vectors", "minima", "minima by vectors", "reach")
    cells, ends, frames = dict.fromkeys(names, 0), dict.fromkeys(("minima", 2, 3, 4), 0), 0
    every = 0
    for q in range(0, len(scene.examples), _EVERY):
        for k in chosen.choice(len(documents), _DOCUMENTS, replace=False).tolist():
            query, document = scene.examples[q].frames, documents[k]
            dots = query.astype(np.float64) @ document.T.astype(np.float64)
            d = np.clip(np.rint(2048 - dots / 4096), 0, 4095).astype(np.int64)
            limit = int(worst[q, k])
            s = _forward(d)
            least = d.min(axis=1)
            rest = np.append(np.cumsum(least[::-1])[::-1][1:], 0)
            reached, could = _reached(d, limit)
            every += d.size
            frames += d.shape[1]
            live = {"path": s + _rest(d) <= limit, "zero": s <= limit, "minima": s + rest[:, None] <= limit}
            for name, mask in live.items():
                cells[name] += int(mask.sum())
                if name != "path":
                    heads = np.arange(0, d.shape[1], 16)
                    wide = np.minimum(16, d.shape[1] - heads)
                    cells[f"{name} by vectors"] += int((np.logical_or.reduceat(mask, heads, axis=1) * wide).sum())
            cells["reach"] += int(could.sum())
            ends["minima"] += int(reached.sum())
            for size in (2, 3, 4):
                if d.shape[1] >= size:
                    bounds = _block_bounds(_unit(query), _unit(document), size)
                    ends[size] += int((_forward(bounds)[-1] <= limit).sum())
        say(f"lower bounds: query {q + 1} of {len(scene.examples)}")
    told = {
        "path": "cells on a path of at most the worst kept cost",
        "zero": "cells not given up, the rest at least 0",
        "zero by vectors": "the same, by vectors of 16 frames",
        "minima": "cells not given up, the rest at least its row minima",
        "minima by vectors": "the same, by vectors of 16 frames",
        "reach": "cells of paths to ends not excluded by row minima",
    }
    rows = [Row(f"lower bounds: {told[name]}", 100 * cells[name] / every, "%") for name in names]
    rows.append(Row("lower bounds: ends not excluded by row minima", 100 * ends["minima"] / frames, "%"))
    rows += [
        Row(f"lower bounds: ends not excluded by blocks of {size} frames", 100 * ends[size] / frames, "%")
        for size in (2, 3, 4)
    ]
    best = min(cells["zero by vectors"], cells["minima by vectors"], cells["reach"])
    return [
        *rows,
        Row("lower bounds: least that a kernel could be left with", 100 * best / every, "%", at_most(100 / 3)),
    ]


if __name__ == "__main__":
    main(measure, __doc__)
