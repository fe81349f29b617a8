"""Families: codes of mistakes that occur in many places, where each call brings its own message.

    raise families.UNKNOWN_NAME("no track {track!r}", "there are {tracks}", where=path, track=name, tracks=known)
    raise families.EMPTY_INPUT.of(TableError)("the table has no {what}", "add some", where=path, what="queries")

The text here is what they have in common: `swsdist explain` shows it.
"""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import (
    AudioError,
    ConfigError,
    CutOffError,
    DataError,
    FramesError,
    IncompleteError,
    OddError,
    StorageError,
    StoreError,
    TableError,
    UserError,
)

ALL_FOUND = Code(
    "all-found",
    OddError,
    "all true occurrences are found, and there is no false alarm",
    "see whether references and detections are really independent",
)
ALL_MISSED = Code(
    "all-missed",
    OddError,
    "none of the true occurrences is found",
    "see whether names and times of references and detections agree",
)
AMBIGUOUS = Code("ambiguous", UserError, "two things or more may be meant", "name one of those that the message lists")
BAD_CELL = Code(
    "bad-cell",
    TableError,
    "a cell of a table has a value that its column does not take",
    "correct the cell; the message names the column, the row and what it takes",
)
CHANGED_INPUT = Code(
    "changed-input",
    UserError,
    "a file, a model or a config is another than the one that the work was planned with",
    "put it back, or plan the work anew",
)
CLOSED = Code("closed", UserError, "the object was closed, and is used again", "make another one")
COMMAND_FAILED = Code(
    "command-failed",
    AudioError,
    "the command that gives a recording fails, takes too long or writes nothing",
    "run the command by hand",
)
COMMAND_REFUSED = Code(
    "command-refused",
    DataError,
    "a name is a command, and commands are run only where the user allows them",
    "write the output to a file, and name it",
)
CONFLICTING_OPTIONS = Code(
    "conflicting-options",
    UserError,
    "two options, keys or inputs exclude each other, or one needs another",
    "leave one of them out, or add what it needs",
)
CONFLICTING_ROWS = Code(
    "conflicting-rows",
    TableError,
    "two rows, or two cells of a row, contradict each other",
    "correct one, or leave it out",
)
DAMAGED_FILE = Code(
    "damaged-file",
    StoreError,
    "a file that swsdist wrote, or an archive, is damaged or cut off",
    "copy it again, or make it again",
)
DAMAGED_LATTICE = Code(
    "damaged-lattice",
    DataError,
    "the lattice contradicts itself, or its format",
    "write the lattice again with its program",
)
DUPLICATE_NAME = Code(
    "duplicate-name",
    DataError,
    "a name, row or entry occurs twice, where each may occur once",
    "rename one of the two, or leave it out",
)
DUPLICATE_TERM_TEXTS = Code(
    "duplicate-term-texts", OddError, "terms have the text of another term", "leave all but one of them out"
)
EMPTY_INPUT = Code(
    "empty-input",
    UserError,
    "an input has nothing that the command could work on",
    "give an input that has; the message says what it must hold",
)
EXTENSION = Code(
    "extension",
    ConfigError,
    "an extension (an entry of a registry) cannot be loaded, or breaks its interface",
    "mend the extension; swsdist.testing.conformance checks it",
)
FFMPEG_FAILED = Code(
    "ffmpeg-failed",
    AudioError,
    "ffmpeg does not start, or does not write what it is asked for",
    "run ffmpeg by hand, or install another version",
)
GLOSSARY_NOT_SAVED = Code(
    "glossary-not-saved",
    StorageError,
    "the glossary could not be written, and the last change was not saved",
    "see to the disk, and make the change again",
)
IMPOSSIBLE_HEADER = Code(
    "impossible-header",
    AudioError,
    "the header of a recording contains impossible values",
    "make the file again from its source",
)
INVALID_S3_NAME = Code("invalid-s3-name", StorageError, "S3 does not take this name", "choose another name")
INVALID_TIMES = Code(
    "invalid-times",
    DataError,
    "a time, or the stretch between two, is impossible",
    "give start and end in seconds, in order and within the recording",
)
INVALID_VALUE = Code(
    "invalid-value",
    ConfigError,
    "a value is of the wrong type, or out of its range",
    "give a value that the message allows",
)
INVALID_YAML = Code(
    "invalid-yaml",
    ConfigError,
    "the file is not the YAML of a config",
    "mend the line; docs/reference/config.md has the keys",
)
LEFT_OUT = Code("left-out", OddError, "files, rows or judgements are left out", "see to them, if they are needed")
MALFORMED_FILE = Code(
    "malformed-file",
    DataError,
    "the file is not of the format that is expected",
    "give a file of that format; docs/reference/formats.md lists all",
)
MALFORMED_LINE = Code(
    "malformed-line",
    DataError,
    "a line of a text file is not of its format",
    "correct the line; docs/reference/formats.md has its format",
)
MALFORMED_XML = Code(
    "malformed-xml",
    DataError,
    "the XML is malformed, or not of the format that is expected",
    "write the file again with its program",
)
MISMATCH = Code(
    "mismatch", UserError, "two inputs do not belong together", "give inputs of the same run, corpus or model"
)
MISSING_COLUMN = Code(
    "missing-column",
    TableError,
    "a table lacks a column that is needed",
    "add the column, or rename the one that holds it",
)
MISSING_FILE = Code("missing-file", UserError, "there is no such file or folder", "name one that exists")
MISSING_INPUT = Code(
    "missing-input",
    UserError,
    "something that the work needs was not given",
    "give it; the message names the option, key or file",
)
MISSING_MODEL = Code(
    "missing-model",
    ConfigError,
    "there is no such model; nothing is downloaded",
    "name the folder of a model, or put it into the cache of the Hugging Face hub",
)
MISSING_RECORDING = Code(
    "missing-recording", AudioError, "there is no such recording", "correct the path in the table of documents"
)
MISSING_TIMES = Code(
    "missing-times",
    DataError,
    "a word or an annotation has no times",
    "write the file again with times, or leave it out",
)
NEEDS_SEARCH = Code(
    "needs-search",
    UserError,
    "a step of calibration needs what only a search has, and gets a list",
    "name the step in `calibrate.steps` of the run, or leave it out",
)
NO_CLUSTER = Code(
    "no-cluster",
    UserError,
    "no scheduler of Ray or Dask answers, or it is gone",
    "start the cluster, or use executor.kind: serial",
)
NO_FRAMES = Code(
    "no-frames",
    FramesError,
    "precomputed frames are empty, or there are none of a document",
    "make them again, or leave the document out",
)
NO_GPU = Code("no-gpu", UserError, "there is no GPU that can be used", "choose a machine with a GPU, or device: cpu")
NO_HITS = Code("no-hits", OddError, "nothing is found")
NO_SOUND = Code(
    "no-sound", OddError, "hits or documents have no recording that could be played", "give the recordings' places"
)
NO_SPEECH = Code("no-speech", AudioError, "a query contains no speech", "choose a place where somebody speaks")
NO_WORKER = Code(
    "no-worker",
    UserError,
    "no worker can be started or kept",
    "give workers fewer CPUs or less memory, or the cluster more",
)
NOT_COMPARABLE = Code(
    "not-comparable",
    UserError,
    "the systems were run or scored in different ways, so a comparison says nothing",
    "score all of them in the same way",
)
NOT_FINISHED = Code(
    "not-finished",
    StoreError,
    "the run or index is not finished",
    "go on with it: `swsdist run` or `swsdist index` with the same folder",
)
NOT_INSTALLED = Code(
    "not-installed", ConfigError, "a library or program is not installed", "install it; the message says how"
)
NOT_RUNNING = Code("not-running", UserError, "no process works in this folder", "nothing needs to be stopped")
NOTHING_TO_FIT = Code(
    "nothing-to-fit",
    UserError,
    "too little data is left to fit a model or step on",
    "give more data, or leave the model or step out",
)
OTHER_BAND = Code(
    "other-band",
    OddError,
    "recordings or examples have another band than the others",
    "compare them with the common band: features.options.fmax: common",
)
OUTPUT_REFUSED = Code(
    "output-refused",
    UserError,
    "the output cannot be written there, or would overwrite something",
    "name another place",
)
OUTSIDE_ECF = Code(
    "outside-ecf", OddError, "detections or references lie outside of the ECF", "use the ECF of this corpus"
)
PROGRAM_FAILED = Code(
    "program-failed", UserError, "another program or library fails", "see to it; the message has what it said"
)
REQUEST_REFUSED = Code("request-refused", UserError, "the server refuses the request", "ask whoever started the server")
SETTINGS_DIFFER = Code(
    "settings-differ", OddError, "the plans of a run have different settings, so defaults are used", "give the settings"
)
SHORT_QUERY = Code(
    "short-query", OddError, "a query is short, and many other sounds are similar", "choose a longer example"
)
STRICT = Code(
    "strict",
    IncompleteError,
    "there are notices or rejected inputs, which --strict makes an error",
    "see to the inputs, or leave --strict out",
)
TASKS_FAILED = Code(
    "tasks-failed",
    IncompleteError,
    "the work ended, and some tasks are not done",
    "run the command again: only what is not done is repeated",
)
TOO_FEW = Code("too-few", UserError, "there are too few of something for a result", "give more")
TOO_LARGE = Code(
    "too-large",
    UserError,
    "something exceeds a limit of an algorithm, a format or the memory",
    "make it smaller; the message says the limit",
)
TOO_LONG = Code("too-long", AudioError, "a query or recording is too long", "cut it")
TOO_SHORT = Code(
    "too-short", AudioError, "a recording or place is shorter than one frame", "choose a longer one, or leave it out"
)
TRUNCATED = Code("truncated", CutOffError, "the recording ends early: the file is cut off", "copy the file again")
UNDECIDED = Code(
    "undecided",
    UserError,
    "detections have no decisions, which a measure needs",
    "decide: end the calibration with a step that has a threshold",
)
UNDEFINED = Code(
    "undefined", UserError, "a measure or a plot is not defined for these data", "leave it out, or score other data"
)
UNFITTED = Code(
    "unfitted",
    ConfigError,
    "a model or a step of calibration must be fitted first",
    "fit it, or name a file of fitted ones",
)
UNKNOWN_KEY = Code(
    "unknown-key",
    ConfigError,
    "there is no key or option of this name",
    "take one that the message offers; docs/reference/config.md lists all",
)
UNKNOWN_NAME = Code(
    "unknown-name", UserError, "there is nothing of this name", "take one of the names that the message lists"
)
UNLISTED = Code(
    "unlisted",
    OddError,
    "references or detections are of queries that the list of terms lacks",
    "use the list of terms of this task",
)
UNREADABLE_FILE = Code(
    "unreadable-file", ConfigError, "the file cannot be read", "see to its permissions, or name another one"
)
UNREADABLE_RECORDING = Code(
    "unreadable-recording", AudioError, "the recording cannot be read", "see to its permissions and its disk"
)
UNSET_VARIABLE = Code(
    "unset-variable", ConfigError, "an environment variable is not set", "set it, or write `$$` for a dollar sign"
)
UNSUPPORTED = Code(
    "unsupported",
    UserError,
    "these two things do not work together, or the format is not supported",
    "do it the way that the message says",
)
UNUSABLE_INPUT = Code(
    "unusable-input",
    OddError,
    "recordings or examples are unusable, and a run would reject them",
    "see to them before the run",
)
UNUSABLE_MODEL = Code(
    "unusable-model",
    ConfigError,
    "the files of a model are damaged, or are not of a model that swsdist uses",
    "export the model again, or take another",
)
UNUSED_OPTION = Code("unused-option", ConfigError, "an option has no effect with the others", "leave it out")
UNWRITABLE_NAME = Code(
    "unwritable-name", UserError, "a format cannot hold this name", "rename it, or write another format"
)
WRONG_DIMENSION = Code(
    "wrong-dimension",
    FramesError,
    "precomputed frames have another shape than frames x dimension",
    "write them as one row a frame",
)
WRONG_KIND = Code(
    "wrong-kind",
    UserError,
    "the file or folder exists, and is of another kind than the command takes",
    "name one of the right kind",
)
