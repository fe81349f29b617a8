"""Similar pairs of segments in a collection, their alignment, and the boundaries of words.

Segments are stretches of one length. A segment's vector is the sums of frames of its parts, one after the other. Its
signature has a bit for each of some random directions of signs: the sign of the vector's product with it. The share of
equal bits of two signatures estimates the angle between the vectors (Charikar 2002). Frames are integers
(`swsdist.kernels.distances.interface`), so products are exact in float64, in any order.

Pairs are found by sorting signatures, at a cost of n log n of the collection. (`by: exact` finds them by search:
`swsdist.chains.discover.propose_pairs`.) Signatures are sorted by 64 of their bits in a random order, so that segments
that agree in the first of them are near each other; each is compared with those after it. Several orders find what a
single order misses (Jansen and Van Durme 2011). Of segments as short as a frame many pairs are similar by chance. `by:
diagonals` keeps those with enough similar pairs on the diagonal through them (as that paper's median filter does), and
takes a pair of each line of these (its Hough transform).

Matches are two stretches that are similar from their first frames to their last: around two segments with similar
signatures the best local alignment of the frames' distances gives their begins and ends (`swsdist.kernels.alignment`).
Of matches of the same places the best is kept.

Boundaries are frames at which words may begin and end. Speech is loud in vowels and soft in consonants. Where syllables
end in vowels, loudness falls into the consonant of the next syllable, which begins about halfway down the fall. Words
begin and end at such falls, or beside pauses. Loudness is an integer per frame, so that sums are exact.

Sources: Charikar 2002, "Similarity estimation techniques from rounding algorithms"; Jansen and Van Durme 2011,
"Efficient spoken term discovery using randomized algorithms".
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from swsdist.audio.speech import stretches
from swsdist.config.section import Section
from swsdist.core.arrays import Bools, Floats, Ints, Singles
from swsdist.core.codes import families
from swsdist.kernels.alignment import align_locally
from swsdist.kernels.arithmetic import MAX_DISTANCE
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.products import local_distances

#: Pairs that are compared at a time.
_HELD = 1 << 17

#: Options of some ways only.
_ONLY = {
    **dict.fromkeys(("orders", "beam", "unlike"), ("segments", "diagonals")),
    **dict.fromkeys(("window", "share", "width", "points"), ("diagonals",)),
    "every": ("exact",),
    "kept": ("segments", "exact"),
}


class Neighbours(Section):
    """Settings of the proposal of pairs of segments."""

    by: Literal["segments", "diagonals", "exact"] = Field(
        "segments",
        description="segments: near each other in sorted orders of signatures; diagonals: likewise, and most segments beside "
        "them are alike too; exact: DTW of segments through all documents",
    )
    orders: int = Field(16, ge=1, description="segments, diagonals: sorted orders")
    beam: int = Field(20, ge=1, description="segments, diagonals: next segments of an order that each is compared with")
    unlike: float = Field(
        0.34, gt=0, lt=1, description="segments, diagonals: greatest share of bits in which two segments differ"
    )
    window: int = Field(
        25, ge=1, description="diagonals: segments around a pair, one hop from the next, that are compared"
    )
    share: float = Field(0.5, gt=0, le=1, description="diagonals: least share of them that are alike")
    width: int = Field(3, ge=1, description="diagonals: hops between diagonals that make one line")
    points: int = Field(3, ge=1, description="diagonals: least pairs of a line")
    every: int = Field(5, ge=1, description="exact: one segment in so many is searched")
    kept: int = Field(3, ge=1, description="segments, exact: pairs kept of a segment: the most alike")

    @model_validator(mode="after")
    def _used(self) -> Neighbours:
        for key in self.model_dump(exclude_defaults=True):
            if key in _ONLY and self.by not in _ONLY[key]:
                raise families.UNUSED_OPTION.saying(
                    "`by: {by}` has no use for {key}", "remove it, or choose another `by`"
                ).invalid(key=key, by=self.by)
        return self


class Places(NamedTuple):
    """Segments in the order of documents: number of the document, first frame, signature; and their times, which are far
    apart in two recordings.
    """

    document: NDArray[np.int32]
    first: NDArray[np.int32]
    signature: NDArray[np.uint8]
    time: Ints

    @classmethod
    def of(
        cls,
        document: NDArray[np.int32],
        first: NDArray[np.int32],
        signature: NDArray[np.uint8],
        recording: NDArray[np.int32] | None = None,
        origin: NDArray[np.int32] | int = 0,
    ) -> Places:
        """Segments of documents that begin at a frame of a recording; by default each is one."""
        number = document if recording is None else recording
        return cls(document, first, signature, (number.astype(np.int64) << 32) + origin + first)

    def apart(self, left: NDArray[np.int32], right: NDArray[np.int32], least: int) -> Bools:
        """Which pairs are of two recordings, or have first frames so far from each other."""
        return np.asarray(np.abs(self.time[left] - self.time[right]) >= least, np.bool_)

    def shift(self, left: int, right: int) -> int | None:
        """Frames by which the document of one segment begins before that of another in their recording; None: of two."""
        begin, other = (int(self.time[segment] - self.first[segment]) for segment in (left, right))
        return other - begin if other >> 32 == begin >> 32 else None


class Pairs(NamedTuple):
    """Pairs of segments by number, and how unlike the two are: bits in which they differ, or the cost of a path."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    unlike: NDArray[np.int32]

    def take(self, chosen: Ints | Bools) -> Pairs:
        """Some of the pairs, by number or mask."""
        return Pairs(*(column[chosen] for column in self))


def order_of(bits: int, number: int) -> Ints:
    """64 of the bits of a signature, in an order that is the same on any machine."""
    keys = hashlib.shake_256(f"order {bits} {number}".encode()).digest(8 * bits)
    return np.argsort(np.frombuffer(keys, ">u8"), kind="stable")[:64]


def near(places: Places, number: int, apart: int, hop: int, options: Neighbours) -> Pairs:
    """Pairs that stand near each other in one order, the lesser segment first.

    Args:
        places: all segments.
        number: of the order.
        apart: least frames between the first frames of two segments of a document.
        hop: frames from one segment to the next.
    """
    bits = places.signature.shape[1] * 8
    chosen = order_of(bits, number)
    key = np.zeros(len(places.first), np.uint64)
    for bit in chosen:
        key = key << np.uint64(1) | (places.signature[:, bit // 8] >> np.uint8(7 - bit % 8) & np.uint8(1))
    order = np.argsort(key, kind="stable").astype(np.int32)
    words = places.signature.view(np.uint64)
    most = int(options.unlike * bits)
    grid = Grid.of(places, hop, options.window) if options.by == "diagonals" else None
    pieces: list[Pairs] = []
    for step in range(1, min(options.beam, len(order) - 1) + 1):
        for k in range(0, len(order) - step, _HELD):
            left, right = order[k : min(k + _HELD, len(order) - step)], order[k + step : k + step + _HELD]
            differ = np.bitwise_count(words[left] ^ words[right]).sum(axis=1, dtype=np.int32)
            good = (differ <= most) & places.apart(left, right, apart)
            pairs = ordered(Pairs(left[good], right[good], differ[good]))
            if grid is not None:
                pairs = pairs.take(grid.alike(pairs, most) >= options.share * (2 * grid.half + 1))
            pieces.append(pairs)
    return unique(joined(pieces))


class Grid(NamedTuple):
    """Signatures of all hops of the documents, and room around them, so that a diagonal is a run of neighbours.

    Attributes:
        place: int64 (segments,), of each segment.
        words: uint64 (hops, bits / 64), signatures.
        held: bool (hops,), where there is a segment.
        half: hops before, and after, each document at least.
    """

    place: Ints
    words: NDArray[np.uint64]
    held: Bools
    half: int

    @classmethod
    def of(cls, places: Places, hop: int, window: int) -> Grid:
        """The grid for diagonals of `window` hops, or one more if that is even."""
        half, at = window // 2, places.first.astype(np.int64) // hop
        last = np.flatnonzero(np.diff(places.document, append=-1))
        edges = half + np.concatenate([[0], np.cumsum(at[last] + 1 + half)])
        place = at + edges[np.searchsorted(last, np.arange(len(at)))]
        words = np.zeros((edges[-1], places.signature.shape[1] // 8), np.uint64)
        words[place] = places.signature.view(np.uint64)
        held = np.zeros(len(words), np.bool_)
        held[place] = True
        return cls(place, words, held, half)

    def alike(self, pairs: Pairs, most: int) -> NDArray[np.int16]:
        """How many pairs of the diagonal through each pair, itself included, differ in at most so many bits: the sum whose
        threshold is a median filter (Jansen and Van Durme 2011).
        """
        count = np.zeros(len(pairs.left), np.int16)
        left, right = self.place[pairs.left], self.place[pairs.right]
        for k in range(-self.half, self.half + 1):
            differ = np.bitwise_count(self.words[left + k] ^ self.words[right + k]).sum(axis=1, dtype=np.int32)
            count += (differ <= most) & self.held[left + k] & self.held[right + k]
        return count


def lines(places: Places, pairs: Pairs, hop: int, options: Neighbours) -> Pairs:
    """The middle pair of each line of at least `points` pairs.

    A line is of two documents, within `width` diagonals (as cells of a Hough transform are), and no two pairs that follow
    each other in it are more than `window` hops apart.

    Args:
        pairs: each once, the lesser first.
    """
    document, first = places.document, places.first
    left, right = document[pairs.left], document[pairs.right]
    diagonal = (first[pairs.right] - first[pairs.left]) // (options.width * hop)
    order = np.lexsort((pairs.right, first[pairs.left], diagonal, right, left))
    new = np.ones(len(order), np.bool_)
    new[1:] = np.diff(first[pairs.left][order]) > options.window * hop
    for column in (diagonal, right, left):
        new[1:] |= np.diff(column[order]) != 0
    begin = np.flatnonzero(new)
    count = np.diff(begin, append=len(order))
    return pairs.take(order[(begin + count // 2)[count >= options.points]])


def joined(pieces: Sequence[Pairs]) -> Pairs:
    """Pairs one after the other."""
    none = np.empty(0, np.int32)
    return Pairs(*map(np.concatenate, zip(Pairs(none, none, none), *pieces, strict=True)))


def unique(pairs: Pairs) -> Pairs:
    """Each pair once, ascending, with its least dissimilarity."""
    key = pairs.left.astype(np.int64) << 32 | pairs.right
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    return pairs.take(order[first])._replace(unlike=np.minimum.reduceat(pairs.unlike[order], first))


def ordered(pairs: Pairs) -> Pairs:
    """Pairs with the lesser segment first."""
    return Pairs(np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right), pairs.unlike)


def both_ways(pairs: Pairs) -> Pairs:
    """Each pair, and once more with its segments exchanged."""
    return joined([pairs, Pairs(pairs.right, pairs.left, pairs.unlike)])


def most_alike(pairs: Pairs, kept: int) -> Pairs:
    """The `kept` most similar pairs of each left segment, of equal ones those with the lesser right segment."""
    pairs = pairs.take(np.lexsort((pairs.right, pairs.unlike, pairs.left)))
    left, rank = pairs.left, np.arange(len(pairs.left))
    return pairs.take(rank - np.searchsorted(left, left) < kept)


class Matching(Section):
    """Settings of the alignment of two stretches."""

    level: float = Field(
        0.6,
        gt=0,
        description="local distance that neither adds to a match nor takes from it; 1: of frames without likeness",
    )
    gap: float = Field(0.25, ge=0, description="cost of a frame of one stretch without one of the other")
    band: int = Field(10, ge=0, description="frames by which a match may leave the diagonal of its segments")
    reach: int = Field(40, ge=0, description="frames before and after its segments in which a match may begin and end")
    frames: int = Field(30, ge=1, description="frames of the shortest match, on both sides")


class Match(NamedTuple):
    """Two stretches, first and last + 1 each, and the score: the sum of what frames are closer than the level."""

    left: tuple[int, int]
    right: tuple[int, int]
    score: int


class Stretches(NamedTuple):
    """A document's frames, prepared for one side, float32 (frames, columns), and which are speech, bool (frames,)."""

    frames: Singles
    spoken: Bools


def match(
    left: Stretches,
    right: Stretches,
    shift: int | None,
    first: tuple[int, int],
    frames: int,
    distance: Distance,
    unit: int,
    options: Matching,
) -> Match | None:
    """The match of two segments; None: it is too short.

    Args:
        left, right: their documents, the left prepared as a query.
        shift: frames by which the left document begins before the right one in their recording; None: of two recordings.
        first: their first frames.
        frames: of a segment.
        unit: the integer that represents a distance of 1 in every stream.
    """
    begin = [max(0, frame - options.reach) for frame in first]
    ends = [frame + frames + options.reach for frame in first]
    rows, columns = slice(begin[0], ends[0]), slice(begin[1], ends[1])
    distances = local_distances(left.frames[rows], right.frames[columns], distance)
    distances[~left.spoken[rows]] = MAX_DISTANCE
    distances[:, ~right.spoken[columns]] = MAX_DISTANCE
    if shift is not None:  # a match overlaps itself nowhere
        times = np.arange(len(distances)) + begin[0], np.arange(distances.shape[1]) + begin[1] + shift
        apart = np.abs(times[0][:, None] - times[1])
        distances[apart < max(frames, options.frames)] = MAX_DISTANCE
    place = np.empty(5, np.int64)
    diagonal = (first[1] - begin[1]) - (first[0] - begin[0])
    align_locally(distances, diagonal, options.band, round(options.level * unit), round(options.gap * unit), place)
    score, *edges = place.tolist()
    if min(edges[1] - edges[0], edges[3] - edges[2]) < options.frames:
        return None
    stretch, opposite = (begin[0] + edges[0], begin[0] + edges[1]), (begin[1] + edges[2], begin[1] + edges[3])
    if shift is not None and stretch[1] > opposite[0] + shift and opposite[1] + shift > stretch[0]:
        return None
    return Match(stretch, opposite, score)


def best(matches: list[Match]) -> list[Match]:
    """Matches of two documents that no better match overlaps by more than half on both sides, best first."""
    result: list[Match] = []
    for item in sorted(set(matches), key=lambda item: (-item.score, item.left, item.right)):
        if not any(_same(item.left, better.left) and _same(item.right, better.right) for better in result):
            result.append(item)
    return result


def _same(left: tuple[int, int], right: tuple[int, int]) -> bool:
    common = min(left[1], right[1]) - max(left[0], right[0])
    return 2 * common > min(left[1] - left[0], right[1] - right[0])


#: Segments whose vectors are held at a time.
_SEGMENTS_HELD = 1024


class Segments(Section):
    """Settings of segments."""

    frames: int = Field(50, ge=1, description="frames of a segment")
    hop: int = Field(5, ge=1, description="frames from one segment to the next")
    parts: int = Field(10, ge=1, description="parts of a segment, whose summed frames make its vector")
    bits: int = Field(256, ge=64, multiple_of=64, description="bits of a signature: a multiple of 64")
    speech: float = Field(0.8, ge=0, le=1, description="least share of a segment's frames that are speech")


def directions(columns: int, options: Segments) -> Floats:
    """Random signs, float64 (parts x columns, bits) of -1 and 1; the same on any machine."""
    count = options.parts * columns * options.bits
    stream = hashlib.shake_256(f"signature {options.parts} {columns} {options.bits}".encode()).digest(-(-count // 8))
    signs = np.unpackbits(np.frombuffer(stream, np.uint8))[:count].reshape(options.parts * columns, options.bits)
    return signs.astype(np.float64) * 2 - 1


def starts(spoken: Bools, options: Segments) -> Ints:
    """First frames of a document's segments, by which of its frames are speech: bool (frames,)."""
    sums = np.concatenate([[0], np.cumsum(spoken)])
    first = np.arange(0, len(spoken) - options.frames + 1, options.hop)
    result: Ints = first[sums[first + options.frames] - sums[first] >= options.speech * options.frames]
    return result


def signatures(frames: Singles, first: Ints, signs: Floats, options: Segments) -> NDArray[np.uint8]:
    """Signatures of segments, uint8 (segments, bits / 8).

    Args:
        frames: float32 (frames, columns) of integers, prepared.
        first: int64 (segments,), their first frames.
        signs: from `directions`.
    """
    sums = np.concatenate([np.zeros((1, frames.shape[1])), np.cumsum(frames, axis=0, dtype=np.float64)])
    edges = np.arange(options.parts + 1) * options.frames // options.parts
    result = np.empty((len(first), options.bits // 8), np.uint8)
    for k in range(0, len(first), _SEGMENTS_HELD):
        at = sums[first[k : k + _SEGMENTS_HELD, None] + edges]
        vectors = np.diff(at, axis=1).reshape(len(at), -1)
        result[k : k + _SEGMENTS_HELD] = np.packbits(vectors @ signs > 0, axis=1)
    return result


#: Units of loudness that make 1 dB.
DECIBEL = 64


class Boundaries(Section):
    """Where words may begin and end."""

    smooth: int = Field(2, ge=0, description="frames on either side in the means, taken twice, that smooth loudness")
    fall: float = Field(0.5, gt=0, description="least fall of loudness before a syllable, and rise in it, dB")
    margin: int = Field(8, ge=0, description="frames at the ends of a stretch of speech that are taken for pause")
    reach: int = Field(8, ge=0, description="most frames by which an end of a member moves to a boundary")


def falls(loudness: Ints, smooth: int, fall: float) -> list[int]:
    """Frames in which half of the last unbroken fall before a syllable is done, ascending.

    Args:
        loudness: int64 (frames,), in units of 1/64 dB.
        smooth, fall: as in `Boundaries`.
    """
    width = 2 * smooth + 1
    values = _sums(_sums(loudness, width), width).tolist()
    result = []
    for low in minima(values, fall * DECIBEL * width**2):
        top = low
        while top and values[top - 1] >= values[top]:
            top -= 1
        twice = values[top] + values[low]
        result.append(next(frame for frame in range(top, low + 1) if 2 * values[frame] <= twice))
    return result


def _sums(values: Ints, width: int) -> Ints:
    """Sums of the frames around each; the first and the last frame are repeated."""
    if not len(values):
        return values
    sums = np.concatenate([[0], np.cumsum(np.pad(values, width // 2, "edge"))])
    result: Ints = sums[width:] - sums[:-width]
    return result


def minima(values: Sequence[int], depth: float) -> list[int]:
    """The first lowest value of each valley: values fall into it by at least `depth`, and then rise by as much."""
    result = []
    extreme, falling = 0, False
    for k, value in enumerate(values):
        change = value - values[extreme]
        if falling and change >= depth:
            result.append(extreme)
        if (change < 0) if falling else (change >= 0):
            extreme = k
        elif abs(change) >= depth:
            extreme, falling = k, not falling
    return result


def without_margins(spoken: Bools, margin: int) -> Bools:
    """Marks of speech, bool (frames,), without the first and the last `margin` frames of each stretch."""
    result = spoken.copy()
    for first, stop in stretches(spoken):
        result[first : first + margin] = False
        result[max(first, stop - margin) : stop] = False
    return result


def nearest(boundaries: Sequence[int], frame: int, reach: int) -> int:
    """The nearest boundary, of two the earlier; the frame itself if none is within reach.

    Args:
        boundaries: ascending.
    """
    place = bisect_left(boundaries, frame)
    near = [other for other in boundaries[max(0, place - 1) : place + 1] if abs(other - frame) <= reach]
    return min(near, key=lambda other: abs(other - frame), default=frame)
