"""What `swsdist.run` and its like give back: tables of the current state, and in short what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.core.types import TRIALS
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
