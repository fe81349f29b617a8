"""Codes of lattices and transcripts."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import ConfigError, DataError, OddError, TermError, UnusableError, UserError

# Lattices.


IMPOSSIBLE_COST = families.DAMAGED_LATTICE.saying(
    "a cost is {value}", "a cost is a number from -1e9 to 1e9, or Infinity; decode again, or repair the file"
)

# Kaldi's lattices.

MALFORMED_LINE = families.MALFORMED_LINE.saying("the line {fault}", "a line is {form}; or write the file again, whole")


LATTICE_CUT_OFF = families.DAMAGED_LATTICE.saying(
    "the file ends within a lattice", "write, or copy, it again; an empty line ends each lattice that is text"
)

NO_LATTICE_HERE = families.DAMAGED_LATTICE.saying(
    "no lattice begins here: {fault}", "write, or copy, it again; lattice-copy converts it"
)

DAMAGED_LATTICE = families.DAMAGED_LATTICE.saying("the lattice is damaged: {fault}", "write, or copy, the file again")


# HTK's lattices, and those of pocketsphinx.


SUBLATTICE = families.UNSUPPORTED.of(DataError).saying(
    "the lattice has sub-lattices, which are not read", "expand them first: HTK's HLRescore -x"
)


# Confusion networks.


UNPAIRED_CONFUSION = families.MISMATCH.of(DataError).saying(
    "{key!r} has {bins} bins, and {times} times of bins in {file}",
    "the two files must be of the same run of lattice-mbr-decode: write them again",
)

# Of transcripts.

WORD_ENDS_BEFORE_START = families.INVALID_TIMES.saying(
    "{text!r} lasts from {start:g} to {end:g} s", "give an end that is not before the start"
)


NO_WORD_TIMES = families.MISSING_TIMES.saying(
    "{text!r} has no words with times",
    "write them: word_timestamps=True (Whisper, faster-whisper), whisperx.align, SetWords(True) (Vosk), "
    "timestamps=True (NeMo), return_timestamps='word' (transformers)",
)

MALFORMED_JSON = families.MALFORMED_FILE.saying(
    "this is not JSON, column {column}: {error}", "write the file again, whole"
)

UNKNOWN_JSON = families.MALFORMED_FILE.saying(
    "{item} is not what a known recogniser writes",
    "write JSON of Whisper, WhisperX, whisper.cpp, faster-whisper, transformers, NeMo or Vosk, or another format",
)

RECORDINGS_OF_ONE_NAME = families.DUPLICATE_NAME.saying(
    "{first!r} and {second!r} would both be {key!r}", "give their files different names"
)

SCATTERED_CTM = Code(
    "scattered-ctm",
    DataError,
    "words of recording {recording!r}, channel {channel}, come again after those of another",
    "sort the CTM by recording, channel and start: sort -k1,1 -k2,2 -k3,3n",
)


UNREADABLE_ANNOTATIONS = families.MALFORMED_FILE.saying(
    "{program} cannot have written this file: {error}", "open it in {program}, and save it again"
)


INCOMPLETE_ITEM = families.MALFORMED_LINE.saying(
    "the interval or point lacks a {what}", "open the file in Praat, correct it there, and save it again"
)

OTHER_COUNT = families.DAMAGED_LATTICE.saying(
    "the file says that it has {count} {what}, and has {found}, which are read",
    "open it in Praat, and compare it; it may be cut off",
)

NO_SUCH_TIER = families.UNKNOWN_NAME.of(DataError).saying("there is no tier {tier!r}", "name some of {tiers}")

# Decoding.

MALFORMED_ARPA = families.MALFORMED_FILE.saying(
    "the language model {fault}", "write, or copy, it again, whole and in ARPA's format"
)
BIGRAMS_OF_CTC = families.CONFLICTING_OPTIONS.of(ConfigError).saying(
    "bigrams do not reach across the blanks of topology ctc",
    "leave options.decoding.bigrams out, or decode a track without blanks by topology: loop",
)


# Recognition.

MODEL_ALONE = families.MISSING_INPUT.of(ConfigError).saying(
    "an acoustic model without {missing}; those of pocketsphinx's package are of its US English one",
    "give dictionary and lm that belong to the model",
)
NOTHING_DECODED = Code(
    "nothing-decoded",
    UnusableError,
    "pocketsphinx makes no lattice of {start:.2f} to {end:.2f} s",
    "widen its beams (its option parameters: beam, wbeam, fwdflatbeam, ...)",
)
NO_WHISPER_MODEL = families.MISSING_MODEL.saying(
    "there is no folder {model}, and no such model in the cache of the Hugging Face hub", "{fix}"
)
WHISPER_NOT_LOADED = families.UNUSABLE_MODEL.of(UserError).saying(
    "the model cannot be loaded: {error}",
    "give a complete Whisper model of CTranslate2, and a device and dtype that this machine has",
)
REPEATED_TEXT = Code(
    "repeated-text",
    DataError,
    "from {start:.1f} to {end:.1f} s ({seconds:.1f} s of sound) the recogniser repeats itself (compression ratio "
    "{value:.1f}): {text}",
    "listen to the place; the recogniser's most_compressed says what is left out",
)
UNLIKELY_TEXT = Code(
    "unlikely-text",
    DataError,
    "from {start:.1f} to {end:.1f} s ({seconds:.1f} s of sound) the recogniser's text is unlikely (mean log-probability "
    "{value:.2f}): {text}",
    "listen to the place; the recogniser's least_likely says what is left out",
)
TEXT_OF_NO_SPEECH = Code(
    "text-of-no-speech",
    DataError,
    "from {start:.1f} to {end:.1f} s ({seconds:.1f} s of sound) the recogniser's text is unlikely, and nobody seems to speak "
    "(probability {value:.2f}): {text}",
    "listen to the place; the recogniser's least_likely says what is left out",
)
OTHER_LANGUAGE = Code(
    "other-language",
    DataError,
    "it sounds like {heard} ({chance:.2f}), not like {language} ({given:.4f}), as which it is recognised",
    "leave out language, so that each recording has its own; or search it apart",
)
NOTHING_RECOGNISED = Code(
    "nothing-recognised",
    TermError,
    "nothing is recognised in the example, only silence or noise",
    "give a clearer recording, or write the query",
)
NOT_THE_TEXT = Code(
    "not-the-text",
    DataError,
    "the text is not what is said: {share:.0%} of it has a place; given: {text}; heard: {heard}",
    "look whether text and recording belong together; give the language if another is heard, or a better model",
)
WORDS_WITHOUT_PLACE = families.MISSING_TIMES.saying(
    "no place for {count} word{s} of the text, something else is said there, or nothing: {text}",
    "listen to the place, and correct the text",
)
NO_TEXT_OF_RECORDING = families.EMPTY_INPUT.of(DataError).saying(
    "the recording has no text, or an empty one",
    "add NAME.txt or a row of the table; or recognise it: swsdist transcribe FOLDER",
)
TEXT_WITHOUT_RECORDING = Code(
    "text-without-recording",
    OddError,
    "{count} text{s} without a recording",
    "look at the names: a text is named after its recording, and no two recordings have one text",
)
TRANSCRIPTS_TAKEN = Code(
    "transcripts-taken",
    OddError,
    "{count} recording{s} with lattices or transcripts, which are taken; {others} without, recognised",
    "remove a transcript to have its recording recognised",
)
NO_RECOGNISER = Code(
    "no-recogniser",
    UserError,
    "{count} recording{s} without a transcript, and no model to recognise them: {model} is not in the cache of the Hugging "
    "Face hub (HF_HUB_CACHE); nothing is downloaded",
    "get it: hf download {model}; or put transcripts beside the recordings; or take another recogniser: --model FOLDER, "
    "--set options.recogniser.name=pocketsphinx; --set options.source=files: only what has a transcript",
)
OPTION_OF_OTHER_SOURCE = families.UNUSED_OPTION.saying(
    "{key} is of lattices of the source {sources}, and the source is {source}", "leave {key} out, or set options.source"
)


# Pronunciations


# Terms

EMPTY_TERM = Code("empty-term", TermError, "the term {term!r} has no word", "write a word")
NO_PRONUNCIATION = Code(
    "no-pronunciation",
    TermError,
    "no pronunciation of {word} in the dictionary, nor by the rules",
    "add it to the dictionary (terms.dictionary), or rules for its letters (terms.rules)",
)
PHONE_NOT_IN_TRACK = Code(
    "phone-not-in-track",
    TermError,
    "{source} has {phone}, which is no phone of the track; the first of its {count} are {phones}",
    "write pronunciations in the track's phones (options.terms.dictionary), or decode another track (options.decoding.track)",
)
TOO_MANY_ALTERNATIVES = Code(
    "too-many-alternatives",
    TermError,
    "the term has more than {most} alternatives",
    "use fewer patterns, pronunciations, or nearest words (terms.nearest)",
)
UNBALANCED_PATTERN = Code(
    "unbalanced-pattern", TermError, "the pattern {term!r} has an unpaired parenthesis", "close each ( with a )"
)

# Stores of lattices

TEXT_BEYOND_END = Code(
    "text-beyond-end",
    OddError,
    "{count} documents have words more than 0.5 s after their end",
    "are they lattices of these documents? correct names or durations; hits there are outside of what is scored",
)
LATTICE_WITHOUT_DOCUMENT = Code(
    "lattice-without-document",
    UnusableError,
    "the corpus has no document {document}",
    "add the document, or name lattices after documents",
)
DUPLICATE_LATTICE = Code(
    "duplicate-lattice", UnusableError, "a second lattice of the document {document}", "keep one of them"
)
MORE_LEFT_OUT = Code(
    "more-left-out",
    UnusableError,
    "{count} more words, cues or annotations cannot be used",
    "correct those that are named first",
)
DOCUMENT_WITHOUT_LATTICE = Code(
    "document-without-lattice",
    UnusableError,
    "no lattice of the document",
    "add one, or remove the document",
)
