"""CTM, NIST's time-marked transcript: a word per line, as written by recognisers and aligners.

    file channel begin duration word [confidence [type [speaker]]]

Fields are separated by blanks and tabs, times are seconds, `;;` at the start of a line makes it a comment. A channel is
a number from 1 or a letter (A is 1). Types are those of RTTM's lexemes (`lex`, `fp`, `frag`, ...). `NA` and `<NA>` mark
a missing confidence, type or speaker. LEXEMES has no column for confidences: `ctm_word` gives them.

Alternations (`<ALT_BEGIN>` ... `<ALT>` ... `<ALT_END>`) give several correct readings; terms cannot be looked up in
them, so they are refused.

Sources: NIST SCTK, doc/infmts.htm, ctm; Kaldi's `lattice-to-ctm-conf` and `ali-to-phones --ctm-output` write it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import DataError
from swsdist.core.types import LEXEMES
from swsdist.io.compressed import lines
from swsdist.io.fields import batches, decimal, fits, number, split, time
from swsdist.io.nist.xml import channel_number

_NAMES = ("file", "channel", "begin", "duration", "word", "confidence", "type", "speaker")
_LEAST = 5
_NOT_GIVEN = ("NA", "<NA>")
_ALTERNATION = ("<ALT_BEGIN>", "<ALT>", "<ALT_END>")


class CtmWord(NamedTuple):
    """A line of a CTM: times in s; None is what it does not give."""

    doc_id: str
    channel: int
    start: float
    duration: float
    word: str
    confidence: float | None
    kind: str | None
    speaker: str | None


def ctm_lines(path: str, storage: Mapping[str, object] | None = None) -> Iterator[tuple[str, list[str]]]:
    """The lines of a CTM that hold words: place for errors, and fields; arguments and errors as in `lines`."""
    for k, line in lines(path, storage):
        fields = split(line)
        if fields and not fields[0].startswith(";;"):
            yield f"{path}, line {k}", fields


def ctm_batches(path: str, storage: Mapping[str, object] | None = None) -> Iterator[pa.RecordBatch]:
    """Stream the words of a CTM, schema LEXEMES; `doc_id` is the file as written.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file.
        DataError: a line has too few or too many fields, a field is impossible, or it is an alternation; with the line.
    """
    words = (ctm_word(fields, where) for where, fields in ctm_lines(path, storage))
    return batches(((*word[:5], *word[6:]) for word in words), LEXEMES)


def read_ctm(path: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """All words of a CTM, in the order of the file; arguments and errors as in `ctm_batches`."""
    return pa.Table.from_batches(ctm_batches(path, storage), LEXEMES)


def write_ctm(lexemes: pa.Table | Iterable[pa.RecordBatch], out: Path) -> None:
    """Write words in their order, so that `read_ctm` reads them back to the same values.

    Lines have only the necessary fields; before a type or a speaker the confidence is `NA`.

    Args:
        lexemes: schema LEXEMES.
        out: local file to write.

    Raises:
        DataError: a CTM cannot contain a name or word: it is empty, holds a blank or a line end, begins a comment, or
            has another meaning in CTM; or a time is negative or not finite.
    """
    with out.open("w", encoding="utf-8", newline="\n") as file:
        for batch in lexemes.to_batches() if isinstance(lexemes, pa.Table) else lexemes:
            file.writelines(ctm_line(row, str(out)) for row in batch.to_pylist())


def ctm_word(fields: list[str], where: str) -> CtmWord:
    """The word of a line.

    Raises:
        DataError: too few or too many fields, an impossible one, or an alternation.
    """
    if len(fields) >= _LEAST and fields[4].upper() in _ALTERNATION:
        raise codes.CTM_ALTERNATION(where=where)
    if not _LEAST <= len(fields) <= len(_NAMES):
        raise families.MALFORMED_LINE(
            "the line has {fields} fields",
            "give 5 to 8: {names}",
            where=where,
            fields=len(fields),
            names=f"{' '.join(_NAMES[:_LEAST])} [{' '.join(_NAMES[_LEAST:])}]",
        )
    begin, duration = time(fields[2], "begin", where), time(fields[3], "duration", where)
    rest = [None if field in _NOT_GIVEN else field for field in fields[_LEAST:]] + [None] * (len(_NAMES) - len(fields))
    confidence, kind, speaker = rest
    sure = None if confidence is None else number(confidence, "confidence", where)
    return CtmWord(fields[0], channel_number(fields[1], where), begin, duration, fields[4], sure, kind, speaker)


def ctm_line(row: Mapping[str, Any], where: str) -> str:
    """The line of a row of LEXEMES, which may have a confidence; errors as in `write_ctm`, at a place."""
    kind, speaker = row["kind"], row["speaker"]
    for name, value in (("file", row["doc_id"]), ("word", row["word"]), ("type", kind), ("speaker", speaker)):
        if value is not None and (fault := _fault(name, value)):
            raise families.UNWRITABLE_NAME.of(DataError)(
                "{name} {value!r} cannot be written to a CTM: it {fault}",
                "rename it",
                where=where,
                name=name,
                value=value,
                fault=fault,
            )
    for name, seconds in (("start", row["start"]), ("duration", row["duration"])):
        if not 0 <= seconds < math.inf:
            raise families.INVALID_TIMES(
                "{name} of {word!r} is {value}",
                "give seconds, from 0",
                where=where,
                name=name,
                word=row["word"],
                value=seconds,
            )
    fields = [row["doc_id"], str(row["channel"]), decimal(row["start"]), decimal(row["duration"]), row["word"]]
    confidence = "NA" if row.get("confidence") is None else f"{row['confidence']:.6g}"
    if speaker is not None:
        fields += [confidence, kind or "NA", speaker]
    elif kind is not None:
        fields += [confidence, kind]
    elif confidence != "NA":
        fields += [confidence]
    return " ".join(fields) + "\n"


def _fault(name: str, value: str) -> str | None:
    if not fits(value):
        return "is empty, or holds a blank, a line's end, a zero byte or a byte order mark"
    if name == "file" and value.startswith(";;"):
        return "would begin a comment"
    if name == "word" and value.upper() in _ALTERNATION:
        return "marks an alternation there"
    if name in ("type", "speaker") and value in _NOT_GIVEN:
        return "means there that none is given"
    return None
