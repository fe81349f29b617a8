"""True occurrences of queries, from a table: `query_id, doc_id, start, end`, and optionally `channel`.

If documents are places in recordings, `doc_id` is a recording, or a document, and times are the recording's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import corpora as codes
from swsdist.core.types import REFERENCES
from swsdist.corpora.places import SLACK, Places, is_placed
from swsdist.io.notices import Notices
from swsdist.io.tables import place, read_table
from swsdist.io.wrong_rows import unknown_names

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
    known = pc.unique(queries["query_id"])
    strange = np.flatnonzero(pc.invert(pc.is_in(table["query_id"], known)).to_numpy()).tolist()
    if strange:
        names = [repr(name) for name in table["query_id"].take(pa.array(strange)).to_pylist()]
        remedy = "look at the spelling, add them to the queries, or drop the rows"
        raise unknown_names("query", names, strange, path, known.to_pylist(), storage, remedy)
    return _in_recordings(table, documents, path, storage)


def _in_recordings(
    references: pa.Table, documents: pa.Table, path: str, storage: Mapping[str, object] | None
) -> pa.Table:
    """References by recording; all name existing recordings or documents."""
    names = references["doc_id"].to_pylist()
    known = set(zip(documents["doc_id"].to_pylist(), documents["channel"].to_pylist(), strict=True))
    if not is_placed(documents) and known.issuperset(zip(names, references["channel"].to_pylist(), strict=True)):
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
            raise codes.REFERENCE_OUTSIDE_DOCUMENT(
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
    index = references.schema.get_field_index("doc_id")
    return references.set_column(index, references.schema.field(index), pa.array(names, pa.string()))
