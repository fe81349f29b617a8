"""A lattice: an acyclic graph of states and labelled arcs with costs, as a file holds it.

A cost is -ln of a likelihood. An arc has two, of graph (language model, pronunciation) and of acoustics; scaled and added, they
give the cost of the arc. A path's cost is the sum over its arcs and of the final state that it ends in. Label 0 is no word:
silence, or nothing. An arc lasts from the time of its source to the time of its target, end exclusive.

A transcript is a lattice with one path, or one whose words have the alternative of no word: see `transcript`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError, SwsdistError

#: Items of a file that are named where they are left out; more are counted.
_NAMED = 100


@dataclass(eq=False)
class LeftOut:
    """Items of a file that cannot be used. `with left_out:` reads one; where its data are broken, it is left out, and what
    follows is read.

    Attributes:
        errors: why the first of them cannot be used, with file and line.
        by_reason: of all, a row of LEFT_OUT each; seconds of sound, as far as errors say them.
    """

    errors: list[DataError] = field(default_factory=list)
    by_reason: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of items."""
        return sum(row["items"] for row in self.by_reason.values())

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, DataError):
            return False
        row = self.by_reason.setdefault(error.reason, {"reason": error.reason, "items": 0, "seconds": 0.0})
        row["items"] += 1
        row["seconds"] += error.values.get("seconds", 0.0)
        if self.count <= _NAMED:
            self.errors.append(error)
        return True


@dataclass(frozen=True, eq=False)
class Lattice:
    """A lattice of an utterance, as read: neither connected nor sorted.

    Attributes:
        key: its name in the file.
        tick: seconds per unit of times.
        times: of each state, in ticks (a state that no path reaches: any).
        source, target: states of each arc, in the order of the file.
        label: of each arc, a place in `labels`.
        graph, acoustic: costs of each arc; infinite: no path takes it.
        final_graph, final_acoustic: costs of ending in each state; infinite: not final.
        labels: texts of the labels; the first is empty, no word.
        start: state; -1 if there are no states.
        length: of the utterance, in ticks; at least the largest time.
        channel: of the recording.
        probabilities: costs are of probabilities that the recogniser computed, to which no scale applies.
        left_out: words of the utterance that cannot be used.
        words: the best ones, as a recogniser writes them, in order; None: those of the best path.
        language: of the words, as its code; None: unknown.
        speech_seconds: of the utterance; None: unknown.
    """

    key: str
    tick: float
    times: Ints
    source: Ints
    target: Ints
    label: Ints
    graph: Floats
    acoustic: Floats
    final_graph: Floats
    final_acoustic: Floats
    labels: tuple[str, ...]
    start: int
    length: int
    channel: int = 1
    probabilities: bool = False
    left_out: LeftOut | None = None
    words: tuple[Word, ...] | None = None
    language: str | None = None
    speech_seconds: float | None = None

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.times)


class Broken(NamedTuple):
    """A lattice of a file that cannot be read; those after it still are, where the format allows.

    Attributes:
        key: its name, or the file's if it has none.
        error: why, with file and line.
    """

    key: str
    error: SwsdistError


class Origin(NamedTuple):
    """A file to read lattices of, and what it does not say itself.

    Attributes:
        path: local or s3://; `FILE:OFFSET` for an archive of which one object is read.
        storage: options for S3.
        words: labels by their integers (`words.txt`); without it a Kaldi label is its integer.
        frame: seconds per frame of formats that count frames.
        tiers: of ELAN and TextGrid; empty: all that hold intervals.
        name: that the file has elsewhere; empty: as here.
    """

    path: str
    storage: Mapping[str, object] = {}
    words: Mapping[int, str] | None = None
    frame: float = 0.01
    tiers: tuple[str, ...] = ()
    name: str = ""


class Word(NamedTuple):
    """A word of a transcript: times in s, confidence 0 to 1."""

    text: str
    start: float
    end: float
    confidence: float = 1.0


#: Text of a word that no query holds, so that no phrase spans it. What normalises words must keep it.
BREAK = "\ue000"

#: Seconds per tick of transcripts, whose times are seconds.
MILLISECOND = 0.001


def of_probabilities(key: str, times: Ints, arcs: Iterable[tuple[int, int, str, float]], **more: Any) -> Lattice:
    """A lattice from its first state to its last, by states in ms, and arcs: source, target, text, and probability.

    Args:
        more: channel, words and what is left out, as of a `Lattice`.
    """
    labels = {"": 0}
    numbers, chances = array("q"), array("d")  # tuples of a recording of hours fill memory
    for source, target, text, chance in arcs:
        numbers.extend((source, target, labels.setdefault(text, len(labels))))
        chances.append(chance)
    sources, targets, places = np.array(numbers, np.int64).reshape(-1, 3).T.copy()
    with np.errstate(divide="ignore"):
        graph = -np.log(np.array(chances, np.float64)) + 0.0
    return of_costs(key, times, sources, targets, places, graph, tuple(labels), **more)


def of_costs(
    key: str, times: Ints, source: Ints, target: Ints, label: Ints, graph: Floats, labels: tuple[str, ...], **more: Any
) -> Lattice:
    """The same by the arcs' columns, with -ln of their probabilities."""
    final, none = np.full(len(times), np.inf), np.zeros(len(graph))
    final[-1] = 0.0
    arcs = source, target, label, graph, none, final, final.copy()
    return Lattice(key, MILLISECOND, times, *arcs, labels, 0, int(times.max()), probabilities=True, **more)


def transcript(key: str, words: Sequence[Word], channel: int = 1, left_out: LeftOut | None = None) -> Lattice:
    """A transcript as a lattice: word by word, each with its confidence and, for the rest, no word.

    A word lasts from a state of its own to another, so words may overlap and leave gaps. Before one that begins earlier than
    the word before it lies a `BREAK`: no phrase goes back in time. Where a word is not said, the next one's start follows its
    own, whenever it ends.
    """
    count = len(words)
    back = [k > 0 and word.start < words[k - 1].start and words[k - 1].text != BREAK for k, word in enumerate(words)]
    times = np.zeros(2 * count + 2, np.int64)
    for k, word in enumerate(words):
        times[2 * k + 1 : 2 * k + 3] = round(word.start / MILLISECOND), round(word.end / MILLISECOND)
    times[-1] = times.max(initial=0)
    arcs: list[tuple[int, int, str, float]] = []
    for k, word in enumerate(words):
        arcs.append((2 * k, 2 * k + 1, BREAK if back[k] else "", 1.0))
        arcs.append((2 * k + 1, 2 * k + 2, word.text, word.confidence))
        if word.confidence < 1:
            onward = k + 1 < count and not back[k + 1]
            arcs.append((2 * k + 1, 2 * k + 2 + onward, "", 1 - word.confidence))
    arcs.append((2 * count, 2 * count + 1, "", 1.0))
    said = tuple(word for word in words if word.text != BREAK)
    return of_probabilities(key, times, arcs, channel=channel, left_out=left_out, words=said)


class Variant(NamedTuple):
    """What may be said in a place of a recording, and how probable that is beside the other variants of the place."""

    chance: float
    words: tuple[Word, ...]


def confusion_network(
    key: str,
    channel: int,
    places: Sequence[Sequence[Variant]],
    length: int,
    words: tuple[Word, ...],
) -> Lattice:
    """Variants of places that follow each other, as a lattice; where none is said, there is no word.

    Args:
        key, channel: of the lattice.
        places: of each its variants; their chances add up to 1 at most. A word is said with its confidence, else nothing.
        length: of the recording, ms.
        words: the best ones.
    """
    times, arcs = [0], list[tuple[int, int, str, float]]()

    def state(seconds: float) -> int:
        times.append(round(seconds / MILLISECOND))
        return len(times) - 1

    at = 0
    for variants in places:
        spoken = [word for variant in variants for word in variant.words]
        onward = state(max(times[at] * MILLISECOND, *(word.end for word in spoken)))
        for chance, said in variants:
            before, way = at, chance
            for word in said:
                first, last = state(word.start), state(word.end)
                arcs.append((before, first, "", way))
                arcs.append((first, last, word.text, word.confidence))
                if word.confidence < 1:
                    arcs.append((first, last, "", 1 - word.confidence))
                before, way = last, 1.0
            arcs.append((before, onward, "", way))
        if (rest := 1 - sum(variant.chance for variant in variants)) > 0:
            arcs.append((at, onward, "", rest))
        at = onward
    arcs.append((at, state(max(length * MILLISECOND, times[at] * MILLISECOND)), "", 1.0))
    return of_probabilities(key, np.array(times, np.int64), arcs, channel=channel, words=words)


#: What a reader yields.
Lattices = Iterator[Lattice | Broken]


#: Greatest magnitude of a finite cost: of larger ones doubles keep too little for posteriors.
GREATEST_COST = 1e9


def demand_costs(where: str, *costs: Floats) -> None:
    """Demand that costs are possible.

    Raises:
        DataError: a cost is no number, too large, or -inf.
    """
    for some in costs:
        wrong = ~((np.abs(some) <= GREATEST_COST) | (some == np.inf))
        if wrong.any():
            raise codes.IMPOSSIBLE_COST(where=where, value=float(some[wrong][0]))


def demand_forward(where: str, times: Ints, source: Ints, target: Ints) -> None:
    """Demand that no arc ends before it starts: phrases would go back in time.

    Raises:
        DataError: one does.
    """
    back = np.flatnonzero(times[target] < times[source])
    if len(back):
        raise families.DAMAGED_LATTICE(
            "a link leads from node {source} back to an earlier time, at node {target}",
            "correct the times of the nodes, or write the lattice again",
            where=where,
            source=int(source[back[0]]),
            target=int(target[back[0]]),
        )


def text_of(label: int, words: Mapping[int, str] | None, where: str) -> str:
    """Text of a label: from the list of words, or its number; empty of 0.

    Raises:
        DataError: the list has no such number.
    """
    if label == 0:
        return ""
    if words is None:
        return str(label)
    if label not in words:
        raise families.UNKNOWN_NAME.of(DataError)(
            "the list of words has no number {label}",
            "name the words.txt with which the lattices were made",
            where=where,
            label=label,
        )
    return words[label]


def numbered(words: Iterable[str]) -> tuple[Ints, tuple[str, ...]]:
    """The label of each word, and the labels' texts; the empty word is label 0."""
    labels = {"": 0}
    numbers = np.array([labels.setdefault(word, len(labels)) for word in words], np.int64)
    return numbers, tuple(labels)


def stem(path: str) -> str:
    """Name of a file without its folder, ending, and the ending of packing."""
    name = PurePosixPath(path).name
    return PurePosixPath(name.removesuffix(".gz").removesuffix(".xz")).stem


def single(origin: Origin, parse: Callable[[Origin], Lattice]) -> Lattices:
    """The only lattice of a file."""
    try:
        yield parse(origin)
    except DataError as error:
        yield Broken(stem(origin.path), error)


def log_cost(chances: Floats) -> Floats:
    """-ln of probabilities; infinite of 0."""
    with np.errstate(divide="ignore"):
        return -np.log(chances) + 0.0
