"""Class files of the ZeroSpeech challenges: `Class NAME [TEXT]`, a line `DOC ONSET OFFSET` for each fragment, an empty line.

The empty line is not needed at the end, nor before the next class. A class may have no fragment. tdev2 wants the last line to
be empty, and tde v1 numbers as names: `write_classes` writes the first, and keeps the names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from swsdist.core.codes import discovery as codes
from swsdist.discovery.formats.rows import Row, demand_fields, joined, rows, stretches
from swsdist.discovery.units import TICKS, Fragments

_CLASS = "Class"
_FORM = "DOC ONSET OFFSET"


def read_classes(
    path: str,
    documents: dict[str, int],
    storage: Mapping[str, object] | None = None,
    *,
    instants: bool = False,
) -> Fragments:
    """The classes of a file.

    Args:
        path: plain or packed, local or `s3://`.
        documents: numbers by name; new ones are added.
        storage: options for s3fs.
        instants: whether a fragment may have no length.

    Raises:
        UserError: there is no such file.
        DataError: a line has another form, or a class comes twice; with the line.
    """
    names: dict[str, int] = {}
    parts, groups = [], []
    opened = False
    for chunk in rows(path, storage):
        members: list[Row] = []
        group: list[int] = []
        for number, fields in chunk:
            if not fields:
                opened = False
            elif fields[0] == _CLASS:
                _add(names, fields, f"{path}, line {number}")
                opened = True
            elif not opened:
                raise codes.FRAGMENT_WITHOUT_CLASS(where=f"{path}, line {number}")
            else:
                members.append((number, fields))
                group.append(len(names) - 1)
        demand_fields(members, 3, _FORM, path)
        parts.append(stretches(members, documents, path, instants=instants))
        groups.append(np.array(group, np.int64))
    fragments = joined(parts)
    group_of = np.concatenate([np.zeros(0, np.int64), *groups])
    return Fragments(fragments.document, fragments.onset, fragments.offset, group_of, tuple(names))


def _add(names: dict[str, int], fields: Sequence[str], where: str) -> None:
    if len(fields) == 1:
        raise codes.CLASS_WITHOUT_NAME(where=where)
    if fields[1] in names:
        raise codes.DUPLICATE_CLASS(where=where, name=fields[1])
    names[fields[1]] = len(names)


def write_classes(classes: Fragments, documents: Sequence[str], out: Path) -> None:
    """Write classes so that `read_classes`, and tdev2, read them back to the same values.

    Args:
        classes: fragments in any order; those of a class keep theirs.
        documents: names by number.
        out: local file.

    Raises:
        UserError: a name is empty or holds a blank.
    """
    for name in (*classes.names, *documents):
        if len(name.split()) != 1:
            raise codes.UNWRITABLE_CLASS(name=name)
    order = np.argsort(classes.group, kind="stable")
    ends = np.cumsum(np.bincount(classes.group, minlength=len(classes.names)))
    with out.open("w", encoding="utf-8", newline="\n") as file:
        begin = 0
        for name, end in zip(classes.names, ends.tolist(), strict=True):
            file.write(f"{_CLASS} {name}\n")
            for k in order[begin:end].tolist():
                times = (_seconds(int(array[k])) for array in (classes.onset, classes.offset))
                file.write(f"{documents[classes.document[k]]} {' '.join(times)}\n")
            file.write("\n")
            begin = end


def _seconds(ticks: int) -> str:
    """Ticks as an exact decimal."""
    seconds, rest = divmod(ticks, TICKS)
    return f"{seconds}.{rest:06d}".rstrip("0").rstrip(".")
