"""A run's measures are those of its exported list, scored against the same corpus as anybody's list is."""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds_of_corpora import KINDS, TRIALS, Made, run

from swsdist.evaluation.evaluate import Evaluation, evaluate, more_values, values
from swsdist.evaluation.lists import read_system
from swsdist.evaluation.reading import protocol_for, read_task


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
