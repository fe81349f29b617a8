"""Recordings as blocks of mono float32 samples, of any length, format and sample rate.

Files are decoded by libsndfile (through soundfile), or, what it does not know, by ffmpeg where there is one
(`swsdist.audio.formats.ffmpeg`), and resampled by soxr at its quality HQ. A local path and an `s3://` url read alike; but
ffmpeg, which goes back and forth in a file, is given a temporary copy of a remote one. A recording is never whole in memory,
and how it is read in pieces changes no sample: soxr's stream gives the same samples for all cuts of its input (tested).

A place (`start`, `end` in seconds) is cut out at the file's own rate, at the nearest sample, and then resampled as a
signal of its own. An end up to `SLACK` seconds after the recording's is taken as its end, since tables hold rounded
times. Seeking goes through one second of preroll, after which lossy decoders give what they give when they read from
the beginning: measured exact for WAV, FLAC, SPHERE, Vorbis and Opus (without it 5e-3 off), and to 1e-7 for MP3.

In place of a path a command may stand (`swsdist.audio.commands`), or a place in an archive (`swsdist.audio.formats.archives`).

Every fault of a recording is an `AudioError` whose `reason` is one of `headers.REASONS`. A disk or network that fails is
none: its OSError goes through (`io.failures.as_file_fault`). Samples that are not finite, and truncation, may be found only
while reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from swsdist.audio import commands, places
from swsdist.audio.copies import ENDS, copy_of
from swsdist.audio.formats import archives, ffmpeg
from swsdist.audio.formats.headers import (
    CutOff,
    Foreign,
    check_bytes,
    check_length,
    check_shape,
    not_opened,
    plain,
)
from swsdist.audio.formats.mpeg import is_mpeg, listening
from swsdist.audio.pieces import Sound, pieces_of
from swsdist.audio.streams import UNKNOWN, Digest, ErrorKeepingFile, Sequential, digesting, passing
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, StorageError
from swsdist.io.byte_count import uncounted
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


@dataclass(frozen=True)
class AudioInfo:
    """What a recording's header says: frames (samples of one channel), rate in Hz, number of channels."""

    frames: int
    rate: int
    channels: int

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return self.frames / self.rate


def probe(path: str, storage: Mapping[str, object] | None = None) -> AudioInfo:
    """Length, rate and channels of a recording, from its header.

    Only a FLAC stream that does not tell its length is decoded for it.

    Raises:
        AudioError: the file cannot be used, as far as its header tells.
    """
    return places.cached(path, lambda: _probed(path, storage))


def _probed(path: str, storage: Mapping[str, object] | None) -> AudioInfo:
    with _decoding(path, storage, brief=True) as sound:
        if isinstance(sound, ffmpeg.Decoded):
            if sound.duration is None:
                return _counted(path, storage)
            return AudioInfo(max(1, round(sound.duration * sound.samplerate)), sound.samplerate, sound.channels)
        frames = sound.frames if sound.frames != UNKNOWN else _count(sound, path)
        return AudioInfo(frames, sound.samplerate, sound.channels)


def _counted(path: str, storage: Mapping[str, object] | None) -> AudioInfo:
    """The same by decoding all of it."""
    with _decoding(path, storage) as sound:
        return AudioInfo(_count(sound, path), sound.samplerate, sound.channels)


def _count(sound: Sound, path: str) -> int:
    frames = 0
    with suppress(CutOff):
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
    """The samples of one channel of a recording, or of a place in it, block by block.

    Args:
        path: local path or `s3://` url.
        channel: which channel, from 1.
        rate: wanted rate in Hz.
        block_seconds: length of all blocks but the last, which is shorter but not empty.
        start: begin of the place in s; None: 0.
        end: end of the place in s; None: the recording's.
        storage: options for s3fs.

    Yields:
        float32 arrays (samples,), full scale ±1.

    Raises:
        AudioError: the recording or the place cannot be used; maybe only after some blocks.
        CutOff: after all blocks: the recording ends before it should.
    """
    size = max(1, round(block_seconds * rate))
    held: list[NDArray[np.float32]] = []
    count, cut = 0, None
    try:
        for piece in _resampled(path, channel, rate, start, end, storage):
            held.append(piece)
            count += len(piece)
            if count >= size:
                joined = np.concatenate(held)
                whole = count - count % size
                for begin in range(0, whole, size):
                    yield joined[begin : begin + size]
                held = [joined[whole:].copy()]
                count -= whole
    except CutOff as error:
        cut = error
    if count:
        yield np.concatenate(held)
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
    """The same of a remote file that was read meanwhile (`streams.digesting`); only what was not read of it is fetched.

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
        except CutOff as error:
            cut = error
        yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
        if cut is not None:
            raise cut


def _place(path: str, sound: Sound, start: float | None, end: float | None) -> tuple[int, int | None]:
    """First frame of a place and the one after its last; None where reading goes on to the recording's end."""
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
    # Where the header does not tell the length, the end does.
    if (first and position <= first) or (last is not None and position < last - SLACK * sound.samplerate):
        seconds = position / sound.samplerate
        shown = "the end" if last is None else f"{last / sound.samplerate:.3f} s"
        raise _outside(path, f"{first / sound.samplerate:.3f} s to {shown}", seconds)


@contextmanager
def _decoding(
    path: str, storage: Mapping[str, object] | None, brief: bool = False, at: float | None = None
) -> Iterator[Sound]:
    """The file, open for decoding, after all checks that its header allows; `brief`: only its header is wanted; `at`: what
    lies before so many s is not, and places after this one may be wanted next.
    """
    if at is not None and (kept := places.cached_decoder(path, at)) is not None:
        with places.lent(kept):
            yield kept
        return
    with _opened(path, storage, _HEADER if brief else READ_AHEAD) as raw:
        try:
            with _by_libsndfile(path, raw) as sound:
                yield sound
                return
        except Foreign as error:
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
def _by_libsndfile(path: str, raw: BinaryIO) -> Iterator[Sequential]:
    file = ErrorKeepingFile(raw)
    head, cut = check_bytes(path, raw)
    try:
        # Not by its path: libsndfile takes an error in reading for the file's end.
        with listening(path, is_mpeg(head)):
            sound = Sequential(file)
    except soundfile.LibsndfileError as error:
        file.check()
        raise (cut or not_opened(path, head, error)) from error
    with sound:
        sound.cut = cut or check_length(path, sound)
        if sound.frames <= 0:
            raise sound.cut or codes.NO_SAMPLES(where=path)
        frames = 0 if sound.frames == UNKNOWN else sound.frames
        check_shape(path, sound.samplerate, sound.channels, frames, file.size())
        try:
            yield sound
        finally:
            file.check()


def _by_ffmpeg(
    program: str,
    source: str,
    path: str,
    brief: bool,
    foreign: Foreign,
    complete: bool = True,
    kind: type[ffmpeg.Decoded] = ffmpeg.Decoded,
) -> ffmpeg.Decoded:
    """A file by ffmpeg, after the checks that its header allows."""
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
    except AudioError:
        sound.close()
        raise
    return sound


def _by_its_ends(program: str, path: str, storage: Mapping[str, object] | None, foreign: Foreign) -> ffmpeg.Decoded:
    """What the header of a remote file tells: of its two ends, else of all of it."""
    with _opened(path, storage) as file:
        with suppress(AudioError), copy_of(file, ENDS) as source:
            sound = _by_ffmpeg(program, source, path, True, foreign, complete=False)
            if sound.duration is not None:
                return sound
        with copy_of(file) as source:
            return _by_ffmpeg(program, source, path, True, foreign)


@contextmanager
def _opened(path: str, storage: Mapping[str, object] | None, ahead: int = READ_AHEAD) -> Iterator[BinaryIO]:
    if commands.is_command(path):
        with commands.output(path) as written:
            yield written
        return
    place, byte = archives.split(path)
    if byte is not None:
        with _opened(place, storage, ahead) as archive:
            yield cast(BinaryIO, archives.Inside(archive, byte, path))
        return
    try:
        # A pipe would wait for a writer for ever.
        if not is_remote(path) and Path(path).exists() and not Path(path).is_file():
            raise (codes.RECORDING_IS_FOLDER if Path(path).is_dir() else codes.RECORDING_IS_DEVICE)(where=path)
        with open_path(path, storage, ahead) as file:
            yield passing(path, file) if is_remote(path) else file
    except FileNotFoundError as error:
        raise codes.MISSING_RECORDING(where=path) from error
    except (StorageError, OSError) as error:
        fault = as_file_fault(error, path)
        raise codes.UNREADABLE_RECORDING(where=path, detail=fault.message, fix=fault.remedy or "") from error
