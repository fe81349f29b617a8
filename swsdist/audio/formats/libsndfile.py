"""Recordings that libsndfile decodes: their bytes are checked first, read errors are kept, and warnings get file names.

libsndfile silently repairs the length of a truncated PCM file, takes the last page of a truncated Ogg file for the end,
and a read error for the end of the file. The reader rejects a file that the decoder cannot use
(`swsdist.audio.reader`).

Warnings of libmpg123, libsndfile's MP3 decoder, go to standard error without a file name. File descriptor 2 is
therefore redirected while an MP3 is opened, sought or read. Lines of the decoder are printed once with the file's name;
everything else is passed on. Lines are dropped while several threads decode, because their file is unknown: threads
only read headers, and the file is decoded alone later.

Sources: NIST SPHERE headers as written by its tools; RFC 3533 (Ogg), section 6.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, cast

import soundfile

from swsdist.audio.formats import ffmpeg
from swsdist.audio.formats.extents import extent, sphere_fields, sphere_lengths
from swsdist.audio.formats.views import Part, Readable, View, check_extent, check_shape
from swsdist.core.arrays import Singles
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, CutOffError, ForeignError, recast
from swsdist.io.local import uncounted

#: A line of the decoder, possibly behind the line of a progress bar.
_LINE = re.compile(rb"(?:\[[^\]\n]*libmpg123[^\]\n]*\] *|(?:Warning|WARNING|Note|Error): )([^\n]*)\n")
_STDERR = 2

_lock = threading.Lock()
_printed: set[tuple[str, str]] = set()


class _Redirection:
    """Redirects the standard error of the process to a file while a thread is inside."""

    def __init__(self) -> None:
        self._inside = 0
        self._paths: set[str] = set()
        self._kept = -1
        self._file = -1

    def enter(self, path: str) -> None:
        if self._inside == 0:
            if self._file < 0:
                with tempfile.TemporaryFile() as file:  # deleted with the process
                    self._file = os.dup(file.fileno())
            self._kept = os.dup(_STDERR)
            os.dup2(self._file, _STDERR)
            self._paths = set()
        self._inside += 1
        self._paths.add(path)

    def leave(self) -> tuple[bytes, set[str]]:
        """The output and the files of all threads inside, when the last thread leaves."""
        self._inside -= 1
        if self._inside:
            return b"", set()
        os.dup2(self._kept, _STDERR)
        os.close(self._kept)
        size = os.lseek(self._file, 0, os.SEEK_CUR)
        if not size:
            return b"", set()
        os.lseek(self._file, 0, os.SEEK_SET)
        output = os.read(self._file, size)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.ftruncate(self._file, 0)
        return output, self._paths


_redirection = _Redirection()


def is_mpeg(head: bytes) -> bool:
    """Whether libmpg123 decodes a file with these first bytes: an ID3 tag, or the sync word of a frame."""
    return head.startswith(b"ID3") or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0)


@contextmanager
def listening(path: str, is_mp3: bool) -> Iterator[None]:
    """Print the decoder's warnings with the file's name, once each.

    Args:
        path: of the file.
        is_mp3: do nothing for other formats.
    """
    if not is_mp3:
        yield
        return
    try:
        with _lock:
            _redirection.enter(path)
    except OSError:  # no standard error, or no descriptors left: leave the decoder's output alone
        yield
        return
    try:
        yield
    finally:
        with _lock:
            output, paths = _redirection.leave()
        if output:
            _pass_on(output, paths)


def _pass_on(output: bytes, paths: set[str]) -> None:
    if rest := _LINE.sub(b"", output):
        os.write(_STDERR, rest)
    if len(paths) > 1:
        return
    for path in paths:
        for line in dict.fromkeys(_LINE.findall(output)):
            message = line.decode("utf-8", "replace").strip()
            if (path, message) not in _printed:
                _printed.add((path, message))
                print(f"warning: {path}: the MP3 decoder says: {message}", file=sys.stderr)


#: Frames by libsndfile of a stream without a length in its header (FLAC from a pipe).
UNKNOWN = 2**63 - 1

# Magic bytes of formats that libsndfile cannot decode: offset, bytes, name.
_FOREIGN = (
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA"),
    (4, b"ftyp", "MP4 audio (m4a, AAC)"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM"),
    (0, b"#!AMR", "AMR"),
    (0, b"wvpk", "WavPack"),
    (0, b"MAC ", "Monkey's Audio"),
    (0, b"ajkg", "shorten"),
    (0, b".RMF", "RealAudio"),
    (0, b"ADIF", "AAC"),
    (0, b"\xff\xf1", "AAC"),
    (0, b"\xff\xf9", "AAC"),
)

# Magic bytes of formats that it can.
_KNOWN = (b"RIFF", b"RF64", b"RIFX", b"fLaC", b"OggS", b"ID3", b"NIST_1A", b"FORM", b".snd", b"caff", b"riff")


@contextmanager
def open_sound(path: str, raw: BinaryIO, brief: bool, remote: bool) -> Iterator[Joined]:
    """Open a recording, and check it.

    Args:
        path: of the recording.
        raw: its bytes.
        brief: read the beginning and the end only.
        remote: likewise of FLAC.

    Raises:
        ForeignError: libsndfile does not decode it.
        AudioError: it cannot be used.
    """
    head, cut = _check_bytes(path, raw)
    with uncounted():
        kind = "beginning" if brief else "extent"
        reach = ffmpeg.cached(f"{kind} of {path}", lambda: extent(raw, brief, remote))
    files: list[ErrorKeepingFile] = []

    def part_of(part: Part) -> Sequential:
        # As a file object: libsndfile takes a read error of a path for the end of the file.
        files.append(ErrorKeepingFile(cast(BinaryIO, View(raw, part.pieces))))
        sound = Sequential(path, files[-1], is_mpeg(head), part.frames)
        sound.cut = _check_length(path, sound)
        return sound

    try:
        sound = Joined(path, [partial(part_of, part) for part in reach.parts])
    except soundfile.LibsndfileError as error:
        files[-1].check()
        raise (cut or _not_opened(path, head, error)) from error
    with sound:
        estimated = reach.counted is not None and abs(sound.frames - reach.counted) > sound.samplerate // 10
        if estimated or reach.foreign:
            raise codes.NEEDS_FFMPEG(where=path, format=f"{sound.format} with a length that contradicts its bytes")
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


class Sequential(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A SoundFile without the redundant seek after each read, which restarts an MP3 decoder.

    Args:
        path: of the recording.
        file: to decode.
        mpeg: whether libmpg123 decodes it.
        last: frames at the end that count; None: all.

    Attributes:
        length: number of frames that count.
        cut: set by the checks of the header.
    """

    def __init__(self, path: str, file: ErrorKeepingFile, mpeg: bool, last: int | None = None) -> None:
        self._path, self.file = path, file
        with listening(path, mpeg), _interruptible():
            super().__init__(file)
        self.cut: CutOffError | None = None
        self.length = self.frames if last is None else min(last, self.frames)
        if self.length < self.frames:
            self.seek(0)

    def read(self, frames: int, **options: Any) -> Singles:
        """Read frames, like soundfile."""
        with listening(self._path, self.format == "MP3"), _interruptible():
            samples: Singles = super().read(frames, **options)
            return samples

    def seek(self, frames: int, whence: int = 0) -> int:
        """Seek a frame, like soundfile."""
        with listening(self._path, self.format == "MP3"), _interruptible():
            return int(super().seek(frames + self.frames - self.length, whence))

    def seekable(self) -> bool:
        """False, so that soundfile does not seek."""
        return False


class Joined:
    """The parts of a file, mostly one, decoded one after the other as one SoundFile; one part is open at a time.

    Args:
        path: of the file.
        opens: open each part.

    Attributes:
        samplerate, channels, format, frames: as of a SoundFile.
        cut: set where the file ends early.
        unread: why the parts from some place on cannot be read; empty: they can.
    """

    def __init__(self, path: str, opens: Sequence[Callable[[], Sequential]]) -> None:
        self.path, self._opens, self._starts, self._number, self._sound = path, opens, [0], 0, opens[0]()
        self.samplerate, self.channels, self.format = self._sound.samplerate, self._sound.channels, self._sound.format
        self.frames, self.cut, self.unread = self._sound.length, self._sound.cut, ""
        for part in opens[1:]:
            try:
                with part() as sound:
                    if (sound.samplerate, sound.channels) != (self.samplerate, self.channels):
                        self.unread = f"{sound.samplerate} Hz and {sound.channels} channels follow"
                        break
                    self._starts.append(self.frames)
                    self.frames, self.cut = self.frames + sound.length, sound.cut
            except soundfile.LibsndfileError as error:
                self.unread = str(error.error_string).strip()
                break

    @property
    def readable(self) -> int:
        """Number of parts that can be read."""
        return len(self._starts)

    def __enter__(self) -> Joined:
        return self

    def __exit__(self, *_: object) -> None:
        self._sound.close()

    def _open(self, number: int) -> None:
        self.check()
        self._sound.close()
        self._number, self._sound = number, self._opens[number]()

    def read(self, frames: int, **options: Any) -> Singles:
        """Read frames, like soundfile; fewer at the end of each part."""
        while True:
            samples = self._sound.read(frames, **options)
            if len(samples) or self._number + 1 == len(self._starts):
                return samples
            self._open(self._number + 1)

    def seek(self, frames: int) -> None:
        """Go to a frame."""
        number = bisect_right(self._starts, frames) - 1
        if number != self._number:
            self._open(number)
        self._sound.seek(frames - self._starts[number])

    def at_end(self) -> bool:
        """Whether the last part was read to its end without an error."""
        return self._number + 1 == len(self._starts) and self._sound.file.at_end()

    def check(self) -> None:
        """Raise the file's read error, if any."""
        self._sound.file.check()

    def unread_bytes(self) -> int:
        """Bytes of the open part that were not read."""
        return self._sound.file.size() - self._sound.file.tell()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise the exception of a signal that arrives inside a callback of libsndfile.

    Otherwise it is printed and lost, and the interrupted call looks like a damaged file. Only the main thread handles signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    lost: list[BaseException] = []
    before = sys.unraisablehook

    def keep(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, (KeyboardInterrupt, SystemExit)):
            lost.append(unraisable.exc_value)
        else:
            before(unraisable)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        sys.unraisablehook = before
        if lost:
            raise lost[0]


class ErrorKeepingFile:
    """A file that keeps a read error, which libsndfile would take for the end of the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: Exception | None = None

    def readinto(self, buffer: memoryview) -> int:
        """Read from the file."""
        try:
            data = self._file.read(len(buffer))
        except Exception as error:
            self._error = error
            return 0
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek in the file; a negative position, from a broken header, is ignored."""
        if whence == 0 and offset < 0:
            return self.tell()
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The position in the file."""
        return self._file.tell()

    def size(self) -> int:
        """Bytes of the file; the position stays."""
        position = self._file.tell()
        end = self._file.seek(0, 2)
        self._file.seek(position)
        return end

    def write(self, data: bytes) -> int:
        """Not supported."""
        raise OSError("open for reading only")

    def at_end(self) -> bool:
        """Whether the file was read to its end without an error."""
        return self._error is None and self.tell() >= self.size()

    def check(self) -> None:
        """Raise the read error, if any."""
        if self._error is not None:
            raise self._error


def _check_bytes(path: str, file: Readable) -> tuple[bytes, CutOffError | None]:
    """Check the first and the last bytes of a file, and rewind it.

    Returns:
        The first 4096 bytes, and the error if the file is truncated.

    Raises:
        AudioError: the file is empty, or its format is not supported.
    """
    head = file.read(4096)
    size = file.seek(0, 2)
    if size == 0:
        raise codes.EMPTY_RECORDING(where=path)
    _check_head(path, head)
    cut = None
    if head.startswith(b"NIST_1A"):
        cut = _check_sphere(path, head, size)
    elif head.startswith(b"OggS"):
        cut = _check_ogg_end(path, file, size)
        file.seek(0)
        _check_vorbis_start(path, file.read(1 << 17))
    file.seek(0)
    return head, cut


def _check_head(path: str, head: bytes) -> None:
    for offset, magic, name in _FOREIGN:
        if head[offset:].startswith(magic):
            raise codes.NEEDS_FFMPEG(where=path, format=name)
    if path.lower().endswith(".raw") and not head.startswith(_KNOWN):
        raise codes.HEADERLESS_SAMPLES(where=path)


def _check_sphere(path: str, head: bytes, size: int) -> CutOffError | None:
    """Check a NIST SPHERE file for compressions that libsndfile lacks, and for truncation."""
    coding = sphere_fields(head).get("sample_coding", "pcm")
    if re.search("shorten|shortpack|wavpack", coding):
        raise codes.SPHERE_COMPRESSION(where=path, coding=coding)
    lengths = sphere_lengths(head)
    if lengths is None or size >= lengths[1]:
        return None
    return codes.TRUNCATED(where=path, stated=f"{lengths[1]} bytes", actual=f"{size} bytes").expecting(lengths[2])


def _check_ogg_end(path: str, file: Readable, size: int) -> CutOffError | None:
    """Check that the last page of an Ogg file is complete and has the end-of-stream flag (RFC 3533, section 6)."""
    start = max(0, size - (1 << 17))  # a page has at most 65307 bytes
    file.seek(start)
    tail = file.read(size - start)
    page = tail[max(0, tail.rfind(b"OggS")) :]
    # Byte 5: flags; byte 26: number of segments; then their lengths; then the segments.
    segments = page[27 : 27 + page[26]] if len(page) > 26 else b""
    if not segments or len(page) < 27 + page[26] + sum(segments) or not page[5] & 4:
        return codes.TRUNCATED_OGG(where=path)
    return None


def _check_vorbis_start(path: str, data: bytes) -> None:
    """Leave Vorbis that starts before zero to ffmpeg: libsndfile does not drop that, but as much of the end.

    Programs that cut a file without decoding it write that: the first page with sound ends at a time before that of its
    samples. Sources: Vorbis I specification, 1.3 and 4.2.4; RFC 3533.
    """
    packets, packet, at, granule, last = list[bytes](), b"", 0, 0, False
    while at + 27 <= len(data) and len(packets) < 4:
        lengths = data[at + 27 : at + 27 + data[at + 26]]
        granule, last = int.from_bytes(data[at + 6 : at + 14], "little", signed=True), bool(data[at + 5] & 4)
        at += 27 + len(lengths)
        for length in lengths:
            packet += data[at : at + length]
            at += length
            if length < 255:
                packets.append(packet)
                packet = b""
    if len(packets) < 4 or not packets[0].startswith(b"\1vorbis") or len(packets[0]) < 29 or last:
        return
    # The setup ends with its modes, each 41 bits of which the first tells a long block, their number before them, and a 1.
    setup = int.from_bytes(packets[2], "little")
    end, ahead, long = setup.bit_length() - 1, list[int](), list[int]()
    while end >= 47 and not setup >> (end - 40) & 0xFFFFFFFF:
        end -= 41
        ahead.insert(0, setup >> end & 1)
        if setup >> (end - 6) & 63 == len(ahead) - 1:
            long = [*ahead]
    bits, blocks = (len(long) - 1).bit_length(), (packets[0][28] & 15, packets[0][28] >> 4)
    modes = [packet[0] >> 1 & (1 << bits) - 1 for packet in packets[3:] if packet]
    if not modes or max(modes) >= len(long):
        return
    sizes = [1 << blocks[long[mode]] for mode in modes]
    rate = int.from_bytes(packets[0][12:16], "little")
    if sum(sizes) / 2 - (sizes[0] + sizes[-1]) / 4 - granule > rate / 100:
        raise codes.NEEDS_FFMPEG(where=path, format="Vorbis that starts before zero")


def _check_length(path: str, sound: soundfile.SoundFile) -> CutOffError | None:
    """The error if a PCM file is shorter than its header states, by libsndfile's log, which has both lengths."""
    chunk = {"AIFF": "SSND", "AU": "Data Size", "W64": "riff", "RF64": "Riff size"}.get(sound.format, "data")
    lengths = re.search(rf"^\s*{chunk}\s*: (\d+) \(should be (\d+)\)", sound.extra_info, re.MULTILINE)
    if not lengths:
        return None
    stated, actual = int(lengths[1]), int(lengths[2])
    # A program that writes into a pipe states the greatest length: 2 GiB (sox, arecord) or 4 GiB.
    endless = sound.format not in ("W64", "RF64") and (abs(stated - (1 << 31)) <= 4096 or stated >= (1 << 32) - 4096)
    if actual >= stated or endless:
        return None
    seconds = sound.frames / sound.samplerate * stated / max(actual, 1)
    return codes.TRUNCATED(where=path, stated=f"{stated} bytes", actual=f"{actual} bytes").expecting(seconds)


def _not_opened(path: str, head: bytes, error: soundfile.LibsndfileError) -> AudioError:
    """The error for a file that libsndfile does not open.

    Args:
        path: of the file.
        head: its first bytes.
        error: of libsndfile.
    """
    message = plain(error)
    if re.search(r"lost sync|No 'data' chunk|EOF|unexpected(ly)? end", message, re.IGNORECASE):
        return codes.TRUNCATED_HEADER(where=path, detail=message)
    # A WAV file of unknown coding has a malformed 'fmt ' chunk for libsndfile.
    if re.search("unimplemented|unsupported|Malformed 'fmt ' chunk", message, re.IGNORECASE):
        return codes.NEEDS_FFMPEG(where=path, format=f"the format ({message})")
    if head.startswith(b"OggS"):  # Speex, Theora, ...
        return codes.NEEDS_FFMPEG(where=path, format=f"the Ogg stream ({message})")
    if head.startswith(_KNOWN) and head[8:12] != b"AVI ":
        return codes.DAMAGED_HEADER(where=path, detail=message)
    return recast(codes.NOT_AUDIO(where=path), ForeignError)


def plain(error: soundfile.LibsndfileError) -> str:
    """The message of libsndfile."""
    return str(error.error_string).strip().rstrip(".")
