"""Kaldi data folders: documents, of a folder or of its `wav.scp` alone, and places of utterances.

Documents:

- `wav.scp` (`recording entry`): an entry is a path, a place in an archive (`wav.ark:1234`), or a command (it ends in
  `|`). Relative paths and commands start from `corpus.audio`, by default the list's folder. Channel 1 is read, as in
  Kaldi.
- `segments` (`utterance recording start end`, s): if present, the documents are the utterances, places in recordings.
- `utt2spk` (`utterance speaker`) and `reco2dur` (`recording seconds`), if present.

A `wav.scp` named directly is a list of complete recordings: other files of its folder are ignored. `text` is read only
if `corpus.text` names it.

Places of utterances, for results of keyword search:

- `segments`: without it an utterance is a recording of its own, from 0.
- `reco2file_and_channel` (`recording file channel`), a map of two columns (`recording name`, the recipes' `utter_map`),
  or a `wav.scp` whose entries are plain paths: gives the document, and its channel. Without it the document is the
  recording, on channel 1.
- `utter_id` (`utterance number`): numbers of utterances in an index for keyword search.

Sources: Kaldi, "Data preparation" and "Kaldi I/O from a command-line perspective"; `extract-segments`, which moves an
end at most 0.5 s beyond the recording to the recording's end; the recipes for keyword search.
"""

from __future__ import annotations

import math
import re
import shlex
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from swsdist.audio import streams
from swsdist.audio.formats import views
from swsdist.core.codes import corpora as codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.places import absolute
from swsdist.io.compressed import lines
from swsdist.io.fields import integer, split, time
from swsdist.io.filesystem import Folder, is_remote, locate
from swsdist.io.nist.xml import channel_number
from swsdist.io.notices import Notices

_SLACK = 1e-6  # s, tolerance of detections beyond the ends of utterances


class Segment(NamedTuple):
    """Place of an utterance: document, channel, start and end in s; without a segment the end is inf."""

    doc_id: str
    channel: int
    start: float
    end: float


@dataclass(frozen=True)
class Utterances:
    """Places of utterances.

    Attributes:
        segments: utterance -> its place, from a file `segments`.
        recordings: recording -> document and channel, from a map.
        numbers: number -> utterance, from `utter_id`.
    """

    segments: Mapping[str, tuple[str, float, float]] | None = None
    recordings: Mapping[str, tuple[str, int]] | None = None
    numbers: Mapping[str, str] | None = None

    def place(self, utterance: str, where: str) -> Segment:
        """Place of an utterance in a line of results.

        Raises:
            DataError: a file does not contain the utterance.
        """
        if self.numbers is not None:
            if utterance not in self.numbers:
                raise families.UNKNOWN_NAME.of(DataError)(
                    "utterance {utterance!r} is not in utter_id",
                    "give the utter_id of this index",
                    where=where,
                    utterance=utterance,
                )
            utterance = self.numbers[utterance]
        recording, start, end = utterance, 0.0, math.inf
        if self.segments is not None:
            if utterance not in self.segments:
                raise families.UNKNOWN_NAME.of(DataError)(
                    "utterance {utterance!r} is not in segments",
                    "give the segments of this index",
                    where=where,
                    utterance=utterance,
                )
            recording, start, end = self.segments[utterance]
        if self.recordings is None:
            return Segment(recording, 1, start, end)
        if recording not in self.recordings:
            raise families.UNKNOWN_NAME.of(DataError)(
                "recording {recording!r} is not in the map of recordings",
                "add it, or leave it out",
                where=where,
                recording=recording,
            )
        return Segment(*self.recordings[recording], start, end)

    def find(self, doc_id: str, channel: int, start: float, end: float) -> tuple[str, float]:
        """The utterance that contains a place, by its name in results, and its start in s.

        Of several the one that begins last.

        Raises:
            UserError: no utterance contains it.
        """
        if self.segments is None and self.recordings is None and self.numbers is None and channel == 1:
            return doc_id, 0.0
        places = self._places.get((doc_id, channel), [])
        for begin, stop, name in reversed(places[: bisect_right(places, start + _SLACK, key=lambda item: item[0])]):
            if end <= stop + _SLACK:
                return name, begin
        raise families.UNKNOWN_NAME(
            "no utterance holds {start} to {end} s of document {document!r}, channel {channel}",
            "give the segments, utter_id and map of recordings of the searched index",
            start=start,
            end=end,
            document=doc_id,
            channel=channel,
        )

    @cached_property
    def _places(self) -> dict[tuple[str, int], list[tuple[float, float, str]]]:
        """Document and channel -> start, end and name of its utterances, ascending."""
        places: dict[tuple[str, int], list[tuple[float, float, str]]] = {}
        for name in next((table for table in (self.numbers, self.segments, self.recordings) if table is not None), {}):
            there = self.place(name, "utterances")
            places.setdefault((there.doc_id, there.channel), []).append((there.start, there.end, name))
        for utterances in places.values():
            utterances.sort()
        return places


def read_utterances(
    *,
    segments: str | None = None,
    recordings: str | None = None,
    utter_id: str | None = None,
    storage: Mapping[str, object] | None = None,
) -> Utterances:
    """Read the files of a Kaldi data folder that place utterances; each is optional.

    Args:
        segments: `segments`.
        recordings: `reco2file_and_channel`, `utter_map` or `wav.scp`.
        utter_id: `utter_id` of the index.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file.
        DataError: a line has another number of fields, a time is impossible, a name is a duplicate, or an entry of
            `wav.scp` is a command.
    """
    return Utterances(
        segments=None if segments is None else _utterance_places(segments, storage),
        recordings=None if recordings is None else _recordings(recordings, storage),
        numbers=None if utter_id is None else _numbers(utter_id, storage),
    )


def records(
    path: str, storage: Mapping[str, object] | None, least: int, most: int, names: str
) -> Iterator[tuple[list[str], str]]:
    """Lines of a file of a data folder, each with its place; first fields are unique.

    Args:
        path: of the file.
        storage: options for s3fs.
        least, most: allowed numbers of fields.
        names: of the fields, for messages.

    Raises:
        UserError: there is no such file.
        DataError: a line has another number of fields, or a name is a duplicate.
    """
    seen: set[str] = set()
    for line_number, line in lines(path, storage):
        fields = split(line)
        if not fields:
            continue
        where = f"{path}, line {line_number}"
        if not least <= len(fields) <= most:
            raise families.MALFORMED_LINE(
                "the line has {fields} fields", "give: {names}", where=where, fields=len(fields), names=names
            )
        if fields[0] in seen:
            raise codes.DUPLICATE_ENTRY(where=where, name=fields[0])
        seen.add(fields[0])
        yield fields, where


def _utterance_places(path: str, storage: Mapping[str, object] | None) -> dict[str, tuple[str, float, float]]:
    return {name: place for name, place, _ in segment_lines(path, storage)}


def segment_lines(
    path: str, storage: Mapping[str, object] | None
) -> Iterator[tuple[str, tuple[str, float, float], str]]:
    """The lines of `segments`: utterance; recording, start and end (s); and file and line.

    Raises:
        UserError, DataError: as in `records`; or a time is impossible.
    """
    for (utterance, recording, *times), where in records(path, storage, 4, 4, "utterance recording start end"):
        start, end = time(times[0], "start", where), time(times[1], "end", where)
        if not start < end:
            raise families.INVALID_TIMES(
                "the segment goes from {start} to {end} s",
                "give start and end in s, end the later",
                where=where,
                start=start,
                end=end,
            )
        yield utterance, (recording, start, end), where


def _recordings(path: str, storage: Mapping[str, object] | None) -> dict[str, tuple[str, int]]:
    result = {}
    for fields, where in records(path, storage, 2, 1 << 20, "recording name [channel]"):
        if len(fields) > 3 or fields[-1] == "|":
            raise families.UNSUPPORTED.of(DataError)(
                "the entry of {name!r} is a command, which does not give the document's name",
                "give reco2file_and_channel, or a map of two columns: recording name",
                where=where,
                name=fields[0],
            )
        name = fields[1]
        if len(fields) == 2 and "/" in name:  # a path, in wav.scp
            name = re.sub(r"\.(sph|wav|flac)$", "", name.rpartition("/")[2])
        result[fields[0]] = (name, channel_number(fields[2], where) if len(fields) == 3 else 1)
    return result


def _numbers(path: str, storage: Mapping[str, object] | None) -> dict[str, str]:
    result: dict[str, str] = {}
    for (name, number), where in records(path, storage, 2, 2, "utterance number"):
        integer(number, "number", where)
        if number in result:
            raise families.DUPLICATE_NAME(
                "{first!r} and {second!r} both have the number {number}",
                "give each utterance its own number",
                where=where,
                first=name,
                second=result[number],
                number=number,
            )
        result[number] = name
    return result


def kaldi_documents(
    source: str,
    storage: Mapping[str, object] | None = None,
    audio: str | None = None,
    notices: Notices | None = None,
) -> pa.Table:
    """The documents of a data folder, or of a list of recordings.

    Args:
        source: folder with `wav.scp`, or that file; local or `s3://`.
        storage: options for s3fs.
        audio: base folder of relative paths.
        notices: collects lines about unknown utterances or recordings.

    Returns:
        table PLACED with `segments`, else CORPUS; in the order of the lists.

    Raises:
        UserError: a file is unreadable or empty.
        DataError: a line is wrong.
    """
    alone = source.rpartition("/")[2].endswith((".scp", ".scp.gz", ".scp.xz"))
    folder = locate(source, storage)[0] if alone else Folder(source, storage or {})
    scp = source if alone else folder.path("wav.scp")
    entries = _entries(scp, audio or folder.root, storage)
    if not entries:
        raise families.EMPTY_INPUT("the wav.scp has no recordings", "a line is: recording path", where=scp)
    noted = notices if notices is not None else Notices()

    def beside(name: str) -> str | None:
        return folder.path(name) if not alone and folder.exists(name) else None

    speakers: dict[str, str] = {}
    seconds: dict[str, float] = {}
    if (path := beside("utt2spk")) is not None:
        speakers = {name: speaker for (name, speaker), _ in records(path, storage, 2, 2, "utterance speaker")}
    if (durations := beside("reco2dur")) is not None:
        for (name, value), where in records(durations, storage, 2, 2, "recording seconds"):
            seconds[name] = time(value, "duration", where)
    segments = beside("segments")
    if segments is not None:
        table = _segments(segments, scp, entries, speakers, storage)
    else:
        rows = [
            {
                "doc_id": name,
                "channel": 1,
                "path": entry,
                "duration": seconds.get(name),
                "speaker": speakers.get(name),
            }
            for name, (entry, _) in entries.items()
        ]
        table = pa.Table.from_pylist(rows, CORPUS)
    _note_strange(noted, path, speakers, set(table["doc_id"].to_pylist()), "utterances")
    _note_strange(noted, durations, seconds, set(entries), "recordings")
    return table


def demand_permission(paths: Iterable[str], source: str, storage: Mapping[str, object] | None = None) -> None:
    """Refuse documents given by commands, unless commands are allowed; with the line of the list.

    Args:
        paths: of documents.
        source: the list that contains them.
        storage: options for s3fs.

    Raises:
        AudioError: commands are not allowed.
    """
    if streams.are_permitted():
        return
    for command in paths:
        if streams.is_command(command):
            raise streams.refusal(command, _line_of(command, source, storage))


def _line_of(command: str, source: str, storage: Mapping[str, object] | None) -> str:
    scp = source if source.endswith((".scp", ".scp.gz", ".scp.xz")) else f"{source.rstrip('/')}/wav.scp"
    for number, line in lines(scp, storage):
        fields = line.split(None, 1)
        if len(fields) == 2 and command.endswith(fields[1].strip()):
            return f"{scp}, line {number}"
    return scp


def read_text(path: str, storage: Mapping[str, object] | None = None) -> dict[str, tuple[list[str], str]]:
    """Read Kaldi's `text` (`utterance word word ...`): words, and file and line, by utterance.

    Raises:
        UserError: there is no such file.
        DataError: an utterance is a duplicate.
    """
    return {fields[0]: (fields[1:], where) for fields, where in records(path, storage, 1, 1 << 20, "utterance words")}


def _entries(path: str, base: str, storage: Mapping[str, object] | None) -> dict[str, tuple[str, str]]:
    """By recording: its path, place in an archive, or command; and file and line."""
    result: dict[str, tuple[str, str]] = {}
    for number, line in lines(path, storage):
        if not split(line):
            continue
        where = f"{path}, line {number}"
        name, *rest = line.split(None, 1)
        entry = rest[0].strip() if rest else ""
        if not entry:
            raise families.MALFORMED_LINE("the recording has no path", "give: recording path", where=where)
        if name in result:
            raise codes.DUPLICATE_ENTRY(where=where, name=name)
        result[name] = _entry(entry, base, where), where
    return result


def _entry(entry: str, base: str, where: str) -> str:
    if entry.endswith("|"):
        # Includes the folder, so the command works on any machine.
        return entry if is_remote(base) else f"cd {shlex.quote(base)} && {entry}"
    wrong = None
    if entry in ("-", "|") or entry.startswith("|"):
        wrong = "is the standard input or output"
    elif entry.endswith("]"):
        wrong = "is a range of a matrix"
    elif re.search(r":\d+$", entry) and views.split(entry)[1] is None:
        wrong = "is a place in a file that is not called .ark"
    if wrong:
        raise families.UNSUPPORTED.of(DataError)(
            "the entry {entry!r} {fault}, which is not read as a recording",
            "give a path, a place in an archive (wav.ark:1234), or a command that ends in |",
            where=where,
            entry=entry,
            fault=wrong,
        )
    return absolute(entry, base)


def _segments(
    path: str,
    scp: str,
    entries: Mapping[str, tuple[str, str]],
    speakers: Mapping[str, str],
    storage: Mapping[str, object] | None,
) -> pa.Table:
    rows = []
    for utterance, (recording, start, end), where in segment_lines(path, storage):
        if recording not in entries:
            raise families.UNKNOWN_NAME.of(DataError)(
                "no recording {recording!r} in {scp}",
                "add it to wav.scp, or drop the segment",
                where=where,
                recording=recording,
                scp=scp,
            )
        rows.append(
            {
                "doc_id": utterance,
                "channel": 1,
                "path": entries[recording][0],
                "duration": round(end - start, 6),
                "speaker": speakers.get(utterance),
                "recording": recording,
                "start": start,
                "end": end,
                "listed": where,
            }
        )
    if not rows:
        raise families.EMPTY_INPUT("the file has no segments", "a line is: utterance recording start end", where=path)
    return pa.Table.from_pylist(rows, PLACED)


def _note_strange(notices: Notices, path: str | None, given: Mapping[str, object], known: set[str], what: str) -> None:
    strange = [name for name in given if name not in known]
    if path is not None and strange:
        notices.add(codes.LINE_ABOUT_UNKNOWN_NAME, where=f"{path}: {strange[0]!r}", count=len(strange), what=what)
