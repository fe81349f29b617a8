"""Which documents landmarks are taken of. Loads no kernels: planning must know them."""

from __future__ import annotations

from collections.abc import Sequence

from swsdist.fingerprint import stable_hash

#: So many.
_DOCUMENTS = 64


def landmark_documents(keys: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those whose keys (doc_id, channel) have the least hashes.

    Where documents lie is of no account, and of n that are there one that is added becomes one of them in 64 of n cases.
    """
    return sorted(keys, key=lambda key: (stable_hash(f"{key[0]} {key[1]}"), key))[:_DOCUMENTS]
