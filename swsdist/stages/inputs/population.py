"""The scored population: all documents of a corpus, readable or not.

Trials (seconds, segments, documents), true occurrences, pairs, and queries that every document contains are all counted
in it. So an unreadable document affects measures like one that is searched without hits.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.types import DOCUMENTS
from swsdist.corpora.places import is_placed, stretches
from swsdist.stages.inputs.corpus_documents import places_in
from swsdist.store.document_keys import keys_of
from swsdist.store.reading import Store

#: Columns of a store's documents in use.
COLUMNS = ["doc_id", "channel", "recording", "start", "duration"]

#: `recording` and `start` (s) are null if a document is a recording of its own; `duration` (s) is measured, or, for an
#: unreadable document, from the corpus, or null; `read`: whether the store has it. The table is used unless the audio
#: contradicts it, so an ECF of the same corpus has the same numbers.
POPULATION = pa.schema(
    [
        *(DOCUMENTS.field(name).with_nullable(name not in COLUMNS[:2]) for name in COLUMNS),
        pa.field("read", pa.bool_(), False),
    ]
)


#: Tolerance of durations, s and relative: tables are rounded, and decoders pad.
_ROUNDED, _PART = 0.1, 0.01


def agree(stated: NDArray[np.float64], measured: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether stated durations (s) agree with measured ones; false for NaN (not stated)."""
    return np.less_equal(np.abs(stated - measured), np.maximum(_ROUNDED, _PART * measured))


def population_of(documents: pa.Table, store: Store | None) -> pa.Table:
    """The population of a corpus: POPULATION, in its order.

    Args:
        documents: CORPUS or PLACED.
        store: documents read so far; None before indexing.
    """
    placed, nulls = is_placed(documents), pa.nulls(documents.num_rows, pa.string())
    stated = pc.subtract(documents["end"], documents["start"]) if placed else documents["duration"]
    lengths, read = stated.to_numpy().copy(), np.zeros(documents.num_rows, bool)  # NaN where the table does not say
    if store is not None:
        table = store.documents(columns=["doc_id", "channel", "duration"])
        keys = keys_of(documents["doc_id"], documents["channel"])
        at = places_in(keys, keys_of(table["doc_id"], table["channel"]))
        read = at >= 0
        measured = np.append(table["duration"].to_numpy(), np.nan)[at]
        wrong = read & ~agree(lengths, measured)
        lengths[wrong] = measured[wrong]
    columns = {
        "doc_id": documents["doc_id"],
        "channel": documents["channel"],
        "recording": documents["recording"] if placed else nulls,
        "start": documents["start"] if placed else nulls.cast(pa.float64()),
        "duration": pa.array(lengths, pa.float64(), mask=np.isnan(lengths)),
        "read": pa.array(read),
    }
    return pa.table(columns, schema=POPULATION)


def seconds_of_channel_1(population: pa.Table) -> float:
    """Seconds of audio, of channel 1 only, as in STDEval; overlaps between places in a recording count once.

    Unreadable documents without a stated duration count as zero.
    """
    lengths = spans_of(population.filter(pc.equal(population["channel"], 1)))["duration"]
    return round(math.fsum(lengths.to_pylist()), 6)


def spans_of(population: pa.Table) -> pa.Table:
    """Searchable spans: doc_id, channel, start, duration (s); for places in recordings, by recording."""
    with_duration = population.filter(pc.is_valid(population["duration"]))
    if with_duration["recording"].null_count == with_duration.num_rows:
        return with_duration.select(["doc_id", "channel", "duration"])
    return stretches(with_duration)
