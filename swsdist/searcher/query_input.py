"""Queries of a search without a run: typed, from a table, or as samples. The result are rows of QUERIES.

A typed query is a recording, a channel of it, a place in it, or both: `FILE`, `FILE#2`, `FILE:12.3-13.1`,
`FILE#2:12.3-13.1`. FILE may also be a document of the store, so a printed hit is a valid query. A file whose name is
the whole text has priority, and a file has priority over a document. A table of queries gives its examples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.corpora.arrays import check_samples, is_recording, write_samples
from swsdist.audio.commands import is_command
from swsdist.audio.formats import views
from swsdist.audio.reader import probe
from swsdist.core.codes import line_of
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import AudioError, DataError, StorageError, SwsdistError, UserError
from swsdist.core.types import QUERIES
from swsdist.corpora.queries import Finder, read_queries
from swsdist.io.filesystem import is_remote
from swsdist.io.notices import Notices
from swsdist.io.tables import without_nobody
from swsdist.methods.query.speech_trimming import has_speech
from swsdist.store.places import relocated_paths
from swsdist.store.reading import Store

#: Receives a skipped example: query, number, and error.
Skip: TypeAlias = Callable[[str, int, SwsdistError], None]

#: Seconds, or minutes or hours and minutes before them, as a player shows them.
_TIME = r"(?:\d+:){0,2}\d+(?:[.,]\d*)?"
_HALF = re.compile(rf"^.*:(?:{_TIME}-?|-{_TIME})$")
_PLACE = re.compile(rf"^(?P<path>.+?):(?P<start>{_TIME})-(?P<end>{_TIME})$")
_CHANNEL = re.compile(r"^(?P<path>.+)#(?P<channel>\d+)$")
#: A number whose comma may separate thousands.
_THOUSANDS = re.compile(r"[1-9]\d{0,2},\d{3}")
_TABLE = re.compile(r"\.(csv|tsv|parquet|pq)(\.(gz|xz))?$", re.IGNORECASE)


#: Sample rate, Hz, for detecting speech in a channel.
_RATE = 16_000


def parse_query(text: str) -> dict[str, Any]:
    """Parse a typed query.

    Returns:
        A row of QUERIES whose id is the text, which is also in `typed`; channel None if not named.

    Raises:
        UserError: it is a folder, a command, a place with one end or with commas that may be of thousands, half of a url, or
            no UTF-8.
    """
    if not text.isprintable() and any("\udc80" <= item <= "\udcff" for item in text):
        raise codes.QUERY_NAME_NOT_UTF8(where=text)
    exists = is_remote(text) or Path(text).exists()
    place = None if Path(text).exists() else _PLACE.match(text)
    if Path(text).is_dir():
        raise codes.QUERY_IS_FOLDER(where=text, folder=text)
    if not exists and place is None and _HALF.match(text):
        raise codes.INCOMPLETE_PLACE(where=text)
    row: dict[str, Any] = dict.fromkeys(QUERIES.names)
    row |= {"query_id": text, "example": 1, "path": text, "typed": text}
    if place is not None:
        start, end = _times(place["start"], place["end"], text)
        row |= {"path": place["path"], "start": start, "end": end}
    if not Path(row["path"]).exists() and (of := _CHANNEL.match(row["path"])):
        row |= {"path": of["path"], "channel": int(of["channel"])}
    _refuse_command(row["path"], text)
    return row


def _times(start: str, end: str, query: str) -> tuple[float, float]:
    """Start and end of a place, s. A comma is a decimal point, unless all commas may separate thousands."""
    commas = [item for item in (start, end) if "," in item]
    if commas and all(map(_THOUSANDS.fullmatch, commas)):
        point = commas[0].replace(",", ".")
        raise codes.AMBIGUOUS_COMMA(where=query, text=commas[0], decimal=point, thousands=commas[0].replace(",", ""))
    return _seconds(start.replace(",", ".")), _seconds(end.replace(",", "."))


def _seconds(text: str) -> float:
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return round(seconds, 6)


def _refuse_command(path: object, query: str) -> None:
    """Refuse commands: queries may be untrusted.

    Raises:
        UserError: a command.
    """
    if isinstance(path, str) and is_command(path):
        raise codes.QUERY_IS_COMMAND(where=query)


def is_table(text: str) -> bool:
    """Whether a typed query names a table of queries."""
    return _TABLE.search(text) is not None


@contextmanager
def skipping(skip: Skip | None, query_id: str, example: int = 1) -> Iterator[None]:
    """Pass the error of one example to `skip`, or raise it."""
    try:
        yield
    except StorageError:  # not an error of the example
        raise
    except (UserError, DataError) as error:
        if skip is None:
            raise
        skip(query_id, example, error)


class StoreDocuments:
    """The documents of a store, read when needed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.storage = store.folder.storage

    @cached_property
    def documents(self) -> pa.Table:
        """PLACED without `listed`."""
        names = ["doc_id", "channel", "path", "duration", "speaker", "recording", "start"]
        table = self._store.documents(columns=names)
        now = relocated_paths(self._store.folder, self._store.manifest.recordings, table["path"], table["path"])
        table = table.set_column(names.index("path"), "path", now)
        return table.append_column("end", pc.add(table["start"], table["duration"]))

    def channels(self, name: str) -> dict[int, dict[str, Any]]:
        """Rows of a document, or of a recording with documents, by channel."""
        return Finder(self.documents, pa.chunked_array([[name]], pa.string())).channels(name)


def query_rows(
    queries: object,
    documents: StoreDocuments,
    folder: Path | None = None,
    skip: Skip | None = None,
    say: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Examples of queries.

    Args:
        queries: text as `parse_query` takes it, or the path of a table; samples and their rate; several of these, or rows
            that this function made; or a table (pandas or arrow) of examples.
        documents: of the store.
        folder: for samples, which are written to files; it must exist as long as the rows are used.
        skip: receives each skipped example; None: its error is raised.
        say: receives chosen defaults, and warnings about tables.

    Returns:
        Rows of QUERIES, with `typed`, the text of a typed query.

    Raises:
        UserError, DataError: a query cannot be used.
    """
    if hasattr(queries, "columns"):  # pandas or arrow
        return _rows_of_table(queries)
    alone = isinstance(queries, str | Path) or is_recording(queries)
    items: Iterable[Any] = [queries] if alone or not isinstance(queries, Iterable) else queries
    rows, seen = list[dict[str, Any]](), set[str]()
    for number, item in enumerate(items, 1):
        if isinstance(item, dict):
            rows.append(item)
        elif isinstance(item, str | Path):
            text = str(item)
            if text not in seen:
                with skipping(skip, text):
                    rows += rows_of_file(text, documents, say) if is_table(text) else [typed_row(text, documents, say)]
            seen.add(text)
        else:
            with skipping(skip, f"array {number}"):
                rows.append(_sample_row(item, f"array {number}", folder))
    for (query_id, example), count in Counter((row["query_id"], row["example"]) for row in rows).items():
        if count > 1:
            raise codes.DUPLICATE_QUERY_EXAMPLE(where="queries", count=count, example=example, query_id=query_id)
    return rows


def _rows_of_table(queries: Any) -> list[dict[str, Any]]:
    table = queries if isinstance(queries, pa.Table) else pa.Table.from_pandas(queries, preserve_index=False)
    if "query_id" not in table.column_names or "path" not in table.column_names:
        raise codes.QUERY_TABLE_COLUMNS(columns=", ".join(table.column_names))
    table = without_nobody(table) if "speaker" in table.column_names else table
    rows = []
    for k, row in enumerate(table.to_pylist()):
        documents = {name: row.get(name) for name in QUERIES.names}
        documents["example"] = documents["example"] if documents["example"] is not None else k + 1
        documents["channel"] = documents["channel"] if documents["channel"] is not None else 1
        _refuse_command(documents["path"], str(documents["query_id"]))
        rows.append(documents)
    return rows


def rows_of_file(path: str, documents: StoreDocuments, say: Callable[[str], None] | None) -> list[dict[str, Any]]:
    """The examples of a table file."""
    notices = Notices()
    rows: list[dict[str, Any]] = read_queries(path, documents.documents, "all", documents.storage, notices).to_pylist()
    if say is not None:
        for notice in notices.entries.values():
            say(str(notice))
    return rows


def typed_row(text: str, documents: StoreDocuments, say: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The row of a typed query, which cannot be a table, with file and channel."""
    row, storage = parse_query(text), documents.storage
    name = row["path"]
    if not is_remote(name) and not Path(views.split(name)[0]).exists():
        if not (channels := documents.channels(name)):
            raise codes.NO_SUCH_EXAMPLE(where=text, name=name)
        if row["channel"] is None and len(channels) == 1:
            row["channel"] = next(iter(channels))
        document = channels.get(row["channel"] or min(channels))
        if document is None:
            raise codes.NO_SUCH_DOCUMENT_CHANNEL(
                where=text, doc_id=name, channel=row["channel"], channels=", ".join(map(str, sorted(channels)))
            )
        row |= {"path": document["path"], "speaker": document["speaker"]}
        if row["start"] is None and document.get("start") is not None:
            row |= {"start": document["start"], "end": document["end"]}
    if row["channel"] is None:
        row["channel"] = _channel_of(row, name, storage, say)
    return row


def _channel_of(
    row: Mapping[str, Any], name: str, storage: Mapping[str, object], say: Callable[[str], None] | None
) -> int:
    """The first channel with speech, or the first channel.

    Raises:
        AudioError: the place is not in the recording.
    """
    try:
        count = probe(row["path"], storage).channels
    except AudioError:
        return 1  # reading it raises the error
    if count == 1:
        return 1
    spoken = (k for k in range(1, count + 1) if has_speech({**row, "channel": k}, _RATE, storage))
    chosen = next(spoken, 1)
    if say is not None:
        place = row["query_id"][len(name) :]
        others = ", ".join(f"{name}#{k}{place}" for k in range(1, count + 1) if k != chosen)
        why = "" if chosen == 1 else f": no speech in {'channel 1' if chosen == 2 else 'the channels before'}"
        query = row["query_id"]
        say(line_of(codes.CHOSEN_CHANNEL, channel=chosen, count=count, query=query, why=why, others=others))
    return chosen


# -- samples ----------------------------------------------------------------------------------------------------------


def _sample_row(items: object, query_id: str, folder: Path | None) -> dict[str, Any]:
    """The row of samples, which it writes to a file.

    Raises:
        UserError: not samples with a rate.
    """
    if folder is None:
        raise codes.NOT_A_QUERY(where=query_id, kind=type(items).__name__)
    path = folder / f"{query_id}.wav"
    try:
        samples, rate = check_samples(items, query_id)
    except UserError as error:
        error.remedy = f"give text; or {error.remedy}"
        raise
    write_samples(path, samples, rate)
    row: dict[str, Any] = dict.fromkeys(QUERIES.names)
    return row | {"query_id": query_id, "example": 1, "channel": 1, "path": str(path), "typed": query_id}
