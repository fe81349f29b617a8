"""How much of what the full search finds was found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.methods.dtw.found import Found


def present(found: Found, full: Found) -> NDArray[np.bool_]:
    """Of each candidate of the full search, whether it was found: the same example, document, end, frames and cost."""
    names = ("query", "document", "end_frame", "frames", "cost")
    mine, all_of_them = (
        np.ascontiguousarray(np.column_stack([getattr(one, name).astype(np.int64) for name in names]))
        for one in (found, full)
    )
    kind = np.dtype((np.void, mine.dtype.itemsize * len(names)))
    there: NDArray[np.bool_] = np.isin(all_of_them.view(kind).ravel(), mine.view(kind).ravel())
    return there


def recall(found: Found, full: Found, counted: NDArray[np.bool_] | None = None) -> float:
    """Part of the full search's candidates that were found; 1 where there are none.

    Args:
        found: of a search that skipped something.
        full: of the full search, with the same examples, documents and settings.
        counted: bool, a mask over `full`: only these; all by default.
    """
    there = present(found, full)
    wanted = there if counted is None else there[counted]
    return float(wanted.mean()) if len(wanted) else 1.0
