"""How documents are cut into shards: consecutive ones, whole, up to a target length."""

from __future__ import annotations

from collections.abc import Sequence


def cut(seconds: Sequence[float], target: float, shards: int | None = None) -> list[range]:
    """Consecutive ranges of documents.

    A shard is closed once it reaches the target, so it may pass it by one document.

    Args:
        seconds: length of each document.
        target: s of audio that a shard aims at.
        shards: cut into this many instead, as equal as whole documents allow (fewer where there are fewer documents).
    """
    if shards is not None:
        target = sum(seconds) / shards
    ranges: list[range] = []
    first, filled, passed = 0, 0.0, 0.0
    for k, length in enumerate(seconds):
        filled += length
        goal = target * (len(ranges) + 1) - passed if shards is not None else target
        if filled >= goal * (1 - 1e-9):
            ranges.append(range(first, k + 1))
            passed += filled if shards is not None else 0.0
            first, filled = k + 1, 0.0
    if first < len(seconds):
        ranges.append(range(first, len(seconds)))
    return ranges
