"""Manifests of lhotse (JSON lines, plain or packed) as a corpus: recordings, supervisions and cuts.

- A **recording** has `id`, `sources` (one file, channels from 0) and `duration`; each channel is a document.
- A **supervision** is a stretch of a recording (`recording_id`, `start`, `duration`, `channel`; optionally `speaker`,
  `text`): a document that is a place in a recording. The recordings are in the manifest beside it, named with
  `recordings` in place of `supervisions`, as in lhotse's recipes. With word alignments it also gives the times of
  words.
- A **cut** (MonoCut, MultiCut) is a supervision that includes its recording.

Channels are lhotse's plus 1. Relative paths start from `corpus.audio`, by default the manifest's folder.

Sources: lhotse's documentation (docs/corpus.rst, docs/cuts.rst) and its classes Recording, SupervisionSegment and
MonoCut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from swsdist.audio.streams import is_command
from swsdist.core.codes import corpora as codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import parse_json
from swsdist.core.types import CORPUS, LEXEMES, PLACED, QUERIES
from swsdist.corpora.places import absolute
from swsdist.io.compressed import lines
from swsdist.io.filesystem import locate

Manifest = Literal["lhotse recordings", "lhotse supervisions", "lhotse cuts"]


def manifest_kind(line: str) -> Manifest | None:
    """Kind of the manifest that begins with this line; None if it is no manifest."""
    try:
        row = parse_json(line)
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
    """The content of a line: a recording, or a stretch of it (`start` to `end`, s)."""

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
        kind: of manifest.
        storage: options for s3fs.
        audio: base folder of relative paths.

    Returns:
        CORPUS of recordings, else PLACED.

    Raises:
        UserError: it is empty, or supervisions lack their recordings.
        DataError: a line is wrong, or its audio is not in a single file.
    """
    rows, seen = [], set[tuple[str, int]]()
    for item in _items(source, kind, storage, audio):
        for channel in item.channels:
            if (item.id, channel) in seen:
                raise codes.DUPLICATE_ENTRY(where=item.where, name=item.id)
            seen.add((item.id, channel))
            row = {"doc_id": item.id, "channel": channel, "path": item.path, "duration": item.duration}
            row |= {"speaker": item.speaker, "recording": item.recording, "start": item.start, "end": item.end}
            rows.append({**row, "listed": item.where})
    if not rows:
        raise codes.EMPTY_MANIFEST(where=source, what=kind.removeprefix("lhotse "))
    return pa.Table.from_pylist(rows, CORPUS if kind == "lhotse recordings" else PLACED)


def lhotse_queries(
    source: str, kind: Manifest, storage: Mapping[str, object] | None = None, audio: str | None = None
) -> pa.Table:
    """The entries of a manifest as queries of one example each, named by their ids: QUERIES; the text is the term.

    Raises:
        UserError, DataError: as in `lhotse_documents`; or a stretch has several channels.
    """
    rows, seen = [], set[str]()
    for item in _items(source, kind, storage, audio):
        if len(item.channels) > 1 and not item.is_whole:
            raise families.UNSUPPORTED.of(DataError)(
                "the query has several channels", "keep the channel that the query is on", where=item.where
            )
        if item.id in seen:
            raise codes.DUPLICATE_ENTRY(where=item.where, name=item.id)
        seen.add(item.id)
        row = {
            "query_id": item.id,
            "example": 1,
            "path": item.path,
            "channel": item.channels[0],
            "speaker": item.speaker,
        }
        rows.append({**row, "start": item.start, "end": item.end, "term": item.text})
    if not rows:
        raise codes.EMPTY_MANIFEST(where=source, what=kind.removeprefix("lhotse "))
    return pa.Table.from_pylist(rows, QUERIES)


def is_supervisions(source: str, storage: Mapping[str, object] | None = None) -> bool:
    """Whether a transcript is a manifest of supervisions."""
    return manifest_kind(next((line for _, line in lines(source, storage)), "")) == "lhotse supervisions"


def aligned_words(source: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """The aligned words of supervisions, in the form of a CTM: LEXEMES, by recording, channel and start.

    Raises:
        DataError: a line is wrong; or a supervision with text lacks times of words.
    """
    rows: list[dict[str, object]] = []
    for row, where in _lines(source, storage):
        aligned = (row.get("alignment") or {}).get("word")
        if aligned is None and row.get("text"):
            raise families.MISSING_INPUT.of(DataError)(
                "the supervision has no word alignment, so the times of its words are unknown",
                "align it (lhotse workflows align-with-torchaudio), or give references as a table",
                where=where,
            )
        for item in aligned or ():
            if not isinstance(item, list) or len(item) < 3 or not isinstance(item[0], str):
                raise families.MALFORMED_LINE(
                    "a word of the alignment is {word!r}", "give [word, start, duration, score]", where=where, word=item
                )
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
    recordings: dict[str, tuple[str, str, int]] = {}
    if kind == "lhotse supervisions":
        other = _beside(source, storage)
        for row, where in _lines(other, storage):
            recording = _recording(row, other, storage, audio, where)
            if recording[0] in recordings:
                raise codes.DUPLICATE_ENTRY(where=where, name=recording[0])
            recordings[recording[0]] = recording
    for row, where in _lines(source, storage):
        if kind == "lhotse supervisions":
            name, supervisions = _text(row, "recording_id", where), [row]
            if name not in recordings:
                raise families.UNKNOWN_NAME.of(DataError)(
                    "no recording {recording!r} in {manifest}",
                    "add it, or drop the line",
                    where=where,
                    recording=name,
                    manifest=other,
                )
            recording = recordings[name]
        else:
            supervisions = row.get("supervisions") or []
            if row.get("type") not in ("MonoCut", "MultiCut") or not row.get("recording"):
                what = f"is a {row.get('type')}" if row.get("recording") or "tracks" in row else "has no recording"
                raise families.UNSUPPORTED.of(DataError)(
                    "the cut {fault}: it is not a place in a recording",
                    "save its sound (CutSet.save_audios) and name the manifest that this writes",
                    where=where,
                    fault=what,
                )
            recording = _recording(row["recording"], source, storage, audio, where)
        start, length = (_time(row.get(key), key, where) for key in ("start", "duration"))
        channels = _channels(row.get("channel", 0), where)
        if max(channels) > recording[2]:
            raise families.UNKNOWN_NAME.of(DataError)(
                "no channel {channel} in {recording!r}",
                "channels count from 0",
                where=where,
                channel=max(channels) - 1,
                recording=recording[0],
            )
        speakers = {item.get("speaker") for item in supervisions}
        spoken = " ".join(item["text"] for item in supervisions if item.get("text"))
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
            spoken or None,
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
        wrong = "is the output of a command, which only a Kaldi wav.scp may list"
    elif not channels or list(channels) != list(range(len(channels))):
        wrong = f"has the channels {first.get('channels')}, and those of a file are 0, 1, ..."
    elif row.get("transforms"):
        wrong = "is to be transformed when it is read"
    if wrong:
        raise families.UNSUPPORTED.of(DataError)(
            "the recording {recording!r} {fault}",
            "save its sound to one file (CutSet.save_audios), and name the manifest that this writes",
            where=where,
            recording=name,
            fault=wrong,
        )
    path = absolute(first["source"], audio or locate(source, storage)[0].root)
    return name, path, len(channels)


def _beside(source: str, storage: Mapping[str, object] | None) -> str:
    folder, name = locate(source, storage)
    other = name.replace("supervisions", "recordings")
    if other == name or not folder.exists(other):
        raise families.MISSING_INPUT(
            "supervisions do not say where the sound is",
            (
                "put the manifest of the recordings beside it, as dev_recordings.jsonl.gz beside "
                "dev_supervisions.jsonl.gz, or name cuts"
            ),
            where=source,
        )
    return folder.path(other)


def _lines(source: str, storage: Mapping[str, object] | None) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in lines(source, storage):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        try:
            row = parse_json(line)
        except ValueError as error:
            raise families.MALFORMED_LINE(
                "the line is not JSON ({error})", "make the manifest again", where=where, error=error
            ) from None
        if not isinstance(row, dict):
            raise codes.NOT_A_JSON_OBJECT(where=where)
        yield row, where


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise families.MALFORMED_LINE("{key} is {value!r}", "give its {key}", where=where, key=key, value=value)
    return value


def _time(value: object, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise families.MALFORMED_LINE("{key} is {value!r}", "give the {key} in s", where=where, key=key, value=value)
    return float(value)


def _channels(value: object, where: str) -> tuple[int, ...]:
    """Our channels, from 1."""
    result: Sequence[object] = value if isinstance(value, list) else [value]
    if not result or not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in result):
        raise families.MALFORMED_LINE(
            "channel is {value!r}", "give a number from 0 on, or a list of such", where=where, value=value
        )
    return tuple(int(str(item)) + 1 for item in result)
