"""Read query examples from tables, folders of audio and term lists.

Table: `query_id` and `path`, or `doc_id` of a document, or `text`; and optionally `example, channel, start, end, speaker,
term`. Rows of a text are written queries, among spoken ones too; in a table without spoken ones `term` is a text as well. A
query with `doc_id` takes the path and, unless its row has them, channel, speaker and place from that document; for a
document that is a place in a recording, start and end are the recording's. Folder: every recording is a query of one
example, named like a document, channel 1. TLIST or KWLIST: its terms (`swsdist.corpora.nist`). Manifest of lhotse, or
data set of Hugging Face: its entries (`lhotse` and `huggingface` there).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import Code, families
from swsdist.core.codes import corpora as codes
from swsdist.core.errors import TableError, UserError
from swsdist.core.types import QUERIES
from swsdist.corpora.documents import (
    ENDINGS,
    LHOTSE,
    Kind,
    kind_of,
    recordings,
    require_rows,
    single_recording,
    with_absolute_paths,
)
from swsdist.corpora.huggingface import dataset_queries
from swsdist.corpora.lhotse import lhotse_queries
from swsdist.corpora.nist import listed_queries
from swsdist.io.notices import Notices
from swsdist.io.project_file import project_file
from swsdist.io.tables import names_in, place, read_table, unknown_names, without_nobody

#: Columns that a written query has no use for.
_OF_RECORDINGS = ("example", "channel", "start", "end", "speaker")


def read_queries(
    source: str,
    documents: pa.Table,
    examples: Literal["primary", "all"] = "primary",
    storage: Mapping[str, object] | None = None,
    notices: Notices | None = None,
    spoken: str | None = None,
    audio: bool = True,
) -> pa.Table:
    """The query examples of a table or a folder, or the terms of a TLIST or KWLIST.

    Args:
        source: CSV, Parquet, folder of audio, recording, or term list; local or `s3://`.
        documents: table CORPUS or PLACED, in which a query's `doc_id` is looked up.
        examples: `primary` keeps the lowest-numbered example of each query.
        storage: options for s3fs.
        notices: collects oddities.
        spoken: table or folder of the spoken examples of a term list.
        audio: if false, rows need no recording; the path is then empty.

    Returns:
        table QUERIES, in the table's order, or by path; a row without a path is text, its term (with `audio`).

    Raises:
        UserError: the table or folder does not exist, or is empty.
        TableError: a row of the table is impossible, or names an unknown document.
    """
    kind = kind_of(source, "queries", ENDINGS, storage)
    if kind == "term list":
        recorded = None
        if spoken is not None:
            which = kind_of(spoken, "spoken", ENDINGS, storage)
            recorded = _examples(spoken, which, documents, examples, storage, notices, audio)
        return listed_queries(source, recorded, spoken, storage, notices)
    if spoken is not None:
        raise families.UNUSED_OPTION.of(UserError)(
            "corpus.spoken is for a TLIST or KWLIST, and the queries are none",
            "leave corpus.spoken out, or name a term list in corpus.queries",
            where="corpus.spoken",
        )
    return _examples(source, kind, documents, examples, storage, notices, audio)


def _examples(
    source: str,
    kind: Kind,
    documents: pa.Table,
    examples: Literal["primary", "all"],
    storage: Mapping[str, object] | None,
    notices: Notices | None,
    audio: bool,
) -> pa.Table:
    """The rows of a table, or the recordings of a folder."""
    if kind in LHOTSE:
        return without_nobody(lhotse_queries(source, kind, storage))
    if kind == "data set":
        return without_nobody(dataset_queries(source))
    if kind != "table":
        result = single_recording(source) if kind == "recording" else recordings(source, storage, notices=notices)
        rows = [{"query_id": query_id, "example": 1, "path": path, "channel": 1} for query_id, path in result.items()]
        return pa.Table.from_pylist(rows, QUERIES)
    # An empty channel means 1 for a file, and the document's for a document.
    channel = QUERIES.get_field_index("channel")
    lenient = QUERIES.set(channel, QUERIES.field(channel).with_nullable(True)).append(pa.field("text", pa.string()))
    table = read_table(source, lenient, key=("query_id", "example"), storage=storage, notices=notices)
    project = project_file(source)  # whose sounds lie beside its file
    table = with_absolute_paths(table, source if project is None else str(project), storage)
    table = require_rows(source, table, "queries")
    spoken = pc.any(pc.or_(pc.is_valid(table["path"]), pc.is_valid(table["doc_id"]))).as_py()
    columns = names_in(source, storage)
    described = [name for name in _OF_RECORDINGS if name in columns and "text" not in columns]
    if audio and not spoken and described and notices is not None:
        count = len(pc.unique(table["query_id"]))
        notices.add(codes.RECORDINGS_WITHOUT_PATH, where=source, count=count, columns=", ".join(described))
    rows = _rows(table, source, documents, storage, spoken, audio)
    if examples == "all":
        return pa.Table.from_pylist(rows, QUERIES)
    least = table.group_by("query_id").aggregate([("example", "min")])
    first = dict(zip(least["query_id"].to_pylist(), least["example_min"].to_pylist(), strict=True))
    required = [row for row in rows if row["example"] == first[row["query_id"]]]
    searched = {(row["query_id"], row["term"]) for row in required}
    lost = [k for k, row in enumerate(rows) if not row["path"] and (row["query_id"], row["term"]) not in searched]
    if lost and notices is not None:
        where = f"{place(source, lost[0], storage)}: {rows[lost[0]]['query_id']}"
        notices.add(codes.EXAMPLES_NOT_SEARCHED, where=where, count=len(lost))
    return pa.Table.from_pylist(required, QUERIES)


def _rows(
    table: pa.Table,
    source: str,
    documents: pa.Table,
    storage: Mapping[str, object] | None,
    spoken: bool,
    audio: bool,
) -> list[dict[str, Any]]:
    """The rows of a table with paths and channels filled in; `spoken`: it has recordings, so a term alone is no text.

    Raises:
        TableError: a row is impossible, or names an unknown document.
    """
    find = Finder(documents, table["doc_id"])
    rows, strange = list[dict[str, Any]](), dict[int, str]()
    for k, query in enumerate(table.to_pylist()):
        text = query.pop("text")
        if not audio and query["path"] is None and query["doc_id"] is None and text is None:
            query["path"] = ""
        try:
            if None not in (text, query["term"]) and text != query["term"]:
                raise _Unresolved(
                    families.CONFLICTING_ROWS.saying(
                        "query {query!r} has the text {text!r} and the term {term!r}",
                        "give one of the columns, or the same in both",
                    ),
                    query=query["query_id"],
                    text=text,
                    term=query["term"],
                )
            query["term"] = query["term"] if text is None else text
            rows.append(_resolved(query, find, text_allowed=not spoken or text is not None))
        except _NoDocument as error:
            strange[k] = repr(error.name)
        except _Unresolved as error:
            raise error.code(where=place(source, k, storage), **error.values) from None
    if strange:
        there = pc.unique(documents["doc_id"]).to_pylist()
        raise unknown_names("document", [*strange.values()], [*strange], source, there, storage, "look at the spelling")
    return rows


class _Unresolved(Exception):
    """A query without a recording."""

    def __init__(self, code: Code[TableError], **values: object) -> None:
        super().__init__(code.name)
        self.code, self.values = code, values


class _NoDocument(Exception):
    """A query in an unknown document."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _resolved(query: dict[str, Any], find: Finder, *, text_allowed: bool) -> dict[str, Any]:
    """A query's row with path and channel filled in; `text_allowed` allows queries without recording."""
    if query["path"] is not None and query["doc_id"] is not None:
        raise _Unresolved(
            families.CONFLICTING_ROWS.saying("query {query!r} has both path and doc_id", "give path or doc_id"),
            query=query["query_id"],
        )
    if query["path"] is None and query["doc_id"] is None and not (text_allowed and query["term"]):
        code = (
            families.BAD_CELL.saying(
                "query {query!r} has neither path nor doc_id nor text", "give path, doc_id or text"
            )
            if text_allowed
            else families.BAD_CELL.saying(
                "query {query!r} has neither path nor doc_id, and others have one",
                "give path or doc_id; or, of a written query, a column text",
            )
        )
        raise _Unresolved(code, query=query["query_id"])
    if query["doc_id"] is None:
        return {**query, "channel": query["channel"] or 1}
    channels = find.channels(query["doc_id"])
    if not channels:
        raise _NoDocument(query["doc_id"])
    choices = ", ".join(map(str, channels))
    if query["channel"] is None and len(channels) > 1:
        raise _Unresolved(
            families.BAD_CELL.saying("document {document!r} has channels {channels}", "give the query's channel"),
            document=query["doc_id"],
            channels=choices,
        )
    channel = query["channel"] or next(iter(channels))
    if channel not in channels:
        raise _Unresolved(
            families.UNKNOWN_NAME.of(TableError).saying(
                "document {document!r} has no channel {channel}", "its channels are: {channels}"
            ),
            document=query["doc_id"],
            channel=channel,
            channels=choices,
        )
    document = channels[channel]
    result: dict[str, Any] = {**query, "channel": channel, "path": document["path"]}
    if query["speaker"] is None:
        result["speaker"] = document["speaker"]
    if query["start"] is None and query["end"] is None and document.get("start") is not None:
        result["start"], result["end"] = document["start"], document["end"]
    return result


class Finder:
    """Maps documents, or the recordings that contain them, to their channels; built on demand.

    Args:
        documents: CORPUS or PLACED.
        names: all names to be looked up.
    """

    def __init__(self, documents: pa.Table, names: pa.ChunkedArray) -> None:
        requested = names.combine_chunks().drop_null()
        named = pc.is_in(documents["doc_id"], value_set=requested)
        if "recording" in documents.column_names:
            named = pc.or_(named, pc.is_in(documents["recording"], value_set=requested))
        self._documents = documents.filter(named)
        self._rows: dict[str, dict[int, dict[str, Any]]] = {}

    def channels(self, name: str) -> dict[int, dict[str, Any]]:
        """The rows of a name by channel; for a recording a row without a place."""
        if not self._rows:
            for row in self._documents.to_pylist():
                self._rows.setdefault(row["doc_id"], {})[row["channel"]] = row
                if (recording := row.get("recording")) not in (None, row["doc_id"]):
                    row_of_recording = {"path": row["path"], "speaker": None}
                    self._rows.setdefault(recording, {}).setdefault(row["channel"], row_of_recording)
        return self._rows.get(name, {})
