"""`swsdist calibrate` reads any system's list, fits what needs fitting, decides, and writes the list.

=============  ==================================================================================================
method         scores                              decisions
=============  ==================================================================================================
none           as they were                        as they were: the list is converted, no more
logistic       probabilities                       as they were
threshold      as they were                        by the threshold of best TWV
kst, sto       normalised (`calibrate.thresholding`)  by the method's own threshold
oracle-kst     normalised, Ntrue known             the same; optimistic by definition
kaldi          normalised as Kaldi's recipes do    the same; duplicates go, times get two decimals (`io.kaldi.as_kwslist`)
=============  ==================================================================================================

KST, STO and Kaldi's want probabilities. Scores that are not go through a logistic first; what is fitted is fitted as in a
run: crossfit, oracle, or from a file. S(w) is over the list as it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.logistic import Labelled, Logistics, fit_logistics
from swsdist.calibrate.posterior import PosteriorSums
from swsdist.calibrate.seen import ENTRY, fit_of_file, occurrences
from swsdist.calibrate.threshold import Calibration, by_fold, decide
from swsdist.calibrate.threshold import fit as fit_thresholds
from swsdist.calibrate.thresholding import ALPHA, Thresholding
from swsdist.errors import UserError
from swsdist.evaluation.task import ScoringTask, System
from swsdist.fingerprint import fingerprint
from swsdist.score.measures.protocol import OperatingPoint, Protocol, operating_point
from swsdist.score.measures.twv import Counts

if TYPE_CHECKING:
    from swsdist.evaluation.evaluate import Evaluation

How = Literal["none", "logistic", "threshold", "kst", "sto", "oracle-kst", "kaldi"]


@dataclass(frozen=True)
class Request:
    """A request to calibrate a list.

    Attributes:
        method: see the module.
        fit: `none`, `crossfit`, `oracle`, a file; None: what is needed, crossfit where something is.
        folds: for crossfit.
        alpha: of kst and sto; of kaldi its `--Ntrue-scale`. None: 1.5; of kaldi 1, as the script has it.
        prior: effective prior that the logistic is fitted at; None: as the detections are.
        keep_scores: decide only; of kaldi the probabilities are kept.
    """

    method: How
    fit: str | None = None
    folds: int = 5
    alpha: float | None = None
    prior: float | None = None
    keep_scores: bool = False

    def fits(self, scores: pa.ChunkedArray) -> bool:
        """Whether something is fitted to a list of these scores, or read from a file.

        Raises:
            UserError: a logistic is asked for that is neither.
        """
        return self.method == "threshold" or (self.method != "none" and self.wants_logistic(scores))

    def wants_logistic(self, scores: pa.ChunkedArray) -> bool:
        """Whether these scores go through a logistic, where the method is none of `none` and `threshold`.

        Raises:
            UserError: one is asked for that is neither fitted nor read.
        """
        if self.fit == "none":
            if self.method == "logistic":
                raise UserError("a logistic that is neither fitted nor read", remedy="give --fit crossfit, or a file")
            return False
        return self.method == "logistic" or self.fit is not None or not are_probabilities(scores)

    @property
    def factor(self) -> float:
        """alpha, or its default."""
        if self.alpha is not None:
            return self.alpha
        return 1.0 if self.method == "kaldi" else ALPHA


@dataclass(frozen=True)
class Calibrated:
    """A calibrated list, and what is told about it.

    Attributes:
        detections: the list, rows as they were given (kaldi: without duplicates), with new scores and decisions.
        fitted: what was fitted or read, as a file; None where nothing was.
        lines: what was done, for people.
    """

    detections: pa.Table
    fitted: bytes | None
    lines: tuple[str, ...]


def point_without_references(rules: Protocol, ecf: str | None, total_seconds: float | None) -> OperatingPoint | None:
    """The point of a protocol, without references; None if it is not told how much was searched.

    Raises:
        UserError: both are given, or the protocol takes beta from the references.
    """
    if ecf is not None and total_seconds is not None:
        raise UserError("the searched audio is told twice", remedy="give --ecf or --seconds, not both")
    if ecf is not None:
        from swsdist.io.nist.ecf import read_ecf
        from swsdist.score.trials.excerpts import seconds

        total_seconds = seconds(read_ecf(ecf), rules.rules)
    if total_seconds is None:
        return None
    return operating_point(rules, seconds=total_seconds, true=0, queries=0)


def aligned_list(task: ScoringTask, system: System) -> pa.Table:
    """What a system found, aligned with a task's references: schema TRIALS, not decided."""
    return undecided_list(task, system).aligned


def undecided_list(task: ScoringTask, system: System) -> Evaluation:
    """What a system found, scored without its decisions."""
    from swsdist.evaluation.evaluate import evaluate

    place = system.detections.schema.get_field_index("decision")
    undecided = pa.nulls(system.detections.num_rows, pa.bool_())
    # Old decisions play no role, nor need they be consistent.
    detections = system.detections.set_column(place, pa.field("decision", pa.bool_()), undecided)
    return evaluate(task, replace(system, detections=detections), by_type=False)


def are_probabilities(scores: pa.ChunkedArray) -> bool:
    """Whether all scores lie in [0, 1]."""
    limits = pc.min_max(scores).as_py()
    return limits["min"] is None or (limits["min"] >= 0 and limits["max"] <= 1)


def calibrate(
    system: System, request: Request, task: ScoringTask | None = None, point: OperatingPoint | None = None
) -> Calibrated:
    """Calibrate a list.

    Args:
        system: the list.
        request: what is asked for.
        task: references and operating point; needed by all that is fitted here, and by the oracle.
        point: the operating point where there is no task.

    Raises:
        UserError: what is needed was not given, or cannot be fitted.
    """
    detections = as_text(system.detections)
    limits = pc.min_max(detections["score"]).as_py()
    queries = pc.count_distinct(detections["query_id"]).as_py()
    lines = [f"{system.path}: {detections.num_rows} detections of {queries} queries, {_range(limits)}"]
    if task is not None:
        point = task.point
    if request.method == "none":
        if request.fit not in (None, "none"):
            raise UserError("--method none fits nothing", where=f"--fit {request.fit}", remedy="leave --fit out")
        return _finished(detections, None, lines)
    fitter = _Fitter(system, request, task)
    if request.method == "threshold":
        calibration = fitter.threshold()
        lines.append(f"threshold: {_named(calibration.fit)}, {_thresholds(calibration.thresholds)}")
        return _finished(decide(detections, calibration), calibration.to_json(), lines)

    given, logistics = detections["score"], None
    if request.wants_logistic(given):
        logistics = fitter.logistics()
        detections = logistics.apply(detections)
        lines.append(_told(logistics, detections))
    data = None if logistics is None else logistics.to_json()
    if request.method == "logistic":
        return _finished(detections, data, lines)
    if point is None:
        raise UserError(
            f"{request.method} needs to know how much audio was searched", remedy="give --ecf, or --seconds"
        )
    if request.method == "oracle-kst" and task is None:
        raise UserError("oracle-kst needs the true occurrences", remedy="give --rttm and --terms, or --references")
    if request.method == "kaldi":
        return _as_kaldi(detections, request, point, data, lines)
    how = Thresholding(request.method, point.trials, point.beta, request.factor)
    true = None if task is None else _counted(task.references)
    sums = PosteriorSums.of(detections)
    detections = how.apply(detections, true=true)
    if request.keep_scores:
        detections = detections.set_column(detections.schema.get_field_index("score"), "score", given)
    lines.append(_decided(how, sums, true or {}))
    return _finished(detections, data, lines)


def _as_kaldi(
    detections: pa.Table, request: Request, point: OperatingPoint, fitted: bytes | None, lines: list[str]
) -> Calibrated:
    from swsdist.io.kaldi import as_kwslist

    result = as_kwslist(
        detections,
        seconds=point.trials,
        beta=point.beta,
        ntrue_scale=request.factor,
        normalize=not request.keep_scores,
        remove_duplicates=True,
    )
    gone = detections.num_rows - result.num_rows
    lines.append(
        f"kaldi: Ntrue scale {request.factor:g}, beta {point.beta:.5g}, T {point.trials}; {gone} duplicates removed"
    )
    return _finished(result, fitted, lines)


@dataclass(frozen=True)
class _Fitter:
    """Fits what is asked for, or reads it."""

    system: System
    request: Request
    task: ScoringTask | None

    def logistics(self) -> Logistics:
        if (file := self._file()) is not None:
            logistics = Logistics.from_json(file.read_bytes(), str(file))
            return replace(logistics, fit=fit_of_file(logistics.trained_on, self._references()))
        folds, aligned = self._folds(), self._aligned()
        labelled = {fold: Labelled.of(rows) for fold, rows in by_fold(aligned, folds)}
        return fit_logistics(labelled, folds, trained_on=self._trained_on(aligned), prior=self.request.prior)

    def threshold(self) -> Calibration:
        if self.request.fit == "none":
            raise UserError("a threshold that is neither fitted nor read", remedy="give --fit crossfit, or a file")
        if (file := self._file()) is not None:
            calibration = Calibration.from_json(file.read_bytes(), str(file))
            return replace(calibration, fit=fit_of_file(calibration.trained_on, self._references()))
        folds, aligned = self._folds(), self._aligned()
        assert self.task is not None  # _aligned has seen to it
        counts = {fold: Counts.of(rows) for fold, rows in by_fold(aligned, folds)}
        trained_on = self._trained_on(aligned)
        return fit_thresholds(counts, folds, trials=self.task.trials, beta=self.task.beta, trained_on=trained_on)

    def _references(self) -> pa.Table | None:
        return None if self.task is None else self.task.references

    def _file(self) -> Path | None:
        fit = self.request.fit
        if fit in (None, "crossfit", "oracle"):
            return None
        if not Path(str(fit)).is_file():
            raise UserError(
                "this is a folder, and not that of a run" if Path(str(fit)).is_dir() else "there is no such file",
                where=f"--fit {fit}",
                remedy="give none, crossfit, oracle, a fitted file, or the folder of a finished run",
            )
        return Path(str(fit))

    def _folds(self) -> int:
        if self.request.folds < 2:
            raise UserError(f"{self.request.folds} folds", remedy="cross-fitting takes two folds or more")
        return 1 if self.request.fit == "oracle" else self.request.folds

    def _aligned(self) -> pa.Table:
        if self.task is None:
            what = (
                "a threshold" if self.request.method == "threshold" else "a logistic, as scores are no probabilities,"
            )
            if self.request.method == "logistic":
                what = "a logistic"
            raise UserError(
                f"{what} is fitted on true occurrences, and none are given",
                remedy="give --ecf, --rttm and --terms (or --references), or a fitted file: --fit FILE",
            )
        return aligned_list(self.task, self.system)

    def _trained_on(self, aligned: pa.Table) -> dict[str, object]:
        assert self.task is not None
        columns = [
            aligned[name].to_pylist() for name in ("query_id", "doc_id", "channel", "start", "score", "ref_start")
        ]
        return {
            "list": self.system.path,
            "aligned": fingerprint(columns),
            "queries": pc.count_distinct(aligned["query_id"]).as_py(),
            "true": self.task.references.num_rows,
            ENTRY: occurrences(self.task.references),
            "protocol": self.task.protocol.name,
            "trials": self.task.trials,
            "beta": self.task.beta,
        }


def as_text(table: pa.Table) -> pa.Table:
    """Names as text: lists come with encoded ones."""
    for name in ("query_id", "doc_id"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
    return table


def _counted(references: pa.Table) -> dict[str, int]:
    counts = references["query_id"].value_counts()
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def _range(limits: dict[str, object]) -> str:
    return "no scores" if limits["min"] is None else f"scores {limits['min']:.6g} to {limits['max']:.6g}"


def _thresholds(values: tuple[float | None, ...]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "none could be fitted, all is NO"
    shown = f"{known[0]:.6g}" if len(known) == 1 else f"{len(known)} folds, {min(known):.6g} to {max(known):.6g}"
    return shown + (f"; {len(values) - len(known)} folds have none and are decided NO" if None in values else "")


def _told(logistics: Logistics, detections: pa.Table) -> str:
    first = logistics.models[0]
    many = f" (first of {len(logistics.models)} folds)" if len(logistics.models) > 1 else ""
    sums = PosteriorSums.of(detections)
    whole = sum(sums.units.values()) / (1 << 62)
    return (
        f"logistic: {_named(logistics.fit)}, p = sigmoid({first.slope:.5g} score {first.offset:+.5g}){many}; "
        f"probabilities sum to {whole:.1f}"
    )


def _named(fit: str) -> str:
    return "ORACLE, fitted on what is decided, so optimistic" if fit == "oracle" else fit


def _decided(how: Thresholding, sums: PosteriorSums, true: dict[str, int]) -> str:
    names = sorted(sums.units)
    limits = how.thresholds(sums.values(names), np.array([true.get(name, 0) for name in names]))
    finite = limits[np.isfinite(limits)]
    spread = f"{finite.min():.4g} to {finite.max():.4g}, median {np.median(finite):.4g}" if len(finite) else "none"
    alpha = "" if how.method == "oracle-kst" else f"alpha {how.alpha:g}, "
    above = int((limits > 1).sum())
    never = f"; {above} queries are above 1, so never detected" if above else ""
    oracle = " (ORACLE: it knows how often each query occurs)" if how.method == "oracle-kst" else ""
    return f"{how.method}{oracle}: {alpha}beta {how.beta:.5g}, T {how.trials}; thresholds on p {spread}{never}"


def _finished(detections: pa.Table, fitted: bytes | None, lines: list[str]) -> Calibrated:
    yes, no = (int((pc.sum(pc.equal(detections["decision"], value)).as_py()) or 0) for value in (True, False))
    rest = detections.num_rows - yes - no
    limits = _range(pc.min_max(detections["score"]).as_py())
    undecided = f", {rest} without decision" if rest else ""
    return Calibrated(detections, fitted, (*lines, f"result: {yes} YES, {no} NO{undecided}; {limits}"))
