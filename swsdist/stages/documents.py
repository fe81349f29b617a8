"""What tasks want to know of a store's documents beside their frames, read once a process and kept for the tasks that follow.

A task is of one bucket of queries, and its candidates may be of any document: so each would read the whole table again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Values
from swsdist.reduce.places import WHERE
from swsdist.reduce.talkers import WHO, Talkers
from swsdist.stages.inputs.population import COLUMNS, POPULATION
from swsdist.store.reading import Store

T = TypeVar("T")


def talkers_of(store: Sequence[str], context: Context) -> Talkers:
    """Who speaks in the documents of a state of a store.

    Args:
        store: its folder and the state's fingerprint.
        context: keeps them.
    """
    return _kept("talkers", store, context, lambda there: Talkers(there.documents(columns=list(WHO))))


def places_of(store: Sequence[str], context: Context) -> pa.Table:
    """Where the documents of a state of a store lie in recordings: columns WHERE of DOCUMENTS; arguments as of `talkers_of`."""
    return _kept("places", store, context, lambda there: there.documents(columns=list(WHERE)))


def population_at(population: Values, context: Context) -> pa.Table:
    """The population that is scored: POPULATION.

    Args:
        population: as `point.population_for` gives it.
        context: keeps what is in the store.
    """
    there = _kept("population", population["store"], context, lambda there: there.documents(columns=COLUMNS))
    read = there.select(COLUMNS).append_column("read", pa.array(np.ones(there.num_rows, bool)))
    return pa.concat_tables([read.cast(POPULATION), pa.Table.from_pylist(population["unread"], POPULATION)])


def _kept(name: str, store: Sequence[str], context: Context, make: Callable[[Store], T]) -> T:
    """Of one state of one store at a time, so that memory does not grow with the stores that a process has seen."""
    root, state = store
    of, made = context.memory.get(name, (None, None))
    if of != (root, state):
        made = make(Store.at(root, state, storage=context.storage))
        context.memory[name] = ((root, state), made)
    kept: T = made
    return kept
