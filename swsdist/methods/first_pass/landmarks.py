"""Choose the documents of landmarks, without loading kernels, since planning uses it."""

from __future__ import annotations

from collections.abc import Sequence

from swsdist.config.search import Search
from swsdist.core.fingerprint import fingerprint
from swsdist.methods.sample import document_hash, sample_limit
from swsdist.registry.registries import FIRST_PASSES
from swsdist.store.reading import Store, Tracks

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
    """For each shard, the fingerprint of the dependencies of its prepared frames: its documents in order, statistics, and
    which of them are in the sample.
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
