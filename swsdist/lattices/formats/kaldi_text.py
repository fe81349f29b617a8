"""A lattice of Kaldi as text: a line an arc or a final state. The source of the first line is the start.

====================  ====================================  =============================
line                  CompactLattice                        Lattice
====================  ====================================  =============================
final, weight one     `state`                               the same
final                 `state graph,acoustic,ids`            `state graph,acoustic`
arc of weight one     `source target word`                  `source target id word`
arc                   `source target word g,a,ids`          `source target id word g,a`
====================  ====================================  =============================

Ids are joined by `_`; a Lattice's weight may end in a comma, too. Which of the two it is the lines say: a lattice is read as
that of which all are.

Source: Kaldi's documentation of lattices.
"""

from __future__ import annotations

import re

import numpy as np

from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import short
from swsdist.lattices.formats.kaldi_object import Raw
from swsdist.lattices.lattice import Floats, Ints

_STATE, _BLANK = rb"([0-9]{1,9})", rb"[ \t]+"
_COST = rb"(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|-?Infinity|-?inf|-?nan|BadNumber)"
_IDS = rb"((?:[0-9]{1,9}(?:_[0-9]{1,9})*)?)"


def _line(labels: int, weight: bytes) -> re.Pattern[bytes]:
    arc = _BLANK.join([_STATE] * (1 + labels))
    return re.compile(
        rb"^[ \t]*" + _STATE + rb"(?:" + _BLANK + arc + rb")?(?:" + _BLANK + weight + rb")?[ \t\r]*$", re.M
    )


_COMPACT = _line(1, _COST + rb"," + _COST + rb"," + _IDS)
_LATTICE = _line(2, _COST + rb"," + _COST + rb",?")


_BEGINNING = re.compile(
    rb"[ \t]*[0-9]{1,9}(?:[ \t]+[0-9]{1,9}){0,3}(?:[ \t]+" + _COST + rb"," + _COST + rb"[,0-9_]*)?[ \t\r]*"
)


def looks_like_line(text: bytes) -> bool:
    """Whether a text, perhaps cut off, is a line of a lattice."""
    return bool(_BEGINNING.fullmatch(text))


def parse(block: bytes, name: str, first: int) -> Raw:
    """The lattice of some lines.

    Args:
        block: lines, each with its end.
        name: of the file.
        first: number of the first line.

    Raises:
        DataError: a line is malformed, or a cost no number.
    """
    lines = block.count(b"\n")
    for pattern in (_COMPACT, _LATTICE):
        rows = pattern.findall(block)
        if len(rows) == lines:
            return _raw(rows, pattern is _LATTICE, name, first)
    each = block.splitlines()
    reach = [next(k for k, line in enumerate(each) if not pattern.match(line)) for pattern in (_COMPACT, _LATTICE)]
    raise codes.MALFORMED_LATTICE_LINE(
        where=f"{name}, line {first + max(reach)}", text=short(repr(each[max(reach)])[1:])
    )


def _raw(rows: list[tuple[bytes, ...]], frame_by_frame: bool, name: str, first: int) -> Raw:
    if not rows:
        ints, floats = np.empty(0, np.int64), np.empty(0)
        return Raw(-1, ints, ints, ints, ints, ints, floats, floats, floats, floats, ints, frame_by_frame)
    columns = list(zip(*rows, strict=True))
    source, target = _integers(columns[0]), _integers(columns[1])
    if frame_by_frame:
        ids, words, graph, acoustic = columns[2:]
        frames = (_integers(ids) > 0).astype(np.int64)
    else:
        words, graph, acoustic, ids = columns[2:]
        frames = np.array([text.count(b"_") + 1 if text else 0 for text in ids], np.int64)
    costs = [_costs(column, name, first) for column in (graph, acoustic)]
    final = target < 0
    arcs = ~final
    numbers = np.unique(np.concatenate([source, target[arcs]]))
    source = np.searchsorted(numbers, source)
    ends, repeated = np.unique(source[final], return_index=True)
    if len(ends) < np.count_nonzero(final):
        again = np.setdiff1d(np.arange(np.count_nonzero(final)), repeated)[0]
        line = np.flatnonzero(final)[again]
        raise codes.DAMAGED_LATTICE(
            where=f"{name}, line {first + line}", fault=f"a second line ends state {numbers[source[line]]}"
        )
    final_costs = [np.full(len(numbers), np.inf) for _ in costs]
    final_frames = np.zeros(len(numbers), np.int64)
    for ending, column in zip(final_costs, costs, strict=True):
        ending[source[final]] = column[final]
    final_frames[source[final]] = frames[final]
    return Raw(
        int(source[0]),
        numbers,
        source[arcs],
        np.searchsorted(numbers, target[arcs]),
        _integers(words)[arcs],
        frames[arcs],
        costs[0][arcs],
        costs[1][arcs],
        final_costs[0],
        final_costs[1],
        final_frames,
        frame_by_frame,
    )


def _integers(column: tuple[bytes, ...]) -> Ints:
    """Numbers; -1 where there is none."""
    return np.array([int(text) if text else -1 for text in column], np.int64)


def _costs(column: tuple[bytes, ...], name: str, first: int) -> Floats:
    """Costs; 0 where there is none."""
    try:
        return np.array([float(text) if text else 0.0 for text in column])
    except ValueError:
        line = column.index(b"BadNumber")
        raise codes.IMPOSSIBLE_COST(where=f"{name}, line {first + line}", value="BadNumber") from None
