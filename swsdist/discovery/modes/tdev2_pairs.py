"""Mode `tdev2`: the measures of pairs, NED and grouping.

All pairs of lines of a class are pairs: overlapping ones, and a line with its repeat. The weights of types cancel in grouping:
with the tokens t of a type, ``sum(|t| / |all| * |t common| / |t|) = |common| / |all|``.
"""

from __future__ import annotations

import numpy as np

from swsdist.discovery.cells import Strings
from swsdist.discovery.measures import Value, ratio
from swsdist.discovery.modes.pairs import PairCounts, distinct, pairs_of_rows
from swsdist.discovery.modes.tdev2_lines import Lines, Measure, with_f
from swsdist.discovery.units import Flags, Ints, ids, partnered, representatives, string_ids

#: Silence is no phone of a string for NED; other symbols are.
_SILENCE = "SIL"


def ned_and_grouping(lines: Lines) -> tuple[dict[str, Value], Measure]:
    """Both, of one walk over all pairs."""
    strings, kind = _without_silence(lines)
    counts, pairs = PairCounts(strings.count), _PairsOfLines(lines)
    for i, j in pairs_of_rows(lines.group):
        x, y = lines.item[i], lines.item[j]
        counts.add(kind[x], kind[y])
        pairs.add(x, y)
    return _ned(strings, counts), _grouping(lines, len(pairs))


def _without_silence(lines: Lines) -> tuple[Strings, Ints]:
    """The different strings without silence, and the number of that of each interval."""
    phones = lines.phones
    spoken = phones.symbol != (phones.names.index(_SILENCE) if _SILENCE in phones.names else -1)
    before = np.concatenate([[0], np.cumsum(spoken)])
    symbol, first, last = phones.symbol[spoken], before[lines.first], before[lines.last]
    kind = string_ids(symbol, first, last)
    example = representatives(kind)
    return Strings(symbol, first[example], last[example]), kind


def _ned(strings: Strings, counts: PairCounts) -> dict[str, Value]:
    """Mean over pairs; two strings of nothing but silence are as different as can be."""
    x, y = np.divmod(counts.keys, strings.count)
    longest = np.maximum(strings.length[x], strings.length[y])
    rate = np.where(longest > 0, strings.distances(x, y) / np.maximum(longest, 1), 1.0)
    pairs = int(counts.weight.sum())
    return {"ned": ratio(float((rate * counts.weight).sum()), pairs), "n_pairs": pairs}


class _PairsOfLines:
    """Counts the different pairs of intervals of classes.

    The program orders the two by document and onset, and keeps them in the order of the file where these are equal, so such a
    pair may count in both orders.
    """

    def __init__(self, lines: Lines) -> None:
        self._onset = np.unique(lines.onsets(), return_inverse=True)[1]
        self._repeated = np.bincount(lines.item) > 1
        self._once = 0
        self._keys = [np.zeros(0, np.int64)]

    def add(self, x: Ints, y: Ints) -> None:
        """Pairs of intervals, of which each line came before the other in the file."""
        again = self._repeated[x] | self._repeated[y]
        self._once += len(x) - int(again.sum())
        x, y = x[again], y[again]
        swapped = self._onset[x] > self._onset[y]
        key = np.where(swapped, y, x) * len(self._onset) + np.where(swapped, x, y)
        self._keys.append(distinct(key))

    def __len__(self) -> int:
        return self._once + len(distinct(np.concatenate(self._keys)))


def _grouping(lines: Lines, found_pairs: int) -> Measure:
    """Precision and recall of tokens in pairs of equal strings."""
    token, tokens = _tokens(lines)
    onset, offset = _ranks(lines)

    def count(items: Ints | Flags) -> int:
        seen = np.zeros(tokens, bool)
        seen[token[items]] = True
        return int(seen.sum())

    several = np.bincount(lines.group, minlength=1)[lines.group] > 1
    item = lines.item
    common = partnered(ids(lines.group, lines.kind[item]), onset[item], offset[item])
    gold = partnered(lines.kind, onset, offset)
    n_common, n_found, n_gold = count(item[common]), count(item[several]), count(gold)
    pairs: Measure = {"n_found_pairs": found_pairs, "n_gold_pairs": _gold_pairs(lines.kind, onset, offset)}
    return {**with_f(ratio(n_common, n_found), ratio(n_common, n_gold)), **pairs}


def _ranks(lines: Lines) -> tuple[Ints, Ints]:
    """Onset and offset of each interval as ranks of places, in one order."""
    onset, offset = lines.onsets(), lines.offsets()
    edges = distinct(np.concatenate([onset, offset]))
    return np.searchsorted(edges, onset), np.searchsorted(edges, offset)


def _tokens(lines: Lines) -> tuple[Ints, int]:
    """Number of the token of each interval: its timed phones without the document."""
    phones = lines.phones
    span = ids(lines.first, lines.last)
    example = representatives(span)
    timed = ids(phones.onset, phones.offset, phones.symbol)
    token = string_ids(timed, lines.first[example], lines.last[example])
    return token[span], len(example)


def _gold_pairs(kind: Ints, onset: Ints, offset: Ints) -> int:
    """Number of pairs of one string without common time: later ones of the string, without those that begin too early."""
    size = int(offset.max()) + 1 if len(offset) else 1
    begins = np.sort(kind * size + onset)
    after = np.searchsorted(begins, (kind + 1) * size) - np.searchsorted(begins, kind * size + offset)
    return int(after.sum())
