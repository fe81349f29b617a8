"""Names that follow from content.

A fingerprint names a piece of work, and so its outputs: the hash of all that the outputs depend on. Equal fingerprints mean
equal bytes, so a file that is there already need not be made again.
"""

from __future__ import annotations

import hashlib
import json


def fingerprint(*parts: object) -> str:
    """32 hexadecimal digits of the SHA-256 of some JSON values; the order of a mapping's keys does not matter."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stable_hash(text: str) -> int:
    """A 64-bit number that is the same on every machine and in every process (blake2b)."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
