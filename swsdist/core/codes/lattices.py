"""Codes of lattices and transcripts."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError

# Of transcripts.

WORD_ENDS_BEFORE_START = Code(
    "word-ends-before-start",
    DataError,
    "{text!r} lasts from {start:g} to {end:g} s",
    "give an end that is not before the start",
)

BAD_CONFIDENCE = Code("bad-confidence", DataError, "the confidence is {text!r}", "give a number from 0 to 1")

WORD_WITHOUT_TIMES = Code(
    "word-without-times",
    DataError,
    "{text!r} has no times, and neither have its neighbours or its segment",
    "give start and end in seconds (NeMo: timestamps=True)",
)

NO_WORD_TIMES = Code(
    "no-word-times",
    DataError,
    "{text!r} has no words with times",
    "write them: word_timestamps=True (Whisper, faster-whisper), whisperx.align, SetWords(True) (Vosk), "
    "timestamps=True (NeMo)",
)

MALFORMED_JSON = Code(
    "malformed-json", DataError, "this is not JSON, column {column}: {error}", "write the file again, whole"
)

UNKNOWN_JSON = Code(
    "unknown-json",
    DataError,
    "{item} is not what a known recogniser writes",
    "write JSON of Whisper, WhisperX, faster-whisper, NeMo or Vosk, or another format",
)

RECORDINGS_OF_ONE_NAME = Code(
    "recordings-of-one-name",
    DataError,
    "{first!r} and {second!r} would both be {key!r}",
    "give their files different names",
)

SCATTERED_CTM = Code(
    "scattered-ctm",
    DataError,
    "words of recording {recording!r}, channel {channel}, come again after those of another",
    "sort the CTM by recording, channel and start: sort -k1,1 -k2,2 -k3,3n",
)

CUE_WITHOUT_TIMES = Code(
    "cue-without-times",
    DataError,
    "{line!r} begins no cue: neither it nor the next line has times",
    "write START --> END above a cue's text (00:00:01.500 --> 00:00:02.000), and no blank line in the text",
)

BAD_CUE_TIMES = Code(
    "bad-cue-times",
    DataError,
    "{line!r} does not have a cue's times",
    "write them as 00:00:01.500 --> 00:00:02.000, above the cue's text",
)

UNREADABLE_ANNOTATIONS = Code(
    "unreadable-annotations",
    DataError,
    "{program} cannot have written this file: {error}",
    "open it in {program}, and save it again",
)

UNALIGNED_ANNOTATION = Code(
    "unaligned-annotation",
    DataError,
    "annotation {annotation} of tier {tier!r} depends on none that has times",
    "open it in ELAN, and align it",
)

NO_SUCH_TIER = Code("no-such-tier", DataError, "there is no tier {tier!r}", "name some of {tiers}")
