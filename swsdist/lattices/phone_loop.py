"""Phone lattices from posteriors of phones' states: a free loop of phones, exact and in bounded memory.

Source: the loop is that of BUT's phoneme recogniser; see `swsdist.kernels.phone_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels import phone_loop
from swsdist.lattices.packed import TICK, Packed

#: Frames of a block: the least that is held besides the posteriors.
_BLOCK = 2048


class PhoneArcs(NamedTuple):
    """Arcs of a phone lattice whose states are the borders between frames.

    Attributes:
        starts, ends: int32, borders of each arc, by end and then by start and phone.
        phones: int32.
        posteriors: float64, of each arc.
        visits: float64 (frames + 1,), posterior of each border; 0 everywhere if there is no path.
        total: log of the sum over all paths, with all factors; -inf if there is none.
    """

    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    phones: NDArray[np.int32]
    posteriors: NDArray[np.float64]
    visits: NDArray[np.float64]
    total: float


def phone_arcs(
    log_posteriors: NDArray[np.floating], scale: float, insertion: float = 0.0, least: float = 1e-3
) -> PhoneArcs:
    """The lattice of a free loop of phones.

    Args:
        log_posteriors: (frames, phones, states), natural logs.
        scale: factor of them, and of `insertion`; 0.3 to 0.5, since frames of a phone are not independent.
        insertion: log weight of each phone.
        least: posterior of an arc.
    """
    frames = len(log_posteriors)
    highest = log_posteriors.max(axis=(1, 2), initial=-np.inf, keepdims=True) if frames else log_posteriors
    highest = np.maximum(highest, np.finfo(np.float32).min)  # of a frame without a possible state
    weights = np.exp(scale * (log_posteriors.astype(np.float64) - highest))
    entry = float(np.exp(scale * insertion))
    before, factors = np.empty(frames + 1), np.empty(frames)
    phone_loop.forward(weights, entry, before, factors)
    total = float(before[-1])
    none = np.empty(0, np.int32)
    if frames == 0 or total <= 0.0:
        return PhoneArcs(none, none, none, np.empty(0), np.zeros(frames + 1), -np.inf)
    after = np.empty(frames + 1)
    after[-1] = 1.0
    onward = np.zeros(weights.shape[1:])
    blocks = range(0, frames, _BLOCK)
    ahead: dict[int, NDArray[np.float64]] = {}
    inside = np.empty((min(_BLOCK, frames), *weights.shape[1:]))
    for first in reversed(blocks):
        stop = min(first + _BLOCK, frames)
        ahead[first] = onward.copy()
        phone_loop.backward(weights[first:stop], entry, after[first : stop + 1], onward, inside[: stop - first])
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]] = []
    active = none, none, np.empty((0, weights.shape[2]))
    for first in blocks:
        stop = min(first + _BLOCK, frames)
        part, edges = weights[first:stop], slice(first, stop + 1)
        phone_loop.backward(part, entry, after[edges].copy(), ahead.pop(first), inside[: stop - first])
        made = phone_loop.arcs(
            part, inside[: stop - first], entry, before[edges], after[edges], total, first, least, *active
        )
        parts.append(made[:4])
        active = made[4:]
    starts, ends, phones, posteriors = (np.concatenate(column) for column in zip(*parts, strict=True))
    log_total = float(np.log(total) + np.log(factors).sum() + scale * highest.sum(dtype=np.float64))
    return PhoneArcs(starts, ends, phones, posteriors, before * after / total, log_total)


def packed_arcs(arcs: PhoneArcs, phones: Sequence[str], shift: float) -> Packed:
    """A phone lattice as it is searched.

    Args:
        arcs: from `phone_arcs`.
        phones: text of each phone; empty: no word.
        shift: s between frames.
    """
    order = np.lexsort((arcs.phones, arcs.ends, arcs.starts))
    starts, ends = arcs.starts[order], arcs.ends[order]
    states = np.union1d(starts, ends)
    numbers: dict[str, int] = {"": 0}
    labels = np.array([numbers.setdefault(phone, len(numbers)) for phone in phones], np.int32)
    source, target = np.searchsorted(states, starts), np.searchsorted(states, ends)
    return Packed(
        np.rint(states * (shift / TICK)).astype(np.int32),
        np.minimum(arcs.visits[states], 1.0),
        np.bincount(source, minlength=len(states)).astype(np.int32),
        (target - source).astype(np.int32),
        labels[arcs.phones[order]],
        np.minimum(arcs.posteriors[order] / arcs.visits[starts], 1.0),
        tuple(numbers),
        round((len(arcs.visits) - 1) * shift / TICK),
    )
