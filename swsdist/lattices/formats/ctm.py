"""CTM: a lattice for each recording and channel (`swsdist.io.nist.ctm` describes the format).

A confidence of `NA`, or none, counts as 1. A wrong line breaks its recording and channel alone.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby

from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError, TableError
from swsdist.io.fields import number, split
from swsdist.io.nist.ctm import ctm_lines, ctm_word
from swsdist.io.nist.xml import channel_number
from swsdist.lattices.lattice import Broken, Lattices, Origin, Word, transcript
from swsdist.lattices.words import key_of, words_of

#: Fields of a line at least, and at most.
_FIELDS = (5, 8)


def read(origin: Origin) -> Lattices:
    """The transcripts of a CTM, in the order of the file; see the module.

    Raises:
        UserError: there is no such file.
    """
    done: set[tuple[str, int]] = set()
    try:
        lines = ctm_lines(origin.path, origin.storage)
        for (recording, _), group in groupby(lines, lambda line: tuple((*line[1], "")[:2])):
            words: list[Word] = []
            channel, error = 0, None
            for where, fields in group:
                try:
                    line = ctm_word(fields, where)
                    words += words_of(line.word, line.start, line.start + line.duration, where, line.confidence)
                    if not channel and (line.doc_id, line.channel) in done:
                        raise codes.SCATTERED_CTM(where=where, recording=line.doc_id, channel=line.channel)
                    channel = line.channel
                except DataError as wrong:
                    error = error or wrong
            done.add((recording, channel))
            yield Broken(recording, error) if error else transcript(recording, words, channel)
    except (DataError, TableError) as wrong:
        yield Broken(key_of(origin.path), wrong)


def detect(name: str, head: bytes) -> bool:
    """Whether the first line that is no comment has the fields of a CTM's."""
    for line in head.decode("utf-8-sig", "replace").splitlines():
        fields = split(line)
        if fields and not fields[0].startswith(";;"):
            with suppress(DataError):
                channel_number(fields[1] if len(fields) > 1 else "", name)
                return _FIELDS[0] <= len(fields) <= _FIELDS[1] and all(number(f, "", name) >= 0 for f in fields[2:4])
            return False
    return False
