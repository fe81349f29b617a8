"""A run's measures are those of its exported list, scored against the same corpus as anybody's list is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kinds_of_corpora import KINDS, Made, make

import swsdist
from swsdist.evaluation.evaluate import Evaluation, evaluate, more_values, values
from swsdist.evaluation.lists import read_system
from swsdist.evaluation.reading import protocol_for, read_task
from swsdist.testing.synthesis import make_corpus

#: Protocol and what a trial is.
TRIALS = (("sws2013", "time"), ("kwseval", "time"), ("openkws13", "segment"), ("sws2013", "document"))
#: One coefficient, so that there are false alarms enough for measures to differ.
POOR = {"name": "mfcc", "transforms": [{"name": "columns", "options": {"keep": [3, 5]}}]}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Made, Path]]:
    """By kind of document: the corpus, and the folder of its runs, which share what they can."""
    corpus = tmp_path_factory.mktemp("corpus")
    make_corpus(corpus, documents=16, queries=6, voices=3)
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    return {kind: (make(kind, corpus, folder), folder / "run") for kind, folder in folders.items()}


def run(made: Made, folder: Path, protocol: str, trials: str, **values: Any) -> Any:
    """With the references that this kind of trial takes from a list's files, too."""
    by_words = trials == "segment"
    score = {"protocol": protocol, "trials": trials, "beta": 10.0, **({"speech": str(made.rttm)} if by_words else {})}
    return swsdist.run(
        {
            "run": str(folder),
            "corpus": {**made.corpus, **({"references": str(made.rttm)} if by_words else {})},
            "features": POOR,
            "score": score,
            "executor": {"kind": "serial"},
            "report": {"exports": ["csv"], "clips": 0},
            **values,
        }
    )


def scored(made: Made, folder: Path, protocol: str, trials: str) -> Evaluation:
    """The run's list, by the functions of `swsdist score`."""
    rules = protocol_for(protocol, None, segments=trials == "segment", documents=trials == "document", beta=10.0)
    words = {"rttm": str(made.rttm), "terms": str(made.terms)}
    task = read_task(
        ecf=str(made.ecf), protocol=rules, **(words if trials == "segment" else {"references": str(made.references)})
    )
    return evaluate(task, read_system(f"{folder}/exports/detections.csv", conventions=task.conventions))


@pytest.mark.parametrize(("protocol", "trials"), TRIALS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_measures_as_its_list_does(
    corpora: dict[str, tuple[Made, Path]], kind: str, protocol: str, trials: str
) -> None:
    made, folder = corpora[kind]
    mine = run(made, folder, protocol, trials).measures()
    result = scored(made, folder, protocol, trials)
    theirs = {**values(result), **more_values(result)}
    assert len(theirs) > 30
    assert {key: mine[key] for key in theirs} == theirs
    assert 0 < mine["pair_auc"] < 1


@pytest.mark.parametrize("kind", KINDS)
def test_areas_over_pairs_do_not_depend_on_the_trials(corpora: dict[str, tuple[Made, Path]], kind: str) -> None:
    """A pair is a query and a document, be trials what they may."""
    made, folder = corpora[kind]
    found = [run(made, folder, protocol, trials).measures() for protocol, trials in TRIALS if protocol == "sws2013"]
    assert {one["pooled_pair_auc"] for one in found} == {found[0]["pooled_pair_auc"]}
