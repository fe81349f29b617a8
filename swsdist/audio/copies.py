"""Temporary local copies of remote files for programs that seek: the complete file, or its two ends.

The header of a container is at its beginning or its end, so a sparse copy of both ends is enough to read it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from swsdist.io.remote.scratch import scratch

#: Bytes of each end.
ENDS = 4 << 20

_PIECE = 4 << 20


@contextmanager
def copy_of(file: BinaryIO, ends: int | None = None) -> Iterator[str]:
    """Path of a copy, deleted at the end of the context.

    Args:
        file: seekable.
        ends: bytes to copy of each end, with a hole between; None: the complete file.
    """
    size = file.seek(0, 2)
    file.seek(0)
    with tempfile.NamedTemporaryFile(dir=scratch()) as copy:
        if ends is None or size <= 2 * ends:
            shutil.copyfileobj(file, copy, _PIECE)
        else:
            copy.write(file.read(ends))
            file.seek(size - ends)
            copy.seek(size - ends)
            copy.write(file.read(ends))
        copy.flush()
        yield copy.name
