"""Recordings as blocks of mono float32 samples, of any length, format and sample rate; and clips of them.

libsndfile decodes files (`swsdist.audio.formats.libsndfile`), ffmpeg those that libsndfile does not
(`swsdist.audio.formats.ffmpeg`), and soxr resamples at its quality HQ. A path names bytes as in
`swsdist.audio.streams`. A recording is never completely in memory, and its pieces do not affect the samples: soxr's
stream returns the same samples for every cut of its input (tested).

A place (`start`, `end` in seconds) is cut at the rate of the file, at the nearest sample, and then resampled as a
separate signal. An end up to `SLACK` seconds after the recording's is its end, since tables hold rounded times. Seeking
decodes one second of preroll, after which lossy decoders return the samples of reading from the beginning: exact for
WAV, FLAC, SPHERE, Vorbis and Opus (5e-3 off without), and to 1e-7 for MP3.

Remote files that a program seeks in, such as ffmpeg, are copied to a temporary file: completely, or for their header
only the two ends, where containers have it.

Clips are WAV files of the best hits, and data URIs for the players of the report: one channel of a detection with `pad`
seconds of context on both sides, cut at the ends of the recording.

Faults of a recording are `AudioError`s (`swsdist.core.codes.audio`). Faults of a disk or network are not: their OSError
goes through (`io.failures.as_file_fault`). Truncation and samples that are not finite may only appear while reading.
"""

from __future__ import annotations

import base64
import io
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from swsdist.audio import streams
from swsdist.audio.formats import ffmpeg, libsndfile
from swsdist.audio.formats.libsndfile import UNKNOWN, Joined, plain
from swsdist.audio.formats.views import Extent, check_extent
from swsdist.audio.streams import open_bytes
from swsdist.core.arrays import Singles
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, CutOffError, ForeignError, recast
from swsdist.io.filesystem import READ_AHEAD, is_remote
from swsdist.io.remote.scratch import scratch

#: Bytes of each end.
ENDS = 4 << 20

_COPIES_PIECE = 4 << 20


@contextmanager
def copy_of(file: BinaryIO, ends: int | None = None) -> Iterator[str]:
    """Path of a copy, deleted at the end of the context.

    Args:
        file: seekable.
        ends: bytes to copy of each end, with a hole between; None: the complete file.
    """
    size = file.seek(0, 2)
    file.seek(0)
    with tempfile.NamedTemporaryFile(dir=scratch()) as copy:
        if ends is None or size <= 2 * ends:
            shutil.copyfileobj(file, copy, _COPIES_PIECE)
        else:
            copy.write(file.read(ends))
            file.seek(size - ends)
            copy.seek(size - ends)
            copy.write(file.read(ends))
        copy.flush()
        yield copy.name


#: An open recording.
Sound: TypeAlias = Joined | ffmpeg.Decoded

#: A place may end this many seconds after the recording's end.
SLACK = 0.01

# Frames decoded at once.
_PIECE = 1 << 16

# Bytes that a decoder may leave at the end: tags.
_TAGS = 1 << 17

# Some encoders count the MPEG frame that only carries the Xing tag.
_MP3_FRAME = 1152

# Read before a place.
_PREROLL_SECONDS = 1.0

# Bytes to fetch of a remote file to read its header.
_HEADER = 1 << 17

# What ffmpeg says of a file that is no recording.
_UNRECOGNISED = {codes.FFMPEG_CANNOT_READ.name, codes.FFMPEG_TIMEOUT.name}


@dataclass(frozen=True)
class AudioInfo:
    """Header of a recording: frames (samples of one channel), rate in Hz, number of channels."""

    frames: int
    rate: int
    channels: int

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.frames / self.rate


def probe(path: str, storage: Mapping[str, object] | None = None, after: float | None = None) -> AudioInfo:
    """Length, rate and channels of a recording, from its beginning and end.

    A recording that states no length is decoded.

    Args:
        path: local path or `s3://` url.
        storage: options for s3fs.
        after: s; a shorter recording is read completely: a stated length may be wrong.

    Raises:
        AudioError: the header shows that the file cannot be used.
    """
    info = ffmpeg.cached(path, lambda: _header(path, storage, True))
    if after is None or after <= info.duration:
        return info
    return ffmpeg.cached(f"all of {path}", lambda: _header(path, storage, False))


def _header(path: str, storage: Mapping[str, object] | None, brief: bool) -> AudioInfo:
    """Header with the length that it states, or, unless `brief` and stated, the length by bytes or by decoding."""
    with _decoding(path, storage, brief) as sound:
        if brief and isinstance(sound, ffmpeg.Decoded):
            if sound.duration is None:
                return _header(path, storage, False)
            frames = max(1, round(sound.duration * sound.samplerate))
        elif sound.frames != UNKNOWN:
            frames = sound.frames
        else:
            frames = 0
            with suppress(CutOffError):
                for piece in _pieces(sound):
                    frames += len(piece)
        return AudioInfo(frames, sound.samplerate, sound.channels)


def read_blocks(
    path: str,
    *,
    channel: int = 1,
    rate: int,
    block_seconds: float = 60.0,
    start: float | None = None,
    end: float | None = None,
    storage: Mapping[str, object] | None = None,
) -> Iterator[Singles]:
    """Samples of one channel of a recording, or of a place in it, block by block.

    Args:
        path: local path or `s3://` url.
        channel: number, from 1.
        rate: of the output, Hz.
        block_seconds: length of all blocks but the last, which is shorter but not empty.
        start: begin of the place in s; None: 0.
        end: end of the place in s; None: the recording's.
        storage: options for s3fs.

    Yields:
        float32 arrays (samples,), full scale ±1.

    Raises:
        AudioError: the recording or the place cannot be used; maybe only after some blocks.
        CutOffError: after all blocks: the recording ends early.
    """
    size = max(1, round(block_seconds * rate))
    buffered: list[Singles] = []
    count, cut = 0, None
    try:
        for piece in _resampled(path, channel, rate, start, end, storage):
            buffered.append(piece)
            count += len(piece)
            if count >= size:
                joined = np.concatenate(buffered)
                complete = count - count % size
                for begin in range(0, complete, size):
                    yield joined[begin : begin + size]
                buffered = [joined[complete:].copy()]
                count -= complete
    except CutOffError as error:
        cut = error
    if count:
        yield np.concatenate(buffered)
    if cut is not None:
        raise cut


def _resampled(
    path: str, channel: int, rate: int, start: float | None, end: float | None, storage: Mapping[str, object] | None
) -> Iterator[Singles]:
    at = None if start is None else max(0.0, start - 2 * _PREROLL_SECONDS)
    with _decoding(path, storage, at=at) as sound:
        if not 1 <= channel <= sound.channels:
            raise codes.NO_SUCH_CHANNEL(where=path, channel=channel, channels=sound.channels)
        first, last = _place(sound, start, end)
        pieces = _channel(sound, channel, first, last)
        if sound.samplerate == rate:
            yield from pieces
            return
        stream = soxr.ResampleStream(sound.samplerate, rate, 1, dtype="float32", quality="HQ")
        cut = None
        try:
            for piece in pieces:
                yield stream.resample_chunk(piece)
        except CutOffError as error:
            cut = error
        yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
        if cut is not None:
            raise cut


def _place(sound: Sound, start: float | None, end: float | None) -> tuple[int, int | None]:
    """First frame of a place and the one after its last; None for the end of the recording."""
    if start is None and end is None:
        return 0, None
    rate, frames = sound.samplerate, sound.frames
    begin = 0.0 if start is None else start
    length = math.inf if frames == UNKNOWN else frames / rate
    if 0 <= begin < length and (end is None or begin < end <= length + SLACK):
        first = round(begin * rate)
        last = None if end is None else min(round(end * rate), frames)
        if first < (frames if last is None else last):
            return first, last
    shown = "the end" if end is None else f"{end} s"
    raise _outside(sound, f"{begin} s to {shown}", None if frames == UNKNOWN else length)


def _outside(sound: Sound, place: str, length: float | None) -> AudioError:
    duration = "of unknown length" if length is None else f"{length:.3f} s"
    return codes.PLACE_OUTSIDE(where=sound.path, place=place, duration=duration)


def _channel(sound: Sound, channel: int, first: int, last: int | None) -> Iterator[Singles]:
    """Finite samples of one channel, frames first to last (None: to the end)."""
    position = max(0, first - round(_PREROLL_SECONDS * sound.samplerate))
    if position:
        try:
            sound.seek(position)
        except soundfile.LibsndfileError as error:
            time = position / sound.samplerate
            raise codes.UNREADABLE_PLACE(where=sound.path, time=time, detail=plain(error)) from error
    for piece in _pieces(sound, position):
        part = piece[max(0, first - position) : None if last is None else last - position, channel - 1]
        finite = np.isfinite(part)
        if not finite.all():
            bad = int(np.argmin(finite))
            time = (max(first, position) + bad) / sound.samplerate
            raise codes.NOT_FINITE(where=sound.path, time=time, value=float(part[bad]))
        if len(part):
            yield np.ascontiguousarray(part)
        position += len(piece)
        if last is not None and position >= last:
            return
    # While the pictures last longer, there is silence.
    slack = SLACK * sound.samplerate
    lasting = (sound.duration or 0.0) * sound.samplerate if isinstance(sound, ffmpeg.Decoded) else 0.0
    while last is not None and position < last - slack and last <= lasting + slack:
        until = last if last - position < 2 * sound.samplerate else position + sound.samplerate
        if until > first:
            yield np.zeros(until - max(first, position), np.float32)
        position = until
    # Without a length in the header, the end of the stream decides.
    if (first and position <= first) or (last is not None and position < last - slack):
        seconds = position / sound.samplerate
        shown = "the end" if last is None else f"{last / sound.samplerate:.3f} s"
        raise _outside(sound, f"{first / sound.samplerate:.3f} s to {shown}", seconds)


def _pieces(sound: Sound, position: int = 0) -> Iterator[Singles]:
    """Samples (frames, channels) from the current position to the end, checked against the length in the header.

    Args:
        sound: open recording.
        position: its current frame.

    Raises:
        CutOffError: after the last readable frame: the recording ends early.
        AudioError: the recording is damaged before its end.
    """
    expected = sound.frames
    stated = None if expected == UNKNOWN else expected / sound.samplerate
    while True:
        try:
            piece = _read(sound)
        except _Broken as broken:
            error, piece = broken.args
            if sound.format == "FLAC" and position + len(piece) == expected:
                yield piece  # what follows is no frame
                position = expected
                break
            damaged = codes.DAMAGED_STREAM(where=sound.path, detail=plain(error))
            if isinstance(sound, ffmpeg.Decoded) or not sound.at_end():
                raise damaged from error
            if len(piece):
                yield piece
            raise recast(damaged, CutOffError).expecting(stated) from error
        if not len(piece):
            break
        position += len(piece)
        yield piece
    if isinstance(sound, Joined) and sound.format in ("FLAC", "MP3", "OGG") and (left := sound.unread_bytes()) > _TAGS:
        sound.cut = sound.cut or check_extent(sound.path, Extent([]), f"about {left} bytes")
    _check_end(sound, position, stated)


def _check_end(sound: Sound, position: int, stated: float | None) -> None:
    """Check that a recording has as many frames as its header states, if it does, and is not cut off."""
    mpeg, missing = sound.format == "MP3", 0 if stated is None else sound.frames - position
    if sound.cut is not None and (mpeg or missing <= 0):
        seconds = stated if mpeg and missing > 0 else sound.cut.expected_seconds
        raise recast(sound.cut, CutOffError).expecting(seconds)
    if missing > (_MP3_FRAME if mpeg else 0):
        actual = position / sound.samplerate
        truncated = codes.TRUNCATED(where=sound.path, stated=f"{stated or 0:.3f} s", actual=f"{actual:.3f} s")
        # In other formats than FLAC there is a hole before the end.
        raise truncated.expecting(stated) if sound.format == "FLAC" else recast(truncated, AudioError)


class _Broken(Exception):
    """The decoder failed: its error, and the samples before."""


def _read(sound: Sound) -> Singles:
    if isinstance(sound, ffmpeg.Decoded):
        return sound.read(_PIECE)
    buffer = np.full((_PIECE, sound.channels), np.nan, np.float32)
    try:
        piece: Singles = sound.read(_PIECE, dtype="float32", always_2d=True, out=buffer)
    except soundfile.LibsndfileError as error:
        unread = np.isnan(buffer).any(axis=1)
        raise _Broken(error, buffer[: int(np.argmax(unread)) if unread.any() else _PIECE]) from error
    return piece


@contextmanager
def _decoding(
    path: str, storage: Mapping[str, object] | None, brief: bool = False, at: float | None = None
) -> Iterator[Sound]:
    """Open a file for decoding, and check its header.

    Args:
        path: of the recording.
        storage: options for s3fs.
        brief: read the header only.
        at: s before which no samples are needed; later places may follow.
    """
    if at is not None and (kept := ffmpeg.cached_decoder(path, at)) is not None:
        with ffmpeg.lent(kept):
            yield kept
        return
    remote = is_remote(path)
    with open_bytes(path, storage, _HEADER if brief else READ_AHEAD) as raw:
        try:
            with libsndfile.open_sound(path, raw, brief, remote) as sound:
                yield sound
                return
        except ForeignError as error:
            program = ffmpeg.program()
            if program is None:
                raise
            foreign = error
    with ExitStack() as stack:
        file = None if not remote and Path(path).is_file() else stack.enter_context(open_bytes(path, storage))
        decoder = ffmpeg.Window if at is not None and ffmpeg.is_caching() else ffmpeg.Decoded
        decoded = None
        try:
            if file is not None and brief:  # a header lies at either end
                with suppress(AudioError), copy_of(file, ENDS) as ends:
                    decoded = decoder(program, ends, path, brief, complete=False)
            if decoded is None or decoded.duration is None:
                source = path if file is None else stack.enter_context(copy_of(file))
                decoded = decoder(program, source, path, brief)
        except AudioError as error:
            # Neither library recognises the file.
            if foreign.code == codes.NOT_AUDIO.name and error.code in _UNRECOGNISED:
                raise codes.NOT_AUDIO(where=path) from None
            raise
        stack.enter_context(decoded)
        if isinstance(decoded, ffmpeg.Window):
            ffmpeg.cache_decoder(decoded, stack.pop_all())
            stack.enter_context(ffmpeg.lent(decoded))
        yield decoded


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
    far = any(not streams.is_command(path) and is_remote(path) for path in listed)
    if far or any(streams.is_command(path) or ffmpeg.is_for(path) for path in listed):  # else a thread costs more
        with ThreadPoolExecutor(_REMOTE if far else os.cpu_count() or 1) as threads:
            return dict(zip(listed, threads.map(probed, listed), strict=True))
    return {path: probed(path) for path in listed}


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

    samples: Singles
    rate: int
    begin: float


def write_clip(source: str, start: float, end: float, out: Path, **place: Any) -> None:
    """Write a place of a recording as WAV, 16 bit, mono, at the recording's rate; `read_clip` says of what."""
    clip = read_clip(source, start, end, **place)
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


def data_uri(clip: Clip) -> str:
    """A clip at `PAGE_RATE` as `data:audio/mpeg;base64,...`, mono.

    MP3 plays in every browser, takes some 3 kB a second, and, unlike Ogg with its random stream numbers, is deterministic.
    """
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
    """Samples of a place with context.

    Args:
        source: path or `s3://` url of the recording.
        start, end: s; None: ends of the recording.
        pad: context on both sides, s.
        channel: number, from 1.
        rate: Hz; None: of the recording.
        storage: options for s3fs.

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
