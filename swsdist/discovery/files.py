"""Files of term discovery: classes, pairs, parses, phones, words, folds and talkers.

Times are read as exact ticks of 1 us: a double of a time with 6 decimals, times 1e6, is nearer to the exact integer
than to another up to `LATEST`, so rounding it gives that integer; a time with more decimals becomes the nearest tick.

Class files of the ZeroSpeech challenges: `Class NAME [TEXT]`, a line `DOC ONSET OFFSET` for each fragment, an empty
line, which is not needed at the end, nor before the next class. A class may have no fragment. tdev2 requires the last
line to be empty, and tde v1 requires numbers as names: `write_classes` writes the empty line, and keeps the names.

Lists, of systems that do only a part of the task, and of splits:

- A pair a line: `DOC ONSET OFFSET DOC ONSET OFFSET`, followed by anything, such as a score. It is a class of two.
- A fragment of a parse a line: `DOC ONSET OFFSET`, followed by anything, such as a class. It is a class of one.
- An interval of a split or fold a line: `DOC ONSET OFFSET`; an empty line separates two folds.
- The talker of a document a line: `DOC TALKER`.

Phones and words: ZeroSpeech's `DOC ONSET OFFSET SYMBOL`, CTM, TextGrid, ELAN; a file, or a folder of TextGrids or ELAN.

- The first line that is not empty tells ZeroSpeech's files: it has four fields, a CTM's has five or more. The other
  formats are read by the readers of lattices (`swsdist.lattices.formats`), which are loaded for them alone.
- A CTM's document is its file, followed by `#2` for channel 2. A TextGrid or ELAN file is one document, named as in a
  store of transcripts.
- Units of one document must not overlap. What no unit covers is silence, and so are the symbols `SIL` and `SPN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from swsdist.core.arrays import Ints
from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.discovery.units import BEYOND, TICKS, Fragments, Intervals, Units, document_name
from swsdist.io.compressed import lines, opened
from swsdist.io.fields import split, time
from swsdist.io.filesystem import Folder

#: Lines a chunk: their texts stay in the processor's cache.
_CHUNK = 1 << 9
#: Greatest time, s.
LATEST = BEYOND // TICKS - 1

_PLAIN = frozenset("0123456789.")

#: Number of a line, and its fields.
Row = tuple[int, list[str]]


def rows(path: str, storage: Mapping[str, object] | None = None) -> Iterator[list[Row]]:
    """The lines of a file in chunks, empty ones too; errors as in `swsdist.io.compressed.lines`."""
    content = ((number, line.split() if line.isascii() else split(line)) for number, line in lines(path, storage))
    while chunk := list(islice(content, _CHUNK)):
        yield chunk


def demand_fields(chunk: Sequence[Row], count: int, form: str, path: str) -> None:
    """Demand a number of fields on each line.

    Raises:
        DataError: a line has another.
    """
    for number, fields in chunk:
        if len(fields) != count:
            raise codes.WRONG_ROW(where=f"{path}, line {number}", fields=len(fields), expected=count, form=form)


def stretches(
    chunk: Sequence[Row], documents: dict[str, int], path: str, *, column: int = 0, instants: bool = False
) -> Intervals:
    """The stretches whose document, onset and offset begin in a column of the lines.

    Args:
        chunk: lines with enough fields.
        documents: numbers by name; new ones are added.
        path: of the file, for errors.
        column: of the document.
        instants: whether a stretch may have no length.

    Raises:
        DataError: a time has another form, or the offset is not after the onset.
    """
    document = np.array([documents.setdefault(fields[column], len(documents)) for _, fields in chunk], np.int64)
    onset, offset = (ticks(chunk, column + k, name, path) for k, name in ((1, "onset"), (2, "offset")))
    wrong = offset < onset if instants else offset <= onset
    if wrong.any():
        number, fields = chunk[int(np.argmax(wrong))]
        raise families.INVALID_TIMES(
            "the offset {offset} is not after the onset {onset}",
            "give the times of onset and offset in seconds, not a duration",
            where=f"{path}, line {number}",
            onset=fields[column + 1],
            offset=fields[column + 2],
        )
    return Intervals(document, onset, offset)


def ticks(chunk: Sequence[Row], column: int, name: str, path: str) -> Ints:
    """The times of a column.

    Raises:
        DataError: one has another form, is negative, or beyond `LATEST`.
    """
    texts = [fields[column] for _, fields in chunk]
    try:
        if not _PLAIN.issuperset("".join(texts)):
            raise ValueError
        seconds = np.array(list(map(float, texts)))
    except ValueError:
        seconds = np.array(
            [time(text, name, f"{path}, line {number}") for text, (number, _) in zip(texts, chunk, strict=True)]
        )
    late = seconds > LATEST
    if late.any():
        k = int(np.argmax(late))
        raise families.INVALID_TIMES(
            "the time {text} is beyond {most:.0f} s",
            "times are in seconds, from the beginning of the document",
            where=f"{path}, line {chunk[k][0]}",
            text=texts[k],
            most=LATEST,
        )
    return ticks_of(seconds)


def ticks_of(seconds: np.ndarray) -> Ints:
    """Seconds as ticks."""
    result: Ints = np.rint(seconds * TICKS).astype(np.int64)
    return result


def joined(parts: Sequence[Intervals]) -> Intervals:
    """Stretches one after the other."""
    empty = np.zeros(0, np.int64)
    columns = ((getattr(part, name) for part in parts) for name in ("document", "onset", "offset"))
    return Intervals(*(np.concatenate([empty, *column]) for column in columns))


_CLASS = "Class"
_FORM = "DOC ONSET OFFSET"


def read_classes(
    path: str,
    documents: dict[str, int],
    storage: Mapping[str, object] | None = None,
    *,
    instants: bool = False,
) -> Fragments:
    """The classes of a file.

    Args:
        path: plain or packed, local or `s3://`.
        documents: numbers by name; new ones are added.
        storage: options for s3fs.
        instants: whether a fragment may have no length.

    Raises:
        UserError: there is no such file.
        DataError: a line has another form, or a class comes twice; with the line.
    """
    names: dict[str, int] = {}
    parts, groups = [], []
    opened = False
    for chunk in rows(path, storage):
        members: list[Row] = []
        group: list[int] = []
        for number, fields in chunk:
            if not fields:
                opened = False
            elif fields[0] == _CLASS:
                _add(names, fields, f"{path}, line {number}")
                opened = True
            elif not opened:
                raise families.MALFORMED_LINE(
                    "a fragment stands before the first line `Class NAME`, or after an empty line that ends a class",
                    "write `Class NAME` above it; for pairs or a parse use --pairs or --parse",
                    where=f"{path}, line {number}",
                )
            else:
                members.append((number, fields))
                group.append(len(names) - 1)
        demand_fields(members, 3, _FORM, path)
        parts.append(stretches(members, documents, path, instants=instants))
        groups.append(np.array(group, np.int64))
    fragments = joined(parts)
    group_of = np.concatenate([np.zeros(0, np.int64), *groups])
    return Fragments(fragments.document, fragments.onset, fragments.offset, group_of, tuple(names))


def _add(names: dict[str, int], fields: Sequence[str], where: str) -> None:
    if len(fields) == 1:
        raise families.MALFORMED_LINE("a class has no name", "write: Class NAME", where=where)
    if fields[1] in names:
        raise families.DUPLICATE_NAME(
            "a second class {name!r}", "join the two, or give one of them another name", where=where, name=fields[1]
        )
    names[fields[1]] = len(names)


def write_classes(classes: Fragments, documents: Sequence[str], out: Path) -> None:
    """Write classes so that `read_classes`, and tdev2, read them back to the same values.

    Args:
        classes: fragments in any order; those of a class keep theirs.
        documents: names by number.
        out: local file.

    Raises:
        UserError: a name is empty or holds a blank.
    """
    for name in (*classes.names, *documents):
        if len(name.split()) != 1:
            raise families.UNWRITABLE_NAME(
                "a class file cannot hold the name {name!r}", "use names without blanks and line ends", name=name
            )
    order = np.argsort(classes.group, kind="stable")
    ends = np.cumsum(np.bincount(classes.group, minlength=len(classes.names)))
    with out.open("w", encoding="utf-8", newline="\n") as file:
        begin = 0
        for name, end in zip(classes.names, ends.tolist(), strict=True):
            file.write(f"{_CLASS} {name}\n")
            for k in order[begin:end].tolist():
                times = (_seconds(int(array[k])) for array in (classes.onset, classes.offset))
                file.write(f"{documents[classes.document[k]]} {' '.join(times)}\n")
            file.write("\n")
            begin = end


def _seconds(ticks: int) -> str:
    """Ticks as an exact decimal."""
    seconds, rest = divmod(ticks, TICKS)
    return f"{seconds}.{rest:06d}".rstrip("0").rstrip(".")


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


def read_folds(
    path: str, documents: dict[str, int], storage: Mapping[str, object] | None = None
) -> tuple[Intervals, ...]:
    """The folds of a file, in its order, each sorted by document and time.

    Args:
        path: plain or packed, local or `s3://`.
        documents: numbers by name; new ones are added.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file.
        DataError: it is empty, a line has another form, or two intervals of a fold overlap.
    """
    folds: list[list[Row]] = [[]]
    for chunk in rows(path, storage):
        for number, fields in chunk:
            if fields:
                folds[-1].append((number, fields))
            elif folds[-1]:
                folds.append([])
    if not folds[0]:
        raise codes.NO_ROWS(where=path, what="interval", form=_FORMS["parse"])
    return tuple(_fold(fold, documents, path) for fold in folds if fold)


def _fold(fold: list[Row], documents: dict[str, int], path: str) -> Intervals:
    demand_fields(fold, 3, _FORMS["parse"], path)
    intervals = stretches(fold, documents, path)
    order = np.lexsort((intervals.onset, intervals.document))
    intervals = intervals.take(order)
    same = intervals.document[1:] == intervals.document[:-1]
    wrong = same & (intervals.onset[1:] < intervals.offset[:-1])
    if wrong.any():
        number, fields = fold[order[int(np.argmax(wrong)) + 1]]
        raise families.CONFLICTING_ROWS.of(DataError)(
            "two intervals of {document!r} overlap in one fold or split",
            "join them, or put them in different folds",
            where=f"{path}, line {number}",
            document=fields[0],
        )
    return intervals


def read_split(path: str, documents: dict[str, int], storage: Mapping[str, object] | None = None) -> Intervals:
    """The stretches of speech of a file; empty lines part nothing. Arguments and errors as in `read_folds`."""
    lines = [row for chunk in rows(path, storage) for row in chunk if row[1]]
    if not lines:
        raise codes.NO_ROWS(where=path, what="interval", form=_FORMS["parse"])
    return _fold(lines, documents, path)


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
                raise families.DUPLICATE_NAME(
                    "a second talker of {document!r}",
                    "give each document one talker",
                    where=f"{path}, line {number}",
                    document=document,
                )
            talkers[document] = talker
    return talkers


_FORM_OF_UNITS = "DOC ONSET OFFSET SYMBOL"
_FIELDS = 4
#: Bytes in which the first line is looked for.
_HEAD = 4096


class _Source(NamedTuple):
    """Where units are, and numbers of documents and symbols, which grow."""

    path: str
    documents: dict[str, int]
    symbols: dict[str, int]
    storage: Mapping[str, object]
    tiers: tuple[str, ...]


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
    source = _Source(path, documents, {}, storage or {}, tiers)
    local = Folder(path, source.storage).local()
    listed = (local is None or not local.is_dir()) and _is_listed(path, source.storage)
    parts = list(_listed(source) if listed else _annotated(source))
    if not any(len(part.intervals) for part in parts):
        raise codes.NO_ROWS(where=path, what="phone or word", form=_FORM_OF_UNITS)
    stretched = joined([part.intervals for part in parts])
    symbol = np.concatenate([np.array(part.symbols, np.int64) for part in parts])
    units = Units(stretched.document, stretched.onset, stretched.offset, symbol, tuple(source.symbols))
    order = np.lexsort((units.onset, units.document))
    units = units.take(order)
    same = units.document[1:] == units.document[:-1]
    wrong = same & (units.onset[1:] < units.offset[:-1])
    if wrong.any():
        k = int(np.argmax(wrong)) + 1
        where = [place for part in parts for place in part.places][order[k]]
        name = next(name for name, number in documents.items() if number == units.document[k])
        raise families.CONFLICTING_ROWS.of(DataError)(
            "{symbol!r} begins before the one before it in {document!r} ends",
            "give one tier of phones, and one of words; join or cut what overlaps",
            where=where if isinstance(where, str) else f"{path}, line {where}",
            symbol=units.names[units.symbol[k]],
            document=name,
        )
    return units


def _is_listed(path: str, storage: Mapping[str, object]) -> bool:
    """Whether its first line is one of ZeroSpeech's, or no other format takes the file for its own."""
    with opened(path, storage) as stream:
        head = stream.read(_HEAD).decode("utf-8", "ignore")
    fields = next((split(line) for line in head.splitlines() if line.strip()), [])
    if len(fields) == _FIELDS and fields[2] != "=" and fields[0][0] not in '"!':  # as a TextGrid begins
        return True
    from swsdist.lattices.collection import detect

    return detect(path, storage) is None


def _listed(source: _Source) -> Iterator[_Part]:
    """Of ZeroSpeech's files."""
    path, documents, symbols, storage, _ = source
    for chunk in rows(path, storage):
        chunk = [row for row in chunk if row[1]]
        demand_fields(chunk, _FIELDS, _FORM_OF_UNITS, path)
        intervals = stretches(chunk, documents, path)
        numbers = [symbols.setdefault(fields[3], len(symbols)) for _, fields in chunk]
        yield _Part(intervals, numbers, [number for number, _ in chunk])


def _annotated(source: _Source) -> Iterator[_Part]:
    """Of the formats of transcripts."""
    path, documents, symbols, storage, tiers = source
    from swsdist.lattices.collection import document_id, find_files
    from swsdist.lattices.formats import elan, praat
    from swsdist.lattices.lattice import LeftOut, Origin
    from swsdist.lattices.words import key_of

    readers = {"textgrid": praat.words, "elan": elan.words}
    for file in find_files(path, None, storage, lambda *_: None):
        if file.format == "ctm":
            yield from _timed(source._replace(path=file.path))
        elif file.format in readers:
            left_out = LeftOut()
            words = readers[file.format](Origin(file.path, storage, tiers=tiers), left_out)
            if left_out.errors:  # a unit less would change the scores
                raise left_out.errors[0]
            words = [word for word in words if word.end > word.start]
            name = document_id(key_of(file.path), file.path, path)
            number = documents.setdefault(name, len(documents))
            onset, offset = (ticks_of(np.array(times)) for times in _columns((w.start, w.end) for w in words))
            numbers = [symbols.setdefault(word.text, len(symbols)) for word in words]
            yield _Part(Intervals(np.full(len(words), number), onset, offset), numbers, [file.path] * len(words))
        else:
            raise families.WRONG_KIND.of(DataError)(
                "{format} is no format of phones or words",
                "give CTM, TextGrid, ELAN, or lines {form}",
                where=file.path,
                format=file.format,
                form=_FORM_OF_UNITS,
            )


def _timed(source: _Source) -> Iterator[_Part]:
    """Of a CTM: onset and duration are rounded to ticks each, so an end is exactly where the next begins."""
    path, documents, symbols, storage, _ = source
    from swsdist.io.nist.ctm import ctm_lines, ctm_word

    words = [(where, ctm_word(fields, where)) for where, fields in ctm_lines(path, storage)]
    words = [(where, word) for where, word in words if word.duration > 0]
    names = [document_name(word.doc_id, word.channel) for _, word in words]
    document = np.array([documents.setdefault(name, len(documents)) for name in names], np.int64)
    onset, length = (ticks_of(np.array(times)) for times in _columns((w.start, w.duration) for _, w in words))
    numbers = [symbols.setdefault(word.word, len(symbols)) for _, word in words]
    yield _Part(Intervals(document, onset, onset + length), numbers, [where for where, _ in words])


def _columns(rows: Iterator[tuple[float, float]]) -> tuple[Sequence[float], Sequence[float]]:
    first, second = tuple(zip(*rows, strict=True)) or ((), ())
    return first, second
