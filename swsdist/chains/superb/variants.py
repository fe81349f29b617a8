"""The searches of SUPERB and of papers beside it, as keys of the section `search`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

#: Keys of `search` that variants change.
VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "default": {
            "distance": "cosine-exp",
            "normalise": "mean-variance",
            "documents_by": "pooled",
            "queries_by": "pooled",
            "row_range": True,
        },
        "cosine": {
            "distance": "cosine",
            "normalise": "mean-variance",
            "documents_by": "pooled",
            "queries_by": "pooled",
            "row_range": False,
        },
        "neg-log": {"distance": "cosine-neg-log", "normalise": "none", "row_range": True},
    }
)
