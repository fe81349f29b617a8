"""Names and sizes of a folder's files, as columns, with later additions and removals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_PIECE = 1 << 16


class Listing:
    """Names and sizes.

    Args:
        files: name and size of each.
    """

    def __init__(self, files: Iterable[tuple[str, int]]) -> None:
        names: list[pa.Array] = [pa.array([], pa.large_string())]
        sizes: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        left = iter(files)
        while piece := list(islice(left, _PIECE)):
            names.append(pa.array([name for name, _ in piece], pa.large_string()))
            sizes.append(np.array([size for _, size in piece], np.int64))
        self._names = pa.concat_arrays(names)
        self._sizes = np.concatenate(sizes)
        self._size_by_name: dict[str, int] | None = None
        self._added: dict[str, int] = {}
        self._removed: set[str] = set()

    def size(self, name: str) -> int | None:
        """Bytes of a file; None: no such file."""
        if name in self._added:
            return self._added[name]
        if name in self._removed:
            return None
        if self._size_by_name is None:
            self._size_by_name = dict(zip(self._names.to_pylist(), self._sizes.tolist(), strict=True))
        return self._size_by_name.get(name)

    def __contains__(self, name: str) -> bool:
        return self.size(name) is not None

    def add(self, name: str, size: int) -> None:
        """Add a new file."""
        self._added[name] = size
        self._removed.discard(name)

    def discard(self, name: str) -> None:
        """Remove a file."""
        self._added.pop(name, None)
        self._removed.add(name)

    def below(self, prefix: str) -> Iterator[str]:
        """Names with a prefix."""
        matching = self._names.filter(pc.starts_with(self._names, prefix))
        yield from (name for name in matching.to_pylist() if name not in self._removed and name not in self._added)
        yield from (name for name in self._added if name.startswith(prefix))

    def are_complete(self, names: pa.Array, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool (n,): whether each file exists in its size."""
        complete = np.zeros(len(names), bool)
        if len(names) and len(self._names):
            at = pc.index_in(names.cast(pa.large_string()), value_set=self._names)
            place = pc.fill_null(at, -1).to_numpy(zero_copy_only=False)
            complete = (place >= 0) & (self._sizes[place] == sizes)
        if self._added or self._removed:
            for k, name in enumerate(names.to_pylist()):
                if name in self._added or name in self._removed:
                    complete[k] = self._added.get(name) == sizes[k]
        return complete
