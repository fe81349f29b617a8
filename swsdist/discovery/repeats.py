"""P_all: pairs of equal phone strings of 3 to 20 phones in runs. Only their members are needed, and they are never listed as
pairs.

A span is a member if its string occurs once more, without overlap: in another document, or before or after it. A string of
n + 1 phones that recurs begins with one of n that recurs, so the candidates shrink with the length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from swsdist.discovery.cells import Block
from swsdist.discovery.completion import LONGEST, SHORTEST
from swsdist.discovery.gold import partnered
from swsdist.discovery.strings import ids
from swsdist.discovery.units import Flags, Ints


def repeated(block: Block) -> Iterator[tuple[int, Ints]]:
    """The members of P_all, of all documents: a length, and the first phones of the members of this length."""
    gold = block.scene.gold
    symbol, run = gold.phones.symbol, gold.run
    live, key = np.arange(len(gold)), symbol
    for length in range(2, LONGEST + 1):
        longer = live + length <= len(gold)
        longer[longer] = run[live[longer]] == run[live[longer] + length - 1]
        live, key = live[longer], ids(key[longer], symbol[live[longer] + length - 1])
        if length < SHORTEST:
            continue
        some = in_pairs(block, key, live, live + length, gold.phones.document[live])
        live, key = live[some], key[some]
        if not len(live):
            return
        yield length, live


def in_pairs(block: Block, string: Ints, first: Ints, last: Ints, document: Ints) -> Flags:
    """Whether each span has a partner of the same string with which it does not overlap, and whose pair counts.

    Args:
        block: says which pairs count.
        string: numbers from 0.
        first, last: of each span.
        document: of each span.
    """
    talker = block.scene.talker
    if block.talkers == "all" or talker is None:
        return partnered(string, first, last)
    of = talker[document]
    if block.talkers == "within":
        return partnered(ids(string, of), first, last)
    strings = int(string.max()) + 1 if len(string) else 0
    least, most = np.full(strings, len(talker) + len(of)), np.full(strings, -1)
    np.minimum.at(least, string, of)
    np.maximum.at(most, string, of)
    several: Flags = (least < most)[string]
    return several
