"""Which part of the reduce a query belongs to."""

from __future__ import annotations

from swsdist.fingerprint import stable_hash


def bucket_of(query_id: str, buckets: int) -> int:
    """A stable hash of the id modulo the number of buckets: the same on every machine."""
    return stable_hash(query_id) % buckets
