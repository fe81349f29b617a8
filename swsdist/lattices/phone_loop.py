"""Phone lattices from posteriors of phones' states, exact and in bounded memory; strings: `swsdist.kernels.phone_string`.

Sources: the loop of three-state phones is that of BUT's recogniser (P. Schwarz, "Phoneme recognition based on long temporal
context", 2009); the topology of CTC is that of A. Graves et al., "Connectionist temporal classification", ICML 2006, section
4: a label lasts while its column does, blanks may stand between labels, and must between equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels import phone_loop
from swsdist.lattices.packed import TICK, Packed

#: Frames of a block: the most whose sums are held.
_BLOCK = 2048

#: Gives log posteriors of frames first..stop-1: (frames, phones, states).
Reader = Callable[[int, int], NDArray[np.floating]]


class Decoder(NamedTuple):
    """How posteriors are decoded.

    Attributes:
        scale: factor of log posteriors and of `insertion`; 0.3 to 0.5 for lattices, since frames of a phone are not
            independent, 1 for strings.
        insertion: what each phone adds to a path's log posterior, before the scale.
        pairs: float64 (phones + 1, phones), log weight of a phone after another, the last row at the start; None: any
            phone follows any other.
    """

    scale: float
    insertion: float = 0.0
    pairs: NDArray[np.float64] | None = None

    def weights(self) -> NDArray[np.float64]:
        """Weights of pairs; no rows without any."""
        return np.empty((0, 0)) if self.pairs is None else np.exp(self.pairs)


class PhoneArcs(NamedTuple):
    """Arcs of a phone lattice. A state is a border between frames and, with weights of pairs, the phone that ends there.

    Attributes:
        starts, ends: int32, borders of each arc.
        before: int32, the phone that ends at its start, or their number at the beginning; of a free loop -1.
        phones: int32.
        posteriors: float64, of each arc.
        visits: float64, of the state that each arc leaves.
        frames: their number.
        total: log of the sum over all paths; -inf: there is none.
    """

    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    before: NDArray[np.int32]
    phones: NDArray[np.int32]
    posteriors: NDArray[np.float64]
    visits: NDArray[np.float64]
    frames: int
    total: float


def phone_arcs(read: Reader, frames: int, decoder: Decoder, least: float = 1e-3) -> PhoneArcs:
    """The lattice of phones.

    Args:
        read: log posteriors, natural; of a range of frames.
        frames: their number.
        decoder: scale and weights.
        least: posterior of an arc.
    """
    ints, floats = np.empty(0, np.int32), np.empty(0)
    empty = PhoneArcs(ints, ints, ints, ints, floats, floats, frames, -np.inf)
    if frames == 0:
        return empty
    shape = read(0, 1).shape[1:]
    pairs, entry = decoder.weights(), float(np.exp(decoder.scale * decoder.insertion))
    blocks = [(first, min(first + _BLOCK, frames)) for first in range(0, frames, _BLOCK)]
    # Sums are kept where blocks meet only: within a block they are computed again.
    mass, reached = np.zeros(shape), np.zeros(shape[0] + 1 if len(pairs) else 1)
    reached[-1] = 1.0
    factors, shift = np.empty(frames), 0.0
    earlier: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    for first, stop in blocks:
        earlier.append((mass.copy(), reached))
        weights, highest = _weights(read(first, stop), decoder.scale)
        reached = _forward(weights, entry, pairs, mass, reached, factors[first:stop])[-1].copy()
        shift += float(highest.sum())
    total = float(reached.sum())
    if total <= 0.0:
        return empty
    onward, left = np.zeros(shape), np.ones(len(reached))
    later: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    for first, stop in reversed(blocks):
        later.append((onward.copy(), left))
        weights, _ = _weights(read(first, stop), decoder.scale)
        weights /= factors[first:stop, None, None]
        left = _backward(weights, entry, pairs, onward, left)[0][0].copy()
    parts = []
    active = ints, ints, np.empty((0, shape[1]))
    borders, ending, visits = ints, np.empty((0, len(reached))), np.empty((0, len(reached)))
    for (first, stop), (mass, reached), (onward, left) in zip(blocks, earlier, reversed(later), strict=True):
        weights, _ = _weights(read(first, stop), decoder.scale)
        ended = _forward(weights, entry, pairs, mass, reached, factors[first:stop])
        after, inside = _backward(weights, entry, pairs, onward, left)
        # No product of BLAS, whose sums depend on the machine.
        entered = (np.einsum("tq,qp->tp", ended, pairs) if len(pairs) else ended) * entry
        made = phone_loop.segments(weights, inside, entered, after, total, first, least, *active)
        starts, ends, phone, posteriors = made[:4]
        active = made[4:]
        borders = np.concatenate((borders, np.arange(first, stop, dtype=np.int32)))
        ending = np.concatenate((ending, ended[:-1]))
        visits = np.concatenate((visits, (ended * after / total)[:-1]))
        at = np.searchsorted(borders, starts)
        if len(pairs):
            # A segment is an arc from each state of its first border: its posterior is shared by what enters it from there.
            shares = ending[at] * pairs[:, phone].T
            shares *= (posteriors / shares.sum(axis=1))[:, None]
            which, last = np.nonzero(shares >= least)
            before, at, posteriors = last.astype(np.int32), at[which], shares[which, last]
            starts, ends, phone = starts[which], ends[which], phone[which]
        else:
            before = np.full(len(starts), -1, np.int32)
        parts.append((starts, ends, before, phone, posteriors, visits[at, before]))
        lasting = np.isin(borders, active[0])
        borders, ending, visits = borders[lasting], ending[lasting], visits[lasting]
    log_total = float(np.log(total) + np.log(factors).sum() + shift)
    starts, ends, before, phone, posteriors, leaving = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PhoneArcs(starts, ends, before, phone, posteriors, leaving, frames, log_total)


def _forward(
    weights: NDArray[np.float64],
    entry: float,
    pairs: NDArray[np.float64],
    mass: NDArray[np.float64],
    reached: NDArray[np.float64],
    factors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sums to each border of a block from those of its first; weights, mass and factors are overwritten."""
    ended = np.empty((len(weights) + 1, len(reached)))
    ended[0] = reached
    phone_loop.forward(weights, entry, pairs, mass, ended, factors)
    return ended


def _backward(
    weights: NDArray[np.float64],
    entry: float,
    pairs: NDArray[np.float64],
    onward: NDArray[np.float64],
    left: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums from each border of a block, and from its states, from those of its last border; `onward` is overwritten."""
    after, inside = np.empty((len(weights) + 1, len(left))), np.empty_like(weights)
    after[-1] = left
    phone_loop.backward(weights, entry, pairs, after, onward, inside)
    return after, inside


def _weights(log_posteriors: NDArray[np.floating], scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """exp(scale x log posterior), divided by its greatest value of each frame; and the logs of these."""
    scaled = scale * log_posteriors.astype(np.float64)
    highest = scaled.max(axis=(1, 2), keepdims=True)
    highest = np.maximum(highest, np.finfo(np.float32).min)  # of a frame without a possible state
    return np.exp(scaled - highest), highest


def packed_arcs(arcs: PhoneArcs, phones: Sequence[str], shift: float) -> Packed:
    """A phone lattice as it is searched.

    Args:
        arcs: from `phone_arcs`.
        phones: text of each phone; empty: no word.
        shift: s between frames.
    """
    columns = len(phones) + 2
    last = np.where(arcs.before < 0, -1, arcs.phones)
    leaves = arcs.starts.astype(np.int64) * columns + arcs.before + 1
    reaches = arcs.ends.astype(np.int64) * columns + last + 1
    order = np.lexsort((arcs.phones, reaches, leaves))
    states = np.union1d(leaves, reaches)
    source, target = np.searchsorted(states, leaves[order]), np.searchsorted(states, reaches[order])
    visits = np.zeros(len(states))
    visits[source] = arcs.visits[order]
    numbers: dict[str, int] = {"": 0}
    labels = np.array([numbers.setdefault(phone, len(numbers)) for phone in phones], np.int32)
    return Packed(
        np.rint(states // columns * (shift / TICK)).astype(np.int32),
        np.minimum(visits, 1.0),
        np.bincount(source, minlength=len(states)).astype(np.int32),
        (target - source).astype(np.int32),
        labels[arcs.phones[order]],
        np.minimum(arcs.posteriors[order] / arcs.visits[order], 1.0),
        tuple(numbers),
        round(arcs.frames * shift / TICK),
    )
