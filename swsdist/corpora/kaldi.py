"""Documents of a Kaldi data folder, or of its `wav.scp` alone.

- `wav.scp` (`recording entry`): an entry is a path, a place in an archive (`wav.ark:1234`), or a command (it ends in
  `|`). Relative paths and commands start from `corpus.audio`, by default the list's folder. Channel 1 is read, as in
  Kaldi.
- `segments` (`utterance recording start end`, s): if present, the documents are the utterances, places in recordings.
- `utt2spk` (`utterance speaker`) and `reco2dur` (`recording seconds`), if present.

A `wav.scp` named directly is a list of complete recordings: other files of its folder are ignored. `text` is read only
if `corpus.text` names it.

Sources: Kaldi, "Data preparation" and "Kaldi I/O from a command-line perspective"; `extract-segments`, which moves an
end at most 0.5 s beyond the recording to the recording's end.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping

import pyarrow as pa

from swsdist.audio import commands
from swsdist.audio.formats import views
from swsdist.core.codes import corpora as codes
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.kaldi_data import records, segment_lines
from swsdist.io.compressed import lines
from swsdist.io.fields import split, time
from swsdist.io.filesystem import Folder, is_remote, locate
from swsdist.io.notices import Notices


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
        raise codes.EMPTY_WAV_SCP(where=scp)
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
    if commands.are_permitted():
        return
    for command in paths:
        if commands.is_command(command):
            raise commands.refusal(command, _line_of(command, source, storage))


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
            raise codes.ENTRY_WITHOUT_PATH(where=where)
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
        raise codes.UNSUPPORTED_WAV_SCP_ENTRY(where=where, entry=entry, fault=wrong)
    if is_remote(entry) or entry.startswith("/"):
        return entry
    scheme, slashes, root = base.rpartition("//") if is_remote(base) else ("", "", base)
    return scheme + slashes + posixpath.normpath(f"{root}/{entry}")


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
            raise codes.SEGMENT_OF_UNKNOWN_RECORDING(where=where, recording=recording, scp=scp)
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
        raise codes.EMPTY_SEGMENTS(where=path)
    return pa.Table.from_pylist(rows, PLACED)


def _note_strange(notices: Notices, path: str | None, given: Mapping[str, object], known: set[str], what: str) -> None:
    strange = [name for name in given if name not in known]
    if path is not None and strange:
        notices.add(codes.LINE_ABOUT_UNKNOWN_NAME, where=f"{path}: {strange[0]!r}", count=len(strange), what=what)
