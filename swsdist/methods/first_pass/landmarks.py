"""This module chooses the documents that landmarks are taken from. It loads no kernels, for planning uses it."""

from __future__ import annotations

from collections.abc import Sequence

from swsdist.fingerprint import stable_hash

#: So many.
_DOCUMENTS = 64


def landmark_documents(keys: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those whose keys (doc_id, channel) have the least hashes.

    The path of a document does not matter. A document that is added to n - 1 others is chosen with probability 64 / n.
    """
    return sorted(keys, key=lambda key: (stable_hash(f"{key[0]} {key[1]}"), key))[:_DOCUMENTS]
