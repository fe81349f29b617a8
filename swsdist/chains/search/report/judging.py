"""What makes a hit of a search without a run likely: the score that decided in a run, or one of the query's own scores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from swsdist.calibrate.logistic import STEPS_SCHEMA
from swsdist.calibrate.procedure import Procedure
from swsdist.calibrate.threshold import Calibration
from swsdist.chains.search.told import Fitted
from swsdist.errors import ConfigError, UserError
from swsdist.io.filesystem import Folder, locate
from swsdist.methods.direct import settings_of
from swsdist.pipeline.course import Course
from swsdist.pipeline.inspection.recorded import remains
from swsdist.report.answers.hits import LIKELY

#: Steps that make a score of a score; others look at a whole list.
_OF_ONE = {"logistic"}

_REMEDY = "name a run that was decided, or a file of its folder calibration/"


@dataclass(frozen=True)
class Judge:
    """What makes a hit likely.

    Attributes:
        threshold: least final score of a likely hit.
        said: the same in words.
        steps: that make final scores of q-normed ones; None: these are final.
        warnings: what is odd about it.
    """

    threshold: float
    said: str
    steps: Procedure | None = None
    warnings: tuple[str, ...] = ()

    def likely(self, found: pa.Table) -> list[bool]:
        """Of each hit of DETECTIONS, with q-normed scores."""
        scores = (found if self.steps is None else self.steps.scores(found))["score"].to_numpy()
        said: list[bool] = np.greater_equal(scores, self.threshold).tolist()
        return said


def by_score() -> Judge:
    """By the query's own scores: nothing was fitted."""
    return Judge(LIKELY, f"a score of {LIKELY:g}")


def of_run(course: Course) -> Judge | None:
    """By what decided in a run; None where nothing did, or where that cannot be applied to the hits of another search."""
    told = course.told("fit", Fitted)
    known = [one for one in told[0].thresholds if one is not None and math.isfinite(one)] if told else []
    settings = course.config.calibrate
    if not known or settings.unfitted != ("q-norm",) or set(settings.fitted) - _OF_ONE:
        return None
    if not settings.fitted:
        least = sum(known) / len(known)
        return Judge(least, f"a score of {least:.3f} decided in that run")
    (part,) = course.parts("fit", "calibration")
    try:
        return _of_steps(course.run.read_bytes(part.name), part.name, "decided in that run")
    except FileNotFoundError:
        return None


def named(path: str, options: Mapping[str, object], storage: Mapping[str, object] | None = None) -> Judge:
    """By a calibration that the user names.

    Args:
        path: a file that `fit` wrote, below calibration/ of a run, or a run's folder.
        options: keys of the config's section `search`, by which is searched now.
        storage: options for s3fs.

    Raises:
        ConfigError: it is no calibration, or of scores that a search without a run does not have.
        UserError: there is no such file.
    """
    where = f"--calibration {path}"
    folder = Folder(path.rstrip("/"), storage or {})
    if folder.exists("plan.json"):
        course = remains(folder)
        judge = of_run(course)
        if judge is None:
            steps = ", ".join(course.config.calibrate.steps)
            raise ConfigError(
                f"nothing decided in this run, or by steps that need a whole list ({steps})",
                where=where,
                remedy=_REMEDY,
            )
        theirs, mine = course.config.search.matters(), settings_of(options).matters()
        other = [key for key in theirs if theirs[key] != mine.get(key)]
        said = judge.said.replace("in that run", f"in {path}")
        odd = (f"{path} was fitted on scores of another search: {', '.join(other)}",) if other else ()
        return Judge(judge.threshold, said, judge.steps, odd)
    home, name = locate(path, storage)
    if home.local() is not None and Path(path).is_dir():
        raise UserError("this folder is not a run", where=where, remedy=_REMEDY)
    try:
        data = home.read_bytes(name)
    except FileNotFoundError:
        raise UserError("there is no such file", where=where, remedy=_REMEDY) from None
    fitted = _of_steps(data, where, f"was fitted in {path}")
    if fitted is not None:
        return fitted
    least = Calibration.from_json(data, where).thresholds[0]
    assert least is not None  # from_json refuses a file without one
    return Judge(least, f"a score of {least:.3f} was fitted in {path}")


def _of_steps(data: bytes, where: str, made: str) -> Judge | None:
    """By steps that were fitted; None if a file has none.

    Raises:
        ConfigError: they need a whole list, and no hits alone.
    """
    try:
        values = json.loads(data)
        if not isinstance(values, dict) or values.get("schema") != STEPS_SCHEMA:
            return None
        names = [step["name"] for step in values["steps"]]
        if set(names) - _OF_ONE:
            raise ConfigError(f"its steps need a whole list: {', '.join(names)}", where=where, remedy=_REMEDY)
        steps = Procedure.from_run(data).with_file(data, where, thresholds=True)
    except (ValueError, KeyError, TypeError):
        return None  # whoever reads it as a calibration says what is wrong
    (least,) = steps.thresholds
    assert least is not None
    return Judge(least, f"a probability of {least:.3f} {made}", steps)
