"""Rows of a table that name what is not there: all of a kind in one error, with their number, the first few, their lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swsdist.core.codes import io as codes
from swsdist.core.errors import TableError
from swsdist.io.notices import sample
from swsdist.io.tables import place

#: Rows that are shown.
_SHOWN = 3


def unknown_names(
    what: str,
    names: Sequence[str],
    rows: Sequence[int],
    path: str,
    there: Iterable[object],
    storage: Mapping[str, object] | None,
    remedy: str,
) -> TableError:
    """The error for rows of a table whose names nothing has.

    Args:
        what: they name: `query`, say.
        names: as messages show them, one a row.
        rows: from 0; one at least.
        path: of the table.
        there: the names that there are.
        storage: options for s3fs.
        remedy: what helps.
    """
    others = ""
    if len(rows) > 1:
        lines = (place(path, row, storage).removeprefix(f"{path}, ") for row in rows[:_SHOWN])
        shown = ", ".join(f"{name} ({line})" for name, line in zip(names, lines, strict=False))
        others = f", nor what {len(rows) - 1} other rows name: {shown}{', ...' if len(rows) > _SHOWN else ''}"
    return codes.UNKNOWN_TABLE_NAME(
        where=place(path, rows[0], storage), what=what, name=names[0], others=others, advice=remedy, known=sample(there)
    )
