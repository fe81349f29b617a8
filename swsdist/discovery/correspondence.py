"""Discriminants of words that recur: a projection under which the frames of two speakers' same words come close.

No labels are needed. Stretches of speech that are alike are found as the chain `discover` finds them (segments, sorted
signatures, local alignment), those of two speakers first, and their frames are paired along the best path. Differences of
paired frames give the covariance within sounds, W; all frames give the total one, T. Axes are the eigenvectors v of T v =
lambda W v, the largest lambda first, with v' W v = 1. Frames are spliced with their surroundings before.

Products are of integers, and documents stand in the order of their contents, so the same documents give the same model for
any division into tasks.

Sources: covariance within groups that are known to be alike (relevant component analysis): Bar-Hillel, Hertz, Shental and
Weinshall (2005), "Learning a Mahalanobis metric from equivalence constraints"; frames of discovered pairs as the lesson:
Jansen, Thomas and Hermansky (2013), "Weak top-down constraints for unsupervised acoustic model training".
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from swsdist.core.arrays import Floats, Ints, Singles
from swsdist.core.codes import features as codes
from swsdist.discovery.neighbours import (
    Match,
    Matching,
    Neighbours,
    Places,
    Segments,
    Stretches,
    best,
    both_ways,
    directions,
    joined,
    match,
    most_alike,
    near,
    ordered,
    signatures,
    starts,
    unique,
)
from swsdist.features.fitting.interface import Document, Model, Rounds, Step, Totals
from swsdist.features.fitting.moments import Sums, products
from swsdist.features.transforms.interface import Shape, spliced
from swsdist.features.transforms.project import MOST_COLUMNS, FittedProjection, Projection, directed, projection
from swsdist.kernels.alignment import aligned
from swsdist.kernels.distances.interface import Distance, create
from swsdist.kernels.products import local_distances

#: Pairs of frames with the mean variance of speech in every direction, added to those found: where little recurs, the axes are
#: principal components.
_PRIOR = 10_000

#: Of so many frames one is in the total covariance: neighbours are alike.
_EVERY = 8

#: The integer of 1 in `products`.
_UNITS = 1 << 24


#: Numbers of two documents, and a match of theirs.
Pair: TypeAlias = tuple[tuple[int, int], Match]


class Utterance(NamedTuple):
    """A document, in the order of contents: its speaker, and its speech, float32 (frames, columns)."""

    speaker: str | None
    frames: Singles


class Correspondence(FittedProjection):
    """The first discriminants of frames with their surroundings."""

    hours: Annotated[float, Field(gt=0, le=4)] = 0.5
    columns: Annotated[int, Field(ge=1)] = 100
    frames: Annotated[int, Field(ge=0, le=20)] = 5
    pairs: Annotated[int, Field(ge=1)] = 5000

    name: ClassVar[str] = "correspondence"
    version: ClassVar[int] = 1
    makes: ClassVar[str] = "discriminants"
    letter: ClassVar[str] = "w"

    @property
    def context(self) -> int:
        """Frames to either side."""
        return self.frames

    def read(self, model: Model) -> Projection:
        """The projection."""
        loaded, wide = super().read(model), 2 * self.frames + 1
        if len(loaded.mean) % wide:
            raise codes.WRONG_MODEL(name=model.name, wanted=f"a projection of {wide} frames side by side")
        return loaded

    def takes(self, loaded: Projection) -> int:
        """Number of columns of a frame before splicing."""
        return super().takes(loaded) // (2 * self.frames + 1)

    def shape(self, input_shape: Shape, loaded: Projection | None) -> Shape:
        """Features named by a letter and a number."""
        wide = Shape(input_shape.columns * (2 * self.frames + 1), input_shape.kind)
        if len(wide.columns) > MOST_COLUMNS:
            where = f"features.transforms: {self.name}, columns"
            raise codes.PROJECTION_TOO_LARGE(where=where, columns=len(wide.columns), highest=MOST_COLUMNS)
        return super().shape(wide, loaded)

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, input columns) to float32 (frames, columns)."""
        return super().apply(spliced(frames, self.frames))

    def rounds(self) -> Rounds:
        """One round, over all frames of speech."""
        return CorrespondenceRounds(self.columns, self.frames, self.pairs)

    def matters(self) -> dict[str, object]:
        """All options."""
        return self.model_dump(mode="json", exclude={"model"})


class CorrespondenceRounds:
    """One round: documents are collected, and the step does the rest.

    Args:
        columns, context, pairs: see `Correspondence`.
    """

    speech = True

    def __init__(self, columns: int, context: int, pairs: int) -> None:
        self.columns, self.context, self.pairs = columns, context, pairs

    def totals(self, model: Model | None, document: Document) -> Totals:
        """The document itself, under a name made of its content; a copy of a document adds to the same sum."""
        frames = np.concatenate(document.blocks)
        speaker = np.frombuffer((document.speaker or "").encode(), np.uint8).astype(np.int64)
        name = hashlib.sha256(speaker.tobytes() + frames.tobytes()).hexdigest()
        return {
            f"{name}.frames": frames.view(np.int32).astype(np.int64),
            f"{name}.speaker": speaker,
            f"{name}.count": np.ones(1, np.int64),
        }

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The projection."""
        documents = list(_documents(totals))
        sums = Sums.from_blocks([document.frames for document in documents], documents[0].frames.shape[1])
        mean, deviation = sums.mean_and_deviation()
        distance = create("cosine", len(mean))
        prepared = [distance.prepare(document.frames, mean, deviation, "document").frames for document in documents]
        pairs = recurring(prepared, [document.speaker for document in documents], self.pairs)
        many = 2 * self.context + 1
        mean, deviation = np.tile(mean, many), np.tile(deviation, many)
        axes = self._axes(documents, pairs, [_path(prepared, pair, distance) for pair in pairs], mean, deviation)
        return Step(projection(mean, directed(axes) / deviation[:, None], deviation), True)

    def _axes(
        self,
        documents: Sequence[Utterance],
        pairs: Sequence[Pair],
        paths: Sequence[Ints],
        mean: Floats,
        deviation: Floats,
    ) -> Floats:
        """Discriminants of spliced frames, whose mean and deviation are given."""
        from scipy.linalg import eigh

        size = len(mean)
        count = sum(map(len, paths))
        differences = (
            spliced(documents[left].frames, self.context, path[:, 0])
            - spliced(documents[right].frames, self.context, path[:, 1])
            for ((left, right), _), path in zip(pairs, paths, strict=True)
        )
        within = products(differences, np.zeros(size), deviation) / _UNITS
        every = [np.arange(0, len(document.frames), _EVERY) for document in documents]
        sample = (spliced(a.frames, self.context, b) for a, b in zip(documents, every, strict=True))
        total = products(sample, mean, deviation) / _UNITS / sum(map(len, every))
        prior = np.eye(size) * (_PRIOR * np.trace(total) / size or 1.0)
        # A difference has twice the variance of a frame.
        _, axes = eigh(total, (within + prior) / (2 * count + _PRIOR))
        return np.asarray(axes[:, ::-1][:, : self.columns], np.float64)


def recurring(frames: Sequence[Singles], speakers: Sequence[str | None], most: int) -> list[Pair]:
    """The best pairs of stretches that are alike, by numbers of documents: those of two speakers first, then of two documents.

    Args:
        frames: float32 (frames, columns) each, prepared for the cosine distance.
        speakers: of each; None or empty: unknown.
        most: pairs.
    """
    segments, neighbours, matching = Segments(), Neighbours(kept=1), Matching()
    documents = [Stretches(item, np.ones(len(item), np.bool_)) for item in frames]
    signs = directions(frames[0].shape[1], segments)
    first = [starts(document.spoken, segments) for document in documents]
    places = Places.of(
        np.repeat(np.arange(len(first), dtype=np.int32), [len(item) for item in first]),
        np.concatenate(first).astype(np.int32),
        np.concatenate([signatures(a.frames, b, signs, segments) for a, b in zip(documents, first, strict=True)]),
    )
    proposed = unique(
        joined([near(places, number, segments.frames, segments.hop, neighbours) for number in range(neighbours.orders)])
    )
    chosen = unique(ordered(most_alike(both_ways(proposed), neighbours.kept)))
    distance = create("cosine", frames[0].shape[1])
    matches: dict[tuple[int, int], list[Match]] = defaultdict(list)
    for a, b in zip(chosen.left.tolist(), chosen.right.tolist(), strict=True):
        left, right = int(places.document[a]), int(places.document[b])
        at, shift = (int(places.first[a]), int(places.first[b])), places.shift(a, b)
        hit = match(documents[left], documents[right], shift, at, segments.frames, distance, distance.unit, matching)
        if hit is not None:
            matches[left, right].append(hit)
    ranked = []
    for (left, right), items in matches.items():
        both_named = bool(speakers[left] and speakers[right])
        rank = 0 if both_named and speakers[left] != speakers[right] else 1 if left != right else 2
        for hit in best(items):
            length = hit.left[1] - hit.left[0] + hit.right[1] - hit.right[0]
            ranked.append((rank, -hit.score / length**0.5, (left, right), hit))
    return [(numbers, hit) for _, _, numbers, hit in sorted(ranked)[:most]]


def _path(frames: Sequence[Singles], pair: Pair, distance: Distance) -> Ints:
    """The best path of a pair: int64 (cells, 2), frames of both documents."""
    (left, right), hit = pair
    distances = local_distances(frames[left][slice(*hit.left)], frames[right][slice(*hit.right)], distance)
    _, path, places = aligned(distances)
    return np.array([hit.left[0], hit.right[0]], np.int64) + path[:places]


def _documents(totals: Totals) -> Iterator[Utterance]:
    for name in sorted(key.removesuffix(".count") for key in totals if key.endswith(".count")):
        count = int(totals[f"{name}.count"][0])
        speaker = bytes((totals[f"{name}.speaker"] // count).astype(np.uint8)).decode()
        frames = (totals[f"{name}.frames"] // count).astype(np.int32).view(np.float32)
        yield Utterance(speaker or None, frames)
