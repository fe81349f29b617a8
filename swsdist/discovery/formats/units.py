"""Phones and words: ZeroSpeech's `DOC ONSET OFFSET SYMBOL`, CTM, TextGrid, ELAN; a file, or a folder of TextGrids or ELAN.

- The first line that is not empty tells ZeroSpeech's files: it has four fields, a CTM's has five or more. The other formats
  are read by the readers of lattices (`swsdist.lattices.formats`), which are loaded for them alone.
- A CTM's document is its file, with `#2` behind for channel 2. A TextGrid or ELAN file is one document, named as in a store of
  transcripts.
- Units of one document must not overlap. What no unit covers is silence, and so are the symbols `SIL` and `SPN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from swsdist.core.codes import discovery as codes
from swsdist.discovery.formats.classes import demand_fields, joined, rows, stretches
from swsdist.discovery.formats.classes import ticks_of as to_ticks
from swsdist.discovery.units import Intervals, Units, document_name
from swsdist.io.compressed import opened
from swsdist.io.fields import split
from swsdist.io.filesystem import Folder

_FORM = "DOC ONSET OFFSET SYMBOL"
_FIELDS = 4
#: Bytes in which the first line is looked for.
_HEAD = 4096


class _Part(NamedTuple):
    """Some units: their stretches, numbers of their symbols, and places for errors."""

    intervals: Intervals
    symbols: Sequence[int]
    places: Sequence[str | int]


def read_units(
    path: str,
    documents: dict[str, int],
    storage: Mapping[str, object] | None = None,
    *,
    tiers: tuple[str, ...] = (),
) -> Units:
    """The phones or words of a file or folder, sorted by number of the document and time.

    Args:
        path: plain or packed, local or `s3://`.
        documents: numbers by name; new ones are added.
        storage: options for s3fs.
        tiers: of TextGrid and ELAN; empty: all that hold intervals.

    Raises:
        UserError: there is no such file.
        DataError: it is empty, a line has another form, or two units overlap; with the line.
    """
    symbols: dict[str, int] = {}
    parts = list(_parts(path, documents, symbols, storage or {}, tiers))
    if not any(len(part.intervals) for part in parts):
        raise codes.NO_ROWS(where=path, what="phone or word", form=_FORM)
    stretched = joined([part.intervals for part in parts])
    symbol = np.concatenate([np.array(part.symbols, np.int64) for part in parts])
    units = Units(stretched.document, stretched.onset, stretched.offset, symbol, tuple(symbols))
    order = np.lexsort((units.onset, units.document))
    units = units.take(order)
    same = units.document[1:] == units.document[:-1]
    wrong = same & (units.onset[1:] < units.offset[:-1])
    if wrong.any():
        k = int(np.argmax(wrong)) + 1
        where = [place for part in parts for place in part.places][order[k]]
        name = next(name for name, number in documents.items() if number == units.document[k])
        raise codes.OVERLAPPING_UNITS(
            where=where if isinstance(where, str) else f"{path}, line {where}",
            symbol=units.names[units.symbol[k]],
            document=name,
        )
    return units


def _parts(
    path: str,
    documents: dict[str, int],
    symbols: dict[str, int],
    storage: Mapping[str, object],
    tiers: tuple[str, ...],
) -> Iterator[_Part]:
    local = Folder(path, storage).local()
    if (local is not None and local.is_dir()) or not _is_listed(path, storage):
        yield from _annotated(path, documents, symbols, storage, tiers)
    else:
        yield from _listed(path, documents, symbols, storage)


def _is_listed(path: str, storage: Mapping[str, object]) -> bool:
    """Whether its first line is one of ZeroSpeech's, or no other format takes the file for its own."""
    with opened(path, storage) as stream:
        head = stream.read(_HEAD).decode("utf-8", "ignore")
    fields = next((split(line) for line in head.splitlines() if line.strip()), [])
    if len(fields) == _FIELDS and fields[2] != "=" and fields[0][0] not in '"!':  # as a TextGrid begins
        return True
    from swsdist.lattices.collection import detect

    return detect(path, storage) is None


def _listed(
    path: str, documents: dict[str, int], symbols: dict[str, int], storage: Mapping[str, object]
) -> Iterator[_Part]:
    """Of ZeroSpeech's files."""
    for chunk in rows(path, storage):
        chunk = [row for row in chunk if row[1]]
        demand_fields(chunk, _FIELDS, _FORM, path)
        intervals = stretches(chunk, documents, path)
        numbers = [symbols.setdefault(fields[3], len(symbols)) for _, fields in chunk]
        yield _Part(intervals, numbers, [number for number, _ in chunk])


def _annotated(
    path: str,
    documents: dict[str, int],
    symbols: dict[str, int],
    storage: Mapping[str, object],
    tiers: tuple[str, ...],
) -> Iterator[_Part]:
    """Of the formats of transcripts."""
    from swsdist.lattices.collection import document_id, find_files
    from swsdist.lattices.formats import elan, praat
    from swsdist.lattices.lattice import LeftOut, Origin
    from swsdist.lattices.words import key_of

    readers = {"textgrid": praat.words, "elan": elan.words}
    for file in find_files(path, None, storage, lambda *_: None):
        if file.format == "ctm":
            yield from _timed(file.path, documents, symbols, storage)
        elif file.format in readers:
            left_out = LeftOut()
            words = readers[file.format](Origin(file.path, storage, tiers=tiers), left_out)
            if left_out.errors:  # a unit less would change the scores
                raise left_out.errors[0]
            words = [word for word in words if word.end > word.start]
            name = document_id(key_of(file.path), file.path, path)
            number = documents.setdefault(name, len(documents))
            onset, offset = (to_ticks(np.array(times)) for times in _columns((w.start, w.end) for w in words))
            numbers = [symbols.setdefault(word.text, len(symbols)) for word in words]
            yield _Part(Intervals(np.full(len(words), number), onset, offset), numbers, [file.path] * len(words))
        else:
            raise codes.NOT_UNITS(where=file.path, format=file.format, form=_FORM)


def _timed(
    path: str, documents: dict[str, int], symbols: dict[str, int], storage: Mapping[str, object]
) -> Iterator[_Part]:
    """Of a CTM: onset and duration are rounded to ticks each, so an end is exactly where the next begins."""
    from swsdist.io.nist.ctm import ctm_lines, ctm_word

    words = [(where, ctm_word(fields, where)) for where, fields in ctm_lines(path, storage)]
    words = [(where, word) for where, word in words if word.duration > 0]
    names = [document_name(word.doc_id, word.channel) for _, word in words]
    document = np.array([documents.setdefault(name, len(documents)) for name in names], np.int64)
    onset, length = (to_ticks(np.array(times)) for times in _columns((w.start, w.duration) for _, w in words))
    numbers = [symbols.setdefault(word.word, len(symbols)) for _, word in words]
    yield _Part(Intervals(document, onset, onset + length), numbers, [where for where, _ in words])


def _columns(rows: Iterator[tuple[float, float]]) -> tuple[Sequence[float], Sequence[float]]:
    first, second = tuple(zip(*rows, strict=True)) or ((), ())
    return first, second
