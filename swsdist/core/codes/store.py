"""Codes of feature stores: their manifest, files, frames and documents."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import AudioError, FramesError, IncompleteError, StoreError, UserError

# Stores

UNSET_CACHE_VARIABLE = Code(
    "unset-cache-variable",
    UserError,
    "{root} names a variable that is not set on this node: {variable}",
    "set it where Ray is started on the node, or name a folder",
)

MISSING_STORE_FILE = Code(
    "missing-store-file", StoreError, "the file is missing", "run again: missing files are made again"
)

QUERY_STORE = Code(
    "query-store",
    UserError,
    "this is a run's store of queries, which only the run writes to",
    "name the store of the documents; the store of queries is removed with its run",
)

INTERRUPTED_INDEX = Code(
    "interrupted-index", UserError, "the index was interrupted: {progress}", "go on with `swsdist index CONFIG` first"
)

FORGETS_ALL = Code(
    "forgets-all",
    UserError,
    "these are all documents of the store",
    "remove the folder: a store without documents cannot be searched",
)

UNKNOWN_DOCUMENT = Code(
    "unknown-document",
    UserError,
    "nothing here is called {document!r}{close}",
    "name documents or recordings as `swsdist store info STORE --documents` lists them; what was forgotten is unknown, too",
)

STORE_IS_READ = Code(
    "store-is-read",
    UserError,
    "process {pid} on {host} reads the store",
    "wait until it has ended, or end it: `swsdist serve`, a run or a search",
)

NO_SUCH_STORE_TRACK = Code(
    "no-such-store-track", StoreError, "the store has no track {track!r}", "its tracks are: {tracks}"
)

UNKNOWN_STORE_SCHEMA = Code(
    "unknown-store-schema",
    StoreError,
    "the store has schema {schema}, and this version reads {known}",
    "use the version of swsdist that wrote it; or remove {folder} and run `swsdist index` again",
)

DAMAGED_MANIFEST = Code(
    "damaged-manifest", StoreError, "the manifest is damaged ({error})", "remove it and index again: no shard is lost"
)

STORE_STATE_GONE = Code(
    "store-state-gone",
    StoreError,
    "this state of the store is gone: the store was compacted, or has changed since",
    "run the config again, on the store as it is now",
)

UNFINISHED_STORE = Code(
    "unfinished-store",
    StoreError,
    "indexing was killed before the store could be searched: {done} of its tasks are done",
    "go on with `swsdist index CONFIG`: what was computed is kept",
)

NO_STORE = Code(
    "no-store",
    StoreError,
    "there is no feature store here",
    "if these are recordings: swsdist index {folder!q}; a store is a folder with a manifest.json",
)

PLACE_OUTSIDE_FRAMES = Code(
    "place-outside-frames",
    FramesError,
    "frames of {key!r}: the place {place} has none in those of the document ({frames} each {shift:g} s{offset})",
    "correct start and end, or give the example its own frames",
)

CONSTANT = Code(
    "constant",
    FramesError,
    "frames of {key!r}: all {frames} are equal, so there is nothing to search for",
    "check the program that wrote them",
)

NO_FRAMES = Code(
    "no-frames",
    FramesError,
    "there are no frames of {key!r}",
    "add them; the key of a document is DOC_ID (of one of several channels DOC_ID-CHANNEL), of a query "
    "QUERY_ID-EXAMPLE",
)

TRACK_WITHOUT_SHARD = Code(
    "track-without-shard", StoreError, "track {track} has no frames of this shard", "index again"
)

MISALIGNED_TRACKS = Code(
    "misaligned-tracks",
    StoreError,
    "the tracks {tracks} do not hold the same documents in the same rows",
    "index again",
)

NO_SUCH_DOCUMENT = Code(
    "no-such-document",
    StoreError,
    "no document {document!r}, channel {channel}, in the store",
    "`swsdist store info --documents` lists them",
)

COMMAND_MISSING_ON_WORKER = Code(
    "command-missing-on-worker",
    UserError,
    "this worker ({host}) cannot run a command whose program was there when the work was planned: {error}",
    "install it on all nodes, where their PATH has it",
)

FFMPEG_MISSING_ON_WORKER = Code(
    "ffmpeg-missing-on-worker",
    UserError,
    "this worker ({host}) has no ffmpeg, although there was one when the work was planned",
    "install it on all nodes (pip install imageio-ffmpeg, or a package of the system)",
)

MISSING_FRAMES_FILE = Code(
    "missing-frames-file",
    FramesError,
    "frames of {key!r}: the file does not exist",
    "check its path: in an scp, relative paths are relative to the scp",
)
UNREADABLE_FRAMES_FILE = Code(
    "unreadable-frames-file", FramesError, "frames of {key!r}: the file may not be read", "check its permissions"
)
MISSING = Code("missing", AudioError, "there is no such file", "check the path, and what it is relative to")
UNREADABLE = Code("unreadable", AudioError, "the file is {identity}", "{advice}")

STORED_FRAMES_DAMAGED = Code(
    "stored-frames-damaged",
    IncompleteError,
    "the frames that the store has of this recording cannot be copied: {error}",
    "{advice}",
)

# Names in stores and runs

OUTSIDE_NAME = Code(
    "outside-name",
    StoreError,
    "{key} leads out of the folder, or is not the name of a file: {name!r}",
    "no version of swsdist writes this: find out who changed it, and do not use the files there",
)
FOREIGN_LINK = Code(
    "foreign-link",
    StoreError,
    "this is a link of another user that leads out of the folder",
    "copy its target into the folder, or make the link yourself if you trust it",
)

# Stores of other things than frames

NO_WORDS_IN_STORE = Code(
    "no-words-in-store",
    StoreError,
    "this store holds no words",
    "index transcripts, or recordings for a recogniser: swsdist index FOLDER --text",
)

NO_FRAMES_IN_STORE = Code(
    "no-frames-in-store",
    StoreError,
    "this store holds {kind}, not frames",
    "search it by text (swsdist search STORE --text TEXT); what is done with frames cannot be done with it",
)
