"""Gathers systems to compare: run folders, per-term tables, and lists, which are scored first.

Run folders and lists have aligned lists, so MTWV can be compared too (values at its threshold), intervals taken over
documents, and values broken down by document properties. A per-term table (`swsdist score --per-term`) only has values at the
decisions.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote
from typing import Any

import pyarrow as pa

from swsdist.accounts.hardware import versions
from swsdist.core.codes import score as codes
from swsdist.core.codes import score as score_codes
from swsdist.evaluation.scored_system import (
    ScoredSystem,
    check_document_property,
    if_decided,
    query_property,
    searched_documents,
)
from swsdist.evaluation.scoring_task import ScoringTask, named_paths
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
from swsdist.score.compare.results import BreakdownTable, ComparisonData, Measured, SystemInfo
from swsdist.score.measures.det import det
from swsdist.score.measures.twv import PER_TERM


def from_table(name: str, path: str) -> ScoredSystem:
    """A per-term table, CSV or Parquet."""
    from swsdist.io.tables import read_table

    table = read_table(path, PER_TERM, key=("query_id",))
    about = SystemInfo(name=name, kind="per-term table", path=path, digest=_sha256(path))
    rated = table["twv"].drop_null()
    measures = (
        {"atwv": math.fsum(rated.to_pylist()) / len(rated)} if if_decided(table) is not None and len(rated) else {}
    )
    return ScoredSystem(name, if_decided(table), about=about, measures=lambda: measures)


def from_list(name: str, path: str, task: ScoringTask, corpus: Sequence[str] = ()) -> ScoredSystem:
    """Score a system's list against a task."""
    from swsdist.evaluation.evaluate import evaluate, more_values, values
    from swsdist.evaluation.scoring_task import read_system

    system = read_system(path, conventions=task.conventions, notices=task.notices)
    result = evaluate(task, system, by_type=False)
    rules, curve = task.protocol, result.overall.curve
    about = SystemInfo(
        name=name,
        kind="list",
        path=path,
        label=system.attributes.get("system_id"),
        digest=_sha256(path),
        corpus=tuple(corpus),
        point=result.point,
        protocol_text=rules.describe(result.point),
        tolerance=rules.tolerance if rules.trials == "time" else None,
        detections=system.detections.num_rows,
    )
    return ScoredSystem.of(
        about,
        rules,
        values(result, ("term-weighted",)),
        result.overall.per_term,
        lambda: [result.aligned],
        lambda: None if curve is None else det(curve),
        documents=None if task.excerpts is None else _searched(task),
        terms=task.terms,
        measures=lambda: {**values(result), **more_values(result)},
    )


def _sha256(path: str) -> str:
    folder, file = locate(path)
    digest = hashlib.sha256()
    with folder.open(file) as stream:
        while part := stream.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def gather_systems(
    arguments: Sequence[str],
    task: ScoringTask | None = None,
    open_run: Callable[[str, str], ScoredSystem] | None = None,
    corpus: Sequence[str] = (),
) -> list[ScoredSystem]:
    """Systems named by command-line arguments, `PATH` or `NAME=PATH`.

    Args:
        arguments: run folders; lists to score against the task; or, without a task, per-term tables.
        task: what lists are scored against.
        open_run: reads a run folder by name and path; None: run folders are not accepted.
        corpus: the files that the task was read from.

    Raises:
        UserError: two have one name, or one cannot be compared.
    """
    systems: list[ScoredSystem] = []
    for name, path in named_paths(arguments).items():
        folder, file = locate(path)
        if open_run is not None and Folder(path).exists("plan.json"):
            systems.append(open_run(name, path))
        elif not folder.exists(file):
            raise codes.NO_SUCH_RESULT(where=path)
        elif task is not None:
            systems.append(from_list(name, path, task, corpus))
        elif is_list(path):
            raise codes.LIST_WITHOUT_TASK(where=path, needed=_task_of(systems))
        else:
            systems.append(from_table(name, path))
    return systems


def is_list(path: str) -> bool:
    """Whether a file is a system's list rather than a per-term table."""
    from swsdist.evaluation.scoring_task import reader_of
    from swsdist.io.tables import names_in

    if reader_of(path) not in ("csv", "parquet"):
        return True
    names = names_in(path)
    return "score" in names and "ntrue" not in names


def _task_of(runs: Sequence[ScoredSystem]) -> str:
    """Options that define the scoring task; those of the first run, if there is one."""
    about = next((item.about for item in runs if item.about is not None and item.about.point is not None), None)
    if about is None or about.point is None:
        return "--references and --seconds, or --ecf, --rttm and --terms, and --protocol"
    point = about.point
    references = quote(str(about.corpus[-1]))
    return f"as {about.name} was: --references {references} --seconds {point.seconds:g} --protocol {point.protocol}"


@dataclass(frozen=True)
class ComparisonRequest:
    """How to compare systems.

    Attributes:
        by: columns, each with or without bins, as `COLUMN` or `COLUMN:BINS` (see `swsdist.score.compare.breakdown.grouped`).
        queries: table of queries' properties (`query_id`, ...), CSV or Parquet.
        documents: table of documents' properties (`doc_id`, `seconds`, ...); its `seconds` override known ones.
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
    """Compare systems by ATWV, and by MTWV if all have it; break down the first measure.

    Raises:
        UserError: systems cannot be compared, or a column is not known.
    """
    for what in ("trials", "beta"):
        settings_seen = {getattr(system, what): system.name for system in systems if getattr(system, what) is not None}
        if len(settings_seen) > 1:
            shown = ", ".join(f"{name} has {value}" for value, name in settings_seen.items())
            raise codes.DIFFERENT_SCORING(setting=what, values=shown)
    blocks: list[Measured] = []
    tables: dict[str, dict[str, pa.Table]] = {}
    for measure, attribute in (("ATWV", "decided"), ("MTWV", "maximal")):
        tables_of_measure = {
            system.name: table for system in systems if (table := getattr(system, attribute)) is not None
        }
        if len(tables_of_measure) < len(systems):
            continue
        tables[measure] = tables_of_measure
        comparison = compare(tables_of_measure, **settings.options())
        blocks.append(_measured(measure, comparison, systems, request, settings))
    if not blocks:
        lacking = next(system.name for system in systems if system.decided is None)
        raise codes.NO_COMMON_VALUES(where=lacking)
    first = blocks[0]
    parts = [part for item in request.by for part in _broken_down(item, first, systems, tables[first.measure], request)]
    lines = [system.line() for system in systems if system.line is not None] if request.curves else []
    return ComparisonData(
        tuple(system.name for system in systems),
        tuple(blocks),
        tuple(parts),
        settings,
        lines=tuple(line for line in lines if line is not None),
        entropies=compare_min_cnxe(systems, settings) if request.entropies else None,
        **_provenance(systems),
    )


def compare_min_cnxe(systems: Sequence[ScoredSystem], settings: Settings) -> Entropies:
    """Compare min Cnxe of systems with aligned lists.

    Raises:
        UserError: one has none, its number of queries is not known, or their priors differ.
    """
    lists = {system.name: system.aligned("min Cnxe") for system in systems}
    points = [system.about.point for system in systems if system.about is not None and system.about.point is not None]
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


def _provenance(systems: Sequence[ScoredSystem]) -> dict[str, Any]:
    """What a comparison says of itself."""
    return {
        "about": tuple(system.about for system in systems if system.about is not None),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }


def compare_conditions(systems: Sequence[ScoredSystem], names: Sequence[str], settings: Settings) -> ComparisonData:
    """Compare conditions over systems; a pair is one system's ATWVs (and MTWVs if all have them).

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
        tables = [getattr(system, attribute) for system in systems]
        if any(table is None for table in tables):
            continue
        values: dict[str, dict[str, float]] = {name: {} for name in names}
        for k, table in enumerate(tables):
            rated = table["twv"].drop_null().to_pylist()
            if not rated:
                raise score_codes.NO_REFERENCES(where=systems[k].name, measure="TWV")
            values[names[k % len(names)]][f"system {k // len(names) + 1}"] = math.fsum(rated) / len(rated)
        joined = compare_paired(conditions(values), **settings.options())
        blocks.append(Measured(measure, joined))
    if not blocks:
        raise codes.UNDECIDED_SYSTEMS()
    return ComparisonData(tuple(names), tuple(blocks), (), settings, units="systems", **_provenance(systems))


def _searched(task: ScoringTask) -> pa.Table:
    """Seconds of each document, as the task's conventions count them."""
    from swsdist.score.trials_of import seconds

    assert task.excerpts is not None
    rows: dict[str, list[int]] = {}
    for row, file in enumerate(task.excerpts["file"].to_pylist()):
        rows.setdefault(task.conventions.excerpt_document(file), []).append(row)
    total = [seconds(task.excerpts.take(pa.array(row_numbers)), task.conventions) for row_numbers in rows.values()]
    return pa.table({"doc_id": list(rows), "seconds": total})


def _measured(
    measure: str,
    comparison: Comparison,
    systems: Sequence[ScoredSystem],
    request: ComparisonRequest,
    settings: Settings,
) -> Measured:
    if not request.over_documents:
        return Measured(measure, comparison)
    counts = []
    for system in systems:
        parts = system.aligned("an interval over documents")
        rate, beta = _by_second(system, "resampled", "--over-documents")
        documents = searched_documents(system, request.documents)
        if measure == "MTWV":
            parts = [decided_at(part, system.threshold) for part in parts]
        counts.append(DocumentCounts.concat([DocumentCounts.of(part, documents) for part in parts]))
    draws = bootstrap_documents(
        counts, beta=beta, trials_per_second=rate, resamples=settings.resamples, seed=settings.seed
    )
    order = {item.name: k for k, item in enumerate(systems)}

    def interval(*which: int) -> Interval:
        return draws.interval(*which, level=settings.level, method=settings.method)

    return Measured(
        measure,
        comparison,
        tuple(interval(k) for k in range(len(systems))),
        tuple(interval(order[pair.first], order[pair.second]) for pair in comparison.pairs),
        draws.undefined,
    )


def _by_second(scored_system: ScoredSystem, what: str, option: str) -> tuple[float, float]:
    """Trials per second of audio and beta, for counts per document.

    Raises:
        UserError: its trials are no seconds of audio.
    """
    if scored_system.rate is None or scored_system.beta is None:
        raise codes.NOT_TIME_TRIALS(where=scored_system.name, operation=what, option=option)
    return scored_system.rate, scored_system.beta


def _broken_down(
    breakdown_column: str,
    block: Measured,
    systems: Sequence[ScoredSystem],
    tables: Mapping[str, pa.Table],
    request: ComparisonRequest,
) -> list[BreakdownTable]:
    """Breakdowns of each system and of the differences between the first and each other."""
    column, colon, text = breakdown_column.partition(":")
    bins = text if colon else None
    complete = {system.name: completed(tables[system.name], block.comparison.paired) for system in systems}
    first = systems[0].name
    values = query_property(column, complete[first], systems, request.queries)
    if values is None:
        return _by_document(column, bins, block, systems, request)
    groups = grouped(values, bins)
    parts = [
        BreakdownTable(column, system.name, None, breakdown(complete[system.name], groups, _aligned(system)))
        for system in systems
    ]
    return parts + [
        BreakdownTable(column, first, system.name, difference(complete[first], complete[system.name], groups))
        for system in systems[1:]
    ]


def _aligned(scored_system: ScoredSystem) -> Aligned | None:
    """Input for the MTWV of groups; None for a per-term table."""
    if scored_system.parts is None or scored_system.trials is None or scored_system.beta is None:
        return None
    return Aligned(scored_system.parts(), scored_system.trials, scored_system.beta, scored_system.reject_all)


def _by_document(
    column: str, bins: str | None, block: Measured, systems: Sequence[ScoredSystem], request: ComparisonRequest
) -> list[BreakdownTable]:
    if bins is not None:
        raise codes.BINS_OF_DOCUMENTS(column=column)
    check_document_property(column, request.documents, request.queries)
    parts = []
    for system in systems:
        lists = system.aligned(f"a breakdown by {column}")
        rate, beta = _by_second(system, "told apart", f"--by {column}")
        documents = searched_documents(system, request.documents, column)
        if block.measure == "MTWV":
            lists = [decided_at(part, system.threshold) for part in lists]
        result = by_document(
            pa.concat_tables(lists),
            documents,
            column,
            trials_per_second=rate,
            beta=beta,
            reject_all=system.reject_all,
        )
        parts.append(BreakdownTable(column, system.name, None, result))
    return parts
