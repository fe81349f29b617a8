"""Reads the files of an evaluation into a scoring task, by the rules of a protocol, and lists in all formats.

A task has an ECF (the amount of audio), a term list, and references: occurrences looked up in an RTTM or CTM
transcript, or a table. Oddities that the NIST programs ignore silently are noted with a count (`swsdist.io.notices`),
and are errors with `strict`.

What counts depends on the conventions of the scoring program. STDEval scores everything, and with -E leaves out
everything outside of the ECF. KWSEval always leaves it out: whole detections, or by mid-point for segment trials.
STDEval leaves out detections of queries that are not in the term list; KWSEval stops.

Formats of lists are detected by their first bytes. `swsdist.registry.registries.READERS` registers their readers, which
`swsdist.evaluation.scoring_task.read_system` calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.codes.score import UNJUDGED_DETECTIONS
from swsdist.core.errors import DataError, TableError
from swsdist.core.types import REFERENCES, TERMS, with_values
from swsdist.corpora.lhotse import aligned_words, is_supervisions
from swsdist.corpora.places import Places, in_documents
from swsdist.corpora.references import has_verdicts, read_verdicts
from swsdist.evaluation.scoring_task import DETECTED, ReadOptions, ScoringTask, System, with_durations
from swsdist.io.nist.ctm import read_ctm
from swsdist.io.nist.ecf import read_ecf
from swsdist.io.notices import TIMES, Notices, sample
from swsdist.io.tables import names_in, read_table
from swsdist.lattices.words import spelled
from swsdist.score.align import decimals, is_judged
from swsdist.score.conventions import Conventions, in_schema
from swsdist.score.measures.protocol import FROM_DATA, Parts, Protocol, operating_point, protocol, registered
from swsdist.score.trials import excerpt_documents, inside, look_up, named_documents, seconds, segments


def references_of_terms(references: pa.Table, terms: pa.Table, path: str, notices: Notices) -> pa.Table:
    """References of listed queries; the rest is noted and left out."""
    listed = pc.is_in(references["query_id"], value_set=terms["query_id"].combine_chunks())
    strange = references.filter(pc.invert(listed))
    if strange.num_rows:
        notices.weigh(
            families.UNLISTED.saying(
                "{count} of {of} references are of queries that are not in {listing}, and do not count",
                "give {listing} that belongs to the references",
            ),
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
            raise families.DUPLICATE_NAME(
                "{count} scores of one trial",
                "give one score per query and document",
                where=where,
                count=row["count_all"],
            )
        detections = with_values(detections, "channel", pa.array(np.ones(len(detections), np.int32)))
    listed = pc.is_in(detections["query_id"].cast(pa.string()), value_set=task.terms["query_id"].combine_chunks())
    strange = detections.filter(pc.invert(listed))
    lists = sorted(set(system.search_times or ()) - set(task.terms["query_id"].to_pylist()))
    if strange.num_rows or lists:
        query = lists[0] if lists else strange["query_id"][0].as_py()
        where = f"{system.path}: {query}"
        if task.conventions.strict_lists:
            raise families.UNKNOWN_NAME.of(DataError)(
                "the query is not in {listing}",
                "give the list that the system answers",
                where=where,
                listing=notices.query_source,
            )
        notices.weigh(
            families.UNLISTED.saying(
                "{count} of {of} queries or detections are not of {listing}, and do not count",
                "give the list that the system answers",
            ),
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
    values = pa.array(names, pa.string()).take(column.indices)
    return with_values(table, "doc_id", values.cast(table.schema.field("doc_id").type))


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


def read_task(
    *,
    ecf: str | None = None,
    rttm: str | None = None,
    ctm: str | None = None,
    terms: str | None = None,
    references: str | None = None,
    protocol: Protocol | str = "sws2013",
    total_seconds: float | None = None,
    ecf_filter: bool = False,
    notices: Notices | None = None,
    storage: Mapping[str, object] | None = None,
) -> ScoringTask:
    """Read a task.

    Args:
        ecf: the ECF, or else `total_seconds`.
        rttm: transcript to look the terms up in; or `ctm`, or a table of references.
        ctm: word alignments instead of an RTTM.
        terms: TLIST or KWLIST; not needed with a table of references, whose queries are then the terms.
        references: table (CSV or Parquet) of schema REFERENCES; or with verdicts, such as a glossary, where
            what nobody judged does not count.
        protocol: its name, or one that was adapted.
        total_seconds: T.
        ecf_filter: leave out what lies outside of the ECF (STDEval's -E; KWSEval always does).
        notices: takes what is odd.
        storage: options for s3fs.

    Raises:
        UserError: files are missing, too many, or cannot be scored by that protocol.
        DataError: a file is broken.
    """
    rules = registered(protocol) if isinstance(protocol, str) else protocol
    notices = notices if notices is not None else Notices()
    sources = [name for name, source in (("rttm", rttm), ("ctm", ctm), ("references", references)) if source]
    if len(sources) != 1:
        raise families.CONFLICTING_OPTIONS(
            "references need one source, not {sources}",
            "give one of: an RTTM, a CTM, or a table of references",
            sources=" and ".join(sources) or "none",
        )
    if ecf is not None and total_seconds is not None:
        raise codes.CONFLICTING_AUDIO()
    if ecf is None and total_seconds is None:
        raise codes.UNKNOWN_AUDIO(purpose="scoring")
    if terms is None and references is None:
        raise families.MISSING_INPUT("no term list", "give the TLIST or KWLIST with the terms to look up")
    conventions = rules.rules
    excerpts = None
    if ecf is not None:
        excerpts = read_ecf(ecf, storage, notices=notices)
    listed, lowercase = _terms(terms, conventions, notices, storage)
    speakers: pa.Table | None = None
    judged: pa.Table | None = None
    if references is not None:
        true, judged = _table_of_references(references, storage)
        first_end = None
        if listed is None:
            ids = sorted(set((true if judged is None else judged)["query_id"].to_pylist()))
            listed = pa.table({"query_id": ids, "term": ids}, schema=TERMS)
        true = references_of_terms(true, listed, references, notices)
    elif rules.rules.by_name and rttm is not None:
        assert listed is not None
        from swsdist.io.nist.rttm import read_query_documents

        true, first_end = read_query_documents(rttm, storage), None
        true = true.filter(pc.is_in(true["query_id"], value_set=listed["query_id"].combine_chunks()))
    else:
        assert listed is not None
        true, first_end, speakers = look_up_references(
            rttm, ctm, listed, rules, conventions, lowercase, notices, storage
        )
    if excerpts is not None:
        true = references_within(true, first_end, excerpts, rules, ecf_filter, notices)
    total = total_seconds if excerpts is None else seconds(excerpts, conventions)
    assert total is not None
    cut = _segments(excerpts, speakers) if rules.trials == "segment" else None
    documents = None
    if excerpts is not None:
        named = rules.rules.by_name
        documents = len((named_documents if named else excerpt_documents)(excerpts, conventions))
    return replace(_task(rules, true, listed, excerpts, total, documents, cut, notices), judged=judged)


def make_task(
    references: object,
    *,
    total_seconds: float,
    protocol: Protocol | str = "sws2013",
    terms: object = None,
    documents: int | None = None,
    notices: Notices | None = None,
) -> ScoringTask:
    """A task from tables in memory.

    Args:
        references: arrow table, pandas DataFrame or mapping of columns: query_id, doc_id, start, end (s), maybe channel.
        total_seconds: T, s of audio that was searched.
        protocol: its name, or one that was adapted.
        terms: table TERMS likewise; None: the queries of the references.
        documents: number of documents; needed for document trials and for measures of pairs.
        notices: takes what is odd.

    Raises:
        UserError: the protocol is unknown, or makes no trials of these seconds.
        TableError: a column is missing or of another kind.
    """
    rules = registered(protocol) if isinstance(protocol, str) else protocol
    if rules.trials == "segment" or (rules.trials == "document" and documents is None):
        raise families.UNSUPPORTED(
            "protocol {protocol} counts {unit}s as trials",
            "give documents=, their number, if trials are documents; segments need files (read_task)",
            protocol=rules.name,
            unit=rules.trials,
        )
    notices = notices if notices is not None else Notices()
    true = in_schema(references, REFERENCES, "references")
    if terms is None:
        ids = true["query_id"].unique().sort()
        listed = pa.table([ids, ids], schema=TERMS)
    else:
        listed = in_schema(terms, TERMS, "terms")
    for table, what in ((listed.select(["query_id"]), "terms"), (true, "references")):
        if (many := table.num_rows - table.group_by(table.column_names).aggregate([]).num_rows) > 0:
            raise families.DUPLICATE_NAME.of(TableError)(
                "{count} duplicate row{s}", "drop them, or rename one", where=what, count=many
            )
    true = references_of_terms(true, listed, "references", notices)
    return _task(rules, true, listed, None, total_seconds, documents, None, notices)


def _task(
    rules: Protocol,
    references: pa.Table,
    terms: pa.Table,
    excerpts: pa.Table | None,
    total: float,
    documents: int | None,
    cut: pa.Table | None,
    notices: Notices,
) -> ScoringTask:
    """Compute the operating point, and note oddities of the references."""
    point = operating_point(
        rules,
        seconds=total,
        true=references.num_rows,
        queries=terms.num_rows,
        documents=documents,
        segments=None if cut is None else cut.num_rows,
    )
    trials = point.trials
    if rules.beta == FROM_DATA:
        rules = replace(rules, beta=point.beta, cost=point.cost, value=point.value)
    counts = references.group_by("query_id").aggregate([("start", "count")])["start_count"].to_pylist()
    if not counts:
        notices.add(codes.NO_REFERENCED_TERMS, where="references", count=max(1, terms.num_rows))
    if (many := sum(count > trials for count in counts)) and rules.trials == "time":
        notices.add(
            codes.NEGATIVE_FALSE_ALARM_RATES, where="references", count=many, largest=max(counts), trials=trials
        )
    return ScoringTask(rules, references, terms, excerpts, point, cut, notices)


def _terms(
    path: str | None, conventions: Conventions, notices: Notices, storage: Mapping[str, object] | None
) -> tuple[pa.Table | None, bool]:
    if path is None:
        return None, True
    from swsdist.io.nist.termlist import read_termlist

    term_list = read_termlist(path, storage, notices=notices, duplicates=not conventions.strict_lists)
    return term_list.terms, term_list.lowercase


def _table_of_references(path: str, storage: Mapping[str, object] | None) -> tuple[pa.Table, pa.Table | None]:
    """The references, and of a glossary the places judged `yes` or `no`."""
    if not has_verdicts(path, storage):
        return read_table(path, REFERENCES, key=REFERENCES.names, storage=storage), None
    table = read_verdicts(path, storage)
    yes, no = (table.filter(pc.equal(table["verdict"], verdict)).select(REFERENCES.names) for verdict in ("yes", "no"))
    return yes, pa.concat_tables([yes, no])


def look_up_references(
    rttm: str | None,
    ctm: str | None,
    terms: pa.Table,
    rules: Protocol,
    conventions: Conventions,
    lowercase: bool,
    notices: Notices,
    storage: Mapping[str, object] | None,
) -> tuple[pa.Table, np.ndarray, pa.Table | None]:
    """Occurrences of terms in a transcript.

    Args:
        rttm, ctm: the transcript, one of them. Lhotse supervisions with alignments may replace a CTM.
        terms: table TERMS.
        rules: protocol with the maximum gap between words.
        conventions: rules of the scoring program.
        lowercase: compare words without regard to case.
        notices: takes what is odd.
        storage: options for s3fs.

    Returns:
        Table REFERENCES; the end of each reference's first word, s; and the stretches of speech of an RTTM (LEXEMES).

    Raises:
        UserError: there is no such file.
        DataError: it is broken.
    """
    speakers: pa.Table | None = None
    if rttm is not None:
        from swsdist.io.nist.rttm import read_rttm

        lexemes, speakers = read_rttm(rttm, storage, fields=conventions.rttm_fields, notices=notices)
    else:
        lexemes = (aligned_words if is_supervisions(str(ctm), storage) else read_ctm)(str(ctm), storage)
    occurrences = look_up(terms, lexemes, word_gap=rules.word_gap, conventions=conventions, lowercase=lowercase)
    if occurrences.repeated:
        notices.add(
            families.DUPLICATE_TERM_TEXTS.saying(
                "{count} term{s} with the text of another term; as in STDEval, its occurrences count for both",
                "list each text once",
            )
            if conventions.repeats
            else families.DUPLICATE_TERM_TEXTS.saying(
                "{count} term{s} with the text of another term", "list each text once"
            ),
            where=occurrences.repeated[0],
            count=len(occurrences.repeated),
        )
    if occurrences.unsorted:
        effect = "KWSEval links the wrong words then" if conventions.links else "the order of the file counts"
        notices.add(
            codes.UNSORTED_WORDS,
            where=f"{rttm or ctm}: {occurrences.unsorted[0]}",
            effect=effect,
            count=len(occurrences.unsorted),
        )
    absent = terms.filter(pc.invert(pc.is_in(terms["query_id"], occurrences.references["query_id"].unique())))
    folded = look_up(
        _folded(absent, "term"), _folded(lexemes, "word"), word_gap=rules.word_gap, conventions=conventions
    )
    if names := folded.references["query_id"].unique().to_pylist():
        notices.add(codes.SPELLED_OTHERWISE, where=f"{rttm or ctm}: {names[0]}", count=len(names))
    return occurrences.references, occurrences.first_end, speakers


def _folded(table: pa.Table, name: str) -> pa.Table:
    """The same with a column of text as `spelled` folds it; rows of which nothing is left are left out."""
    column = table[name].combine_chunks().dictionary_encode()
    texts = [
        " ".join(filter(None, (spelled(word, "folded") for word in text.split())))
        for text in column.dictionary.to_pylist()
    ]
    table = with_values(table, name, pa.array(texts, pa.string()).take(column.indices))
    return table.filter(pc.not_equal(table[name], ""))


def _segments(excerpts: pa.Table | None, speakers: pa.Table | None) -> pa.Table:
    if excerpts is None or speakers is None or not speakers.num_rows:
        raise codes.MISSING_SEGMENTS(where="references")
    return segments(excerpts, speakers)


def protocol_for(
    name: str | None,
    terms: str | None,
    *,
    segments: bool = False,
    documents: bool = False,
    storage: Mapping[str, object] | None = None,
    **parts: Unpack[Parts],
) -> Protocol:
    """The named protocol, or the default: of a term list `kwseval` for a KWLIST, else `stdeval`, as the programs that read it;
    without one `sws2013`, as of a run.

    Args:
        name: of a protocol; None: by the term list.
        terms: path of the term list.
        segments: segment trials.
        documents: document trials.
        storage: options for s3fs.
        parts: overrides (see `swsdist.score.measures.protocol.protocol`).

    Raises:
        UserError: as of `protocol`; or segment trials by other conventions than KWSEval's.
        DataError: the term list cannot be read.
    """
    if name is None:
        name = "sws2013"
        if terms is not None:
            from swsdist.io.nist.xml import elements

            name = "kwseval" if next(elements(terms, storage)).name == "kwlist" else "stdeval"
    if segments and documents:
        raise families.CONFLICTING_OPTIONS("trials are either segments or documents", "leave one of them out")
    return protocol(name, trials="segment" if segments else "document" if documents else None, **parts)


_NAME = pa.dictionary(pa.int32(), pa.string())
_IDS = ("termid", "kwid")


def is_nist_list(head: bytes) -> bool:
    """Whether a file is XML or UTF-16, which no other list format is."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"\xff\xfe", b"\xfe\xff"))


def is_parquet(head: bytes) -> bool:
    """Whether a file is Parquet."""
    return head.startswith(b"PAR1")


def read_nist(path: str, options: ReadOptions) -> System:
    """A STDLIST (QUESST's too) or KWSLIST, documents named by the conventions.

    Raises:
        UserError: there is no such file.
        DataError: it is broken; with file and line.
    """
    from swsdist.io.nist.systemlist import read_systemlist

    conventions = options.conventions
    # KWSEval stops where STDEval continues.
    tolerant = not conventions.strict_lists
    raw = read_systemlist(path, options.storage, notices=options.notices if tolerant else None, duplicates=tolerant)
    names = raw.detections["doc_id"].unify_dictionaries().combine_chunks()
    renamed = pa.array([conventions.system_document(name) for name in names.dictionary.to_pylist()], pa.string())
    # Two names may become the same, so they are encoded again.
    documents = renamed.take(names.indices).dictionary_encode() if len(names) else pa.array([], _NAME)
    place = raw.detections.schema.get_field_index("doc_id")
    detections = raw.detections.set_column(place, "doc_id", documents)
    return System(detections, raw.attributes, raw.queries, path)


def read_kaldi(path: str, options: ReadOptions) -> System:
    """Results of Kaldi's keyword search.

    Raises:
        UserError: there is no such file.
        DataError: it is broken; with file and line.
    """
    from swsdist.evaluation.kaldi_results import read_results

    kaldi = options.kaldi
    detections = read_results(path, kaldi.utterances, frame_shift=kaldi.frame_shift, storage=options.storage)
    # Kaldi's recipes convert results to a KWSLIST, so an ending .xml means that.
    return System(detections, {"kwlist_filename": "kwlist.xml"}, None, path)


#: Columns of a list that have the names of a STDLIST's or KWSLIST's attributes.
_NIST = pa.schema(
    [
        pa.field("file", pa.string(), False),
        DETECTED.field("channel"),
        *(pa.field(name, pa.float64(), False) for name in ("tbeg", "dur")),
        DETECTED.field("score"),
        DETECTED.field("decision"),
    ]
)


def is_nist_table(head: bytes) -> bool:
    """Whether a file is CSV with columns named as the attributes of NIST's lists; in any case, so that the error of capital
    letters tells the columns' names.
    """
    names = {
        name.strip('" \r').lower() for name in re.split(r"[,;\t]", head.decode("utf-8-sig", "ignore").split("\n")[0])
    }
    return {"file", "tbeg", "dur"} <= names and not names.isdisjoint(_IDS)


def read_nist_table(path: str, options: ReadOptions) -> System:
    """CSV with the columns `termid` or `kwid`, `file`, `tbeg`, `dur`, `score`, maybe `channel` and `decision`; documents are
    named by the conventions.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or a value is impossible; with the line.
    """
    there = names_in(path, options.storage)
    query = pa.field(next((name for name in _IDS if name in there), _IDS[0]), pa.string(), False)
    table = read_table(path, _NIST.insert(0, query), storage=options.storage)
    names = table["file"].dictionary_encode().combine_chunks()
    documents = pa.array(
        [options.conventions.system_document(name) for name in names.dictionary.to_pylist()], pa.string()
    )
    start, duration = table["tbeg"].to_numpy(), table["dur"].to_numpy()
    columns = {
        "query_id": table[query.name],
        "doc_id": documents.take(names.indices),
        "channel": table["channel"],
        "start": table["tbeg"],
        "end": decimals(start + duration, 6),
        "duration": duration,
        "score": table["score"],
        "decision": table["decision"],
    }
    return System(pa.table(columns), {}, None, path)


def read_rows(path: str, options: ReadOptions) -> System:
    """A table of detections, CSV or Parquet.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or a value is impossible; with the line.
    """
    return System(with_durations(read_table(path, DETECTED, storage=options.storage)), {}, None, path)
