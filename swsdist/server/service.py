"""The server's state: an archive that may grow, a project, and hits in new recordings.

A folder of recordings is indexed by `swsdist index`, in a process beside the server. Indexed recordings can be searched
before the others are: an interrupted index commits what it has when it begins again, so the process is interrupted and
begun again after `_FIRST` seconds, twice as many, and so on. Only the tasks that were running are computed again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, TemporaryFile, gettempdir
from typing import Any, NotRequired

import psutil
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from swsdist.chains.discover.chain import least_of, words_of
from swsdist.core.codes import server as codes
from swsdist.core.codes.pipeline import FOLDER_IN_USE, LOCK_CONFLICT
from swsdist.core.errors import SwsdistError, UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.text import counted
from swsdist.corpora.documents import recordings
from swsdist.discovery.scene import Word, alike
from swsdist.glossary.project import Project
from swsdist.glossary.words import YES, Entry, Place, Places, within
from swsdist.io.filesystem import Folder
from swsdist.pipeline.lock import locked
from swsdist.pipeline.status import load_chain_run
from swsdist.searcher.searcher import setup_of
from swsdist.server.archive import PAGE, Archive, Beside
from swsdist.server.questions import Question, SearchCache, answer, examples_of
from swsdist.server.sounds import Clips
from swsdist.store.manifest import Found, find_recordings, load, locate_recordings, words_store
from swsdist.store.reading import Store, keys_of

#: How the page searches: the best few hundred places of many hours within a second.
_SETS = (
    "executor.kind=serial",
    "search.first_pass.name=quantised",
    "search.first_pass.windows.least=300",
    "search.first_pass.windows.per_second=0",
)
#: Stages that read recordings, and what they do.
_STAGES = {"index": "indexing", "words": "recognising"}
#: Seconds until what is indexed is committed first.
_FIRST = 30.0
#: Seconds between looks at another's index of the folder, and that ours may take to end.
_AGAIN, _ENDING = 5.0, 10.0
#: Another process works in the folder.
_TAKEN = (FOLDER_IN_USE, LOCK_CONFLICT)
#: `swsdist`, which ends when its input does: with the server, however that ends.
_CHILD = f"""
import os, signal, threading, time

def end():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep({_ENDING})
    os._exit(130)

threading.Thread(target=end, daemon=True).start()
from swsdist.cli.main import main
main()
"""


class Indexing:
    """An index of a folder, as often as asked.

    Args:
        source: folder of recordings.
        run: its run folder.
        committed: called when the store has more documents, or is complete.
        models: encoders and a recogniser; none: as before.

    Attributes:
        error: with which the last one ended.
        state: part (of the work), documents (so many recordings are this part), of (recordings of the folder), text; None
            while nothing is indexed.
    """

    def __init__(self, source: str, run: str, committed: Callable[[], None], models: Sequence[str] = ()) -> None:
        self.source, self.run, self._committed, self._models = source, run, committed, models
        self.error: SwsdistError | None = None
        self._process: subprocess.Popen[str] | None = None
        self.state: dict[str, Any] | None = None
        self._ended = threading.Event()
        self._per_work = 0.0  # part of all that is to do, of a unit of work

    def once(self) -> None:
        """Index what is new, and return at the end; while another process does it, follow that."""
        self.state = {"part": 0.0, "documents": 0, "of": self._recordings(), "text": "starting"}
        wait = _FIRST
        try:
            while not self._ended.is_set():
                before = load(Folder(f"{self.run}/store"))
                stopped, is_taken = self._index(wait)
                now = load(Folder(f"{self.run}/store"))
                if now is not None and (before is None or before.fingerprint != now.fingerprint):
                    self._committed()
                if is_taken:
                    self.state = {**(self.state or {}), "text": "waiting"}
                    self._ended.wait(_AGAIN)
                elif not stopped:
                    break
                else:
                    wait *= 2
        finally:
            self.state = None

    def _index(self, seconds: float) -> tuple[bool, bool]:
        """Whether it was interrupted after so many seconds, and whether another process is working in the folder."""
        command = [sys.executable, "-c", _CHILD, "index", self.source, "--run", self.run, "--events", "-"]
        options = (("--set", _SETS), ("--model", self._models))
        with TemporaryFile("w+", errors="replace") as messages:
            self._process = process = subprocess.Popen(
                [*command, *(part for option, values in options for each in values for part in (option, each))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                start_new_session=True,  # Ctrl-C ends the server, which ends it
            )
            stopped = threading.Event()

            def stop() -> None:
                if process.poll() is None:
                    stopped.set()
                    process.send_signal(signal.SIGINT)

            timer = threading.Timer(seconds, stop)
            timer.start()
            assert process.stdout is not None
            for line in process.stdout:
                self._follow(line)
            code = process.wait()
            assert process.stdin is not None
            process.stdin.close()
            timer.cancel()
            messages.seek(0)
            self.error = None
            lines = [line.strip() for line in messages if line.strip() and not line.strip().startswith("remedy:")]
        is_taken = code == UserError.exit_code and any(f"[{each.name}]" in line for line in lines for each in _TAKEN)
        if code not in (0, 4) and not stopped.is_set() and not self._ended.is_set() and not is_taken:
            message = lines[-1] if lines else f"exit code {code}"
            self.error = codes.INDEX_ENDED(where=self.source, folder=self.source, message=message)
        return stopped.is_set(), is_taken

    def _recordings(self) -> int:
        try:
            return len(recordings(self.source, {}))
        except (SwsdistError, OSError):  # the index says what is wrong
            return 0

    def _follow(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        state = dict(self.state or {})
        if event["event"] == "stage-begun":
            state["text"] = _STAGES.get(event["stage"], event["stage"])
            if event["stage"] in _STAGES:
                state["part"] = event["done"] / max(event["tasks"], 1)
                self._per_work = (1 - state["part"]) / max(event["work"], 1e-9)
        elif event["event"] == "task-ended" and event["stage"] in _STAGES:
            state["part"] = min(1.0, state["part"] + event["work"] * self._per_work)
        state["documents"] = int(state["part"] * state["of"] + 1e-6)
        self.state = state

    def end(self) -> None:
        """Interrupt it, and wait."""
        self._ended.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()


_LOG = logging.getLogger(__name__)
#: Seconds between looks at a watched folder, and at the store of words.
EVERY, WORDS_EVERY = 60.0, 5.0
#: Least time between looks beside the recordings, s, and in times of the last.
BESIDE_EVERY, _IDLE = 10.0, 10.0
_NEWS = "news.json"
_SCRATCH = "swsdist-serve-"
#: Most rejected files that are named.
_REJECTED = 200
#: Of these, for the terminal.
_NAMED = 3
#: Earlier states of the stores that are held.
_OLDER = 4
#: Places of a class that one may listen to.
_HEARD = 12


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
    """The state behind the page; its methods may be called by several threads.

    Args:
        settings: what is served.
        say: told of files that could not be read.
    """

    def __init__(self, settings: Settings, say: Callable[[str], None] = lambda _: None) -> None:
        self.settings, self._say, self._told = settings, say, 0
        store = f"{settings.target}/store" if settings.source is not None else setup_of(settings.target).store
        self.project = Project.open(settings.project, store=store)
        self.searches = SearchCache()
        self.archive: Archive | None = None
        self.beside: Beside | None = None
        self._lock, self._opening = threading.Lock(), threading.Lock()
        self._older: list[Archive] = []
        _sweep()
        self._scratch = TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-")
        self.scratch = Path(self._scratch.name)
        self.clips = Clips(self.scratch)
        self.indexing: Indexing | None = None
        self._candidates: tuple[dict[str, Word], float] | None = None
        self._stop = threading.Event()
        self._rehearsals = list[threading.Thread]()
        self.texts = Archive(settings.texts) if settings.texts is not None else None
        if self.texts is not None:
            self._rehearse(self.texts)
        self._looking, self._looked = threading.Lock(), 0.0
        self._judged, self._annotated, self._looked_beside = threading.Event(), threading.Event(), 0.0
        for due, work in ((self._judged, self._keep_sounds), (self._annotated, self._look_beside)):
            threading.Thread(target=self._when, args=(due, work), daemon=True).start()
        if settings.source is None:
            self._open()
        else:
            self.indexing = Indexing(settings.source, settings.target, self._open, settings.models)
            if load(Folder(store)) is not None:
                self._open()
            threading.Thread(target=self._index, daemon=True).start()

    def close(self) -> None:
        """End the index, and read no more."""
        self._stop.set()
        self._judged.set()
        self._annotated.set()
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
        with self._opening:  # whoever comes later opens a later state
            archive = Archive(self.settings.target, self.settings.address, self.settings.options)
            with self._lock:
                if self.archive is not None:
                    self._retire(self.archive)
                    self.searches.forget(archive.replaced_since(self.archive))
                else:
                    self._rehearse(archive)
                self.archive = archive
        self._judged.set()
        self.look_for_words(after=0.0)
        self._annotated.set()
        rejected = self.rejected
        if rejected["count"] != self._told:
            named = [f"{row['path'] or row['id']}: {row['message']}" for row in rejected["files"][:_NAMED]]
            more = ["..."] * (rejected["count"] > len(named))
            self._say(f"{counted(rejected['count'], 'file')} could not be read: {'; '.join([*named, *more])}")
            self._told = rejected["count"]

    def look_for_annotations(self) -> None:
        """Look soon for what is new beside the recordings, if the last look was some time ago."""
        if time.monotonic() > self._looked_beside:
            self._annotated.set()

    def _look_beside(self, archive: Archive) -> None:
        began = time.monotonic()
        self.beside = Beside.of(archive, self.beside)
        now = time.monotonic()
        self._looked_beside = now + max(BESIDE_EVERY, _IDLE * (now - began))

    def _when(self, due: threading.Event, work: Callable[[Archive], None]) -> None:
        """Do what is due with the archive as it is then, whatever comes of it."""
        while due.wait() and not self._stop.is_set():
            due.clear()
            try:
                if self.archive is not None:
                    work(self.archive)
            except Exception:  # a share may be away, a file damaged: the next time is as good
                _LOG.exception("work beside the searches failed")

    def find_recordings(self, folder: str) -> Found:
        """Look for the recordings in a folder, and take them from there from now on.

        Raises:
            UserError: it has no more of them than where they were looked for, or another file under the name of one.
            LockedError: an index writes the store.
        """
        archive = self.demand_archive()
        store, columns = archive.searcher.store, ["path", "identity", "sha256"]
        paths = {path for path, _ in store.recordings().values() if path}
        now = sum(Path(path).is_file() for path in paths)
        found = find_recordings(store.documents(columns=columns), str(Path(folder).expanduser().absolute()))
        if found.there == now == len(paths) and not found.other:
            return found  # all are where they were looked for, maybe again
        if found.other or found.there <= now or store.folder.local() is None:
            reason = f"; {now} are where they were looked for" if now else ""
            reason = f"; {found.other} is another than was indexed" if found.other else reason
            raise codes.NOT_THE_RECORDINGS(where=folder, folder=folder, there=found.there, of=found.of, reason=reason)
        with locked(store.folder):
            locate_recordings(store.folder, found.folder)
        self._open()
        return found

    def judged(self) -> None:
        """Somebody judged a place: keep its sound, soon."""
        self._judged.set()

    def _keep_sounds(self, archive: Archive) -> None:
        self.project.keep_sounds(archive.searcher.store)

    def _rehearse(self, archive: Archive) -> None:
        """Prepare its first search, beside everything else."""

        def rehearse() -> None:
            try:
                archive.rehearse()
            except Exception:  # whoever asks first is told; or the server has ended
                _LOG.debug("the search was not prepared", exc_info=True)

        self._rehearsals.append(threading.Thread(target=rehearse, daemon=True))
        self._rehearsals[-1].start()

    @property
    def preparing(self) -> bool:
        """Whether a first search is being prepared: until then an answer may take half a minute."""
        return any(each.is_alive() for each in self._rehearsals)

    @property
    def words(self) -> Archive | None:
        """What is asked by text: the store of words, or the archive where that is one; None: there are no words."""
        archive = self.archive
        return archive if self.texts is None and archive is not None and not archive.spoken else self.texts

    @property
    def name(self) -> str:
        """Of the archive: of its folder of recordings, or else of its run or store."""
        parts = [part for part in PurePosixPath(self.settings.source or self.settings.target).parts if part != "store"]
        return parts[-1].removesuffix("-swsdist")

    @property
    def rejected(self) -> dict[str, Any]:
        """Files that could not be read: `count`, and the first `files`."""
        opened, beside = (each for each in (self.archive, self.words) if each is not None), self.beside
        rows = [row for each in opened for row in each.rejected] + ([] if beside is None else beside.faults)
        files = list({(row["path"] or row["id"], row["reason"]): row for row in rows}.values())
        return {"count": len(files), "files": files[:_REJECTED]}

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
        if opened is None:
            self._rehearse(texts)
        with self._lock:
            self._retire(opened)
            self.texts = texts

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
                    self._annotated.set()
                    if self.archive is not None:
                        self._search_news()
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
        """A page of the word list of a run of `discover`: what each is called and known by, numbers, places, the entry that has
        one of them, and whether it was set aside; `alike` says how sure it is.

        Raises:
            StoreError: not a run folder.
        """
        named = Places[Entry]()
        for entry in self.project.entries():
            for token in self.project.tokens(entry.entry_id):
                if token.verdict == YES:
                    named.add(token.place, entry)
        (words, least), aside = self._words(), self.project.aside()
        rows = []
        for key, word in islice(words.items(), offset, offset + PAGE):
            places = [Place(*member[1:5]) for member in islice(word.in_turns(), _HEARD)]
            known = next(filter(None, map(named.same, places)), None)
            rows.append(
                {
                    "name": str(word.group),
                    "key": key,
                    "occurrences": len(word.members),
                    "speakers": word.speakers,
                    "seconds": word.seconds,
                    "alike": alike(word.sure, least),
                    "places": [place._asdict() for place in places],
                    "entry": None if known is None else {"entry_id": known.entry_id, "form": known.form},
                    "aside": key in aside,
                }
            )
        return {"classes": rows, "total": len(words)}

    def set_aside(self, key: str, aside: bool, person: str) -> None:
        """Say of a class that it is no word; or no longer.

        Raises:
            UserError: there is no such class.
        """
        if key not in self._words()[0]:
            raise codes.WRONG_REQUEST(where="key", what="there is no such class")
        self.project.set_aside(key, aside, person=person)

    def _words(self) -> tuple[dict[str, Word], float]:
        if self._candidates is None:
            run = None if self.settings.classes is None else load_chain_run(Folder(self.settings.classes.rstrip("/")))
            if run is None or run.chain.source("classes") is None:
                self._candidates = {}, 1.0
            else:
                self._candidates = {_key(word): word for word in words_of(run)}, least_of(run)
        return self._candidates

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
                documents = pc.count_distinct(new[state]["doc_id"]).as_py()
                question = Question(examples, entry_id=entry.entry_id)
                *_, last = answer(question, archive, self.project, SearchCache(), searcher)
                if found := [hit for hit in last["hits"] if hit["called"] != "unlikely"]:
                    hits.append(_News(entry_id=entry.entry_id, form=entry.form, hits=found, documents=documents))
            except SwsdistError as error:
                failed[str(entry.entry_id)] = state  # next time in all that came since
                _LOG.warning("%s was not searched in new recordings: %s", entry.form, error)
        with self._lock:
            self._keep({"state": archive.state, "failed": failed, "news": [*self._kept()["news"], *hits]})


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


def _key(word: Word) -> str:
    """What a class is known by: the same members are the same class, whatever its number."""
    return fingerprint("class", sorted(member[1:5] for member in word.members))
