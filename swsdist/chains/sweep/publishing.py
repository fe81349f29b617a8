"""The files of a sweep in its run folder: table, values of queries, page, plots, and the study of KST and STO.

The table of a sweep: one row per point, with intervals over queries and tests against the best point.

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from swsdist.calibrate.rescoring import CompactList, Rescoring, Study, StudyEntry, study
from swsdist.chains.sweep.planning import PlannedPoint, Plans, SweepPoint, alpha_of, keys_text
from swsdist.chains.sweep.reading import CONFIG, Objective, SweepSpec, Tests
from swsdist.chains.sweep.running import PointResult, SweepRun, point_at
from swsdist.config import Config
from swsdist.config.suggest import shown
from swsdist.core.codes import fuse as codes
from swsdist.core.text import counted
from swsdist.io.filesystem import Folder
from swsdist.io.tables import write_csv
from swsdist.registry.registries import CALIBRATION, quantities
from swsdist.report.study import captioned_figures, study_files, study_tables
from swsdist.report.summary import span
from swsdist.report.sweep import Ranking, SweepData, plots, render_sweep
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.compare.paired import holm, max_t, rank_biserial, sign_flips, wilcoxon

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


SCHEMA = "swsdist-sweep/1"

#: Names in the sweep's folder.
TABLE, TABLE_CSV, QUERIES, VALUES, PAGE = (
    "points.parquet",
    "points.csv",
    "queries.parquet",
    "sweep.json",
    "sweep.html",
)

#: Protocols shown in full.
_MOST_PROTOCOLS = 3


def data_of(
    spec: SweepSpec,
    name: str,
    ranked: RankedPoints,
    results: Sequence[PointResult],
    notices: Sequence[str] = (),
    studied: Study | None = None,
) -> SweepData:
    """The data of a sweep's page.

    Args:
        spec: its file.
        name: of the sweep.
        ranked: its table.
        results: of all points.
        notices: for readers.
        studied: the study of KST and STO, if requested.
    """
    objective = spec.file.objective
    failed = sum(bool(result.failed) for result in results)
    shared, alone = (sum(getattr(result, name) for result in results) for name in ("share", "cpu"))
    protocols = dict.fromkeys(result.point.protocol for result in results)
    if len(protocols) > _MOST_PROTOCOLS:
        protocols = dict.fromkeys(
            f"{protocol.partition(':')[0]}: values differ between points" for protocol in protocols
        )
    about = [
        *((name, rules) for name, _, rules in (protocol.partition(": ") for protocol in protocols)),
        ("points", f"{len(results)}" + (f", of which {failed} failed" if failed else "")),
        ("ranked by", f"{objective.measure}, the {'lowest' if objective.sign < 0 else 'highest'} first"),
    ]
    tests = spec.file.tests
    if any(ranking.tested for ranking in ranked.rankings):
        how = f"{tests.resamples} draws of queries; tests: {tests.permutations} changes of sign; seed {tests.seed}"
        about.append(("intervals", how))
    if shared:
        about.append(("CPU", f"{span(shared)}; without sharing: {span(alone)}"))
    notes = [*notices]
    if len(ranked.rankings) > 1:
        notes.append(
            f"The points have {len(ranked.rankings)} scoring setups (column scored_by). They are ranked and tested "
            "against each other only within a setup."
        )
    if unread := [result.point.number for result in results if _without_alpha(result.point)]:
        notes.append(
            f"calibrate.alpha changes nothing at {counted(len(unread), 'point')} (the first is point {unread[0]}): "
            "none of its steps reads it."
        )
    if spec.repeated:
        notes.append(f"{spec.repeated} draws repeated a point and are left out.")
    return SweepData(
        name,
        ranked.table,
        ranked.keys,
        ranked.measures,
        objective.measure,
        objective.sign < 0,
        ranked.rankings,
        tests.level,
        tuple(about),
        tuple(notes),
        tuple(captioned_figures(studied)) if studied is not None else (),
        tuple(study_tables(studied)) if studied is not None else (),
        (
            (TABLE, "the table"),
            (TABLE_CSV, "the same"),
            (QUERIES, "values of queries"),
            (VALUES, "settings and the best"),
        ),
    )


def _without_alpha(point: SweepPoint) -> bool:
    """Whether a point sets `calibrate.alpha` for steps that have no such option."""
    if "calibrate.alpha" not in point.keys or not isinstance(point, PlannedPoint):
        return False
    return not any("alpha" in CALIBRATION[name].load().model.model_fields for name in point.config.calibrate.steps)


def place_of(spec: SweepSpec) -> str:
    """The sweep's folder in the run folder; sweeps of other files may share its searches."""
    return f"sweeps/{Path(spec.path).stem}"


def publish(run: Folder, spec: SweepSpec, data: SweepData, ranked: RankedPoints, studied: Study | None) -> None:
    """Write all files into the sweep's folder in the run folder.

    Args:
        run: the run folder.
        spec: the sweep's file.
        data: of the page.
        ranked: the table.
        studied: the study of KST and STO, if requested.
    """
    texts = {VALUES: _values(spec, data, ranked), PAGE: render_sweep(data)}
    if studied is not None:
        texts |= {f"study/{name}": text for name, text in study_files(studied).items()}
    texts |= {f"plots/{name}.svg": svg for name, (_, svg) in plots(data).items()}
    place = place_of(spec)
    for name, table in ((TABLE, ranked.table), (QUERIES, ranked.queries)):
        with run.temporary(".parquet") as path:
            pq.write_table(table, path)
            run.publish(path, f"{place}/{name}")
    with run.temporary(".csv") as path:
        write_csv(ranked.table, ranked.table.schema, path)
        run.publish(path, f"{place}/{TABLE_CSV}")
    for name, text in texts.items():
        run.write_bytes(f"{place}/{name}", text.encode())


def _values(spec: SweepSpec, data: SweepData, ranked: RankedPoints) -> str:
    rows = {row["point"]: row for row in data.table.to_pylist()}
    values = {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "sweep": spec.path,
        "keys": data.keys,
        "measures": data.measures,
        "objective": {"measure": data.objective, "best": "lowest" if data.lowest else "highest"},
        "tests": spec.file.tests.model_dump(mode="json") if data.tested else None,
        "scored_by": [ranking.scored_by for ranking in data.rankings] if len(data.rankings) > 1 else None,
        "points": data.table.num_rows,
        "failed": {number: row["failed"] for number, row in rows.items() if row["failed"]},
        "best": [rows[number] for number in ranked.best[: None if len(data.rankings) > 1 else 10]],
    }
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)


# -- KST and STO ------------------------------------------------------------------------------------------------------


def study_of(plans: Plans, swept: SweepRun, alphas: Sequence[float], alpha: float | None) -> Study | None:
    """The study of Wang and Metze on the searches of a sweep; None without searches.

    Args:
        plans: of the sweep.
        swept: their results.
        alphas: of the curves.
        alpha: to compare at; None: the best of each method.
    """
    ranked: list[StudyEntry] = []
    oracles = {result.point.number for result in swept.results if result.point.oracle}
    tasks = tasks_of([group.config for group in plans.groups.values()])
    for number, (name, group) in enumerate(plans.groups.items(), 1):
        if name not in swept.rescorings or not group.by_term:
            continue
        chain_run, point = swept.rescorings[name], group.points[0]
        tables = [list(chain_run.read(table)) for table in ("terms", "ranks", "contested")]
        options = chain_run.config.options
        at = point_at(group.config, swept.searches[name])
        scored = Rescoring.of(
            [CompactList(*parts) for parts in zip(*tables, strict=True)],
            tolerance=options["tolerance"],  # type: ignore[arg-type]
            conventions=options["conventions"],  # type: ignore[arg-type]
        )
        inner = {
            key: value
            for key, value in point.keys.items()
            if not key.startswith(("calibrate.steps", "calibrate.alpha")) and key != CONFIG
        }
        system = group.config.system
        names = [*([system] if CONFIG in point.keys or not inner else []), *([keys_text(inner)] if inner else [])]
        label = ", ".join(names) if len(plans.groups) > 1 else system
        label = label if label not in [item.name for item in ranked] else f"{label} ({number})"
        fit = "oracle" if point.number in oracles else point.fit
        task = tasks.get(group.config.corpus.documents, system)
        ranked.append(
            StudyEntry(label, task, scored, at.trials, at.beta, fit if group.config.calibrate.fitted else "none")
        )
    return study(ranked, alphas=list(alphas), alpha=alpha) if ranked else None


def tasks_of(configs: Iterable[Config]) -> dict[str, str]:
    """Names of several corpora, by their documents: what differs in the paths of these; none of a single corpus."""
    paths = list(dict.fromkeys(config.corpus.documents for config in configs))
    if len(paths) < 2:
        return {}
    parts = [path.split("/") for path in paths]
    shared = next(k for k in range(max(map(len, parts))) if len({tuple(part[: k + 1]) for part in parts}) > 1)
    return {path: "/".join(part[shared:]) for path, part in zip(paths, parts, strict=True)}


def alphas_of(spec: SweepSpec, plans: Plans) -> list[float]:
    """Values of alpha among the points, ascending.

    Raises:
        ConfigError: no point has an alpha.
    """
    groups = [group for group in plans.groups.values() if group.by_term]
    values = {alpha_of(point.config.calibrate) for group in groups for point in group.points}
    if not values:
        raise codes.REPORT_WITHOUT_KST(where=spec.at("report"))
    return sorted(values)
