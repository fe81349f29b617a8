"""GPU kernels, which run the functions of `threads` for each thread.

A block is a warp of thirty-two pieces times a few queries: its warps read the same documents at about the same time, so
the first read fills the cache for all.

numba's simulator of a GPU (NUMBA_ENABLE_CUDASIM=1) does not support vectors: there the thread functions are compiled
for the CPU, and the simulator runs launches, thread indices, streams and copies.
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

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.arithmetic import State
from swsdist.kernels.compiled import Function
from swsdist.kernels.cuda import threads
from swsdist.kernels.cuda.threads import FRAMES, WARP
from swsdist.kernels.distances.interface import Map
from swsdist.kernels.recurrences.interface import Recurrence
from swsdist.kernels.vectors import WIDTH

# A small search has small launches, which is no error.
warnings.filterwarnings("ignore", "Grid size .* will likely result in GPU under-utilization")

#: Whether kernels run in numba's simulator.
SIMULATED = bool(config.ENABLE_CUDASIM)


#: Blocks of a launch, threads of a block, and the stream (0: the default stream).
Shape: TypeAlias = tuple[tuple[int, int], tuple[int, int], object]


class Kernel(Protocol):
    """A kernel, launched as ``kernel[shape](...)``; the arrays are on the GPU."""

    def __getitem__(self, shape: Shape, /) -> Callable[..., None]: ...


class Kernels(NamedTuple):
    """Kernels, launched as ``kernel[grid, block, stream](...)``; arrays as in `threads`, `total` int32 (1,).

    Attributes:
        lay: grid (warps, any), block (32, any), more threads for less work each: (raw, columns, lanes, warps,
            documents).
        scan: grid (warps, queries / QUERIES), block (32, QUERIES): (documents, columns, queries, tops, tasks, streams,
            shift, lanes, warps, cells of all warps, edges, option, distances, states, rows and elements of a query in
            these).
        pick: the same grid and block: (edges, tasks, lanes, warps, cells of all warps, window, room, ends, states,
            total, places int32 (many, 3), best): appends a candidate's query, lane and end frame to `places`, its state
            to `best`.
        words: words of `edges` per cell.
        held: frames of distances, and states, that `scan` needs in memory; 0: they are in registers.
    """

    lay: Kernel
    scan: Kernel
    pick: Kernel
    words: int
    held: int


def _on_device(function: Function) -> Function:
    """Compile a thread's function for use in kernels."""
    if not SIMULATED:
        made: Function = cuda.jit(device=True)(function)
        return made
    compiled = numba.njit(function)

    def call(*arguments: object) -> object:
        return compiled(*(argument if np.isscalar(argument) else np.asarray(argument) for argument in arguments))

    return cast(Function, call)


def kernels(maps: tuple[Map, ...], recurrence: Recurrence, row_range: bool) -> Kernels:
    """The kernels of a distance and a recurrence.

    Args:
        maps: `from_dot` of each stream.
        recurrence: any; it is fastest with a cell of its `neighbours`.
        row_range: map the distances of each query frame to their range in a document.
    """
    if recurrence.neighbours is not None:
        return _kernels(threads.in_registers(maps, recurrence.neighbours, row_range), 2, 0)
    held = threads.held_frames(row_range)
    return _kernels(threads.in_memory(maps, recurrence.advance, recurrence.restart, row_range), 1, held)


@cache
def _kernels(thread: Callable[..., None], words: int, held_frames: int) -> Kernels:
    lay_thread, scan_thread, pick_thread = _on_device(threads.lay), _on_device(thread), _on_device(threads.pick)

    @cuda.jit
    def lay(
        raw: Singles,
        columns: int,
        lanes: Ints,
        warps: Ints,
        documents: Singles,
    ) -> None:
        warp, lane = cuda.blockIdx.x, cuda.threadIdx.x
        local = lanes[warp * WARP + lane]
        width = warps[warp, 3]
        group = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        while lane < width and group < warps[warp, 1] // FRAMES:
            place = warps[warp, 0] * columns + (group * columns * width + lane) * FRAMES
            lay_thread(raw, columns, local[0], local[1], group, documents, place, width)
            group += cuda.gridDim.y * cuda.blockDim.y

    @cuda.jit
    def scan(
        documents: Singles,
        columns: int,
        queries: Singles,
        tops: State,
        tasks: Ints,
        streams: Ints,
        shift: int,
        lanes: Ints,
        warps: Ints,
        cells: int,
        edges: State,
        option: int,
        distances: NDArray[np.int16],
        states: State,
        rows: int,
        elements: int,
    ) -> None:
        warp, lane = cuda.blockIdx.x, cuda.threadIdx.x
        query = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        width = warps[warp, 3]
        if query < len(tasks) and lane < width:
            offset, stop = warps[warp, 0], warps[warp, 1]
            begin = max(warps[warp, 2] - tasks[query, 4], 0) // FRAMES * FRAMES
            place = offset * columns + lane * FRAMES
            edge = (query * cells + offset) * words + lane
            vector = (query * cuda.gridDim.x + warp) * (WARP // WIDTH) + lane // WIDTH
            distance = vector * rows * held_frames * WIDTH + lane % WIDTH
            state = vector * elements + lane % WIDTH
            of_queries = (queries, tops, tasks, query, streams, shift)
            local = (edges, edge, option, distances, distance, states, state)
            frames = lanes[warp * WARP + lane, 1]
            scan_thread(documents, place, columns, width, *of_queries, frames, begin, stop, *local)

    @cuda.jit
    def pick(
        edges: State,
        tasks: Ints,
        lanes: Ints,
        warps: Ints,
        cells: int,
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
        width = warps[warp, 3]
        if query < len(tasks) and lane < width:
            local = lanes[warp * WARP + lane]
            edge = (query * cells + warps[warp, 0]) * words + lane
            place = (query * cuda.gridDim.x + warp) * WARP * room + lane
            bits, infinity, step = tasks[query, 2], tasks[query, 3], words * width
            held = pick_thread(
                edges, edge, local[1], local[2], local[3], local[4], bits, infinity, window, step, ends, states, place
            )
            if held > 0:
                row = cuda.atomic.add(total, 0, held)
                for k in range(held):
                    places[row + k, 0] = query
                    places[row + k, 1] = warp * WARP + lane
                    places[row + k, 2] = ends[place + k * WARP]
                    best[row + k] = states[place + k * WARP]

    return Kernels(lay, scan, pick, words, held_frames)
