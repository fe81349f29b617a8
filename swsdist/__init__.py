"""swsdist: spoken term detection at scale.

    import swsdist
    result = swsdist.run("config.yaml")
    hits = swsdist.search("runs/mine/store", "hello.wav")

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swsdist.api import (
        RunResult,
        SweepResult,
        curve,
        digest,
        discover,
        open_store,
        phones,
        run,
        score_discovery,
        search,
        sweep,
        warping_path,
        words,
    )
    from swsdist.corpora.arrays import save_corpus
    from swsdist.searcher.searcher import Searcher

__all__ = [
    "RunResult",
    "Searcher",
    "SweepResult",
    "__version__",
    "curve",
    "digest",
    "discover",
    "open_store",
    "phones",
    "run",
    "save_corpus",
    "score_discovery",
    "search",
    "sweep",
    "warping_path",
    "words",
]

_ELSEWHERE = {"Searcher": "swsdist.searcher.searcher", "save_corpus": "swsdist.corpora.arrays"}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("swsdist")
    if name in __all__:
        return getattr(importlib.import_module(_ELSEWHERE.get(name, "swsdist.api")), name)
    raise AttributeError(f"module 'swsdist' has no attribute {name!r}")
