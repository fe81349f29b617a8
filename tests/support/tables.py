"""Tables of a test's corpus, as rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def read_rows(path: Path) -> list[dict[str, str]]:
    """All rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> str:
    """Write rows, of which some may lack columns of others; the path as text."""
    table = list(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in table for name in row)), restval="")
        writer.writeheader()
        writer.writerows(table)
    return str(path)
