"""Recordings that libsndfile does not decode, by the program ffmpeg, where there is one: m4a, mp4, wma, webm, video, ...

The program is `ffmpeg` on the PATH, else that of the package imageio-ffmpeg (extra `ffmpeg`). It decodes the first track of
sound at the recording's own rate and channels, and writes it to a pipe as an AU stream (32-bit float, big-endian, its header
says rate and channels), from which it is read piece by piece: memory is bounded, and nothing is written to a disk. What is
taken out of a container without loss is, sample for sample, what libsndfile gives for the same sound in WAV or FLAC (tested).

A place is found by decoding from the beginning: time stamps of containers are rounded, so a jump would give other samples.

What a file says is not trusted: ffmpeg is called without a shell, with the path behind `file:`; it may open nothing but that
file, and take it for nothing but a container of sound, never for a list of other files (`concat`, HLS). A program that gives
nothing for `PATIENCE` seconds is ended.

Sources: https://ffmpeg.org/ffmpeg-all.html; the AU header as in libsndfile's documentation and Sun's <audio/audio_filehdr.h>.
"""

from __future__ import annotations

import functools
import os
import re
import selectors
import shutil
import struct
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.commands import ENDED
from swsdist.audio.formats.headers import CutOff
from swsdist.core.errors import AudioError, StorageError
from swsdist.io.byte_count import open_counted
from swsdist.io.failures import transient_messages

_ENDINGS = (
    "3ga 3gp aac ac3 amr ape asf avi flv m2ts m4a m4b m4v mka mkv mov mp2 mp4 mpc mpeg mpg mts ogv ra rm shn tak tta webm "
    "wma wmv wv"
)
#: Endings of recordings that it is for.
ENDINGS = frozenset(_ENDINGS.split())

#: What the identity of such a recording ends with where there is no ffmpeg: once there is one, it is tried again.
ABSENT = ":without-ffmpeg"

#: Seconds without a sample after which ffmpeg is ended.
PATIENCE = 120.0

#: A recording without pictures may end this many seconds before its container says: encoders pad, and round.
_SHORTFALL = 0.5

#: Names of ffmpeg's demuxers for what a recording may be in; lists of other files are not among them.
_CONTAINERS = (
    "aac,ac3,aiff,amr,amrnb,amrwb,ape,asf,au,avi,caf,dsf,dts,dtshd,eac3,flac,flv,gsm,gxf,latm,loas,matroska,mov,mp3,mpc,mpc8,"
    "mpeg,mpegts,mxf,nut,ogg,oma,qcp,rm,shn,tak,tta,voc,w64,wav,webm,wtv,wv,xwma"
)

_QUIET = ("-nostdin", "-hide_banner", "-nostats")
_HEADER = struct.Struct(">4sIIIII")
_FLOAT = 6  # AU's encoding of 32-bit floats

#: Lines that are kept of what it says of a file.
_SAID = 400

_watchers: list[set[str]] = []


def program() -> str | None:
    """The path of ffmpeg: that on the PATH, else that of imageio-ffmpeg; None if there is neither."""
    found = shutil.which("ffmpeg")
    return found or _packaged()


def is_for(path: str) -> bool:
    """Whether a path ends as that of a recording that libsndfile does not decode."""
    return path.rpartition(".")[2].lower() in ENDINGS


@functools.cache
def _packaged() -> str | None:
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        return None
    try:
        path: str = get_ffmpeg_exe()
    except RuntimeError:  # it has none for this machine
        return None
    return path


@functools.cache
def version(path: str) -> str:
    """What a program calls its version; `unknown` where it does not tell.

    Args:
        path: of ffmpeg.
    """
    try:
        said = subprocess.run(
            [path, "-version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = re.match(r"ffmpeg version (\S+)", said.decode("utf-8", "replace"))
    return found[1] if found else "unknown"


@contextmanager
def watched() -> Iterator[set[str]]:
    """The versions of ffmpeg that decode something meanwhile in this process."""
    used: set[str] = set()
    _watchers.append(used)
    try:
        yield used
    finally:
        _watchers.remove(used)


def length(ffmpeg: str, source: str) -> float | None:
    """Seconds of the first track of sound, counted by its packets: nothing is decoded. None where that cannot be had.

    Args:
        ffmpeg: path of the program.
        source: local path of a file.
    """
    command = [ffmpeg, *_QUIET, "-loglevel", "quiet", "-progress", "pipe:1", *_named(source)]
    command += ["-map", "0:a:0", "-c:a", "copy", "-f", "null", "-"]
    said = b""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while ready.select(PATIENCE) and (part := os.read(process.stdout.fileno(), 1 << 16)):
                said = (said + part)[-(1 << 16) :]
        process.kill()  # it has ended, or hangs
    times = re.findall(rb"out_time_us=(\d+)", said)
    return int(times[-1]) / 1e6 if times and b"progress=end" in said else None


def _named(source: str) -> list[str]:
    """How a file is named to ffmpeg: it, and nothing else, whatever is in its name or in it."""
    allowed = ["-protocol_whitelist", "file,pipe", "-format_whitelist", _CONTAINERS]
    return [*allowed, "-i", f"file:{Path(source).absolute()}"]


class Decoded:
    """The sound of a file as ffmpeg decodes it, to be read once from its beginning; use it as a context manager.

    Args:
        ffmpeg: path of the program.
        source: local path of the file.
        path: what the recording is called in errors.
        brief: only what the header tells is wanted; the program has ended then.
        whole: there is no hole in the file.

    Attributes:
        samplerate: Hz.
        channels: how many.
        format: `FFMPEG`.
        frames: what libsndfile says of a stream that does not tell its length.
        told: if `brief`, its length in s, by its container or its packets; None where neither tells.
        cut: at the end, whether the recording is cut off there.

    Raises:
        AudioError: ffmpeg cannot be started, or finds no sound in the file.
        OSError, StorageError: it is no fault of the file.
    """

    format = "FFMPEG"
    frames = 2**63 - 1

    def __init__(self, ffmpeg: str, source: str, path: str, brief: bool = False, whole: bool = True) -> None:
        self._path, self._program, self._source = path, ffmpeg, source
        self._said: list[str] = []
        self._wrong: deque[str] = deque(maxlen=20)
        command = [ffmpeg, *_QUIET, "-loglevel", "level+info", "-threads", "1", "-xerror", *_named(source)]
        command += ["-map", "0:a:0", "-map_metadata", "-1"]
        command += [*(("-t", "0.05") if brief else ()), "-c:a", "pcm_f32be", "-f", "au", "pipe:1"]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "AV_LOG_FORCE_NOCOLOR": "1"},
            )
        except OSError as error:
            raise AudioError(
                f"ffmpeg cannot be started ({error.strerror})",
                where=path,
                reason="unsupported",
                remedy=f"look at {ffmpeg}, or convert the recording: ffmpeg -i INPUT OUTPUT.flac",
            ) from error
        self._listener = threading.Thread(target=self._listen, name="swsdist-ffmpeg", daemon=True)
        self._listener.start()
        self._given = 0
        self.told: float | None = None
        self.cut: CutOff | None = None
        try:
            self.samplerate, self.channels = self._header()
            if brief:
                while self._take(1 << 16):
                    pass
                self._ended()
                self.told = self._told() or (length(ffmpeg, source) if whole else None)
                self.close()
        except BaseException:
            self.close()
            raise
        for used in _watchers:
            used.add(version(ffmpeg))

    def __enter__(self) -> Decoded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program, however far it is."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def read(self, frames: int) -> NDArray[np.float32]:
        """The next samples, float32 (frames, channels), full scale ±1; fewer only at the end, where there are none at last.

        Raises:
            AudioError: the stream breaks off, or ffmpeg does not go on.
        OSError, StorageError: as when it is made.
        """
        width = 4 * self.channels
        data = self._take(frames * width)
        if len(data) < frames * width:
            self._end(len(data) // width)
        found = np.frombuffer(data[: len(data) // width * width], ">f4").astype(np.float32).reshape(-1, self.channels)
        self._given += len(found)
        return found

    def seek(self, position: int) -> None:
        """Go on to a frame, by decoding all that lies before it."""
        while self._given < position and len(self.read(min(1 << 16, position - self._given))):
            pass

    def _take(self, size: int) -> bytearray:
        """So many bytes of the pipe, fewer at its end."""
        pipe = self._process.stdout
        assert pipe is not None
        taken = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while len(taken) < size:
                if not ready.select(PATIENCE):
                    raise AudioError(
                        f"ffmpeg gave nothing for {PATIENCE:g} s, and was ended",
                        where=self._path,
                        reason="unreadable",
                        remedy="try it by hand: ffmpeg -i INPUT OUTPUT.flac; drop it from the corpus if that hangs too",
                    )
                part = os.read(pipe.fileno(), min(size - len(taken), 1 << 20))
                if not part:
                    break
                taken += part
        return taken

    def _header(self) -> tuple[int, int]:
        data = self._take(_HEADER.size)
        if len(data) < _HEADER.size:
            self._ended()
            self._demand_file_fault()
            if any("matches no streams" in line for line in self._said):
                raise AudioError(
                    "there is no sound in it", where=self._path, reason="no-samples", remedy="drop it from the corpus"
                )
            raise AudioError(
                f"ffmpeg does not read it ({self._last()})",
                where=self._path,
                reason="unreadable",
                remedy="copy it again from where it came; drop it from the corpus if it plays nowhere",
            )
        magic, offset, _, encoding, rate, channels = _HEADER.unpack(data)
        if magic != b".snd" or encoding != _FLOAT or not rate or not channels:
            raise AudioError(
                "ffmpeg gives something else than it was asked for",
                where=self._path,
                reason="unsupported",
                remedy="take another version of ffmpeg",
            )
        self._take(offset - _HEADER.size)
        return rate, channels

    def _told(self) -> float | None:
        """What the container says, to the hundredth, when the program has ended; None where ffmpeg only guesses."""
        said = "\n".join(self._said)
        found = re.search(r"^\[info\] +Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)", said, re.MULTILINE)
        if found is None or "Estimating duration" in said:
            return None
        return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])

    def _end(self, last: int) -> None:
        """Raises AudioError if the stream breaks off; `cut` tells if its end is not the recording's. `last` frames are not
        counted yet."""
        code = self._ended()
        if code:
            self._demand_file_fault()
            raise AudioError(
                f"its stream breaks off or is damaged (ffmpeg: {self._last()})",
                where=self._path,
                reason="truncated",
                remedy="copy it again from where it came; or pass over what is damaged: ffmpeg -i INPUT OUTPUT.flac",
            )
        if any("ended prematurely" in line for line in self._wrong):
            self.cut = CutOff(
                "its stream breaks off (ffmpeg: the file ended prematurely)", where=self._path, told=self._told()
            )
        seconds = (self._given + last) / self.samplerate
        pictures = any(re.search(r"Stream #0.*: Video: (?!.*\(attached pic\))", line) for line in self._said)
        told = self._told()
        if told is not None and not pictures and seconds < told - _SHORTFALL:
            self.cut = CutOff(f"its header tells {told:.2f} s, it has {seconds:.2f} s", where=self._path, told=told)

    def _demand_file_fault(self) -> None:
        """Raise what ended the program, or kept it from reading, where that is not in the file.

        Raises:
            OSError: the file cannot be read.
            StorageError: it can be by now; or somebody ended the program.
        """
        code = self._process.returncode
        if -code in ENDED:
            raise StorageError(
                f"ffmpeg was ended by signal {-code}",
                where=self._path,
                remedy="look at the memory of the machine (dmesg); run again: what was computed is kept",
                cause="ended",
                passing=True,
            )
        if not any(word in line for line in self._wrong for word in transient_messages()):
            return
        with open_counted(Path(self._source)) as file:
            while file.read(1 << 20):
                pass
        # Files that break off are told of so, too. If it reads it now, it did not for another reason.
        again = [self._program, *_QUIET, "-loglevel", "quiet", "-xerror", *_named(self._source), "-f", "null", "-"]
        if subprocess.run(again, stdin=subprocess.DEVNULL, check=False).returncode == 0:
            raise StorageError(
                f"ffmpeg could not read it ({self._last()}), and now it can",
                where=self._path,
                remedy="look at the disk and the mount (dmesg)",
                cause="input-output",
                passing=True,
            )

    def _ended(self) -> int:
        """Wait for the end of a program whose pipe is at its end; its exit status."""
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._listener.join()
        return code

    def _last(self) -> str:
        """The last complaint that says something."""
        dull = (
            "Task finished",
            "Terminating thread",
            "Error opening",
            "Error submitting",
            "Error processing",
            "Error parsing",
        )
        # A line that names the file says that something is wrong with it, after one that says what.
        said = [one for one in self._wrong if not (one.startswith("file:") or any(word in one for word in dull))]
        said = said or list(self._wrong)
        return said[-1] if said else f"exit status {self._process.returncode}"

    def _listen(self) -> None:
        """Keep what the program says: its pipe must not fill, and it may say much."""
        pipe = self._process.stderr
        assert pipe is not None
        heard = b""
        with suppress(ValueError, OSError):
            while part := os.read(pipe.fileno(), 1 << 16):
                *lines, heard = (heard + part)[-(1 << 20) :].split(b"\n")
                for line in lines:
                    self._hear(line)
        self._hear(heard)

    def _hear(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        complaint = re.match(r"(?:\[[^]]* @ [^]]*\] )*\[(?:error|fatal)\] (.*)", text)
        if complaint is not None:
            self._wrong.append(complaint[1].strip())
        if text and len(self._said) < _SAID:
            self._said.append(text)
