"""The kernels that are launched on a GPU: each finds out which thread it is, and does what `threads` says.

A block is a warp of thirty-two pieces times a few queries: its warps read the same documents at about the same time, so that
all but one find them in the cache.

numba's simulator of a GPU (NUMBA_ENABLE_CUDASIM=1) knows no vectors: there what a thread does is compiled for the CPU, and what
is simulated is the launching, the threads' numbers, streams and copies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol, TypeAlias, cast

import numba
import numpy as np
from numba import cuda
from numba.cuda.core import config
from numpy.typing import NDArray

from swsdist.kernels.compiled import Function
from swsdist.kernels.cuda import threads
from swsdist.kernels.cuda.rows import FRAMES
from swsdist.kernels.cuda.threads import WARP
from swsdist.kernels.distances.interface import Map
from swsdist.kernels.recurrences.interface import Recurrence
from swsdist.kernels.recurrences.packing import State
from swsdist.kernels.vectors import WIDTH

# A search of little is a small launch, and nobody's mistake.
warnings.filterwarnings("ignore", "Grid size .* will likely result in GPU under-utilization")

#: Whether kernels run in numba's simulator.
SIMULATED = bool(config.ENABLE_CUDASIM)


#: Blocks of a launch, threads of a block, and the stream (0: none in particular).
Shape: TypeAlias = tuple[tuple[int, int], tuple[int, int], object]


class Kernel(Protocol):
    """A kernel, launched as ``kernel[shape](...)``; the arrays are on the GPU."""

    def __getitem__(self, shape: Shape, /) -> Callable[..., None]: ...


class Kernels(NamedTuple):
    """Kernels, to be launched as ``kernel[grid, block, stream](...)``; arrays as in `threads`, `total` int32 (1,).

    Attributes:
        lay: grid (warps, any), block (32, any), more threads for less work each: (raw, columns, lanes, warps, documents).
        scan: grid (warps, queries / QUERIES), block (32, QUERIES): (documents, columns, queries, tops, tasks, streams, shift,
            warps, frames of all warps, edges). In memory: (documents, columns, queries, rows and elements of the largest query,
            tasks, streams, shift, warps, frames of all warps, option, distances, states, edges).
        pick: the same grid and block: (edges, tasks, lanes, warps, frames of all warps, window, room, ends, states, total,
            places int32 (many, 3), best): appends a candidate's query, lane and end frame to `places`, its state to `best`.
        words: of the edges that a frame takes in a warp.
    """

    lay: Kernel
    scan: Kernel
    pick: Kernel
    words: int


def _on_device(function: Function) -> Function:
    """A thread's function, for kernels to call."""
    if not SIMULATED:
        made: Function = cuda.jit(device=True)(function)
        return made
    compiled = numba.njit(function)

    def call(*arguments: object) -> object:
        return compiled(*(one if np.isscalar(one) else np.asarray(one) for one in arguments))

    return cast(Function, call)


@cache
def kernels(maps: tuple[Map, ...], recurrence: Recurrence) -> Kernels:
    """The kernels of a distance and a recurrence.

    Args:
        maps: `from_dot` of each stream.
        recurrence: any; it is fastest with a `cell`.
    """
    registers = recurrence.cell is not None
    scan = _in_registers(maps, recurrence) if registers else _in_memory(maps, recurrence)
    lay_thread, pick_thread = _on_device(threads.lay), _on_device(threads.pick)
    # A frame's states of a warp, and what a tile hands on beside them; or half of them.
    step = 2 * WARP if registers else WIDTH

    @cuda.jit
    def lay(
        raw: NDArray[np.float32],
        columns: int,
        lanes: NDArray[np.int64],
        warps: NDArray[np.int64],
        documents: NDArray[np.float32],
    ) -> None:
        warp, lane = cuda.blockIdx.x, cuda.threadIdx.x
        own = lanes[warp * WARP + lane]
        group = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        while group < warps[warp, 1] // FRAMES:
            place = ((warps[warp, 0] // FRAMES + group) * columns * WARP + lane) * FRAMES
            lay_thread(raw, columns, own[0], own[1], group, documents, place)
            group += cuda.gridDim.y * cuda.blockDim.y

    @cuda.jit
    def pick(
        edges: State,
        tasks: NDArray[np.int64],
        lanes: NDArray[np.int64],
        warps: NDArray[np.int64],
        frames: int,
        window: int,
        room: int,
        ends: NDArray[np.int32],
        states: State,
        total: NDArray[np.int32],
        places: NDArray[np.int32],
        best: State,
    ) -> None:
        warp, lane = cuda.blockIdx.x, cuda.threadIdx.x
        query = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        if query < len(tasks):
            own = lanes[warp * WARP + lane]
            if registers:
                edge = (query * frames + warps[warp, 0]) * 2 * WARP + lane
            else:
                edge = _in_curve(query, frames, warps, warp, lane)
            place = (query * cuda.gridDim.x + warp) * WARP * room + lane
            bits, infinity = tasks[query, 2], tasks[query, 3]
            held = pick_thread(
                edges, edge, own[1], own[2], own[3], own[4], bits, infinity, window, step, ends, states, place
            )
            if held > 0:
                row = cuda.atomic.add(total, 0, held)
                for k in range(held):
                    places[row + k, 0] = query
                    places[row + k, 1] = warp * WARP + lane
                    places[row + k, 2] = ends[place + k * WARP]
                    best[row + k] = states[place + k * WARP]

    return Kernels(lay, scan, pick, 2 * WARP if registers else WARP)


def _in_registers(maps: tuple[Map, ...], recurrence: Recurrence) -> Kernel:
    assert recurrence.cell is not None
    scan_thread = _on_device(threads.in_registers(maps, recurrence.cell))

    @cuda.jit
    def scan(
        documents: NDArray[np.float32],
        columns: int,
        queries: NDArray[np.float32],
        tops: State,
        tasks: NDArray[np.int64],
        streams: NDArray[np.int64],
        shift: int,
        warps: NDArray[np.int64],
        frames: int,
        edges: State,
    ) -> None:
        warp, lane = cuda.blockIdx.x, cuda.threadIdx.x
        query = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        if query < len(tasks):
            offset, stop = warps[warp, 0], warps[warp, 1]
            begin = max(warps[warp, 2] - tasks[query, 4], 0) // FRAMES * FRAMES
            place = offset * columns * WARP + lane * FRAMES
            edge = (query * frames + offset) * 2 * WARP + lane
            scan_thread(
                documents, place, columns, queries, tops, tasks, query, streams, shift, begin, stop, edges, edge
            )

    return cast(Kernel, scan)


@numba.extending.register_jitable
def _in_curve(query: int, frames: int, warps: NDArray[np.int64], warp: int, lane: int) -> int:
    """Where a piece's curve begins: it is sixteen wide."""
    half = lane // WIDTH
    place: int = (query * frames + warps[warp, 0]) * WARP + half * warps[warp, 1] * WIDTH + lane % WIDTH
    return place


def _in_memory(maps: tuple[Map, ...], recurrence: Recurrence) -> Kernel:
    scan_thread = _on_device(threads.in_memory(maps, recurrence.advance, recurrence.restart))

    @cuda.jit
    def scan(
        documents: NDArray[np.float32],
        columns: int,
        queries: NDArray[np.float32],
        rows: int,
        elements: int,
        tasks: NDArray[np.int64],
        streams: NDArray[np.int64],
        shift: int,
        warps: NDArray[np.int64],
        frames: int,
        option: int,
        distances: NDArray[np.int16],
        states: State,
        edges: State,
    ) -> None:
        warp, lane = cuda.blockIdx.x, cuda.threadIdx.x
        query = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        if query < len(tasks):
            begin = max(warps[warp, 2] - tasks[query, 4], 0) // FRAMES * FRAMES
            place = warps[warp, 0] * columns * WARP + lane * FRAMES
            vector = (query * cuda.gridDim.x + warp) * 2 + lane // WIDTH
            first = vector * (rows * FRAMES * WIDTH) + lane % WIDTH
            state = vector * elements + lane % WIDTH
            edge = _in_curve(query, frames, warps, warp, lane)
            stop = warps[warp, 1]
            own = (distances, first, states, state, edges, edge)
            scan_thread(documents, place, columns, queries, tasks, query, streams, shift, begin, stop, option, *own)

    return cast(Kernel, scan)
