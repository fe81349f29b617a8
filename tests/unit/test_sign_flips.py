"""Many against one: the corrected p values of Westfall and Young, held against all signs there are."""

from itertools import product

import numpy as np
import pytest

from swsdist.core.codes import families
from swsdist.score.compare.paired import max_t
from tests.support.coded import raises


def exactly(values: np.ndarray, against: np.ndarray) -> np.ndarray:
    """Step-down maxT by its definition, over every choice of signs."""
    differences = values - against
    size = np.sqrt((differences**2).sum(axis=1))
    signs = np.array(list(product([1.0, -1.0], repeat=values.shape[1])))
    statistics = np.abs(signs @ (differences / size[:, None]).T)
    observed = np.abs(differences.sum(axis=1)) / size
    order = np.argsort(-observed)
    found, worst = np.zeros(len(values)), 0.0
    for rank, k in enumerate(order):
        greatest = statistics[:, order[rank:]].max(axis=1)
        worst = max(worst, float((greatest >= observed[k] - 1e-9).mean()))
        found[k] = worst
    return found


def test_many_random_signs_come_near_all_signs() -> None:
    rng = np.random.default_rng(3)
    against = rng.normal(size=9)
    values = against + rng.normal(size=(5, 9)) * 0.6 + np.array([0.0, 0.1, 0.4, 0.8, -0.6])[:, None]
    found = max_t(values, against, permutations=40_000, seed=1)
    assert found == pytest.approx(exactly(values, against), abs=0.012)


def test_no_difference_is_no_evidence() -> None:
    against = np.arange(6.0)
    found = max_t(np.stack([against, against + 1e-14, against - 5 + 0.01 * against]), against, permutations=999)
    assert found[:2].tolist() == [1.0, 1.0]
    assert found[2] < 0.1


def test_the_same_seed_gives_the_same_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    against, values = rng.normal(size=20), rng.normal(size=(7, 20))
    whole = max_t(values, against, permutations=501, seed=9)
    monkeypatch.setattr("swsdist.score.compare.paired._CELLS", 70)
    assert max_t(values, against, permutations=501, seed=9).tolist() == whole.tolist()
    assert whole.min() >= 1 / 502


def test_nothing_to_test_is_told() -> None:
    assert max_t(np.zeros((0, 3)), np.zeros(3)).tolist() == []
    with raises(families.UNDEFINED, queries=0):
        max_t(np.zeros((2, 0)), np.zeros(0))
    with raises(families.UNDEFINED, permutations=0):
        max_t(np.zeros((2, 2)), np.zeros(2), permutations=0)
