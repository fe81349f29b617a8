"""CTM: a lattice for each recording and channel (`swsdist.io.nist.ctm` describes the format).

A confidence of `NA`, or none, counts as 1. A wrong line is left out, and named with the recording before it; alternations break
theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby

from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.io.fields import number, split
from swsdist.io.nist.ctm import ctm_lines, ctm_word
from swsdist.io.nist.xml import channel_number
from swsdist.lattices.lattice import Broken, Lattices, LeftOut, Origin, Word
from swsdist.lattices.words import key_of, transcribed, words_of

#: Fields of a line at least, and at most.
_FIELDS = (5, 8)

#: Recording and channel of a line, and its words or what is wrong with it.
_Line = tuple[tuple[str, int], list[Word] | DataError]


def read(origin: Origin) -> Lattices:
    """The transcripts of a CTM, in the order of the file; see the module.

    Raises:
        UserError: there is no such file.
    """
    done: set[tuple[str, int]] = set()
    try:
        for key, group in groupby(_lines(origin, done), lambda line: line[0]):
            yield from transcribed(key[0], partial(_words, list(group)), key[1])
            done.add(key)
    except DataError as wrong:
        yield Broken(key_of(origin.path), wrong)


def _lines(origin: Origin, done: set[tuple[str, int]]) -> Iterator[_Line]:
    """The lines. A wrong one stands with the good one before it, or else after it: what it says of its recording may be wrong.

    An alternation is not wrong: where it begins a recording, it stands with the line after it.
    """
    key: tuple[str, int] | None = None
    waiting: list[DataError] = []
    for where, fields in ctm_lines(origin.path, origin.storage):
        try:
            line = ctm_word(fields, where)
            words = words_of(line.word, line.start, line.start + line.duration, where, line.confidence)
            key = line.doc_id, line.channel
            if key in done:
                raise codes.SCATTERED_CTM(where=where, recording=line.doc_id, channel=line.channel)
            yield from ((key, error) for error in waiting)
            waiting = []
            yield key, words
        except DataError as error:
            if key is None or (error.code == io_codes.CTM_ALTERNATION.name and fields[0] != key[0]):
                waiting.append(error)
            else:
                yield key, error
    yield from (((key_of(origin.path), 1), error) for error in waiting)


def _words(lines: Iterable[_Line], left_out: LeftOut) -> list[Word]:
    """The words of a recording and channel."""
    words: list[Word] = []
    for _, line in lines:
        if isinstance(line, list):
            words += line
        elif line.code in (io_codes.CTM_ALTERNATION.name, codes.SCATTERED_CTM.name):
            raise line
        else:
            with left_out:
                raise line
    return words


def detect(name: str, head: bytes) -> bool:
    """Whether the first line that is no comment, or most, have the fields of a CTM's."""
    rows = [split(line) for line in head.decode("utf-8-sig", "replace").splitlines()]
    rows = [fields for fields in rows if fields and not fields[0].startswith(";;")]
    words = [_is_word(fields) for fields in rows[:-1] or rows]
    return any(words[:1]) or 2 * sum(words) > len(words)


def _is_word(fields: list[str]) -> bool:
    with suppress(DataError):
        channel_number(fields[1] if len(fields) > 1 else "", "")
        return _FIELDS[0] <= len(fields) <= _FIELDS[1] and all(number(f, "", "") >= 0 for f in fields[2:4])
    return False
