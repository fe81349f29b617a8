"""The project folder of a glossary: what people found, judged and collected, with every change kept.

::

    project.sqlite           entries, tokens, corrections, sounds and changes (`swsdist.glossary.database`)
    project.backup.sqlite    a copy as of the last opening
    sounds/SHA256.wav        recorded and uploaded examples
    examples/*.flac          examples in recordings: words are heard and searched where recordings are missing

A file of `examples/` holds one channel of a place of a document, with `PAD` s on both sides. Its name has a digest of
the document's id, the channel, its own start and end in the document, µs, and a digest of what the document held when
judged.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import soundfile

from swsdist.audio.reader import MARKER, as_bytes, read_clip
from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import StorageError, UserError
from swsdist.glossary import database as rows
from swsdist.glossary import words
from swsdist.glossary.database import UNDO, Database, Edit, change_of, last_of
from swsdist.glossary.words import Change, Correction, Entry, Place, Sound, Token
from swsdist.io.failures import FULL, storage_errors
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.project_file import NAME
from swsdist.store.manifest import NAME as MANIFEST
from swsdist.store.reading import Store

_LOG = logging.getLogger(__name__)
#: Folder of the sounds of examples.
EXAMPLES = "examples"
#: Around an example, s.
PAD = 0.5


class KeptSound(NamedTuple):
    """A file, and the place of a document that it holds."""

    path: str
    place: Place

    def within(self, place: Place) -> Place:
        """A place of the document, in the file."""
        return place._replace(
            channel=1, start=max(0.0, place.start - self.place.start), end=place.end - self.place.start
        )


def is_missing(path: str) -> bool:
    """Whether no recording is known, or the local file is not there."""
    return not path or not (is_remote(path) or Path(path).exists())


class KeptSounds:
    """The sounds that a project keeps, as its folder is listed now."""

    def __init__(self, project: Path) -> None:
        self._files: dict[str, list[tuple[Path, int, float, float, str]]] = {}
        for file in sorted((project / EXAMPLES).glob("*.flac")):
            with suppress(ValueError):
                of, channel, start, end, content = file.stem.split("-")
                self._files.setdefault(of, []).append((file, int(channel), int(start) / 1e6, int(end) / 1e6, content))

    def files(self, doc_id: str) -> list[Path]:
        """All of a document."""
        return [file for file, *_ in self._files.get(_digest(doc_id), ())]

    def of(self, place: Place, content: str | None) -> KeptSound | None:
        """The newest sound of a place of a document.

        Args:
            place: it.
            content: that the document holds; another recording's sound is not its own. None: unknown.
        """
        found = [
            KeptSound(str(file), Place(place.doc_id, channel, start, end))
            for file, channel, start, end, held in self._files.get(_digest(str(place.doc_id)), ())
            if channel == place.channel and start <= place.start and place.end <= end
            if content is None or held in ("", _digest(content))
        ]
        return max(found, key=lambda sound: Path(sound.path).stat().st_mtime, default=None)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _keep_sound(project: Path, token: Token, path: str, storage: Mapping[str, object]) -> None:
    doc_id, channel, start, end, _ = token.place
    clip = read_clip(path, start, end, pad=PAD, channel=channel, storage=storage)
    last = max(end, clip.begin + len(clip.samples) / clip.rate)  # a place may exceed its recording by little
    content = "" if token.content is None else _digest(token.content)
    name = f"{_digest(str(doc_id))}-{channel}-{round(clip.begin * 1e6)}-{round(last * 1e6)}-{content}.flac"
    Folder(str(project)).write_bytes(f"{EXAMPLES}/{name}", as_bytes(clip.samples, clip.rate, "FLAC"))


class Project:
    """A glossary. Threads and processes may use one at once; each method is one transaction.

    Every method may raise the errors of `open`. A change that fails leaves everything as it was.

    Attributes:
        folder: absolute.
    """

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self._database = database

    @classmethod
    def open(cls, folder: str | Path, *, store: str | None = None) -> Project:
        """A project; made if it is missing.

        Args:
            folder: outside of any store.
            store: where the searched store lies, to be kept; None: as kept.

        Raises:
            UserError: the folder lies in a store; or the file is of another program or of a newer version.
            DataError: the file is damaged.
            StorageError: the disk is full, or the folder cannot be read or written.
        """
        place = Path(folder).absolute()
        _demand_outside(place)
        with storage_errors(str(place)):
            if not (place / NAME).exists():
                (place / "sounds").mkdir(parents=True, exist_ok=True)
                (place / MARKER).touch()  # sounds are never taken for recordings of a corpus
        project = cls(place, Database(place / NAME))
        if store is not None and not is_remote(store):
            store = str(Path(store).absolute())
        if store is not None:
            way = "" if is_remote(store) else os.path.relpath(store, place)
            named = {"store": store, "way to store": way}
            if project._settings() != named:
                with project._database.writing() as connection:
                    connection.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", named.items())
        return project

    def close(self) -> None:
        """Close the file; what was changed is saved already."""
        self._database.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def store(self) -> str | None:
        """Where the store lies, as last opened with one; absolute, or an url.

        Where it is not there, but lies as it did from the project, both were moved together.
        """
        named = self._settings()
        if (store := named.get("store")) is None:
            return None
        moved = Path(os.path.normpath(self.folder / named["way to store"])) if named.get("way to store") else None
        together = moved is not None and not (Path(store) / MANIFEST).exists() and (moved / MANIFEST).exists()
        return str(moved) if together else str(store)

    def _settings(self) -> dict[str, str]:
        with self.reading() as connection:
            return {row["name"]: row["value"] for row in connection.execute("SELECT name, value FROM setting")}

    def keep_sounds(self, store: Store) -> int:
        """Keep the sounds of examples that have none yet, whose recordings may be missing one day; gives their number.

        Left out are those whose recording cannot be read, or holds another sound than was judged.
        """
        there = KeptSounds(self.folder)
        examples = [each for each in self._examples() if each.place.doc_id and not there.of(each.place, each.content)]
        if not examples:
            return 0
        wrong, count = words.replaced(examples, store), 0
        paths = store.recordings(sorted({str(token.place.doc_id) for token in examples}))
        for token in examples:
            path = paths.get((str(token.place.doc_id), token.place.channel), ("",))[0]
            if token not in wrong and not is_missing(path):
                try:
                    _keep_sound(self.folder, token, path, store.folder.storage)
                    count += 1
                except Exception as error:  # whatever is wrong with this one, the others are kept
                    _LOG.info("the sound of an example is not kept: %s", error)
        return count

    def _examples(self) -> list[Token]:
        with self.reading() as connection:
            cursor = connection.execute(f"{rows.TOKENS} WHERE example ORDER BY token_id").fetchall()
            return [rows.token(dict(row)) for row in cursor]

    def copy_to(self, folder: Path) -> None:
        """Copy the project as it is now, with all changes, to a new folder; with sounds that tokens are in, and of recordings
        those of examples, but not with what was taken out.
        """
        (folder / "sounds").mkdir(parents=True)
        (folder / EXAMPLES).mkdir()
        (folder / MARKER).touch()
        with self._database.alone() as connection:
            connection.execute("VACUUM INTO ?", (str(folder / NAME),))
        with closing(sqlite3.connect(folder / NAME)) as copy, copy:
            copy.execute("DELETE FROM sound WHERE sound NOT IN (SELECT sound FROM token WHERE sound IS NOT NULL)")
            names = [f"sounds/{sound}.wav" for (sound,) in copy.execute("SELECT sound FROM sound")]
        there = KeptSounds(self.folder)
        kept = (there.of(token.place, token.content) for token in self._examples() if token.place.doc_id)
        names += [os.path.relpath(sound.path, self.folder) for sound in kept if sound is not None]
        for name in dict.fromkeys(names):
            shutil.copy2(self.folder / name, folder / name)

    def entries(self, text: str = "") -> list[Entry]:
        """Entries with a text in form, gloss, variants or note, whatever its case and accents; by form."""
        part = words.folded(text.strip())
        with self.reading() as connection:
            every = [rows.entry(row) for row in connection.execute(f"{rows.COUNTED} GROUP BY entry_id")]
        has = (
            entry
            for entry in every
            if any(part in words.folded(item) for item in (entry.form, entry.gloss, *entry.variants, entry.note))
        )
        return sorted(has, key=lambda entry: (words.folded(entry.form), entry.form))

    def entry(self, entry_id: int) -> Entry:
        """An entry.

        Raises:
            UserError: there is none.
        """
        with self.reading() as connection:
            return rows.entry_in(connection, entry_id)

    def add_entry(
        self,
        *,
        person: str,
        form: str,
        gloss: str = "",
        variants: Sequence[str] = (),
        speaker: str = "",
        note: str = "",
    ) -> Entry:
        """A new entry.

        Raises:
            UserError: a text is not possible, or there is an entry with this form.
        """
        row = rows.entry_row({"form": form, "gloss": gloss, "variants": variants, "speaker": speaker, "note": note})
        with self.editing(person, "add-entry") as edit:
            number = rows.insert_entry(edit, row)
            edit.save(number)
        return self.entry(number)

    def change_entry(self, entry_id: int, /, *, person: str, **fields: Any) -> Entry:
        """Change form, gloss, variants, speaker or note.

        Raises:
            UserError: there is no such entry or field, a text is not possible, or the form is another's.
        """
        row = rows.entry_row(fields)
        with self.editing(person, "change-entry") as edit:
            rows.demand(edit, "entry", entry_id)
            if row:
                rows.update_entry(edit, entry_id, row)
            edit.save(entry_id)
        return self.entry(entry_id)

    def remove_entry(self, entry_id: int, *, person: str) -> None:
        """Remove an entry and its tokens.

        Raises:
            UserError: there is none.
        """
        with self.editing(person, "remove-entry") as edit:
            rows.demand(edit, "entry", entry_id)
            for token in edit.tokens(entry_id):
                edit.delete("token", token["token_id"])
            edit.delete("entry", entry_id)
            edit.save(entry_id)

    def merge(self, entry_id: int, other_id: int, *, person: str) -> Entry:
        """Make two entries one: tokens, form and variants of the other go to the first, and the other is removed.

        Where a place was judged for both, the verdict `yes` wins over `unsure`, and that over `no`.

        Raises:
            UserError: there is no such entry, or both are the same.
        """
        if entry_id == other_id:
            raise families.INVALID_VALUE.of(UserError)("an entry cannot be merged with itself", "name two entries")
        with self.editing(person, "merge") as edit:
            rows.merge(edit, entry_id, other_id)
            edit.save(entry_id)
        return self.entry(entry_id)

    def split(self, entry_id: int, token_ids: Sequence[int], *, person: str, form: str) -> Entry:
        """A new entry with some of an entry's tokens.

        Raises:
            UserError: there is no such entry, or no such token of it; or the form is not possible, or another's.
        """
        row = rows.entry_row({"form": form, "gloss": "", "variants": (), "speaker": "", "note": ""})
        with self.editing(person, "split") as edit:
            old = rows.demand(edit, "entry", entry_id)
            ids = {token["token_id"] for token in edit.tokens(entry_id)}
            number = rows.insert_entry(edit, {**row, "gloss": old["gloss"], "speaker": old["speaker"]})
            for token_id in token_ids:
                if token_id not in ids:
                    raise codes.NO_SUCH_TOKEN(token_id=token_id)
                edit.update("token", token_id, entry_id=number)
            edit.save(entry_id)
        return self.entry(number)

    def tokens(self, entry_id: int) -> list[Token]:
        """The tokens of an entry, in the order of their places.

        Raises:
            UserError: there is no such entry.
        """
        with self.reading() as connection:
            rows.entry_in(connection, entry_id)
            order = "doc_id IS NULL, doc_id, sound, channel, start, token_id"
            cursor = connection.execute(f"{rows.TOKENS} WHERE entry_id = ? ORDER BY {order}", (entry_id,)).fetchall()
            return [rows.token(dict(row)) for row in cursor]

    def token(self, token_id: int) -> Token:
        """A token.

        Raises:
            UserError: there is none.
        """
        with self.reading() as connection:
            return rows.token(rows.demand(Edit(connection, "", ""), "token", token_id))

    def judge(
        self,
        entry_id: int,
        place: Place,
        verdict: str,
        *,
        person: str,
        score: float | None = None,
        note: str = "",
        example: bool | None = None,
        variant: str = "",
        speaker: str = "",
        content: str | None = None,
    ) -> Token:
        """Judge a place for an entry.

        A token of the entry that shares more than half of the shorter of both is changed instead of a second being made: it
        takes the new place and verdict, and keeps the texts that are not given.

        Args:
            entry_id: of the word.
            place: of a document, or of a sound that was added.
            verdict: `yes`, `no` or `unsure`.
            person: who judges.
            score: of the hit, if it is one.
            note, variant, speaker: of the token.
            example: whether to search by it; None: where the verdict is `yes`, unless it was unchosen before.
            content: of the document; None: unknown.

        Raises:
            UserError: there is no such entry or sound, or a value is not possible.
        """
        where, kind = words.place(place), words.verdict(verdict)
        texts = {"note": words.lines("note", note)}
        texts |= {"variant": words.line("variant", variant), "speaker": words.line("speaker", speaker)}
        with self.editing(person, "judge") as edit:
            rows.demand(edit, "entry", entry_id)
            old = rows.overlapping(edit, entry_id, where)
            number = rows.put_token(edit, entry_id, where, {"verdict": kind, "score": score, **texts}, example, old)
            rows.keep_content(edit, where, content)
            edit.save(entry_id)
            return rows.token(rows.demand(edit, "token", number))

    def change_token(self, token_id: int, /, *, person: str, content: str | None = None, **fields: Any) -> Token:
        """Change verdict, example, place, variant, speaker or note; `content` is that of the document, where it was heard anew.

        Raises:
            UserError: there is no such token or field, or a value is not possible.
        """
        row = rows.token_row(fields)
        with self.editing(person, "change-token") as edit:
            old = rows.demand(edit, "token", token_id)
            rows.change_token(edit, old, row)
            if content is None and not {"verdict", "place"} & fields.keys():
                content = self._content(edit, old)
            rows.keep_content(edit, rows.place_of({**old, **row}), content)
            edit.save(old["entry_id"])
            return rows.token(rows.demand(edit, "token", token_id))

    def remove_token(self, token_id: int, *, person: str) -> None:
        """Remove a token, as if its place had never been judged.

        Raises:
            UserError: there is none.
        """
        with self.editing(person, "remove-token") as edit:
            old = rows.demand(edit, "token", token_id)
            edit.delete("token", token_id)
            edit.save(old["entry_id"])

    def correct(self, place: Place, text: str, *, person: str, content: str | None = None) -> Correction:
        """Correct what is said in a stretch of a document; a correction that shares more than half of the shorter is replaced.

        Args:
            place: of a document.
            text: instead of the words there; empty: nothing is said.
            person: who corrects.
            content: of the document; None: unknown.

        Raises:
            UserError: a value is not possible, or the place is of a sound.
        """
        where, written = words.place(place), words.line("text", text)
        if where.doc_id is None:
            raise families.INVALID_VALUE.of(UserError)(
                "a correction is of a recording of the archive", "name a document instead of a sound", where=where.sound
            )
        with self.editing(person, "correct") as edit:
            number = rows.put_correction(edit, where, {"text": written})
            if edit.save(None) is not None:
                rows.keep_content(edit, where, content)
            return next(each for each in rows.corrections(edit.connection, where) if each.correction_id == number)

    def remove_correction(self, correction_id: int, *, person: str) -> None:
        """Remove a correction, so that what was recognised counts again.

        Raises:
            UserError: there is none.
        """
        with self.editing(person, "remove-correction") as edit:
            rows.demand(edit, "correction", correction_id)
            edit.delete("correction", correction_id)
            edit.save(None)

    def corrections(self, place: Place | None = None) -> list[Correction]:
        """Corrections in the order of their places: those that overlap a place, or all."""
        with self.reading() as connection:
            return rows.corrections(connection, place)

    def forget(self, doc_ids: Collection[str], *, dry: bool = False) -> dict[str, int]:
        """Remove what was judged and corrected in documents: from the changes, too, so that nobody takes that back.

        Args:
            doc_ids: of the documents.
            dry: remove nothing.

        Returns:
            numbers of tokens, corrections, changes that say something of them, and sounds of examples.
        """
        with self._database.writing() as connection:
            counts = rows.forget(connection, doc_ids, dry)
        there = KeptSounds(self.folder)
        files = [file for doc_id in doc_ids for file in there.files(doc_id)]
        counts["sounds of examples"] = len(files)
        if not dry:
            for file in files:
                file.unlink(missing_ok=True)
            self._database.shrink()
        return counts

    def add_sound(self, data: bytes, *, name: str, person: str) -> Sound:
        """Keep a sound; the same one is kept once.

        Args:
            data: a WAV file, PCM.
            name: of the file, or what it is.
            person: who gives it.

        Raises:
            DataError: it is no such file.
            StorageError: it cannot be written.
        """
        texts = words.line("name", name), self.person(person)
        number = hashlib.sha256(data).hexdigest()
        duration, rate = _sound_of(data)
        try:
            Folder(str(self.folder)).write_bytes(f"sounds/{number}.wav", data)
        except StorageError as error:
            if error.code not in FULL:
                raise
            raise codes.PROJECT_FULL(where=str(self.folder)) from error
        with self.editing(person, "add-sound") as edit:
            values = (number, texts[0], duration, rate, texts[1], edit.at)
            edit.connection.execute("INSERT OR IGNORE INTO sound VALUES (?, ?, ?, ?, ?, ?)", values)
        return self.sound(number)

    def sound(self, sound: str) -> Sound:
        """A sound by its sha256.

        Raises:
            UserError: there is none.
        """
        with self.reading() as connection:
            row = connection.execute("SELECT * FROM sound WHERE sound = ?", (sound,)).fetchone()
        if row is None:
            raise codes.NO_SUCH_SOUND(sound=sound)
        return Sound(**dict(row))

    def sound_file(self, sound: str) -> Path:
        """Where a sound lies.

        Raises:
            UserError: there is none.
        """
        return self.folder / "sounds" / f"{self.sound(sound).sound}.wav"

    def undo(self, *, person: str) -> Change | None:
        """Take back a person's last change that is not taken back, by a change; None: there is none.

        Raises:
            UserError: what it changed has been changed again since.
        """
        with self.editing(person, UNDO) as edit:
            last = last_of(edit.connection, edit.person)
            number = last and edit.take_back(last)
            row = edit.connection.execute("SELECT * FROM change WHERE change_id = ?", (number,)).fetchone()
            return row and change_of(row)

    def changes(self, after: int = 0, most: int = 200) -> list[Change]:
        """Changes after one, in their order, at most so many."""
        with self.reading() as connection:
            cursor = connection.execute(
                "SELECT * FROM change WHERE change_id > ? ORDER BY change_id LIMIT ?", (after, most)
            )
            return [change_of(row) for row in cursor]

    def modified(self) -> dict[int, str]:
        """When each entry, or a token of it, changed last, by its id."""
        times: dict[int, str] = {}
        with self.reading() as connection:
            for change in map(change_of, connection.execute("SELECT * FROM change ORDER BY change_id")):
                for side in (change.before or {}, change.after or {}):
                    ids = {*map(int, side.get("entries", ()))}
                    ids |= {row["entry_id"] for row in side.get("tokens", {}).values()}
                    times |= dict.fromkeys(ids, change.at)
        return times

    @property
    def change(self) -> int:
        """Number of the last change; 0: there is none."""
        with self.reading() as connection:
            return int(connection.execute("SELECT coalesce(max(change_id), 0) FROM change").fetchone()[0])

    def aside(self) -> set[str]:
        """What was set aside, by its key."""
        with self.reading() as connection:
            return rows.aside(connection)

    def set_aside(self, key: str, aside: bool, *, person: str) -> None:
        """Set something aside that is no word; or no longer."""
        with self.editing(person, "set-aside") as edit:
            old = edit.connection.execute("SELECT aside_id FROM aside WHERE key = ?", (key,)).fetchone()
            if aside and old is None:
                edit.insert("aside", {"key": key})
            elif not aside and old is not None:
                edit.delete("aside", old["aside_id"])
            edit.save(None)

    def people(self) -> list[str]:
        """Who has changed something, by name."""
        with self.reading() as connection:
            return [row["person"] for row in connection.execute("SELECT DISTINCT person FROM change ORDER BY person")]

    @staticmethod
    def person(name: str) -> str:
        """A person's name as it is kept.

        Raises:
            UserError: it is empty, or has control characters.
        """
        return words.line("person", name, empty=False)

    @staticmethod
    def _content(edit: Edit, token: Mapping[str, Any]) -> str | None:
        key = token["doc_id"], token["channel"], token["at"]
        row = edit.connection.execute(
            "SELECT content FROM content WHERE (doc_id, channel, at) = (?, ?, ?)", key
        ).fetchone()
        return row and str(row["content"])

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection for several queries of one state."""
        return self._database.reading()

    @contextmanager
    def editing(self, person: str, kind: str) -> Iterator[Edit]:
        """A change in the making: all that is written is saved at the end, or nothing."""
        name = self.person(person)
        with self._database.writing() as connection:
            yield Edit(connection, name, kind)


def _demand_outside(folder: Path) -> None:
    """Refuse a folder in a store.

    Raises:
        UserError: it is one.
    """
    for above in (folder, *folder.parents):
        try:
            with (above / MANIFEST).open("rb") as opened:
                head = opened.read(4096)
        except OSError:
            continue
        if b"swsdist-store/" in head:
            raise families.OUTPUT_REFUSED(
                "the folder lies in the store {store}, which may be removed and made again",
                "name a folder of its own for the glossary",
                where=str(folder),
                store=above,
            )


def _sound_of(data: bytes) -> tuple[float, int]:
    """Duration (s) and rate (Hz) of a WAV file.

    Raises:
        DataError: it is none, or has other samples than PCM, or none.
    """
    try:
        info = soundfile.info(io.BytesIO(data))
    except soundfile.LibsndfileError as error:
        raise codes.INVALID_SOUND(error=error) from None
    if info.format not in ("WAV", "WAVEX") or not info.subtype.startswith("PCM_") or not info.frames:
        raise codes.INVALID_SOUND(error=f"{info.format}, {info.subtype}, {info.frames} samples")
    return info.frames / info.samplerate, info.samplerate
