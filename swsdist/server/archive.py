"""The searched store: its searcher, and the names of its documents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import compress
from os.path import commonpath
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError
from swsdist.core.types import QUERIES
from swsdist.glossary.words import (
    CONTENT,
    J,
    Place,
    Token,
    contents,
    documents_beside,
    is_same,
    lengths_of,
    overlap,
    replaced_among,
    replaced_files,
    within,
)
from swsdist.io.filesystem import Folder
from swsdist.lattices.collection import TIERED, LatticeFile, files_in, name_of, tiers_of
from swsdist.lattices.lattice import BREAK, Word
from swsdist.lattices.words import Annotations
from swsdist.registry.registries import METHODS
from swsdist.searcher.hit_likelihood import hit_likelihood
from swsdist.searcher.searcher import Searcher, setup_of
from swsdist.store.lattice_shards import read_words
from swsdist.store.same_sound import copies_in

#: A day in a path: 2015-09-08, 2015_09_08, 20150908.
_DAY = re.compile(r"(?<!\d)(19\d\d|20\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
#: Endings of formats without loss: of copies, the recording that is named first.
_LOSSLESS = {".wav", ".flac", ".aif", ".aiff"}
#: Rows of a page of recordings.
PAGE = 50
#: Most folders and speakers that are listed to choose from.
_LISTED = 500
#: Columns of REJECTED that are told.
_REJECTED = ["path", "id", "reason", "message", "remedy"]
#: Places of a recording that are tried as queries, until one has speech.
_PLACES = 9
#: Most searchers of some documents that are held.
_NARROWED = 8
#: Most words of transcripts in memory.
_WORDS = 200_000


class Filters(NamedTuple):
    """Which documents are asked; None: all."""

    folder: str | None = None
    recording: str | None = None
    speaker: str | None = None
    since: str | None = None
    until: str | None = None


class Archive:
    """A store or a run, open for questions.

    Args:
        target: its folder.
        address: of a Ray cluster that searches; None: this process does.
        options: keys of the section `search`.
        texts: ask the words in the store, if it has some.

    Attributes:
        searcher: answers.
        likelihood: of its hits, before anybody judges.
        documents: doc_id, channel, path, duration, speaker, recording (its name), at (its start in it, s), folder, day,
            identity (of its file when it was indexed), content, shard.
        copies: recordings of the same sound.
    """

    def __init__(
        self,
        target: str,
        address: str | None = None,
        options: Mapping[str, object] | None = None,
        texts: bool = False,
    ) -> None:
        executor = None if address is None else {"kind": "ray", "address": address}
        dtw = Search().method
        # Of several examples one template: as good as the mean of their scores, in the time of one.
        way = {"examples": "template"} if setup_of(target, texts).options.get("method", dtw) == dtw else {}
        self.searcher = Searcher(
            target, executor=executor, options={**way, **(options or {})}, texts=texts, shared=True
        )
        self.spoken = METHODS[self.searcher.settings.method].queries != "text"
        self.documents = _described(self.searcher)
        self.copies = copies_in(self.searcher.store)
        self.likelihood = hit_likelihood(self.searcher)
        self._words = dict[tuple[str, int], list[Word]]()
        self._searchers, self._narrowing = dict[Hashable, Searcher](), Lock()

    def close(self) -> None:
        """Read no more."""
        self.searcher.close()

    @property
    def state(self) -> str:
        """The fingerprint of what the store holds."""
        return self.searcher.store.manifest.fingerprint

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the page says of it, every few seconds."""
        recordings, seconds = self.copies.recordings(self.documents)
        days = pc.min_max(self.documents["day"]).as_py()
        return {
            "store": self.searcher.store.folder.path(),
            "hours": seconds / 3600,
            "documents": self.documents.num_rows,
            "recordings": recordings,
            "folders": _listed(self.documents["folder"]),
            "speakers": _listed(self.documents["speaker"]),
            "dates": None if days["min"] is None else [days["min"], days["max"]],
        }

    @cached_property
    def rejected(self) -> list[dict[str, Any]]:
        """Documents that could not be read: path, id, reason (a code), message, remedy."""
        rows: list[dict[str, Any]] = self.searcher.store.rejected().select(_REJECTED).to_pylist()
        return rows

    def rehearse(self) -> None:
        """Search for anything, so that what is compiled, loaded or prepared once is there before the first question.

        Raises:
            SwsdistError, OSError: its recordings cannot be read.
        """
        if not self.documents.num_rows:
            return
        (document,) = self.documents.sort_by([("duration", "descending")]).slice(0, 1).to_pylist()
        row = dict.fromkeys(QUERIES.names) | {"query_id": "word", "example": 1, "channel": 1}
        if not self.spoken:
            rows = [row | {"term": "word"}]
        else:  # some of these places have speech
            starts = document["at"] + np.linspace(0.0, max(0.0, document["duration"] - 0.5), _PLACES)
            rows = [row | {"path": document["path"], "start": start, "end": start + 0.5} for start in starts.tolist()]
        for each in rows:
            skipped = list[SwsdistError]()

            def skip(_: str, __: int, error: SwsdistError, skipped: list[SwsdistError] = skipped) -> None:
                skipped.append(error)

            for part in self.searcher.stream([each], 1, skip=skip):
                part.table()
            if not skipped:
                return

    def filtered(self, filters: Filters) -> Searcher:
        """The searcher of some documents.

        Raises:
            UserError: there are none.
        """
        if filters == Filters():
            return self.searcher
        return self._narrowed(filters, self._chosen(filters))

    def with_words(self, words: Archive, filters: Filters) -> tuple[Searcher, list[str]]:
        """The searcher of the words of some documents; and names of the recordings among them that have none.

        Args:
            words: an archive of words of these documents, or of the recordings that they are places in.
            filters: of our documents.

        Raises:
            UserError: there are no such documents, or none has words.
        """
        if words is self:
            return self.filtered(filters), []
        chosen, table = self._chosen(filters), words.documents
        names = pa.chunked_array([*chosen["doc_id"].chunks, *chosen["recording"].chunks], pa.string())
        theirs = pa.chunked_array([*table["doc_id"].chunks, *table["recording"].chunks], pa.string())
        has_words = pc.or_(pc.is_in(chosen["doc_id"], theirs), pc.is_in(chosen["recording"], table["doc_id"]))
        lacking = self._without(chosen, has_words)
        if filters == Filters():
            return words.searcher, lacking
        kept = table.filter(pc.or_(pc.is_in(table["doc_id"], names), pc.is_in(table["recording"], chosen["doc_id"])))
        if not kept.num_rows:
            raise codes.NO_TEXTS(where="text")
        return words._narrowed((self.state, filters), kept), lacking

    def _narrowed(self, key: Hashable, documents: pa.Table) -> Searcher:
        """The searcher of some documents; that of the same key is the same, so that its questions share passes."""
        with self._narrowing:
            searcher = self._searchers.pop(key, None) or self.searcher.among(documents.select(["doc_id", "channel"]))
            self._searchers[key] = searcher
            for old in list(self._searchers)[:-_NARROWED]:
                del self._searchers[old]
            return searcher

    def _without(self, documents: pa.Table, has_words: pa.ChunkedArray) -> list[str]:
        """Names of recordings without words, of those of the same sound one, if none of them has any."""
        keys = [self.copies.first(key) for key in _keys(documents)]
        heard = set(compress(keys, has_words.to_pylist()))
        names = dict(zip(reversed(keys), reversed(documents["recording"].to_pylist()), strict=True))
        return list(dict.fromkeys(names[key] for key in dict.fromkeys(keys) if key not in heard))

    def words_in(self, place: Place) -> list[Word] | None:
        """The words that overlap a place, as detections name it, by their starts; None: the recording has none.

        Raises:
            StoreError: the store holds no words.
        """
        rows = self.rows_of([place.doc_id or ""]).overlapping(place)
        documents = {(row["doc_id"], row["channel"]): row for row in rows}
        words = {key: kept for key in documents if (kept := self._words.get(key)) is not None}
        if missing := documents.keys() - words.keys():
            words |= read_words(self.searcher.store, ((*key, documents[key]["shard"]) for key in missing))
            self._words |= words
            for old in list(self._words):
                if sum(map(len, list(self._words.values()))) <= _WORDS:
                    break
                self._words.pop(old, None)
        found = [
            word._replace(start=row["at"] + word.start, end=row["at"] + word.end)
            for key, row in documents.items()
            for word in words.get(key, ())
            if word.text != BREAK
        ]
        found = [word for word in found if word.start < place.end and max(word.end, word.start + 1e-6) > place.start]
        return sorted(found, key=lambda word: word.start) if rows else None

    def _chosen(self, filters: Filters) -> pa.Table:
        """Some documents.

        Raises:
            UserError: there are none.
        """
        table, kept = self.documents, None
        conditions = [
            filters.folder
            and pc.starts_with(pc.binary_join_element_wise(table["folder"], "", "/"), f"{filters.folder}/"),
            filters.recording and pc.equal(table["recording"], filters.recording),
            filters.speaker and pc.equal(table["speaker"], filters.speaker),
            filters.since and pc.greater_equal(table["day"], filters.since),
            filters.until and pc.less_equal(table["day"], filters.until),
        ]
        for condition in conditions:
            if condition is not None:
                kept = condition if kept is None else pc.and_kleene(kept, condition)
        chosen = table if kept is None else table.filter(kept)
        if not chosen.num_rows:
            raise codes.NOTHING_THERE(where=", ".join(str(value) for value in filters if value))
        return chosen

    def page(self, text: str, offset: int) -> dict[str, Any]:
        """A page of documents (`recordings`) whose name or speaker has a text in it, how many there are (`total`), and of how
        many recordings (`count`); `also`: recordings of the same sound, which come once.
        """
        table = self._once
        if text:
            has = (pc.match_substring(table[name], text, ignore_case=True) for name in ("doc_id", "path", "speaker"))
            first, second, third = (pc.fill_null(each, False) for each in has)
            table = table.filter(pc.or_(pc.or_(first, second), third))
        rows = table.slice(offset, PAGE).select(["doc_id", "channel", "recording", "duration", "speaker", "day"])
        also = self.copies.also
        listed = [
            {**row, "date": row.pop("day"), "also": also((row["doc_id"], row["channel"]))} for row in rows.to_pylist()
        ]
        count = pc.count_distinct(table["recording"]).as_py()
        return {"recordings": listed, "total": table.num_rows, "count": count}

    @cached_property
    def _once(self) -> pa.Table:
        """The documents without copies; what has a format without loss is none."""
        best: dict[tuple[str, int], tuple[bool, int]] = {}
        for row, (key, name) in enumerate(
            zip(_keys(self.documents), self.documents["recording"].to_pylist(), strict=True)
        ):
            first, value = self.copies.first(key), (name not in self._lossless, row)
            best[first] = min(best.get(first, value), value)
        return self.documents.take(pa.array(sorted(row for _, row in best.values()), pa.int64()))

    def leading(self, hit: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Of detections of the same sound, that of a recording without loss, or else the first."""
        return min(hit, key=lambda row: row["doc_id"] not in self._lossless)

    @cached_property
    def _lossless(self) -> frozenset[str]:
        """Names of recordings whose format keeps all of the sound."""
        pairs = zip(self.documents["recording"].to_pylist(), self.documents["path"].to_pylist(), strict=True)
        return frozenset(name for name, path in pairs if PurePosixPath(path).suffix.lower() in _LOSSLESS)

    def heard_at(self, place: Place) -> Place:
        """A place in a recording, in the first of the recordings with its sound."""
        if place.doc_id is None:
            return place
        doc_id, channel = self.copies.first((place.doc_id, place.channel))
        return place._replace(doc_id=doc_id, channel=channel)

    def document(self, doc_id: str, channel: int, time: float = 0.0) -> dict[str, Any]:
        """The row of a document; or of a recording that contains documents, of the one at a time of it (s).

        Raises:
            UserError: there is none.
        """
        table = self.documents
        for name in ("doc_id", "recording"):
            rows = table.filter(pc.and_(pc.equal(table[name], doc_id), pc.equal(table["channel"], channel)))
            if rows.num_rows:
                return _at(rows.to_pylist(), time)
        raise codes.NOT_IN_ARCHIVE(where=doc_id, channel=channel)

    def in_recording(self, place: Place) -> Place:
        """A place as detections name it: in the recording, where documents are places in recordings.

        Raises:
            UserError: there is no such document, or it is shorter.
        """
        return place if place.doc_id is None else self._located(place)[0]

    def _located(self, place: Place) -> tuple[Place, dict[str, Any]]:
        """The same, and its document."""
        row = self.document(str(place.doc_id), place.channel, (place.start + place.end) / 2)
        if row["doc_id"] != place.doc_id:
            return place, row
        place = within(place, row["duration"])
        start, end = row["at"] + place.start, row["at"] + place.end
        return place._replace(doc_id=row["recording"], start=start, end=end), row

    def rows_of(self, doc_ids: list[str]) -> Rows:
        """Rows by the names that detections have."""
        table = self.documents.filter(pc.is_in(self.documents["recording"], pa.array(doc_ids, pa.string())))
        rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in table.to_pylist():
            rows.setdefault((row["recording"], row["channel"]), []).append(row)
        return Rows(rows)

    def content_of(self, place: Place) -> str | None:
        """What the document at a place of a recording holds; None: unknown."""
        row = self.rows_of([place.doc_id or ""]).of(place.doc_id, place.channel, place.start)
        content: str | None = None if row is None else row["content"]
        return content

    def replaced(self, judged: Sequence[J]) -> set[J]:
        """Those whose document holds another sound than when they were judged, or whose file is another now."""
        rows = self.rows_of([each.place.doc_id for each in judged if each.place.doc_id])
        pairs = [(each, rows.of(each.place.doc_id, each.place.channel, each.place.start)) for each in judged]
        return replaced_among(pairs, self.searcher.store.folder.storage)

    def replaced_since(self, earlier: Archive) -> set[str]:
        """Recordings that held another sound in an earlier state, or are gone."""
        now, before = (
            pc.binary_join_element_wise(table["recording"], pc.fill_null(table["content"], ""), "\0")
            for table in (self.documents, earlier.documents)
        )
        return set(earlier.documents.filter(pc.invert(pc.is_in(before, now)))["recording"].to_pylist())

    def source(self, place: Place, others: Sequence[Token]) -> tuple[Place, dict[str, Any]]:
        """Where an example lies: its place as detections name it, and its document.

        Args:
            place: in a document or a recording.
            others: tokens of another sound than the archive has.

        Raises:
            UserError: there is no such document, or it is shorter; or there is another recording now.
        """
        place, document = self._located(place)
        judged = any(is_same(overlap(place, token.place)) for token in others)
        if judged or replaced_files([document], self.searcher.store.folder.storage):
            raise families.CHANGED_INPUT(
                "the recording {document} is another than the one that was indexed or judged",
                "index the archive, then judge the place again or remove it",
                where=place.doc_id,
                document=place.doc_id,
            )
        return place, document

    def is_replaced(self, row: Mapping[str, Any]) -> bool:
        """Whether the file of a document is another than was indexed."""
        return bool(replaced_files([row], self.searcher.store.folder.storage))

    def release(self) -> None:
        """Hold no prepared shards any longer."""
        self.searcher.store = self.searcher.store.with_memory(None)


class Rows:
    """Documents of some recordings."""

    def __init__(self, rows: Mapping[tuple[str, int], list[dict[str, Any]]]) -> None:
        self._rows = rows

    @property
    def paths(self) -> list[str]:
        """Of the recordings."""
        return [row["path"] for rows in self._rows.values() for row in rows[:1]]

    def of(self, doc_id: str | None, channel: int, time: float) -> dict[str, Any] | None:
        """The document at a time of a recording (s)."""
        rows = self._rows.get((doc_id or "", channel))
        return None if rows is None else _at(rows, time)

    def overlapping(self, place: Place) -> list[dict[str, Any]]:
        """The documents that share some of a place of a recording."""
        rows = self._rows.get((place.doc_id or "", place.channel), [])
        if len(rows) == 1 and rows[0]["doc_id"] == place.doc_id:
            return rows  # a transcript lasts until its last word
        return [row for row in rows if row["at"] < place.end and row["at"] + row["duration"] > place.start]


def _keys(documents: pa.Table) -> Iterable[tuple[str, int]]:
    return zip(documents["doc_id"].to_pylist(), documents["channel"].to_pylist(), strict=True)


def _at(rows: list[dict[str, Any]], time: float) -> dict[str, Any]:
    """The document that a time lies in, or else the first."""
    return next((row for row in rows if row["at"] <= time < row["at"] + row["duration"]), rows[0])


def _described(searcher: Searcher) -> pa.Table:
    store = searcher.store
    columns = ["doc_id", "channel", "path", "duration", "speaker", "recording", "shard", *CONTENT]
    table = store.documents(columns=columns, codes=["shard"])
    recordings = store.recordings()
    names = pc.coalesce(table["recording"], table["doc_id"])
    keys = zip(names.to_pylist(), table["channel"].to_pylist(), strict=True)
    paths = [recordings[key].path for key in keys]
    return pa.table(
        {
            **{name: table[name] for name in ("doc_id", "channel", "duration", "speaker", "identity", "shard")},
            "path": pa.array(paths, pa.string()),
            "recording": names,
            "at": pc.fill_null(table["start"], 0.0),
            "folder": pa.array(_folders(paths), pa.string()),
            "day": pa.array([_day(path) for path in paths], pa.string()),
            "content": contents(store, table),
        }
    )


def _folders(paths: list[str]) -> list[str]:
    """Folders below the one that all are in."""
    folders = {path: str(PurePosixPath(path).parent) for path in set(paths)}
    distinct = set(folders.values())
    remote = any("://" in path for path in distinct)
    common = "" if remote or "" in distinct or len(distinct) < 2 else commonpath(distinct)
    if len(distinct) == 1:
        common = next(iter(distinct))
    return [folders[path][len(common) :].strip("/") for path in paths]


def _day(path: str) -> str | None:
    """A day that a path names, the last."""
    for year, month, day in reversed(_DAY.findall(path)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return None


def _listed(column: pa.ChunkedArray) -> list[str]:
    values = column.drop_null().unique().to_pylist()
    return sorted(value for value in values if value)[:_LISTED]


#: Seconds that an annotation may begin after its recording ends, and most annotations of an answer.
_BEYOND, _MOST = 0.5, 1000


class _Read(NamedTuple):
    """What a file says: faults; and tiers that can be imported: name, speaker, number of annotations.

    Attributes:
        of: the file, its document, and the latest time of an annotation (s); the same again is not read again.
    """

    of: tuple[LatticeFile, str, float]
    faults: list[dict[str, Any]]
    tiers: list[tuple[str, str, int]]


@dataclass(frozen=True)
class Beside:
    """Annotations beside recordings.

    Attributes:
        store: of the recordings, which knows how to read beside them.
        read: files, by what they have in common with their recording (`swsdist.lattices.collection.name_of`).
    """

    store: Folder
    read: Mapping[str, _Read]

    @classmethod
    def of(cls, archive: Archive, before: Beside | None) -> Beside:
        """Read the files beside the recordings of an archive, and again those that changed."""
        store = archive.searcher.store
        documents = documents_beside(store)
        read = dict[str, _Read]()
        lengths = lengths_of(store, {doc_id for doc_id, _ in documents.values()})
        found = (item for folder in _folders_of(documents) for item in files_in(folder, store.folder.storage).items())
        for name, file in found:
            if name in documents:
                of = file, documents[name][0], lengths.get(documents[name], float("inf")) + _BEYOND
                known = None if before is None else before.read.get(name)
                read[name] = known if known is not None and known.of == of else _read(*of, store.folder)
        return cls(store.folder, read)

    @cached_property
    def faults(self) -> list[dict[str, Any]]:
        """Files, and annotations, that cannot be used; as `Archive.rejected`."""
        return [fault for each in self.read.values() for fault in each.faults]

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the page says of them: so many recordings have some (`recordings`); and `tiers` that can be imported, most
        annotations first: name, speakers, annotations and recordings (counts).
        """
        tiers: defaultdict[str, dict[str, Any]] = defaultdict(
            lambda: {"speakers": set(), "annotations": 0, "recordings": 0}
        )
        for name, speaker, count in (tier for each in self.read.values() for tier in each.tiers):
            counts = tiers[name]
            counts["speakers"] |= {speaker} - {""}
            counts["annotations"] += count
            counts["recordings"] += 1
        listed = [{"name": name, **each, "speakers": sorted(each["speakers"])} for name, each in tiers.items()]
        listed.sort(key=lambda tier: (-tier["annotations"], tier["name"]))
        return {"recordings": len(self.read), "tiers": listed}

    def tiers_at(self, path: str, start: float, end: float) -> list[dict[str, Any]]:
        """Tiers of a recording with annotations in a stretch of it (s): name, speaker, annotations."""
        read = self.read.get(name_of(path))
        if read is None:
            return []
        try:
            tiers, _ = tiers_of(read.of[0], self.store)
        except (SwsdistError, OSError):  # it is among the faults
            return []
        return [tier for tier in (_shown(each, start, end) for each in tiers) if tier["annotations"]]


def _folders_of(names: Iterable[str]) -> list[str]:
    """The folders of files, without those below another."""
    folders = list[str]()
    for folder in sorted({f"{name.rpartition('/')[0]}/" for name in names} - {"/"}):
        if not folders or not folder.startswith(folders[-1]):
            folders.append(folder)
    return folders


def _read(file: LatticeFile, doc_id: str, end: float, store: Folder) -> _Read:
    of = file, doc_id, end
    try:
        tiers, left_out = tiers_of(file, store)
    except (SwsdistError, OSError) as error:
        return _Read(of, [_fault(file, doc_id, error)], [])
    faults = [_fault(file, doc_id, error) for error in left_out.errors]
    if late := [row for tier in tiers for row in tier.rows if row.start > end]:
        faults.append(_fault(file, doc_id, codes.LATE_ANNOTATIONS(where=late[0].where, count=len(late), end=end)))
    useful = [tier for tier in tiers if file.format in TIERED and tier.rows and tier.intervals]
    return _Read(of, faults, [(tier.name, tier.speaker, len(tier.rows)) for tier in useful])


def _shown(tier: Annotations, start: float, end: float) -> dict[str, Any]:
    rows = [row for row in tier.rows if row.start < end and row.end > start][:_MOST]
    annotations = [{"start": row.start, "end": row.end, "text": row.text} for row in rows]
    return {"name": tier.name, "speaker": tier.speaker, "annotations": annotations}


def _fault(file: LatticeFile, doc_id: str, error: Exception) -> dict[str, Any]:
    row = {"path": file.path, "id": doc_id, "reason": "unreadable", "message": str(error), "remedy": None}
    if isinstance(error, SwsdistError):
        where = f"{error.where}: " if error.where and error.where != file.path else ""
        row |= {"reason": error.code, "message": f"{where}{error.message}", "remedy": error.remedy}
    return row
