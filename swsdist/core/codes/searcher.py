"""Codes of a search without a run: queries as they are typed, a run's settings, calibrations, curves."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.codes.pipeline import BANDS
from swsdist.core.errors import (
    AudioError,
    ConfigError,
    CutOffError,
    DataError,
    ForeignError,
    OddError,
    StoreError,
    TermError,
    TransientError,
    UserError,
)

QUERY_NAME_NOT_UTF8 = Code(
    "query-name-not-utf8",
    UserError,
    "the name of the query is not UTF-8",
    "rename the file: convmv -f latin1 -t utf8 --notest FILE",
)
QUERY_TEXT_NOT_UTF8 = Code(
    "query-text-not-utf8",
    TermError,
    "the text is not UTF-8, or has a zero byte",
    "type it in a terminal that writes UTF-8",
)
SPEAK_WITHOUT_FRAMES = Code(
    "speak-without-frames",
    UserError,
    "the store has words and no frames, in which a spoken text could be searched",
    "search it without --speak, or index the recordings: swsdist index FOLDER",
)
QUERY_IS_FOLDER = Code(
    "query-is-folder",
    UserError,
    "the query is a folder, not a recording",
    "give its files (ls {folder!q}/*.wav | swsdist search STORE --query -), or run a config with corpus.queries",
)
INCOMPLETE_PLACE = Code(
    "incomplete-place",
    UserError,
    "neither a file nor a place with start and end",
    "write FILE:START-END, in seconds or as a player shows them: talk.flac:12.3-13.1, talk.flac:1:02:03-1:02:04",
)
AMBIGUOUS_COMMA = Code(
    "ambiguous-comma",
    UserError,
    "{text} may be {decimal} s or {thousands} s",
    "write times with a point, and without separators of thousands: {decimal}",
)
QUERY_IS_COMMAND = Code(
    "query-is-command",
    UserError,
    "the query is a command; commands are run only from a Kaldi wav.scp",
    "write its output to a file, and give the file",
)
DUPLICATE_QUERY_EXAMPLE = Code(
    "duplicate-query-example",
    UserError,
    "{count} examples of query {query_id!r} have the number {example}",
    "give them different numbers (column example), or the queries different ids",
)
QUERY_TABLE_COLUMNS = Code(
    "query-table-columns",
    UserError,
    "the table of queries has the columns {columns}",
    "give at least the columns query_id and path",
)
NO_SUCH_DOCUMENT_CHANNEL = Code(
    "no-such-document-channel",
    UserError,
    "document {doc_id!r} has no channel {channel}",
    "name one of its channels: {channels}",
)
NO_SUCH_EXAMPLE = Code(
    "no-such-example",
    AudioError,
    "there is no file {name}, and no document of this name in the store",
    "check the path; a word that is typed: --text {name!q}; `swsdist store info --documents` lists the documents",
)
NOT_A_QUERY = Code("not-a-query", UserError, "a value of type {kind} is not a query", "give text")
PLACE_WITHOUT_SPEECH = Code(
    "place-without-speech",
    AudioError,
    "no speech in this place: only silence, hum, noise, a tone or clicks",
    "mark another place, or search without trimming (--no-trim; in Python trim=False)",
)
PRECOMPUTED_FRAMES = Code(
    "precomputed-frames",
    UserError,
    "features of this store were precomputed and cannot be made from a recording",
    "give frames of the query: a file .npy or HTK, maybe with a place (hello.npy:0.2-0.9)",
)
PRECOMPUTED_TRACKS = Code(
    "precomputed-tracks",
    UserError,
    "features in one of the {tracks} tracks of this store were precomputed and cannot be made from a recording",
    "run a config whose features.options.queries names the frames of the queries (swsdist help use-your-own-features)",
)

FUSION_WITHOUT_STORE = Code(
    "fusion-without-store",
    UserError,
    "a run of the chain {chain} has no store",
    "name the run of one of its systems, such as those below systems/ in it",
)
SEARCH_OF_DECODED = Code(
    "search-of-decoded",
    UserError,
    "the queries of this run are lattices, which only a run makes",
    "add queries to its corpus.queries, and run its config again: documents are not decoded again",
)
SEVERAL_STORES = Code(
    "several-stores", UserError, "the run has {plans} plans, of {count} stores", "name a store: {stores}"
)
QUERY_KIND = Code(
    "query-kind",
    UserError,
    "the method {method} does not compare frames: there is no curve of it",
    "name a store of frames",
)
NOT_A_TEXT = Code("not-a-text", UserError, "a written query is a text, not {kind}", "give texts")
QUERY_WITHOUT_TEXT = Code(
    "query-without-text",
    TermError,
    "the query has no text, and the method takes written queries",
    "give its text (columns text or term), or search with a method for spoken queries",
)
CLOSED_SEARCHER = Code(
    "closed-searcher",
    UserError,
    "this searcher is closed",
    "make another, or search before `close` and within the `with`",
)
STEP_NEEDS_RUN = Code(
    "step-needs-run",
    ConfigError,
    "step {step} needs {input}, which only a run has",
    "leave it out, or run a config: `swsdist run`",
)
LOST_ACTORS = Code(
    "lost-actors", UserError, "actors of the searcher are lost ({error})", "check the nodes, and make another searcher"
)
NO_LIKELIHOOD = Code(
    "no-likelihood",
    ConfigError,
    "the run does not say how likely hits are: it has too few with references, or other scores than {scores}",
    "name a run of 5 queries with references and 20 correct hits at least, with the same first steps of calibration",
)

CURVE_METHOD = Code(
    "curve-method", ConfigError, "the method {method} has no curves and paths; dtw has", "leave search.method out"
)
NOTHING_COMPARED = Code(
    "nothing-compared",
    UserError,
    "no frame of the document {doc_id} is searched",
    "leave search.skip_silence and search.drop out",
)
NAME_OF_RECORDING = Code(
    "name-of-recording",
    StoreError,
    "{name!r} is a recording with {count} document{s}, not a document",
    "name a document, and count times from its start: {documents}",
)
NO_DOCUMENT_IN_STORE = Code(
    "no-document-in-store",
    StoreError,
    "no document {doc_id!r}, channel {channel}, in the store",
    "`swsdist store info --documents` lists the documents",
)

INCOMPLETE_STORE = Code(
    "incomplete-store",
    OddError,
    "{progress}, and only those are searched",
    "finish the store with `swsdist index CONFIG`",
)
SETTINGS_DIFFER = Code(
    "settings-differ",
    OddError,
    "the {count} plans of the run have different search settings, so the defaults are used",
    "--set search.KEY=VALUE changes them",
)
STEPS_DIFFER = Code(
    "steps-differ",
    OddError,
    "the {count} plans of the run have different steps of calibration, so the default is used",
    "in Python, `Searcher(RUN, calibrate=...)` takes others",
)
STEPS_LEFT_OUT = Code(
    "steps-left-out",
    OddError,
    "the run's steps {steps} need its references, its other queries or its number of trials, so scores are {scores}",
    "`swsdist run` gives scores after all steps",
)
OTHER_CALIBRATION = Code("other-calibration", OddError, "{path} has other scores: {differences}")
UNSEARCHED_QUERY = Code(
    "unsearched-query",
    OddError,
    "the query {query_id} has {frames} frames, fewer than search.least_query_frames, {least}: it is not searched",
    "give a longer query, or lower search.least_query_frames",
)
SHORT_QUERY = Code(
    "short-query", OddError, "query {query_id} lasts only {seconds} s, and will match much else", "give a phrase"
)
OTHER_BAND = Code(
    "other-band",
    OddError,
    "{count} of {of} documents have another band than {query}",
    BANDS,
)
CHOSEN_CHANNEL = Code(
    "chosen-channel",
    OddError,
    "only channel {channel} of the {count} channels of {query} is searched{why}",
    "others: {others}",
)


_PAIR = "give a pair of float samples of shape (n,), full scale 1, and their rate in Hz: (samples, 16000)"
_COPY = "copy the file again from its source"
_CONVERT = "convert it: ffmpeg -i INPUT OUTPUT.flac"
_ELSEWHERE = f"copy the file again; if it plays elsewhere, {_CONVERT}"
_INSTALL = f"install ffmpeg as a package of the system, or pip install imageio-ffmpeg, or {_CONVERT}"

# Samples in memory

NOT_A_RECORDING = Code("not-a-recording", UserError, "{type} is not a recording", _PAIR)
RAGGED_SAMPLES = Code("ragged-samples", UserError, "the samples are not an array ({error})", _PAIR)
BAD_SAMPLE_RATE = Code("bad-sample-rate", UserError, "{rate!r} is not a sampling rate", _PAIR)
SAMPLES_NOT_FLOAT = Code(
    "samples-not-float", UserError, "the samples have the type {dtype}", f"{_PAIR}; divide 16-bit integers by 32768"
)
SAMPLES_NOT_MONO = Code(
    "samples-not-mono", UserError, "the samples have the shape {shape}", f"{_PAIR}; select one of several channels"
)
NON_FINITE_SAMPLES = Code("non-finite-samples", UserError, "sample {index} is {value}", _PAIR)
SAMPLES_TOO_LARGE = Code("samples-too-large", UserError, "a sample is {peak:g}, and full scale is 1", _PAIR)

# Speech synthesis

NO_SUCH_SYNTHESISER = Code(
    "no-such-synthesiser",
    UserError,
    "there is no such synthesiser; there are {choices}",
    "write SYNTHESISER:VOICE, as espeak-ng:en-us{near}",
)
NO_SYNTHESISER = Code(
    "no-synthesiser",
    UserError,
    "the program {program} is not installed",
    "install it as a package of the system: apt install {program}",
)
NO_SUCH_VOICE = Code(
    "no-such-voice", UserError, "{program} has no voice {name!r}", "choose one of `{program} {listing}`{near}"
)
SYNTHESISER_FAILED = Code(
    "synthesiser-failed",
    UserError,
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
COMMAND_NOT_FILE = Code(
    "command-not-file",
    DataError,
    "{name!r} is a command, and {source} names files",
    "name a file; only a Kaldi wav.scp holds commands, which run with --allow-commands",
)
_BY_HAND = "run the command by hand; correct it, or remove its line from the list"
COMMAND_FAILED = Code(
    "command-failed", AudioError, "the command ended with {ending}; its standard error: {stderr}", _BY_HAND
)
COMMAND_WITHOUT_OUTPUT = Code(
    "command-without-output", AudioError, "the command wrote no output; its standard error: {stderr}", _BY_HAND
)
COMMAND_TIMEOUT = Code("command-timeout", AudioError, "the command took longer than {seconds:.0f} s", _BY_HAND)
_MEMORY = "check the memory of the machine (dmesg); run again: results so far are kept"
COMMAND_KILLED = Code(
    "command-killed",
    TransientError,
    "the command was ended from outside, with {ending}; its standard error: {stderr}",
    _MEMORY,
)

# Files

MISSING_RECORDING = Code(
    "missing-recording", AudioError, "there is no such file", "check the path, and what it is relative to"
)
UNREADABLE_RECORDING = Code("unreadable-recording", AudioError, "the file cannot be read: {detail}", "{fix}")
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
IMPOSSIBLE_RATE = Code(
    "impossible-rate", AudioError, "the header states {rate} Hz; {low} to {high} Hz are possible", _ELSEWHERE
)
IMPOSSIBLE_CHANNELS = Code(
    "impossible-channels",
    AudioError,
    "the header states {channels} channels; at most {highest} are possible",
    _ELSEWHERE,
)
IMPOSSIBLE_LENGTH = Code(
    "impossible-length", AudioError, "the header states {hours:.1f} hours, too many for {size} bytes", _ELSEWHERE
)

# Truncation and damage

TRUNCATED = Code("truncated", CutOffError, "the header states {stated}, the recording has {actual}", _COPY)
TRUNCATED_HEADER = Code("truncated-header", AudioError, "the header is cut off ({detail})", _COPY)
TRUNCATED_OGG = Code("truncated-ogg", CutOffError, "the last page is not the end of the Ogg stream", _COPY)
TRUNCATED_STREAM = Code(
    "truncated-stream", CutOffError, "ffmpeg reports that the file ends early, or is damaged ({detail})", _COPY
)
DAMAGED_STREAM = Code(
    "damaged-stream",
    AudioError,
    "the stream is damaged or cut off ({detail})",
    f"{_COPY}; or skip the damage: ffmpeg -i INPUT OUTPUT.flac",
)
UNREAD_REST = Code(
    "unread-rest",
    CutOffError,
    "the file goes on after what can be read ({detail})",
    "if that is another recording, make it a file of its own, since converters lose it: tail -c {rest} INPUT > OUTPUT",
)
UNREADABLE_PLACE = Code("unreadable-place", AudioError, "nothing can be read at {time:.3f} s ({detail})", _COPY)

# ffmpeg

FFMPEG_NOT_STARTED = Code(
    "ffmpeg-not-started", AudioError, "ffmpeg does not start ({error})", "check {program}, or " + _CONVERT
)
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
FFMPEG_OUTPUT = Code(
    "ffmpeg-output", AudioError, "ffmpeg wrote no AU stream of 32-bit floats", "install another version of ffmpeg"
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
