"""Splits and folds: a line `DOC ONSET OFFSET` an interval; an empty line parts two folds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swsdist.core.codes import discovery as codes
from swsdist.discovery.formats.rows import Row, demand_fields, rows, stretches
from swsdist.discovery.units import Intervals

_FORM = "DOC ONSET OFFSET"


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
        raise codes.NO_ROWS(where=path, what="interval", form=_FORM)
    return tuple(_fold(fold, documents, path) for fold in folds if fold)


def _fold(fold: list[Row], documents: dict[str, int], path: str) -> Intervals:
    demand_fields(fold, 3, _FORM, path)
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
        raise codes.NO_ROWS(where=path, what="interval", form=_FORM)
    return _fold(lines, documents, path)
