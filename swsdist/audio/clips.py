"""Short pieces of recordings to listen to: files for the best hits, and data URIs for the report's players.

A clip is mono, the detection's channel alone, with some context (`pad` seconds) on both sides as far as the recording
goes. Times are in seconds.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from swsdist.audio.reader import probe, read_blocks

#: Rate of the clips in the report, Hz.
PAGE_RATE = 16000


def write_clip(
    source: str,
    start: float,
    end: float,
    out: Path,
    *,
    pad: float = 0.2,
    channel: int = 1,
    storage: Mapping[str, object] | None = None,
) -> None:
    """Write a place of a recording as WAV, 16 bit, mono, at the recording's rate.

    Args:
        source: path or `s3://` url of the recording.
        start: begin of the place, s.
        end: end of the place, s.
        out: local file to write.
        pad: context on both sides, s.
        channel: which channel, from 1.
        storage: options for s3fs.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    samples, rate = _cut(source, start, end, pad, channel, None, storage)
    soundfile.write(str(out), samples, rate, format="WAV", subtype="PCM_16")


def write_silence(path: str, rate: int) -> None:
    """Write a second of silence, as WAV: something to decode when nothing is at hand."""
    soundfile.write(path, np.zeros(rate, np.float32), rate, format="WAV", subtype="PCM_16")


def clip_data_uri(
    source: str,
    start: float,
    end: float,
    *,
    pad: float = 0.2,
    channel: int = 1,
    storage: Mapping[str, object] | None = None,
) -> str:
    """A place of a recording as `data:audio/mpeg;base64,...`, mono, 16 kHz; arguments as in `write_clip`.

    MP3, because every browser plays it, it takes some 3 kB a second, and, other than with Ogg's random stream numbers,
    the same samples give the same bytes.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    samples, rate = _cut(source, start, end, pad, channel, PAGE_RATE, storage)
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="MP3", subtype="MPEG_LAYER_III")
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _cut(
    source: str,
    start: float,
    end: float,
    pad: float,
    channel: int,
    rate: int | None,
    storage: Mapping[str, object] | None,
) -> tuple[NDArray[np.float32], int]:
    info = probe(source, storage)
    rate = rate or info.rate
    blocks = read_blocks(
        source,
        channel=channel,
        rate=rate,
        start=max(0.0, start - pad),
        # A place outside of the recording stays one, for the reader to refuse.
        end=min(end + pad, max(end, info.duration)),
        storage=storage,
    )
    return np.concatenate(list(blocks)), rate
