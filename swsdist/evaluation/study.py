"""This module reads the systems of a KST and STO study: lists of probabilities, aligned with their tasks' references.

Systems of one task are named on the command line. Several tasks, languages for example, stand in a YAML file, paths relative
to it:

    protocol: openkws13        # and beta, optional
    tasks:
      assamese:
        ecf: as/ecf.xml
        rttm: as/ref.rttm
        terms: as/kwlist.xml
        systems: {dnn: as/dnn.xml, gmm: as/gmm.xml}
      zulu:
        references: zu/refs.csv
        seconds: 36000
        systems: {dnn: zu/dnn.csv}
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, ValidationError

from swsdist.calibrate.logistic import Labelled, Logistics, fit_logistics
from swsdist.calibrate.points.rescoring import Rescoring
from swsdist.calibrate.points.study import Entry
from swsdist.calibrate.threshold import by_fold
from swsdist.config.section import Section
from swsdist.errors import ConfigError, UserError
from swsdist.evaluation.calibration import aligned_list, are_probabilities
from swsdist.evaluation.lists import read_system
from swsdist.evaluation.reading import protocol_for, read_task
from swsdist.evaluation.task import ScoringTask
from swsdist.io.notices import Notices

_MOST_STEPS = 10_000
_REMEDY = "below tasks, by name: ecf, rttm, terms (or seconds, references) and systems: {NAME: PATH}"


class TaskSection(Section):
    """A task of the study: what was searched for, where, and by which systems."""

    ecf: str | None = None
    seconds: PositiveFloat | None = None
    rttm: str | None = None
    ctm: str | None = None
    terms: str | None = None
    references: str | None = None
    systems: dict[str, str] = Field(min_length=1)


class StudyFile(Section):
    """The YAML file of a study."""

    protocol: str | None = None
    beta: PositiveFloat | None = None
    tasks: dict[str, TaskSection] = Field(min_length=1)


def read_study(path: str) -> StudyFile:
    """Read a study's YAML file, with paths made absolute.

    Raises:
        ConfigError: it cannot be read, or something in it is wrong; all of it is listed.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        values = YAML(typ="safe", pure=True).load(Path(path).read_text("utf-8-sig"))
        found = StudyFile.model_validate(values if values is not None else {})
    except OSError as error:
        raise ConfigError(f"cannot read the study: {error.strerror}", where=path, remedy="look at the path") from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"not YAML: {error}", where=path, remedy=_REMEDY) from None
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'file'}: {each['msg']}" for each in error.errors(include_url=False)
        )
        raise ConfigError(wrong, where=path, remedy=_REMEDY) from None
    base = Path(path).resolve().parent

    def placed(task: TaskSection) -> TaskSection:
        names = {name: getattr(task, name) for name in ("ecf", "rttm", "ctm", "terms", "references")}
        paths = {name: None if value is None else str(base / value) for name, value in names.items()}
        systems = {name: str(base / value) for name, value in task.systems.items()}
        return task.model_copy(update={**paths, "systems": systems})

    return found.model_copy(update={"tasks": {name: placed(task) for name, task in found.tasks.items()}})


def entries(study: StudyFile, *, fit: str | None = None, folds: int = 5, notices: Notices | None = None) -> list[Entry]:
    """Read, align and make probabilities of all systems of a study.

    Args:
        study: what to read.
        fit: logistic from `crossfit`, `oracle`, `none` or a file; None: crossfit, for lists that are no probabilities.
        folds: for crossfit.
        notices: takes what is odd.

    Raises:
        UserError: files are missing, or a list has no hits or no false alarms to learn from.
        DataError: a file is broken.
    """
    notices = notices if notices is not None else Notices()
    found = []
    for name, section in study.tasks.items():
        rules = protocol_for(study.protocol, section.terms, beta=study.beta)
        task = read_task(
            ecf=section.ecf,
            total_seconds=section.seconds,
            rttm=section.rttm,
            ctm=section.ctm,
            terms=section.terms,
            references=section.references,
            protocol=rules,
            notices=notices,
        )
        for system, path in section.systems.items():
            label = system if len(study.tasks) == 1 else f"{name}/{system}"
            found.append(_candidate(label, name, path, task, fit, folds))
    return found


def _candidate(name: str, task_name: str, path: str, task: ScoringTask, fit: str | None, folds: int) -> Entry:
    aligned = aligned_list(task, read_system(path, conventions=task.conventions, notices=task.notices))
    mode = fit or ("none" if are_probabilities(aligned["score"]) else "crossfit")
    if mode != "none":
        logistics = _logistics(mode, aligned, folds, path)
        mode = logistics.fit
        aligned = logistics.apply(aligned)
    tolerance = task.protocol.tolerance if task.protocol.trials == "time" else None
    found = Rescoring.of_list(aligned, tolerance=tolerance, conventions=task.conventions.name)
    return Entry(name, task_name, found, task.trials, task.beta, mode)


def _logistics(mode: str, aligned: pa.Table, folds: int, path: str) -> Logistics:
    if mode not in ("crossfit", "oracle"):
        if not Path(mode).is_file():
            raise UserError(
                "this is a folder, and not that of a run" if Path(mode).is_dir() else "there is no such file",
                where=f"--fit {mode}",
                remedy="give none, crossfit, oracle, a fitted file, or the folder of a finished run",
            )
        return Logistics.from_json(Path(mode).read_bytes(), mode)
    if folds < 2:
        raise UserError(f"{folds} folds", remedy="cross-fitting takes two folds or more")
    parts = 1 if mode == "oracle" else folds
    labelled: Mapping[int, Labelled] = {fold: Labelled.of(rows) for fold, rows in by_fold(aligned, parts)}
    return fit_logistics(labelled, parts, trained_on={"list": path})


def steps(text: str) -> NDArray[np.float64]:
    """The values of `FROM:TO:STEP`, both ends included, free of the rounding of repeated addition.

    Raises:
        UserError: it is not of that form, or asks for none or too many values.
    """
    try:
        first, last, step = (Decimal(part) for part in text.split(":"))
        many = int((last - first) / step) + 1 if step > 0 else 0
    except (ValueError, ArithmeticError):
        many = 0
    if not 0 < many <= _MOST_STEPS or first <= 0:
        raise UserError(
            f"{text!r} are no values of alpha", where="--alphas", remedy="give FROM:TO:STEP above 0, such as 1:3:0.1"
        )
    return np.array([float(first + k * step) for k in range(many)])
