"""Sounds: clips of recordings as WAV, waveforms, and recordings that people send."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from swsdist.audio.reader import Clip, as_bytes, probe, read_blocks, read_clip
from swsdist.audio.speech import find_speech
from swsdist.audio.streams import only_files
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import server as codes
from swsdist.core.errors import AudioError
from swsdist.corpora.documents import ENDINGS
from swsdist.stages.inputs.corpus_documents import identities

_LOG = logging.getLogger(__name__)
#: Longest clip, s; largest recording that is sent, bytes, and longest, s.
CLIP_SECONDS, UPLOAD_BYTES, UPLOAD_SECONDS = 120.0, 64_000_000, 900.0
#: A rate above which recordings that are sent may last less, Hz; and channels that are looked at.
_USUAL_RATE, _MOST_CHANNELS = 48_000, 8
#: Longest stretch whose waveform is drawn, s, and most points.
_WAVEFORM_SECONDS, MOST_POINTS = 4 * 3600.0, 4000
#: Most context of a clip, s.
_MOST_PAD = 10.0
#: Clips and waveforms that are kept, and most bytes of clips.
_KEPT, _KEPT_BYTES = 400, 1 << 29
#: Of waveforms, Hz.
_RATE = 8000


class Clips:
    """Clips as files in a folder, where the next request, for a part of one, finds them.

    Args:
        folder: of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._drawn = folder, dict[str, dict[str, Any]]()

    def of(
        self, path: str, channel: int, start: float, end: float, pad: float, storage: Mapping[str, object]
    ) -> tuple[Path, float]:
        """A WAV file of a place, 16 bit, mono, and the time of its first sample, s.

        Raises:
            AudioError: the recording cannot be read.
            UserError: the place is too long.
        """
        if not 0 <= end - start <= CLIP_SECONDS:
            raise codes.LONG_CLIP(where=path, seconds=end - start, most=CLIP_SECONDS)
        pad = min(max(pad, 0.0), _MOST_PAD)
        begin = max(0.0, start - pad)
        file = self._folder / f"{_name(path, storage, channel, start, end, pad)}.wav"
        if file.is_file():
            return file, begin
        clip = read_clip(path, start, end, pad=pad, channel=channel, storage=storage)
        self._write(file, clip)
        return file, clip.begin

    def overview(
        self, path: str, channel: int, start: float, end: float, points: int, storage: Mapping[str, object]
    ) -> dict[str, Any]:
        """The waveform of a place of a recording; see `overview`."""
        name = _name(path, storage, channel, start, end, points)
        if name not in self._drawn:
            self._drawn[name] = overview(path, channel, start, end, points, storage)
            for old in list(self._drawn)[:-_KEPT]:
                self._drawn.pop(old, None)
        return self._drawn[name]

    def _write(self, file: Path, clip: Clip) -> None:
        data = as_bytes(clip.samples, clip.rate)
        kept = sorted((each.stat().st_mtime, each.stat().st_size, each) for each in self._folder.glob("*.wav"))
        size = len(data) + sum(size for _, size, _ in kept)
        for number, (_, freed, old) in enumerate(kept):
            if size <= _KEPT_BYTES and len(kept) - number < _KEPT:
                break
            old.unlink(missing_ok=True)
            size -= freed
        part = self._folder / f"{uuid4().hex}.part"  # two may ask for one clip
        part.write_bytes(data)
        part.replace(file)


def _name(path: str, storage: Mapping[str, object], *of: object) -> str:
    """Of what is kept of a recording, which another may replace."""
    return hashlib.blake2b(repr((path, identities([path], storage), *of)).encode(), digest_size=16).hexdigest()


def duration(path: str, storage: Mapping[str, object]) -> float:
    """Of a recording, s."""
    return probe(path, storage).duration


def overview(
    path: str, channel: int, start: float, end: float, points: int, storage: Mapping[str, object]
) -> dict[str, Any]:
    """The waveform of a place of a recording.

    Raises:
        AudioError: it cannot be read.
        UserError: it is too long.
    """
    if not 0 < end - start <= _WAVEFORM_SECONDS:
        raise codes.LONG_CLIP(where=path, seconds=end - start, most=_WAVEFORM_SECONDS)
    points = max(1, min(points, MOST_POINTS))
    step = max(1, int((end - start) * _RATE / points / 8))
    low, high, rest = [], [], np.empty(0, np.float32)
    for block in read_blocks(path, channel=channel, rate=_RATE, start=start, end=end, storage=storage):
        rest = np.concatenate([rest, block])
        steps = rest[: len(rest) // step * step].reshape(-1, step)
        low.append(steps.min(axis=1))
        high.append(steps.max(axis=1))
        rest = rest[steps.size :]
    bounds = np.concatenate(low), np.concatenate(high)
    if not len(bounds[0]):
        bounds = (rest[:1], rest[:1]) if len(rest) else (np.zeros(1), np.zeros(1))
    edges = np.linspace(0, len(bounds[0]), min(points, len(bounds[0])) + 1).astype(int)[:-1]
    least, greatest = np.minimum.reduceat(bounds[0], edges), np.maximum.reduceat(bounds[1], edges)
    drawn = {name: np.round(side, 4).tolist() for name, side in (("low", least), ("high", greatest))}
    return {"start": start, "end": end, **drawn}


def sent_file(folder: Path, name: str, endings: Collection[str] = ENDINGS) -> Path:
    """Where a file of a name that somebody sent is written: of the name stays an ending that readers know."""
    ending = Path(name).suffix.lower()
    return folder / f"sent{ending if ending.removeprefix('.') in endings else ''}"


@only_files()
def received(file: Path, name: str) -> tuple[bytes, dict[str, Any]]:
    """A recording that somebody sent, as WAV of the channel with speech, and what is said of it.

    Raises:
        AudioError: it cannot be read.
        UserError: it is too long.
    """
    try:
        info = probe(str(file))
        most = min(UPLOAD_SECONDS, UPLOAD_SECONDS * _USUAL_RATE / info.rate)  # of what is held
        if info.duration > most:
            raise codes.LONG_UPLOAD(where=name, seconds=info.duration, most=most)
        for channel in [*range(1, min(info.channels, _MOST_CHANNELS) + 1), 1]:  # without speech the first
            samples, count = np.empty(round(most * info.rate), np.float32), 0  # what is not filled takes no memory
            for block in read_blocks(str(file), channel=channel, rate=info.rate):
                if count + len(block) > len(samples):  # a header may say less
                    raise codes.LONG_UPLOAD(where=name, seconds=(count + len(block)) / info.rate, most=most)
                samples[count : count + len(block)] = block
                count += len(block)
            samples = samples[:count]
            place = find_speech(samples, info.rate)
            if place is not None:
                break
    except AudioError as error:
        error.where = name
        raise
    except (
        ValueError,
        LookupError,
        ArithmeticError,
        RuntimeError,
    ) as error:  # of a decoder, at bytes that anybody may send
        _LOG.warning("%r cannot be read: %r", name, error)
        raise audio_codes.NOT_AUDIO(where=name) from error
    duration = len(samples) / info.rate
    speech = [0.0, duration] if place is None else [place.start, place.end]
    facts = {"duration": duration, "rate": info.rate, "speech": [round(time, 3) for time in speech]}
    return as_bytes(samples, info.rate), facts
