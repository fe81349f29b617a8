"""The SQLite file of a project: its schema, and connections that several threads and processes may use at once.

A commit is on the disk when it returns (WAL, `synchronous=FULL`); a transaction that fails leaves nothing.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from swsdist.core.codes import glossary as codes
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
                    problem = "it is empty or gone"
                    raise codes.DAMAGED_PROJECT(where=str(file), error=problem, backup=BACKUP, name=file.name)
                self._make()
            with self._connection() as connection:
                demand_known(connection, str(file))
                _add_later(connection)
                self._known = True
                problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if problem != "ok":
                    raise codes.DAMAGED_PROJECT(where=str(file), error=problem, backup=BACKUP, name=file.name)
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
        with sqlite_errors(self.file), self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection that alone writes; all is written at the end, or nothing after an exception."""
        with sqlite_errors(self.file), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite itself takes back what finds the disk full
                    connection.execute("ROLLBACK")
                raise

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
                raise codes.CLOSED_PROJECT(where=str(self.file))
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
