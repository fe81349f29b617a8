"""Gathers systems to compare: run folders, per-term tables, and lists, which are scored first.

Run folders and lists have aligned lists, so MTWV can be compared too (values at its threshold), intervals taken over
documents, and values broken down by document properties. A per-term table (`swsdist score --per-term`) only has values at the
decisions.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.accounts.hardware import versions
from swsdist.calibrate.steps.by_term import PosteriorSums
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.text import suggestion
from swsdist.core.types import CORPUS, QUERIES
from swsdist.evaluation.evaluate import evaluate, more_values, values
from swsdist.evaluation.scoring_task import ScoringTask, named_paths, read_system, reader_of
from swsdist.io.filesystem import Folder, locate
from swsdist.io.tables import names_in, read_table
from swsdist.score.compare.bootstrap import DocumentCounts, Interval, bootstrap_documents
from swsdist.score.compare.breakdown import (
    Aligned,
    breakdown,
    by_document,
    difference,
    grouped,
    reference_durations,
    word_counts,
)
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
from swsdist.score.measures.det import Det, det
from swsdist.score.measures.protocol import Protocol
from swsdist.score.measures.twv import PER_TERM, per_term, point_in
from swsdist.score.trials import seconds

#: Properties of queries without a table: Ntrue, words of the term, mean length of its references (s), sum of its scores.
COMPUTED = ("ntrue", "words", "duration", "posterior_sum")


@dataclass(frozen=True, eq=False)
class ScoredSystem:
    """A system with the values of its queries.

    Attributes:
        name: of the system.
        decided: table PER_TERM at the decisions made; None where a detection of a query with references is not decided.
        maximal: table PER_TERM at the threshold of MTWV; None where there is no aligned list.
        threshold: that threshold; None rejects everything.
        parts: reads the aligned list, in parts with all rows of their queries; None if there is none.
        trials, beta, rate: N, weight of false alarms, trials per second of audio; None if unknown.
        documents: `doc_id`, `seconds` as trials are counted; None if unknown.
        terms: `query_id` and further attributes; None if there are none.
        reject_all: whether rejecting everything is a point of its curve (not KWSEval's).
        about: provenance of the system.
        line: reads its DET curve; None where there is none.
        measures: computes known values by key.
    """

    name: str
    decided: pa.Table | None
    maximal: pa.Table | None = None
    threshold: float | None = None
    parts: Callable[[], Iterable[pa.Table]] | None = None
    trials: int | None = None
    beta: float | None = None
    rate: float | None = None
    documents: pa.Table | None = None
    terms: pa.Table | None = None
    reject_all: bool = True
    about: SystemInfo | None = None
    line: Callable[[], DetLine | None] | None = None
    measures: Callable[[], Mapping[str, float | None]] = dict

    @classmethod
    def of(
        cls,
        about: SystemInfo,
        rules: Protocol,
        values: Mapping[str, float | None],
        table: pa.Table,
        parts: Callable[[], Iterable[pa.Table]],
        det: Callable[[], Det | None],
        *,
        documents: pa.Table | None,
        terms: pa.Table | None = None,
        measures: Callable[[], Mapping[str, float | None]] | None = None,
    ) -> ScoredSystem:
        """A scored list, of a run or another program.

        Args:
            about: its provenance, with the operating point.
            rules: its protocol.
            values: of the term-weighted measures, by key.
            table: PER_TERM at the decisions.
            parts: reads the aligned list.
            det: reads its DET curve.
            documents, terms, measures: see the attributes; None: the measures are the values.
        """
        assert about.point is not None
        trials, beta, best = about.point.trials, about.point.beta, point_in(values, "mtwv")
        cut = None if best is None else finite_threshold(best.threshold, best.pmiss, best.pfa)

        def line() -> DetLine | None:
            if (points := det()) is None:
                return None
            return DetLine(about.name, points.threshold, points.pmiss, points.pfa, point_in(values, "atwv"), best)

        return cls(
            about.name,
            if_decided(table.select(PER_TERM.names)),
            None if best is None else values_at(parts(), cut, trials, beta),
            cut,
            parts,
            trials,
            beta,
            rules.rules.rate(rules.trials_per_second) if rules.trials == "time" else None,
            documents if rules.trials == "time" else None,
            terms,
            rules.rules.rejects_all,
            about,
            line,
            measures or (lambda: values),
        )

    def aligned(self, what: str) -> list[pa.Table]:
        """The parts of the aligned list.

        Raises:
            UserError: there is none.
        """
        if self.parts is None:
            raise families.UNSUPPORTED(
                "a per-term table does not have what {purpose} needs",
                "name a run folder, or a system list with --ecf, --rttm and --terms",
                where=self.name,
                purpose=what,
            )
        return list(self.parts())


def query_property(
    column: str, terms: pa.Table, systems: Sequence[ScoredSystem], queries: str | None
) -> pa.Array | pa.ChunkedArray | None:
    """A property of each query, null if unknown; None if there is no such column.

    It comes from the user's table or the attributes of the term list, or is computed (`COMPUTED`); durations and posterior
    sums use the aligned list of the first system.

    Args:
        column: its name.
        terms: per-term table of the queries.
        systems: in order.
        queries: the user's table.

    Raises:
        UserError: the inputs of a computed property are missing, or there is no such table.
        TableError: the table is broken.
    """
    if queries is not None and column in names_in(queries):
        return _joined(terms, _column(queries, "query_id", column), column)
    listed = next((system.terms for system in systems if system.terms is not None), None)
    if listed is not None and column in listed.column_names and column != "query_id":
        return _joined(terms, listed, column)
    if column == "ntrue":
        return terms["ntrue"]
    if column == "words":
        text = listed if listed is not None else None
        if text is None and queries is not None and "term" in names_in(queries):
            text = _column(queries, "query_id", "term")
        if text is None:
            raise families.MISSING_INPUT(
                "the words of the queries are unknown", "give the term list, or a table of queries with a column term"
            )
        return _joined(terms, word_counts(text.filter(pc.is_valid(text["term"]))), "words")
    if column == "duration":
        true = pa.concat_tables(systems[0].aligned("the duration of terms"))
        true = true.filter(pc.is_valid(true["ref_start"]))
        spans = pa.table({"query_id": true["query_id"], "start": true["ref_start"], "end": true["ref_end"]})
        return _joined(terms, reference_durations(spans), "duration")
    if column == "posterior_sum":
        sums = PosteriorSums()
        for part in systems[0].aligned("a posterior sum"):
            sums = sums + PosteriorSums.of(part)
        return pa.array(sums.values(terms["query_id"].to_pylist()))
    return None


def check_document_property(column: str, documents: str | None, queries: str | None) -> None:
    """Check that the table of documents has a column.

    Raises:
        UserError: no table has it.
    """
    header = names_in(documents) if documents is not None else []
    if column not in header:
        listed = [] if queries is None else names_in(queries)
        raise families.UNKNOWN_NAME(
            "no property {column!r} of queries or documents{meant}",
            "name one of {properties}, an attribute of the term list, or a column of a table: {tables}",
            column=column,
            meant=suggestion(column, [*COMPUTED, *listed, *header]),
            properties=", ".join(COMPUTED),
            tables=f"{_columns_text('--queries', queries)}; {_columns_text('--documents', documents)}",
        )


def searched_documents(system: ScoredSystem, documents: str | None, column: str | None = None) -> pa.Table:
    """The documents that a system searched: `doc_id`, `seconds`, and a property, null if unknown.

    The user's table overrides the seconds of the system.

    Raises:
        UserError: seconds are not known.
        TableError: the table is broken.
    """
    if documents is not None and "seconds" in names_in(documents):
        schema = [pa.field("doc_id", pa.string(), False), pa.field("seconds", pa.float64(), False)]
        table = read_table(documents, pa.schema(schema), key=("doc_id",))
        if (table["seconds"].to_numpy() < 0).any():
            raise families.BAD_CELL(
                "seconds are negative", "give the searched seconds of each document", where=documents
            )
    elif system.documents is not None:
        table = system.documents
    else:
        raise families.MISSING_INPUT(
            "the searched seconds of each document are unknown",
            "give an ECF, or --documents with the columns doc_id and seconds",
            where=system.name,
        )
    if column is None:
        return table
    assert documents is not None
    return table.append_column(column, _joined(table, _column(documents, "doc_id", column), column, "doc_id"))


def _columns_text(option: str, path: str | None) -> str:
    """The columns of an option's table."""
    return f"{option} was not given" if path is None else f"that of {option} has {', '.join(names_in(path))}"


def _column(path: str, key: str, column: str) -> pa.Table:
    """A column with one row per key. Rows of one key (examples of a query) must agree, or are averaged if numeric.

    Raises:
        TableError: they hold texts that differ.
    """
    # Columns of known tables have their types; all others are text.
    kind = next((schema.field(column).type for schema in (QUERIES, CORPUS) if column in schema.names), pa.string())
    fields = {key: pa.field(key, pa.string(), False), column: pa.field(column, kind)}
    table = read_table(path, pa.schema(fields.values()))
    values: dict[str, list[str]] = {}
    for name, value in zip(table[key].to_pylist(), table[column].cast(pa.string()).to_pylist(), strict=True):
        key_values = values.setdefault(name, [])
        if value is not None:
            key_values.append(value)
    merged = []
    for name, texts in values.items():
        try:
            merged.append(_merged(texts))
        except ValueError:
            raise families.CONFLICTING_ROWS(
                "{key} {name!r} has several values of {column}: {value!r}, ...",
                "keep one, or give numbers",
                where=path,
                key=key,
                name=name,
                column=column,
                value=texts[0],
            ) from None
    return pa.table({key: list(values), column: pa.array(merged, pa.string())})


def _merged(values: list[str]) -> str | None:
    """The common value, else the mean of numbers.

    Raises:
        ValueError: the values differ and are not numbers.
    """
    if len(set(values)) <= 1:
        return values[0] if values else None
    return repr(math.fsum(map(float, values)) / len(values))


def _joined(rows: pa.Table, table: pa.Table, column: str, key: str = "query_id") -> pa.Array:
    place = pc.index_in(rows[key].cast(pa.string()), value_set=table[key].cast(pa.string()).combine_chunks())
    return table[column].combine_chunks().take(place.combine_chunks())


def if_decided(table: pa.Table) -> pa.Table | None:
    """The table, or None if a detection of a query with references is not decided."""
    rated = table.filter(pc.greater(table["ntrue"], 0))
    return None if rated["twv"].null_count else table


def finite_threshold(threshold: float | None, pmiss: float, pfa: float) -> float | None:
    """The threshold; None if rejecting everything is best, which the curve labels with the highest score."""
    return None if pmiss == 1.0 and pfa == 0.0 else threshold


def values_at(parts: Iterable[pa.Table], threshold: float | None, trials: int, beta: float) -> pa.Table:
    """Per-term values, with all detections decided by a threshold."""
    tables = (per_term(decided_at(part, threshold), trials=trials, beta=beta) for part in parts)
    return pa.concat_tables([PER_TERM.empty_table(), *tables])


def from_table(name: str, path: str) -> ScoredSystem:
    """A per-term table, CSV or Parquet."""
    table = read_table(path, PER_TERM, key=("query_id",))
    about = SystemInfo(name=name, kind="per-term table", path=path, digest=_sha256(path))
    rated = table["twv"].drop_null()
    measures = (
        {"atwv": math.fsum(rated.to_pylist()) / len(rated)} if if_decided(table) is not None and len(rated) else {}
    )
    return ScoredSystem(name, if_decided(table), about=about, measures=lambda: measures)


def from_list(name: str, path: str, task: ScoringTask, corpus: Sequence[str] = ()) -> ScoredSystem:
    """Score a system's list against a task."""
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
            raise families.MISSING_FILE(
                "no such run folder, list or table",
                "name the folder of a run, a list of detections, or a table of `swsdist score`",
                where=path,
            )
        elif task is not None:
            systems.append(from_list(name, path, task, corpus))
        elif is_list(path):
            raise families.WRONG_KIND(
                "this is a system's list, without references to score it against",
                "give {needed}; or a per-term table of it (swsdist score --per-term)",
                where=path,
                needed=_task_of(systems),
            )
        else:
            systems.append(from_table(name, path))
    return systems


def is_list(path: str) -> bool:
    """Whether a file is a system's list rather than a per-term table."""
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
    """Settings of a comparison of systems.

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
        comparison = compare(tables_of_measure, settings)
        blocks.append(_measured(measure, comparison, systems, request, settings))
    if not blocks:
        lacking = next(system.name for system in systems if system.decided is None)
        raise families.NOT_COMPARABLE(
            "there are no values that all systems have",
            "decide its detections (swsdist calibrate), or give all systems as lists or run folders",
            where=lacking,
        )
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
        raise families.NOT_COMPARABLE(
            "{systems} systems cannot each have {conditions} conditions",
            "name each system under the first condition, then the second, ...: A1 B1 A2 B2 for two",
            systems=len(systems),
            conditions=len(names),
        )
    blocks = []
    for measure, attribute in (("ATWV", "decided"), ("MTWV", "maximal")):
        tables = [getattr(system, attribute) for system in systems]
        if any(table is None for table in tables):
            continue
        values: dict[str, dict[str, float]] = {name: {} for name in names}
        for k, table in enumerate(tables):
            rated = table["twv"].drop_null().to_pylist()
            if not rated:
                raise codes.NO_REFERENCES(where=systems[k].name, measure="TWV")
            values[names[k % len(names)]][f"system {k // len(names) + 1}"] = math.fsum(rated) / len(rated)
        joined = compare_paired(conditions(values), settings)
        blocks.append(Measured(measure, joined))
    if not blocks:
        raise families.UNDECIDED("not all systems have decisions", "decide them (swsdist calibrate)")
    return ComparisonData(tuple(names), tuple(blocks), (), settings, units="systems", **_provenance(systems))


def _searched(task: ScoringTask) -> pa.Table:
    """Seconds of each document, as the task's conventions count them."""
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
        raise families.UNSUPPORTED(
            "documents can be {operation} only where trials are seconds of audio",
            "leave {option} out, or use a protocol with time trials",
            where=scored_system.name,
            operation=what,
            option=option,
        )
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
        raise families.UNSUPPORTED(
            "documents cannot be put in bins by {column}", "write the bins into its column {column}", column=column
        )
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
