"""Which points of a sweep are ranked and tested against each other: those that are scored by the same, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from swsdist.chains.sweep.chain import PointResult
from swsdist.chains.sweep.planning import SweepPoint, scored_by
from swsdist.chains.sweep.reading import Objective
from swsdist.chains.sweep.reading import Tests as Settings
from swsdist.chains.sweep.sweep import RankedPoints, rank_points
from swsdist.config import config_from_dict
from swsdist.score.compare.paired import holm, sign_flips

TESTS = Settings(resamples=200, permutations=200)


def result(number: int, values: dict[str, float], oracle: bool = False, **scored_by: str) -> PointResult:
    point = SweepPoint(
        number, {"k": number}, f"point-{number}", "crossfit", oracle, None, scored_by, "protocol stdeval: beta 1"
    )
    return PointResult(point, {"atwv": sum(values.values()) / len(values)}, values)


def some(seed: int, names: str, level: float) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {f"{names}{k}": level + 0.1 * float(rng.random()) for k in range(12)}


def judge(*results: PointResult) -> RankedPoints:
    return rank_points(results, ["atwv"], Objective(), TESTS)


def test_one_way_of_scoring_is_one_ranking() -> None:
    found = judge(*(result(k, some(k, "q", k / 10), beta="66.66") for k in (1, 2, 3)))
    assert found.best == (3, 2, 1)
    rows = found.table.to_pylist()
    assert [row["rank"] for row in rows] == [3, 2, 1]
    assert [row["scored_by"] for row in rows] == [None] * 3


def test_p_is_of_sign_flips_of_the_mean() -> None:
    """As in a comparison of systems, and Holm's of all that stand beside the best."""
    points = [result(k, some(k, "q", level)) for k, level in ((1, 0.1), (2, 0.17), (3, 0.2))]
    rows = judge(*points).table.to_pylist()
    best = [*points[2].values.values()]
    pairs = [(np.array([*point.values.values()]), np.array(best)) for point in points[:2]]
    p = [flip.p for flip in sign_flips(pairs, draws=TESTS.permutations, seed=TESTS.seed)]
    assert [row["p_sign_flip"] for row in rows] == [*p, None]
    assert [row["p_holm"] for row in rows] == holm([*p, None])
    assert rows[1]["p_wilcoxon"] != rows[1]["p_sign_flip"]


def test_points_of_other_references_change_nothing_of_the_others() -> None:
    """Their queries are others, so there are no pairs: intervals and tests are those of each way of scoring alone."""
    first = [result(k, some(k, "q", k / 10), references="a.csv") for k in (1, 2)]
    second = [result(k, some(k, "r", k / 10), references="b.csv") for k in (3, 4, 5)]
    found = judge(first[0], *second, first[1])
    assert [one.scored_by for one in found.rankings] == ["references: a.csv", "references: b.csv"]
    assert [one.best for one in found.rankings] == [(2, 1), (5, 4, 3)]
    assert found.best == (2, 5)
    rows = {row["point"]: row for row in found.table.to_pylist()}
    for alone in (judge(*first), judge(*second)):
        for row in alone.table.to_pylist():
            names = ("atwv_low", "atwv_high", "p_wilcoxon", "p_holm", "p_max_t", "difference", "rank")
            assert [rows[row["point"]][name] for name in names] == [row[name] for name in names]
    for row in rows.values():  # the mean lies in its interval, which no query that is missing has pulled down
        assert row["atwv_low"] <= row["atwv"] <= row["atwv_high"]
    assert rows[5]["p_max_t"] is None
    assert rows[2]["difference"] == 0.0


def test_what_follows_from_another_key_is_not_told() -> None:
    found = judge(*(result(k, some(k, "q", 0.5), beta=f"{k % 2}", cost=f"{k % 2}", tolerance="1") for k in range(1, 5)))
    assert [one.scored_by for one in found.rankings] == ["beta: 1", "beta: 0"]


def test_an_oracle_ranks_beside_none_but_oracles() -> None:
    found = judge(
        result(1, some(1, "q", 0.1), beta="1"),
        result(2, some(2, "q", 0.9), oracle=True, beta="1"),
        result(3, some(3, "q", 0.8), oracle=True, beta="2"),
    )
    assert [one.best for one in found.rankings] == [(1,), (3,)]
    assert [row["rank"] for row in found.table.to_pylist()] == [1, None, 1]


@pytest.mark.parametrize("values", [{}, {"q1": 0.5}])
def test_a_way_of_scoring_without_values_of_queries_is_untested(values: dict[str, float]) -> None:
    whole = PointResult(result(1, {"q": 0.5}, beta="1").point, {"atwv": 0.5}, values)
    found = judge(whole, result(2, some(2, "q", 0.4), beta="2"))
    assert [one.tested for one in found.rankings] == [bool(values), True]
    assert (found.table.to_pylist()[0]["atwv_low"] is None) == (not values)


def test_what_normalises_queries_is_nothing_that_is_scored_by() -> None:
    corpus = {"documents": "d.csv", "queries": "q.csv", "references": "r.csv", "queries_from": {"documents": "e.csv"}}
    alike = ("statistics=ours", "hours=0.1", "same_speakers=true", "speakers=speakers.csv", "prefer=[wav, flac]")
    keys = {**{f"queries_from.{key}": True for key in alike}, "speakers=speakers.csv": True}
    for key, same in (keys | {"queries_from.documents=elsewhere.csv": False, "references=others.csv": False}).items():
        sets = ([], [f"corpus.{key}"])
        first, second = (config_from_dict({"corpus": corpus, "run": "run"}, ".", each) for each in sets)
        assert first.corpus != second.corpus
        assert (scored_by(first) == scored_by(second)) is same, key
