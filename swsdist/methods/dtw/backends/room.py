"""Arrays of a thread that are used again for each batch: new ones cost the system as much as a short query costs."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.products import Element, aligned


class Room:
    """Arrays by name and type, which grow on demand."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, type[np.generic]], NDArray[np.generic]] = {}

    def __call__(self, name: str, elements: int, dtype: type[Element]) -> NDArray[Element]:
        """The array of that name, flat, of at least so many elements; begins on a cache line."""
        array = cast("NDArray[Element] | None", self._held.get((name, dtype)))
        if array is None or array.size < elements:
            array = aligned(elements, dtype)
            self._held[name, dtype] = array
        return array
