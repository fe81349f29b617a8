"""Read the headers of many recordings, in threads where that is faster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from swsdist.audio import commands
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import AudioInfo, probe
from swsdist.core.errors import AudioError
from swsdist.io.filesystem import is_remote

#: Threads for headers on S3, which wait for the network.
_REMOTE = 16


def probe_all(paths: Iterable[str], storage: Mapping[str, object] | None = None) -> dict[str, AudioInfo | AudioError]:
    """Header of each recording by path, or the error; each is read once."""

    def probed(path: str) -> AudioInfo | AudioError:
        try:
            return probe(path, storage)
        except AudioError as error:
            return error

    listed = list(dict.fromkeys(paths))
    far = any(not commands.is_command(path) and is_remote(path) for path in listed)
    if far or any(commands.is_command(path) or ffmpeg.is_for(path) for path in listed):  # else a thread costs more
        with ThreadPoolExecutor(_REMOTE if far else os.cpu_count() or 1) as threads:
            return dict(zip(listed, threads.map(probed, listed), strict=True))
    return {path: probed(path) for path in listed}
