"""A sweep from its file to its table and page.

A sweep runs a config at many points, or calibrates and scores lists of any program. In the second case each system's
list is read and aligned once, and scored at every point. Keys of such points are config keys that affect lists:
`calibrate.steps`, registered steps that work on a list; `calibrate.alpha`, `calibrate.options`; and `score.beta`. If
the last step is kst or sto, and no other step depends on the operating point, all points are scored from one sorted
list (`swsdist.calibrate.rescoring`). Any other point is calibrated and scored, as by `swsdist calibrate` and `swsdist
score`.

The table has one row per point, with intervals over queries and tests against the best point. Only points with the same
scoring setup (documents, queries, references and rules) are ranked together and tested against each other. Intervals
are percentiles of a bootstrap over queries, the same draws for all points. Tests are paired, over queries, of the mean
difference: sign flips, corrected by Holm, and the maxT test of Westfall and Young; Wilcoxon's, of ranks, stands beside
them (`swsdist.score.compare.paired`). The best point was chosen on the same queries, so the tests show which points are
worse here, not that it is better elsewhere.

Files in the sweep's folder: table, values of queries, page, plots, and the study of KST and STO.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdist.calibrate.rescoring import CompactList, Rescoring, Study, StudyEntry, study
from swsdist.calibrate.steps.by_term import Method
from swsdist.chains.sweep.chain import PointResult, SweepRun, point_at, run_sweep, values_by_query
from swsdist.chains.sweep.planning import (
    RESCORED,
    PlannedPoint,
    Plans,
    SweepPoint,
    alpha_of,
    decides_by_term,
    keys_text,
    of_point,
    plan_sweep,
)
from swsdist.chains.sweep.reading import CONFIG, Keys, Objective, SweepSpec, Tests, read_sweep
from swsdist.config import Config
from swsdist.config.loader import section_from, section_values
from swsdist.config.model import Calibrate, Score
from swsdist.config.template import shown
from swsdist.core.codes import families
from swsdist.core.codes import fuse as codes
from swsdist.core.errors import ConfigError, UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.text import counted, suggestion
from swsdist.evaluation.calibration import CalibrationRequest, as_text, calibrate, list_procedure, score_undecided
from swsdist.evaluation.evaluate import Evaluation, evaluate
from swsdist.evaluation.evaluate import values as values_of
from swsdist.evaluation.reading import protocol_for, read_task
from swsdist.evaluation.scoring_task import ScoringTask, System, read_system
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.io.tables import write_csv
from swsdist.pipeline.ledger import demand_run_folder
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import CALIBRATION, quantities
from swsdist.report import study as studied
from swsdist.report.study import captioned_figures, study_files, study_tables
from swsdist.report.summary import span
from swsdist.report.sweep import Ranking, SweepData, plots, render_sweep, text_lines
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.compare.paired import holm, max_t, rank_biserial, sign_flips, wilcoxon
from swsdist.score.events import measure_names
from swsdist.stages.inputs.provenance import calibration_place

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
    return RankedPoints(pa.table(columns), _by_query(results), keys, shown_measures, tuple(rankings))


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
TABLE, TABLE_CSV, QUERIES, VALUES = "points.parquet", "points.csv", "queries.parquet", "sweep.json"
PAGE = "sweep.html"

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
    """Names of several corpora, by their documents: the parts of these paths that differ; empty for a single corpus."""
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
        raise families.CONFLICTING_OPTIONS.of(ConfigError)(
            "report: kst needs points that end in kst or sto and measure only ATWV",
            "see configs/sweeps/kst_alpha.yaml",
            where=spec.at("report"),
        )
    return sorted(values)


_KEYS = ("calibrate.steps", "calibrate.alpha", "calibrate.options", "score.beta")


@dataclass(frozen=True)
class _ListPoint:
    """A point of a list: its calibration, and beta if not that of the task."""

    calibrate: Calibrate
    beta: float | None
    oracle: bool = False

    @property
    def method(self) -> Method | None:
        """The decision method, if the list is sorted once for many points."""
        return "oracle-kst" if self.oracle else decides_by_term(self.calibrate.steps)

    @property
    def alpha(self) -> float:
        """Alpha of the last step."""
        return 1.0 if self.oracle else alpha_of(self.calibrate)


class _SortedLists:
    """A system's list with its task, and a sorted list for each sequence of steps."""

    def __init__(self, name: str, task_name: str, task: ScoringTask, system: System, how: CalibrationRequest) -> None:
        self.name, self.task_name, self.task, self.system, self.how = name, task_name, task, system, how
        self.entries: dict[str, StudyEntry] = {}

    @cached_property
    def undecided(self) -> Evaluation:
        """The given list, scored."""
        return score_undecided(self.task, self.system)

    def request(self, at: _ListPoint) -> CalibrationRequest:
        """The request to `swsdist calibrate` for a point."""
        steps, options = at.calibrate.steps, at.calibrate.options
        decides = "" if CALIBRATION[steps[-1]].own_threshold else ",threshold"
        return replace(self.how, method=",".join(steps) + decides, alpha=at.calibrate.alpha, options=options)

    def entry(self, at: _ListPoint) -> StudyEntry:
        """The sorted list after all steps but the last."""
        *before, last = at.calibrate.steps
        options = {name: values for name, values in at.calibrate.options.items() if name != last}
        key = fingerprint(before, options)
        if key not in self.entries:
            request = replace(self.how, method=",".join((*before, "kst")), options=options)
            task = self.task
            procedure = list_procedure(self.system, request, task, task.point, lambda _: self.undecided)
            probable = procedure.before(len(procedure.steps) - 1)
            aligned, listed = (
                probable.scores(table) for table in (self.undecided.aligned, as_text(self.system.detections))
            )
            tolerance = task.protocol.tolerance if task.protocol.trials == "time" else None
            results = Rescoring.of_list(aligned, listed, tolerance=tolerance, conventions=task.conventions.name)
            name = f"{self.name} ({', '.join(before)})" if self.entries else self.name
            self.entries[key] = StudyEntry(name, self.task_name, results, task.trials, task.beta, procedure.fit)
        return self.entries[key]


def sweep_lists(spec: SweepSpec, notices: Notices) -> tuple[list[PointResult], list[StudyEntry], list[float]]:
    """Read all lists, and score them at all points, system by system.

    Args:
        spec: a sweep with lists.
        notices: receives warnings.

    Returns:
        Results of all points; the systems, for a study; and the values of alpha, ascending.

    Raises:
        ConfigError: a point has a key that no list depends on, or a measure needs more than decisions.
        UserError: files are missing, or a list has no hits or no false alarms to learn from.
        DataError: a file is broken.
    """
    assert spec.file.lists is not None
    if others := sorted(set(measure_names(spec.file.measures)) - set(RESCORED)):
        raise families.UNKNOWN_NAME.of(ConfigError)(
            "a sweep over lists has the measures {known}, not {measure}",
            "set measures: [{known}]",
            where=spec.at("measures"),
            known=", ".join(RESCORED),
            measure=others[0],
        )
    list_points = [_list_point(spec, number, keys) for number, keys in enumerate(spec.points, 1)]
    systems = list(_lists(spec, notices))
    results: list[PointResult] = []
    for system in systems:
        rows = [
            (dict(keys), at, number) for number, (keys, at) in enumerate(zip(spec.points, list_points, strict=True), 1)
        ]
        rows += _oracles(list_points) if spec.file.oracle_kst else []
        for keys, at, number in rows:
            with _of_point(spec, number):
                named = {"system": system.name, **keys} if len(systems) > 1 else keys
                results.append(_score_point(spec, system, at, named, len(results) + 1))
    alphas = sorted({at.alpha for at in list_points if at.method in ("kst", "sto")})
    return results, [entry for system in systems for entry in system.entries.values()], alphas


def _oracles(list_points: list[_ListPoint]) -> list[tuple[Keys, _ListPoint, int]]:
    """Oracle KST for each beta and each sequence of steps before kst or sto."""
    results: dict[str, tuple[Keys, _ListPoint, int]] = {}
    for number, at in enumerate(list_points, 1):
        if at.method in ("kst", "sto"):
            keys: Keys = {} if at.beta is None else {"score.beta": at.beta}
            keys["calibrate.steps"] = [*at.calibrate.steps[:-1], "oracle-kst"]
            results.setdefault(fingerprint(keys_text(keys)), (keys, replace(at, oracle=True), number))
    return list(results.values())


def _lists(spec: SweepSpec, notices: Notices) -> Iterator[_SortedLists]:
    """Read all systems' lists, with their tasks."""
    lists = spec.file.lists
    assert lists is not None
    fit = lists.fit
    if fit not in (None, "none", "crossfit", "oracle"):
        fit = calibration_place(str(fit), {}, spec.at("lists", "fit"))
    for name, section in lists.tasks.items():
        task = read_task(
            ecf=section.ecf,
            total_seconds=section.seconds,
            rttm=section.rttm,
            ctm=section.ctm,
            terms=section.terms,
            references=section.references,
            protocol=protocol_for(lists.protocol, section.terms, beta=lists.beta),
            notices=notices,
        )
        for system, path in section.systems.items():
            label = system if len(lists.tasks) == 1 else f"{name}/{system}"
            listed = read_system(path, conventions=task.conventions, notices=notices)
            yield _SortedLists(label, name, task, listed, CalibrationRequest("none", fit, lists.folds))


def _list_point(spec: SweepSpec, number: int, keys: Keys) -> _ListPoint:
    for key in (every := {**spec.file.set, **keys}):
        if not key.startswith(_KEYS):
            known = ", ".join(_KEYS)
            raise families.UNUSED_OPTION(
                "lists do not depend on {key}{meant}",
                "use keys of lists: {known}; other keys belong to a config",
                where=spec.where(number, key),
                key=key,
                meant=suggestion(key, _KEYS),
                known=known,
            )
    if "calibrate.steps" not in every:
        raise families.MISSING_INPUT.of(ConfigError)(
            "there is no calibrate.steps",
            "give steps, such as [kst], in points or in set; steps are {known}",
            where=spec.where(number, "calibrate.steps"),
            known=", ".join(CALIBRATION),
        )
    settings: dict[str, list[str]] = {"calibrate": [], "score": []}
    for key, value in every.items():
        settings[key.partition(".")[0]].append(f"{key}={shown(value)}")
    with _of_point(spec, number):
        calibrate = section_from(Calibrate, "calibrate", section_values(settings["calibrate"], "calibrate"))
        return _ListPoint(calibrate, section_from(Score, "score", section_values(settings["score"], "score")).beta)


@contextmanager
def _of_point(spec: SweepSpec, number: int) -> Iterator[None]:
    """Add the point to errors of its steps."""
    try:
        yield
    except UserError as error:
        if error.where and not error.where.startswith(("--method", "calibrate.", "score.")):
            raise
        raise of_point(error, spec.where(number)) from None


def _score_point(spec: SweepSpec, item: _SortedLists, at: _ListPoint, keys: Keys, number: int) -> PointResult:
    beta = item.task.beta if at.beta is None else at.beta
    measure, task = spec.file.objective.measure, item.task
    if at.method is not None:
        entry = item.entry(at)
        scored, fit = entry.sweep, entry.logistic
        results = scored.at(at.method, at.alpha, beta, trials=entry.trials)
        measures = {name: float(value[0]) for name, value in zip(RESCORED, results.points, strict=True)}
        counts = scored.ntrue, results.hits[:, 0], results.false_alarms[:, 0]
        values = values_by_query(measure, scored.names.to_pylist(), counts, beta=beta, trials=entry.trials)
    else:
        task = replace(
            task, point=replace(task.point, beta=beta), notices=Notices()
        )  # warnings were given for the list
        calibrated = calibrate(item.system, item.request(at), task, scored=lambda _: item.undecided)
        evaluated = evaluate(task, replace(item.system, detections=calibrated.detections), by_type=False)
        table = evaluated.overall.per_term
        fit, terms = calibrated.fit, table.filter(pc.greater(table["ntrue"], 0))
        found = values_of(evaluated, ("term-weighted",))
        measures = {name: value for name in RESCORED if (value := found[name]) is not None}
        column = quantities()[measure].by_query
        values = dict(zip(terms["query_id"].to_pylist(), terms[column].to_pylist(), strict=True))
    oracle = fit == "oracle" or at.oracle
    name = f"point-{fingerprint(item.name, keys_text({key: value for key, value in keys.items() if key != 'system'}))[:12]}"
    rules = replace(item.task.protocol, beta=beta).describe()
    point = SweepPoint(
        number, keys, name, fit, oracle, at.method, {"task": item.task_name, "score.beta": shown(beta)}, rules
    )
    return PointResult(point, measures, dict(sorted(values.items())))


@dataclass(frozen=True)
class SweepOutcome:
    """The results of a sweep.

    Attributes:
        results: of all points, in order.
        ranked: the table.
        notices: warnings.
        folder: of the results, in the run folder.
        tasks_done: tasks that were done now.
        lines: for a terminal.
    """

    results: list[PointResult]
    ranked: RankedPoints
    notices: tuple[str, ...]
    folder: str
    tasks_done: int
    lines: list[str]


def run_sweep_file(
    path: str, *, corpus: str | None, run: str | None, sets: tuple[str, ...], progress: Progress
) -> SweepOutcome:
    """Read a sweep, run its unfinished points, rank, and publish.

    Args:
        path: of the file.
        corpus, run, sets: in place of the file's, as for `plan_sweep`.
        progress: receives events.

    Raises:
        ConfigError: the file or a point is not valid.
        UserError, DataError: the inputs cannot be used.
    """
    spec = read_sweep(path)
    at = spec.file.report_alpha
    notices = Notices()
    study_result: Study | None = None
    text: list[str] = []
    if spec.file.lists is not None:
        folder = _folder_of_lists(spec, corpus, run, sets)
        demand_run_folder(folder)
        results, systems, alphas = sweep_lists(spec, notices)
        study_result = study(systems, alphas=alphas, alpha=at) if spec.file.report == "kst" else None
        tasks_done, name = 0, _name_of(spec, None)
    else:
        plans = plan_sweep(spec, corpus=corpus, run=run, sets=sets)
        alphas = alphas_of(spec, plans) if spec.file.report == "kst" else []
        config = plans.points[0].config
        folder, name = Folder(config.run, config.storage), _name_of(spec, config)
        demand_run_folder(folder)
        swept = run_sweep(plans, spec.file.objective.measure, progress)
        study_result, text = study_of(plans, swept, alphas, at) if alphas else None, list(swept.notices)
        results, tasks_done = swept.results, swept.tasks_done
    table = rank_points(results, measure_names(spec.file.measures), spec.file.objective, spec.file.tests)
    text += [str(notice) for notice in notices.entries.values()]
    data = data_of(spec, f"Sweep of {name}", table, results, text, study_result)
    publish(folder, spec, data, table, study_result)
    place = folder.path(place_of(spec))
    lines = text_lines(data)
    if study_result is not None:
        lines += ["", *studied.text_lines(study_result)]
    return SweepOutcome(results, table, (*text, *data.notices[len(text) :]), place, tasks_done, lines)


def _name_of(spec: SweepSpec, config: Config | None) -> str:
    """The name of the system, or of the sweep if it is over several."""
    several = config is None or any(CONFIG in keys for keys in spec.points)
    return os.path.splitext(os.path.basename(spec.path))[0] if several or config is None else config.system  # noqa: PTH119, PTH122


def _folder_of_lists(spec: SweepSpec, corpus: str | None, run: str | None, sets: tuple[str, ...]) -> Folder:
    if corpus is not None or sets:
        raise families.UNUSED_OPTION(
            "a sweep over lists has no config, so --corpus and --set have no effect",
            "write what is the same for all points below set, in the file",
            where=spec.at("lists"),
        )
    place = run or spec.file.run
    if place is None:
        raise codes.NO_RESULT_FOLDER(where=spec.at("run"))
    return Folder(place if "://" in place else os.path.abspath(place))  # noqa: PTH100
