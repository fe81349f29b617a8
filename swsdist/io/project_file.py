"""The SQLite file of a glossary's project folder: how it is recognised, opened, and what its errors mean.

`swsdist.glossary` writes it. Its views `judgements`, `references` and `queries` are tables for whoever reads tables.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from swsdist.core.codes import families, storage
from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError

#: In the project folder.
NAME = "project.sqlite"
#: A copy as of the last opening, beside it.
BACKUP = "project.backup.sqlite"

#: `PRAGMA application_id`: "swsg".
APPLICATION = 0x73777367
#: `PRAGMA user_version`.
SCHEMA_VERSION = 1

#: How long to wait for another's writing, s.
PATIENCE = 20.0

_HEAD = b"SQLite format 3\0"


def project_file(path: str | Path) -> Path | None:
    """The file of a project, if the path is a project's folder or such a file."""
    name = os.path.join(path, NAME) if os.path.isdir(path) else os.fspath(path)  # noqa: PTH112, PTH118
    if not os.path.isfile(name):  # noqa: PTH113 - a pipe would block, and a path may be a url or hold a zero byte
        return None
    file = Path(name)
    try:
        with file.open("rb") as opened:
            return file if opened.read(len(_HEAD)) == _HEAD or file.name == NAME else None
    except OSError:
        return None


def words_beside(archive: str | Path) -> Path:
    """The folder of words of an archive, beside it: recordings NAME, the run NAME-swsdist that is made of them and its store
    share NAME-words; a run that already has words of its own name keeps them.
    """
    here = Path(archive).resolve()
    here = here.parent if here.name == "store" else here
    own = here.with_name(f"{here.name}-words")
    return own if project_file(own) is not None else here.with_name(f"{here.name.removesuffix('-swsdist')}-words")


def connect(file: Path, *, write: bool) -> sqlite3.Connection:
    """A connection to an existing file, in autocommit mode, for any thread, one at a time.

    A file that cannot be written, such as on a disc, is read without its helper files.
    """
    address = file.absolute().as_uri()
    alone = not Path(f"{file}-wal").exists()
    try:
        connection = _connect(f"{address}?mode={'rw' if write else 'ro'}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if not alone or primary(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise
        connection = _connect(f"{address}?immutable=1")
    return connection


def _connect(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    return connection


def demand_known(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a file of another program, or of a newer version.

    Raises:
        UserError: it is one.
    """
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise families.WRONG_KIND(
            "this SQLite file is no glossary of swsdist", "name the folder of a glossary, or a new one", where=where
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise families.MISMATCH(
            "the glossary has version {version}, and this swsdist reads up to {known}",
            "install the swsdist that wrote it, or a newer one; nothing was changed",
            where=where,
            version=version,
            known=SCHEMA_VERSION,
        )


def read_view(file: Path, view: str) -> list[dict[str, Any]]:
    """The rows of a view: `judgements`, `references` or `queries`.

    Raises:
        UserError: the file is another program's, or of a newer version.
        DataError: it is damaged.
        StorageError: it cannot be read.
    """
    with sqlite_errors(file), closing(connect(file, write=False)) as connection:
        demand_known(connection, str(file))
        return [dict(row) for row in connection.execute(f'SELECT * FROM "{view}"')]


def primary(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0: an error without one."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


@contextmanager
def sqlite_errors(file: Path) -> Iterator[None]:
    """Raise SQLite's errors as those of a glossary.

    Raises:
        DataError: the file is damaged.
        StorageError: the disk is full, or the file cannot be read or written.
    """
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.Error as error:
        raise _explained(error, file) from error


def _explained(error: sqlite3.Error, file: Path) -> SwsdistError:
    where, code = str(file), primary(error)
    if code == sqlite3.SQLITE_FULL:
        return codes.PROJECT_FULL(where=where)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return codes.DAMAGED_PROJECT(where=where, error=error, backup=BACKUP, name=file.name)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return families.GLOSSARY_NOT_SAVED(
            "the glossary cannot be written: the change was not saved",
            "check the permissions of the folder and its files (ls -l), and whether the disk is mounted for writing",
            where=where,
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return families.GLOSSARY_NOT_SAVED(
            "another program has been writing to the glossary for {seconds} s: the change was not saved",
            "end that program, or do it again",
            where=where,
            seconds=round(PATIENCE),
        )
    if code == sqlite3.SQLITE_CANTOPEN and not file.exists():
        return storage.MISSING_FILE(where=where, detail="")
    return families.GLOSSARY_NOT_SAVED(
        "the glossary cannot be read or written ({error}): a change was not saved",
        "check the disk and the permissions of the folder",
        where=where,
        error=error,
    )
