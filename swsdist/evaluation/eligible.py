"""Selects the references and detections that count for a task, by the conventions of the scoring program.

STDEval scores everything, and with -E leaves out everything outside of the ECF. KWSEval always leaves it out: whole
detections, or by mid-point for segment trials. STDEval leaves out detections of queries that are not in the term list;
KWSEval stops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import evaluation as codes
from swsdist.core.codes.score import UNJUDGED_DETECTIONS
from swsdist.corpora.places import Places, in_documents
from swsdist.io.notices import TIMES, Notices, sample
from swsdist.score.conventions import Conventions
from swsdist.score.measures.protocol import Protocol
from swsdist.score.trials.excerpts import excerpt_documents, inside, named_documents
from swsdist.score.trials.judged import is_judged

if TYPE_CHECKING:
    from swsdist.evaluation.scoring_task import ScoringTask, System


def references_of_terms(references: pa.Table, terms: pa.Table, path: str, notices: Notices) -> pa.Table:
    """References of listed queries; the rest is noted and left out."""
    listed = pc.is_in(references["query_id"], value_set=terms["query_id"].combine_chunks())
    strange = references.filter(pc.invert(listed))
    if strange.num_rows:
        notices.weigh(
            codes.UNLISTED_REFERENCES,
            where=f"{path}: {strange['query_id'][0]}; {notices.query_source} has {sample(terms['query_id'].to_pylist())}",
            listing=notices.query_source,
            count=strange.num_rows,
            of=references.num_rows,
            most=1,
        )
    return references.filter(listed)


def references_within(
    references: pa.Table,
    first_end: np.ndarray | None,
    excerpts: pa.Table,
    rules: Protocol,
    ecf_filter: bool,
    notices: Notices,
) -> pa.Table:
    """References within an excerpt. Those outside are noted; the program's rules decide whether they are scored. Document
    trials leave them out, because no trial contains them.

    Args:
        references: table REFERENCES.
        first_end: end of the first word of each reference, s, which KWSEval tests.
        excerpts: table EXCERPTS.
        rules: the protocol.
        ecf_filter: STDEval's -E.
        notices: takes what is odd.
    """
    tail, conventions = first_end, rules.rules
    references = _under_names_of_ecf(references, excerpts, conventions)
    if conventions.sums_ends:
        from swsdist.score.trials.align import decimals

        start = references["start"].to_numpy()
        tail = start + decimals(references["end"].to_numpy() - start, 4)
    if conventions.by_name:
        kept = _named(references, excerpts, conventions)
    elif rules.trials == "document":
        kept = in_documents(references, Places(excerpt_documents(excerpts, conventions)))
    else:
        kept = inside(references, excerpts, conventions, tail=tail)
    if kept.all():
        return references
    dropping = ecf_filter or conventions.drops_outside or rules.trials == "document"
    first = references.filter(pa.array(~kept)).slice(0, 1).to_pylist()[0]
    listed = (conventions.excerpt_document(file) for file in excerpts["file"].to_pylist())
    notices.weigh(
        codes.REFERENCES_OUTSIDE_ECF,
        where=f"{first['query_id']} in {first['doc_id']} at {first['start']} s; the ECF has {sample(listed)}",
        effect="left out" if dropping else "scored",
        count=int((~kept).sum()),
        of=references.num_rows,
        most=1,
    )
    return references.filter(pa.array(kept)) if dropping else references


def eligible_detections(
    task: ScoringTask, system: System, *, ecf_filter: bool = False, only_answered: bool = False
) -> pa.Table:
    """The detections that count for a task; oddities are noted.

    Args:
        task: the task.
        system: what it answered.
        ecf_filter: leave out what lies outside of the ECF (STDEval's -E; KWSEval always does).
        only_answered: do not note terms missing from the list: they are left out.

    Raises:
        DataError: by KWSEval's rules, a query is not in the term list; by QUESST's, a place has two scores of a query.
    """
    detections, notices = system.detections, task.notices
    if task.conventions.by_name:
        counts = detections.group_by(["query_id", "doc_id", "start", "end"]).aggregate([([], "count_all")])
        for row in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
            where = f"{system.path}: query {row['query_id']}, document {row['doc_id']}"
            raise codes.DUPLICATE_TRIAL(where=where, count=row["count_all"])
        place = detections.schema.get_field_index("channel")
        detections = detections.set_column(
            place, detections.schema.field(place), pa.array(np.ones(len(detections), np.int32))
        )
    listed = pc.is_in(detections["query_id"].cast(pa.string()), value_set=task.terms["query_id"].combine_chunks())
    strange = detections.filter(pc.invert(listed))
    lists = sorted(set(system.search_times or ()) - set(task.terms["query_id"].to_pylist()))
    if strange.num_rows or lists:
        query = lists[0] if lists else strange["query_id"][0].as_py()
        where = f"{system.path}: {query}"
        if task.conventions.strict_lists:
            raise codes.UNLISTED_QUERY(where=where, listing=notices.query_source)
        notices.weigh(
            codes.UNLISTED_QUERIES,
            where=f"{where}; {notices.query_source} has {sample(task.terms['query_id'].to_pylist())}",
            listing=notices.query_source,
            count=max(len(lists), strange.num_rows),
            of=max(len(lists), detections.num_rows),
            most=1,
        )
        detections = detections.filter(listed)
    if task.excerpts is not None:
        detections = _under_names_of_ecf(detections, task.excerpts, task.conventions)
        detections = _detections_within(detections, task, system.path, ecf_filter)
    else:
        _check_documents(detections, task, system.path)
    _check_lengths(detections, task, system.path)
    if task.judged is not None:
        kept = is_judged(detections, task.judged)
        gone = int((~kept).sum())
        if gone:
            task.notices.inform(UNJUDGED_DETECTIONS, where=system.path, count=gone, of=detections.num_rows)
        detections = detections.filter(pa.array(kept))
    if system.search_times is not None and not only_answered:
        missing = [q for q in task.terms["query_id"].to_pylist() if q not in system.search_times]
        if missing:
            notices.add(codes.UNANSWERED_TERMS, where=f"{system.path}: {missing[0]}", count=len(missing))
    _check_order(detections, task, system.path)
    _check_repeated(detections, task, system.path)
    return detections


def _check_documents(detections: pa.Table, task: ScoringTask, path: str) -> None:
    """Doubt a list without detections in any document that a reference names."""
    referenced = pc.unique(task.references["doc_id"].cast(pa.string()))
    named = pc.unique(detections["doc_id"].cast(pa.string()))
    if not len(referenced) or not len(named) or pc.any(pc.is_in(named, value_set=referenced)).as_py():
        return
    there, first = set(referenced.to_pylist()), str(named[0])
    stem, dot, ending = first.rpartition(".")
    advice = "check the document names of both"
    if dot and stem in there:
        advice = f"the list's names have the ending .{ending}, those of the references have none: remove it"
    elif any(name.rpartition(".")[0] == first for name in there):
        advice = "the references' names have an ending, those of the list have none: remove it"
    task.notices.doubt(
        codes.UNREFERENCED_DOCUMENTS,
        where=f"{path}: {first!r}; references: {sample(there)}",
        advice=advice,
        count=detections.num_rows,
        of=detections.num_rows,
    )


def _check_lengths(detections: pa.Table, task: ScoringTask, path: str) -> None:
    """Doubt a list whose detections differ from the references in length by orders of magnitude."""
    if task.protocol.trials == "document" or not detections.num_rows or not task.references.num_rows:
        return
    detected_length = float(np.median(detections["duration"].to_numpy()))
    true = float(np.median(task.references["end"].to_numpy() - task.references["start"].to_numpy()))
    if detected_length > 0 and true > 0 and not 1 / TIMES < detected_length / true < TIMES:
        task.notices.doubt(
            codes.TIME_UNIT_MISMATCH,
            where=f"{path}: {detected_length:g} s; references: {true:g} s",
            count=detections.num_rows,
            of=detections.num_rows,
        )


def _detections_within(detections: pa.Table, task: ScoringTask, path: str, ecf_filter: bool) -> pa.Table:
    assert task.excerpts is not None
    start, duration = detections["start"].to_numpy(), detections["duration"].to_numpy()
    if task.conventions.by_name:
        kept = _named(detections, task.excerpts, task.conventions)
    elif task.protocol.trials == "document":
        assert task.places is not None  # the task has an ECF
        kept = in_documents(detections, task.places)
    elif task.segments is None:
        kept = inside(detections, task.excerpts, task.conventions, tail=start + duration)
    else:
        # Mid-points assign detections to segments, which lie in excerpts.
        middle = start + duration / 2
        place = detections.schema.get_field_index("start")
        points = detections.set_column(place, "start", pa.array(middle))
        kept = inside(points, task.excerpts, task.conventions, tail=middle)
    if kept.all():
        return detections
    dropping = ecf_filter or task.conventions.drops_outside or task.protocol.trials == "document"
    outside = detections.filter(pa.array(~kept))
    documents = {task.conventions.excerpt_document(file) for file in task.excerpts["file"].to_pylist()}
    named = pc.is_in(outside["doc_id"].cast(pa.string()), value_set=pa.array(sorted(documents)))
    effect = "left out" if dropping else "scored nevertheless, as STDEval does without -E"
    for rows, code in (
        (outside.filter(pc.invert(named)), codes.DOCUMENTS_NOT_IN_ECF),
        (outside.filter(named), codes.DETECTIONS_OUTSIDE_ECF),
    ):
        if rows.num_rows:
            first = rows.slice(0, 1).to_pylist()[0]
            notice = (
                f"{path}: {first['query_id']} in {first['doc_id']}, channel {first['channel']}, at {first['start']} s"
            )
            task.notices.weigh(
                code,
                where=f"{notice}; the ECF has {sample(documents)}",
                effect=effect,
                count=rows.num_rows,
                of=detections.num_rows,
                most=1,
            )
    return detections.filter(pa.array(kept)) if dropping else detections


def _under_names_of_ecf(table: pa.Table, excerpts: pa.Table, conventions: Conventions) -> pa.Table:
    """The same rows; documents that the ECF lacks are named as a detection's `file` names them, if it has that document."""
    column = table["doc_id"].cast(pa.string()).combine_chunks().dictionary_encode()
    there = {conventions.excerpt_document(file) for file in excerpts["file"].to_pylist()}
    written = column.dictionary.to_pylist()
    read = [name if name in there else conventions.system_document(name) for name in written]
    names = [new if new in there else old for old, new in zip(written, read, strict=True)]
    if names == written:
        return table
    at = table.schema.get_field_index("doc_id")
    kind = table.schema.field(at)
    return table.set_column(at, kind, pa.array(names, pa.string()).take(column.indices).cast(kind.type))


def _named(table: pa.Table, excerpts: pa.Table, conventions: Conventions) -> np.ndarray:
    """Whether an excerpt has the name of each row's document."""
    names = pa.array(named_documents(excerpts, conventions), pa.string())
    named: np.ndarray = pc.is_in(table["doc_id"].cast(pa.string()), value_set=names).to_numpy()
    return named


def _check_order(detections: pa.Table, task: ScoringTask, path: str) -> None:
    """Note a NO that scores higher than a YES: STDEval prints it, KWSEval stops while writing its report.

    Folds decide each query by one threshold, so only a NO above a YES of its own query is an oddity.
    """
    highest_no, lowest_yes = decision_limits(detections)
    if highest_no is None or lowest_yes is None or highest_no <= lowest_yes:
        return
    known = detections.filter(pc.is_valid(detections["decision"]))
    no, yes = (pc.if_else(pc.equal(known["decision"], which), known["score"], None) for which in (False, True))
    queries = pa.table({"query": known["query_id"].cast(pa.string()), "no": no, "yes": yes})
    limits = queries.group_by("query", use_threads=False).aggregate([("no", "max"), ("yes", "min")])
    odd = limits.filter(pc.fill_null(pc.greater(limits["no_max"], limits["yes_min"]), False))
    if not len(odd):
        task.notices.inform(
            codes.THRESHOLDS_OF_FOLDS, where=path, count=1, highest_no=highest_no, lowest_yes=lowest_yes
        )
        return
    first = odd.slice(0, 1).to_pylist()[0]
    below = pc.approximate_median(yes).as_py() < pc.approximate_median(no).as_py()
    task.notices.add(
        codes.INCONSISTENT_DECISIONS,
        where=path,
        count=1,
        query=first["query"],
        highest_no=first["no_max"],
        lowest_yes=first["yes_min"],
        reversed="; most YES score lower than most NO: the sign of the scores may be reversed" if below else "",
    )


def _check_repeated(detections: pa.Table, task: ScoringTask, path: str) -> None:
    """Note detections that equal another in query, place and score."""
    names = ["query_id", "doc_id", "channel", "start", "end", "score"]
    counts = detections.select(names).group_by(names, use_threads=False).aggregate([([], "count_all")])
    for row in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
        where = f"{path}: query {row['query_id']}, document {row['doc_id']}, {row['start']:g} to {row['end']:g} s"
        task.notices.add(codes.DUPLICATE_DETECTIONS, where=where, count=len(detections) - len(counts))


def decision_limits(detections: pa.Table) -> tuple[float | None, float | None]:
    """Highest score of a NO and lowest score of a YES; None if there is none."""
    decided = pc.fill_null(detections["decision"], False)
    no = detections["score"].filter(pc.and_(pc.invert(decided), pc.is_valid(detections["decision"])))
    yes = detections["score"].filter(decided)
    return pc.max(no).as_py(), pc.min(yes).as_py()
