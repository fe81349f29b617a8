"""Lists: pairs of fragments and parses, output of systems that do only a part of the task; splits and folds; talkers.

- A pair a line: `DOC ONSET OFFSET DOC ONSET OFFSET`, with anything behind, such as a score. It is a class of two.
- A fragment of a parse a line: `DOC ONSET OFFSET`, with anything behind, such as a class. It is a class of one.
- An interval of a split or fold a line: `DOC ONSET OFFSET`; an empty line parts two folds.
- The talker of a document a line: `DOC TALKER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from swsdist.core.codes import discovery as codes
from swsdist.discovery.formats.classes import Row, demand_fields, joined, rows, stretches
from swsdist.discovery.units import Fragments, Intervals

_FORMS = {"pairs": "DOC ONSET OFFSET DOC ONSET OFFSET", "parse": "DOC ONSET OFFSET"}


def read_list(
    path: str,
    kind: Literal["pairs", "parse"],
    documents: dict[str, int],
    storage: Mapping[str, object] | None = None,
) -> Fragments:
    """The fragments of a list, each line a class of its own; empty lines are ignored.

    Args:
        path: plain or packed, local or `s3://`.
        kind: what a line is.
        documents: numbers by name; new ones are added.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file.
        DataError: a line has another form; with the line.
    """
    form = _FORMS[kind]
    columns = range(0, len(form.split()), 3)
    parts, lines = [], 0
    groups = [np.zeros(0, np.int64)]
    for chunk in rows(path, storage):
        chunk = [(number, fields) for number, fields in chunk if fields]
        for number, fields in chunk:
            if len(fields) < len(form.split()):
                wanted = f"{len(form.split())} or more"
                raise codes.WRONG_ROW(where=f"{path}, line {number}", fields=len(fields), expected=wanted, form=form)
        for column in columns:
            parts.append(stretches(chunk, documents, path, column=column))
            groups.append(lines + np.arange(len(chunk)))
        lines += len(chunk)
    fragments = joined(parts)
    names = tuple(str(k) for k in range(lines))
    return Fragments(fragments.document, fragments.onset, fragments.offset, np.concatenate(groups), names)


def read_folds(
    path: str, documents: dict[str, int], storage: Mapping[str, object] | None = None
) -> tuple[Intervals, ...]:
    """The folds of a file, in its order, each sorted by document and time.

    Args:
        path: plain or packed, local or `s3://`.
        documents: numbers by name; new ones are added.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file.
        DataError: it is empty, a line has another form, or two intervals of a fold overlap.
    """
    folds: list[list[Row]] = [[]]
    for chunk in rows(path, storage):
        for number, fields in chunk:
            if fields:
                folds[-1].append((number, fields))
            elif folds[-1]:
                folds.append([])
    if not folds[0]:
        raise codes.NO_ROWS(where=path, what="interval", form=_FORMS["parse"])
    return tuple(_fold(fold, documents, path) for fold in folds if fold)


def _fold(fold: list[Row], documents: dict[str, int], path: str) -> Intervals:
    demand_fields(fold, 3, _FORMS["parse"], path)
    intervals = stretches(fold, documents, path)
    order = np.lexsort((intervals.onset, intervals.document))
    intervals = intervals.take(order)
    same = intervals.document[1:] == intervals.document[:-1]
    wrong = same & (intervals.onset[1:] < intervals.offset[:-1])
    if wrong.any():
        number, fields = fold[order[int(np.argmax(wrong)) + 1]]
        raise codes.OVERLAPPING_INTERVALS(where=f"{path}, line {number}", document=fields[0])
    return intervals


def read_split(path: str, documents: dict[str, int], storage: Mapping[str, object] | None = None) -> Intervals:
    """The stretches of speech of a file; empty lines part nothing. Arguments and errors as in `read_folds`."""
    lines = [row for chunk in rows(path, storage) for row in chunk if row[1]]
    if not lines:
        raise codes.NO_ROWS(where=path, what="interval", form=_FORMS["parse"])
    return _fold(lines, documents, path)


def read_talkers(path: str, storage: Mapping[str, object] | None = None) -> dict[str, str]:
    """The talker of each document by name; empty lines are ignored.

    Raises:
        UserError: there is no such file.
        DataError: a line has not two fields, or a document comes twice.
    """
    talkers: dict[str, str] = {}
    for chunk in rows(path, storage):
        chunk = [row for row in chunk if row[1]]
        demand_fields(chunk, 2, "DOC TALKER", path)
        for number, (document, talker) in chunk:
            if document in talkers:
                raise codes.DUPLICATE_TALKER(where=f"{path}, line {number}", document=document)
            talkers[document] = talker
    return talkers
