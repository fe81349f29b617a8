"""Changes of a glossary: rows are written so that each change knows them before and after, and can be taken back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from swsdist.core.codes import glossary as codes
from swsdist.glossary.words import Change

Row = dict[str, Any]

#: Of rows that changes hold: the table's name in a change, and the column of its ids.
_TABLES = {
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
        _, key = _TABLES[table]
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
        _, key = _TABLES[table]
        columns = ", ".join(f"{name} = ?" for name in values)
        self.connection.execute(f"UPDATE {table} SET {columns} WHERE {key} = ?", (*values.values(), number))

    def delete(self, table: str, number: int) -> None:
        """Remove a row."""
        self._keep(table, number)
        _, key = _TABLES[table]
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
                    rows.setdefault(_TABLES[table][0], {})[str(number)] = row
        if not before and not after:
            return None
        values = (self.at, self.person, self._kind, entry_id, _json(before), _json(after), undoes)
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


def _json(rows: dict[str, Row]) -> str | None:
    return json.dumps(rows, ensure_ascii=False) if rows else None


def _rows(side: dict[str, Any] | None) -> dict[tuple[str, int], Row]:
    """The rows of a side of a change, entries first."""
    return {
        (table, int(number)): row
        for table, (name, _) in _TABLES.items()
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
            altered[row["change_id"]] = _json(left[0]), _json(left[1])
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
