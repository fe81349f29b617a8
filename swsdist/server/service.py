"""The server's state: an archive that may grow, a project, and hits in new recordings."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NotRequired

import psutil
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from swsdist.chains.discover.report import stretches
from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError
from swsdist.discovery.words import Stretch
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place, within
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inspection.loading import load_chain_run
from swsdist.searcher.settings import setup_of
from swsdist.server.archive import PAGE, Archive
from swsdist.server.indexing import Indexing
from swsdist.server.questions import Question, SearchCache, answer, examples_of
from swsdist.server.sounds import Clips
from swsdist.store.document_keys import keys_of
from swsdist.store.manifest import load, locate_recordings, words_store
from swsdist.store.places import Found, find_recordings
from swsdist.store.reading import Store

_LOG = logging.getLogger(__name__)
#: Seconds between looks at a watched folder, and at the store of words.
EVERY, WORDS_EVERY = 60.0, 5.0
_NEWS = "news.json"
_SCRATCH = "swsdist-serve-"
#: Earlier states of the stores that are held.
_OLDER = 4


class _News(TypedDict):
    """What was found of a word in new documents."""

    entry_id: int
    form: str
    hits: list[dict[str, Any]]
    documents: int


class _Kept(TypedDict):
    """What lies in `news.json`: the state that all words were searched in, that of words that failed since, and the news."""

    state: str | None
    failed: NotRequired[dict[str, str | None]]
    news: list[_News]


_NEWS_KEPT = TypeAdapter(_Kept)


@dataclass(frozen=True)
class Settings:
    """What is served.

    Attributes:
        target: store or run, or the run that indexing a folder makes.
        project: folder of words.
        source: folder of recordings that is indexed first; None: it is indexed.
        watch: look for new recordings in `source`.
        texts: a store of transcripts or lattices of the same recordings; None: that inside the store, where there is one.
        speak: voices that speak texts, to be searched by example.
        classes: a run of `discover` in them.
        models: of `source`: encoders and a recogniser; none: as before.
        address: of a Ray cluster.
        options: keys of the section `search`.
    """

    target: str
    project: Path
    source: str | None = None
    watch: bool = False
    texts: str | None = None
    speak: tuple[str, ...] = ()
    classes: str | None = None
    models: tuple[str, ...] = ()
    address: str | None = None
    options: dict[str, object] = field(default_factory=dict)


class Service:
    """The state behind the page; its methods may be called by several threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        store = f"{settings.target}/store" if settings.source is not None else setup_of(settings.target).store
        self.project = Project.open(settings.project, store=store)
        self.searches = SearchCache()
        self.archive: Archive | None = None
        self._lock = threading.Lock()
        self._older: list[Archive] = []
        _sweep()
        self._scratch = TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-")
        self.clips = Clips(Path(self._scratch.name))
        self.scratch = Path(self._scratch.name)
        self.indexing: Indexing | None = None
        self._classes: list[dict[str, Any]] | None = None
        self._stop = threading.Event()
        self.texts = Archive(settings.texts) if settings.texts is not None else None
        self._looking, self._looked = threading.Lock(), 0.0
        self._judged = threading.Event()
        threading.Thread(target=self._keep_examples, daemon=True).start()
        if settings.source is None:
            self._open()
        else:
            self.indexing = Indexing(settings.source, settings.target, self._grown, settings.models)
            if self.indexing.is_ready():
                self._open()
            threading.Thread(target=self._index, daemon=True).start()

    def close(self) -> None:
        """End the index, and read no more."""
        self._stop.set()
        self._judged.set()
        if self.indexing is not None:
            self.indexing.end()
        for archive in [*self._older, self.archive, self.texts]:
            if archive is not None:
                archive.close()
        self.project.close()
        self._scratch.cleanup()

    def demand_archive(self) -> Archive:
        """The archive.

        Raises:
            UserError: nothing is indexed yet.
        """
        if self.archive is None:
            if self.indexing is not None and self.indexing.error is not None:
                raise self.indexing.error
            raise codes.NOT_READY(where=self.settings.target)
        return self.archive

    def _open(self) -> None:
        archive = Archive(self.settings.target, self.settings.address, self.settings.options)
        with self._lock:
            if self.archive is not None:
                self._retire(self.archive)
                self.searches.forget(archive.replaced_since(self.archive))
            self.archive = archive
        self._judged.set()
        self.look_for_words(after=0.0)

    def find_recordings(self, folder: str) -> Found:
        """Look for the recordings in a folder, and take them from there from now on.

        Raises:
            UserError: it has none of them, or another file under the name of one.
        """
        archive = self.demand_archive()
        store, columns = archive.searcher.store, ["path", "identity", "sha256"]
        found = find_recordings(store.documents(columns=columns), str(Path(folder).expanduser().absolute()))
        if found.other or not found.there or store.folder.local() is None:
            reason = f"; {found.other} is another than was indexed" if found.other else ""
            raise codes.NOT_THE_RECORDINGS(where=folder, folder=folder, there=found.there, of=found.of, reason=reason)
        locate_recordings(store.folder, store.manifest, found.folder)
        self._open()
        return found

    def judged(self) -> None:
        """Somebody judged a place: keep its sound, soon."""
        self._judged.set()

    def _keep_examples(self) -> None:
        while self._judged.wait() and not self._stop.is_set():
            self._judged.clear()
            try:
                if self.archive is not None:
                    self.project.keep_sounds(self.archive.searcher.store)
            except (SwsdistError, OSError):
                _LOG.exception("the sounds of examples were not kept")

    @property
    def words(self) -> Archive | None:
        """What is asked by text: the store of words, or the archive where that is one; None: there are no words."""
        archive = self.archive
        return archive if self.texts is None and archive is not None and not archive.spoken else self.texts

    def look_for_words(self, after: float = WORDS_EVERY) -> None:
        """Open the store of words as it is now, if the last look was some time ago (s)."""
        if time.monotonic() - self._looked < after or not self._looking.acquire(blocking=False):
            return
        try:
            self._open_words()
        except (SwsdistError, OSError):
            _LOG.exception("the store of words cannot be opened")
        finally:
            self._looked = time.monotonic()
            self._looking.release()

    def _open_words(self) -> None:
        target, archive, opened = self.settings.texts, self.archive, self.texts
        inside = target is None
        if inside and archive is not None and words_store(archive.searcher.setup.store) is not None:
            target = self.settings.target
        if target is None:
            return
        now = None if opened is None else load(Folder(opened.searcher.setup.store))
        if opened is not None and (now is None or now.fingerprint == opened.state):
            return
        texts = Archive(target, texts=inside)
        with self._lock:
            self._retire(opened)
            self.texts = texts

    def _grown(self) -> None:
        self._open()
        self._search_news()

    def _retire(self, archive: Archive | None) -> None:
        """Close an archive later: somebody may still search it."""
        if archive is not None:
            archive.release()
            self._older.append(archive)
            for old in self._older[:-_OLDER]:
                old.close()
            self._older = self._older[-_OLDER:]

    def _search_news(self) -> None:
        try:
            self.search_news()
        except (SwsdistError, OSError):
            _LOG.exception("saved words were not searched in new recordings")

    def _index(self) -> None:
        assert self.indexing is not None
        before = None
        if self.archive is not None:
            self._search_news()  # maybe the server ended before
        while not self._stop.is_set():
            try:
                now = Folder(self.indexing.source).listing()
                if now != before:
                    self.indexing.once()
                before = now if self.indexing.error is None else None
            except (SwsdistError, OSError) as error:  # a share that is away comes back
                self.indexing.error = codes.INDEX_ENDED(
                    where=self.indexing.source, folder=self.indexing.source, message=str(error)
                )
            if not self.settings.watch:
                return
            self._stop.wait(EVERY)

    def located(self, place: Place) -> Place:
        """A place as tokens have it.

        Raises:
            UserError: there is no such document or sound, or it is shorter.
        """
        if place.sound is not None:
            return within(place, self.project.sound(place.sound).duration)
        return self.demand_archive().in_recording(place)

    def likelihood(self, entry_id: int, name: str | None) -> dict[str, Any]:
        """How likely the hits of a search are; see `SearchCache.likelihood`."""
        if self.archive is None:
            return {"likelihood": None, "likely": []}
        return self.searches.likelihood(self.project, self.archive, entry_id, name)

    def classes(self, offset: int) -> dict[str, Any]:
        """A page of the classes of a run of `discover`: name, number of members, and the place of the first."""
        if self.settings.classes is None:
            return {"classes": [], "total": 0}
        if self._classes is None:
            self._classes = _classes_of(self.settings.classes)
        return {"classes": self._classes[offset : offset + PAGE], "total": len(self._classes)}

    # -- news ----------------------------------------------------------------------------------------------------------

    def news(self) -> list[_News]:
        """What was found of saved words in new recordings, and nobody has seen."""
        return self._kept()["news"]

    def seen(self) -> None:
        """Somebody has seen the news."""
        with self._lock:
            self._keep({**self._kept(), "news": []})

    def _kept(self) -> _Kept:
        try:
            return _NEWS_KEPT.validate_json(Folder(str(self.project.folder)).read_bytes(_NEWS))
        except (FileNotFoundError, ValueError):
            return {"state": None, "news": []}

    def _keep(self, values: _Kept) -> None:
        Folder(str(self.project.folder)).write_bytes(_NEWS, json.dumps(values).encode())

    def search_news(self) -> None:
        """Search the saved words in documents that the store had not when they were searched last."""
        archive, kept = self.demand_archive(), self._kept()
        hits, failed, new = list[_News](), dict[str, str | None](), dict[str | None, pa.Table]()
        for entry in self.project.entries() if archive.spoken else ():
            state = kept.get("failed", {}).get(str(entry.entry_id), kept["state"])
            if state not in new:
                new[state] = _new_documents(archive, state)
            examples = examples_of(self.project, entry.entry_id)
            if not examples or not new[state].num_rows:
                continue
            try:
                searcher = archive.searcher.among(new[state])
                hits += self._hits_in(searcher, archive, entry, examples, new[state].num_rows)
            except SwsdistError as error:
                failed[str(entry.entry_id)] = state  # next time in all that came since
                _LOG.warning("%s was not searched in new recordings: %s", entry.form, error)
        with self._lock:
            self._keep({"state": archive.state, "failed": failed, "news": [*self._kept()["news"], *hits]})

    def _hits_in(
        self, searcher: Any, archive: Archive, entry: Any, examples: tuple[Place, ...], documents: int
    ) -> list[_News]:
        question = Question(examples, entry_id=entry.entry_id)
        *_, last = answer(question, archive, self.project, SearchCache(), searcher)
        hits = [hit for hit in last["hits"] if hit["called"] != "unlikely"]
        return [{"entry_id": entry.entry_id, "form": entry.form, "hits": hits, "documents": documents}] if hits else []


def _sweep() -> None:
    """Remove what servers of ours that were killed left in the temporary folder."""
    for folder in Path(gettempdir()).glob(f"{_SCRATCH}*-*"):
        number = folder.name.removeprefix(_SCRATCH).partition("-")[0]
        with suppress(OSError):
            if number.isdigit() and not psutil.pid_exists(int(number)) and folder.stat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)


def _new_documents(archive: Archive, state: str | None) -> pa.Table:
    """Documents that an earlier state had not: none, if there is no earlier one, or its files are gone."""
    keys = archive.documents.select(["doc_id", "channel"])
    folder: Folder = archive.searcher.store.folder
    try:
        before = None if state is None else Store.at(folder.root, state, storage=folder.storage)
        indexed = None if before is None else before.documents(columns=["doc_id", "channel"])
    except (SwsdistError, OSError):
        indexed = None
    if indexed is None:
        return keys.slice(0, 0)
    current, earlier = (keys_of(table["doc_id"], table["channel"]) for table in (keys, indexed))
    return keys.filter(pc.invert(pc.is_in(current, earlier)))


def _classes_of(run: str) -> list[dict[str, Any]]:
    """Classes of a run of `discover`, the largest first: name, members (their number), and place of the member in the middle by
    length.

    Raises:
        StoreError: not a run folder.
    """
    chain_run = load_chain_run(Folder(run.rstrip("/")))
    if chain_run.chain.source("classes") is None:
        return []
    by_class: dict[int | None, list[Stretch]] = {}
    for member in stretches(chain_run, "classes"):
        by_class.setdefault(member.group, []).append(member)
    classes = []
    for name, members in sorted(by_class.items(), key=lambda item: -len(item[1])):
        members.sort(key=lambda member: member.end - member.start)
        middle = members[len(members) // 2]
        place = {key: getattr(middle, key) for key in ("doc_id", "channel", "start", "end")}
        classes.append({"name": str(name), "members": len(members), "place": place})
    return classes
