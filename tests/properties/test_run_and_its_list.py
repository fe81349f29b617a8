"""A run's measures are those of its exported list, scored against the same corpus as anybody's list is."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from kinds_of_corpora import KINDS, TRIALS, Made, run

from swsdist.evaluation.evaluate import Evaluation, evaluate, more_values, values
from swsdist.evaluation.reading import protocol_for, read_task
from swsdist.evaluation.scoring_task import read_system


def scored(made: Made, folder: Path, protocol: str, trials: str, references: Path | None = None) -> Evaluation:
    """The run's list, by the functions of `swsdist score`."""
    rules = protocol_for(protocol, None, segments=trials == "segment", documents=trials == "document", beta=10.0)
    words = {"rttm": str(made.rttm), "terms": str(made.terms)}
    task = read_task(
        ecf=str(made.ecf),
        protocol=rules,
        **(words if trials == "segment" else {"references": str(references or made.references)}),
    )
    return evaluate(task, read_system(f"{folder}/exports/detections.csv", conventions=task.conventions))


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_so_it_does_without_the_queries_own_places(
    corpora: dict[str, tuple[Made, Path]], tmp_path: Path, kind: str
) -> None:
    """With the references that the run writes, for the corpus' own have these places."""
    made, _ = corpora[kind]
    with made.references.open(newline="") as file:
        first = {row["query_id"]: row for row in reversed(list(csv.DictReader(file)))}
    queries = pa.Table.from_pylist(list(first.values()))
    pyarrow.csv.write_csv(queries, tmp_path / "queries.csv")
    made = made._replace(corpus={**made.corpus, "queries": str(tmp_path / "queries.csv")})
    mine = run(made, tmp_path / "run", "sws2013", "time").measures()
    result = scored(made, tmp_path / "run", "sws2013", "time", tmp_path / "run" / "references.csv")
    theirs = {**values(result), **more_values(result)}
    assert {key: mine[key] for key in theirs} == theirs
    left = pyarrow.csv.read_csv(tmp_path / "run" / "references.csv")
    assert len(left) == len(pyarrow.csv.read_csv(made.references)) - len(first)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_areas_over_pairs_do_not_depend_on_the_trials(corpora: dict[str, tuple[Made, Path]], kind: str) -> None:
    """A pair is a query and a document, be trials what they may."""
    made, folder = corpora[kind]
    found = [run(made, folder, protocol, trials).measures() for protocol, trials in TRIALS if protocol == "sws2013"]
    assert {one["pooled_pair_auc"] for one in found} == {found[0]["pooled_pair_auc"]}
