"""Reads the files of an evaluation into a scoring task, by the rules of a protocol.

A task has an ECF (the amount of audio), a term list, and references: occurrences looked up in an RTTM or CTM transcript, or a
table. Oddities that the NIST programs ignore silently are noted with a count (`swsdist.io.notices`), and are errors with
`strict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import evaluation as codes
from swsdist.core.codes import score as score_codes
from swsdist.core.types import REFERENCES, TERMS
from swsdist.corpora.references import has_verdicts, read_verdicts
from swsdist.evaluation.eligible import references_of_terms, references_within
from swsdist.evaluation.scoring_task import ScoringTask
from swsdist.io.notices import Notices
from swsdist.io.quesst import read_quesst_references
from swsdist.lattices.spelling import spelled
from swsdist.score.conventions import Conventions
from swsdist.score.measures.protocol import FROM_DATA, Parts, Protocol, operating_point, protocol, registered
from swsdist.score.tables import in_schema
from swsdist.score.trials.excerpts import excerpt_documents, named_documents, seconds


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
        raise codes.AMBIGUOUS_REFERENCES(sources=" and ".join(sources) or "none")
    if ecf is not None and total_seconds is not None:
        raise codes.CONFLICTING_AUDIO()
    if ecf is None and total_seconds is None:
        raise codes.UNKNOWN_AUDIO(purpose="scoring")
    if terms is None and references is None:
        raise codes.NO_TERM_LIST()
    conventions = rules.rules
    excerpts = None
    if ecf is not None:
        from swsdist.io.nist.ecf import read_ecf

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
        true, first_end = read_quesst_references(rttm, storage), None
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
        raise codes.UNSUPPORTED_TRIAL_UNIT(protocol=rules.name, unit=rules.trials)
    notices = notices if notices is not None else Notices()
    true = in_schema(references, REFERENCES, "references")
    if terms is None:
        ids = true["query_id"].unique().sort()
        listed = pa.table([ids, ids], schema=TERMS)
    else:
        listed = in_schema(terms, TERMS, "terms")
    for table, what in ((listed.select(["query_id"]), "terms"), (true, "references")):
        if (many := table.num_rows - table.group_by(table.column_names).aggregate([]).num_rows) > 0:
            raise codes.DUPLICATE_TASK_ROWS(where=what, count=many)
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
            score_codes.NEGATIVE_FALSE_ALARM_RATES, where="references", count=many, largest=max(counts), trials=trials
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
    from swsdist.io.tables import read_table

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
    from swsdist.score.trials.lookup import look_up

    speakers: pa.Table | None = None
    if rttm is not None:
        from swsdist.io.nist.rttm import read_rttm

        lexemes, speakers = read_rttm(rttm, storage, fields=conventions.rttm_fields, notices=notices)
    else:
        from swsdist.corpora.lhotse import aligned_words, is_supervisions
        from swsdist.io.nist.ctm import read_ctm

        lexemes = (aligned_words if is_supervisions(str(ctm), storage) else read_ctm)(str(ctm), storage)
    occurrences = look_up(terms, lexemes, word_gap=rules.word_gap, conventions=conventions, lowercase=lowercase)
    if occurrences.repeated:
        notices.add(
            codes.DUPLICATE_TERM_TEXTS_COUNTED if conventions.repeats else codes.DUPLICATE_TERM_TEXTS,
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
    place = table.schema.get_field_index(name)
    table = table.set_column(place, table.schema.field(name), pa.array(texts, pa.string()).take(column.indices))
    return table.filter(pc.not_equal(table[name], ""))


def _segments(excerpts: pa.Table | None, speakers: pa.Table | None) -> pa.Table:
    from swsdist.score.trials.segments import segments

    if excerpts is None or speakers is None or not speakers.num_rows:
        raise score_codes.MISSING_SEGMENTS(where="references")
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
        raise codes.CONFLICTING_TRIAL_UNITS()
    return protocol(name, trials="segment" if segments else "document" if documents else None, **parts)
