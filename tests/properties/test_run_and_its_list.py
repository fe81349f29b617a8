"""A run's measures are those of its exported list, scored against the same corpus as anybody's list is."""

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from kinds_of_corpora import KINDS, TRIALS, Made, run

from swsdist.core.codes import families
from swsdist.evaluation.evaluate import Evaluation, evaluate, more_values, values
from swsdist.evaluation.reading import protocol_for, read_task
from swsdist.evaluation.scoring_task import read_system
from swsdist.registry.registries import CALIBRATION
from tests.support.coded import raises


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


# What was fitted on all that is scored cannot be improved on: its ATWV is the MTWV, whatever the step and the trials

#: Each step, behind what makes the scores that it takes; `fusion` joins systems, and has its own test.
STEPS = {
    name: [*{"any": [], "cost": [], "posterior": ["logistic"], "llr": ["llr"]}[CALIBRATION[name].takes], name]
    for name in CALIBRATION
    if "parts" not in CALIBRATION[name].columns
}


THRESHOLDS = [(name, "fitted") for name in STEPS] + [(name, "own") for name in STEPS if CALIBRATION[name].own_threshold]
#: All trials of files, the first of them quick; of each other kind of document those of one kind, by turns.
CASES = [
    pytest.param(*step, kind, *trials, marks=[] if (kind, k) == ("files", 0) else pytest.mark.slow)
    for n, step in enumerate(THRESHOLDS)
    for kind in KINDS
    for k, trials in enumerate(TRIALS)
    if kind == "files" or (n + KINDS.index(kind)) % len(TRIALS) == k
]


def refused(name: str, kind: str, trials: str) -> bool:
    """Whether a step says that it cannot do with such documents or trials, rather than doing something else."""
    return name in ("kst", "sto", "llr") and (trials == "segment" or (trials == "document" and kind == "places"))


@pytest.mark.parametrize(("name", "threshold", "kind", "protocol", "trials"), CASES)
def test_atwv_is_mtwv(
    corpora: dict[str, tuple[Made, Path]], name: str, threshold: str, kind: str, protocol: str, trials: str
) -> None:
    """Where the threshold is fitted; a step's own can be no better."""
    made, folder = corpora[kind]
    calibrate: dict[str, Any] = {"steps": STEPS[name], "fit": "oracle", "threshold": threshold}
    if name == "llr":
        calibrate["options"] = {"llr": {"covariates": ["best", "gap", "duration"]}}
    if refused(name, kind, trials):
        with raises(families.UNSUPPORTED):
            run(made, folder, protocol, trials, "score", calibrate=calibrate)
        return
    found = run(made, folder, protocol, trials, "score", calibrate=calibrate).measures()
    if threshold == "fitted":
        assert found["atwv"] == found["mtwv"]
        assert found["mtwv"] > 0 or name == "zt-norm"
    else:
        assert found["atwv"] <= found["mtwv"]


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "trials"), TRIALS)
def test_atwv_of_a_fusion_is_mtwv(
    corpora: dict[str, tuple[Made, Path]], tmp_path: Path, protocol: str, trials: str
) -> None:
    made, folder = corpora["files"]
    systems = []
    for name in ("cosine", "euclidean"):
        run(made, folder.parent / name, protocol, trials, "score", search={"distance": name})
        systems.append({"name": name, "run": str(folder.parent / name)})
    fused = {"chain": "fuse", "options": {"systems": systems}}
    calibrate = {"steps": ["fusion"], "fit": "oracle", "threshold": "fitted"}
    found = run(made, tmp_path / "fused", protocol, trials, "score", calibrate=calibrate, **fused).measures()
    assert found["atwv"] == found["mtwv"] > 0
