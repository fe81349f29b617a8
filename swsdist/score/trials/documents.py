"""Document trials: one trial for each query and document, a target if the query occurs in it.

The score of a trial is the best of the query's detections in that document; it is a target if the document has at
least one occurrence. Times do not matter. SWS 2011 and QUESST are scored this way.

The trials make an aligned list like any other (schema TRIALS), with one row where there is a detection, a reference, or
both. With the number of documents as the number of trials of a query, all measures of such lists apply: TWV,
DET, cross entropy, precision and the rest.

Sources: Rodriguez-Fuentes and Penagarikano 2013, section 2.2.1.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import score as codes
from swsdist.core.types import TRIALS
from swsdist.corpora.places import Places, by_document

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
