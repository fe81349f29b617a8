"""Confusion networks of Kaldi's lattice-mbr-decode: a line a network, `KEY [ WORD P WORD P ... ] [ ... ]`, a bracket a bin.

Times are in a second file, `KEY START END ; START END ; ...` in frames (fractions, too), a pair a bin. It lies beside the first
and has its name with `.times` for the last ending: `x.sausage.txt` (or `x.sausage.txt.gz`) has `x.sausage.times`. Word 0 is no
word.

A bin goes from a state of its start to one of its end, an arc a word; between bins lies an arc without word. Costs are of the
probabilities: no scale applies.

Source: Kaldi's documentation of lattice-mbr-decode, and files that it wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np

from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.io.compressed import lines
from swsdist.io.fields import integer, number, split, time
from swsdist.io.filesystem import locate
from swsdist.lattices.lattice import (
    BREAK,
    MILLISECOND,
    Broken,
    Lattice,
    Lattices,
    Origin,
    of_probabilities,
    stem,
    text_of,
)

#: What a line is, for messages.
_ROW = "KEY [ WORD P WORD P ... ] [ ... ], of the times KEY START END ; START END ; ..."

_HEAD = re.compile(rb"\s*\S+(?:[ \t]+\[(?:[ \t]+[0-9]+[ \t]+[0-9.eE+-]+)+[ \t]+\])*[ \t]+\[[ \t]+[0-9]+[ \t]+[0-9]")
#: Greatest difference of a bin's sum from 1.
_SLACK = 0.01

_Bin = list[tuple[int, float]]


def detect(name: str, head: bytes) -> bool:
    """Whether it begins with a confusion network."""
    return bool(_HEAD.match(head))


def times_beside(path: str) -> str:
    """Path of the file with the times."""
    return f"{path.removesuffix(path.rpartition('/')[2])}{stem(path)}.times"


def read(origin: Origin) -> Lattices:
    """The networks of a file; one without times, or times without a network, is broken.

    Raises:
        UserError: there is no such file.
    """
    timing = times_beside(origin.path)
    folder, name = locate(timing, origin.storage)
    try:
        networks = _records(origin.path, origin)
        first = next(networks, None)
        if not folder.exists(name):
            raise families.MISSING_FILE.of(DataError)(
                "there is no file {times} with the times of the bins",
                "have lattice-mbr-decode write them (its fourth output), and name that file so",
                where=origin.path,
                times=timing,
            )
        times = dict[str, tuple[list[str], str]]()
        for fields, where in _records(timing, origin):
            if fields[0] in times:
                yield Broken(
                    fields[0], codes.MALFORMED_LINE(form=_ROW, where=where, fault=f"repeats the times of {fields[0]}")
                )
            times.setdefault(fields[0], (fields[1:], where))
        for fields, where in chain([] if first is None else [first], networks):
            key = fields[0]
            paired = times.pop(key, ([], timing))
            try:
                bins, pairs = _bins(fields[1:], where), _times(*paired)
                if len(bins) != len(pairs):
                    raise codes.UNPAIRED_CONFUSION(where=where, key=key, bins=len(bins), times=len(pairs), file=timing)
                yield _network(key, bins, pairs, origin, where)
            except DataError as error:
                yield Broken(key, error)
    except DataError as error:
        yield Broken(stem(origin.path), error)
        return
    for key, (left, where) in times.items():
        yield Broken(
            key,
            codes.UNPAIRED_CONFUSION(where=where, key=key, bins=0, times=left.count(";") + 1, file=timing),
        )


def _records(path: str, origin: Origin) -> Iterator[tuple[list[str], str]]:
    """Fields of the lines that have any, and their places."""
    for line_number, line in lines(path, origin.storage):
        if fields := split(line):
            yield fields, f"{path}, line {line_number}"


def _bins(fields: list[str], where: str) -> list[_Bin]:
    result: list[_Bin] = []
    inside: list[str] | None = None
    for field in fields:
        if field == "[" and inside is None:
            inside = []
        elif field == "]" and inside and len(inside) % 2 == 0:
            words, chances = inside[::2], inside[1::2]
            result.append(
                [(integer(word, "word", where), number(p, "P", where)) for word, p in zip(words, chances, strict=True)]
            )
            total = sum(p for _, p in result[-1])
            if min(p for _, p in result[-1]) < 0 or abs(total - 1) > _SLACK:
                raise codes.MALFORMED_LINE(
                    form=_ROW, where=where, fault=f"has a bin whose probabilities sum to {total:.4g}"
                )
            inside = None
        elif inside is not None and field not in ("[", "]"):
            inside.append(field)
        else:
            raise codes.MALFORMED_LINE(form=_ROW, where=where, fault="is no row of [ WORD P ... ]")
    if inside is not None:
        raise codes.MALFORMED_LINE(form=_ROW, where=where, fault="ends in a bin")
    return result


def _times(fields: list[str], where: str) -> list[tuple[float, float]]:
    """Starts and ends of bins, in frames."""
    pairs = [part.split() for part in " ".join(fields).split(";")] if fields else []
    if any(len(pair) != 2 for pair in pairs):
        raise codes.MALFORMED_LINE(form=_ROW, where=where, fault="is no row of START END ;")
    spans = [(time(start, "start", where), time(end, "end", where)) for start, end in pairs]
    if back := [span for span in spans if span[1] < span[0]]:
        raise codes.MALFORMED_LINE(form=_ROW, where=where, fault=f"has a bin from {back[0][0]:g} to {back[0][1]:g}")
    return spans


def _network(key: str, bins: list[_Bin], pairs: list[tuple[float, float]], origin: Origin, where: str) -> Lattice:
    times = [0, *(round(at * origin.frame / MILLISECOND) for pair in pairs for at in pair)]
    arcs: list[tuple[int, int, str, float]] = []
    for k, entries in enumerate(bins):
        arcs.append((2 * k, 2 * k + 1, BREAK if k and pairs[k][0] < pairs[k - 1][0] else "", 1.0))
        arcs += [(2 * k + 1, 2 * k + 2, text_of(word, origin.words, where), p) for word, p in entries]
    return of_probabilities(key, np.array(times, np.int64), arcs)
