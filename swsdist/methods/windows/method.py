"""The method windows: the search of the ALBAYZIN systems "MFCC fingerprint" and "phoneme posteriorgram".

A window of the query's size, N frames, slides over a document with 50 % overlap; its estimated cost is the sum of the
least distances of its columns (eq. 3). In each document the max(100, its seconds) windows of least estimate are
searched by DTW. Detections that end at least 0.5 s from every better one are kept.

The paper leaves details open, which are decided as follows:

- The sum of eq. 3 runs to n + N inclusive, one frame more than the window has. Here a window has N frames.
- If frames of a document remain after the last window, an additional window ends with the document; a document of fewer
  than N frames is one window.
- "A window of the size of the query is employed for this search": the path has steps (1,1), (1,0) and (0,1), each cell
  counted once, and may begin and end at any frame of the window (`ends: free`), because windows half a query apart
  rarely begin with the word; or it goes from the window's first frame to its last (`ends: pinned`).
- The cost is divided by the query's frames, so that scores of queries of different lengths are comparable.
- "Separated" is from end to end; with `ends: pinned` it is the same from begin to begin.

Source: Tejedor et al. 2016, "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and 2014 evaluations",
section "MFCC fingerprint-based QbE STD system".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from swsdist.config.search import PARTS_KEYS, Search, WindowsOptions
from swsdist.core.arrays import Singles
from swsdist.core.codes import methods as codes
from swsdist.methods.dtw.method import Dtw
from swsdist.methods.method import Result, Unit
from swsdist.methods.query.example import Example
from swsdist.methods.spans import best_in_spans
from swsdist.registry.entries import checked
from swsdist.registry.registries import METHODS
from swsdist.store.reading import Store

if TYPE_CHECKING:
    from swsdist.kernels.distances.interface import Distance  # loads numba

#: Keys of the section `search` that belong to other methods.
_OF_OTHERS = (
    *("recurrence", "band", "recurrence_options", "candidate_window", "skip_silence", "drop", "row_range"),
    *("first_pass", "backend", *PARTS_KEYS),
)


class Windows:
    """The method of a config's section `search`: its distances, normalisation, examples, candidates, and
    `method_options`.

    Raises:
        ConfigError: an option is invalid, or a key is set that this method does not use.
    """

    def __init__(self, settings: Search) -> None:
        where = "search.method_options"
        self._options = WindowsOptions.model_validate(checked(METHODS, "windows", settings.method_options, where))
        for key in settings.changed():
            if key in _OF_OTHERS:
                raise codes.UNUSED_SEARCH_KEY(where=f"search.{key}", method="windows", key=key)
        self._settings = settings
        # Queries and documents are prepared as for dtw.
        self._dtw = Dtw(settings.model_copy(update={"method": "dtw", "method_options": {}}))

    def matters(self) -> Any:
        """Distances with versions, options, and everything else that candidates depend on."""
        matters = self._settings.matters()
        return [self._options.model_dump(mode="json"), {key: matters[key] for key in matters if key not in _OF_OTHERS}]

    def plan(self, store: Store) -> Iterator[Unit]:
        """One unit per shard."""
        return self._dtw.plan(store)

    def weight(self, queries: int, examples: int, frames: int) -> int:
        """Number of query frames."""
        return self._dtw.weight(queries, examples, frames)

    def warm(self) -> None:
        """Load the compiled kernels."""
        from swsdist.methods.dtw.shard import distance_of
        from swsdist.methods.windows.search import warm

        warm(distance_of(*self._dtw.any_columns()))

    def prepare(self, queries: pa.Table, store: Store) -> list[Example]:
        """EXAMPLES, normalised and in fixed point."""
        return self._dtw.prepare(queries, store)(1)

    def search(self, queries: list[Example], store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """Coarse and fine search of some shards."""
        from swsdist.methods.dtw.shard import Documents, candidate_tables
        from swsdist.methods.windows.search import Limits, search

        documents = Documents.of(store, shards, self._settings)
        lengths = documents.table["frames"].to_numpy()
        shift, options = store.manifest.shift, self._options
        limits = Limits(
            lengths,
            np.array([options.windows.count(frames * shift) for frames in lengths.tolist()], np.int64),
            max(1, round(options.apart / shift)),
            documents.most,
            options.ends == "free",
        )
        matches = search(queries, documents.stream(), limits, documents.distance)
        return Result(
            (
                table
                for _, table in candidate_tables(documents.table, queries, matches, documents.distance.unit, buckets)
            ),
            len(matches.cost),
            sum(len(example.frames) for example in queries) * documents.searched,
            None,
            documents.saturated + sum(example.saturated for example in queries),
        )

    def rescore(self, queries: list[Example], store: Store, spans: pa.Table) -> pa.Table:
        """The best path in the windows of each span.

        A window begins every half query from the span's begin, and one ends with the span. A span shorter than the
        query is one window.
        """
        from swsdist.methods.windows.search import best_in

        free = self._options.ends == "free"

        def best(example: Example, document: Singles, place: slice, distance: Distance) -> tuple[int, int, int] | None:
            return best_in(example, document[place], distance, free=free)

        return best_in_spans(queries, store, spans, self._settings, best)
