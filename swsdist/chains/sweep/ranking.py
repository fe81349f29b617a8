"""The table of a sweep: a row a point, with intervals over queries and tests against the best point.

Points are ranked, and tested against each other, where they are scored by the same: the same documents, queries, references
and rules. Values that are of something else make no rank together, and their queries no pairs.

Intervals are percentiles of a bootstrap over queries, the same draws for all points. Tests are paired, over queries:
Wilcoxon's, corrected by Holm, and the maxT test of Westfall and Young. The best point was chosen on the same queries, so a
test tells which points are worse than it, and not that it is better elsewhere.
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
from swsdist.score.compare.max_t import max_t
from swsdist.score.compare.significance import holm, wilcoxon

#: Points whose draws are held at once.
_AT_ONCE = 500


@dataclass(frozen=True)
class RankedPoints:
    """A sweep's table, and what it says.

    Attributes:
        table: a row a point.
        queries: a row a query of a point: point, query_id, value of the objective.
        keys: names of the columns of keys.
        measures: names of the columns of measures.
        rankings: of points that are scored by the same, in the order of their first points.
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
        return tuple(one.best[0] for one in self.rankings if one.best)


def rank_points(
    results: Sequence[PointResult], measures: Sequence[str], objective: Objective, tests: Tests
) -> RankedPoints:
    """Make the table.

    Args:
        results: of all points, in order.
        measures: to show; those that no point has are left out.
        objective: what best means.
        tests: of intervals and tests.
    """
    keys = tuple(dict.fromkeys(key for one in results for key in one.point.keys))
    shown_measures = tuple(
        name
        for name in measures
        if name == objective.measure or any(one.measures.get(name) is not None for one in results)
    )
    columns: dict[str, pa.Array] = {"point": pa.array([one.point.number for one in results], pa.int64())}
    columns["id"] = pa.array([one.point.name.removeprefix("point-") for one in results])
    for key in keys:
        columns[key] = _column([one.point.keys.get(key) for one in results])
    columns["fit"] = pa.array([one.point.fit for one in results])
    columns["oracle"] = pa.array([one.point.oracle for one in results])
    for name in shown_measures:
        columns[name] = pa.array([one.measures.get(name) for one in results], pa.float64())
    rankings, found = [], dict[int, dict[str, float | None]]()
    alike = _by_scoring(results)
    for told, some in alike.items():
        ranking, rows = _rank(told, some, objective, tests)
        rankings.append(ranking)
        found |= rows
    told_of = {one.point.number: told for told, some in alike.items() for one in some}
    ranks = {number: rank for one in rankings for rank, number in enumerate(one.best, 1)}
    columns["scored_by"] = pa.array([told_of[one.point.number] or None for one in results], pa.string())
    columns["rank"] = pa.array([ranks.get(one.point.number) for one in results], pa.int64())
    for name in dict.fromkeys(name for row in found.values() for name in row):
        columns[name] = pa.array([found.get(one.point.number, {}).get(name) for one in results], pa.float64())
    columns["cpu_s"] = pa.array([one.cpu for one in results], pa.float64())
    columns["cpu_share_s"] = pa.array([one.share for one in results], pa.float64())
    columns["digest"] = pa.array([None if one.failed else digest_of(one, measures) for one in results], pa.string())
    columns["failed"] = pa.array([one.failed or None for one in results], pa.string())
    return RankedPoints(
        pa.table(columns),
        _by_query(results),
        keys,
        shown_measures,
        tuple(rankings),
    )


def digest_of(one: PointResult, measures: Sequence[str]) -> str:
    """SHA-256 of a point's measures: of JSON, keys sorted."""
    values = {name: one.measures.get(name) for name in measures if name in one.measures}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _column(values: Sequence[object]) -> pa.Array:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return pa.array(values, pa.bool_())
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return pa.array(values, pa.int64())
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return pa.array([None if value is None else float(str(value)) for value in values], pa.float64())
    return pa.array([None if value is None else shown(value) for value in values], pa.string())


def _by_scoring(results: Sequence[PointResult]) -> dict[str, list[PointResult]]:
    """Points that are scored by the same, by in what that differs from the others, in a line."""
    every = [one.point.scored_by for one in results]
    telling: list[str] = []
    ways = 1
    for key in dict.fromkeys(key for one in every for key in one):
        more = len({tuple(one.get(name) for name in (*telling, key)) for one in every})
        if more > ways:  # what follows from other keys, as a cost does from beta, tells nothing
            telling.append(key)
            ways = more
    found: dict[str, list[PointResult]] = {}
    for one in results:
        told = ", ".join(f"{key}: {one.point.scored_by.get(key)}" for key in telling)
        found.setdefault(told, []).append(one)
    return found


def _rank(
    told: str, results: Sequence[PointResult], objective: Objective, tests: Tests
) -> tuple[Ranking, dict[int, dict[str, float | None]]]:
    """The ranking of points that are scored by the same; and by number, intervals and tests, as far as there are any."""
    rated = [one for one in results if not one.failed and one.measures.get(objective.measure) is not None]
    ranked = sorted(rated, key=lambda one: (-objective.sign * one.measures[objective.measure], one.point.number))
    best = [one for one in ranked if not one.point.oracle] or ranked
    tested = bool(best) and all(one.values for one in rated)
    found = _intervals_and_tests(rated, best[0], objective, tests) if tested else {}
    return Ranking(told, tuple(one.point.number for one in best), tested), found


def _intervals_and_tests(
    used: Sequence[PointResult], best: PointResult, objective: Objective, tests: Tests
) -> dict[int, dict[str, float | None]]:
    # A query that a point lacks counts as all missed, as in a comparison of systems.
    lacking = quantities()[objective.measure].missed
    names = sorted({name for one in used for name in one.values})
    values = np.array([[one.values.get(name, lacking) for name in names] for one in used], np.float64)
    place = {one.point.number: k for k, one in enumerate(used)}
    at = place[best.point.number]
    limits = np.empty((len(used), 2))
    for first in range(0, len(used), _AT_ONCE):
        draws = bootstrap_terms(values[first : first + _AT_ONCE], resamples=tests.resamples, seed=tests.seed)
        for k in range(len(draws.observed)):
            limits[first + k] = draws.interval(k, level=tests.level)[:2]
    p = [wilcoxon(row, values[at]).p if k != at else None for k, row in enumerate(values)]
    others = np.array([k for k in range(len(used)) if k != at], np.int64)
    corrected: list[float | None] = [None] * len(used)
    for k, value in zip(
        others.tolist(),
        max_t(values[others], values[at], permutations=tests.permutations, seed=tests.seed).tolist(),
        strict=True,
    ):
        corrected[k] = value
    by_holm = holm(p)
    return {
        one.point.number: {
            f"{objective.measure}_low": float(limits[k, 0]),
            f"{objective.measure}_high": float(limits[k, 1]),
            "p_wilcoxon": p[k],
            "p_holm": by_holm[k],
            "p_max_t": corrected[k],
            "difference": one.measures[objective.measure] - best.measures[objective.measure],
        }
        for k, one in enumerate(used)
    }


def _by_query(results: Sequence[PointResult]) -> pa.Table:
    numbers = np.repeat([one.point.number for one in results], [len(one.values) for one in results])
    return pa.table(
        {
            "point": pa.array(numbers, pa.int64()),
            "query_id": pa.array([name for one in results for name in one.values], pa.string()),
            "value": pa.array([value for one in results for value in one.values.values()], pa.float64()),
        }
    )
