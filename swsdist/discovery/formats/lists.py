"""Lists of pairs of fragments, and parses: output of systems that do only a part of the task.

- A pair a line: `DOC ONSET OFFSET DOC ONSET OFFSET`, with anything behind, such as a score. It is a class of two.
- A fragment of a parse a line: `DOC ONSET OFFSET`, with anything behind, such as a class. It is a class of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from swsdist.core.codes import discovery as codes
from swsdist.discovery.formats.rows import joined, rows, stretches
from swsdist.discovery.units import Fragments

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
