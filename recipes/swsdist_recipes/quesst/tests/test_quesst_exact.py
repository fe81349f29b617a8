"""The measures of QUESST's program against their definitions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.score.measures.cnxe import Trials, cnxe_pav
from swsdist_recipes.quesst.program import Trials as QuesstTrials
from swsdist_recipes.quesst.program import score_trials
from tests.oracles import measures as oracle

scores = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 7.0])


@given(st.data(), st.integers(1, 3), st.integers(2, 4), st.sampled_from([0.0148, 0.3, 0.5]))
def test_quesst_is_its_definition(data: Any, many: int, documents: int, prior: float) -> None:
    row = st.lists(st.booleans(), min_size=documents, max_size=documents).filter(lambda r: 0 < sum(r) < documents)
    targets = data.draw(st.lists(row, min_size=many, max_size=many))
    values = data.draw(st.lists(st.lists(scores, min_size=documents, max_size=documents), min_size=many, max_size=many))
    order = data.draw(st.permutations([(q, d) for q in range(many) for d in range(documents)]))
    given_trials = data.draw(st.integers(0, len(order)))
    default = data.draw(scores)
    left_out = sorted(order[given_trials:])
    for q, d in left_out:
        values[q][d] = default
    every = [*order[:given_trials], *left_out]
    found = score_trials(
        QuesstTrials(
            np.array([q for q, _ in every]),
            np.array([values[q][d] for q, d in every]) + 0.0,
            np.array([targets[q][d] for q, d in every]),
            np.array([k < given_trials and values[q][d] > 0.1 for k, (q, d) in enumerate(every)]),
        ),
        prior,
    )
    beta = (1 - prior) / prior
    points = oracle.quesst_curve(values, targets)
    assert found.curve.threshold.tolist() == [point.threshold for point in points]
    assert found.curve.pmiss.tolist() == pytest.approx([float(point.pmiss) for point in points], abs=1e-12)
    assert found.curve.pfa.tolist() == pytest.approx([float(point.pfa) for point in points], abs=1e-12)
    best = max(1 - float(point.pmiss) - beta * float(point.pfa) for point in points)
    assert found.pooled.max_twv == pytest.approx(best, abs=1e-12)

    trials = [(values[q][d], targets[q][d]) for q, d in every]
    true, false = [x for x, hit in trials if hit], [x for x, hit in trials if not hit]
    assert found.pooled.act_cnxe == pytest.approx(oracle.cross_entropy(true, false, prior), rel=1e-12)
    assert found.pooled.min_cnxe == pytest.approx(oracle.quesst_least(trials, prior), abs=1e-12)
    # Equal scores that stay together can only be worse, and a query's own threshold only better.
    assert found.pooled.min_cnxe <= cnxe_pav(Trials.of(true, false), prior) + 1e-12
    assert found.per_query.max_twv >= found.per_query.act_twv - 1e-12
    assert found.per_query.min_cnxe <= found.per_query.act_cnxe + 1e-12
