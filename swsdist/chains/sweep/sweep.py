"""A whole sweep, from its file to its page.

A sweep over lists of any program: each system's list is read and aligned once, and scored at every point.

Keys of such points are config keys that affect lists: `calibrate.steps`, registered steps that work on a list;
`calibrate.alpha`, `calibrate.options`; and `score.beta`. If the last step is kst or sto, and no other step depends on the
operating point, all points are scored from one sorted list (`swsdist.calibrate.rescoring`). Any other point is
calibrated and scored, as by `swsdist calibrate` and `swsdist score`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow.compute as pc

from swsdist.calibrate.rescoring import Rescoring, Study, StudyEntry, study
from swsdist.calibrate.steps.by_term import Method
from swsdist.chains.sweep.planning import (
    RESCORED,
    SweepPoint,
    alpha_of,
    decides_by_term,
    keys_text,
    of_point,
    plan_sweep,
)
from swsdist.chains.sweep.publishing import RankedPoints, alphas_of, data_of, place_of, publish, rank_points, study_of
from swsdist.chains.sweep.reading import CONFIG, Keys, SweepSpec, read_sweep
from swsdist.chains.sweep.running import PointResult, run_sweep, values_by_query
from swsdist.config import Config
from swsdist.config.loader import section_from, section_values
from swsdist.config.model import Calibrate, Score
from swsdist.config.suggest import shown
from swsdist.core.codes import fuse as codes
from swsdist.core.errors import UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.text import suggestion
from swsdist.evaluation.calibration import CalibrationRequest, as_text, calibrate, list_procedure, score_undecided
from swsdist.evaluation.evaluate import Evaluation, evaluate
from swsdist.evaluation.evaluate import values as values_of
from swsdist.evaluation.reading import protocol_for, read_task
from swsdist.evaluation.scoring_task import ScoringTask, System, read_system
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.pipeline.ledger import demand_run_folder
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import CALIBRATION, quantities
from swsdist.report import study as studied
from swsdist.report.sweep import text_lines
from swsdist.score.events import measure_names
from swsdist.stages.inputs.provenance import calibration_place

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
        ConfigError: a point has a key that no list depends on, or a measure takes more than decisions.
        UserError: files are missing, or a list has no hits or no false alarms to learn from.
        DataError: a file is broken.
    """
    assert spec.file.lists is not None
    if others := sorted(set(measure_names(spec.file.measures)) - set(RESCORED)):
        raise codes.LIST_MEASURE(where=spec.at("measures"), known=", ".join(RESCORED), measure=others[0])
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
                results.append(
                    _score_point(
                        spec,
                        system,
                        at,
                        {"system": system.name, **keys} if len(systems) > 1 else keys,
                        len(results) + 1,
                    )
                )
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
            raise codes.LIST_KEY(where=spec.where(number, key), key=key, meant=suggestion(key, _KEYS), known=known)
    if "calibrate.steps" not in every:
        raise codes.LIST_STEPS(where=spec.where(number, "calibrate.steps"), known=", ".join(CALIBRATION))
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
        corpus, run, sets: in place of the file's, as of `planned`.
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
        raise codes.LISTS_WITHOUT_CONFIG(where=spec.at("lists"))
    place = run or spec.file.run
    if place is None:
        raise codes.NO_RESULT_FOLDER(where=spec.at("run"))
    return Folder(place if "://" in place else os.path.abspath(place))  # noqa: PTH100
