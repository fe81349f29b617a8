"""Calibration of a list of any system (`swsdist calibrate`), and fusion of lists of several (`swsdist fuse`).

Calibration: a method is one or more registered steps (`swsdist.registry.registries.CALIBRATION`), applied and fitted as
in a run by `swsdist.calibrate.procedure`. One of these may replace them or follow them:

=============  ==================================================================================================
none           nothing is done: the list is converted
threshold      the threshold of best TWV decides; scores stay as the steps compute them
oracle-kst     normalises as kst and decides with the true Ntrue; optimistic by definition
kaldi          normalises and decides as Kaldi's recipes; removes duplicates, rounds times (`kaldi_results.as_kwslist`)
=============  ==================================================================================================

A last step with a threshold decides; otherwise decisions stay. Where a step needs probabilities and the scores are
none, a logistic is applied first. Models are fitted as in a run: crossfit, oracle, or read from a file. S(w) is a sum
over the given list. A list does not contain all candidates of a search, so steps that need them are refused.

Fusion: lists are joined, missing scores imputed, and scores weighted, by the functions of the chain fuse
(`swsdist.calibrate.fusion`). A list does not contain all candidates, so scores are standardised by mean and standard
deviation of each query's detections in the list. Without references and without a fitted fusion, all systems have the
same weight.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.fusion import (
    Meeting,
    Missing,
    complete_list,
    count_common_places,
    join_systems,
    parts_of,
    warn_disjoint_systems,
    with_parts_of,
    without_overlaps,
)
from swsdist.calibrate.procedure import (
    ENTRY,
    AnyStep,
    Procedure,
    fingerprint_references,
    fit_kind,
    fit_models,
    fit_thresholds,
    make_steps,
    read_fitted,
)
from swsdist.calibrate.steps.by_term import UNIT, ByTerm, PosteriorSums, Thresholding
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.calibrate.steps.logistic import LogisticStep, fusions_in, mean_of
from swsdist.core.codes import families
from swsdist.core.codes import fuse as fuse_codes
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.fingerprint import fingerprint, parse_json
from swsdist.core.types import DETECTIONS
from swsdist.evaluation.evaluate import Evaluation, evaluate
from swsdist.evaluation.scoring_task import ScoringTask, System, with_durations
from swsdist.io.notices import Notices
from swsdist.registry.entries import misfit
from swsdist.registry.registries import CALIBRATION
from swsdist.score.measures.protocol import OperatingPoint, Protocol, operating_point

#: Methods that replace the steps of a list, or follow them; see the module.
LAST = ("none", "threshold", "oracle-kst", "kaldi")


@dataclass(frozen=True)
class CalibrationRequest:
    """Settings of the calibration of a list.

    Attributes:
        method: steps in their order, by commas; see the module.
        fit: `none`, `crossfit`, `oracle` or a file; None: crossfit if a step needs it.
        folds: for crossfit.
        alpha: of kst and sto; for kaldi `--Ntrue-scale`. None: 1.5, or the script's 1 for kaldi.
        prior: effective prior of the logistic's fit; None: that of the detections.
        keep_scores: only decide; kaldi keeps the probabilities.
        options: of steps, by their names.
    """

    method: str
    fit: str | None = None
    folds: int = 5
    alpha: float | None = None
    prior: float | None = None
    keep_scores: bool = False
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The method of `LAST` at the end of `method`, or an empty string."""
        name = self.method.rpartition(",")[2]
        return name if name in LAST else ""

    def steps(self, scores: pa.ChunkedArray) -> tuple[str, ...]:
        """The registered steps for a list with these scores; a logistic comes first if a step needs probabilities.

        Raises:
            UserError: a step is unknown, not applicable to a list, or neither fitted nor read; or the steps do not fit
                together.
        """
        every = self.method.split(",")
        names, where = tuple(every[:-1] if self.last else every), f"--method {self.method}"
        check_step_names(names, where)
        takes = CALIBRATION[names[0]].takes if names else "posterior" if self.last in ("oracle-kst", "kaldi") else "any"
        needs_probabilities = takes == "posterior" and "logistic" not in names and self.fit != "none"
        if needs_probabilities and (self.fit is not None or not are_probabilities(scores)):
            names = ("logistic", *names)
        entries = {name: CALIBRATION[name] for name in names}
        for name in names:
            if entries[name].first:
                raise families.NEEDS_SEARCH(
                    "step {step} needs all candidates of a search, which a list does not contain",
                    "leave it out",
                    where=where,
                    step=name,
                )
            if entries[name].fits and self.fit == "none":
                raise families.UNFITTED.of(UserError)(
                    "step {step} is neither fitted nor read",
                    "give --fit crossfit, or --fit FILE",
                    where=where,
                    step=name,
                )
        if complaint := misfit(names, entries, takes):
            raise codes.STEPS_DO_NOT_FIT(where=where, reason=complaint, steps=", ".join(CALIBRATION))
        return names

    def fits(self, scores: pa.ChunkedArray) -> bool:
        """Whether a model is fitted to a list with these scores, or read from a file."""
        return self.last == "threshold" or any(CALIBRATION[name].fits for name in self.steps(scores))


def check_step_names(names: Sequence[str], where: str) -> None:
    """Refuse steps that are not registered.

    Raises:
        UserError: one is not.
    """
    if strange := [name for name in names if name not in CALIBRATION]:
        raise families.UNKNOWN_NAME(
            "unknown calibration step {step!r}",
            "choose from: {steps}; `swsdist calibrate` also has, alone or last: {last}",
            where=where,
            step=strange[0],
            steps=", ".join(CALIBRATION),
            last=", ".join(LAST),
        )


@dataclass(frozen=True)
class CalibratedList:
    """A calibrated list and its summary.

    Attributes:
        detections: rows as in the input (kaldi: without duplicates), with new scores and decisions.
        fitted: what was fitted or read, as a file; None where nothing was.
        lines: what was done, for people.
        fit: how it was fitted: `crossfit`, `oracle`, `file`, or `none` where nothing was.
    """

    detections: pa.Table
    fitted: bytes | None
    lines: tuple[str, ...]
    fit: str = "none"


def point_of_audio(rules: Protocol, ecf: str | None, total_seconds: float | None) -> OperatingPoint | None:
    """The operating point of a protocol without references; None if the amount of searched audio is unknown.

    Raises:
        UserError: both are given, or the protocol takes beta from the references.
    """
    if ecf is not None and total_seconds is not None:
        raise codes.CONFLICTING_AUDIO()
    if ecf is not None:
        from swsdist.io.nist.ecf import read_ecf
        from swsdist.score.trials import seconds

        total_seconds = seconds(read_ecf(ecf), rules.rules)
    if total_seconds is None:
        return None
    return operating_point(rules, seconds=total_seconds, true=0, queries=0)


def score_undecided(task: ScoringTask, system: System) -> Evaluation:
    """Score a system's list without its decisions."""
    place = system.detections.schema.get_field_index("decision")
    undecided = pa.nulls(system.detections.num_rows, pa.bool_())
    # Old decisions are ignored, so they may be inconsistent.
    detections = system.detections.set_column(place, pa.field("decision", pa.bool_()), undecided)
    return evaluate(task, replace(system, detections=detections), by_type=False)


def are_probabilities(scores: pa.ChunkedArray) -> bool:
    """Whether all scores lie in [0, 1]."""
    limits = pc.min_max(scores).as_py()
    return limits["min"] is None or (limits["min"] >= 0 and limits["max"] <= 1)


def calibrate(
    system: System,
    request: CalibrationRequest,
    task: ScoringTask | None = None,
    point: OperatingPoint | None = None,
    scored: Callable[[ScoringTask], Evaluation] | None = None,
) -> CalibratedList:
    """Calibrate a list.

    Args:
        system: the list.
        request: method and options.
        task: references and operating point; needed to fit, and by oracle-kst.
        point: the operating point without a task.
        scored: the list by a task, undecided, where that is known already.

    Raises:
        UserError: what is needed was not given, or cannot be fitted.
        ConfigError: a step, one of its options, or a file is wrong.
    """
    detections = as_text(system.detections)
    limits = pc.min_max(detections["score"]).as_py()
    queries = pc.count_distinct(detections["query_id"]).as_py()
    lines = [f"{system.path}: {detections.num_rows} detections of {queries} queries, {_range(limits)}"]
    if task is not None:
        point = task.point
    if request.last == "none":
        if request.fit not in (None, "none"):
            raise families.UNUSED_OPTION.of(UserError)(
                "--method none fits nothing", "leave --fit out", where=f"--fit {request.fit}"
            )
        return _finished(detections, None, lines)
    scores_before, last = detections["score"], request.last
    procedure = list_procedure(system, request, task, point, scored)
    if point is None and last in ("oracle-kst", "kaldi"):
        raise codes.UNKNOWN_AUDIO(purpose=last)
    if last == "oracle-kst" and task is None:
        raise codes.ORACLE_WITHOUT_REFERENCES()
    fitted = procedure.to_json() if request.fits(scores_before) else None
    lines += _summary(procedure, detections)
    if last == "kaldi":
        assert point is not None
        return _as_kaldi(procedure.scores(detections), request, point, fitted, lines)
    if last == "oracle-kst":
        assert point is not None
        assert task is not None
        how = Thresholding("oracle-kst", point.trials, point.beta)
        true, detections = _counted(task.references), procedure.scores(detections)
        lines.append(_decided(how, PosteriorSums.of(detections), true))
        detections = how.apply(detections, true=true)
    else:
        detections = procedure.apply(detections) if procedure.thresholds else procedure.scores(detections)
    if request.keep_scores:
        detections = detections.set_column(detections.schema.get_field_index("score"), "score", scores_before)
    return replace(_finished(detections, fitted, lines), fit=procedure.fit)


def list_procedure(
    system: System,
    request: CalibrationRequest,
    task: ScoringTask | None,
    point: OperatingPoint | None,
    scored: Callable[[ScoringTask], Evaluation] | None = None,
) -> Procedure:
    """The fitted steps of a list and their thresholds.

    Args:
        system, request, task, point, scored: as of `calibrate`.

    Raises:
        UserError: what is needed was not given, or cannot be fitted.
        ConfigError: a step, one of its options, or a file is wrong.
    """
    names = request.steps(system.detections["score"])
    options: dict[str, dict[str, object]] = {name: {} for name in names}
    for name, values in request.options.items():
        if name not in names or not isinstance(values, Mapping):
            raise families.UNUSED_OPTION.of(UserError)(
                "options are given for {step}, which is not among the steps {steps}",
                "write STEP.OPTION=VALUE, with one of the steps",
                where=f"--method {request.method}",
                step=name,
                steps=", ".join(names) or "(none)",
            )
        options[name] |= values
    if request.prior is not None and "logistic" in options:
        options["logistic"].setdefault("prior", request.prior)
    steps = make_list_steps(names, options, f"--method {request.method}", request.alpha)
    at = None if point is None else TwvParameters(point.trials, point.beta)
    for step in steps:
        if at is None and (CALIBRATION[step.name].operating_point or CALIBRATION[step.name].own_threshold):
            raise codes.UNKNOWN_AUDIO(purpose=step.name)
    procedure = Procedure(steps, at)
    if not request.fits(system.detections["score"]):
        return replace(procedure, thresholds=_own_thresholds(procedure))
    implied = "logistic" in names and "logistic" not in request.method
    first = next((name for name in names if CALIBRATION[name].fits), "threshold")
    what = "a logistic, as scores are no probabilities," if implied else f"a {first}"
    return fit_or_read(
        procedure,
        request.fit or "crossfit",
        request.folds,
        task,
        what,
        scored or (lambda of: score_undecided(of, system)),
        {"list": system.path},
        threshold=request.last == "threshold",
    )


def make_list_steps(
    names: Sequence[str], options: Mapping[str, Mapping[str, object]], where: str, alpha: float | None = None
) -> tuple[AnyStep, ...]:
    """Steps that are applicable to a list without its search.

    Args:
        names, options, alpha: as of `swsdist.calibrate.procedure.make_steps`.
        where: option that names the steps, for messages.

    Raises:
        ConfigError: an option is not valid.
        UserError: a step needs statistics of the search.
    """
    steps = make_steps(names, options, alpha)
    for step in steps:
        if settings := step.wants():
            raise families.NEEDS_SEARCH(
                "step {step} needs {settings} of the search, which a list does not contain",
                "leave out the options that need it",
                where=where,
                step=step.name,
                settings=", ".join(settings),
            )
    return steps


def _own_thresholds(procedure: Procedure) -> tuple[float, ...]:
    last_threshold = procedure.own_threshold
    return () if last_threshold is None else (last_threshold,)


def fit_or_read(
    procedure: Procedure,
    fit: str,
    folds: int,
    task: ScoringTask | None,
    what: str,
    scored: Callable[[ScoringTask], Evaluation],
    trained_on: Mapping[str, object],
    *,
    threshold: bool,
) -> Procedure:
    """Fit the steps of a list, or read them from a file; with thresholds, fitted or the last step's.

    Args:
        procedure: the steps.
        fit: `crossfit`, `oracle` or a file.
        folds: for crossfit.
        task: references and operating point; needed to fit.
        what: name of the model, for messages.
        scored: scores the list against a task, without decisions.
        trained_on: provenance for the file, in addition to the task's.
        threshold: whether to fit a threshold.

    Raises:
        UserError: what is needed was not given, or cannot be fitted.
        ConfigError: there is no such file, or it is wrong.
    """
    if fit not in ("crossfit", "oracle"):
        where = f"--fit {fit}"
        read = procedure.with_file(read_fitted(fit, {}, where), where, thresholds=threshold)
        references = None if task is None else task.references
        read = replace(read, fit=fit_kind(read.trained_on, references))
        return read if threshold else replace(read, thresholds=_own_thresholds(read))
    if folds < 2:
        raise families.TOO_FEW("{folds} folds are too few", "give two folds or more", folds=folds)
    if task is None:
        raise families.MISSING_INPUT(
            "{model} is fitted on true occurrences, and no references are given (--fit {fit})",
            "give --ecf, --rttm and --terms (or --references), or a fitted file: --fit FILE",
            model=what,
            fit=fit,
        )
    evaluated = scored(task)
    aligned, folds = evaluated.aligned, 1 if fit == "oracle" else folds
    provenance = {
        **trained_on,
        "aligned": fingerprint(
            [aligned[name].to_pylist() for name in ("query_id", "doc_id", "channel", "start", "score", "ref_start")]
        ),
        "true": task.references.num_rows,
        ENTRY: fingerprint_references(task.references),
        "protocol": task.protocol.name,
        "trials": task.trials,
        "beta": task.beta,
    }
    point = TwvParameters(task.trials, task.beta)
    read = fit_models(
        lambda: [aligned],
        replace(procedure, by_document=task.protocol.trials == "document"),
        folds=folds,
        trained_on=provenance,
        query_ids=evaluated.task.terms["query_id"].to_pylist(),
    )
    if not threshold and read.own_threshold is None:
        return read
    return fit_thresholds(read, lambda: [aligned], folds=folds, own_threshold=not threshold, point=point)


def _as_kaldi(
    detections: pa.Table, request: CalibrationRequest, point: OperatingPoint, fitted: bytes | None, lines: list[str]
) -> CalibratedList:
    from swsdist.evaluation.kaldi_results import as_kwslist

    scale = 1.0 if request.alpha is None else request.alpha
    result = as_kwslist(
        detections,
        seconds=point.trials,
        beta=point.beta,
        ntrue_scale=scale,
        normalize=not request.keep_scores,
        remove_duplicates=True,
    )
    gone = detections.num_rows - result.num_rows
    lines.append(f"kaldi: Ntrue scale {scale:g}, beta {point.beta:.5g}, T {point.trials}; {gone} duplicates removed")
    return _finished(result, fitted, lines)


def as_text(table: pa.Table) -> pa.Table:
    """Decode dictionary-encoded names to text."""
    for name in ("query_id", "doc_id"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
    return table


def _counted(references: pa.Table) -> dict[str, int]:
    counts = references["query_id"].value_counts()
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def _range(limits: dict[str, object]) -> str:
    return "no scores" if limits["min"] is None else f"scores {limits['min']:.6g} to {limits['max']:.6g}"


def _thresholds(values: tuple[float | None, ...]) -> str:
    finite = [value for value in values if value is not None]
    if not finite:
        return "none could be fitted, all is NO"
    shown = f"{finite[0]:.6g}" if len(finite) == 1 else f"{len(finite)} folds, {min(finite):.6g} to {max(finite):.6g}"
    return shown + (f"; {len(values) - len(finite)} folds have none and are decided NO" if None in values else "")


def _summary(procedure: Procedure, detections: pa.Table) -> list[str]:
    """What the steps of a list do, for people, a line each."""
    lines = []
    for k, step in enumerate(procedure.steps):
        models = procedure.models[k] if procedure.models else ()
        if isinstance(step, LogisticStep):
            slope, offset = (float(str(models[0][name])) for name in ("slope", "offset"))
            many = f" (first of {len(models)} folds)" if len(models) > 1 else ""
            total = sum(PosteriorSums.of(procedure.before(k + 1).scores(detections)).units.values()) / UNIT
            lines.append(
                f"logistic: {fit_label(procedure.fit)}, p = sigmoid({slope:.5g} score {offset:+.5g}){many}; "
                f"probabilities sum to {total:.1f}"
            )
        elif isinstance(step, ByTerm):
            assert procedure.point is not None  # the entry demands it
            how = Thresholding(step.method, procedure.point.trials, procedure.point.beta, step.options.alpha)
            lines.append(_decided(how, PosteriorSums.of(procedure.before(k).scores(detections)), {}))
        else:
            lines.append(f"{step.name}: {fit_label(procedure.fit) if models else 'not fitted'}")
    last_threshold = procedure.own_threshold
    if procedure.thresholds and (last_threshold is None or procedure.thresholds != (last_threshold,)):
        lines.append(f"threshold: {fit_label(procedure.fit)}, {_thresholds(procedure.thresholds)}")
    elif last_threshold is not None and not isinstance(procedure.steps[-1], ByTerm):
        lines.append(f"threshold: {procedure.steps[-1].name}'s own, {last_threshold:.6g}")
    return lines


def fit_label(fit: str) -> str:
    """Label of a fit for the user."""
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


def _finished(detections: pa.Table, fitted: bytes | None, lines: list[str]) -> CalibratedList:
    yes, no = (int((pc.sum(pc.equal(detections["decision"], value)).as_py()) or 0) for value in (True, False))
    rest = detections.num_rows - yes - no
    limits = _range(pc.min_max(detections["score"]).as_py())
    undecided = f", {rest} without decision" if rest else ""
    return CalibratedList(detections, fitted, (*lines, f"result: {yes} YES, {no} NO{undecided}; {limits}"))


@dataclass(frozen=True)
class FusionRequest:
    """Settings of the fusion of lists.

    Attributes:
        standardise: apply q-norm first; otherwise use the scores unchanged.
        meet, overlap: when detections of two systems are joined; see `swsdist.calibrate.fusion`.
        missing: how missing scores are imputed.
        fit: `crossfit`, `oracle`, `none` (equal weights) or a file; None: crossfit with references, else none.
        folds: for crossfit.
        threshold: `own`, ln(beta); or `fitted`, that of best TWV.
        marks: also fit a weight per system for the absence of its detection.
        prior: effective prior of the fit; None: the operating point's.
        between_queries: keep only the better of overlapping detections of different queries.
        method: registered steps separated by commas: one that fuses, then others.
    """

    standardise: bool = True
    meet: Meeting = "overlap"
    overlap: float = 0.5
    missing: Missing = "average"
    fit: str | None = None
    folds: int = 5
    threshold: Literal["own", "fitted"] = "own"
    marks: bool = False
    prior: float | None = None
    between_queries: bool = False
    method: str = "fusion"

    def how(self, *, references: bool) -> str:
        """`fit`, or its default with or without references."""
        return self.fit or ("crossfit" if references else "none")


@dataclass(frozen=True)
class FusedList:
    """A fused list and its summary.

    Attributes:
        system: the list, with header and queries of its sources.
        fitted: what was fitted or read, as a file; None where nothing was.
        lines: what was done, for people.
    """

    system: System
    fitted: bytes | None
    lines: tuple[str, ...]


def fuse_lists(
    systems: Mapping[str, System],
    request: FusionRequest,
    task: ScoringTask | None = None,
    point: OperatingPoint | None = None,
    notices: Notices | None = None,
) -> FusedList:
    """Fuse lists.

    Args:
        systems: the lists by system name.
        request: what is asked for.
        task: references and operating point, if given; what is fitted sees its queries, what is fused are all of the lists.
        point: the operating point where there is no task.
        notices: collects oddities; None: they are dropped.

    Raises:
        OddError: notices are strict, and something is odd.
        UserError: there is no detection, or what is needed was not given or cannot be fitted.
        ConfigError: a file holds no fusion, or one of other systems.
    """
    if not 0 <= request.overlap < 1:
        raise families.INVALID_VALUE.of(UserError)(
            "the overlap is {overlap:g}", "give 0 or more, and less than 1", overlap=request.overlap
        )
    lists = {name: _plain(system) for name, system in systems.items()}
    lines = [_summary_of_fusion(name, lists[name], systems[name].path) for name in lists]
    notices = Notices() if notices is None else notices
    _check_lists(lists, notices)
    if not any(table.num_rows for table in lists.values()):
        raise families.EMPTY_INPUT("the lists have no detections", "give lists with detections", where=", ".join(lists))
    places, score_statistics = join_systems(
        lists, standardise=request.standardise, meet=request.meet, overlap=request.overlap
    )
    from_system = parts_of(places)[2]
    several = int((from_system.sum(axis=1) > 1).sum())
    lines.append(f"joined: {places.num_rows} places, {several} of them found by more than one system")
    warn_disjoint_systems(count_common_places(places), notices)
    table = complete_list(places, score_statistics, missing=request.missing, overlap=request.overlap)
    if gone := places.num_rows - table.num_rows:
        lines.append(f"{gone} places overlap a better one of their query, and are left out")
    procedure = _procedure(request, table, systems, task, point)
    if procedure is None:
        lines.append(
            "NOTHING WAS FITTED: the fused score is the mean of the systems' scores, each with the same weight; not decided"
        )
    else:
        table = procedure.apply(table)
        lines += (
            _weights(procedure)
            if "fusion" in request.method.split(",")
            else [f"{request.method}: {fit_label(procedure.fit)}"]
        )
    if request.between_queries:
        rows = table.num_rows
        table = without_overlaps(table, request.overlap, between_queries=True)
        lines.append(
            f"{rows - table.num_rows} detections overlap one of another query with a higher score, and are left out: what is "
            "decided of a query depends on the other queries"
        )
    lines += _shares(table)
    detections = with_durations(table.select(["query_id", "doc_id", "channel", "start", "end", "score", "decision"]))
    return FusedList(_header(detections, systems), None if procedure is None else procedure.to_json(), tuple(lines))


def _check_lists(lists: Mapping[str, pa.Table], notices: Notices) -> None:
    """Note oddities in lists that should be of one task.

    Raises:
        UserError: no two of several have a query in common.
        OddError: notices are strict, and something is odd.
    """
    queries = {name: set(table["query_id"].unique().to_pylist()) for name, table in lists.items()}
    some = [ids for ids in queries.values() if ids]
    if len(some) > 1 and not any(a & b for a, b in combinations(some, 2)):
        raise families.MISMATCH(
            "no two lists have a query in common",
            "name lists of one task; none of these has detections of queries that the task or another list has",
            where=", ".join(lists),
        )
    empty = [name for name, ids in queries.items() if not ids]
    notices.add(fuse_codes.EMPTY_LISTS, where=", ".join(empty), count=len(empty))
    pairs = [(a, b) for a, b in combinations(lists, 2) if lists[a].num_rows and lists[b].num_rows]
    same = [f"{a} and {b}" for a, b in pairs if lists[a].equals(lists[b])]
    notices.add(fuse_codes.IDENTICAL_LISTS, where=", ".join(same), count=len(same))


def _plain(system: System) -> pa.Table:
    """Columns that are fused, with names as text."""
    columns = ["query_id", "doc_id", "channel", "start", "end", "score"]
    return system.detections.select(columns).cast(pa.schema([DETECTIONS.field(name) for name in columns]))


def _summary_of_fusion(name: str, table: pa.Table, path: str) -> str:
    queries = pc.count_distinct(table["query_id"]).as_py()
    return f"{name}: {table.num_rows} detections of {queries} queries ({path})"


def _procedure(
    request: FusionRequest,
    table: pa.Table,
    systems: Mapping[str, System],
    task: ScoringTask | None,
    operating_point: OperatingPoint | None,
) -> Procedure | None:
    """The fusion, fitted or read; None for equal weights."""
    fit = request.how(references=task is not None)
    if fit == "none":
        return None
    names, where = request.method.split(","), f"--method {request.method}"
    check_step_names(names, where)
    if complaint := misfit(names, {name: CALIBRATION[name] for name in names}, "any", joined=True):
        raise codes.STEPS_DO_NOT_FIT(where=where, reason=complaint, steps=", ".join(CALIBRATION))
    threshold = request.threshold == "fitted"
    if not threshold and not CALIBRATION[names[-1]].own_threshold:
        raise families.UNDECIDED(
            "step {step} has no threshold, so no detection would be decided",
            "give --threshold fitted, or end with a step that has a threshold (fusion, at-prior)",
            where=where,
            step=names[-1],
        )
    if "fusion" not in names and (request.marks or request.prior is not None):
        raise families.UNUSED_OPTION.of(UserError)(
            "{option} belongs to the step fusion, which is not among the steps",
            "leave it out, or begin with fusion",
            where=where,
            option="--marks" if request.marks else "--prior",
        )
    options: dict[str, object] = {"marks": request.marks}
    if request.prior is not None:
        options["prior"] = request.prior
    at = task.point if task is not None else operating_point
    point = None if at is None else TwvParameters(at.trials, at.beta)
    if fit not in ("crossfit", "oracle"):
        options, saved = _saved(read_fitted(fit, {}, f"--fit {fit}"))
        point = point or saved
    steps = make_list_steps(names, {"fusion": options}, where)

    def scored(of: ScoringTask) -> Evaluation:
        listed = next(iter(systems.values()))
        place = ["query_id", "doc_id", "channel", "start", "end", "score", "decision"]
        system = replace(listed, detections=with_durations(table.select(place)), path="the joined list")
        scored_list = score_undecided(of, system)
        return replace(scored_list, aligned=with_parts_of(scored_list.aligned, table))

    lists = {"lists": {name: item.path for name, item in systems.items()}}
    scored_list = fit_or_read(
        Procedure(steps, point), fit, request.folds, task, f"a {names[0]}", scored, lists, threshold=threshold
    )
    return scored_list if scored_list.thresholds else replace(scored_list, thresholds=(None,))


def _saved(data: bytes) -> tuple[dict[str, object], TwvParameters | None]:
    """Options and operating point of a fitted fusion."""
    try:
        values = parse_json(data)
        (options,) = (step["options"] for step in values["steps"] if step["name"] == "fusion")
        return options, TwvParameters(int(values["trials"]), float(values["beta"])) if "trials" in values else None
    except (ValueError, KeyError, TypeError):
        return {}, None  # reading the file later reports the problem


def _weights(procedure: Procedure) -> list[str]:
    """The fitted fusion, for the user."""
    models = fusions_in(json.loads(procedure.to_json()))
    if not models:
        return [f"{procedure.steps[0].name}: {fit_label(procedure.fit)}"]
    mean, many = mean_of(models), f" (means of {len(models)} folds)" if len(models) > 1 else ""
    lines = [f"fusion: {fit_label(procedure.fit)}{many}; offset {mean.offset:+.4g}"]
    for k, name in enumerate(mean.systems):
        mark = f", {mean.marks[k]:+.4g} where it found nothing" if mean.marks else ""
        lines.append(f"  {name}: weight {mean.weights[k]:.4g}{mark}")
    finite = [value for value in procedure.thresholds if value is not None]
    limits = " to ".join(dict.fromkeys(f"{value:.4g}" for value in (min(finite), max(finite)))) if finite else "none"
    lines.append(f"threshold: {limits}")
    return lines


def _shares(table: pa.Table) -> list[str]:
    """Each system's share of the detections, and the number of decisions."""
    systems, _, from_system = parts_of(table)
    shares = [
        f"{name} {100 * share:.1f} %" for name, share in zip(systems, from_system.mean(axis=0).tolist(), strict=True)
    ]
    decided = {value: int(pc.sum(pc.equal(table["decision"], value)).as_py() or 0) for value in (True, False)}
    return [
        f"found by: {', '.join(shares) or 'nobody'}, of detections; missing scores are imputed",
        f"result: {table.num_rows} detections, {decided[True]} YES, {decided[False]} NO",
    ]


def _header(detections: pa.Table, systems: Mapping[str, System]) -> System:
    """A list with the first header's attributes and all answered queries."""
    listed = [system for system in systems.values() if system.search_times is not None]
    times: dict[str, str] | None = None
    if len(listed) == len(systems):
        times = {}
        for system in listed:
            for query, time in (system.search_times or {}).items():
                times.setdefault(query, time)
    attributes = dict(listed[0].attributes) if listed else {}
    attributes["system_id"] = f"fusion of {', '.join(systems)}"
    return System(detections, attributes, times, "the fused list")
