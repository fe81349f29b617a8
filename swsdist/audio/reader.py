"""Recordings as blocks of mono float32 samples, of any length, format and sample rate.

libsndfile (through soundfile) decodes files, ffmpeg those that libsndfile does not (`swsdist.audio.formats.ffmpeg`), and soxr
resamples at its quality HQ. Paths are local or `s3://` urls; ffmpeg, which seeks, gets a temporary copy of a remote file. A
recording is never completely in memory, and its pieces do not affect the samples: soxr's stream returns the same samples for
every cut of its input (tested).

A place (`start`, `end` in seconds) is cut at the rate of the file, at the nearest sample, and then resampled as a separate
signal. An end up to `SLACK` seconds after the recording's is its end, since tables hold rounded times. Seeking decodes one
second of preroll, after which lossy decoders return the samples of reading from the beginning: exact for WAV, FLAC, SPHERE,
Vorbis and Opus (5e-3 off without), and to 1e-7 for MP3.

A path may also be a command (`swsdist.audio.commands`), or a place in an archive (`swsdist.audio.formats.archives`), but not
within `only_files`, where paths are made of what strangers send.

Faults of a recording are `AudioError`s (`swsdist.core.codes.audio`). Faults of a disk or network are not: their OSError goes
through (`io.failures.as_file_fault`). Truncation and samples that are not finite may only appear while reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from swsdist.audio import commands, places
from swsdist.audio.copies import ENDS, copy_of
from swsdist.audio.formats import archives, ffmpeg
from swsdist.audio.formats.extents import extent
from swsdist.audio.formats.headers import (
    CutOffError,
    ForeignError,
    check_bytes,
    check_extent,
    check_length,
    check_shape,
    needs_ffmpeg,
    not_opened,
    plain,
)
from swsdist.audio.formats.mpeg import is_mpeg, listening
from swsdist.audio.formats.views import Part, View
from swsdist.audio.pieces import Sound, pieces_of
from swsdist.audio.streams import UNKNOWN, Digest, ErrorKeepingFile, Joined, Sequential, digesting, passing
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, StorageError
from swsdist.io.byte_count import open_counted, uncounted
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import READ_AHEAD, is_remote, open_path

#: A place may end this many seconds after the recording's end.
SLACK = 0.01

# Read before a place.
_PREROLL_SECONDS = 1.0

# Bytes to fetch of a remote file to read its header.
_HEADER = 1 << 17

# What ffmpeg says of a file that is no recording.
_UNRECOGNISED = {codes.FFMPEG_CANNOT_READ.name, codes.FFMPEG_TIMEOUT.name}


_only_files = ContextVar("only_files", default=False)


@contextmanager
def only_files() -> Iterator[None]:
    """Within the context a path is a file and nothing else, whatever it ends in: no command, no place in an archive."""
    token = _only_files.set(True)
    try:
        yield
    finally:
        _only_files.reset(token)


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
    info = places.cached(path, lambda: _probed(path, storage))
    if after is None or after <= info.duration:
        return info
    return places.cached(f"all of {path}", lambda: _counted(path, storage))


def _probed(path: str, storage: Mapping[str, object] | None) -> AudioInfo:
    with _decoding(path, storage, brief=True) as sound:
        if isinstance(sound, ffmpeg.Decoded):
            if sound.duration is None:
                return _counted(path, storage)
            return AudioInfo(max(1, round(sound.duration * sound.samplerate)), sound.samplerate, sound.channels)
        frames = sound.frames if sound.frames != UNKNOWN else _count(sound, path)
        return AudioInfo(frames, sound.samplerate, sound.channels)


def _counted(path: str, storage: Mapping[str, object] | None) -> AudioInfo:
    """Header with the length found by its bytes, or by decoding."""
    with _decoding(path, storage) as sound:
        frames = sound.frames if sound.frames != UNKNOWN else _count(sound, path)
        return AudioInfo(frames, sound.samplerate, sound.channels)


def _count(sound: Sound, path: str) -> int:
    frames = 0
    with suppress(CutOffError):
        for piece in pieces_of(sound, path):
            frames += len(piece)
    return frames


def read_blocks(
    path: str,
    *,
    channel: int = 1,
    rate: int,
    block_seconds: float = 60.0,
    start: float | None = None,
    end: float | None = None,
    storage: Mapping[str, object] | None = None,
) -> Iterator[NDArray[np.float32]]:
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
    buffered: list[NDArray[np.float32]] = []
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


def sha256(path: str, storage: Mapping[str, object] | None = None) -> str:
    """SHA-256 of a file's bytes, hexadecimal.

    Raises:
        AudioError: the file is missing or could not be read.
    """
    with uncounted(), _opened(path, storage) as file:
        return Digest(path).of(file)


def digested(digest: Digest, storage: Mapping[str, object] | None = None) -> str:
    """SHA-256 of a remote file that was read under `streams.digesting`; only the unread rest is fetched.

    Raises:
        AudioError: the file is missing or could not be read.
    """
    if digest.all_passed:
        return digest.hexadecimal()
    with digesting(digest), _opened(digest.path, storage) as file:
        return digest.of(file)


def _resampled(
    path: str, channel: int, rate: int, start: float | None, end: float | None, storage: Mapping[str, object] | None
) -> Iterator[NDArray[np.float32]]:
    at = None if start is None else max(0.0, start - 2 * _PREROLL_SECONDS)
    with _decoding(path, storage, at=at) as sound:
        if not 1 <= channel <= sound.channels:
            raise codes.NO_SUCH_CHANNEL(where=path, channel=channel, channels=sound.channels)
        first, last = _place(path, sound, start, end)
        pieces = _channel(sound, path, channel, first, last)
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


def _place(path: str, sound: Sound, start: float | None, end: float | None) -> tuple[int, int | None]:
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
    raise _outside(path, f"{begin} s to {shown}", None if frames == UNKNOWN else length)


def _outside(path: str, place: str, length: float | None) -> AudioError:
    duration = "of unknown length" if length is None else f"{length:.3f} s"
    return codes.PLACE_OUTSIDE(where=path, place=place, duration=duration)


def _channel(sound: Sound, path: str, channel: int, first: int, last: int | None) -> Iterator[NDArray[np.float32]]:
    """Finite samples of one channel, frames first to last (None: to the end)."""
    position = max(0, first - round(_PREROLL_SECONDS * sound.samplerate))
    if position:
        try:
            with listening(path, sound.format == "MP3"):
                sound.seek(position)
        except soundfile.LibsndfileError as error:
            raise codes.UNREADABLE_PLACE(where=path, time=position / sound.samplerate, detail=plain(error)) from error
    for piece in pieces_of(sound, path, position):
        part = piece[max(0, first - position) : None if last is None else last - position, channel - 1]
        finite = np.isfinite(part)
        if not finite.all():
            bad = int(np.argmin(finite))
            time = (max(first, position) + bad) / sound.samplerate
            raise codes.NOT_FINITE(where=path, time=time, value=float(part[bad]))
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
        raise _outside(path, f"{first / sound.samplerate:.3f} s to {shown}", seconds)


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
    if at is not None and (kept := places.cached_decoder(path, at)) is not None:
        with places.lent(kept):
            yield kept
        return
    with _opened(path, storage, _HEADER if brief else READ_AHEAD) as raw:
        try:
            with _by_libsndfile(path, raw, brief) as sound:
                yield sound
                return
        except ForeignError as error:
            program = ffmpeg.program()
            if program is None:
                raise
            foreign = error
        with ExitStack() as stack:
            source = path if not is_remote(path) and Path(path).is_file() else None
            if source is None and brief:
                yield stack.enter_context(_by_its_ends(program, path, storage, foreign))
                return
            source = source or stack.enter_context(copy_of(stack.enter_context(_opened(path, storage))))
            kind = places.Window if at is not None and places.is_caching() else ffmpeg.Decoded
            decoded = _by_ffmpeg(program, source, path, brief, foreign, kind=kind)
            stack.enter_context(decoded)
            if isinstance(decoded, places.Window):
                places.cache_decoder(path, decoded, stack.pop_all())
                stack.enter_context(places.lent(decoded))
            yield decoded


@contextmanager
def _by_libsndfile(path: str, raw: BinaryIO, brief: bool) -> Iterator[Joined]:
    head, cut = check_bytes(path, raw)
    with uncounted():
        kind = "beginning" if brief else "extent"
        reach = places.cached(f"{kind} of {path}", lambda: extent(raw, brief, is_remote(path)))
    files: list[ErrorKeepingFile] = []

    def opened(part: Part) -> Sequential:
        # As a file object: libsndfile takes a read error of a path for the end of the file.
        files.append(ErrorKeepingFile(cast(BinaryIO, View(raw, part.pieces))))
        with listening(path, is_mpeg(head)):
            sound = Sequential(files[-1], part.frames)
        sound.cut = check_length(path, sound)
        return sound

    try:
        sound = Joined([partial(opened, part) for part in reach.parts])
    except soundfile.LibsndfileError as error:
        files[-1].check()
        raise (cut or not_opened(path, head, error)) from error
    with sound:
        estimated = reach.counted is not None and abs(sound.frames - reach.counted) > sound.samplerate // 10
        if estimated or reach.foreign:
            raise needs_ffmpeg(path, f"{sound.format} with a length that contradicts its bytes")
        if sound.unread:
            begin = next(piece[0] for piece in reach.parts[sound.readable].pieces if isinstance(piece, tuple))
            reach = reach._replace(rest=raw.seek(0, 2) - begin)
        sound.cut = cut or check_extent(path, reach, sound.unread) or sound.cut
        if sound.frames <= 0:
            raise sound.cut or codes.NO_SAMPLES(where=path)
        frames = 0 if sound.frames == UNKNOWN else sound.frames
        check_shape(path, sound.samplerate, sound.channels, frames, raw.seek(0, 2))
        try:
            yield sound
        finally:
            sound.check()


def _by_ffmpeg(
    program: str,
    source: str,
    path: str,
    brief: bool,
    foreign: ForeignError,
    complete: bool = True,
    kind: type[ffmpeg.Decoded] = ffmpeg.Decoded,
) -> ffmpeg.Decoded:
    """Open a file with ffmpeg, and check its header."""
    try:
        sound = kind(program, source, path, brief, complete)
    except AudioError as error:
        # Neither library recognises the file.
        if foreign.code == codes.NOT_AUDIO.name and error.code in _UNRECOGNISED:
            raise codes.NOT_AUDIO(where=path) from None
        raise
    frames = round((sound.duration or 0) * sound.samplerate)
    try:
        check_shape(path, sound.samplerate, sound.channels, frames, Path(source).stat().st_size)
        if not brief:
            with uncounted(), open_counted(Path(source)) as file:
                sound.cut = check_extent(path, extent(file))
    except AudioError:
        sound.close()
        raise
    return sound


def _by_its_ends(
    program: str, path: str, storage: Mapping[str, object] | None, foreign: ForeignError
) -> ffmpeg.Decoded:
    """Header of a remote file, by its two ends, or else by the complete file."""
    with _opened(path, storage) as file:
        with suppress(AudioError), copy_of(file, ENDS) as source:
            sound = _by_ffmpeg(program, source, path, True, foreign, complete=False)
            if sound.duration is not None:
                return sound
        with copy_of(file) as source:
            return _by_ffmpeg(program, source, path, True, foreign)


@contextmanager
def _opened(path: str, storage: Mapping[str, object] | None, ahead: int = READ_AHEAD) -> Iterator[BinaryIO]:
    if commands.is_command(path) and not _only_files.get():
        with commands.output(path) as written:
            yield written
        return
    place, byte = (path, None) if _only_files.get() else archives.split(path)
    if byte is not None:
        with _opened(place, storage, ahead) as archive:
            yield cast(BinaryIO, archives.inside(archive, byte, path))
        return
    try:
        # Opening a pipe would block.
        if not is_remote(path) and Path(path).exists() and not Path(path).is_file():
            raise (codes.RECORDING_IS_FOLDER if Path(path).is_dir() else codes.RECORDING_IS_DEVICE)(where=path)
        with open_path(path, storage, ahead) as file:
            yield passing(path, file) if is_remote(path) else file
    except FileNotFoundError as error:
        raise codes.MISSING_RECORDING(where=path) from error
    except (StorageError, OSError) as error:
        fault = as_file_fault(error, path)
        raise codes.UNREADABLE_RECORDING(where=path, detail=fault.message, fix=fault.remedy or "") from error
