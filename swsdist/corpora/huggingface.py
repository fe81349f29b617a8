"""Data sets of Hugging Face as a corpus: the folder that `save_to_disk` of `datasets` writes, read without that
library.

`state.json` names the Arrow files (streams, not packed), `dataset_info.json` the columns. The column of type Audio
holds a path, or the bytes of a file, which are read in place through a path `data-00000-of-00001.arrow:BEGIN+LENGTH`
(`swsdist.audio.formats.views`), so nothing is copied. Other columns read, if present:

- `id`: the row's name; else the name of its file, else its number in the set, from 0.
- `speaker_id`, `speaker`, `client_id`: the first of them.
- `text`, `sentence`, `transcription`: the first of them; the term of a query.

Sources: Hugging Face, "Load audio data" and "Audio features" in the documentation of `datasets`; the output of
`save_to_disk`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.audio.streams import require_file
from swsdist.core.codes import corpora as codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import parse_json
from swsdist.core.types import QUERIES

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"

_SPEAKERS, _TEXTS = ("speaker_id", "speaker", "client_id"), ("text", "sentence", "transcription")


class Entry(NamedTuple):
    """A row: its name, the place of its audio, speaker and text."""

    id: str
    path: str
    speaker: str | None
    text: str | None


def entries(source: str) -> list[Entry]:
    """The rows of a data set, in order.

    Raises:
        UserError: it does not have exactly one column of audio.
        DataError: a file of it is missing or damaged, or a row lacks audio, or repeats a name.
    """
    folder = Path(source)
    features = _json(folder / INFO).get("features") or {}
    sounds = [name for name, kind in features.items() if isinstance(kind, dict) and kind.get("_type") == "Audio"]
    if len(sounds) != 1:
        raise families.AMBIGUOUS(
            "the data set has {count} columns of the type Audio: {columns}",
            "keep one of them, or cast it: Dataset.cast_column(name, Audio())",
            where=source,
            count=len(sounds),
            columns=", ".join(sounds) or ", ".join(features),
        )
    result: dict[str, Entry] = {}
    for number, (file, row) in enumerate(_rows(folder, sounds[0])):
        where = f"{file}: row {number} of the data set"
        named = row["id"] if row["id"] is not None else Path(row["named"]).stem if row["named"] else number
        if row["path"] is None:
            raise families.BAD_CELL.of(DataError)(
                "the row has no sound", "leave the row out (Dataset.filter)", where=where
            )
        entry = Entry(str(named), row["path"], row["speaker"], row["text"])
        if entry.id in result:
            raise families.DUPLICATE_NAME(
                "duplicate row {row!r}", "add a column id with unique names", where=where, row=entry.id
            )
        result[entry.id] = entry
    if not result:
        raise families.EMPTY_INPUT("the data set has no rows", "name a data set with rows", where=source)
    return [*result.values()]


def dataset_queries(source: str) -> pa.Table:
    """The rows as named queries of one example each: QUERIES."""
    rows = [
        {
            "query_id": entry.id,
            "example": 1,
            "path": entry.path,
            "channel": 1,
            "speaker": entry.speaker,
            "term": entry.text,
        }
        for entry in entries(source)
    ]
    return pa.Table.from_pylist(rows, QUERIES)


def splits(source: str) -> str:
    """Names of the data sets in a folder of several."""
    return ", ".join(map(str, _json(Path(source) / SPLITS).get("splits") or ()))


def _rows(folder: Path, sound: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for entry in _json(folder / STATE).get("_data_files") or ():
        file = folder / str(entry.get("filename"))
        try:
            with pa.memory_map(str(file)) as mapped:
                base = mapped.read_buffer()
            for batch in pa.ipc.open_stream(base):
                yield from ((file, row) for row in _of_batch(batch, sound, file, folder, base))
        except (OSError, pa.ArrowInvalid) as error:
            raise codes.UNREADABLE_DATASET(where=str(file), error=error) from error


def _of_batch(batch: pa.RecordBatch, sound: str, file: Path, folder: Path, base: pa.Buffer) -> Iterator[dict[str, Any]]:
    column = batch.column(sound)
    if not pa.types.is_struct(column.type) or {"bytes", "path"} - {field.name for field in column.type}:
        raise codes.BAD_AUDIO_COLUMN(where=str(file), column=sound, type=column.type)
    parts = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
    paths, stored = parts["path"].to_pylist(), parts["bytes"]
    others = {key: _column(batch, names) for key, names in (("id", ("id",)), ("speaker", _SPEAKERS), ("text", _TEXTS))}
    if stored.null_count < len(stored) and stored.type not in (pa.binary(), pa.large_binary()):
        raise codes.BAD_AUDIO_COLUMN(where=str(file), column=sound, type=column.type)
    places = _places(stored, base, file) if stored.null_count < len(stored) else [None] * len(paths)
    for k, (path, place) in enumerate(zip(paths, places, strict=True)):
        if place is None and path is not None:
            require_file(path, "a data set", str(file))
        location = place if place is not None else None if path is None else str(folder / path)
        yield {"named": path, "path": location, **{key: values[k] for key, values in others.items()}}


def _places(stored: pa.Array, base: pa.Buffer, file: Path) -> list[str | None]:
    """Place of each row's bytes in the file; None for a row without bytes."""
    wide = stored.type == pa.large_binary()
    _, ends, data = stored.buffers()
    offsets = pa.Array.from_buffers(
        pa.int64() if wide else pa.int32(), len(stored) + 1, [None, ends], offset=stored.offset
    )
    begin = data.address - base.address
    if not 0 <= begin <= base.size:
        raise families.UNSUPPORTED.of(DataError)(
            "the columns of the data set are compressed", "save it again (save_to_disk)", where=str(file)
        )
    at = offsets.to_pylist()
    return [
        f"{file}:{begin + first}+{end - first}" if valid and end > first else None
        for first, end, valid in zip(at, at[1:], stored.is_valid().to_pylist(), strict=False)
    ]


def _column(batch: pa.RecordBatch, names: Sequence[str]) -> list[str | None]:
    name = next((name for name in names if name in batch.schema.names), None)
    if name is None:
        return [None] * batch.num_rows
    return [None if value is None else str(value) for value in batch.column(name).to_pylist()]


def _json(path: Path) -> dict[str, Any]:
    try:
        values = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise codes.UNREADABLE_DATASET(where=str(path), error=error) from error
    if not isinstance(values, dict):
        raise codes.NOT_A_JSON_OBJECT(where=str(path))
    return values
