"""Mode seed: the measures as the ZeroSpeech 2017 description defines them, on exact integers.

The result:

- `all`, and with talkers `within` (pairs of one talker) and, if there are two, `across` (pairs of two): values by measure
  (`swsdist.discovery.measures`), and `n_empty`, the fragments without a phone, which are left out;
- `folds`: by name of a set of folds, `folds` (values by measure, of each), `summary` (mean, population standard deviation,
  number of folds where defined) and `n`; with talkers the set `talkers`, a fold each;
- `left_out`: measure -> why it is not defined for what was given;
- `readings`: where a measure departs from the letter of the description, and which one does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from swsdist.discovery.measures import Measure, Value, by_talker, evaluated, restricted, summarised
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import Corpus, EvaluationSetup, Fragments, Intervals
from swsdist.registry.registries import DISCOVERY_MEASURES

#: Departures from the letter of the description, and the measures beside them that follow it.
READINGS = {
    "coverage": "counts phones, where the description counts frames; coverage_time counts their time",
    "boundary": "each wrong place is an item of its own, where the description gives all of them the index -1; "
    "boundary_one_wrong does",
    "matching": "completed parts have 3 to 20 phones as the pairs of P_all, where the description shows 2; "
    "matching_from_two has them",
}


def score(corpus: Corpus, classes: Fragments, setup: EvaluationSetup) -> dict[str, object]:
    """The result; see the module. Words may be missing."""
    left_out = _left_out(corpus, setup)
    measures = {name: DISCOVERY_MEASURES[name].load()() for name in DISCOVERY_MEASURES if name not in left_out}
    scene = Scene.of(corpus, classes)
    empty = {"n_empty": scene.empty}
    result: dict[str, object] = {"all": {**evaluated(measures, scene), **empty}}
    of_pairs = {name: measure for name, measure in measures.items() if DISCOVERY_MEASURES[name].pairs}
    if corpus.talker is not None and of_pairs:
        result["within"] = {**evaluated(of_pairs, scene, "within"), **empty}
        if len(np.unique(corpus.talker[scene.gold.phones.document])) > 1:
            result["across"] = {**evaluated(of_pairs, scene, "across"), **empty}
    folds = dict(setup.folds)
    if corpus.talker is not None:
        folds["talkers"] = by_talker(corpus)
    result["folds"] = {name: _over_folds(measures, corpus, classes, some) for name, some in folds.items()}
    return {**result, "left_out": left_out, "readings": READINGS}


def _left_out(corpus: Corpus, setup: EvaluationSetup) -> dict[str, str]:
    """The measures that are not defined, and why."""
    result = {}
    for name in DISCOVERY_MEASURES:
        entry = DISCOVERY_MEASURES[name]
        if setup.given not in entry.of:
            result[name] = f"not defined for {'a parse' if setup.given == 'parse' else setup.given}"
        elif entry.words and corpus.words is None:
            result[name] = "no words are given"
    return result


def _over_folds(
    measures: Mapping[str, Measure], corpus: Corpus, classes: Fragments, folds: Sequence[Intervals]
) -> dict[str, object]:
    """Values of each fold, and their summary."""
    values: list[dict[str, Mapping[str, Value]]] = []
    counts: list[dict[str, int]] = []
    for fold in folds:
        scene = Scene.of(*restricted(corpus, classes, fold))
        values.append(evaluated(measures, scene))
        counts.append({"n_empty": scene.empty})
    summary = {name: summarised([fold[name] for fold in values], DISCOVERY_MEASURES[name].gives) for name in measures}
    each = [{**fold, **count} for fold, count in zip(values, counts, strict=True)]
    return {"n": len(folds), "folds": each, "summary": summary}
