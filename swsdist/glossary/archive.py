"""A whole project as one JSON file, and back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from swsdist.core.codes import server as codes
from swsdist.core.errors import DataError, UserError
from swsdist.core.fingerprint import parse_json
from swsdist.glossary import database, words
from swsdist.glossary.database import IMPORT, UNDO, Row, keep_as_history
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place

SCHEMA = "swsdist-glossary/1"

#: What such a file begins with.
LIKE_A_PROJECT = b"{"

_CHANGE = ("change_id", "at", "person", "kind", "entry_id", "before", "after", "undoes")
_ENTRY = ("entry_id", *database.ENTRY_TEXTS, "variants")
_CORRECTION = ("correction_id", "doc_id", "channel", "start", "end", "text", "person", "at")
_TOKEN = ("token_id", "entry_id", *Place._fields, "verdict", "example", "score", *database.TEXTS, "person", "at")


class Content(NamedTuple):
    """The content of a file, checked.

    Attributes:
        entries, tokens, corrections, asides: rows.
        changes: rows; `before` and `after` are JSON.
        sounds: name and WAV by sha256.
        of_sounds: person and time by sha256.
        contents: rows of what documents held when they were judged.
    """

    entries: list[Row]
    tokens: list[Row]
    changes: list[Row]
    sounds: dict[str, tuple[str, bytes]]
    of_sounds: dict[str, tuple[str, str]]
    contents: list[Row]
    corrections: list[Row]
    asides: list[Row]

    def incoming(self) -> Iterator[tuple[Row, Place, Row, bool]]:
        """Each token: fields of its entry, its place, its own columns, and whether it is an example."""
        fields = {
            row["entry_id"]: {
                **{name: row[name] for name in database.ENTRY_TEXTS},
                "variants": json.loads(row["variants"]),
            }
            for row in self.entries
        }
        for row in self.tokens:
            columns = {name: row[name] for name in ("verdict", "score", *database.TEXTS, "person", "at")}
            yield fields[row["entry_id"]], database.place_of(row), columns, bool(row["example"])


def as_json(project: Project) -> dict[str, Any]:
    """Everything in a project: its rows, changes and sounds."""
    with project.reading() as connection:
        tables = {
            name: [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1")]
            for name, table in (
                ("entries", "entry"),
                ("tokens", "token"),
                ("changes", "change"),
                ("sounds", "sound"),
                ("contents", "content"),
                ("corrections", "correction"),
                ("asides", "aside"),
            )
        }
    for row in tables["sounds"]:
        row["data"] = base64.b64encode((project.folder / "sounds" / f"{row['sound']}.wav").read_bytes()).decode("ascii")
    for row in tables["entries"]:
        row["variants"] = json.loads(row["variants"])
    for row in tables["changes"]:
        row |= {name: json.loads(row[name]) for name in ("before", "after") if row[name] is not None}
    return {"schema": SCHEMA, **tables}


def read_archive(path: Path) -> Content:
    """The content of a file that `as_json` made.

    Raises:
        DataError: it is none, or a value in it is not possible.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        sounds, of_sounds = {}, {}
        for row in content["sounds"]:
            data = base64.b64decode(row["data"], validate=True)
            if hashlib.sha256(data).hexdigest() != row["sound"]:
                raise ValueError("a sound is damaged")
            sounds[row["sound"]] = (words.line("name", row["name"]), data)
            of_sounds[row["sound"]] = (words.line("person", row["person"]), words.line("at", row["at"]))
        entries = [_entry({**row, "variants": json.dumps(row["variants"])}) for row in content["entries"]]
        tokens = [_token(row) for row in content["tokens"]]
        changes = [_change(row) for row in content["changes"]]
        contents = [_content(row) for row in content.get("contents", ())]  # earlier files have none
        corrections = [_correction(row) for row in content.get("corrections", ())]
        asides = [_aside(row) for row in content.get("asides", ())]
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error, RecursionError) as error:
        raise codes.NOT_A_GLOSSARY_FILE(where=str(path), error=error) from None
    except (UserError, DataError) as error:
        raise codes.NOT_A_GLOSSARY_FILE(where=str(path), error=error.message) from None
    entry_ids = {row["entry_id"] for row in entries}
    if strange := [row["token_id"] for row in tokens if row["entry_id"] not in entry_ids]:
        raise codes.NOT_A_GLOSSARY_FILE(where=str(path), error=f"token {strange[0]} has no entry")
    return Content(entries, tokens, changes, sounds, of_sounds, contents, corrections, asides)


def fill(project: Project, content: Content, person: str) -> tuple[int, int, int, int]:
    """Fill an empty project, with ids, changes, persons and times as they were; gives the counts of an import.

    All is one change of the person who imports. The changes that come along are history, which nobody takes back here.
    """
    tables = (
        ("entry", "entries", content.entries),
        ("token", "tokens", content.tokens),
        ("correction", "corrections", content.corrections),
        ("aside", "asides", content.asides),
    )
    for sha256, (name, data) in content.sounds.items():
        project.add_sound(data, name=name, person=content.of_sounds[sha256][0])
    with project.editing(person, IMPORT) as edit:
        for sha256, (person, at) in content.of_sounds.items():
            edit.connection.execute("UPDATE sound SET person = ?, at = ? WHERE sound = ?", (person, at, sha256))
        columns = ", ".join(f":{name}" for name in _CHANGE)
        try:
            edit.connection.executemany(f"INSERT INTO change VALUES ({columns})", content.changes)
            for table, _, some in tables:
                for row in some:
                    edit.insert(table, row)
        except sqlite3.IntegrityError as error:
            raise codes.NOT_A_GLOSSARY_FILE(where="glossary.json", error=str(error)) from None
        keep_as_history(edit.connection)
        edit.save(None)
        database.insert_contents(edit, content.contents)
        for table, side, some in tables:
            # No id of a removed row is used again.
            ids = [
                int(number) for row in content.changes for rows_of in _sides(row) for number in rows_of.get(side, ())
            ]
            ids += [row[f"{table}_id"] for row in some]
            edit.connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            edit.connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, max(ids, default=0)))
    return len(content.tokens) + len(content.corrections), 0, 0, len(content.entries)


def _sides(change: Row) -> Iterator[dict[str, Any]]:
    yield from (json.loads(change[name]) for name in ("before", "after") if change[name] is not None)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**62:
        raise ValueError(f"{value!r} is no id")
    return value


def _entry(row: Mapping[str, Any]) -> Row:
    """An entry's row; `variants` is JSON."""
    fields = {**{name: row[name] for name in database.ENTRY_TEXTS}, "variants": json.loads(row["variants"])}
    return {"entry_id": _number(row["entry_id"]), **database.entry_row(fields)}


def _token(row: Mapping[str, Any]) -> Row:
    place = words.place({name: row[name] for name in Place._fields})
    fields = database.token_row({name: row[name] for name in ("verdict", "example", *database.TEXTS)})
    fields["score"] = database.score_of(row["score"])
    by = {name: words.line(name, row[name]) for name in ("person", "at")}
    ids = {name: _number(row[name]) for name in ("token_id", "entry_id")}
    values = {**ids, **place._asdict(), **fields, **by}
    return {name: values[name] for name in _TOKEN}


def _correction(row: Mapping[str, Any]) -> Row:
    place = words.place({name: row[name] for name in ("doc_id", "channel", "start", "end")})
    if place.doc_id is None:
        raise ValueError("a correction names no document")
    texts = {name: words.line(name, row[name]) for name in ("text", "person", "at")}
    values = {"correction_id": _number(row["correction_id"]), **place._asdict(), **texts}
    return {name: values[name] for name in _CORRECTION}


def _aside(row: Mapping[str, Any]) -> Row:
    return {"aside_id": _number(row["aside_id"]), "key": words.line("key", row["key"], empty=False)}


def _content(row: Mapping[str, Any]) -> Row:
    place = words.place({"doc_id": row["doc_id"], "channel": row["channel"], "start": 0, "end": 1})
    texts = {name: words.line(name, row[name], empty=False) for name in ("at", "content")}
    return {"doc_id": place.doc_id, "channel": place.channel, **texts}


def _change(row: Mapping[str, Any]) -> Row:
    checks: Mapping[str, Callable[[Any], Row]] = {
        "entries": _entry,
        "tokens": _token,
        "corrections": _correction,
        "asides": _aside,
    }
    result: Row = {"change_id": _number(row["change_id"])}
    result |= {name: words.line(name, row[name]) for name in ("at", "person", "kind")}
    result |= {name: None if row[name] is None else _number(row[name]) for name in ("entry_id", "undoes")}
    if (result["kind"] == UNDO) != (result["undoes"] is not None):
        raise ValueError("a change is wrong")
    for side in ("before", "after"):
        result[side] = None
        if row[side] is not None:
            rows_of = {
                name: {str(int(number)): checks[name](item) for number, item in some.items()}
                for name, some in row[side].items()
            }
            result[side] = json.dumps(rows_of, ensure_ascii=False)
    return {name: result[name] for name in _CHANGE}
