"""What recognisers of recordings share: stretches and their joints, and the alignment of given texts.

`swsdist.registry.registries.RECOGNISERS` registers recognisers by name. A recogniser takes a recording in stretches of
limited length, since its memory grows with an utterance. A longer recording is cut in the middle of the quietest 0.3 s
of the second half of each stretch, by the power of `swsdist.audio.speech`. The lattices of stretches follow each other
with no word between them, so a phrase may span a cut.

Alignment gives the words of a given text the times of the words that a recogniser hears. Three words that follow each
other once in both texts, and in one order, are an anchor; between two anchors, letters are paired at the least cost. A
word that is heard as given has the time of the heard word. Words between two of these are a run: they have the time of
what is heard instead, if its duration and letters allow that it is a misheard form of them. In any other run a word has
a time only if it is similar to what is heard itself.

The confidence of a word is the mean of the similarity of it, or its run, to what is heard, and of the share of the
letters beside it that are heard as given. If that share is small, something else is said, and no word has a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import groupby, pairwise
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from swsdist.audio.speech import HOP, levels
from swsdist.config.section import NameIn, Section
from swsdist.core.arrays import Floats, Ints, Singles
from swsdist.core.codes import config as codes
from swsdist.core.codes import lattices as lattices_codes
from swsdist.core.extras import error_of
from swsdist.core.needs import Needs
from swsdist.io.compressed import short
from swsdist.lattices.lattice import MILLISECOND, Lattice, LeftOut, Word, numbered, of_costs, transcript
from swsdist.lattices.words import pieces, spelled, written
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECOGNISERS

#: Seconds that are quiet where a recording is cut.
_QUIET = 0.3


class Text(NamedTuple):
    """Labels of a recording, as one writes them in a query, and -ln of the probability that they are said."""

    labels: tuple[str, ...]
    cost: float = 0.0


class Recogniser(Protocol):
    """Recognises recordings, each as if it were the first. It is made for each task, and cheap before `load`.

    Attributes:
        rate: samples a second that it takes.
        needs: alternative resources of a worker, the best first; `LEAST` is a CPU.
    """

    @property
    def rate(self) -> int: ...
    @property
    def needs(self) -> tuple[Needs, ...]: ...

    def identity(self) -> list[Any]:
        """All that lattices depend on besides recordings and version, as JSON values; files by their content or state.

        Raises:
            ConfigError: an option has a wrong value, or a file is missing.
        """
        ...

    def load(self, granted: Needs) -> None:
        """Load libraries and models, once in a process, for these resources; lattices do not depend on them.

        Raises:
            UserError: they cannot be used.
        """
        ...

    def lattice(self, key: str, channel: int, blocks: Iterable[Singles]) -> Lattice:
        """The lattice of a recording.

        Args:
            key, channel: of the lattice.
            blocks: samples, full scale 1.

        Raises:
            DataError: the recording cannot be recognised.
        """
        ...

    def texts(self, blocks: Iterable[Singles]) -> list[Text]:
        """Texts that a spoken query may be, the likeliest first; empty if nothing is recognised."""
        ...


class Recognition(Section):
    """A recogniser, and its settings."""

    registry = RECOGNISERS

    name: Annotated[str, NameIn(RECOGNISERS)] = Field("pocketsphinx", description="recogniser")
    options: dict[str, object] = Field({}, description="its options, see below")

    @model_validator(mode="after")
    def _with_its_options(self) -> Recognition:
        self.complete()
        return self

    def complete(self) -> dict[str, object]:
        """All options.

        Raises:
            ConfigError: one is unknown or has a wrong value.
        """
        return checked(RECOGNISERS, self.name, self.options, "options.recogniser.options")

    def create(self) -> Recogniser:
        """The recogniser.

        Raises:
            ConfigError: a library is missing.
        """
        entry = RECOGNISERS[self.name]
        for library in entry.libraries:
            if find_spec(library) is None:
                missing = ModuleNotFoundError(f"No module named {library!r}", name=library)
                error = error_of(missing) or codes.ENTRY_NOT_LOADED(target=entry.target, error=str(missing))
                error.where = "options.recogniser"
                raise error
        recogniser: Recogniser = entry.load()(**self.complete())
        return recogniser

    def loaded(self, granted: Needs) -> Recogniser:
        """The recogniser, with its models; raises as `create` and `Recogniser.load`."""
        recogniser = self.create()
        recogniser.load(granted)
        return recogniser

    def identities(self) -> list[Any]:
        """All that lattices depend on besides the recordings, as JSON values."""
        return [*RECOGNISERS.identity(self.name), *self.create().identity()]


def stretches(blocks: Iterable[Singles], longest: float, rate: int) -> Iterator[Singles]:
    """A recording in stretches of at most `longest` seconds, cut where it is quiet; blocks do not matter."""
    most = round(longest * rate)
    parts, size = list[Singles](), 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        while size > most:
            held = np.concatenate(parts)
            cut = quietest(held[:most], rate, most // 2)
            yield held[:cut]
            parts, size = [held[cut:]], size - cut
    if size:
        yield np.concatenate(parts)


def quietest(samples: Singles, rate: int, first: int) -> int:
    """The middle of the quietest 0.3 s from a sample on: where the loudest frame is least loud."""
    hop, size = round(HOP * rate), round(_QUIET / HOP)
    begin = first // hop * hop
    power = levels(samples[begin:], rate).power
    loudest = np.lib.stride_tricks.sliding_window_view(power, size).max(axis=1)
    return begin + (int(np.argmin(loudest)) + size // 2) * hop


def lasting(part: Lattice, length: int) -> Lattice:
    """A lattice in milliseconds, whose last state is at the end of its stretch of so many."""
    times = np.rint(part.times * (part.tick / MILLISECOND)).astype(np.int64)
    times[-1] = max(length, int(times.max()))
    return replace(part, tick=MILLISECOND, times=times, length=int(times[-1]))


def joined(key: str, channel: int, parts: list[tuple[int, Lattice]], length: int) -> Lattice:
    """Lattices of stretches, each with its first millisecond, as one: they begin at a first state and end at a last."""
    label, labels = numbered(text for _, part in parts for text in part.labels)
    times, sources, targets, names, graph = [np.zeros(1, np.int64)], [], [], [], []
    states, first, last = 1, 0, 0
    for begin, part in parts:
        count = len(part.labels)
        times.append(part.times + begin)
        sources += [np.array([last]), part.source + states]
        targets += [np.array([part.start + states]), part.target + states]
        names += [np.zeros(1, np.int64), label[first : first + count][part.label]]
        graph += [np.zeros(1), part.graph]
        states, first = states + part.states, first + count
        last = states - 1
    source, target = np.concatenate([*sources, [last]]), np.concatenate([*targets, [states]])
    name, cost = np.concatenate([*names, [0]]), np.concatenate([*graph, [0.0]])
    times.append(np.array([max(length, int(times[-1].max()))]))
    return of_costs(key, np.concatenate(times), source, target, name, cost, labels, channel=channel)


#: Of the rule: another gives other places to the same text.
VERSION = 2
#: Letters up to the end of a word, or from its start. Of either, the least share that is heard as given where it has a place;
#: also how alike a word and what is heard are at least where its run is not.
_BESIDE, _LEAST = 20, 0.5
#: Letters a second that can be said, after the first: no stretch of the made English corpus has more.
_RATE, _FIRST = 25.0, 3
#: Letters of a run that may all be misheard; of further ones the least share is heard.
_MISHEARD = 8
#: Pairs of letters that are compared at once, a byte each.
_MOST_PAIRS = 1 << 26
#: Seconds between two letters of a word, of which it then holds one only.
_TORN = 1.0
#: Words and characters of a text that a message shows.
_NAMED, _SHOWN = 12, 80


def aligned(text: str, heard: Lattice, words: Sequence[Word]) -> Lattice:
    """The transcript of a given text, with the times of what is heard in its recording. Words without a place are left out.

    Args:
        text: as written; in scripts without blanks its characters are words.
        heard: the recogniser's lattice.
        words: its best words, in order.

    Raises:
        DataError: less than half of the text has a place.
    """
    given: list[str] = []
    for word in text.split():
        for k, piece in enumerate(pieces(word)):
            if k and not spelled(piece, "folded"):  # a mark in a script without blanks
                given[-1] += piece
            else:
                given.append(piece)
    found = placed(given, words)
    sizes = [max(len(spelled(word, "folded")), 1) for word in given]
    share = sum(size for size, word in zip(sizes, found, strict=True) if word) / sum(sizes)
    if share < _LEAST:
        said = _shown([word.text for word in words]) or "nothing"
        raise lattices_codes.NOT_THE_TEXT(where=heard.key, share=share, text=_shown(given), heard=said)
    left_out = LeftOut()
    for is_lost, some in groupby(zip(given, found, strict=True), key=lambda item: item[1] is None):
        lost = [word for word, _ in some if spelled(word, "folded")] if is_lost else []
        with left_out:
            if lost:
                raise lattices_codes.WORDS_WITHOUT_PLACE(where=heard.key, count=len(lost), text=_shown(lost))
    kept = [word for word in found if word]
    result = transcript(heard.key, kept, heard.channel, left_out if left_out.count else None)
    length = max(result.length, round(heard.length * heard.tick / MILLISECOND))
    return replace(result, length=length, language=heard.language, speech_seconds=heard.speech_seconds)


def _shown(words: Sequence[str]) -> str:
    return short(written(words[:_NAMED]), _SHOWN)


def placed(given: Sequence[str], heard: Sequence[Word]) -> list[Word | None]:
    """Each given word with its times and confidence; None: it has no place.

    Args:
        given: words as written. A mark alone, as a dash, has the pause between its neighbours, if there is one.
        heard: of the recording, in order.
    """
    both = _Both(given, heard)
    beside = both.beside()
    result: list[Word | None] = [None] * len(given)
    for is_exact, run in groupby((k for k, text in enumerate(both.texts) if text), both.is_exact):
        for k, start, end, alike in ((k, *both.span(k), 1.0) for k in run) if is_exact else both.misheard(list(run)):
            if end - start >= MILLISECOND and beside[k] >= _LEAST:
                result[k] = Word(given[k], float(start), float(end), (alike + float(beside[k])) / 2)
    for k in range(1, len(given) - 1):
        before, after = result[k - 1], result[k + 1]
        if not both.texts[k] and before and after and after.start - before.end >= MILLISECOND:
            result[k] = Word(given[k], before.end, after.start, min(before.confidence, after.confidence))
    return result


class _Both:
    """A given text and what is heard: folded words, where their letters begin, and which letters are pairs."""

    def __init__(self, given: Sequence[str], heard: Sequence[Word]) -> None:
        self.heard = heard
        self.texts, self.others = (
            [spelled(text, "folded") for text in some] for some in (given, [w.text for w in heard])
        )
        self.at, self.at_heard = (np.cumsum([0, *map(len, some)]) for some in (self.texts, self.others))
        own, its = (np.array(list(map(ord, "".join(some))), np.int32) for some in (self.texts, self.others))
        self.pairs = np.full(len(own), -1)
        for i, k, j, m in _between_anchors(self.texts, self.others):
            first, end, start, stop = self.at[i], self.at[k], self.at_heard[j], self.at_heard[m]
            found = _pairs(own[first:end], its[start:stop])
            self.pairs[first:end] = np.where(found < 0, -1, found + start)
        same = self.pairs >= 0
        same[same] = own[same] == its[self.pairs[same]]
        self.same = np.concatenate([[0], np.cumsum(same)])  # up to each letter, how many are heard as given

    def beside(self) -> Floats:
        """The share of letters heard as given, of those up to the end of each word, or from its start: the greater."""
        begins, ends = self.at[:-1], self.at[1:]
        firsts = np.stack([ends - _BESIDE, begins]).clip(0)
        lasts = np.stack([ends, begins + _BESIDE]).clip(max=len(self.pairs))
        return np.asarray(((self.same[lasts] - self.same[firsts]) / np.maximum(lasts - firsts, 1)).max(axis=0))

    def is_exact(self, k: int) -> bool:
        """Whether a word is heard as given, from the start of a word to the end of one."""
        first, end = self.at[k], self.at[k + 1]
        start, stop = self.pairs[first], self.pairs[end - 1] + 1
        is_same = self.same[end] - self.same[first] == end - first == stop - start
        return bool(is_same and np.isin([start, stop], self.at_heard).all())

    def misheard(self, run: Sequence[int]) -> Iterator[tuple[int, float, float, float]]:
        """Words of a run that have a place, with start, end, and how alike they are and what is heard."""
        first, size = self.at[run[0]], self.at[run[-1] + 1] - self.at[run[0]]
        j, m, alike = self._instead(run[0], run[-1] + 1)
        if j == m:
            return
        start, end = self.heard[j].start, self.heard[m - 1].end
        letters = "".join([*self.texts[run[0] : run[-1] + 1], *self.others[j:m]])
        same = self.same[first + size] - self.same[first]
        may_be = same >= _LEAST * (size - _MISHEARD) and len(letters) - size <= _MISHEARD + 2 * size
        if any(map(str.isdigit, letters)):  # a number in figures has other letters than its words
            may_be = True
        if may_be and size - _FIRST <= _RATE * (end - start):
            spans = [self.span(k) for k in run]
            if not all(last - early >= MILLISECOND for early, last in spans):
                edges = start + (self.at[run[0] : run[-1] + 2] - first) * ((end - start) / size)
                spans = list(pairwise(edges.tolist()))
            yield from ((k, *span, alike) for k, span in zip(run, spans, strict=True))
        else:
            yield from ((k, *self.span(k), own) for k in run if (own := self._instead(k, k + 1)[2]) >= _LEAST)

    def _instead(self, first: int, end: int) -> tuple[int, int, float]:
        """The heard words that have letters of some given ones, the first and the end; how alike both are, from 0 to 1."""
        found = self.pairs[self.at[first] : self.at[end]]
        found = found[found >= 0]
        if not len(found):
            return 0, 0, 0.0
        j, m = (int(np.searchsorted(self.at_heard, place, "right")) for place in found[[0, -1]])
        letters = self.at[end] - self.at[first] + self.at_heard[m] - self.at_heard[j - 1]
        return j - 1, m, 2 * float(self.same[self.at[end]] - self.same[self.at[first]]) / float(letters)

    def span(self, k: int) -> tuple[float, float]:
        """Start and end of the heard letters with which those of a word are paired; NaN where hardly any are."""
        pairs = self.pairs[self.at[k] : self.at[k + 1]]
        if np.count_nonzero(pairs >= 0) * 3 < len(pairs):
            return np.nan, np.nan
        places: list[list[tuple[float, float]]] = []
        for letter in pairs[pairs >= 0].tolist():
            j = int(np.searchsorted(self.at_heard, letter, side="right")) - 1
            word, begin = self.heard[j], int(self.at_heard[j])
            length = (word.end - word.start) / len(self.others[j])
            start = word.start + (letter - begin) * length
            if not places or start - places[-1][-1][1] > _TORN:
                places.append([])
            places[-1].append((start, start + length))
        best = max(places, key=len)
        return best[0][0], best[-1][1]


def _pairs(own: NDArray[np.int32], its: NDArray[np.int32]) -> Ints:
    """As `cheapest_pairs`; of long sequences by halves (Hirschberg 1975), in bounded memory."""
    from swsdist.kernels.edits import cheapest_pairs  # loads numba

    if len(own) * len(its) <= _MOST_PAIRS or len(own) == 1:
        return cheapest_pairs(own, its)
    half = len(own) // 2
    edits = _edits(own[:half], its) + _edits(own[half:][::-1], its[::-1])[::-1]
    cut = int(edits.argmin())
    second = _pairs(own[half:], its[cut:])
    return np.concatenate([_pairs(own[:half], its[:cut]), np.where(second < 0, -1, second + cut)])


def _edits(own: NDArray[np.int32], its: NDArray[np.int32]) -> NDArray[np.int32]:
    """Fewest edits between a sequence and each beginning of another, int32 (len(its) + 1,)."""
    more = np.zeros(len(its) + 1, np.int32)  # edits, less the length of the beginning
    for letter in own:
        kept = np.minimum(more[:-1] - (its == letter), more[1:] + 1)
        more = np.concatenate([more[:1] + 1, kept])
        np.minimum.accumulate(more, out=more)
    more += np.arange(len(more), dtype=np.int32)
    return more


def _between_anchors(texts: Sequence[str], others: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """First and end words of both in turn: up to an anchor, and its first word; of the most anchors in one order."""
    threes, threes_heard = (list(zip(some, some[1:], some[2:], strict=False)) for some in (texts, others))
    once, once_heard = ({key for key, count in Counter(some).items() if count == 1} for some in (threes, threes_heard))
    place = {key: j for j, key in enumerate(threes_heard) if key in once_heard}
    found = [(i, place[key]) for i, key in enumerate(threes) if all(key) and key in once and key in place]
    lasts: list[int] = []  # the least last place of so many anchors, and which anchor that is
    which: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(found):
        count = bisect_left(lasts, j)
        lasts[count : count + 1], which[count : count + 1] = [j], [number]
        before.append(which[count - 1] if count else -1)
    anchors: list[tuple[int, int]] = []
    number = which[-1] if which else -1
    while number >= 0:
        anchors.append(found[number])
        number = before[number]
    i = j = 0
    for k, m in [*reversed(anchors), (len(texts), len(others))]:
        yield i, k, j, m
        if k < len(texts):
            yield k, k + 1, m, m + 1
        i, j = k + 1, m + 1
