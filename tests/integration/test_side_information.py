"""Scores by speaker, cohort and side information in a run: examples are measured, and fitted values are read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import in_this_process

from swsdist.calibrate.procedure import Procedure
from swsdist.calibrate.statistics import from_table
from swsdist.calibrate.steps.norms import SpeakerNorm, SpeakerNormOptions
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.status import load_chain_run
from swsdist.reduce.examples import WHO, Speakers
from swsdist.testing.synthesis import make_corpus
from tests.support.coded import raises

pytestmark = pytest.mark.filterwarnings("ignore:.*negative-slope")
LLR = "calibrate.options={llr: {covariates: [duration, speech, mean, gap, length-ratio], curve: rising}}"


def fitted(folder: Path) -> dict[str, Any]:
    (path,) = (folder / "calibration").glob("*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.slow
def test_side_information_in_a_run(scene: Any) -> None:
    done = scene.run("calibrate.steps=[q-norm, llr, at-prior]", LLR, "report.exports=[]")
    values = fitted(scene.folder / "run")
    (llr, prior) = values["steps"]
    assert (llr["name"], prior["name"], len(llr["models"])) == ("llr", "at-prior", 5)
    assert {"score", "duration", "speech", "mean", "gap", "length-ratio", "offset", "curve"} == set(llr["models"][0])
    assert values["trained_on"]["scores"]["calibrate.steps"] == '["q-norm", "llr", "at-prior"]'
    scores = done.detections()["score"].to_numpy()
    assert 0 <= scores.min() <= scores.max() <= 1
    assert np.array_equal(done.detections()["decision"].to_numpy(bool), scores >= 0.5)
    # The same values from the file, on what it was not fitted on, as one fitted value.
    fit = f"calibrate.fit={scene.folder}/run"
    again = scene.run("calibrate.steps=[q-norm, llr, at-prior]", LLR, "report.exports=[]", fit, run="b")
    (one,) = fitted(scene.folder / "b")["steps"][0]["models"]
    assert one == {"mean_of": llr["models"]} or one == llr["models"][0]
    assert again.detections()["score"].between(0, 1).all()


@pytest.mark.until("decide")
def test_the_list_of_document_trials(own_corpus: Any) -> None:
    """What is fitted on a row a document gives them the same scores in the list of all detections."""
    steps = ("calibrate.steps=[q-norm, llr]", "calibrate.options={llr: {covariates: [best, gap]}}", "report.exports=[]")
    done = own_corpus.run(*steps, "score.trials=document")
    chain_run = load_chain_run(Folder(str(own_corpus.folder / "run")))
    (part,) = chain_run.table("calibration").parts
    procedure = Procedure.from_run(chain_run.run.read_bytes(part.name))
    assert procedure.by_document
    key = ["query_id", "doc_id", "channel", "start", "end"]
    trained = pa.concat_tables(procedure.scores(table) for table in chain_run.read("aligned")).to_pandas()
    trained = trained.dropna(subset="score")
    both = trained[[*key, "score"]].merge(done.detections(), on=key)
    assert len(both) == len(trained) < len(done.detections())
    assert np.array_equal(both["score_x"], both["score_y"])
    with raises(families.UNSUPPORTED, where="calibrate.steps", step="llr"):
        own_corpus.run(*steps, "score.protocol=kwseval", "score.trials=segment", run="segments")


@pytest.mark.slow
def test_all_queries_that_were_asked_have_trials(own_corpus: Any) -> None:
    """Also those that cannot be searched and occur nowhere: of the ratio of all trials they are non-targets."""
    steps = ("calibrate.steps=[q-norm, llr]", "calibrate.options={llr: {weights: trials}}", "calibrate.fit=oracle")

    def offset(run: str) -> float:
        scene = own_corpus.run(*steps, "report.exports=[]", "force=true", run=run)
        assert not scene.outcome.failures
        ((model,),) = [one["models"] for one in fitted(own_corpus.folder / run)["steps"] if one["name"] == "llr"]
        return float(model["offset"])

    three = offset("three")
    with (own_corpus.corpus / "queries.csv").open("a") as file:
        file.writelines(f"gone{k},,1,gone{k}.wav,,\n" for k in range(9))
    assert offset("twelve") > three + 1


def cohort(scene: Any, tmp_path: Path) -> str:
    """Four examples of other words, under the ids of the run's own queries: they are told apart all the same."""
    make_corpus(tmp_path / "others", documents=2, queries=4, seed=9)
    return f"corpus.cohort={tmp_path}/others/queries.csv"


@pytest.mark.slow
def test_a_cohort_is_searched_and_never_scored(scene: Any, tmp_path: Path) -> None:
    sets = ("calibrate.steps=[zt-norm]", cohort(scene, tmp_path), "report.exports=[]", "calibrate.fit=none")
    done = scene.run(*sets, run="a")
    plain = scene.run("calibrate.steps=[q-norm]", "report.exports=[]", run="plain")
    key = ["query_id", "doc_id", "start", "end"]
    one, other = (run.detections().sort_values(key).reset_index(drop=True) for run in (done, plain))
    assert one[key].equals(other[key])
    assert not one["score"].equals(other["score"])
    assert scene.report("a")["queries"] == scene.report("plain")["queries"]
    assert scene.report("a")["looked_at"] == ["own query"]
    # How the work is cut does not matter, and what the cohort was digested as is told.
    scene.run(*sets, "reduce.buckets=2", "index.shards=3", run="b")
    digest = scene.digest("a")
    assert digest == scene.digest("b")
    assert {"candidates.cohort", "queries.cohort"} <= digest.keys()


@pytest.mark.slow
def test_a_cohort_is_checked(scene: Any, tmp_path: Path) -> None:
    sets = ("--set", "calibrate.steps=[zt-norm]", "--set", cohort(scene, tmp_path))
    told = in_this_process("check", scene.config, *sets).out
    assert "4 queries, 4 examples; they are searched, and never scored" in " ".join(told.split())
    same = scene.run("calibrate.steps=[zt-norm]", f"corpus.cohort={scene.corpus}/queries.csv", "report.exports=[]")
    assert any("[cohort-example-is-query]" in warning for warning in scene.report()["warnings"]), same
    with pytest.raises(ConfigError, match="put llr before it"):
        scene.run("calibrate.steps=[zt-norm, at-prior]")


def test_a_cohort_that_no_step_asks_for(scene: Any, tmp_path: Path) -> None:
    with raises(families.UNUSED_OPTION, steps="q-norm"):
        scene.run(cohort(scene, tmp_path))
    with raises(families.UNSUPPORTED, method="lattice"):
        scene.run("chain=lattices", "search.method=lattice", "calibrate.steps=[zt-norm]", cohort(scene, tmp_path))
    with raises(families.MISSING_FILE, where="none.csv"):
        scene.run("calibrate.steps=[zt-norm]", f"corpus.cohort={scene.corpus}/none.csv")
    llr = "calibrate.steps=[q-norm, llr]"
    with raises(families.UNSUPPORTED):  # the entropy wants posteriors
        scene.run(llr, "calibrate.options={llr: {covariates: [entropy]}}")
    for steps in (
        (llr, "calibrate.options={llr: {covariates: [posterior-sum]}}"),
        ("calibrate.steps=[q-norm, speaker-norm]",),
    ):
        with raises(families.MISMATCH):
            scene.run(*steps)
    assert not (scene.folder / "run" / "store").exists()


STEPS = ("calibrate.steps=[speaker-norm]", "report.exports=[]")


def is_normed(scene: Any, result: Any, detections: pa.Table) -> None:
    """Whether a run's scores are those of its statistics, given whose its raw detections are."""
    statistics = from_table(pq.read_table(scene.folder / "run" / "tables" / "statistics"))
    expected = SpeakerNorm(SpeakerNormOptions()).apply(detections, None, statistics, None)
    keys = ["query_id", "doc_id", "channel", "start"]
    there = detections.select(keys).to_pandas().assign(expected=expected)
    found = result.detections().merge(there, on=keys)
    assert len(found) == len(there) > 0
    assert np.array_equal(found["score"], found["expected"])


@pytest.mark.until("decide")
def test_scores_are_those_of_the_statistics(scene: Any) -> None:
    plain = scene.run("report.exports=[]", "calibrate.steps=[q-norm]").detections()
    normed = scene.run(*STEPS)
    documents = scene.store().documents(columns=list(WHO))
    assert len(set(documents["speaker"].to_pylist())) > 1
    raw = pq.read_table(scene.folder / "run" / "tables" / "detections")
    is_normed(scene, normed, Speakers(documents, 0.01).of_detections(raw, recordings=False))
    both = normed.detections().merge(plain, on=["query_id", "doc_id", "channel", "start"])
    assert not np.allclose(both["score_x"], both["score_y"])


@pytest.mark.until("decide")
def test_recordings_of_several_speakers(own_corpus: Any) -> None:
    """Documents that are places in one recording: each detection is normalised by who speaks in its middle."""
    data, table = own_corpus.folder / "data", pd.read_csv(own_corpus.corpus / "docs.csv")
    data.mkdir()
    recording = table["doc_id"][0]
    (data / "wav.scp").write_text(f"{recording} {own_corpus.corpus / table['path'][0]}\n")
    (data / "segments").write_text(f"u1 {recording} 0 1\nu2 {recording} 1 2\n")
    (data / "utt2spk").write_text("u1 ada\nu2 eva\n")
    run = own_corpus.run(*STEPS, f"corpus.documents={data}", "corpus.references=null")
    raw = pq.read_table(own_corpus.folder / "run" / "tables" / "detections")
    named = np.array(raw["start"].to_numpy() + raw["end"].to_numpy() >= 2.0, np.int64)
    assert set(named.tolist()) == {0, 1}
    is_normed(own_corpus, run, raw.append_column("speaker", pa.array(named)))
