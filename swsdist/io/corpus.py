"""What is searched, what is looked for, and where it truly occurs: from tables or folders of audio to our schemas.

**Documents.** Of a table: `doc_id, path`, and maybe `channel, duration, speaker`. Of a folder: every recording below
it, told by its ending; `doc_id` is the path in the folder without ending, with `/`; each channel that the header tells
is a document. A recording whose header cannot be read still becomes a document, of channel 1, so that indexing rejects
it and says why. Files whose names begin with a dot are left out.

**Queries.** Of a table: `query_id` and `path`, or `doc_id` of a document, and maybe `example, channel, start, end,
speaker, term`. A query given by `doc_id` takes path and, where it gives none itself, channel and speaker from that
document. Of a folder: every recording is a query of one example, named like a document, channel 1.

**Talkers.** A table: `doc_id, speaker`, and maybe `channel`: who speaks in the documents whose own table does not tell.

**Parts.** A list of `doc_id`s, or a table with a column of them.

**References.** A table: `query_id, doc_id, start, end`, and maybe `channel`.

Paths in a table are relative to the table's place, and come out absolute, or as `s3://` urls.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio import ffmpeg
from swsdist.audio.reader import AudioInfo, probe
from swsdist.errors import AudioError, TableError, UserError
from swsdist.io.filesystem import Folder, is_remote, locate
from swsdist.io.notices import Notices
from swsdist.io.tables import place, read_table
from swsdist.types import CORPUS, QUERIES, REFERENCES

_READ = "aif aiff au caf flac mp3 oga ogg opus rf64 snd sph w64 wav"
#: Endings of recordings. Those of formats that are not read here are rejected with a reason, not passed over.
ENDINGS = ffmpeg.ENDINGS | {*_READ.split(), "raw"}
#: Of files that differ in their endings only, the first is called by its name without one: masters before copies.
_BEST = ("wav", "rf64", "w64", "aiff", "aif", "au", "caf", "flac", "sph", "opus", "ogg", "oga", "mp3")
_TABLES = (".csv", ".parquet", ".pq")

# Headers on S3 are read side by side: each waits for the network some times.
_REMOTE_PROBES = 16


_TALKERS = pa.schema([CORPUS.field("doc_id"), CORPUS.field("channel").with_nullable(True), CORPUS.field("speaker")])
_PART = pa.schema([CORPUS.field("doc_id")])


def read_documents(
    source: str,
    storage: Mapping[str, object] | None = None,
    talkers: str | None = None,
    notices: Notices | None = None,
    prefer: Sequence[str] = (),
) -> pa.Table:
    """The documents of a table or a folder.

    Args:
        source: CSV, Parquet, or folder of audio; local or `s3://`.
        storage: options for s3fs.
        talkers: table of the speakers of documents that do not tell theirs.
        notices: told of what is odd.
        prefer: endings, the best first: of files of a folder that differ in their endings only one is a document.

    Returns:
        table CORPUS, in the table's order, or by path and channel.

    Raises:
        UserError: there is no such table or folder, or nothing in it.
        TableError: a row of a table is impossible.
    """
    documents = _documents(source, storage, notices, prefer)
    return documents if talkers is None else _with_talkers(documents, talkers, storage)


def _documents(
    source: str, storage: Mapping[str, object] | None, notices: Notices | None, prefer: Sequence[str] = ()
) -> pa.Table:
    if is_table(source):
        table = read_table(source, CORPUS, key=("doc_id", "channel"), storage=storage, notices=notices)
        return _filled(source, _absolute(table, source), "documents")
    recordings = _recordings(source, storage, prefer, notices)
    rows: list[dict[str, object]] = []
    for (doc_id, path), info in zip(recordings.items(), _probe_all(recordings.values(), storage), strict=True):
        for channel in range(1, (info.channels if info else 1) + 1):
            rows.append(
                {"doc_id": doc_id, "channel": channel, "path": path, "duration": info.duration if info else None}
            )
    return pa.Table.from_pylist(rows, CORPUS)


def _with_talkers(documents: pa.Table, source: str, storage: Mapping[str, object] | None) -> pa.Table:
    """Documents with the speakers of a table where they have none; a row without a channel is for all of the recording."""
    table = read_table(source, _TALKERS, key=("doc_id", "channel"), storage=storage)
    known = {(row["doc_id"], row["channel"]): row["speaker"] for row in table.to_pylist()}
    unknown = pc.invert(pc.is_in(table["doc_id"], pc.unique(documents["doc_id"])))
    row = pc.index(unknown, True).as_py()
    if row >= 0:
        raise TableError(
            f"there is no document {table['doc_id'][row].as_py()!r}",
            where=place(source, row, storage),
            remedy="look at its spelling, add it to the documents, or drop the row",
        )
    speakers = [
        row["speaker"] or known.get((row["doc_id"], row["channel"])) or known.get((row["doc_id"], None))
        for row in documents.select(["doc_id", "channel", "speaker"]).to_pylist()
    ]
    index = documents.schema.get_field_index("speaker")
    return documents.set_column(index, documents.schema.field(index), pa.array(speakers, pa.string()))


def part_of(documents: pa.Table, part: Sequence[str] | str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """The documents of a part of the corpus, all their channels.

    Args:
        documents: table CORPUS.
        part: doc_ids, or the path of a table with a column `doc_id` (a value of `corpus.parts`).
        storage: options for s3fs.

    Returns:
        table CORPUS, in the order of `documents`.

    Raises:
        TableError: a row names no document.
        UserError: a name of the list is no document, or there is no such table.
    """
    listed = isinstance(part, str)
    names = read_table(part, _PART, storage=storage)["doc_id"].to_pylist() if isinstance(part, str) else list(part)
    known = set(documents["doc_id"].to_pylist())
    for row, name in enumerate(names):
        if name not in known:
            kind, where = (TableError, place(str(part), row, storage)) if listed else (UserError, "corpus.parts")
            raise kind(
                f"there is no document {name!r}", where=where, remedy="look at its spelling, or take it out of the part"
            )
    return documents.filter(pc.is_in(documents["doc_id"], pa.array(names, pa.string())))


def read_queries(
    source: str,
    documents: pa.Table,
    examples: Literal["primary", "all"] = "primary",
    storage: Mapping[str, object] | None = None,
    notices: Notices | None = None,
) -> pa.Table:
    """The query examples of a table or a folder.

    Args:
        source: CSV, Parquet, or folder of audio; local or `s3://`.
        documents: table CORPUS, which a `doc_id` of a query is looked up in.
        examples: `primary` keeps of each query the example of least number.
        storage: options for s3fs.
        notices: told of what is odd.

    Returns:
        table QUERIES, in the table's order, or by path; a row without a path is text, its term.

    Raises:
        UserError: there is no such table or folder, or nothing in it.
        TableError: a row of the table is impossible, or names an unknown document.
    """
    if not is_table(source):
        rows = [
            {"query_id": query_id, "example": 1, "path": path, "channel": 1}
            for query_id, path in _recordings(source, storage, notices=notices).items()
        ]
        return pa.Table.from_pylist(rows, QUERIES)
    # An empty channel is 1 of a file, but of a document it is the document's.
    channel = QUERIES.get_field_index("channel")
    lenient = QUERIES.set(channel, QUERIES.field(channel).with_nullable(True))
    table = read_table(source, lenient, key=("query_id", "example"), storage=storage, notices=notices)
    table = _filled(source, _absolute(table, source), "queries")
    if examples == "primary":
        least = table.group_by("query_id").aggregate([("example", "min")])
        first = dict(zip(least["query_id"].to_pylist(), least["example_min"].to_pylist(), strict=True))
        keep = [
            first[query] == example
            for query, example in zip(table["query_id"].to_pylist(), table["example"].to_pylist(), strict=True)
        ]
    else:
        keep = [True] * table.num_rows
    find = _finder(documents)
    resolved = []
    for row, (query, wanted) in enumerate(zip(table.to_pylist(), keep, strict=True)):
        try:
            resolved.append((_resolved(query, find), wanted))
        except _Unresolved as error:
            raise TableError(str(error), where=place(source, row, storage), remedy=error.remedy) from error
    return pa.Table.from_pylist([query for query, wanted in resolved if wanted], QUERIES)


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
        documents: table CORPUS; all documents named must be in it.
        queries: table QUERIES; all queries named must be in it.
        storage: options for s3fs.
        notices: told of what is odd.

    Returns:
        table REFERENCES, in the table's order.

    Raises:
        UserError: there is no such table.
        TableError: a row is impossible, stands there twice, or names an unknown query or document.
    """
    table = read_table(path, REFERENCES, key=REFERENCES.names, storage=storage, notices=notices)
    unknown = pc.invert(pc.is_in(table["query_id"], pc.unique(queries["query_id"])))
    row = pc.index(unknown, True).as_py()
    if row >= 0:
        raise TableError(
            f"there is no query {table['query_id'][row].as_py()!r}",
            where=place(path, row, storage),
            remedy="look at its spelling, add it to the queries, or drop the row",
        )
    known = set(zip(documents["doc_id"].to_pylist(), documents["channel"].to_pylist(), strict=True))
    for row, key in enumerate(zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True)):
        if key not in known:
            raise TableError(
                f"there is no document {key[0]!r} with channel {key[1]}",
                where=place(path, row, storage),
                remedy="look at its spelling, add it to the documents, or drop the row",
            )
    return table


class _Document(TypedDict):
    """A row of CORPUS."""

    doc_id: str
    channel: int
    path: str
    duration: float | None
    speaker: str | None


class _Query(TypedDict):
    """A row of QUERIES, where the channel may be missing yet."""

    query_id: str
    example: int
    path: str | None
    doc_id: str | None
    channel: int | None
    start: float | None
    end: float | None
    speaker: str | None
    term: str | None


class _Unresolved(Exception):
    """A query that does not say which recording it is in."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def _resolved(query: _Query, find: Callable[[str], dict[int, _Document]]) -> _Query:
    """A query's row with path and channel filled in."""
    if query["path"] is not None and query["doc_id"] is not None:
        raise _Unresolved(f"query {query['query_id']!r} has both path and doc_id", "give one of them")
    if query["path"] is None and query["doc_id"] is None and not query["term"]:
        raise _Unresolved(f"query {query['query_id']!r} has neither path nor doc_id nor term", "give one of them")
    if query["doc_id"] is None:
        return {**query, "channel": query["channel"] or 1}
    channels = find(query["doc_id"])
    if not channels:
        raise _Unresolved(f"there is no document {query['doc_id']!r}", "look at its spelling")
    known = ", ".join(map(str, channels))
    if query["channel"] is None and len(channels) > 1:
        raise _Unresolved(f"document {query['doc_id']!r} has channels {known}", "give the query's channel")
    channel = query["channel"] or next(iter(channels))
    if channel not in channels:
        raise _Unresolved(f"document {query['doc_id']!r} has no channel {channel}", f"it has: {known}")
    document = channels[channel]
    speaker = query["speaker"] if query["speaker"] is not None else document["speaker"]
    return {**query, "channel": channel, "path": document["path"], "speaker": speaker}


def _finder(documents: pa.Table) -> Callable[[str], dict[int, _Document]]:
    """From a doc_id to its channels and their rows; made when first needed, since most queries are files."""
    rows: dict[str, dict[int, _Document]] = {}

    def find(doc_id: str) -> dict[int, _Document]:
        if not rows:
            for row in documents.to_pylist():
                rows.setdefault(row["doc_id"], {})[row["channel"]] = row
        return rows.get(doc_id, {})

    return find


def is_table(source: str) -> bool:
    """Whether documents or queries are named by a table, and not by a folder of recordings; a local one must be there."""
    if is_remote(source):
        return source.lower().endswith(_TABLES)
    local = Path(source)
    if not local.exists():
        raise UserError("there is no such table or folder", where=source, remedy="look at the path")
    return not local.is_dir()


def _filled(source: str, table: pa.Table, what: str) -> pa.Table:
    if table.num_rows == 0:
        raise UserError(f"there are no {what}", where=source, remedy="add rows below the header")
    return table


def _absolute(table: pa.Table, source: str) -> pa.Table:
    folder, _ = locate(source)
    paths = [None if path is None else _joined(folder, path) for path in table["path"].to_pylist()]
    index = table.schema.get_field_index("path")
    return table.set_column(index, table.schema.field(index), pa.array(paths, pa.string()))


def _joined(folder: Folder, path: str) -> str:
    if is_remote(path) or path.startswith("/"):
        return path
    scheme, slashes, root = folder.root.rpartition("//")
    return scheme + slashes + posixpath.normpath(f"{root}/{path}")


def _recordings(
    source: str, storage: Mapping[str, object] | None, prefer: Sequence[str] = (), notices: Notices | None = None
) -> dict[str, str]:
    """The recordings of a folder: path by id, sorted by id.

    Args:
        source: the folder.
        storage: options for s3fs.
        prefer: endings, the best first: of files that differ in their endings only the best is taken. Without, all are: the
            best by `_BEST` is called by its name without ending, the others by their whole names.
        notices: told of what is left out.
    """
    folder, noted = Folder(source, storage or {}), notices if notices is not None else Notices()

    def unreadable(path: str, error: OSError) -> None:
        if not os.path.isdir(path):  # noqa: PTH112 (Path's raises where a folder above is closed)
            if path.rpartition(".")[2].lower() in ENDINGS:
                noted.add(
                    "recordings that cannot be looked at, or links to nothing, and are left out",
                    where=f"{path} ({error.strerror})",
                    remedy="look at the links and permissions, or remove them",
                )
            return
        noted.add(
            "folders that cannot be read, and are left out",
            where=f"{path} ({error.strerror})",
            remedy="look at their permissions",
        )

    listed = folder.listing(unreadable=unreadable)
    ours = _ours(listed)
    stems: dict[str, list[str]] = {}
    for name in listed:
        stem, dot, ending = name.rpartition(".")
        if not dot or ending.lower() not in ENDINGS or any(part.startswith(".") for part in name.split("/")):
            continue
        if any(name.startswith(one) for one in ours):
            continue
        try:
            name.encode()
        except UnicodeEncodeError:
            noted.add(
                "file names that are not UTF-8, and are left out",
                where=repr(f"{folder.root}/{name}"),
                remedy="rename them (convmv -f latin1 -t utf8)",
            )
            continue
        stems.setdefault(stem, []).append(name)
    if not stems:
        raise UserError(
            "there is no audio in this folder",
            where=folder.root,
            remedy=f"these endings are read: {endings_read()}; a table's name ends in .csv or .parquet",
        )
    names: dict[str, str] = {}
    for stem, several in stems.items():
        order = [ending.lower().lstrip(".") for ending in prefer] or list(_BEST)
        several.sort(key=lambda name: (_rank(name, order), name))
        names[stem] = several[0]
        if prefer and len(several) > 1:
            noted.add(
                "recordings that are there in a better format, and are left out",
                where=f"{folder.root}/{several[1]} beside {several[0].rpartition('/')[2]}",
                remedy="that is what corpus.prefer says",
                count=len(several) - 1,
            )
        for name in several[1:] if not prefer else ():
            names[name] = name
    return {doc_id: folder.path(names[doc_id]) for doc_id in sorted(names)}


def endings_read() -> str:
    """The endings of what can be read here, for a message; and of what ffmpeg would read, where it is not installed."""
    own, others = ", ".join(_READ.split()), ", ".join(sorted(ffmpeg.ENDINGS))
    return (
        f"{own}, {others}"
        if ffmpeg.program() is not None
        else f"{own} (with ffmpeg, which is not installed, also {others})"
    )


def _rank(name: str, order: Sequence[str]) -> int:
    ending = name.rpartition(".")[2].lower()
    return order.index(ending) if ending in order else len(order)


def _ours(listed: Iterable[str]) -> list[str]:
    """Folders that swsdist wrote, with a slash at the end: runs, whose clips are no recordings of the archive."""
    names = set(listed)
    plans = [name[: -len("plan.json")] for name in names if name == "plan.json" or name.endswith("/plan.json")]
    return [place for place in plans if place and f"{place}config.yaml" in names]


def _probe_all(paths: Iterable[str], storage: Mapping[str, object] | None) -> list[AudioInfo | None]:
    """The headers of recordings; None where one cannot be used."""

    def header(path: str) -> AudioInfo | None:
        try:
            return probe(path, storage)
        except AudioError:
            return None  # indexing meets it again, and records the reason

    listed = list(paths)
    side_by_side = _REMOTE_PROBES if listed and is_remote(listed[0]) else os.cpu_count() or 1
    if listed and (is_remote(listed[0]) or any(ffmpeg.is_for(path) for path in listed)):  # else a thread costs more
        with ThreadPoolExecutor(side_by_side) as threads:
            return list(threads.map(header, listed))
    return [header(path) for path in listed]
