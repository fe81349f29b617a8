"""Frames of recordings before transforms, kept in a process for further tracks and models that are made of them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.formats import ffmpeg
from swsdist.features.blocks import streamed
from swsdist.features.extractors import identity, recipe_fingerprint
from swsdist.features.interface import Extractor, Layered, Precomputed
from swsdist.io.filesystem import Folder
from swsdist.store.writing import Reading, ReadResult, WithResult, read_recording, read_with_speech

#: Most bytes of frames to keep: of MFCC with deltas an hour.
_MOST_BYTES = 64 << 20

#: Columns that a recording's frames depend on.
_MATTERS = ("path", "identity", "channel", "start", "end", "speaker")


class _Kept(NamedTuple):
    """Frames of a recording, and the result of reading them."""

    blocks: list[NDArray[np.float32]]
    result: ReadResult

    @property
    def bytes(self) -> int:
        """Of the frames."""
        return sum(block.nbytes for block in self.blocks)


class KeptFrames:
    """Frames of the last recordings, as many as `_MOST_BYTES` hold."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._bytes = 0

    def reading(self, extractor: Extractor | Precomputed, *, listen: bool, keep: bool) -> Reading:
        """`read_with_speech` if `listen`, else `read_recording`, of an extractor; takes frames that are kept, and keeps them
        for one more reading if `keep`.
        """
        reading = read_with_speech if listen else read_recording
        if isinstance(extractor, Precomputed):
            return reading
        outer = extractor if isinstance(extractor, Layered) else None
        inner = extractor if outer is None else outer.inner
        made_by = recipe_fingerprint(identity(inner))

        def read(
            document: dict[str, Any], _: Extractor | Precomputed, folder: Folder
        ) -> Generator[NDArray[np.float32], None, ReadResult]:
            key = (made_by, *(document.get(name) for name in _MATTERS))
            kept = self._released(key)
            if kept is None or (listen and kept.result.speech is None):
                frames = WithResult(reading(document, inner, folder))
            else:
                frames = WithResult(_again(kept))
            if keep:
                frames = WithResult(self._keeping(key, frames))
            yield from frames if outer is None else streamed(outer, frames)
            return frames.result if listen else frames.result._replace(speech=None, bandwidth=None)

        return read

    def _keeping(
        self, key: tuple[object, ...], frames: WithResult[ReadResult]
    ) -> Generator[NDArray[np.float32], None, ReadResult]:
        """The same frames, which are kept if there is room. What ffmpeg decodes is not: a task records its version."""
        blocks: list[NDArray[np.float32]] = []
        size = 0
        with ffmpeg.recorded_versions() as used:
            for block in frames:
                size += block.nbytes
                if size <= _MOST_BYTES:
                    blocks.append(block)
                yield block
        if size <= _MOST_BYTES and not used:
            self._kept[key] = _Kept(blocks, frames.result)
            self._bytes += size
            while self._bytes > _MOST_BYTES:
                self._released(next(iter(self._kept)))
        return frames.result

    def _released(self, key: tuple[object, ...]) -> _Kept | None:
        kept = self._kept.pop(key, None)
        self._bytes -= 0 if kept is None else kept.bytes
        return kept


def _again(kept: _Kept) -> Generator[NDArray[np.float32], None, ReadResult]:
    yield from kept.blocks
    return kept.result
