"""This module reads the systems of a KST and STO study: lists of probabilities, aligned with their tasks' references.

They stand in a sweep's file (`swsdist.chains.sweep.reading`), tasks by name, languages for example; paths are relative to it:

    lists:
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
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pydantic import Field, PositiveFloat

from swsdist.calibrate.logistic import Labelled, Logistics, fit_logistics
from swsdist.calibrate.points.rescoring import Rescoring
from swsdist.calibrate.points.study import Entry
from swsdist.calibrate.seen import fit_of_file
from swsdist.calibrate.threshold import by_fold
from swsdist.config.section import Section
from swsdist.errors import UserError
from swsdist.evaluation.calibration import aligned_list, are_probabilities, as_text
from swsdist.evaluation.lists import read_system
from swsdist.evaluation.reading import protocol_for, read_task
from swsdist.evaluation.task import ScoringTask
from swsdist.io.notices import Notices


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
    """The tasks of a study, and the rules of counting."""

    protocol: str | None = None
    beta: PositiveFloat | None = None
    tasks: dict[str, TaskSection] = Field(min_length=1)


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
    """As `swsdist calibrate` makes a list of it and `swsdist score` scores that."""
    system = read_system(path, conventions=task.conventions, notices=task.notices)
    aligned, listed = aligned_list(task, system), as_text(system.detections)
    mode = fit or ("none" if are_probabilities(listed["score"]) else "crossfit")
    if mode != "none":
        logistics = _logistics(mode, aligned, folds, path, task.references)
        mode = logistics.fit
        aligned, listed = logistics.apply(aligned), logistics.apply(listed)
    tolerance = task.protocol.tolerance if task.protocol.trials == "time" else None
    found = Rescoring.of_list(aligned, listed, tolerance=tolerance, conventions=task.conventions.name)
    return Entry(name, task_name, found, task.trials, task.beta, mode)


def _logistics(mode: str, aligned: pa.Table, folds: int, path: str, references: pa.Table) -> Logistics:
    if mode not in ("crossfit", "oracle"):
        if not Path(mode).is_file():
            raise UserError(
                "this is a folder, and not that of a run" if Path(mode).is_dir() else "there is no such file",
                where=f"--fit {mode}",
                remedy="give none, crossfit, oracle, a fitted file, or the folder of a finished run",
            )
        logistics = Logistics.from_json(Path(mode).read_bytes(), mode)
        return replace(logistics, fit=fit_of_file(logistics.trained_on, references))
    if folds < 2:
        raise UserError(f"{folds} folds", remedy="cross-fitting takes two folds or more")
    parts = 1 if mode == "oracle" else folds
    labelled: Mapping[int, Labelled] = {fold: Labelled.of(rows) for fold, rows in by_fold(aligned, parts)}
    return fit_logistics(labelled, parts, trained_on={"list": path})
