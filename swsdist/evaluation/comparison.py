"""This module gathers systems to compare from run folders, per-term tables, and lists, which are scored first.

A run folder and a list have an aligned list, so their MTWV can be compared too (their values at the threshold of the
maximum), intervals can be taken over documents, and values broken down by properties of documents. A per-term table
(`swsdist score --per-term`) has the values at the decisions made, and no more.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from swsdist.accounts.hardware import versions
from swsdist.core.codes import evaluation as codes
from swsdist.core.codes import score as score_codes
from swsdist.evaluation.lists import named_paths
from swsdist.evaluation.scored_system import (
    ScoredSystem,
    check_document_property,
    finite_threshold,
    if_decided,
    query_property,
    searched_documents,
    values_at,
)
from swsdist.evaluation.scoring_task import ScoringTask
from swsdist.io.filesystem import Folder, locate
from swsdist.score.compare.bootstrap import DocumentCounts, Interval, bootstrap_documents
from swsdist.score.compare.breakdown import Aligned, breakdown, by_document, difference, grouped
from swsdist.score.compare.cross_entropy import Entropies, compare_entropies
from swsdist.score.compare.paired import (
    Comparison,
    Settings,
    compare,
    compare_paired,
    completed,
    conditions,
    decided_at,
)
from swsdist.score.compare.results import BreakdownTable, ComparisonData, DetLine, Measured, SystemInfo
from swsdist.score.measures.det import det
from swsdist.score.measures.twv import PER_TERM


def from_table(name: str, path: str) -> ScoredSystem:
    """A per-term table, CSV or Parquet."""
    from swsdist.io.tables import read_table

    table = read_table(path, PER_TERM, key=("query_id",))
    about = SystemInfo(name=name, kind="per-term table", path=path, digest=_sha256(path))
    rated = table["twv"].drop_null()
    known = {"atwv": math.fsum(rated.to_pylist()) / len(rated)} if if_decided(table) is not None and len(rated) else {}
    return ScoredSystem(name, if_decided(table), about=about, measures=lambda: known)


def from_list(name: str, path: str, task: ScoringTask, corpus: Sequence[str] = ()) -> ScoredSystem:
    """A system list, scored against a task, which was read from the files of a corpus."""
    from swsdist.evaluation.evaluate import evaluate, more_values, values
    from swsdist.evaluation.lists import read_system

    system = read_system(path, conventions=task.conventions, notices=task.notices)
    found = evaluate(task, system, by_type=False)
    best, cut = found.whole.maximum, None
    if best is not None:
        cut = finite_threshold(best.threshold, best.pmiss, best.pfa)
    rules, time = task.protocol, task.protocol.trials == "time"
    about = SystemInfo(
        name=name,
        kind="list",
        path=path,
        label=system.attributes.get("system_id"),
        digest=_sha256(path),
        corpus=tuple(corpus),
        point=found.point,
        told=rules.told(found.point),
        tolerance=rules.tolerance if time else None,
        detections=system.detections.num_rows,
    )

    def line() -> DetLine | None:
        if found.whole.curve is None:
            return None
        points = det(found.whole.curve)
        return DetLine(name, points.threshold, points.pmiss, points.pfa, found.whole.actual, best)

    return ScoredSystem(
        name,
        if_decided(found.whole.per_term),
        None if best is None else values_at([found.aligned], cut, task.trials, task.beta),
        cut,
        lambda: [found.aligned],
        task.trials,
        task.beta,
        rules.rules.rate(rules.trials_per_second) if time else None,
        _searched(task) if time and task.excerpts is not None else None,
        task.terms,
        reject_all=task.conventions.rejects_all,
        about=about,
        line=line,
        measures=lambda: {**values(found), **more_values(found)},
    )


def _sha256(path: str) -> str:
    folder, file = locate(path)
    found = hashlib.sha256()
    with folder.open(file) as stream:
        while part := stream.read(1 << 20):
            found.update(part)
    return found.hexdigest()


def gather_systems(
    arguments: Sequence[str],
    task: ScoringTask | None = None,
    open_run: Callable[[str, str], ScoredSystem] | None = None,
    corpus: Sequence[str] = (),
) -> list[ScoredSystem]:
    """The systems that arguments of a command line name, as `PATH` or `NAME=PATH`.

    Args:
        arguments: run folders; else lists to be scored against the task, or without one per-term tables.
        task: what lists are scored against.
        open_run: reads a run folder, given its name and path; None: there are none among them.
        corpus: the files that the task was read from.

    Raises:
        UserError: two have one name, or one cannot be compared.
    """
    found: list[ScoredSystem] = []
    for name, path in named_paths(arguments).items():
        folder, file = locate(path)
        if open_run is not None and Folder(path).exists("plan.json"):
            found.append(open_run(name, path))
        elif not folder.exists(file):
            raise codes.NO_SUCH_RESULT(where=path)
        elif task is not None:
            found.append(from_list(name, path, task, corpus))
        elif is_list(path):
            raise codes.LIST_WITHOUT_TASK(where=path, needed=_task_of(found))
        else:
            found.append(from_table(name, path))
    return found


def is_list(path: str) -> bool:
    """Whether a file is a system's list, and no per-term table."""
    from swsdist.evaluation.lists import reader_of
    from swsdist.io.tables import names_in

    if reader_of(path) not in ("csv", "parquet"):
        return True
    names = names_in(path)
    return "score" in names and "ntrue" not in names


def _task_of(runs: Sequence[ScoredSystem]) -> str:
    """Options that say what a list is scored against; as the first of some runs was, if there is one."""
    about = next((one.about for one in runs if one.about is not None and one.about.point is not None), None)
    if about is None or about.point is None:
        return "--references and --seconds, or --ecf, --rttm and --terms, and --protocol"
    point = about.point
    return (
        f"as {about.name} was: --references {about.corpus[-1]} --seconds {point.seconds:g} --protocol {point.protocol}"
    )


@dataclass(frozen=True)
class ComparisonRequest:
    """A request says how systems are compared.

    Attributes:
        by: columns, each with or without bins, as `COLUMN` or `COLUMN:BINS` (see `swsdist.score.compare.breakdown.grouped`).
        queries: table of queries' properties (`query_id`, ...), CSV or Parquet.
        documents: the same of documents (`doc_id`, `seconds`, ...); `seconds` in place of what is known of them.
        over_documents: also take intervals over documents.
        curves: also read the DET curves.
        entropies: also compare min Cnxe.
    """

    by: Sequence[str] = ()
    queries: str | None = None
    documents: str | None = None
    over_documents: bool = False
    curves: bool = False
    entropies: bool = False


def compare_systems(systems: Sequence[ScoredSystem], request: ComparisonRequest, settings: Settings) -> ComparisonData:
    """Compare systems by ATWV, and by MTWV where all have it, and break the first of these down.

    Raises:
        UserError: systems cannot be compared, or a column is not known.
    """
    for what in ("trials", "beta"):
        known = {getattr(one, what): one.name for one in systems if getattr(one, what) is not None}
        if len(known) > 1:
            shown = ", ".join(f"{name} has {value}" for value, name in known.items())
            raise codes.DIFFERENT_SCORING(setting=what, values=shown)
    blocks: list[Measured] = []
    tables: dict[str, dict[str, pa.Table]] = {}
    for measure, attribute in (("ATWV", "decided"), ("MTWV", "maximal")):
        mine = {one.name: table for one in systems if (table := getattr(one, attribute)) is not None}
        if len(mine) < len(systems):
            continue
        tables[measure] = mine
        found = compare(mine, **settings.options())
        blocks.append(_measured(measure, found, systems, request, settings))
    if not blocks:
        lacking = next(one.name for one in systems if one.decided is None)
        raise codes.NO_COMMON_VALUES(where=lacking)
    first = blocks[0]
    parts = [part for one in request.by for part in _broken_down(one, first, systems, tables[first.measure], request)]
    lines = [one.line() for one in systems if one.line is not None] if request.curves else []
    return ComparisonData(
        tuple(one.name for one in systems),
        tuple(blocks),
        tuple(parts),
        settings,
        lines=tuple(line for line in lines if line is not None),
        entropies=compare_min_cnxe(systems, settings) if request.entropies else None,
        **_told(systems),
    )


def compare_min_cnxe(systems: Sequence[ScoredSystem], settings: Settings) -> Entropies:
    """Min Cnxe of systems that have aligned lists.

    Raises:
        UserError: one has none, its number of queries is not known, or their priors differ.
    """
    lists = {one.name: one.aligned("min Cnxe") for one in systems}
    points = [one.about.point for one in systems if one.about is not None and one.about.point is not None]
    first = systems[0]
    if len({(point.queries, point.effective_prior) for point in points}) != 1 or first.trials is None:
        raise codes.DIFFERENT_CNXE_SETTINGS(where=first.name)
    return compare_entropies(
        lists,
        trials=first.trials,
        queries=points[0].queries,
        prior=points[0].effective_prior,
        level=settings.level,
        resamples=settings.resamples,
        seed=settings.seed,
    )


def _told(systems: Sequence[ScoredSystem]) -> dict[str, Any]:
    """What a comparison says of itself."""
    return {
        "about": tuple(one.about for one in systems if one.about is not None),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }


def compare_conditions(systems: Sequence[ScoredSystem], names: Sequence[str], settings: Settings) -> ComparisonData:
    """Compare conditions over systems: the pairs are ATWVs, and MTWVs where all have them, of each system.

    Args:
        systems: the first system under each condition in turn, then the second, ...
        names: of the conditions.
        settings: of intervals and tests.

    Raises:
        UserError: systems do not fill all conditions, or have no values.
    """
    if len(names) < 2 or len(systems) % len(names):
        raise codes.INCOMPLETE_CONDITIONS(systems=len(systems), conditions=len(names))
    blocks = []
    for measure, attribute in (("ATWV", "decided"), ("MTWV", "maximal")):
        found = [getattr(one, attribute) for one in systems]
        if any(table is None for table in found):
            continue
        values: dict[str, dict[str, float]] = {name: {} for name in names}
        for k, table in enumerate(found):
            rated = table["twv"].drop_null().to_pylist()
            if not rated:
                raise score_codes.NO_REFERENCES(where=systems[k].name, measure="TWV")
            values[names[k % len(names)]][f"system {k // len(names) + 1}"] = math.fsum(rated) / len(rated)
        joined = compare_paired(conditions(values), **settings.options())
        blocks.append(Measured(measure, joined))
    if not blocks:
        raise codes.UNDECIDED_SYSTEMS()
    return ComparisonData(tuple(names), tuple(blocks), (), settings, units="systems", **_told(systems))


def _searched(task: ScoringTask) -> pa.Table:
    """Seconds of each document, as the task's conventions count them."""
    from swsdist.score.trials.excerpts import seconds

    assert task.excerpts is not None
    rows: dict[str, list[int]] = {}
    for row, file in enumerate(task.excerpts["file"].to_pylist()):
        rows.setdefault(task.conventions.excerpt_document(file), []).append(row)
    total = [seconds(task.excerpts.take(pa.array(mine)), task.conventions) for mine in rows.values()]
    return pa.table({"doc_id": list(rows), "seconds": total})


def _measured(
    measure: str,
    found: Comparison,
    systems: Sequence[ScoredSystem],
    request: ComparisonRequest,
    settings: Settings,
) -> Measured:
    if not request.over_documents:
        return Measured(measure, found)
    counts = []
    for one in systems:
        parts = one.aligned("an interval over documents")
        rate, beta = _by_second(one, "resampled", "--over-documents")
        documents = searched_documents(one, request.documents)
        if measure == "MTWV":
            parts = [decided_at(part, one.threshold) for part in parts]
        counts.append(DocumentCounts.concat([DocumentCounts.of(part, documents) for part in parts]))
    draws = bootstrap_documents(
        counts, beta=beta, trials_per_second=rate, resamples=settings.resamples, seed=settings.seed
    )
    order = {one.name: k for k, one in enumerate(systems)}

    def interval(*which: int) -> Interval:
        return draws.interval(*which, level=settings.level, method=settings.method)

    return Measured(
        measure,
        found,
        tuple(interval(k) for k in range(len(systems))),
        tuple(interval(order[pair.first], order[pair.second]) for pair in found.pairs),
        draws.undefined,
    )


def _by_second(one: ScoredSystem, what: str, option: str) -> tuple[float, float]:
    """Trials per second of audio, and beta, of a system whose documents are looked at one by one.

    Raises:
        UserError: its trials are no seconds of audio.
    """
    if one.rate is None or one.beta is None:
        raise codes.NOT_TIME_TRIALS(where=one.name, operation=what, option=option)
    return one.rate, one.beta


def _broken_down(
    wanted: str,
    block: Measured,
    systems: Sequence[ScoredSystem],
    tables: Mapping[str, pa.Table],
    request: ComparisonRequest,
) -> list[BreakdownTable]:
    """Of each system, and of the difference of the first to each other."""
    column, given, text = wanted.partition(":")
    bins = text if given else None
    full = {one.name: completed(tables[one.name], block.comparison.paired) for one in systems}
    first = systems[0].name
    values = query_property(column, full[first], systems, request.queries)
    if values is None:
        return _by_document(column, bins, block, systems, request)
    groups = grouped(values, bins)
    parts = [
        BreakdownTable(column, one.name, None, breakdown(full[one.name], groups, _aligned(one))) for one in systems
    ]
    return parts + [
        BreakdownTable(column, first, one.name, difference(full[first], full[one.name], groups)) for one in systems[1:]
    ]


def _aligned(one: ScoredSystem) -> Aligned | None:
    """For the MTWV of groups; a per-term table has none."""
    if one.parts is None or one.trials is None or one.beta is None:
        return None
    return Aligned(one.parts(), one.trials, one.beta, one.reject_all)


def _by_document(
    column: str, bins: str | None, block: Measured, systems: Sequence[ScoredSystem], request: ComparisonRequest
) -> list[BreakdownTable]:
    if bins is not None:
        raise codes.BINS_OF_DOCUMENTS(column=column)
    check_document_property(column, request.documents, request.queries)
    parts = []
    for one in systems:
        lists = one.aligned(f"a breakdown by {column}")
        rate, beta = _by_second(one, "told apart", f"--by {column}")
        documents = searched_documents(one, request.documents, column)
        if block.measure == "MTWV":
            lists = [decided_at(part, one.threshold) for part in lists]
        found = by_document(
            pa.concat_tables(lists),
            documents,
            column,
            trials_per_second=rate,
            beta=beta,
            reject_all=one.reject_all,
        )
        parts.append(BreakdownTable(column, one.name, None, found))
    return parts
