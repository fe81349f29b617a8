"""Codes of file systems and of object storage."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import (
    FramesError,
    IncompleteError,
    StorageError,
    StoreError,
    TransientError,
    UserError,
)

_KEPT = "what was computed is kept"
_AGAIN = f"run again: {_KEPT}"
_SERVER = f"check the network, and whether the server runs; {_AGAIN}"
_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `storage: {{anon: true}}` for a public bucket"

# File systems

MISSING_FILE = families.MISSING_FILE.of(StorageError).saying(
    "no such file or folder{detail}", "name a file or folder that exists"
)
DISK_FULL = Code(
    "disk-full",
    TransientError,
    "no space left on the disk{detail}",
    f"make room (df -h, df -i), or name another folder (temporary files: TMPDIR); {_AGAIN}",
)
QUOTA_EXCEEDED = Code(
    "quota-exceeded", TransientError, "the disk quota is used up{detail}", f"remove files, or ask for more; {_AGAIN}"
)
READ_ONLY_FILE_SYSTEM = Code(
    "read-only-file-system",
    StorageError,
    "the file system is read-only{detail}",
    "mount it for writing, or name another place (the run folder: --run)",
)
PERMISSION_DENIED = Code(
    "permission-denied",
    StorageError,
    "permission denied{detail}",
    "check the permissions of the path and of the folders above (ls -ld), or name another place",
)
TOO_MANY_OPEN_FILES = Code(
    "too-many-open-files",
    TransientError,
    "this process has too many open files{detail}",
    "raise the limit (ulimit -n 8192), or use fewer workers",
)
SYSTEM_FILE_LIMIT = Code(
    "system-file-limit",
    TransientError,
    "this machine has too many open files{detail}",
    "end other programs, or raise fs.file-max",
)
NAME_TOO_LONG = Code(
    "name-too-long",
    StorageError,
    "the name is too long for the file system{detail}",
    "give a shorter name, or another folder",
)
NOT_A_FOLDER = Code(
    "not-a-folder",
    StorageError,
    "a part of the path is a file, not a folder{detail}",
    "name another path, or move the file",
)
PATH_IS_A_FOLDER = Code("path-is-a-folder", StorageError, "this is a folder, not a file{detail}", "name a file")
EXISTING_FILE = Code(
    "existing-file", StorageError, "the file exists{detail}", "name another place, or move the file away"
)
NONEMPTY_FOLDER = Code(
    "nonempty-folder", StorageError, "the folder is not empty{detail}", "name another place, or empty it"
)
LINK_LOOP = Code("link-loop", StorageError, "the link leads to itself{detail}", "check the links (ls -l)")
FILE_TOO_LARGE = Code(
    "file-too-large",
    StorageError,
    "the file is too large for the file system{detail}",
    "name a folder on another file system",
)
STALE_FILE_HANDLE = Code(
    "stale-file-handle",
    TransientError,
    "the NFS server has another file there now (stale file handle){detail}",
    "mount the folder again, and run again",
)
IO_ERROR = Code(
    "io-error", TransientError, "the disk or the network failed{detail}", "check the disk and the mount (dmesg)"
)
STORAGE_TIMEOUT = Code("storage-timeout", TransientError, "no answer in time{detail}", _SERVER)
RESOURCE_BUSY = Code("resource-busy", TransientError, "the file is in use, or the server is overloaded{detail}", _AGAIN)
INTERRUPTED_CALL = Code("interrupted-call", TransientError, "a signal interrupted a system call{detail}", _AGAIN)
OUT_OF_MEMORY = Code(
    "out-of-memory", TransientError, "no memory left{detail}", "end other programs, or use fewer workers"
)
FILE_SERVER_ERROR = Code("file-server-error", TransientError, "the file server failed{detail}", _SERVER)
DEVICE_GONE = Code(
    "device-gone",
    TransientError,
    "the disk or file server is gone{detail}",
    "mount it again, and run again",
)
SERVER_UNREACHABLE = Code("server-unreachable", TransientError, "the server does not answer{detail}", _SERVER)
UNSAFE_TEMPORARY_FOLDER = Code(
    "unsafe-temporary-folder",
    StorageError,
    "this belongs to another user or is not a folder, so temporary files could be read or replaced there",
    "remove it, or name another temporary folder: TMPDIR",
)

# Object storage

S3_ACCESS_DENIED = Code(
    "s3-access-denied", StorageError, "S3 denies access{detail}", "check the credentials and the bucket's policy"
)
INVALID_S3_CREDENTIALS = Code(
    "invalid-s3-credentials",
    StorageError,
    "the S3 server does not accept the credentials{detail}",
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE",
)
EXPIRED_S3_CREDENTIALS = Code(
    "expired-s3-credentials",
    StorageError,
    "the S3 credentials have expired{detail}",
    f"get new ones (aws sso login, ...); {_AGAIN}",
)
NO_S3_CREDENTIALS = Code("no-s3-credentials", StorageError, "no S3 credentials found{detail}", _CREDENTIALS)
S3_CREDENTIALS_UNAVAILABLE = Code(
    "s3-credentials-unavailable", TransientError, "the S3 credentials could not be fetched{detail}", _CREDENTIALS
)
NO_SUCH_AWS_PROFILE = Code(
    "no-such-aws-profile", StorageError, "no such AWS profile{detail}", "check AWS_PROFILE and ~/.aws/config"
)
S3_THROTTLED = Code(
    "s3-throttled",
    TransientError,
    "the S3 server asks for fewer requests{detail}",
    f"use fewer workers, or {_AGAIN}",
)
NO_SUCH_BUCKET = Code(
    "no-such-bucket", StorageError, "no such bucket{detail}", "create it, or check its spelling and the endpoint"
)
WRONG_S3_REGION = Code(
    "wrong-s3-region",
    StorageError,
    "the bucket is in another region{detail}",
    "set storage.client_kwargs.region_name, or AWS_REGION",
)
S3_SERVER_ERROR = Code("s3-server-error", TransientError, "the S3 server failed{detail}", _AGAIN)
S3_TRANSFER_DAMAGED = Code(
    "s3-transfer-damaged",
    TransientError,
    "a transfer to or from the S3 server was cut off or damaged{detail}",
    f"check the network and proxies; {_AGAIN}",
)
S3_STORAGE_FULL = Code(
    "s3-storage-full", TransientError, "no space left on the S3 server{detail}", "make room, or ask for more"
)
S3_UNREACHABLE = Code(
    "s3-unreachable",
    TransientError,
    "the S3 server does not answer{detail}",
    "check storage.endpoint_url, AWS_ENDPOINT_URL and the network",
)
CLOCK_SKEW = Code(
    "clock-skew",
    TransientError,
    "the clocks of this machine and of the S3 server differ{detail}",
    "set this machine's (timedatectl), and run again",
)
ARCHIVED_OBJECT = Code(
    "archived-object",
    StorageError,
    "the object is in an archive (Glacier){detail}",
    "restore it first, then run this stage again (--from)",
)
OBJECT_CHANGED = Code(
    "object-changed",
    TransientError,
    "the object changed while it was read",
    "write nothing there while swsdist reads it; run again",
)


# Stores


MISSING_STORE_FILE = families.DAMAGED_FILE.saying("the file is missing", "run again: missing files are made again")


INTERRUPTED_INDEX = families.NOT_FINISHED.of(UserError).saying(
    "the index was interrupted: {progress}", "go on with `swsdist index CONFIG` first"
)

FORGETS_ALL = families.INVALID_VALUE.of(UserError).saying(
    "these are all documents of the store", "remove the folder: a store without documents cannot be searched"
)

UNKNOWN_DOCUMENT = families.UNKNOWN_NAME.saying(
    "nothing here is called {document!r}{close}",
    "name documents or recordings as `swsdist store info STORE --documents` lists them; what was forgotten is unknown, too",
)

STORE_IS_READ = Code(
    "store-is-read",
    UserError,
    "process {pid} on {host} reads the store",
    "wait until it has ended, or end it: `swsdist serve`, a run or a search",
)

NO_SUCH_STORE_TRACK = families.UNKNOWN_NAME.of(StoreError).saying(
    "the store has no track {track!r}", "its tracks are: {tracks}"
)


UNFINISHED_STORE = families.NOT_FINISHED.saying(
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


MISSING_FRAMES_FILE = Code(
    "missing-frames-file",
    FramesError,
    "frames of {key!r}: the file does not exist",
    "check its path: in an scp, relative paths are relative to the scp",
)
UNREADABLE_FRAMES_FILE = Code(
    "unreadable-frames-file", FramesError, "frames of {key!r}: the file may not be read", "check its permissions"
)

STORED_FRAMES_DAMAGED = Code(
    "stored-frames-damaged",
    IncompleteError,
    "the frames that the store has of this recording cannot be copied: {error}",
    "{advice}",
)

# Names in stores and runs


# Stores of other things than frames

NO_WORDS_IN_STORE = families.WRONG_KIND.of(StoreError).saying(
    "this store holds no words", "index transcripts, or recordings for a recogniser: swsdist index FOLDER --text"
)

NO_FRAMES_IN_STORE = families.WRONG_KIND.of(StoreError).saying(
    "this store holds {kind}, not frames",
    "search it by text (swsdist search STORE --text TEXT); what is done with frames cannot be done with it",
)
