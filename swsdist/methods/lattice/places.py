"""Places of terms in lattices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Places(NamedTuple):
    """Places of terms, each once: term, document (of the lattices searched), start and end (ticks, exclusive), posterior."""

    term: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    posterior: NDArray[np.float64]
