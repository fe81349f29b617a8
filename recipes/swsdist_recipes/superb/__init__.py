"""SUPERB's query-by-example number: QUESST 2014 in English, searched with each layer of a speech encoder.

Each layer of a set of queries is a plan of one run folder, an ordinary config of the chain `search`; all share one store, so
the encoder sees a recording once. The development queries choose the layer, the evaluation queries are searched with it alone.

Sources: Yang et al., "SUPERB: Speech processing Universal PERformance Benchmark", 2021, and what its public code does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from swsdist.registry.registry import CommandEntry

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

ENTRY = CommandEntry(
    "swsdist_recipes.superb.command:superb",
    says="Measure SUPERB's query-by-example number of a speech encoder.",
    section="Recipes",
)
