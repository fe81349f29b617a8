"""True occurrences of queries, from a table: `query_id, doc_id, start, end`, and optionally `channel`.

If documents are places in recordings, `doc_id` is a recording, or a document, and times are the recording's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import families
from swsdist.core.errors import TableError
from swsdist.core.types import JUDGEMENTS, REFERENCES, with_values
from swsdist.corpora.places import SLACK, Places, is_placed
from swsdist.io.notices import Notices
from swsdist.io.project_file import project_file
from swsdist.io.tables import names_in, place, read_table, unknown_names

_VERDICTS = pa.schema([*REFERENCES, JUDGEMENTS.field("verdict")])

#: Tolerated excess of a reference's end beyond its document, s.
_OVERSHOOT = 0.5


def read_references(
    path: str,
    documents: pa.Table,
    queries: pa.Table,
    storage: Mapping[str, object] | None = None,
    notices: Notices | None = None,
) -> pa.Table:
    """The true occurrences.

    Args:
        path: CSV or Parquet, local or `s3://`.
        documents: table CORPUS or PLACED; all documents or recordings named must be in it.
        queries: table QUERIES; all queries named must be in it.
        storage: options for s3fs.
        notices: collects oddities.

    Returns:
        table REFERENCES, in the table's order.

    Raises:
        UserError: there is no such table.
        TableError: a row is impossible, is a duplicate, or names an unknown query or document.
    """
    table = read_table(path, REFERENCES, key=REFERENCES.names, storage=storage, notices=notices)
    query_ids = pc.unique(queries["query_id"])
    strange = np.flatnonzero(pc.invert(pc.is_in(table["query_id"], query_ids)).to_numpy()).tolist()
    if strange:
        names = [repr(name) for name in table["query_id"].take(pa.array(strange)).to_pylist()]
        remedy = "look at the spelling, add them to the queries, or drop the rows"
        raise unknown_names("query", names, strange, path, query_ids.to_pylist(), storage, remedy)
    return _in_recordings(table, documents, path, storage)


class Judged(NamedTuple):
    """What people judged in a corpus.

    Attributes:
        references: places judged `yes`: REFERENCES.
        judged: those judged `yes` or `no`: REFERENCES.
    """

    references: pa.Table
    judged: pa.Table


def has_verdicts(path: str, storage: Mapping[str, object] | None = None) -> bool:
    """Whether a table is of judgements: a glossary, or a table with the column `verdict`.

    Args:
        path, storage: as for `read_references`.

    Raises:
        UserError, TableError: the table cannot be read.
    """
    return project_file(path) is not None or "verdict" in names_in(path, storage)


def read_verdicts(path: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """Judged places: REFERENCES with `verdict`.

    Args:
        path, storage: as for `read_references`.

    Raises:
        UserError: the table cannot be read, or is a glossary of a newer version.
        DataError: it is damaged, or a row is impossible.
    """
    table = read_table(path, _VERDICTS, key=REFERENCES.names, storage=storage)
    wrong = np.flatnonzero(
        pc.invert(pc.is_in(table["verdict"], value_set=pa.array(["yes", "no", "unsure"]))).to_numpy()
    )
    if len(wrong):
        row = int(wrong[0])
        raise families.BAD_CELL(
            "{verdict!r} is no verdict",
            "write yes, no or unsure",
            where=place(path, row, storage),
            verdict=table["verdict"][row].as_py(),
        )
    return table


def read_judgements(
    path: str,
    documents: pa.Table,
    queries: pa.Table,
    notices: Notices,
    storage: Mapping[str, object] | None = None,
) -> Judged:
    """The judgements of words that are searched, in documents that are.

    Args:
        path, documents, queries, storage: as for `read_references`.
        notices: takes how many were left out.

    Raises:
        UserError, DataError: as of `read_verdicts`.
    """
    table = read_verdicts(path, storage)
    named = [documents["doc_id"].to_pylist()] + ([documents["recording"].to_pylist()] if is_placed(documents) else [])
    there = {key for names in named for key in zip(names, documents["channel"].to_pylist(), strict=True)}
    searched = pc.is_in(table["query_id"], value_set=pc.unique(queries["query_id"]))
    keys = zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True)
    inside = pa.array([key in there for key in keys], pa.bool_())
    for why, unusable in (
        ("their words have no examples here", pc.invert(searched)),
        ("their documents are not of this corpus", pc.and_(searched, pc.invert(inside))),
    ):
        rows = table.filter(unusable)
        if rows.num_rows:
            where = f"{path}: {rows['query_id'][0]} in {rows['doc_id'][0]}"
            notices.inform(
                families.LEFT_OUT.saying(
                    "judgements left out of scoring: {count}; {why}",
                    (
                        "nothing, if that is meant; else choose examples for the words, or name the documents "
                        "that were judged"
                    ),
                ),
                where=where,
                count=rows.num_rows,
                why=why,
            )
    table = table.filter(pc.and_(pc.and_(searched, inside), pc.not_equal(table["verdict"], "unsure")))
    judged = _in_recordings(table, documents, path, storage)
    true = judged.filter(pc.equal(judged["verdict"], "yes"))
    return Judged(true.select(REFERENCES.names), judged.select(REFERENCES.names))


def _in_recordings(
    references: pa.Table, documents: pa.Table, path: str, storage: Mapping[str, object] | None
) -> pa.Table:
    """References by recording; all name existing recordings or documents."""
    names = references["doc_id"].to_pylist()
    channels = set(zip(documents["doc_id"].to_pylist(), documents["channel"].to_pylist(), strict=True))
    if not is_placed(documents) and channels.issuperset(zip(names, references["channel"].to_pylist(), strict=True)):
        return references
    places = Places(documents)
    ends = zip(references["start"].to_pylist(), references["end"].to_pylist(), strict=True)
    keys = zip(names, references["channel"].to_pylist(), ends, strict=True)
    strange: list[tuple[int, str]] = []
    for row, (name, channel, (start, end)) in enumerate(keys):
        if (name, channel) in places.by_recording:
            continue
        if (name, channel) not in places.documents:
            strange.append((row, f"{name!r} with channel {channel}"))
            continue
        names[row], at = places.documents[name, channel]
        if not at.start - SLACK <= start < end <= at.end + _OVERSHOOT:
            raise families.INVALID_TIMES.of(TableError)(
                "{span} s is not in document {document!r}, which is {place}",
                "times are the recording's: add the document's start",
                where=place(path, row, storage),
                span=f"{start:g} to {end:g}",
                document=name,
                place=f"{at.start:g} to {at.end:g} s of {names[row]!r}",
            )
    if strange:
        remedy = "look at the spelling, add them to the documents, or drop the rows"
        there = pc.unique(documents["doc_id"]).to_pylist()
        raise unknown_names(
            "document", [name for _, name in strange], [row for row, _ in strange], path, there, storage, remedy
        )
    return with_values(references, "doc_id", pa.array(names, pa.string()))
