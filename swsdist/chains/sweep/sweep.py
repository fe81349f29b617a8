"""A whole sweep, from its file to its page."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swsdist.calibrate.operating_points.study import Study, study
from swsdist.chains.sweep.lists import sweep_lists
from swsdist.chains.sweep.planning import plan_sweep
from swsdist.chains.sweep.publishing import alphas_of, data_of, place_of, publish, study_of
from swsdist.chains.sweep.ranking import RankedPoints, rank_points
from swsdist.chains.sweep.reading import CONFIG, SweepSpec, read_sweep
from swsdist.chains.sweep.running import PointResult, run_sweep
from swsdist.config import Config
from swsdist.core.codes import sweep as codes
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.plan import demand_run_folder
from swsdist.report import study as studied
from swsdist.report.sweep import text_lines
from swsdist.score.parts.evaluating import measure_names


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
