"""Errors for rows of a table with unknown names: one for all rows of a kind, with their number and the first lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swsdist.core.codes import io as codes
from swsdist.core.errors import TableError
from swsdist.io.notices import sample
from swsdist.io.tables import place

#: Rows shown in a message.
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
    """The error for rows of a table with unknown names.

    Args:
        what: kind of name, for example `query`.
        names: as shown in messages, one per row.
        rows: from 0; at least one.
        path: of the table.
        there: the existing names.
        storage: options for s3fs.
        remedy: advice.
    """
    others = ""
    if len(rows) > 1:
        lines = (place(path, row, storage).removeprefix(f"{path}, ") for row in rows[:_SHOWN])
        shown = ", ".join(f"{name} ({line})" for name, line in zip(names, lines, strict=False))
        others = f", nor what {len(rows) - 1} other rows name: {shown}{', ...' if len(rows) > _SHOWN else ''}"
    return codes.UNKNOWN_TABLE_NAME(
        where=place(path, rows[0], storage), what=what, name=names[0], others=others, advice=remedy, known=sample(there)
    )
