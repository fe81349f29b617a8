"""Rules of an ECF: length of the audio, documents, and which times it includes.

The two programs differ in all of them (each rule was read from the program's source, and confirmed by running it):

STDEval 0.7
    T is the sum of the durations of the excerpts whose channel is 1, each time they occur. Everything is scored, or, with
    its option -E, only what lies wholly in an excerpt. A document's name is the last part of the path without `.sph`,
    `.wav`, `.flac`; the excerpt ends at begin + duration.
KWSEval (F4DE 3.5)
    T is per file, all channels together, without overlaps: excerpts are sorted by begin, then end; each one's end is cut
    down to the least begin of a later one that starts before that end; half for `splitcts`. What lies in no excerpt is
    always left out. A document's name is the last part of the path without what follows its last dot; the excerpt ends at
    begin + duration, rounded to 4 decimals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.types import PLACED
from swsdist.score.conventions import Conventions, conventions_of
from swsdist.score.trials.align import decimals

Bools = NDArray[np.bool_]


def seconds(excerpts: pa.Table, conventions: Conventions | str) -> float:
    """T, s of counted audio.

    Args:
        excerpts: table EXCERPTS.
        conventions: whose rules.
    """
    rules = conventions_of(conventions)
    if rules.per_channel:
        total = 0.0
        for row in _rows(excerpts):
            # Sequential, as the program adds: half a second may change the rounding of N.
            total += row["duration"] if row["channel"] == 1 else 0.0
        return total
    files: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    ends = _ends(excerpts, rules)
    for row, end in zip(_rows(excerpts), ends, strict=True):
        files[rules.excerpt_document(row["file"])].append((row["start"], float(end), row["source_type"]))
    total = 0.0
    for file in sorted(files):
        total += _without_overlap(files[file])
    return total


def named_documents(excerpts: pa.Table, conventions: Conventions) -> list[str]:
    """The documents that excerpts name, each once, in their order."""
    return list(dict.fromkeys(conventions.excerpt_document(file) for file in excerpts["file"].to_pylist()))


def _without_overlap(excerpts: list[tuple[float, float, str]]) -> float:
    """Lengths of one file's excerpts without overlaps; excerpts are (begin, end, source type)."""
    ordered = sorted(excerpts, key=lambda excerpt: excerpt[:2])
    total = 0.0
    for k, (start, end, kind) in enumerate(ordered):
        # Begins ascend, so the next one is the least of the later ones.
        cut = min(end, ordered[k + 1][0]) if k + 1 < len(ordered) else end
        total += (cut - start) * (0.5 if kind == "splitcts" else 1.0)
    return total


def inside(
    table: pa.Table,
    excerpts: pa.Table,
    conventions: Conventions | str,
    *,
    last: str = "end",
    tail: NDArray[np.float64] | None = None,
) -> Bools:
    """Whether each row lies wholly in one excerpt of its document and channel: start >= tbeg and end <= its end.

    Args:
        table: doc_id, channel, start, and the column `last` (s).
        excerpts: table EXCERPTS.
        conventions: whose rules for names and ends.
        last: the column that holds the ends.
        tail: float64, the ends, instead of a column.

    Returns:
        bool (rows,).
    """
    spans: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    rules = conventions_of(conventions)
    ends = _ends(excerpts, rules)
    for row, end in zip(_rows(excerpts), ends, strict=True):
        spans[rules.excerpt_document(row["file"]), row["channel"]].append((row["start"], float(end)))
    result = np.zeros(table.num_rows, dtype=bool)
    begin, end = table["start"].to_numpy(), table[last].to_numpy() if tail is None else tail
    for key, rows in rows_by_document(table):
        for low, high in spans.get(key, ()):
            result[rows] |= (begin[rows] >= low) & (end[rows] <= high)
    return result


def rows_by_document(table: pa.Table) -> Iterable[tuple[tuple[str, int], NDArray[np.int64]]]:
    """Each document (doc_id, channel) of a table, and its rows."""
    if not table.num_rows:
        return
    names = table["doc_id"].cast(pa.dictionary(pa.int32(), pa.string())).combine_chunks()
    channel = table["channel"].to_numpy().astype(np.int64)
    code = names.indices.to_numpy().astype(np.int64) * (channel.max() + 1) + channel
    order = np.argsort(code, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        yield (names.dictionary[int(names.indices[int(rows[0])].as_py())].as_py(), int(channel[rows[0]])), rows


def _ends(excerpts: pa.Table, rules: Conventions) -> NDArray[np.float64]:
    ends: NDArray[np.float64] = pc.add(excerpts["start"], excerpts["duration"]).to_numpy()
    return ends if rules.sums_ends else decimals(ends, 4)


def excerpt_documents(excerpts: pa.Table, conventions: Conventions | str) -> pa.Table:
    """The excerpts as documents, in the columns of PLACED that `swsdist.corpora.places` reads.

    Args:
        excerpts: table EXCERPTS; one that is listed twice is one document.
        conventions: whose rules for names and ends.
    """
    rules = conventions_of(conventions)
    ends = zip(_rows(excerpts), _ends(excerpts, rules).tolist(), strict=True)
    rows = sorted({(rules.excerpt_document(row["file"]), row["channel"], row["start"], end) for row, end in ends})
    several = Counter(row[:2] for row in rows)
    ids = [name if several[name, channel] == 1 else f"{name}:{start!r}-{end!r}" for name, channel, start, end in rows]
    names = ("doc_id", "recording", "channel", "start", "end")
    columns = [ids, *(zip(*rows, strict=True) if rows else [()] * 4)]
    return pa.table([pa.array(c, PLACED.field(n).type) for n, c in zip(names, columns, strict=True)], names=names)


def _rows(excerpts: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = excerpts.select(["file", "channel", "start", "duration", "source_type"]).to_pylist()
    return rows
