"""Posteriors of phrases at places, of lattices that recognisers wrote, and of phone loops.

A folder has `X.json` with `phrases`, rows (words, start, end, posterior, ...), beside `X.ark`, `X.slf`, `X.slf.gz`, `X.lat` or
`X.txt`, a lattice or several by key; or `X.json` with `log_posterior`, of a loop of phones.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from swsdist.lattices.collection import detect, read_file
from swsdist.lattices.decoding import Decoder, packed_arcs, phone_arcs
from swsdist.lattices.lattice import Broken, Lattice, Origin
from swsdist.lattices.packed import FILLERS, TICK, Packed, Recipe, pack
from tests.support.golden.runner import Case
from tests.support.lattices import places_of

NAME = "phrases in lattices"

#: Answers of real lattices have 9 digits.
TOLERANCE = 1e-9
#: The answers of HTK's lattices leave out chains of small posteriors: ours may be larger by this.
OF_HTK = 1e-4
#: Endings; the answers of Kaldi's lattices are of their text, whose numbers have 6 digits.
_ENDINGS = (".txt", ".slf", ".slf.gz", ".ark")
_NOT_WORDS = (*FILLERS, "!ENTER", "!EXIT")


def handles(folder: Path) -> bool:
    """Has it answers of phrases?"""
    return any(_answers(path) for path in sorted(folder.glob("*.json")))


def run(folder: Path) -> Case:
    """Compare all phrases of all lattices."""
    case = Case.of(folder)
    for path in sorted(folder.glob("*.json")):
        answers = _answers(path)
        if answers and "log_posterior" in answers:
            _phone_loop(case, path.stem, answers)
        elif answers:
            _lattices(case, path, answers)
    return case


def phrases(case: Case, what: str, packed: Packed, rows: list[list[Any]], tick: float, tolerance: float) -> None:
    """Compare rows (words, start, end, posterior), times in ticks of some seconds."""
    terms = sorted({tuple(map(str, words)) for words, *_ in rows})
    ours = places_of([packed], terms)
    number = {term: k for k, term in enumerate(terms)}
    factor = tick / TICK
    for words, start, end, posterior, *_ in rows:
        key = number[tuple(map(str, words))], 0, round(start * factor), round(end * factor)
        case.close("phrase", ours.get(key, 0.0), posterior, tolerance, what=f"{what}: {' '.join(map(str, words))}")
        if tolerance == OF_HTK:
            case.equal(f"{what}: not below", ours.get(key, 0.0) > posterior - TOLERANCE, True)


def _answers(path: Path) -> dict[str, Any] | None:
    """Answers of phrases: of a file of one lattice, or of several by key."""
    if path.name == "expected.json":
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict) or not values:
        return None
    first = values if "phrases" in values else next(iter(values.values()))
    return values if isinstance(first, dict) and "phrases" in first else None


def _lattices(case: Case, path: Path, answers: dict[str, Any]) -> None:
    beside = [path.with_name(path.stem + ending) for ending in _ENDINGS]
    file = next(file for file in beside if file.is_file())
    form = detect(str(file), {})
    case.equal(f"{file.name}: format", form is not None, True)
    for item in read_file(form or "kaldi", Origin(str(file))):
        if isinstance(item, Broken):
            case.equal(f"{file.name} is read", str(item.error), "a lattice")
            continue
        assert isinstance(item, Lattice)
        one = answers if "phrases" in answers else answers[item.key]
        scales = {name: one.get(name, 1.0) for name in ("acoustic_scale", "lm_scale")}
        packed = pack(item, Recipe(**scales, fillers=_NOT_WORDS, spelling="exact"))
        tick = 1.0 if one.get("time_unit") == "seconds" else item.tick
        phrases(case, f"{file.name} {item.key}", packed, one["phrases"], tick, OF_HTK if "header" in one else TOLERANCE)


def _phone_loop(case: Case, name: str, answers: dict[str, Any]) -> None:
    log_posterior = np.array(answers["log_posterior"])
    decoder = Decoder(answers["acoustic_scale"], answers["insertion"])
    arcs = phone_arcs(lambda first, stop: log_posterior[first:stop], len(log_posterior), decoder, 1e-300)
    if answers["total_logprob"] is None:
        case.equal(f"{name}: total", arcs.total, -np.inf)
        return
    case.close("total", arcs.total, answers["total_logprob"], TOLERANCE, what=f"{name}: total")
    columns = (column.tolist() for column in (arcs.starts, arcs.ends, arcs.phones, arcs.posteriors))
    ours = {(start, end, phone): posterior for start, end, phone, posterior in zip(*columns, strict=True)}
    for start, end, phone, posterior in answers["arcs"]:
        mine = ours.get((start, end, phone), 0.0)
        case.close("arc", mine, posterior, TOLERANCE, what=f"{name}: {start} {end} {phone}")
    phones = [str(phone) for phone in range(log_posterior.shape[1])]
    phrases(case, name, packed_arcs(arcs, phones, 0.01), answers["phrases"], 0.01, TOLERANCE)
