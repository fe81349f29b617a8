"""Fuses lists of several systems into one (`swsdist fuse`): joins, imputes, weighs, decides.

It shares the functions of the chain fuse (`swsdist.calibrate.fusion`, `swsdist.calibrate.fusion`). A list does not contain all
candidates, so scores are standardised by mean and standard deviation of each query's detections in the list. Without
references and without a fitted fusion, all systems have the same weight.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import Procedure, read_fitted
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.calibrate.steps.logistic import fusions_in, mean_of
from swsdist.core.codes import score as codes
from swsdist.core.codes import fuse as fusion_codes
from swsdist.core.fingerprint import parse_json
from swsdist.core.types import DETECTIONS
from swsdist.evaluation.calibration import check_step_names, fit_label, fit_or_read, make_list_steps, score_undecided
from swsdist.evaluation.evaluate import Evaluation
from swsdist.evaluation.scoring_task import ScoringTask, System, with_durations
from swsdist.calibrate.fusion import Meeting, Missing, complete_list, join_systems, without_overlaps
from swsdist.calibrate.fusion import count_common_places, parts_of, warn_disjoint_systems, with_parts_of
from swsdist.io.notices import Notices
from swsdist.registry.entries import misfit
from swsdist.registry.registries import CALIBRATION
from swsdist.score.measures.protocol import OperatingPoint


@dataclass(frozen=True)
class FusionRequest:
    """How to fuse lists.

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
        raise fusion_codes.INVALID_OVERLAP(overlap=request.overlap)
    lists = {name: _plain(system) for name, system in systems.items()}
    lines = [_summary(name, lists[name], systems[name].path) for name in lists]
    notices = Notices() if notices is None else notices
    _check_lists(lists, notices)
    if not any(table.num_rows for table in lists.values()):
        raise fusion_codes.NO_DETECTIONS(where=", ".join(lists))
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
        raise fusion_codes.NO_COMMON_QUERIES(where=", ".join(lists))
    empty = [name for name, ids in queries.items() if not ids]
    notices.add(fusion_codes.EMPTY_LISTS, where=", ".join(empty), count=len(empty))
    pairs = [(a, b) for a, b in combinations(lists, 2) if lists[a].num_rows and lists[b].num_rows]
    same = [f"{a} and {b}" for a, b in pairs if lists[a].equals(lists[b])]
    notices.add(fusion_codes.IDENTICAL_LISTS, where=", ".join(same), count=len(same))


def _plain(system: System) -> pa.Table:
    """Columns that are fused, with names as text."""
    columns = ["query_id", "doc_id", "channel", "start", "end", "score"]
    return system.detections.select(columns).cast(pa.schema([DETECTIONS.field(name) for name in columns]))


def _summary(name: str, table: pa.Table, path: str) -> str:
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
        raise fusion_codes.UNDECIDING_STEPS(where=where, step=names[-1])
    if "fusion" not in names and (request.marks or request.prior is not None):
        raise fusion_codes.OPTION_WITHOUT_FUSION(where=where, option="--marks" if request.marks else "--prior")
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
