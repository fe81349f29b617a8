"""Entries, tokens and changes in memory, as the project folder of `swsdist serve` gives them."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]


class Missing(LookupError):
    """There is no such entry or token."""


class Project:
    """The rows, and what changed: each change keeps all rows from before, so that it can be undone."""

    def __init__(self) -> None:
        self.entries: dict[int, Row] = {}
        self.tokens: dict[int, Row] = {}
        self.changes: list[Row] = []
        self.before: list[tuple[Any, Any]] = []
        self.next_id = 1

    def begin(self, person: str, kind: str, entry_id: int | None) -> None:
        """Note that somebody changes something now."""
        self.before.append((copy.deepcopy(self.entries), copy.deepcopy(self.tokens)))
        number = len(self.changes) + 1
        change = {
            "change_id": number,
            "at": now(),
            "person": person,
            "kind": kind,
            "entry_id": entry_id,
            "undoes": None,
        }
        self.changes.append({**change, "before": None, "after": None})

    def new_id(self) -> int:
        """A number that nothing has."""
        self.next_id += 1
        return self.next_id - 1

    def entry(self, entry_id: int) -> Row:
        """An entry with its counts."""
        if entry_id not in self.entries:
            raise Missing
        tokens = self.of(entry_id)
        counts = {name: sum(token["verdict"] == name for token in tokens) for name in ("yes", "no", "unsure")}
        return {**self.entries[entry_id], **counts, "examples": sum(token["example"] for token in tokens)}

    def of(self, entry_id: int) -> list[Row]:
        """Tokens of an entry."""
        return [token for token in self.tokens.values() if token["entry_id"] == entry_id]

    def add(self, person: str, fields: Row) -> Row:
        """A new entry."""
        entry_id = self.new_id()
        self.begin(person, "add-entry", entry_id)
        empty = {"form": "", "gloss": "", "variants": [], "speaker": "", "note": ""}
        self.entries[entry_id] = {"entry_id": entry_id, **empty, **fields}
        return self.entry(entry_id)

    def judge(self, person: str, entry_id: int, fields: Row) -> Row:
        """A new token, or the one at the same place changed."""
        self.entry(entry_id)
        self.begin(person, "judge", entry_id)
        same = [token for token in self.of(entry_id) if overlap(token["place"], fields["place"])]
        token_id = same[0]["token_id"] if same else self.new_id()
        empty = {"score": None, "variant": "", "speaker": "", "note": "", "example": fields["verdict"] == "yes"}
        known = same[0] if same else {"token_id": token_id, "entry_id": entry_id, **empty}
        self.tokens[token_id] = {**known, **fields, "person": person, "at": now()}
        return self.tokens[token_id]

    def undo(self, person: str) -> Row | None:
        """Take this person's last change back."""
        undone = {change["undoes"] for change in self.changes}
        own = [
            c for c in self.changes if c["person"] == person and c["undoes"] is None and c["change_id"] not in undone
        ]
        if not own:
            return None
        last = own[-1]
        entries, tokens = self.before[last["change_id"] - 1]
        self.begin(person, last["kind"], last["entry_id"])
        self.entries, self.tokens = copy.deepcopy(entries), copy.deepcopy(tokens)
        self.changes[-1]["undoes"] = last["change_id"]
        return self.changes[-1]


def overlap(one: Row, other: Row) -> bool:
    """Whether two places overlap by more than half of the shorter."""
    if (one["doc_id"], one.get("sound")) != (other["doc_id"], other.get("sound")):
        return False
    shared = min(one["end"], other["end"]) - max(one["start"], other["start"])
    return bool(shared > 0.5 * min(one["end"] - one["start"], other["end"] - other["start"]))


def now() -> str:
    """The time, ISO, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
