"""Lattices by enumeration: one lattice in several formats, and what all of its paths, one by one, add up to.

A case has `expected.json` and any of `compact.txt`, `compact.ark`, `lattice.txt`, `lattice.ark` (Kaldi) and `lattice.slf`
(HTK); `words.txt` lies there or in a folder above. `run` compares every file with the answers; what is compared of a lattice
is a function (case, name of the file, lattice, answers) in `CHECKS`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from swsdist.core.arrays import Floats, Ints
from swsdist.lattices.formats import htk, kaldi
from swsdist.lattices.lattice import Broken, Lattice, Origin
from swsdist.lattices.packed import Recipe, best, connect, forward_backward, pack
from tests.support.golden.runner import Case, place, values
from tests.support.lattices import places_of

NAME = "lattices by enumeration"

FILES = {f"{kind}.{ending}": kaldi.read for kind in ("compact", "lattice") for ending in ("txt", "ark")}
FILES["lattice.slf"] = htk.read

#: On posteriors, and relative on logs and costs; posteriors of costs of 1e5 lose digits.
TOLERANCE, OF_LARGE = 1e-9, 1e-6
_LARGE = 1e4
#: ms between two words of a phrase, in the answers that bound it.
_GAP = 500


def handles(folder: Path) -> bool:
    """Has it answers and a lattice?"""
    return place(folder, "expected.json") is not None and any(place(folder, name) for name in FILES)


def run(folder: Path) -> Case:
    """Compare each file with the answers."""
    case = Case.of(folder)
    expected = values(folder, "expected.json")
    words = words_of(folder)
    for name, read in FILES.items():
        if (path := place(folder, name)) is None:
            continue
        if name.endswith(".slf") and not expected["paths"] and expected["arc_list"]:
            case.treated.append(f"{name}: a lattice without final states cannot be written in SLF")
            continue
        for lattice in read(Origin(str(path), words=words)):
            if isinstance(lattice, Broken):
                case.equal(f"{name} is read", str(lattice.error), "a lattice")
                continue
            for check in CHECKS:
                check(case, name, lattice, expected)
    return case


def words_of(folder: Path) -> dict[int, str] | None:
    """Texts of words, from words.txt in a folder or the next above that has it."""
    for above in (folder, *folder.resolve().parents):
        if (above / "words.txt").is_file():
            rows = (line.split() for line in (above / "words.txt").read_text(encoding="utf-8").splitlines())
            return {int(number): word for word, number in rows}
    return None


def path_words(lattice: Lattice, arcs: Ints) -> list[str]:
    """Words of a path."""
    return [lattice.labels[label] for label in lattice.label[arcs] if label]


def shape(case: Case, name: str, lattice: Lattice, expected: dict[str, Any]) -> None:
    """States, arcs and times of a CompactLattice; the length of any."""
    if expected["paths"]:
        case.equal(f"{name}: length", lattice.length, expected["frames"])
    if not name.startswith("compact"):
        return
    case.equal(
        f"{name}: times of reached states",
        [int(at) for at, known in zip(lattice.times, expected["state_times"], strict=True) if known is not None],
        [known for known in expected["state_times"] if known is not None],
    )
    arcs = [
        (int(source), int(target), lattice.labels[label])
        for source, target, label in zip(lattice.source, lattice.target, lattice.label, strict=True)
    ]
    case.equal(f"{name}: arcs", arcs, [tuple(expected["arc_list"][k][:3]) for k in order(name, expected)])


def order(name: str, expected: dict[str, Any]) -> list[int]:
    """Arcs of the answers in the order of a file: binary files have them by state."""
    arcs = range(len(expected["arc_list"]))
    return list(arcs) if name.endswith(".txt") else sorted(arcs, key=lambda k: expected["arc_list"][k][0])


def sums(case: Case, name: str, lattice: Lattice, expected: dict[str, Any]) -> None:
    """Totals and best paths; of the arcs that are the answers' arcs, posteriors, too."""
    for answers in expected["scales"]:
        scales = answers["acoustic_scale"], answers["lm_scale"]
        at = f"{name} at {scales}"
        for part in (lattice, connect(lattice)):
            ours, path = forward_backward(part, *scales), best(part, *scales)
            if answers["total_logprob"] is None or answers["best_cost"] is None:
                case.equal(f"{at}: total", ours.total, -np.inf)
                case.equal(f"{at}: best cost", path.cost, np.inf)
                continue
            size = max(1.0, abs(answers["total_logprob"]))
            case.close("total", ours.total / size, answers["total_logprob"] / size, TOLERANCE, what=f"{at}: total")
            case.close("best cost", path.cost / size, answers["best_cost"] / size, TOLERANCE, what=f"{at}: best cost")
            case.equal(f"{at}: a best path", path_words(part, path.arcs) in answers["best_words"], True)
        if name.startswith("compact"):
            _posteriors(case, at, lattice, answers, order(name, expected))


def _posteriors(case: Case, at: str, lattice: Lattice, answers: dict[str, Any], places: list[int]) -> None:
    ours = forward_backward(lattice, answers["acoustic_scale"], answers["lm_scale"])
    tolerance = OF_LARGE if abs(answers["total_logprob"] or 0) > _LARGE else TOLERANCE
    _close(case, f"{at}: arc posteriors", ours.arcs, [answers["arc_posterior"][k] for k in places], tolerance)
    finals = [answers["final_posterior"].get(str(state), 0.0) for state in range(lattice.states)]
    _close(case, f"{at}: final posteriors", ours.finals, finals, tolerance)
    # Of each state that is used, what leaves it is 1.
    leaving: Floats = np.bincount(lattice.source, ours.pushed, minlength=lattice.states).astype(np.float64)
    used = np.exp(ours.alpha + ours.beta - ours.total) if np.isfinite(ours.total) else np.zeros(lattice.states)
    ending = np.divide(ours.finals, used, out=np.zeros(lattice.states), where=used > 0)
    _close(case, f"{at}: pushed", (leaving + ending)[used > 0], [1.0] * int(np.count_nonzero(used)), tolerance)
    if answers["best_cost"] is not None and answers["best_paths"] <= len(answers["best_arcs"]):
        path = best(lattice, answers["acoustic_scale"], answers["lm_scale"])
        arcs = [places[arc] for arc in path.arcs]
        case.equal(f"{at}: best arcs", arcs in answers["best_arcs"], True)


def _close(case: Case, what: str, ours: Floats, known: list[float], tolerance: float) -> None:
    case.equal(f"{what}: number", len(ours), len(known))
    apart = float(np.max(np.abs(ours - np.array(known)), initial=0.0))
    case.close(what.rpartition(": ")[2], apart, 0.0, tolerance, what=what)


def phrases(case: Case, name: str, lattice: Lattice, expected: dict[str, Any]) -> None:
    """Posteriors of phrases at places; with gaps of at most half a second, too."""
    packed = pack(lattice, Recipe(spelling="exact", fillers=()))
    terms = sorted({tuple(words) for words, *_ in expected["phrases"]})
    number = {term: k for k, term in enumerate(terms)}
    tolerance = OF_LARGE if abs(expected["scales"][0]["total_logprob"] or 0) > _LARGE else TOLERANCE
    for gap, column in ((1 << 30, 3), (_GAP, 5)):
        ours = places_of([packed], terms, gap) if terms else {}
        for row in expected["phrases"]:
            key = number[tuple(row[0])], 0, 10 * row[1], 10 * row[2]
            posterior: float = row[column]
            case.close("phrases", ours.pop(key, 0.0), posterior, tolerance, what=f"{name}: {' '.join(row[0])} {row[1]}")
        case.close("other places", max(ours.values(), default=0.0), 0.0, tolerance, what=f"{name}: other places")


CHECKS: tuple[Callable[[Case, str, Lattice, dict[str, Any]], None], ...] = (shape, sums, phrases)
