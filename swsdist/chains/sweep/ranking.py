"""The table of a sweep: one row per point, with intervals over queries and tests against the best point.

Only points with the same scoring setup (documents, queries, references and rules) are ranked together and tested against
each other.

Intervals are percentiles of a bootstrap over queries, the same draws for all points. Tests are paired, over queries, of the
mean difference: sign flips, corrected by Holm, and the maxT test of Westfall and Young; Wilcoxon's, of ranks, stands beside
them. The best point was chosen on the same queries, so the tests show which points are worse here, not that it is better
elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from swsdist.chains.sweep.reading import Objective, Tests
from swsdist.chains.sweep.running import PointResult
from swsdist.config.suggest import shown
from swsdist.registry.registries import quantities
from swsdist.report.sweep import Ranking
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.compare.sign_flips import max_t, sign_flips
from swsdist.score.compare.significance import holm, rank_biserial, wilcoxon

#: Points whose draws are in memory at once.
_AT_ONCE = 500


@dataclass(frozen=True)
class RankedPoints:
    """A sweep's table and its rankings.

    Attributes:
        table: a row a point.
        queries: a row a query of a point: point, query_id, value of the objective.
        keys: names of the columns of keys.
        measures: names of the columns of measures.
        rankings: one per scoring setup, in the order of their first points.
    """

    table: pa.Table
    queries: pa.Table
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    rankings: tuple[Ranking, ...]

    @property
    def best(self) -> tuple[int, ...]:
        """Numbers of the points, the best first; where there are several rankings, the best of each."""
        if len(self.rankings) == 1:
            return self.rankings[0].best
        return tuple(ranking.best[0] for ranking in self.rankings if ranking.best)


def rank_points(
    results: Sequence[PointResult], measures: Sequence[str], objective: Objective, tests: Tests
) -> RankedPoints:
    """Make the table.

    Args:
        results: of all points, in order.
        measures: to show; those without any value are omitted.
        objective: of the ranking.
        tests: of intervals and tests.
    """
    keys = tuple(dict.fromkeys(key for result in results for key in result.point.keys))
    shown_measures = tuple(
        name
        for name in measures
        if name == objective.measure or any(result.measures.get(name) is not None for result in results)
    )
    columns: dict[str, pa.Array] = {"point": pa.array([result.point.number for result in results], pa.int64())}
    columns["id"] = pa.array([result.point.name.removeprefix("point-") for result in results])
    for key in keys:
        columns[key] = _column([result.point.keys.get(key) for result in results])
    columns["fit"] = pa.array([result.point.fit for result in results])
    columns["oracle"] = pa.array([result.point.oracle for result in results])
    for name in shown_measures:
        columns[name] = pa.array([result.measures.get(name) for result in results], pa.float64())
    rankings, rows_by_number = [], dict[int, dict[str, float | None]]()
    alike = _by_scoring(results)
    for text, some in alike.items():
        ranking, rows = _rank(text, some, objective, tests)
        rankings.append(ranking)
        rows_by_number |= rows
    setups = {item.point.number: text for text, some in alike.items() for item in some}
    ranks = {number: rank for ranking in rankings for rank, number in enumerate(ranking.best, 1)}
    columns["scored_by"] = pa.array([setups[result.point.number] or None for result in results], pa.string())
    columns["rank"] = pa.array([ranks.get(result.point.number) for result in results], pa.int64())
    for name in dict.fromkeys(name for row in rows_by_number.values() for name in row):
        columns[name] = pa.array(
            [rows_by_number.get(result.point.number, {}).get(name) for result in results], pa.float64()
        )
    columns["cpu_s"] = pa.array([result.cpu for result in results], pa.float64())
    columns["cpu_share_s"] = pa.array([result.share for result in results], pa.float64())
    columns["digest"] = pa.array(
        [None if result.failed else digest_of(result, measures) for result in results], pa.string()
    )
    columns["failed"] = pa.array([result.failed or None for result in results], pa.string())
    return RankedPoints(
        pa.table(columns),
        _by_query(results),
        keys,
        shown_measures,
        tuple(rankings),
    )


def digest_of(point_result: PointResult, measures: Sequence[str]) -> str:
    """SHA-256 of a point's measures: of JSON, keys sorted."""
    values = {name: point_result.measures.get(name) for name in measures if name in point_result.measures}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _column(values: Sequence[object]) -> pa.Array:
    values_known = [value for value in values if value is not None]
    if values_known and all(isinstance(value, bool) for value in values_known):
        return pa.array(values, pa.bool_())
    if values_known and all(isinstance(value, int) and not isinstance(value, bool) for value in values_known):
        return pa.array(values, pa.int64())
    if values_known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values_known):
        return pa.array([None if value is None else float(str(value)) for value in values], pa.float64())
    return pa.array([None if value is None else shown(value) for value in values], pa.string())


def _by_scoring(results: Sequence[PointResult]) -> dict[str, list[PointResult]]:
    """Points by scoring setup, keyed by the differing keys of the setups in one line."""
    every = [result.point.scored_by for result in results]
    differing: list[str] = []
    groups = 1
    for key in dict.fromkeys(key for item in every for key in item):
        more = len({tuple(item.get(name) for name in (*differing, key)) for item in every})
        if more > groups:  # keys that follow from others, as a cost from beta, are omitted
            differing.append(key)
            groups = more
    rows_by_number: dict[str, list[PointResult]] = {}
    for result in results:
        text = ", ".join(f"{key}: {result.point.scored_by.get(key)}" for key in differing)
        rows_by_number.setdefault(text, []).append(result)
    return rows_by_number


def _rank(
    text: str, results: Sequence[PointResult], objective: Objective, tests: Tests
) -> tuple[Ranking, dict[int, dict[str, float | None]]]:
    """The ranking of points of one scoring setup; and by number, their intervals and tests, if any."""
    rated = [result for result in results if not result.failed and result.measures.get(objective.measure) is not None]
    ranked = sorted(rated, key=lambda item: (-objective.sign * item.measures[objective.measure], item.point.number))
    best = [item for item in ranked if not item.point.oracle] or ranked
    tested = bool(best) and all(item.values for item in rated)
    rows_by_number = _intervals_and_tests(rated, best[0], objective, tests) if tested else {}
    return Ranking(text, tuple(item.point.number for item in best), tested), rows_by_number


def _intervals_and_tests(
    used: Sequence[PointResult], best: PointResult, objective: Objective, tests: Tests
) -> dict[int, dict[str, float | None]]:
    # A query that a point lacks counts as all missed, as in a comparison of systems.
    lacking = quantities()[objective.measure].missed
    names = sorted({name for item in used for name in item.values})
    values = np.array([[item.values.get(name, lacking) for name in names] for item in used], np.float64)
    place = {item.point.number: k for k, item in enumerate(used)}
    at = place[best.point.number]
    limits = np.empty((len(used), 2))
    for first in range(0, len(used), _AT_ONCE):
        draws = bootstrap_terms(values[first : first + _AT_ONCE], resamples=tests.resamples, seed=tests.seed)
        for k in range(len(draws.observed)):
            limits[first + k] = draws.interval(k, level=tests.level)[:2]
    others = [k for k in range(len(used)) if k != at]
    p: list[float | None] = [None] * len(used)
    corrected: list[float | None] = [None] * len(used)
    flips = sign_flips([(values[k], values[at]) for k in others], draws=tests.permutations, seed=tests.seed)
    for k, flip, value in zip(
        others,
        flips,
        max_t(values[others], values[at], permutations=tests.permutations, seed=tests.seed).tolist(),
        strict=True,
    ):
        p[k], corrected[k] = flip.p, value
    by_holm = holm(p)
    return {
        item.point.number: {
            f"{objective.measure}_low": float(limits[k, 0]),
            f"{objective.measure}_high": float(limits[k, 1]),
            "p_sign_flip": p[k],
            "p_holm": by_holm[k],
            "p_max_t": corrected[k],
            "p_wilcoxon": wilcoxon(values[k], values[at]).p if k != at else None,
            "rank_biserial": rank_biserial(values[k], values[at]),
            "difference": item.measures[objective.measure] - best.measures[objective.measure],
        }
        for k, item in enumerate(used)
    }


def _by_query(results: Sequence[PointResult]) -> pa.Table:
    numbers = np.repeat([result.point.number for result in results], [len(result.values) for result in results])
    return pa.table(
        {
            "point": pa.array(numbers, pa.int64()),
            "query_id": pa.array([name for result in results for name in result.values], pa.string()),
            "value": pa.array([value for result in results for value in result.values.values()], pa.float64()),
        }
    )
