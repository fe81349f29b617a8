"""Manifests of lhotse (JSON lines, plain or packed) as a corpus: recordings, supervisions and cuts.

- A **recording** has `id`, `sources` (one file, channels from 0) and `duration`; it is a document for each of its channels.
- A **supervision** is a stretch of a recording (`recording_id`, `start`, `duration`, `channel`; maybe `speaker`, `text`): a
  document that is a place in a recording. The recordings are in the manifest beside it, whose name says `recordings` in place
  of `supervisions`, as lhotse's recipes call them. With word alignments it also tells where words are said.
- A **cut** (MonoCut, MultiCut) is the same with its recording inside.

Channels are lhotse's plus 1. Paths of files are relative to `corpus.audio`, by default the manifest's folder.

Sources: lhotse's documentation (docs/corpus.rst, docs/cuts.rst) and its classes Recording, SupervisionSegment and MonoCut.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from swsdist.audio.commands import is_command
from swsdist.core.codes import corpora as codes
from swsdist.core.types import CORPUS, LEXEMES, PLACED, QUERIES
from swsdist.io.compressed import lines
from swsdist.io.filesystem import is_remote, locate

Manifest = Literal["lhotse recordings", "lhotse supervisions", "lhotse cuts"]


def manifest_kind(line: str) -> Manifest | None:
    """Which manifest begins with this line; None if none does."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or "id" not in row:
        return None
    if "sources" in row:
        return "lhotse recordings"
    if "recording_id" in row:
        return "lhotse supervisions"
    return "lhotse cuts" if str(row.get("type", "")).endswith("Cut") else None


@dataclass(frozen=True)
class _Item:
    """What a line is about: a recording, or a stretch of one (`start` to `end`, s)."""

    id: str
    channels: tuple[int, ...]
    path: str
    recording: str
    duration: float
    start: float | None
    end: float | None
    speaker: str | None
    text: str | None
    where: str

    @property
    def is_whole(self) -> bool:
        return self.start is None


def lhotse_documents(
    source: str, kind: Manifest, storage: Mapping[str, object] | None = None, audio: str | None = None
) -> pa.Table:
    """The documents of a manifest, in its order.

    Args:
        source: the manifest, local or `s3://`.
        kind: of it.
        storage: options for s3fs.
        audio: folder that relative paths are relative to.

    Returns:
        CORPUS of recordings, else PLACED.

    Raises:
        UserError: there is nothing in it, or no recordings beside supervisions.
        DataError: a line is wrong, or is of sound that is in no single file.
    """
    rows, seen = [], set[tuple[str, int]]()
    for one in _items(source, kind, storage, audio):
        for channel in one.channels:
            if (one.id, channel) in seen:
                raise codes.DUPLICATE_ENTRY(where=one.where, name=one.id)
            seen.add((one.id, channel))
            row = {"doc_id": one.id, "channel": channel, "path": one.path, "duration": one.duration}
            row |= {"speaker": one.speaker, "recording": one.recording, "start": one.start, "end": one.end}
            rows.append({**row, "listed": one.where})
    if not rows:
        raise codes.EMPTY_MANIFEST(where=source, what=kind.removeprefix("lhotse "))
    return pa.Table.from_pylist(rows, CORPUS if kind == "lhotse recordings" else PLACED)


def lhotse_queries(
    source: str, kind: Manifest, storage: Mapping[str, object] | None = None, audio: str | None = None
) -> pa.Table:
    """The same as queries of one example each, called by their ids: QUERIES; what is said is their term.

    Raises:
        UserError, DataError: as of `lhotse_documents`; or a stretch is of several channels.
    """
    rows, seen = [], set[str]()
    for one in _items(source, kind, storage, audio):
        if len(one.channels) > 1 and not one.is_whole:
            raise codes.QUERY_OF_SEVERAL_CHANNELS(where=one.where)
        if one.id in seen:
            raise codes.DUPLICATE_ENTRY(where=one.where, name=one.id)
        seen.add(one.id)
        row = {"query_id": one.id, "example": 1, "path": one.path, "channel": one.channels[0], "speaker": one.speaker}
        rows.append({**row, "start": one.start, "end": one.end, "term": one.text})
    if not rows:
        raise codes.EMPTY_MANIFEST(where=source, what=kind.removeprefix("lhotse "))
    return pa.Table.from_pylist(rows, QUERIES)


def is_supervisions(source: str, storage: Mapping[str, object] | None = None) -> bool:
    """Whether a transcript is a manifest of supervisions."""
    return manifest_kind(next((line for _, line in lines(source, storage)), "")) == "lhotse supervisions"


def aligned_words(source: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """The words of supervisions by their alignment, as a CTM tells them: LEXEMES, by recording, channel and start.

    Raises:
        DataError: a line is wrong; or a supervision has no words with times, though it has text.
    """
    rows: list[dict[str, object]] = []
    for row, where in _lines(source, storage):
        found = (row.get("alignment") or {}).get("word")
        if found is None and row.get("text"):
            raise codes.SUPERVISION_WITHOUT_ALIGNMENT(where=where)
        for item in found or ():
            if not isinstance(item, list) or len(item) < 3 or not isinstance(item[0], str):
                raise codes.MALFORMED_ALIGNED_WORD(where=where, word=item)
            word = {"word": item[0], "start": _time(item[1], "start", where)}
            word["duration"] = _time(item[2], "duration", where)
            place = {"doc_id": _text(row, "recording_id", where), "speaker": row.get("speaker"), "kind": None}
            rows += [{**place, **word, "channel": channel} for channel in _channels(row.get("channel", 0), where)]
    return pa.Table.from_pylist(rows, LEXEMES).sort_by([(key, "ascending") for key in ("doc_id", "channel", "start")])


def _items(source: str, kind: Manifest, storage: Mapping[str, object] | None, audio: str | None) -> Iterator[_Item]:
    if kind == "lhotse recordings":
        for row, where in _lines(source, storage):
            name, path, count = _recording(row, source, storage, audio, where)
            channels, length = tuple(range(1, count + 1)), _time(row.get("duration"), "duration", where)
            yield _Item(name, channels, path, name, length, None, None, None, None, where)
        return
    beside: dict[str, tuple[str, str, int]] = {}
    if kind == "lhotse supervisions":
        other = _beside(source, storage)
        for row, where in _lines(other, storage):
            beside[_text(row, "id", where)] = _recording(row, other, storage, audio, where)
    for row, where in _lines(source, storage):
        if kind == "lhotse supervisions":
            name, told = _text(row, "recording_id", where), [row]
            if name not in beside:
                raise codes.UNKNOWN_MANIFEST_RECORDING(where=where, recording=name, manifest=other)
            recording = beside[name]
        else:
            told = row.get("supervisions") or []
            if row.get("type") not in ("MonoCut", "MultiCut") or not row.get("recording"):
                what = f"is a {row.get('type')}" if row.get("recording") or "tracks" in row else "has no recording"
                raise codes.UNSUPPORTED_CUT(where=where, fault=what)
            recording = _recording(row["recording"], source, storage, audio, where)
        start, length = (_time(row.get(key), key, where) for key in ("start", "duration"))
        channels = _channels(row.get("channel", 0), where)
        if max(channels) > recording[2]:
            raise codes.NO_SUCH_MANIFEST_CHANNEL(where=where, channel=max(channels) - 1, recording=recording[0])
        speakers = {one.get("speaker") for one in told}
        said = " ".join(one["text"] for one in told if one.get("text"))
        speaker = speakers.pop() if len(speakers) == 1 else None
        end, length = round(start + length, 6), round(length, 6)
        yield _Item(
            _text(row, "id", where),
            channels,
            recording[1],
            recording[0],
            length,
            start,
            end,
            speaker,
            said or None,
            where,
        )


def _recording(
    row: Mapping[str, Any], source: str, storage: Mapping[str, object] | None, audio: str | None, where: str
) -> tuple[str, str, int]:
    """Id, path, and number of channels of a recording."""
    name = _text(row, "id", where)
    sources = row.get("sources") or [{}]
    first = sources[0] if isinstance(sources[0], dict) else {}
    channels = first.get("channels") or []
    wrong = None
    if len(sources) > 1:
        wrong = f"is of {len(sources)} files"
    elif first.get("type") not in ("file", "url") or not isinstance(first.get("source"), str):
        wrong = f"is no file: its source is a {first.get('type')}"
    elif is_command(first["source"]):
        wrong = "is the output of a command, which stands in a Kaldi wav.scp alone"
    elif not channels or list(channels) != list(range(len(channels))):
        wrong = f"has the channels {first.get('channels')}, and those of a file are 0, 1, ..."
    elif row.get("transforms"):
        wrong = "is to be transformed when it is read"
    if wrong:
        raise codes.UNSUPPORTED_MANIFEST_RECORDING(where=where, recording=name, fault=wrong)
    path = first["source"]
    if not is_remote(path) and not path.startswith("/"):
        base = (audio or locate(source, storage)[0].root).rstrip("/")
        scheme, slashes, root = base.rpartition("//") if is_remote(base) else ("", "", base)
        path = scheme + slashes + posixpath.normpath(f"{root}/{path}")
    return name, path, len(channels)


def _beside(source: str, storage: Mapping[str, object] | None) -> str:
    folder, name = locate(source, storage)
    other = name.replace("supervisions", "recordings")
    if other == name or not folder.exists(other):
        raise codes.NO_RECORDINGS_MANIFEST(where=source)
    return folder.path(other)


def _lines(source: str, storage: Mapping[str, object] | None) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in lines(source, storage):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise codes.MALFORMED_MANIFEST_LINE(where=where, error=error) from None
        if not isinstance(row, dict):
            raise codes.NOT_A_JSON_OBJECT(where=where)
        yield row, where


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise codes.BAD_MANIFEST_TEXT(where=where, key=key, value=value)
    return value


def _time(value: object, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise codes.BAD_MANIFEST_TIME(where=where, key=key, value=value)
    return float(value)


def _channels(value: object, where: str) -> tuple[int, ...]:
    """Ours, from 1."""
    found: Sequence[object] = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in found):
        raise codes.BAD_MANIFEST_CHANNEL(where=where, value=value)
    return tuple(int(str(one)) + 1 for one in found)
