"""Scores a list against a task: all measures of the NIST programs, by their rules, from one alignment.

`evaluate` computes counts, rates and values of each term; actual, maximum, optimum and supremum term-weighted values; the
curve; all of these for each source type of the ECF (`BNEWS`, `CTS`, `CONFMTG`), as STDEval prints them; and the pooled curves
of option -P. `ScoringTask.conventions` selects the rules where the programs differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.corpora.places import by_document
from swsdist.evaluation.reading import decision_limits, eligible_detections
from swsdist.evaluation.scoring_task import ScoringTask, System
from swsdist.io.notices import MANY
from swsdist.score.align import score_limits
from swsdist.score.events import basic_measures, measure_parts, measures_of, merge_tables
from swsdist.score.events import values as values_of_parts
from swsdist.score.measures.curve import Block, Counts, Curve, CurvePoint, concatenate, pooled
from swsdist.score.measures.det import pooled_by_detection, referenced
from swsdist.score.measures.protocol import OperatingPoint, number_of_trials
from swsdist.score.measures.twv import PER_TERM, atwv, mtwv, per_term, twv_curve
from swsdist.score.trials import TrialRules, in_every_document, in_order, make_trials, rows_by_document, seconds

#: Source types that have columns of their own in STDEval's report, in its order.
TYPES = ("bnews", "cts", "confmtg")


class Totals(NamedTuple):
    """Sums over terms. STDEval takes all terms, KWSEval those it evaluates."""

    terms: int
    ntrue: int
    ncorr: int | None
    nfa: int | None
    nmiss: int | None
    detections: int
    nontargets: int


@dataclass(frozen=True, eq=False)
class Part:
    """Scores of the whole list, or of the documents of one source type.

    Attributes:
        name: `all`, or the source type.
        seconds: T of that part.
        trials: N.
        per_term: table PER_TERM, a row each term of the task, in the task's order.
        totals: sums.
        actual: ATWV, mean Pmiss and Pfa at the decisions; None if one was not decided or no term has a reference.
        curve: means at every threshold; None if no term has a reference.
        maximum: its greatest value.
    """

    name: str
    seconds: float
    trials: int
    per_term: pa.Table
    totals: Totals
    actual: CurvePoint | None
    curve: Curve | None
    maximum: CurvePoint | None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A scored system.

    Attributes:
        task, system: what was scored.
        point: the operating point of what was scored.
        aligned: table TRIALS, the detections and references that count.
        overall: scores of the whole list.
        parts: by source type, those of `TYPES` first, that hold a referenced term.
        counts: of the whole, all terms included.
        pooled: the curve of all terms as one (STDEval's and KWSEval's -P differ).
        highest_no, lowest_yes: scores that border the decisions.
    """

    task: ScoringTask
    system: System
    point: OperatingPoint
    aligned: pa.Table
    overall: Part
    parts: Mapping[str, Part]
    counts: Counts
    pooled: Curve | None
    highest_no: float | None
    lowest_yes: float | None


def evaluate(
    task: ScoringTask,
    system: System,
    *,
    ecf_filter: bool = False,
    include_refless: bool = False,
    only_answered: bool = False,
    by_type: bool = True,
) -> Evaluation:
    """Score a system.

    Args:
        task: what was asked.
        system: what it answered.
        ecf_filter: leave out what lies outside of the ECF (STDEval's -E; KWSEval always does).
        include_refless: KWSEval's -inc: Pfa is a mean over all terms, Pmiss over those with references.
        only_answered: KWSEval's -j: leave out the terms that the system's list lacks.
        by_type: also score each source type.

    Raises:
        UserError: STDEval's rules know no -inc or -j, or N = Ntrue for a term.
        DataError: a value cannot be scored.
    """
    if (include_refless or only_answered) and not task.conventions.options:
        raise families.UNUSED_OPTION.of(UserError)(
            "only KWSEval has -inc and -j", "use protocol kwseval or openkws13, or leave them out"
        )
    detections = eligible_detections(task, system, ecf_filter=ecf_filter, only_answered=only_answered)
    if only_answered:
        task = _answered(task, system, detections)
    # Of the list, with detections that are left out.
    limits = score_limits(system.detections["score"]) if task.conventions.list_limits else _header_limits(system)
    references = task.references
    if task.protocol.trials == "document":
        if task.places is not None:
            detections, references = by_document(detections, task.places), by_document(references, task.places)
        task, detections, references = _with_nontargets(task, detections, references)
    aligned = make_trials(detections, references, TrialRules.of(task.protocol, *limits), task.segments)
    if task.conventions.by_name and task.protocol.trials == "document":
        aligned = in_order(aligned, detections, task.terms["query_id"].to_pylist(), task.document_names)
    _check_extremes(aligned, task, system.path)
    counts = Counts.of(aligned, terms=task.terms.num_rows)
    with warnings.catch_warnings():
        # The task's notices contain it.
        warnings.filterwarnings("ignore", message=r".*\[negative-false-alarm-rates\]")
        return _evaluated(task, system, aligned, counts, include_refless, by_type)


def _check_extremes(aligned: pa.Table, task: ScoringTask, path: str) -> None:
    """Note that every reference is missed, or that every detection is correct: possible, but usually a mistake."""
    true, detected = pc.is_valid(aligned["ref_start"]), pc.is_valid(aligned["score"])
    many, hits = pc.sum(true).as_py() or 0, pc.sum(pc.and_(true, detected)).as_py() or 0
    if many and pc.any(detected).as_py() and not hits:
        task.notices.add(
            families.ALL_MISSED.saying(
                "{count} true occurrence{s} in the references, and none was found",
                "check names, channels and times of both, unless the system is as bad as that",
            ),
            where=path,
            count=many,
        )
    elif hits == many == aligned.num_rows >= MANY:
        task.notices.add(
            families.ALL_FOUND.saying(
                "{count} detection{s}, all of them correct, and no true occurrence missed",
                "check whether the list was made from the references",
            ),
            where=path,
            count=many,
        )


def _evaluated(
    task: ScoringTask,
    system: System,
    aligned: pa.Table,
    counts: Counts,
    include_refless: bool,
    by_type: bool,
) -> Evaluation:
    counted = counts if include_refless else referenced(counts)
    whole_list = _part("all", task, aligned, counted, task.seconds, task.trials, include_refless)
    parts: dict[str, Part] = {}
    if by_type and task.excerpts is not None and task.conventions.by_type and task.protocol.trials == "time":
        parts = _by_type(task, aligned)
    curve = None if whole_list.curve is None else _pooled_curve(counts, task)
    border = decision_limits(aligned.filter(pc.is_valid(aligned["score"])))
    point = replace(
        task.point, true=task.references.num_rows, queries=task.terms.num_rows, include_refless=include_refless
    )
    return Evaluation(
        task,
        system,
        point,
        aligned,
        whole_list,
        parts,
        counts,
        curve,
        *(border if task.conventions.aligned_border else decision_limits(system.detections)),
    )


def _answered(task: ScoringTask, system: System, detections: pa.Table) -> ScoringTask:
    answered = system.search_times
    if answered is None:
        answered = dict.fromkeys(detections["query_id"].cast(pa.string()).unique().to_pylist(), "")
    ids = pa.array(sorted(answered), pa.string())
    terms = task.terms.filter(pc.is_in(task.terms["query_id"], value_set=ids))
    references = task.references.filter(pc.is_in(task.references["query_id"], value_set=ids))
    return replace(task, terms=terms, references=references)


def _with_nontargets(
    task: ScoringTask, detections: pa.Table, references: pa.Table
) -> tuple[ScoringTask, pa.Table, pa.Table]:
    """Document trials without the queries that occur in every document, which have no false-alarm rate."""
    everywhere = pa.array(in_every_document(references, task.trials), pa.string())
    if not len(everywhere):
        return task, detections, references
    task.notices.add(codes.TERMS_IN_EVERY_DOCUMENT, where=everywhere[0].as_py(), count=len(everywhere))

    def others(table: pa.Table) -> pa.Table:
        return table.filter(pc.invert(pc.is_in(table["query_id"].cast(pa.string()), value_set=everywhere)))

    task = replace(task, terms=others(task.terms), references=others(task.references))
    return task, others(detections), others(references)


def _header_limits(system: System) -> tuple[float | None, float | None]:
    """Least and greatest score from a KWSLIST's header, which its reader has checked."""
    if "kwlist_filename" not in system.attributes:
        return None, None
    try:
        return float(system.attributes["min_score"]), float(system.attributes["max_score"])
    except KeyError:
        return None, None


def _part(
    name: str,
    task: ScoringTask,
    aligned: pa.Table,
    counts: Counts,
    length: float,
    trials: int,
    include_refless: bool = False,
) -> Part:
    rated = per_term(aligned, trials=trials, beta=task.beta, best=name == "all")
    table = _of_all_terms(rated, task.terms["query_id"])
    everyone = task.conventions.all_terms or include_refless
    evaluated = table if everyone else table.filter(pc.greater(table["ntrue"], 0))
    actual: CurvePoint | None = None
    curve: Curve | None = None
    if (counts.classes > 0).any():
        curve = twv_curve(counts, trials=trials, beta=task.beta, reject_all=task.conventions.rejects_all)
        if not counts.undecided.any():
            actual = atwv(counts, trials=trials, beta=task.beta)
    return Part(
        name,
        length,
        trials,
        table,
        _totals(evaluated, aligned),
        actual,
        curve,
        None if curve is None else mtwv(curve),
    )


def _of_all_terms(table: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    """One row per term in the list's order, with zeros for terms without detections and references."""
    place = pc.index_in(ids, value_set=table["query_id"].combine_chunks())
    filled = table.take(place.combine_chunks())
    nothing = pc.is_null(place)
    columns = [ids]
    for field in PER_TERM:
        if field.name != "query_id":
            column = filled[field.name]
            if pa.types.is_integer(field.type):
                column = pc.if_else(nothing, pa.scalar(0, field.type), column)
            columns.append(column)
    return pa.table(columns, schema=PER_TERM)


def _totals(table: pa.Table, aligned: pa.Table) -> Totals:
    def add(name: str) -> int | None:
        column = table[name]
        return None if column.null_count else int(pc.sum(column).as_py() or 0)

    rows = aligned.filter(pc.is_in(aligned["query_id"], value_set=table["query_id"].combine_chunks()))
    detected = pc.is_valid(rows["score"])
    unpaired = pc.and_(detected, pc.is_null(rows["ref_start"]))
    return Totals(
        table.num_rows,
        add("ntrue") or 0,
        add("ncorr"),
        add("nfa"),
        add("nmiss"),
        int(pc.sum(detected).as_py() or 0),
        int(pc.sum(unpaired).as_py() or 0),
    )


def _by_type(task: ScoringTask, aligned: pa.Table) -> dict[str, Part]:
    assert task.excerpts is not None
    kinds: dict[tuple[str, int], str] = {}
    columns = (task.excerpts[name].to_pylist() for name in ("file", "channel", "source_type"))
    for file, channel, kind in zip(*columns, strict=True):
        kinds[task.conventions.excerpt_document(file), channel] = kind.lower()
    of_row = np.full(aligned.num_rows, None, dtype=object)
    for key, rows in rows_by_document(aligned):
        of_row[rows] = kinds.get(key)
    present = sorted(set(kinds.values()), key=lambda kind: (TYPES.index(kind) if kind in TYPES else len(TYPES), kind))
    parts: dict[str, Part] = {}
    for kind in present:
        type_rows = aligned.filter(pa.array(of_row == kind))
        if not pc.any(pc.is_valid(type_rows["ref_start"])).as_py():
            continue
        excerpts = task.excerpts.filter(pc.equal(pc.utf8_lower(task.excerpts["source_type"]), kind))
        length = seconds(excerpts, task.conventions)
        try:
            trials = number_of_trials(task.protocol, length)
            parts[kind] = _part(kind, task, type_rows, Counts.of(type_rows), length, trials)
        except UserError as error:
            task.notices.add(codes.UNSCORED_SOURCE_TYPES, where=f"{kind}: {error.message}", count=1)
    return parts


def _pooled_curve(counts: Counts, task: ScoringTask) -> Curve | None:
    """The curve of all terms pooled: KWSEval's, or STDEval's, with values in C and V and one point per detection."""
    item = pooled(counts)
    if not task.conventions.pooled_by_detection:
        return twv_curve(item, trials=task.trials, beta=task.beta, reject_all=False)
    if not len(item.score):
        return None
    pieces = pooled_by_detection(
        [Block(item.ntrue, item.score, item.hits, item.false_alarms)],
        true=int(item.classes[0]),
        hits=int(item.hits.sum()),
        false_alarms=int(item.false_alarms.sum()),
        trials=task.trials,
        ratio=task.protocol.cost / task.protocol.value,
    )
    return concatenate(pieces)


def values(result: Evaluation, measures: Iterable[str] | None = None) -> dict[str, float | None]:
    """Values of measures by key; None if undefined.

    Precision and F are over terms with references, like TWV. The occurrence-weighted value is STDEval's, over all terms.
    Cross entropies are over all trials of all queries, where trials without a detection get the least submitted score (see
    `swsdist.score.measures.cnxe`), at the operating point's prior (`effective_prior`).

    Args:
        result: a list that was scored.
        measures: names of registered measures; default: the basic ones, which are term-weighted values and rates, the
            pooled maximum, precision, recall and F at the decisions.
    """
    measures = basic_measures(result.point) if measures is None else tuple(measures)
    places = result.task.places if result.point.trials_are != "document" else None
    parts = merge_tables([measure_parts(result.aligned, result.point, measures, places)], measures)
    return values_of_parts(parts, result.point, measures)


def more_values(result: Evaluation) -> dict[str, float | None]:
    """All other measures: ranking, equal error rates, cross entropies, areas over pairs, and measures of other packages."""
    basic = basic_measures(result.point)
    return values(result, (name for name in measures_of(result.point) if name not in basic))
