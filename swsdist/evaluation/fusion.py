"""`swsdist fuse` makes one list of several systems' lists: joined, filled, weighted, decided.

The functions are those of the chain fuse (`swsdist.reduce.fusing`, `swsdist.calibrate.fusion`). A list tells no candidates,
so its scores are made comparable by the mean and standard deviation of each query's detections in it. Without references, and
without a fusion that was fitted elsewhere, all systems weigh the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.fusion import Missing
from swsdist.calibrate.joined import keys_of, parts_of, places_in_common, tell_of_apart, with_parts_of
from swsdist.calibrate.procedure import Procedure, completed, fit_procedure, make_steps
from swsdist.calibrate.seen import ENTRY, fit_of_file, occurrences
from swsdist.calibrate.steps.fusion import fusions_in
from swsdist.calibrate.steps.interface import Point
from swsdist.errors import ConfigError, UserError
from swsdist.evaluation.calibration import undecided_list
from swsdist.evaluation.lists import with_durations
from swsdist.evaluation.task import ScoringTask, System
from swsdist.fingerprint import fingerprint
from swsdist.io.notices import Notices
from swsdist.reduce.fusing import joined, without_gaps
from swsdist.reduce.joining import Meeting, without_overlaps
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.types import DETECTIONS


@dataclass(frozen=True)
class Request:
    """How lists are fused.

    Attributes:
        standardise: q-norm first; else the scores are taken as they are.
        meet, overlap: when detections of two systems mean one place; see `swsdist.reduce.joining`.
        missing: what stands for missing scores.
        fit: `crossfit`, `oracle`, `none` (the same weights), a file; None: crossfit where there are references, else none.
        folds: for crossfit.
        threshold: `own`, ln(beta); or `fitted`, that of best TWV.
        marks: also fit a weight for each system's having made no detection.
        prior: effective prior of the fit; None: the operating point's.
        between_queries: of overlapping detections of different queries the better stays.
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

    def how(self, *, references: bool) -> str:
        """How it is fitted, with or without references: as `fit`, never None."""
        return self.fit or ("crossfit" if references else "none")


@dataclass(frozen=True)
class Fused:
    """A fused list, and what is told about it.

    Attributes:
        system: the list, with the header and the queries of those that it was made of.
        fitted: what was fitted or read, as a file; None where nothing was.
        lines: what was done, for people.
    """

    system: System
    fitted: bytes | None
    lines: tuple[str, ...]


def fuse_lists(
    systems: Mapping[str, System],
    request: Request,
    task: ScoringTask | None = None,
    point: OperatingPoint | None = None,
    notices: Notices | None = None,
) -> Fused:
    """Fuse lists.

    Args:
        systems: the lists, by the names that their weights have.
        request: what is asked for.
        task: references and operating point, where they are given.
        point: the operating point where there is no task.
        notices: takes what is odd; None: it is not told.

    Raises:
        OddError: notices are strict, and something is odd.
        UserError: there is no detection, or what is needed was not given or cannot be fitted.
        ConfigError: a file holds no fusion, or one of other systems.
    """
    if not 0 <= request.overlap < 1:
        raise UserError(f"an overlap of {request.overlap:g}", remedy="give 0 or more, and less than 1")
    lists = {name: _plain(system) for name, system in systems.items()}
    lines = [_told(name, lists[name], systems[name].path) for name in lists]
    if task is not None:  # what the term list lacks must not push out what it has
        ids = task.terms["query_id"].combine_chunks()
        lists = {name: table.filter(pc.is_in(table["query_id"], value_set=ids)) for name, table in lists.items()}
    notices = Notices() if notices is None else notices
    _tell_of_strangers(lists, notices)
    if not any(table.num_rows for table in lists.values()):
        if task is not None and any(len(system.detections) for system in systems.values()):
            raise UserError(
                "the lists have no detection of a term that is scored",
                where=", ".join(lists),
                remedy="look at the terms and references: they name other queries, or none",
            )
        raise UserError("the lists have no detection", where=", ".join(lists), remedy="give lists with detections")
    places, known = joined(lists, standardise=request.standardise, meet=request.meet, overlap=request.overlap)
    given = parts_of(places)[2]
    several = int((given.sum(axis=1) > 1).sum())
    lines.append(f"joined: {places.num_rows} places, {several} of them found by more than one system")
    tell_of_apart(places_in_common(places), notices)
    table = without_gaps(places, known, missing=request.missing, overlap=request.overlap)
    if gone := places.num_rows - table.num_rows:
        lines.append(f"{gone} places overlap a better one of their query, and are left out")
    procedure = _procedure(request, table, systems, task, point)
    if procedure is None:
        lines.append(
            "NOTHING WAS FITTED: the fused score is the mean of the systems' scores, each with the same weight; not decided"
        )
    else:
        table = procedure.apply(table)
        lines += _weights(procedure, request)
    if request.between_queries:
        rows = table.num_rows
        table = without_overlaps(table, request.overlap, between_queries=True)
        lines.append(
            f"{rows - table.num_rows} detections overlap one of another query with a higher score, and are left out: what is "
            "decided of a query depends on the other queries"
        )
    lines += _shares(table)
    detections = with_durations(table.select(["query_id", "doc_id", "channel", "start", "end", "score", "decision"]))
    return Fused(_header(detections, systems), None if procedure is None else procedure.to_json(), tuple(lines))


def _tell_of_strangers(lists: Mapping[str, pa.Table], notices: Notices) -> None:
    """Tell what is odd in lists that should be of one task.

    Raises:
        UserError: no two of several have a query in common.
        OddError: notices are strict, and something is odd.
    """
    queries = {name: set(table["query_id"].unique().to_pylist()) for name, table in lists.items()}
    some = [mine for mine in queries.values() if mine]
    if len(some) > 1 and not any(a & b for a, b in combinations(some, 2)):
        raise UserError(
            "no two of the lists have a query in common",
            where=", ".join(lists),
            remedy="name lists of one task; of these none has detections of queries that the task or another list has",
        )
    empty = [name for name, mine in queries.items() if not mine]
    notices.add(
        "lists have no detection of any query",
        where=", ".join(empty),
        remedy="leave them out, or give the lists that were meant",
        count=len(empty),
    )
    pairs = [(a, b) for a, b in combinations(lists, 2) if lists[a].num_rows and lists[b].num_rows]
    same = [f"{a} and {b}" for a, b in pairs if lists[a].equals(lists[b])]
    notices.add(
        "pairs of lists are the same list", where=", ".join(same), remedy="name each system once", count=len(same)
    )


def _plain(system: System) -> pa.Table:
    """Of a list what is fused, names as text."""
    columns = ["query_id", "doc_id", "channel", "start", "end", "score"]
    return system.detections.select(columns).cast(pa.schema([DETECTIONS.field(name) for name in columns]))


def _told(name: str, table: pa.Table, path: str) -> str:
    queries = pc.count_distinct(table["query_id"]).as_py()
    return f"{name}: {table.num_rows} detections of {queries} queries ({path})"


def _procedure(
    request: Request,
    table: pa.Table,
    systems: Mapping[str, System],
    task: ScoringTask | None,
    given: OperatingPoint | None,
) -> Procedure | None:
    """The fusion, fitted or read; None where all systems weigh the same."""
    fit = request.how(references=task is not None)
    if fit == "none":
        return None
    options: dict[str, object] = {"marks": request.marks}
    if request.prior is not None:
        options["prior"] = request.prior
    steps = make_steps(["fusion"], {"fusion": options})
    settled = task.point if task is not None else given
    point = None if settled is None else Point(settled.trials, settled.beta)
    own = request.threshold == "own"
    if fit not in ("crossfit", "oracle"):
        fitted = _read(fit, steps, table, point, own)
        references = None if task is None else task.references
        return replace(fitted, fit=fit_of_file(fitted.trained_on, references))
    if task is None or point is None:
        raise UserError(
            f"a fusion is fitted on true occurrences, and none are given (--fit {fit})",
            remedy="give --ecf, --rttm and --terms (or --references), or a fitted file: --fit FILE",
        )
    if request.folds < 2:
        raise UserError(f"{request.folds} folds", remedy="cross-fitting takes two folds or more")
    listed = next(iter(systems.values()))
    place = ["query_id", "doc_id", "channel", "start", "end", "score", "decision"]
    system = replace(listed, detections=with_durations(table.select(place)), path="the joined list")
    scored = undecided_list(task, system)
    aligned = with_parts_of(scored.aligned, table)
    trained_on: dict[str, object] = {
        "lists": {name: one.path for name, one in systems.items()},
        "aligned": fingerprint(
            [list(keys_of(aligned)), aligned["score"].to_pylist(), aligned["ref_start"].to_pylist()]
        ),
        "true": task.references.num_rows,
        ENTRY: occurrences(task.references),
        "protocol": task.protocol.name,
    }
    folds = 1 if fit == "oracle" else request.folds
    return fit_procedure(
        lambda: [aligned],
        Procedure(steps, point),
        folds=folds,
        own=own,
        point=point,
        trained_on=trained_on,
        asked=scored.task.terms["query_id"].to_pylist(),
    )


def _read(path: str, steps: tuple[object, ...], table: pa.Table, point: Point | None, own: bool) -> Procedure:
    """A fusion that was fitted elsewhere; several folds are averaged."""
    file = Path(path)
    if not file.is_file():
        raise UserError(
            "this is a folder, and not that of a run" if file.is_dir() else "there is no such file",
            where=f"--fit {path}",
            remedy="give crossfit, oracle, none, a fitted file, or the folder of a finished run",
        )
    data = file.read_bytes()
    if point is None:
        point = _point_in(data)
    fitted = Procedure(steps, point).with_file(data, path, thresholds=not own)  # type: ignore[arg-type]
    (model,) = fitted.models[0]
    fitted = replace(fitted, steps=make_steps(["fusion"], {"fusion": {"marks": _is_marked(model)}}))
    if point is None:
        return replace(fitted, thresholds=fitted.thresholds or (None,))
    return completed(fitted, lambda: [table], folds=1, own=own, point=point)


def _is_marked(model: Mapping[str, object]) -> bool:
    (fusion,) = fusions_in({"steps": [{"name": "fusion", "models": [model]}]})
    return bool(fusion.marks)


def _point_in(data: bytes) -> Point | None:
    """The operating point that a file was fitted for."""
    try:
        values = json.loads(data)
        return Point(int(values["trials"]), float(values["beta"]))
    except (ValueError, KeyError, TypeError):
        return None


def _weights(procedure: Procedure, request: Request) -> list[str]:
    """What was fitted, for people."""
    models = fusions_in(json.loads(procedure.to_json()))
    if not models:
        raise ConfigError(
            "it holds no fusion", where=f"--fit {request.fit}", remedy="name a file of `swsdist fuse --save`"
        )
    many = f" (means of {len(models)} folds)" if len(models) > 1 else ""
    named = "ORACLE, fitted on what is decided, so optimistic" if procedure.fit == "oracle" else procedure.fit
    first = models[0]
    found = [f"fusion: {named}{many}; offset {_mean([one.offset for one in models]):+.4g}"]
    for k, name in enumerate(first.systems):
        line = f"  {name}: weight {_mean([one.weights[k] for one in models]):.4g}"
        if first.marks:
            line += f", {_mean([one.marks[k] for one in models]):+.4g} where it found nothing"
        found.append(line)
    known = [value for value in procedure.thresholds if value is not None]
    limits = " to ".join(dict.fromkeys(f"{value:.4g}" for value in (min(known), max(known)))) if known else "none"
    found.append(f"threshold: {limits}")
    return found


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _shares(table: pa.Table) -> list[str]:
    """Which part of the detections each system made, and how many were decided."""
    systems, _, given = parts_of(table)
    shares = [f"{name} {100 * share:.1f} %" for name, share in zip(systems, given.mean(axis=0).tolist(), strict=True)]
    decided = {value: int(pc.sum(pc.equal(table["decision"], value)).as_py() or 0) for value in (True, False)}
    return [
        f"of the detections were made by: {', '.join(shares) or 'nobody'}; the other scores are filled in",
        f"result: {table.num_rows} detections, {decided[True]} YES, {decided[False]} NO",
    ]


def _header(detections: pa.Table, systems: Mapping[str, System]) -> System:
    """A list with the first header's attributes, and all queries that were answered."""
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
