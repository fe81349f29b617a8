"""RTTM, NIST's rich transcription: the words of the references (`LEXEME`), and the stretches of speakers (`SPEAKER`).

A line holds type, file, channel, begin, duration, token, sub-type, speaker and confidence, separated by blanks. `;;`
begins a comment anywhere in a line. Lines of other types are only checked for form. STDEval accepts lines without the
last fields (then the speaker is empty), KWSEval only exactly nine. (NIST, RTTM-format-v13.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.types import LEXEMES, REFERENCES, columns
from swsdist.io.compressed import LONGEST_LINE, lines, opened, short
from swsdist.io.fields import LATEST
from swsdist.io.nist.xml import channel_number, note_channels, seconds
from swsdist.io.notices import Notices
from swsdist.io.tables import read_table

_BLOCK = 4 << 20
_NINE = 9  # fields of a complete line
_LEAST = 6  # fields of a LEXEME: the token is the last required field


class Rttm(NamedTuple):
    """An RTTM's content, both tables in the order of the file.

    Attributes:
        lexemes: table LEXEMES.
        speakers: table LEXEMES without words: the stretches of speech (`word` is empty).
    """

    lexemes: pa.Table
    speakers: pa.Table


def read_rttm(
    path: str,
    storage: Mapping[str, object] | None = None,
    *,
    fields: int | None = None,
    notices: Notices | None = None,
) -> Rttm:
    """Words and stretches of speech of an RTTM.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.
        fields: required number of fields per line (KWSEval: 9); None: a word's first six, a stretch's first five.
        notices: collects channels that are not written as numbers.

    Raises:
        UserError: there is no such file, or it is a pipe.
        DataError: a line lacks fields or is longer than 1 MiB, or a time is not a number of seconds from 0 to 1e9.
    """
    return _read_columns(path, storage, notices) or _read_lines(path, storage, fields, notices)


def _read_columns(path: str, storage: Mapping[str, object] | None, notices: Notices | None) -> Rttm | None:
    """Fast reader for files with nine fields in every line, separated by single blanks, and no comment; else None."""
    parts = []
    with opened(path, storage) as stream:
        rest = b""
        while True:
            block = stream.read(_BLOCK)
            data = rest + block
            cut = data.rfind(b"\n") + 1 if block else len(data)
            rest, data = data[cut:], data[:cut]
            if len(rest) >= LONGEST_LINE:
                return None
            if data.strip():
                if any(mark in data for mark in (b"\t", b"  ", b";;", b"\0", b" \n", b"\v", b"\f", b"\x1c", b"\x1d")):
                    return None
                try:
                    parts.append(pa.csv.read_csv(pa.BufferReader(data), *_csv_options(len(data))))
                except pa.ArrowInvalid:
                    return None
            if not block:
                break
    if not parts:
        return None
    table = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    kinds = table["type"].chunk(0).dictionary.to_pylist()
    channels = table["channel"].chunk(0)
    if not all(name.isascii() and name.isdigit() and len(name) < 10 for name in channels.dictionary.to_pylist()):
        return None
    tables = []
    written: list[str] = []
    for kind in ("LEXEME", "SPEAKER"):
        indices_of_kind = pa.array([k for k, name in enumerate(kinds) if name.upper() == kind], pa.int32())
        selected = table.filter(pc.is_in(table["type"].chunk(0).indices, value_set=indices_of_kind))
        for name in ("start", "duration"):
            # Other types may have any values here, so these are read as text.
            try:
                values = selected[name].cast(pa.float64())
            except pa.ArrowInvalid:
                return None
            numbers = values.to_numpy()
            if not ((numbers >= 0) & (numbers <= LATEST)).all():
                return None
            selected = selected.set_column(selected.schema.get_field_index(name), name, values)
        numbers = np.array([int(name) for name in channels.dictionary.to_pylist()], dtype=np.int32)
        written += selected["channel"].unique().to_pylist()
        channel_codes = selected["channel"].combine_chunks()
        place = selected.schema.get_field_index("channel")
        selected = selected.set_column(
            place, "channel", pa.array(numbers[channel_codes.indices.to_numpy()] if len(channel_codes) else numbers[:0])
        )
        if kind == "SPEAKER":
            selected = selected.set_column(
                selected.schema.get_field_index("word"),
                "word",
                pa.array(np.full(len(selected), "", object), pa.string()),
            )
        tables.append(selected.select(LEXEMES.names).cast(LEXEMES))
    note_channels(written, path, notices)
    return Rttm(*tables)


def _csv_options(size: int) -> tuple[object, ...]:
    names = ["type", "doc_id", "channel", "start", "duration", "word", "kind", "speaker", "confidence"]
    few = pa.dictionary(pa.int32(), pa.string())
    kinds = {name: few if name in ("type", "doc_id", "channel", "kind", "speaker") else pa.string() for name in names}
    return (
        pa.csv.ReadOptions(use_threads=False, column_names=names, block_size=size + 1),
        pa.csv.ParseOptions(delimiter=" ", quote_char=False),
        pa.csv.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
    )


def _read_lines(path: str, storage: Mapping[str, object] | None, fields: int | None, notices: Notices | None) -> Rttm:
    kept: dict[str, tuple[list[object], ...]] = {kind: tuple([] for _ in LEXEMES) for kind in ("LEXEME", "SPEAKER")}
    channels: dict[str, int] = {}
    for number, line in lines(path, storage):
        values = line.split(";;", 1)[0].split(None, 8)
        if not values:
            continue
        kind = values[0].upper()
        count = len(line.split(";;", 1)[0].split()) if fields else len(values)
        if (fields is not None and count != fields) or (kind in kept and count < _LEAST - (kind == "SPEAKER")):
            required = f"{fields}" if fields else f"at least {_LEAST - (kind == 'SPEAKER')}"
            raise families.MALFORMED_LINE(
                "a {type} line has {fields} fields",
                "give {expected}: type file channel begin duration token sub-type speaker confidence",
                where=f"{path}, line {number}",
                type=short(kind),
                fields=count,
                expected=required,
            )
        if kind not in kept:
            continue
        values += [""] * (9 - len(values))
        columns = kept[kind]
        if values[2] not in channels:
            channels[values[2]] = channel_number(values[2], f"{path}, line {number}")
        columns[0].append(values[1])
        columns[1].append(channels[values[2]])
        columns[2].append(seconds(values[3], "begin", f"{path}, line {number}"))
        columns[3].append(seconds(values[4], "duration", f"{path}, line {number}"))
        columns[4].append(values[5] if kind == "LEXEME" else "")
        columns[5].append(values[6])
        columns[6].append(values[7])
    note_channels(channels, path, notices)
    tables = {
        kind: pa.table([pa.array(column, field.type) for column, field in zip(columns, LEXEMES, strict=True)], LEXEMES)
        for kind, columns in kept.items()
    }
    return Rttm(tables["LEXEME"], tables["SPEAKER"])


def write_rttm(lexemes: pa.Table, out: Path, speakers: pa.Table | None = None) -> None:
    """Write an RTTM that both programs read, in the order of the rows, stretches of speech first.

    Args:
        lexemes: table LEXEMES.
        out: local file to write.
        speakers: table LEXEMES, of stretches of speech.

    Raises:
        DataError: a name or word holds a blank or `;;`, which an RTTM cannot hold.
    """
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_lines("SPEAKER", speakers.to_batches() if speakers is not None else ()))
        file.writelines(_lines("LEXEME", lexemes.to_batches()))


def _lines(kind: str, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for batch in batches:
        for row in batch.to_pylist():
            token = row["word"] if kind == "LEXEME" else "<NA>"
            names = [row["doc_id"], token, row["kind"] or "<NA>", row["speaker"] or "<NA>"]
            for name in names:
                if not name or ";;" in name or len(name.split()) != 1:
                    raise families.UNWRITABLE_NAME.of(DataError)(
                        "{name!r} cannot be written to an RTTM", "take out blanks and ;;", name=name
                    )
            file, token, sub, speaker = names
            yield f"{kind} {file} {row['channel']} {row['start']!r} {row['duration']!r} {token} {sub} {speaker} <NA>\n"


SPEECH = columns("doc_id string, channel int32, start float64, end float64")


def read_speech(path: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """Stretches of speech, recognised by content: a Parquet file, a CSV whose first line names `doc_id`, or an RTTM.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.

    Returns:
        A table of schema SPEECH; ends of an RTTM's records are rounded to 4 decimals, as in KWSEval.

    Raises:
        UserError: there is no such file.
        DataError: it is broken, or an RTTM without SPEAKER records.
    """
    with opened(path, storage) as stream:
        head = stream.read(4096)
    if head.startswith(b"PAR1") or b"doc_id" in head.partition(b"\n")[0]:
        return read_table(path, SPEECH, storage=storage)
    turns = read_rttm(path, storage).speakers
    if not turns.num_rows:
        raise families.EMPTY_INPUT.of(DataError)(
            "the RTTM has no SPEAKER records", "give an RTTM with SPEAKER records for the speech", where=path
        )
    ends = np.array([round(end, 4) for end in (turns["start"].to_numpy() + turns["duration"].to_numpy()).tolist()])
    columns = [turns["doc_id"].cast(pa.string()), turns["channel"], turns["start"], pa.array(ends, pa.float64())]
    return pa.table(columns, schema=SPEECH)


def read_query_documents(path: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """The pairs of a query and a document of an RTTM of QUESST (MediaEval 2014, 2015), once each, in the order of the file.

    A line has exactly nine fields, separated by **single** blanks; field 2 is the document, field 6 the **id** of the query,
    not its text. Type, channel and times are ignored. Empty lines are skipped.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.

    Returns:
        table REFERENCES, of channel 1, without times.

    Raises:
        UserError: there is no such file.
        DataError: a line has not nine fields separated by single blanks.
    """
    targets: dict[tuple[str, str], None] = {}
    for number, line in lines(path, storage):
        if not line:
            continue
        fields = line.split(" ")
        if len(fields) != _NINE or "" in fields:
            raise families.MALFORMED_LINE(
                "the line has {fields} fields{separators}",
                "give nine, separated by one blank: LEXEME document 1 begin duration query-id lex speaker <NA>",
                where=f"{path}, line {number}",
                fields=len(line.split()),
                separators=", not separated by single blanks" if "" in fields else "",
            )
        targets[fields[5], fields[1]] = None
    rows = [(query, document, 1, 0.0, 0.0) for query, document in targets]
    return pa.Table.from_pylist([dict(zip(REFERENCES.names, row, strict=True)) for row in rows], REFERENCES)
