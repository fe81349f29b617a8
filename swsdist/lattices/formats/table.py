"""Tables of annotations, CSV: a row each, with the columns `start`, `end` (s) and `text`, maybe `tier` and `speaker`.

    start,end,text,tier,speaker
    0.4,0.9,mbote,words,Anna

They are known by the ending .csv or .tsv and these columns. Tables with `doc_id` are of many recordings, and no annotations. A
row without a text is none; without a tier it is in the tier `text`.
"""

from __future__ import annotations

import re
from functools import partial

import pyarrow as pa

from swsdist.io.fields import time
from swsdist.io.tables import NOBODY, rows_of
from swsdist.lattices.lattice import Lattices, LeftOut, Origin, Word
from swsdist.lattices.words import Annotation, Annotations, key_of, transcribed, words_of_tiers

_COLUMNS = pa.schema(
    [
        *(pa.field(name, pa.float64(), False) for name in ("start", "end")),
        pa.field("text", pa.string(), False),
        *(pa.field(name, pa.string()) for name in ("tier", "speaker")),
    ]
)
_ENDINGS = tuple(f"{ending}{packing}" for ending in (".csv", ".tsv") for packing in ("", ".gz", ".xz"))


def read(origin: Origin) -> Lattices:
    """The transcript of a table; see the module.

    Raises:
        UserError: there is no such file.
    """
    return transcribed(key_of(origin.path), partial(_words, origin))


def detect(name: str, head: bytes) -> bool:
    """Whether it is called a table, and its first line has the columns."""
    lines = head.decode("utf-8-sig", "replace").splitlines()
    header = next((line for line in lines if not re.match('"?sep=', line, re.IGNORECASE)), "")
    names = {name.strip('"') for name in re.split("[,;\t]", header)}
    return name.lower().endswith(_ENDINGS) and {"start", "end", "text"} <= names and "doc_id" not in names


def annotated(origin: Origin, left_out: LeftOut) -> list[Annotations]:
    """The annotations, tier by tier, in order of time.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or rows have other numbers of cells than the first line.
    """
    tiers: dict[tuple[str, str], list[Annotation]] = {}
    for where, row in rows_of(origin.path, _COLUMNS, origin.storage):
        with left_out:
            cells = {name: (value or "").strip() for name, value in row.items()}
            start, end = (time(cells[name], name, where) for name in ("start", "end"))
            annotation = Annotation(start, end, cells["text"], where).checked()
            speaker = cells["speaker"] if cells["speaker"].lower() not in NOBODY else ""
            if annotation.text:
                tiers.setdefault((cells["tier"] or "text", speaker), []).append(annotation)
    return [Annotations(name, True, sorted(rows), speaker) for (name, speaker), rows in tiers.items()]


def _words(origin: Origin, left_out: LeftOut) -> list[Word]:
    return words_of_tiers(annotated(origin, left_out), origin.tiers, origin.path)
