"""Temporary local copies of what is not in a local file, for a program that goes back and forth in it: whole, or its two ends.

What a container says of itself stands at its beginning or at its end. So a copy with nothing between tells it, which spares the
way of gigabytes from a server; the hole takes no room on the disk.
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
    """The path of a copy, which goes at the end.

    Args:
        file: seekable.
        ends: so many bytes of each end are copied, with a hole between; None: all.
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
