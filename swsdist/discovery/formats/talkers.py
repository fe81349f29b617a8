"""Talkers: a line `DOC TALKER` a document."""

from __future__ import annotations

from collections.abc import Mapping

from swsdist.core.codes import discovery as codes
from swsdist.discovery.formats.rows import demand_fields, rows


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
