"""Search of a group of queries in one shard of a store: tables in, a table out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.config.model import Search
from swsdist.features.statistics import Statistics
from swsdist.kernels.distances.interface import Distance
from swsdist.reduce.buckets import bucket_of
from swsdist.search.distance import distance_of, offset_and_scale
from swsdist.search.engine import Found, Settings, search
from swsdist.search.example import Example
from swsdist.store.reading import Block, Store
from swsdist.types import CANDIDATES


def search_shard(store: Store, shard: str, examples: list[Example], search_config: Search) -> tuple[pa.Table, Found]:
    """Candidates of the examples in the live documents of a shard.

    Returns:
        The shard's documents (a row each, in the order that `Found.document` counts), and what was found.

    Raises:
        DataError: the distance is one between posteriors, and a document's features are not.
    """
    documents = store.documents(shard)
    if search_config.documents_by == "document":
        own = [
            Statistics.from_variance(row["frames"], row["mean"], row["variance"])
            for row in documents.select(["frames", "mean", "variance"]).to_pylist()
        ]
    else:
        frozen = store.statistics()
        collection = frozen["collection", ""]
        by_speaker = search_config.documents_by == "speaker"
        own = [
            frozen.get(("speaker", name or ""), collection) if by_speaker else collection
            for name in documents["speaker"].to_pylist()
        ]
    keys = list(zip(documents["doc_id"].to_pylist(), documents["channel"].to_pylist(), strict=True))
    index = {key: k for k, key in enumerate(keys)}

    distance = distance_of(search_config, store.manifest.dimension)

    def prepared(blocks: Iterable[Block], k: int) -> Iterator[NDArray[np.float32]]:
        offset, scale = offset_and_scale(search_config, own[k])
        where = f"document {keys[k][0]}, channel {keys[k][1]}"
        return (distance.prepare(block.features, offset, scale, "document", where).frames for block in blocks)

    blocks = groupby(store.blocks(shard, set(keys)), key=lambda block: (block.doc_id, block.channel))
    stream = ((index[key], prepared(group, index[key])) for key, group in blocks)
    shift = store.manifest.shift
    most = np.array([search_config.candidates.count(frames * shift) for frames in documents["frames"].to_pylist()])
    return documents, search(examples, stream, most, engine_settings(search_config, distance, shift))


def engine_settings(search_config: Search, distance: Distance, shift: float) -> Settings:
    """What the engine needs of a config; as many threads as numba may use here (`run.worker` sets that)."""
    return Settings(
        distance,
        search_config.candidate_window,
        search_config.lanes,
        round(search_config.piece_seconds / shift),
        search_config.recurrence,
        search_config.product,
        numba.get_num_threads(),
    )


def candidate_tables(
    documents: pa.Table, examples: list[Example], found: Found, buckets: int
) -> Iterator[tuple[int, pa.Table]]:
    """What was found as tables of CANDIDATES, one a bucket that has any, by bucket.

    Within a table rows are by query, example, document and end frame, whatever the order in the store.
    """
    bucket = np.array([bucket_of(example.query_id, buckets) for example in examples], np.int32)
    length = np.array([len(example.frames) for example in examples], np.int32)
    doc_ids = documents["doc_id"].combine_chunks()
    order = np.empty(documents.num_rows, np.int64)
    order[pc.sort_indices(documents, [("doc_id", "ascending"), ("channel", "ascending")]).to_numpy()] = np.arange(
        documents.num_rows
    )
    names = pa.array([example.query_id for example in examples], pa.string())
    numbers = np.array([example.example for example in examples], np.int32)
    rank = np.empty(len(examples), np.int64)
    rank[sorted(range(len(examples)), key=lambda k: (examples[k].query_id, examples[k].example))] = np.arange(
        len(examples)
    )
    of_row = bucket[found.query]
    channels = documents["channel"].to_numpy()
    for number in np.unique(of_row):
        rows = np.flatnonzero(of_row == number)
        rows = rows[np.lexsort((found.end_frame[rows], order[found.document[rows]], rank[found.query[rows]]))]
        query, document = found.query[rows], found.document[rows]
        columns = [
            pa.array(of_row[rows]),
            names.take(pa.array(query)),
            pa.array(numbers[query]),
            doc_ids.take(pa.array(document)),
            pa.array(channels[document]),
            pa.array(found.end_frame[rows]),
            pa.array(found.frames[rows]),
            pa.array(found.cost[rows]),
            pa.array(length[query]),
        ]
        yield int(number), pa.Table.from_arrays(columns, schema=CANDIDATES)
