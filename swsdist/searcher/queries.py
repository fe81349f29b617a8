"""Queries of a search without a run: typed, from a table, or as samples; as recordings or as texts.

The result are rows of QUERIES, and frames by the extractors of a store.

A typed query is a recording, a channel of it, a place in it, or both: `FILE`, `FILE#2`, `FILE:12.3-13.1`,
`FILE#2:12.3-13.1`. FILE may also be a document of the store, so a printed hit is a valid query. A file whose name is
the whole text has priority, and a file has priority over a document. A table of queries gives its examples.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.formats import views
from swsdist.audio.reader import probe
from swsdist.audio.speech import SHORTEST
from swsdist.audio.streams import is_command
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import Tally, load_statistics
from swsdist.config.model import Calibrate
from swsdist.config.search import Search
from swsdist.core import errors
from swsdist.core.codes import families, line_of
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import AudioError, DataError, StorageError, SwsdistError, TermError, UserError
from swsdist.core.text import brief, kept
from swsdist.core.types import QUERIES
from swsdist.corpora.arrays import check_samples, is_recording, write_samples
from swsdist.corpora.queries import Finder, read_queries
from swsdist.features.extractors import from_recipe
from swsdist.features.interface import Extractor, Precomputed
from swsdist.io.filesystem import is_remote
from swsdist.io.frames.archive import single_item
from swsdist.io.notices import Notices
from swsdist.io.remote.scratch import scratch
from swsdist.io.tables import without_nobody
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.lattices.words import spelled, unmarked
from swsdist.methods.query import speech_trimming
from swsdist.methods.query.extraction import Cut, Extracted, extract, uses_recording_statistics, with_statistics
from swsdist.methods.query.speech_trimming import has_speech
from swsdist.stages.queries import measure_examples
from swsdist.store.lattice_shards import labels_of
from swsdist.store.manifest import relocated_paths
from swsdist.store.reading import Store, Tracks

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


def parse_query(text: str) -> dict[str, Any]:
    """Parse a typed query.

    Returns:
        A row of QUERIES whose id is the text, which is also in `typed`; channel None if not named.

    Raises:
        UserError: it is a folder, a command, a place with one end or with commas that may be of thousands, half of a url, or
            no UTF-8.
    """
    if not text.isprintable() and any("\udc80" <= item <= "\udcff" for item in text):
        raise families.INVALID_VALUE.of(UserError)(
            "the name of the query is not UTF-8", "rename the file: convmv -f latin1 -t utf8 --notest FILE", where=text
        )
    exists = is_remote(text) or Path(text).exists()
    place = None if Path(text).exists() else _PLACE.match(text)
    if Path(text).is_dir():
        raise families.WRONG_KIND(
            "the query is a folder, not a recording",
            (
                "give its files (ls {folder!q}/*.wav | swsdist search STORE --query -), or run a config "
                "with corpus.queries"
            ),
            where=text,
            folder=text,
        )
    if not exists and place is None and _HALF.match(text):
        raise families.MISSING_INPUT(
            "neither a file nor a place with start and end",
            (
                "write FILE:START-END, in seconds or as a player shows them: talk.flac:12.3-13.1, "
                "talk.flac:1:02:03-1:02:04"
            ),
            where=text,
        )
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
        raise families.AMBIGUOUS(
            "{text} may be {decimal} s or {thousands} s",
            "write times with a point, and without separators of thousands: {decimal}",
            where=query,
            text=commas[0],
            decimal=point,
            thousands=commas[0].replace(",", ""),
        )
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
        raise families.COMMAND_REFUSED.of(UserError)(
            "the query is a command; commands are run only from a Kaldi wav.scp",
            "write its output to a file, and give the file",
            where=query,
        )


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
        raise families.MISSING_COLUMN.of(UserError)(
            "the table of queries has the columns {columns}",
            "give at least the columns query_id and path",
            columns=", ".join(table.column_names),
        )
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
            raise families.MISSING_RECORDING(
                "there is no file {name}, and no document of this name in the store",
                (
                    "check the path; a word that is typed: --text {name!q}; `swsdist store info --documents` "
                    "lists the documents"
                ),
                where=text,
                name=name,
            )
        if row["channel"] is None and len(channels) == 1:
            row["channel"] = next(iter(channels))
        document = channels.get(row["channel"] or min(channels))
        if document is None:
            raise families.UNKNOWN_NAME(
                "document {doc_id!r} has no channel {channel}",
                "name one of its channels: {channels}",
                where=text,
                doc_id=name,
                channel=row["channel"],
                channels=", ".join(map(str, sorted(channels))),
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
        raise families.INVALID_VALUE.of(UserError)(
            "a value of type {kind} is not a query", "give text", where=query_id, kind=type(items).__name__
        )
    path = folder / f"{query_id}.wav"
    try:
        samples, rate = check_samples(items, query_id)
    except UserError as error:
        error.remedy = f"give text; or {error.remedy}"
        raise
    write_samples(path, samples, rate)
    row: dict[str, Any] = dict.fromkeys(QUERIES.names)
    return row | {"query_id": query_id, "example": 1, "channel": 1, "path": str(path), "typed": query_id}


#: Sample rate, Hz, for detecting speech in a place.
_RATE = 16_000


class SpokenQueries:
    """Reads recordings into examples, by the extractors of a store.

    Args:
        store: of frames.
        settings: of the search.
        calibrate: steps, some of which measure examples.
        trim: trim recorded queries to their speech; a query or a place without speech is an error.
    """

    def __init__(self, store: Store, settings: Search, calibrate: Calibrate, trim: bool) -> None:
        self._store, self._settings, self._calibrate, self._trim = store, settings, calibrate, trim

    def rows(
        self,
        queries: object,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of QUERIES; see `swsdist.searcher.queries.query_rows`."""
        return query_rows(queries, self._documents, folder, skip, say)

    def typed(self, query: str) -> dict[str, Any]:
        """The row of one typed query, which cannot be a table."""
        return typed_row(query, self._documents)

    def examples(
        self,
        queries: object,
        on_cut: Callable[[Cut], None] | None = None,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
    ) -> tuple[pa.Table, dict[str, Tally]]:
        """EXAMPLES, and what steps want to know of them."""
        store = self._store
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            rows = self.rows(queries, skip, say, Path(place))
            if uses_recording_statistics(self._settings):
                tracks = [track.name for track in store.manifest.tracks]
                rows = with_statistics(rows, store, tracks)
            extracted = self._extracted(rows, skip)
            statistics_wanted = load_statistics(required_statistics(self._calibrate), "examples")
            trim = self._trim and not self._precomputed
            covariates = measure_examples(
                extracted.examples, store, rows, statistics_wanted, trim, store.folder.storage
            )
        if on_cut is not None:
            for cut in extracted.cuts:
                on_cut(cut)
        return extracted.examples, covariates

    def warnings(self, examples: pa.Table) -> Iterator[str]:
        """Queries that are short, or not searched as too short, and documents of another band."""
        least = self._settings.least_query_frames
        for query in examples.filter(pc.less(examples["frames"], least)).select(["query_id", "frames"]).to_pylist():
            yield line_of(codes.UNSEARCHED_QUERY, query_id=query["query_id"], frames=query["frames"], least=least)
        for query in examples.select(["query_id", "duration"]).to_pylist():
            if query["duration"] < SHORTEST:
                seconds = f"{query['duration']:.2f}"
                yield line_of(
                    families.SHORT_QUERY.saying(
                        "query {query_id} lasts only {seconds} s, and will match much else", "give a phrase"
                    ),
                    query_id=query["query_id"],
                    seconds=seconds,
                )
        for item in speech_trimming.apart(examples, self._bandwidths, speech_trimming.reach(self._extractors)):
            documents = self._bandwidths.num_rows
            yield line_of(codes.OTHER_BAND, count=item.documents, of=documents, query=item)

    def why_nothing(self, query_ids: Sequence[str]) -> str:
        """The longest document: the query may be longer."""
        longest = pc.max(self._store.documents(columns=["duration"])["duration"]).as_py() or 0.0
        return f"; the longest document lasts {longest:.1f} s: the query may be longer"

    @cached_property
    def _documents(self) -> StoreDocuments:
        return StoreDocuments(self._store)

    def _extracted(self, rows: Sequence[dict[str, Any]], skip: Skip | None) -> Extracted:
        """Features of rows of QUERIES; `skip` receives each example that cannot be used; without it that is an error."""
        store, settings, usable = self._store, self._settings, []
        for row in rows:
            trimmed = self._trim and None not in (row["path"], row["start"], row["end"])
            with skipping(skip, str(row["query_id"]), int(str(row["example"]))):
                if self._precomputed:
                    row = self._with_precomputed_frames(row)
                elif trimmed and not has_speech(row, _RATE, store.folder.storage):
                    where = row.get("typed") or f"query {row['query_id']}, example {row['example']}"
                    raise families.NO_SPEECH(
                        "no speech in this place: only silence, hum, noise, a tone or clicks",
                        "mark another place, or search without trimming (--no-trim; in Python trim=False)",
                        where=where,
                    )
                usable.append(row)
        places = settings.dropping(Tracks(store).places)
        extracted = extract(usable, self._extractors, store.folder, settings, self._trim, places)
        typed: dict[tuple[object, object], Any] = {
            (row["query_id"], row["example"]): row.get("typed") for row in usable
        }
        for bad in extracted.rejected.to_pylist():
            key = bad["id"], bad["part"]
            where = typed[key] or bad["path"]
            error = errors.DataError(bad["message"], where=where, remedy=bad["remedy"], code=bad["reason"])
            with skipping(skip, *key):
                raise error
        return extracted

    def _with_precomputed_frames(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row of a query with precomputed frames.

        Raises:
            UserError: it is not a file of frames, or the store has several tracks.
        """
        path = str(row["path"])
        if len(self._extractors) > 1:
            raise families.UNSUPPORTED(
                (
                    "features in one of the {tracks} tracks of this store were precomputed and cannot be "
                    "made from a recording"
                ),
                (
                    "run a config whose features.options.queries names the frames of the queries (swsdist "
                    "help use-your-own-features)"
                ),
                where=path,
                tracks=len(self._extractors),
            )
        item = single_item(path, self._store.folder.storage)
        if item is None:
            raise families.UNSUPPORTED(
                "features of this store were precomputed and cannot be made from a recording",
                "give frames of the query: a file .npy or HTK, maybe with a place (hello.npy:0.2-0.9)",
                where=path,
            )
        cut = row["start"] is not None
        return {**row, "key": path, "items": {"": item}, "given": {"": item.identity}, "cut": {"": cut}}

    @cached_property
    def _extractors(self) -> list[Extractor | Precomputed]:
        """Each once: tracks of one extractor have one recipe."""
        recipes = {track.fingerprint: track.recipe for track in self._store.manifest.tracks}
        return [from_recipe(_with_moved_models(recipe, self._store)) for recipe in recipes.values()]

    @cached_property
    def _precomputed(self) -> bool:
        """Whether the features of any track are precomputed."""
        return any(isinstance(extractor, Precomputed) for extractor in self._extractors)

    @cached_property
    def _bandwidths(self) -> pa.Table:
        return self._store.documents(columns=["doc_id", "bandwidth"])


def _with_moved_models(recipe: dict[str, Any], store: Store) -> dict[str, Any]:
    """A recipe with present paths of models that moved with the store; their fingerprints are checked later."""

    def present_path(path: str | None) -> str | None:
        if path is None:
            return None
        name = f"models/{path.rsplit('/', 1)[-1]}"
        return store.folder.path(name) if "/models/" in path and store.folder.exists(name) else path

    def moved(item: dict[str, Any]) -> dict[str, Any]:
        paths = {key: present_path(path) for key, path in item.get("paths", {}).items()}
        return item | ({"paths": paths} if paths else {})

    transforms = [moved(item) for item in recipe.get("transforms", ())]
    return moved(recipe) | ({"transforms": transforms} if "transforms" in recipe else {})


def written_rows(queries: object, store: Store, say: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Rows of QUERIES, one a text: texts, tables (.csv, .tsv, .parquet) of them, or rows that this made."""
    several = isinstance(queries, Iterable) and not isinstance(queries, str) and not hasattr(queries, "columns")
    items: Iterable[Any] = queries if several else [queries]  # type: ignore[assignment]
    rows: dict[tuple[str, int], dict[str, Any]] = {}

    def add(row: dict[str, Any]) -> None:
        query_id, example = key = row["query_id"], row["example"]
        if rows.setdefault(key, row)["term"] != row["term"]:
            raise codes.DUPLICATE_QUERY_EXAMPLE(where="queries", count=2, example=example, query_id=query_id)

    for item in items:
        if isinstance(item, dict):
            add(item)
        elif not isinstance(item, str):
            raise families.INVALID_VALUE.of(UserError)(
                "a written query is a text, not {kind}", "give texts", where="queries", kind=type(item).__name__
            )
        elif is_table(item):
            for row in rows_of_file(item, StoreDocuments(store), say):
                add(row)
        else:
            row = dict.fromkeys(QUERIES.names) | {"query_id": item, "example": 1, "channel": 1}
            add(row | {"term": item, "typed": item})
    return list(rows.values())


class WrittenQueries:
    """Reads texts into sequences of labels of a store.

    Args:
        store: of lattices.
        terms: how texts become labels.
    """

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store, self._terms = store, terms
        self._texts: dict[str, list[str]] = {}

    def rows(
        self,
        queries: object,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of QUERIES; see `written_rows`."""
        return written_rows(queries, self._store, say)

    def examples(
        self,
        queries: object,
        on_cut: Callable[[Cut], None] | None = None,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
    ) -> tuple[pa.Table, dict[str, Tally]]:
        """WRITTEN; no step wants to know of texts."""
        result: list[dict[str, Any]] = []
        for row in self.rows(queries, skip, say):
            with skipping(skip, row["query_id"]):
                if not row["term"]:
                    raise codes.QUERY_WITHOUT_TEXT(where=row["query_id"])
                if not kept(row["query_id"] + row["term"]):
                    raise codes.QUERY_TEXT_NOT_UTF8(where=row["query_id"])
                result += self._reader.rows(row)
                self._texts.setdefault(row["query_id"], []).append(row["term"])
        return pa.Table.from_pylist(cheapest(result), WRITTEN), {}

    def warnings(self, examples: pa.Table) -> Iterator[str]:
        """Warnings: there are none for texts."""
        return iter(())

    def why_nothing(self, query_ids: Sequence[str]) -> str:
        """Words that no document holds, and similar ones that some do; and what is not searched as it is meant."""
        reasons, typed = [], " ".join(text for query_id in query_ids for text in self._texts[query_id])
        for label, near in self.missing(query_ids).items():
            near_ones = f" (but {', '.join(near)})" if near else ""
            reasons.append(f"no document holds {brief(label)}{near_ones}")
        if re.search(r"\d", typed):
            reasons.append("numbers may be written in words: four, forty-four")
        if re.search(r"[*?]", typed) and not self._terms.patterns:
            reasons.append(
                "* and ? stand for other letters with --set terms.patterns=true (in Python terms={'patterns': True})"
            )
        return f"; {'; '.join(reasons)}" if reasons else ""

    def missing(self, query_ids: Sequence[str]) -> dict[str, list[str]]:
        """Words of queries that no document holds, each with similar ones that some do."""
        result: dict[str, list[str]] = {}
        for query_id in query_ids:
            try:
                items = (item for text in self._texts[query_id] for item in self._reader.alternatives(text))
                labels = {label for item in items for label in item.labels}
            except TermError:
                continue
            for label in sorted(labels - self._labels):
                if not (self._terms.patterns and ("?" in label or "*" in label)):
                    result[label] = self._reader.similar(label)
        return result

    def remarked(self, text: str) -> list[str]:
        """A text in words of the documents that differ from its own in marks alone, such as those of tone: 16 at most."""
        if self._terms.units == "phones" or self._terms.patterns:
            return []
        words = [self._unmarked.get(unmarked(spelled(word, "folded")), [word]) for word in text.split()]
        return [other for each in islice(product(*words), 16) if (other := " ".join(each)) != text]

    @cached_property
    def _unmarked(self) -> dict[str, list[str]]:
        result: dict[str, list[str]] = {}
        for label in sorted(self._labels):
            result.setdefault(unmarked(label), []).append(label)
        return result

    @cached_property
    def _reader(self) -> TermReader:
        recipe = Recipe.model_validate(self._store.manifest.track().recipe["options"])
        known = self._labels if self._terms.units != "phones" else None
        return TermReader(self._terms, recipe, self._store.folder.storage, known)

    @cached_property
    def _labels(self) -> frozenset[str]:
        return labels_of(self._store.folder, self._store.manifest.shards)
