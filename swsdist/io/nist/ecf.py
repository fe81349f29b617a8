"""ECF, the experiment control file of the NIST programs: the stretches of recordings to be searched.

Both dialects are read: of STDEval 0.7 (`language` on every excerpt) and of KWSEval (F4DE 3.5: `language` on the `ecf`
element only). Each program refuses the other's file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import quoteattr

import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import DataError
from swsdist.core.types import EXCERPTS
from swsdist.io.compressed import short
from swsdist.io.nist.xml import Element, Fields, elements, note_channels
from swsdist.io.notices import Notices


def read_ecf(path: str, storage: Mapping[str, object] | None = None, *, notices: Notices | None = None) -> pa.Table:
    """The excerpts of an ECF, in the order of the file.

    Args:
        path: of either dialect, plain or packed, local or `s3://`.
        storage: options for s3fs.
        notices: collects channels that are not written as numbers.

    Returns:
        table EXCERPTS; `language` is the excerpt's, or else the file's.

    Raises:
        UserError: there is no such file.
        DataError: it is no ECF, has no excerpt, or an excerpt lacks a channel, begin, duration or source type.
    """
    rows = []
    channels: dict[str, None] = {}
    language: str | None = None
    for depth, element in _with_depth(path, storage):
        if element.attributes is None:
            continue
        if depth == 1:
            if element.name != "ecf":
                raise codes.WRONG_ROOT_ELEMENT(
                    where=f"{path}, line {element.line}",
                    element=short(element.name),
                    expected="an ECF: <ecf ...> with <excerpt .../> in it",
                )
            language = element.attributes.get("language")
        elif element.name == "excerpt":
            fields = Fields(path, element)
            channels[fields.text("channel")] = None
            rows.append(
                {
                    "file": fields.text("audio_filename"),
                    "channel": fields.channel(),
                    "start": fields.time("tbeg"),
                    "duration": fields.time("dur"),
                    "source_type": fields.text("source_type"),
                    "language": element.attributes.get("language", language),
                }
            )
    if not rows:
        raise families.EMPTY_INPUT.of(DataError)(
            "the ECF holds no excerpt", "an ECF lists what was searched: <excerpt .../>", where=path
        )
    note_channels(channels, path, notices)
    return pa.Table.from_pylist(rows, EXCERPTS)


def write_ecf(excerpts: pa.Table, out: Path, dialect: Literal["stdeval", "kwseval"] = "stdeval") -> None:
    """Write an ECF for one of the programs.

    Args:
        excerpts: table EXCERPTS; STDEval requires a language for every excerpt (`unknown` if missing).
        out: local file to write.
        dialect: the reading program.
    """
    rows = excerpts.to_pylist()
    total = sum(row["duration"] for row in rows)
    languages = sorted({row["language"] or "unknown" for row in rows})
    head = {"source_signal_duration": f"{total:.3f}", "version": "swsdist"}
    if dialect == "kwseval":
        head["language"] = "+".join(languages) or "unknown"
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"<ecf{_attributes(head)}>\n")
        for row in rows:
            values = {
                "audio_filename": row["file"],
                "channel": str(row["channel"]),
                "tbeg": repr(row["start"]),
                "dur": repr(row["duration"]),
            }
            if dialect == "stdeval":
                values["language"] = row["language"] or "unknown"
            file.write(f"<excerpt{_attributes({**values, 'source_type': row['source_type']})}/>\n")
        file.write("</ecf>\n")


def _with_depth(path: str, storage: Mapping[str, object] | None) -> Iterator[tuple[int, Element]]:
    depth = 0
    for element in elements(path, storage):
        if element.attributes is not None:
            depth += 1
            yield depth, element
        else:
            depth -= 1


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in values.items())
