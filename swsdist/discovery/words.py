"""A word list: classes of stretches, those of the most speakers first, then the surest."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.discovery.formats.rows import ticks_of
from swsdist.discovery.units import Fragments, document_name

#: A row a class: occurrences, known speakers, mean duration (s), mean of how sure its members are.
WORDS = pa.schema(
    [
        pa.field("class", pa.int32(), False),
        pa.field("occurrences", pa.int32(), False),
        pa.field("speakers", pa.int32(), False),
        pa.field("seconds", pa.float64(), False),
        pa.field("sure", pa.float64(), False),
    ]
)

#: How often as sure as the least that makes a class (docs/how-to/discover-words.md); candidates.js has the same.
_ALIKE = ((1.4, "very alike"), (1.15, "alike"))


def alike(sure: float, least: float) -> str:
    """How sure a class or a member is, in words.

    Args:
        sure: of it.
        least: that makes a class.
    """
    return next((words for times, words in _ALIKE if sure >= times * least), "somewhat alike")


class Stretch(NamedTuple):
    """A member of a class, or a token of a parse.

    Attributes:
        group: number of the class; None: of no class.
        doc_id, channel: of the recording.
        start, end: s, in the recording.
        sure: score of its best match in the class, per square root of its frames, in units of the distance; None: of no class.
        speaker: empty: not known.
        path: of the recording, local or a url; empty: none.
    """

    group: int | None
    doc_id: str
    channel: int
    start: float
    end: float
    sure: float | None
    speaker: str = ""
    path: str = ""

    @property
    def document(self) -> str:
        """The name of the recording's channel."""
        return document_name(self.doc_id, self.channel)


class Word(NamedTuple):
    """A class, its members surest first."""

    group: int
    members: tuple[Stretch, ...]

    @property
    def speakers(self) -> int:
        """The number of known speakers."""
        return len({member.speaker for member in self.members} - {""})

    @property
    def seconds(self) -> float:
        """Mean duration, s."""
        return math.fsum(member.end - member.start for member in self.members) / len(self.members)

    @property
    def sure(self) -> float:
        """Mean of how sure the members are."""
        return math.fsum(member.sure or 0.0 for member in self.members) / len(self.members)

    def row(self) -> dict[str, float]:
        """The row of WORDS."""
        values = (self.group, len(self.members), self.speakers, round(self.seconds, 6), round(self.sure, 6))
        return dict(zip(WORDS.names, values, strict=True))

    def in_turns(self) -> Iterator[Stretch]:
        """The members by turns: the surest of each speaker, then the second of each, and so on."""
        by_speaker: dict[str, list[Stretch]] = defaultdict(list)
        for member in self.members:
            by_speaker[member.speaker].append(member)
        for turn in zip_longest(*by_speaker.values()):
            yield from (member for member in turn if member is not None)


def fragments_of(stretches: Sequence[Stretch], numbers: Mapping[str, int]) -> Fragments:
    """Members of classes as fragments, in their order; `numbers` of documents by name."""
    times = np.array([(stretch.start, stretch.end) for stretch in stretches], np.float64).reshape(-1, 2)
    onset, offset = ticks_of(times).T
    group = np.array([stretch.group for stretch in stretches], np.int64)
    document = np.array([numbers[stretch.document] for stretch in stretches], np.int64)
    names = tuple(str(number) for number in range(int(group.max(initial=-1)) + 1))
    return Fragments(document, onset, offset, group, names)


def word_list(stretches: Iterable[Stretch]) -> list[Word]:
    """Classes by number of speakers, then by how sure, then their own number; tokens of no class are left out."""
    members: dict[int, list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        if stretch.group is not None:
            members[stretch.group].append(stretch)
    words = [
        Word(group, tuple(sorted(group_members, key=lambda member: (-(member.sure or 0.0), member[1:5]))))
        for group, group_members in members.items()
    ]
    return sorted(words, key=lambda word: (-word.speakers, -word.sure, word.group))
