"""Decode recordings that libsndfile does not read (m4a, mp4, wma, webm, video, ...) with the program ffmpeg.

The program is `ffmpeg` on the PATH, else that of the package imageio-ffmpeg. It decodes the first audio track at the
recording's rate and channels, and writes an AU stream (32-bit float, big-endian; the header states rate and channels)
to a pipe, which is read in pieces: memory is bounded, and nothing is written to disk. Samples of lossless tracks equal
those that libsndfile reads from the same audio in WAV or FLAC (tested).

Times are those of a player. Zero is where the first track of the file starts, pictures included; in an MP4 or MOV in
one piece, the zero of its edit lists. Silence precedes sound that starts later, and fills gaps of its timestamps; no
sound is dropped where they overlap. Timestamps jitter (Vorbis in Ogg by 10 ms), so a gap is one of more than 100 ms, or
one of more than 10 ms that lasts. Timestamps that go back, or an hour ahead, are of another part of the file, which
follows at once.

Seeking decodes from the beginning: containers round their time stamps, so a jump would return other samples.

Segments: many documents can be segments of one recording. While caching is active, the recording's length is determined
once, and the next segment continues where the previous one ended. Segments in order of time thus cost one decoding of
the recording, and one copy of a remote one. Each thread has its own cache.

Security: files are untrusted. ffmpeg is called without a shell, with the path behind `file:`; it may open that file
only, as a container of audio, never as a list of other files (`concat`, HLS). A program without output for `TIMEOUT`
seconds is killed.

Sources: https://ffmpeg.org/ffmpeg-all.html; the AU header as in libsndfile's documentation and Sun's
<audio/audio_filehdr.h>.
"""

from __future__ import annotations

import functools
import os
import re
import selectors
import shutil
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from swsdist.audio.formats.extents import extent
from swsdist.audio.formats.views import check_extent, check_shape
from swsdist.audio.streams import KILL_SIGNALS
from swsdist.core.arrays import Singles
from swsdist.core.codes import audio as codes
from swsdist.core.codes import families
from swsdist.core.errors import CutOffError
from swsdist.io.failures import transient_messages
from swsdist.io.local import open_counted, uncounted

_ENDINGS = (
    "3ga 3gp aac ac3 amr ape asf avi flv m2ts m4a m4b m4v mka mkv mov mp2 mp4 mpc mpeg mpg mts mxf ogv ra rm shn tak ts "
    "tta vob webm wma wmv wv"
)
#: Endings of recordings for ffmpeg.
ENDINGS = frozenset(_ENDINGS.split())

#: Suffix of such a recording's identity on a machine without ffmpeg: with ffmpeg the recording is tried again.
ABSENT = ":without-ffmpeg"

#: Suffix of the identity of others: what was read otherwise before is read again.
READER = ":media-time"

#: Seconds without a sample after which ffmpeg is killed.
TIMEOUT = 120.0

#: Seconds that a recording without video may be shorter than its container states: encoders pad and round.
_SHORTFALL = 0.5

#: Most seconds that a decoder holds back when the last frame is torn.
_LAST = 0.25

#: ffmpeg's demuxers for containers of audio; none of them reads a list of files, or takes any bytes for sound (amrnb, amrwb).
_CONTAINERS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,dtshd,eac3,flac,flv,gsm,gxf,latm,loas,matroska,mov,mp3,mpc,mpc8,"
    "mpeg,mpegts,mxf,nut,ogg,oma,qcp,rm,shn,tak,tta,voc,w64,wav,webm,wtv,wv,xwma"
)

#: Seconds: the shortest gap that is filled at once, and the longest that is filled.
_GAP, _NEW_CLOCK = 0.1, 3600
#: Timestamps without jitter, in samples, of which the first is logged; and silence where they jump. The expression keeps
#: 0: the time at which the frame follows the one before; 1: its excess over that; 2: what its clock is ahead; 3: the mean
#: excess of late.
_LAID = (
    "asettb=1/sr,asetpts='"
    "st(0, if(isnan(PREV_OUTPTS), print(if(isnan(PTS), 0, PTS)), ld(0)));"
    "st(1, if(isnan(PTS), 0, PTS - ld(2) - ld(0)));"
    f"if(lt(ld(1), -{_GAP}*SR) + gt(ld(1), {_NEW_CLOCK}*SR), st(2, ld(2) + ld(1)) * st(1, 0));"
    "st(3, ld(3) + (ld(1) - ld(3)) / 32);"
    f"if(gt(ld(1), {_GAP}*SR) + gt(ld(3), 0.01*SR), st(0, ld(0) + max(ld(1), 0)) * st(3, 0));"
    "st(0, ld(0) + NB_SAMPLES) - NB_SAMPLES'"
    ",aresample=async=1:min_hard_comp=0.001"
)
#: Demuxers whose stated duration counts from zero, not from the start.
_FROM_ZERO = ("matroska", "asf", "ogg")

_QUIET = ("-nostdin", "-hide_banner", "-nostats")
_HEADER = struct.Struct(">4sIIIII")
_FLOAT = 6  # AU's encoding of 32-bit floats

#: Lines of its standard error that are kept.
_LOG_LINES = 400

_recorders: list[set[str]] = []
_printed: set[str] = set()  # paths of files with more tracks


def program() -> str | None:
    """Path of ffmpeg: on the PATH, else from imageio-ffmpeg; None if neither exists."""
    return shutil.which("ffmpeg") or _packaged()


def is_for(path: str) -> bool:
    """Whether the ending of a path is one that libsndfile does not decode."""
    return path.rpartition(".")[2].lower() in ENDINGS


@functools.cache
def _packaged() -> str | None:
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        return None
    try:
        path: str = get_ffmpeg_exe()
    except RuntimeError:  # no program for this machine
        return None
    return path


@functools.cache
def version(path: str) -> str:
    """Version of an ffmpeg; `unknown` where it prints none.

    Args:
        path: of ffmpeg.
    """
    try:
        output = subprocess.run(
            [path, "-version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    match = re.match(r"ffmpeg version (\S+)", output.decode("utf-8", "replace"))
    return match[1] if match else "unknown"


@contextmanager
def recorded_versions() -> Iterator[set[str]]:
    """Collect the versions of ffmpeg that decode in this process while the context lasts."""
    versions: set[str] = set()
    _recorders.append(versions)
    try:
        yield versions
    finally:
        _recorders[:] = [other for other in _recorders if other is not versions]  # equal ones are others


def packet_seconds(ffmpeg: str, source: str) -> float | None:
    """Seconds of the first audio track, by its packets, without decoding; None where ffmpeg fails.

    Args:
        ffmpeg: path of the program.
        source: local path of a file.
    """
    command = [ffmpeg, *_QUIET, "-loglevel", "quiet", "-progress", "pipe:1", *_input(source)]
    command += ["-map", "0:a:0", "-c:a", "copy", "-f", "null", "-"]
    progress = b""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while ready.select(TIMEOUT) and (part := os.read(process.stdout.fileno(), 1 << 16)):
                progress = (progress + part)[-(1 << 16) :]
        process.kill()  # it has ended, or hangs
    times = re.findall(rb"out_time_us=(\d+)", progress)
    return int(times[-1]) / 1e6 if times and b"progress=end" in progress else None


def _input(source: str) -> list[str]:
    """Arguments that let ffmpeg open one file and no other, whatever its name or content."""
    whitelist = ["-protocol_whitelist", "file,pipe", "-format_whitelist", _CONTAINERS]
    return [*whitelist, "-i", f"file:{Path(source).absolute()}"]


def _is_movie(source: str) -> bool:
    """Whether a file is an MP4 or MOV in one piece: its edit lists say when tracks start. In pieces (`moof`) it may be cut from
    a stream, and starts when that did.
    """
    kinds = set()
    with Path(source).open("rb") as file:
        while len(box := file.read(16)) >= 8 and b"moof" not in kinds and box[4:8].isalnum():
            kinds.add(box[4:8])
            size = int.from_bytes(box[8:16] if box[:4] == b"\0\0\0\1" else box[:4], "big")
            if size < 8:  # up to the end
                break
            file.seek(size - len(box), 1)
    return b"moov" in kinds and b"moof" not in kinds


class Decoded:
    """A file decoded by ffmpeg, read once from the beginning; a context manager.

    Args:
        ffmpeg: path of the program.
        source: local path of the file.
        path: name of the recording in errors.
        brief: read the header only; the program has ended afterwards.
        complete: the file has no hole.
        strict: end at the first error.

    Attributes:
        path: as given.
        samplerate: Hz.
        channels: number of channels.
        format: `FFMPEG`.
        frames: `UNKNOWN` of libsndfile.
        duration: s by container, with `brief` else by packets; set at the end; None where neither states it.
        cut: set if the recording is cut off: by its bytes, or at the end.

    Raises:
        AudioError: ffmpeg does not start, or finds no audio in the file.
        OSError, StorageError: the file is not at fault.
    """

    format = "FFMPEG"
    frames = 2**63 - 1

    def __init__(
        self,
        ffmpeg: str,
        source: str,
        path: str,
        brief: bool = False,
        complete: bool = True,
        strict: bool = True,
    ) -> None:
        self.path, self._program, self._source = path, ffmpeg, source
        self._log: list[str] = []
        self._stamp: float | None = None  # timestamp of the track's first sample, in samples
        self._started = threading.Event()
        self._errors: deque[str] = deque(maxlen=20)
        command = [ffmpeg, *_QUIET, "-loglevel", "level+info", "-threads", "1"]
        command += [*(["-xerror"] if strict else []), *_input(source)]
        command += ["-map", "0:a:0", "-map_metadata", "-1", "-copyts", "-af", _LAID]
        command += [*(("-frames:a", "1") if brief else ()), "-c:a", "pcm_f32be", "-f", "au", "pipe:1"]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "AV_LOG_FORCE_NOCOLOR": "1"},
            )
        except OSError as error:
            raise codes.FFMPEG_NOT_STARTED(where=path, error=error.strerror, program=ffmpeg) from error
        self._listener = threading.Thread(target=self._listen, name="swsdist-ffmpeg", daemon=True)
        self._listener.start()
        self._frames_read = self._silence = 0
        self._strict, self._torn, self._tail = strict, False, np.empty((0, 0), np.float32)
        self.duration: float | None = None
        self.cut: CutOffError | None = None
        try:
            self.samplerate, self.channels = self._header()
            if brief:
                while self._take(1 << 16):
                    pass
                self._wait()
                self.duration = self._stated_seconds()
                if self.duration is None and complete and (seconds := packet_seconds(ffmpeg, source)) is not None:
                    self.duration = seconds + self._start() - self._zero()
                self.close()
            else:
                self._lay()
                if strict and (more := len(self._tracks("Audio:")) - 1) > 0 and path not in _printed:
                    _printed.add(path)
                    print(f"warning: {path}: {more} more sound track{'s' * (more > 1)}, not read", file=sys.stderr)
            for versions in _recorders:
                versions.add(version(ffmpeg))
            if strict:
                self._check(brief)
        except BaseException:
            self.close()
            raise

    def _check(self, brief: bool) -> None:
        """Check the header, and how far the file goes."""
        frames = round((self.duration or 0) * self.samplerate)
        check_shape(self.path, self.samplerate, self.channels, frames, Path(self._source).stat().st_size)
        if not brief:
            with uncounted(), open_counted(Path(self._source)) as file:
                self.cut = check_extent(self.path, extent(file))

    def __enter__(self) -> Decoded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the program."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def read(self, frames: int) -> Singles:
        """The next samples, float32 (frames, channels), full scale ±1; fewer only at the end.

        Raises:
            AudioError: the stream is damaged, or ffmpeg hangs.
            OSError, StorageError: the file is not at fault.
        """
        width = 4 * self.channels
        silence = min(self._silence, frames)
        self._silence -= silence
        data = bytearray(silence * width) + self._take((frames - silence) * width)
        if len(data) < frames * width:
            self._end(len(data) // width)
        samples = np.frombuffer(data[: len(data) // width * width], ">f4").astype(np.float32).reshape(-1, self.channels)
        if len(self._tail) and len(samples) < frames:
            more = self._tail[: frames - len(samples)]
            samples, self._tail = np.concatenate([samples, more]), self._tail[len(more) :]
        self._frames_read += len(samples)
        return samples

    def seek(self, position: int) -> None:
        """Decode up to a frame."""
        while self._frames_read < position and len(self.read(min(1 << 16, position - self._frames_read))):
            pass

    def _take(self, size: int) -> bytearray:
        """Read `size` bytes of the pipe, fewer at its end."""
        pipe = self._process.stdout
        assert pipe is not None
        taken = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while len(taken) < size:
                if not ready.select(TIMEOUT):
                    raise codes.FFMPEG_TIMEOUT(where=self.path, seconds=TIMEOUT)
                part = os.read(pipe.fileno(), min(size - len(taken), 1 << 20))
                if not part:
                    break
                taken += part
        return taken

    def _header(self) -> tuple[int, int]:
        data = self._take(_HEADER.size)
        if len(data) < _HEADER.size:
            self._wait()
            self._raise_foreign_fault()
            if any("matches no streams" in line for line in self._log):
                raise codes.NO_AUDIO_TRACK(where=self.path)
            raise codes.FFMPEG_CANNOT_READ(where=self.path, detail=self._complaint())
        magic, offset, _, encoding, rate, channels = _HEADER.unpack(data)
        if magic != b".snd" or encoding != _FLOAT or not rate or not channels:
            raise families.FFMPEG_FAILED(
                "ffmpeg wrote no AU stream of 32-bit floats", "install another version of ffmpeg", where=self.path
            )
        self._take(offset - _HEADER.size)
        return rate, channels

    def _lay(self) -> None:
        """Begin at zero of the file's time: with silence where the track starts later, else without what comes before it."""
        self._started.wait(TIMEOUT)
        late = round((self._stamp or 0.0) - self._zero() * self.samplerate)
        if abs(late) > _NEW_CLOCK * self.samplerate:
            return
        if len(self._tracks("")) == 1 and (self._stamp or 0) >= 0:
            late = max(0, late)  # zero is its start; what a container states of that may count its delay
        self._silence, early = max(0, late), max(0, -late)
        while early and self._take(min(early, 1 << 16) * 4 * self.channels):
            early = max(0, early - (1 << 16))

    def _tracks(self, kind: str) -> list[str]:
        """Lines of the log on the file's tracks of a kind, but cover art."""
        log = "\n".join(self._log).partition("[info] Output #0")[0]
        return re.findall(rf"^\[info\] +(Stream #0:.*: {kind}(?!.*\(attached pic\)).*)$", log, re.MULTILINE)

    def _start(self) -> float:
        """Time of the first track's start that the container states, s."""
        match = re.search(r"^\[info\] +Duration: .*?, start: (-?[\d.]+)", "\n".join(self._log), re.MULTILINE)
        return float(match[1]) if match else 0.0

    def _zero(self) -> float:
        """Time of the container that is zero, s."""
        start = self._start()
        return 0.0 if 0 < start <= _NEW_CLOCK and _is_movie(self._source) else start

    def _stated_seconds(self) -> float | None:
        """Duration that the container states, to 0.01 s, once the program has ended; None where ffmpeg only estimates it, or
        its versions differ in whether it counts from zero.
        """
        log = "\n".join(self._log)
        match = re.search(r"^\[info\] +Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)", log, re.MULTILINE)
        if match is None or "Estimating duration" in log or self._zero() != self._start():
            return None
        if "Input #0, asf" in log and any(re.search(r", start [\d.]+$", track) for track in self._tracks("")):
            return None  # it counts the start twice
        begin = self._start() if re.search(rf"^\[info\] Input #0, ({'|'.join(_FROM_ZERO)})", log, re.MULTILINE) else 0.0
        return int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3]) - begin

    def _end(self, last: int) -> None:
        """Check the end of the stream; set `cut` if the recording should go on.

        Args:
            last: frames that are not counted yet.

        Raises:
            AudioError: the stream is damaged.
        """
        lenient = not self._strict and not self._torn
        if self._wait() and self._strict:
            self._raise_foreign_fault()
            self._strict, self._torn, self._tail = False, True, self._after_error(self._frames_read + last)
            last += len(self._tail)
        elif self._process.returncode and lenient:
            raise codes.DAMAGED_STREAM(where=self.path, detail=f"ffmpeg: {self._complaint()}")
        self.duration = stated = self._stated_seconds()
        pictures = bool(self._tracks("Video:"))
        torn = self._process.returncode or any("ended prematurely" in line for line in self._errors)
        if torn or (self._errors and not pictures):
            self.cut = codes.TRUNCATED_STREAM(where=self.path, detail=self._complaint()).expecting(stated)
        seconds = (self._frames_read + last) / self.samplerate
        if not seconds:
            raise codes.FFMPEG_CANNOT_READ(where=self.path, detail="it holds no sound")
        if stated is not None and not pictures and seconds < stated - _SHORTFALL:
            cut = codes.TRUNCATED(where=self.path, stated=f"{stated:.2f} s", actual=f"{seconds:.2f} s")
            self.cut = cut.expecting(stated)

    def _after_error(self, position: int) -> Singles:
        """The samples after an error, if it is of the last frame.

        Raises:
            AudioError: more follow: the stream is damaged.
        """
        with Decoded(self._program, self._source, self.path, strict=False) as lenient:
            lenient.seek(position)
            rest = lenient.read(round(_LAST * self.samplerate))
            if len(lenient.read(1)):
                raise codes.DAMAGED_STREAM(where=self.path, detail=f"ffmpeg: {self._complaint()}")
        return rest

    def _raise_foreign_fault(self) -> None:
        """Raise if the program failed for a reason outside the file.

        Raises:
            OSError: the file cannot be read.
            StorageError: the file could not be read at first; or a signal ended the program.
        """
        code = self._process.returncode
        if -code in KILL_SIGNALS:
            raise codes.FFMPEG_KILLED(where=self.path, signal=-code)
        if not any(word in line for line in self._errors for word in transient_messages()):
            return
        with open_counted(Path(self._source)) as file:
            while file.read(1 << 20):
                pass
        # ffmpeg says the same of truncated files, so it reads the file a second time.
        again = [self._program, *_QUIET, "-loglevel", "quiet", "-xerror", *_input(self._source), "-f", "null", "-"]
        if subprocess.run(again, stdin=subprocess.DEVNULL, check=False).returncode == 0:
            raise codes.FFMPEG_READ_ERROR(where=self.path, detail=self._complaint())

    def _wait(self) -> int:
        """Wait for the end of the program, whose pipe is at its end; return the exit status.

        A format that ffmpeg's probe gives at most 25 of 100 points counts only behind an ending for it.
        """
        try:
            code = self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._listener.join()
        if not is_for(self.path) and any("misdetection possible" in line for line in self._log):
            raise codes.FFMPEG_CANNOT_READ(where=self.path, detail="its format is a guess")
        return code

    def _complaint(self) -> str:
        """The last specific error message."""
        # The line that names the file repeats the error before it in general words.
        general = re.compile("^file:|Task finished|Terminating thread|Error (opening|submitting|processing|parsing)")
        specific = [line for line in self._errors if not general.search(line)]
        lines = specific or list(self._errors)
        return lines[-1] if lines else f"exit status {self._process.returncode}"

    def _listen(self) -> None:
        """Read standard error to its end, so that the pipe never fills."""
        pipe = self._process.stderr
        assert pipe is not None
        rest = b""
        with suppress(ValueError, OSError):
            while part := os.read(pipe.fileno(), 1 << 16):
                *lines, rest = (rest + part)[-(1 << 20) :].split(b"\n")
                for line in lines:
                    self._log_line(line)
        self._log_line(rest)
        self._started.set()

    def _log_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        error = re.match(r"(?:\[[^]]* @ [^]]*\] )*\[(?:error|fatal)\] (.*)", text)
        if error is not None and "to muxer" not in text:  # times of the output, which has none
            self._errors.append(error[1].strip())
        if self._stamp is None and (first := re.match(r"(?:\[Eval @ [^]]*\] )?\[info\] (-?\d+\.\d+)$", text)):
            self._stamp = float(first[1])
        if self._stamp is not None or text.startswith("[info] Output #0"):
            self._started.set()
        if text and len(self._log) < _LOG_LINES:
            self._log.append(text)


#: Seconds that a segment may exceed its recording by; it is cut there, as in Kaldi's `extract-segments`.
OVERSHOOT = 0.5

#: Bytes of samples to keep: a minute and more.
_KEPT_BYTES = 64 << 20
#: Frames decoded at once.
_PIECE = 1 << 16

T = TypeVar("T")


def fit_segment(start: float, end: float, length: float, doc_id: str, source: str, path: str) -> tuple[float, float]:
    """Start and end (s) of a segment, cut at the end of its recording.

    Args:
        start, end: of the segment, s.
        length: of the recording, s.
        doc_id: document of the segment.
        source: file and line that list it.
        path: of the recording.

    Raises:
        AudioError: the segment lies outside the recording.
    """
    if start >= length or end > length + OVERSHOOT:
        raise codes.SEGMENT_OUTSIDE(where=path, doc_id=doc_id, start=start, end=end, duration=length, source=source)
    return start, min(end, length)


class Window(Decoded):
    """A decoder that keeps the last samples, so that it can seek back to them."""

    def __init__(self, program: str, source: str, path: str, brief: bool = False, complete: bool = True) -> None:
        self._pieces: deque[Singles] = deque()
        self._first = self._position = 0
        super().__init__(program, source, path, brief, complete)

    def reaches(self, position: int) -> bool:
        """Whether a frame is still buffered, or not yet decoded."""
        return position >= self._first

    def seek(self, position: int) -> None:
        """Seek forward or back to a frame."""
        while self._frames_read < position and self._decode():
            pass
        self._position = min(position, self._frames_read)

    def read(self, frames: int) -> Singles:
        """Read at most `frames` samples, float32 (frames, channels); none at the end.

        Raises:
            AudioError: the stream is truncated, or ffmpeg fails.
        """
        if self._position == self._frames_read:
            self._decode()
        begin = self._first
        for piece in self._pieces:
            if self._position < begin + len(piece):
                samples = piece[self._position - begin :][:frames]
                self._position += len(samples)
                return samples
            begin += len(piece)
        return np.empty((0, self.channels), np.float32)

    def _decode(self) -> bool:
        """Decode the next piece, of fixed boundaries; False at the end."""
        piece = super().read(_PIECE)
        if len(piece):
            self._pieces.append(piece)
        while len(self._pieces) > 1 and sum(piece.nbytes for piece in self._pieces) > _KEPT_BYTES:
            self._first += len(self._pieces.popleft())
        return len(piece) > 0


class _Cache(threading.local):
    """Cache of a thread: headers by path, None where it is off; and one decoder with its resources and its user."""

    known: dict[str, object] | None = None
    sound: Window | None = None
    user: object = None

    def __init__(self) -> None:
        self.stack = ExitStack()

    def forget(self) -> None:
        """Close the decoder."""
        self.stack.close()
        self.sound = self.user = None


_cache = _Cache()


@contextmanager
def caching() -> Iterator[None]:
    """Cache headers and a decoder while the context lasts."""
    if _cache.known is not None:
        yield
        return
    _cache.known = {}
    try:
        yield
    finally:
        _cache.known = None
        _cache.forget()


def is_caching() -> bool:
    """Whether a cache is active."""
    return _cache.known is not None


def cached(path: str, find: Callable[[], T]) -> T:
    """The cached value of a path, or the result of `find`."""
    if _cache.known is None:
        return find()
    if path not in _cache.known:
        _cache.known[path] = find()
    return cast(T, _cache.known[path])


def cached_decoder(path: str, start: float) -> Window | None:
    """The cached decoder of a recording, at `start` s; None if there is none, or it cannot seek there."""
    sound = _cache.sound
    if sound is None or sound.path != path or not sound.reaches(first := int(start * sound.samplerate)):
        return None
    sound.seek(first)
    return sound


def cache_decoder(sound: Window, stack: ExitStack) -> None:
    """Cache a decoder, which `stack` closes with its resources; close the previous one."""
    _cache.forget()
    _cache.sound, _cache.stack = sound, stack


@contextmanager
def lent(sound: Window) -> Iterator[Window]:
    """Lend the cached decoder; close it if reading fails or ends early."""
    token = _cache.user = object()
    try:
        yield sound
    except BaseException:
        # An abandoned generator may end while another one uses the decoder.
        if _cache.user is token:
            _cache.forget()
        raise
