"""Columns of a store's documents that tasks use besides frames, read once per process and kept for later tasks.

A bucket of queries may have candidates in any document, so each task would otherwise read the complete table.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Values
from swsdist.reduce.source_places import WHERE
from swsdist.reduce.speakers import WHO, Speakers
from swsdist.stages.inputs.population import COLUMNS, POPULATION
from swsdist.store.reading import Store


def speakers_of(store: tuple[str, str], context: Context) -> Speakers:
    """Speakers of the documents in a state of a store.

    Args:
        store: its folder and the state's fingerprint.
        context: keeps the result.
    """

    def read() -> Speakers:
        there = Store.at(*store, storage=context.storage)
        return Speakers(there.documents(columns=list(WHO)), there.manifest.tick)

    return context.cached("speakers", store, read)


def places_of(store: tuple[str, str], context: Context) -> pa.Table:
    """Places of the documents of a state of a store: columns WHERE of DOCUMENTS; arguments as for `speakers_of`."""
    return context.cached("places", store, lambda: _documents(store, WHERE, context))


def population_at(population: Values, context: Context) -> pa.Table:
    """The scored population: POPULATION.

    Args:
        population: from `operating_point.population_for`.
        context: keeps the store's part.
    """
    store = population["store"]
    there = context.cached("population", store, lambda: _documents(store, COLUMNS, context))
    read = there.select(COLUMNS).append_column("read", pa.array(np.ones(there.num_rows, bool)))
    return pa.concat_tables([read.cast(POPULATION), pa.Table.from_pylist(population["unread"], POPULATION)])


def _documents(store: tuple[str, str], columns: Iterable[str], context: Context) -> pa.Table:
    return Store.at(*store, storage=context.storage).documents(columns=list(columns))
