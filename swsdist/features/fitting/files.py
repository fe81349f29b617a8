"""Documents that a model is fitted on, and totals, as files: a row of NumPy's arrays each, read without pickle."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from swsdist.features.fitting.interface import Document, Totals, added
from swsdist.io.frames.numpy_files import bounded_arrays, write_array

#: Bytes of a whole number of any size, of those that are added up: 2^511 is more than any sum of frames.
_BYTES = 64


def write_document(file: BinaryIO, document: Document) -> None:
    """Append a document."""
    speaker = document.speaker
    bandwidth = np.nan if document.bandwidth is None else document.bandwidth
    placed = document.positions is not None
    head = [len(document.blocks), document.labels is not None, speaker is not None, bandwidth, placed]
    write_array(file, np.array(head, np.float64))
    for block in document.blocks:
        write_array(file, np.ascontiguousarray(block, "<f4"))
    if document.labels is not None:
        write_array(file, document.labels.astype("<i8"))
    if document.positions is not None:
        write_array(file, document.positions.astype("<i8"))
    if speaker is not None:
        write_array(file, np.frombuffer(speaker.encode(), np.uint8))


def read_documents(file: BinaryIO) -> Iterator[Document]:
    """Documents that were appended, one after the other."""
    data, at = file.read(), 0

    def array() -> NDArray[Any]:
        nonlocal at
        end = at + 10 + int.from_bytes(data[at + 8 : at + 10], "little")
        shape, dtype = _header(data[at:end])
        at = end + math.prod(shape) * dtype.itemsize
        return np.frombuffer(data, dtype, math.prod(shape), end).reshape(shape)

    while at < len(data):
        blocks, labelled, named, bandwidth, placed = array().tolist()
        frames = [array() for _ in range(int(blocks))]
        labels = array() if labelled else None
        positions = array() if placed else None
        speaker = array().tobytes().decode() if named else None
        yield Document(frames, speaker, labels, None if math.isnan(bandwidth) else bandwidth, positions)


@lru_cache(4096)
def _header(text: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array by its header, in row-major order; NumPy reads one in longer than a short document takes."""
    stream = io.BytesIO(text)
    np.lib.format.read_magic(stream)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    return shape, dtype


def write_totals(file: BinaryIO, totals: Totals) -> None:
    """Write totals; integers of any size as their bytes."""
    np.savez(file, allow_pickle=False, **{name: _packed(array) for name, array in totals.items()})


def read_totals(file: BinaryIO) -> Totals:
    """What `write_totals` wrote."""
    return {name: _unpacked(array) for name, array in bounded_arrays(file).items()}


def summed(several: Iterable[Totals]) -> Totals:
    """The sum of all."""
    return reduce(added, several, {})


def _packed(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != object:
        return array.astype("<i8")
    stream = b"".join(int(value).to_bytes(_BYTES, "little", signed=True) for value in array.tolist())
    return np.frombuffer(stream, np.uint8).reshape(len(array), _BYTES)


def _unpacked(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.uint8:
        return array
    return np.array([int.from_bytes(row.tobytes(), "little", signed=True) for row in array], object)
