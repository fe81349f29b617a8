"""Identities of recordings in a corpus and a store; and durations before anything is decoded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from swsdist.audio import commands
from swsdist.audio.formats import ffmpeg, views
from swsdist.audio.reader import AudioInfo, probe_all
from swsdist.core.errors import StorageError
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import Folder, Info, identify, is_remote, locate
from swsdist.io.local import is_readable
from swsdist.store.writing import NO_FILE

#: Endings of recordings whose length was believed or estimated before; they are read again.
_COUNTED = (".mp3", ".oga", ".ogg", ".opus")

#: A row of a table.
Row = dict[str, Any]


def identities(paths: list[str], storage: Any, listed: dict[str, dict[str, Info]] | None = None) -> list[str]:
    """Size and modification of each file, `missing` if it does not exist; on S3 from one listing per folder.

    Args:
        paths: local or `s3://`, or commands.
        storage: options for s3fs.
        listed: folders already listed; new listings are added.
    """
    once = list(dict.fromkeys(paths))  # a recording may contain many places
    listed = {} if listed is None else listed
    far = [path for path in once if not commands.is_command(path) and is_remote(path)]
    folders = sorted({locate(path, storage)[0].root for path in far})
    for root in folders if len(folders) * 8 < len(once) else ():
        if root not in listed:
            listed[root] = Folder(root, storage).listing()
    reader = ffmpeg.ABSENT if ffmpeg.program() is None else ffmpeg.READER
    identity_of = partial(_identity, storage=storage, listed=listed, reader=reader)
    with ThreadPoolExecutor(16) as pool:  # without a remote path no thread starts
        result = dict(zip(once, (pool.map if far else map)(identity_of, once), strict=True))
    return [result[path] for path in paths]


def _identity(path: str, storage: Any, listed: Mapping[str, Mapping[str, Info]], reader: str) -> str:
    """The identity of a command, a file or a place in an archive; `reader` ends that of what only ffmpeg decodes."""
    if commands.is_command(path):
        identity = commands.identity(path)
    else:
        place, byte = views.split(path)
        identity = _of_file(place, storage, listed)
        identity = identity if byte is None or identity.startswith(NO_FILE) else f"{identity}:{byte}"
    if not identity[0].isdigit():
        return identity
    if ffmpeg.is_for(path):
        return identity + reader
    return identity + ffmpeg.READER if path.lower().endswith(_COUNTED) else identity


def _of_file(path: str, storage: Any, listed: Mapping[str, Mapping[str, Info]]) -> str:
    """The identity of a file, or what is wrong with it."""
    if "://" not in path and (identity := _readable(path)) is not None:
        return identity
    if is_remote(path):
        folder, name = locate(path, storage)
        if folder.root in listed:
            return listed[folder.root][name].identity if name in listed[folder.root] else "missing"
    try:
        identity = identify(path, storage)
    except FileNotFoundError:
        return _no_file(path) if not is_remote(path) and Path(path).exists() else "missing"
    except (StorageError, OSError) as error:  # a fault of one file; faults that affect all files end the run
        return f"unreadable: {as_file_fault(error, path).message}"
    if is_remote(path):
        return identity
    if not Path(path).is_file():
        return _no_file(path)
    # Identities ignore permissions: with permissions corrected the identity differs, and the file is tried again.
    return identity if is_readable(path) else "unreadable: permission denied"


def _readable(path: str) -> str | None:
    """The identity of an ordinary local file, as `identify` gives it; None if it is unusual in any way."""
    try:
        status = os.stat(path)  # noqa: PTH116 (faster than pathlib for a million files)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode) or not is_readable(path):
        return None
    return f"{status.st_size}:{status.st_mtime_ns}"


def _no_file(path: str) -> str:
    return f"unreadable: {'a folder' if Path(path).is_dir() else 'a pipe or a device'}, not a file"


def document_seconds(rows: list[dict[str, Any]], storage: Any) -> list[float]:
    """Seconds of each document: from the table, else the header, else roughly from its precomputed frames; 0 if unknown
    (indexing will report why).

    A command is not run: it counts as a minute.
    """

    def is_probed(row: dict[str, Any]) -> bool:
        return row["duration"] is None and bool(row["path"]) and not commands.is_command(row["path"])

    headers = probe_all((row["path"] for row in rows if is_probed(row)), storage)

    def seconds_of(row: dict[str, Any]) -> float:
        if row["duration"] is not None:
            return float(row["duration"])
        if not row["path"]:
            return float(row.get("expected", 0.0))
        if not is_probed(row):
            return 60.0
        info = headers[row["path"]]
        return info.duration if isinstance(info, AudioInfo) else 0.0

    return list(map(seconds_of, rows))


def parts_of(seconds: Iterable[float], least: float) -> Iterator[list[int]]:
    """Indices of consecutive documents, in parts of at least `least` seconds; the last part may be shorter."""
    part: list[int] = []
    total = 0.0
    for k, length in enumerate(seconds):
        part.append(k)
        total += length
        if total >= least:
            yield part
            part, total = [], 0.0
    if part:
        yield part
