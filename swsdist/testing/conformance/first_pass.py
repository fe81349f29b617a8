"""Checks first passes; see `swsdist.methods.first_pass.interface` for the requirements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.distances.interface import create as create_distance
from swsdist.methods.dtw.search import Matches, search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.first_pass.interface import Budget, Material, create
from swsdist.methods.first_pass.search import run
from swsdist.registry.registries import FIRST_PASSES
from swsdist.testing import scenes
from swsdist.testing.conformance.entry import check_entry, require

_DIMENSION = 5


def check_first_pass(name: str, options: Mapping[str, object] | None = None) -> None:
    """Check one registered first pass.

    What it finds are candidates of the full search, every number the same, and with windows for everything all of them;
    the order of documents changes nothing; over a document, no document changes what is found in another.

    Args:
        name: registered in `swsdist.registry.registries.FIRST_PASSES`.
        options: some of its options.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(FIRST_PASSES, name)
    first_pass = create(name, **(options or {}))
    order = [3, 0, 4, 1, 2]
    for over in ("collection", "document"):
        budget = Budget(2, 0.5, over)
        proposed = first_pass.propose(_material(range(5)), budget)
        require(min(*proposed.work, *proposed.indexing) >= 0, what, "its work is negative")
        candidates, work, _ = run(first_pass, _material(range(5)), budget)
        require(sum(work) > 0, what, "it says that nothing was computed")
        again, *_ = run(first_pass, _material(range(5)), budget)
        require(scenes.rows(again) == scenes.rows(candidates), what, "it finds something else the second time")
        moved, *_ = run(first_pass, _material(order), budget)
        rows = sorted((row[0], order[row[1]], *row[2:]) for row in scenes.rows(moved))
        require(
            rows == sorted(scenes.rows(candidates)),
            what,
            f"the order of documents changes what is found (over: {over})",
        )
        full, *_ = run(first_pass, _material(range(5)), Budget(100_000, 0.0, over))
        best = _full(_material(range(5)), _material(range(5)).most)
        require(
            scenes.rows(full) == scenes.rows(best),
            what,
            f"with windows for everything it misses candidates of the full search (over: {over})",
        )
        every = _full(_material(range(5)), np.full(5, 100_000))
        require(bool(present(every, candidates).all()), what, "it finds what is no candidate of the full search")
        if over == "document":
            parts = [
                (row[0], some[row[1]], *row[2:])
                for some in ([4, 1], [0, 2, 3])
                for row in scenes.rows(run(first_pass, _material(some), budget)[0])
            ]
            require(sorted(parts) == rows, what, "over a document, other documents change what is found in it")


def present(matches: Matches, full: Matches) -> NDArray[np.bool_]:
    """Of each candidate of the full search, whether it was found: the same example, document, end, frames and cost."""
    names = ("query", "document", "end_frame", "frames", "cost")
    keys, all_of_them = (
        np.ascontiguousarray(np.column_stack([getattr(item, name).astype(np.int64) for name in names]))
        for item in (matches, full)
    )
    kind = np.dtype((np.void, keys.dtype.itemsize * len(names)))
    hits: NDArray[np.bool_] = np.isin(all_of_them.view(kind).ravel(), keys.view(kind).ravel())
    return hits


def recall(matches: Matches, full: Matches, counted: NDArray[np.bool_] | None = None) -> float:
    """Share of the full search's candidates that were found; 1 if there are none.

    Args:
        matches: of a search that skipped something.
        full: of the full search, with the same examples, documents and settings.
        counted: bool, a mask over `full`: only these; all by default.
    """
    there = present(matches, full)
    expected = there if counted is None else there[counted]
    return float(expected.mean()) if len(expected) else 1.0


def _material(which: list[int] | range) -> Material:
    documents = [scenes.spoken(10 * k, 20 + 7 * k, _DIMENSION) for k in range(5)]
    queries = [documents[k][12 : 36 + 6 * k] for k in range(3)] + [scenes.features(7, 1, _DIMENSION)]
    return scenes.material(create_distance("cosine", _DIMENSION), queries, [documents[k] for k in which])


def _full(material: Material, most: NDArray[np.int64]) -> Matches:
    settings = Settings(material.distance, material.window, 16, 500)
    return search(material.examples(1), material.documents(1, None), most, settings)
