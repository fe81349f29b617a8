"""Codes of recordings: samples in memory, commands, files, ffmpeg, places and channels."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import AudioError, DataError, ForeignError, TermError, TransientError, UserError

_PAIR = "give a pair of float samples of shape (n,), full scale 1, and their rate in Hz: (samples, 16000)"
_COPY = "copy the file again from its source"
_CONVERT = "convert it: ffmpeg -i INPUT OUTPUT.flac"
_ELSEWHERE = f"copy the file again; if it plays elsewhere, {_CONVERT}"
_INSTALL = f"install ffmpeg as a package of the system, or pip install imageio-ffmpeg, or {_CONVERT}"

# Samples in memory

NOT_A_RECORDING = families.INVALID_VALUE.of(UserError).saying("{type} is not a recording", _PAIR)
RAGGED_SAMPLES = families.INVALID_VALUE.of(UserError).saying("the samples are not an array ({error})", _PAIR)
BAD_SAMPLE_RATE = families.INVALID_VALUE.of(UserError).saying("{rate!r} is not a sampling rate", _PAIR)
SAMPLES_NOT_FLOAT = families.INVALID_VALUE.of(UserError).saying(
    "the samples have the type {dtype}", f"{_PAIR}; divide 16-bit integers by 32768"
)
SAMPLES_NOT_MONO = families.INVALID_VALUE.of(UserError).saying(
    "the samples have the shape {shape}", f"{_PAIR}; select one of several channels"
)
NON_FINITE_SAMPLES = families.INVALID_VALUE.of(UserError).saying("sample {index} is {value}", _PAIR)
SAMPLES_TOO_LARGE = families.INVALID_VALUE.of(UserError).saying("a sample is {peak:g}, and full scale is 1", _PAIR)

# Speech synthesis

SYNTHESISER_FAILED = families.PROGRAM_FAILED.saying(
    "{program} does not speak the text ({ending}): {stderr}",
    "choose another voice; look whether `{program} hello` speaks",
)
SPOKEN_TEXT_TOO_LONG = Code(
    "spoken-text-too-long", TermError, "the text has more than {most} characters", "write a word, or a few"
)
UNREADABLE_SCRIPT = Code(
    "unreadable-script",
    TermError,
    "the voice {voice} does not read the letters of {word!r}",
    "choose a voice of the word's language, or write the word as that voice reads it",
)
SOUNDLESS_TEXT = Code("soundless-text", TermError, "the voice {voice} makes no sound of the text", "write a word")

# Commands

COMMAND_NOT_ALLOWED = Code(
    "command-not-allowed",
    AudioError,
    "the recording is the output of a command, and commands are not allowed: {command}",
    "read what the command does; --allow-commands runs it with your rights. Or write its output to a file, and name the "
    "file",
)
COMMAND_NOT_FILE = families.WRONG_KIND.of(DataError).saying(
    "{name!r} is a command, and {source} names files",
    "name a file; only a Kaldi wav.scp holds commands, which run with --allow-commands",
)
_BY_HAND = "run the command by hand; correct it, or remove its line from the list"
COMMAND_FAILED = families.COMMAND_FAILED.saying(
    "the command ended with {ending}; its standard error: {stderr}", _BY_HAND
)
COMMAND_WITHOUT_OUTPUT = families.COMMAND_FAILED.saying(
    "the command wrote no output; its standard error: {stderr}", _BY_HAND
)
COMMAND_TIMEOUT = families.COMMAND_FAILED.saying("the command took longer than {seconds:.0f} s", _BY_HAND)
_MEMORY = "check the memory of the machine (dmesg); run again: results so far are kept"
COMMAND_KILLED = Code(
    "command-killed",
    TransientError,
    "the command was ended from outside, with {ending}; its standard error: {stderr}",
    _MEMORY,
)

# Files

MISSING_RECORDING = families.MISSING_RECORDING.saying(
    "there is no such file", "check the path, and what it is relative to"
)
RECORDING_IS_FOLDER = Code("recording-is-folder", AudioError, "the path names a folder", "name a file in the folder")
RECORDING_IS_DEVICE = Code(
    "recording-is-device", AudioError, "the path names a pipe or a device", "remove it: a recording is a file"
)
EMPTY_RECORDING = Code("empty-recording", AudioError, "the file has 0 bytes", "copy the file again, or remove it")
NO_SAMPLES = Code("no-samples", AudioError, "the recording lasts 0 s", f"{_COPY}, or leave it out")
NOT_FINITE = Code(
    "not-finite",
    AudioError,
    "the sample at {time:.3f} s is {value}",
    "find out which program wrote the file; a format of integer samples cannot hold NaN",
)
NO_WAV_IN_ARCHIVE = Code(
    "no-wav-in-archive",
    AudioError,
    "the archive holds no WAV file at byte {byte}",
    "write list and archive again (wav-copy ... ark,scp:...); only WAV is read from an archive",
)

# Formats

NOT_AUDIO = Code(
    "not-audio", AudioError, "no audio format is recognised", f"leave the file out; if it plays elsewhere, {_CONVERT}"
)
NEEDS_FFMPEG = Code("needs-ffmpeg", ForeignError, "{format} cannot be read without ffmpeg", _INSTALL)
HEADERLESS_SAMPLES = Code(
    "headerless-samples",
    AudioError,
    "samples without a header cannot be read",
    "convert them: sox -t raw -r RATE -e signed -b 16 -c 1 INPUT OUTPUT.wav",
)
SPHERE_COMPRESSION = Code(
    "sphere-compression",
    AudioError,
    "SPHERE with sample_coding {coding!r} cannot be read",
    "convert it: sph2pipe -f wav INPUT OUTPUT.wav (sox does not read this compression)",
)
DAMAGED_HEADER = Code("damaged-header", AudioError, "the header is damaged ({detail})", _ELSEWHERE)
IMPOSSIBLE_RATE = families.IMPOSSIBLE_HEADER.saying(
    "the header states {rate} Hz; {low} to {high} Hz are possible", _ELSEWHERE
)
IMPOSSIBLE_CHANNELS = families.IMPOSSIBLE_HEADER.saying(
    "the header states {channels} channels; at most {highest} are possible", _ELSEWHERE
)
IMPOSSIBLE_LENGTH = families.IMPOSSIBLE_HEADER.saying(
    "the header states {hours:.1f} hours, too many for {size} bytes", _ELSEWHERE
)

# Truncation and damage

TRUNCATED = families.TRUNCATED.saying("the header states {stated}, the recording has {actual}", _COPY)
TRUNCATED_HEADER = Code("truncated-header", AudioError, "the header is cut off ({detail})", _COPY)
TRUNCATED_OGG = families.TRUNCATED.saying("the last page is not the end of the Ogg stream", _COPY)
TRUNCATED_STREAM = families.TRUNCATED.saying("ffmpeg reports that the file ends early, or is damaged ({detail})", _COPY)
DAMAGED_STREAM = Code(
    "damaged-stream",
    AudioError,
    "the stream is damaged or cut off ({detail})",
    f"{_COPY}; or skip the damage: ffmpeg -i INPUT OUTPUT.flac",
)
UNREADABLE_PLACE = Code("unreadable-place", AudioError, "nothing can be read at {time:.3f} s ({detail})", _COPY)

# ffmpeg

FFMPEG_NOT_STARTED = families.FFMPEG_FAILED.saying("ffmpeg does not start ({error})", "check {program}, or " + _CONVERT)
FFMPEG_CANNOT_READ = Code(
    "ffmpeg-cannot-read",
    AudioError,
    "ffmpeg cannot read the file ({detail})",
    f"{_COPY}; remove it from the corpus if it plays nowhere",
)
FFMPEG_TIMEOUT = Code(
    "ffmpeg-timeout",
    AudioError,
    "ffmpeg wrote nothing for {seconds:g} s and was stopped",
    "try it by hand: ffmpeg -i INPUT OUTPUT.flac; remove the file from the corpus if that hangs, too",
)
NO_AUDIO_TRACK = Code("no-audio-track", AudioError, "the file has no audio track", "remove it from the corpus")
FFMPEG_KILLED = Code("ffmpeg-killed", TransientError, "ffmpeg was ended by signal {signal}", _MEMORY)
FFMPEG_READ_ERROR = Code(
    "ffmpeg-read-error",
    TransientError,
    "ffmpeg failed to read the file once ({detail}), and read it the second time",
    "check the disk and the mount (dmesg)",
)

# Channels and places

NO_SUCH_CHANNEL = Code(
    "no-such-channel",
    AudioError,
    "the recording has no channel {channel}, only {channels}",
    "give a channel from 1 to {channels}",
)
PLACE_OUTSIDE = Code(
    "place-outside",
    AudioError,
    "the recording ({duration}) does not contain {place}",
    "give start and end in seconds, start before end, both inside the recording",
)
SEGMENT_OUTSIDE = Code(
    "segment-outside",
    AudioError,
    "{doc_id} is {start:g} to {end:g} s of a recording of {duration:.3f} s ({source})",
    "give times inside the recording, or remove it; an end may exceed the recording's by 0.5 s",
)
