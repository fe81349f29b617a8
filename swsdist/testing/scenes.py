"""Small inputs computed from integers, for conformance suites and golden digests: the same on every machine.

Numbers are of Knuth's MMIX generator, not of a library. Features are integers, or probabilities in 256ths, held in
float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from swsdist.core.arrays import Bools, Ints, Singles
from swsdist.kernels.distances.interface import Distance, Side
from swsdist.methods.dtw.search import Matches
from swsdist.methods.first_pass.codebook import Codebook, Landmarks, fit
from swsdist.methods.first_pass.interface import Documents, Material
from swsdist.methods.query.example import Example, averaged

Frames = Singles


def numbers(seed: int) -> Iterator[int]:
    """Integers of 0..32767: the upper 15 bits of x' = 6364136223846793005 x + 1442695040888963407 modulo 2^64."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 49


def table(seed: int, rows: int, columns: int, below: int) -> Ints:
    """Integers of 0..below-1, int64 (rows, columns)."""
    drawn = np.fromiter(islice(numbers(seed), rows * columns), np.int64, rows * columns)
    return drawn.reshape(rows, columns) % below


def features(seed: int, frames: int, dimension: int) -> Frames:
    """Integers of -500..500, float32 (frames, dimension)."""
    return np.asarray(table(seed, frames, dimension, 1001) - 500, np.float32)


def posteriors(seed: int, frames: int, dimension: int) -> Frames:
    """Probabilities in 256ths that sum to 1, some of them 0, float32 (frames, dimension)."""
    weights = table(seed, frames, dimension, 101) ** 2 + 1
    parts = 256 * weights // weights.sum(axis=1, keepdims=True)
    parts[:, 0] += 256 - parts.sum(axis=1)
    return np.asarray(parts / 256, np.float32)


def spoken(seed: int, sounds: int, dimension: int) -> Frames:
    """Sounds of six frames each with little noise, suitable for a coarse pass: float32 (6 sounds, dimension)."""
    repeated = np.repeat(features(seed, sounds, dimension), 6, axis=0)
    return np.asarray(repeated + features(seed + 1, 6 * sounds, dimension) // 16, np.float32)


def prepared(distance: Distance, values: Frames, side: Side) -> Frames:
    """Prepare frames for a distance, without normalisation."""
    return distance.prepare(values, np.zeros(distance.dimension), np.ones(distance.dimension), side).frames


def material(
    distance: Distance, queries: list[Frames], documents: list[Frames], window: int = 4, most: int = 3
) -> Material:
    """A collection in memory as input of a first pass; a frame is 10 ms.

    Args:
        distance: of the features.
        queries, documents: features of each.
        window: a candidate has the least cost within this many frames on either side.
        most: candidates kept per query and document.
    """

    def examples(factor: int) -> list[Example]:
        averaged_queries = [np.concatenate(list(averaged([query], factor))) for query in queries]
        return [Example(f"q{k}", 1, prepared(distance, item, "query")) for k, item in enumerate(averaged_queries)]

    def streams(factor: int, chosen: Bools | None) -> Documents:
        for k, document in enumerate(documents):
            if chosen is None or chosen[k]:
                blocks = np.array_split(document, 1 + len(document) // 37)
                yield k, [prepared(distance, block, "document") for block in averaged(blocks, factor)]

    def codebook(factor: int, size: int) -> Codebook:
        frames = features(99, 256, distance.dimension)
        sides = Landmarks(prepared(distance, frames, "query"), prepared(distance, frames, "document"))
        return fit(sides, distance, size)

    lengths = np.array([len(document) for document in documents], np.int64)
    kept = np.full(len(documents), most, np.int64)
    return Material(examples, streams, lengths, kept, 0.01, distance, window, kept < 0, lambda: (), codebook)


def rows(candidates: Matches) -> list[tuple[int, ...]]:
    """Candidates as tuples: example, document, end frame, frames, cost."""
    return list(
        zip(
            *(
                column.tolist()
                for column in (
                    candidates.query,
                    candidates.document,
                    candidates.end_frame,
                    candidates.frames,
                    candidates.cost,
                )
            ),
            strict=True,
        )
    )
