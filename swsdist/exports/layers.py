"""Annotations of a document, and tiers that hold them without overlaps."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

#: The date of annotations of which nobody knows when they changed.
EPOCH = "1970-01-01T00:00:00"
#: A start and an end, ms.
Span = tuple[int, int]
#: Name and speaker of tiers.
Key = tuple[str, str]


class Row(NamedTuple):
    """An annotation: times in ms, texts of tiers below by their names; of equal times the best score comes first."""

    start: int
    end: int
    score: float
    text: str
    below: tuple[tuple[str, str], ...] = ()


class Annotated(NamedTuple):
    """A document with annotations.

    Attributes:
        file: of the export; its folder exists.
        rows: annotations by tier.
        path: of its recording, local or a url; empty if it is not known.
        end: of its recording, at least of the last annotation, ms.
        home: where the file will lie; None: nobody knows.
        base: a file of ELAN that the tiers are added to.
        date: when they were changed last, s, UTC; not that of writing: equal annotations give equal bytes.
    """

    file: Path
    rows: Mapping[Key, Sequence[Row]]
    path: str
    end: int
    home: Path | None = None
    base: Path | None = None
    date: str = EPOCH


class Tier(NamedTuple):
    """A tier without overlaps, in order of time; `suffix` follows its name, and those of the tiers below."""

    name: str
    suffix: str
    speaker: str
    rows: list[Row]


def layered(
    by_tier: Mapping[Key, Sequence[Row]], taken: Mapping[str, Sequence[Span] | None] | None = None
) -> list[Tier]:
    """Tiers of annotations that do not overlap, of some that may.

    Args:
        by_tier: annotations by name and speaker.
        taken: sorted spans that tiers hold already, by whole name; None: no annotation can be in a tier of this name.
    """
    tiers: list[Tier] = []
    for (name, speaker), rows in sorted(by_tier.items()):
        possible = (
            suffix
            for k, suffix in enumerate(suffixes(speaker))
            if (taken or {}).get(name + suffix, ()) is not None and not (k and (name + suffix, "") in by_tier)
        )
        layers: list[tuple[Tier, list[Span]]] = []
        for row in sorted(rows, key=lambda row: (row.start, row.end, -row.score, row.text, row.below)):
            place = next((each for each in layers if _fits(each[1], row)), None)
            while place is None:
                suffix = next(possible)
                layers.append((Tier(name, suffix, speaker, []), list((taken or {}).get(name + suffix) or ())))
                place = layers[-1] if _fits(layers[-1][1], row) else None
            place[0].rows.append(row)
            insort(place[1], row[:2])
        tiers += [tier for tier, _ in layers if tier.rows] or [Tier(name, next(possible), speaker, [])]
    return tiers


def suffixes(speaker: str) -> Iterator[str]:
    """What follows the name of a speaker's tier, of a second one, of a third."""
    return (f"{f' ({k})' * (k > 1)}{f'@{speaker}' * bool(speaker)}" for k in count(1))


def _fits(spans: Sequence[Span], row: Row) -> bool:
    """Whether a row overlaps none of some sorted spans."""
    k = bisect_left(spans, row[:2])
    return (k == 0 or spans[k - 1][1] <= row.start) and (k == len(spans) or spans[k][0] >= row.end)
