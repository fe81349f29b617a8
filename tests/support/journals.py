"""The journals of a run as they were written."""

from __future__ import annotations

import json
from typing import Any

from swsdist.accounts.records import records
from swsdist.io.filesystem import Folder


def read_journals(folder: Folder) -> list[list[dict[str, Any]]]:
    """All journals of a run, each as its lines; a last line that was cut off is left out."""
    tables = (table.drop_columns(["journal", "host", "pid", "role"]) for table in records(folder))
    return [[_line(row) for row in table.to_pylist()] for table in tables]


def _line(row: dict[str, Any]) -> dict[str, Any]:
    more = row.pop("more")
    values = {name: value for name, value in row.items() if value is not None}
    return {**values, **(json.loads(more) if more else {})}
