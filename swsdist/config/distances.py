"""The local distances by the names they have in configs, and what of a config each takes.

What they are stands in docs/concepts/exact-numbers.md; the kernels know how (`swsdist.kernels.distances`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: What `search.distance` and `search.streams` allow.
DistanceName = Literal[
    "cosine",
    "cosine-squared",
    "bhattacharyya",
    "bhattacharyya-squared",
    "log-posterior-cosine",
    "log-posterior-cosine-squared",
    "kl",
    "kl-symmetric",
    "inner-product",
    "euclidean",
    "euclidean-squared",
]


class Takes(NamedTuple):
    """What a distance takes.

    Attributes:
        posteriors: the features must be probabilities, which no normalisation leaves as they are.
        least_floor: the least `floor`, None where the distance has none.
        cap: whether it has a `cap`.
    """

    posteriors: bool = False
    least_floor: float | None = None
    cap: bool = False


TAKES: dict[DistanceName, Takes] = {
    "cosine": Takes(),
    "cosine-squared": Takes(),
    "bhattacharyya": Takes(posteriors=True),
    "bhattacharyya-squared": Takes(posteriors=True),
    "log-posterior-cosine": Takes(posteriors=True, least_floor=1e-10),
    "log-posterior-cosine-squared": Takes(posteriors=True, least_floor=1e-10),
    "kl": Takes(posteriors=True, least_floor=1e-10),
    "kl-symmetric": Takes(posteriors=True, least_floor=1e-10),
    "inner-product": Takes(posteriors=True, least_floor=1e-4),
    "euclidean": Takes(cap=True),
    "euclidean-squared": Takes(cap=True),
}
