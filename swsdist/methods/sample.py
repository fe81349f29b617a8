"""The sample of documents that a search with a first pass searches exactly, for the statistics of calibration.

A first pass proposes a query's best matches, whose mean is not that of the collection. So documents are drawn by a hash
of their names, independent of shards, and searched exactly; statistics are over their candidates alone.

The documents that a codebook is fitted on, and the names of codebooks and codes, are defined here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from swsdist.config.search import Search
from swsdist.core.arrays import Bools
from swsdist.core.fingerprint import fingerprint, stable_hash
from swsdist.kernels.coding import coded_documents
from swsdist.registry.registries import FIRST_PASSES
from swsdist.store.reading import Store, Tracks

#: Limit of all documents.
EVERYTHING = 1 << 64

#: Documents of a sample that are expected at least: with 8, one store in 3000 has none.
_FEWEST = 8


def document_hash(doc_id: str, channel: int) -> int:
    """The 64-bit hash by which documents are drawn; it depends on their names, not on paths and shards."""
    return stable_hash(f"{doc_id} {channel}")


def sample_limit(search: Search, counts: Mapping[str, float]) -> int | None:
    """The limit of the sample of a first pass; None: there is no sample, and statistics are over all candidates.

    Args:
        search: names the first pass.
        counts: of the store's manifest: documents and seconds.
    """
    first_pass = search.first_pass
    if first_pass.name == "none" or not first_pass.sample:
        return None
    return limit_of(first_pass.sample, counts)


def limit_of(wanted: float, counts: Mapping[str, float]) -> int:
    """The hash below which documents are in the sample.

    Their share is a power of two, so that it changes only when a collection doubles: the largest share whose expected
    duration is at most `wanted`, but of more than `_FEWEST` documents.

    Args:
        wanted: seconds of audio in the sample.
        counts: of the store's manifest: documents and seconds.
    """
    seconds, documents, halvings = counts["seconds"], counts["documents"], 0
    while seconds > wanted and documents > 2 * _FEWEST:
        seconds, documents, halvings = seconds / 2, documents / 2, halvings + 1
    return EVERYTHING >> halvings


def in_sample(table: pa.Table, limit: int) -> Bools:
    """Whether the document of each row is in the sample, bool (rows,).

    Args:
        table: columns doc_id and channel.
        limit: of `sample_limit`.
    """
    if not table.num_rows:
        return np.zeros(0, bool)
    documents, row = coded_documents(table)
    return np.array([document_hash(*document) < limit for document in documents], bool)[row]


#: Number of documents.
_DOCUMENTS = 64


def landmark_documents(keys: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The documents whose keys (doc_id, channel) have the smallest hashes.

    The path of a document does not matter. A document that is added to n - 1 others is chosen with probability 64 / n.
    """
    return sorted(keys, key=lambda key: (document_hash(*key), key))[:_DOCUMENTS]


def codebook_name(store: Store, search: Search) -> str:
    """Name of the pinned model with the codebook of a first pass, from all their dependencies except the documents."""
    options = search.first_pass.complete()
    made_by = FIRST_PASSES.identity(search.first_pass.name)
    recipe = [made_by, options["factor"], options["bytes"], search.matters()["distance"], search.documents_by]
    return f"codebook.{fingerprint('codebook', 1, *recipe, Tracks(store).recipes)}"


def codebook_file(store: Store, search: Search) -> str | None:
    """The store's file of the pinned codebook; None if there is none."""
    return store.manifest.models.get(codebook_name(store, search))


def contents(store: Store, search: Search, shards: Sequence[str]) -> dict[str, str]:
    """For each shard, the fingerprint of what its prepared frames depend on.

    These are its documents in order, the statistics, and the limit of the sample.
    """
    tracks, by_shard = Tracks(store), dict[str, list[object]]()
    columns = ["doc_id", "channel", "sha256", "speaker", "shard"]
    for row in tracks.documents(columns=columns).to_pylist():
        by_shard.setdefault(row.pop("shard"), []).append(list(row.values()))
    common = [
        [*scope, value.mean.tolist(), value.variance.tolist()]
        for scope, value in sorted(tracks.statistics().items(), key=lambda item: item[0])
        if search.documents_by == "speaker" or (search.documents_by, scope[0]) == ("collection", "collection")
    ]
    limit = sample_limit(search, store.manifest.counts)
    return {shard: fingerprint(shard, by_shard.get(shard, []), common, limit) for shard in shards}


def codes_name(codebook: str, content: str) -> str:
    """File of a shard's codes in its store.

    Args:
        codebook: `codebook_file`, which is named by its content.
        content: of the shard, from `contents`.
    """
    return f"codes/part-{fingerprint('codes', 2, codebook, content)}.parquet"
