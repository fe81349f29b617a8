"""What `swsdist.run` and its like give back: tables of the current state, and in short what they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.chains.report.publish import from_run
from swsdist.core.types import TRIALS
from swsdist.evaluation.comparison import ComparisonRequest, compare_systems, gather_systems
from swsdist.score.compare.paired import Settings
from swsdist.score.measures.twv import PER_TERM

#: Fewer coefficients, so that not every decision is right.
POOR = "features={name: mfcc, transforms: [{name: columns, options: {keep: [3]}}]}"


def test_tables_are_those_of_the_current_state(finished: Any) -> None:
    """After a run was scored in two ways, files of both lie in its folder."""
    first = finished.run().measures()
    again = finished.run("score.protocol=kwseval", "score.beta=5", "score.tolerance=0.01")
    found = swsdist.run(finished.folder / "run/config.yaml")
    assert again.outcome.tasks_done > found.outcome.tasks_done == 0
    for name in ("detections", "terms", "trials", "det"):
        assert getattr(found, name)().equals(getattr(again, name)())
    for table, rows in {"terms": 3, "trials": len(found.trials()), "det": len(found.det())}.items():
        assert pq.read_table(finished.folder / "run/tables" / table).num_rows > rows
    assert len(found.terms()) == 3
    assert found.measures() == again.measures() != first


def test_tables_fit_together(scene: Any) -> None:
    done = scene.run(POOR, "score.beta=2")
    terms, trials, measures, det = done.terms(), done.trials(), done.measures(), done.det()
    assert (list(terms), list(trials), list(det)) == (PER_TERM.names, TRIALS.names, ["threshold", "pmiss", "pfa"])
    assert terms["query_id"].tolist() == ["q001", "q002", "q003"]
    assert terms["twv"].mean() == pytest.approx(measures["atwv"], abs=1e-12)
    hits = trials["decision"].eq(True) & trials["ref_start"].notna()
    assert hits.groupby(trials["query_id"]).sum().tolist() == terms["ncorr"].tolist()
    assert trials["ref_start"].notna().sum() == terms["ntrue"].sum()
    assert trials["score"].notna().sum() == len(done.detections())
    assert (trials.groupby("query_id")["score"].diff().dropna() <= 0).all()
    assert det["threshold"].iloc[-1] == np.inf, "it accepts nothing"
    assert np.isfinite(det["threshold"][:-1]).all()
    assert (1 - det["pmiss"] - 2 * det["pfa"]).max() == pytest.approx(measures["mtwv"], abs=1e-12)


def test_they_are_shown_in_short(finished: Any) -> None:
    done = finished.run()
    measures = done.measures()
    told = repr(done)
    assert len(told) < 300
    assert done.folder in told
    assert f"ATWV {measures['atwv']:.4f}" in told
    page = done._repr_html_()
    assert len(page) < 10_000
    for name in ("mtwv", "otwv", "pair_auc", "cnxe"):
        assert f"<td>{measures[name]:.4f}</td>" in page
    (finished.folder / "sweep.yaml").write_text(
        json.dumps(
            {
                "config": str(finished.config),
                "run": done.folder,
                "points": {"grid": {"score.beta": [1, 50]}},
                "measures": ["atwv"],
            }
        )
    )
    swept = swsdist.sweep(finished.folder / "sweep.yaml")
    assert len(repr(swept)) < 300
    assert "2 points" in repr(swept)
    assert swept._repr_html_().count("<tr>") == 3
    assert "store, 8 documents, 0.01449 h, mfcc>" in repr(swsdist.open_store(f"{done.folder}/store"))
    compared = compare_systems(
        gather_systems([f"a={done.folder}", f"b={done.folder}"], None, from_run), ComparisonRequest(), Settings()
    )
    assert repr(compared) == "<ComparisonData of a, b: ATWV, MTWV>"


def test_without_references_they_are_empty(scene: Any) -> None:
    done = scene.run("corpus.references=null", "report.exports=[]")
    assert len(done.detections()) > 0
    assert (len(done.terms()), len(done.trials()), len(done.det())) == (0, 0, 0)
    assert list(done.terms()) == PER_TERM.names
    assert done.measures() == {}
    assert "MTWV" not in repr(done)
    assert "Nothing was scored." in done._repr_html_()
