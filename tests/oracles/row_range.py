"""What the row range means, written plainly: the kernels are held against it."""

from __future__ import annotations


def row_range(distances: list[list[int]]) -> list[list[int]]:
    """Distances of each query frame to a document's frames, 0..4095 from their least to their greatest."""
    return [_spread(row) for row in distances]


def _spread(row: list[int]) -> list[int]:
    low, width = min(row), max(max(row) - min(row), 1)
    scale = (4095 * 2**19 + width // 2) // width
    return [((d - low) * scale + 2**18) // 2**19 for d in row]
