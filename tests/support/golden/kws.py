"""Kaldi's keyword search of a collection: a folder with scaled lattices as text, keywords as integers, and the program's hits.

Where `expected.json` is beside them, it holds every sequence of clusters by enumeration, and which of them the program reports.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from swsdist.lattices.formats import kaldi
from swsdist.lattices.lattice import Broken, Lattice, Origin
from swsdist.lattices.packed import connect, costs, forward_backward
from swsdist.methods.lattice.kaldi import Alternative, Factors
from tests.support.golden.runner import Case, needed, place, text, values

NAME = "keyword search"

#: Names of the file of lattices; frames of the features per frame of these.
_LATTICES = {"lattices.txt": 1, "scaled.txt": 3}

#: The program rounds weights to 1/1024 on the way.
_ROUNDED = 0.0015


class Hit(NamedTuple):
    """A keyword in the lattice of a key, from frame to frame; the cost is -ln of the score, at least 0."""

    keyword: str
    key: str
    start: int
    end: int
    cost: float


#: Words, or alternatives.
Keyword = Sequence[str] | Sequence[Alternative]


def kws_search(
    lattices: Iterable[Lattice],
    keywords: Mapping[str, Keyword],
    *,
    acoustic_scale: float = 1.0,
    lm_scale: float = 1.0,
    subsampling: int = 1,
    max_silence_frames: int = 50,
) -> Iterator[Hit]:
    """The hits of keywords in lattices: lattice by lattice, keywords in their order, by start.

    Ticks of the lattices are the frames of Kaldi's decoder, each of `subsampling` frames of the features; the longest silence
    within a keyword is in those.
    """
    alternatives = {name: list(_alternatives(keyword)) for name, keyword in keywords.items()}
    longest = int(max_silence_frames / subsampling + 0.5)
    for lattice in lattices:
        index = _factors(lattice, acoustic_scale, lm_scale, longest)
        for name, spoken in alternatives.items():
            for cost, start, end in sorted(index.hits(spoken), key=lambda hit: (hit[1:], hit[0])):
                yield Hit(name, lattice.key, start * subsampling, end * subsampling, max(0.0, cost))


def _alternatives(keyword: Keyword) -> Iterator[Alternative]:
    if words := [item for item in keyword if isinstance(item, str)]:
        yield Alternative(0.0, words)
    yield from (Alternative(*item) for item in keyword if not isinstance(item, str))


def _factors(lattice: Lattice, acoustic_scale: float, lm_scale: float, longest_silence: int) -> Factors:
    lattice = connect(lattice)
    arc_costs, _ = costs(lattice, acoustic_scale, lm_scale)
    total, alpha, beta, *_ = forward_backward(lattice, acoustic_scale, lm_scale)
    return Factors(
        lattice.times.tolist(),
        lattice.source.tolist(),
        lattice.target.tolist(),
        lattice.label.tolist(),
        {text: number for number, text in enumerate(lattice.labels)},
        (beta[lattice.target] - arc_costs - beta[lattice.source]).tolist(),
        (alpha + beta - total).tolist(),
        longest_silence,
    )


def handles(folder: Path) -> bool:
    """Has it the program's hits?"""
    return all(place(folder, name) for name in ("kws-search.txt", "keywords.int", "utter_id"))


def hits(folder: Path) -> list[Hit]:
    """Ours, of a case's lattices and keywords."""
    name, subsampling = next(item for item in _LATTICES.items() if place(folder, item[0]))
    keywords = {key: words for key, *words in map(str.split, text(folder, "keywords.int").splitlines())}
    return list(kws_search(_lattices(needed(folder, name)), keywords, subsampling=subsampling))


def _lattices(path: str) -> Iterator[Lattice]:
    for lattice in kaldi.read(Origin(path)):
        if isinstance(lattice, Broken):
            raise lattice.error
        yield lattice


def run(folder: Path) -> Case:
    """Compare hits and costs."""
    case = Case.of(folder)
    ours = [(hit.keyword, hit.key, hit.start, hit.end, hit.cost) for hit in hits(folder)]
    names = {number: key for key, number in map(str.split, text(folder, "utter_id").splitlines())}
    reported = (line.split() for line in text(folder, "kws-search.txt").splitlines())
    kaldi = [(row[0], names[row[1]], int(row[2]), int(row[3]), float(row[4])) for row in reported]
    _compare(case, "cost", ours, kaldi, _ROUNDED)
    if place(folder, "expected.json"):
        expected = values(folder, "expected.json")["hits"]
        kept = [(*row[:1], names[str(row[1])], *row[2:4], max(0.0, row[4])) for row in expected if row[5]]
        _compare(case, "cost by enumeration", ours, kept, 1e-9)
    return case


_Row = tuple[str, str, int, int, float]


def _compare(case: Case, measure: str, ours: Iterable[_Row], theirs: Iterable[_Row], tolerance: float) -> None:
    left, right = _by_place(ours), _by_place(theirs)
    for where in sorted(left.keys() | right.keys()):
        costs, stated = sorted(left.get(where, [])), sorted(right.get(where, []))
        what = " ".join(map(str, where))
        case.equal(f"hits of {what}", len(costs), len(stated))
        for cost, other in zip(costs, stated, strict=False):
            case.close(measure, cost, other, tolerance, what=f"{measure} of {what}")


def _by_place(rows: Iterable[_Row]) -> dict[tuple[str, str, int, int], list[float]]:
    result = defaultdict(list)
    for keyword, key, start, end, cost in rows:
        result[keyword, key, start, end].append(cost)
    return result
