"""The integers that stand for distances, for who must know them without loading the kernels.

A local distance has 12 bits. `UNITS` names, for each distance, the integer that stands for a distance of 1.
"""

from __future__ import annotations

#: Largest local distance.
MAX_DISTANCE = 4095

#: Frames of a query: what a packed 64-bit state holds with ease.
LONGEST_QUERY = 1 << 20

#: Distance -> the integer that stands for a distance of 1.
UNITS = {"cosine": 2048, "cosine-squared": 1024}
