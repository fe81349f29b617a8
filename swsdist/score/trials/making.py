"""Makes the trials of a protocol: aligned lists from detections and references of some queries.

Used by runs and for lists. All rows of a query must be in one call; queries may be partitioned in any way.

============  ===========================================  =====================================================
trials are    what pairs a detection with a reference       what is needed besides detections and references
============  ===========================================  =====================================================
`time`        the mid-point rule (`trials.align`)           least and greatest score of the list, by STDEval's rules
`segment`     both lie in one segment (`trials.segments`)   the segments: documents and their stretches of speech
`document`    both lie in one document                      how many documents there are, for the operating point
============  ===========================================  =====================================================

Document trials: one trial for each query and document, a target if the query occurs in it.

The score of a trial is the best of the query's detections in that document; it is a target if the document has at
least one occurrence. Times do not matter. SWS 2011 and QUESST are scored this way.

The trials make an aligned list like any other (schema TRIALS), with one row where there is a detection, a reference, or
both. With the number of documents as the number of trials of a query, all measures of such lists apply: TWV,
DET, cross entropy, precision and the rest.

Sources: Rodriguez-Fuentes and Penagarikano 2013, section 2.2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import score as codes
from swsdist.core.types import TRIALS
from swsdist.corpora.places import Places, by_document
from swsdist.score.conventions import Name, conventions_of
from swsdist.score.measures.protocol import Protocol
from swsdist.score.trials.align import align
from swsdist.score.trials.segments import align_segments, segments_of_documents

KEY = ("query_id", "doc_id", "channel")


def document_trials(detections: pa.Table, references: pa.Table) -> pa.Table:
    """One row for each query and document that has a detection or a reference.

    Args:
        detections: query_id, doc_id, channel, start, end (s), score; optionally decision. Rows in any order.
        references: query_id, doc_id, channel, start, end (s).

    Returns:
        A table of schema TRIALS, ordered by query_id, doc_id, channel. Times, score and decision are those of the
        detection with the best score (of equal ones a YES comes first, then the earliest), `ref_start` and `ref_end`
        of the earliest reference.

    Raises:
        TableError: a column is missing, or a score is null or not finite.
    """
    if "decision" not in detections.column_names:
        detections = detections.append_column("decision", pa.nulls(detections.num_rows, pa.bool_()))
    detected = _columns(detections, "detections", ("start", "end", "score", "decision"))
    true = _columns(references, "references", ("start", "end")).rename_columns([*KEY, "ref_start", "ref_end"])
    bad = pc.invert(pc.fill_null(pc.is_finite(detected["score"]), False)).to_numpy()
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        place = ", ".join(f"{name} {detected[name][row]}" for name in KEY)
        raise codes.NOT_FINITE_NUMBER(
            where=f"detections, row {row + 1} ({place})", column="score", value=detected["score"][row]
        )
    detected = _first(
        detected, [("score", "descending"), ("decision", "descending"), ("start", "ascending"), ("end", "ascending")]
    )
    true = _first(true, [("ref_start", "ascending"), ("ref_end", "ascending")])
    both = detected.join(true, list(KEY), join_type="full outer")
    return both.sort_by([(name, "ascending") for name in KEY]).select(TRIALS.names).cast(TRIALS).combine_chunks()


def pairs_of(aligned: pa.Table, places: Places | None = None) -> pa.Table:
    """Convert an aligned list of any trials to document trials.

    Args:
        aligned: schema TRIALS.
        places: the documents, if they are places in the recordings named by the list.
    """
    detected = aligned.filter(pc.is_valid(aligned["score"]))
    true = aligned.filter(pc.is_valid(aligned["ref_start"])).select([*KEY, "ref_start", "ref_end"])
    true = true.rename_columns([*KEY, "start", "end"])
    if places is not None:
        detected, true = by_document(detected, places), by_document(true, places)
    return document_trials(detected, true)


def _columns(table: pa.Table, what: str, names: tuple[str, ...]) -> pa.Table:
    for name in (*KEY, *names):
        if name not in table.column_names:
            raise codes.ABSENT_COLUMN(where=what, column=name, columns=", ".join(table.column_names))
    return pa.table({name: table[name].cast(TRIALS.field(name).type) for name in (*KEY, *names)})


def _first(table: pa.Table, order: list[tuple[str, str]]) -> pa.Table:
    """The first row of each key in the given order."""
    table = table.sort_by([*((name, "ascending") for name in KEY), *order]).combine_chunks()
    if table.num_rows < 2:
        return table
    new = np.ones(table.num_rows, dtype=bool)
    same = (pc.equal(table[name].slice(1), table[name].slice(0, table.num_rows - 1)) for name in KEY)
    new[1:] = ~np.logical_and.reduce([column.to_numpy() for column in same])
    return table.filter(pa.array(new))


@dataclass(frozen=True)
class TrialRules:
    """How trials are made; plain values for a task's payload.

    Attributes:
        trials_are: what a trial is.
        conventions: name of the scoring program.
        tolerance: s, of the mid-point rule; None if unused.
        low, high: least and greatest score of the whole list; None: of each group (KWSEval).
    """

    trials_are: Literal["time", "segment", "document"]
    conventions: Name
    tolerance: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, rules: Protocol, low: float | None = None, high: float | None = None) -> TrialRules:
        """The rules of a protocol.

        Args:
            rules: the protocol.
            low, high: least and greatest score of the list. By KWSEval's conventions, of its header, if at all.
        """
        if rules.trials != "time":
            return cls(rules.trials, rules.conventions, None)
        return cls("time", rules.conventions, rules.tolerance, low, high)

    @property
    def needs_limits(self) -> bool:
        """Whether the least and greatest score of the whole list must be known first."""
        return self.trials_are == "time" and conventions_of(self.conventions).list_limits

    def as_json(self) -> dict[str, str | float | None]:
        """Plain values by name; `TrialRules(**values)` is the inverse."""
        return asdict(self)


def make_trials(
    detections: pa.Table, references: pa.Table, rules: TrialRules, segments: pa.Table | None = None
) -> pa.Table:
    """An aligned list (schema TRIALS).

    Args:
        detections: query_id, doc_id, channel, start, end (s), score; maybe decision and duration. All rows of each query.
        references: query_id, doc_id, channel, start, end (s), of the same queries.
        rules: how.
        segments: table SEGMENTS of segment trials.

    Raises:
        UserError: segment trials without segments.
        TableError: a column is missing, or a value cannot be scored.
    """
    if rules.trials_are == "segment":
        if segments is None:
            raise codes.MISSING_SEGMENTS(where="score")
        return align_segments(detections, references, segments)
    if rules.trials_are == "document":
        return document_trials(detections, references)
    assert rules.tolerance is not None
    return align(
        detections,
        references,
        tolerance=rules.tolerance,
        low=rules.low,
        high=rules.high,
        conventions=rules.conventions,
    )


def check_needs(rules: Protocol, available: Mapping[str, bool], where: str) -> None:
    """Check that the inputs of a protocol's trials are available, before anything is computed.

    Args:
        rules: the protocol.
        available: whether `speech` (stretches of speech) and `documents` (their number) are known.
        where: the config key or option, for messages.

    Raises:
        UserError: an input is missing.
    """
    if rules.trials == "segment" and not available.get("speech"):
        raise codes.MISSING_SEGMENTS(where=where)
    if rules.trials == "document" and not available.get("documents"):
        raise codes.UNKNOWN_DOCUMENT_COUNT(where=where, protocol=rules.name)


def segments_for(rules: Protocol, documents: pa.Table, speech: pa.Table | None) -> pa.Table | None:
    """The segments of a run's documents; None unless trials are segments.

    Args:
        rules: the protocol.
        documents: doc_id, channel, duration (s), all that were searched.
        speech: doc_id, channel, start, end (s) of stretches of speech.

    Raises:
        UserError: there is no speech.
    """
    if rules.trials != "segment":
        return None
    if speech is None or not speech.num_rows:
        raise codes.MISSING_SEGMENTS(where="score.speech")
    return segments_of_documents(documents, speech)


def in_every_document(references: pa.Table, documents: int) -> list[str]:
    """Queries that occur in every document, by id: they have no false-alarm rate for document trials, and are left out.

    Args:
        references: query_id, doc_id, channel, start, end.
        documents: how many there are.
    """
    pairs = (
        references.select(["query_id", "doc_id", "channel"]).group_by(["query_id", "doc_id", "channel"]).aggregate([])
    )
    counts = pairs.group_by("query_id").aggregate([("doc_id", "count")])
    in_all = counts.filter(pc.greater_equal(counts["doc_id_count"], documents))
    return sorted(in_all["query_id"].to_pylist())
