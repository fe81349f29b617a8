"""Clips: WAV files of the best hits, and data URIs for the players of the report.

A clip is one channel of a detection with `pad` seconds of context on both sides, cut at the ends of the recording.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from swsdist.audio.reader import probe, read_blocks

#: File that marks a folder of clips, which are not recordings of a corpus.
MARKER = ".swsdist"

#: Rate of the clips in the report, Hz.
PAGE_RATE = 16000


class Clip(NamedTuple):
    """A piece of one channel of a recording.

    Attributes:
        samples: float32 (samples,), full scale ±1.
        rate: Hz.
        begin: time of the first sample in the recording, s.
    """

    samples: NDArray[np.float32]
    rate: int
    begin: float


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
        channel: number, from 1.
        storage: options for s3fs.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    clip = read_clip(source, start, end, pad=pad, channel=channel, storage=storage)
    write_sound(out, clip.samples, clip.rate)


def write_sound(path: Path, samples: NDArray[np.floating[Any]], rate: int) -> None:
    """Write samples as 16 bit, in the format of the ending, else WAV; libsndfile itself does not report a full disk."""
    path.write_bytes(as_bytes(samples, rate, path.suffix[1:].upper() or "WAV"))


def as_bytes(samples: NDArray[np.floating[Any]], rate: int, form: str = "WAV") -> bytes:
    """Samples as a file of 16 bit, in a format of libsndfile."""
    sound = io.BytesIO()
    soundfile.write(sound, samples, rate, format=form, subtype="PCM_16")
    return sound.getvalue()


def write_silence(path: str, rate: int) -> None:
    """Write a second of silence as WAV."""
    write_sound(Path(path), np.zeros(rate, np.float32), rate)


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

    MP3 plays in every browser, takes some 3 kB a second, and, unlike Ogg with its random stream numbers, is deterministic.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    return data_uri(read_clip(source, start, end, pad=pad, channel=channel, rate=PAGE_RATE, storage=storage))


def data_uri(clip: Clip) -> str:
    """A clip at `PAGE_RATE` as `data:audio/mpeg;base64,...`."""
    file = io.BytesIO()
    soundfile.write(file, clip.samples, clip.rate, format="MP3", subtype="MPEG_LAYER_III")
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def read_clip(
    source: str,
    start: float | None,
    end: float | None,
    *,
    pad: float = 0.2,
    channel: int = 1,
    rate: int | None = None,
    storage: Mapping[str, object] | None = None,
) -> Clip:
    """Samples of a place with context; arguments as in `write_clip`.

    Args:
        start, end: s; None: ends of the recording.
        rate: Hz; None: of the recording.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    info = probe(source, storage)
    rate = rate or info.rate
    begin = max(0.0, (start or 0.0) - pad)
    last = info.duration if end is None else end
    # The reader rejects a place outside the recording.
    stop = min(last + pad, max(last, info.duration))
    blocks = read_blocks(source, channel=channel, rate=rate, start=begin, end=stop, storage=storage)
    return Clip(np.concatenate(list(blocks)), rate, begin)
