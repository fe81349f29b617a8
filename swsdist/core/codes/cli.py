"""Codes of the command line."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, ImplausibleError, IncompleteError, OddError, StoreError, UserError

NO_SUCH_CODE = Code("no-such-code", UserError, "there is no code {code}{meant}", "`swsdist explain` lists all codes")
NO_SUCH_PAGE = Code("no-such-page", UserError, "no page is about this", "{near}swsdist help lists all")
SECRET_ON_COMMAND_LINE = Code(
    "secret-on-command-line",
    UserError,
    "a secret on the command line, where every user of the machine can read it (ps)",
    "replace the secret; give the new one in the environment (AWS_SECRET_ACCESS_KEY), or in the config as "
    "{name}: ${{VARIABLE}}",
)

MISSING_LIBRARY = Code(
    "missing-library", ConfigError, "the library {library} is not installed", "pip install 'swsdist[{extra}]'"
)

# Outputs

EVENTS_NOT_WRITABLE = Code("events-not-writable", UserError, "cannot write the events: {reason}", "name another file")
OUTPUT_IS_INPUT = Code(
    "output-is-input", UserError, "this would overwrite {what}, which the command reads", "name another file"
)
SAME_OUTPUT = Code("same-output", UserError, "{other} names the same file", "name two files")
OUTPUT_NOT_LOCAL = Code(
    "output-not-local",
    UserError,
    "a command writes files, other than a run or a store, to a local disk only",
    "name a local file or folder, and copy it: aws s3 cp",
)
UNKNOWN_ENDING = Code(
    "unknown-ending", UserError, "the file must end in {endings}, not in {ending}", "name a file that ends in {endings}"
)
OUTPUT_IS_FOLDER = Code("output-is-folder", UserError, "this is a folder, not a file", "name a file in it")
OUTPUT_IS_FILE = Code("output-is-file", UserError, "this is a file, not a folder", "name another folder")
NO_OUTPUT_FOLDER = Code("no-output-folder", UserError, "the folder does not exist", "make it, or name another")
OUTPUT_NOT_WRITABLE = Code(
    "output-not-writable", UserError, "no permission to write here", "check the permissions, or name another place"
)
OUTPUT_NOT_EMPTY = Code("output-not-empty", UserError, "the folder is not empty", "name a new folder")
OUTPUT_EXISTS = Code("output-exists", UserError, "the file exists", "name another, or give --force")
NOTHING_TO_SAVE = Code(
    "nothing-to-save", UserError, "nothing is fitted, so there is nothing to save", "remove --save, or {remedy}"
)

UNKNOWN_TRANSCRIPT_FORMAT = Code(
    "unknown-transcript-format", UserError, "there is no format {format!r} of transcripts", "choose one of {formats}"
)

# Runs

ANOTHER_INDEX = Code(
    "another-index",
    ImplausibleError,
    "this is the index of another folder, {documents}",
    "name another run folder (--run FOLDER; of serve, --project FOLDER); if the recordings have moved: --run {run!q} --force, "
    "before serve once of `swsdist index`",
)
CONFIG_IN_RUN_FOLDER = Code(
    "config-in-run-folder",
    UserError,
    "the run would overwrite this config with its own config.yaml, in {run}",
    "name another run folder (the key run, or --run FOLDER), or rename the config",
)
OTHER_CHAIN = Code(
    "other-chain",
    UserError,
    "this is a config of the chain {chain}, not of {wanted}",
    "set chain: {wanted}, or run it as it is: swsdist run {config!q}",
)
UNSCORED_CHAIN = Code(
    "unscored-chain",
    UserError,
    "the chain {chain} has no curves, histograms or tables of scores",
    "leave these options out",
)
REPORT_BEFORE_END = Code(
    "report-before-end", IncompleteError, "the run has only reached {stage}", "finish it: swsdist run {run!q}"
)
NO_PLOT = Code("no-plot", UserError, "no {plot}: {reason}", "give references (corpus.references)")
NO_TIMELINE = Code("no-timeline", UserError, "no timeline: the run has done no task", "run it first")
TASKS_FAILED = Code(
    "tasks-failed",
    IncompleteError,
    "{count} tasks are not done; the first: {first}",
    "remove the cause and run again: finished tasks are kept{waits}{tracebacks}",
)
STRICT_WARNINGS = Code(
    "strict-warnings",
    IncompleteError,
    "{count} warning{s} under --strict; the first: {first}",
    "resolve the warnings{show}, or run without --strict",
)
STRICT_REJECTIONS = Code(
    "strict-rejections",
    IncompleteError,
    "{count} rejected input{s} under --strict",
    "see `swsdist store rejected {folder!q}`; correct or remove them, or run without --strict",
)
POINTS_FAILED = Code(
    "points-failed",
    IncompleteError,
    "{count} of {of} points failed; the first, point {number}: {message}",
    "remove the cause and run again: finished tasks are kept",
)
MODEL_AND_CONFIG = Code(
    "model-and-config",
    UserError,
    "--model is for a folder of recordings, and this is {what}",
    "{fix}",
)
NOTHING_TO_CHECK = Code("nothing-to-check", UserError, "the chain {chain} has no check", "run the config")

# Search

OPTION_NEEDS_QUERY = Code(
    "option-needs-query", UserError, "{option} needs --query", "give --query, or `swsdist run` the config"
)
NO_QUERY = Code("no-query", UserError, "no query", "give a config, or a store and --query FILE or --text TEXT")
QUERY_AND_TEXT = Code(
    "query-and-text", UserError, "--query and --text are both given", "search them one after the other"
)
SPEAK_NEEDS_TEXT = Code("speak-needs-text", UserError, "--speak speaks texts, and there is --query", "give --text TEXT")
RECORDINGS_NOT_RUN = Code(
    "recordings-not-run",
    UserError,
    "this is no run and no store",
    "name what was made of it: {runs}",
)
OTHER_KIND_OF_QUERY = Code(
    "other-kind-of-query",
    UserError,
    "{option} searches {wanted}, and this store holds {held}",
    "{fix}",
)
DRY_RUN_WITH_QUERY = Code("dry-run-with-query", UserError, "--dry-run needs a config, not --query", "remove --dry-run")
TWO_FORMATS = Code("two-formats", UserError, "--csv and --json are both given", "give --csv or --json")
WORD_WITH_TABLE = Code(
    "word-with-table",
    UserError,
    "--word is for recordings; a table has a column query_id",
    "remove --word, or name recordings of one word",
)
QUERIES_NOT_TEXT = Code(
    "queries-not-text",
    UserError,
    "standard input is not a list of queries, one path per line",
    "name the recording: --query FILE",
)
QUERIES_SKIPPED = Code(
    "queries-skipped",
    IncompleteError,
    "{count} of {of} {what} skipped: {errors}",
    "correct or remove them; the others were searched",
)

QUERY_SKIPPED = Code("query-skipped", OddError, "skipped: {where_from}: {reason}")
NO_HITS = Code("no-hits", OddError, "no hits of {queries}{why}")
HIT_IS_QUERY = Code(
    "hit-is-query", OddError, "hit{s} {numbers} of {query} {are} the query itself, in a searched recording"
)
NO_CLIP = Code("no-clip", OddError, "no clip of hit {number}, {document}: {reason}")
HITS_WITHOUT_RECORDING = Code(
    "hits-without-recording", OddError, "{count} hit{s} without a recording, and without a clip"
)

# Stores

BEING_INDEXED = Code(
    "being-indexed",
    StoreError,
    "this is being indexed, and nothing can be searched yet: {progress}",
    "wait for it: swsdist status {run!q} --follow",
)
RUN_NOT_STORE = Code("run-not-store", StoreError, "this is a run folder, not a feature store", "{remedy}")
STORE_AMONG_FRAMES = Code(
    "store-among-frames",
    UserError,
    "the store would lie in the folder of its source frames",
    "name another folder for the store",
)

# Other commands

REMOTE_RUN_FOLDER = Code(
    "remote-run-folder",
    UserError,
    "the run folder is on a server",
    "name a local folder for the results: --folder FOLDER",
)
OPTION_IN_FILE_TOO = Code(
    "option-in-file-too", UserError, "{option} is given along with a cluster file", "give the file or the options"
)
KALDI_FILES_UNUSED = Code(
    "kaldi-files-unused",
    UserError,
    "the file is not in Kaldi's format, so --kaldi-... options do not apply",
    "remove the --kaldi-... options; if it is Kaldi's, give --from kaldi",
)
ONE_SYSTEM = Code(
    "one-system",
    UserError,
    "a comparison needs two systems; of one there is only --paper",
    "name another SYSTEM, or remove these options",
)
NO_SYSTEM_CURVE = Code(
    "no-system-curve",
    UserError,
    "no system has a DET curve",
    "name run folders, or lists with --ecf, --rttm and --terms; without --conditions",
)
DUPLICATE_CORPUS = Code("duplicate-corpus", UserError, "two corpora are called {name!r}", "rename one of the files")


NOT_A_PATH = Code("not-a-path", UserError, "{value} is not a path", "{expected}")
NOT_A_LIST_OF_SETTINGS = Code(
    "not-a-list-of-settings", UserError, "{value} is not a list of texts KEY=VALUE", "give a list: sets=[{example!r}]"
)
_IDS = 'give their ids, each once: queries=["q001", "q002"]'
NOT_A_LIST_OF_QUERIES = Code("not-a-list-of-queries", UserError, "{value} is not a list of queries", _IDS)
DUPLICATE_QUERY = Code("duplicate-query", UserError, "duplicate query {query_id!r}", _IDS)
NO_CURVE = Code(
    "no-curve", UserError, "no query has a reference, so there is no curve", "compare query ids of both tables"
)
UNKNOWN_QUERIES = Code(
    "unknown-queries",
    UserError,
    "the queries are not known: there are no references",
    "give references, or queries= with the ids of all queries",
)


INVALID_COUNTS = Code("invalid-counts", UserError, "{option} is {values}", "give numbers from 1 on, each once: 1,2,4")
SERIAL_WORKERS = Code(
    "serial-workers", UserError, "a serial run has one worker, not {workers}", "set executor.kind=ray"
)
UNNAMED_COPIES = Code(
    "unnamed-copies",
    UserError,
    "precomputed frames are named by document, and copies of documents have other names",
    "leave --times out, or use an extractor",
)
COPIED_SEGMENTS = Code(
    "copied-segments",
    UserError,
    "documents that are segments of recordings cannot be multiplied",
    "leave --times out, or give a table of whole recordings",
)
COPIED_LATTICES = Code(
    "copied-lattices",
    UserError,
    "lattices and transcripts name their documents, and copies of documents have other names",
    "leave the data as they are: --times 1",
)
FAILED_RUN = Code(
    "failed-run",
    IncompleteError,
    "the run ended with exit code {exit_code}: {output}",
    "correct the cause and give the same command again: points that were measured are kept",
)
NO_RESOURCES = Code(
    "no-resources",
    UserError,
    "the chain {chain} reports no resources",
    "benchmark a config of the chain search or text",
)
OTHER_BENCHMARK = Code(
    "other-benchmark",
    UserError,
    "this folder holds a benchmark of another config, or of another version of swsdist",
    "give another folder (--folder FOLDER), or remove it",
)
NOT_A_BENCHMARK = Code(
    "not-a-benchmark",
    UserError,
    "not the results of a benchmark ({schema}): {error}",
    "name a bench.json that swsdist bench wrote",
)
