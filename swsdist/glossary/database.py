"""A project's database in SQLite: its schema, rows, changes and their undoing.

Several threads and processes may use it at once. A commit is on the disk when it returns (WAL, `synchronous=FULL`); a
transaction that fails leaves nothing.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import DataError, UserError
from swsdist.glossary import words
from swsdist.glossary.words import Change, Correction, Entry, Place, Places, Token
from swsdist.io.project_file import (
    APPLICATION,
    BACKUP,
    PATIENCE,
    SCHEMA_VERSION,
    connect,
    demand_known,
    primary,
    sqlite_errors,
)

Row = dict[str, Any]

#: Of rows that changes hold: the table's name in a change, and the column of its ids.
TABLES = {
    "entry": ("entries", "entry_id"),
    "token": ("tokens", "token_id"),
    "correction": ("corrections", "correction_id"),
    "aside": ("asides", "aside_id"),
}

#: Kind of the changes that take back another, and are not taken back themselves.
UNDO = "undo"
#: Kind of the change that is all of an imported file.
IMPORT = "import"
#: Setting: the last change that came with a whole glossary.
_HISTORY = "history"


def now() -> str:
    """The time, ISO 8601 in UTC, with ms."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Edit:
    """A change in the making, within a transaction of `Database.writing`.

    Args:
        connection: it.
        person: who changes.
        kind: the change's.
    """

    def __init__(self, connection: sqlite3.Connection, person: str, kind: str) -> None:
        self.connection, self.person, self._kind = connection, person, kind
        self._before: dict[tuple[str, int], Row | None] = {}
        self.at = now()

    def row(self, table: str, number: int) -> Row | None:
        """A row of a table by its id."""
        _, key = TABLES[table]
        row = self.connection.execute(f"SELECT * FROM {table} WHERE {key} = ?", (number,)).fetchone()
        return row and dict(row)

    def tokens(self, entry_id: int) -> list[Row]:
        """The tokens' rows of an entry."""
        rows = self.connection.execute("SELECT * FROM token WHERE entry_id = ? ORDER BY token_id", (entry_id,))
        return [dict(row) for row in rows]

    def insert(self, table: str, row: Row) -> int:
        """Write a new row, which has no id unless it had one once; gives the id."""
        columns, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        cursor = self.connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))
        number = cursor.lastrowid
        assert number is not None
        self._before.setdefault((table, number), None)
        return number

    def update(self, table: str, number: int, **values: object) -> None:
        """Change columns of a row."""
        self._keep(table, number)
        _, key = TABLES[table]
        columns = ", ".join(f"{name} = ?" for name in values)
        self.connection.execute(f"UPDATE {table} SET {columns} WHERE {key} = ?", (*values.values(), number))

    def delete(self, table: str, number: int) -> None:
        """Remove a row."""
        self._keep(table, number)
        _, key = TABLES[table]
        self.connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (number,))

    def save(self, entry_id: int | None, undoes: int | None = None) -> int | None:
        """Write the change down; gives its id. None: nothing is different."""
        before: dict[str, Row] = {}
        after: dict[str, Row] = {}
        for (table, number), old in self._before.items():
            new = self.row(table, number)
            if old == new:
                continue
            for rows, row in ((before, old), (after, new)):
                if row is not None:
                    rows.setdefault(TABLES[table][0], {})[str(number)] = row
        if not before and not after:
            return None
        values = (self.at, self.person, self._kind, entry_id, _side_as_json(before), _side_as_json(after), undoes)
        cursor = self.connection.execute(
            'INSERT INTO change (at, person, kind, entry_id, before, "after", undoes) VALUES (?, ?, ?, ?, ?, ?, ?)',
            values,
        )
        return cursor.lastrowid

    def take_back(self, change: Change) -> int | None:
        """Put the rows of a change back as they were before it.

        Raises:
            UserError: some have been changed again since.
        """
        before, after = _rows(change.before), _rows(change.after)
        if any(self.row(*key) != after.get(key) for key in before.keys() | after.keys()):
            raise self._conflict(change)
        try:
            for (table, number), row in before.items():
                if (table, number) in after:
                    self.update(table, number, **row)
                else:
                    self.insert(table, row)
            for table, number in [key for key in after if key not in before][::-1]:  # tokens before their entries
                self.delete(table, number)
        except sqlite3.IntegrityError:  # its entry is gone or has tokens of others, or its form is another's now
            raise self._conflict(change) from None
        return self.save(change.entry_id, change.change_id)

    def _keep(self, table: str, number: int) -> None:
        if (table, number) not in self._before:
            self._before[table, number] = self.row(table, number)

    def _conflict(self, change: Change) -> Exception:
        others = self.connection.execute(
            "SELECT DISTINCT person FROM change WHERE change_id > ?", (change.change_id,)
        ).fetchall()
        names = ", ".join(sorted(row["person"] for row in others))
        return codes.CHANGED_SINCE(person=change.person, kind=change.kind, others=names)


def _side_as_json(rows: dict[str, Row]) -> str | None:
    return json.dumps(rows, ensure_ascii=False) if rows else None


def _rows(side: dict[str, Any] | None) -> dict[tuple[str, int], Row]:
    """The rows of a side of a change, entries first."""
    return {
        (table, int(number)): row
        for table, (name, _) in TABLES.items()
        for number, row in ((side or {}).get(name) or {}).items()
    }


def change_of(row: sqlite3.Row) -> Change:
    """A change from its row."""
    values = dict(row)
    for name in ("before", "after"):
        values[name] = json.loads(values[name]) if values[name] is not None else None
    return Change(**values)


def last_of(connection: sqlite3.Connection, person: str) -> Change | None:
    """A person's last change that takes back none and is not taken back; those that an import brought are history."""
    row = connection.execute(
        "SELECT * FROM change WHERE person = ? AND kind <> ? AND NOT EXISTS "
        "(SELECT 1 FROM change AS other WHERE other.undoes = change.change_id) AND change_id > "
        "coalesce((SELECT CAST(value AS INTEGER) FROM setting WHERE name = ?), 0) ORDER BY change_id DESC LIMIT 1",
        (person, UNDO, _HISTORY),
    ).fetchone()
    return row and change_of(row)


def keep_as_history(connection: sqlite3.Connection) -> None:
    """Let nobody take back the changes that there are."""
    connection.execute("INSERT OR REPLACE INTO setting SELECT ?, coalesce(max(change_id), 0) FROM change", (_HISTORY,))


def forget(connection: sqlite3.Connection, doc_ids: Collection[str], dry: bool) -> dict[str, int]:
    """Remove the rows of documents, and from changes what they say of these; the changes that then say nothing, too.

    Returns:
        numbers of tokens, corrections and changes.
    """
    names, marks = tuple(doc_ids), ", ".join("?" * len(doc_ids))
    counts = {}
    for table, word in (("token", "tokens"), ("correction", "corrections")):
        query = f"SELECT count(*) FROM {table} WHERE doc_id IN ({marks})"
        counts[word] = int(connection.execute(query, names).fetchone()[0])
    altered: dict[int, tuple[str | None, str | None]] = {}
    for row in connection.execute('SELECT change_id, before, "after" FROM change').fetchall():
        sides = [json.loads(row[side] or "{}") for side in ("before", "after")]
        left = [
            {
                name: kept
                for name, some in side.items()
                if (kept := {k: r for k, r in some.items() if _others(r, names)})
            }
            for side in sides
        ]
        if left != sides:
            altered[row["change_id"]] = _side_as_json(left[0]), _side_as_json(left[1])
    counts["changes"] = len(altered)
    if dry:
        return counts
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.execute("PRAGMA defer_foreign_keys = ON")
    for row in triggers:
        connection.execute(f"DROP TRIGGER {row['name']}")
    for number, sides_left in altered.items():
        connection.execute('UPDATE change SET before = ?, "after" = ? WHERE change_id = ?', (*sides_left, number))
        if sides_left == (None, None):
            connection.execute("UPDATE change SET undoes = NULL WHERE undoes = ?", (number,))
            connection.execute("DELETE FROM change WHERE change_id = ?", (number,))
    for row in triggers:
        connection.execute(row["sql"])
    for table in ("token", "correction", "content"):
        connection.execute(f"DELETE FROM {table} WHERE doc_id IN ({marks})", names)
    return counts


def _others(row: Row, names: Collection[str]) -> bool:
    return row.get("doc_id") not in names


#: Rows of entries, tokens, corrections and asides are what changes hold; `change` is never written to but at its end.
_SCHEMA = (
    "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """
    CREATE TABLE entry (
        entry_id INTEGER PRIMARY KEY AUTOINCREMENT,
        form TEXT NOT NULL UNIQUE,
        gloss TEXT NOT NULL,
        variants TEXT NOT NULL,
        speaker TEXT NOT NULL,
        note TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE sound (
        sound TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        duration REAL NOT NULL,
        rate INTEGER NOT NULL,
        person TEXT NOT NULL,
        at TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE token (
        token_id INTEGER PRIMARY KEY AUTOINCREMENT,
        entry_id INTEGER NOT NULL REFERENCES entry,
        doc_id TEXT,
        channel INTEGER NOT NULL,
        start REAL NOT NULL,
        end REAL NOT NULL CHECK (start < end),
        sound TEXT REFERENCES sound CHECK ((doc_id IS NULL) <> (sound IS NULL)),
        verdict TEXT NOT NULL CHECK (verdict IN ('yes', 'no', 'unsure')),
        example INTEGER NOT NULL CHECK (example IN (0, 1) AND (example = 0 OR verdict = 'yes')),
        score REAL,
        variant TEXT NOT NULL,
        speaker TEXT NOT NULL,
        note TEXT NOT NULL,
        person TEXT NOT NULL,
        at TEXT NOT NULL
    )
    """,
    "CREATE INDEX token_of_entry ON token (entry_id, doc_id, channel)",
    """
    CREATE TABLE change (
        change_id INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        person TEXT NOT NULL,
        kind TEXT NOT NULL,
        entry_id INTEGER,
        before TEXT,
        after TEXT,
        undoes INTEGER REFERENCES change
    )
    """,
    "CREATE INDEX change_of_person ON change (person, change_id)",
    "CREATE INDEX change_undone ON change (undoes) WHERE undoes IS NOT NULL",
    "CREATE TRIGGER kept_changes BEFORE DELETE ON change BEGIN SELECT RAISE(ABORT, 'changes are never deleted'); END",
    "CREATE TRIGGER fixed_changes BEFORE UPDATE ON change BEGIN SELECT RAISE(ABORT, 'changes are never altered'); END",
    """
    CREATE VIEW judgements AS
        SELECT form AS query_id, doc_id, channel, start, end, verdict, person, at, score,
            nullif(replace(token.note, char(10), ' '), '') AS note
        FROM token JOIN entry USING (entry_id) WHERE doc_id IS NOT NULL
        ORDER BY query_id, doc_id, channel, start, token_id
    """,
    """
    CREATE VIEW "references" AS
        SELECT query_id, doc_id, channel, start, end FROM judgements WHERE verdict = 'yes'
    """,
    """
    CREATE VIEW queries AS
        SELECT form AS query_id, row_number() OVER (PARTITION BY entry_id ORDER BY token_id) AS example,
            'sounds/' || sound || '.wav' AS path, doc_id, channel, start, end,
            nullif(token.speaker, '') AS speaker, form AS term
        FROM token JOIN entry USING (entry_id) WHERE example
        ORDER BY query_id, example
    """,
)

#: What documents held when they were judged, corrections, and what was set aside; absent in files of earlier versions, and
#: temporary in those that cannot be written.
_LATER = (
    """
    CREATE {}TABLE IF NOT EXISTS content (
        doc_id TEXT NOT NULL, channel INTEGER NOT NULL, at TEXT NOT NULL, content TEXT NOT NULL,
        PRIMARY KEY (doc_id, channel, at)
    )
    """,
    """
    CREATE {}TABLE IF NOT EXISTS correction (
        correction_id INTEGER PRIMARY KEY AUTOINCREMENT,
        doc_id TEXT NOT NULL,
        channel INTEGER NOT NULL,
        start REAL NOT NULL,
        end REAL NOT NULL CHECK (start < end),
        text TEXT NOT NULL,
        person TEXT NOT NULL,
        at TEXT NOT NULL
    )
    """,
    "CREATE {}TABLE IF NOT EXISTS aside (aside_id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE)",
    'CREATE INDEX IF NOT EXISTS correction_of_document ON correction (doc_id, channel, "end")',
)


class Database:
    """The file of a project.

    Args:
        file: made if it is missing; its folder exists.

    Raises:
        UserError: it is of another program, or of a newer version.
        DataError: it is damaged.
        StorageError: it cannot be read or written.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = self._known = False
        with sqlite_errors(file):
            if not file.exists() or not file.stat().st_size:
                if file.with_name(BACKUP).exists():
                    raise self._damaged("it is empty or gone")
                self._make()
            with self._connection() as connection:
                demand_known(connection, str(file))
                _add_later(connection)
                self._known = True
                problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if problem != "ok":
                    raise self._damaged(problem)
        self._back_up()

    def close(self) -> None:
        """Close all connections; those in use when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file."""
        with sqlite_errors(self.file), self._connection() as connection, connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection that alone writes; all is written at the end, or nothing after an exception."""
        with sqlite_errors(self.file), self._connection() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """A connection without a transaction."""
        with sqlite_errors(self.file), self._connection() as connection:
            yield connection

    def shrink(self) -> None:
        """Rewrite the file, its log and its copy without the bytes of rows that were removed."""
        with self.alone() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._back_up()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise families.CLOSED("this glossary is closed", "open it again", where=str(self.file))
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = connect(self.file, write=True)
            connection.execute("PRAGMA busy_timeout = 0")
            with suppress(sqlite3.OperationalError):  # another is switching, or none can write
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA busy_timeout = {round(PATIENCE * 1000)}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if self._known:
                _add_later(connection)
        try:
            yield connection
        finally:
            with self._lock:
                keep = not self._closed
                if keep:
                    self._idle.append(connection)
            if not keep:
                connection.close()

    def _damaged(self, problem: str) -> DataError:
        return codes.DAMAGED_PROJECT(where=str(self.file), error=problem, backup=BACKUP, name=self.file.name)

    def _make(self) -> None:
        """The schema, in a file that is missing or empty; of two that make one at once, the first does."""
        with closing(sqlite3.connect(self.file, timeout=PATIENCE, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")

    def _back_up(self) -> None:
        """Copy the file, which is sound now; where there is no room for a copy, the earlier one stays."""
        new = self.file.with_name(f"{BACKUP}.{os.getpid()}-{threading.get_ident()}")
        try:
            with self._connection() as connection:
                connection.execute("VACUUM INTO ?", (str(new),))
            new.replace(self.file.with_name(BACKUP))
        except (sqlite3.Error, OSError):
            with suppress(OSError):
                new.unlink(missing_ok=True)


def _add_later(connection: sqlite3.Connection) -> None:
    for statement in _LATER:
        try:
            connection.execute(statement.format(""))
        except sqlite3.OperationalError as error:
            if primary(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
                raise
            connection.execute(statement.format("TEMPORARY "))


#: Of two verdicts on one place the first stays when entries are merged.
_STRONGER = (words.YES, words.UNSURE, words.NO)

#: Entries with numbers of tokens; a condition or GROUP BY follows.
COUNTED = """
SELECT entry.*, coalesce(sum(verdict = 'yes' AND sound IS NULL), 0) AS yes,
    coalesce(sum(verdict = 'no' AND sound IS NULL), 0) AS no,
    coalesce(sum(verdict = 'unsure' AND sound IS NULL), 0) AS unsure,
    count(sound) AS sounds, coalesce(sum(example), 0) AS examples
FROM entry LEFT JOIN token USING (entry_id)
"""


#: Tokens with what their documents held; a condition follows.
TOKENS = "SELECT token.*, content FROM token LEFT JOIN content USING (doc_id, channel, at)"
#: Likewise.
_CORRECTIONS = "SELECT correction.*, content FROM correction LEFT JOIN content USING (doc_id, channel, at)"


def entry(row: sqlite3.Row) -> Entry:
    """An entry from a row of COUNTED."""
    return Entry(**{**dict(row), "variants": tuple(json.loads(row["variants"]))})


def entry_in(connection: sqlite3.Connection, entry_id: int) -> Entry:
    """An entry by its id.

    Raises:
        UserError: there is none.
    """
    row = connection.execute(f"{COUNTED} WHERE entry_id = ? GROUP BY entry_id", (entry_id,)).fetchone()
    if row is None:
        raise codes.NO_SUCH_ENTRY(entry_id=entry_id)
    return entry(row)


def token(row: Row) -> Token:
    """A token from its row."""
    kept = {name: value for name, value in row.items() if name not in Place._fields}
    return Token(**{**kept, "place": place_of(row), "example": bool(row["example"])})


def corrections(connection: sqlite3.Connection, place: Place | None = None) -> list[Correction]:
    """Corrections in the order of their places: those that overlap a place, or all."""
    order = "ORDER BY doc_id, channel, start, correction_id"
    if place is None:
        cursor = connection.execute(f"{_CORRECTIONS} {order}")
    else:
        values = place.doc_id, place.channel, place.end, place.start
        where = 'WHERE doc_id = ? AND channel = ? AND start < ? AND "end" > ?'
        cursor = connection.execute(f"{_CORRECTIONS} {where} {order}", values)
    return [
        Correction(**{name: row[name] for name in row.keys() if name not in Place._fields}, place=place_of(dict(row)))  # noqa: SIM118
        for row in cursor
    ]


def aside(connection: sqlite3.Connection) -> set[str]:
    """Keys of what was set aside."""
    return {row["key"] for row in connection.execute("SELECT key FROM aside")}


def place_of(row: Row) -> Place:
    """The place of a token's or a correction's row."""
    return Place(**{name: row[name] for name in Place._fields if name in row})


def demand(edit: Edit, table: str, number: int) -> Row:
    """A row of a table.

    Raises:
        UserError: there is none.
    """
    row = edit.row(table, number)
    if row is None:
        ids: dict[str, Any] = {f"{table}_id": number}
        raise _MISSING[table](**ids)
    return row


_MISSING = {
    "entry": codes.NO_SUCH_ENTRY,
    "token": codes.NO_SUCH_TOKEN,
    "correction": families.UNKNOWN_NAME.saying(
        "the glossary has no correction {correction_id}", "somebody may have replaced it or taken it back: look again"
    ),
}


#: Columns of texts of an entry and of a token.
ENTRY_TEXTS = ("form", "gloss", "speaker", "note")
TEXTS = ("variant", "speaker", "note")

#: Checks of fields, by the field's name and its value.
_Checks = Mapping[str, Callable[[str, object], object]]
_OF_ENTRY: _Checks = {
    "form": partial(words.line, empty=False),
    "gloss": words.line,
    "variants": lambda field, value: _json(words.names(field, value)),
    "speaker": words.line,
    "note": words.lines,
}


def entry_row(fields: Mapping[str, object]) -> Row:
    """Columns of an entry from its fields.

    Raises:
        UserError: there is no such field, or a text is not possible.
    """
    return _checked("an entry", fields, _OF_ENTRY)


def insert_entry(edit: Edit, row: Row) -> int:
    """Write a new entry, whose other texts are empty; gives its id.

    Raises:
        UserError: there is one with this form.
    """
    try:
        return edit.insert("entry", {**dict.fromkeys(ENTRY_TEXTS, ""), "variants": "[]", **row})
    except sqlite3.IntegrityError:
        raise codes.ENTRY_EXISTS(form=row["form"]) from None


def update_entry(edit: Edit, entry_id: int, row: Row) -> None:
    """Change columns of an entry.

    Raises:
        UserError: there is another with this form.
    """
    try:
        edit.update("entry", entry_id, **row)
    except sqlite3.IntegrityError:
        raise codes.ENTRY_EXISTS(form=row["form"]) from None


def merge(edit: Edit, entry_id: int, other_id: int) -> None:
    """Move what another entry has to an entry, and remove the other.

    Raises:
        UserError: there is no such entry.
    """
    first, other = demand(edit, "entry", entry_id), demand(edit, "entry", other_id)
    places = placed(edit.tokens(entry_id))
    for row in edit.tokens(other_id):
        row["variant"] = row["variant"] or other["form"]
        same = places.same(place_of(row))
        if same is None:
            edit.update("token", row["token_id"], entry_id=entry_id, variant=row["variant"])
            places.add(place_of(row), row)
            continue
        edit.delete("token", row["token_id"])
        if _STRONGER.index(row["verdict"]) < _STRONGER.index(same["verdict"]):
            kept = {name: value for name, value in row.items() if name not in ("token_id", "entry_id")}
            edit.update("token", same["token_id"], **kept)
            places.remove(place_of(same), same)
            places.add(place_of(row), {**same, **kept})
    edit.delete("entry", other_id)
    forms = dict.fromkeys([*json.loads(first["variants"]), other["form"], *json.loads(other["variants"])])
    forms.pop(first["form"], None)
    texts = {name: _joined(first[name], other[name], "; ") for name in ("gloss", "speaker")}
    texts["note"] = _joined(first["note"], other["note"], "\n")
    edit.update("entry", entry_id, variants=_json(forms), **texts)


_OF_TOKEN: _Checks = {
    "verdict": lambda _, value: words.verdict(value),
    "example": lambda _, value: int(bool(value)),
    "place": lambda _, value: words.place(value),  # type: ignore[arg-type]
    **dict.fromkeys(("variant", "speaker"), words.line),
    "note": words.lines,
}


def token_row(fields: Mapping[str, object]) -> Row:
    """Columns of a token from its fields.

    Raises:
        UserError: there is no such field, or a value is not possible.
    """
    row = _checked("a token", fields, _OF_TOKEN)
    place = row.pop("place", None)
    return {**row, **(place._asdict() if place else {})}


def put_token(edit: Edit, entry_id: int, place: Place, row: Row, example: bool | None, old: Row | None) -> int:
    """Write a judgement of a place, over the token that is there; gives the token's id.

    Args:
        edit: the change.
        entry_id: of an entry that there is.
        place: where.
        row: verdict, score and texts, and maybe person and time; empty texts leave those that are there.
        example: None: where the verdict is `yes`, unless a `yes` before was no example.
        old: the token that is there (`overlapping`).

    Raises:
        UserError: there is no such sound, or the score is no finite number.
    """
    row = {**row, "score": score_of(row["score"])}
    if example is None:
        example = bool(old["example"]) if old is not None and old["verdict"] == words.YES else True
    by = {"person": edit.person, "at": edit.at}
    new = {**by, **row, "example": int(example and row["verdict"] == words.YES), **place._asdict()}
    try:
        if old is None:
            return edit.insert("token", {"entry_id": entry_id, **new})
        empty = {name for name in ("score", "variant", "speaker", "note") if new[name] in (None, "")}
        edit.update("token", old["token_id"], **{name: value for name, value in new.items() if name not in empty})
    except sqlite3.IntegrityError:
        raise codes.NO_SUCH_SOUND(sound=place.sound) from None
    return int(old["token_id"])


def change_token(edit: Edit, old: Row, row: Row) -> None:
    """Change columns of a token; its examples are those that are a `yes`.

    Raises:
        UserError: there is no such sound.
    """
    new = {**old, **row}
    if new["verdict"] != words.YES:
        new["example"] = 0
    elif "example" not in row and old["verdict"] != words.YES:
        new["example"] = 1
    if new == old:
        return
    try:
        edit.update("token", old["token_id"], **{**new, "person": edit.person, "at": edit.at})
    except sqlite3.IntegrityError:
        raise codes.NO_SUCH_SOUND(sound=new["sound"]) from None


def same_corrections(edit: Edit, place: Place) -> list[Correction]:
    """The corrections that are of one stretch with a place (`is_same`)."""
    return [old for old in corrections(edit.connection, place) if words.is_same(words.overlap(old.place, place))]


def put_correction(edit: Edit, place: Place, row: Row) -> int:
    """Write a corrected text, instead of those that are there; gives the correction's id.

    Args:
        edit: the change.
        place: in a document.
        row: text, and maybe person and time.
    """
    same = same_corrections(edit, place)
    for old in same:
        if (old.place, old.text) == (place, row["text"]):
            return old.correction_id
    for old in same:
        edit.delete("correction", old.correction_id)
    fields = {name: value for name, value in place._asdict().items() if name != "sound"}
    return edit.insert("correction", {"person": edit.person, "at": edit.at, **row, **fields})


def keep_content(edit: Edit, place: Place, content: str | None) -> None:
    """Write down what a document holds while it is judged."""
    if content is not None and place.doc_id is not None:
        insert_contents(edit, [{"doc_id": place.doc_id, "channel": place.channel, "at": edit.at, "content": content}])


def insert_contents(edit: Edit, contents: Iterable[Row]) -> None:
    """Write down what documents held at times."""
    edit.connection.executemany("INSERT OR REPLACE INTO content VALUES (:doc_id, :channel, :at, :content)", contents)


def score_of(value: object) -> float | None:
    """A score, or none.

    Raises:
        UserError: it is no finite number.
    """
    if value is None:
        return None
    try:
        if isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise families.INVALID_VALUE.of(UserError)("{score!r} is no score", "give a number, or none", score=value)


def placed(tokens: Iterable[Row]) -> Places[Row]:
    """Tokens' rows by their places."""
    places = Places[Row]()
    for row in tokens:
        places.add(place_of(row), row)
    return places


def overlapping(edit: Edit, entry_id: int, place: Place) -> Row | None:
    """The token's row of an entry that is at a place (`Places.same`); None: none is."""
    overlapping_rows = edit.connection.execute(
        'SELECT * FROM token WHERE entry_id = ? AND doc_id IS ? AND sound IS ? AND channel = ? AND start < ? AND "end" > ? '
        "ORDER BY token_id",
        (entry_id, place.doc_id, place.sound, place.channel, place.end, place.start),
    )
    return placed(map(dict, overlapping_rows)).same(place)


def _checked(kind: str, fields: Mapping[str, object], checks: _Checks) -> Row:
    for field in fields:
        if field not in checks:
            raise families.UNKNOWN_NAME(
                "{kind} has no field {field!r}",
                "its fields are: {fields}",
                kind=kind,
                field=field,
                fields=", ".join(checks),
            )
    return {field: checks[field](field, value) for field, value in fields.items()}


def _joined(text: str, other: str, between: str) -> str:
    return text if other in ("", text) else f"{text}{between}{other}" if text else other


def _json(texts: Iterable[str]) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
